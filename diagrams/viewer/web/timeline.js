/** Timeline: one lane for the model, one for each tool call that runs beside another, one for all else. */

import { part } from "./element.js";
import { counted, duration, many } from "./plain.js";
import { plain } from "./text.js";
import { summaryOf } from "./summary.js";

const BAND = 6; // height of the states' band
const LANE = 9;
const GAP = 2;
const MOST = 10; // lanes of tools
const FARTHEST = 4096; // times that the run can be magnified

export class Timeline {
  constructor(viewer) {
    this.viewer = viewer;
    this.canvas = part("timeline");
    this.zoom = 1;
    this.bars = [];
    this.lanes = 1;
    this.canvas.addEventListener("click", (event) => this.press(event));
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    part("zoom-in").addEventListener("click", () => this.magnify(4));
    part("zoom-out").addEventListener("click", () => this.magnify(1 / 4));
    new ResizeObserver(() => this.draw()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  /** Lay the effects into lanes: a tool takes the first lane that is free. */
  arrange() {
    const { log } = this.viewer;
    this.timed = log.elapsed > 0; // else each record is one step: a clock of its own stood still
    const free = [];
    let tools = 1;
    this.bars = log.effects.map((record) => {
      const start = this.moment(record);
      const end = record.end ? this.moment(record.end) : this.whole;
      let lane = 0;
      if (record.class === "tool") {
        lane = free.findIndex((until) => until <= start);
        if (lane < 0) lane = Math.min(free.length, MOST - 1);
        free[lane] = end;
        tools = Math.max(tools, lane + 1);
        lane += 1;
      } else if (record.class !== "model") {
        lane = -1;
      }
      return { record, start, end, lane };
    });
    this.lanes = tools + 2;
    for (const bar of this.bars) if (bar.lane < 0) bar.lane = tools + 1;
    this.canvas.style.height = `${BAND + this.lanes * (LANE + GAP) + GAP * 2}px`;
    const of = (kind) => this.bars.filter((bar) => bar.record.class === kind).length;
    this.canvas.setAttribute("aria-label", `timeline: ${many(of("model"), "model call")} and ${many(of("tool"), "tool call")} in ${this.timed ? duration(log.elapsed) : many(log.records.length, "record")}`);
    this.draw();
  }

  /** Where a record stands on the line: milliseconds, or its place. */
  moment(record) {
    return this.timed ? record.elapsed : record.place;
  }

  /** How long the line is. */
  get whole() {
    return Math.max(this.timed ? this.viewer.log.elapsed : this.viewer.log.last, 0.001);
  }

  magnify(factor) {
    this.zoom = Math.min(FARTHEST, Math.max(1, this.zoom * factor));
    this.draw();
  }

  /** The part of the run that is in sight: around the chosen record. */
  get window() {
    const { whole } = this;
    const length = whole / this.zoom;
    const record = this.viewer.log.records[this.viewer.place];
    const now = record ? this.moment(record) : 0;
    const start = Math.min(Math.max(0, now - length / 2), whole - length);
    return { start, length };
  }

  draw() {
    const { canvas } = this;
    const { log, place, shown } = this.viewer;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (width === 0 || log.records.length === 0) return;
    const scale = devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const brush = canvas.getContext("2d");
    brush.scale(scale, scale);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const { start, length } = this.window;
    const x = (moment) => ((moment - start) / length) * width;

    this.band(brush, x, width, colour);
    const filtered = shown.length < log.records.length ? new Set(shown) : null;
    for (const bar of this.bars) {
      const left = x(bar.start);
      const right = x(bar.end);
      if (right < 0 || left > width) continue;
      const { record } = bar;
      const failed = record.end?.isError === true;
      brush.globalAlpha = filtered === null || filtered.has(record.place) || (record.end && filtered.has(record.end.place)) ? 1 : 0.2;
      brush.fillStyle = colour(failed ? "failed" : record.class === "model" ? "model" : record.class === "tool" ? "tool" : "muted");
      brush.fillRect(left, BAND + GAP * 2 + bar.lane * (LANE + GAP), Math.max(1.5, right - left), LANE);
    }
    brush.globalAlpha = 1;
    const now = x(log.records[place] ? this.moment(log.records[place]) : 0);
    brush.fillStyle = colour("ink");
    brush.fillRect(Math.min(width - 2, Math.max(0, now - 1)), 0, 2, height);
  }

  /** The states, as a band over the lanes. */
  band(brush, x, width, colour) {
    const { records } = this.viewer.log;
    let drawn = -1;
    for (let index = 0; index < records.length; index++) {
      const record = records[index];
      const right = index + 1 < records.length ? x(this.moment(records[index + 1])) : width;
      if (right < 0 || right - drawn < 0.25) continue;
      const left = Math.max(drawn, x(this.moment(record)), 0);
      if (left > width) break;
      brush.fillStyle = colour(`state-${record.state}`) || colour("muted");
      brush.fillRect(left, 0, Math.max(0.5, right - left), BAND);
      drawn = right;
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const { start, length } = this.window;
    const moment = start + ((event.clientX - box.left) / box.width) * length;
    const lane = Math.floor((event.clientY - box.top - BAND - GAP * 2) / (LANE + GAP));
    const slack = (length / box.width) * 3;
    const bar = this.bars.findLast((one) => one.lane === lane && one.start - slack <= moment && moment <= one.end + slack);
    return { moment, bar };
  }

  press(event) {
    const { moment, bar } = this.at(event);
    if (bar) return this.viewer.choose(bar.record.place);
    const { records } = this.viewer.log;
    const after = records.findIndex((record) => this.moment(record) >= moment);
    return this.viewer.choose(after < 0 ? records.length - 1 : after);
  }

  hover(event) {
    const { bar } = this.at(event);
    if (!bar) return this.canvas.removeAttribute("title");
    const { record } = bar;
    this.canvas.title = `${record.class} ${plain(record.tool)} #${counted(record.seq ?? record.place)}, ${this.timed ? duration(bar.end - bar.start) : ""}: ${plain(summaryOf(record, this.viewer.payloads)[2])}`;
    return undefined;
  }
}
