// One allocator's events as the charts use them: histograms of short stretches of time (cells), and the slowest events
// one by one (singles). No event is in both, so that sums over both are sums over all events.
import { constants, facts, openPack } from "./data.js";

const loadedModels = new Map();
const readyModels = new Map();

/// Resolves to the model; each is decoded once.
export function loadModel(sectionNumber, name) {
  const key = `${sectionNumber}/${name}`;
  if (!loadedModels.has(key)) {
    loadedModels.set(
      key,
      openPack(key).then((pack) => {
        const model = decodeModel(facts.sections[sectionNumber], pack);
        readyModels.set(key, model);
        return model;
      }),
    );
  }
  return loadedModels.get(key);
}

/// The model when it has been decoded already, else undefined.
export const modelIfReady = (sectionNumber, name) => readyModels.get(`${sectionNumber}/${name}`);

function decodeModel(section, pack) {
  const cells = {};
  for (const operation of ["malloc", "free"]) {
    const asRun = decodeBins(pack.columns, `${operation}_as_run`, section.columns);
    cells[`${operation}/as-run`] = asRun;
    const byMachine = decodeBins(pack.columns, `${operation}_by_machine`, section.columns);
    const returned = decodeBins(pack.columns, `${operation}_returned`, section.columns);
    cells[`${operation}/attributed`] = withCells(withCells(asRun, byMachine, -1), returned, +1);
    cells[`${operation}/inherent`] = decodeBins(pack.columns, `${operation}_inherent`, section.columns);
  }
  return {
    cells,
    singles: decodeSingles(section, pack),
    points: {},
    sums: {},
    times: pack.columns.node ? pack.columns : null, // of stacks.js
    completeAbove: pack.complete_above_ns,
  };
}

/// Cells `start[c]` up to `start[c + 1]` lie in column c; `place` says where, in rising order.
export function decodeCells(columns, name, columnCount) {
  const occupied = columns[`${name}.occupied`];
  const gap = columns[`${name}.gap`];
  const start = new Uint32Array(columnCount + 1);
  const place = new gap.constructor(gap.length);
  let at = 0;
  for (let column = 0; column < columnCount; ++column) {
    start[column] = at;
    let before = 0;
    for (const end = at + occupied[column]; at < end; ++at) place[at] = before += gap[at];
  }
  start[columnCount] = at;
  return { start, place };
}

function decodeBins(columns, name, columnCount) {
  const { start, place: bin } = decodeCells(columns, name, columnCount);
  return { start, bin, count: columns[`${name}.count`] };
}

/// The part's counts are added or taken off, by the sign; its cells are all among those of the whole.
function withCells(whole, part, sign) {
  if (part.bin.length === 0) return whole;
  const count = whole.count.slice();
  for (let column = 0; column + 1 < whole.start.length; ++column) {
    let at = whole.start[column];
    for (let other = part.start[column]; other < part.start[column + 1]; ++other) {
      while (whole.bin[at] < part.bin[other]) ++at;
      count[at] += sign * part.count[other];
    }
  }
  return { ...whole, count };
}

function decodeSingles(section, pack) {
  const { columns } = pack;
  const time = Float64Array.from(columns.time, (units) => (units * pack.time_unit_ns) / 1e9);
  const steps = [];
  const cause = [];
  for (let repeat = 0; repeat < pack.repeats; ++repeat) {
    steps.push(columns[`latency.${repeat}`]);
    cause.push(columns[`cause.${repeat}`]);
  }
  return {
    length: columns.event.length,
    repeats: pack.repeats,
    event: columns.event,
    kind: columns.kind,
    thread: columns.thread,
    frame: columns.frame,
    steps,
    cause,
    node: columns.node ?? new Uint8Array(columns.event.length),
    change: columns.change ?? new Uint8Array(columns.event.length),
    calls: columns.calls,
    phrases: pack.calls,
    time,
    column: columnsOf(section, time),
    size: Float64Array.from(columns.size, (place) => pack.sizes[place]),
  };
}

/// The column that each time lies in: [column * seconds, (column + 1) * seconds), the last without an end.
function columnsOf(section, time) {
  const seconds = section.end_ns / 1e9 / section.columns;
  return Uint16Array.from(time, (at) => {
    let column = Math.floor(at / seconds);
    if (column * seconds > at) --column;
    else if ((column + 1) * seconds <= at) ++column;
    return Math.min(Math.max(column, 0), section.columns - 1);
  });
}

/// Nanoseconds of a latency as the pack keeps it, in logarithmic steps.
const stepNs = Float64Array.from(
  { length: 34 * constants.latency_steps },
  (_, step) => 2 ** (step / constants.latency_steps) - 1,
);

export const STEPS_OF_LATENCY = stepNs.length;
export const nsOfStep = (step) => stepNs[step];
export const latencyOf = (singles, repeat, index) => stepNs[singles.steps[repeat][index]];

/// The singles of one operation as a view shows them, slowest first: parallel arrays of time (s), ns, and the step that
/// those are, index into singles, repeat. As-run and attributed have a point for each repeat (attributed none of those
/// that the machine interrupted, unless it did in all: then each at the least), inherent one for the least of them.
export function pointsOf(model, operation, view) {
  const key = `${operation}/${view}`;
  model.points[key] ??= makePoints(model.singles, operation === "free", view);
  return model.points[key];
}

function makePoints(singles, frees, view) {
  const places = new Uint32Array(stepNs.length + 1);
  forEachPoint(singles, frees, view, (step) => {
    ++places[stepNs.length - step];
  });
  for (let i = 1; i < places.length; ++i) places[i] += places[i - 1];
  const count = places[stepNs.length];
  const found = {
    time: new Float64Array(count),
    ns: new Float32Array(count),
    step: new Uint16Array(count),
    index: new Uint32Array(count),
    repeat: new Uint8Array(count),
  };
  forEachPoint(singles, frees, view, (step, i, repeat) => {
    const place = places[stepNs.length - 1 - step]++;
    found.time[place] = singles.time[i];
    found.ns[place] = stepNs[step];
    found.step[place] = step;
    found.index[place] = i;
    found.repeat[place] = repeat;
  });
  return found;
}

/// Calls `visit(step, index, repeat)` for each point of an operation, in no order.
export function forEachPoint(singles, frees, view, visit) {
  const { steps, cause, kind, repeats } = singles;
  for (let i = 0; i < singles.length; ++i) {
    if ((kind[i] === 3) !== frees) continue;
    if (view === "inherent") {
      const least = leastRepeat(steps, repeats, i);
      visit(steps[least][i], i, least);
      continue;
    }
    let struck = 0;
    if (view === "attributed") for (let r = 0; r < repeats; ++r) struck += byMachine(cause[r][i]);
    if (struck === repeats && repeats > 1) {
      const least = steps[leastRepeat(steps, repeats, i)][i];
      for (let r = 0; r < repeats; ++r) visit(least, i, r);
      continue;
    }
    for (let r = 0; r < repeats; ++r) {
      if (struck === 0 || !byMachine(cause[r][i])) visit(steps[r][i], i, r);
    }
  }
}

const byMachine = (cause) => (cause & constants.machine_causes) !== 0;

function leastRepeat(steps, repeats, i) {
  let least = 0;
  for (let r = 1; r < repeats; ++r) if (steps[r][i] < steps[least][i]) least = r;
  return least;
}

/// The bin of a latency, as the tiles were cut.
export function binOf(ns) {
  return ns <= 0 ? 0 : Math.min(1 + Math.floor(Math.log2(Math.max(ns, 1)) * constants.per_octave), constants.bins - 1);
}

export const binLow = (bin) => (bin <= 1 ? (bin === 0 ? 0 : 1) : 2 ** ((bin - 1) / constants.per_octave));
const middles = Float64Array.from({ length: constants.bins }, (_, bin) =>
  bin === 0 ? 0 : 2 ** ((bin - 0.5) / constants.per_octave),
);
export const binMiddle = (bin) => middles[bin];

/// The columns that a stretch of seconds touches: [first, behind the last].
export function columnRange(section, from, to) {
  const perSecond = section.columns / (section.end_ns / 1e9);
  const first = Math.min(Math.max(Math.floor(from * perSecond + 1e-6), 0), section.columns - 1);
  return [first, Math.max(first + 1, Math.min(Math.ceil(to * perSecond - 1e-6), section.columns))];
}
