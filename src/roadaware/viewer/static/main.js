// The page: its state, its keys, and what leads from one part to another.

import { address, ask, send } from "./api.js";
import { buildClip, MOST_FRAMES } from "./clip.js";
import { Exporter } from "./export.js";
import { Lanes } from "./lanes.js";
import { readConditions } from "./filters.js";
import { Overlays } from "./overlays.js";
import { choice, holdFocus, make, Panels } from "./panels.js";
import { Player } from "./player.js";
import { Signals } from "./signals.js";
import { Space } from "./space.js";
import { Tallies } from "./tallies.js";
import { labelsAt } from "./tubes.js";

const $ = (id) => document.getElementById(id);
const KEYS = [
  ["space", "play, pause"],
  [", .", "one frame back, on"],
  ["← →", "one frame; with shift ten"],
  ["J K L", "back, pause, on; again: faster"],
  ["Home End", "first, last frame"],
  ["↑ ↓", "in a list or the time line: the next error, event or tube"],
  ["O", "repeat the selected tube or span"],
  ["T, G", "tails of tubes, names at boxes"],
  ["+ − 0", "zoom in, out, whole image"],
  ["1 2 3", "right, wrong, unsure"],
  ["N, U", "a note, undo"],
  ["B, D", "predictions side by side, their differences alone"],
  ["R P", "relations, joints of people"],
  ["H X", "what is heard, and its maps; forecasts for pedestrians"],
  ["M, F", "sound, full screen"],
  ["E, C, S", "save the frame as a picture, the span as a page, as a video"],
  ["V", "the LiDAR sweep: from above, in space, hidden"],
  ["arrows + − 0 [ ]", "on the sweep: turn or move (shift), zoom, the next box"],
  ["Escape", "nothing selected"],
];

// What is drawn; player and lanes read it.
const state = {
  sides: {},
  names: {},
  split: false,
  score: 0,
  hidden: new Set(),
  chosen: null,
  tags: true,
  fps: null,
  where: "", // conditions on boxes, as the server takes them
  pair: null, // the two predictions that are compared
  passes: (side, word, score) => (side === "truth" || score === null || score === undefined || score >= state.score) && !state.hidden.has(word),
  choose: (target) => choose(target),
  verdictOf: (side, tube) => verdictOf(side, { tube })?.verdict || "",
};
const verdicts = {}; // side to those that count
const undone = []; // what each act stood in the place of, the last act last
let counted = null; // boxes that pass the conditions, by side
let passed = null; // numbers of videos with some of them
let index;
let player;
let lanes;
let overlays;
let panels;
let exporter;
let tallies;
let space;

const app = {
  number: -1,
  told: () => player.told || {},
  findByName: (side, name) => [...(player.tubes[side] || new Map()).values()].find((tube) => tube.name === name),
  tell,
  remember,
  pair: () => state.pair,
  compare(changes) {
    Object.assign(state.pair, changes);
    player.draw();
    panels.show();
  },
  conditions: () => readConditions(state.where),
  counted: () => counted,
  passed: () => passed,
  async filter(conditions) {
    const where = conditions.length ? JSON.stringify(conditions) : "";
    try {
      await applyFilter(where);
    } catch (error) {
      return tell(error.message);
    }
    if (player.boxes) player.filter();
    player.draw();
    if (panels.view.tab === "videos") panels.show();
    remember();
  },
  lost: () => space.lost(),
  relist: () => panels.show(),
  // The list of steps tells of the frame that is shown.
  relistSteps() {
    if (panels.view.tab === "lost" && !player.playing) panels.show();
  },
  // Of what is asked for while a video loads the last counts, once it is there.
  async open({ number = app.number, frame = player.frame, chosen, loop, mark }) {
    if (number < 0 || number >= index.videos.name.length) return tell("this video was not opened");
    if (number === app.number && app.loading) {
      app.wanted = { frame, chosen: chosen === undefined ? app.wanted.chosen : chosen, loop, mark };
      return app.loading;
    }
    if (number === app.number) return show({ frame, chosen, loop, mark });
    app.wanted = { frame, chosen: chosen ?? null, loop, mark };
    const loading = (app.loading = load(number, frame));
    await loading;
    if (app.loading === loading) app.loading = null;
  },
};

async function load(number, frame) {
  app.number = number;
  state.fps = index.videos.fps[number];
  state.chosen = null;
  const looping = Boolean(player.loop);
  overlays.leave();
  player.frame = frame; // `player.load` shows this frame first
  try {
    if (!(await player.load(number, index.videos.name[number], index.videos.n_frames[number]))) return;
  } catch (error) {
    if (app.number === number) app.number = -1; // a further click tries again
    return tell(error.message);
  }
  space.load(number);
  lanes.signals.reset();
  overlays.load(number);
  lanes.reset();
  if (["videos", "found"].includes(panels.view.tab)) panels.show();
  show(app.wanted, looping);
}

function show({ frame, chosen, loop, mark }, looping = Boolean(player.loop)) {
  if (chosen !== undefined) choose(chosen);
  if (loop && looping) player.loop = loop;
  player.mark = mark ? { frame, corners: mark } : null;
  player.seek(frame, true);
  count();
}

// Ask how many boxes pass the conditions, and in which videos; they hold once the server has understood them, unless
// others were asked for meanwhile.
async function applyFilter(where) {
  const asked = (applyFilter.asked = {});
  const found = where ? await ask("/api/count", { where }) : null;
  if (asked !== applyFilter.asked) return;
  counted = found;
  const held = counted && Object.values(counted).filter((each) => each.videos);
  passed = held ? new Set(held.flatMap((each) => each.videos.map(([number]) => number))) : null;
  state.where = where;
}

function tell(words) {
  const note = $("note");
  note.textContent = words;
  note.hidden = false;
  clearTimeout(tell.timer);
  tell.timer = setTimeout(() => (note.hidden = true), 6000);
}

function choose(target) {
  state.chosen = target;
  if (app.loading) app.wanted = { ...app.wanted, chosen: target, loop: undefined }; // what was pending is off
  if (player.loop) player.loop = loopSpan();
  $("loop").setAttribute("aria-pressed", Boolean(player.loop));
  showChosen();
  space.refresh(target);
  player.draw();
  lanes.draw();
  remember();
}

function chosenTube() {
  const { chosen } = state;
  return chosen && chosen.tube !== null ? (player.tubes[chosen.side] || new Map()).get(chosen.tube) : undefined;
}

const [about, judged] = [make("div"), make("div")]; // of what is selected: facts of the frame, and the verdict on it

function showChosen() {
  const box = $("chosen");
  const { chosen } = state;
  if (!chosen) {
    box.replaceChildren(make("h2", { text: "Selection" }), make("p", { of: "quiet", text: "Click a box or a bar of the time line. Dashed and hatched is ground truth, solid is predicted." }));
    return;
  }
  const tube = chosenTube();
  const side = chosen.side === "truth" ? "ground truth" : `${chosen.side.toUpperCase()} ${state.names[chosen.side]}`;
  const parts = [make("h2", { text: tube ? `${tube.word} ${tube.name}` : `box ${chosen.box}` })];
  const facts = make("table");
  const row = (name, value, score) => facts.append(make("tr", {}, make("td", { text: name }), make("td", { text: value }), make("td", { of: "n quiet", text: score ?? "" })));
  row("of", side);
  if (chosen.error) row("error", chosen.error);
  if (tube) {
    row("frames", `${tube.first} to ${tube.end - 1}`);
    if (tube.score !== null) row("score", tube.score.toFixed(3));
    for (const [kind, word, score] of labelsAt(tube, player.frame)) row(kind, word, score === null || score === undefined ? "" : score.toFixed(2));
    const crossing = player.crossing(chosen.side, tube);
    if (crossing !== null && crossing !== undefined) row("crossing", crossing.toFixed(3));
  }
  parts.push(facts);
  if (tube?.says) parts.push(make("p", { text: tube.says }));
  if (tube) parts.push(make("p", {}, make("button", { type: "button", text: "first frame", click: () => player.seek(tube.first) }), document.createTextNode(" "), make("button", { type: "button", text: "last frame", click: () => player.seek(tube.end - 1) })));
  if (about.parentElement !== box) box.replaceChildren(about, judged);
  refill(about, parts);
  // While frames go by, a note that is being written stays as it is.
  const key = [chosen.side, nameTarget({ video: app.number, ...target(chosen) }), verdicts[chosen.side]];
  if (judged.key?.every((each, k) => each === key[k])) return;
  judged.key = key;
  refill(judged, verdictParts(chosen));
}

// Other parts in an element; what had the focus keeps it.
function refill(box, parts) {
  const giveBack = holdFocus(box);
  box.replaceChildren(...parts);
  giveBack();
}

// Verdicts: sent at once; what they stood in the place of is kept for undo.

const byTarget = new WeakMap(); // verdicts of a side to those of this annotator by what they are of
const nameTarget = ({ video, tube, box }) => `${tube}\n${box}\n${video}`;
const target = (chosen) => (chosen.tube !== null ? { tube: chosen.tube, box: null } : { tube: null, box: chosen.box });

function verdictOf(side, { tube, box = null }) {
  const held = verdicts[side];
  if (!held) return undefined;
  if (!byTarget.has(held)) byTarget.set(held, new Map(held.filter((each) => each.annotator === index.annotator).map((each) => [nameTarget(each), each])));
  return byTarget.get(held).get(nameTarget({ video: index.videos.name[app.number], tube: tube ?? null, box }));
}

function verdictParts(chosen) {
  const now = verdictOf(chosen.side, target(chosen));
  const buttons = make("div", { of: "verdicts", role: "group", "aria-label": "Verdict" });
  for (const [key, word] of [["1", "right"], ["2", "wrong"], ["3", "unsure"]]) {
    buttons.append(make("button", { type: "button", text: word, title: `${word} (${key})`, "aria-pressed": now?.verdict === word, click: () => judge(word) }));
  }
  const key = `note ${chosen.side} ${nameTarget({ video: app.number, ...target(chosen) })}`;
  const note = make("input", { type: "text", id: "words", placeholder: "note (N)", "aria-label": "Note", "data-key": key, maxlength: 2000, value: now?.note || "" });
  note.addEventListener("change", () => judge(verdictOf(chosen.side, target(chosen))?.verdict || "", note.value, chosen));
  const mine = (verdicts[chosen.side] || []).filter((each) => each.annotator === index.annotator);
  const counts = ["right", "wrong", "unsure"].map((word) => `${mine.filter((each) => each.verdict === word).length} ${word}`).join(", ");
  return [
    make("h3", { text: "Verdict" }),
    buttons,
    note,
    make("p", { of: "quiet number", text: `${index.annotator}: ${counts}` }),
    make("p", {}, make("button", { type: "button", text: "undo", title: "Take the last verdict back (U)", click: undo }), document.createTextNode(" "), make("button", { type: "button", text: "corrections", title: "Save the verdicts as corrections, as `label import` reads them", click: () => download(chosen.side) })),
  ];
}

async function judge(word, note, chosen = state.chosen) {
  if (!chosen) return tell("select a box first");
  const before = verdictOf(chosen.side, target(chosen));
  const verdict = note === undefined && before?.verdict === word ? "" : word;
  const act = { side: chosen.side, video: index.videos.name[app.number], frame: player.frame, ...target(chosen), verdict, note: note ?? before?.note ?? "" };
  if (await write(act)) undone.push({ ...act, verdict: before?.verdict || "", note: before?.note || "" });
}

async function undo() {
  const act = undone.pop();
  if (!act) return tell("there is nothing to undo");
  if (!(await write(act))) undone.push(act);
}

async function write(act) {
  try {
    verdicts[act.side] = await send("/api/verdicts", act);
  } catch (error) {
    tell(error.message);
    return false;
  }
  showChosen();
  lanes.draw();
  return true;
}

async function download(side) {
  const answer = await fetch(`${address("/api/corrections")}?side=${encodeURIComponent(side)}`);
  if (!answer.ok) return tell((await answer.json()).error);
  save(await answer.blob(), "corrections.parquet");
}

function save(blob, name) {
  if (!blob) return tell("the browser could not make the file");
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The span that was dragged or is repeated, else that of the selected tube.
function selectedSpan() {
  const tube = chosenTube();
  return lanes.chosenSpan || player.loop || (tube ? [tube.first, tube.end] : null);
}

// The selected span as mp4 or GIF.
function saveVideo() {
  const span = selectedSpan();
  if (!span) return tell("select a tube, or drag a span on the time line");
  const [first, end] = [Math.max(0, span[0]), Math.min(span[1], player.count)];
  const layers = [...overlays.on].filter((layer) => overlays.has(layer));
  if (first < end) exporter.open({ number: app.number, name: index.videos.name[app.number], first, end, state, layers });
}

// The selected span, or that of the selected tube, as one file.
async function saveClip() {
  const span = selectedSpan();
  if (!span) return tell("select a tube, or drag a span on the time line");
  if (saveClip.going) return tell("a clip is being saved: Escape ends that");
  const going = (saveClip.going = { on: true });
  const [first, end] = [Math.max(0, span[0]), Math.min(span[1], player.count, span[0] + MOST_FRAMES)];
  const name = index.videos.name[app.number];
  const facts = {
    title: `${name}, frames ${first} to ${end - 1}`,
    about: `${Object.entries(state.names).map(([side, each]) => `${side === "truth" ? "truth" : side.toUpperCase()}: ${each}`).join(", ")}. Dashed is ground truth, solid is predicted; scores from ${state.score.toFixed(2)}.`,
  };
  const told = (done, total) => (tell(`frame ${done} of ${total}`), going.on);
  const page = await buildClip(player, first, end, facts, told).finally(() => (saveClip.going = null));
  if (page === null) return tell(going.on ? "a frame of the span could not be shown" : "no clip was saved");
  if (span[1] - span[0] > end - first) tell(`the first ${end - first} frames were saved`);
  save(new Blob([page], { type: "text/html" }), `${name}-${first}-${end - 1}.html`);
}

// What stands above and below the film.

function buildHeader() {
  for (const [side, facts] of Object.entries(index.sides)) {
    state.sides[side] = true;
    state.names[side] = facts.name;
    const button = make("button", { type: "button", "aria-pressed": "true", "data-side": side, title: `${facts.name}: shown or not` });
    button.append(strokeOf(side), document.createTextNode(side === "truth" ? `truth: ${facts.name}` : `${side.toUpperCase()}: ${facts.name}`));
    button.addEventListener("click", () => {
      state.sides[side] = !state.sides[side];
      refresh();
    });
    $("sides").append(button);
  }
  const predicted = Object.entries(index.sides).filter(([side]) => side !== "truth");
  if (predicted.length > 1) state.pair = { sides: [predicted[0][0], predicted[1][0]], overlap: "0.5", alone: false };
  $("split").hidden = predicted.length < 2;
  $("score-label").hidden = predicted.length === 0;
  // In the steps of the slider, in which boxes are counted.
  state.score = predicted.length ? Math.round(100 * Math.min(...predicted.map(([, facts]) => facts.min_score))) / 100 : 0;
  $("score").addEventListener("input", () => {
    state.score = Number($("score").value);
    refresh();
  });
  $("split").addEventListener("click", () => act("split"));
  $("theme").addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).colorScheme === "dark";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    keep("roadaware-theme", document.documentElement.dataset.theme);
    recolour();
  });
  $("help").addEventListener("click", () => $("keys").showModal());
  for (const [keys, words] of KEYS) $("key-table").append(make("tr", {}, make("td", {}, make("kbd", { text: keys })), make("td", { text: words })));
  $("rate").replaceWith(Object.assign(choice("Speed", player.rates.map((each) => [String(each), `${each} ×`]), "1", (value) => (player.playing ? player.play(Number(value)) : (player.rate = Number(value)))), { id: "rate" }));
  for (const button of document.querySelectorAll("[data-do]")) button.addEventListener("click", () => act(button.dataset.do));
}

// What is drawn in the colours of the page is drawn anew.
function recolour() {
  lanes.draw();
  if ($("curve")) panels.show();
}

// Browsers may deny a page in a frame its storage.
function keep(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function strokeOf(side) {
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of [["width", "18"], ["height", "11"], ["aria-hidden", "true"]]) drawn.setAttribute(name, value);
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const look = { x: 1, y: 1, width: 16, height: 9, fill: "none", stroke: "currentColor", "stroke-width": 1.6, ...(side === "truth" ? { "stroke-dasharray": "3 2" } : {}) };
  for (const [name, value] of Object.entries(look)) box.setAttribute(name, value);
  drawn.append(box);
  return drawn;
}

function refresh() {
  for (const button of $("sides").children) button.setAttribute("aria-pressed", state.sides[button.dataset.side]);
  $("split").setAttribute("aria-pressed", state.split);
  $("loop").setAttribute("aria-pressed", Boolean(player.loop));
  $("tails").setAttribute("aria-pressed", player.tails);
  $("sound").setAttribute("aria-pressed", !$("film").muted && player.film.sound === true);
  $("volume").hidden = !player.film.sound;
  $("score").value = state.score;
  $("score-value").textContent = state.score.toFixed(2);
  player.draw();
  lanes.draw();
  space.refresh();
  count();
  remember();
}

// How many tubes pass the filters, side by side, and the classes that can be hidden.
function count() {
  const words = new Map();
  const told = [];
  for (const [side, tubes] of Object.entries(player.tubes)) {
    let shown = 0;
    for (const tube of tubes.values()) {
      if (tube.score === null || side === "truth" || tube.score >= state.score) words.set(tube.word, (words.get(tube.word) || 0) + 1);
      shown += state.passes(side, tube.word, tube.score) ? 1 : 0;
    }
    if (index.sides[side].tubes) told.push(`${side === "truth" ? "true" : side.toUpperCase()} ${shown} of ${tubes.size}`);
  }
  $("counts").textContent = $("counts").title = told.length ? `tubes: ${told.join(", ")}` : "";
  const sorted = [...words].sort(([a], [b]) => (a < b ? -1 : 1));
  const key = JSON.stringify([sorted, [...state.hidden].sort()]);
  if ($("classes").dataset.shown !== key) {
    $("classes").dataset.shown = key;
    refill($("classes"), sorted.map(([word, number]) => make("button", { type: "button", "aria-pressed": !state.hidden.has(word), "data-key": word, title: `${word}: shown or not`, text: `${word} ${number}`, click: () => toggleClass(word) })));
  }
  tallies?.update(state);
}

function toggleClass(word) {
  if (!state.hidden.delete(word)) state.hidden.add(word);
  refresh();
}

function changed(frame) {
  if (!player || !lanes || !panels) return;
  if (changed.sound !== player.film.sound) {
    changed.sound = player.film.sound; // a copy is there by now
    refresh();
  }
  $("play").textContent = player.playing ? "pause" : "play";
  $("clock").textContent = `frame ${frame} of ${player.count} · ${(player.times[frame] ?? 0).toFixed(2)} s`;
  lanes.move(frame);
  space?.move(frame);
  if (state.chosen && !player.playing) showChosen();
  if (!player.playing) remember();
}

// What is repeated: the span that was dragged, else that of the selected tube.
function loopSpan() {
  const tube = chosenTube();
  return lanes.chosenSpan || (tube ? [tube.first, tube.end] : null);
}

function setLoop(on) {
  player.loop = on ? loopSpan() : null;
  if (on && !player.loop) tell("select a tube, or drag a span on the time line");
}

// Escape: nothing is selected, nor will be by what is on its way.
function leave() {
  if (saveClip.going) saveClip.going.on = false;
  overlays.select(null);
  choose(null);
}

function faster() {
  const rates = player.rates.filter((each) => each > 0);
  return player.playing && player.rate > 0 ? rates[Math.min(rates.length - 1, rates.indexOf(player.rate) + 1)] : 1;
}

function act(what) {
  const acts = {
    play: () => (player.playing ? player.stop() : player.play(Math.abs(player.rate) || 1)),
    back: () => player.step(-1),
    forward: () => player.step(1),
    loop: () => setLoop(!player.loop),
    tails: () => (player.tails = !player.tails),
    sound: () => (player.film.sound ? ($("film").muted = !$("film").muted) : tell("this video has no sound")),
    fit: () => player.zoomBy(1 / player.zoom.scale),
    full: () => (document.fullscreenElement ? document.exitFullscreen() : $("view").requestFullscreen()).catch((error) => tell(error.message)),
    save: () => $("picture").toBlob((blob) => save(blob, `${index.videos.name[app.number]}-${player.frame}.png`)),
    clip: () => saveClip(),
    video: () => saveVideo(),
    split: () => (state.split = !state.split),
    alone: () => state.pair && (state.pair.alone = !state.pair.alone),
    tags: () => (state.tags = !state.tags),
    space: () => space.toggle(),
  };
  acts[what]();
  if (["loop", "tails", "sound", "split", "tags", "alone"].includes(what)) refresh();
  if (what === "alone" && panels.view.tab === "compare") panels.show();
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=text], input[type=search], select") || $("keys").open || $("export").open) return;
  // A key that is held goes on through frames, and does all else once.
  if (event.defaultPrevented || (event.repeat && !/^(Arrow.*|[,.+=-])$/.test(event.key))) return;
  const by = event.shiftKey ? 10 : 1;
  const acts = {
    " ": () => act("play"),
    k: () => player.stop(),
    j: () => player.play(player.playing && player.rate < 0 ? Math.max(-4, player.rate * 2) : -1),
    l: () => player.play(faster()),
    ",": () => player.step(-1),
    ".": () => player.step(1),
    ArrowLeft: () => player.step(-by),
    ArrowRight: () => player.step(by),
    Home: () => player.seek(0),
    End: () => player.seek(player.count - 1),
    o: () => act("loop"),
    t: () => act("tails"),
    g: () => act("tags"),
    "+": () => player.zoomBy(1.25),
    "=": () => player.zoomBy(1.25),
    "-": () => player.zoomBy(0.8),
    0: () => act("fit"),
    1: () => judge("right"),
    2: () => judge("wrong"),
    3: () => judge("unsure"),
    n: () => $("words")?.focus(),
    u: () => undo(),
    b: () => act("split"),
    d: () => act("alone"),
    m: () => act("sound"),
    v: () => index.space && act("space"),
    f: () => act("full"),
    e: () => act("save"),
    c: () => act("clip"),
    s: () => act("video"),
    "?": () => $("keys").showModal(),
    Escape: () => leave(),
  };
  // The space bar presses a button or opens a fold that has the focus, and other keys move a slider.
  if (event.key === " " && event.target.matches("button, summary")) return;
  if (/^(Arrow|Home|End|Page)/.test(event.key) && event.target.matches("input")) return;
  const found = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!found && overlays.press(event.key.toLowerCase())) return event.preventDefault();
  if (!found) return;
  event.preventDefault();
  found();
}

// The address holds what is seen, so that it can be sent and kept.

function remember() {
  clearTimeout(remember.timer);
  remember.timer = setTimeout(() => {
    if (app.number < 0) return;
    const { chosen } = state;
    const parts = { v: index.videos.name[app.number], f: player.frame, s: state.score };
    if (chosen) parts.t = `${chosen.side}:${chosen.tube !== null ? `t${chosen.tube}` : `b${chosen.box}`}${chosen.truth === undefined ? "" : `:${chosen.truth}`}`;
    if (state.hidden.size) parts.hide = [...state.hidden].join("\n");
    const off = Object.keys(state.sides).filter((side) => !state.sides[side]);
    if (off.length) parts.off = off.join(",");
    if (state.split) parts.split = 1;
    if (state.where) parts.where = state.where;
    if (space.mode) parts.p = `${space.mode},${space.colour}`;
    if (overlays.on.size) parts.on = [...overlays.on].join(",");
    const { tab, kind, label, fault, threshold, side, source } = panels.view;
    parts.tab = tab;
    if (tab === "errors") Object.assign(parts, { kind, label, fault, th: threshold, side, of: source });
    if (state.pair && (tab === "compare" || state.pair.alone)) parts.ab = [...state.pair.sides, state.pair.overlap, state.pair.alone ? 1 : 0].join(",");
    history.replaceState(null, "", `${location.pathname}#${new URLSearchParams(Object.entries(parts).filter(([, value]) => value !== ""))}`);
  }, 150);
}

function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = Math.max(0, index.videos.name.indexOf(parts.get("v")));
  const score = Number(parts.get("s"));
  if (parts.has("s") && score >= 0 && score <= 1) state.score = Math.round(100 * score) / 100;
  state.hidden = new Set((parts.get("hide") || "").split("\n").filter(Boolean));
  for (const side of (parts.get("off") || "").split(",")) if (side in state.sides) state.sides[side] = false;
  state.split = parts.get("split") === "1";
  overlays.on = new Set((parts.get("on") || "").split(",").filter((layer) => overlays.buttons.has(layer)));
  const found = /^([a-z]+):([tb])(\d+)(?::(\d+))?$/.exec(parts.get("t") || "");
  let chosen = null;
  const [one, other, overlap, alone] = (parts.get("ab") || "").split(",");
  if (state.pair && [one, other].every((side) => side in state.sides && side !== "truth") && one !== other && /^0\.[0-9]{1,3}$/.test(overlap)) Object.assign(state.pair, { sides: [one, other], overlap, alone: alone === "1" });
  if (found && found[1] in state.sides) {
    const id = Number(found[3]);
    chosen = { side: found[1], tube: found[2] === "t" ? id : null, box: found[2] === "b" ? id : null };
    if (found[4] !== undefined) chosen.truth = Number(found[4]);
  }
  const frame = Number(parts.get("f")) || 0;
  const fallback = index.evaluations.length ? "metrics" : "videos";
  const tabs = ["videos", "metrics", "errors", "compare", "found", "lost"];
  const tab = tabs.includes(parts.get("tab")) ? parts.get("tab") : fallback;
  const view = { tab };
  for (const [key, name] of [["kind", "kind"], ["label", "label"], ["fault", "fault"], ["threshold", "th"], ["source", "of"]]) if (parts.get(name)) view[key] = parts.get(name);
  if ((parts.get("side") || "truth") !== "truth" && parts.get("side") in state.sides) view.side = parts.get("side");
  return { number, frame, chosen, view };
}

async function start() {
  document.documentElement.dataset.theme = keep("roadaware-theme") || "";
  history.replaceState(null, "", `${location.pathname}${location.hash}`); // the key is in the cookie now, and goes out of sight
  index = await ask("/api/index");
  document.title = `${Object.values(index.sides).map((each) => each.name).join(", ")} – roadaware`;
  player = new Player($("picture"), $("film"), $("message"), state, changed);
  lanes = new Lanes($("scroll"), $("lanes"), $("head"), player, state, (frame) => player.seek(frame), (span) => {
    if (player.loop || span) player.loop = span;
    refresh();
  });
  overlays = player.overlays = new Overlays(player, state, $("layers"), $("relations"), () => {
    if (overlays.relation) lanes.chosenSpan = overlays.relation.span; // to be repeated by O, and saved by C
    lanes.draw();
    remember();
  }, tell);
  lanes.signals = new Signals(player, overlays, state, () => lanes.draw());
  $("volume").addEventListener("input", () => {
    $("film").volume = Number($("volume").value);
    $("film").muted = $("film").volume === 0;
    refresh();
  });
  panels = new Panels($("tabs"), $("list"), index, app);
  exporter = new Exporter($("export"), tell);
  tallies = new Tallies($("all-counts"), $("list"));
  space = new Space($("view"), index, player, state, app);
  window.viewer = { player, lanes, state, overlays, tallies, space }; // for tests and the curious
  buildHeader();
  const { number, frame, chosen, view } = recall();
  Object.assign(panels.view, view);
  const told = new URLSearchParams(location.hash.slice(1));
  const where = JSON.stringify(readConditions(told.get("where")));
  if (where !== "[]") await applyFilter(where).catch((error) => tell(error.message));
  const seen = /^(bird|cloud),(height|distance|cluster|step)$/.exec(told.get("p") || "");
  addEventListener("keydown", press);
  addEventListener("hashchange", () => location.reload());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  const known = Object.keys(index.sides).map(async (side) => {
    verdicts[side] = await ask("/api/verdicts", { side }).catch((error) => (tell(error.message), []));
  });
  if (index.videos.name.length) await app.open({ number, frame, chosen });
  if (seen && index.space) {
    space.colour = seen[2];
    space.show(seen[1]);
  }
  await Promise.all(known);
  await panels.show();
  showChosen();
  refresh();
}

start().catch((error) => tell(error.message));
