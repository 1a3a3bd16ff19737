"use strict";
// Follows a run that is taking place: draws its charts, and updates its figures.
const page = document.getElementById("live");
const state = document.getElementById("state");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const scaled = (value) => {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let power = 0;
  while (Math.abs(value) >= 999.5 && power < units.length - 1) {
    value /= 1000;
    power += 1;
  }
  const digits = power === 0 ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)}${units[power]}`;
};
const timeSpan = (value) => {
  if (value <= 0) return "0";
  if (value < 0.9995) return `${(value * 1e3).toFixed(value < 0.01 ? 1 : 0)}ms`;
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)}s`;
};
const formats = {
  count: (value) => value.toFixed(2),
  seconds: timeSpan,
  "bytes-per-second": (value) => `${scaled(value)}/s`,
  percent: (value) => `${value.toFixed(0)} %`,
};

class Chart {
  constructor(figure) {
    this.place = figure.querySelector(".chart");
    this.cells = [...figure.querySelectorAll("tbody td.number")];
    this.keys = [...figure.querySelectorAll("tbody .key")];
    this.format = formats[figure.dataset.unit] ?? String;
    this.clear();
    const axis = { stroke: () => css("--soft"), grid: { stroke: () => css("--rule") }, ticks: { stroke: () => css("--rule") } };
    const line = (key) => ({ stroke: () => getComputedStyle(key).color, width: 2, points: { show: false } });
    this.plot = new uPlot(
      {
        width: this.width(),
        height: 220,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.05 : 1] } },
        series: [{}, ...this.keys.map(line)],
        axes: [
          { ...axis, values: (_, ticks) => ticks.map((tick) => `${tick} s`) },
          { ...axis, size: 84, values: (_, ticks) => ticks.map(this.format) },
        ],
      },
      this.data,
      this.place,
    );
    new ResizeObserver(() => this.plot.setSize({ width: this.width(), height: 220 })).observe(this.place);
  }
  width() {
    return Math.max(this.place.clientWidth, 100);
  }
  clear() {
    this.data = [[], ...this.keys.map(() => [])];
  }
  add(seconds, values) {
    this.data[0].push(seconds);
    this.keys.forEach((_, index) => this.data[index + 1].push(values[index] ?? null));
    this.latest = values;
  }
  draw() {
    this.plot.setData(this.data);
    this.cells.forEach((cell, index) => {
      const value = this.latest?.[index];
      cell.textContent = typeof value === "number" ? this.format(value) : "–";
    });
  }
}

const charts = [...document.querySelectorAll("figure.live")].map((figure) => new Chart(figure));
let latest = null;
let isDue = false;

// Many updates arrive at once when the page is opened; they are drawn together.
const draw = () => {
  isDue = false;
  if (!latest) return;
  document.getElementById("seconds").textContent = `${latest.seconds.toFixed(0)} s`;
  document.getElementById("note").textContent = latest.note;
  for (const chart of charts) chart.draw();
};
const show = (text, isLost) => {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("lost", isLost);
};

const source = new EventSource(page.dataset.events);
source.addEventListener("open", () => {
  // The server sends all updates again.
  for (const chart of charts) chart.clear();
  show("Running.", false);
});
source.addEventListener("message", (event) => {
  latest = JSON.parse(event.data);
  charts.forEach((chart, index) => chart.add(latest.seconds, latest.values[index] ?? []));
  if (!isDue) requestAnimationFrame(draw);
  isDue = true;
});
source.addEventListener("end", (event) => {
  source.close();
  const { ending, run } = JSON.parse(event.data);
  show(ending === "" ? "The run has ended." : `The run has ended: ${ending}.`, false);
  if (run !== null) {
    const link = document.createElement("a");
    link.href = `${page.dataset.runs}${run}`;
    link.textContent = `Show run ${run}`;
    state.append(" ", link);
  }
});
source.addEventListener("closing", () => {
  source.close();
  show("contend serve has ended. The figures below are its last ones.", true);
});
source.addEventListener("error", () => {
  if (source.readyState === EventSource.CLOSED) {
    show("The run or contend serve has ended. The figures below are the last ones.", true);
  } else {
    show("contend serve does not answer: it has ended, or the connection is lost. Trying again.", true);
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.forEach((chart) => chart.plot.redraw()));
