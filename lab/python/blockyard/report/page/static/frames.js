// Allocator time in each frame, a line for each allocator, against shares of a frame's budget.
import { openPack } from "./data.js";
import { makeButton, widthOf } from "./dom.js";
import { Chart, latencyAxis, NONE_CHOSEN, roomyLog, timeAxis } from "./chart.js";
import { lineMarks, lineSeries, lineTip } from "./lines.js";
import { ink } from "./look.js";
import { nsOfStep } from "./model.js";
import { allocatorNamed, section, setRange, shownAllocators, state } from "./state.js";
import { firstPlace } from "./summary.js";
import { duration, secondsWords } from "./words.js";

const PIXELS_A_POINT = 4; // closer points make a carpet of a dozen lines
const LEAST_NS = 10; // a frame without any allocation is drawn here: a logarithmic axis has no zero
const FAST_HZ = 240;

const framesElement = document.getElementById("frames");
let joinedPoints = 1; // of the pack's, in each point that is drawn now
const framePacks = new Map();

export async function loadFrames(sectionNumber) {
  if (!framePacks.has(sectionNumber)) framePacks.set(sectionNumber, await openPack(`${sectionNumber}/frames`));
}

export function makeFrames() {
  return new Chart(framesElement, describeFrames, () => 320);
}

export function framesWords() {
  const { known, words, group } = section().frames;
  if (!known) return "";
  const kind = state.view === "inherent" ? "Of each event the least over the repeats." : "Median of the repeats.";
  const joined = group * joinedPoints;
  return `${words} ${kind}${joined > 1 ? ` Each point is the worst of ${joined} frames.` : ""}`;
}

/// Buttons that lead to the worst frames of the allocator in the scatter.
export function drawWorstFrames() {
  const box = document.getElementById("worst-frames");
  const { label, worst_frames: worst } = allocatorNamed(state.focus);
  if (box.dataset.of === `${state.section} ${state.focus}`) return;
  box.dataset.of = `${state.section} ${state.focus}`;
  const buttons = worst.map(({ begin_s: begin, end_s: end, ns }) =>
    makeButton(`${begin.toFixed(3)} s, ${duration(ns)}`, "Show this frame alone", () => setRange(begin, end)),
  );
  box.replaceChildren(...(worst.length ? [`Worst of ${label}:`] : []), ...buttons);
}

function describeFrames() {
  const { columns } = framePacks.get(state.section) ?? { columns: {} };
  if (!shownAllocators().length) return NONE_CHOSEN;
  if (!section().frames.known) return section().frames.words;
  const allocators = shownAllocators().filter((one) => columns[`${one.name}/${state.view}`]);
  if (!allocators.length) return "None of the chosen allocators has frames.";
  const starts = columns.start;
  const [first, behind] = [state.from, state.to].map((edge) =>
    firstPlace(starts.length, (at) => starts[at] >= edge * 1e6),
  );
  if (behind <= first) return "No frame begins in this stretch of time.";
  const group = Math.ceil((behind - first) / Math.max(widthOf(framesElement) / PIXELS_A_POINT, 1));
  joinedPoints = group;
  const times = [];
  const lines = allocators.map(() => []);
  const values = allocators.map((one) => columns[`${one.name}/${state.view}`]);
  for (let at = first; at < behind; at += group) {
    times.push(starts[at] / 1e6);
    values.forEach((steps, line) => {
      let most = 0;
      for (let i = at; i < Math.min(at + group, behind); ++i) if (steps[i] > most) most = steps[i];
      lines[line].push(Math.max(nsOfStep(most), LEAST_NS));
    });
  }
  return {
    data: [times, ...lines],
    options: {
      scales: { x: { time: false, range: () => [state.from, state.to] }, y: { distr: 3, range: frameRange } },
      axes: [timeAxis(), latencyAxis()],
      series: [{}, ...lineSeries(allocators, 0.7)],
      hooks: { drawAxes: [budgetLines], draw: [lineMarks(allocators)] },
      plugins: [lineTip(allocators, (x) => `frame at ${secondsWords(x, 1)}`, duration)],
    },
  };
}

function frameRange(plot) {
  let low = Infinity;
  let high = 0;
  for (const line of plot.data.slice(1)) {
    for (const ns of line) {
      if (ns > LEAST_NS && ns < low) low = ns;
      if (ns > high) high = ns;
    }
  }
  return roomyLog(Math.min(low, 1e6), Math.max(high, budgets()[0][1]));
}

// A frame at the rate that frames are judged by first, shares of it, and a fast one.
function budgets() {
  const hz = section().frames.rate_hz;
  const lines = [
    [`a frame at ${Number(hz.toPrecision(6))} Hz`, 1e9 / hz],
    ["10 % of it", 1e8 / hz],
    ["1 % of it", 1e7 / hz],
  ];
  return hz === FAST_HZ ? lines : [...lines, [`a frame at ${FAST_HZ} Hz`, 1e9 / FAST_HZ]];
}

function budgetLines(plot) {
  const ratio = devicePixelRatio || 1;
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  context.save();
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textAlign = "right";
  context.textBaseline = "alphabetic";
  context.fillStyle = context.strokeStyle = ink("faint");
  context.setLineDash([4 * ratio, 4 * ratio]);
  for (const [words, ns] of budgets()) {
    const y = plot.valToPos(ns, "y", true);
    if (y < top || y > top + height) continue;
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.fillText(words, left + width - 6 * ratio, y - 4 * ratio);
  }
  context.restore();
}
