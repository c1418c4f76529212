// Runs the flame graph's script without a browser: its elements do nothing but hold what is written into them.
// usage: node flame.mjs FRAMES.json PLACE TERM [MATCHES.json]; zooms on the frame at PLACE, searches, and prints what the page says, and
// then the lines of text in frames; how many frames stand alone as an error. With what the server finds, it is asked twice, as
// it is busy at first, and printed are what the page says, the caption of the table and the names in its rows.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [frames, place, term, matches] = process.argv.slice(2);
let labels = [];
const script = readFileSync(new URL("../../scenarios/web/static/flame.js", import.meta.url), "utf8");

function element(own = {}) {
  const children = {};
  return new Proxy({
    dataset: {}, style: { setProperty() {} }, options: [{ value: "image" }, { value: "package" }], value: "image", textContent: "", width: 12,
    clientWidth: 1200, clientHeight: 600, scrollTop: 0, isConnected: true, listeners: {},
    addEventListener(name, action) { this.listeners[name] = action; },
    querySelector: (selector) => (children[selector] ??= element()),
    querySelectorAll: () => [],
    replaceChildren(...rows) { this.rows = rows; },
    getContext: () => element({ clearRect() { labels = []; }, fillText: (text) => labels.push(text), measureText: () => ({ width: 70 }) }),
    ...own,
  }, { get: (target, name) => (name in target ? target[name] : () => element()) });
}

const window = element({ innerHeight: 900, devicePixelRatio: 1, history: element(), location: new URL(`http://localhost/flame?find=${term}`) });
const document = element();
const asked = [];
const sandbox = {
  window, document, history: window.history, location: window.location, URL, setTimeout: (action) => matches && setImmediate(action),
  getComputedStyle: () => element(), ResizeObserver: class { observe() {} },
  fetch: async (address) => {
    asked.push(address);
    const busy = asked.length === 2;
    const file = asked.length > 2 ? matches : frames;
    return { ok: !busy, status: busy ? 503 : 200, json: async () => JSON.parse(busy ? "busy" : readFileSync(file, "utf8")) };
  },
};
vm.runInNewContext(script, sandbox);
const graph = element();
await window.drawFlame(graph);
if (matches) {
  const table = document.querySelector("table[data-functions]");
  while (asked.length < 3 || !table.querySelector("caption").textContent.includes(" of ")) await new Promise(setImmediate);
  console.log(graph.querySelector(".says").textContent);
  console.log(table.querySelector("caption").textContent);
  for (const row of table.querySelector("tbody").rows) console.log(row.dataset.name);
  process.exit();
}
const { keydown } = graph.querySelector(".canvas").listeners;
for (let step = 0; step <= Number(place); step += 1) keydown({ key: "ArrowDown", preventDefault() {} });
keydown({ key: "Enter", preventDefault() {} });
console.log(graph.querySelector(".says").textContent);
for (const label of labels) console.log(label);
console.error(graph.dataset.frames);
