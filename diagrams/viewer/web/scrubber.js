/** Stepping through the records that are shown: buttons, a slider, a field for a record's number, and keys. */

import { part } from "./element.js";
import { summaryOf } from "./summary.js";
import { plain } from "./text.js";

const TYPED = /^(?:INPUT|SELECT|TEXTAREA)$/;

export class Scrubber {
  constructor(viewer) {
    this.viewer = viewer;
    this.slider = part("slider");
    this.number = part("seq");
    this.count = part("count");
    this.slider.addEventListener("input", () => viewer.step(Number(this.slider.value)));
    this.number.addEventListener("change", () => this.go());
    this.number.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go();
        part("records").focus();
      } else if (event.key === "Escape") {
        this.draw();
        part("records").focus();
      }
    });
    for (const [id, move] of [["first", -Infinity], ["back", -1], ["forward", 1], ["last", Infinity]]) {
      part(id).addEventListener("click", () => viewer.move(move));
    }
    document.addEventListener("keydown", (event) => this.key(event));
  }

  /** Go to the record whose number was typed, or to the nearest there is. */
  go() {
    const { log } = this.viewer;
    const wanted = Number(this.number.value);
    if (this.number.value !== "" && Number.isFinite(wanted) && log.records.length > 0) {
      const record = log.bySeq.get(wanted) ?? log.records[Math.min(Math.max(0, Math.round(wanted)), log.last)];
      this.viewer.choose(record.place);
    }
    this.draw();
  }

  /** Keys, where they have no other use. Digits are taken only in the list, which is where a number is begun. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const { target } = event;
    const listed = target === document.body || target === part("records");
    if (listed && /^[0-9]$/.test(event.key)) {
      this.number.value = "";
      this.number.focus();
      return; // the digit goes into the field
    }
    if (TYPED.test(target.tagName) || target.getAttribute?.("role") === "tab" || target.tagName === "SUMMARY") return;
    const page = this.viewer.list.rows.page;
    const anywhere = { ArrowLeft: -1, ArrowRight: 1 };
    const inList = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };
    const move = anywhere[event.key] ?? (listed ? inList[event.key] : undefined);
    if (move === undefined) return;
    event.preventDefault();
    this.viewer.move(move);
  }

  draw() {
    const { log, shown, place, index } = this.viewer;
    const record = log.records[place];
    this.slider.max = String(Math.max(0, shown.length - 1));
    this.slider.value = String(Math.max(0, index));
    if (document.activeElement !== this.number) this.number.value = record === undefined ? "" : String(record.seq ?? record.place);
    const all = log.records.length;
    const of = (count) => count.toLocaleString("en");
    this.count.textContent = shown.length === all ? `${of(all)} ${all === 1 ? "record" : "records"}` : `${of(shown.length)} of ${of(all)} records`;
    if (record !== undefined) {
      const [, kind, line] = summaryOf(record, this.viewer.payloads);
      this.slider.setAttribute("aria-valuetext", plain(`record ${record.name}, ${kind}, ${line}`));
    }
    part("first").disabled = part("back").disabled = index === 0 || shown.length === 0;
    part("forward").disabled = part("last").disabled = index === shown.length - 1 || shown.length === 0;
  }
}
