// What all charts share: a uPlot in a box that follows its width and the theme, axes of time and of latency, and a tip
// under the pointer.
import { make, widthOf } from "./dom.js";
import { ink } from "./look.js";
import { decadeWords } from "./words.js";

const tip = document.getElementById("tip");
const PLAIN_CURSOR = { drag: { x: false, y: false }, points: { size: 6 } };

export function showTip(x, y, content) {
  tip.replaceChildren(content);
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth - 8 ? Math.max(8, x - box.width - 16) : x + 16;
  const top = y + 16 + box.height > innerHeight - 8 ? Math.max(8, y - box.height - 12) : y + 16;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

export function hideTip() {
  tip.hidden = true;
}

/// A tip's rows: [label, value] pairs below a title.
export function tipTable(title, rows) {
  const cells = rows.map((row) => make("tr", {}, ...row.map((words) => make("td", {}, words))));
  return make("div", {}, make("b", {}, title), make("table", {}, ...cells));
}

/// A chart in `element`; `describe()` gives uPlot's options and data, or a sentence where there is nothing to draw.
/// `build` rebuilds it (other series, another theme), `refresh` only gives it new data and scales.
export class Chart {
  constructor(element, describe, height) {
    this.element = element;
    this.describe = describe;
    this.height = height;
    this.plot = null;
    new ResizeObserver(() => this.fit()).observe(element);
  }

  build() {
    this.plot?.destroy();
    this.plot = null;
    const described = this.describe();
    this.element.classList.toggle("empty", typeof described === "string");
    if (typeof described === "string") {
      this.element.textContent = described;
      return;
    }
    this.element.textContent = "";
    const { options, data } = described;
    const usual = { cursor: PLAIN_CURSOR, padding: [8, 14, 0, 0], legend: { show: false } };
    this.plot = new uPlot({ ...usual, ...options, ...this.size() }, data, this.element);
  }

  refresh() {
    const described = this.describe();
    if (typeof described === "string" || !this.plot || described.data.length !== this.plot.series.length) {
      this.build();
      return;
    }
    this.plot.setData(described.data);
  }

  fit() {
    const { width, height } = this.size();
    if (this.plot && width > 0 && (width !== this.plot.width || height !== this.plot.height))
      this.plot.setSize({ width, height });
  }

  size() {
    const width = Math.max(200, Math.floor(widthOf(this.element)));
    return { width, height: this.height(width) };
  }
}

export const NONE_CHOSEN = "No allocator is chosen.";

const FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

export function axis(words) {
  return {
    stroke: ink("faint"),
    font: FONT,
    labelFont: FONT,
    labelSize: 18,
    grid: { stroke: ink("line"), width: 1 },
    ticks: { show: false },
    ...words,
  };
}

export function timeAxis() {
  return axis({
    label: "seconds since the replay's clock started",
    size: 30,
    space: 70,
    values: (plot, splits) => splits.map((value) => +value.toFixed(6)),
  });
}

/// A logarithmic axis of latency.
export function latencyAxis(scale = "y") {
  return axis({
    scale,
    size: 62,
    space: 24,
    values: (plot, splits) => splits.map((value) => (value === null ? "" : decadeWords(value))),
    splits: (plot, number, low, high) => latencySplits(low, high),
    filter: (plot, splits) => splits,
  });
}

/// Decades; within two decades 1, 2 and 5; closer still even steps.
export function latencySplits(low, high) {
  const decades = Math.log10(high / low);
  if (decades < 0.5) {
    const step = 10 ** Math.floor(Math.log10(high - low));
    const even = (high - low) / step < 3 ? step / 2 : step;
    const found = [];
    for (let value = Math.ceil(low / even) * even; value <= high * 1.0000001; value += even)
      found.push(+value.toPrecision(10));
    return found;
  }
  const found = [];
  for (let decade = Math.floor(Math.log10(low)); decade <= Math.ceil(Math.log10(high)); ++decade) {
    for (const step of decades < 2.2 ? [1, 2, 5] : [1]) {
      const value = step * 10 ** decade;
      if (value >= low * 0.9999 && value <= high * 1.0001) found.push(value);
    }
  }
  return found;
}

/// A range that leaves half a step of room and never is empty; for logarithmic scales.
export function roomyLog(low, high) {
  if (!(low > 0) || !(high > 0)) return [1, 1000];
  return [10 ** Math.floor(Math.log10(low * 0.999)), 10 ** (Math.log10(high) + 0.15)];
}
