// Looks at reports, which are single files, in headless Chromium: wide, on a phone, in the dark and on paper.
// usage: node report.mjs PAGE.html… [--pictures FOLDER]
import { mkdirSync } from "node:fs";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const asked = process.argv.slice(2);
const at = asked.indexOf("--pictures");
const pictures = at < 0 ? "" : asked.splice(at, 2)[1];
const LOOKS = {
  wide: { viewport: { width: 1280, height: 900 } },
  dark: { viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, isMobile: true },
};
const PAPER_PIXELS = 680;
const problems = [];
if (pictures) mkdirSync(pictures, { recursive: true });

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});

async function open(file, look) {
  const page = await (await browser.newContext(LOOKS[look])).newPage();
  const expect = (fine, what) => {
    if (!fine) problems.push(`${basename(file)}, ${look}: ${what}`);
  };
  const address = pathToFileURL(file).href;
  page.on("console", (message) => expect(false, `console: ${message.text()}`));
  page.on("pageerror", (error) => expect(false, String(error)));
  page.on("dialog", (dialog) => {
    expect(false, `a dialog opened: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("request", (request) => {
    const url = request.url();
    expect(url === address || url.startsWith("data:"), `asks elsewhere: ${url.slice(0, 100)}`);
  });
  await page.goto(address);
  return { page, expect };
}

// A phone's window grows with what is too wide for it, so its inner width says nothing.
const tooWide = async (page) => await page.evaluate(() => document.documentElement.scrollWidth) - page.viewportSize().width;

for (const file of asked) {
  for (const look of Object.keys(LOOKS)) {
    const { page, expect } = await open(file, look);
    expect(await page.locator("h1").count() === 1, "should have one heading");
    expect(await page.locator(".verdicts tr").count() > 0, "has no verdict");
    const wide = await tooWide(page);
    expect(wide <= 0, `is ${wide} pixels wider than the window`);
    const empty = await page.evaluate(() => [...document.images].filter((each) => !each.complete || !each.naturalWidth).length);
    expect(empty === 0, `${empty} figures are not drawn`);
    const lost = await page.evaluate(() =>
      [...document.querySelectorAll(".contents a")].filter((each) => !document.querySelector(each.getAttribute("href"))).length);
    expect(lost === 0, `${lost} entries of the contents lead nowhere`);
    if (pictures) await page.screenshot({ path: `${pictures}/${basename(file, ".html")}_${look}.png`, fullPage: true });
    if (look === "wide") {
      await page.emulateMedia({ media: "print" });
      await page.setViewportSize({ width: PAPER_PIXELS, height: 900 });
      const cut = await tooWide(page);
      expect(cut <= 0, `is ${cut} pixels wider than a sheet of A4`);
      if (pictures) await page.pdf({ path: `${pictures}/${basename(file, ".html")}.pdf`, format: "A4", preferCSSPageSize: true });
    }
    await page.context().close();
  }
}
await browser.close();
for (const problem of problems) console.error(problem);
console.log(`${asked.length} reports looked at: ${problems.length} problems`);
process.exitCode = problems.length ? 1 : 0;
