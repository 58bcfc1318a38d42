// The lists beside the film: videos, metrics with their curves, errors by what they cost, and what was found.

import { ask } from "./api.js";
import { buildFilters } from "./filters.js";
import { faultChips, listDifferences, listFindings, listItems, sources } from "./items.js";

export const SHOWN = 400; // rows that are put on the page at a time
const LEVELS = { video: "video_map", frame: "frame_map", av_action: "frames" };

// An element with a class, texts and attributes; names of data are only ever texts.
export function make(tag, { text, of, title, click, ...rest } = {}, ...children) {
  const found = document.createElement(tag);
  if (of) found.className = of;
  if (text !== undefined && text !== null) found.textContent = text;
  if (title) found.title = title;
  if (click) found.addEventListener("click", click);
  for (const [name, value] of Object.entries(rest)) if (value !== undefined && value !== null) found.setAttribute(name, value);
  found.append(...children.filter((each) => each !== null));
  return found;
}

export function choice(label, values, value, change) {
  const found = make("select", { "aria-label": label, title: label });
  for (const [key, words] of values) found.append(make("option", { value: key, text: words }));
  found.value = value;
  found.addEventListener("change", () => change(found.value));
  return found;
}

// What has the focus in an element that is to be filled anew; what is given puts it on what is called so by then, with
// the words that were being written in a field of a name of its own. Where it has gone elsewhere it stays there.
export function holdFocus(box) {
  const held = document.activeElement;
  if (!held || held === box || !box.contains(held)) return () => {};
  const nameOf = (each) => each.dataset.key || each.id || each.getAttribute("aria-label") || each.textContent;
  const name = nameOf(held);
  const same = () => [...box.querySelectorAll(held.tagName)].filter((each) => nameOf(each) === name);
  const place = same().indexOf(held);
  return () => {
    const found = same();
    const again = found[Math.min(place, found.length - 1)];
    if (!again || held.isConnected || (document.activeElement && document.activeElement !== document.body)) return;
    again.focus({ preventScroll: true });
    if (!held.matches("input[type=text], input[type=search]")) return;
    if (held.dataset.key) again.value = held.value;
    again.setSelectionRange(held.selectionStart, held.selectionEnd);
  };
}

const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1));

export class Panels {
  // `app` opens what is chosen; see main.js.
  constructor(tabs, list, index, app) {
    Object.assign(this, { tabs, list, index, app });
    this.view = { tab: "videos", search: "", split: "", evaluation: 0, level: "video", threshold: "", open: null, kind: "", label: "", fault: "", source: "", finding: "", side: Object.keys(index.sides).find((side) => side !== "truth") || "" };
    this.cache = new Map();
    const names = [["videos", "Videos"]];
    if (index.evaluations.length) names.push(["metrics", "Metrics"]);
    if (index.error_kinds.length || index.box_kinds.length || index.evaluations.some((each) => !each.events)) names.push(["errors", "Errors"]);
    if (Object.keys(index.sides).filter((side) => side !== "truth").length > 1) names.push(["compare", "A/B"]);
    if (Object.keys(index.runs).length) names.push(["lost", "Steps"]);
    names.push(["found", "Findings"]);
    for (const [key, words] of names) tabs.append(make("button", { type: "button", role: "tab", id: `tab-${key}`, text: words, "aria-controls": list.id, "data-tab": key, click: () => this.show({ tab: key }) }));
    tabs.addEventListener("keydown", (event) => this.turn(event));
    list.addEventListener("keydown", (event) => this.walk(event));
  }

  async once(key, get) {
    if (!this.cache.has(key)) this.cache.set(key, get());
    try {
      return await this.cache.get(key);
    } catch (error) {
      this.cache.delete(key);
      throw error;
    }
  }

  async show(changes = {}) {
    Object.assign(this.view, changes);
    const token = (this.token = {});
    for (const tab of this.tabs.children) {
      const selected = tab.dataset.tab === this.view.tab;
      tab.setAttribute("aria-selected", selected);
      tab.tabIndex = selected ? 0 : -1;
      if (selected) this.list.setAttribute("aria-labelledby", tab.id);
    }
    const giveBack = holdFocus(this.list);
    const build = { videos: this.videos, metrics: this.metrics, errors: this.errors, compare: listDifferences.bind(null, this), found: this.found, lost: this.app.lost }[this.view.tab] || this.videos;
    const slow = setTimeout(() => token === this.token && this.list.replaceChildren(make("p", { of: "quiet", text: "working it out …" })), 250);
    try {
      const parts = await build.call(this);
      if (token === this.token) this.list.replaceChildren(...parts);
      if (token === this.token) giveBack();
    } catch (error) {
      if (token === this.token) this.list.replaceChildren(make("p", { text: error.message }));
    } finally {
      clearTimeout(slow);
    }
    this.app.remember();
  }

  // Left and right go from tab to tab.
  turn(event) {
    const tabs = [...this.tabs.children];
    const at = tabs.indexOf(document.activeElement);
    const next = { ArrowLeft: tabs[at - 1] || tabs[tabs.length - 1], ArrowRight: tabs[at + 1] || tabs[0], Home: tabs[0], End: tabs[tabs.length - 1] }[event.key];
    if (at < 0 || !next || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    next.focus();
    next.click();
  }

  // Arrow keys go from row to row, and open what they come to.
  walk(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const rows = [...this.list.querySelectorAll(".row")];
    const at = rows.indexOf(document.activeElement);
    const next = rows[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
    if (next.matches(".error, .event")) next.click();
  }

  async videos() {
    const { videos, sides } = this.index;
    const splits = [...new Set((videos.splits || []).flatMap((each) => each || []))].sort();
    const search = make("input", { type: "search", placeholder: "find a video", "aria-label": "Find a video", value: this.view.search });
    const rows = make("div", { of: "rows" });
    const fill = () => {
      const wanted = this.view.search.toLowerCase();
      const passed = this.app.passed();
      const held = videos.name.map((name, k) => [name, k]).filter(([name, k]) => (!passed || passed.has(k)) && name.toLowerCase().includes(wanted) && (!this.view.split || (videos.splits[k] || []).includes(this.view.split)));
      rows.replaceChildren(
        ...held.slice(0, SHOWN).map(([name, k]) => {
          const counts = Object.keys(sides).filter((side) => sides[side].tubes).map((side) => `${side === "truth" ? "true" : side.toUpperCase()} ${videos[`tubes_${side}`][k]}`).join(" · ");
          const facts = [videos.n_frames[k] && `${videos.n_frames[k]} frames`, videos.width_px[k] && `${videos.width_px[k]} × ${videos.height_px[k]}`, videos.fps[k] && `${Number(videos.fps[k].toFixed(2))} fps`].filter(Boolean).join(", ");
          return make("button", { type: "button", of: "row video", "aria-current": this.app.number === k, click: () => this.app.open({ number: k, frame: 0 }) }, make("b", { text: name }), make("span", { of: "n quiet", text: counts, title: "tubes" }), make("span", { of: "sub", text: facts }), make("span", { of: "sub", "data-video": k }));
        }),
        ...(held.length > SHOWN ? [make("p", { of: "quiet", text: `${held.length - SHOWN} more: narrow the search` })] : []),
        ...(held.length ? [] : [make("p", { of: "quiet", text: "no video is called so" })]),
      );
    };
    search.addEventListener("input", () => {
      this.view.search = search.value;
      fill();
    });
    fill();
    const bar = make("div", { of: "bar" }, search);
    if (splits.length) bar.append(choice("Split", [["", "all splits"], ...splits.map((each) => [each, each])], this.view.split, (split) => this.show({ split })));
    return [bar, await buildFilters(this, this.app.conditions(), this.app.counted(), this.app.filter), rows];
  }

  async metrics() {
    const { view, index } = this;
    const evaluation = index.evaluations[view.evaluation];
    const rows = await this.once(`metrics ${view.evaluation}`, () => ask("/api/metrics", { evaluation: view.evaluation }));
    const levels = [...new Set(rows.map((row) => row.level))].sort((a, b) => (a === "video" ? -1 : b === "video" ? 1 : 0));
    if (!levels.includes(view.level)) view.level = levels[0];
    const thresholds = [...new Set(rows.filter((row) => row.level === view.level).map((row) => row.threshold))].filter((each) => each !== null);
    if (!thresholds.includes(view.threshold)) view.threshold = thresholds[0] ?? "";
    const held = rows.filter((row) => row.level === view.level && (row.threshold ?? "") === view.threshold);
    const bar = make("div", { of: "bar" });
    if (index.evaluations.length > 1) bar.append(choice("Evaluation", index.evaluations.map((each, k) => [String(k), each.folder]), String(view.evaluation), (value) => this.show({ evaluation: Number(value) })));
    if (levels.length > 1) bar.append(choice("Level", levels.map((each) => [each, LEVELS[each] || each]), view.level, (level) => this.show({ level, threshold: "", open: null })));
    if (thresholds.length) bar.append(choice("Overlap", thresholds.map((each) => [each, `@${each}`]), view.threshold, (threshold) => this.show({ threshold, open: null })));
    const list = make("div", { of: "rows" });
    for (const mean of held.filter((row) => row.label === null)) {
      if (!evaluation.events && !held.some((row) => row.kind === mean.kind && row.label !== null)) {
        list.append(this.metricRow(mean, mean.kind.replaceAll("_", " "), "", () => this.openClass(mean)));
        continue;
      }
      const opened = view.open === mean.kind;
      list.append(this.metricRow(mean, mean.kind.replaceAll("_", " "), "", () => this.show({ open: opened ? null : mean.kind }), opened));
      if (!opened) continue;
      const classes = held.filter((row) => row.kind === mean.kind && row.label !== null);
      classes.sort((a, b) => (a.value ?? 2) - (b.value ?? 2));
      if (!evaluation.events) list.append(this.metricRow(mean, "all classes", "class", () => this.openClass(mean)));
      for (const row of classes) list.append(this.metricRow(row, row.label, "class", () => this.openClass(row)));
    }
    const said = evaluation.resamples ? "" : "no intervals: evaluate with --resamples 1000. ";
    return [bar, list, make("p", { of: "quiet", text: `${said}Per cent; a kind opens its classes, the worst first, a class its errors.` })];
  }

  metricRow(row, name, of, click, expanded) {
    const interval = row.low === null || row.low === undefined ? "" : `${percent(row.low)} to ${percent(row.high)}`;
    return make("button", { type: "button", of: `row metric ${of}`, click, title: row.reason || row.metric, "aria-expanded": of ? undefined : String(Boolean(expanded)) }, make(of ? "span" : "b", { text: name }), make("span", { of: "n", text: percent(row.value) }), make("span", { of: "n quiet", text: interval || (of ? `${row.n} true` : "") }));
  }

  openClass(row) {
    const { events } = this.index.evaluations[this.view.evaluation];
    const kinds = { video: this.index.error_kinds, frame: this.index.box_kinds }[row.level] || [];
    if (!events) this.show({ tab: "errors", source: String(this.view.evaluation), kind: row.kind, label: row.label || "", fault: "" });
    else if (kinds.includes(row.kind)) this.show({ tab: "errors", source: row.level, kind: row.kind, label: row.label, fault: "", threshold: row.threshold });
    else this.app.tell(row.level === "av_action" ? "errors are listed of tubes and boxes: choose the level video_map or frame_map" : "name the ground truth and the predictions that were judged beside the evaluation");
  }

  async errors() {
    const { view, index } = this;
    const chosen = sources(this);
    if (!["video", "frame"].includes(view.source)) return listItems(this);
    const kinds = view.source === "frame" ? index.box_kinds : index.error_kinds;
    if (!kinds.includes(view.kind)) view.kind = kinds.find((each) => each !== "agentness") || kinds[0];
    const threshold = /^[0-9]/.test(view.threshold) && !view.threshold.includes(":") ? view.threshold : view.source === "frame" ? "0.5" : "0.2";
    const key = `errors ${view.source} ${view.side} ${view.kind} ${threshold}`;
    const all = await this.once(key, () => ask("/api/errors", { side: view.side, kind: view.kind, threshold, level: view.source }));
    const labels = [...new Set(all.map((row) => row.label))].sort();
    if (!labels.includes(view.label)) view.label = "";
    const ofLabel = all.filter((row) => !view.label || row.label === view.label);
    const counts = new Map();
    for (const row of ofLabel) counts.set(row.fault, (counts.get(row.fault) || 0) + 1);
    if (!counts.has(view.fault)) view.fault = "";
    const rows = ofLabel.filter((row) => !view.fault || row.fault === view.fault);
    const bar = make("div", { of: "bar" }, ...chosen);
    const sides = Object.keys(index.sides).filter((side) => side !== "truth");
    if (sides.length > 1) bar.append(choice("Predictions", sides.map((side) => [side, side.toUpperCase()]), view.side, (side) => this.show({ side })));
    bar.append(choice("Kind", kinds.map((each) => [each, each]), view.kind, (kind) => this.show({ kind, label: "", fault: "" })));
    bar.append(choice("Class", [["", "all classes"], ...labels.map((each) => [each, each])], view.label, (label) => this.show({ label })));
    bar.append(choice("Overlap of a hit", ["0.2", "0.3", "0.5", "0.75"].concat(["0.2", "0.3", "0.5", "0.75"].includes(threshold) ? [] : [threshold]).map((each) => [each, `@${each}`]), threshold, (value) => this.show({ threshold: value })));
    const chips = faultChips(this, counts);
    const list = make("div", { of: "rows" }, ...rows.slice(0, SHOWN).map((row) => this.errorRow(row)));
    const curve = view.label ? await this.curve(threshold) : null;
    const more = rows.length > SHOWN ? ` The first ${SHOWN} of ${rows.length}.` : "";
    return [bar, ...(curve ? [curve] : []), chips, list, make("p", { of: "quiet", text: `Points of mean average precision that each error alone costs.${more}` })];
  }

  errorRow(row) {
    const words = (row.meant_for ? `${row.label} for ${row.meant_for}` : row.label) ?? "";
    const frames = row.span[1] - row.span[0] > 1 ? `frames ${row.span[0]} to ${row.span[1] - 1}` : `frame ${row.frame}`;
    const about = [this.index.videos.name[row.video] ?? "this video was not opened", frames, row.score === null ? "" : `score ${row.score.toFixed(2)}`].filter(Boolean).join(", ");
    const cost = row.cost === null ? "–" : (100 * row.cost).toFixed(1);
    const error = [`${row.fault.replaceAll("_", " ")}: ${words}`, row.words, row.cost === null ? "" : `costs ${cost}`].filter(Boolean).join(", ");
    const chosen = chooseOf(row, row.side === undefined ? this.view.side : row.side, error);
    const found = make("button", { type: "button", of: "row error" }, make("b", { of: "n", text: cost }), make("span", { text: words }), make("span", { of: "fault", text: row.fault.replaceAll("_", " ") }), row.words ? make("span", { of: "sub wide", text: row.words }) : null, make("span", { of: "sub", text: about }));
    found.addEventListener("click", () => {
      for (const other of this.list.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
      found.setAttribute("aria-current", "true");
      this.app.open({ number: row.video, frame: row.frame, chosen, loop: row.span });
    });
    return found;
  }

  // Precision over recall of the class, as it was evaluated.
  async curve(threshold) {
    const { view, index } = this;
    const level = view.source === "frame" ? "frame" : "video:stiou";
    const at = index.evaluations.findIndex((each) => (each.levels[level] || []).includes(Number(threshold)));
    if (at < 0) return null;
    let points;
    try {
      points = await this.once(`curve ${at} ${level} ${view.kind} ${view.label} ${threshold}`, () => ask("/api/curve", { evaluation: at, level, kind: view.kind, label: view.label, threshold }));
    } catch {
      return null;
    }
    const canvas = make("canvas", { id: "curve", role: "img", "aria-label": `Precision over recall of ${view.label}: recall up to ${percent(Math.max(0, ...points.recall))} per cent of ${points.n_truth}` });
    requestAnimationFrame(() => drawCurve(canvas, points));
    return canvas;
  }

  async found() {
    const parts = [];
    const add = (title, rows) => rows.length && parts.push(make("h3", { text: title }), make("div", { of: "rows" }, ...rows));
    for (const [side, told] of Object.entries(this.app.told())) {
      const rows = told.events.map((event) =>
        make("button", { type: "button", of: "row event", click: () => this.openEvent(side, event) }, make("span", { of: "n", text: event.frame }), make("b", { text: event.event.replaceAll("_", " ") }), make("span", { text: `${event.tube === null ? "" : `#${event.tube} `}${event.words}` })),
      );
      add(`Events of this video, ${side.toUpperCase()}`, rows.slice(0, SHOWN));
    }
    parts.push(...(await listFindings(this)));
    for (const each of Object.values(this.index.sides)) {
      if (each.notice) add(each.name, [make("p", { text: each.notice })]);
    }
    return parts.length ? parts : [make("p", { of: "quiet", text: "nothing was found that is worth a word" })];
  }

  openEvent(side, event) {
    const tube = this.app.findByName(side, event.tube);
    this.app.open({ frame: event.frame, chosen: tube ? { side, tube: tube.tube, box: null } : undefined });
  }
}

// What a row selects: the predicted tube or box with the truth that it is meant for, else the truth.
function chooseOf(row, side, error) {
  const truth = { truth: row.truth_path ?? undefined, truthBox: row.truth_box ?? undefined };
  if (side && row.path !== null && row.path !== undefined) return { side, tube: row.path, box: null, ...truth, error };
  if (side && row.box !== null && row.box !== undefined) return { side, tube: null, box: row.box, ...truth, error };
  if (truth.truth !== undefined) return { side: "truth", tube: truth.truth, box: null, error };
  return truth.truthBox === undefined ? null : { side: "truth", tube: null, box: truth.truthBox, error };
}

function drawCurve(canvas, { recall, precision }) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
  Object.assign(canvas, { width: wide * ratio, height: high * ratio });
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  pen.scale(ratio, ratio);
  const [left, right, top, bottom] = [26, wide - 6, 6, high - 18];
  const x = (value) => left + value * (right - left);
  const y = (value) => bottom - value * (bottom - top);
  pen.font = "11px system-ui, sans-serif";
  pen.strokeStyle = style.getPropertyValue("--line");
  pen.fillStyle = style.getPropertyValue("--quiet");
  for (const value of [0, 0.5, 1]) {
    pen.beginPath();
    pen.moveTo(left, y(value));
    pen.lineTo(right, y(value));
    pen.stroke();
    pen.fillText(value === 0.5 ? ".5" : String(value), 8, y(value) + 4);
  }
  pen.fillText("precision over recall", left, high - 4);
  pen.strokeStyle = style.getPropertyValue("--accent");
  pen.lineWidth = 2;
  pen.beginPath();
  recall.forEach((value, k) => (k ? pen.lineTo(x(value), y(precision[k])) : pen.moveTo(x(value), y(precision[k]))));
  pen.stroke();
}
