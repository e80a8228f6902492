/** The table that the run went by, and the diagram of it. */

import { part } from "./element.js";
import { list, object, string } from "./plain.js";

export class Machine {
  constructor(about) {
    this.rows = about.rows;
    this.guards = about.guards;
    this.counters = new Map(about.counters.map((counter) => [counter.name, counter]));
    this.states = about.states;
    this.context = about.context;
    this.initial = about.initial;
    this.found = new Map();
  }

  /** The rows of one state and event, in the table's order. */
  alternatives(source, event) {
    return this.rows.filter((row) => row.event === event && row.sources.includes(source));
  }

  /** The row that a move walked; null where the table has none. */
  rowOf(data) {
    const held = list(data.guards).filter((verdict) => list(verdict)[1] === true).map((verdict) => verdict[0]);
    const key = JSON.stringify([data.source, data.event, data.target, data.reason, data.terminal, held]);
    let row = this.found.get(key);
    if (row === undefined) {
      row =
        this.rows.find(
          (one) =>
            one.event === data.event &&
            one.sources.includes(data.source) &&
            (one.target ?? data.source) === data.target &&
            one.reason === data.reason &&
            one.terminal === data.terminal &&
            (held.length === 0 || held.includes(one.guard)),
        ) ?? null;
      this.found.set(key, row);
    }
    return row;
  }

  /** What a guard asks. */
  guard(name) {
    return string(object(this.guards)[name]);
  }
}

/** The picture of the table. `light` shows where the run is and which edge it just took. */
export class Diagram {
  constructor() {
    this.svg = part("machine").querySelector("svg");
    this.states = new Map();
    this.edges = new Map();
    this.lit = [];
    const size = part("machine-size");
    size.addEventListener("click", () => {
      const large = part("machine").classList.toggle("large");
      size.textContent = large ? "smaller" : "larger";
      size.setAttribute("aria-pressed", String(large));
      for (const element of this.lit.slice(0, 1)) reveal(part("machine"), element);
    });
    for (const rect of this.svg.querySelectorAll("[data-state]")) this.states.set(rect.getAttribute("data-state"), rect);
    for (const edge of this.svg.querySelectorAll("path.edge")) {
      for (const name of edge.querySelector("title")?.textContent.split("\n") ?? []) this.edges.set(name, edge);
    }
  }

  light(state, row) {
    for (const element of this.lit) element.classList.contains("walked") ? element.remove() : element.classList.remove("here");
    this.lit = [];
    const rect = this.states.get(state);
    if (rect) {
      rect.classList.add("here");
      this.lit.push(rect);
    }
    const edge = row && this.edges.get(row.name);
    if (edge) {
      const over = edge.cloneNode(true);
      over.classList.add("walked");
      edge.parentNode.append(over);
      this.lit.push(over);
    }
    this.svg.setAttribute("aria-label", state ? `state diagram; the run is in ${state}` : "state diagram");
    if (rect) reveal(part("machine"), rect);
  }
}

/** Scroll `box` so that `element` is in sight; nothing else on the page moves. */
function reveal(box, element) {
  const outer = box.getBoundingClientRect();
  const inner = element.getBoundingClientRect();
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top + inner.height / 2 - (outer.top + outer.height / 2);
  }
  if (inner.left < outer.left || inner.right > outer.right) {
    box.scrollLeft += inner.left + inner.width / 2 - (outer.left + outer.width / 2);
  }
}
