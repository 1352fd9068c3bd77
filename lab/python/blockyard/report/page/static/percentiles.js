// Latency by percentile: evenly up to p90 in the left half, then one equal step for each further nine; the worst event
// stands alone at the right edge.
import { constants } from "./data.js";
import { axis, Chart, latencyAxis, NONE_CHOSEN, roomyLog } from "./chart.js";
import { lineMarks, lineSeries, lineTip } from "./lines.js";
import { section, shownAllocators } from "./state.js";
import { summaryOf } from "./summary.js";
import { latencyWords } from "./words.js";

const WORST = 2.12;
const shareOf = ([numerator, denominator]) => numerator / denominator;
const position = (share) => (share <= 0.9 ? share / 0.9 : 1 + (-Math.log10(1 - share) - 1) / 5);
const positions = [...constants.shares.map(shareOf).map(position), 2.04, WORST];
const NAMED = [
  [0, "best"],
  [0.5, "p50"],
  [0.9, "p90"],
  [0.99, "p99"],
  [0.999, "p99.9"],
  [0.9999, "p99.99"],
  [0.99999, "p99.999"],
];
const CROWDED = ["p90", "p99.9", "p99.999"]; // left out of a narrow axis
const leftOut = (width, name) => (width < 460 && CROWDED.includes(name)) || (width < 680 && name === "p99.999");

export function makePercentiles() {
  return new Chart(document.getElementById("percentiles"), describePercentiles, (width) => (width < 460 ? 320 : 400));
}

function describePercentiles() {
  const allocators = shownAllocators();
  if (!allocators.length) return NONE_CHOSEN;
  const found = allocators.map(summaryOf);
  if (!found.some(Boolean)) return "No such event in this stretch of time.";
  const floor = Math.max(1, Math.min(...section().allocators.map((one) => one.step_ns)) / 2);
  const lines = found.map((one) =>
    (one ? [...one.curve, null, one.worst] : positions.map(() => null)).map((ns) =>
      ns === null ? null : Math.max(ns, floor),
    ),
  );
  return {
    data: [positions, ...lines],
    options: {
      scales: {
        x: { time: false, range: () => [0, WORST + 0.03] },
        y: { distr: 3, range: rangeOf },
      },
      axes: [
        axis({
          size: 40,
          gap: 12, // the latency axis writes its lowest label beside
          splits: () => [...NAMED.map(([share]) => position(share)), WORST],
          values: (plot) => [...NAMED.map(([, name]) => (leftOut(plot.width, name) ? "" : name)), "worst"],
          filter: (plot, splits) => splits,
          space: 0,
        }),
        latencyAxis(),
      ],
      series: [{}, ...lineSeries(allocators)],
      padding: [8, 18, 0, 0],
      hooks: { draw: [lineMarks(allocators)] },
      plugins: [
        lineTip(
          allocators,
          (x, i) => (i >= constants.shares.length ? "worst" : percentileWords(shareOf(constants.shares[i]))),
          (ns) => latencyWords(ns, floor * 2),
        ),
      ],
    },
  };
}

/// The range of what the chart holds now: uPlot keeps the options of the first data.
function rangeOf(plot) {
  const known = plot.data.slice(1).flatMap((line) => line.filter((ns) => ns !== null && ns !== undefined));
  return roomyLog(Math.min(...known), Math.max(...known));
}

function percentileWords(share) {
  const digits = share <= 0.9 ? 1 : Math.ceil(-Math.log10(1 - share)) + 1;
  return share === 0 ? "best" : `p${+(share * 100).toFixed(digits)}`;
}
