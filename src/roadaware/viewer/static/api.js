// What the server is asked, and windows of boxes kept for a while.

// An address of the viewer: in a notebook the page stands behind a token that is part of its path.
export const address = (path) => location.pathname + path.slice(1);

async function reach(...request) {
  try {
    return await fetch(...request);
  } catch {
    throw new Error("the viewer does not answer: it may have ended");
  }
}

export async function ask(path, parameters = {}) {
  const query = new URLSearchParams(parameters).toString();
  return understand(await reach(query ? `${address(path)}?${query}` : address(path)));
}

export async function send(path, data) {
  return understand(await reach(address(path), { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(data) }));
}

async function understand(answer) {
  const kind = answer.headers.get("content-type") || "";
  const told = kind.startsWith("application/json");
  const found = told ? await answer.json() : { error: await answer.text() };
  if (!answer.ok || !told) throw new Error(found.error || `the viewer answered ${answer.status}`);
  return found;
}

const WINDOW = 128; // frames asked for at a time: some seconds, and some hundred kilobytes where it is crowded
const KEPT = 48; // windows that are kept

// The boxes of one video by side, frame by frame.
export class Boxes {
  // `where` holds the conditions on boxes, as the server takes them; empty for none. `arrived(error)` is called when
  // a window is there, or cannot be had.
  constructor(video, arrived, where = "") {
    this.video = video;
    this.where = where;
    this.arrived = arrived;
    this.windows = new Map();
  }

  // Rows of a side in a frame as {data, first, end}; null while they are on their way.
  at(side, frame) {
    const window = this.window(frame);
    if (!window || !window.sides) return null;
    const data = window.sides[side];
    if (!data) return { data: null, first: 0, end: 0 };
    const place = frame - window.first;
    return { data, first: data.starts[place], end: data.starts[place + 1] };
  }

  window(frame) {
    const number = Math.floor(frame / WINDOW);
    let window = this.windows.get(number);
    if (window) {
      this.windows.delete(number); // the last one looked at is dropped last
      this.windows.set(number, window);
      return window;
    }
    window = { first: number * WINDOW, sides: null };
    this.windows.set(number, window);
    if (this.windows.size > KEPT) this.windows.delete(this.windows.keys().next().value);
    const end = window.first + WINDOW;
    ask("/api/boxes", { video: this.video, first: window.first, end, ...(this.where ? { where: this.where } : {}) }).then(
      (sides) => {
        for (const data of Object.values(sides)) addStarts(data, window.first);
        window.sides = sides;
        this.arrived();
      },
      (error) => {
        window.sides = {}; // asked again when the window has been dropped
        this.arrived(error);
      },
    );
    return window;
  }
}

// Where the rows of each frame begin; rows are sorted by frame.
function addStarts(data, first) {
  data.starts = new Int32Array(WINDOW + 1);
  let row = 0;
  for (let place = 0; place <= WINDOW; place += 1) {
    while (row < data.frame.length && data.frame[row] < first + place) row += 1;
    data.starts[place] = row;
  }
}
