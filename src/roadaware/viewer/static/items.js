// What stands behind a number of any evaluation, and where predictions differ: lists that lead to a frame.

import { ask } from "./api.js";
import { choice, make, SHOWN } from "./panels.js";

const points = (cost) => (cost === null || cost === undefined ? "–" : (100 * cost).toFixed(1));

// The list of an evaluation that is not of road events: `view.source` is its number.
export async function listItems(panels) {
  const { view, index } = panels;
  const number = Number(view.source);
  const metrics = await panels.once(`metrics ${number}`, () => ask("/api/metrics", { evaluation: number }));
  const kinds = [...new Set(metrics.map((row) => row.kind))];
  if (!kinds.includes(view.kind)) view.kind = kinds[0];
  const find = (label) => panels.once(`items ${number} ${view.kind} ${label}`, () => ask("/api/items", { evaluation: number, metric: view.kind, label }));
  let told = await find(view.label);
  if (view.label && !told.labels.includes(view.label)) {
    view.label = "";
    told = await find("");
  }
  const counts = new Map();
  for (const row of told.rows) counts.set(row.fault, (counts.get(row.fault) || 0) + 1);
  if (!counts.has(view.fault)) view.fault = "";
  const rows = told.rows.filter((row) => !view.fault || row.fault === view.fault);
  const bar = make("div", { of: "bar" }, ...sources(panels));
  bar.append(choice("Metric", kinds.map((each) => [each, each.replaceAll("_", " ")]), view.kind, (kind) => panels.show({ kind, fault: "" })));
  if (told.labels.length) bar.append(choice("Class", [["", "all classes"], ...told.labels.map((each) => [each, each])], view.label, (label) => panels.show({ label })));
  const value = metrics.find((row) => row.kind === view.kind && row.label === (view.label || null)) || metrics.find((row) => row.kind === view.kind && row.label === null);
  const interval = value && value.low !== null ? `, ${points(value.low)} to ${points(value.high)}` : "";
  const said = value ? make("p", { of: "quiet number", text: `${view.kind.replaceAll("_", " ")}${value.label ? ` of ${value.label}` : ""}: ${value.value === null ? value.reason : points(value.value)}${interval} (${value.n} judged)` }) : null;
  const chips = faultChips(panels, counts);
  const list = make("div", { of: "rows" }, ...rows.slice(0, SHOWN).map((row) => panels.errorRow({ ...row, side: told.side })));
  const left = rows.length - SHOWN + told.more;
  const words = [rows.length ? "Points that each alone costs, – where the number does not tell." : "nothing that this number is short of", left > 0 ? `${left} more are not shown.` : "", told.strange ? `${told.strange} name a box that is not there: the sets that were named are not those that were judged.` : "", told.side ? "" : "No predictions were named: the ground truth alone is drawn."];
  return [bar, ...(said ? [said] : []), chips, list, make("p", { of: "quiet", text: words.filter(Boolean).join(" ") })];
}

export function faultChips(panels, counts) {
  const { view } = panels;
  const chips = make("div", { of: "chips", role: "group", "aria-label": "Kinds of errors" });
  for (const [fault, count] of [...counts].sort(([, a], [, b]) => b - a)) {
    chips.append(make("button", { type: "button", text: `${fault.replaceAll("_", " ")} ${count}`, "aria-pressed": view.fault === fault, click: () => panels.show({ fault: view.fault === fault ? "" : fault }) }));
  }
  return chips;
}

// Choice of what errors are of: tubes, boxes, or an evaluation.
export function sources(panels) {
  const { view, index } = panels;
  const known = [];
  if (index.error_kinds.length) known.push(["video", "tubes"]);
  if (index.box_kinds.length) known.push(["frame", "boxes"]);
  index.evaluations.forEach((each, k) => each.events || known.push([String(k), `${each.subject}: ${each.folder}`]));
  if (!known.some(([key]) => key === view.source)) view.source = known[0][0];
  return known.length > 1 ? [choice("Errors of", known, view.source, (source) => panels.show({ source, kind: "", label: "", fault: "" }))] : [];
}

// Two predictions: videos by where they differ most, and in the opened one the tubes or frames that only one has.
export async function listDifferences(panels) {
  const { view, index, app } = panels;
  const sides = Object.keys(index.sides).filter((side) => side !== "truth");
  const pair = app.pair();
  const pick = (place) => choice(place ? "Second" : "First", sides.map((side) => [side, `${side.toUpperCase()} ${index.sides[side].name}`]), pair.sides[place], (side) => {
    const other = pair.sides[1 - place] === side ? pair.sides[place] : pair.sides[1 - place];
    app.compare({ sides: place ? [other, side] : [side, other] });
  });
  const alone = make("button", { type: "button", text: "differences alone", title: "Draw only what the other lacks (D)", "aria-pressed": pair.alone, click: () => app.compare({ alone: !pair.alone }) });
  const bar = make("div", { of: "bar" }, ...(sides.length > 2 ? [pick(0), pick(1)] : []), choice("The same from an overlap of", ["0.3", "0.5", "0.75", "0.9"].map((each) => [each, `same @${each}`]), pair.overlap, (overlap) => app.compare({ overlap })), alone);
  const query = { one: pair.sides[0], other: pair.sides[1], overlap: pair.overlap };
  const key = Object.values(query).join(" ");
  const state = await panels.once(`differences ${key}`, async () => ({ rows: [], next: 0 }));
  const list = make("div", { of: "rows" });
  const note = make("p", { of: "quiet" });
  const [a, b] = pair.sides.map((side) => side.toUpperCase());
  const fill = () => {
    state.rows.sort((x, y) => y[1] + y[2] - x[1] - x[2] || x[0] - y[0]);
    list.replaceChildren(...state.rows.slice(0, SHOWN).map(([number, one, other, of]) => {
      const share = of ? Math.round((100 * (one + other)) / of) : 0;
      return make("button", { type: "button", of: "row video", "aria-current": app.number === number, click: () => app.open({ number, frame: 0 }).then(() => panels.show()) }, make("b", { text: index.videos.name[number] }), make("span", { of: "n", text: `${a} ${one} · ${b} ${other}`, title: "boxes that only one has" }), make("span", { of: "sub", text: `${share} % of ${of} boxes` }));
    }));
    note.textContent = state.next === null ? "Boxes that no box of the other overlaps so much, from the usual scores on; the videos that differ most first." : `${state.rows.length} of ${index.videos.name.length} videos compared …`;
  };
  fill();
  panels.compared = state; // the one that goes on; another choice ends it
  if (state.next !== null && !state.busy) proceed(panels, state, query, fill);
  else state.fill = fill;
  const here = make("div", { of: "rows" });
  if (app.number >= 0) {
    const rows = await panels.once(`differing ${key} ${app.number}`, () => ask("/api/differences", { ...query, video: app.number }));
    here.append(...rows.slice(0, SHOWN).map((row) => differenceRow(panels, row)));
  }
  const named = app.number >= 0 ? [make("h3", { text: `In ${index.videos.name[app.number]}` }), here.children.length ? here : make("p", { of: "quiet", text: "the two do not differ" })] : [];
  return [bar, ...named, make("h3", { text: "Videos" }), list, note];
}

async function proceed(panels, state, query, fill) {
  state.busy = true;
  state.fill = fill;
  try {
    while (state.next !== null && panels.compared === state && panels.view.tab === "compare") {
      const told = await ask("/api/differences", { ...query, first: state.next });
      state.rows.push(...told.videos);
      state.next = told.next;
      state.fill();
    }
  } catch (error) {
    panels.app.tell(error.message);
  } finally {
    state.busy = false;
  }
}

function differenceRow(panels, row) {
  const chosen = { side: row.side, tube: row.path, box: row.box, error: `only in ${row.side.toUpperCase()}` };
  const found = make("button", { type: "button", of: "row error" }, make("b", { of: "n", text: row.boxes }), make("span", { text: `only in ${row.side.toUpperCase()}` }), make("span", { of: "fault", text: row.path === null ? "boxes" : `tube ${row.path}` }), make("span", { of: "sub", text: row.span[1] - row.span[0] > 1 ? `frames ${row.span[0]} to ${row.span[1] - 1}` : `frame ${row.frame}` }));
  found.addEventListener("click", () => panels.app.open({ frame: row.frame, chosen, loop: row.span }));
  return found;
}

// Rows of a side in a frame that the other side of a pair has too, as a set of row numbers.
export function sameRows(boxes, pair, side, frame, sizes) {
  const found = new Set();
  if (!pair.sides.includes(side)) return found;
  const mine = boxes.at(side, frame);
  const theirs = boxes.at(pair.sides[pair.sides[0] === side ? 1 : 0], frame);
  if (!mine?.data || !theirs?.data) return found;
  const least = Number(pair.overlap);
  const [x, y] = [0, 1].map((axis) => (sizes[side]?.[axis] && sizes[pair.sides[pair.sides[0] === side ? 1 : 0]]?.[axis] ? sizes[side][axis] / sizes[pair.sides[pair.sides[0] === side ? 1 : 0]][axis] : 1));
  for (let row = mine.first; row < mine.end; row += 1) {
    const [a1, b1, a2, b2] = [mine.data.x1[row], mine.data.y1[row], mine.data.x2[row], mine.data.y2[row]];
    for (let other = theirs.first; other < theirs.end; other += 1) {
      const [c1, d1, c2, d2] = [theirs.data.x1[other] * x, theirs.data.y1[other] * y, theirs.data.x2[other] * x, theirs.data.y2[other] * y];
      const both = Math.max(0, Math.min(a2, c2) - Math.max(a1, c1)) * Math.max(0, Math.min(b2, d2) - Math.max(b1, d1));
      if (both && both / ((a2 - a1) * (b2 - b1) + (c2 - c1) * (d2 - d1) - both) >= least) {
        found.add(row);
        break;
      }
    }
  }
  return found;
}

// Findings of audits, doctors, checks, readers and evaluations; what names a place opens it.
export async function listFindings(panels) {
  const { view, index, app } = panels;
  const all = await panels.once("findings", () => ask("/api/findings"));
  if (!all.length) return [];
  const titles = [...new Set(all.map((row) => `${row.from}: ${row.title}`))];
  if (!titles.includes(view.finding)) view.finding = "";
  const held = all.filter((row) => !view.finding || `${row.from}: ${row.title}` === view.finding);
  const bar = make("div", { of: "bar" });
  if (titles.length > 1) bar.append(choice("Finding", [["", `all findings (${all.length})`], ...titles.map((each) => [each, `${each} (${all.filter((row) => `${row.from}: ${row.title}` === each).length})`])], view.finding, (finding) => panels.show({ finding })));
  const rows = held.slice(0, SHOWN).map((row) => {
    const opens = row.video !== null && row.video !== undefined;
    const words = [make("span", { text: row.title.replaceAll("-", " ") }), make("span", { of: "fault", text: row.rank })];
    const where = opens ? `${index.videos.name[row.video]}${row.track ? `, ${row.track}` : ""}${row.frame === null || row.frame === undefined ? "" : `, frame ${row.frame}`}` : row.named ? `${row.named} was not opened` : "";
    const rest = [make("span", { of: "sub wide", text: [where, row.words].filter(Boolean).join(": ") })];
    if (!opens) return make("div", { of: "row finding" }, ...words, ...rest);
    const chosen = row.truth_path === null ? null : { side: "truth" in index.sides ? "truth" : Object.keys(index.sides)[0], tube: row.truth_path, box: null, error: row.title };
    return make("button", { type: "button", of: "row finding event", click: () => app.open({ number: row.video, frame: row.frame ?? 0, chosen, mark: row.corners }) }, ...words, ...rest);
  });
  return [make("h3", { text: "Findings" }), bar, make("div", { of: "rows" }, ...rows), ...(held.length > SHOWN ? [make("p", { of: "quiet", text: `${held.length - SHOWN} more: choose one of the findings` })] : [])];
}
