// The figures of the chosen stretch, an allocator a row: any column sorts, and the whole can be copied.
import { constants } from "./data.js";
import { drawSwatch } from "./look.js";
import { change, isWhole, shownAllocators, state } from "./state.js";
import { countedSeconds, peakOf, summaryOf } from "./summary.js";
import { ABSENT, bytesWords, countWords, latencyWords, rateWords } from "./words.js";

const table = document.getElementById("table");
const LIMITS = ["1 us", "10 us", "100 us"];

const latencyColumn = (name, of) => ({ name, value: (one) => one.summary && of(one.summary), isLatency: true,
  words: (value, one) => latencyWords(value, one.allocator.step_ns, name === "worst" && one.summary?.atLeast) });

const tableColumns = [
  { name: "allocator", value: (one) => one.allocator.label, words: (value) => value },
  { name: "events", value: (one) => one.summary?.samples ?? null, words: (value) => (value === null ? "0" : countWords(value)) },
  latencyColumn("best", (summary) => summary.best),
  ...constants.percentiles.map(([name], place) => latencyColumn(name, (summary) => summary.named[place])),
  latencyColumn("worst", (summary) => summary.worst),
  ...LIMITS.map((limit, place) => ({ name: `>${limit}/s`, title: `events that took longer than ${limit}, a second`,
    value: (one) => one.summary && one.summary.above[place] / Math.max(countedSeconds(one.allocator), 1e-9),
    words: (value) => rateWords(value) })),
  { name: "peak memory", value: (one) => peakOf(one.allocator), words: bytesWords },
];

export function drawTable() {
  const rows = sortedRows();
  const least = tableColumns.map((column) => (column.isLatency ? leastOf(column, rows) : null));
  const head = document.createElement("thead");
  const names = head.insertRow();
  for (const column of tableColumns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (column.name === state.sort) cell.setAttribute("aria-sort", state.rising ? "ascending" : "descending");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.name;
    if (column.title) button.title = column.title;
    button.addEventListener("click", () => {
      change({ sort: column.name, rising: column.name === state.sort ? !state.rising : true }, "sort");
      table.querySelectorAll("th button")[tableColumns.indexOf(column)].focus();
    });
    cell.append(button);
    names.append(cell);
  }
  const body = document.createElement("tbody");
  for (const one of rows) {
    const row = body.insertRow();
    tableColumns.forEach((column, place) => {
      const cell = row.insertCell();
      const value = column.value(one) ?? null;
      if (place === 0) {
        const swatch = document.createElement("canvas");
        drawSwatch(swatch, one.allocator);
        cell.append(swatch);
      }
      cell.append(column.words(value, one));
      if (least[place] !== null && value !== null && !one.allocator.null && value <= least[place]) cell.className = "least";
    });
  }
  table.replaceChildren(head, body);
}

/// The lowest of a column, and what 2 % or a step of the clock above it may be called equal.
function leastOf(column, rows) {
  const competing = rows.filter((one) => !one.allocator.null && (column.value(one) ?? null) !== null);
  if (competing.length < 2) return null;
  const lowest = Math.min(...competing.map(column.value));
  return Math.max(lowest * 1.02, lowest + Math.min(...competing.map((one) => one.allocator.step_ns)));
}

function sortedRows() {
  const rows = shownAllocators().map((allocator) => ({ allocator, summary: summaryOf(allocator) }));
  const column = tableColumns.find(({ name }) => name === state.sort) ?? tableColumns[0];
  const direction = state.rising ? 1 : -1;
  return rows.sort((one, other) => {
    const [left, right] = [column.value(one) ?? null, column.value(other) ?? null];
    if (left === null || right === null) return (left === null) - (right === null);
    return direction * (typeof left === "string" ? left.localeCompare(right) : left - right);
  });
}

export function tableText() {
  const lines = [tableColumns.map((column) => column.name)];
  for (const one of sortedRows()) lines.push(tableColumns.map((column) => column.words(column.value(one) ?? null, one)));
  return lines.map((line) => line.join("\t")).join("\n") + "\n";
}

export function tableWords() {
  const note = `${ABSENT}: fewer than 10 samples lie beyond. ✓: the lowest, or within 2 % or a step of the clock of it; null does not compete.`;
  if (isWhole()) return `The whole run, exact. ${note}`;
  return `The brushed stretch: within ${(constants.histogram_error * 100).toFixed(1)} %, from histograms; what is slower than the `
    + `${countWords(constants.slowest)} slowest events of an allocator begin is within 0.14 %. ${note}`;
}

