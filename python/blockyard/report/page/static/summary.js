// The figures of a stretch of time: exact ones of the whole run as the analysis computed them, and those of a brushed
// stretch from histograms (within 2.2 %) and single events (within 0.14 %).
import { constants } from "./data.js";
import { binMiddle, columnRange, modelIfReady, pointsOf } from "./model.js";
import { isWhole, section, state } from "./state.js";

const BEYOND = 10; // a percentile needs so many samples beyond it, as in every table of the lab

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
  const histogram = new Float64Array(constants.bins);
  for (let at = cells.start[first], end = cells.start[behind]; at < end; ++at) histogram[cells.bin[at]] += cells.count[at];
  const tail = tailOf(model, first, behind);
  let samples = tail.length;
  for (let bin = 0; bin < histogram.length; ++bin) samples += histogram[bin];
  if (samples === 0) return null;

  // Every latency above what the singles are complete from is a single: from the top, they come one by one.
  const fromTop = (rank) => {
    if (rank <= tail.length && tail[rank - 1] > model.completeAbove) return tail[rank - 1];
    return null;
  };
  const merged = histogram.slice();
  for (const ns of tail) merged[ns <= 0 ? 0 : Math.min(1 + Math.floor(Math.log2(Math.max(ns, 1)) * constants.per_octave), constants.bins - 1)] += 1;
  const cumulated = new Float64Array(merged.length);
  for (let bin = 0, sum = 0; bin < merged.length; ++bin) cumulated[bin] = sum += merged[bin];
  const atRank = (rank) => {
    const single = fromTop(samples - rank + 1);
    if (single !== null) return single;
    let low = 0;
    let high = cumulated.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (cumulated[middle] >= rank) high = middle;
      else low = middle + 1;
    }
    return binMiddle(low);
  };
  const share = (part) => (samples * (1 - part) >= BEYOND - 1e-6 ? atRank(Math.max(1, Math.ceil(samples * part - 1e-6))) : null);
  return {
    samples, best: atRank(1), worst: atRank(samples), atLeast: false, exact: false,
    named: constants.percentiles.map(([, numerator, denominator]) =>
      samples * (denominator - numerator) >= BEYOND * denominator ? atRank(Math.max(1, Math.ceil((samples * numerator) / denominator))) : null),
    above: constants.limits_ns.map((limit) => {
      let count = 0;
      for (let bin = histogram.length - 1; bin > 0 && binMiddle(bin) > limit; --bin) count += histogram[bin];
      for (const ns of tail) if (ns > limit) ++count;
      return count;
    }),
    curve: constants.shares.map(share),
  };
}

/// Latencies of the singles whose time lies in the columns, slowest first.
function tailOf(model, first, behind) {
  const points = pointsOf(model, state.operation, state.view);
  const seconds = section().end_ns / 1e9 / section().columns;
  const from = first * seconds;
  const to = behind === section().columns ? Infinity : behind * seconds;
  const found = [];
  for (let i = 0; i < points.time.length; ++i) if (points.time[i] >= from && points.time[i] < to) found.push(points.ns[i]);
  return Float32Array.from(found).sort().reverse();
}

/// Seconds of the journal that the figures are counted over, all repeats together.
export function countedSeconds(allocator) {
  const repeats = state.view === "inherent" ? 1 : allocator.repeats;
  if (isWhole()) return state.view === "inherent" ? section().end_ns / 1e9 : allocator.measured_ns / 1e9;
  const [first, behind] = columnRange(section(), state.from, state.to);
  return ((behind - first) / section().columns) * (section().end_ns / 1e9) * repeats;
}

/// Most resident bytes within the stretch.
export function peakOf(allocator) {
  if (isWhole() || !allocator.memory) return allocator.peak_bytes;
  const { time_s: time, resident } = allocator.memory;
  let peak = null;
  for (let i = 0; i < time.length; ++i) {
    const next = i + 1 < time.length ? time[i + 1] : Infinity;
    if (time[i] <= state.to && next >= state.from) peak = Math.max(peak ?? 0, resident[i]);
  }
  return peak;
}
