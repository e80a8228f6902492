/** Tokens, cost and cache of each call of the model. */

import { el, jump, part } from "./element.js";
import { counted, dollars, duration, number, object, string } from "./plain.js";
import { Rows } from "./rows.js";
import { oneLine } from "./text.js";

const HEIGHT = 28;
const ASKING = new Set(["model", "summary", "note", "count"]);
const COLUMNS = ["turn", "record", "call", "time", "input", "cache read", "cache write", "output", "cached", "cost", "outcome"];

export class Turns {
  constructor(viewer) {
    this.viewer = viewer;
    this.calls = [];
    this.head = part("turns-total");
    const table = part("turns");
    table.append(el("div", { role: "row", class: "turn-row titles" }, COLUMNS.map((title) => el("span", { role: "columnheader" }, title))));
    this.box = el("div", { class: "turn-rows", role: "rowgroup", tabindex: 0, "aria-label": "Calls of the model" });
    table.append(this.box);
    this.rows = new Rows(this.box, HEIGHT, (index) => this.row(this.calls[index]));
  }

  draw() {
    const { log } = this.viewer;
    this.calls = log.effects.filter((record) => ASKING.has(record.class));
    const sum = { input_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, output_tokens: 0, cost_micro_usd: 0 };
    for (const call of this.calls) for (const name of Object.keys(sum)) sum[name] += number(object(call.end?.field("usage"))[name]);
    this.head.textContent =
      `${counted(this.calls.length)} calls · ${counted(sum.input_tokens)} tokens read, ${counted(sum.cache_read_tokens)} from the cache, ` +
      `${counted(sum.cache_write_tokens)} into it · ${counted(sum.output_tokens)} written · ${share(sum)} cached · cost ${price(sum.cost_micro_usd)}`;
    part("turns").setAttribute("aria-rowcount", this.calls.length + 1);
    this.rows.show(this.calls.length);
  }

  row(call) {
    const usage = object(call.end?.field("usage"));
    const outcome = call.end === null ? "no end recorded" : string(call.end.field("stop_reason")) || string(call.end.field("outcome"));
    const miss = object(call.end?.field("cache_miss")).type ?? call.end?.field("cache_miss");
    const cells = [
      counted(call.turn),
      jump(call),
      call.class,
      call.end === null ? "–" : duration(call.end.elapsed - call.elapsed),
      counted(usage.input_tokens),
      counted(usage.cache_read_tokens),
      counted(usage.cache_write_tokens),
      counted(usage.output_tokens),
      share(usage),
      price(usage.cost_micro_usd),
      oneLine(outcome, 40) + (typeof miss === "string" ? ` (cache: ${oneLine(miss, 40)})` : ""),
    ];
    return el("div", { role: "row", class: `turn-row${call.end?.isError ? " error" : ""}` }, cells.map((cell) => el("span", { role: "cell" }, cell)));
  }
}

/** A cost; nothing is known of one of zero. */
const price = (micro) => (number(micro) === 0 ? "–" : dollars(micro));

/** The part of the prompt that came from the cache. */
function share(usage) {
  const read = number(usage.input_tokens) + number(usage.cache_read_tokens) + number(usage.cache_write_tokens);
  return read === 0 ? "–" : `${Math.round((100 * number(usage.cache_read_tokens)) / read)}%`;
}
