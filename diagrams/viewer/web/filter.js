/** Filter: which records are shown. What is chosen in each field must hold; an empty field lets all pass. */

import { el, part } from "./element.js";
import { string } from "./plain.js";
import { summaryOf } from "./summary.js";
import { oneLine } from "./text.js";

const KINDS = {
  moves: (record) => record.isMove,
  messages: (record) => record.kind === "message",
  "model calls": (record) => record.isEffect && record.class === "model",
  tools: (record) => record.isEffect && record.class === "tool",
  "other effects": (record) => record.isEffect && record.class !== "model" && record.class !== "tool",
  "the run itself": (record) => !record.isMove && !record.isEffect && record.kind !== "message",
};

export class Filter {
  /** `onChange` is called when another choice was made. */
  constructor(log, payloads, onChange) {
    this.log = log;
    this.payloads = payloads;
    this.fields = Object.fromEntries(["kind", "reason", "state", "tool", "errors", "words"].map((name) => [name, part(`filter-${name}`)]));
    this.known = new Set();
    for (const kind of Object.keys(KINDS)) this.offer("kind", kind);
    for (const name of ["kind", "reason", "state", "tool", "errors"]) this.fields[name].addEventListener("change", onChange);
    let waiting = 0;
    this.fields.words.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(onChange, 120);
    });
    part("filter").addEventListener("submit", (event) => event.preventDefault());
    part("filter-clear").addEventListener("click", () => {
      this.clear();
      onChange();
    });
  }

  /** Offer what the log has come to hold. */
  refresh() {
    for (const reason of this.log.reasons) this.offer("reason", reason);
    for (const tool of this.log.tools) this.offer("tool", tool);
    for (const state of this.log.machine.states) this.offer("state", state);
  }

  offer(name, value) {
    const key = `${name} ${value}`;
    if (this.known.has(key)) return;
    this.known.add(key);
    this.fields[name].append(el("option", { value }, oneLine(value, 60)));
  }

  clear() {
    for (const field of Object.values(this.fields)) {
      if (field.type === "checkbox") field.checked = false;
      else field.value = "";
    }
  }

  get active() {
    return Object.values(this.fields).some((field) => (field.type === "checkbox" ? field.checked : field.value !== ""));
  }

  /** The question that a record is asked now. */
  test() {
    const { kind, reason, state, tool, errors, words } = this.fields;
    const tests = [];
    if (kind.value) tests.push(KINDS[kind.value]);
    if (reason.value) tests.push((record) => record.field("reason") === reason.value);
    if (state.value) tests.push((record) => record.state === state.value || record.field("source") === state.value);
    if (tool.value) tests.push((record) => record.tool === tool.value);
    if (errors.checked) tests.push((record) => record.isError || record.findings.length > 0);
    const wanted = words.value.trim().toLowerCase();
    if (wanted) {
      const inside = this.log.holding(this.payloads.holding(wanted));
      tests.push((record) => inside.has(record.place) || saying(record, this.payloads).includes(wanted));
    }
    return (record) => tests.every((test) => test(record));
  }
}

function saying(record, payloads) {
  record.words ??= [...summaryOf(record, payloads).slice(1), string(record.field("event")), record.name].join(" ").toLowerCase();
  return record.words;
}
