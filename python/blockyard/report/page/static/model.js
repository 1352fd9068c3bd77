// One allocator's events as the charts use them: histograms of short stretches of time (cells), and the slowest events
// one by one (singles). No event is in both, so that sums over both are sums over all events.
import { constants, facts, openPack } from "./data.js";

const loadedModels = new Map();
const readyModels = new Map();

/// Resolves to the model; each is decoded once.
export function loadModel(sectionNumber, name) {
  const key = `${sectionNumber}/${name}`;
  if (!loadedModels.has(key)) {
    loadedModels.set(key, openPack(key).then((pack) => {
      const model = decodeModel(facts.sections[sectionNumber], pack);
      readyModels.set(key, model);
      return model;
    }));
  }
  return loadedModels.get(key);
}

/// The model when it has been decoded already, else undefined.
export const modelIfReady = (sectionNumber, name) => readyModels.get(`${sectionNumber}/${name}`);

function decodeModel(section, pack) {
  const cells = {};
  for (const operation of ["malloc", "free"]) {
    const asRun = decodeCells(pack.columns, `${operation}_as_run`, section.columns);
    cells[`${operation}/as-run`] = asRun;
    cells[`${operation}/attributed`] = lessCells(asRun, decodeCells(pack.columns, `${operation}_by_machine`, section.columns));
    cells[`${operation}/inherent`] = decodeCells(pack.columns, `${operation}_inherent`, section.columns);
  }
  return { cells, singles: decodeSingles(pack), points: {}, completeAbove: pack.complete_above_ns };
}

/// Cells `start[c]` up to `start[c + 1]` lie in column c, in rising order of bin.
function decodeCells(columns, name, columnCount) {
  const occupied = columns[`${name}.occupied`];
  const gap = columns[`${name}.gap`];
  const start = new Uint32Array(columnCount + 1);
  const bin = new Uint16Array(gap.length);
  let at = 0;
  for (let column = 0; column < columnCount; ++column) {
    start[column] = at;
    let place = 0;
    for (const end = at + occupied[column]; at < end; ++at) bin[at] = place += gap[at];
  }
  start[columnCount] = at;
  return { start, bin, count: columns[`${name}.count`] };
}

function lessCells(whole, part) {
  if (part.bin.length === 0) return whole;
  const count = whole.count.slice();
  for (let column = 0; column + 1 < whole.start.length; ++column) {
    let at = whole.start[column];
    for (let other = part.start[column]; other < part.start[column + 1]; ++other) {
      while (whole.bin[at] < part.bin[other]) ++at;
      count[at] -= part.count[other];
    }
  }
  return { ...whole, count };
}

function decodeSingles(pack) {
  const { columns } = pack;
  const steps = new Float32Array(33 * constants.latency_steps + 1);
  for (let i = 0; i < steps.length; ++i) steps[i] = 2 ** (i / constants.latency_steps) - 1;
  const latency = [];
  const cause = [];
  for (let repeat = 0; repeat < pack.repeats; ++repeat) {
    latency.push(Float32Array.from(columns[`latency.${repeat}`], (step) => steps[step]));
    cause.push(columns[`cause.${repeat}`]);
  }
  return {
    length: columns.event.length, repeats: pack.repeats, event: columns.event, kind: columns.kind, thread: columns.thread,
    frame: columns.frame, latency, cause,
    time: Float64Array.from(columns.time, (units) => (units * pack.time_unit_ns) / 1e9),
    size: Float64Array.from(columns.size, (place) => pack.sizes[place]),
  };
}

/// The singles of one operation as a view shows them: parallel arrays of time (s), ns, index into singles, repeat. As-run
/// and attributed have a point for each repeat, inherent one for the least of them.
export function pointsOf(model, operation, view) {
  const key = `${operation}/${view}`;
  model.points[key] ??= makePoints(model.singles, operation === "free", view);
  return model.points[key];
}

function makePoints(singles, frees, view) {
  const time = [];
  const ns = [];
  const index = [];
  const repeat = [];
  for (let i = 0; i < singles.length; ++i) {
    if ((singles.kind[i] === 3) !== frees) continue;
    let least = 0;
    for (let r = 1; r < singles.repeats; ++r) if (singles.latency[r][i] < singles.latency[least][i]) least = r;
    for (let r = 0; r < singles.repeats; ++r) {
      if (view === "inherent" && r !== least) continue;
      if (view === "attributed" && singles.cause[r][i] & constants.machine_causes) continue;
      time.push(singles.time[i]);
      ns.push(singles.latency[r][i]);
      index.push(i);
      repeat.push(r);
    }
  }
  return { time: Float64Array.from(time), ns: Float32Array.from(ns), index: Uint32Array.from(index),
    repeat: Uint8Array.from(repeat) };
}

/// The bin of a latency, as the tiles were cut.
export function binOf(ns) {
  return ns <= 0 ? 0 : Math.min(1 + Math.floor(Math.log2(Math.max(ns, 1)) * constants.per_octave), constants.bins - 1);
}

export const binLow = (bin) => (bin <= 1 ? (bin === 0 ? 0 : 1) : 2 ** ((bin - 1) / constants.per_octave));
export const binMiddle = (bin) => (bin === 0 ? 0 : 2 ** ((bin - 0.5) / constants.per_octave));

/// The columns that a stretch of seconds touches: [first, behind the last].
export function columnRange(section, from, to) {
  const perSecond = section.columns / (section.end_ns / 1e9);
  const first = Math.min(Math.max(Math.floor(from * perSecond + 1e-6), 0), section.columns - 1);
  return [first, Math.max(first + 1, Math.min(Math.ceil(to * perSecond - 1e-6), section.columns))];
}
