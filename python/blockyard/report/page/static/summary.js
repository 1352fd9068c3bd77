// The figures of a stretch of time: exact ones of the whole run as the analysis computed them, and those of a brushed
// stretch from histograms (within 2.2 %) and single events (within 0.14 %).
import { constants } from "./data.js";
import { binMiddle, binOf, columnRange, modelIfReady, pointsOf } from "./model.js";
import { isWhole, section, state } from "./state.js";

let keptKey = "";
const kept = new Map();

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
  const cells = model.cells[`${state.operation}/${state.view}`];
  const crowd = new Float64Array(constants.bins);
  for (let at = cells.start[first], end = cells.start[behind]; at < end; ++at) crowd[cells.bin[at]] += cells.count[at];
  const tail = tailOf(model, first, behind);
  const all = crowd.slice();
  for (const ns of tail) ++all[binOf(ns)];
  const upTo = new Float64Array(all.length);
  let samples = 0;
  for (let bin = 0; bin < all.length; ++bin) upTo[bin] = samples += all[bin];
  if (samples === 0) return null;

  const atRank = (rank) => {
    // Every latency above what the singles are complete from is a single: from the top, they come one by one.
    const single = tail[samples - rank];
    if (single > model.completeAbove) return single;
    let low = 0;
    let high = upTo.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (upTo[middle] >= rank) high = middle;
      else low = middle + 1;
    }
    return binMiddle(low);
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
    above: constants.limits_ns.map((limit) => {
      let count = 0;
      for (let bin = crowd.length - 1; bin > 0 && binMiddle(bin) > limit; --bin) count += crowd[bin];
      for (let i = 0; i < tail.length && tail[i] > limit; ++i) ++count;
      return count;
    }),
    curve: constants.shares.map(([numerator, denominator]) => percentile(numerator, denominator)),
  };
}

/// Latencies of the singles whose time lies in the columns, slowest first.
function tailOf(model, first, behind) {
  const { time, ns } = pointsOf(model, state.operation, state.view);
  const seconds = section().end_ns / 1e9 / section().columns;
  const from = first * seconds;
  const to = behind === section().columns ? Infinity : behind * seconds;
  const found = new Float32Array(ns.length);
  let count = 0;
  for (let i = 0; i < ns.length; ++i) if (time[i] >= from && time[i] < to) found[count++] = ns[i];
  return found.subarray(0, count);
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
