// Colours, dashes and marks. No chart depends on colour alone: lines differ in dash and mark too, causes in shape.
import { constants } from "./data.js";
import { make } from "./dom.js";

/// Of each place the colour in a light and in a dark theme, the dash, and the mark.
const LOOKS = [
  ["#0072b2", "#56b4f0", [], "circle"],
  ["#d55e00", "#ff9550", [8, 3], "square"],
  ["#00805e", "#2fd0a0", [2, 3], "triangle"],
  ["#b3478f", "#f08fd0", [10, 3, 2, 3], "diamond"],
  ["#3d8fc4", "#9fd4ff", [5, 2], "cross"],
  ["#a87400", "#f0c040", [12, 4], "plus"],
  ["#1b3a6b", "#8fa8ff", [2, 2, 6, 2], "down"],
  ["#7a2e00", "#ffb48f", [4, 4], "ring"],
  ["#00594a", "#70c0b0", [1, 3], "box"],
  ["#6a4c93", "#c0a4f0", [14, 2], "star"],
  ["#a0522d", "#e0a080", [6, 2, 2, 2], "bar"],
  ["#3f7d20", "#a8d870", [3, 6], "dash"],
];

const darkQuery = matchMedia("(prefers-color-scheme: dark)");

let dark = darkQuery.matches; // kept: charts ask many times in each redraw

export const isDark = () => dark;

export function onThemeChange(listener) {
  darkQuery.addEventListener("change", () => {
    dark = darkQuery.matches;
    listener();
  });
}

const inks = new Map();

/// A colour of the page's style. Asked once for each theme: a question in mid-redraw has all styles worked out again.
export function ink(name) {
  const key = `${name} ${isDark()}`;
  if (!inks.has(key)) inks.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return inks.get(key);
}

/// How an allocator is drawn in every chart: by the place of its base, a variant of one dashed differently.
export function lineStyle(allocator) {
  if (allocator.null) return { colour: isDark() ? "#8a919c" : "#7b828d", dash: [1, 2], mark: "dash", width: 1.5 };
  const [light, dark, , mark] = LOOKS[allocator.place % LOOKS.length];
  const varied = allocator.variant !== "defaults" ? 5 : 0;
  const [, , dash] = LOOKS[(allocator.place + varied) % LOOKS.length];
  return { colour: isDark() ? dark : light, dash, mark, width: 2 };
}

/// The lines of a mark, through points in halves of its size; arcs and rectangles are drawn as such.
const MARK_LINES = {
  triangle: [[0, -1.1, 1, 0.8, -1, 0.8, 0, -1.1]],
  down: [[0, 1.1, 1, -0.8, -1, -0.8, 0, 1.1]],
  diamond: [[0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0, 0, -1.2]],
  star: [[0, -1.3, 0.3, -0.3, 1.3, 0, 0.3, 0.3, 0, 1.3, -0.3, 0.3, -1.3, 0, -0.3, -0.3, 0, -1.3]],
  cross: [
    [-1, -1, 1, 1],
    [-1, 1, 1, -1],
  ],
  plus: [
    [-1.2, 0, 1.2, 0],
    [0, -1.2, 0, 1.2],
  ],
  bar: [[0, -1.2, 0, 1.2]],
  dash: [[-1.2, 0, 1.2, 0]],
};
const HOLLOW = ["ring", "box", "cross", "plus", "bar", "dash"];

/// Draws one mark of about `size` pixels around a point, in the context's current colours.
export function drawMark(context, mark, x, y, size) {
  const half = size / 2;
  const path = new Path2D();
  if (mark === "circle" || mark === "ring") path.arc(x, y, half, 0, 2 * Math.PI);
  else if (mark === "square" || mark === "box") path.rect(x - half * 0.9, y - half * 0.9, size * 0.9, size * 0.9);
  for (const points of MARK_LINES[mark] ?? [])
    for (let i = 0; i < points.length; i += 2)
      path[i ? "lineTo" : "moveTo"](x + points[i] * half, y + points[i + 1] * half);
  if (!HOLLOW.includes(mark)) context.fill(path);
  context.stroke(path);
}

const swatches = new Map();

/// A line with its mark, drawn once for each theme; for the table, which is rebuilt with every zoom.
export function swatchOf(allocator, use) {
  const key = `${use} ${allocator.name} ${isDark()}`;
  if (!swatches.has(key)) {
    const canvas = make("canvas");
    drawSwatch(canvas, allocator);
    swatches.set(key, canvas);
  }
  return swatches.get(key);
}

/// A line with its mark, for the chooser.
export function drawSwatch(canvas, allocator) {
  const ratio = devicePixelRatio || 1;
  canvas.width = 30 * ratio;
  canvas.height = 14 * ratio;
  const context = canvas.getContext("2d");
  const style = lineStyle(allocator);
  context.scale(ratio, ratio);
  context.strokeStyle = context.fillStyle = style.colour;
  context.lineWidth = style.width;
  context.setLineDash(style.dash);
  context.beginPath();
  context.moveTo(0, 7);
  context.lineTo(30, 7);
  context.stroke();
  context.setLineDash([]);
  drawMark(context, style.mark, 15, 7, 7);
}

const CAUSE_LOOKS = [
  ["cross", "#7d8694", "#8f98a6"],
  ["triangle", "#b3478f", "#f08fd0"],
  ["square", "#00805e", "#2fd0a0"],
  ["circle", "#d55e00", "#ff9550"],
  ["ring", "#3c4454", "#c3cad6"],
];

/// Why an event was slow, as the scatter marks it: { name, mask, mark, light, dark }; the first whose mask has a bit of
/// the sample's cause, else the last.
export const CAUSES = constants.cause_classes.map(([name, mask], place) => {
  const [mark, light, dark] = CAUSE_LOOKS[place];
  return { name, mask, mark, light, dark };
});

const classOfCause = Uint8Array.from({ length: 256 }, (_, cause) => {
  const found = CAUSES.findIndex(({ mask }) => cause & mask);
  return found < 0 ? CAUSES.length - 1 : found;
});

export const causeClass = (cause) => classOfCause[cause];

/// The red, green and blue of `#rrggbb`.
export const channelsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

/// 256 colours from few to many events, as 0xAABBGGRR: one hue, lightness alone tells.
export function densityRamp() {
  const colours = isDark()
    ? ["#2c3e58", "#426ea0", "#78b4eb", "#ebf6ff"]
    : ["#bed6ec", "#6ba3d6", "#2166ac", "#041e42"];
  const stops = colours.map(channelsOf);
  const ramp = new Uint32Array(256);
  for (let i = 0; i < 256; ++i) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mix = stops[low].map((value, channel) => Math.round(value + (stops[low + 1][channel] - value) * (at - low)));
    ramp[i] = (255 << 24) | (mix[2] << 16) | (mix[1] << 8) | mix[0];
  }
  return ramp;
}
