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

  // Grey: no change. Red: larger than before, blue: smaller; full colour where half of the frame is change.
  function changeColour(frame) {
    if (frame.highlight) return "#b000b0";
    const share = Math.max(-1, Math.min(1, (2 * (frame.data.delta || 0)) / (frame.data.value || 1)));
    const less = (most) => Math.round(225 - most * Math.abs(share));
    if (share > 0.005) return `rgb(225,${less(135)},${less(135)})`;
    if (share < -0.005) return `rgb(${less(135)},${less(85)},225)`;
    return "rgb(225,225,225)";
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
    const describe = (frame) => {
      const change = frame.data.delta === undefined ? "" : `, change ${percent(frame.data.delta, whole)} of all`;
      return `${frame.data.name}: ${percent(frame.data.value, whole)}${change}`;
    };
    const chart = flamegraph.default()
      .width(Math.max(300, drawing.clientWidth))
      .cellHeight(20)
      .transitionDuration(0)
      .minFrameSize(1)
      .sort(true)
      .label(describe)
      .setSearchMatch((frame, term) => term !== "" && frame.data.name.toLowerCase().includes(term.toLowerCase()))
      .setSearchHandler((found, sum) => {
        says.textContent = `${found.length} frames match: ${percent(sum, whole)}`;
      })
      .onHover((frame) => {
        says.textContent = describe(frame);
      });
    if (place.dataset.difference) chart.setColorMapper(changeColour);
    drawing.replaceChildren();
    d3.select(drawing).datum(frames).call(chart);
    const search = place.querySelector("input[type=search]");
    search.addEventListener("input", () => (search.value ? chart.search(search.value) : chart.clear()));
    place.querySelector("button").addEventListener("click", () => {
      search.value = "";
      chart.clear();
      chart.resetZoom();
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
