// What the scatter shows of time and latency, and how that changes: by wheel, buttons, keys and fingers.
import { change, endSeconds, section, setRange, state } from "./state.js";

/// The latency axis: the chosen stretch of latency, or all of the section's.
export function latencyRange() {
  if (state.low !== null) return [state.low, state.high];
  let worst = 1000;
  let step = Infinity;
  for (const one of section().allocators) {
    step = Math.min(step, one.step_ns);
    for (const operation of ["malloc", "free"]) worst = Math.max(worst, one.figures[operation]?.["as-run"]?.worst ?? 0);
  }
  const quarter = Math.max(1, step / 4);
  const decade = 10 ** Math.floor(Math.log10(quarter));
  return [decade * (quarter >= 5 * decade ? 5 : quarter >= 2 * decade ? 2 : 1), worst * 1.4];
}

/// Zooms in time about a place (0 left edge, 1 right edge) by a factor below 1 for closer.
export function zoomTime(factor, about = 0.5) {
  const span = state.to - state.from;
  const at = state.from + span * about;
  setRange(at - span * factor * about, at + span * factor * (1 - about));
}

export function zoomLatency(factor, about = 0.5) {
  const [low, high] = latencyRange();
  const span = Math.log2(high / low);
  const at = Math.log2(low) + span * about;
  const wider = Math.min(span * factor, 34);
  if (wider < 0.1) return;
  change({ low: Math.max(2 ** (at - wider * about), 0.5), high: 2 ** (at + wider * (1 - about)) }, "range");
}

export function moveLatency(share) {
  const [low, high] = latencyRange();
  const factor = (high / low) ** share;
  change({ low: Math.max(low * factor, 0.5), high: high * factor }, "range");
}

export function wholeRange() {
  change({ from: 0, to: endSeconds(), low: null, high: null }, "range");
}
