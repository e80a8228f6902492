/** Viewer: which record is chosen, which are shown, and the parts of the page that show them. */

import { lines, unpacked } from "./bytes.js";
import { Conversation } from "./conversation.js";
import { Detail } from "./detail.js";
import { part } from "./element.js";
import { Filter } from "./filter.js";
import { follow } from "./follow.js";
import { Headline } from "./headline.js";
import { Log } from "./log.js";
import { Diagram, Machine } from "./machine.js";
import { EmbeddedPayloads, ServedPayloads } from "./payloads.js";
import { RecordList } from "./recordlist.js";
import { Scrubber } from "./scrubber.js";
import { summaryOf } from "./summary.js";
import { Tabs } from "./tabs.js";
import { plain } from "./text.js";
import { Timeline } from "./timeline.js";
import { Turns } from "./turns.js";
import { Verdict } from "./verdict.js";

const SETTLED = 400; // milliseconds after which a chosen record is told aloud, and stands in the address

class Viewer {
  constructor(about, payloads) {
    this.about = about;
    this.payloads = payloads ?? new ServedPayloads(() => this.come());
    this.log = new Log(new Machine(about));
    this.place = 0; // of the chosen record
    this.shown = []; // places of the records that the filter lets pass, in order
    this.filter = new Filter(this.log, this.payloads, () => this.sift());
    this.list = new RecordList(this);
    this.scrubber = new Scrubber(this);
    this.timeline = new Timeline(this);
    this.diagram = new Diagram();
    this.headline = new Headline(this);
    this.panels = { record: new Detail(this), conversation: new Conversation(this), turns: new Turns(this), verdict: new Verdict(this) };
    this.tabs = new Tabs((name) => this.panels[name].draw());
    document.addEventListener("click", (event) => {
      const place = event.target.closest?.(".jump")?.dataset.place;
      if (place !== undefined) {
        this.choose(Number(place));
        if (this.tabs.current !== "conversation") this.tabs.show("record");
      }
    });
    addEventListener("hashchange", () => this.goToAddress());
  }

  /** Where the chosen record stands in the list; -1 where the filter hides it. */
  get index() {
    return this.placeIn(this.place, true);
  }

  placeIn(place, exactly) {
    let [low, high] = [0, this.shown.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.shown[middle] < place) low = middle + 1;
      else high = middle;
    }
    return exactly && this.shown[low] !== place ? -1 : low;
  }

  // --- the records

  /** Take up more lines. Who looks at the last record goes on to the new last one. */
  add(raws) {
    const atEnd = this.place >= this.log.last;
    const before = this.log.records.length;
    for (const raw of raws) this.log.add(raw);
    if (this.payloads.forgetMissing) this.payloads.forgetMissing();
    this.filter.refresh();
    const test = this.filter.active ? this.filter.test() : () => true;
    for (let place = before; place <= this.log.last; place++) if (test(this.log.records[place])) this.shown.push(place);
    this.timeline.arrange();
    this.list.show(true);
    this.headline.draw();
    if (this.about.live && atEnd) this.place = Math.max(0, this.log.last);
    this.draw();
  }

  judge(report) {
    this.log.judge(report);
    this.list.show(true);
    this.headline.draw();
    this.drawPanel();
  }

  /** Payloads have come: what shows them is drawn anew. */
  come() {
    this.list.show(true);
    this.drawPanel();
  }

  /** Another choice was made in the filter. */
  sift() {
    const test = this.filter.test();
    this.shown = this.log.records.filter(test).map((record) => record.place);
    part("filter-clear").disabled = !this.filter.active;
    part("none").hidden = this.shown.length > 0 || this.log.records.length === 0;
    this.list.show(true);
    if (this.index < 0 && this.shown.length > 0) this.place = this.shown[Math.min(this.placeIn(this.place, false), this.shown.length - 1)];
    this.draw();
  }

  // --- the chosen record

  /** Choose the record at `place`. */
  choose(place) {
    if (place < 0 || place > this.log.last || place === this.place) return;
    this.place = place;
    this.draw();
  }

  /** Choose the record that stands at `index` among those that are shown. */
  step(index) {
    if (this.shown.length > 0) this.choose(this.shown[Math.min(Math.max(0, index), this.shown.length - 1)]);
  }

  /** Go on by `count` of the records that are shown. */
  move(count) {
    const index = this.index;
    this.step(index >= 0 ? index + count : this.placeIn(this.place, false) + (count > 0 ? count - 1 : count));
  }

  draw() {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      const record = this.log.records[this.place];
      this.list.choose(this.index);
      this.scrubber.draw();
      this.timeline.draw();
      this.diagram.light(record?.state ?? "", record?.entered ?? null);
      if (this.tabs.current === "conversation") this.panels.conversation.follow();
      else if (this.tabs.current === "record") this.panels.record.draw();
      else this.drawPanel();
      if (record !== undefined) this.settle(record);
    });
  }

  drawPanel() {
    this.panels[this.tabs.current].draw();
  }

  settle(record) {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const [, kind, line] = summaryOf(record, this.payloads);
      part("told").textContent = plain(`record ${record.name}, ${kind}: ${line}; ${record.state}`);
      if (location.hash !== `#${record.place}`) history.replaceState(null, "", `#${record.place}`);
    }, SETTLED);
  }

  goToAddress() {
    const place = Number(location.hash.slice(1));
    if (location.hash && Number.isInteger(place)) this.choose(place);
  }
}

/** Read what the page holds, and show it. */
async function open() {
  const about = JSON.parse(part("about").textContent);
  const payloads = about.live ? null : new EmbeddedPayloads(await unpacked(part("payloads").textContent));
  const viewer = new Viewer(about, payloads);
  const bytes = about.live ? new Uint8Array() : await unpacked(part("log").textContent);
  viewer.add(lines(bytes));
  viewer.judge(about.report);
  viewer.goToAddress();
  part("records").focus({ preventScroll: true });
  document.body.dataset.ready = "yes";
  if (about.live) await follow(viewer);
}

open().catch((error) => {
  const notice = part("notice");
  notice.hidden = false;
  notice.textContent = `The page cannot be shown: ${error.message}. A browser of 2023 or later is needed.`;
  throw error;
});
