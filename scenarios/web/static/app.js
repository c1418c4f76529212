"use strict";
// Draws what a page holds as data: call graphs out of Graphviz's language, flame graphs out of JSON.
// Every page is complete without this file: the same numbers stand in its tables.
(() => {
  const percent = (part, whole) => (whole ? ((100 * part) / whole).toFixed(2) : "0.00") + "%";

  async function drawCallGraph(place) {
    const viz = await Viz.instance();
    const drawing = viz.renderSVGElement(place.querySelector("[data-dot]").textContent, { engine: "dot" });
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", "Call graph; the tables below hold the same calls and functions");
    const frame = place.querySelector(".drawing");
    frame.replaceChildren(drawing);
    // Begin at the heaviest function, which comes first in the text: the root of the calls.
    const root = [...drawing.querySelectorAll("g.node")].find((node) => node.querySelector("title").textContent === "n0");
    if (root) {
      const [inner, outer] = [root.getBoundingClientRect(), frame.getBoundingClientRect()];
      frame.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
      frame.scrollLeft += inner.left - outer.left - 16;
    }
    place.dataset.drawn = "yes";
  }

  // The drawing's own code recurses when it searches and zooms; browsers run out of stack some thousand calls deep.
  const MOST_DEPTH = 1000;

  // Takes away the frames that are deeper, and returns how deep the deepest was.
  function cut(root) {
    let deepest = 0;
    const waiting = [[root, 0]];
    while (waiting.length) {
      const [frame, depth] = waiting.pop();
      deepest = Math.max(deepest, depth);
      for (const child of frame.children || []) waiting.push([child, depth + 1]);
      if (depth >= MOST_DEPTH) delete frame.children;
    }
    return deepest;
  }

  // Grey: not beyond chance. Red: larger than before, blue: smaller; full colour where half of the frame is change.
  function changeColour(frame) {
    if (frame.highlight) return "#b000b0";
    if (!frame.data.significant) return "rgb(225,225,225)";
    const share = Math.max(-1, Math.min(1, (2 * frame.data.delta) / (frame.data.value || 1)));
    const less = (most) => Math.round(225 - most * (0.3 + 0.7 * Math.abs(share)));
    return share > 0 ? `rgb(225,${less(135)},${less(135)})` : `rgb(${less(135)},${less(85)},225)`;
  }

  // What the frames that were found stand for, each sample once: only those with none of them above.
  function outermost(found) {
    const all = new Set(found);
    return found.filter((frame) => {
      for (let each = frame.parent; each; each = each.parent) if (all.has(each)) return false;
      return true;
    });
  }

  const within = (frame, outer) => {
    for (let each = frame; each; each = each.parent) if (each === outer) return true;
    return false;
  };
  const sum = (frames) => frames.reduce((total, frame) => total + frame.data.value, 0);

  // The drawn frames that match, what they stand for of all and of the frame that is zoomed into.
  function matched(found, whole, zoomed) {
    const drawn = sum(outermost(found));
    let text = `${found.length} drawn frames match: ${percent(drawn, whole)} of all`;
    if (zoomed) {
      const above = found.some((frame) => within(zoomed, frame));
      const inside = found.filter((frame) => within(frame, zoomed));
      const part = above ? zoomed.data.value : sum(outermost(inside));
      text += `; within the frame shown, ${zoomed.data.name}, ${percent(part, zoomed.data.value)} of it`;
    }
    return text;
  }

  // Of a difference: how many frames changed beyond chance, and by what rule; or why that cannot be said.
  function rule(frames) {
    if (frames.lacking) return `Nothing is coloured: ${frames.lacking}.`;
    if (frames.tested === undefined) return "";
    return `${frames.significant_frames} of ${frames.tested} frames are beyond chance and coloured (chance of any false ` +
      `colour of the drawing: ${100 * frames.false_changes}%).`;
  }

  async function drawFlame(place) {
    const answer = await fetch(place.dataset.json, { headers: { Accept: "application/json" } });
    const frames = await answer.json();
    const drawing = place.querySelector(".drawing");
    const says = place.querySelector(".says");
    if (!answer.ok || !frames.value) {
      says.textContent = (frames.problems || ["No samples with stacks."]).join(" ");
      place.dataset.drawn = "no";
      return;
    }
    const whole = frames.value;
    const deepest = cut(frames);
    const left = deepest > MOST_DEPTH ? `Drawn to a depth of ${MOST_DEPTH} of ${deepest} frames; the tables hold all.` : "";
    const first = [rule(frames), left].join(" ").trim();
    says.textContent = first;
    const describe = (frame) => {
      const known = frame.data.significant === undefined || !frame.depth ? "" :
        frame.data.significant ? ", beyond chance" : ", not beyond chance";
      const change = frame.data.delta === undefined ? "" : `, change ${percent(frame.data.delta, whole)} of all${known}`;
      return `${frame.data.name}: ${percent(frame.data.value, whole)}${change}`;
    };
    const search = place.querySelector("input[type=search]");
    let zoomed = null;
    let asked = 0;
    // Adds what goes through matching functions in all, also in frames too small to be drawn, as the tables have it.
    const inAll = async (term, drawn) => {
      const own = ++asked;
      await new Promise((done) => setTimeout(done, 200));
      if (own !== asked) return;
      const found = await fetch(`${place.dataset.found}&find=${encodeURIComponent(term)}`);
      const all = await found.json();
      if (own !== asked || !found.ok) return;
      const match = all.functions === 1 ? "1 function matches" : `${all.functions} functions match`;
      says.textContent = `${drawn}. With frames too small or too deep to be drawn ${percent(all.value, all.total)} of all: ${match}.`;
    };
    const chart = flamegraph.default()
      .width(Math.max(300, drawing.clientWidth))
      .cellHeight(20)
      .transitionDuration(0)
      .minFrameSize(1)
      .sort(true)
      .label(describe)
      .setSearchMatch((frame, term) => term !== "" && frame.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found) => {
        says.textContent = matched(found, whole, zoomed);
        inAll(search.value, says.textContent);
      })
      .onClick((frame) => {
        zoomed = frame.depth ? frame : null;
        if (search.value) chart.search(search.value);
      })
      .onHover((frame) => {
        says.textContent = describe(frame);
      });
    if (place.dataset.difference) chart.setColorMapper(changeColour);
    drawing.replaceChildren();
    d3.select(drawing).datum(frames).call(chart);
    search.addEventListener("input", () => {
      if (search.value) return chart.search(search.value);
      asked += 1;
      says.textContent = first;
      return chart.clear();
    });
    place.querySelector("button").addEventListener("click", () => {
      search.value = "";
      asked += 1;
      zoomed = null;
      chart.clear();
      chart.resetZoom();
      says.textContent = first;
    });
    place.dataset.drawn = "yes";
  }

  function draw() {
    for (const place of document.querySelectorAll("[data-draw]:not([data-drawn])")) {
      place.dataset.drawn = "begun";
      place.hidden = false;
      (place.dataset.draw === "callgraph" ? drawCallGraph : drawFlame)(place).catch((error) => {
        place.dataset.drawn = "failed";
        place.querySelector(".says").textContent = "Cannot be drawn; the tables below hold the same numbers.";
        console.error(error);
      });
    }
  }

  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:after:swap", () => {
    draw();
    const heading = document.querySelector("main h1");
    if (heading) heading.focus({ preventScroll: true });
  });
})();
