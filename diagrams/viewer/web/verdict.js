/** What the verifier says of the log. */

import { finding } from "./detail.js";
import { el, jump, pairs, part } from "./element.js";
import { counted, list, many, string } from "./plain.js";
import { plain } from "./text.js";

export class Verdict {
  constructor(viewer) {
    this.viewer = viewer;
    this.box = part("panel-verdict");
  }

  draw() {
    const { log, about } = this.viewer;
    const { report } = log;
    if (report === null) {
      this.box.replaceChildren(el("p", { class: "absent" }, about.live ? "The verifier has not judged the log yet." : "These records are not a log in a file: the verifier was not asked."));
      return;
    }
    const found = list(report.violations);
    this.box.replaceChildren(
      el("p", { class: found.length === 0 ? "verdict good" : "verdict bad" }, words(report)),
      pairs([
        ["status", report.status.replace("_", " ")],
        ["records", counted(report.count)],
        ["root", el("code", {}, report.root)],
        ["last hash", el("code", {}, report.head)],
        ...(report.torn ? [["torn off", `${counted(report.torn)} bytes, left of a write that a crash broke off`]] : []),
      ]),
      ...found.map((violation) => {
        const record = log.records[violation.line - 1];
        return el("div", { class: "found" }, el("p", {}, `line ${violation.line}`, record ? [" · record ", jump(record)] : null), finding(violation));
      }),
      ...list(report.notes).map((note) => el("p", { class: "note" }, `note: ${plain(string(note))}`)),
      ...(report.omitted ? [el("p", {}, `and ${counted(report.omitted)} more`)] : []),
    );
  }
}

/** The verdict in a few words. */
export function words(report) {
  const found = list(report.violations).length + report.omitted;
  return found === 0 ? `verified: ${plain(report.status.replace("_", " "))}` : many(found, "finding");
}
