// Draws a flame graph without a browser and prints the colours in which it has text in frames.
// usage: node colours.mjs FRAMES.json light|dark COLOUR TERM; prints JSON: fill, opacity and text's colour of each frame with text
import { readFileSync } from "node:fs";
import vm from "node:vm";

const [frames, scheme, colour, term] = process.argv.slice(2);
const statics = new URL("../../scenarios/web/static/", import.meta.url);
const sheet = readFileSync(new URL("style.css", statics), "utf8");
const [light, dark] = sheet.split("@media (prefers-color-scheme: dark)");
const variable = (name) => ` ${(scheme === "dark" ? dark : light).match(new RegExp(`${name}: (#[0-9a-f]+)`))[1]}`;

function element(own = {}) {
  const children = {};
  return new Proxy({
    dataset: {}, style: { setProperty() {} }, value: colour, textContent: "", width: 12, clientWidth: 30000, clientHeight: 600,
    scrollTop: 0, isConnected: true, addEventListener() {}, querySelectorAll: () => [],
    options: ["image", "package", "change"].map((value) => ({ value })),
    querySelector: (selector) => (children[selector] ??= element()),
    ...own,
  }, { get: (target, name) => (name in target ? target[name] : () => element()) });
}

const texts = new Map();
const context = {
  fillRect() { this.rect = [this.fillStyle, this.globalAlpha]; },
  fillText() { texts.set([...this.rect, this.fillStyle].join("|"), [...this.rect, this.fillStyle]); },
  measureText: () => ({ width: 70 }), setTransform() {}, clearRect() {}, strokeRect() {},
};
const location = new URL(`http://localhost/flame?find=${term}&colour=${colour}`);
const window = element({ innerHeight: 900, devicePixelRatio: 1, location, matchMedia: () => element({ matches: scheme === "dark" }) });
const place = element({ dataset: colour === "change" ? { difference: "" } : {} });
place.querySelector("canvas").getContext = () => context;
const answer = { ok: true, json: async () => JSON.parse(readFileSync(frames, "utf8")) };
vm.runInNewContext(readFileSync(new URL("flame.js", statics), "utf8"), {
  window, document: element(), history: element(), location, URL, setTimeout: () => 0, fetch: async () => answer,
  getComputedStyle: () => ({ getPropertyValue: variable }), ResizeObserver: class { observe() {} },
});
await window.drawFlame(place);
console.log(JSON.stringify({ ground: variable("--ground").trim(), texts: [...texts.values()] }));
