// The time line: the own vehicle, events, gaps, crossing, and the tubes of each side by class, truth above predictions.

import { colourOf } from "./tubes.js";

const ROW = 9;
const TITLE = 15;
const LEFT = 92;

export class Lanes {
  // `seek(frame)` and `span([first, end] or null)` are called for clicks and drags.
  constructor(scroll, canvas, head, player, state, seek, span) {
    Object.assign(this, { scroll, canvas, head, player, state, seek, span });
    this.bars = [];
    this.range = [0, 1];
    this.chosenSpan = null;
    this.signals = null; // lanes of what is heard and measured, see signals.js
    this.hatches = new Map();
    this.listen();
    // The canvas is as large as what is seen of the lanes, and stays there while they are scrolled.
    scroll.addEventListener("scroll", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(scroll);
  }

  reset() {
    this.range = [0, Math.max(1, this.player.count)];
    this.chosenSpan = null;
    this.draw();
  }

  get left() {
    return LEFT;
  }

  get across() {
    return this.wide - LEFT - 8;
  }

  clip(pen, words, wide) {
    return clip(pen, words, wide);
  }

  x(frame) {
    const [first, end] = this.range;
    return LEFT + ((frame - first) / (end - first)) * (this.wide - LEFT - 8);
  }

  frameAt(x) {
    const [first, end] = this.range;
    return Math.min(this.player.count - 1, Math.max(0, Math.floor(first + ((x - LEFT) / (this.wide - LEFT - 8)) * (end - first))));
  }

  // The rows from top to bottom; each knows how high it is and how it is drawn.
  plan() {
    const { player, state } = this;
    const rows = [];
    for (const [side, told] of Object.entries(player.told || {})) {
      if (!state.sides[side]) continue;
      if (told.av.length) rows.push({ kind: "av", side, high: 15, title: side === "truth" ? "vehicle, true" : `vehicle, ${side.toUpperCase()}`, spans: told.av });
      if (told.events.length) rows.push({ kind: "events", side, high: 15, title: `events, ${side.toUpperCase()}`, events: told.events });
      if (told.gaps.length) rows.push({ kind: "gaps", side, high: 10, title: "gaps", spans: told.gaps });
      const chosen = state.chosen;
      if (chosen && chosen.side === side && chosen.tube !== null) {
        const tube = player.tubes[side].get(chosen.tube);
        const forecast = tube && told.crossing[tube.name];
        if (forecast) rows.push({ kind: "crossing", side, high: 44, title: "crossing", forecast });
      }
    }
    for (const side of Object.keys(player.tubes)) {
      if (!state.sides[side]) continue;
      const classes = new Map();
      for (const tube of player.tubes[side].values()) {
        const picked = state.chosen && state.chosen.side === side && state.chosen.tube === tube.tube;
        if (!picked && !state.passes(side, tube.word, tube.score)) continue;
        if (!classes.has(tube.word)) classes.set(tube.word, []);
        classes.get(tube.word).push(tube);
      }
      const count = [...classes.values()].reduce((sum, each) => sum + each.length, 0);
      rows.push({ kind: "title", side, high: TITLE + 4, title: `${side === "truth" ? "ground truth" : `${side.toUpperCase()} ${state.names[side]}`}: ${count} tubes` });
      for (const [word, tubes] of [...classes].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const levels = pack(tubes);
        rows.push({ kind: "tubes", side, title: word, levels, high: levels.length * ROW + 4 });
      }
    }
    return rows;
  }

  // The rows as they were planned last, where nothing that decides on them has changed.
  planned() {
    const { player, state } = this;
    const { chosen } = state;
    const key = JSON.stringify([state.score, [...state.hidden], state.sides, chosen && [chosen.side, chosen.tube]]);
    if (this.rows && this.rows.key === key && this.rows.told === player.told && this.rows.tubes === player.tubes) return this.rows.rows;
    this.rows = { key, told: player.told, tubes: player.tubes, rows: this.plan() };
    return this.rows.rows;
  }

  // Lanes are drawn once for each image of the screen, however often they are asked for.
  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.drawNow();
    });
  }

  drawNow() {
    if (!this.player.told) return;
    const ratio = window.devicePixelRatio || 1;
    this.wide = this.scroll.clientWidth;
    const rows = [...(this.signals ? this.signals.rows() : []), ...this.planned()];
    const high = Math.max(this.scroll.clientHeight, 20 + rows.reduce((sum, row) => sum + row.high, 0));
    const seen = this.scroll.clientHeight;
    const size = { width: Math.round(this.wide * ratio), height: Math.round(seen * ratio) };
    if (this.canvas.width !== size.width || this.canvas.height !== size.height) Object.assign(this.canvas, size);
    this.canvas.style.height = `${seen}px`;
    this.head.style.height = `${high}px`;
    this.top = this.scroll.scrollTop;
    this.bottom = this.top + seen;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, size.width, size.height);
    const style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    this.colours = { ink: ink("--ink"), quiet: ink("--quiet"), line: ink("--line"), bad: ink("--bad"), accent: ink("--accent"), sheet: ink("--sheet") };
    pen.scale(ratio, ratio);
    pen.translate(0, -this.top);
    pen.font = "11px system-ui, sans-serif";
    this.bars = [];
    this.drawRuler(pen, high);
    let top = 20;
    for (const row of rows) {
      // Of rows that are not seen only the places of bars are wanted, for the arrow keys.
      if (row.kind === "tubes" || (top < this.bottom && top + row.high > this.top)) this.drawRow(pen, row, top);
      top += row.high;
    }
    if (this.chosenSpan) {
      pen.globalAlpha = 0.16;
      pen.fillStyle = this.colours.accent;
      pen.fillRect(this.x(this.chosenSpan[0]), 0, this.x(this.chosenSpan[1]) - this.x(this.chosenSpan[0]), high);
      pen.globalAlpha = 1;
    }
    this.move(this.player.frame);
  }

  drawRuler(pen, high) {
    const [first, end] = this.range;
    const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000, 100000];
    const step = steps.find((each) => ((this.wide - LEFT) * each) / (end - first) >= 64) || 1000000;
    pen.strokeStyle = this.colours.line;
    pen.fillStyle = this.colours.quiet;
    pen.lineWidth = 1;
    for (let frame = Math.ceil(first / step) * step; frame < end; frame += step) {
      const x = Math.round(this.x(frame)) + 0.5;
      pen.beginPath();
      pen.moveTo(x, 14);
      pen.lineTo(x, high);
      pen.stroke();
      const time = this.player.times[Math.min(frame, this.player.count - 1)];
      pen.fillText(`${frame}  ${time.toFixed(1)} s`, x + 3, 12);
    }
    pen.fillText("frame", 8, 12);
  }

  drawRow(pen, row, top) {
    const { colours } = this;
    pen.fillStyle = row.kind === "title" ? colours.ink : colours.quiet;
    if (row.kind === "title") {
      pen.font = "600 11px system-ui, sans-serif";
      pen.fillText(row.title, 8, top + TITLE);
      pen.font = "11px system-ui, sans-serif";
      return;
    }
    pen.fillText(clip(pen, row.title, LEFT - 14), 8, top + 10);
    if (row.kind === "signal") {
      row.draw(pen, this, top);
    } else if (row.kind === "tubes") {
      row.levels.forEach((tubes, level) => tubes.forEach((tube) => this.drawBar(pen, tube, top + 2 + level * ROW)));
    } else if (row.kind === "av") {
      for (const [first, end, word] of row.spans) {
        const [left, right] = [this.x(first), this.x(end)];
        if (right < LEFT) continue;
        pen.fillStyle = colourOf(word);
        pen.fillRect(Math.max(LEFT, left), top + 2, Math.max(1, right - Math.max(LEFT, left) - 1), 11);
        if (right - left > 40) {
          pen.fillStyle = "#10151a";
          pen.fillText(clip(pen, word, right - Math.max(LEFT, left) - 8), Math.max(LEFT, left) + 4, top + 11);
        }
      }
    } else if (row.kind === "events") {
      for (const event of row.events) {
        const x = this.x(event.frame);
        if (x < LEFT) continue;
        pen.fillStyle = event.event.startsWith("crossing") || event.event === "source" ? colours.bad : colours.accent;
        pen.beginPath();
        pen.moveTo(x, top + 3);
        pen.lineTo(x + 4, top + 11);
        pen.lineTo(x - 4, top + 11);
        pen.fill();
      }
    } else if (row.kind === "gaps") {
      pen.fillStyle = colours.bad;
      for (const [first, end] of row.spans) if (this.x(end) > LEFT) pen.fillRect(Math.max(LEFT, this.x(first)), top + 3, Math.max(2, this.x(end) - this.x(first)), 5);
    } else if (row.kind === "crossing") {
      this.drawForecast(pen, row.forecast, top + 3, row.high - 8);
    }
  }

  drawForecast(pen, { frame, p, low, high }, top, tall) {
    const y = (value) => top + tall * (1 - value);
    pen.fillStyle = this.colours.line;
    pen.fillRect(LEFT, y(0.5), this.wide - LEFT - 8, 1);
    pen.globalAlpha = 0.3;
    pen.fillStyle = this.colours.bad;
    frame.forEach((each, k) => {
      if (low[k] !== null && high[k] !== null && this.x(each) >= LEFT) pen.fillRect(this.x(each), y(high[k]), Math.max(1, this.x(each + 1) - this.x(each)), Math.max(1, y(low[k]) - y(high[k])));
    });
    pen.globalAlpha = 1;
    pen.strokeStyle = this.colours.bad;
    pen.lineWidth = 1.5;
    pen.beginPath();
    frame.forEach((each, k) => (k && frame[k - 1] === each - 1 ? pen.lineTo(this.x(each + 0.5), y(p[k])) : pen.moveTo(this.x(each + 0.5), y(p[k]))));
    pen.stroke();
  }

  drawBar(pen, tube, top) {
    const [left, right] = [Math.max(LEFT, this.x(tube.first)), this.x(tube.end)];
    if (right < LEFT || left > this.wide) return;
    const wide = Math.max(2, right - left - 1);
    this.bars.push({ tube, left, right: left + wide, top, bottom: top + ROW });
    if (top > this.bottom || top + ROW < this.top) return;
    const chosen = this.state.chosen;
    const selected = chosen && ((chosen.side === tube.side && chosen.tube === tube.tube) || (tube.side === "truth" && chosen.truth === tube.tube));
    pen.fillStyle = colourOf(tube.word);
    if (tube.side === "truth") {
      // Hatched, as truth is dashed on the film.
      pen.globalAlpha = 0.35;
      pen.fillRect(left, top, wide, ROW - 2);
      pen.globalAlpha = 1;
      pen.fillStyle = this.hatch(pen, colourOf(tube.word));
      pen.fillRect(left, top, wide, ROW - 2);
    } else {
      pen.globalAlpha = tube.score === null ? 1 : 0.35 + 0.65 * tube.score;
      pen.fillRect(left, top, wide, ROW - 2);
      pen.globalAlpha = 1;
    }
    const verdict = this.state.verdictOf(tube.side, tube.tube);
    if (verdict) {
      pen.fillStyle = this.colours.ink;
      pen.fillText(verdict === "right" ? "✓" : verdict === "wrong" ? "✗" : "?", Math.min(left + wide + 2, this.wide - 12), top + 8);
    }
    if (selected) {
      pen.strokeStyle = this.colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(left - 1, top - 1, wide + 2, ROW);
    }
  }

  // Stripes of a colour; as many small boxes would take longer than all else.
  hatch(pen, colour) {
    if (!this.hatches.has(colour)) {
      const tile = document.createElement("canvas");
      Object.assign(tile, { width: 6, height: 1 });
      const own = tile.getContext("2d");
      own.fillStyle = colour;
      own.fillRect(0, 0, 3, 1);
      this.hatches.set(colour, pen.createPattern(tile, "repeat"));
    }
    return this.hatches.get(colour);
  }

  move(frame) {
    const x = this.x(frame + 0.5);
    this.head.style.transform = `translateX(${x}px)`;
    this.head.style.visibility = x < LEFT ? "hidden" : "visible";
  }

  listen() {
    let start = null;
    const place = (event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top + this.scroll.scrollTop];
    };
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      start = place(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x] = place(event);
      if (Math.abs(x - start[0]) > 5) {
        const [a, b] = [this.frameAt(start[0]), this.frameAt(x)];
        this.chosenSpan = [Math.min(a, b), Math.max(a, b) + 1];
        this.draw();
      }
    });
    this.canvas.addEventListener("pointerup", (event) => {
      if (!start) return;
      const [x, y] = place(event);
      if (Math.abs(x - start[0]) > 5) {
        this.span(this.chosenSpan);
      } else {
        this.chosenSpan = null;
        this.span(null);
        const bar = this.bars.find((each) => x >= each.left - 2 && x <= each.right + 2 && y >= each.top && y <= each.bottom);
        if (bar) this.state.choose({ side: bar.tube.side, tube: bar.tube.tube, box: null });
        if (x >= LEFT) this.seek(this.frameAt(x));
        this.draw();
      }
      start = null;
    });
    this.canvas.addEventListener("pointercancel", () => {
      // The browser scrolls instead: what was dragged until then is no span.
      if (start) this.chosenSpan = this.player.loop;
      start = null;
      this.draw();
    });
    this.canvas.addEventListener("dblclick", () => {
      this.range = [0, Math.max(1, this.player.count)];
      this.draw();
    });
    this.scroll.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      const [first, end] = this.range;
      const count = Math.max(1, this.player.count);
      if (event.shiftKey) {
        const by = Math.min(count - end, Math.max(-first, ((event.deltaY || event.deltaX) / 600) * (end - first)));
        this.range = [first + by, end + by];
      } else {
        const here = this.frameAt(place(event)[0]);
        const size = Math.min(count, Math.max(8, (end - first) * Math.exp(event.deltaY / 300)));
        const from = Math.min(count - size, Math.max(0, here - ((here - first) / (end - first)) * size));
        this.range = [from, from + size];
      }
      this.draw();
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
      event.preventDefault();
      const chosen = this.state.chosen;
      const at = this.bars.findIndex(({ tube }) => chosen && tube.side === chosen.side && tube.tube === chosen.tube);
      const next = this.bars[at < 0 ? 0 : at + (event.key === "ArrowDown" ? 1 : -1)];
      if (!next) return;
      this.state.choose({ side: next.tube.side, tube: next.tube.tube, box: null });
      this.seek(Math.floor((next.tube.first + next.tube.end) / 2));
      if (next.top < this.scroll.scrollTop || next.bottom > this.scroll.scrollTop + this.scroll.clientHeight) this.scroll.scrollTop = next.top - 40;
    });
  }
}

// Tubes in rows in which none overlaps another.
function pack(tubes) {
  const levels = [];
  for (const tube of [...tubes].sort((a, b) => a.first - b.first)) {
    const level = levels.find((row) => row[row.length - 1].end <= tube.first);
    if (level) level.push(tube);
    else levels.push([tube]);
  }
  return levels;
}

function clip(pen, words, wide) {
  if (pen.measureText(words).width <= wide) return words;
  let kept = words;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > wide) kept = kept.slice(0, -1);
  return `${kept}…`;
}
