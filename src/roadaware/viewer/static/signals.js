// Lanes of what is heard and measured: waveform, sounds, latency of a watch, and the likeliest crossing of a frame.

import { ask } from "./api.js";
import { colourOf } from "./tubes.js";

const MOST_BARS = 1500;
const LOUD = 32767; // the loudest sample
const WAVE = 38;
const LATE = 34;
const ROW = 13;
const MOST_LEVELS = 12;

export class Signals {
  // `redraw()` is called when something that was asked for is there.
  constructor(player, overlays, state, redraw) {
    Object.assign(this, { player, overlays, state, redraw });
    this.reset();
  }

  reset() {
    this.held = new Map(); // lane to what was asked for last, and what came
    this.highest = new Map();
    this.packed = new WeakMap();
  }

  rows() {
    const rows = [];
    if (this.player.film.sound) rows.push({ kind: "signal", high: WAVE, title: "waveform", draw: (...at) => this.drawWave(...at) });
    for (const [side, told] of Object.entries(this.overlays.told)) {
      if (!this.state.sides[side]) continue;
      if (told.sounds.length) {
        const levels = this.pack(told.sounds);
        rows.push({ kind: "signal", high: levels.length * ROW + 4, title: side === "truth" ? "sounds, true" : `sounds, ${side.toUpperCase()}`, draw: (...at) => this.drawSounds(levels, ...at) });
      }
      if (told.latency) rows.push({ kind: "signal", high: LATE, title: `latency, ${side.toUpperCase()}`, draw: (...at) => this.drawLatency(side, ...at) });
      const forecast = this.findHighest(side);
      if (forecast) rows.push({ kind: "signal", high: 40, title: "crossing, top", draw: (pen, lanes, top) => lanes.drawForecast(pen, forecast, top + 3, 32) });
    }
    return rows;
  }

  // Of all pedestrians the one who crosses most probably, frame by frame, with the interval; where nobody is selected.
  findHighest(side) {
    const all = (this.player.told[side] || {}).crossing || {};
    const { chosen } = this.state;
    const tube = chosen && chosen.side === side && chosen.tube !== null ? this.player.tubes[side]?.get(chosen.tube) : null;
    if (!Object.keys(all).length || (tube && all[tube.name])) return null;
    if (!this.highest.has(side)) {
      const best = new Map();
      for (const { frame, p, low, high } of Object.values(all)) {
        frame.forEach((each, k) => {
          if (p[k] !== null && (!best.has(each) || best.get(each)[0] < p[k])) best.set(each, [p[k], low[k], high[k]]);
        });
      }
      const frames = [...best.keys()].sort((a, b) => a - b);
      const column = (place) => frames.map((each) => best.get(each)[place]);
      this.highest.set(side, { frame: frames, p: column(0), low: column(1), high: column(2) });
    }
    return this.highest.get(side);
  }

  // Frames from a time of the film's clock, with the share of the frame that is over.
  place(time) {
    const { times } = this.player;
    if (time <= times[0]) return 0;
    const frame = this.player.frameAt(time);
    const step = frame + 1 < times.length ? times[frame + 1] - times[frame] : this.step;
    return Math.min(frame + Math.max(0, time - times[frame]) / step, times.length);
  }

  get step() {
    const { times } = this.player;
    return times.length > 1 ? (times[times.length - 1] - times[0]) / (times.length - 1) : 0.1;
  }

  time(frame) {
    const { times } = this.player;
    const whole = Math.min(times.length - 1, Math.max(0, Math.floor(frame)));
    const next = whole + 1 < times.length ? times[whole + 1] : times[whole] + this.step;
    return times[whole] + (frame - whole) * (next - times[whole]);
  }

  // What a lane asked for last; asked anew, a moment later, where the view is another by now.
  fetch(lane, path, wanted) {
    const key = JSON.stringify(wanted);
    const held = this.held.get(lane) || { key: "", data: null, wanted: null };
    this.held.set(lane, held);
    if (held.key !== key) {
      held.key = key;
      clearTimeout(held.timer);
      held.timer = setTimeout(async () => {
        try {
          const data = await ask(path, { video: this.overlays.number, ...wanted });
          if (held.key !== key || this.held.get(lane) !== held) return;
          Object.assign(held, { data, wanted });
          if (data.state === "reading") held.timer = setTimeout(() => ((held.key = ""), this.redraw()), 700);
        } catch (error) {
          held.data = { state: "none", message: error.message, low: [], high: [], most: [], mean: [] };
          held.wanted = wanted;
        }
        this.redraw();
      }, held.data ? 90 : 0);
    }
    return held;
  }

  drawWave(pen, lanes, top) {
    const [first, end] = lanes.range;
    const bars = Math.max(1, Math.min(MOST_BARS, Math.floor(lanes.across)));
    const wanted = { first: this.time(first).toFixed(6), end: Math.max(this.time(first) + 1e-3, this.time(end)).toFixed(6), bars };
    const { data, wanted: shown } = this.fetch("wave", "/api/waveform", wanted);
    const middle = top + WAVE / 2;
    const tall = WAVE / 2 - 3;
    pen.fillStyle = lanes.colours.line;
    pen.fillRect(lanes.left, middle, lanes.across, 1);
    if (!data) return;
    if (data.message || (data.state === "reading" && !data.low.length)) {
      pen.fillStyle = lanes.colours.quiet;
      pen.fillText(data.message || "reading the sound …", lanes.left + 6, middle - 4);
    }
    pen.fillStyle = lanes.colours.accent;
    const [from, each] = [Number(shown.first), (Number(shown.end) - Number(shown.first)) / data.low.length];
    // Quiet sound is drawn larger, as far as it is said.
    const peak = data.low.reduce((most, low, k) => Math.max(most, -low, data.high[k]), LOUD / 64);
    const grown = LOUD / peak;
    data.low.forEach((low, k) => {
      const left = Math.max(lanes.left, lanes.x(this.place(from + k * each)));
      const right = lanes.x(this.place(from + (k + 1) * each));
      if (right < lanes.left || left > lanes.wide) return;
      const [up, down] = [(data.high[k] / peak) * tall, (-low / peak) * tall];
      pen.fillRect(left, middle - up, Math.max(0.7, right - left), Math.max(1, up + down));
    });
    if (grown >= 1.5 && data.low.length) {
      pen.fillStyle = lanes.colours.quiet;
      pen.fillText(`× ${grown < 10 ? grown.toFixed(1) : Math.round(grown)}`, 8, middle + 14);
    }
    lanes.canvas.dataset.wave = `${data.state} ${data.low.length}`;
  }

  // Sounds in up to twelve rows in which none overlaps another, as [first, end, what, whether it has an end].
  pack(sounds) {
    const { times } = this.player;
    const known = this.packed.get(sounds);
    if (known && known.times === times) return known.levels;
    const levels = [];
    this.packed.set(sounds, { times, levels });
    for (const [, word, start, end, frame] of sounds) {
      const first = start !== null ? this.place(start) : (frame ?? 0);
      const last = end !== null && start !== null ? this.place(end) : first + 1;
      const level = levels.find((row) => row[row.length - 1][1] <= first) || (levels.length < MOST_LEVELS ? levels[levels.push([]) - 1] : null);
      if (level) level.push([first, Math.max(last, first), word, end !== null]);
    }
    return levels;
  }

  drawSounds(levels, pen, lanes, top) {
    levels.forEach((level, k) => {
      for (const [first, last, word, ends] of level) {
        const [left, right] = [Math.max(lanes.left, lanes.x(first)), Math.max(lanes.x(first) + 3, lanes.x(last))];
        if (right < lanes.left || left > lanes.wide) continue;
        pen.fillStyle = colourOf(word);
        pen.fillRect(left, top + 2 + k * ROW, ends ? right - left - 1 : 3, ROW - 2);
        if (right - left > 40) {
          pen.fillStyle = "#10151a";
          pen.fillText(lanes.clip(pen, word, right - left - 8), left + 4, top + 11 + k * ROW);
        }
      }
    });
  }

  drawLatency(side, pen, lanes, top) {
    const [first, end] = [Math.max(0, Math.floor(lanes.range[0])), Math.max(1, Math.ceil(lanes.range[1]))];
    const bars = Math.max(1, Math.min(MOST_BARS, end - first, Math.floor(lanes.across)));
    const { data, wanted } = this.fetch(`latency ${side}`, "/api/latency", { side, first, end, bars });
    if (!data) return;
    const longest = data.longest || 0;
    const [tall, bottom] = [LATE - 14, top + LATE - 2];
    const each = data.most.length ? (wanted.end - wanted.first) / data.most.length : 1;
    const drawAll = (values, ink) => {
      pen.fillStyle = ink;
      values.forEach((value, k) => {
        if (value === null || longest <= 0) return;
        const left = Math.max(lanes.left, lanes.x(wanted.first + k * each));
        const right = lanes.x(wanted.first + (k + 1) * each);
        const high = Math.max(1, (Math.max(0, value) / longest) * tall);
        if (right > lanes.left && left < lanes.wide) pen.fillRect(left, bottom - high, Math.max(0.7, right - left - 0.5), high);
      });
    };
    pen.globalAlpha = 0.4;
    drawAll(data.most, lanes.colours.accent);
    pen.globalAlpha = 1;
    drawAll(data.mean, lanes.colours.accent);
    pen.fillStyle = lanes.colours.quiet;
    pen.fillText(data.message || `longest ${longest < 1000 ? `${longest.toFixed(0)} ms` : `${(longest / 1000).toFixed(1)} s`}`, lanes.left + 6, top + 10);
    lanes.canvas.dataset.latency = String(data.longest);
  }
}
