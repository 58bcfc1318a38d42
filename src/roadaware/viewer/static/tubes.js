// The tubes of a video as they are drawn and listed: who they are, what they do in a frame, and their colours.

// Okabe and Ito's colours, which people who see few colours tell apart, and three that lie between them.
const COLOURS = ["#56b4e9", "#e69f00", "#2bc48a", "#f0e442", "#d55e00", "#cc79a7", "#8ea6ff", "#c8c8c8", "#ff8f80", "#9ad55c"];
const FIRST = ["agent", "action", "location", "duplex", "event"];
const colours = new Map();

export const listColours = () => Object.fromEntries(colours);

export function colourOf(word) {
  if (!colours.has(word)) colours.set(word, COLOURS[colours.size % COLOURS.length]);
  return colours.get(word);
}

// The paths of a side by number, each with what is said of it.
export function buildTubes(side, told) {
  const tubes = new Map();
  for (const [tube, name, first, end, score, labels] of told.paths) {
    tubes.set(tube, { side, tube, name: name ?? String(tube), first: first ?? 0, end: end ?? 0, score, labels, parts: [], says: told.says?.[tube] });
  }
  for (const [tube, parent, spans, score, labels] of told.parts) {
    const owner = tubes.get(parent);
    if (owner) owner.parts.push({ tube, spans, score, labels });
  }
  for (const tube of tubes.values()) tube.word = nameClass(tube);
  return tubes;
}

function nameClass(tube) {
  const weights = new Map();
  const add = (kind, word, weight) => {
    const key = `${FIRST.indexOf(kind) < 0 ? 9 : FIRST.indexOf(kind)}\u0000${word}`;
    weights.set(key, (weights.get(key) || 0) + weight);
  };
  for (const [kind, word, score] of tube.labels) add(kind, word, (score ?? 1) * Math.max(1, tube.end - tube.first));
  for (const part of tube.parts) {
    const length = (part.spans || [[tube.first, tube.end]]).reduce((sum, [a, b]) => sum + b - a, 0);
    for (const [kind, word, score] of part.labels) add(kind, word, (score ?? part.score ?? 1) * length);
  }
  const ranked = [...weights].sort(([a, x], [b, y]) => a[0] - b[0] || y - x || (a < b ? -1 : 1)); // its kind is the first digit
  return ranked.length ? ranked[0][0].split("\u0000")[1] : "object";
}

// What is said of a tube in a frame: the best label of each kind, as [kind, word, score].
export function labelsAt(tube, frame) {
  const best = new Map();
  const take = (kind, word, score) => {
    if (!best.has(kind) || (score ?? 1) > (best.get(kind)[1] ?? 1)) best.set(kind, [word, score]);
  };
  for (const [kind, word, score] of tube.labels) take(kind, word, score);
  for (const part of tube.parts) {
    if (part.spans && !part.spans.some(([a, b]) => frame >= a && frame < b)) continue;
    for (const [kind, word, score] of part.labels) take(kind, word, score ?? part.score);
  }
  const order = (kind) => (FIRST.indexOf(kind) < 0 ? 9 : FIRST.indexOf(kind));
  return [...best].map(([kind, [word, score]]) => [kind, word, score]).sort((a, b) => order(a[0]) - order(b[0]));
}
