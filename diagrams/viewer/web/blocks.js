/** Content blocks of messages, with what the payload store has of them. */

import { el } from "./element.js";
import { contentOf } from "./payloads.js";
import { list, many, object, string } from "./plain.js";
import { resultText } from "./summary.js";
import { json, plain, shown } from "./text.js";

/** A block: what the record says of it, and its content. */
export function block(skeleton, payloads) {
  const said = object(skeleton);
  const type = string(said.type) || "block";
  const head = el("div", { class: "block-head" }, el("span", { class: "block-type" }, plain(type)));
  if (typeof said.name === "string") head.append(" ", el("strong", {}, plain(said.name)));
  const id = said.id ?? said.tool_use_id;
  if (typeof id === "string") head.append(" ", el("code", {}, plain(id)));
  if (said.is_error === true) head.append(" ", el("span", { class: "bad" }, "error"));
  const kind = type.endsWith("tool_use") ? "call" : type.endsWith("tool_result") ? "result" : type === "thinking" ? "thinking" : "said";
  return el("div", { class: `block block-${kind}${said.is_error === true ? " error" : ""}` }, head, content(said, payloads));
}

function content(skeleton, payloads) {
  const found = contentOf(payloads, string(skeleton.commitment));
  if (found.value === undefined) return absent(found, skeleton.bytes);
  const value = object(found.value);
  switch (skeleton.type) {
    case "text":
      return shown(typeof found.value === "string" ? found.value : string(value.text));
    case "thinking":
      return shown(string(value.thinking), "text thinking-text");
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use":
      return json(value.input);
    case "tool_result":
      return typeof value.content === "string" || list(value.content).every((one) => object(one).type === "text")
        ? shown(resultText(value.content), "text code")
        : json(value.content);
    default:
      return json(found.value);
  }
}

/** A payload by its commitment, whatever it is. */
export function payload(commitment, payloads, bytes) {
  const found = contentOf(payloads, commitment);
  return found.value === undefined ? absent(found, bytes) : json(found.value?.input ?? found.value?.content ?? found.value);
}

function absent(found, bytes) {
  const size = typeof bytes === "number" ? many(bytes, "byte") : "content";
  return el("p", { class: "absent" }, found.coming ? "reading …" : `${size}, not kept with this log`);
}
