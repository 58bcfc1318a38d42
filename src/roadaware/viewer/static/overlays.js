// What is drawn beside boxes, each layer when it is switched on: relations, joints, sounds with their maps, risk.

import { ask } from "./api.js";
import { make } from "./panels.js";
import { ratioOf, tag } from "./player.js";
import { colourOf } from "./tubes.js";

const LAYERS = [
  ["relations", "R", "Who does what to whom"],
  ["joints", "P", "Joints of people"],
  ["sounds", "H", "What is heard, from where"],
  ["risk", "X", "Forecasts for pedestrians"],
];
const WINDOW = 128; // frames asked for at a time, as of boxes
const KEPT = 24; // windows that are kept of a layer
const MOST_CHIPS = 60;
const MOST_MAPS = 32;
// The 18 joints of OpenPose, as pairs; the person's right, left, and what is between.
const BONES = [[1, 2], [2, 3], [3, 4], [1, 5], [5, 6], [6, 7], [1, 8], [8, 9], [9, 10], [1, 11], [11, 12], [12, 13], [0, 1], [0, 14], [14, 16], [0, 15], [15, 17]];
const RIGHT = new Set([2, 3, 4, 8, 9, 10, 14, 16]);
const LEFT = new Set([5, 6, 7, 11, 12, 13, 15, 17]);
const GROWING = ["#2bc48a", "#f0e442", "#ff8f80"]; // forecasts up to 1/4, up to 1/2, above

export class Overlays {
  // `changed()` is called when layers or the selected relation are others, `tell(words)` for what people should know;
  // `list` shows the relations of the frame.
  constructor(player, state, bar, list, changed, tell) {
    Object.assign(this, { player, state, bar, list, changed, tell });
    this.on = new Set();
    this.told = {};
    this.relation = null; // {side, relation, span} that is selected
    this.drawn = []; // what stands on the canvas, for whoever asks
    this.hits = [];
    this.reset();
    this.buttons = new Map(
      LAYERS.map(([layer, key, words]) => [layer, make("button", { type: "button", text: layer, title: `${words} (${key})`, "aria-pressed": "false", "data-layer": layer, click: () => this.toggle(layer) })]),
    );
    bar.append(...this.buttons.values());
    this.show();
  }

  reset() {
    this.windows = new Map(LAYERS.map(([layer]) => [layer, new Map()]));
    this.maps = new Map();
  }

  // Another video is on its way: nothing of the former one is drawn on it.
  leave() {
    this.token = {};
    this.told = {};
    this.relation = null;
    this.reset();
    this.show();
  }

  async load(number) {
    this.leave();
    const { token } = this;
    this.number = number;
    const told = await ask("/api/overlays", { video: number }).catch((error) => {
      this.tell(error.message);
      return {};
    });
    if (token !== this.token) return;
    this.told = told;
    this.show();
    this.player.draw();
    this.changed();
  }

  has(layer) {
    return Object.values(this.told).some((side) => side.layers.includes(layer));
  }

  toggle(layer) {
    if (!this.on.delete(layer)) this.on.add(layer);
    if (layer === "relations") this.relation = null;
    this.show();
    this.player.draw();
    this.changed();
  }

  // The layer of a key; the keys of layers that a video lacks do nothing.
  press(key) {
    const found = LAYERS.find(([layer, each]) => each.toLowerCase() === key && this.has(layer));
    if (found) this.toggle(found[0]);
    return Boolean(found);
  }

  show() {
    for (const [layer, button] of this.buttons) {
      button.hidden = !this.has(layer);
      button.setAttribute("aria-pressed", this.on.has(layer));
    }
    this.bar.hidden = LAYERS.every(([layer]) => !this.has(layer));
    this.list.hidden = !(this.on.has("relations") && this.has("relations"));
  }

  select(found) {
    if (!found && !this.relation) return;
    this.relation = found;
    this.changed();
    this.player.draw();
  }

  // Whether all that is drawn at a frame is there.
  ready(frame) {
    const waits = (side) => this.heard(side, frame).some(([sound, , , , , mapped]) => mapped && this.map(side, sound) === null);
    return LAYERS.every(([layer]) => !this.on.has(layer) || !this.has(layer) || this.window(layer, frame) !== null) && !(this.on.has("sounds") && Object.keys(this.told).some(waits));
  }

  // The rows of a layer in the window of a frame, by side; null while they are on their way.
  window(layer, frame) {
    const windows = this.windows.get(layer);
    const number = Math.floor(frame / WINDOW);
    let window = windows.get(number);
    if (window) {
      windows.delete(number); // the last one looked at is dropped last
      windows.set(number, window);
      return window.sides;
    }
    window = { sides: null };
    windows.set(number, window);
    if (windows.size > KEPT) windows.delete(windows.keys().next().value);
    ask("/api/layers", { video: this.number, first: number * WINDOW, end: (number + 1) * WINDOW, layers: layer }).then(
      (sides) => {
        window.sides = sides;
        const more = Object.values(sides).reduce((sum, each) => sum + (each[layer].more || 0), 0);
        if (more) this.tell(`${layer}: ${more} more around frame ${frame} are not drawn`);
        this.player.draw();
      },
      (error) => {
        window.sides = {}; // asked again when the window has been dropped
        this.tell(error.message);
      },
    );
    return null;
  }

  // The sides of a pane, and sets without boxes of their own, such as maps of sounds, which stand in each.
  sides(pane) {
    const loose = Object.keys(this.told).filter((side) => !(side in this.player.tubes) && this.state.sides[side] !== false);
    return [...pane.sides, ...loose];
  }

  // Called for each pane once its image is drawn, and its boxes are not.
  drawBelow(pen, pane) {
    if (!this.on.has("sounds")) return;
    for (const side of this.sides(pane)) {
      for (const [sound, , , , , mapped] of this.heard(side, this.player.frame)) if (mapped) this.drawMap(pen, pane, side, sound);
    }
  }

  // Called for each pane once its image and boxes are drawn.
  draw(pen, pane) {
    const { frame } = this.player;
    for (const layer of ["sounds", "joints", "risk", "relations"]) {
      if (!this.on.has(layer) || !this.has(layer)) continue;
      const sides = this.window(layer, frame);
      if (!sides) continue;
      for (const side of this.sides(pane)) {
        const rows = (sides[side] || {})[layer];
        if (layer === "sounds") this.drawSounds(pen, pane, side, rows);
        else if (rows && layer === "joints") this.drawJoints(pen, pane, side, rows);
        else if (rows && layer === "risk") this.drawRisk(pen, pane, side, rows);
        else if (rows && layer === "relations") this.drawRelations(pen, pane, side, rows);
      }
    }
  }

  begin() {
    this.drawn = [];
    this.hits = [];
  }

  end() {
    if (!this.on.has("relations") || !this.has("relations") || !this.window("relations", this.player.frame)) return;
    const found = new Map();
    for (const each of this.drawn) if (each.layer === "relations") found.set(`${each.side} ${each.id}`, each);
    this.fillList([...found.values()]);
  }

  // Where the boxes of a side stand in this frame, by tube and by box, on the canvas.
  places(pane, side) {
    const rows = this.player.boxes.at(side, this.player.frame);
    const found = { tubes: new Map(), boxes: new Map() };
    if (!rows || !rows.data) return found;
    const { data } = rows;
    const grow = this.grow(side);
    for (let row = rows.first; row < rows.end; row += 1) {
      const place = [
        pane.x + data.x1[row] * grow[0] * pane.scale,
        pane.y + data.y1[row] * grow[1] * pane.scale,
        (data.x2[row] - data.x1[row]) * grow[0] * pane.scale,
        (data.y2[row] - data.y1[row]) * grow[1] * pane.scale,
      ];
      found.boxes.set(data.box[row], place);
      if (data.tube && data.tube[row] >= 0) found.tubes.set(data.tube[row], place);
    }
    return found;
  }

  grow(side) {
    const [wide, high] = this.player.sizes[side] || [0, 0];
    return [ratioOf(this.player.width, wide), ratioOf(this.player.height, high)];
  }

  passes(side, number) {
    const tube = (this.player.tubes[side] || new Map()).get(number);
    return !tube || this.state.passes(side, tube.word, tube.score);
  }

  drawRelations(pen, pane, side, rows) {
    const { frame } = this.player;
    const places = this.places(pane, side).tubes;
    const pairs = new Map(); // what is said of one pair stands on one arrow
    for (let k = 0; k < rows.relation.length; k += 1) {
      if (frame < rows.start[k] || frame >= rows.end[k]) continue;
      const selected = this.relation && this.relation.side === side && this.relation.relation === rows.relation[k];
      const score = rows.score[k];
      const [subject, object] = [rows.subject[k], rows.object[k]];
      if (!places.has(subject) || !places.has(object)) continue;
      if (!selected && ((score !== null && side !== "truth" && score < this.state.score) || !this.passes(side, subject) || !this.passes(side, object))) continue;
      const each = { layer: "relations", side, id: rows.relation[k], word: rows.word[k], subject, object, score, selected: Boolean(selected), span: [rows.start[k], Math.min(rows.end[k], this.player.count)] };
      const key = `${subject} ${object}`;
      if (!pairs.has(key)) pairs.set(key, []);
      pairs.get(key).push(each);
    }
    for (const held of pairs.values()) {
      const { subject, object } = held[0];
      const line = arrow(places.get(subject), places.get(object), pane.ratio);
      const selected = held.some((each) => each.selected);
      const words = held.map((each) => `${each.word}${each.score === null || side === "truth" ? "" : ` ${each.score.toFixed(2)}`}`).join(" · ");
      drawArrow(pen, line, selected ? "#ffffff" : colourOf(held[0].word), pane.ratio, { dashed: side === "truth", selected });
      const wide = tag(pen, line.middle[0] - 14 * pane.ratio, line.middle[1] + 4 * pane.ratio, words, selected ? "#ffffff" : colourOf(held[0].word), pane.ratio, pane);
      for (const each of held) this.drawn.push({ ...each, from: line.from, to: line.to, middle: line.middle });
      this.hits.push({ held, line, label: [line.middle[0] - 15 * pane.ratio, line.middle[1] - 8 * pane.ratio, wide, 16 * pane.ratio], ratio: pane.ratio });
    }
  }

  // Select the relation under a point of the canvas; a further click takes the next of several on one arrow.
  pick(x, y) {
    for (const { held, line, label, ratio } of [...this.hits].reverse()) {
      const inLabel = x >= label[0] && x <= label[0] + label[2] && y >= label[1] && y <= label[1] + label[3];
      if (!inLabel && !line.points.some(([a, b]) => Math.hypot(a - x, b - y) < 5 * ratio)) continue;
      const at = held.findIndex((each) => each.selected);
      this.take(held[(at + 1) % held.length]);
      return true;
    }
    return false;
  }

  take({ side, id, span }) {
    this.select({ side, relation: id, span });
  }

  fillList(found) {
    const key = found.map((each) => `${each.side}${each.id}${each.selected}`).join(" ");
    if (this.list.dataset.key === key) return;
    this.list.dataset.key = key;
    const name = (side, number) => {
      const tube = (this.player.tubes[side] || new Map()).get(number);
      return tube ? `${tube.word} ${tube.name}` : `tube ${number}`;
    };
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.relation : null;
    const chips = found.slice(0, MOST_CHIPS).map((each) => {
      const words = `${each.side === "truth" ? "true" : each.side.toUpperCase()}: ${name(each.side, each.subject)} ${each.word} ${name(each.side, each.object)}`;
      const about = `frames ${each.span[0]} to ${each.span[1] - 1}`;
      return make("button", { type: "button", text: words, title: about, "aria-pressed": each.selected, "data-relation": `${each.side} ${each.id}`, click: () => (each.selected ? this.select(null) : this.take(each)) });
    });
    const more = found.length > MOST_CHIPS ? [make("span", { of: "quiet", text: `${found.length - MOST_CHIPS} more` })] : [];
    const none = found.length ? [] : [make("span", { of: "quiet", text: "no relation in this frame" })];
    this.list.replaceChildren(...chips, ...more, ...none);
    chips.find((chip) => chip.dataset.relation === focused)?.focus();
  }

  drawJoints(pen, pane, side, rows) {
    const { frame } = this.player;
    const grow = this.grow(side);
    pen.lineCap = "round";
    for (let k = lowest(rows.frame, frame); k < rows.frame.length && rows.frame[k] === frame; k += 1) {
      const joints = rows.joints[k];
      const at = (joint) => (joints[2 * joint] === null || joints[2 * joint + 1] === null ? null : [pane.x + joints[2 * joint] * grow[0] * pane.scale, pane.y + joints[2 * joint + 1] * grow[1] * pane.scale]);
      const points = Array.from({ length: 18 }, (_, joint) => at(joint));
      const colour = (joint) => (RIGHT.has(joint) ? "#ff8f80" : LEFT.has(joint) ? "#2bc48a" : "#f4f4f4");
      pen.setLineDash(side === "truth" ? [5 * pane.ratio, 2.5 * pane.ratio] : []);
      for (const [a, b] of BONES) {
        if (!points[a] || !points[b]) continue;
        for (const [wide, ink] of [[3.4, "#000a"], [1.7, colour(b)]]) {
          pen.lineWidth = wide * pane.ratio;
          pen.strokeStyle = ink;
          pen.beginPath();
          pen.moveTo(...points[a]);
          pen.lineTo(...points[b]);
          pen.stroke();
        }
      }
      pen.setLineDash([]);
      points.forEach((point, joint) => {
        if (!point) return;
        pen.fillStyle = colour(joint);
        pen.beginPath();
        pen.arc(...point, 1.9 * pane.ratio, 0, 2 * Math.PI);
        pen.fill();
      });
      this.drawn.push({ layer: "joints", side, id: rows.box ? rows.box[k] : k, points });
    }
    pen.lineCap = "butt";
  }

  // The sounds of a side that are heard in a frame: of a span, or of the one frame that shows where they come from.
  heard(side, frame) {
    const time = this.player.times[frame] ?? 0;
    return ((this.told[side] || {}).sounds || []).filter(([, , start, end, shown]) => {
      if (start !== null && end !== null) return time >= start - 1e-3 && time < end;
      if (shown !== null) return shown === frame;
      return start === null || this.player.frameAt(start) === frame;
    });
  }

  drawSounds(pen, pane, side, rows) {
    const { frame } = this.player;
    const sounds = this.heard(side, frame);
    const named = new Map(sounds.map(([sound, word]) => [sound, word]));
    const seen = new Set();
    if (rows && rows.frame.length) {
      const places = this.places(pane, side).boxes;
      for (let k = lowest(rows.frame, frame); k < rows.frame.length && rows.frame[k] === frame; k += 1) {
        const place = places.get(rows.box[k]);
        if (!place) continue;
        const word = named.get(rows.sound[k]) || `sound ${rows.sound[k]}`;
        seen.add(rows.sound[k]);
        pen.setLineDash(side === "truth" ? [6 * pane.ratio, 4 * pane.ratio] : []);
        pen.strokeStyle = colourOf(word);
        pen.lineWidth = 3 * pane.ratio;
        pen.strokeRect(place[0] - 4 * pane.ratio, place[1] - 4 * pane.ratio, place[2] + 8 * pane.ratio, place[3] + 8 * pane.ratio);
        pen.setLineDash([]);
        tag(pen, place[0], place[1] - 8 * pane.ratio, `♪ ${word}`, colourOf(word), pane.ratio, pane);
        this.drawn.push({ layer: "sounds", side, id: rows.sound[k], box: rows.box[k], place });
      }
    }
    // What is heard from nowhere in the image stands in the corner.
    let line = this.drawn.filter((each) => each.corner && each.pane === pane.left).length;
    for (const [sound, word, , , , mapped] of sounds) {
      if (seen.has(sound) && !mapped) continue;
      const said = `♪ ${word}${side === "truth" ? (seen.has(sound) ? "" : ", without a box") : `, ${side.toUpperCase()}`}`;
      tag(pen, pane.left + 8 * pane.ratio, (44 + 18 * line) * pane.ratio, said, colourOf(word), pane.ratio, pane);
      line += 1;
      this.drawn.push({ layer: "sounds", side, id: sound, corner: true, pane: pane.left });
    }
  }

  // The painted map of a sound; null while it is on its way, false where there is none.
  map(side, sound) {
    const key = `${side} ${sound}`;
    if (!this.maps.has(key)) {
      if (this.maps.size >= MOST_MAPS) this.maps.delete(this.maps.keys().next().value);
      this.maps.set(key, null);
      const maps = this.maps;
      ask("/api/map", { video: this.number, side, sound }).then(
        (found) => {
          maps.set(key, found.cells.length ? paintMap(found) : false);
          if (found.message) this.tell(found.message);
          this.player.draw();
        },
        (error) => {
          maps.set(key, false);
          this.tell(error.message);
        },
      );
    }
    return this.maps.get(key);
  }

  drawMap(pen, pane, side, sound) {
    const painted = this.map(side, sound);
    if (!painted) return;
    pen.imageSmoothingEnabled = true;
    pen.drawImage(painted, pane.x, pane.y, this.player.width * pane.scale, this.player.height * pane.scale);
    this.drawn.push({ layer: "maps", side, id: sound, cells: [painted.width, painted.height] });
  }

  drawRisk(pen, pane, side, rows) {
    const { frame } = this.player;
    const places = this.places(pane, rows.on).tubes;
    const { chosen } = this.state;
    // Forecasts of a watch stand for one frame each and are in order; those of samples are few.
    for (let k = 0; k < rows.first.length && rows.first[k] <= frame; k += 1) {
      if (frame >= rows.end[k]) continue;
      const place = places.get(rows.tube[k]);
      const selected = chosen && chosen.side === rows.on && chosen.tube === rows.tube[k];
      if (!place || (rows.crossing[k] === null && !rows.regions[k]) || (!selected && !this.passes(rows.on, rows.tube[k]))) continue;
      const { crossing, regions } = { crossing: rows.crossing[k], regions: rows.regions[k] };
      const best = regions ? regions.indexOf(Math.max(...regions)) : -1;
      const colour = crossing === null ? "#56b4e9" : GROWING[crossing < 0.25 ? 0 : crossing < 0.5 ? 1 : 2];
      const band = crossing !== null && rows.low[k] !== null && rows.high[k] !== null ? ` (${rows.low[k].toFixed(2)} to ${rows.high[k].toFixed(2)})` : "";
      const where = regions ? `region ${best + 1} of ${regions.length}${crossing === null ? ` ${regions[best].toFixed(2)}` : ""}` : "";
      const words = [crossing === null ? "" : `crossing ${crossing.toFixed(2)}${selected ? band : ""}`, crossing === null || selected ? where : ""].filter(Boolean).join(", ");
      pen.setLineDash([]);
      pen.strokeStyle = colour;
      pen.lineWidth = 2.4 * pane.ratio;
      pen.strokeRect(place[0] - 3 * pane.ratio, place[1] - 3 * pane.ratio, place[2] + 6 * pane.ratio, place[3] + 6 * pane.ratio);
      const offset = side === rows.on ? 0 : "abcde".indexOf(side);
      tag(pen, place[0] + place[2] + 5 * pane.ratio, place[1] + (12 + 17 * offset) * pane.ratio, words, colour, pane.ratio, pane);
      if (selected && regions) drawRegions(pen, pane, regions, best, [this.player.width * pane.scale, this.player.height * pane.scale]);
      this.drawn.push({ layer: "risk", side, id: rows.tube[k], crossing, region: best, words, place });
    }
  }
}

// The first place of a frame in a column that is sorted by it.
function lowest(frames, frame) {
  let [low, high] = [0, frames.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (frames[middle] < frame) low = middle + 1;
    else high = middle;
  }
  return low;
}

// A bent line from box to box; two that go opposite ways bend away from each other.
function arrow(subject, object, ratio) {
  const centre = ([x, y, wide, high]) => [x + wide / 2, y + high / 2];
  const [a, b] = [centre(subject), centre(object)];
  const [x, y] = [b[0] - a[0], b[1] - a[1]];
  const long = Math.max(1, Math.hypot(x, y));
  const bend = Math.min(60 * ratio, 0.18 * long) + 6 * ratio;
  const top = [(a[0] + b[0]) / 2 + (y / long) * bend * 2, (a[1] + b[1]) / 2 - (x / long) * bend * 2];
  const point = (t) => [0, 1].map((k) => (1 - t) ** 2 * a[k] + 2 * t * (1 - t) * top[k] + t * t * b[k]);
  const inside = ([px, py], [left, up, wide, high]) => px > left && px < left + wide && py > up && py < up + high;
  let points = Array.from({ length: 41 }, (_, k) => point(k / 40));
  const clear = points.filter((each) => !inside(each, subject) && !inside(each, object));
  if (clear.length > 4) points = clear; // where boxes overlap, the line goes from middle to middle
  return { points, from: points[0], to: points[points.length - 1], middle: points[points.length >> 1] };
}

function drawArrow(pen, { points, to }, colour, ratio, { dashed, selected }) {
  const before = points[points.length - 4] || points[0];
  const angle = Math.atan2(to[1] - before[1], to[0] - before[0]);
  for (const [wide, ink] of [[selected ? 6 : 4.2, "#000a"], [selected ? 3.2 : 2, colour]]) {
    pen.setLineDash(dashed ? [6 * ratio, 4 * ratio] : []);
    pen.lineWidth = wide * ratio;
    pen.strokeStyle = ink;
    pen.beginPath();
    points.forEach((each, k) => (k ? pen.lineTo(...each) : pen.moveTo(...each)));
    pen.stroke();
    pen.setLineDash([]);
    pen.fillStyle = ink;
    const size = (wide + 5) * ratio;
    pen.beginPath();
    pen.moveTo(to[0] + Math.cos(angle) * 2 * ratio, to[1] + Math.sin(angle) * 2 * ratio);
    for (const turn of [2.6, -2.6]) pen.lineTo(to[0] + Math.cos(angle + turn) * size, to[1] + Math.sin(angle + turn) * size);
    pen.fill();
  }
}

// A map as an image of its cells: what metrics count, from half of the range on, stands out from the rest.
function paintMap({ width, height, cells }) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(width, height);
  cells.forEach((cell, k) => {
    const share = cell / 255;
    image.data.set([255, Math.round(40 + 200 * share), 40, Math.round(share >= 0.5 ? 110 + 90 * share : 120 * share)], 4 * k);
  });
  pen.putImageData(image, 0, 0);
  return canvas;
}

// How likely each vertical region of the image is, along its lower edge.
function drawRegions(pen, pane, regions, best, [wide, high]) {
  const each = wide / regions.length;
  const tall = 0.22 * high;
  regions.forEach((share, k) => {
    pen.fillStyle = k === best ? "#56b4e9cc" : "#56b4e966";
    pen.fillRect(pane.x + k * each + 1, pane.y + high - tall * (share ?? 0), each - 2, tall * (share ?? 0));
  });
  pen.strokeStyle = "#56b4e9";
  pen.lineWidth = pane.ratio;
  pen.strokeRect(pane.x + best * each, pane.y + high - tall, each, tall);
}
