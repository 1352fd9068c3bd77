// Allocator time in each frame, a line for each allocator, with the lines of 1 % and 10 % of a frame's budget.
import { Chart, latencyAxis, roomyLog, timeAxis } from "./chart.js";
import { lineMarks, lineSeries, lineTip } from "./lines.js";
import { ink } from "./look.js";
import { section, shownAllocators, state } from "./state.js";
import { duration, secondsWords } from "./words.js";

const MOST_POINTS = 1500;
const BUDGETS = [[60, 1], [60, 0.1], [144, 0.1]];

export function makeFrames() {
  return new Chart(document.getElementById("frames"), describeFrames, () => 320);
}

export function framesWords() {
  const found = section().frame_series;
  if (!found) return "";
  return `${found.words} ${found.shown_words ?? ""}`.trim();
}

function describeFrames() {
  const found = section().frame_series;
  if (!found || found.missing) return found?.missing ?? "Not in this report: it has no frame analysis.";
  const allocators = shownAllocators().filter((one) => found.allocators[one.name]);
  if (!allocators.length) return "None of the chosen allocators has frames.";
  const [first, behind] = within(found.time_s);
  if (behind <= first) return "No frame begins in this stretch of time.";
  const group = Math.max(1, Math.ceil((behind - first) / MOST_POINTS));
  const times = [];
  const lines = allocators.map(() => []);
  for (let at = first; at < behind; at += group) {
    times.push(found.time_s[at]);
    allocators.forEach((one, place) => {
      const values = found.allocators[one.name];
      let most = null;
      for (let i = at; i < Math.min(at + group, behind); ++i) if (values[i] !== null) most = Math.max(most ?? 0, values[i]);
      lines[place].push(most === null ? null : Math.max(most, 10));
    });
  }
  return {
    data: [times, ...lines],
    options: {
      scales: { x: { time: false, range: () => [state.from, state.to] }, y: { distr: 3, range: frameRange } },
      axes: [timeAxis(), latencyAxis()],
      series: [{}, ...lineSeries(allocators, { width: 1.2 })],
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      padding: [8, 14, 0, 0],
      hooks: { draw: [budgetLines, lineMarks(allocators)] },
      plugins: [lineTip(allocators, (x) => `frame at ${secondsWords(x, 1)}`, duration)],
    },
  };
}

function within(times) {
  let first = 0;
  while (first < times.length && times[first] < state.from) ++first;
  let behind = first;
  while (behind < times.length && times[behind] <= state.to) ++behind;
  return [first, behind];
}

function frameRange(plot) {
  const known = plot.data.slice(1).flatMap((line) => line.filter((ns) => ns !== null && ns !== undefined));
  return known.length ? roomyLog(Math.min(...known), Math.max(...known, 1.2e6)) : [100, 1e7];
}

function budgetLines(plot) {
  const ratio = devicePixelRatio || 1;
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  context.save();
  context.font = `${11 * ratio}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.fillStyle = context.strokeStyle = ink("faint");
  context.setLineDash([4 * ratio, 4 * ratio]);
  for (const [hz, share] of BUDGETS) {
    const y = plot.valToPos((1e9 / hz) * share, "y", true);
    if (y < top || y > top + height) continue;
    context.beginPath();
    context.moveTo(left, y);
    context.lineTo(left + width, y);
    context.stroke();
    context.fillText(`${share * 100} % of a frame at ${hz} Hz`, left + 6 * ratio, y - 4 * ratio);
  }
  context.restore();
}
