// The sweep of the frame that is shown: from above on a canvas, or in space by WebGL, with boxes and clusters.

import { address, ask } from "./api.js";
import { Cloud, look, project } from "./cloud.js";
import { choice, make } from "./panels.js";
import { colourOf } from "./tubes.js";

const KEPT = 8; // sweeps that are kept
const NEAR_PX = 9; // a click so near a point is meant for it
const COLOURS = { height: "height", distance: "distance", cluster: "cluster", step: "step of propose" };
const BESIDE = "not in the image";
const STOPS = [[58, 76, 192], [33, 145, 180], [73, 190, 125], [226, 200, 66], [246, 120, 60]]; // from low to high
const STEPS = ["#ffd60a", "#56b4e9", "#b48cff", "#b48cff", "#8ea6ff", "#ff9d5c", "#ff9d5c", "#ff9d5c", "#e8685a", "#cc79a7", "#7a5a36", "#56616c"];
const EDGES = [[0, 1], [0, 2], [0, 4], [1, 3], [1, 5], [2, 3], [2, 6], [3, 7], [4, 5], [4, 6], [5, 7], [6, 7]];
const ABOVE = { x: 14, y: 0, scale: 0 };
const ORBIT = { target: [12, 0, 0], yaw: 0, pitch: 0.42, away: 34 };

export class Space {
  // `app` opens and chooses, `state` says what is drawn (see main.js); `after` is the element that the part stands behind.
  constructor(after, index, player, state, app) {
    Object.assign(this, { index, player, state, app });
    this.mode = "";
    this.colour = "height";
    this.side = Object.keys(index.runs)[0] || "";
    this.above = { ...ABOVE };
    this.orbit = { ...ORBIT, target: [...ORBIT.target] };
    this.kept = new Map();
    this.data = null;
    this.cluster = null;
    this.shapes = [];
    this.build(after);
    if (this.side) this.colour = "step";
    (state.painters = state.painters || []).push((pen, pane) => this.paintPicture(pen, pane));
  }

  build(after) {
    this.bar = make("div", { of: "bar" });
    this.bird = make("canvas", { id: "bird", tabindex: 0, role: "application", "aria-label": "The sweep from above: arrow keys move, plus and minus zoom, [ and ] go through the boxes" });
    this.solid = make("canvas", { id: "cloud", tabindex: 0, role: "application", "aria-label": "The sweep in space: arrow keys turn, with shift move, plus and minus zoom, [ and ] go through the boxes" });
    this.note = make("p", { of: "said", role: "status" });
    this.screen = make("div", { of: "screen" }, this.bird, this.solid, this.note);
    this.legend = make("div", { of: "legend" });
    this.root = make("section", { id: "space", "aria-label": "LiDAR" }, this.bar, this.screen, this.legend);
    this.root.hidden = true;
    after.after(this.root);
    this.button = make("button", { type: "button", "data-do": "space", "aria-pressed": "false", text: "LiDAR", title: "The sweep: from above, in space, or not (V)" });
    this.button.hidden = !this.index.space;
    document.querySelector('#transport [data-do="fit"]').before(this.button);
    new ResizeObserver(() => this.draw()).observe(this.screen);
    for (const canvas of [this.bird, this.solid]) this.listen(canvas);
  }

  // Another video: how many sweeps it has. Nobody waits for it.
  async load(number) {
    this.number = number;
    this.kept.clear();
    this.data = this.cluster = this.facts = null;
    this.shapes = [];
    if (!this.index.space && !this.side) return;
    const facts = await ask("/api/sweeps", { video: number }).catch((error) => ({ sweeps: 0, why: error.message, steps: [], losses: {} }));
    if (number !== this.number) return;
    this.facts = facts;
    if (this.mode) this.move(this.player.frame);
  }

  // "bird", "cloud", or "" for nothing.
  show(mode) {
    if (mode === "cloud" && this.drawn === undefined) this.drawn = Cloud.over(this.solid);
    this.lacks = mode === "cloud" && !this.drawn;
    this.mode = this.lacks ? "bird" : mode;
    this.root.hidden = !this.mode;
    this.root.parentElement.classList.toggle("with-space", Boolean(this.mode));
    this.bird.hidden = this.mode !== "bird";
    this.solid.hidden = this.mode !== "cloud";
    this.button.setAttribute("aria-pressed", Boolean(this.mode));
    this.fillBar();
    if (this.mode) this.move(this.player.frame);
    this.draw();
    this.app.remember();
  }

  toggle() {
    this.show(this.mode === "" ? "bird" : this.mode === "bird" && !this.lacks ? "cloud" : "");
  }

  fillBar() {
    const button = (mode, text) => make("button", { type: "button", text, "aria-pressed": this.mode === mode, "data-space": mode, click: () => this.show(mode) });
    const kinds = Object.entries(COLOURS).filter(([kind]) => this.side || kind === "height" || kind === "distance");
    if (!kinds.some(([kind]) => kind === this.colour)) this.colour = "height";
    const parts = [button("bird", "from above"), button("cloud", "in space"), choice("Colour of points", kinds.map(([kind, words]) => [kind, `by ${words}`]), this.colour, (kind) => this.paint(kind))];
    const runs = Object.keys(this.index.runs);
    if (runs.length > 1) parts.push(choice("Clusters of", runs.map((side) => [side, `clusters of ${side.toUpperCase()}`]), this.side, (side) => this.of(side)));
    parts.push(make("button", { type: "button", text: "fit", title: "Where it began (0)", click: () => this.fit() }), make("button", { type: "button", text: "close", title: "Hide the sweep (V)", click: () => this.show("") }));
    this.bar.replaceChildren(...parts);
  }

  paint(kind) {
    this.colour = kind;
    this.refill();
    this.app.remember();
  }

  of(side) {
    this.side = side;
    this.cluster = null;
    this.move(this.player.frame);
  }

  fit() {
    this.above = { ...ABOVE };
    this.orbit = { ...ORBIT, target: [...ORBIT.target] };
    this.draw();
  }

  // The frame that is shown; while it plays, what comes too late is left out.
  async move(frame) {
    if (!this.mode || !this.facts) return;
    if (!this.facts.sweeps) return this.say(this.facts.why);
    const key = `${this.number} ${frame} ${this.side}`;
    if (this.data && this.data.key === key) return;
    this.wanted = { frame, key };
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted) {
        const wanted = this.wanted;
        this.wanted = null;
        let found = this.kept.get(wanted.key);
        try {
          found = found || (await this.fetch(wanted));
        } catch (error) {
          found = { key: wanted.key, frame: wanted.frame, count: 0, fault: error.message };
        }
        if (!this.wanted && wanted.key.startsWith(`${this.number} `)) this.take(found);
      }
    } finally {
      this.busy = false;
    }
  }

  // Where clusters cannot be told, points are shown without them.
  async fetch(wanted) {
    try {
      return await this.read(wanted, this.side);
    } catch (error) {
      if (!this.side) throw error;
      return Object.assign(await this.read(wanted, ""), { doubt: error.message });
    }
  }

  async read({ frame, key }, side) {
    const parameters = { video: this.number, frame, ...(side ? { side } : {}) };
    const [scene, answer] = await Promise.all([ask("/api/sweep", parameters), fetch(`${address(`/points/${this.number}/${frame}`)}${side ? `?side=${side}` : ""}`)]);
    if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).error || `the viewer answered ${answer.status}`);
    const buffer = await answer.arrayBuffer();
    const [, count, total, left] = new Uint32Array(buffer, 0, 4);
    const found = { key, frame, scene, count, total, left, at: new Float32Array(buffer, 16, 3 * count), cluster: new Uint32Array(buffer, 16 + 12 * count, count), step: new Uint8Array(buffer, 16 + 16 * count, count) };
    this.kept.set(key, found);
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value);
    return found;
  }

  take(data) {
    this.data = data;
    this.refill();
    this.app.relistSteps();
  }

  get words() {
    const { data } = this;
    if (!data) return "";
    if (data.fault) return data.fault;
    const count = data.count < data.total - data.left ? `${data.count.toLocaleString("en")} of ${data.total.toLocaleString("en")} points, evenly chosen` : `${data.count.toLocaleString("en")} points`;
    const more = data.scene.clusters && data.scene.clusters.more ? `; ${data.scene.clusters.more} clusters more than are listed` : "";
    if (data.doubt) return `sweep of frame ${data.frame}: ${count}; no clusters: ${data.doubt}`;
    return `sweep of frame ${data.frame}: ${count}${data.left ? `, ${data.left} not finite` : ""}${more}`;
  }

  say(words) {
    this.note.textContent = this.lacks ? `This browser offers no WebGL 2: the view from above is shown. ${words}` : words;
    this.note.hidden = !this.note.textContent;
  }

  refill() {
    if (!this.data) return;
    this.tint();
    this.fillLegend();
    this.draw();
  }

  // Colours of all points, four bytes each.
  tint() {
    const { data } = this;
    if (!data.count) return;
    const colours = (data.colours = new Uint8Array(4 * data.count));
    const low = data.scene.low;
    const range = Math.max(0.5, data.scene.high - low);
    const codes = STEPS.map(parse);
    const bright = this.chosenCluster();
    for (let k = 0; k < data.count; k += 1) {
      let colour;
      if (bright && data.cluster[k] === bright) colour = [255, 255, 255];
      else if (this.colour === "step") colour = codes[data.step[k]];
      else if (this.colour === "cluster") colour = data.cluster[k] ? parse(hue(data.cluster[k])) : codes[data.step[k]];
      else colour = ramp(this.colour === "height" ? (data.at[3 * k + 2] - low) / range : 1 - Math.hypot(data.at[3 * k], data.at[3 * k + 1]) / 60);
      colours[4 * k] = colour[0];
      colours[4 * k + 1] = colour[1];
      colours[4 * k + 2] = colour[2];
      colours[4 * k + 3] = 255;
    }
  }

  fillLegend() {
    const parts = [];
    const { data } = this;
    const swatch = (colour) => {
      const found = make("i");
      found.style.background = colour;
      return found;
    };
    if (data.count && this.colour === "step") {
      const counts = new Map();
      for (const step of data.step) counts.set(step, (counts.get(step) || 0) + 1);
      for (const [step, count] of [...counts].sort(([a], [b]) => a - b)) parts.push(make("span", {}, swatch(STEPS[step]), document.createTextNode(`${this.facts.steps[step]} ${count.toLocaleString("en")}`)));
    } else if (data.count && this.colour === "height") {
      parts.push(make("span", {}, swatch(`rgb(${STOPS[0]})`), document.createTextNode(`${data.scene.low.toFixed(1)} m`)), make("span", {}, swatch(`rgb(${STOPS[4]})`), document.createTextNode(`${data.scene.high.toFixed(1)} m and higher`)));
    }
    this.legend.replaceChildren(...parts);
  }

  // What stands in space in this frame: boxes of the sets, and clusters that are proposals or are looked at.
  gather() {
    const { data, state } = this;
    const shapes = [];
    if (!data || !data.count) return shapes;
    for (const [side, held] of Object.entries(data.scene.boxes)) {
      const names = this.namesOf(side);
      held.box.forEach((box, place) => {
        const { tube, word, score } = names.get(box) || { tube: null, word: "object", score: null };
        const selected = state.chosen && state.chosen.side === side && (tube !== null ? state.chosen.tube === tube : state.chosen.box === box);
        if (!selected && (!state.sides[side] || !state.passes(side, word, score))) return;
        shapes.push({ target: { side, tube, box }, word, colour: colourOf(word), selected, dashed: side === "truth", corners: held.corners[place] });
      });
    }
    const clusters = data.scene.clusters;
    if (!clusters) return shapes;
    // Objects without a box in space: the ends of their returns.
    const solid = new Set(data.scene.boxes.truth ? data.scene.boxes.truth.box : []);
    const objects = this.namesOf("truth");
    for (const [box, , , ends] of data.scene.objects) {
      const { tube, word } = objects.get(box) || { tube: null, word: "object" };
      const selected = state.chosen && state.chosen.side === "truth" && (tube !== null ? state.chosen.tube === tube : state.chosen.box === box);
      if (ends && !solid.has(box) && (selected || (state.sides.truth && state.passes("truth", word, null)))) shapes.push({ target: { side: "truth", tube, box }, word, colour: colourOf(word), selected, dashed: true, plain: true, corners: cornersOf(ends) });
    }
    const names = this.namesOf(this.side);
    // A proposal with a cuboid of its own is drawn as that alone.
    const boxed = new Set(data.scene.boxes[this.side] ? data.scene.boxes[this.side].box : []);
    clusters.cluster.forEach((cluster, place) => {
      const box = clusters.box[place];
      if (boxed.has(box)) return;
      const { tube, word, score } = names.get(box) || { tube: null, word: "object", score: null };
      const chosen = state.chosen && state.chosen.side === this.side && box >= 0 && (tube !== null ? state.chosen.tube === tube : state.chosen.box === box);
      const selected = chosen || this.cluster === cluster;
      if (!selected && (box < 0 || !state.sides[this.side] || !state.passes(this.side, word, score))) return;
      shapes.push({ target: box >= 0 ? { side: this.side, tube, box } : null, cluster, place, word, colour: STEPS[clusters.step[place]], selected, corners: cornersOf(clusters.ends[place]) });
    });
    return shapes;
  }

  // Box to what it is, of the frame of the sweep.
  namesOf(side) {
    const found = new Map();
    const rows = side in this.player.tubes ? this.player.boxes.at(side, this.data.frame) : null;
    if (!rows || !rows.data) return found;
    const { data } = rows;
    for (let row = rows.first; row < rows.end; row += 1) {
      const tube = data.tube ? this.player.tubes[side].get(data.tube[row]) : undefined;
      found.set(data.box[row], { tube: tube ? tube.tube : null, word: (tube && tube.word) || (data.word && data.word[row]) || "object", score: tube && tube.score !== null ? tube.score : data.score ? data.score[row] : null });
    }
    return found;
  }

  chosenCluster() {
    if (this.cluster) return this.cluster;
    const { chosen } = this.state;
    const clusters = this.data.scene.clusters;
    if (!chosen || chosen.side !== this.side || !clusters || chosen.box === null || chosen.box === undefined) return 0;
    const place = clusters.box.indexOf(chosen.box);
    return place < 0 ? 0 : clusters.cluster[place];
  }

  // Something was chosen elsewhere, or is shown otherwise.
  refresh(target) {
    if (target !== undefined && target !== null) this.cluster = null;
    if (!this.mode || !this.data) return;
    this.tint();
    this.draw();
  }

  draw() {
    if (!this.mode) return;
    // What is true is drawn last, what is selected on top of all.
    this.shapes = this.gather().sort((a, b) => (a.selected ? 2 : a.dashed ? 1 : 0) - (b.selected ? 2 : b.dashed ? 1 : 0));
    this.say(this.tellCluster() || this.words);
    if (this.mode === "bird") this.drawAbove();
    else this.drawSolid();
    const canvas = this.mode === "bird" ? this.bird : this.solid;
    canvas.dataset.frame = this.data ? this.data.frame : "";
    canvas.dataset.points = this.data ? this.data.count : 0;
    canvas.dataset.shapes = this.shapes.length;
  }

  tellCluster() {
    if (!this.cluster || !this.data || !this.data.count) return "";
    const clusters = this.data.scene.clusters;
    const place = clusters ? clusters.cluster.indexOf(this.cluster) : -1;
    if (place < 0) return "";
    return `cluster ${this.cluster}: ${this.facts.steps[clusters.step[place]]}, ${clusters.returns[place]} returns, ${clusters.nearest[place].toFixed(1)} m away`;
  }

  resize(canvas) {
    const ratio = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    const [wide, high] = [Math.max(1, Math.round(box.width * ratio)), Math.max(1, Math.round(box.height * ratio))];
    if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
    return [wide, high, ratio];
  }

  // From above, ahead is up.
  place(wide, high) {
    const scale = this.above.scale || Math.min(high / 76, wide / 60);
    return { scale, to: (x, y) => [wide / 2 - (y - this.above.y) * scale, high / 2 - (x - this.above.x) * scale] };
  }

  drawAbove() {
    const { data } = this;
    const [wide, high, ratio] = this.resize(this.bird);
    const pen = this.bird.getContext("2d");
    const { scale, to } = this.place(wide, high);
    const image = pen.createImageData(wide, high);
    const pixels = new Uint32Array(image.data.buffer);
    pixels.fill(0xff16120e);
    if (data && data.count) {
      const colours = new Uint32Array(data.colours.buffer);
      const size = Math.max(1, Math.round(ratio * (scale > 16 * ratio ? 2 : 1)));
      for (let k = 0; k < data.count; k += 1) {
        const [x, y] = to(data.at[3 * k], data.at[3 * k + 1]);
        const [left, top] = [x | 0, y | 0];
        if (x < 0 || y < 0 || left + size > wide || top + size > high) continue;
        for (let j = 0; j < size; j += 1) pixels.fill(colours[k], (top + j) * wide + left, (top + j) * wide + left + size);
      }
    }
    pen.putImageData(image, 0, 0);
    pen.font = `${11 * ratio}px system-ui, sans-serif`;
    const [x0, y0] = to(0, 0);
    pen.lineWidth = ratio;
    for (const far of [10, 20, 30, 40, 50, 75, 100]) {
      pen.strokeStyle = "#ffffff26";
      pen.beginPath();
      pen.arc(x0, y0, far * scale, 0, 2 * Math.PI);
      pen.stroke();
      pen.fillStyle = "#c3ccd6";
      const [x, y] = to(far, 0);
      pen.fillText(`${far} m`, x + 4 * ratio, y + 12 * ratio);
    }
    if (data && data.count) this.drawWedge(pen, to, data.scene.camera, ratio);
    pen.fillStyle = "#ffffff";
    pen.beginPath();
    pen.moveTo(...to(1.6, 0));
    pen.lineTo(...to(-1.6, 0.9));
    pen.lineTo(...to(-1.6, -0.9));
    pen.fill();
    for (const shape of this.shapes) {
      const sole = [0, 2, 6, 4].map((corner) => to(shape.corners[3 * corner], shape.corners[3 * corner + 1]));
      shape.outline = sole;
      shape.away = 0;
      pen.setLineDash(shape.dashed ? [5 * ratio, 3 * ratio] : []);
      pen.lineWidth = (shape.selected ? 3 : shape.dashed ? 2.2 : 1.3) * ratio;
      pen.strokeStyle = shape.selected ? "#ffffff" : shape.colour;
      trace(pen, sole);
      pen.setLineDash([]);
      if (shape.dashed && !shape.plain) {
        const middle = (places) => [0, 1].map((axis) => places.reduce((sum, each) => sum + each[axis], 0) / places.length);
        pen.beginPath(); // from the middle to the front
        pen.moveTo(...middle(sole));
        pen.lineTo(...middle(sole.slice(2)));
        pen.stroke();
      }
      if (shape.selected) {
        pen.fillStyle = "#ffffff";
        pen.fillText(shape.word, sole[0][0] + 6 * ratio, sole[0][1] - 6 * ratio);
      }
    }
  }

  // How wide the camera sees.
  drawWedge(pen, to, { pose, lens, size }, ratio) {
    pen.strokeStyle = "#56b4e980";
    pen.setLineDash([3 * ratio, 4 * ratio]);
    for (const u of [0, size[0]]) {
      const across = (u - lens[2]) / lens[0];
      const way = [pose[0] * across + pose[2], pose[4] * across + pose[6]];
      const length = Math.hypot(...way) || 1;
      pen.beginPath();
      pen.moveTo(...to(pose[3], pose[7]));
      pen.lineTo(...to(pose[3] + (70 * way[0]) / length, pose[7] + (70 * way[1]) / length));
      pen.stroke();
    }
    pen.setLineDash([]);
  }

  drawSolid() {
    const { data, drawn } = this;
    const [wide, high, ratio] = this.resize(this.solid);
    this.way = look(this.orbit, wide / high);
    const ends = [];
    const colours = [];
    const line = (a, b, colour) => {
      ends.push(...a, ...b);
      colours.push(...colour, 255, ...colour, 255);
    };
    for (let far = 10; far <= 50; far += 10) {
      for (let k = 0; k < 48; k += 1) {
        const turn = (step) => [far * Math.cos((step * Math.PI) / 24), far * Math.sin((step * Math.PI) / 24), data && data.scene ? data.scene.low : 0];
        line(turn(k), turn(k + 1), [50, 58, 68]);
      }
    }
    for (const shape of this.shapes) {
      const at = (corner) => [shape.corners[3 * corner], shape.corners[3 * corner + 1], shape.corners[3 * corner + 2]];
      const colour = shape.selected ? [255, 255, 255] : parse(shape.colour);
      for (const [a, b] of EDGES) line(at(a), at(b), colour);
      if (shape.dashed && !shape.plain) line(at(4), at(7), colour), line(at(5), at(6), colour); // the front is crossed
      const seen = [0, 1, 2, 3, 4, 5, 6, 7].map((corner) => project(this.way, ...at(corner), wide, high));
      shape.outline = seen.every(Boolean) ? hull(seen) : null;
      shape.away = Math.min(...seen.map((each) => (each ? each[2] : Infinity)));
    }
    drawn.fill("lines", new Float32Array(ends), new Uint8Array(colours));
    drawn.fill("points", data && data.count ? data.at : new Float32Array(0), data && data.count ? data.colours : new Uint8Array(0));
    drawn.draw(this.way, ratio);
  }

  // The box of a dropped cluster on the image.
  paintPicture(pen, pane) {
    const clusters = this.cluster && this.mode && this.data && this.data.count && this.data.frame === this.player.frame ? this.data.scene.clusters : null;
    const place = clusters ? clusters.cluster.indexOf(this.cluster) : -1;
    const edges = place < 0 ? null : clusters.edges[place];
    if (!edges) return;
    const [left, top, right, bottom] = edges.map((value, k) => (k % 2 ? pane.y : pane.x) + value * pane.scale);
    pen.lineWidth = 2.5 * pane.ratio;
    pen.strokeStyle = "#ffffff";
    pen.strokeRect(left, top, right - left, bottom - top);
    pen.font = `${11.5 * pane.ratio}px system-ui, sans-serif`;
    const words = this.facts.steps[clusters.step[place]];
    pen.fillStyle = "#0d1116d9";
    pen.fillRect(left, top - 17 * pane.ratio, pen.measureText(words).width + 8 * pane.ratio, 15.5 * pane.ratio);
    pen.fillStyle = "#ffffff";
    pen.fillText(words, left + 4 * pane.ratio, top - 5 * pane.ratio);
  }

  listen(canvas) {
    let start = null;
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 500));
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      start = { x: event.clientX, y: event.clientY, moved: 0, slides: event.shiftKey || event.button > 0 };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      start.moved += Math.hypot(x, y);
      if (start.moved < 4) return;
      Object.assign(start, { x: event.clientX, y: event.clientY });
      if (this.mode === "bird" || start.slides) this.slide(x, y);
      else this.turn(x / 180, y / 180);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (start && start.moved < 4 && event.button === 0) this.pick(canvas, event);
      start = null;
    });
    canvas.addEventListener("pointercancel", () => (start = null));
    canvas.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const slides = event.shiftKey || this.mode === "bird";
    const arrows = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    const acts = { "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(), "[": () => this.walk(-1), "]": () => this.walk(1) };
    if (event.key in arrows) {
      const [x, y] = arrows[event.key];
      if (slides) this.slide(40 * x, 40 * y);
      else this.turn(0.12 * x, 0.08 * y);
    } else if (event.key in acts) acts[event.key]();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The next box in the order of distance.
  walk(by) {
    const shapes = this.shapes.filter((shape) => shape.target);
    if (!shapes.length) return;
    const away = (shape) => Math.hypot(shape.corners[0] + shape.corners[21], shape.corners[1] + shape.corners[22]);
    shapes.sort((a, b) => away(a) - away(b));
    const at = shapes.findIndex((shape) => shape.selected);
    this.state.choose(shapes[(at + by + shapes.length + (at < 0 && by < 0 ? 1 : 0)) % shapes.length].target);
  }

  zoom(by) {
    const [wide, high] = [this.bird.width, this.bird.height];
    if (this.mode === "bird") this.above.scale = Math.min(400, Math.max(0.5, this.place(wide, high).scale * by));
    else this.orbit.away = Math.min(400, Math.max(1, this.orbit.away / by));
    this.draw();
  }

  turn(across, down) {
    this.orbit.yaw -= across;
    this.orbit.pitch = Math.min(1.55, Math.max(-0.3, this.orbit.pitch + down));
    this.draw();
  }

  // By pixels of the page.
  slide(x, y) {
    const ratio = window.devicePixelRatio || 1;
    if (this.mode === "bird") {
      const { scale } = this.place(this.bird.width, this.bird.height);
      this.above = { x: this.above.x + (y * ratio) / scale, y: this.above.y + (x * ratio) / scale, scale };
    } else {
      const { yaw, away, target } = this.orbit;
      const metres = (1.25 * away * ratio) / this.solid.height;
      target[0] += metres * (y * Math.cos(yaw) - x * Math.sin(yaw));
      target[1] += metres * (y * Math.sin(yaw) + x * Math.cos(yaw));
    }
    this.draw();
  }

  pick(canvas, event) {
    const ratio = window.devicePixelRatio || 1;
    const box = canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
    const under = this.shapes.filter((shape) => shape.target && shape.outline && inside(shape.outline, x, y));
    under.sort((a, b) => a.away - b.away || area(a.outline) - area(b.outline));
    if (under.length) return this.state.choose(under[0].target);
    this.pickCluster(this.clusterAt(x, y, ratio, canvas));
  }

  // The cluster whose point lies nearest to a pixel, 0 for none.
  clusterAt(x, y, ratio, canvas) {
    const { data } = this;
    if (!data || !data.count || !data.scene.clusters) return 0;
    const { to } = this.place(canvas.width, canvas.height);
    let [best, found] = [NEAR_PX * ratio, 0];
    for (let k = 0; k < data.count; k += 1) {
      if (!data.cluster[k]) continue;
      const seen = this.mode === "bird" ? to(data.at[3 * k], data.at[3 * k + 1]) : project(this.way, data.at[3 * k], data.at[3 * k + 1], data.at[3 * k + 2], canvas.width, canvas.height);
      if (!seen) continue;
      const away = Math.hypot(seen[0] - x, seen[1] - y);
      if (away < best) [best, found] = [away, data.cluster[k]];
    }
    return found;
  }

  // A cluster by its number; one that is a proposal is chosen as its box.
  pickCluster(cluster) {
    const clusters = this.data && this.data.scene && this.data.scene.clusters;
    const place = clusters ? clusters.cluster.indexOf(cluster) : -1;
    if (place >= 0 && clusters.box[place] >= 0) {
      const box = clusters.box[place];
      const { tube } = this.namesOf(this.side).get(box) || { tube: null };
      return this.state.choose({ side: this.side, tube, box });
    }
    this.state.choose(null);
    this.cluster = cluster || null;
    this.refresh();
    this.player.draw();
  }

  // The list of what was lost: objects of this frame by the step that lost them, and clusters of the run by theirs.
  async lost() {
    const { index, view } = { index: this.index, view: (this.view = this.view || { step: "" }) };
    const parts = [];
    const runs = Object.keys(index.runs);
    if (runs.length > 1) parts.push(make("div", { of: "bar" }, choice("Run", runs.map((side) => [side, `${side.toUpperCase()}: ${index.sides[side].name}`]), this.side, (side) => (this.of(side), this.app.relist()))));
    const objects = (this.mode && this.data && this.data.scene && this.data.scene.objects) || [];
    if (objects.length) {
      const names = this.namesOf("truth");
      parts.push(make("h3", { text: `Objects of frame ${this.data.frame}, by the step that lost them` }));
      parts.push(make("div", { of: "rows" }, ...objects.map(([box, step, returns]) => {
        const { tube, word } = names.get(box) || { tube: null, word: "object" };
        return make("button", { type: "button", of: "row event lost", "data-key": `object ${box}`, title: this.facts.losses[step], click: () => this.open(this.number, this.data.frame, { side: "truth", tube, box }) }, make("span", { of: "n", text: returns }), make("b", { of: step === "met" ? "" : "fault", text: step }), make("span", { text: word }), make("span", { of: "sub", text: this.facts.losses[step] }));
      })));
    } else if (index.space) parts.push(make("p", { of: "quiet", text: this.mode ? "Of no object of this frame the returns are known." : "Press V: the sweep of a frame tells what became of its objects." }));
    if (!index.runs[this.side]) return [...parts, make("p", { of: "quiet", text: "This run kept no table of what it dropped: `propose --overwrite` makes it anew." })];
    const { counts, rows } = (this.told = this.told && this.told.side === this.side ? this.told : { side: this.side, ...(await ask("/api/dropped", { side: this.side })) });
    if (!(view.step in counts)) view.step = "";
    const chips = make("div", { of: "chips", role: "group", "aria-label": "Steps" });
    for (const [step, count] of Object.entries(counts)) chips.append(make("button", { type: "button", text: `${step} ${count.toLocaleString("en")}`, "aria-pressed": view.step === step, click: () => ((view.step = view.step === step ? "" : step), this.app.relist()) }));
    // Most of what is beside the image was never asked for: it is listed where nothing else is, or on a click.
    const others = Object.keys(counts).some((step) => step !== BESIDE);
    const shown = rows.cluster.map((_, k) => k).filter((k) => (view.step ? rows.step[k] === view.step : !others || rows.step[k] !== BESIDE));
    shown.sort((a, b) => rows.distance_m[a] - rows.distance_m[b]);
    const list = make("div", { of: "rows" }, ...shown.slice(0, 400).map((k) => this.droppedRow(rows, k)));
    return [...parts, make("h3", { text: "Clusters that were dropped, the nearest first" }), chips, list, make("p", { of: "quiet", text: `Metres, step, returns. Clusters of fewer returns than the least are left out.${shown.length > 400 ? ` The first 400 of ${shown.length}.` : ""}` })];
  }

  droppedRow(rows, k) {
    const video = this.index.videos.name.indexOf(rows.video[k]);
    const why = { background: rows.background_share[k], "common object": rows.common_iou[k], "too wide": rows.width_m[k], "too tall": rows.height_m[k], "too low": rows.height_m[k] }[rows.step[k]];
    const about = `${rows.n_returns[k]} returns${why === null || why === undefined ? "" : `, ${why.toFixed(2)}`}`;
    const open = () => this.open(video, rows.frame[k], null, rows.cluster[k]);
    return make("button", { type: "button", of: "row event lost", "data-key": `${rows.video[k]} ${rows.frame[k]} ${rows.cluster[k]}`, click: open }, make("span", { of: "n", text: rows.distance_m[k] === null ? "" : rows.distance_m[k].toFixed(1) }), make("b", { text: rows.step[k] }), make("span", { text: about }), make("span", { of: "sub", text: `${rows.video[k]}, frame ${rows.frame[k]}, cluster ${rows.cluster[k]}` }));
  }

  // A frame with a box or a cluster of its sweep.
  async open(number, frame, chosen, cluster) {
    if (!this.mode) this.show("bird");
    await this.app.open({ number, frame, chosen });
    if (cluster === undefined) return;
    const asked = (this.asked = {}); // a later click takes its place
    const here = () => this.data && this.data.frame === frame && this.data.key.startsWith(`${number} `);
    for (let tries = 0; tries < 300 && asked === this.asked && this.number === number && !here(); tries += 1) {
      this.move(frame);
      await new Promise((done) => setTimeout(done, 50));
    }
    if (asked === this.asked && here()) this.pickCluster(cluster);
  }
}

function cornersOf([x1, y1, z1, x2, y2, z2]) {
  const found = [];
  for (const x of [x1, x2]) for (const y of [y1, y2]) for (const z of [z1, z2]) found.push(x, y, z);
  return found;
}

function parse(colour) {
  return [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));
}

function ramp(share) {
  const place = Math.min(0.9999, Math.max(0, share)) * (STOPS.length - 1);
  const low = Math.floor(place);
  return STOPS[low].map((value, k) => value + (place - low) * (STOPS[low + 1][k] - value));
}

// A colour for each number, neighbours far apart.
const hues = new Map();
function hue(number) {
  const place = number % 64;
  if (!hues.has(place)) {
    const turn = ((place * 0.61803) % 1) * 6;
    const rise = Math.round(255 * (1 - Math.abs((turn % 2) - 1)));
    const [r, g, b] = [[255, rise, 64], [rise, 255, 64], [64, 255, rise], [64, rise, 255], [rise, 64, 255], [255, 64, rise]][Math.floor(turn)];
    hues.set(place, `#${[r, g, b].map((value) => value.toString(16).padStart(2, "0")).join("")}`);
  }
  return hues.get(place);
}

function trace(pen, outline) {
  pen.beginPath();
  outline.forEach(([x, y], k) => (k ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.stroke();
}

// The convex outline of some places, counterclockwise.
function hull(places) {
  const sorted = [...places].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (row) => {
    const found = [];
    for (const each of row) {
      while (found.length > 1 && cross(found[found.length - 2], found[found.length - 1], each) <= 0) found.pop();
      found.push(each);
    }
    return found.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

const cross = (a, b, c) => (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);

function inside(outline, x, y) {
  const signs = outline.map((each, k) => Math.sign(cross(each, outline[(k + 1) % outline.length], [x, y])));
  return signs.every((sign) => sign >= 0) || signs.every((sign) => sign <= 0);
}

function area(outline) {
  let sum = 0;
  outline.forEach((each, k) => {
    const next = outline[(k + 1) % outline.length];
    sum += each[0] * next[1] - next[0] * each[1];
  });
  return Math.abs(sum / 2);
}
