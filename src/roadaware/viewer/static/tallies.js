// How many boxes of all videos pass the filters, as the server counts them: in the head of the page and in the list of videos.

import { ask } from "./api.js";

const WAIT_MS = 30; // a slider moves often

export class Tallies {
  // `shown` is where the sum stands; `list` holds rows of videos, which name theirs in `data-video`.
  constructor(shown, list) {
    Object.assign(this, { shown, list });
    this.sides = null;
    this.key = "";
    this.asked = null;
    this.timer = null;
    this.took = 0;
    new MutationObserver(() => this.fill()).observe(list, { childList: true, subtree: true });
  }

  update(state) {
    const key = JSON.stringify([Math.round(100 * state.score), [...state.hidden].sort()]);
    if (key === this.key) return;
    this.key = key;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(key, state), this.sides ? WAIT_MS : 0);
  }

  async ask(key, state) {
    if (this.asked) return; // its answer asks for what is wanted by then
    const begun = performance.now();
    this.asked = key;
    const slow = setTimeout(() => (this.shown.textContent = "counting boxes …"), this.sides ? 2000 : 400);
    const [hundredth, hidden] = JSON.parse(key);
    try {
      this.sides = await ask("/api/counts", [["hundredth", hundredth], ...hidden.map((word) => ["hide", word])]);
      this.state = state;
      this.took = performance.now() - begun;
      this.tell();
      this.fill();
    } catch {
      this.sides = null; // tables that cannot be counted are told of where they are looked at
      this.shown.textContent = "";
    } finally {
      clearTimeout(slow);
      this.asked = null;
      if (this.key !== key) this.ask(this.key, state);
    }
  }

  tell() {
    const told = Object.entries(this.sides).map(([side, each]) => `${side === "truth" ? "true" : side.toUpperCase()} ${each.passed.toLocaleString("en")} of ${each.total.toLocaleString("en")}`);
    this.shown.textContent = this.shown.title = told.length ? `boxes of all videos: ${told.join(", ")}` : "";
    this.shown.dataset.key = this.key;
  }

  fill() {
    if (!this.sides) return;
    for (const row of this.list.querySelectorAll("[data-video]")) {
      const number = Number(row.dataset.video);
      const words = `${Object.entries(this.sides).map(([side, each]) => `${side === "truth" ? "true" : side.toUpperCase()} ${(each.videos[number] ?? 0).toLocaleString("en")}`).join(" · ")} boxes`;
      if (row.textContent !== words) row.textContent = words;
    }
  }
}
