// Clicks through every page of `wsc serve` in headless Chromium, with and without scripts.
// usage: node check.mjs http://127.0.0.1:8000/ [folder for screenshots]
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [base = "http://127.0.0.1:8000/", pictures = ""] = process.argv.slice(2);
const MOST_EDGES = 150;
const MOST_PAGES = 30;
const PAGES = ["/", "/query", "/callgraph", "/flame", "/source", "/diff?a=day=0&b=day=1", "/flamediff?a=day=0&b=day=1",
  "/rollouts", "/stability", "/regress", "/regress?at=2d", "/regress?at=2d&adjustment=benjamini-hochberg&min_factor=1.1", "/questions", "/questions/versions"];
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
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(wide <= 0, `${path}${suffix}: is ${wide} pixels wider than the window`);
    const loose = await page.evaluate(() => [...document.querySelectorAll("table")].filter((each) => !each.closest(".wide")).length);
    expect(loose === 0, `${path}${suffix}: ${loose} tables do not scroll in a box of their own`);
    await shoot(page, `${path.split("?")[0].slice(1).replaceAll("/", "_") || "home"}${suffix}`);
  }
  await visit(page, "/callgraph");
  const edges = await page.locator(".graph g.edge").count();
  expect(edges > 0 && edges <= MOST_EDGES, `/callgraph: ${edges} edges drawn`);
  expect(await page.locator(".graph g.node text").count() > 0, "/callgraph: no labels drawn");
  await visit(page, "/flame");
  const frames = await page.locator(".drawing rect").count();
  expect(frames > 1, `/flame: ${frames} frames drawn`);
  await page.locator("input[type=search]").fill("a");
  await page.waitForFunction(() => document.querySelector(".says").textContent.includes("too small or too deep"));
  expect((await page.locator(".says").textContent()).includes("of all"), "/flame: search says no share of all");
  await page.locator(".drawing g.frame").nth(1).dispatchEvent("click");
  await page.waitForFunction(() => document.querySelector(".says").textContent.includes("within the frame shown"));
  await page.locator(".picture button").click();
  expect(!(await page.locator(".says").textContent()).includes("match"), "/flame: the whole graph still says what matched");
  await visit(page, "/flamediff?a=day=0&b=day=1");
  expect(await page.locator(".drawing rect").count() > 1, "/flamediff: no frames drawn");
  expect((await page.locator(".says").textContent()).includes("beyond chance"), "/flamediff: says no rule for its colours");
  await page.context().close();
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
  expect((await page.locator("caption").first().textContent()).includes("application"), "refining does not group anew");
  const events = await page.locator("form select[name=event] option").allTextContents();
  await page.locator("form select[name=event]").selectOption(events.find((each) => each !== "cycles"));
  await page.locator("form button").click();
  await page.waitForFunction(() => !location.search.startsWith("?event=cycles&"));
  expect(await page.evaluate(() => window.sameDocument === true), "the form loaded the page anew");
  await page.locator("nav a", { hasText: "Call graph" }).click();
  await page.waitForSelector(".graph g.node");
  await page.locator("nav a", { hasText: "Flame graph" }).click();
  await page.waitForSelector(".drawing rect");
  await page.goBack();
  await page.waitForSelector(".graph g.node");
  await page.locator(".graph g.node a").first().click();
  await page.waitForFunction(() => location.pathname === "/query");
  await page.context().close();
}

async function everyLink() {
  const page = await open({ javaScriptEnabled: false });
  const seen = new Set();
  const waiting = [...PAGES];
  while (waiting.length && seen.size < MOST_PAGES) {
    const path = waiting.shift();
    const kind = path.split("?")[0];
    if (seen.has(path) || kind.endsWith(".json")) continue;
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
await withScripts({ colorScheme: "dark", viewport: { width: 390, height: 844 }, isMobile: true }, "_phone");
await refine();
const pages = await everyLink();
await browser.close();
for (const problem of problems) console.error(problem);
console.log(`${pages} pages read without scripts, ${PAGES.length} drawn with them: ${problems.length} problems`);
process.exitCode = problems.length ? 1 : 0;
