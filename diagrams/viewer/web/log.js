/** Log: the records in order, each taken up with what those before it mean: state, turn, time, context, effects. */

import { History } from "./history.js";
import { list, number, object, string } from "./plain.js";
import { Record } from "./record.js";

export class Log {
  constructor(machine) {
    this.machine = machine;
    this.records = [];
    this.history = new History();
    this.effects = []; // the records that begin one
    this.tools = new Set();
    this.reasons = new Set();
    this.calls = new Map(); // the tool of each call, by its id
    this.bySeq = new Map();
    this.state = machine.initial;
    this.entered = null; // the row by which the run came into its state
    this.context = new Map(Object.entries(machine.context));
    this.report = null;
    this.elapsed = 0;
    this.clock = null;
  }

  get last() {
    return this.records.length - 1;
  }

  get genesis() {
    return this.records[0]?.kind === "genesis" ? this.records[0] : null;
  }

  get terminal() {
    return this.records.findLast((record) => record.kind === "terminal") ?? null;
  }

  /** Take up the next line. */
  add(raw) {
    const record = new Record(this.records.length, raw);
    this.records.push(record);
    if (record.seq !== null && !this.bySeq.has(record.seq)) this.bySeq.set(record.seq, record);
    this.tick(record);
    switch (record.kind) {
      case "transition":
        this.move(record);
        break;
      case "rejected":
        record.row = null;
        break;
      case "message":
        this.history.add(record);
        for (const block of list(record.field("blocks"))) this.name(object(block));
        record.tool = this.toolIn(record);
        break;
      case "effect_begin":
        this.effects.push(record);
        if (record.class === "tool") {
          record.tool = string(record.field("name"));
          this.tools.add(record.tool);
        }
        break;
      case "effect_end": {
        const begin = this.bySeq.get(record.field("effect"));
        if (begin?.kind === "effect_begin") {
          record.begin = begin;
          begin.end = record;
          record.tool = begin.tool;
        }
        break;
      }
    }
    record.state = this.state;
    record.entered = this.entered;
    record.turn = number(this.context.get("turn"));
    return record;
  }

  /** Time is what processes have run: what lies between two of them is left out. */
  tick(record) {
    const epoch = record.field("epoch");
    const now = record.field("mono_ns");
    if (typeof now === "number") {
      if (this.clock !== null && this.clock.epoch === epoch) this.elapsed += Math.max(0, now - this.clock.now) / 1e6;
      this.clock = { epoch, now };
    }
    record.elapsed = this.elapsed;
  }

  move(record) {
    const { data } = record;
    record.row = this.machine.rowOf(data);
    record.was = new Map();
    for (const [name, value] of Object.entries(object(data.change))) {
      record.was.set(name, this.context.get(name));
      this.context.set(name, value);
    }
    if (typeof data.reason === "string") this.reasons.add(data.reason);
    if (typeof data.target === "string") this.state = data.target;
    if (data.target !== data.source) this.entered = record.row;
  }

  name(block) {
    if (typeof block.name === "string" && typeof block.id === "string") {
      this.calls.set(block.id, block.name);
      this.tools.add(block.name);
    }
  }

  toolIn(record) {
    for (const block of list(record.field("blocks")).map(object)) {
      const tool = typeof block.name === "string" ? block.name : this.calls.get(block.tool_use_id);
      if (tool) return tool;
    }
    return "";
  }

  /** The verdict on the log: each finding goes to its record. */
  judge(report) {
    this.report = report;
    for (const record of this.records) if (record.findings.length > 0) record.findings = [];
    for (const finding of list(report?.violations)) {
      const record = this.records[finding.line - 1];
      if (record) record.findings.push(finding);
    }
  }

  /** The context after the record at `place`, as a map of names to values. */
  contextAt(place) {
    const context = new Map(this.context);
    for (let index = this.last; index > place; index--) {
      const { was } = this.records[index];
      if (was !== null) for (const [name, value] of was) context.set(name, value);
    }
    return context;
  }

  /** The records that hold one of `commitments`, by their places. */
  holding(commitments) {
    return new Set(this.records.filter((record) => [...record.commitments].some((one) => commitments.has(one))).map((record) => record.place));
  }
}
