// The call stacks of a section: as trees of functions, and what each stack did in a stretch of time. Cells hold the
// sums of one stack in one short stretch (report/page/stacks.py); the times of the cells are each allocator's own.
import { constants, facts, openPack } from "./data.js";
import { columnRange, decodeCells, modelIfReady, pointsOf } from "./model.js";
import { state } from "./state.js";

const stackPacks = new Map();
const sumNs = Float64Array.from(
  { length: 64 * constants.sum_steps },
  (_, step) => 2 ** (step / constants.sum_steps) - 1,
);

/// Loads those of a section that has any.
export async function loadStacks(sectionNumber) {
  const section = facts.sections[sectionNumber];
  if (typeof section.stacks === "string" || stackPacks.has(sectionNumber)) return;
  stackPacks.set(sectionNumber, decodeStacks(await openPack(`${sectionNumber}/stacks`), section));
}

/// Of the chosen section, or undefined where it has none.
export const stacksIfThere = () => stackPacks.get(state.section);

function decodeStacks({ columns, texts }, section) {
  const byLabel = (column) => Uint32Array.from(columns.label, (label) => column[label]);
  const modules = [...new Set(columns.module)];
  const cells = {};
  for (const kind of ["malloc", "free", "died"]) cells[kind] = decodeStackCells(columns, kind, section.stacks.columns);
  return {
    count: columns.parent.length,
    parent: Int32Array.from(columns.parent, (place) => place - 1),
    end: columns.end,
    texts,
    function: byLabel(columns.function),
    file: byLabel(columns.file),
    line: byLabel(columns.line),
    module: byLabel(columns.module),
    modulePlace: byLabel(columns.module).map((module) => modules.indexOf(module)),
    cells,
    firstTime: { malloc: 0, free: cells.malloc.node.length },
    start: wideColumn(columns, "start"),
    parts: columns["malloc.change.node"] ? decodeParts(columns) : null,
    trees: {},
    stretch: { columns: section.stacks.columns, end_ns: section.end_ns },
  };
}

function decodeStackCells(columns, kind, columnCount) {
  const { start, place: node } = decodeCells(columns, kind, columnCount);
  return { start, node, calls: columns[`${kind}.calls`], bytes: wideColumn(columns, `${kind}.bytes`) };
}

/// Of each operation which part of a node's calls, in 255ths, belongs to which change.
function decodeParts(columns) {
  const parts = {};
  for (const kind of ["malloc", "free"]) {
    const name = `${kind}.change`;
    parts[kind] = { node: columns[`${name}.node`], change: columns[name], part: columns[`${name}.part`] };
  }
  return parts;
}

function wideColumn(columns, name) {
  const low = Float64Array.from(columns[name]);
  const high = columns[`${name}.high`];
  if (high) for (let i = 0; i < low.length; ++i) low[i] += high[i] * 2 ** 32;
  return low;
}

/// The functions as a tree, in the order in which it is drawn: a node's subtree is [node, end[node]), node 0 is all.
/// `of` leads from a node of the stacks to its place, `label` back to one that is called so. Inverted, what allocates
/// stands outermost and its callers within.
export function treeOf(stacks, inverted) {
  const name = inverted ? "inverted" : "usual";
  stacks.trees[name] ??= orderedTree(stacks, inverted ? invertedTree(stacks) : usualTree(stacks));
  return stacks.trees[name];
}

/// Grows a tree: `child(above, node)` is the place below `above` that is called as that node is.
function growTree(stacks) {
  const parent = [-1];
  const label = [-1];
  const known = new Map();
  const names = new Map();
  const nameOf = (node) => {
    const pair = stacks.function[node] * stacks.texts.length + stacks.module[node];
    if (!names.has(pair)) names.set(pair, names.size);
    return names.get(pair);
  };
  const child = (above, node) => {
    const key = above * 2 ** 24 + nameOf(node);
    let place = known.get(key);
    if (place === undefined) {
      place = parent.length;
      parent.push(above);
      label.push(node);
      known.set(key, place);
    }
    return place;
  };
  return { parent, label, child, of: new Int32Array(stacks.count) };
}

function usualTree(stacks) {
  const tree = growTree(stacks);
  for (let node = 0; node < stacks.count; ++node) {
    const above = stacks.parent[node];
    tree.of[node] = tree.child(above < 0 ? 0 : tree.of[above], node);
  }
  return tree;
}

function invertedTree(stacks) {
  const tree = growTree(stacks);
  for (let node = 0; node < stacks.count; ++node) {
    if (!stacks.end[node]) continue;
    let place = 0;
    for (let at = node; at >= 0; at = stacks.parent[at]) place = tree.child(place, at);
    tree.of[node] = place;
  }
  return tree;
}

/// Renumbers the places so that subtrees are contiguous, those with more calls in the whole run first: brushing then
/// moves nothing.
function orderedTree(stacks, { parent, label, of }) {
  const count = parent.length;
  const calls = new Float64Array(count);
  for (const kind of ["malloc", "free"]) {
    const { node, calls: of_cell } = stacks.cells[kind];
    for (let at = 0; at < node.length; ++at) calls[of[node[at]]] += of_cell[at];
  }
  for (let at = count - 1; at > 0; --at) calls[parent[at]] += calls[at];
  // By rising calls: each place's list of children, begun from its end, then has the one with most calls first.
  const rising = Uint32Array.from({ length: count }, (_, place) => place).sort(
    (one, other) => calls[one] - calls[other] || other - one,
  );
  const firstChild = new Int32Array(count).fill(-1);
  const nextChild = new Int32Array(count).fill(-1);
  for (const place of rising) {
    if (!place) continue;
    nextChild[place] = firstChild[parent[place]];
    firstChild[parent[place]] = place;
  }
  const number = new Int32Array(count);
  const tree = {
    count,
    parent: new Int32Array(count).fill(-1),
    label: new Int32Array(count).fill(-1),
    end: new Int32Array(count),
    depth: new Uint16Array(count),
    of: null,
  };
  let place = 0;
  for (let at = 0; at < count; ++at) {
    number[place] = at;
    tree.label[at] = label[place];
    if (place) {
      tree.parent[at] = number[parent[place]];
      tree.depth[at] = tree.depth[tree.parent[at]] + 1;
    }
    let next = firstChild[place];
    while (next < 0 && place) {
      next = nextChild[place];
      place = parent[place];
    }
    place = next;
  }
  for (let at = count - 1; at >= 0; --at) {
    tree.end[at] = Math.max(tree.end[at], at + 1);
    if (at) tree.end[tree.parent[at]] = Math.max(tree.end[tree.parent[at]], tree.end[at]);
  }
  tree.of = of.map((place) => number[place]);
  return tree;
}

/// Whether the times of the chosen stretch are those of its slow events alone: it is too short for sums.
export function onlySlowOnes(stacks) {
  const column = stacks.stretch.end_ns / 1e9 / stacks.stretch.columns;
  return state.weigh === "time" && state.to - state.from < 1.5 * column;
}

/// What is chosen of the chosen stretch, by node; null while the allocator is not there yet.
export function weightsOf(stacks) {
  const values = new Float64Array(stacks.count);
  if (state.weigh === "alive") return aliveAt(stacks, cursorColumn(stacks), values);
  const { start, node, calls, bytes } = stacks.cells[state.operation];
  const [first, behind] = columnRange(stacks.stretch, state.from, state.to);
  if (state.weigh === "calls" || state.weigh === "bytes") {
    const counted = state.weigh === "calls" ? calls : bytes;
    for (let at = start[first]; at < start[behind]; ++at) values[node[at]] += counted[at];
    return values;
  }
  const model = modelIfReady(state.section, state.focus);
  if (!model?.times) return null;
  if (onlySlowOnes(stacks)) return slowTimes(model, values);
  const base = stacks.firstTime[state.operation];
  if (state.weigh === "time") {
    const asRun = model.times["time.as-run"];
    const less = state.view === "as-run" ? null : model.times[`time.${state.view}`];
    for (let at = start[first]; at < start[behind]; ++at)
      values[node[at]] += sumNs[asRun[base + at] - (less ? less[base + at] : 0)];
    return values;
  }
  const cells = model.times[`over.${state.view}.cell`] ?? [];
  const over = model.times[`over.${state.view}`];
  for (let i = 0; i < cells.length; ++i) {
    const at = cells[i] - base;
    if (at >= start[first] && at < start[behind]) values[node[at]] += sumNs[over[i]];
  }
  return values;
}

function slowTimes(model, values) {
  const { time, ns, index } = pointsOf(model, state.operation, state.view);
  const repeats = state.view === "inherent" ? 1 : model.singles.repeats;
  for (let i = 0; i < ns.length; ++i) {
    const node = model.singles.node[index[i]];
    if (node && time[i] >= state.from && time[i] <= state.to) values[node - 1] += ns[i] / repeats;
  }
  return values;
}

/// What was alive at the end of column `behind - 1`.
function aliveAt({ start, cells }, behind, values) {
  values.set(start);
  for (let at = 0; at < cells.malloc.start[behind]; ++at) values[cells.malloc.node[at]] += cells.malloc.bytes[at];
  for (let at = 0; at < cells.died.start[behind]; ++at) values[cells.died.node[at]] -= cells.died.bytes[at];
  for (let node = 0; node < values.length; ++node) if (values[node] < 0.5) values[node] = 0;
  return values;
}

/// Where the cursor is, in seconds: where it was put, else at the end of the chosen stretch.
export const cursorSeconds = () => state.at ?? state.to;

/// How many whole columns lie before the cursor; the nearest edge.
function cursorColumn({ stretch: { columns, end_ns: end } }) {
  return Math.min(Math.max(Math.round((cursorSeconds() / (end / 1e9)) * columns), 0), columns);
}

/// The nodes of a stack as [node, ...], innermost first.
export function pathOf(stacks, node) {
  const path = [];
  for (let at = node; at >= 0; at = stacks.parent[at]) path.push(at);
  return path;
}

/// Whether an event, by its place among the singles, lies in the frame and belongs to the change that are chosen; null
/// when neither is.
export function chosenTest({ node, change }) {
  const stacks = stacksIfThere();
  if (!stacks || (state.frame === null && state.change === null)) return null;
  const { of, end } = treeOf(stacks, state.inverted);
  const first = state.frame ?? -1;
  const behind = state.frame === null ? Infinity : end[first];
  const place = (at) => (node[at] > 0 ? of[node[at] - 1] : -1);
  return (at) => place(at) >= first && place(at) < behind && (state.change === null || change[at] === state.change);
}

/// Of what `weightsOf` gave, the part that belongs to the chosen change; null where none is.
export function partOf(stacks, weights) {
  if (state.change === null || !stacks.parts) return null;
  const kind = state.weigh === "alive" ? "malloc" : state.operation;
  const { node, change, part } = stacks.parts[kind];
  const values = new Float64Array(weights.length);
  for (let at = 0; at < node.length; ++at)
    if (change[at] === state.change) values[node[at]] = (weights[node[at]] * part[at]) / 255;
  return values;
}

/// `file.cpp:12`, without folders; empty where it is not known.
export function placeWords(stacks, node) {
  const file = stacks.texts[stacks.file[node]].split("/").pop();
  return file && stacks.line[node] ? `${file}:${stacks.line[node]}` : file;
}

export const functionWords = (stacks, node) => stacks.texts[stacks.function[node]];

/// The library or program, without folders; empty where the function is called by it, for want of a name.
export function moduleWords(stacks, node) {
  const module = stacks.texts[stacks.module[node]].split("/").pop();
  return functionWords(stacks, node).startsWith(`${module}+0x`) ? "" : module;
}
