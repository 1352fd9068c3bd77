// The figures, an allocator a row: any column sorts, and the whole can be copied. Latencies are those of the chosen
// stretch; the other tables are of the whole run, as the analysis made them (report/page/content.py).
import { NONE_CHOSEN } from "./chart.js";
import { constants } from "./data.js";
import { make, makeButton } from "./dom.js";
import { swatchOf } from "./look.js";
import { change, isWhole, section, shownAllocators, state } from "./state.js";
import { countedSeconds, peakOf, summaryOf } from "./summary.js";
import {
  ABSENT,
  bytesWords,
  countWords,
  durationWords,
  latencyWords,
  rateWords,
  shareWords,
  spanWords,
} from "./words.js";

const table = document.getElementById("table");
const LIMITS = ["1 us", "10 us", "100 us"];
const UNIT_WORDS = {
  ns: durationWords,
  bytes: bytesWords,
  count: countWords,
  rate: rateWords,
  share: shareWords,
  text: (value) => value ?? ABSENT,
};

const nameColumn = { name: "allocator", value: (one) => one.allocator.label, words: (value) => value };

const latencyColumn = (name, of, interval) => ({
  name,
  value: (one) => one.summary && of(one.summary),
  marksLeast: true,
  words: (value, one) => latencyWords(value, one.allocator.step_ns, name === "worst" && one.summary?.atLeast),
  ends: (one) => one.summary && interval?.(one.summary),
  small: (one) => {
    const ends = one.summary && interval?.(one.summary);
    return ends ? spanWords(...ends.map((end) => latencyWords(end, one.allocator.step_ns))) : "";
  },
});

const latencyColumns = [
  nameColumn,
  { name: "events", value: (one) => one.summary?.samples ?? 0, words: countWords },
  latencyColumn("best", (summary) => summary.best),
  ...constants.percentiles.map(([name], place) =>
    latencyColumn(
      name,
      (summary) => summary.named[place],
      (summary) => summary.intervals?.[place],
    ),
  ),
  latencyColumn("worst", (summary) => summary.worst),
  ...LIMITS.map((limit, place) => ({
    name: `>${limit}/s`,
    title: `events that took longer than ${limit}, per second`,
    value: (one) => one.summary && one.summary.above[place] / Math.max(countedSeconds(one.allocator), 1e-9),
    words: rateWords,
  })),
  { name: "peak memory", value: (one) => peakOf(one.allocator), words: bytesWords },
];

const chosenTable = () => section().tables.find(({ name }) => name === state.show);

function tableColumns() {
  const chosen = chosenTable();
  if (!chosen) return latencyColumns;
  return [
    nameColumn,
    ...chosen.columns.map(([name, unit, marksLeast], place) => {
      const words = UNIT_WORDS[unit];
      // A figure with an interval is a list of it and the ends.
      const cell = (one) => [one.cells[place] ?? null].flat();
      const ends = (one) => cell(one).slice(1);
      return {
        name,
        isText: unit === "text",
        marksLeast,
        words,
        value: (one) => cell(one)[0],
        ends,
        small: (one) => (ends(one).length ? spanWords(...ends(one).map((end) => words(end))) : ""),
      };
    }),
  ];
}

/// The choice of what the table shows.
export function drawTableChoice() {
  const pick = document.getElementById("show");
  if (!chosenTable()) state.show = "latency";
  pick.replaceChildren(
    ...["latency", ...section().tables.map(({ name }) => name)].map((name) => new Option(name, name)),
  );
  pick.value = state.show;
  pick.onchange = () => change({ show: pick.value }, "sort");
}

export function drawTable() {
  const columns = tableColumns();
  const rows = sortedRows(columns);
  const least = columns.map((column) => (column.marksLeast ? leastOf(column, rows) : null));
  const names = make("tr", {}, ...columns.map(headCell));
  const seen = new Map(); // an allocator may have several rows, each with a swatch of its own
  const body = rows.map((one) => {
    const nth = (seen.get(one.allocator) ?? 0) + 1;
    seen.set(one.allocator, nth);
    const cells = columns.map((column, place) => figureCell(column, one, least[place]));
    cells[0].prepend(swatchOf(one.allocator, `table ${nth}`));
    return make("tr", {}, ...cells);
  });
  const focused = [...table.querySelectorAll("th button")].indexOf(document.activeElement);
  table.replaceChildren(make("thead", {}, names), make("tbody", {}, ...body));
  if (focused >= 0) names.cells[focused]?.firstChild.focus();
}

function headCell({ name, title = "", isText }) {
  const isSorted = name === state.sort;
  const button = makeButton(name, title, () => change({ sort: name, rising: isSorted ? !state.rising : true }, "sort"));
  const cell = make("th", { scope: "col", className: isText ? "words" : "" }, button);
  if (isSorted) cell.setAttribute("aria-sort", state.rising ? "ascending" : "descending");
  return cell;
}

function figureCell(column, one, least) {
  const value = column.value(one) ?? null;
  const cell = make("td", { className: column.isText ? "words" : "" }, column.words(value, one));
  const small = column.small?.(one);
  if (small) cell.append(make("small", {}, small));
  if (least && value !== null && !one.allocator.null && least(value, column.ends?.(one))) cell.classList.add("least");
  return cell;
}

/// Whether a value is the lowest of a column, or no claim is made that it is higher: within 2 % or a step of the clock,
/// or within what both intervals leave open (noise.apart of the analysis).
function leastOf(column, rows) {
  const competing = rows.filter((one) => !one.allocator.null && (column.value(one) ?? null) !== null);
  if (competing.length < 2) return null;
  const first = competing.reduce((least, one) => (column.value(one) < column.value(least) ? one : least));
  const lowest = column.value(first);
  const step = chosenTable() ? 0 : Math.min(...competing.map((one) => one.allocator.step_ns));
  const half = (ends) => (ends?.length ? Math.log(ends[1] / Math.max(ends[0], 1e-300)) / 2 : Number.NaN);
  return (value, ends) =>
    value <= Math.max(lowest * 1.02, lowest + 1.5 * step) ||
    Math.log(value / lowest) <= Math.hypot(half(ends), half(column.ends?.(first)));
}

/// A row for each allocator, of tables of sites several.
function tableRows() {
  const chosen = chosenTable();
  if (!chosen) return shownAllocators().map((allocator) => ({ allocator, summary: summaryOf(allocator) }));
  const rows = chosen.rows[state.view] ?? chosen.rows[""] ?? [];
  return shownAllocators().flatMap((allocator) => {
    const found = rows.filter(([name]) => name === allocator.name).map(([, ...cells]) => ({ allocator, cells }));
    return found.length ? found : [{ allocator, cells: [] }];
  });
}

function sortedRows(columns) {
  const rows = tableRows();
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
  const wordsOf = (one) => columns.map((column) => column.words(column.value(one) ?? null, one));
  const lines = [columns.map((column) => column.name), ...sortedRows(columns).map(wordsOf)];
  return `${lines.map((line) => line.join("\t")).join("\n")}\n`;
}

export function tableWords() {
  if (!shownAllocators().length) return NONE_CHOSEN;
  const chosen = chosenTable();
  const least = "✓: the lowest, and who is not beyond noise above it";
  if (chosen) return `Of the whole run, whatever is brushed. ${chosen.words} ${least}; null does not compete.`;
  const note = `${ABSENT}: fewer than ${constants.beyond} samples lie beyond. ` + `${least}; null does not compete.`;
  if (isWhole()) return `The whole run, exact; below a percentile its interval. ${note}`;
  const error = (constants.histogram_error * 100).toFixed(1);
  return (
    `The brushed stretch: within ${error} %, from histograms; what is slower than the ` +
    `${countWords(constants.slowest)} slowest events of an allocator begin is within 0.14 %. ${note}`
  );
}
