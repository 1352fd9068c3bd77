// p99.9 against peak resident memory: what lies lower left is better in both; the stairs join those that none beats in
// both.
import { constants } from "./data.js";
import { axis, Chart, hideTip, latencyAxis, NONE_CHOSEN, showTip, tipTable } from "./chart.js";
import { drawMark, ink, lineStyle } from "./look.js";
import { shownAllocators } from "./state.js";
import { peakOf, summaryOf } from "./summary.js";
import { bytesWords, duration } from "./words.js";

const P999 = constants.percentiles.findIndex(([name]) => name === "p99.9");

export function makePareto() {
  return new Chart(document.getElementById("pareto"), describePareto, () => 320);
}

function paretoPoints() {
  return shownAllocators()
    .map((allocator) => ({ allocator, peak: peakOf(allocator), ns: summaryOf(allocator)?.named[P999] ?? null }))
    .filter(({ allocator, peak, ns }) => !allocator.null && peak !== null && ns > 0)
    .sort((one, other) => one.peak - other.peak || one.ns - other.ns);
}

function describePareto() {
  const found = paretoPoints();
  if (!shownAllocators().length) return NONE_CHOSEN;
  if (!found.length) return "Too few events in this stretch of time for a p99.9 (it needs 10,000).";
  return {
    data: [found.map((point) => point.peak), found.map((point) => point.ns)],
    options: {
      scales: {
        x: { time: false, range: (plot) => paddedRange(plot.data[0]) },
        y: { distr: 3, range: (plot) => paretoRange(plot.data[1]) },
      },
      axes: [
        axis({ label: "peak resident memory", size: 30, space: 80, values: (plot, splits) => splits.map(bytesWords) }),
        latencyAxis(),
      ],
      series: [{}, { stroke: "transparent", points: { show: false } }],
      cursor: { drag: { x: false, y: false }, points: { show: false } },
      hooks: {
        draw: [drawPareto],
        setCursor: [paretoTip],
        ready: [(plot) => plot.over.addEventListener("mouseleave", hideTip)],
      },
    },
  };
}

function paddedRange(values) {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const room = Math.max((high - low) * 0.18, high * 0.05);
  return [Math.max(0, low - room), high + room];
}

function paretoRange(values) {
  const low = Math.log10(Math.min(...values));
  const high = Math.log10(Math.max(...values));
  const room = Math.max(0.15, (high - low) * 0.15);
  return [10 ** (low - room), 10 ** (high + room)];
}

function drawPareto(plot) {
  const ratio = devicePixelRatio || 1;
  const context = plot.ctx;
  const { left, width } = plot.bbox;
  const found = paretoPoints();
  const place = ({ peak, ns }) => [plot.valToPos(peak, "x", true), plot.valToPos(ns, "y", true)];
  context.save();
  context.strokeStyle = ink("faint");
  context.setLineDash([3 * ratio, 4 * ratio]);
  context.beginPath();
  let least = Infinity;
  let before = null;
  for (const point of found) {
    if (point.ns >= least) continue;
    least = point.ns;
    const [x, y] = place(point);
    if (before) context.lineTo(x, before[1]);
    context[before ? "lineTo" : "moveTo"](x, y);
    before = [x, y];
  }
  context.stroke();
  context.setLineDash([]);
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  const taken = found.map((point) => {
    const [x, y] = place(point);
    return { x: x - 6 * ratio, right: x + 6 * ratio, y: y + 5 * ratio };
  });
  for (const point of found) {
    const [x, y] = place(point);
    const style = lineStyle(point.allocator);
    context.fillStyle = context.strokeStyle = style.colour;
    context.lineWidth = 2 * ratio;
    drawMark(context, style.mark, x, y, 11 * ratio);
    const wide = context.measureText(point.allocator.label).width;
    const spot = freeSpot(taken, x, y, wide, ratio, left + width);
    taken.push(spot);
    context.fillStyle = ink("ink");
    context.fillText(point.allocator.label, spot.x, spot.y);
  }
  context.restore();
}

/// A place for a label beside its mark where no mark and no other label is: right, left, below or above, further off
/// last.
function freeSpot(taken, x, y, wide, ratio, edge) {
  const line = 13 * ratio;
  const right = x + 10 * ratio;
  const left = x - 10 * ratio - wide;
  const middle = x - wide / 2;
  const spots = [
    [right, 4],
    [left, 4],
    [middle, 20],
    [middle, -12],
    [right, 17],
    [right, -9],
    [left, 17],
    [left, -9],
    [right, 30],
    [left, 30],
    [right, -22],
    [left, -22],
  ];
  for (const [textX, down] of spots) {
    const spot = { x: textX, right: textX + wide, y: y + down * ratio };
    if (spot.right > edge + 10 * ratio) continue;
    if (!taken.some((box) => Math.abs(box.y - spot.y) < line && spot.x < box.right && spot.right > box.x)) return spot;
  }
  return { x: right, right: right + wide, y: y + 4 * ratio };
}

function paretoTip(plot) {
  const { left, top } = plot.cursor;
  if (!(left >= 0)) return;
  let best = null;
  let leastAway = 30 * 30;
  for (const point of paretoPoints()) {
    const away = (plot.valToPos(point.peak, "x") - left) ** 2 + (plot.valToPos(point.ns, "y") - top) ** 2;
    if (away < leastAway) [leastAway, best] = [away, point];
  }
  if (!best) return hideTip();
  const box = plot.over.getBoundingClientRect();
  showTip(
    box.left + left,
    box.top + top,
    tipTable(best.allocator.label, [
      ["p99.9", duration(best.ns)],
      ["peak resident", bytesWords(best.peak)],
    ]),
  );
}
