// Takes the screenshots of the book: node screenshots.mjs FOLDER
//
// Environment: as for the tests in this folder. Most pages are made from the records in testdata. Those of the lab and of
// `compare` are measured, which takes two minutes; the machine should be idle. The page of the lab needs a font with
// Japanese characters.

import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const modules = createRequire(path.join(process.env.BROWSER_MODULES, "x.js"));
const { chromium } = modules("playwright-core");
const testdata = fileURLToPath(new URL("../../../../testdata/", import.meta.url));
const SIZE = { width: 1100, height: 760 };
const PAGES = {
  pipe: "records/pipe-1-time-series.json",
  run: "records/run-1-work.json",
  doctor: "records/doctor-1-time-series.json",
  versus: "records/versus-1.json",
};

const target = process.argv[2];
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "contend-pictures-"));
const store = path.join(folder, "runs.db");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: ["--no-sandbox"],
});

/** Takes a picture of the upper part of a page. */
async function picture(url, name) {
  const page = await browser.newPage({ viewport: SIZE, colorScheme: "light" });
  await page.goto(url);
  await page.waitForTimeout(300);
  await page.screenshot({ path: path.join(target, `page-${name}.png`) });
  await page.close();
}

/** Returns the URL of a server of the store, and a function that ends it. */
async function serve() {
  const server = spawn(process.env.CONTEND, ["serve", "--store", store]);
  const url = await new Promise((resolve) => {
    server.stdout.on("data", (data) => resolve(String(data).trim()));
  });
  return { url, end: () => server.kill() };
}

for (const [name, record] of Object.entries(PAGES)) {
  const file = path.join(folder, `${name}.html`);
  const text = fs.readFileSync(path.join(testdata, record));
  execFileSync(process.env.CONTEND, ["report", "-", "--html", file], { input: text });
  await picture(pathToFileURL(file).href, name);
}
function contend(...words) {
  execFileSync(process.env.CONTEND, words, { stdio: "ignore" });
}
const pages = { lab: path.join(folder, "lab.html"), compare: path.join(folder, "compare.html") };
contend("lab", "suite", "synchronisation", "--no-store", "--html", pages.lab);
for (const [label, sort] of [["before", "sort"], ["after", "LC_ALL=C sort"]]) {
  const line = `seq 300000 | ${sort} | uniq -c | tail -n 1`;
  const options = ["--label", label, "--store", store, "--runs", "7", "--discard", "--no-advice"];
  contend("pipe", ...options, line);
}
contend("compare", "--store", store, "1", "2", "--html", pages.compare);
for (const [name, file] of Object.entries(pages)) {
  await picture(pathToFileURL(file).href, name);
}
const server = await serve();
await picture(server.url, "serve");
server.end();
await browser.close();
fs.rmSync(folder, { recursive: true, force: true });
