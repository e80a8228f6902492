/** Record: a line of the log, with what the lines before it mean for it. */

import { textOf } from "./bytes.js";
import { list, object, string } from "./plain.js";

const HEX = /^[0-9a-f]{64}$/;
const CHAIN = new Set(["hash", "prev"]);
// How effects end that did what they are for, hooks with any of their verdicts.
const GOOD = new Set(["ok", "answered", "Pass", "Block", "Halt", "Allow", "Ask", "Deny"]);

export class Record {
  /** `place`: which line it is, from 0. `raw`: its bytes, without the newline. */
  constructor(place, raw) {
    this.place = place;
    this.raw = raw;
    this.data = parsed(raw);
    this.kind = this.data === null ? "damaged" : string(this.data.kind) || "damaged";
    this.seq = typeof this.data?.seq === "number" ? this.data.seq : null;
    // What the log sets as it takes the record up:
    this.state = ""; // where the run is when the record has been written
    this.turn = 1;
    this.elapsed = 0; // milliseconds that processes have run so far
    this.row = null; // the row of the table that a move walked
    this.entered = null; // the row by which the run came into its state
    this.was = null; // the context's values before the move, of those that it changed
    this.begin = this.end = null; // the other end of an effect
    this.tool = "";
    this.findings = [];
  }

  /** What the record is called: its number, or its line where it has none. */
  get name() {
    return this.seq === null ? `line ${this.place + 1}` : String(this.seq);
  }

  /** A field of the record; undefined where it has none. */
  field(name) {
    return this.data?.[name];
  }

  /** The line as it stands. */
  get text() {
    return textOf(this.raw);
  }

  get isMove() {
    return this.kind === "transition" || this.kind === "rejected";
  }

  get isEffect() {
    return this.kind === "effect_begin" || this.kind === "effect_end";
  }

  /** What kind of effect it is the begin or end of. */
  get class() {
    return string(this.field("class"));
  }

  /** Whether something went wrong here. */
  get isError() {
    switch (this.kind) {
      case "damaged":
      case "rejected":
        return true;
      case "transition":
        return string(this.field("event")).endsWith("Failed") || this.field("target") === "failed";
      case "effect_end":
        return this.field("is_error") === true || object(this.field("error")).type !== undefined || !GOOD.has(string(this.field("outcome")));
      case "message":
        return list(this.field("blocks")).some((block) => object(block).is_error === true);
      default:
        return this.findings.length > 0;
    }
  }

  /** Every commitment that the record makes. */
  get commitments() {
    const found = new Set();
    collect(this.data, found);
    return found;
  }
}

function parsed(raw) {
  try {
    const value = JSON.parse(textOf(raw));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

function collect(value, found) {
  if (typeof value === "string") {
    if (HEX.test(value)) found.add(value);
  } else if (value !== null && typeof value === "object") {
    for (const [name, inner] of Object.entries(value)) if (!CHAIN.has(name)) collect(inner, found);
  }
}
