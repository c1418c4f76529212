"use strict";
// Draws what a page holds as data: call graphs out of Graphviz's language; flame graphs are drawn by flame.js.
// Every page is complete without this file: the same numbers stand in its tables.
(() => {
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

  const narrow = window.matchMedia("(max-width: 40rem)");

  function draw() {
    if (narrow.matches) for (const form of document.querySelectorAll("details.asking")) form.open = false;
    for (const place of document.querySelectorAll("[data-draw]:not([data-drawn])")) {
      place.dataset.drawn = "begun";
      place.hidden = false;
      (place.dataset.draw === "callgraph" ? drawCallGraph : window.drawFlame)(place).catch((error) => {
        place.dataset.drawn = "failed";
        place.querySelector(".says").textContent = "Cannot be drawn; the tables below hold the same numbers.";
        console.error(error);
      });
    }
  }

  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:after:swap", () => {
    draw();
    for (const link of document.querySelectorAll("header nav a")) {
      if (new URL(link.href).pathname === location.pathname) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    const heading = document.querySelector("main h1");
    if (heading) heading.focus({ preventScroll: true });
  });
})();
