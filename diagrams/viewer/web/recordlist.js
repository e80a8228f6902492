/** The list of records: one line each, of which one is chosen. */

import { el, part } from "./element.js";
import { Rows } from "./rows.js";
import { summaryOf } from "./summary.js";
import { plain } from "./text.js";

const HEIGHT = 26;

export class RecordList {
  constructor(viewer) {
    this.viewer = viewer;
    this.box = part("records");
    this.rows = new Rows(this.box, HEIGHT, (index) => this.row(index));
    this.box.addEventListener("click", (event) => {
      const row = event.target.closest("[data-place]");
      if (row) viewer.choose(Number(row.dataset.place));
    });
  }

  row(index) {
    const { log, payloads, shown, place } = this.viewer;
    const record = log.records[shown[index]];
    const [mark, kind, line] = summaryOf(record, payloads);
    const chosen = record.place === place;
    const marks = ["row", `kind-${record.kind}`, record.isError && "error", record.findings.length > 0 && "finding", chosen && "chosen"];
    const reason = record.field("reason");
    return el(
      "div",
      {
        class: marks.filter(Boolean).join(" "),
        role: "option",
        id: `row-${record.place}`,
        "data-place": record.place,
        "data-reason": typeof reason === "string" ? reason : null,
        "aria-selected": String(chosen),
        "aria-posinset": index + 1,
        "aria-setsize": shown.length,
      },
      el("span", { class: "seq" }, record.name),
      el("span", { class: "mark", "aria-hidden": "true" }, mark),
      el("span", { class: "kind" }, plain(kind)),
      el("span", { class: "line" }, plain(line)),
      record.findings.length > 0 ? el("span", { class: "flag" }, "finding") : null,
    );
  }

  /** Other records are shown, or there are more of them. */
  show(anew) {
    this.rows.show(this.viewer.shown.length, anew);
  }

  /** Another record is chosen; `index` is its place in the list, -1 where it is not shown. */
  choose(index) {
    for (const row of this.rows.made.values()) {
      const chosen = Number(row.dataset.place) === this.viewer.place;
      row.classList.toggle("chosen", chosen);
      row.setAttribute("aria-selected", String(chosen));
    }
    if (index < 0) {
      this.box.removeAttribute("aria-activedescendant");
    } else {
      this.rows.reveal(index);
      this.box.setAttribute("aria-activedescendant", `row-${this.viewer.place}`);
    }
  }
}
