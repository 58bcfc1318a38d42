// A span as one HTML file for somebody without the viewer: its frames as they are drawn here, and a few lines that play them.

export const MOST_FRAMES = 300;
const QUALITY = 0.82;
const PATIENCE_MS = 5000;

// The page of frames [first, end) as a string; null where a frame does not come, or another video does. `told(done,
// total)` is called as it goes on, and ends it by answering false.
export async function buildClip(player, first, end, facts, told) {
  const images = [];
  const [before, { token }] = [player.frame, player];
  player.stop();
  for (let frame = first; frame < end; frame += 1) {
    if (!(await shown(player, frame)) || player.token !== token) return null;
    images.push(player.canvas.toDataURL("image/jpeg", QUALITY));
    if (told(images.length, end - first) === false) break;
  }
  player.seek(before);
  if (images.length < end - first) return null;
  const times = player.times.slice(first, end);
  return writePage({ ...facts, first, times, images });
}

// Wait until a frame stands on the canvas with its boxes, and with what is drawn beside them.
async function shown(player, frame) {
  const until = performance.now() + PATIENCE_MS;
  player.seek(frame);
  while (performance.now() < until) {
    await new Promise((done) => requestAnimationFrame(done));
    const boxes = player.boxes.window(frame);
    if (player.frame === frame && player.wanted === null && boxes?.sides && (player.overlays?.ready(frame) ?? true)) {
      player.draw();
      return true;
    }
  }
  return false;
}

const STYLE =
  "body{font:14px/1.5 system-ui,sans-serif;margin:0 auto;max-width:1100px;padding:12px;background:#14181d;color:#e4e8ec}" +
  "h1{font-size:16px}img{width:100%;display:block;background:#000}input{width:100%}button{font:inherit;padding:4px 14px}";

// What the page runs: kept small, and without a name from the data in it.
function run() {
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const [image, range, said, button] = ["image", "range", "said", "play"].map((id) => document.getElementById(id));
  document.title = facts.title;
  document.getElementById("title").textContent = facts.title;
  document.getElementById("about").textContent = facts.about;
  range.max = facts.images.length - 1;
  let playing = null;
  const show = (place) => {
    range.value = place;
    image.src = facts.images[place];
    image.alt = `frame ${facts.first + place}`;
    said.textContent = `frame ${facts.first + place}, ${facts.times[place].toFixed(2)} s`;
  };
  const next = () => {
    const place = (Number(range.value) + 1) % facts.images.length;
    show(place);
    const wait = place + 1 < facts.times.length ? facts.times[place + 1] - facts.times[place] : 0.5;
    playing = setTimeout(next, 1000 * wait);
  };
  const toggle = () => {
    if (playing === null) next();
    else playing = clearTimeout(playing) ?? null;
    button.textContent = playing === null ? "play" : "pause";
  };
  range.addEventListener("input", () => show(Number(range.value)));
  button.addEventListener("click", toggle);
  show(0);
}

function writePage(facts) {
  // No text of the data can end the element that holds it.
  const data = JSON.stringify(facts).replace(/</g, "\\u003c").replace(/\u2028/g, "\\u2028").replace(/\u2029/g, "\\u2029");
  const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>roadaware</title><style>${STYLE}</style></head>
<body><h1 id="title"></h1><img id="image" alt=""><input id="range" type="range" min="0" value="0" aria-label="Frame">
<p><button id="play" type="button">play</button> <span id="said"></span></p><p id="about"></p>
<script type="application/json" id="facts">${data}</script><script>(${run})()</script></body></html>
`;
}
