/** What a record says in one line. */

import { counted, dollars, duration, list, many, number, object, string } from "./plain.js";
import { contentOf } from "./payloads.js";
import { oneLine } from "./text.js";

const LENGTH = 160;

/** The mark, the kind in a word, and the line. */
export function summaryOf(record, payloads) {
  const field = (name) => string(record.field(name));
  switch (record.kind) {
    case "genesis":
      return ["●", "genesis", `the run begins, model ${field("model")}`];
    case "transition":
      return [moved(record) ? "→" : "↺", "move", `${where(record)} ${field("event")}${choice(record)}${ended(record)}`];
    case "rejected":
      return ["✕", "refused", `${field("event")} in ${field("source")}`];
    case "message":
      return message(record, payloads);
    case "effect_begin":
      return ["▸", record.class || "effect", begun(record, payloads)];
    case "effect_end":
      return ["◂", record.class || "effect", stopped(record)];
    case "checkpoint":
      return ["✓", "checkpoint", `${counted(record.field("count"))} records so far`];
    case "resumed":
      return ["⟲", "resumed", `a new process owns the run, epoch ${number(record.field("epoch"))}`];
    case "tombstone":
      return ["†", "tombstone", "a payload was deleted"];
    case "terminal":
      return ["■", "seal", `${field("state")}: ${field("terminal")}`];
    default:
      return ["!", record.data === null ? "damaged" : oneLine(record.kind, 20), oneLine(record.text.slice(0, 4 * LENGTH), LENGTH)];
  }
}

function moved(record) {
  return record.field("target") !== record.field("source");
}

function where(record) {
  const [source, target] = [string(record.field("source")), string(record.field("target"))];
  return source === target ? `${source}:` : `${source} → ${target}`;
}

function choice(record) {
  const held = list(record.field("guards")).find((verdict) => list(verdict)[1] === true);
  return held && held[0] !== "always" ? ` [${held[0]}]` : "";
}

function ended(record) {
  const outcome = record.field("strategy") ?? record.field("reason") ?? record.field("terminal");
  return typeof outcome === "string" ? ` · ${outcome}` : "";
}

function message(record, payloads) {
  const blocks = list(record.field("blocks")).map(object);
  const role = string(record.field("role")) || "message";
  const op = string(record.field("op"));
  if (op === "edit") return ["±", "messages", edited(list(record.field("edits")).map(object))];
  if (op === "leave") return ["−", role, gone(number(record.field("index")), number(record.field("count")) || 1)];
  const said = blocks.slice(0, 3).map((block) => glimpse(block, payloads)).join(" · ");
  const rest = blocks.length > 3 ? ` · and ${blocks.length - 3} more` : "";
  return [op === "extend" ? "+" : "❯", role, oneLine(said, LENGTH) + rest];
}

function gone(index, count) {
  return count > 1 ? `messages ${index} to ${index + count - 1} leave the history` : `message ${index} leaves the history`;
}

function edited(edits) {
  const before = edits.reduce((sum, edit) => sum + number(edit.stop) - number(edit.start), 0);
  const after = edits.reduce((sum, edit) => sum + list(edit.messages).length, 0);
  return `${many(before, "message")} of the history ${before === 1 ? "gives" : "give"} way to ${many(after, "other")}, from message ${number(edits[0]?.start)} on`;
}

/** A block in a few words. */
export function glimpse(block, payloads) {
  const type = string(block.type) || "block";
  const size = payloads.size(string(block.commitment));
  const content = size === null || size < 20_000 ? contentOf(payloads, string(block.commitment)) : {};
  const value = content.value;
  const inner = typeof value === "string" ? value : string(value?.text) || string(value?.thinking);
  switch (type) {
    case "text":
      return inner || `text of ${counted(block.bytes)} bytes`;
    case "thinking":
      return `thinking: ${inner || `${counted(block.bytes)} bytes`}`;
    case "tool_use":
      return `${string(block.name)} ${value?.input === undefined ? "" : JSON.stringify(value.input)}`;
    case "tool_result":
      return `${block.is_error === true ? "error" : "result"}: ${resultText(value?.content) || `${counted(block.bytes)} bytes`}`;
    default:
      return `${type} ${string(block.name)}`;
  }
}

/** The text in the content of a tool's result. */
export function resultText(content) {
  if (typeof content === "string") return content;
  return list(content).map((block) => string(object(block).text) || `[${string(object(block).type)}]`).join("\n");
}

function begun(record, payloads) {
  const name = string(record.field("name"));
  switch (record.class) {
    case "model":
      return `${string(record.field("model"))}, at most ${counted(record.field("max_tokens"))} tokens${number(record.field("attempt")) ? `, attempt ${number(record.field("attempt")) + 1}` : ""}`;
    case "tool": {
      const size = payloads.size(string(record.field("input")));
      const { value } = size === null || size < 20_000 ? contentOf(payloads, string(record.field("input"))) : {};
      return oneLine(`${name} ${value?.input === undefined ? "" : JSON.stringify(value.input)}`, LENGTH);
    }
    case "sleep":
      return `${duration(number(record.field("delay_ms")))}`;
    case "hook":
      return `${string(record.field("point"))} ${name}`;
    case "summary":
      return `${string(record.field("level"))} by ${string(record.field("by")) || string(record.field("model"))}`;
    default:
      return name || string(record.field("model"));
  }
}

function stopped(record) {
  const { begin } = record;
  const took = begin === null ? "" : `, ${duration(record.elapsed - begin.elapsed)}`;
  const outcome = string(record.field("outcome"));
  const usage = object(record.field("usage"));
  switch (record.class) {
    case "model": {
      const cost = number(usage.cost_micro_usd) ? `, ${dollars(usage.cost_micro_usd)}` : "";
      return `${outcome === "ok" ? string(record.field("stop_reason")) : outcome}, ${counted(usage.output_tokens)} tokens${cost}${took}`;
    }
    case "tool":
      return `${record.tool} ${outcome}${took}`;
    case "hook":
      return `${begin === null ? "" : string(begin.field("name"))} ${outcome}${took}`;
    default:
      return `${outcome}${took}`;
  }
}
