// Puts the page together: who draws what, and when.
import { constants, facts } from "./data.js";
import { copyText, linkOfView, makeControls } from "./controls.js";
import { drawWorstFrames, framesWords, loadFrames, makeFrames } from "./frames.js";
import { CAUSES, densityRamp, onThemeChange } from "./look.js";
import { makeMemory } from "./memory.js";
import { loadModel, modelIfReady, pointsOf } from "./model.js";
import { makePareto } from "./pareto.js";
import { makePercentiles } from "./percentiles.js";
import { eventRows, makeScatter, spriteOf, stepEvent, wholeRange, zoomTime } from "./scatter.js";
import { allocatorNamed, change, isWhole, onChange, readAddress, section, setRange, shownAllocators, state } from "./state.js";
import { makeStrip } from "./strip.js";
import { drawTable, drawTableChoice, tableText, tableWords } from "./table.js";
import { countWords, duration } from "./words.js";

const byId = (id) => document.getElementById(id);
const drawControlsNow = makeControls();
const scatter = makeScatter();
const timeStrip = makeStrip();
const lineCharts = [makePercentiles(), makeFrames(), makeMemory(), makePareto()];
let pending = null;

readAddress();
describePage();
await Promise.all([loadModel(state.section, state.focus), loadFrames(state.section)]);
drawEverything();
performance.mark("blockyard:first-picture");
document.documentElement.dataset.drawn = "first";

onChange((changed) => {
  // Several events of one screen frame are drawn once.
  if (!pending) requestAnimationFrame(drawPending);
  pending = new Set([...(pending ?? []), ...changed]);
});
onThemeChange(() => {
  scatter.theme();
  drawEverything();
});
addEventListener("hashchange", () => {
  readAddress();
  change({}, "choice", "range", "section");
});
byId("zoom-in").addEventListener("click", () => zoomTime(0.5));
byId("zoom-out").addEventListener("click", () => zoomTime(2));
byId("zoom-reset").addEventListener("click", wholeRange);
byId("slower").addEventListener("click", () => stepEvent(-1));
byId("faster").addEventListener("click", () => stepEvent(1));
byId("copy-link").addEventListener("click", () => copyText(linkOfView(), "The link to this view is copied."));
byId("copy-table").addEventListener("click", () => copyText(tableText(), "The table is copied."));

// The other allocators are decoded one by one while nothing else happens, so that the first brush finds them ready.
for (const one of section().allocators) {
  await new Promise((resolve) => setTimeout(resolve));
  pointsOf(await loadModel(state.section, one.name), state.operation, state.view);
}
if (!isWhole()) drawFigures();
performance.mark("blockyard:all-decoded");
document.documentElement.dataset.drawn = "all";

async function drawPending() {
  const changed = pending;
  pending = null;
  const wanted = [state.focus, ...(isWhole() ? [] : shownAllocators().map((one) => one.name))];
  const absent = wanted.filter((name) => !modelIfReady(state.section, name));
  if (changed.has("section")) await loadFrames(state.section);
  if (absent.length) await Promise.all(absent.map((name) => loadModel(state.section, name)));
  performance.mark("blockyard:redraw-begins");
  if (changed.has("section")) describePage();
  if (changed.has("choice")) {
    drawEverything();
  } else {
    scatter.redraw();
    if (changed.has("range")) {
      timeStrip.place();
      drawFigures();
    }
    if (changed.has("sort")) {
      drawTable();
      drawWords();
    }
    if (changed.has("event")) drawEvent();
  }
  // uPlot commits its drawing in a microtask of its own, which is queued before this one.
  queueMicrotask(() => performance.measure(`blockyard:redraw:${[...changed].join("+")}`, "blockyard:redraw-begins"));
}

function drawEverything() {
  drawControlsNow();
  drawKey();
  timeStrip.draw();
  timeStrip.place();
  scatter.build();
  for (const chart of lineCharts) chart.build();
  drawTableChoice();
  drawTable();
  drawWords();
  drawEvent();
}

function drawFigures() {
  for (const chart of lineCharts) chart.refresh();
  drawWords();
  drawTable();
}

function describePage() {
  const items = (id, lines) => byId(id).replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
  byId("campaign").textContent = `${facts.name}: ${section().title}. Measured ${facts.created_at.slice(0, 10)} with Blockyard ${facts.blockyard}.`;
  byId("phases").replaceChildren(...section().frames.phases.slice(0, 8).map(({ name, begin_s: begin, end_s: end }) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: name, title: `Show ${name} alone` });
    button.addEventListener("click", () => setRange(begin, end));
    return button;
  }));
  items("header", section().header);
  items("warnings", [...facts.notes, ...section().warnings]);
  byId("made").textContent = "One file, made by blockyard report --html; it loads nothing from anywhere. How to read it: docs/report.md.";
}

function drawKey() {
  const ramp = document.createElement("canvas");
  ramp.className = "ramp";
  ramp.width = 256;
  ramp.height = 1;
  const context = ramp.getContext("2d");
  const image = context.createImageData(256, 1);
  new Uint32Array(image.data.buffer).set(densityRamp());
  context.putImageData(image, 0, 0);
  const item = (...parts) => {
    const line = document.createElement("li");
    line.append(...parts);
    return line;
  };
  byId("scatter-key").replaceChildren(item("few", ramp, "many events"), ...CAUSES.map((cause, place) => {
    const canvas = document.createElement("canvas");
    const sprite = spriteOf(place);
    canvas.width = sprite.width;
    canvas.height = sprite.height;
    canvas.getContext("2d").drawImage(sprite, 0, 0);
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "cause", checked: !state.hidden.has(place) });
    box.addEventListener("change", () => {
      if (box.checked) state.hidden.delete(place);
      else state.hidden.add(place);
      change({}, "marks");
    });
    label.append(box, canvas, cause.name);
    return item(label);
  }));
}

function drawWords() {
  const model = modelIfReady(state.section, state.focus);
  const allocator = allocatorNamed(state.focus);
  byId("scatter-words").textContent = model
    ? `Marks: the ${countWords(Math.min(constants.slowest, model.singles.length))} slowest events of ${allocator.name}, all that took more than `
      + `${duration(model.completeAbove)}; the others as density, in stretches of ${duration(section().end_ns / section().columns)}. ${section().looked}`
    : "";
  byId("table-words").textContent = tableWords();
  byId("frames-words").textContent = framesWords();
  drawWorstFrames();
  byId("memory-words").textContent = "Shaded: bytes that the program had allocated (live).";
  byId("pareto-words").textContent = "p99.9 of the chosen operation; lower left is better in both.";
}

function drawEvent() {
  const model = modelIfReady(state.section, state.focus);
  const output = byId("event");
  const index = state.event === null || !model ? -1 : model.singles.event.indexOf(state.event);
  if (index < 0) {
    output.textContent = "";
    return;
  }
  const words = eventRows(model, index).map(([label, value]) => `${label}: ${value}`).join(" · ");
  output.textContent = `Event ${countWords(state.event)} of ${state.focus} · ${words}`;
}
