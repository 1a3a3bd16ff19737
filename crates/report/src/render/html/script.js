"use strict";
// Shows what a mark says while the pointer is over it, or after an arrow key in a focused chart.
for (const figure of document.querySelectorAll("figure")) {
  const readout = figure.querySelector(".readout");
  const chart = figure.querySelector("svg.chart");
  if (!readout || !chart) continue;
  const marks = [...chart.querySelectorAll(".mark[data-text]")];
  let current = -1;
  const show = (index) => {
    if (current >= 0) marks[current].classList.remove("on");
    current = index;
    if (index >= 0) marks[index].classList.add("on");
    readout.textContent = index >= 0 ? marks[index].dataset.text : "";
  };
  chart.addEventListener("pointerover", (event) => {
    const index = marks.indexOf(event.target);
    if (index >= 0) show(index);
  });
  chart.addEventListener("pointerleave", () => show(-1));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") show(-1);
    else if (event.key === "Home" && marks.length) show(0);
    else if (event.key === "End" && marks.length) show(marks.length - 1);
    else if (step && marks.length) show((current + step + marks.length + (current < 0 && step < 0 ? 1 : 0)) % marks.length);
    else return;
    event.preventDefault();
  });
  chart.addEventListener("blur", () => show(-1));
}
// Sorts a table by a column: first ascending, then descending. Empty cells come last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const table = heading.closest("table");
    const body = table.tBodies[0];
    const column = heading.cellIndex;
    const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const isNumber = heading.classList.contains("number");
    const rows = [...body.rows].map((row) => [row, key(row)]);
    rows.sort(([, a], [, b]) => {
      if (!isNumber) return sign * a.localeCompare(b, "en", { numeric: true });
      const [x, y] = [a, b].map((text) => (text === "" ? NaN : Number(text)));
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      return sign * (x - y);
    });
    body.append(...rows.map(([row]) => row));
  });
}
// Printed pages show what is folded.
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
