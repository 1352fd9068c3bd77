// Puts the page together: who draws what, and when.
import { chosenChange, drawAdvice, markAdvice } from "./advice.js";
import { copyText, linkOfView, makeControls } from "./controls.js";
import { constants, facts } from "./data.js";
import { make, makeButton, say } from "./dom.js";
import { eventRows } from "./event.js";
import { makeFlame, stackItems } from "./flame.js";
import { drawWorstFrames, framesWords, loadFrames, makeFrames } from "./frames.js";
import { drawKey } from "./key.js";
import { onThemeChange } from "./look.js";
import { countMarks, stepEvent } from "./marks.js";
import { makeMemory } from "./memory.js";
import { loadModel, modelIfReady } from "./model.js";
import { makePareto } from "./pareto.js";
import { makePercentiles } from "./percentiles.js";
import { makeScatter } from "./scatter.js";
import {
  allocatorNamed,
  change,
  isWhole,
  onChange,
  readAddress,
  section,
  setRange,
  shownAllocators,
  state,
} from "./state.js";
import { loadStacks, stacksIfThere, treeOf } from "./stacks.js";
import { makeStrip } from "./strip.js";
import { sumsOf } from "./summary.js";
import { drawTable, drawTableChoice, tableText, tableWords } from "./table.js";
import { countWords, duration } from "./words.js";
import { wholeRange, zoomTime } from "./zoom.js";

const MOST_PHASES = 8; // more buttons than that are no help
const byId = (id) => document.getElementById(id);
const drawControlsNow = makeControls();
const scatter = makeScatter();
const timeStrip = makeStrip();
const flame = makeFlame();
const memory = makeMemory();
const lineCharts = [makePercentiles(), makeFrames(), memory, makePareto()];
let pending = null;

readAddress();
describePage();
await Promise.all([loadModel(state.section, state.focus), loadFrames(state.section), loadStacks(state.section)]);
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
  sumsOf(await loadModel(state.section, one.name), state.operation, state.view);
}
if (!isWhole()) drawFigures();
if (stacksIfThere()) treeOf(stacksIfThere(), true);
performance.mark("blockyard:all-decoded");
document.documentElement.dataset.drawn = "all";
await prepareOtherChoices(state.section);

/// What the figures of a stretch are counted from, of each operation and view: made for all allocators at once, it
/// would hold up the redraw that first asks for it.
async function prepareOtherChoices(number) {
  const { views, allocators } = facts.sections[number];
  for (const operation of ["malloc", "free"]) {
    for (const view of views) {
      for (const { name } of allocators) {
        await new Promise((resolve) => setTimeout(resolve));
        sumsOf(await loadModel(number, name), operation, view);
      }
    }
  }
}

async function drawPending() {
  const changed = pending;
  pending = null;
  const wanted = [state.focus, ...(isWhole() ? [] : shownAllocators().map((one) => one.name))];
  const absent = wanted.filter((name) => !modelIfReady(state.section, name));
  if (changed.has("section")) await Promise.all([loadFrames(state.section), loadStacks(state.section)]);
  if (absent.length) await Promise.all(absent.map((name) => loadModel(state.section, name)));
  performance.mark("blockyard:redraw-begins");
  if (changed.has("section")) describePage();
  if (changed.has("choice")) {
    drawEverything();
  } else {
    if (!onlyTheFlame(changed)) scatter.redraw();
    if (!changed.has("sort")) flame.draw();
    if (changed.has("frame")) {
      drawWords();
      markAdvice();
    }
    if (changed.has("at") || changed.has("flame")) memory.refresh();
    if (changed.has("range")) {
      // The charts ask for widths; what changes the page's elements comes after them.
      drawFigures();
      timeStrip.place();
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

/// Whether nothing changed that the scatter shows.
function onlyTheFlame(changed) {
  return [...changed].every((what) => what === "flame" || what === "at" || what === "sort");
}

function drawEverything() {
  drawControlsNow();
  drawKey();
  timeStrip.draw();
  timeStrip.place();
  scatter.build();
  flame.draw();
  drawAdvice();
  for (const chart of lineCharts) chart.build();
  drawTableChoice();
  drawTable();
  queueMicrotask(drawWords); // they count marks, which uPlot has drawn in a microtask before
  drawEvent();
}

function drawFigures() {
  for (const chart of lineCharts) chart.refresh();
  drawWords();
  drawTable();
}

function describePage() {
  const { title, verdict, header, warnings, frames } = section();
  const listed = (id, lines) => byId(id).replaceChildren(...lines.map((line) => make("li", {}, line)));
  const measured = facts.created_at.slice(0, 10);
  byId("campaign").textContent = `${facts.name}: ${title}. Measured ${measured} with Blockyard ${facts.blockyard}.`;
  const phases = frames.phases.slice(0, MOST_PHASES);
  byId("phases").replaceChildren(
    ...phases.map(({ name, begin_s: begin, end_s: end }) =>
      makeButton(name, `Show ${name} alone`, () => setRange(begin, end)),
    ),
  );
  listed("verdict", verdict);
  listed("header", header);
  listed("warnings", [...facts.notes, ...warnings]);
  byId("made").textContent =
    "One file, made by blockyard report --html; it loads nothing from anywhere. How to read it: docs/guide/report.md.";
}

function drawWords() {
  say(byId("scatter-words"), scatterWords());
  say(byId("table-words"), tableWords());
  say(byId("frames-words"), framesWords());
  drawWorstFrames();
  const holders = typeof section().stacks === "string" ? "" : " Click to see in the flame graph who holds them.";
  say(byId("memory-words"), `Shaded: bytes that the program had allocated (live).${holders}`);
  say(byId("pareto-words"), "p99.9 of the chosen operation; lower left is better in both.");
}

function scatterWords() {
  const model = modelIfReady(state.section, state.focus);
  if (!model) return "";
  const { end_ns: end, columns, looked } = section();
  const slowest = countWords(Math.min(constants.slowest, model.singles.length));
  const ofChange = chosenChange();
  if (state.frame !== null || ofChange) {
    const { all, chosen } = countMarks();
    const whose = [
      ...(state.frame !== null ? ["of the frame that is chosen in the flame graph"] : []),
      ...(ofChange ? [`of advice ${state.change}, ${ofChange.change}`] : []),
    ].join(" and ");
    return `Marked: ${countWords(chosen)} of the ${countWords(all)} slow events in sight, those ${whose}.`;
  }
  return (
    `Marks: the ${slowest} slowest events of ${allocatorNamed(state.focus).name}, all that took more than ` +
    `${duration(model.completeAbove)}; the others as density, in stretches of ${duration(end / columns)}. ${looked}`
  );
}

function drawEvent() {
  const model = modelIfReady(state.section, state.focus);
  const output = byId("event");
  const index = state.event === null || !model ? -1 : model.singles.event.indexOf(state.event);
  if (index < 0) {
    output.replaceChildren();
    return;
  }
  const words = eventRows(model, index)
    .map(([label, value]) => `${label}: ${value}`)
    .join(" · ");
  output.textContent = `Event ${countWords(state.event)} of ${state.focus} · ${words}`;
  const stack = stackItems(model.singles.node[index]);
  if (stack) output.append(make("ol", { className: "stack" }, ...stack.map((line) => make("li", {}, line))));
}
