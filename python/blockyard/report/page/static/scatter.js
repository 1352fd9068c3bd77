// The density scatter of one allocator: cells of the histograms, darker the more events, and above them the slowest events
// one by one. Zooming needs no new data, so that it keeps up with the wheel.
import { constants } from "./data.js";
import { Chart, hideTip, latencyAxis, showTip, timeAxis, tipTable } from "./chart.js";
import { listenToFingers } from "./gestures.js";
import { CAUSES, causeClass, densityRamp, drawMark, ink, isDark } from "./look.js";
import { binLow, latencyOf, modelIfReady, pointsOf } from "./model.js";
import { allocatorNamed, change, endSeconds, section, setRange, state } from "./state.js";
import { countWords, duration, secondsWords } from "./words.js";

const KINDS = ["malloc", "calloc", "aligned malloc", "free", "realloc"];
const element = document.getElementById("scatter");
const layer = document.createElement("canvas");
const MOST_MARKS = 500; // drawn with their shapes; the others above the singles' threshold as dots
let chart = null;
let ramp = null;
let sprites = [];
let marks = { length: 0, x: [], y: [], cause: [], index: [] }; // in sight

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

export function makeScatter() {
  chart = new Chart(element, describeScatter, (width) => Math.round(Math.min(560, Math.max(300, width * 0.42))));
  themeScatter();
  listen();
  return {
    build: () => chart.build(),
    redraw: () => {
      if (!chart.plot) return;
      const [low, high] = latencyRange();
      chart.plot.batch(() => {
        chart.plot.setScale("x", { min: state.from, max: state.to });
        chart.plot.setScale("y", { min: low, max: high });
        chart.plot.redraw(false, true);
      });
    },
    theme: themeScatter,
  };
}

function describeScatter() {
  return {
    options: {
      scales: { x: { time: false, range: () => [state.from, state.to] }, y: { distr: 3, range: () => latencyRange() } },
      axes: [timeAxis(), latencyAxis()],
      series: [{}, { show: true, points: { show: false }, stroke: "transparent" }],
      cursor: { drag: { x: true, y: true, uni: 24, setScale: false }, points: { show: false } },
      padding: [8, 14, 0, 0],
      hooks: { draw: [paint], setSelect: [selected] },
    },
    data: [[0, endSeconds()], [null, null]],
  };
}

function themeScatter() {
  ramp = densityRamp();
  const ratio = devicePixelRatio || 1;
  sprites = CAUSES.map((cause) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.ceil(14 * ratio);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colour = isDark() ? cause.dark : cause.light;
    context.fillStyle = colour;
    context.lineWidth = cause.mark === "cross" || cause.mark === "ring" ? 2 : 1;
    context.strokeStyle = cause.mark === "cross" || cause.mark === "ring" ? colour : ink("card");
    drawMark(context, cause.mark, 7, 7, cause.mark === "ring" ? 6 : 8);
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
    return { canvas, packed: ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0 };
  });
}

export const spriteOf = (cause) => sprites[cause].canvas;

/// Paints cells and singles into uPlot's plotting box.
function paint(plot) {
  const model = modelIfReady(state.section, state.focus);
  if (!model) return;
  const ratio = devicePixelRatio || 1;
  const { left, top, width, height } = plot.bbox;
  const columns = Math.max(1, Math.round(width / ratio));
  const rows = Math.max(1, Math.round(height / ratio));
  const density = accumulate(model, columns, rows);
  gather(model, columns, rows, density);
  layer.width = columns;
  layer.height = rows;
  const surface = layer.getContext("2d");
  const image = surface.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  shade(density, pixels);
  for (let i = marks.length - 1; i >= MOST_MARKS; --i) dot(pixels, columns, rows, marks.x[i], marks.y[i], marks.cause[i]);
  surface.putImageData(image, 0, 0);

  const context = plot.ctx;
  context.save();
  context.imageSmoothingEnabled = false;
  context.drawImage(layer, left, top, width, height);
  context.beginPath();
  context.rect(left - 7 * ratio, top, width + 14 * ratio, height);
  context.clip();
  for (let i = Math.min(marks.length, MOST_MARKS) - 1; i >= 0; --i) {
    const sprite = sprites[marks.cause[i]].canvas;
    context.drawImage(sprite, left + marks.x[i] * ratio - sprite.width / 2, top + marks.y[i] * ratio - sprite.height / 2);
  }
  ringEvent(context, model, left, top, columns, rows, ratio);
  context.restore();
}

/// Events per pixel, [row from above * columns + column]. A cell covers its stretch of time and its bin, or the clock's
/// step where that is taller: no difference below a step is real, and stripes would be the clock's, not the allocator's.
function accumulate(model, columns, rows) {
  const density = new Float32Array(columns * rows);
  const cells = model.cells[`${state.operation}/${state.view}`];
  const cut = section().columns;
  const perColumn = endSeconds() / cut;
  const scale = columns / (state.to - state.from);
  const first = Math.max(0, Math.floor(state.from / perColumn));
  const behind = Math.min(cut, Math.ceil(state.to / perColumn));
  const spans = binSpans(rows);
  for (let column = first; column < behind; ++column) {
    const begin = (column * perColumn - state.from) * scale;
    const x0 = Math.max(0, Math.floor(begin));
    const x1 = Math.min(columns, Math.max(x0 + 1, Math.floor(begin + perColumn * scale)));
    if (x0 >= columns) continue;
    for (let at = cells.start[column], end = cells.start[column + 1]; at < end; ++at) {
      const bin = cells.bin[at];
      const y0 = spans[2 * bin];
      const y1 = spans[2 * bin + 1];
      if (y1 <= y0) continue;
      const share = cells.count[at] / ((x1 - x0) * (y1 - y0));
      for (let y = y0; y < y1; ++y) {
        const line = y * columns;
        for (let x = x0; x < x1; ++x) density[line + x] += share;
      }
    }
  }
  return density;
}

/// Of every bin the pixel rows that it covers: [from above, to below), empty when it is out of sight.
function binSpans(rows) {
  const [low, high] = latencyRange();
  const perOctave = rows / Math.log2(high / low);
  const row = (ns) => rows - Math.log2(Math.max(ns, low) / low) * perOctave;
  const half = allocatorNamed(state.focus).step_ns / 2;
  const spans = new Int32Array(2 * constants.bins);
  for (let bin = 0; bin < constants.bins; ++bin) {
    let from = binLow(bin);
    let to = bin === 0 ? 0 : binLow(bin + 1);
    if (to - from < 2 * half) {
      const middle = (from + to) / 2;
      from = Math.max(0, middle - half);
      to = middle + half;
    }
    if (to <= low && bin > 0) continue;
    if (from >= high) continue;
    const below = Math.min(rows, Math.max(1, Math.round(row(from))));
    const above = Math.max(0, Math.min(below - 1, Math.round(row(to))));
    spans[2 * bin] = above;
    spans[2 * bin + 1] = below;
  }
  return spans;
}

/// The singles in sight as marks, slowest first, their places in pixels; those that a faster repeat made part of the crowd
/// join the density.
function gather(model, columns, rows, density) {
  const [low, high] = latencyRange();
  const perOctave = rows / Math.log2(high / low);
  const scale = columns / (state.to - state.from);
  const { time, ns, index, repeat } = pointsOf(model, state.operation, state.view);
  const { cause } = model.singles;
  const found = { length: 0, x: new Float32Array(ns.length), y: new Float32Array(ns.length), cause: new Uint8Array(ns.length),
    index: new Uint32Array(ns.length) };
  for (let i = 0; i < ns.length; ++i) {
    const x = (time[i] - state.from) * scale;
    if (!(x >= 0 && x < columns) || (ns[i] < low && state.low !== null)) continue;
    const y = rows - Math.log2(Math.max(ns[i], low) / low) * perOctave;
    if (y < 0) continue;
    if (ns[i] <= model.completeAbove) {
      density[Math.min(rows - 1, Math.floor(y)) * columns + Math.floor(x)] += 1;
      continue;
    }
    const why = causeClass(cause[repeat[i]][index[i]]);
    if (state.hidden.has(why)) continue;
    const at = found.length++;
    found.x[at] = x;
    found.y[at] = Math.min(y, rows - 1);
    found.cause[at] = why;
    found.index[at] = index[i];
  }
  marks = found;
  return found;
}

function shade(density, pixels) {
  let most = 0;
  for (let i = 0; i < density.length; ++i) if (density[i] > most) most = density[i];
  const scale = 255 / Math.log1p(most * 4);
  const levels = 4096;
  const table = new Uint32Array(levels + 1);
  for (let i = 0; i <= levels; ++i) table[i] = ramp[Math.min(255, Math.floor(Math.log1p(((i / levels) ** 2) * most * 4) * scale))];
  for (let i = 0; i < density.length; ++i) {
    if (density[i] > 0) pixels[i] = table[Math.floor(Math.sqrt(density[i] / most) * levels)];
  }
}

function dot(pixels, columns, rows, x, y, cause) {
  const left = Math.min(columns - 2, Math.max(0, Math.floor(x)));
  const top = Math.min(rows - 2, Math.max(0, Math.floor(y)));
  const at = top * columns + left;
  pixels[at] = pixels[at + 1] = pixels[at + columns] = pixels[at + columns + 1] = sprites[cause].packed;
}

function ringEvent(context, model, left, top, columns, rows, ratio) {
  if (state.event === null) return;
  const [low, high] = latencyRange();
  const points = pointsOf(model, state.operation, state.view);
  context.strokeStyle = ink("ink");
  context.lineWidth = 2 * ratio;
  for (let i = 0; i < points.time.length; ++i) {
    if (model.singles.event[points.index[i]] !== state.event) continue;
    const x = ((points.time[i] - state.from) / (state.to - state.from)) * columns;
    const y = rows - (Math.log2(Math.max(points.ns[i], low) / low) / Math.log2(high / low)) * rows;
    if (x < 0 || x > columns || y < 0) continue;
    context.beginPath();
    context.arc(left + x * ratio, top + y * ratio, 8 * ratio, 0, 2 * Math.PI);
    context.stroke();
  }
}

/// A rectangle was dragged: its stretch of time, and of latency unless it is flat.
function selected(plot) {
  const { left, top, width, height } = plot.select;
  if (width < 4 && height < 4) return;
  const also = {};
  if (height > 8 && height < plot.over.clientHeight - 1) {
    also.low = Math.max(plot.posToVal(top + height, "y"), 0.5);
    also.high = plot.posToVal(top, "y");
  }
  const [from, to] = width > 4 ? [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")] : [state.from, state.to];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  setRange(from, to, also);
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

export function wholeRange() {
  change({ from: 0, to: endSeconds(), low: null, high: null }, "range");
}

function moveLatency(share) {
  const [low, high] = latencyRange();
  const factor = (high / low) ** share;
  change({ low: Math.max(low * factor, 0.5), high: high * factor }, "range");
}

/// Goes to the mark `step` places further down in order of latency, among those in sight.
export function stepEvent(step) {
  const model = modelIfReady(state.section, state.focus);
  if (!model || !marks.length) return;
  const order = [...new Set(marks.index.subarray(0, marks.length))].map((index) => model.singles.event[index]);
  const here = order.indexOf(state.event);
  const next = here < 0 ? 0 : Math.min(Math.max(here + step, 0), order.length - 1);
  change({ event: order[next] }, "event");
}

/// The mark nearest to a place in the plot, within reach, as an index into the singles; -1 for none.
function nearest(x, y) {
  let best = -1;
  let least = 14 * 14;
  for (let i = 0; i < marks.length; ++i) {
    const away = (marks.x[i] - x) ** 2 + (marks.y[i] - y) ** 2;
    if (away < least) [least, best] = [away, marks.index[i]];
  }
  return best;
}

/// Everything known of an event, as [label, value] pairs.
export function eventRows(model, index) {
  const { singles } = model;
  const rows = [["call", `${KINDS[singles.kind[index]]} of ${countWords(singles.size[index])} B`],
    ["thread", threadWords(singles.thread[index])], ["time", secondsWords(singles.time[index], 1e-3)],
    ["frame", countWords(singles.frame[index])]];
  let slow = 0;
  for (let repeat = 0; repeat < singles.repeats; ++repeat) {
    const ns = latencyOf(singles, repeat, index);
    const isSlow = ns > model.completeAbove;
    slow += isSlow;
    rows.push([`repeat ${repeat + 1}${isSlow ? ", slow" : ""}`, `${duration(ns)}: ${constants.cause_words[singles.cause[repeat][index]]}`]);
  }
  if (singles.calls[index]) rows.push(["system calls, when traced", singles.phrases[singles.calls[index]]]);
  rows.push(["slow in", `${slow} of ${singles.repeats} repeats`]);
  return rows;
}

function threadWords(thread) {
  const name = section().threads[thread];
  return name ? `${thread} (${name})` : String(thread);
}

function listen() {
  const place = (event) => {
    const box = chart.plot.over.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box];
  };
  element.addEventListener("wheel", (event) => {
    if (!chart.plot) return;
    event.preventDefault();
    const [x, y, box] = place(event);
    const factor = 1.0015 ** (event.deltaY || event.deltaX);
    if (event.shiftKey) zoomLatency(factor, 1 - y / box.height);
    else zoomTime(factor, Math.min(Math.max(x / box.width, 0), 1));
  }, { passive: false });
  listenToFingers(element, () => chart.plot.over.getBoundingClientRect());
  element.addEventListener("dblclick", wholeRange);
  element.addEventListener("pointermove", (event) => {
    const model = modelIfReady(state.section, state.focus);
    if (!chart.plot || !model) return;
    const [x, y] = place(event);
    const index = nearest(x, y);
    if (index < 0) return hideTip();
    showTip(event.clientX, event.clientY, tipTable(`event ${countWords(model.singles.event[index])}`, eventRows(model, index)));
  });
  element.addEventListener("pointerleave", hideTip);
  element.addEventListener("click", (event) => {
    const model = modelIfReady(state.section, state.focus);
    if (!chart.plot || !model) return;
    const [x, y] = place(event);
    const index = nearest(x, y);
    if (index >= 0) change({ event: model.singles.event[index] }, "event");
  });
  element.addEventListener("keydown", (event) => {
    const span = state.to - state.from;
    const keys = {
      "+": () => zoomTime(0.6), "=": () => zoomTime(0.6), "-": () => zoomTime(1 / 0.6),
      PageUp: () => zoomLatency(0.7), PageDown: () => zoomLatency(1 / 0.7), ArrowLeft: () => setRange(state.from - span * 0.2, state.to - span * 0.2),
      ArrowRight: () => setRange(state.from + span * 0.2, state.to + span * 0.2), ArrowUp: () => moveLatency(0.1),
      ArrowDown: () => moveLatency(-0.1), 0: wholeRange, Home: wholeRange, n: () => stepEvent(1), p: () => stepEvent(-1),
      Escape: () => change({ event: null }, "event"),
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}
