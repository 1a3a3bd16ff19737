// Tests of the pages of `contend report` in Chromium.
//
// Environment: CONTEND is the executable, CHROMIUM the browser, and BROWSER_MODULES a folder with the
// packages playwright-core and axe-core.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

const modules = createRequire(path.join(process.env.BROWSER_MODULES, "x.js"));
const { chromium } = modules("playwright-core");
const axe = fs.readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const testdata = fileURLToPath(new URL("../../../../testdata/", import.meta.url));
const RECORDS = [
  "records/pipe-1.json",
  "records/pipe-1-time-series.json",
  "records/doctor-1.json",
  "records/doctor-1-time-series.json",
  "records/run-1.json",
  "records/run-1-work.json",
  "records/versus-1.json",
  "records/compare-1.json",
  "lab/experiments.json",
  "lab/pipeline.json",
  "lab/process-thread.json",
  "lab/shared-memory.json",
  "lab/synchronisation.json",
];
const LARGEST = "lab/experiments.json";

let browser;
let folder;

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "contend-pages-"));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox"],
  });
});

after(async () => {
  await browser?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

function record(name) {
  return JSON.parse(fs.readFileSync(path.join(testdata, name), "utf8"));
}

/** Makes the page of a record. */
function make(text) {
  const file = path.join(folder, `${Math.random()}.html`);
  execFileSync(process.env.CONTEND, ["report", "-", "--html", file], { input: text });
  return file;
}

/** Opens the page of a record, with a list of everything that it should not do. */
async function open(text, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const file = make(text);
  const faults = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    if (request.url() !== pathToFileURL(file).href) faults.push(`request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(file).href);
  return { page, faults, close: () => context.close() };
}

for (const name of RECORDS) {
  const text = fs.readFileSync(path.join(testdata, name), "utf8");

  for (const colorScheme of ["light", "dark"]) {
    test(`${name} has no fault, and is accessible in the ${colorScheme} theme`, async () => {
      const { page, faults, close } = await open(text, { colorScheme });
      await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
      // The page's policy forbids scripts of others, but not those of the debugger.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const found = violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html)}`);
      assert.deepEqual(found, []);
      const dark = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      assert.equal(dark === "rgb(255, 255, 255)", colorScheme === "light", dark);
      assert.deepEqual(faults, []);
      await close();
    });
  }

  test(`${name} fits a telephone`, async () => {
    const { page, faults, close } = await open(text, { viewport: { width: 360, height: 700 } });
    const wide = await page.evaluate(() => {
      // A figure clips the labels of its rows.
      const isFree = (it) => !it.closest(".scroll") && !it.matches("figure text.label");
      const all = [...document.querySelectorAll("body *")].filter(isFree);
      return all.filter((it) => it.getBoundingClientRect().right > 361).map((it) => it.outerHTML.slice(0, 120));
    });
    assert.deepEqual(wide, []);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
    assert.deepEqual(faults, []);
    await close();
  });

  test(`${name} shows the figures of every mark to pointer and keyboard`, async () => {
    const { page, faults, close } = await open(text);
    const figures = await page.locator("figure:has(svg.chart .mark)").all();
    assert.ok(figures.length > 0);
    for (const figure of figures.slice(0, 6)) {
      const marks = figure.locator("svg.chart .mark");
      const texts = await marks.evaluateAll((all) => all.map((mark) => mark.dataset.text));
      assert.ok(texts.every((it) => it.length > 0));
      const readout = figure.locator(".readout");
      await figure.locator("svg.chart").focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await readout.textContent(), texts[0]);
      await page.keyboard.press("End");
      assert.equal(await readout.textContent(), texts.at(-1));
      await page.keyboard.press("ArrowRight");
      assert.equal(await readout.textContent(), texts[0], "it goes round");
      await page.keyboard.press("ArrowLeft");
      assert.equal(await readout.textContent(), texts.at(-1));
      await page.keyboard.press("Escape");
      assert.equal(await readout.textContent(), "");
      // Narrow marks may be covered by others, so the event is sent to the mark itself.
      await marks.first().dispatchEvent("pointerover");
      assert.equal(await readout.textContent(), texts[0]);
    }
    assert.deepEqual(faults, []);
    await close();
  });

  test(`${name} has tables that unfold and sort`, async () => {
    const { page, faults, close } = await open(text);
    const details = page.locator("figure details").first();
    assert.equal(await details.locator("table").isVisible(), false);
    await details.locator("summary").focus();
    await page.keyboard.press("Enter");
    assert.equal(await details.locator("table").isVisible(), true);
    const sorted = await page.evaluate(() => {
      const faults = [];
      for (const button of document.querySelectorAll("figure th.number button")) {
        const heading = button.closest("th");
        const values = () =>
          [...heading.closest("table").tBodies[0].rows]
            .map((row) => row.cells[heading.cellIndex].dataset.value)
            .filter((it) => it !== undefined)
            .map(Number);
        button.click();
        const up = values();
        button.click();
        const down = values();
        const ascends = up.every((it, at) => at === 0 || up[at - 1] <= it);
        const descends = down.every((it, at) => at === 0 || down[at - 1] >= it);
        const state = heading.getAttribute("aria-sort");
        if (!ascends || !descends || up.length !== down.length || state !== "descending") {
          faults.push(heading.outerHTML);
        }
      }
      return faults;
    });
    assert.deepEqual(sorted, []);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("a chart has a mark for each part of the record", async () => {
  const pipe = record("records/pipe-1.json");
  const { page, close } = await open(JSON.stringify(pipe));
  const chart = page.locator("figure", { hasText: "Time of each stage by activity" }).locator("svg.chart");
  const activities = ["on_cpu", "run_queue", "starved", "blocked", "other_wait", "unexplained"];
  const parts = pipe.stages.flatMap((stage) => activities.filter((it) => stage[`${it}_seconds`] > 0));
  assert.equal(await chart.locator(".mark").count(), parts.length);
  await close();

  const doctor = record("records/doctor-1.json");
  const diagnosis = await open(JSON.stringify(doctor));
  const states = diagnosis.page.locator("figure", { hasText: "Time of all threads by state" });
  const times = Object.values(doctor.state_seconds).filter((time) => time > 0);
  assert.equal(await states.locator("svg.chart .mark").count(), times.length);
  await diagnosis.close();
});

test("pictures over time have a mark for each interval", async () => {
  const marks = (page, title) =>
    page.locator("figure", { has: page.locator("figcaption", { hasText: title }) }).locator("svg.chart .mark");

  const pipe = record("records/pipe-1-time-series.json");
  const profile = await open(JSON.stringify(pipe));
  const series = pipe.time_series;
  const intervals = series.stages[0].running.length;
  const lanes = series.stages.length + series.pipes.length;
  assert.equal(await marks(profile.page, "Activities over time").count(), lanes * intervals);
  assert.equal(await marks(profile.page, "Flow of bytes").count(), 2 * pipe.stages.length + 1);
  await profile.close();

  const run = record("records/run-1-work.json");
  const parallel = await open(JSON.stringify(run));
  assert.equal(await marks(parallel.page, "Work over time").count(), run.outcome.work.length);
  await parallel.close();

  const doctor = record("records/doctor-1-time-series.json");
  const diagnosis = await open(JSON.stringify(doctor));
  const { threads, causes } = doctor.time_series;
  const length = Object.values(causes)[0].length;
  assert.equal(await marks(diagnosis.page, "CPUs were used, over time").count(), length);
  assert.equal(await marks(diagnosis.page, "Threads over time").count(), threads.length * length);
  assert.ok((await marks(diagnosis.page, "Who waits for what").count()) > threads.length);
  await diagnosis.close();
});

test("figures of source documents are beside those of the run", async () => {
  const { page, close } = await open(fs.readFileSync(path.join(testdata, "lab/synchronisation.json"), "utf8"));
  const references = page.locator(".mark.reference");
  assert.ok((await references.count()) > 0);
  assert.match(await references.first().getAttribute("data-text"), /the report, \d cores?$/);
  assert.equal(await page.locator("h3", { hasText: /confirmed|inconclusive/ }).count(), 3);
  await close();
});

test("hostile texts are shown, and do nothing", async () => {
  const hostile = `"onload="alert(1)"><img src=x onerror=alert(2)></script><script>alert(3)</script>\u202e${"x".repeat(10_000)}`;
  const pipe = record("records/pipe-1.json");
  pipe.command = hostile;
  pipe.stages[0].command = hostile;
  pipe.findings.forEach((finding) => (finding.message = hostile));
  pipe.host.cpu_model = hostile;
  const { page, faults, close } = await open(JSON.stringify(pipe), { viewport: { width: 360, height: 700 } });
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.locator("h1").textContent()).includes("<img src=x"));
  assert.ok(!(await page.locator("body").innerText()).includes("\u202e"));
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
  assert.deepEqual(faults, []);
  await close();
});

test("the largest page is small and painted at once", async () => {
  const text = fs.readFileSync(path.join(testdata, LARGEST), "utf8");
  const { page, close } = await open(text);
  const [paint] = await page.evaluate(() =>
    performance.getEntriesByName("first-contentful-paint").map((it) => it.startTime),
  );
  const bytes = Buffer.byteLength(await page.content());
  console.log(`first paint after ${Math.round(paint)} ms, ${bytes} bytes`);
  assert.ok(bytes < 2_000_000, `${bytes} bytes`);
  await close();
});

test("a printed page shows its tables", async () => {
  const { page, close } = await open(fs.readFileSync(path.join(testdata, RECORDS[0]), "utf8"));
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  assert.equal(await page.locator("figure details:not([open])").count(), 0);
  await close();
});
