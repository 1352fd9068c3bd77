// A line for each allocator, with its dash and its marks, and a tip that lists all of them at the pointer.
import { hideTip, showTip, tipTable } from "./chart.js";
import { drawMark, lineStyle } from "./look.js";
import { state } from "./state.js";

const MOST_EQUAL = 5;

/// uPlot's series for these allocators, `thinner` by so many pixels. Of more than a few, the one that the scatter shows
/// stands out.
export function lineSeries(allocators, thinner = 0) {
  const crowded = allocators.length > MOST_EQUAL;
  return allocators.map((allocator) => {
    const style = lineStyle(allocator);
    const inFocus = allocator.name === state.focus;
    return {
      label: allocator.label,
      stroke: style.colour,
      width: style.width - thinner + (crowded && inFocus ? 1 : 0),
      dash: style.dash,
      alpha: crowded && !inFocus ? 0.65 : 1,
      points: { show: false },
      spanGaps: false,
    };
  });
}

/// A hook that sets each line's mark about every 90 pixels, each line's a little further along so that they don't cover
/// one another, and on points that stand alone.
export function lineMarks(allocators) {
  return (plot) => {
    const ratio = devicePixelRatio || 1;
    const context = plot.ctx;
    context.save();
    context.lineWidth = 1.5 * ratio;
    context.setLineDash([]); // the last line's is still set
    const { left, top, width, height } = plot.bbox;
    context.beginPath();
    context.rect(left - 4 * ratio, top - 4 * ratio, width + 8 * ratio, height + 8 * ratio);
    context.clip();
    allocators.forEach((allocator, place) => {
      const style = lineStyle(allocator);
      const xs = plot.data[0];
      const ys = plot.data[place + 1];
      context.fillStyle = context.strokeStyle = style.colour;
      let next = left + ((place * 37) % 90) * ratio;
      for (let i = 0; i < xs.length; ++i) {
        if (ys[i] === null || ys[i] === undefined) continue;
        const x = plot.valToPos(xs[i], "x", true);
        const alone = (ys[i - 1] ?? null) === null && (ys[i + 1] ?? null) === null;
        if (x < left - 1 || x > left + width + 1 || (x < next && !alone)) continue;
        drawMark(context, style.mark, x, plot.valToPos(ys[i], "y", true), 7 * ratio);
        next = Math.max(next, x) + 90 * ratio;
      }
    });
    context.restore();
  };
}

/// A plugin: the tip under the pointer, the highest value first.
export function lineTip(allocators, titleOf, wordsOf) {
  return {
    hooks: {
      setCursor: (plot) => {
        const { idx, left, top } = plot.cursor;
        if (idx === null || idx === undefined || left < 0) return;
        const rows = allocators
          .map((allocator, place) => [allocator.label, plot.data[place + 1][idx]])
          .filter(([, value]) => value !== null && value !== undefined)
          .sort((one, other) => other[1] - one[1])
          .map(([label, value]) => [label, wordsOf(value)]);
        if (!rows.length) return hideTip();
        const box = plot.over.getBoundingClientRect();
        showTip(box.left + left, box.top + top, tipTable(titleOf(plot.data[0][idx], idx), rows));
      },
      ready: (plot) => plot.over.addEventListener("mouseleave", hideTip),
    },
  };
}
