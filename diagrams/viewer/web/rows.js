/** Rows: a list of any length of which only what is in sight is in the page. All rows have the same height. */

import { el } from "./element.js";

const BEYOND = 8; // rows that are made above and below what is in sight

export class Rows {
  /** `box` scrolls. `make(index)` makes a row. `height` is a row's, in pixels. */
  constructor(box, height, make) {
    this.box = box;
    this.height = height;
    this.make = make;
    this.count = 0;
    this.made = new Map();
    this.room = el("div", { class: "room", role: "presentation" });
    box.append(this.room);
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
  }

  /** There are `count` rows now. With `anew`, those that were made before are not theirs any more. */
  show(count, anew = true) {
    this.count = count;
    if (anew) this.forget();
    this.room.style.height = `${count * this.height}px`;
    this.draw();
  }

  /** Make every row anew when it is drawn next. */
  forget() {
    for (const row of this.made.values()) row.remove();
    this.made.clear();
  }

  /** How many whole rows are in sight. */
  get page() {
    return Math.max(1, Math.floor(this.box.clientHeight / this.height) - 1);
  }

  /** Scroll so that the row is in sight. */
  reveal(index) {
    const top = index * this.height;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.box.scrollTop = top;
    else if (top + this.height > scrollTop + clientHeight) this.box.scrollTop = top + this.height - clientHeight;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.box;
    if (clientHeight === 0) return;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - BEYOND);
    const last = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / this.height) + BEYOND);
    for (const [index, row] of this.made) {
      if (index < first || index >= last) {
        row.remove();
        this.made.delete(index);
      }
    }
    for (let index = first; index < last; index++) {
      if (this.made.has(index)) continue;
      const row = this.make(index);
      row.style.top = `${index * this.height}px`;
      row.style.height = `${this.height}px`;
      this.made.set(index, row);
      this.room.append(row);
    }
  }
}
