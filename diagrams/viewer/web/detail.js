/** All that one record tells: the event and its fields, the guards, what the context changed, the contents. */

import { block, payload } from "./blocks.js";
import { el, jump, pairs, part } from "./element.js";
import { counted, duration, list, many, number, object, string } from "./plain.js";
import { summaryOf } from "./summary.js";
import { json, plain } from "./text.js";

const STAMPS = new Set(["v", "run", "seq", "epoch", "ts", "mono_ns", "kind", "prev", "hash"]);
const SPELT = new Set(["source", "event", "fields", "target", "reason", "strategy", "terminal", "guards", "change", "blocks", "unfinished", "edits"]);
const ABSENT = "–";
const AT_ONCE = 30; // edits of the history that are shown of one record

export class Detail {
  constructor(viewer) {
    this.viewer = viewer;
    this.box = part("panel-record");
    this.open = new Set(); // the folds that are open
  }

  draw() {
    const { log, place } = this.viewer;
    const record = log.records[place];
    this.box.replaceChildren(...(record ? this.parts(record) : [el("p", { class: "absent" }, "No record yet.")]));
  }

  parts(record) {
    const [, kind, line] = summaryOf(record, this.viewer.payloads);
    return [
      el(
        "header",
        { class: "record-head" },
        el("h2", {}, el("span", { class: "seq" }, record.seq === null ? record.name : `#${record.name}`), " ", el("span", { class: "kind" }, plain(kind)), " ", plain(line)),
        el("p", { class: "when" }, this.when(record)),
      ),
      record.findings.map(finding),
      ...(record.isMove ? this.moveParts(record) : this.otherParts(record)),
      this.fold("context", "Context after this record", () => this.contextNow(record)),
      this.fold("line", "The line as it stands", () => json(record.text)),
    ].flat();
  }

  when(record) {
    const time = string(record.field("ts"));
    const said = [time.replace("T", " ").replace("Z", " UTC"), `+${duration(record.elapsed)}`, `turn ${record.turn}`, record.state];
    const { end, begin } = record;
    return [
      plain(said.filter(Boolean).join(" · ")),
      end && [" · ended at ", jump(end), ` after ${duration(end.elapsed - record.elapsed)}`],
      begin && [" · began at ", jump(begin), `, took ${duration(record.elapsed - begin.elapsed)}`],
    ];
  }

  fold(name, title, make) {
    const inside = el("div", { class: "fold-inside" });
    const fold = el("details", {}, el("summary", {}, title), inside);
    const fill = () => {
      if (fold.open) this.open.add(name);
      else this.open.delete(name);
      inside.replaceChildren(...(fold.open ? [make()] : []));
    };
    fold.open = this.open.has(name);
    if (fold.open) inside.append(make());
    fold.addEventListener("toggle", fill);
    return fold;
  }

  // --- moves

  moveParts(record) {
    const { machine } = this.viewer.log;
    const { row } = record;
    const source = string(record.field("source"));
    const event = string(record.field("event"));
    const fields = Object.entries(object(record.field("fields")));
    const outcome = [
      ["reason", record.field("reason")],
      ["strategy", record.field("strategy")],
      ["terminal", record.field("terminal")],
      ["commands", row === null ? null : row.commands.join(", ")],
    ].filter(([, value]) => typeof value === "string" && value !== "");
    return [
      record.kind === "rejected" ? el("p", { class: "bad" }, "The event was refused; nothing moved.") : null,
      record.kind === "transition" && row === null ? el("p", { class: "bad" }, "The table has no such move.") : null,
      section("Move", pairs([["from", plain(source)], ["event", plain(event)], ["to", plain(string(record.field("target")))], ...outcome.map(([name, value]) => [name, plain(value)])])),
      section("Fields of the event", fields.length === 0 ? nothing("It has none.") : pairs(fields.map(([name, value]) => [plain(name), this.value(value)]))),
      section("Guards", this.guards(record, machine.alternatives(source, event))),
      section("Context changed", this.changes(record)),
    ].filter(Boolean);
  }

  guards(record, rows) {
    const verdicts = list(record.field("guards")).map(list);
    if (verdicts.length === 0) return nothing("None was asked.");
    const { machine } = this.viewer.log;
    return el(
      "table",
      { class: "guards" },
      el("thead", {}, el("tr", {}, ["verdict", "guard", "leads to", "asks"].map((title) => el("th", { scope: "col" }, title)))),
      el(
        "tbody",
        {},
        verdicts.map(([name, verdict]) => {
          const row = rows.find((one) => one.guard === name);
          const leads = row === undefined ? ABSENT : [row.target ?? "stays", row.strategy ?? row.reason ?? row.terminal].filter(Boolean).join(", ");
          return el(
            "tr",
            { class: verdict === true ? "held" : "not-held" },
            el("td", {}, verdict === true ? "✓ holds" : "✗ does not"),
            el("td", {}, el("code", {}, plain(String(name)))),
            el("td", {}, leads),
            el("td", { class: "asks" }, machine.guard(name)),
          );
        }),
      ),
    );
  }

  changes(record) {
    const changed = Object.entries(object(record.field("change")));
    if (changed.length === 0) return nothing("Nothing.");
    return el(
      "table",
      { class: "changes" },
      el("thead", {}, el("tr", {}, ["field", "before", "after"].map((title) => el("th", { scope: "col" }, title)))),
      el(
        "tbody",
        {},
        changed.map(([name, value]) => el("tr", {}, el("td", {}, el("code", {}, plain(name))), el("td", { class: "was" }, this.value(record.was?.get(name))), el("td", { class: "now" }, this.value(value)))),
      ),
    );
  }

  contextNow(record) {
    const { log } = this.viewer;
    const limits = object(log.genesis?.field("limits"));
    const entries = [...log.contextAt(record.place)].map(([name, value]) => {
      const counter = log.machine.counters.get(name);
      if (counter === undefined) return [plain(name), this.value(value)];
      const bound = typeof counter.bound === "number" ? counter.bound : limits[counter.bound];
      return [plain(name), `${plain(String(value))} of ${plain(String(bound ?? "no limit"))} · ${counter.doc}`];
    });
    return pairs(entries);
  }

  // --- messages, effects and the rest

  otherParts(record) {
    const { payloads } = this.viewer;
    if (record.data === null) return [el("p", { class: "bad" }, "This line is no record.")];
    const parts = [];
    const blocks = [...list(record.field("blocks")), ...list(record.field("unfinished"))];
    const fields = Object.entries(record.data).filter(([name]) => !STAMPS.has(name) && !SPELT.has(name));
    if (blocks.length > 0) parts.push(section(blocks.length === 1 ? "Content" : "Contents", blocks.map((one) => block(one, payloads))));
    parts.push(...this.edits(record));
    for (const [name, title] of [["input", "Input"], ["edited", "Input after the hook's edit"], ["result", "Result"]]) {
      const commitment = record.field(name);
      if (typeof commitment === "string") parts.push(section(title, payload(commitment, payloads, name === "result" ? record.field("bytes") : null)));
    }
    const full = object(record.field("full")).commitment;
    if (typeof full === "string") parts.push(section("The whole result, which was too long to be sent", payload(full, payloads, object(record.field("full")).bytes)));
    parts.push(section("Fields", fields.length === 0 ? nothing("It has none.") : pairs(fields.map(([name, value]) => [plain(name), this.value(value)]))));
    return parts;
  }

  /** What became of messages of the history. */
  edits(record) {
    const edits = list(record.field("edits")).map(object);
    if (edits.length === 0) return [];
    const before = this.viewer.log.history.at(record.place - 1);
    const shown = edits.slice(0, AT_ONCE).map((edit) => this.edit(edit, before));
    if (edits.length > AT_ONCE) shown.push(nothing(`And ${many(edits.length - AT_ONCE, "more edit")}.`));
    return shown;
  }

  edit(edit, before) {
    const [start, stop] = [number(edit.start), number(edit.stop)];
    const messages = list(edit.messages).map(object);
    const gone = before.slice(start, stop).flatMap((message) => message.blocks.map((one) => object(one.skeleton)));
    const stay = new Set(gone.map((one) => string(one.commitment)));
    const now = messages.flatMap((message) => list(message.blocks).map(object));
    const title = stop - start > 1 ? `In the place of messages ${start} to ${stop - 1}` : stop > start ? `In the place of message ${start}` : `Before message ${start}`;
    return section(
      title,
      el("p", { class: "edit" }, `${weight(gone)} became ${weight(now)}.`),
      messages.flatMap((message) => [
        el("p", {}, el("strong", {}, plain(string(message.role)))),
        ...list(message.blocks).map(object).map((one) => (stay.has(string(one.commitment)) ? nothing(`${plain(string(one.type) || "block")} as it was`) : block(one, this.viewer.payloads))),
      ]),
    );
  }

  value(value) {
    if (value === null || value === undefined) return el("span", { class: "absent" }, ABSENT);
    if (typeof value === "number") return counted(value);
    if (typeof value === "object") return json(value);
    const text = plain(String(value));
    return text.length > 200 ? json(String(value)) : text;
  }
}

/** A finding of the verifier. */
export function finding(violation) {
  return el(
    "div",
    { class: "violation", role: "note" },
    el("p", {}, el("strong", {}, plain(violation.invariant)), " ", plain(violation.message)),
    pairs([["expected", plain(violation.expected)], ["found", plain(violation.found)]]),
  );
}

function section(title, ...inside) {
  return el("section", { class: "section" }, el("h3", {}, title), inside);
}

/** How much there is in blocks. */
function weight(blocks) {
  return `${many(blocks.length, "block")} of ${many(blocks.reduce((sum, one) => sum + number(one.bytes), 0), "byte")}`;
}

const nothing = (text) => el("p", { class: "absent" }, text);
