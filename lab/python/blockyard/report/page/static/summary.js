// The figures of a stretch of time: exact ones of the whole run as the analysis computed them, and those of a brushed
// stretch from histograms (within 2.2 %) and single events (within 0.14 %).
import { constants } from "./data.js";
import { binMiddle, binOf, columnRange, modelIfReady, nsOfStep, STEPS_OF_LATENCY } from "./model.js";
import { isWhole, section, state } from "./state.js";
import { addEvents, slowerOfSteps, sumsOf } from "./sums.js";

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
