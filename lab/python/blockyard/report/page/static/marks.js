// The slowest events one by one: where their marks stand, how they are drawn, and which one is near a place.
import { addOne } from "./density.js";
import { CAUSES, causeClass, channelsOf, drawMark, ink, isDark } from "./look.js";
import { modelIfReady, nsOfStep, pointsOf, STEPS_OF_LATENCY } from "./model.js";
import { chosenTest } from "./stacks.js";
import { change, state } from "./state.js";
import { latencyRange } from "./zoom.js";

const MOST_SHAPES = 500; // the slowest ones; the others in sight are dots, or they would be a blot
const REACH = 14; // pixels
let sprites = [];
let marks = roomFor(0); // in sight, slowest first
const heights = { of: "", rows: new Float64Array(STEPS_OF_LATENCY) };

/// Marks, none yet. The room is kept from redraw to redraw.
function roomFor(most) {
  return {
    length: 0,
    x: new Float32Array(most),
    y: new Float32Array(most),
    cause: new Uint8Array(most),
    index: new Uint32Array(most),
    chosen: new Uint8Array(most),
  };
}

export function themeMarks() {
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
    return { canvas, packed: packedColour(...channelsOf(colour)) };
  });
}

export const spriteOf = (cause) => sprites[cause].canvas;

/// Finds the singles in sight as marks, slowest first, their places in pixels; those that a faster repeat made part of
/// the crowd join the density.
export function gatherMarks(model, density) {
  const { columns, rows } = density;
  const height = heightsOfSteps(rows);
  const scale = columns / (state.to - state.from);
  const { time, ns, step, index, repeat } = pointsOf(model, state.operation, state.view);
  const { cause } = model.singles;
  const isChosen = chosenTest(model.singles);
  if (marks.x.length < ns.length) marks = roomFor(ns.length);
  const found = marks;
  found.length = 0;
  for (let i = 0; i < ns.length; ++i) {
    const x = (time[i] - state.from) * scale;
    if (!(x >= 0 && x < columns)) continue;
    const y = height[step[i]];
    if (y < 0) continue;
    if (ns[i] <= model.completeAbove) {
      addOne(density, Math.floor(x), Math.min(rows - 1, Math.floor(y)));
      continue;
    }
    const why = causeClass(cause[repeat[i]][index[i]]);
    if (state.hidden.has(why)) continue;
    const at = found.length++;
    found.x[at] = x;
    found.y[at] = Math.min(y, rows - 1);
    found.cause[at] = why;
    found.index[at] = index[i];
    found.chosen[at] = !isChosen || isChosen(index[i]);
  }
}

/// How far from above, in pixels, each step of latency is drawn; negative out of sight. Zooming in time leaves it.
function heightsOfSteps(rows) {
  const [low, high] = latencyRange();
  const of = `${rows} ${low} ${high} ${state.low === null}`;
  if (heights.of !== of) {
    heights.of = of;
    const perOctave = rows / Math.log2(high / low);
    for (let step = 0; step < STEPS_OF_LATENCY; ++step) {
      const ns = Math.fround(nsOfStep(step));
      const below = ns < low && state.low !== null;
      heights.rows[step] = below ? -1 : rows - Math.log2(Math.max(ns, low) / low) * perOctave;
    }
  }
  return heights.rows;
}

/// All but those that have a shape, as dots into the picture of the density. With a frame of the flame graph or advice
/// chosen, its events alone have shapes and colours.
export function dotMarks(pixels, columns, rows) {
  const faint = state.frame === null && state.change === null ? null : faintDot();
  const behind = shapesEnd();
  for (let i = marks.length - 1; i >= 0; --i) {
    if (marks.chosen[i] && i < behind) continue;
    dot(pixels, columns, rows, marks.x[i], marks.y[i], marks.chosen[i] ? sprites[marks.cause[i]].packed : faint);
  }
}

/// The place after the last mark that has a shape.
function shapesEnd() {
  let shapes = 0;
  let i = 0;
  for (; i < marks.length && shapes < MOST_SHAPES; ++i) shapes += marks.chosen[i];
  return i;
}

/// How many marks are in sight, and how many of them belong to what is chosen.
export function countMarks() {
  const every = new Set(marks.index.subarray(0, marks.length));
  const chosen = new Set();
  for (let i = 0; i < marks.length; ++i) if (marks.chosen[i]) chosen.add(marks.index[i]);
  return { all: every.size, chosen: chosen.size };
}

const packedColour = (red, green, blue) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
const faintDot = () => (isDark() ? packedColour(70, 78, 90) : packedColour(200, 205, 212));

function dot(pixels, columns, rows, x, y, colour) {
  const left = Math.min(columns - 2, Math.max(0, Math.floor(x)));
  const top = Math.min(rows - 2, Math.max(0, Math.floor(y)));
  const at = top * columns + left;
  pixels[at] = pixels[at + 1] = pixels[at + columns] = pixels[at + columns + 1] = colour;
}

/// The slowest with their shapes, and a ring around the event in focus. `left` and `top` in pixels of the canvas.
export function drawMarks(context, model, left, top, columns, rows) {
  const ratio = devicePixelRatio || 1;
  for (let i = shapesEnd() - 1; i >= 0; --i) {
    if (!marks.chosen[i]) continue;
    const sprite = sprites[marks.cause[i]].canvas;
    const x = left + marks.x[i] * ratio - sprite.width / 2;
    const y = top + marks.y[i] * ratio - sprite.height / 2;
    context.drawImage(sprite, x, y);
  }
  ringEvent(context, model, left, top, columns, rows, ratio);
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

/// Goes to the mark `step` places further down in order of latency, among those in sight and chosen.
export function stepEvent(step) {
  const model = modelIfReady(state.section, state.focus);
  if (!model || !marks.length) return;
  const order = [...new Set(marks.index.subarray(0, marks.length).filter((_, i) => marks.chosen[i]))].map(
    (index) => model.singles.event[index],
  );
  if (!order.length) return;
  const here = order.indexOf(state.event);
  const next = here < 0 ? 0 : Math.min(Math.max(here + step, 0), order.length - 1);
  change({ event: order[next] }, "event");
}

/// The mark nearest to a place in the plot, within reach, as an index into the singles; -1 for none.
export function nearestMark(x, y) {
  let best = -1;
  let least = REACH * REACH;
  for (let i = 0; i < marks.length; ++i) {
    const away = (marks.x[i] - x) ** 2 + (marks.y[i] - y) ** 2;
    if (away < least) [least, best] = [away, marks.index[i]];
  }
  return best;
}
