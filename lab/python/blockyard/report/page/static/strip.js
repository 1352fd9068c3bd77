// The brush on time: a strip of the whole run with a window in it. What the window shows is what every chart shows.
import { densityRamp } from "./look.js";
import { modelIfReady } from "./model.js";
import { endSeconds, section, setRange, state } from "./state.js";
import { duration, secondsWords } from "./words.js";

const strip = document.getElementById("strip");
const stripCanvas = document.getElementById("strip-canvas");
const brush = document.getElementById("brush");
const handles = [document.getElementById("handle-from"), document.getElementById("handle-to")];
const rangeWords = document.getElementById("range-words");

export function makeStrip() {
  strip.addEventListener("pointerdown", grab);
  for (const [place, handle] of handles.entries()) {
    handle.addEventListener("keydown", (event) => nudge(event, place));
  }
  brush.addEventListener("dblclick", () => setRange(0, endSeconds()));
  new ResizeObserver(drawStrip).observe(strip);
  return { draw: drawStrip, place: placeBrush };
}

function placeBrush() {
  const end = endSeconds();
  const from = (state.from / end) * 100;
  const to = (state.to / end) * 100;
  brush.style.left = `${from}%`;
  brush.style.width = `${to - from}%`;
  [from, to].forEach((percent, place) => {
    const handle = handles[place];
    handle.style.left = `${percent}%`;
    handle.setAttribute("aria-valuemin", 0);
    handle.setAttribute("aria-valuemax", end.toFixed(3));
    handle.setAttribute("aria-valuenow", (place ? state.to : state.from).toFixed(6));
    handle.setAttribute("aria-valuetext", secondsWords(place ? state.to : state.from, end));
  });
  const span = state.to - state.from;
  rangeWords.textContent =
    `${secondsWords(state.from, span)} to ${secondsWords(state.to, span)}, ${duration(span * 1e9)}` +
    (span >= end * 0.9999
      ? " (all)"
      : `; figures count whole stretches of ${duration(section().end_ns / section().columns)}`);
}

/// Events over time, and above them the slowest of each moment, of the allocator in the scatter.
function drawStrip() {
  const ratio = devicePixelRatio || 1;
  const width = strip.clientWidth;
  const height = strip.clientHeight;
  if (!width) return;
  stripCanvas.width = width * ratio;
  stripCanvas.height = height * ratio;
  const context = stripCanvas.getContext("2d");
  context.scale(ratio, ratio);
  const model = modelIfReady(state.section, state.focus);
  if (!model) return;
  const cells = model.cells[`${state.operation}/${state.view}`];
  const columns = section().columns;
  const events = new Float64Array(width);
  for (let column = 0; column < columns; ++column) {
    const x = Math.min(width - 1, Math.floor((column / columns) * width));
    for (let at = cells.start[column]; at < cells.start[column + 1]; ++at) events[x] += cells.count[at];
  }
  const most = Math.max(1, ...events);
  const colour = densityRamp()[140];
  context.fillStyle = `rgb(${colour & 255} ${(colour >> 8) & 255} ${(colour >> 16) & 255})`;
  for (let x = 0; x < width; ++x) {
    const tall = Math.sqrt(events[x] / most) * (height - 6);
    if (tall > 0) context.fillRect(x, height - Math.max(1, tall), 1, Math.max(1, tall));
  }
}

/// Drags a handle, moves the window, or draws a new one, by where the pointer went down.
function grab(event) {
  if (event.button !== 0) return;
  const box = strip.getBoundingClientRect();
  const secondsAt = (pointer) =>
    (Math.min(Math.max(pointer.clientX - box.left, 0), box.width) / box.width) * endSeconds();
  const begin = secondsAt(event);
  const { from, to } = state;
  const kind = handles.includes(event.target)
    ? handles.indexOf(event.target)
    : event.target === brush && to - from < endSeconds() * 0.999
      ? "move"
      : "new";
  const move = (pointer) => {
    const at = secondsAt(pointer);
    if (kind === "move") setRange(from + at - begin, to + at - begin);
    else if (kind === "new") {
      if (Math.abs(at - begin) > (endSeconds() / box.width) * 3) setRange(Math.min(begin, at), Math.max(begin, at));
    } else {
      const other = kind === 0 ? to : from;
      setRange(Math.min(at, other), Math.max(at, other));
    }
  };
  const release = () => {
    strip.removeEventListener("pointermove", move);
    strip.removeEventListener("pointerup", release);
    strip.removeEventListener("pointercancel", release);
  };
  strip.setPointerCapture(event.pointerId);
  strip.addEventListener("pointermove", move);
  strip.addEventListener("pointerup", release);
  strip.addEventListener("pointercancel", release);
}

function nudge(event, place) {
  const step = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.1, PageUp: 0.1 }[
    event.key
  ];
  const end = endSeconds();
  const edges = [state.from, state.to];
  if (step) edges[place] += step * end;
  else if (event.key === "Home") edges[place] = place ? state.from + end * 0.01 : 0;
  else if (event.key === "End") edges[place] = place ? end : state.to - end * 0.01;
  else return;
  event.preventDefault();
  if (edges[0] < edges[1]) setRange(edges[0], edges[1]);
}
