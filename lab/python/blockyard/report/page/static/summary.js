// The figures of a stretch of time: exact ones of the whole run as the analysis computed them, and those of a brushed
// stretch from histograms (within 2.2 %) and single events (within 0.14 %).
import { constants } from "./data.js";
import { binMiddle, binOf, columnRange, forEachPoint, modelIfReady, nsOfStep, STEPS_OF_LATENCY } from "./model.js";
import { isWhole, section, state } from "./state.js";

let keptKey = "";
const kept = new Map();
const stepLatency = Float32Array.from({ length: STEPS_OF_LATENCY }, (_, step) => nsOfStep(step));
const stepBin = Uint16Array.from(stepLatency, binOf);
const limitSteps = constants.limits_ns.map((limit) => stepLatency.findIndex((ns) => ns > limit));

/// Of an allocator, for what is chosen: { samples, best, named, worst, atLeast, above, curve, exact }, or null while it
/// is not there yet or has no such event.
export function summaryOf(allocator) {
  if (isWhole()) return exactSummary(allocator);
  const [first, behind] = columnRange(section(), state.from, state.to);
  const key = `${state.section} ${state.operation} ${state.view} ${first} ${behind}`;
  if (key !== keptKey) {
    kept.clear();
    keptKey = key;
  }
  if (!kept.has(allocator.name)) {
    const model = modelIfReady(state.section, allocator.name);
    if (!model) return null;
    kept.set(allocator.name, stretchSummary(model, first, behind));
  }
  return kept.get(allocator.name);
}

function exactSummary(allocator) {
  const found = allocator.figures[state.operation]?.[state.view];
  return found ? { ...found, atLeast: found.at_least, exact: true } : null;
}

function stretchSummary(model, first, behind) {
  const { cells, points } = sumsOf(model, state.operation, state.view);
  const crowd = new Float64Array(constants.bins);
  addEvents(crowd, cells, first, behind);
  const slower = slowerOfSteps(points, first, behind);
  const all = crowd.slice();
  for (let step = 0; step < STEPS_OF_LATENCY; ++step) all[stepBin[step]] += slower[step] - slower[step + 1];
  const upTo = new Float64Array(all.length);
  let samples = 0;
  for (let bin = 0; bin < all.length; ++bin) upTo[bin] = samples += all[bin];
  if (samples === 0) return null;

  const atRank = (rank) => {
    // Every latency above what the singles are complete from is a single: from the top, they come one by one.
    const step = firstPlace(STEPS_OF_LATENCY, (place) => slower[place] <= samples - rank) - 1;
    if (step >= 0 && stepLatency[step] > model.completeAbove) return stepLatency[step];
    return binMiddle(firstPlace(upTo.length - 1, (bin) => upTo[bin] >= rank));
  };
  const percentile = (numerator, denominator) =>
    samples * (denominator - numerator) >= constants.beyond * denominator
      ? atRank(Math.max(1, Math.ceil((samples * numerator) / denominator)))
      : null;
  return {
    samples,
    best: atRank(1),
    worst: atRank(samples),
    atLeast: false,
    exact: false,
    named: constants.percentiles.map(([, numerator, denominator]) => percentile(numerator, denominator)),
    above: constants.limits_ns.map((limit, place) => {
      let count = slower[limitSteps[place]];
      for (let bin = crowd.length - 1; bin > 0 && binMiddle(bin) > limit; --bin) count += crowd[bin];
      return count;
    }),
    curve: constants.shares.map(([numerator, denominator]) => percentile(numerator, denominator)),
  };
}

/// The first place below `behind` from which on a condition holds, else `behind`.
export function firstPlace(behind, holds) {
  let low = 0;
  let high = behind;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/// Seconds of the journal that the figures are counted over, all repeats together.
export function countedSeconds(allocator) {
  const repeats = state.view === "inherent" ? 1 : allocator.repeats;
  if (isWhole()) return state.view === "inherent" ? section().end_ns / 1e9 : allocator.measured_ns / 1e9;
  const [first, behind] = columnRange(section(), state.from, state.to);
  return ((behind - first) / section().columns) * (section().end_ns / 1e9) * repeats;
}

/// Most resident bytes within the stretch: the median over repeats, of the whole run exactly, else at the chart's
/// times.
export function peakOf(allocator) {
  if (isWhole() || !allocator.resident) return allocator.peak_bytes;
  const time = section().memory.time_s;
  let peak = null;
  for (let i = 0; i < time.length; ++i) {
    const next = i + 1 < time.length ? time[i + 1] : Infinity;
    if (time[i] <= state.to && next >= state.from) peak = Math.max(peak ?? 0, allocator.resident[i]);
  }
  return peak;
}

// How many events a stretch of time has in each bin and, of the single ones, from each step of latency on, without
// going through all of the run.
const SUM_EVERY = 64; // columns
const slowerCounts = new Uint32Array(STEPS_OF_LATENCY + 1);

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
function addEvents(into, { start, bin, count, before }, first, behind) {
  const begin = Math.floor(first / SUM_EVERY);
  const end = Math.floor(behind / SUM_EVERY);
  for (let i = 0, from = begin * into.length, to = end * into.length; i < into.length; ++i)
    into[i] += before[to + i] - before[from + i];
  for (let at = start[begin * SUM_EVERY]; at < start[first]; ++at) into[bin[at]] -= count[at];
  for (let at = start[end * SUM_EVERY]; at < start[behind]; ++at) into[bin[at]] += count[at];
}

/// Of every step of latency how many of the points in the columns [first, behind) have it or a longer one; until the
/// next call.
function slowerOfSteps({ start, steps }, first, behind) {
  slowerCounts.fill(0);
  for (let at = start[first], end = start[behind]; at < end; ++at) ++slowerCounts[steps[at]];
  for (let step = STEPS_OF_LATENCY - 1; step >= 0; --step) slowerCounts[step] += slowerCounts[step + 1];
  return slowerCounts;
}
