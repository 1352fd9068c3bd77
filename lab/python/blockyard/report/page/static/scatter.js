// The density scatter of one allocator: cells of the histograms, darker the more events, and above them the slowest
// events one by one. Zooming needs no new data, so that it keeps up with the wheel.
import { Chart, hideTip, latencyAxis, showTip, timeAxis, tipTable } from "./chart.js";
import { accumulate, shade, themeDensity } from "./density.js";
import { eventRows } from "./event.js";
import { dotMarks, drawMarks, gatherMarks, nearestMark, stepEvent, themeMarks } from "./marks.js";
import { modelIfReady } from "./model.js";
import { change, endSeconds, setRange, state } from "./state.js";
import { countWords } from "./words.js";
import { latencyRange, moveLatency, wholeRange, zoomLatency, zoomTime } from "./zoom.js";

const element = document.getElementById("scatter");
const layer = document.createElement("canvas");
let image = null; // what is put into the layer, kept: fresh memory for each redraw costs more than emptying it
let chart = null;

export function makeScatter() {
  chart = new Chart(element, describeScatter, (width) => Math.round(Math.min(560, Math.max(300, width * 0.42))));
  theme();
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
    theme,
  };
}

function theme() {
  themeDensity();
  themeMarks();
}

function describeScatter() {
  return {
    options: {
      scales: { x: { time: false, range: () => [state.from, state.to] }, y: { distr: 3, range: () => latencyRange() } },
      axes: [timeAxis(), latencyAxis()],
      series: [{}, { show: true, points: { show: false }, stroke: "transparent" }],
      cursor: { drag: { x: true, y: true, uni: 24, setScale: false }, points: { show: false } },
      hooks: { draw: [paint], setSelect: [selected] },
    },
    data: [
      [0, endSeconds()],
      [null, null],
    ],
  };
}

/// Paints cells and singles into uPlot's plotting box.
function paint(plot) {
  const model = modelIfReady(state.section, state.focus);
  if (!model) return;
  const ratio = devicePixelRatio || 1;
  const { left, top, width, height } = plot.bbox;
  const columns = Math.max(1, Math.round(width / ratio));
  const rows = Math.max(1, Math.round(height / ratio));
  const density = accumulate(model, columns, rows);
  gatherMarks(model, density);
  const surface = layer.getContext("2d");
  if (image?.width !== columns || image.height !== rows) {
    layer.width = columns;
    layer.height = rows;
    image = surface.createImageData(columns, rows);
  }
  const pixels = new Uint32Array(image.data.buffer).fill(0);
  shade(density, pixels);
  dotMarks(pixels, columns, rows);
  surface.putImageData(image, 0, 0);

  const context = plot.ctx;
  context.save();
  context.imageSmoothingEnabled = false;
  context.drawImage(layer, left, top, width, height);
  context.beginPath();
  context.rect(left - 7 * ratio, top, width + 14 * ratio, height);
  context.clip();
  drawMarks(context, model, left, top, columns, rows);
  context.restore();
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

function listen() {
  const place = (event) => {
    const box = chart.plot.over.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top, box];
  };
  element.addEventListener(
    "wheel",
    (event) => {
      if (!chart.plot) return;
      event.preventDefault();
      const [x, y, box] = place(event);
      const factor = 1.0015 ** (event.deltaY || event.deltaX);
      if (event.shiftKey) zoomLatency(factor, 1 - y / box.height);
      else zoomTime(factor, Math.min(Math.max(x / box.width, 0), 1));
    },
    { passive: false },
  );
  listenToFingers(() => chart.plot.over.getBoundingClientRect());
  element.addEventListener("dblclick", wholeRange);
  const nearest = (event) => {
    const model = modelIfReady(state.section, state.focus);
    const [x, y] = chart.plot ? place(event) : [];
    return [model, chart.plot && model ? nearestMark(x, y) : -1];
  };
  element.addEventListener("pointermove", (event) => {
    const [model, index] = nearest(event);
    if (index < 0) return hideTip();
    const title = `event ${countWords(model.singles.event[index])}`;
    showTip(event.clientX, event.clientY, tipTable(title, eventRows(model, index)));
  });
  element.addEventListener("pointerleave", hideTip);
  element.addEventListener("click", (event) => {
    const [model, index] = nearest(event);
    if (index >= 0) change({ event: model.singles.event[index] }, "event");
  });
  element.addEventListener("keydown", (event) => {
    const span = state.to - state.from;
    const keys = {
      "+": () => zoomTime(0.6),
      "=": () => zoomTime(0.6),
      "-": () => zoomTime(1 / 0.6),
      PageUp: () => zoomLatency(0.7),
      PageDown: () => zoomLatency(1 / 0.7),
      ArrowLeft: () => setRange(state.from - span * 0.2, state.to - span * 0.2),
      ArrowRight: () => setRange(state.from + span * 0.2, state.to + span * 0.2),
      ArrowUp: () => moveLatency(0.1),
      ArrowDown: () => moveLatency(-0.1),
      0: wholeRange,
      Home: wholeRange,
      n: () => stepEvent(1),
      p: () => stepEvent(-1),
      Escape: () => change({ event: null }, "event"),
    };
    const act = keys[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

/// Fingers on the scatter: one moves in time, two zoom about the place between them. Up and down still scroll the page.
/// `plotBox()` is where its plot lies on the screen.
function listenToFingers(plotBox) {
  const fingers = new Map();
  let begun = null;

  const grip = () => {
    const places = [...fingers.values()];
    const middle = places.reduce((sum, x) => sum + x, 0) / places.length;
    const spread = places.length > 1 ? Math.max(Math.abs(places[0] - places[1]), 20) : 1;
    return { middle, spread };
  };
  const begin = () => {
    begun = fingers.size ? { ...grip(), from: state.from, to: state.to, count: fingers.size } : null;
  };
  const lift = (event) => {
    if (fingers.delete(event.pointerId)) begin();
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || fingers.size === 2) return;
    fingers.set(event.pointerId, event.clientX);
    begin();
  });
  element.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    const { middle, spread } = grip();
    if (begun.count === 1 && Math.abs(middle - begun.middle) < 6) return;
    const box = plotBox();
    // The time that lay between the fingers stays between them.
    const span = ((begun.to - begun.from) * begun.spread) / spread;
    const held = begun.from + ((begun.middle - box.left) / box.width) * (begun.to - begun.from);
    const from = held - ((middle - box.left) / box.width) * span;
    setRange(from, from + span);
  });
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
}
