// Resident memory through the run, a line for each allocator, and below them the bytes that the program asked for.
import { axis, Chart, NONE_CHOSEN, timeAxis } from "./chart.js";
import { lineMarks, lineSeries, lineTip } from "./lines.js";
import { ink } from "./look.js";
import { cursorSeconds } from "./stacks.js";
import { change, section, shownAllocators, state } from "./state.js";
import { BYTE_UNITS, bytesWords, scaled, secondsWords } from "./words.js";

const STEPS = 500;

export function makeMemory() {
  return new Chart(document.getElementById("memory"), describeMemory, () => 320);
}

function describeMemory() {
  const allocators = shownAllocators().filter((one) => one.resident);
  if (!shownAllocators().length) return NONE_CHOSEN;
  if (!allocators.length) return "Not in this report: the runs of the chosen allocators recorded no memory.";
  const times = Array.from({ length: STEPS + 1 }, (_, i) => state.from + ((state.to - state.from) * i) / STEPS);
  const lines = allocators.map((one) => held(one.resident, times));
  lines.push(held(section().memory.live, times));
  return {
    data: [times, ...lines],
    options: {
      scales: { x: { time: false, range: () => [state.from, state.to] }, y: { range: memoryRange } },
      axes: [
        timeAxis(),
        axis({
          scale: "y",
          size: 62,
          space: 28,
          splits: (plot, number, low, high) => byteSplits(low, high),
          values: (plot, splits) => splits.map(binaryWords),
        }),
      ],
      series: [
        {},
        ...lineSeries(allocators),
        { label: "live", stroke: ink("ink"), width: 1, fill: "rgba(128, 136, 150, 0.18)", points: { show: false } },
      ],
      hooks: { draw: [lineMarks(allocators), memoryCursor], ready: [takeCursor] },
      plugins: [
        lineTip(
          [...allocators, { label: "asked for (live)" }],
          (x) => secondsWords(x, state.to - state.from),
          bytesWords,
        ),
      ],
    },
  };
}

/// Where the flame graph counts the bytes that are alive.
function memoryCursor(plot) {
  if (state.weigh !== "alive") return;
  const { left, top, width, height } = plot.bbox;
  const x = plot.valToPos(cursorSeconds(), "x", true);
  if (x < left || x > left + width) return;
  const context = plot.ctx;
  context.save();
  context.strokeStyle = ink("accent");
  context.lineWidth = 2 * (devicePixelRatio || 1);
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(x, top);
  context.lineTo(x, top + height);
  context.stroke();
  context.restore();
}

/// A click asks who holds the memory at that time.
function takeCursor(plot) {
  plot.over.addEventListener("click", (event) => {
    if (typeof section().stacks === "string") return;
    const x = event.clientX - plot.over.getBoundingClientRect().left;
    change({ at: Math.max(plot.posToVal(x, "x"), 0), weigh: "alive" }, "at");
  });
}

/// Values at the section's common times, between them in a straight line.
function held(values, times) {
  const known = section().memory.time_s;
  let at = 0;
  return times.map((time) => {
    while (at + 2 < known.length && known[at + 1] <= time) ++at;
    const span = known[at + 1] - known[at];
    const part = span > 0 ? Math.min(Math.max((time - known[at]) / span, 0), 1) : 0;
    return values[at] + (values[Math.min(at + 1, values.length - 1)] - values[at]) * part;
  });
}

function memoryRange(plot) {
  let most = 1;
  for (const line of plot.data.slice(1)) for (const value of line) if (value > most) most = value;
  return [0, most * 1.06];
}

/// Of a whole number of a binary unit: `320 MiB`.
function binaryWords(count) {
  const [value, unit] = scaled(count, BYTE_UNITS, 1024, 1024);
  return count === 0 ? "0" : `${+value.toFixed(2)} ${unit}`;
}

function byteSplits(low, high) {
  const step = 2 ** Math.round(Math.log2((high - low) / 6));
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(value);
  return found;
}
