/** The messages and tool calls as a conversation, as it stood after the chosen record. */

import { block } from "./blocks.js";
import { el, jump, part } from "./element.js";
import { many } from "./plain.js";
import { plain } from "./text.js";

const AT_ONCE = 30; // messages that are in the page

export class Conversation {
  constructor(viewer) {
    this.viewer = viewer;
    this.box = part("panel-conversation");
    this.end = null; // the last message in the page; null: follow the chosen record
  }

  /** Another record is chosen. */
  follow() {
    this.end = null;
    this.draw();
  }

  draw() {
    const { log, place, payloads } = this.viewer;
    const messages = log.history.at(place);
    const end = Math.min(this.end ?? messages.length, messages.length);
    const start = Math.max(0, end - AT_ONCE);
    const step = (label, to) => el("button", { type: "button", class: "more", onclick: () => this.go(to) }, label);
    this.box.replaceChildren(
      el("p", { class: "when" }, `The history after record ${log.records[place]?.name ?? "–"}: ${many(messages.length, "message")}`),
      ...(start > 0 ? [step(`show earlier messages (${start.toLocaleString("en")} more)`, Math.max(AT_ONCE, start))] : []),
      ...messages.slice(start, end).map((message, index) => {
        const latest = message.blocks.some((one) => one.record.place === place) || message.record.place === place;
        return el(
          "article",
          { class: `message role-${["user", "assistant"].includes(message.role) ? message.role : "other"}${latest ? " latest" : ""}`, "aria-label": `message ${start + index}` },
          el("header", {}, el("strong", {}, plain(message.role)), " ", jump(message.record)),
          message.blocks.map((one) => block(one.skeleton, payloads)),
        );
      }),
      ...(end < messages.length ? [step(`show later messages (${(messages.length - end).toLocaleString("en")} more)`, Math.min(messages.length, end + AT_ONCE))] : []),
    );
    if (this.end === null) {
      const latest = this.box.querySelector(".latest") ?? this.box.lastElementChild;
      if (latest && this.box.clientHeight > 0) this.box.scrollTop = latest.offsetTop - this.box.offsetTop - 12;
    }
  }

  go(end) {
    this.end = end;
    this.draw();
    this.box.scrollTop = 0;
  }
}
