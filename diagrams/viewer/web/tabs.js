/** Tabs: one panel is in sight, and only that one is drawn. */

import { part } from "./element.js";

export class Tabs {
  /** `onShow` is called with the name of the panel that has come into sight. */
  constructor(onShow) {
    this.onShow = onShow;
    this.box = part("tabs");
    this.tabs = [...this.box.querySelectorAll("[role=tab]")];
    for (const tab of this.tabs) tab.addEventListener("click", () => this.show(tab.dataset.panel));
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.current = this.tabs[0].dataset.panel;
  }

  show(name) {
    this.current = name;
    for (const tab of this.tabs) {
      const chosen = tab.dataset.panel === name;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      part(`panel-${tab.dataset.panel}`).hidden = !chosen;
    }
    this.onShow(name);
  }

  key(event) {
    const at = this.tabs.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: this.tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = this.tabs[(to + this.tabs.length) % this.tabs.length];
    tab.focus();
    this.show(tab.dataset.panel);
  }
}
