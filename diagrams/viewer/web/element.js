/** Making elements. Text from a log enters the page here, and only as text: no markup, no address, no style. */

const FORBIDDEN = new Set(["style", "href", "src", "srcdoc", "action", "formaction"]);

/** An element with attributes (`onclick` and the like are listeners) and children, which are nodes or plain text. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (FORBIDDEN.has(name)) throw new Error(`${name} is never set from data`);
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** The element of the template with this id. */
export const part = (id) => document.getElementById(id);

/** A button that leads to a record. */
export function jump(record, label = record.seq === null ? record.name : `#${record.name}`) {
  return el("button", { type: "button", class: "jump", "data-place": record.place }, label);
}

/** A table of names and values. Values are nodes or text. */
export function pairs(entries, kind = "pairs") {
  return el("dl", { class: kind }, entries.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}
