// What a reader's browser makes of a report: requests, errors, width, contrast, and pictures of it.
import { readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [report, folder] = process.argv.slice(2).map((path) => resolve(path));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const MOST_BYTES = 1_000_000;
const WIDTHS = [375, 1280];
const failures = [];
const expect = (holds, sentence) => {
  console.log(`${holds ? "ok  " : "FAIL"} ${sentence}`);
  if (!holds) failures.push(sentence);
};

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

async function look(width, scheme, javaScriptEnabled) {
  const context = await browser.newContext({
    viewport: { width, height: 900 }, colorScheme: scheme, javaScriptEnabled, bypassCSP: javaScriptEnabled,
  });
  const page = await context.newPage();
  const requests = [];
  const errors = [];
  page.on("request", (each) => requests.push(each.url()));
  page.on("console", (each) => ["error", "warning"].includes(each.type()) && errors.push(each.text()));
  page.on("pageerror", (each) => errors.push(String(each)));
  await page.goto(pathToFileURL(report).href, { waitUntil: "load" });
  await page.waitForTimeout(300);
  const name = `${basename(report, ".html")}-${width}-${scheme}`;
  const outside = requests.filter((url) => url !== pathToFileURL(report).href && !url.startsWith("data:"));
  expect(outside.length === 0, `${name}: no request leaves the file ${outside.join(" ")}`);
  expect(errors.length === 0, `${name}: no error on the console ${errors.join(" ")}`);
  return { context, page, name };
}

async function check(width, scheme) {
  const { context, page, name } = await look(width, scheme, true);
  const wide = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  expect((await wide()) <= 0, `${name}: no horizontal scroll`);
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => (each.open = true)));
  expect((await wide()) <= 0, `${name}: none with all tables open`);
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document));
  for (const rule of found.violations) {
    for (const node of rule.nodes.slice(0, 5)) console.log(`     ${rule.id}: ${node.html} ${node.failureSummary}`);
  }
  expect(found.violations.length === 0, `${name}: axe finds nothing (${found.passes.length} rules pass)`);
  await context.close();
}

expect(statSync(report).size < MOST_BYTES, `the file has ${statSync(report).size} bytes`);
for (const width of WIDTHS) for (const scheme of ["light", "dark"]) await check(width, scheme);
const { context, page, name } = await look(1280, "light", false);
await page.emulateMedia({ media: "print" });
await page.setViewportSize({ width: 673, height: 950 }); // what margins leave of A4
const most = await page.evaluate(() => Math.max(...[...document.querySelectorAll("table,svg")].map((each) => each.getBoundingClientRect().right)));
expect(most <= 673, `${name}: nothing is wider than a printed page (${Math.round(most)} of 673)`);
await page.pdf({ path: `${folder}/${name}.pdf`, format: "A4" });
await context.close();
await browser.close();
process.exit(failures.length ? 1 : 0);
