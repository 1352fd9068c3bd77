// The figures of the chosen stretch, an allocator a row: any column sorts, and the whole can be copied. Instead of
// latencies it shows, when asked, what allocation takes of a frame or of an audio buffer.
import { constants } from "./data.js";
import { swatchOf } from "./look.js";
import { change, isWhole, section, shownAllocators, state } from "./state.js";
import { countedSeconds, peakOf, summaryOf } from "./summary.js";
import { ABSENT, bytesWords, countWords, duration, latencyWords, rateWords, shareOfBudget, spanWords } from "./words.js";

const table = document.getElementById("table");
const LIMITS = ["1 us", "10 us", "100 us"];

const nameColumn = { name: "allocator", value: (one) => one.allocator.label, words: (value) => value };

const latencyColumn = (name, of, interval) => ({ name, value: (one) => one.summary && of(one.summary), marksLeast: true,
  words: (value, one) => latencyWords(value, one.allocator.step_ns, name === "worst" && one.summary?.atLeast),
  small: (one) => {
    const ends = one.summary && interval?.(one.summary);
    return ends ? spanWords(...ends.map((end) => latencyWords(end, one.allocator.step_ns))) : "";
  } });

const latencyColumns = [
  nameColumn,
  { name: "events", value: (one) => one.summary?.samples ?? null, words: (value) => (value === null ? "0" : countWords(value)) },
  latencyColumn("best", (summary) => summary.best),
  ...constants.percentiles.map(([name], place) => latencyColumn(name, (summary) => summary.named[place], (summary) => summary.intervals?.[place])),
  latencyColumn("worst", (summary) => summary.worst),
  ...LIMITS.map((limit, place) => ({ name: `>${limit}/s`, title: `events that took longer than ${limit}, a second`,
    value: (one) => one.summary && one.summary.above[place] / Math.max(countedSeconds(one.allocator), 1e-9),
    words: (value) => rateWords(value) })),
  { name: "peak memory", value: (one) => peakOf(one.allocator), words: bytesWords },
];

const verdictOf = (one) => one.allocator.verdicts[state.view]?.[state.show] ?? null;
const shareColumn = (name, of) => ({ name, value: (one) => (verdictOf(one) ? of(verdictOf(one)) : null), words: shareOfBudget, marksLeast: true });

const frameColumns = [
  nameColumn,
  { name: "frames", value: (one) => verdictOf(one)?.frames ?? null, words: (value) => (value === null ? ABSENT : countWords(value)) },
  ...["median", "p99", "p99.9"].map((name, place) => shareColumn(name, (verdict) => verdict.shares[place])),
  shareColumn("worst", (verdict) => verdict.worst),
  ...[1, 5, 10].map((percent, place) => ({ name: `over ${percent} %`, value: (one) => verdictOf(one)?.over[place] ?? null,
    words: (value) => (value === null ? ABSENT : countWords(value)) })),
];
const audioColumns = [
  ...frameColumns.slice(0, 6),
  { name: "buffers queued", value: (one) => verdictOf(one)?.buffers ?? null, words: (value) => (value === null ? ABSENT : String(value)) },
  { name: "latency", value: (one) => verdictOf(one)?.latency_ns ?? null, words: (value) => (value === null ? ABSENT : duration(value)) },
  { name: "good for", value: (one) => verdictOf(one)?.use ?? null, words: (value) => value ?? ABSENT },
];

function tableColumns() {
  return state.show === "latency" ? latencyColumns : state.show.endsWith("Hz") ? frameColumns : audioColumns;
}

/// The choice of what the table shows.
export function drawTableChoice() {
  const pick = document.getElementById("show");
  const budgets = section().frames.budgets.filter((name) => section().allocators.some((one) => one.verdicts[state.view]?.[name]));
  pick.replaceChildren(new Option("latency", "latency"), ...budgets.map((name) => new Option(
    name.endsWith("Hz") ? `a frame at ${name}` : `an audio buffer of ${name}`, name)));
  if (![...pick.options].some((option) => option.value === state.show)) state.show = "latency";
  pick.value = state.show;
  pick.onchange = () => change({ show: pick.value }, "sort");
}

export function drawTable() {
  const columns = tableColumns();
  const rows = sortedRows();
  const least = columns.map((column) => (column.marksLeast ? leastOf(column, rows) : null));
  const head = document.createElement("thead");
  const names = head.insertRow();
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (column.name === state.sort) cell.setAttribute("aria-sort", state.rising ? "ascending" : "descending");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column.name;
    if (column.title) button.title = column.title;
    button.addEventListener("click", () => change({ sort: column.name, rising: column.name === state.sort ? !state.rising : true }, "sort"));
    cell.append(button);
    names.append(cell);
  }
  const body = document.createElement("tbody");
  for (const one of rows) {
    const row = body.insertRow();
    columns.forEach((column, place) => {
      const cell = row.insertCell();
      const value = column.value(one) ?? null;
      if (place === 0) cell.append(swatchOf(one.allocator, "table"));
      cell.append(column.words(value, one));
      const small = column.small?.(one);
      if (small) {
        const line = document.createElement("small");
        line.textContent = small;
        cell.append(line);
      }
      if (least[place] !== null && value !== null && !one.allocator.null && value <= least[place]) cell.className = "least";
    });
  }
  const focused = [...table.querySelectorAll("th button")].indexOf(document.activeElement);
  table.replaceChildren(head, body);
  if (focused >= 0) names.cells[focused]?.firstChild.focus();
}

/// The lowest of a column, and what 2 % or a step of the clock above it may be called equal.
function leastOf(column, rows) {
  const competing = rows.filter((one) => !one.allocator.null && (column.value(one) ?? null) !== null);
  if (competing.length < 2) return null;
  const lowest = Math.min(...competing.map(column.value));
  const step = state.show === "latency" ? Math.min(...competing.map((one) => one.allocator.step_ns)) : 0;
  return Math.max(lowest * 1.02, lowest + step);
}

function sortedRows() {
  const rows = shownAllocators().map((allocator) => ({ allocator, summary: summaryOf(allocator) }));
  const columns = tableColumns();
  const column = columns.find(({ name }) => name === state.sort) ?? columns[0];
  const direction = state.rising ? 1 : -1;
  return rows.sort((one, other) => {
    const [left, right] = [column.value(one) ?? null, column.value(other) ?? null];
    if (left === null || right === null) return (left === null) - (right === null);
    return direction * (typeof left === "string" ? left.localeCompare(right) : left - right);
  });
}

export function tableText() {
  const columns = tableColumns();
  const lines = [columns.map((column) => column.name)];
  for (const one of sortedRows()) lines.push(columns.map((column) => column.words(column.value(one) ?? null, one)));
  return lines.map((line) => line.join("\t")).join("\n") + "\n";
}

export function tableWords() {
  const note = `${ABSENT}: fewer than 10 samples lie beyond. ✓: the lowest, or within 2 % of it${state.show === "latency" ? " or a step of the clock" : ""}; null does not compete.`;
  if (state.show !== "latency") {
    const { words, phase } = section().frames;
    const audio = state.show.endsWith("samples") ? " Queued: so many buffers that no allocation ever empties the queue." : "";
    return `Share of the budget that allocation takes, of ${phase ? `all of ${phase}` : "the whole run"}, whatever is brushed. ${words}${audio} ${note}`;
  }
  if (isWhole()) return `The whole run, exact; below a percentile its 95 % interval. ${note}`;
  return `The brushed stretch: within ${(constants.histogram_error * 100).toFixed(1)} %, from histograms; what is slower than the `
    + `${countWords(constants.slowest)} slowest events of an allocator begin is within 0.14 %. ${note}`;
}
