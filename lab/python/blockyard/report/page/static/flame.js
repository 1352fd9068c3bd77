// The flame graph: which functions the chosen figure came from. The outermost function stands above and what it calls
// below, as wide as its share. It is drawn on a canvas of its own: it changes with each step of a brush, and elements
// would be too slow for that (docs/design/statistics.md).
import { chosenChange } from "./advice.js";
import { hideTip, showTip, tipTable } from "./chart.js";
import { make, say, widthOf } from "./dom.js";
import { ink, isDark } from "./look.js";
import { modelIfReady } from "./model.js";
import { allocatorNamed, change, section, state } from "./state.js";
import {
  cursorSeconds,
  functionWords,
  moduleWords,
  onlySlowOnes,
  partOf,
  pathOf,
  placeWords,
  stacksIfThere,
  treeOf,
  weightsOf,
} from "./stacks.js";
import { bytesWords, countWords, duration, secondsWords, shareWords } from "./words.js";

const ROW = 20; // pixels
const LEAST = 0.4; // pixels: what is narrower is left out
const BAR = 3; // pixels
const LEAST_NAMED = 40; // pixels: names are the dearest to draw, and two or three letters say nothing
const LETTER = 6.4; // pixels, on average
const FLAME_FONT = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const HUES = [28, 205, 140, 320, 50, 262, 175, 0, 95, 235];

const flameBox = document.getElementById("flame");
const flameCanvas = make("canvas");
const flameWords = document.getElementById("flame-words");
const frameWords = document.getElementById("frame-words");
const weighPick = document.getElementById("weigh");
const findField = document.getElementById("find");
const invertButton = document.getElementById("invert");
const wholeButton = document.getElementById("flame-reset");
const atField = document.getElementById("at");

let drawn = null; // what is in the canvas: { stacks, tree, totals, part, boxes }
let pointed = null; // the place that the keyboard is at
let lastFind = { wanted: "", tree: null, found: null };

export const WEIGHTS = {
  calls: "calls",
  bytes: "bytes",
  time: "time in the allocator",
  over: "time over budget",
  alive: "bytes alive at the cursor",
};

export function makeFlame() {
  flameBox.append(flameCanvas);
  weighPick.replaceChildren(...Object.entries(WEIGHTS).map(([value, words]) => new Option(words, value)));
  weighPick.addEventListener("change", () => change({ weigh: weighPick.value }, "flame"));
  findField.addEventListener("input", () => change({ find: findField.value }, "flame"));
  findField.addEventListener("keydown", (event) => {
    if (event.key === "Enter") pointAtFound();
  });
  invertButton.addEventListener("click", () => {
    pointed = null;
    change({ inverted: !state.inverted, frame: null }, "frame");
  });
  wholeButton.addEventListener("click", () => chooseFrame(null));
  atField.addEventListener("input", () => change({ at: Number(atField.value) }, "at"));
  flameCanvas.addEventListener("click", (event) => {
    const place = placeUnder(event);
    if (place !== null) chooseFrame(place);
  });
  flameCanvas.addEventListener("pointermove", showFrameTip);
  flameCanvas.addEventListener("pointerleave", hideTip);
  flameBox.addEventListener("keydown", steer);
  flameBox.addEventListener("focus", () => {
    if (drawn && pointed === null && flameBox.matches(":focus-visible")) point(state.frame ?? 0);
  });
  flameBox.addEventListener("blur", () => point(null));
  new ResizeObserver(() => drawFlame()).observe(flameBox);
  return { draw: drawFlame };
}

/// Zooms to a frame, whose events the scatter then marks; null or the root for everything.
function chooseFrame(place) {
  if (pointed !== null) pointed = place ?? 0;
  change({ frame: place || null }, "frame");
}

function drawFlame() {
  const stacks = stacksIfThere();
  flameBox.classList.toggle("empty", !stacks);
  for (const control of document.querySelectorAll(".flame-control")) control.hidden = !stacks;
  if (!stacks) {
    drawn = null;
    flameBox.textContent = section().stacks;
    flameWords.textContent = frameWords.textContent = "";
    return;
  }
  if (!flameCanvas.isConnected) flameBox.replaceChildren(flameCanvas);
  drawFlameControls();
  const weights = weightsOf(stacks);
  if (!weights) return;
  const tree = treeOf(stacks, state.inverted);
  if (state.frame !== null && state.frame >= tree.count) state.frame = null;
  const own = ownOf(tree, weights);
  const chosen = partOf(stacks, weights);
  const part = chosen && totalsOf(tree, ownOf(tree, chosen));
  drawn = { stacks, tree, own, totals: totalsOf(tree, own), part, found: findIn(stacks, tree), boxes: [] };
  paintFlame();
  say(flameWords, flameSentence());
  if (pointed !== null) point(Math.min(pointed, tree.count - 1));
  else say(frameWords, sentenceOf(state.frame ?? 0)); // never empty: a line that comes and goes moves the page
}

function drawFlameControls() {
  weighPick.value = state.weigh;
  if (findField.value !== state.find) findField.value = state.find;
  invertButton.setAttribute("aria-pressed", String(state.inverted));
  wholeButton.disabled = state.frame === null;
  document.getElementById("at-pick").hidden = state.weigh !== "alive";
  atField.max = section().end_ns / 1e9;
  atField.step = section().end_ns / 1e9 / section().stacks.columns;
  atField.value = cursorSeconds();
  atField.setAttribute("aria-valuetext", secondsWords(cursorSeconds(), section().end_ns / 1e9));
}

function ownOf(tree, weights) {
  const own = new Float64Array(tree.count);
  for (let node = 0; node < weights.length; ++node) if (weights[node]) own[tree.of[node]] += weights[node];
  return own;
}

function totalsOf(tree, own) {
  const totals = own.slice();
  for (let place = tree.count - 1; place > 0; --place) totals[tree.parent[place]] += totals[place];
  return totals;
}

/// The places whose function, file or module has the text that is looked for; null where none is.
function findIn(stacks, tree) {
  const wanted = state.find.trim().toLowerCase();
  if (!wanted) return null;
  if (lastFind.wanted === wanted && lastFind.tree === tree) return lastFind.found;
  const has = Uint8Array.from(stacks.texts, (text) => (text.toLowerCase().includes(wanted) ? 1 : 0));
  const found = new Uint8Array(tree.count);
  for (let place = 1; place < tree.count; ++place) {
    const node = tree.label[place];
    found[place] = has[stacks.function[node]] | has[stacks.module[node]] | has[stacks.file[node]];
  }
  lastFind = { wanted, tree, found };
  return found;
}

/// Lays out and paints the frame that is zoomed to, all above it, and all below it.
function paintFlame() {
  const { stacks, tree, totals, part, found } = drawn;
  const ratio = devicePixelRatio || 1;
  const width = Math.max(200, widthOf(flameBox));
  const zoomed = state.frame ?? 0;
  const boxes = [];
  for (let place = zoomed; place >= 0; place = tree.parent[place]) boxes.push([place, 0, width]);
  boxes.reverse();
  const scale = totals[zoomed] > 0 ? width / totals[zoomed] : 0;
  const next = new Float64Array(tree.count); // where the next child of each place begins
  let deepest = tree.depth[zoomed];
  for (let place = zoomed + 1; place < tree.end[zoomed]; ) {
    const across = totals[place] * scale;
    const left = next[tree.parent[place]];
    next[tree.parent[place]] += across;
    if (across < LEAST) {
      place = tree.end[place];
      continue;
    }
    boxes.push([place, left, across]);
    next[place] = left;
    if (tree.depth[place] > deepest) deepest = tree.depth[place];
    ++place;
  }
  drawn.boxes = boxes;
  const height = (deepest + 1) * ROW;
  if (flameCanvas.width !== Math.round(width * ratio) || flameCanvas.height !== height * ratio) {
    flameCanvas.width = Math.round(width * ratio);
    flameCanvas.height = height * ratio;
    flameCanvas.style.height = `${height}px`;
  }
  const context = flameCanvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = FLAME_FONT;
  context.textBaseline = "middle";
  const path = pathOfEvent(stacks, tree);
  const looks = flameLooks();
  for (const [place, left, across] of boxes) {
    const top = tree.depth[place] * ROW;
    const isFound = found?.[place];
    const hue = looks.hues[stacks.modulePlace[tree.label[place]] % HUES.length];
    context.fillStyle = isFound ? looks.accent : found || part || place === 0 ? looks.line : hue;
    context.globalAlpha = place < zoomed && tree.end[place] > zoomed ? 0.55 : 1;
    context.fillRect(left, top, Math.max(across - 0.6, 0.6), ROW - 1);
    context.globalAlpha = 1;
    if (part?.[place] > 0) {
      // What the chosen advice is about has its colour, and a bar below it.
      const long = Math.max(across * Math.min(part[place] / totals[place], 1) - 0.6, 0.6);
      context.fillStyle = hue;
      if (!found && place > 0) context.fillRect(left, top, long, ROW - 1);
      context.fillStyle = looks.ink;
      context.fillRect(left, top + ROW - BAR - 1, long, BAR);
    }
    if (path.has(place)) outline(context, left, top, across, looks.ink, []);
    if (across > LEAST_NAMED) {
      context.fillStyle = isFound ? looks.accentInk : looks.ink;
      context.fillText(fittingWords(nameOfPlace(place), across - 8), left + 4, top + ROW / 2, across - 6);
    }
  }
  if (pointed !== null) {
    const box = boxes.find(([place]) => place === pointed);
    if (box) outline(context, box[1], tree.depth[pointed] * ROW, box[2], looks.ink, [4, 3]);
  }
}

function outline(context, left, top, across, colour, dash) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.setLineDash(dash);
  context.strokeRect(left + 1, top + 1, Math.max(across - 2.6, 1), ROW - 3);
}

/// Colours tell modules apart, and nothing else.
function flameLooks() {
  const hues = HUES.map((hue) => (isDark() ? `hsl(${hue} 38% 27%)` : `hsl(${hue} 70% 83%)`));
  return { hues, ink: ink("ink"), line: ink("line"), accent: ink("accent"), accentInk: ink("accent-ink") };
}

/// The places of the stack of the event in focus.
function pathOfEvent(stacks, tree) {
  const model = modelIfReady(state.section, state.focus);
  const index = state.event === null || !model ? -1 : model.singles.event.indexOf(state.event);
  const node = index < 0 ? 0 : model.singles.node[index];
  const path = new Set();
  if (node) for (let place = tree.of[node - 1]; place > 0; place = tree.parent[place]) path.add(place);
  return path;
}

const nameOfPlace = (place) => (place === 0 ? rootWords() : functionWords(drawn.stacks, drawn.tree.label[place]));

function rootWords() {
  return state.weigh === "alive" ? "all that is alive" : `every ${state.operation}`;
}

/// As much of a name as fits; arguments go first, and then the end.
function fittingWords(name, pixels) {
  const letters = Math.floor(pixels / LETTER);
  if (name.length <= letters) return name;
  const short = name.replace(/\([^()]*\)( const)?$/, "");
  return short.length <= letters ? short : `${short.slice(0, Math.max(letters - 1, 1))}…`;
}

function amountWords(value) {
  if (state.weigh === "calls") return `${countWords(value)} calls`;
  return state.weigh === "bytes" || state.weigh === "alive" ? bytesWords(value) : duration(value);
}

/// File with line, and library.
function whereabouts(place) {
  const node = drawn.tree.label[place];
  return [placeWords(drawn.stacks, node), moduleWords(drawn.stacks, node)].filter(Boolean);
}

function sentenceOf(place) {
  const { totals, own } = drawn;
  const words = [amountWords(totals[place])];
  if (totals[0] > 0 && place) words.push(shareWords(totals[place] / totals[0]));
  if (place && own[place] !== totals[place]) words.push(`itself ${amountWords(own[place])}`);
  if (place) words.push(...whereabouts(place));
  return `${nameOfPlace(place)} · ${words.join(" · ")}`;
}

function flameSentence() {
  const { stacks, tree, totals, part, found } = drawn;
  const { columns, without, named, joined, alive, over } = section().stacks;
  const stretch = duration(section().end_ns / columns);
  const said = [];
  if (state.weigh === "alive")
    said.push(
      alive
        ? `Alive at ${secondsWords(cursorSeconds(), 1)}, to ${stretch}, by the stack that allocated: ` +
            `${bytesWords(totals[0])}. A click in the memory chart moves the cursor.`
        : "Not in this report: it does not say when blocks end.",
    );
  else if (state.weigh === "over" && !over) said.push(`No budget: ${section().frames.words}`);
  else {
    const of = state.weigh === "time" || state.weigh === "over" ? ` of ${state.focus}, ${state.view}` : "";
    said.push(`${amountWords(totals[0])} of ${state.operation}${of}.`);
    if (state.weigh === "over") said.push(overWords(over, totals[0]));
    if (of) said.push(timedWords());
    said.push(
      onlySlowOnes(stacks)
        ? "The stretch is too short for sums: these are its slow events alone."
        : `Counts whole stretches of ${stretch}.`,
    );
    if (state.operation === "free") said.push("Stacks are those that free.");
  }
  if (part && chosenChange())
    said.push(`Advice ${state.change}, underlined, covers ${totals[0] ? shareWords(part[0] / totals[0]) : "0 %"}.`);
  if (found) said.push(foundWords(tree, totals, found));
  if (without > 0.0005) said.push(`${shareWords(without)} of the events have no stack.`);
  if (joined) said.push("What is too small to be shown is joined.");
  if (!named) said.push("Functions have no names yet: run blockyard names on the journal and replay it.");
  return said.join(" ");
}

/// A clock around each call keeps calls from overlapping: only runs without tell what all of them take.
function timedWords() {
  const total = allocatorNamed(state.focus).total_ns;
  const without = total === null ? "" : `; without a clock around each, all calls of a run take ${duration(total)}`;
  return `These are timed calls added up${without}.`;
}

function overWords({ share, phase }, total) {
  const hz = section().frames.rate_hz;
  const limit = `${shareWords(share)} of a ${Number(hz.toPrecision(6))} Hz frame (${duration((share * 1e9) / hz)})`;
  const frames = phase ? `frames of ${phase}` : "frames";
  return total > 0
    ? `It is what ${frames} took beyond ${limit}, shared among their calls by time.`
    : `In this stretch ${frames} take no more than ${limit}.`;
}

/// Frames within found ones count once.
function foundWords(tree, totals, found) {
  let count = 0;
  let sum = 0;
  for (let place = 1; place < tree.count; ) {
    if (found[place] && totals[place] > 0) {
      ++count;
      sum += totals[place];
      place = tree.end[place];
    } else ++place;
  }
  const share = totals[0] > 0 ? shareWords(sum / totals[0]) : "0 %";
  return count ? `Found “${state.find}” in ${share} of it.` : `“${state.find}” is not in it.`;
}

function placeUnder(event) {
  if (!drawn) return null;
  const box = flameCanvas.getBoundingClientRect();
  const x = event.clientX - box.left;
  const depth = Math.floor((event.clientY - box.top) / ROW);
  const hit = drawn.boxes.find(
    ([place, left, across]) => drawn.tree.depth[place] === depth && x >= left && x < left + Math.max(across, 1),
  );
  return hit ? hit[0] : null;
}

function showFrameTip(event) {
  const place = placeUnder(event);
  if (place === null) return hideTip();
  const { totals, own } = drawn;
  const rows = [
    [WEIGHTS[state.weigh], amountWords(totals[place])],
    ["share", totals[0] > 0 ? shareWords(totals[place] / totals[0]) : "0 %"],
    ["itself", amountWords(own[place])],
  ];
  if (place) rows.push(["in", whereabouts(place).join(" ")]);
  showTip(event.clientX, event.clientY, tipTable(nameOfPlace(place), rows));
}

/// Moves the keyboard's place, and says what is there.
function point(place) {
  pointed = place;
  if (!drawn) return;
  say(frameWords, sentenceOf(place ?? state.frame ?? 0));
  paintFlame();
}

function pointAtFound() {
  if (!drawn?.found) return;
  const widest = drawn.boxes.filter(([place]) => drawn.found[place]).sort((one, other) => other[2] - one[2])[0];
  if (!widest) return;
  pointed = widest[0];
  flameBox.focus();
  point(widest[0]);
}

function steer(event) {
  if (!drawn || event.ctrlKey || event.metaKey || event.altKey) return;
  const { tree } = drawn;
  const here = pointed ?? state.frame ?? 0;
  const shown = drawn.boxes.map(([place]) => place);
  const beside = shown.filter((place) => tree.depth[place] === tree.depth[here]);
  const step = (by) => beside[Math.min(Math.max(beside.indexOf(here) + by, 0), beside.length - 1)] ?? here;
  const keys = {
    ArrowUp: () => point(Math.max(tree.parent[here], 0)),
    ArrowDown: () => point(shown.find((place) => tree.parent[place] === here) ?? here),
    ArrowLeft: () => point(step(-1)),
    ArrowRight: () => point(step(1)),
    Home: () => point(0),
    Enter: () => chooseFrame(here),
    " ": () => chooseFrame(here),
    Escape: () => chooseFrame(null),
    "/": () => findField.focus(),
  };
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

/// The stack of an event as list items, innermost function first; null where it has none.
export function stackItems(node) {
  const stacks = stacksIfThere();
  if (!stacks || !node) return null;
  return pathOf(stacks, node - 1).map((at) =>
    [functionWords(stacks, at), placeWords(stacks, at), moduleWords(stacks, at)].filter(Boolean).join("  "),
  );
}
