/** Showing text that nobody vouches for: what would be invisible, or would reorder its surroundings, is made visible. */

import { el } from "./element.js";

const FIRST = 4000; // characters that are shown at first
const MORE = 32000; // and with each press of the button

const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

// Control characters but tab and line breaks; what changes the direction of text; what is not seen; halves of characters.
const HIDDEN =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]+|\r(?!\n)|(?:[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff])+/gu;

/** The text as a string in which nothing is hidden; for labels and tooltips. */
export function plain(text) {
  return String(text).replace(HIDDEN, (run) => [...run].map(named).join(""));
}

/** The text in one line of at most `length` characters. */
export function oneLine(text, length) {
  const start = String(text).slice(0, length * 4);
  const line = plain(start.replace(/\s+/g, " ").trim());
  return line.length > length || start.length < String(text).length ? `${cut(line, length - 1)}…` : line;
}

/** The text in a box of its own, the start of a long one with a button for the rest. */
export function shown(text, kind = "text") {
  const box = el("div", { class: kind, dir: "auto" });
  let end = place(text, FIRST);
  box.append(...pieces(text.slice(0, end)));
  if (end < text.length) {
    const more = el("button", { type: "button", class: "more" });
    const label = () => {
      more.textContent = `show ${Math.min(MORE, text.length - end).toLocaleString("en")} more of ${text.length.toLocaleString("en")} characters`;
    };
    more.addEventListener("click", () => {
      const next = place(text, end + MORE);
      more.before(...pieces(text.slice(end, next)));
      end = next;
      if (end < text.length) label();
      else more.remove();
    });
    label();
    box.append(more);
  }
  return box;
}

/** Any value of JSON as indented text in a box. */
export function json(value) {
  return shown(typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "", "text code");
}

/** The nodes for a piece of text: what is hidden stands in marks. */
function pieces(text) {
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(el("span", { class: "hidden-char" }, [...found[0]].map(named).join("")));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

/** A sign for a character that is not seen: its name, if it is one of ASCII, else its number. */
function named(char) {
  const code = char.codePointAt(0);
  const name = CONTROLS[code] ?? (code === 0x7f ? "DEL" : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`);
  return `\u27e8${name}\u27e9`;
}

/** An end near `at` that does not cut a character of two halves. */
function place(text, at) {
  if (at >= text.length) return text.length;
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at + 1 : at;
}

function cut(text, length) {
  return text.slice(0, place(text, length));
}
