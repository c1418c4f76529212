"use strict";
// Draws what a page holds as data: call graphs out of Graphviz's language; flame graphs are drawn by flame.js.
// Every page is complete without this file: the same numbers stand in its tables.
(() => {
  const LEAST_SCALE = 0.85;
  const LONGEST_LINE = 16;
  const NODE_NAME = /(^ *n[0-9]+ \[label=")((?:[^"\\]|\\[^n])*)/gm;

  // A name in lines, in Graphviz's language: broken behind what parts its words, and within long words.
  function broken(name) {
    const lines = [""];
    for (const part of name.match(/(?:[^:./_<,\\]|\\.){1,16}[:./_<,]*|[:./_<,]+/g) || []) {
      if (lines.at(-1) && (lines.at(-1) + part).length > LONGEST_LINE) lines.push("");
      lines[lines.length - 1] += part;
    }
    return lines.join("\\n");
  }

  async function drawCallGraph(place) {
    const viz = await Viz.instance();
    const frame = place.querySelector(".drawing");
    const source = place.querySelector("[data-dot]").textContent;
    const laidOut = (text) => viz.renderSVGElement(text, { engine: "dot" });
    const width = (svg) => svg.viewBox.baseVal.width;
    let drawing = laidOut(source);
    // Where letters would be too small to be read, names are broken into lines.
    if (width(drawing) * LEAST_SCALE > frame.clientWidth) drawing = laidOut(source.replace(NODE_NAME, (_, begin, name) => begin + broken(name)));
    drawing.setAttribute("role", "img");
    drawing.setAttribute("aria-label", "Call graph; the tables below hold the same calls and functions");
    frame.replaceChildren(drawing);
    // It begins as wide as its frame, but not much larger than it was laid out, at the heaviest function's program.
    const wide = width(drawing);
    const tall = drawing.viewBox.baseVal.height;
    let scale = 1;
    const zoom = (to) => {
      const before = scale;
      scale = Math.min(4, Math.max(0.1, to));
      drawing.setAttribute("width", wide * scale);
      drawing.setAttribute("height", tall * scale);
      const part = scale / before;
      frame.scrollLeft = (frame.scrollLeft + frame.clientWidth / 2) * part - frame.clientWidth / 2;
      frame.scrollTop = (frame.scrollTop + frame.clientHeight / 2) * part - frame.clientHeight / 2;
    };
    const fit = () => Math.min(1.4, frame.clientWidth / wide);
    zoom(fit());
    // Letters may be wider than those by which boxes were laid out.
    for (const text of drawing.querySelectorAll("g.node text")) {
      const box = text.parentNode.querySelector("polygon").getBBox().width - 10;
      if (text.getComputedTextLength() <= box) continue;
      text.setAttribute("textLength", box);
      text.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
    const root = [...drawing.querySelectorAll("g.node")].find((node) => node.querySelector("title").textContent === "n0");
    if (root) {
      const middle = (each) => each.getBoundingClientRect().top + each.getBoundingClientRect().height / 2;
      const around = [...drawing.querySelectorAll("g.cluster")].map((each) => each.getBoundingClientRect())
        .find((box) => box.top <= middle(root) && middle(root) <= box.bottom) || root.getBoundingClientRect();
      const outer = frame.getBoundingClientRect();
      frame.scrollTop += around.top - outer.top - 8;
      frame.scrollLeft += root.getBoundingClientRect().left - outer.left - 24;
    }
    place.querySelector("[data-act=svg]").addEventListener("click", () => save(drawing, null, "call-graph"));
    for (const button of place.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => zoom(Number(button.dataset.zoom) ? scale * Number(button.dataset.zoom) : fit()));
    }
    frame.addEventListener("keydown", (event) => {
      if (event.key === "+" || event.key === "-") zoom(scale * (event.key === "+" ? 1.25 : 0.8));
    });
    frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(scale * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
    }, { passive: false });
    place.dataset.drawn = "yes";
  }

  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size", "text-anchor"];

  function element(name, attributes, text = "") {
    const part = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    part.textContent = text;
    return part;
  }

  // A drawing as a file of its own: the looks that the page gives are written into it, its legend stands below.
  function standalone(svg, legend) {
    const copy = svg.cloneNode(true);
    const copies = copy.querySelectorAll("*");
    svg.querySelectorAll("*").forEach((part, index) => {
      if (part instanceof SVGGraphicsElement) {
        const style = getComputedStyle(part);
        for (const name of STYLES) copies[index].setAttribute(name, style.getPropertyValue(name));
      }
      for (const name of ["href", "xlink:href"]) if (part.hasAttribute(name)) copies[index].setAttribute(name, new URL(part.getAttribute(name), location));
      copies[index].removeAttribute("class");
    });
    const { x, y, width, height } = svg.viewBox.baseVal;
    const page = getComputedStyle(document.body);
    const items = legend ? [...legend.querySelectorAll("li")].filter((item) => item.querySelector("svg")) : [];
    const tall = height + 20 * items.length;
    items.forEach((item, index) => {
      const top = y + height + 20 * index + 4;
      const fill = getComputedStyle(item.querySelector("rect")).fill;
      copy.append(element("rect", { x: x + 8, y: top, width: 12, height: 12, fill }),
        element("text", { x: x + 26, y: top + 11, fill: page.color, "font-family": page.fontFamily, "font-size": 12 }, item.textContent.trim()));
    });
    copy.prepend(element("rect", { x, y, width, height: tall, fill: page.backgroundColor }));
    for (const name of ["class", "role", "style"]) copy.removeAttribute(name);
    for (const [name, value] of Object.entries({ viewBox: `${x} ${y} ${width} ${tall}`, width, height: tall })) copy.setAttribute(name, value);
    return new XMLSerializer().serializeToString(copy);
  }

  function save(svg, legend, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([standalone(svg, legend)], { type: "image/svg+xml" }));
    link.download = `${name}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Each chart can be saved, by a button at the end of its legend.
  function savable(svg) {
    const frame = svg.closest(".wide") || svg;
    const legend = frame.nextElementSibling?.matches(".legend") ? frame.nextElementSibling : null;
    const name = svg.getAttribute("aria-label").split(";")[0];
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = "Save as SVG";
    button.setAttribute("aria-label", `Save as SVG: ${name}`);
    button.addEventListener("click", () => save(svg, legend, name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-")));
    const place = document.createElement(legend ? "li" : "p");
    place.append(button);
    if (legend) legend.append(place);
    else frame.after(place);
  }

  // Times of a chart, chosen by dragging over it: one to look at, two to compare.
  function brush(place) {
    const svg = place.querySelector("svg");
    const says = place.querySelector(".brushed");
    const { since, until, step, left, width } = Object.fromEntries(
      ["since", "until", "step", "left", "width"].map((name) => [name, Number(place.dataset[name])]));
    place.querySelector(".hint").hidden = false;
    svg.classList.add("brush");
    let ranges = [];
    let begun = null;
    const time = (event) => {
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * width;
      return Math.min(until, Math.max(since, since + ((x - left) / (width - left)) * (until - since)));
    };
    const range = (from, to) => [since + Math.floor((Math.min(from, to) - since) / step) * step,
      Math.min(until, since + Math.ceil((Math.max(from, to) - since) / step) * step)];
    const mark = (all) => {
      for (const old of svg.querySelectorAll(".own")) old.remove();
      all.forEach(([from, to], index) => {
        const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
        const x = (at) => left + ((at - since) / (until - since)) * (width - left);
        for (const [name, value] of Object.entries({ x: x(from), y: 0, width: x(to) - x(from), height: svg.viewBox.baseVal.height - 20 })) rect.setAttribute(name, value);
        rect.setAttribute("class", index ? "range own b" : "range own");
        svg.append(rect);
      });
    };
    const moment = (time) => {
      if ("origin" in place.dataset) return new Date(1000 * (Number(place.dataset.origin) + time)).toISOString().replace(":00.000Z", "Z");
      const minutes = Math.round((time % 86400) / 60);
      const clock = [Math.floor(minutes / 60), minutes % 60].map((part) => String(part).padStart(2, "0")).join(":");
      return `day ${Math.floor(time / 86400)}${minutes ? ` ${clock}` : ""}`;
    };
    const words = ([from, to]) => `${moment(from)} to ${moment(to)}`;
    const link = (text, href) => {
      const made = document.createElement("a");
      made.textContent = text;
      made.href = href;
      return made;
    };
    const side = (name, [from, to]) => `&${name}=since%3D${from}&${name}=until%3D${to}`;
    const tell = () => {
      const [a, b] = ranges;
      says.hidden = false;
      if (b) {
        const [first, second] = a[0] <= b[0] ? [a, b] : [b, a];
        says.replaceChildren(`A is ${words(first)}, B ${words(second)}. `, link("Compare", place.dataset.diff + side("a", first) + side("b", second)));
      } else {
        says.replaceChildren(`Chosen: ${words(a)}. `, link("Show only this", `${place.dataset.query}&since=${a[0]}&until=${a[1]}`));
        if (a[0] > since) says.append(link("Compare with all before", place.dataset.diff + side("a", [since, a[0]]) + side("b", a)));
      }
      if (window.htmx) htmx.process(says);
    };
    svg.addEventListener("pointerdown", (event) => {
      begun = time(event);
      svg.setPointerCapture(event.pointerId);
      event.preventDefault();
    });
    svg.addEventListener("pointermove", (event) => {
      if (begun !== null) mark([...(ranges.length === 1 ? ranges : []), range(begun, time(event))]);
    });
    svg.addEventListener("pointerup", (event) => {
      if (begun === null) return;
      const own = range(begun, time(event));
      begun = null;
      if (own[1] <= own[0]) return;
      ranges = ranges.length === 1 ? [ranges[0], own] : [own];
      mark(ranges);
      tell();
    });
    svg.addEventListener("pointercancel", () => { begun = null; mark(ranges); });
  }

  const LONG = 12;
  const SIZES = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };

  // What a cell is sorted by: its number, or its text.
  function key(cell, isNumber) {
    const text = cell.textContent.trim();
    if (!isNumber) return text.toLowerCase();
    const full = Number(cell.title.replace(/ .*/, "").replaceAll(",", ""));
    if (cell.title && !Number.isNaN(full)) return full;
    const parts = text.replaceAll(",", "").match(/^([+-]?[0-9.]+) ?([kMGTPE])?/);
    return parts ? Number(parts[1]) * (SIZES[parts[2]] || 1) : -Infinity;
  }

  // Headings sort their table; long tables have a field that filters their rows.
  function sortable(table) {
    const body = table.tBodies[0];
    const heads = [...table.tHead.rows[0].cells];
    const usual = [...body.rows];
    if (usual.length < 2) return;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const isNumber = head.classList.contains("number");
        const first = isNumber ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? (isNumber ? "ascending" : "descending") : first;
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => [key(row.cells[column], isNumber), row]);
        rows.sort(([a], [b]) => sign * (a < b ? -1 : a > b ? 1 : 0));
        body.append(...rows.map(([, row]) => row));
      });
    });
    if (usual.length < LONG || "functions" in table.dataset) return;
    const place = document.createElement("div");
    place.className = "filter";
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("span");
    field.type = "text";
    count.setAttribute("aria-live", "polite");
    label.append("Rows with ", field);
    place.append(label, count);
    table.closest(".wide").before(place);
    field.addEventListener("input", () => {
      const term = field.value.trim().toLowerCase();
      let shown = 0;
      for (const row of usual) {
        row.hidden = term !== "" && !row.textContent.toLowerCase().includes(term);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = term ? `${shown} of ${usual.length}` : "";
    });
  }

  // Puts the answers of other pages into this one, one after the other, as they may take some seconds each.
  async function fill(places) {
    for (const place of places) {
      const link = place.querySelector("a");
      const usual = link.textContent;
      link.textContent = "Being worked out …";
      const part = place.dataset.part || "#answer";
      let found = null;
      for (let busy = 0; busy < 5 && place.isConnected;) {
        const answer = await fetch(place.dataset.fetch).catch(() => null);
        if (answer && answer.status !== 503) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          found = page.querySelector(part) || page.querySelector(".problems");
          if (!page.querySelector("[data-pending]")) break;
          found = null;
        } else busy += 1;
        await new Promise((done) => setTimeout(done, 2000));
      }
      if (!place.isConnected) return;
      if (found) {
        place.removeAttribute("data-pending");
        place.replaceChildren(...found.childNodes);
        if (window.htmx) htmx.process(place);
        draw();
      } else link.textContent = usual;
      place.dataset.filled = "yes";
    }
  }

  const narrow = window.matchMedia("(max-width: 40rem)");

  // The page one is on stands in the middle of a list of pages that is wider than the window.
  function showCurrent() {
    const link = document.querySelector("header nav a[aria-current]");
    const list = document.querySelector("header nav");
    if (link) list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
  }

  function draw() {
    for (const place of document.querySelectorAll(".timeline:not([data-brush])")) {
      place.dataset.brush = "yes";
      brush(place);
    }
    for (const svg of document.querySelectorAll("svg.chart:not([data-savable])")) {
      svg.dataset.savable = "yes";
      savable(svg);
    }
    for (const table of document.querySelectorAll("table[data-sort]")) {
      table.removeAttribute("data-sort");
      sortable(table);
    }
    const waiting = [...document.querySelectorAll("[data-fetch]:not([data-filled])")];
    for (const place of waiting) place.dataset.filled = "begun";
    fill(waiting);
    for (const list of document.querySelectorAll("details[data-lazy]:not([data-listens])")) {
      list.dataset.listens = "yes";
      list.addEventListener("toggle", () => {
        const place = list.querySelector("div");
        if (!list.open || place.dataset.fetch) return;
        place.dataset.fetch = list.dataset.lazy;
        place.dataset.filled = "begun";
        fill([place]);
      });
    }
    for (const form of document.querySelectorAll("details.asking:not([data-laid])")) {
      form.dataset.laid = "yes";
      if (narrow.matches) form.open = false;
    }
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

  document.addEventListener("DOMContentLoaded", showCurrent);
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:after:swap", () => {
    draw();
    for (const link of document.querySelectorAll("header nav a")) {
      const { pathname } = new URL(link.href);
      if (pathname === location.pathname || location.pathname.startsWith(`${pathname}/`)) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    showCurrent();
    const heading = document.querySelector("main h1");
    if (heading) heading.focus({ preventScroll: true });
  });
})();
