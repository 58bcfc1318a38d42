// A span as mp4 or GIF: drawn and encoded by the server, asked for and waited for here.

import { address, ask, send } from "./api.js";
import { make } from "./panels.js";
import { listColours } from "./tubes.js";

const FORMS = { mp4: { most: 3000, words: "mp4, as large as the video" }, gif: { most: 300, words: "GIF, up to 640 pixels wide" } };
const POLL_MS = 250;

export class Exporter {
  // `tell(words)` says what went wrong; `dialog` is an empty one of the page.
  constructor(dialog, tell) {
    Object.assign(this, { dialog, tell });
    this.key = null;
    dialog.addEventListener("close", () => this.cancel());
  }

  // `facts`: number and name of the video, the span, the layers, and what of `state` decides what is drawn.
  open(facts) {
    this.facts = facts;
    this.key = null;
    const { name, first, end } = facts;
    this.bar = make("progress", { max: 1, value: 0, "aria-label": "Frames that are drawn", hidden: "" });
    this.said = make("p", { of: "quiet", role: "status", text: `${name}, frames ${first} to ${end - 1}` });
    this.buttons = Object.entries(FORMS).map(([form, { most, words }]) => make("button", { type: "button", "data-form": form, text: end - first > most ? `${words}, the first ${most} frames` : words, click: () => this.start(form) }));
    this.close = make("button", { type: "button", text: "cancel", click: () => this.dialog.close() });
    this.dialog.replaceChildren(make("h2", { text: "Save the span as a video" }), this.said, make("p", {}, ...this.buttons.flatMap((each) => [each, document.createTextNode(" ")])), this.bar, make("p", {}, this.close));
    this.dialog.showModal();
    this.buttons[0].focus();
  }

  async start(form) {
    const { number, first, end, state, layers } = this.facts;
    this.close.focus(); // a button that is switched off cannot have it
    for (const button of this.buttons) button.disabled = true;
    this.bar.hidden = false;
    const sides = Object.keys(state.sides).filter((side) => state.sides[side]);
    const order = { video: number, first, end: Math.min(end, first + FORMS[form].most), form, sides, score: state.score, hidden: [...state.hidden], names: state.tags, layers, colours: listColours() };
    const facts = this.facts;
    try {
      const { clip } = await send("/api/clips", order);
      this.key = clip;
      if (!this.dialog.open || this.facts !== facts) return this.cancel(clip);
      await this.wait(clip);
    } catch (error) {
      this.tell(error.message);
      if (this.dialog.open) this.dialog.close();
    }
  }

  async wait(clip) {
    while (this.key === clip) {
      const told = await ask("/api/clip", { clip });
      if (this.key !== clip) return;
      this.bar.value = told.done;
      this.said.textContent = told.state === "waiting" ? "waiting for another clip" : `${Math.round(100 * told.done)} % drawn`;
      if (told.state === "ready") {
        this.key = null;
        make("a", { href: address(`/clip/${clip}`), download: told.name }).click();
        if (told.message) this.tell(told.message);
        this.dialog.close();
        return;
      }
      if (told.state === "failed" || told.state === "cancelled") throw new Error(told.message || "the clip was not made");
      await new Promise((done) => setTimeout(done, POLL_MS));
    }
  }

  cancel(clip = this.key) {
    this.key = null;
    if (clip !== null) send("/api/clips/cancel", { clip }).catch(() => {});
  }
}
