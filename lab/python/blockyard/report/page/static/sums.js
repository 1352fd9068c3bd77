// How many events a stretch of time has in each bin and, of the single ones, from each step of latency on, without
// going through all of the run.
import { constants } from "./data.js";
import { forEachPoint, STEPS_OF_LATENCY } from "./model.js";

const SUM_EVERY = 64; // columns
const slower = new Uint32Array(STEPS_OF_LATENCY + 1);

/// What the figures of any stretch are counted from, of an operation and a view: the cells and the points.
export function sumsOf(model, operation, view) {
  const key = `${operation}/${view}`;
  model.sums[key] ??= makeSums(model.singles, operation === "free", view, model.cells[key]);
  return model.sums[key];
}

function makeSums(singles, frees, view, cells) {
  return { cells: withSums(cells), points: pointsByColumn(singles, frees, view, cells.start.length - 1) };
}

/// The latencies, in steps, `start[c]` up to `start[c + 1]` of those in column c.
function pointsByColumn(singles, frees, view, columnCount) {
  const { column } = singles;
  const start = new Uint32Array(columnCount + 1);
  forEachPoint(singles, frees, view, (_, i) => {
    ++start[column[i] + 1];
  });
  for (let i = 1; i <= columnCount; ++i) start[i] += start[i - 1];
  const next = start.slice();
  const steps = new Uint16Array(start[columnCount]);
  forEachPoint(singles, frees, view, (step, i) => {
    steps[next[column[i]]++] = step;
  });
  return { start, steps };
}

/// Beside the cells, of every 64th column the events before it in each bin: added up from cell to cell, the whole run
/// would be a hundred thousand of each allocator for each step of a zoom.
function withSums({ start, bin, count }) {
  const { bins } = constants;
  const blocks = Math.floor((start.length - 1) / SUM_EVERY);
  const before = new Float64Array((blocks + 1) * bins);
  for (let block = 0; block < blocks; ++block) {
    const here = (block + 1) * bins;
    before.copyWithin(here, here - bins, here);
    for (let at = start[block * SUM_EVERY], end = start[(block + 1) * SUM_EVERY]; at < end; ++at)
      before[here + bin[at]] += count[at];
  }
  return { start, bin, count, before };
}

/// Adds to each bin the events that it has in the columns [first, behind).
export function addEvents(into, { start, bin, count, before }, first, behind) {
  const begin = Math.floor(first / SUM_EVERY);
  const end = Math.floor(behind / SUM_EVERY);
  for (let i = 0, from = begin * into.length, to = end * into.length; i < into.length; ++i)
    into[i] += before[to + i] - before[from + i];
  for (let at = start[begin * SUM_EVERY]; at < start[first]; ++at) into[bin[at]] -= count[at];
  for (let at = start[end * SUM_EVERY]; at < start[behind]; ++at) into[bin[at]] += count[at];
}

/// Of every step of latency how many of the points in the columns [first, behind) have it or a longer one; until the
/// next call.
export function slowerOfSteps({ start, steps }, first, behind) {
  slower.fill(0);
  for (let at = start[first], end = start[behind]; at < end; ++at) ++slower[steps[at]];
  for (let step = STEPS_OF_LATENCY - 1; step >= 0; --step) slower[step] += slower[step + 1];
  return slower;
}
