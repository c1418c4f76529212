// Clicks through every page of `wsc serve` in headless Chromium, with and without scripts.
// usage: node check.mjs http://127.0.0.1:8000/ [folder for screenshots]
import { mkdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [base = "http://127.0.0.1:8000/", pictures = ""] = process.argv.slice(2);
const MOST_EDGES = 150;
const MOST_PAGES = 30;
const PAGES = ["/", "/query", "/callgraph", "/flame", "/source", "/diff?a=day=0&b=day=1", "/flamediff?a=day=0&b=day=1",
  "/changes", "/watch", "/values?key=application&to=/query", "/rollouts", "/stability", "/regress", "/regress?at=2d", "/regress?at=2d&adjustment=benjamini-hochberg&min_factor=1.1", "/questions", "/questions/versions"];
const AXE = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const problems = [];
const expect = (fine, what) => {
  if (!fine) problems.push(what);
};
if (pictures) mkdirSync(pictures, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

async function open(options) {
  const context = await browser.newContext({ baseURL: base, ...options });
  const page = await context.newPage();
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`${page.url()}: console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`${page.url()}: ${error}`));
  page.on("dialog", (dialog) => {
    problems.push(`${page.url()}: a dialog opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !url.startsWith("data:")) problems.push(`${page.url()}: asks elsewhere: ${url}`);
  });
  return page;
}

// Faults of accessibility that are serious or critical.
async function accessible(page, where) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const fault of found.violations) {
    if (!["serious", "critical"].includes(fault.impact)) continue;
    problems.push(`${where}: ${fault.id}, ${fault.help}: ${fault.nodes.slice(0, 3).map((node) => node.target.join(" ")).join("; ")}`);
  }
}

async function visit(page, path) {
  const answer = await page.goto(path);
  expect(answer.status() === 200, `${path}: status ${answer.status()}`);
  expect(await page.locator("h1").count() === 1, `${path}: should have one heading`);
  await page.waitForFunction(() =>
    [...document.querySelectorAll("[data-draw]")].every((place) => ["yes", "no"].includes(place.dataset.drawn)));
  return page;
}

async function shoot(page, name) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

async function withScripts(options, suffix) {
  const page = await open({ viewport: { width: 1280, height: 900 }, ...options });
  for (const path of PAGES) {
    await visit(page, path);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth) - page.viewportSize().width;
    expect(wide <= 0, `${path}${suffix}: is ${wide} pixels wider than the window`);
    const loose = await page.evaluate(() => [...document.querySelectorAll("table")].filter((each) => !each.closest(".wide")).length);
    expect(loose === 0, `${path}${suffix}: ${loose} tables do not scroll in a box of their own`);
    await accessible(page, `${path}${suffix}`);
    await shoot(page, `${path.split("?")[0].slice(1).replaceAll("/", "_") || "home"}${suffix}`);
  }
  await visit(page, "/callgraph");
  const beyond = await page.locator(".drawing").evaluate((frame) => frame.scrollWidth - frame.clientWidth);
  expect(beyond <= 0, `/callgraph${suffix}: opens ${beyond} pixels wider than its frame`);
  const edges = await page.locator(".graph g.edge").count();
  expect(edges > 0 && edges <= MOST_EDGES, `/callgraph: ${edges} edges drawn`);
  expect(await page.locator(".graph g.node text").count() > 0, "/callgraph: no labels drawn");
  for (const path of ["/flame", "/flamediff?a=day=0&b=day=1"]) {
    await visit(page, path);
    const { y } = await page.locator(".canvas").boundingBox();
    expect(y < 0.6 * page.viewportSize().height, `${path}${suffix}: the drawing begins ${y} pixels below the top`);
  }
  expect(await frames(page) > 1, "/flamediff: no frames drawn");
  expect((await page.locator(".says").textContent()).includes("beyond chance"), "/flamediff: says no rule for its colours");
  await page.context().close();
}

const frames = (page) => page.evaluate(() => Number(document.querySelector(".flame").dataset.frames));
const asked = (page, name) => page.evaluate((key) => new URL(location).searchParams.get(key), name);

// A flame graph by pointer, by keys and by its URL: zoom, search, a function's callers and callees, and back.
async function flameGraph() {
  const page = await open({ viewport: { width: 1280, height: 900 } });
  await visit(page, "/flame");
  const all = await frames(page);
  expect(all > 1, `/flame: ${all} frames drawn`);
  await page.locator("input[type=search]").fill("a");
  await page.waitForFunction(() => document.querySelector(".says").textContent.includes("too small to be drawn"));
  expect((await page.locator(".says").textContent()).includes("of all"), "/flame: search says no share of all");
  expect(await asked(page, "find") === "a", "/flame: the search is not in the URL");
  const box = await page.locator(".canvas canvas").boundingBox();
  const row = await page.evaluate(() => Number(document.querySelector(".flame").dataset.row));
  const high = await page.evaluate(() => document.querySelector(".spacer").clientHeight);
  expect(row >= 72 || high > 900 - 170 - 60, `/flame: of a window of 900 pixels ${high} are used by rows of ${row}`);
  await page.mouse.move(box.x + 40, box.y + 1.5 * row);
  expect((await page.locator(".tip").textContent()).includes("95% interval"), "/flame: pointing at a frame says no interval");
  await page.mouse.click(box.x + 40, box.y + 1.5 * row);
  expect(await asked(page, "zoom") !== null, "/flame: the zoom is not in the URL");
  expect((await page.locator(".says").textContent()).includes("Within the frame shown"), "/flame: a zoomed search says no part");
  const name = await page.locator(".chosen strong").textContent();
  await page.reload();
  await page.waitForFunction(() => document.querySelector(".flame").dataset.drawn === "yes");
  expect((await page.locator(".says").textContent()).includes(`shown, ${name}`), "/flame: the URL does not hold what was shown");
  await page.locator("[data-act=whole]").click();
  expect(await asked(page, "zoom") === null, "/flame: the whole graph is still zoomed");
  await page.goBack();
  await page.waitForFunction(() => !document.querySelector("[data-act=whole]").disabled);
  await page.setViewportSize({ width: 700, height: 700 });
  await page.waitForFunction(() => document.querySelector("canvas").clientWidth === document.querySelector(".canvas").clientWidth);
  await page.keyboard.press("/");
  expect(await page.evaluate(() => document.activeElement.type === "search"), "/flame: / does not lead to the search");
  await page.keyboard.press("Escape");
  expect(await asked(page, "find") === null, "/flame: Esc does not end the search");
  await page.keyboard.press("Escape");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
  const below = await page.locator(".chosen strong").textContent();
  await page.keyboard.press("Enter");
  expect(await asked(page, "zoom") !== null, "/flame: Enter does not zoom");
  await page.keyboard.press("s");
  await page.waitForFunction(() => new URL(location).searchParams.get("focus") && document.querySelector(".flame").dataset.drawn === "yes");
  expect(await asked(page, "focus") === below, "/flame: s does not lead to the selected function");
  expect((await page.locator("caption").allTextContents()).includes(`Callers of ${below}`), "/flame: no table of callers");
  await tableBeside(page);
  await page.locator(".views a", { hasText: "Inverted" }).click();
  await page.waitForFunction(() => new URL(location).searchParams.get("view") === "callers" && document.querySelector(".flame").dataset.drawn === "yes");
  expect(await frames(page) > 1, "/flame: no frames of the inverted view");
  const [saved] = await Promise.all([page.waitForEvent("download"), page.locator("[data-act=svg]").click()]);
  expect(saved.suggestedFilename() === "flame.svg", "/flame: saves no SVG");
  await page.context().close();
}

// The table beside the graph: a row shows its function there, a frame its row here; which of them are shown is in the URL.
async function tableBeside(page) {
  await page.setViewportSize({ width: 1280, height: 900 });
  for (const path of ["/flame", "/flamediff?a=day=0&b=day=1"]) {
    await visit(page, path);
    const table = page.locator(".functions table");
    const [left, right] = [await page.locator(".functions .wide").boundingBox(), await page.locator(".canvas").boundingBox()];
    expect(left.x + left.width <= right.x && left.y < right.y + right.height, `${path}: the table is not beside the graph`);
    const pressed = () => table.locator("button[aria-pressed=true]").allTextContents();
    await table.locator("tbody button", { hasText: "main" }).first().click();
    expect((await pressed()).join() === "main", `${path}: the row that is chosen is not marked`);
    expect((await page.locator(".says").textContent()).includes("main: "), `${path}: a row says nothing of its function`);
    expect(await page.locator(".chosen strong").textContent() === "main", `${path}: a row selects no frame`);
    await accessible(page, `${path}, a row chosen`);
    await page.locator(".canvas").focus();
    await page.keyboard.press("Escape");
    await page.keyboard.press("ArrowDown");
    const name = await page.locator(".chosen strong").textContent();
    const listed = await table.locator("tbody button").allTextContents();
    expect(!listed.includes(name) || (await pressed()).join() === name, `${path}: the row of the selected frame is not marked`);
    await page.locator("[data-act=show]", { hasText: "Table" }).click();
    expect(await asked(page, "show") === "table" && !(await page.locator(".canvas").isVisible()), `${path}: the graph is still shown`);
    await page.reload();
    await page.waitForFunction(() => document.querySelector(".flame").dataset.drawn === "yes");
    expect(!(await page.locator(".canvas").isVisible()), `${path}: the URL does not hold what is shown`);
    await accessible(page, `${path}, the table alone`);
    await page.locator("[data-act=show]", { hasText: "Graph" }).click();
    expect(!(await table.isVisible()) && (await frames(page)) > 1, `${path}: the graph alone is not shown`);
  }
  await visit(page, "/flame");
  const column = (at) => page.locator(`.functions tbody td:nth-child(${at})`).allTextContents();
  await page.locator(".functions th button", { hasText: "total" }).click();
  const totals = (await column(3)).map(parseFloat);
  expect(totals.length > 2 && totals.every((each, at) => !at || totals[at - 1] >= each), "/flame: a heading does not sort the table");
  await page.locator("input[type=search]").fill("memcpy");
  expect((await column(1)).join() === "memcpy", "/flame: a search does not narrow the table");
  const caption = () => page.locator(".functions caption").textContent();
  await page.waitForFunction(() => document.querySelector(".functions caption").textContent === "Functions that match: 1 of 1");
  await visit(page, "/flamediff?a=day=0&b=day=1&top=1");
  const first = (await column(1)).join();
  const other = ["memcpy", "deflate"].find((name) => name !== first);
  await page.locator("input[type=search]").fill(other);
  await page.waitForFunction((name) => document.querySelector(".functions tbody tr")?.dataset.name === name, other);
  expect((await caption()).startsWith(`Functions that match “${other}”`), `/flamediff: the table does not say that it is narrowed: ${await caption()}`);
  await accessible(page, "/flamediff, a search");
  await page.locator("input[type=search]").fill("");
  await page.waitForFunction((name) => document.querySelector(".functions tbody tr")?.dataset.name === name, first);
  expect((await page.locator(".functions [data-more]").textContent()).includes("more functions"), "/flamediff: rows left out are not told");
}

// From the landing page on: what is alarming is put into it; times are chosen by dragging over a chart; tables sort and filter.
async function landing() {
  const page = await open({ viewport: { width: 1280, height: 900 } });
  await visit(page, "/");
  await page.waitForFunction(() => [...document.querySelectorAll("[data-fetch]")].every((place) => place.dataset.filled === "yes"));
  const told = await page.locator(".card").allTextContents();
  expect(told[0].includes("more expensive (chance of any false alarm"), `/: alarms are not told: ${told[0]}`);
  expect(told[1].includes("beyond chance"), `/: changes are not told: ${told[1]}`);
  await accessible(page, "/, filled");
  await visit(page, "/query?by=function");
  const chart = page.locator(".timeline .chart");
  await chart.scrollIntoViewIfNeeded();
  const { x, y, width } = await chart.boundingBox();
  const drag = async (from, to) => {
    await page.mouse.move(x + from * width, y + 40);
    await page.mouse.down();
    await page.mouse.move(x + to * width, y + 60, { steps: 4 });
    await page.mouse.up();
  };
  await drag(0.2, 0.4);
  expect((await page.locator(".brushed a").allTextContents()).includes("Show only this"), "/query: a chosen time cannot be shown");
  await drag(0.6, 0.9);
  await page.locator(".brushed a", { hasText: "Compare" }).click();
  await page.waitForFunction(() => location.pathname === "/diff");
  expect(new URL(page.url()).searchParams.getAll("a").length === 2, "/diff: the first time is not in the URL");
  expect(await page.locator(".problems").count() === 0, "/diff: two chosen times are refused");
  await visit(page, "/callgraph");
  const before = await page.locator(".graph svg").evaluate((svg) => svg.clientWidth);
  await page.locator("[data-zoom]").first().click();
  expect(await page.locator(".graph svg").evaluate((svg) => svg.clientWidth) > before, "/callgraph: does not zoom");
  await drawing(page, "/callgraph", page.locator("[data-act=svg]"), "main");
  await visit(page, "/query?by=function");
  const names = (await page.locator(".timeline .legend li").allTextContents()).slice(0, -1);
  await drawing(page, "/query", page.locator(".timeline button.plain"), names[0].trim());
  await visit(page, "/query?by=function,line");
  const numbers = () => page.locator("table").last().locator("tbody tr:not([hidden]) td:nth-child(3)").allTextContents();
  await page.locator("table").last().locator("th button", { hasText: "samples" }).focus();
  await page.keyboard.press("Enter");
  const sorted = (await numbers()).map((text) => Number(text.replaceAll(",", "")));
  expect(sorted.every((each, at) => !at || sorted[at - 1] >= each), "/query: a heading does not sort its table");
  await page.locator(".filter input").last().fill("memcpy");
  expect((await numbers()).length < sorted.length, "/query: the filter hides no rows");
  await page.context().close();
}

// What a button saves is a picture on its own, with colours and a text that is in it.
async function drawing(page, where, button, text) {
  const [saved] = await Promise.all([page.waitForEvent("download"), button.click()]);
  const source = readFileSync(await saved.path(), "utf8");
  expect(saved.suggestedFilename().endsWith(".svg") && source.includes(text), `${where}: saves no SVG with ${text}`);
  expect(!source.includes("var(--") && /fill="rgb/.test(source), `${where}: the saved SVG has no colours`);
  const wide = await page.evaluate(async (svg) => {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
    return image.decode().then(() => image.naturalWidth, () => 0);
  }, source);
  expect(wide > 0, `${where}: the saved SVG cannot be drawn`);
}

async function refine() {
  const page = await open({});
  await visit(page, "/query");
  await page.evaluate(() => { window.sameDocument = true; });
  const name = await page.locator("tbody td a").first().textContent();
  await page.locator("tbody td a").first().click();
  await page.waitForFunction(() => location.search.includes("where="));
  await page.waitForSelector(".chips li");
  expect((await page.locator(".chips").textContent()).includes(name), "refining does not say to what");
  expect(await page.evaluate(() => window.sameDocument === true), "refining loaded the page anew");
  expect((await page.locator("caption").last().textContent()).includes("application"), "refining does not group anew");
  const events = await page.locator("form select[name=event] option").allTextContents();
  await page.locator("form select[name=event]").selectOption(events.find((each) => each !== "cycles"));
  await page.locator("form button").click();
  await page.waitForFunction(() => !location.search.startsWith("?event=cycles&"));
  expect(await page.evaluate(() => window.sameDocument === true), "the form loaded the page anew");
  await page.locator("nav a", { hasText: "Call graph" }).click();
  await page.waitForSelector(".graph g.node");
  await page.locator("nav a", { hasText: "Flame graph" }).click();
  await page.waitForFunction(() => document.querySelector(".flame")?.dataset.drawn === "yes");
  await page.goBack();
  await page.waitForSelector(".graph g.node");
  await page.locator(".graph g.node a").first().click();
  await page.waitForFunction(() => location.pathname === "/query");
  await page.context().close();
}

// On a phone: the values of a dimension with their counts, put into the page when its list is opened; one restricts it.
async function lists() {
  const page = await open({ viewport: { width: 360, height: 740 }, isMobile: true });
  await visit(page, "/flame");
  await page.locator("details.asking summary").first().click();
  await page.locator("details.choices > summary").click();
  await page.locator(".lists summary", { hasText: "application" }).click();
  await page.waitForSelector(".lists table td a");
  expect((await page.locator(".lists th").allTextContents()).includes("samples"), "/flame: values have no counts");
  await accessible(page, "/flame, a list opened");
  await page.locator(".lists td a").first().click();
  await page.waitForFunction(() => location.pathname === "/flame" && location.search.includes("application%3D"));
  await page.context().close();
}

async function everyLink() {
  const page = await open({ javaScriptEnabled: false });
  const seen = new Set();
  const waiting = [...PAGES];
  while (waiting.length && seen.size < MOST_PAGES) {
    const path = waiting.shift();
    const kind = path.split("?")[0];
    if (seen.has(path) || /[.](json|csv|gz|folded)$/.test(kind)) continue;
    seen.add(path);
    const answer = await page.goto(path);
    const missing = answer.status() === 404 && kind === "/source";
    expect(answer.status() === 200 || missing, `${path}: status ${answer.status()} without scripts`);
    const tables = await page.locator("main table, main ul.questions, main ul.problems").count();
    expect(tables > 0, `${path}: shows no table without scripts`);
    const links = await page.locator("main a").evaluateAll((all) => all.map((each) => each.getAttribute("href")));
    waiting.push(...links.filter((each) => each.startsWith("/")).slice(0, 6));
  }
  await page.context().close();
  return seen.size;
}

await withScripts({}, "");
await withScripts({ colorScheme: "dark", viewport: { width: 360, height: 740 }, isMobile: true }, "_phone");
await flameGraph();
await landing();
await refine();
await lists();
const pages = await everyLink();
await browser.close();
for (const problem of problems) console.error(problem);
console.log(`${pages} pages read without scripts, ${PAGES.length} drawn with them: ${problems.length} problems`);
process.exitCode = problems.length ? 1 : 0;
