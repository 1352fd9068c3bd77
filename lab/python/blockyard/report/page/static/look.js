// Colours, dashes and marks. No chart depends on colour alone: lines differ in dash and mark too, causes in shape.
import { constants } from "./data.js";

const LIGHT_LINES = [
  "#0072b2",
  "#d55e00",
  "#00805e",
  "#b3478f",
  "#3d8fc4",
  "#a87400",
  "#1b3a6b",
  "#7a2e00",
  "#00594a",
  "#6a4c93",
  "#a0522d",
  "#3f7d20",
];
const DARK_LINES = [
  "#56b4f0",
  "#ff9550",
  "#2fd0a0",
  "#f08fd0",
  "#9fd4ff",
  "#f0c040",
  "#8fa8ff",
  "#ffb48f",
  "#70c0b0",
  "#c0a4f0",
  "#e0a080",
  "#a8d870",
];
const DASHES = [
  [],
  [8, 3],
  [2, 3],
  [10, 3, 2, 3],
  [5, 2],
  [12, 4],
  [2, 2, 6, 2],
  [4, 4],
  [1, 3],
  [14, 2],
  [6, 2, 2, 2],
  [3, 6],
];
const MARKS = [
  "circle",
  "square",
  "triangle",
  "diamond",
  "cross",
  "plus",
  "down",
  "ring",
  "box",
  "star",
  "bar",
  "dash",
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
  const lines = isDark() ? DARK_LINES : LIGHT_LINES;
  if (allocator.null) return { colour: isDark() ? "#8a919c" : "#7b828d", dash: [1, 2], mark: "dash", width: 1.5 };
  const place = allocator.place % lines.length;
  const varied = allocator.variant !== "defaults" ? 5 : 0;
  return {
    colour: lines[place],
    dash: DASHES[(place + varied) % DASHES.length],
    mark: MARKS[place % MARKS.length],
    width: 2,
  };
}

/// Draws one mark of about `size` pixels around a point, in the context's current colours.
export function drawMark(context, mark, x, y, size) {
  const half = size / 2;
  const path = new Path2D();
  let filled = true;
  const lines = (...points) => {
    for (const [i, [dx, dy]] of points.entries()) path[i ? "lineTo" : "moveTo"](x + dx * half, y + dy * half);
  };
  if (mark === "circle" || mark === "ring") path.arc(x, y, half, 0, 2 * Math.PI);
  else if (mark === "square" || mark === "box") path.rect(x - half * 0.9, y - half * 0.9, size * 0.9, size * 0.9);
  else if (mark === "triangle") lines([0, -1.1], [1, 0.8], [-1, 0.8], [0, -1.1]);
  else if (mark === "down") lines([0, 1.1], [1, -0.8], [-1, -0.8], [0, 1.1]);
  else if (mark === "diamond") lines([0, -1.2], [1.2, 0], [0, 1.2], [-1.2, 0], [0, -1.2]);
  else if (mark === "star")
    lines([0, -1.3], [0.3, -0.3], [1.3, 0], [0.3, 0.3], [0, 1.3], [-0.3, 0.3], [-1.3, 0], [-0.3, -0.3], [0, -1.3]);
  else {
    filled = false;
    if (mark === "cross") {
      lines([-1, -1], [1, 1]);
      lines([-1, 1], [1, -1]);
    }
    if (mark === "plus") {
      lines([-1.2, 0], [1.2, 0]);
      lines([0, -1.2], [0, 1.2]);
    }
    if (mark === "bar") lines([0, -1.2], [0, 1.2]);
    if (mark === "dash") lines([-1.2, 0], [1.2, 0]);
  }
  if (mark === "ring" || mark === "box") filled = false;
  if (filled) context.fill(path);
  context.stroke(path);
}

const swatches = new Map();

/// A line with its mark, drawn once for each theme; for the table, which is rebuilt with every zoom.
export function swatchOf(allocator, use) {
  const key = `${use} ${allocator.name} ${isDark()}`;
  if (!swatches.has(key)) {
    const canvas = document.createElement("canvas");
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

/// 256 colours from few to many events, as 0xAABBGGRR: one hue, lightness alone tells.
export function densityRamp() {
  const stops = isDark()
    ? [
        [44, 62, 88],
        [66, 110, 160],
        [120, 180, 235],
        [235, 246, 255],
      ]
    : [
        [190, 214, 236],
        [107, 163, 214],
        [33, 102, 172],
        [4, 30, 66],
      ];
  const ramp = new Uint32Array(256);
  for (let i = 0; i < 256; ++i) {
    const at = (i / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    const mix = stops[low].map((value, channel) => Math.round(value + (stops[low + 1][channel] - value) * (at - low)));
    ramp[i] = (255 << 24) | (mix[2] << 16) | (mix[1] << 8) | mix[0];
  }
  return ramp;
}
