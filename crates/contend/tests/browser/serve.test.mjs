// Tests of `contend serve` in Chromium.
//
// Environment: CONTEND is the executable, CHROMIUM the browser, and BROWSER_MODULES a folder with the
// packages playwright-core and axe-core.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const modules = createRequire(path.join(process.env.BROWSER_MODULES, "x.js"));
const { chromium } = modules("playwright-core");
const axe = fs.readFileSync(modules.resolve("axe-core/axe.min.js"), "utf8");
const testdata = fileURLToPath(new URL("../../../../testdata/", import.meta.url));
const HOSTILE = `"onload="alert(1)'><img src=x onerror=alert(2)></script><script>alert(3)</script>\u202e`;
const RECORDS = ["records/pipe-1.json", "records/doctor-1.json", "records/run-1.json", "records/versus-1.json", "lab/process-thread.json"];
// Pages of the server by name, below its first page. Runs 1 to 5 are those above, 6 and 7 are for comparisons.
const PAGES = {
  "the list": "",
  "a search": "?kind=pipe&command=sort",
  "an empty search": "?command=nothing+like+this",
  "a profile": "run/1",
  "a diagnosis": "run/2",
  "a parallel run": "run/3",
  "compared pipelines": "run/4",
  "a run of the lab": "run/5",
  "a run without a page": "run/8",
  "a comparison of pipelines": "compare?run=1&run=6",
  "a comparison of the lab": "compare?run=5&run=7",
};

let browser;
let folder;
let server;
// All that the tests have started: they would keep this process alive after a failure.
const children = [];

before(async () => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), "contend-serve-"));
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
  });
  const runs = [...RECORDS, RECORDS[0], RECORDS[4]].map((name, index) => saved(record(name), { label: `label ${index + 1}`, started_at: `2026-01-02T03:04:0${index}Z` }));
  fillStore([...runs, saved({ schema: "contend.none/1" }, { title: "no page" })], "runs.db");
  server = await serve("runs.db");
});

after(async () => {
  await browser?.close();
  for (const child of children) child.kill("SIGKILL");
  fs.rmSync(folder, { recursive: true, force: true });
});

function record(name) {
  return JSON.parse(fs.readFileSync(path.join(testdata, name), "utf8"));
}

/** Returns a run in the format of `contend history export`. */
function saved(record, fields = {}) {
  const title = record.command ?? "sort a | uniq -c";
  const common = { format: "contend.export/1", started_at: "2026-01-02T03:04:05Z", ending: "exit 0", host: "board", label: "" };
  return { ...common, schema: record.schema, title, record, ...fields };
}

/** Writes runs to a new store; directly, as `contend history import` refuses those that contend cannot show. */
function fillStore(runs, store) {
  const file = path.join(folder, store);
  const stdio = ["pipe", "ignore", "inherit"];
  const input = JSON.stringify(saved(record(RECORDS[0]))) + "\n";
  execFileSync(process.env.CONTEND, ["history", "import", "-", "--store", file], { input, stdio: ["pipe", "ignore", "ignore"] });
  const script = `
import json, sqlite3, sys
store = sqlite3.connect(sys.argv[1])
store.execute("DELETE FROM run")
columns = ["started_at", "schema", "title", "ending", "label", "host"]
for number, run in enumerate(json.load(sys.stdin), 1):
    values = [number, *(run[column] for column in columns), json.dumps(run["record"])]
    store.execute(f"INSERT INTO run (id, {', '.join(columns)}, record) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
store.commit()
`;
  execFileSync("python3", ["-c", script, file], { input: JSON.stringify(runs), stdio });
}

/** Starts a server, and returns its process and URL. */
async function serve(store, runtime = folder) {
  const environment = { ...process.env, XDG_RUNTIME_DIR: runtime };
  const child = spawn(process.env.CONTEND, ["serve", "--store", path.join(folder, store)], {
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [url] = await once(createInterface({ input: child.stdout }), "line");
  return { child, url, end: (signal) => (child.kill(signal), once(child, "exit")) };
}

/** Starts a pipeline whose progress is published, and returns its process. */
function publish(pipeline, runtime = folder, options = []) {
  const environment = { ...process.env, XDG_RUNTIME_DIR: runtime };
  const words = ["pipe", "--publish", "--no-advice", "--discard", "--no-progress", ...options, pipeline];
  const child = spawn(process.env.CONTEND, words, { env: environment, stdio: "ignore" });
  children.push(child);
  return child;
}

/** Opens a page, with a list of everything that it should not do. */
async function open(url, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => faults.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.push(`error: ${error}`));
  page.on("dialog", (dialog) => (faults.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) faults.push(`request: ${request.url()}`);
  });
  const response = await page.goto(url);
  return { page, faults, response, close: () => context.close() };
}

async function violations(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
  // The page's policy forbids scripts of others, but not those of the debugger.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  return violations.map((it) => `${it.id}: ${it.nodes.slice(0, 3).map((node) => node.html)}`);
}

async function assertFits(page) {
  const wide = await page.evaluate(() => {
    const all = [...document.querySelectorAll("body *")].filter((it) => !it.closest(".scroll") && !it.matches("figure text.label"));
    return all.filter((it) => it.getBoundingClientRect().right > 361).map((it) => it.outerHTML.slice(0, 120));
  });
  assert.deepEqual(wide, []);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360);
}

/** Opens the page of the only run that is taking place. */
async function openLive(url, options = {}) {
  const opened = await open(url, options);
  const link = opened.page.locator("ul.running a");
  for (let attempt = 0; (await link.count()) === 0 && attempt < 200; attempt += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await opened.page.reload();
  }
  await link.first().click();
  return opened;
}

for (const [name, address] of Object.entries(PAGES)) {
  for (const colorScheme of ["light", "dark"]) {
    test(`${name} has no fault, and is accessible in the ${colorScheme} theme`, async () => {
      const { page, faults, response, close } = await open(server.url + address, { colorScheme });
      assert.equal(response.status(), 200);
      assert.deepEqual(await violations(page), []);
      const background = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
      assert.equal(background === "rgb(255, 255, 255)", colorScheme === "light", background);
      assert.deepEqual(faults, []);
      await close();
    });
  }

  test(`${name} fits a telephone`, async () => {
    const { page, faults, close } = await open(server.url + address, { viewport: { width: 360, height: 700 } });
    await assertFits(page);
    assert.deepEqual(faults, []);
    await close();
  });
}

test("a page that does not exist says so, and is accessible", async () => {
  for (const address of ["run/99", "nothing/<b>", "live/1", "compare?run=1"]) {
    const { page, response, close } = await open(server.url + address);
    assert.ok(response.status() >= 400);
    assert.equal(await page.locator(".warning").count(), 1);
    assert.deepEqual(await violations(page), []);
    await page.locator("nav a").click();
    assert.equal(page.url(), server.url);
    await close();
  }
});

test("runs are searched and compared with the keyboard", async () => {
  const { page, faults, close } = await open(server.url);
  await page.keyboard.press("Tab");
  await page.keyboard.type("uniq -c");
  await page.keyboard.press("Enter");
  await page.waitForURL(/command=uniq/);
  assert.equal(await page.locator("input[name=command]").inputValue(), "uniq -c");
  await page.goto(server.url);
  for (const run of [1, 6]) {
    await page.locator(`input[name=run][value="${run}"]`).focus();
    await page.keyboard.press("Space");
  }
  await page.getByRole("button", { name: "Compare the selected runs" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/compare\?/);
  const runs = await page.locator("nav.bar a[href*='/run/']").allTextContents();
  assert.deepEqual(runs, ["run 1 (label 1)", "run 6 (label 6)"]);
  await page.locator("nav.bar a", { hasText: "run 6" }).click();
  assert.ok(page.url().endsWith("/run/6"));
  await page.getByLabel("Compare with run").fill("1");
  await page.keyboard.press("Enter");
  await page.waitForURL(/compare\?run=6&run=1/);
  assert.deepEqual(faults, []);
  await close();
});

test("a label is edited, with and without scripts", async () => {
  for (const javaScriptEnabled of [true, false]) {
    const { page, faults, close } = await open(`${server.url}run/2`, { javaScriptEnabled });
    const label = page.getByLabel("Label", { exact: true });
    await label.fill(`new ${HOSTILE}`);
    await label.press("Enter");
    await page.waitForURL(/run\/2$/);
    assert.equal(await label.inputValue(), `new ${HOSTILE}`);
    await page.locator("nav a", { hasText: "All runs" }).click();
    const text = await page.locator("tr", { has: page.locator("a[href$='run/2']") }).innerText();
    assert.ok(text.includes("new \"onload=") && !text.includes("\u202e"), text);
    assert.deepEqual(faults, []);
    await page.goto(`${server.url}run/2`);
    await label.fill("label 2");
    await page.getByRole("button", { name: "Save" }).click();
    await page.waitForURL(/run\/2$/);
    await close();
  }
});

test("lists, runs and comparisons need no scripts", async () => {
  const { page, faults, close } = await open(server.url, { javaScriptEnabled: false });
  await page.getByLabel("Kind").selectOption("lab");
  await page.getByRole("button", { name: "Search" }).click();
  assert.equal(await page.locator("table.runs tbody tr").count(), 2);
  for (const box of await page.locator("input[name=run]").all()) await box.check();
  await page.getByRole("button", { name: "Compare the selected runs" }).click();
  await page.waitForURL(/compare\?/);
  assert.ok((await page.locator("main").innerText()).length > 100);
  assert.deepEqual(faults, []);
  await close();
});

test("hostile texts are shown on every page, and do nothing", async () => {
  const replace = (value, depth = 0) => {
    if (Array.isArray(value)) return value.map((it) => replace(it, depth + 1));
    if (typeof value !== "object" || value === null) return value;
    const free = ["command", "message", "name", "cpu_model", "kernel", "diagnosis", "text", "why", "origin", "evidence", "remedy", "detail", "governor", "libc", "shell"];
    const change = ([key, it]) => [key, typeof it === "string" && free.includes(key) && depth < 9 ? HOSTILE : replace(it, depth + 1)];
    return Object.fromEntries(Object.entries(value).map(change));
  };
  const fields = { started_at: HOSTILE, title: HOSTILE, ending: HOSTILE, label: HOSTILE, host: HOSTILE };
  const runs = [RECORDS[0], ...RECORDS.slice(0, 4)].map((name) => saved(replace(record(name)), fields));
  fillStore([...runs, saved({ schema: HOSTILE }, fields)], "hostile.db");
  const hostile = await serve("hostile.db");
  const query = encodeURIComponent(HOSTILE);
  const addresses = ["", "run/1", "run/2", "run/3", "run/4", "run/5", "run/6", "compare?run=1&run=2", "compare?run=1&run=5", `?command=${query}&label=${query}&host=${query}`, `?since=${query}`, `?kind=${query}`, `run/${query}`];
  for (const address of addresses) {
    const { page, faults, close } = await open(hostile.url + address, { viewport: { width: 360, height: 700 } });
    assert.equal(await page.locator("img").count(), 0, address);
    assert.ok(!(await page.locator("body").innerText()).includes("\u202e"), address);
    assert.equal(await page.evaluate(() => [...document.querySelectorAll("*")].flatMap((it) => it.getAttributeNames()).filter((it) => it.startsWith("on")).length), 0);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 360, address);
    // A page with status 400 or 404 is an error message of the console.
    assert.deepEqual(faults.filter((it) => !it.includes("Failed to load resource")), [], address);
    await close();
  }
  await hostile.end();
});

test("other addresses, hosts and tokens are refused", async () => {
  const { host, port, pathname } = new URL(server.url);
  for (const [url, status] of [
    [`http://${host}/`, 404],
    [`http://${host}/${"0".repeat(32)}/`, 404],
    [`http://evil.example:${port}${pathname}`, 421],
    [`http://localhost:${port}${pathname}`, 200],
  ]) {
    const { page, response, close } = await open(url);
    assert.equal(response.status(), status, url);
    if (status !== 200) assert.equal(await page.locator("table").count(), 0, url);
    await close();
  }
});

test("a page of another origin reads, embeds and changes nothing", async () => {
  const page = (body) => `<!doctype html><meta charset="utf-8"><title>other</title>${body}`;
  const form = `<form method="post" action="${server.url}run/3/label"><input name="label" value="stolen"><button>send</button></form>`;
  const other = http.createServer((request, response) => {
    response.setHeader("Content-Type", "text/html");
    const script = `<script src="${server.url}uPlot.js"></script>`;
    response.end(page(`${form}${script}<iframe src="${server.url}"></iframe>`));
  });
  other.listen(0, "127.0.0.1");
  await once(other, "listening");
  const context = await browser.newContext();
  const tab = await context.newPage();
  await tab.goto(`http://127.0.0.1:${other.address().port}/`);
  const read = (options) =>
    tab.evaluate(([url, options]) => fetch(url, options).then((it) => it.text(), (error) => `refused: ${error}`), [server.url, options]);
  assert.match(await read({}), /^refused/);
  assert.equal(await read({ mode: "no-cors" }).then((it) => it.includes("<html")), false);
  assert.equal(await tab.evaluate(() => typeof uPlot), "undefined");
  assert.ok(tab.frames().slice(1).every((frame) => !frame.url().startsWith(server.url)), "the frame is empty");
  const [response] = await Promise.all([
    tab.waitForResponse((it) => it.url().endsWith("/run/3/label")),
    tab.getByRole("button", { name: "send" }).click(),
  ]);
  assert.equal(response.status(), 403);
  await context.close();
  other.close();
  const own = await open(`${server.url}run/3`);
  assert.equal(await own.page.getByLabel("Label", { exact: true }).inputValue(), "label 3");
  await own.close();
});

test("a running pipeline is shown live until its end", async () => {
  const over = path.join(folder, "over");
  const pipeline = `until [ -e '${over}' ]; do seq 200000; sleep 0.1; done | sort -n | tail -n 1`;
  const run = publish(pipeline, folder, ["--store", path.join(folder, "runs.db")]);
  const { page, faults, close } = await openLive(server.url);
  const state = page.locator("#state");
  await state.getByText("Running.").waitFor();
  assert.equal(await page.locator("figure.live").count(), 2);
  assert.equal(await page.locator("figure.live canvas").count(), 2);
  const seconds = async () => Number.parseInt(await page.locator("#seconds").textContent(), 10);
  const first = await seconds();
  await page.waitForFunction((first) => Number.parseInt(document.getElementById("seconds").textContent, 10) > first, first);
  const value = page.locator("figure.live", { hasText: "Bytes that each stage writes" }).locator("td.number").first();
  await page.waitForFunction(() => /\dB\/s|[kMG]B\/s/.test(document.querySelectorAll("figure.live")[1].querySelector("td.number").textContent));
  assert.match(await value.textContent(), /B\/s$/);
  const drawn = await page.evaluate(() => {
    const canvas = document.querySelectorAll("figure.live canvas")[1];
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.some((it) => it !== 0);
  });
  assert.ok(drawn, "the chart is empty");
  fs.writeFileSync(over, "");
  await state.getByText("The run has ended").waitFor({ timeout: 120_000 });
  const link = state.locator("a");
  assert.match(await link.textContent(), /^Show run \d+$/);
  await link.click();
  assert.ok((await page.locator("h1").textContent()).includes("tail -n 1"));
  assert.deepEqual(faults, []);
  await close();
  if (run.exitCode === null) await once(run, "exit");
});

for (const colorScheme of ["light", "dark"]) {
  test(`a live view is accessible and fits a telephone in the ${colorScheme} theme`, async () => {
    const runtime = fs.mkdtempSync(path.join(folder, "runtime-"));
    const own = await serve("runs.db", runtime);
    const run = publish(`sleep 60 | cat '${HOSTILE.replaceAll("'", "")}' - | cat`, runtime, ["--no-store"]);
    const { page, faults, close } = await openLive(own.url, { colorScheme, viewport: { width: 360, height: 700 } });
    await page.locator("#state").getByText("Running.").waitFor();
    await page.waitForFunction(() => document.getElementById("note").textContent.includes("stages running"));
    assert.deepEqual(await violations(page), []);
    await assertFits(page);
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(faults, []);
    await close();
    run.kill();
    await own.end();
  });
}

test("a live view says that the server has ended", async () => {
  for (const [signal, expected] of [["SIGTERM", /^contend serve has ended/], ["SIGKILL", /contend serve (has ended|does not answer)/]]) {
    const runtime = fs.mkdtempSync(path.join(folder, "runtime-"));
    const own = await serve("runs.db", runtime);
    const run = publish("sleep 60 | cat", runtime, ["--no-store"]);
    const { page, close } = await openLive(own.url);
    const state = page.locator("#state");
    await state.getByText("Running.").waitFor();
    await own.end(signal);
    await state.getByText(expected).waitFor();
    assert.ok((await state.getAttribute("class")).includes("lost"));
    await close();
    run.kill();
  }
});

test("a live view says that its program was killed", async () => {
  const runtime = fs.mkdtempSync(path.join(folder, "runtime-"));
  const own = await serve("runs.db", runtime);
  const run = publish("sleep 60 | cat", runtime, ["--no-store"]);
  const { page, close } = await openLive(own.url);
  await page.locator("#state").getByText("Running.").waitFor();
  run.kill("SIGKILL");
  await page.locator("#state").getByText("The run has ended: the program was killed.").waitFor();
  await close();
  await own.end();
});
