// The crowd behind the marks: events per pixel out of the histograms, darker the more there are.
import { constants } from "./data.js";
import { densityRamp } from "./look.js";
import { binLow } from "./model.js";
import { allocatorNamed, endSeconds, section, state } from "./state.js";
import { latencyRange } from "./zoom.js";

const WIDE = 4; // pixels: wider columns are summed up first
const NOTHING = 1e-7; // what rounding may leave of a sum

let ramp = null;
let field = new Float32Array(0);
let profile = new Float64Array(0);

export function themeDensity() {
  ramp = densityRamp();
}

/// Events per pixel, as `values` [row from above * columns + column]; rows outside [top, bottom) have none. They last
/// until the next redraw, which takes the same memory. A cell covers its stretch of time and its bin, or the clock's
/// step where that is taller: no difference below a step is real, and stripes would be the clock's, not the
/// allocator's.
export function accumulate(model, columns, rows) {
  if (field.length === columns * rows) field.fill(0);
  else field = new Float32Array(columns * rows);
  if (profile.length <= rows) profile = new Float64Array(rows + 1);
  const values = field;
  let top = rows;
  let bottom = 0;
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
    const wide = x1 - x0;
    const ofColumn = wide < WIDE ? null : profile.fill(0, 0, rows + 1);
    for (let at = cells.start[column], end = cells.start[column + 1]; at < end; ++at) {
      const bin = cells.bin[at];
      const y0 = spans[2 * bin];
      const y1 = spans[2 * bin + 1];
      if (y1 <= y0) continue;
      if (y0 < top) top = y0;
      if (y1 > bottom) bottom = y1;
      const share = cells.count[at] / (wide * (y1 - y0));
      if (ofColumn) {
        ofColumn[y0] += share;
        ofColumn[y1] -= share;
        continue;
      }
      for (let y = y0; y < y1; ++y) {
        const line = y * columns;
        for (let x = x0; x < x1; ++x) values[line + x] += share;
      }
    }
    if (ofColumn) addColumn(values, columns, x0, x1, top, bottom);
  }
  return { values, columns, rows, top, bottom };
}

/// Adds a column of cells whose profile holds where each share begins and ends: close by, cells are wide, and tall ones
/// overlap.
function addColumn(values, columns, x0, x1, top, bottom) {
  let share = 0;
  for (let y = top; y < bottom; ++y) {
    share += profile[y];
    if (share > NOTHING) for (let at = y * columns + x0, end = y * columns + x1; at < end; ++at) values[at] += share;
  }
}

/// One more event in a pixel.
export function addOne(density, x, y) {
  density.values[y * density.columns + x] += 1;
  if (y < density.top) density.top = y;
  if (y >= density.bottom) density.bottom = y + 1;
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

/// Colours of densities, into pixels; empty ones stay clear.
export function shade({ values, columns, top, bottom }, pixels) {
  const behind = bottom * columns;
  let most = 0;
  for (let i = top * columns; i < behind; ++i) if (values[i] > most) most = values[i];
  const scale = 255 / Math.log1p(most * 4);
  const levels = 4096;
  const table = new Uint32Array(levels + 1);
  for (let i = 0; i <= levels; ++i)
    table[i] = ramp[Math.min(255, Math.floor(Math.log1p((i / levels) ** 2 * most * 4) * scale))];
  // Neighbours in a row are often of one cell, or empty.
  let before = 0;
  let colour = 0;
  for (let i = top * columns; i < behind; ++i) {
    const value = values[i];
    if (value !== before) {
      before = value;
      colour = value > 0 ? table[Math.floor(Math.sqrt(value / most) * levels)] : 0;
    }
    pixels[i] = colour;
  }
}
