"use strict";
// Flame graphs on a canvas: root on top or below, the sampled function on top, or callers above and callees below of one
// function. What is looked at (frame, search, colours) is in the URL; view and function are the server's. Beside the graph
// stands a table of its functions: a row shows the frames of its function, a frame the row of its own.
(() => {
  const LEAST_ROW = 20;
  const MOST_ROW = 72;
  const LINE = 17; // Pixels of a line of text in a row.
  const ROOM = 170; // Pixels of the window that are left to what stands around the drawing.
  const SEVERAL = "several images";
  // What compilers and loaders put behind a dot, and the ends of file names: no part of a name to be read alone.
  const SUFFIX = /^(?:[0-9].*|.{1,2}|.*[^\w$<>*()[\]].*|cold|part|isra|constprop|lto_priv|llvm|plt|abi0)$/;
  const UNGROUPED = new Set(["", "no image", SEVERAL, "all others"]);
  const PAD = 4;
  const LEAST_WIDTH = 0.4;
  const SLIVER = 2; // Pixels below which frames are not told apart.
  const LEGIBLE = 52; // Pixels in which the beginning of a name can be read.
  const MOST_ROWS = 10000; // Of the table, if so many are wanted.
  const SVG_WIDTH = 1200;
  const NONE = -1;
  // Hues of the groups, the largest first, neighbours far apart; then grey.
  const HUES = [28, 205, 140, 330, 262, 58, 178, 8, 230, 95];
  const NIGHT = [58, 60, 52, 66, 72, 52, 50, 66, 70, 52]; // How light these are on dark pages, in per cent, to be as bright as each other.
  const UNITS = {
    nanoseconds: [1e-9, "s"], microseconds: [1e-6, "s"], milliseconds: [1e-3, "s"], seconds: [1, "s"], bytes: [1, "B"],
  };
  const TIMES = [[86400, "days"], [3600, "hours"], [60, "minutes"]];
  const PREFIXES = ["", "k", "M", "G", "T", "P", "E", "Z"];

  const percent = (part, whole, digits = 2) => `${(whole ? (100 * part) / whole : 0).toFixed(digits)}%`;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  const digits = (amount) => (amount < 1e3 ? amount.toPrecision(4) : Math.round(amount).toLocaleString("en"));

  function quantity(value, unit) {
    const [scale, symbol] = UNITS[unit] || [1, ""];
    let amount = value * scale;
    for (const [size, name] of symbol === "s" ? TIMES : []) if (amount >= size) return `${digits(amount / size)} ${name}`;
    let prefix = 0;
    while (amount >= 1000 && prefix < PREFIXES.length - 1) {
      amount /= 1000;
      prefix += 1;
    }
    return `${digits(amount)} ${PREFIXES[prefix]}${symbol || " events"}`.replace("  ", " ");
  }

  // Place of the last separator of a name that is in no bracket, or none.
  function lastOutside(name, separator) {
    let depth = 0;
    for (let at = name.length - 1; at >= 0; at -= 1) {
      if (">)]}".includes(name[at])) depth += 1;
      else if ("<([{".includes(name[at])) depth -= 1;
      else if (depth <= 0 && name.startsWith(separator, at)) return at;
    }
    return NONE;
  }

  // Package, name space or class of a function's name; nothing of a plain name.
  function packageOf(name) {
    const colons = lastOutside(name, "::");
    if (colons > 0) return name.slice(0, colons).split("::")[0];
    const slash = lastOutside(name, "/");
    const dot = name.indexOf(".", slash + 1);
    if (dot > 0 && (slash > 0 || name.startsWith("(*", dot + 1))) return name.slice(0, dot);
    const last = lastOutside(name, ".");
    return last > 0 ? name.slice(0, last) : "";
  }

  // A name, and what is left of it without its first parts, the longest first, each with a mark of what is left out.
  function shortened(name) {
    const ways = [];
    let rest = name;
    let end = name.length;
    for (;;) {
      const [separator, at] = ["/", "::", "."].map((each) => [each, lastOutside(rest, each)]).reduce((a, b) => (b[1] > a[1] ? b : a));
      if (at <= 0) return [name, ...ways.reverse()];
      const begin = at + separator.length;
      if (begin < end && !(separator === "." && SUFFIX.test(name.slice(begin, end)))) ways.push(`…${name.slice(begin)}`);
      rest = name.slice(0, at);
      end = at;
    }
  }

  // A name in lines of at most so many letters, broken behind what parts its words, and within words if they may be.
  function wrapped(name, room, whole) {
    const lines = [""];
    for (let part of name.match(/[^:./_,<( -]*[:./_,<( -]*/g)) {
      if (whole && part.length > room) return [];
      if ((lines.at(-1) + part).length > room && lines.at(-1)) lines.push("");
      const size = Math.ceil(part.length / Math.ceil(part.length / room));
      for (; part.length > room; part = part.slice(size)) lines.splice(-1, 1, part.slice(0, size), "");
      lines[lines.length - 1] += part;
    }
    return lines.filter(Boolean);
  }

  // Beginning and end of a name, as its end often is what distinguishes it.
  function cut(name, room) {
    const end = Math.floor((room - 1) / 2);
    return room < 5 || !name ? "" : `${name.slice(0, room - 1 - end)}…${name.slice(-end)}`;
  }

  function hash(text, seed = 0x811c9dc5) {
    let value = seed;
    for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0;
    return value;
  }

  class FlameGraph {
    constructor(place, answer) {
      this.place = place;
      this.answer = answer;
      this.difference = "difference" in place.dataset;
      this.box = place.querySelector(".canvas");
      this.canvas = place.querySelector("canvas");
      this.spacer = place.querySelector(".spacer");
      this.says = place.querySelector(".says");
      this.tip = place.querySelector(".tip");
      this.chosen = place.querySelector(".chosen");
      this.search = place.querySelector("input[type=search]");
      this.colour = place.querySelector("select");
      this.pane = place.querySelector(".functions");
      this.more = document.querySelector("[data-more]");
      this.context = this.canvas.getContext("2d");
      this.whole = answer.value;
      this.zoomed = [NONE, NONE];
      this.selected = NONE;
      this.pointed = NONE;
      this.term = "";
      this.named = "";
      this.order = "own";
      this.asked = 0;
      this.listed = new URL(location).searchParams.get("find") || "";
      this.row = LEAST_ROW;
      this.layOut();
      this.group();
      this.takeTable();
      this.listen();
      this.read();
    }

    // -- frames ----------------------------------------------------------------------------------------------------

    // Numbers the frames of all trees through, with row, left and right end in the value of what is drawn.
    layOut() {
      const { trees, view } = this.answer;
      const sandwich = view === "sandwich";
      const frames = (this.frames = []);
      let rowsAbove = 0;
      trees.forEach((tree, which) => {
        const number = new Array(tree.parent.length).fill(NONE);
        const used = new Map();
        tree.parent.forEach((parent, index) => {
          if (sandwich && index === 0) return;
          const above = parent === NONE ? NONE : number[parent];
          const top = above === NONE;
          const start = top ? 0 : frames[above].left + (used.get(above) || 0);
          if (!top) used.set(above, (used.get(above) || 0) + tree.value[index]);
          number[index] = frames.length;
          const name = this.answer.functions.name[tree.function[index]];
          frames.push({
            which, parent: above, depth: top ? 0 : frames[above].depth + 1, name, function: tree.function[index],
            value: tree.value[index], own: tree.own[index], left: start,
            // Sums above 2^53 are rounded: no frame is drawn beyond the one that it is in.
            right: top ? tree.value[index] : Math.min(frames[above].right, start + tree.value[index]),
            low: tree.low && tree.low[index], high: tree.high && tree.high[index],
            delta: tree.delta && tree.delta[index], significant: tree.significant && tree.significant[index],
            key: hash(`\0${name}`, top ? hash(String(which)) : frames[above].key), children: [], twin: NONE,
          });
          if (!top) frames[above].children.push(number[index]);
          if (which === 1) rowsAbove = Math.max(rowsAbove, frames[number[index]].depth);
        });
      });
      const deepest = frames.reduce((most, frame) => Math.max(most, frame.which ? 0 : frame.depth), 0);
      // The function in focus is the first frame of both trees; the second is drawn as the first.
      this.focus = sandwich ? 0 : NONE;
      const second = sandwich ? frames.findIndex((frame) => frame.which === 1) : NONE;
      if (second !== NONE) {
        frames[0].twin = second;
        frames[second].twin = 0;
      }
      this.rows = Array.from({ length: deepest + rowsAbove + 1 }, () => []);
      frames.forEach((frame, index) => {
        frame.up = view === "flame" || frame.which === 1;
        frame.row = frame.which === 1 ? rowsAbove - frame.depth : view === "flame" ? deepest - frame.depth : rowsAbove + frame.depth;
        if (index !== second) this.rows[frame.row].push(index);
      });
      for (const row of this.rows) row.sort((a, b) => frames[a].left - frames[b].left);
      this.tops = Array.from({ length: this.rows.length + 1 }, (_, row) => row * LEAST_ROW);
      this.top = frames.length ? frames[0].value : 0;
    }

    // Colours of images or packages: those in which most is spent come first.
    group() {
      const { name, own } = this.answer.functions;
      this.groups = {};
      const functionless = (at) => !this.answer.functions.value[at];
      for (const kind of ["image", "package"]) {
        const of = name.map((_, index) => this.groupOf(kind, index));
        const sums = new Map();
        of.forEach((each, index) => sums.set(each, (sums.get(each) || 0) + own[index]));
        const largest = [...sums].sort((a, b) => b[1] - a[1]).slice(0, HUES.length);
        this.groups[kind] = { place: new Map(largest.map(([each], index) => [each, index])), largest, of };
        // A function of several images is of that of its caller; a root frame is of the image called like it.
        for (const frame of this.frames) {
          const own = functionless(frame.function) ? frame.name : of[frame.function];
          const caller = frame.parent === NONE || this.answer.view === "callers" ? null : this.frames[frame.parent];
          frame.group = { ...frame.group, [kind]: own === SEVERAL && caller && caller.depth ? caller.group[kind] : own };
        }
      }
    }

    groupOf(kind, at) {
      const { name, image } = this.answer.functions;
      return (kind === "package" && packageOf(name[at])) || image[at] || "no image";
    }

    // Functions that a search found too, of which no frame is drawn.
    add(functions) {
      const known = this.answer.functions;
      const names = new Set(known.name);
      functions.name.forEach((name, index) => {
        if (names.has(name)) return;
        for (const column of Object.keys(known)) known[column].push(functions[column][index]);
        for (const [kind, { of }] of Object.entries(this.groups)) of.push(this.groupOf(kind, known.name.length - 1));
      });
    }

    // What colours say unless one chooses: the change, or the image, or the package where all is of one image.
    get usual() {
      const first = this.colour.options[0].value;
      const images = new Set(this.answer.functions.image.filter((image) => image && image !== SEVERAL));
      return first === "image" && images.size < 2 ? "package" : first;
    }

    range(which) {
      const zoomed = this.zoomed[which];
      return zoomed === NONE ? [0, this.top] : [this.frames[zoomed].left, this.frames[zoomed].right];
    }

    above(frame) {
      const path = new Set();
      for (let at = frame; at !== NONE; at = this.frames[at].parent) path.add(at);
      return path;
    }

    get shown() {
      return Math.max(this.zoomed[0], this.zoomed[1]);
    }

    matches(frame) {
      return this.term !== "" && frame.name.toLowerCase().includes(this.term);
    }

    // Whether a frame stands out: a search, or a row of the table, is about it.
    standsOut(frame) {
      return this.named ? frame.name === this.named : this.matches(frame);
    }

    // -- colours ---------------------------------------------------------------------------------------------------

    fill(frame) {
      const night = dark.matches;
      if (this.standsOut(frame)) return night ? "hsl(295 75% 74%)" : "hsl(295 80% 82%)";
      if (this.colour.value === "change") return this.changeColour(frame, night);
      if (frame.parent === NONE && frame.name === "all" && this.focus === NONE) return night ? "hsl(220 6% 58%)" : "hsl(220 8% 88%)";
      return this.groupColour(frame.group[this.colour.value], (hash(frame.name) % 7) - 3);
    }

    groupColour(group, shade = 0) {
      const hue = this.groups[this.colour.value].place.get(group);
      return hue === undefined ? this.pale(group, shade) : this.hue(hue, shade);
    }

    // The groups that the legend does not name are pale, what has no group is grey.
    pale(group, shade) {
      const night = dark.matches;
      if (UNGROUPED.has(group)) return night ? `hsl(220 6% ${60 + shade}%)` : `hsl(220 8% ${84 + shade}%)`;
      const hue = hash(group) % 360;
      return night ? `hsl(${hue} 20% ${62 + shade}%)` : `hsl(${hue} 30% ${86 + shade}%)`;
    }

    // How opaque a frame is: those above the one that is shown, and those that a search leaves out, step back.
    opacity(frame, faded) {
      const back = faded || ((this.term || this.named) && !this.standsOut(frame));
      return !back ? 1 : dark.matches ? 0.2 : 0.3;
    }

    // How opaque slivers are: what a search is about is none of them.
    get blockOpacity() {
      return this.term || this.named ? 0.2 : 0.5;
    }

    // Colour of the text in frames: dark in bright ones, on dark pages too; pale in those that step back.
    ink(opacity) {
      const style = getComputedStyle(this.place);
      return style.getPropertyValue(opacity < 1 ? "--faint" : dark.matches ? "--ground" : "--ink").trim();
    }

    // Slivers of one group stand in its colour, others in grey, paler than frames.
    blockColour(group) {
      if (group === "" || this.colour.value === "change") return dark.matches ? "hsl(220 6% 40%)" : "hsl(220 8% 91%)";
      return this.groupColour(group);
    }

    hue(index, shade = 0) {
      return dark.matches ? `hsl(${HUES[index]} 60% ${NIGHT[index] + shade}%)` : `hsl(${HUES[index]} 62% ${78 + shade}%)`;
    }

    // Grey: not beyond chance, or not tested. Red: larger than before, blue: smaller; strongest where half is change.
    changeColour(frame, night) {
      if (!frame.significant) return night ? "hsl(220 6% 56%)" : "hsl(220 8% 87%)";
      const strength = Math.min(1, (2 * Math.abs(frame.delta)) / (frame.value || 1));
      const hue = frame.delta > 0 ? 4 : 215;
      return night ? `hsl(${hue} ${Math.round(55 + 30 * strength)}% ${Math.round(64 + 2 * strength)}%)`
        : `hsl(${hue} ${Math.round(55 + 35 * strength)}% ${Math.round(84 - 16 * strength)}%)`;
    }

    // -- drawing ---------------------------------------------------------------------------------------------------

    // Rows whose names can be read are as high as the window allows, rows of slivers as low as a line of text.
    measure(width) {
      const legible = this.rows.map((_, row) => {
        let all = 0;
        let wide = 0;
        this.boxes(width, row, row + 1, (frame, index, x, span) => {
          all += span;
          if (span >= LEGIBLE) wide += span;
        });
        return wide > all / 4;
      });
      const high = legible.filter(Boolean).length;
      const room = window.innerHeight - ROOM - LEAST_ROW * (this.rows.length - high);
      this.row = Math.max(LEAST_ROW, Math.min(MOST_ROW, Math.floor(room / Math.max(1, high))));
      this.tops = [0];
      for (const each of legible) this.tops.push(this.tops.at(-1) + (each ? this.row : LEAST_ROW));
    }

    height(row) {
      return this.tops[row + 1] - this.tops[row];
    }

    // The row at a height of the whole drawing.
    rowAt(y) {
      return this.tops.findLastIndex((top) => top <= y);
    }

    draw() {
      const ratio = window.devicePixelRatio || 1;
      const width = this.box.clientWidth;
      if (!width) return;
      const measured = [width, window.innerHeight, ...this.zoomed].join();
      if (measured !== this.measured) this.measure(width);
      this.measured = measured;
      const total = this.tops.at(-1) + 1;
      this.spacer.style.height = `${total}px`;
      const height = Math.min(this.box.clientHeight, total);
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
      const ink = getComputedStyle(this.place).getPropertyValue("--ink");
      const [text, pale] = [this.ink(1), this.ink(0)];
      const { context } = this;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      context.font = '12px ui-monospace, "DejaVu Sans Mono", monospace';
      context.textBaseline = "middle";
      this.letter = context.measureText("MMMMMMMMMM").width / 10;
      const offset = this.box.scrollTop;
      const marks = [];
      let drawn = 0;
      this.blocks(width, this.rowAt(offset), this.rowAt(offset + height) + 1, (frame, index, x, span, faded) => {
        const y = this.tops[frame.row] - offset;
        const high = this.height(frame.row);
        drawn += 1;
        context.globalAlpha = this.opacity(frame, faded);
        context.fillStyle = this.fill(frame);
        context.fillRect(x, y + 1, Math.max(0.6, span - (span > 4 ? 1 : 0)), high - 1);
        context.fillStyle = context.globalAlpha < 1 ? pale : text;
        context.globalAlpha = 1;
        this.labels(frame, span).forEach((words, line, all) => context.fillText(words, x + PAD, y + this.middle(high, line, all.length)));
        if (index === this.selected || index === this.pointed || index === this.focus) marks.push([index, x, y, span, high]);
      }, (row, x, span, group) => {
        context.globalAlpha = this.blockOpacity;
        context.fillStyle = this.blockColour(group);
        context.fillRect(x, this.tops[row] - offset + 1, span, this.height(row) - 1);
        context.globalAlpha = 1;
      });
      for (const [index, x, y, span, high] of marks) {
        context.strokeStyle = ink;
        context.lineWidth = index === this.selected ? 2 : 1;
        context.strokeRect(x + 0.5, y + 1.5, Math.max(1, span - 2), high - 2);
      }
      this.place.dataset.frames = String(drawn);
      this.place.dataset.row = String(this.row);
    }

    // Calls `each` with frames as `boxes` does, but `block` with row, place, width and group of neighbours that are slivers.
    // A sliver that is selected, looked for or beyond chance is none of a block.
    blocks(width, first, last, each, block) {
      let run = null;
      const end = () => {
        if (run && run.right - run.left >= LEAST_WIDTH) block(run.row, run.left, run.right - run.left, run.group);
        run = null;
      };
      this.boxes(width, first, last, (frame, index, x, span, faded) => {
        const alone = span >= LEAST_WIDTH && (index === this.selected || index === this.pointed || this.standsOut(frame) ||
          (frame.significant && this.colour.value === "change"));
        if (span >= SLIVER || alone) {
          each(frame, index, x, span, faded);
          return;
        }
        if (run && (run.row !== frame.row || x > run.right + 1)) end();
        const group = frame.group[this.colour.value] || "";
        run = run || { row: frame.row, left: x, right: x, group };
        run.right = Math.max(run.right, x + span);
        if (group !== run.group) run.group = "";
      }, 0);
      end();
    }

    // Calls `each` with the frames of some rows that are wide enough to be seen.
    boxes(width, first, last, each, least = LEAST_WIDTH) {
      const paths = this.zoomed.map((zoomed) => this.above(zoomed));
      for (let row = Math.max(0, first); row < Math.min(last, this.rows.length); row += 1) {
        for (const index of this.rows[row]) {
          const frame = this.frames[index];
          const [from, to] = this.range(frame.which);
          if (frame.left >= to || frame.right <= from) continue;
          const x = (Math.max(0, frame.left - from) / (to - from)) * width;
          const span = (Math.min(to, frame.right) - from) / (to - from) * width - x;
          if (span < least) continue;
          const zoomed = this.zoomed[frame.which];
          each(frame, index, x, span, zoomed !== NONE && zoomed !== index && paths[frame.which].has(index));
        }
      }
    }

    // Lines of text that have room in a frame: its name, in a high row also its share and what is known of that.
    labels(frame, span) {
      const room = Math.floor((span - 2 * PAD) / this.letter);
      if (room < 3) return [];
      const share = percent(frame.value, this.whole);
      const most = Math.floor(this.height(frame.row) / LINE);
      const name = this.shortName(frame.name, room, most);
      if (most === 1) return `${frame.name} ${share}`.length <= room ? [`${frame.name} ${share}`] : name;
      const known = typeof frame.low === "number" ? `${percent(frame.low, 1)} to ${percent(frame.high, 1)}` : "";
      const more = [share, known, quantity(frame.value, this.answer.unit)].filter((text) => text && text.length <= room);
      return name.length ? [...name, ...more].slice(0, most) : [];
    }

    // Where the middle of a line of so many is in a row.
    middle(high, line, lines) {
      return high / 2 + 1 + (line - (lines - 1) / 2) * LINE;
    }

    // As much of a name as has room, in all lines but one: all, its last parts, or its beginning and end.
    shortName(name, room, most) {
      const ways = shortened(name);
      const last = ways.at(-1).replace("…", "");
      for (const whole of room < 8 ? [true] : [true, false]) {
        for (const way of [...ways, last]) {
          const lines = wrapped(way, room, whole);
          if (lines.length && lines.length <= Math.max(1, most - 1)) return lines;
        }
      }
      return [cut(last, room)].filter(Boolean);
    }

    // -- words -----------------------------------------------------------------------------------------------------

    // What is known of a frame, in lines.
    describe(frame) {
      const { functions, unit, view } = this.answer;
      const { whole } = this;
      const at = frame.function;
      const interval = typeof frame.low === "number"
        ? ` (95% interval ${percent(frame.low, 1)} to ${percent(frame.high, 1)})` : "";
      const lines = [`${percent(frame.value, whole)} of all${interval}, ${quantity(frame.value, unit)}`];
      if (frame.delta !== undefined && frame.name !== "all") {
        const change = 100 * (frame.delta / (whole || 1));
        const known = frame.significant === null || frame.significant === undefined ? "not tested"
          : frame.significant ? "beyond chance" : "not beyond chance";
        lines.push(`${change < 0 ? "" : "+"}${change.toFixed(2)} points since A: ${known}`);
      }
      if (view !== "callers" && frame.which === 0 && frame.name !== "all") lines.push(`in itself ${percent(frame.own, whole)}`);
      if (functions.value[at]) {
        lines.push(`the function everywhere: ${percent(functions.value[at], whole)}, in itself ${percent(functions.own[at], whole)}`);
      }
      const where = functions.file[at] ? `${functions.file[at]}:${functions.line[at]}` : "";
      const place = [functions.image[at], where].filter(Boolean).join(", ");
      if (place && frame.name !== "all") lines.push(place);
      return lines;
    }

    status() {
      const { answer } = this;
      const parts = [];
      if (this.difference) {
        parts.push(answer.lacking ? `Nothing is coloured: ${answer.lacking}.`
          : `Of ${answer.tested} tested frames, ${answer.significant_frames} are beyond chance and coloured, and ` +
            `${answer.significant_undrawn} that are not drawn (chance of any false one: ${100 * answer.false_changes}%).`);
        const [own, other] = answer.width === "a" ? ["A", "B"] : ["B", "A"];
        if (answer.undrawn >= 0.0005) parts.push(`Frames with ${percent(answer.undrawn, 1, 1)} of ${other} have none in ${own}: see widths of ${other}.`);
      }
      if (this.named) parts.push(this.everywhere());
      else if (this.term) parts.push(this.matched());
      const left = answer.frames.reduce((sum, count) => sum + count, 0) -
        answer.trees.reduce((sum, tree) => sum + tree.parent.length, 0);
      if (!this.term && !this.named && !this.difference) {
        const small = left > 0 ? `; ${left.toLocaleString("en")} frames are too small to be drawn` : "";
        parts.push(`In all ${quantity(this.whole, answer.unit)}${small}.`);
      }
      return parts.join(" ");
    }

    // The function of a row of the table.
    everywhere() {
      const { functions } = this.answer;
      const at = functions.name.indexOf(this.named);
      const count = this.frames.filter((frame) => frame.name === this.named && !(frame.which === 1 && frame.twin !== NONE)).length;
      const drawn = count === 1 ? "1 frame" : `${count || "none"} of the frames`;
      if (at === NONE) return `${this.named}: no frame of it is large enough to be drawn here.`;
      const where = count ? `in ${drawn} drawn` : "no frame of it is large enough to be drawn here";
      return `${this.named}: ${percent(functions.value[at], this.whole)} of all, in itself ${percent(functions.own[at], this.whole)}, ${where}.`;
    }

    // The drawn frames that match, and what they stand for: each sample once, by the outermost of its frames.
    matched() {
      const zoomed = this.shown;
      const covered = new Array(this.frames.length).fill(false);
      const below = new Array(this.frames.length).fill(false);
      let matching = 0;
      let inside = 0;
      this.frames.forEach((frame, index) => {
        const { parent } = frame;
        const match = this.matches(frame);
        const outermost = match && !(parent !== NONE && covered[parent]);
        covered[index] = match || (parent !== NONE && covered[parent]);
        below[index] = index === zoomed || (parent !== NONE && below[parent]);
        if (match && !(frame.which === 1 && frame.twin !== NONE)) matching += 1;
        if (outermost && below[index]) inside += frame.value;
      });
      if (zoomed === NONE) return this.inAll(matching);
      const whole = this.frames[zoomed];
      if (covered[zoomed]) inside = whole.value;
      return `${this.inAll(matching)} Within the frame shown, ${whole.name}, drawn frames that match have ${percent(inside, whole.value)} of it.`;
    }

    // What goes through matching functions in all, also in frames too small to be drawn, as the tables have it.
    inAll(drawn) {
      const { found } = this;
      if (found === undefined) return drawn === 1 ? "1 drawn frame matches." : `${drawn} drawn frames match.`;
      const functions = found.functions === 1 ? "1 function matches" : `${found.functions.toLocaleString("en")} functions match`;
      return `${functions}: ${percent(found.value, found.total)} of all, in ${drawn} drawn frame${drawn === 1 ? "" : "s"} and those too small to be drawn.`;
    }

    // -- what is looked at -----------------------------------------------------------------------------------------

    // Takes zoom, search and colours from the URL.
    read() {
      const asked = new URL(location).searchParams;
      const key = parseInt(asked.get("zoom") || "", 36);
      const index = this.frames.findIndex((frame) => frame.key === key);
      this.zoomed = [NONE, NONE];
      if (index !== NONE) this.zoomed[this.frames[index].which] = index;
      const colour = asked.get("colour");
      this.colour.value = [...this.colour.options].some((option) => option.value === colour) ? colour : this.usual;
      this.search.value = asked.get("find") || "";
      this.find(this.search.value);
      this.show(asked.get("show"));
      this.carry();
      this.list();
      this.refresh();
      if (index !== NONE) this.reveal(index);
      else if (this.answer.view === "flame") this.box.scrollTop = this.spacer.clientHeight;
      else if (this.focus !== NONE) this.reveal(this.focus);
    }

    remember(name, value, push = false) {
      const url = new URL(location);
      if (value) url.searchParams.set(name, value);
      else url.searchParams.delete(name);
      const field = document.querySelector(`form.ask input[type=hidden][name="${name}"]`);
      if (field) field.value = value;
      if (url.href === location.href) return;
      if (push) history.pushState({ flame: true }, "", url);
      else history.replaceState(history.state, "", url);
      this.carry();
    }

    // Search, colours and what is shown are kept from view to view.
    carry() {
      const url = new URL(location);
      for (const link of this.place.querySelectorAll(".views a")) {
        const to = new URL(link.href);
        for (const kept of ["find", "colour", "show"]) {
          if (url.searchParams.get(kept)) to.searchParams.set(kept, url.searchParams.get(kept));
          else to.searchParams.delete(kept);
        }
        link.href = to.pathname + to.search;
      }
    }

    refresh() {
      this.says.textContent = this.status();
      this.place.querySelector("[data-act=whole]").disabled = this.shown === NONE;
      this.legend();
      this.choose(this.selected);
      this.draw();
    }

    zoom(index, push = true) {
      const frame = index === NONE ? null : this.frames[index];
      const at = frame && !(frame.parent === NONE) ? index : NONE;
      this.zoomed = [NONE, NONE];
      if (at !== NONE) this.zoomed[frame.which] = at;
      this.remember("zoom", at === NONE ? "" : frame.key.toString(36), push);
      this.refresh();
    }

    find(text) {
      this.named = "";
      this.term = text.trim().toLowerCase();
      this.found = undefined;
      const own = ++this.asked;
      const wanted = () => own === this.asked && this.place.isConnected;
      setTimeout(async () => {
        if (this.term && wanted()) {
          const reply = await ask(`${this.place.dataset.found}&find=${encodeURIComponent(text.trim())}`, wanted);
          const found = reply.ok && (await reply.json());
          if (!found || !wanted()) return;
          this.found = found;
          if (!this.difference) this.add(found.largest);
          this.list();
          this.refresh();
        }
        if (this.difference && this.listed !== text.trim() && wanted()) await this.listAnew(text.trim(), wanted);
      }, 200);
    }

    // The rows of a difference that the server writes of the functions that a search leaves.
    async listAnew(text, wanted) {
      const reply = await ask(location.href, wanted);
      if (!reply.ok) return;
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const table = page.querySelector("table[data-functions]");
      if (!table || !wanted()) return;
      this.listed = text;
      for (const part of ["caption", "tbody"]) this.table.querySelector(part).replaceChildren(...table.querySelector(part).childNodes);
      this.more.replaceChildren(...page.querySelector("[data-more]").childNodes);
      this.buttons();
      this.pressRow(this.selected === NONE ? this.named : this.frames[this.selected].name);
    }

    nextMatch() {
      const order = this.rows.flat().filter((index) => this.matches(this.frames[index]));
      if (!order.length) return;
      this.select(order[(order.indexOf(this.selected) + 1) % order.length]);
    }

    select(index) {
      this.selected = index;
      this.choose(index);
      if (index !== NONE) this.reveal(index);
      this.draw();
    }

    reveal(index) {
      const y = this.tops[this.frames[index].row];
      const { scrollTop, clientHeight } = this.box;
      if (y < scrollTop + this.row) this.box.scrollTop = Math.max(0, y - this.row);
      else if (y > scrollTop + clientHeight - 3 * this.row) this.box.scrollTop = y - clientHeight + 3 * this.row;
    }

    // The selected frame in words, and where to go from it.
    choose(index) {
      this.pressRow(index === NONE ? this.named : this.frames[index].name);
      this.chosen.hidden = index === NONE;
      if (index === NONE) return;
      const frame = this.frames[index];
      this.chosen.querySelector("strong").textContent = frame.name;
      this.chosen.querySelector("span").textContent = this.describe(frame).join("; ");
      const links = this.chosen.querySelector(".links");
      links.replaceChildren();
      if (frame.name === "all" && frame.parent === NONE && this.focus === NONE) return;
      const link = (text, href) => {
        const made = document.createElement("a");
        made.href = href;
        made.textContent = text;
        links.append(made);
        return made;
      };
      const { base, root, action } = this.place.dataset;
      const isRoot = root && (this.answer.view === "callers" ? !frame.children.length && !this.answer.functions.value[frame.function]
        : !this.answer.functions.value[frame.function]);
      if (isRoot) {
        const only = `${encodeURIComponent(root)}%3D${encodeURIComponent(frame.name)}`;
        if (!this.difference) link(`Only this ${root}`, `${action}?${base}&where=${only}`);
        link("Its functions", `/query?${base}&by=function&where=${only}`);
        return;
      }
      const around = new URL(location);
      around.searchParams.set("view", "sandwich");
      around.searchParams.set("focus", frame.name);
      around.searchParams.delete("zoom");
      if (!(this.focus !== NONE && frame.name === this.answer.focus)) link("Callers and callees", around.pathname + around.search);
      link("Query", `/query?${base}&by=application&where=${encodeURIComponent(`function=${frame.name}`)}`);
      const file = this.answer.functions.file[frame.function];
      if (file) link("Source", `/source?file=${encodeURIComponent(file)}`);
      const repository = this.answer.functions.repository?.[frame.function];
      if (/^https?:\/\//i.test(repository)) {
        const made = link("Repository", repository);
        made.rel = "noopener noreferrer";
        made.target = "_blank";
      }
      const copy = document.createElement("button");
      copy.type = "button";
      copy.textContent = "Copy name";
      copy.addEventListener("click", async () => {
        await navigator.clipboard.writeText(frame.name).then(() => { copy.textContent = "Copied"; }, () => { copy.textContent = "Not allowed"; });
      });
      links.append(copy);
    }

    legend() {
      const list = this.place.querySelector(".groups");
      list.replaceChildren();
      if (this.colour.value === "change") return;
      const { largest } = this.groups[this.colour.value];
      for (const [index, [name]] of largest.entries()) {
        const item = document.createElement("li");
        const mark = document.createElement("i");
        mark.style.background = this.hue(index);
        item.append(mark, ` ${name}`);
        list.append(item);
      }
    }

    // -- table -----------------------------------------------------------------------------------------------------

    // Puts the page's table of functions beside the graph. That of a difference is as the server writes it, but for names
    // that lead to the graph; that of a profile is made anew of the functions drawn, the largest, and those that a search finds.
    takeTable() {
      this.table = document.querySelector("table[data-functions]");
      if (!this.table) return;
      this.pane.append(this.table.closest(".wide"), this.more);
      if (this.difference) this.buttons();
    }

    // Names in the rows of a difference lead to the graph.
    buttons() {
      for (const row of this.table.querySelectorAll("tbody tr")) {
        const link = row.querySelector("td a");
        if (!link) continue;
        row.dataset.name = link.textContent;
        link.replaceWith(this.button(link.textContent));
      }
    }

    button(text, kind = "plain") {
      const button = document.createElement("button");
      button.type = "button";
      button.className = kind;
      button.append(...text.split(/(?<=::|[./_(])/).flatMap((part) => [document.createElement("wbr"), part]));
      return button;
    }

    // The functions with the largest values, of those that a search leaves; and the one that is selected.
    list() {
      if (!this.table) return;
      if (this.difference) {
        for (const row of this.table.querySelectorAll("tbody tr")) row.hidden = !(row.dataset.name || "").toLowerCase().includes(this.term);
        return;
      }
      const { name, own, value } = this.answer.functions;
      const all = name.map((_, at) => at).filter((at) => value[at] && name[at].toLowerCase().includes(this.term));
      const key = { own, value }[this.order];
      all.sort((a, b) => (key ? key[b] - key[a] : 0) || (name[a] < name[b] ? -1 : 1));
      const listed = all.slice(0, this.answer.listed);
      const selected = this.selected === NONE ? NONE : this.frames[this.selected].function;
      if (all.includes(selected) && !listed.includes(selected)) listed.push(selected);
      const cell = (tag, text, kind) => Object.assign(document.createElement(tag), { textContent: text, className: kind });
      const heads = [["function", "", "function"], ["own", "in the function itself", "own"], ["value", "callees included", "total"]].map(([order, title, text]) => {
        const head = cell("th", "", order === "function" ? "" : "number");
        head.scope = "col";
        const button = this.button(text, "");
        button.dataset.order = order;
        button.title = title;
        head.append(button);
        if (order === this.order) head.setAttribute("aria-sort", order === "function" ? "ascending" : "descending");
        return head;
      });
      const largest = [own, value].map((amounts) => listed.reduce((most, at) => Math.max(most, amounts[at]), 0));
      const rows = listed.map((at) => {
        const row = document.createElement("tr");
        row.dataset.name = name[at];
        const first = cell("td", "", "");
        const mark = document.createElement("i");
        mark.style.background = this.groupColour(this.groups[this.colour.value].of[at]);
        first.append(mark, this.button(name[at]));
        const shares = [own, value].map((amounts, column) => {
          const share = cell("td", percent(amounts[at], this.whole), "number share");
          share.append(cell("span", quantity(amounts[at], this.answer.unit), "amount"));
          share.style.setProperty("--share", percent(amounts[at], largest[column]));
          return share;
        });
        row.append(first, ...shares);
        return row;
      });
      const matching = this.found && this.found.functions;
      const count = this.term ? matching : this.answer.functions_in_all;
      const which = count === undefined ? "" : `: ${listed.length.toLocaleString("en")} of ${count.toLocaleString("en")}`;
      this.table.querySelector("caption").textContent = `Functions${this.term ? " that match" : ""}${which}`;
      this.more.replaceChildren();
      if (count > listed.length && listed.length < MOST_ROWS) {
        const to = new URL(location);
        to.searchParams.set("top", MOST_ROWS);
        this.more.append(Object.assign(document.createElement("a"), { href: to.pathname + to.search, textContent: "More rows" }));
      }
      this.table.querySelector("thead tr").replaceChildren(...heads);
      this.table.querySelector("tbody").replaceChildren(...rows);
    }

    // Marks the row of a function, and has it in sight.
    pressRow(name) {
      if (!this.table) return;
      const find = () => [...this.table.querySelectorAll("tbody tr")].find((row) => row.dataset.name === name);
      if (name && !this.difference && !find()) this.list();
      for (const button of this.table.querySelectorAll("tbody button[aria-pressed]")) button.removeAttribute("aria-pressed");
      const row = find();
      if (!row || row.hidden) return;
      row.querySelector("button").setAttribute("aria-pressed", "true");
      const room = this.table.closest(".wide");
      const above = row.getBoundingClientRect().top - room.getBoundingClientRect().top - 40;
      if (above < 0 || above > room.clientHeight - 80) room.scrollTop += above - room.clientHeight / 3;
    }

    // Shows all frames of a function and selects the largest, within what is shown if it has some there.
    name(name) {
      const again = this.named === name;
      this.named = again ? "" : name;
      const own = again ? [] : this.frames.map((_, index) => index).filter((index) => this.frames[index].name === name);
      const inside = own.filter((index) => {
        const [from, to] = this.range(this.frames[index].which);
        return this.frames[index].left < to && this.frames[index].right > from;
      });
      const largest = (inside.length ? inside : own).reduce((best, index) =>
        (best === NONE || this.frames[index].value > this.frames[best].value ? index : best), NONE);
      this.selected = largest;
      if (own.length && !inside.length) this.zoom(NONE);
      else this.refresh();
      if (largest !== NONE) this.reveal(largest);
    }

    // Shows graph, table, or both.
    show(what) {
      this.place.dataset.show = ["graph", "table"].includes(what) ? what : "both";
      for (const button of this.place.querySelectorAll("[data-act=show]")) {
        button.setAttribute("aria-pressed", String(button.value === this.place.dataset.show));
      }
    }

    // -- pointer, keys, window ------------------------------------------------------------------------------------

    at(event) {
      const bounds = this.canvas.getBoundingClientRect();
      const row = this.rowAt(event.clientY - bounds.top + this.box.scrollTop);
      const x = event.clientX - bounds.left;
      let found = NONE;
      this.boxes(bounds.width, row, row + 1, (frame, index, left, span) => {
        if (x >= left && x < left + span) found = index;
      });
      return found;
    }

    point(event) {
      const index = event ? this.at(event) : NONE;
      this.tip.hidden = index === NONE;
      if (index !== NONE) {
        const frame = this.frames[index];
        const name = document.createElement("strong");
        name.textContent = frame.name;
        this.tip.replaceChildren(name, ...this.describe(frame).map((line) => {
          const made = document.createElement("span");
          made.textContent = line;
          return made;
        }));
        const { width, height } = this.tip.getBoundingClientRect();
        const across = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8));
        const below = event.clientY + 18 + height < window.innerHeight;
        this.tip.style.left = `${across}px`;
        this.tip.style.top = `${below ? event.clientY + 18 : Math.max(4, event.clientY - height - 12)}px`;
      }
      if (index !== this.pointed) {
        this.pointed = index;
        this.draw();
      }
    }

    // The frame next to the selected one: in its row, or along its calls.
    neighbour(key) {
      const frame = this.frames[this.selected];
      if (key === "ArrowLeft" || key === "ArrowRight") {
        const row = [];
        this.boxes(this.box.clientWidth, frame.row, frame.row + 1, (_, index) => row.push(index));
        return row[row.indexOf(this.selected) + (key === "ArrowLeft" ? -1 : 1)];
      }
      const up = key === "ArrowUp";
      if (frame.twin !== NONE) return this.frames[up ? frame.twin : 0].children[0];
      if (up === frame.up) return frame.children[0];
      return frame.parent !== NONE && this.frames[frame.parent].twin !== NONE ? 0 : frame.parent;
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.startsWith("Arrow")) {
        event.preventDefault();
        const begin = this.shown === NONE ? 0 : this.shown;
        const next = this.selected === NONE ? begin : this.neighbour(event.key);
        if (next !== undefined && next !== NONE) this.select(next);
      } else if (event.key === "Enter" && this.selected !== NONE) {
        event.preventDefault();
        this.zoom(this.selected);
      } else if (event.key === "Escape") {
        if (this.named) this.name(this.named);
        else if (this.shown !== NONE) this.zoom(NONE);
        else this.select(NONE);
      } else if (event.key === "s" && this.selected !== NONE) {
        this.chosen.querySelector("a[href*='view=sandwich']")?.click();
      }
    }

    listen() {
      this.box.addEventListener("scroll", () => this.draw());
      this.box.addEventListener("pointermove", (event) => event.pointerType !== "touch" && this.point(event));
      this.box.addEventListener("pointerleave", () => this.point(null));
      this.box.addEventListener("keydown", (event) => this.key(event));
      this.canvas.addEventListener("click", (event) => {
        const index = this.at(event);
        if (index === NONE) return;
        this.selected = index;
        this.named = "";
        this.zoom(index === this.shown ? this.frames[index].parent : index);
      });
      this.search.addEventListener("input", () => {
        this.find(this.search.value);
        this.remember("find", this.search.value.trim());
        this.list();
        this.refresh();
      });
      this.search.addEventListener("keydown", (event) => {
        if (event.key === "Enter") {
          event.preventDefault();
          this.nextMatch();
        }
        if (event.key === "Escape") {
          this.search.value = "";
          this.search.dispatchEvent(new Event("input"));
          this.box.focus();
        }
      });
      this.colour.addEventListener("change", () => {
        this.remember("colour", this.colour.value === this.usual ? "" : this.colour.value);
        this.list();
        this.refresh();
      });
      // A function that is typed is shown with callers and callees, whatever the view is now.
      document.querySelector("form.ask input[name=focus]")?.addEventListener("input", () => {
        document.querySelector("form.ask input[type=hidden][name=view]").disabled = true;
      });
      for (const button of this.place.querySelectorAll("[data-act=show]")) {
        button.addEventListener("click", () => {
          this.remember("show", button.value === "both" ? "" : button.value);
          this.show(button.value);
        });
      }
      this.pane.addEventListener("click", (event) => {
        const head = event.target.closest("button[data-order]");
        const row = event.target.closest("tbody tr[data-name]");
        if (row) this.name(row.dataset.name);
        if (!head) return;
        this.order = head.dataset.order;
        this.list();
        this.pressRow(this.selected === NONE ? this.named : this.frames[this.selected].name);
        this.pane.querySelector(`button[data-order=${this.order}]`).focus();
      });
      this.place.querySelector("[data-act=whole]").addEventListener("click", () => this.zoom(NONE));
      this.place.querySelector("[data-act=svg]").addEventListener("click", () => this.save());
      new ResizeObserver(() => this.draw()).observe(this.box);
    }

    // -- export ----------------------------------------------------------------------------------------------------

    svg() {
      const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
      const colours = this.colour.value === "change" ? [["grown", "#e15a5a"], ["shrunk", "#5a8ce1"]]
        : this.groups[this.colour.value].largest.map(([name], index) => [name, this.hue(index)]);
      this.measure(SVG_WIDTH);
      this.measured = "";
      const below = this.tops.at(-1) + 8;
      const height = below + 18 * Math.ceil(colours.length / 5);
      const parts = colours.map(([name, colour], index) => {
        const [x, y] = [(index % 5) * (SVG_WIDTH / 5) + PAD, below + 18 * Math.floor(index / 5)];
        return `<rect x="${x}" y="${y}" width="12" height="12" fill="${colour}"/><text x="${x + 17}" y="${y + 10}">${escaped(name)}</text>`;
      });
      const box = (row, x, span) => `x="${x.toFixed(1)}" y="${this.tops[row] + 1}" width="${Math.max(0.6, span).toFixed(1)}" height="${this.height(row) - 1}"`;
      this.blocks(SVG_WIDTH, 0, this.rows.length, (frame, index, x, span, faded) => {
        const lines = this.labels(frame, span).map((text, line, all) =>
          `<text x="${(x + PAD).toFixed(1)}" y="${(this.tops[frame.row] + this.middle(this.height(frame.row), line, all.length) + 4).toFixed(1)}">${escaped(text)}</text>`);
        const opacity = this.opacity(frame, faded);
        const title = escaped([frame.name, ...this.describe(frame)].join("\n"));
        parts.push(`<g><title>${title}</title><rect ${box(frame.row, x, span - 1)} fill="${this.fill(frame)}" fill-opacity="${opacity}"/>` +
          `<g fill="${this.ink(opacity)}">${lines.join("")}</g></g>`);
      }, (row, x, span, group) => parts.push(`<rect ${box(row, x, span)} fill="${this.blockColour(group)}" fill-opacity="${this.blockOpacity}"/>`));
      const style = getComputedStyle(this.place);
      return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SVG_WIDTH} ${height}" width="${SVG_WIDTH}" height="${height}" ` +
        `font-family="ui-monospace, DejaVu Sans Mono, monospace" font-size="12" fill="${style.getPropertyValue("--ink").trim()}">` +
        `<rect width="100%" height="100%" fill="${style.getPropertyValue("--ground").trim()}"/>${parts.join("")}</svg>\n`;
    }

    save() {
      const picture = this.svg();
      this.draw();
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
      link.download = "flame.svg";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    }
  }

  let current = null;
  const visible = () => current && current.place.isConnected;
  dark.addEventListener("change", () => visible() && current.refresh());
  window.addEventListener("popstate", () => visible() && !history.state?.htmx && current.read());
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || !visible() || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    current.search.focus();
  });

  // What the server answers, asked again while it is busy and somebody waits.
  async function ask(address, wanted) {
    for (let tries = 1; ; tries += 1) {
      const reply = await fetch(address, { headers: { Accept: "application/json" } });
      if (reply.status !== 503 || tries > 10 || !wanted()) return reply;
      await new Promise((done) => setTimeout(done, 2000));
    }
  }

  window.drawFlame = async (place) => {
    const reply = await ask(place.dataset.json, () => place.isConnected);
    const answer = await reply.json().catch(() => ({ problems: ["The server is busy; load the page again."] }));
    const absent = reply.ok && answer.view === "sandwich" && answer.trees[0].parent.length < 2;
    if (!reply.ok || !answer.value || absent) {
      const [own, other] = answer.width === "a" ? ["A", "B"] : ["B", "A"];
      const reasons = absent ? [`${answer.focus} has nothing in ${own}: see widths of ${other}.`] : ["No samples with stacks."];
      place.querySelector(".says").textContent = (answer.problems || reasons).join(" ");
      place.dataset.drawn = "no";
      return;
    }
    current = new FlameGraph(place, answer);
    place.dataset.drawn = "yes";
  };
})();
