/** The head of the page: which run it is, how it ended, and what the verifier says. */

import { part } from "./element.js";
import { counted, dollars, duration, number, string } from "./plain.js";
import { oneLine, plain } from "./text.js";
import { words } from "./verdict.js";

export class Headline {
  constructor(viewer) {
    this.viewer = viewer;
    part("verdict-link").addEventListener("click", () => viewer.tabs.show("verdict"));
  }

  draw() {
    const { log, about } = this.viewer;
    const run = string(log.genesis?.field("run")) || string(log.records[0]?.field("run"));
    const name = oneLine(about.file ?? run ?? "", 80);
    document.title = name ? `${name} · looplatch` : "looplatch";
    part("run").textContent = [name, about.file && run ? `run ${oneLine(run, 40)}` : ""].filter(Boolean).join(" · ");
    const end = log.terminal;
    const outcome = part("outcome");
    outcome.textContent = end === null ? (log.records.length > 0 ? `open in ${plain(log.state)}` : "no records") : `${plain(string(end.field("state")))}: ${plain(string(end.field("terminal")))}`;
    outcome.dataset.state = end === null ? "open" : string(end.field("state"));
    const verdict = part("verdict-link");
    verdict.hidden = log.report === null;
    if (log.report !== null) {
      verdict.textContent = words(log.report);
      verdict.dataset.ok = String(log.report.violations.length === 0);
    }
    const total = (field) => number(log.context.get(field));
    part("totals").textContent = [
      oneLine(string(log.genesis?.field("model")), 60),
      `${counted(total("turn"))} ${total("turn") === 1 ? "turn" : "turns"}`,
      `${counted(total("input_tokens") + total("cache_read_tokens") + total("cache_write_tokens"))} tokens in, ${counted(total("output_tokens"))} out`,
      total("cost_micro_usd") > 0 ? dollars(total("cost_micro_usd")) : "",
      log.elapsed > 0 ? duration(log.elapsed) : "",
    ].filter(Boolean).join(" · ");
    const left = about.left_out;
    const notice = part("notice");
    notice.hidden = !left;
    if (left) notice.textContent = `${counted(left.count)} contents of ${counted(left.bytes)} bytes did not fit into this file and are shown as not kept; looplatch view --serve shows all.`;
  }
}
