// The film on a canvas: image and boxes are drawn in one go, from the frame that the browser says it shows.

import { address, ask, Boxes } from "./api.js";
import { sameRows } from "./items.js";
import { buildTubes, colourOf, labelsAt } from "./tubes.js";

const TAIL = 18; // frames
const RATES = [0.1, 0.25, 0.5, 1, 2, 4];
const MOST_LISTED = 1e7; // what tables say of their length is not proven: so many frames are listed without a film

export class Player {
  // `state` holds what is drawn (see main.js); `changed(frame)` is called for each frame that is shown.
  constructor(canvas, video, message, state, changed) {
    Object.assign(this, { canvas, video, message, state, changed });
    this.rates = RATES;
    this.rate = 1;
    this.frame = 0;
    this.times = [0];
    this.playing = false;
    this.loop = null;
    this.tails = true;
    this.zoom = { scale: 1, x: 0, y: 0 };
    this.film = { state: "missing" };
    this.tubes = {};
    this.sizes = {};
    this.hits = [];
    this.overlays = null; // what is drawn beside boxes, see overlays.js
    this.wanted = null; // the frame a seek is on its way to
    this.next = null; // the frame that is asked for meanwhile
    this.image = null; // of stills
    this.held = null; // of a film
    this.late = null;
    this.watch();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get count() {
    return this.times.length;
  }

  async load(number, name, frames) {
    this.stop();
    const token = (this.token = {});
    this.film = { state: "asked" };
    this.tubes = {}; // nothing of the former video is drawn on this one
    this.told = {};
    this.wanted = this.next = this.image = null;
    this.loop = null;
    this.held?.close();
    this.held = this.late = null;
    this.video.removeAttribute("src");
    this.video.load();
    this.name = name;
    this.number = number;
    this.filter();
    this.boxes.window(this.frame); // on its way while the rest is asked for
    this.draw();
    const [film, told] = await Promise.all([ask("/api/film", { video: number }), ask("/api/video", { video: number })]);
    if (token !== this.token) return false;
    this.told = told;
    this.tubes = {};
    this.sizes = {};
    for (const [side, each] of Object.entries(told)) {
      this.tubes[side] = buildTubes(side, each);
      this.sizes[side] = each.size;
    }
    this.frames = frames || 0;
    this.take(film);
    if (film.state === "encoding") this.poll(token);
    return true;
  }

  // The boxes that pass the conditions, from here on.
  filter() {
    this.mark = null;
    const boxes = (this.boxes = new Boxes(
      this.number,
      (error) => {
        if (boxes !== this.boxes) return;
        if (error) this.say(error.message);
        this.draw();
      },
      this.state.where,
    ));
  }

  take(film) {
    this.film = film;
    const ends = Object.values(this.tubes).flatMap((tubes) => [...tubes.values()].map((tube) => tube.end));
    const fps = this.state.fps || 10;
    // No spread: a call takes some 100,000 arguments, and a video may have more tubes.
    const said = ends.reduce((most, end) => Math.max(most, end), Math.max(1, this.frames));
    const count = Math.min(said, MOST_LISTED);
    this.times = film.times.length ? film.times : Array.from({ length: count }, (_, k) => k / fps);
    const short = film.state === "ready" && this.frames > film.times.length ? `the film has ${film.times.length} of ${this.frames} frames` : "";
    const long = !film.times.length && said > count ? `the tables say ${said} frames: the first ${count} are shown` : "";
    this.say(film.state === "encoding" ? `${film.message} (${Math.round(film.done * 100)} %)` : [film.message || short, long].filter(Boolean).join("; "));
    const size = Object.values(this.sizes).find(([width, height]) => width && height) || [1280, 720];
    this.width = film.width || size[0];
    this.height = film.height || size[1];
    if (film.state === "ready") {
      this.video.src = address(`/film/${this.number}`);
      this.wanted = null;
      this.seek(this.frame, true);
      if (this.playing) this.play(this.rate);
    }
  }

  async poll(token) {
    while (token === this.token && this.film.state === "encoding") {
      await new Promise((done) => setTimeout(done, 500));
      const film = token === this.token ? await ask("/api/film", { video: this.number }).catch(() => null) : null;
      if (token !== this.token) return;
      if (film) this.take(film); // else the server is busy, or gone: asked again
      this.changed(this.frame);
    }
  }

  say(words) {
    this.message.textContent = words;
    this.message.hidden = !words;
  }

  // The frame of a time on the film's clock: the last that begins by then, half a step early at most.
  frameAt(time) {
    let low = 0;
    let high = this.times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= time + 1e-4) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // Middle of a frame, so that rounding never leads to a neighbour; behind the last one the film may be over at once.
  middle(frame) {
    return frame < this.times.length - 1 ? (this.times[frame] + this.times[frame + 1]) / 2 : this.times[frame] + 5e-4;
  }

  // The browser calls back with each image that it presents. While it seeks, an image cannot be drawn yet; it is
  // taken once the seek is over.
  watch() {
    const presented = (_, facts) => {
      this.grab(facts.mediaTime);
      this.video.requestVideoFrameCallback(presented);
    };
    this.video.requestVideoFrameCallback(presented);
    this.video.addEventListener("seeked", () => {
      const target = this.wanted;
      this.wanted = null;
      this.settle(target, 60);
      if (this.playing && this.rate > 0 && this.video.paused) this.start(); // the film had ended
      if (this.next !== null) {
        const next = this.next;
        this.next = null;
        this.seek(next, true);
      }
    });
    this.video.addEventListener("error", () => {
      if (this.video.getAttribute("src")) this.say("the browser cannot play this film");
    });
    this.video.addEventListener("ended", () => {
      if (this.playing && this.loop) this.seek(this.loop[0], true); // a span that ends with the film goes on, too
      else this.stop();
    });
  }

  // A seek may be over before its image is there, and a page that draws nothing else is not called back then.
  settle(target, tries) {
    this.grab(this.late);
    if (target === null || this.frame === target || this.playing || this.wanted !== null || !tries) return;
    requestAnimationFrame(() => this.settle(target, tries - 1));
  }

  // Hold the image that is presented: image and time come as one, so that boxes can never belong to another frame.
  grab(time) {
    this.late = time;
    if (this.video.readyState < 2) return;
    if ("VideoFrame" in window) {
      let held;
      try {
        held = new VideoFrame(this.video);
      } catch {
        return; // between two images: the next one is told, too
      }
      this.held?.close();
      this.held = held;
      time = held.timestamp / 1e6;
    }
    if (time !== null && time !== undefined) this.show(this.frameAt(time));
  }

  show(frame) {
    this.frame = frame;
    this.draw();
    this.changed(frame);
    if (this.playing && this.loop && frame >= this.loop[1] - 1) this.seek(this.loop[0]);
  }

  seek(frame, force = false) {
    frame = Math.min(Math.max(0, Math.round(frame)), this.count - 1);
    if (this.film.state === "ready") {
      if (this.wanted !== null) {
        this.next = frame;
        return;
      }
      if (frame === this.frame && !force) return;
      this.wanted = frame;
      this.video.currentTime = this.middle(frame);
    } else if (this.film.state === "stills") {
      this.loadStill(frame);
    } else {
      this.show(frame);
    }
  }

  loadStill(frame) {
    const image = new Image();
    const { token } = this;
    this.wanted = frame;
    const done = (shown) => () => {
      if (this.token !== token || this.wanted !== frame) return; // another was asked for meanwhile
      this.wanted = null;
      this.image = shown;
      this.say(shown ? "" : `there is no image of frame ${frame}`);
      this.show(frame);
    };
    image.onload = done(image);
    image.onerror = done(null);
    image.src = address(`/still/${this.number}/${frame}`);
  }

  get target() {
    return this.next ?? this.wanted ?? this.frame;
  }

  step(by) {
    this.stop();
    this.seek((this.film.state === "missing" ? this.frame : this.target) + by);
  }

  // Play at a speed; a negative one goes back frame by frame.
  play(rate = 1) {
    this.stop();
    this.playing = true;
    this.rate = rate;
    if (this.loop && (this.frame < this.loop[0] || this.frame >= this.loop[1] - 1)) this.seek(this.loop[0]);
    if (this.film.state === "ready" && rate > 0) {
      this.video.playbackRate = rate;
      this.start();
    } else {
      let before = performance.now();
      let owed = 0;
      const tick = (now) => {
        if (!this.playing) return;
        const step = this.count > 1 ? (this.times[this.count - 1] - this.times[0]) / (this.count - 1) : 0.1;
        owed += ((now - before) / 1000 / step) * Math.abs(rate);
        before = now;
        if (owed >= 1 && this.wanted === null) {
          const whole = Math.floor(owed) * Math.sign(rate);
          owed -= Math.floor(owed);
          if ((whole < 0 && this.frame === 0) || (whole > 0 && this.frame === this.count - 1)) return this.stop();
          this.seek(this.frame + whole);
        }
        this.timer = requestAnimationFrame(tick);
      };
      this.timer = requestAnimationFrame(tick);
    }
    this.changed(this.frame);
  }

  // A start that a later one, or a stop, took the place of is not a failure.
  start() {
    this.video.play().catch((error) => error.name === "AbortError" || this.stop());
  }

  stop() {
    this.playing = false;
    cancelAnimationFrame(this.timer);
    this.video.pause();
    this.changed(this.frame);
  }

  // Image to canvas, in canvas pixels: one pane for each list of sides.
  layout() {
    const ratio = window.devicePixelRatio || 1;
    const { width: wide, height: high } = this.canvas;
    const shown = Object.keys(this.tubes).filter((side) => this.state.sides[side]);
    const predicted = shown.filter((side) => side !== "truth");
    const panes = this.state.split && predicted.length > 1 ? predicted.map((side) => shown.filter((each) => each === "truth" || each === side)) : [shown];
    const across = wide / panes.length;
    const fit = Math.min(across / this.width, high / this.height) * this.zoom.scale;
    return panes.map((sides, place) => ({
      sides,
      left: place * across,
      wide: across,
      high,
      scale: fit,
      x: place * across + (across - this.width * fit) / 2 + this.zoom.x * ratio,
      y: (high - this.height * fit) / 2 + this.zoom.y * ratio,
      ratio,
    }));
  }

  // As many canvas pixels as there are on the screen. Whoever gives a canvas a size clears it, so this belongs to drawing.
  resize() {
    const ratio = window.devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();
    const [wide, high] = [Math.max(1, Math.round(box.width * ratio)), Math.max(1, Math.round(box.height * ratio))];
    if (this.canvas.width !== wide || this.canvas.height !== high) Object.assign(this.canvas, { width: wide, height: high });
  }

  draw() {
    if (!this.boxes) return;
    const pen = this.canvas.getContext("2d");
    this.resize();
    const panes = this.layout();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = "#0e1216";
    pen.fillRect(0, 0, this.canvas.width, this.canvas.height);
    this.hits = [];
    this.drawn = 0;
    this.overlays?.begin();
    for (const pane of panes) {
      pen.save();
      pen.beginPath();
      pen.rect(pane.left, 0, pane.wide, pane.high);
      pen.clip();
      this.drawImage(pen, pane);
      this.overlays?.drawBelow(pen, pane);
      for (const side of pane.sides) this.drawSide(pen, pane, side);
      this.drawMark(pen, pane);
      this.overlays?.draw(pen, pane);
      for (const paint of this.state.painters || []) paint(pen, pane);
      if (panes.length > 1) this.drawTitle(pen, pane);
      pen.restore();
    }
    this.overlays?.end();
    this.canvas.dataset.overlays = this.overlays ? this.overlays.drawn.length : 0;
    // A frame is shown once its image is, or none is to come.
    const waits = this.film.state === "asked" || (this.film.state === "ready" && !this.drawable);
    this.canvas.dataset.frame = waits ? "" : this.frame;
    this.canvas.dataset.boxes = this.drawn;
  }

  // The image of a film, as far as there is one.
  get drawable() {
    return this.held || (this.film.state === "ready" && this.video.readyState >= 2 && this.video);
  }

  drawImage(pen, pane) {
    const [wide, high] = [this.width * pane.scale, this.height * pane.scale];
    pen.fillStyle = "#1c232b";
    pen.fillRect(pane.x, pane.y, wide, high);
    pen.imageSmoothingEnabled = pane.scale < 3;
    const shown = this.drawable;
    if (shown) {
      pen.drawImage(shown, pane.x, pane.y, evenUp(this.width, this.video.videoWidth) * pane.scale, evenUp(this.height, this.video.videoHeight) * pane.scale);
    } else if (this.image) {
      pen.drawImage(this.image, pane.x, pane.y, wide, high);
    }
  }

  // A place that a finding names by its corners, in the frame that it names.
  drawMark(pen, pane) {
    if (!this.mark || this.mark.frame !== this.frame) return;
    const [x1, y1, x2, y2] = this.mark.corners;
    drawBox(pen, [pane.x + x1 * pane.scale, pane.y + y1 * pane.scale, (x2 - x1) * pane.scale, (y2 - y1) * pane.scale], "#ff8f80", pane.ratio, { selected: true });
  }

  drawTitle(pen, pane) {
    const words = pane.sides.filter((side) => side !== "truth").map((side) => `${side.toUpperCase()} ${this.state.names[side]}`).join(", ");
    tag(pen, pane.left + 8 * pane.ratio, 24 * pane.ratio, words, "#ffffff", pane.ratio);
  }

  drawSide(pen, pane, side) {
    const rows = this.boxes.at(side, this.frame);
    if (!rows || !rows.data) return;
    const { data } = rows;
    const [wide, high] = this.sizes[side];
    const grow = [ratioOf(this.width, wide), ratioOf(this.height, high)];
    const chosen = this.state.chosen;
    const same = this.state.pair?.alone ? sameRows(this.boxes, this.state.pair, side, this.frame, this.sizes) : null;
    for (let row = rows.first; row < rows.end; row += 1) {
      const tube = data.tube ? this.tubes[side].get(data.tube[row]) : undefined;
      const word = (tube && tube.word) || (data.word && data.word[row]) || "object";
      const score = tube && tube.score !== null ? tube.score : data.score ? data.score[row] : null;
      const selected = chosen && chosen.side === side && (tube ? chosen.tube === tube.tube : chosen.box === data.box[row]);
      const partner = chosen && side === "truth" && (tube ? chosen.truth === tube.tube : chosen.truthBox === data.box[row]);
      if (same?.has(row) && !selected) continue;
      if (!selected && !partner && !this.state.passes(side, word, score)) continue;
      const place = [
        pane.x + data.x1[row] * grow[0] * pane.scale,
        pane.y + data.y1[row] * grow[1] * pane.scale,
        (data.x2[row] - data.x1[row]) * grow[0] * pane.scale,
        (data.y2[row] - data.y1[row]) * grow[1] * pane.scale,
      ];
      const colour = colourOf(word);
      this.drawn += 1;
      if (tube && this.tails) this.drawTail(pen, pane, side, tube, grow, colour);
      drawBox(pen, place, colour, pane.ratio, { dashed: side === "truth", selected: selected || partner, guessed: data.guessed && data.guessed[row] });
      const said = tube && (selected || partner) ? labelsAt(tube, this.frame).slice(0, 3).map(([, each]) => each).join(" · ") || word : word;
      const crossing = tube && this.crossing(side, tube);
      const more = crossing === null || crossing === undefined ? "" : ` crossing ${crossing.toFixed(2)}`;
      if (this.state.tags || selected || partner) {
        const shownScore = score === null || side === "truth" ? "" : ` ${score.toFixed(2)}`;
        const below = side === "truth" ? place[1] + place[3] + 15 * pane.ratio : place[1] - 3 * pane.ratio;
        tag(pen, place[0], below, `${said}${shownScore}${more}`, colour, pane.ratio, pane);
      }
      this.hits.push({ side, tube: tube ? tube.tube : null, box: data.box[row], place });
    }
  }

  // Probability that a pedestrian crosses, as it was forecast in this frame.
  crossing(side, tube) {
    const held = this.told[side].crossing[tube.name];
    if (!held) return null;
    const at = held.frame.indexOf(this.frame);
    return at < 0 ? null : held.p[at];
  }

  drawTail(pen, pane, side, tube, grow, colour) {
    const points = [];
    for (let frame = this.frame; frame > this.frame - TAIL && frame >= tube.first; frame -= 1) {
      const rows = this.boxes.at(side, frame);
      if (!rows || !rows.data) break;
      for (let row = rows.first; row < rows.end; row += 1) {
        if (rows.data.tube[row] !== tube.tube) continue;
        const [x1, x2, y2] = [rows.data.x1[row], rows.data.x2[row], rows.data.y2[row]];
        points.push([pane.x + ((x1 + x2) / 2) * grow[0] * pane.scale, pane.y + y2 * grow[1] * pane.scale]);
        break;
      }
    }
    if (points.length < 2) return;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.5 * pane.ratio;
    pen.setLineDash([]);
    // Three strokes of falling strength: one for each frame would be most of the work where there are many tubes.
    for (let k = 0; k + 1 < points.length; k += TAIL / 3) {
      pen.globalAlpha = 0.75 * (1 - k / TAIL) + 0.05;
      pen.beginPath();
      pen.moveTo(...points[k]);
      for (const point of points.slice(k + 1, k + TAIL / 3 + 1)) pen.lineTo(...point);
      pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  // Zoom and pan by wheel and pointer, selection by click.
  listen() {
    let start = null;
    this.canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      this.zoomBy(Math.exp(-event.deltaY / 400), event.clientX - box.left - box.width / 2, event.clientY - box.top - box.height / 2);
    }, { passive: false });
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      this.canvas.setPointerCapture(event.pointerId);
      start = { x: event.clientX, y: event.clientY, zoom: { ...this.zoom }, moved: false };
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      start.moved = start.moved || Math.hypot(x, y) > 4;
      if (!start.moved) return;
      this.zoom = { ...this.zoom, x: start.zoom.x + x, y: start.zoom.y + y };
      this.draw();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (start && !start.moved) this.pick(event);
      start = null;
    });
    this.canvas.addEventListener("pointercancel", () => (start = null));
  }

  zoomBy(by, x = 0, y = 0) {
    const scale = Math.min(20, Math.max(1, this.zoom.scale * by));
    const grown = scale / this.zoom.scale;
    this.zoom = scale === 1 ? { scale, x: 0, y: 0 } : { scale, x: x - (x - this.zoom.x) * grown, y: y - (y - this.zoom.y) * grown };
    this.draw();
  }

  pick(event) {
    const ratio = window.devicePixelRatio || 1;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    if (this.overlays?.pick(x, y)) return;
    this.overlays?.select(null);
    const under = this.hits.filter(({ place: [left, top, wide, high] }) => x >= left && x <= left + wide && y >= top && y <= top + high);
    // The smallest box under the pointer: a large one would hide what stands before it.
    under.sort((a, b) => a.place[2] * a.place[3] - b.place[2] * b.place[3]);
    this.state.choose(under[0] || null);
  }
}

// A copy has even sides: its last column or row may be a repeated one.
function evenUp(side, shown) {
  return Math.abs(shown - side) <= 1 ? side : shown;
}

// Boxes of a set that was made on images of another size; a side that differs by one pixel was evened up.
export function ratioOf(shown, own) {
  return own && Math.abs(shown - own) > 1 ? shown / own : 1;
}

function drawBox(pen, [x, y, wide, high], colour, ratio, { dashed, selected, guessed }) {
  pen.setLineDash(dashed ? [6 * ratio, 4 * ratio] : guessed ? [1.5 * ratio, 3 * ratio] : []);
  pen.lineWidth = (selected ? 5 : 3.2) * ratio;
  pen.strokeStyle = "#000a";
  pen.strokeRect(x, y, wide, high);
  pen.lineWidth = (selected ? 3 : 1.7) * ratio;
  pen.strokeStyle = selected ? "#ffffff" : colour;
  pen.strokeRect(x, y, wide, high);
  if (selected) {
    pen.lineWidth = 1.5 * ratio;
    pen.strokeStyle = colour;
    pen.strokeRect(x - 2.5 * ratio, y - 2.5 * ratio, wide + 5 * ratio, high + 5 * ratio);
  }
  pen.setLineDash([]);
}

// Words on a dark ground, moved so far that they lie within the pane; how wide they are.
export function tag(pen, x, y, words, colour, ratio, pane) {
  pen.font = `${11.5 * ratio}px system-ui, sans-serif`;
  const wide = pen.measureText(words).width;
  if (pane) {
    x = Math.max(pane.left + 2 * ratio, Math.min(x, pane.left + pane.wide - wide - 8 * ratio));
    y = Math.max(13 * ratio, Math.min(y, pane.high - 4 * ratio));
  }
  pen.fillStyle = "#0d1116d9";
  pen.fillRect(x - 1 * ratio, y - 12 * ratio, wide + 8 * ratio, 15.5 * ratio);
  pen.fillStyle = colour;
  pen.fillText(words, x + 3 * ratio, y);
  return wide + 8 * ratio;
}
