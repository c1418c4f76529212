// Runs the flame graph's script without a browser: its elements do nothing but hold what is written into them.
// usage: node flame.mjs FRAMES.json PLACE TERM; zooms on the frame at PLACE, searches, and prints what the page says, and
// then the lines of text in frames; how many frames stand alone as an error.
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [frames, place, term] = process.argv.slice(2);
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
    getContext: () => element({ clearRect() { labels = []; }, fillText: (text) => labels.push(text), measureText: () => ({ width: 70 }) }),
    ...own,
  }, { get: (target, name) => (name in target ? target[name] : () => element()) });
}

const window = element({ innerHeight: 900, devicePixelRatio: 1, history: element(), location: new URL(`http://localhost/flame?find=${term}`) });
const sandbox = {
  window, document: element(), history: window.history, location: window.location, URL, setTimeout: () => 0,
  getComputedStyle: () => element(), ResizeObserver: class { observe() {} },
  fetch: async () => ({ ok: true, json: async () => JSON.parse(readFileSync(frames, "utf8")) }),
};
vm.runInNewContext(script, sandbox);
const graph = element();
await window.drawFlame(graph);
const { keydown } = graph.querySelector(".canvas").listeners;
for (let step = 0; step <= Number(place); step += 1) keydown({ key: "ArrowDown", preventDefault() {} });
keydown({ key: "Enter", preventDefault() {} });
console.log(graph.querySelector(".says").textContent);
for (const label of labels) console.log(label);
console.error(graph.dataset.frames);
