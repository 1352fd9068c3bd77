// What is chosen, as one object that every chart reads and the address bar keeps: a link leads to the very view.
import { facts } from "./data.js";

/// `from`, `to` in seconds, `low`, `high` in ns (null: the whole); `event` the number of the event in focus; `hidden`
/// the causes whose marks are not shown, by their place. Of the flame graph: `weigh` what it shows, `frame` the place
/// in its tree that is chosen (null: none), `at` the cursor of memory in seconds (null: the end of the stretch).
/// `change` is the number of the advice that is chosen (null: none).
export const state = {
  section: 0,
  operation: "malloc",
  view: "as-run",
  focus: "",
  shown: new Set(),
  from: 0,
  to: 1,
  low: null,
  high: null,
  sort: "p99.9",
  rising: true,
  show: "latency",
  event: null,
  hidden: new Set(),
  weigh: "calls",
  inverted: false,
  find: "",
  frame: null,
  at: null,
  change: null,
};
const weighable = ["calls", "bytes", "time", "over", "alive"];

const listeners = [];
let keepTimer = 0;

export const section = () => facts.sections[state.section];
export const endSeconds = () => section().end_ns / 1e9;
export const allocatorNamed = (name) => section().allocators.find((one) => one.name === name);
export const shownAllocators = () => section().allocators.filter((one) => state.shown.has(one.name));
export const isWhole = () => state.from <= 0 && state.to >= endSeconds();

/// `what` is a set of words: "range", "choice", "sort", "event", "flame" (how it is shown), "frame" (or the advice that
/// is chosen), "at".
export function onChange(listener) {
  listeners.push(listener);
}

export function change(values, ...what) {
  Object.assign(state, values);
  const changed = new Set(what);
  for (const listener of listeners) listener(changed);
  clearTimeout(keepTimer);
  keepTimer = setTimeout(keepInAddress, 150);
}

/// Sets the stretch of time, held within the run and to no less than a microsecond.
export function setRange(from, to, also = {}) {
  const end = endSeconds();
  const span = Math.min(Math.max(to - from, 1e-6), end);
  const begin = Math.min(Math.max(from, 0), end - span);
  change({ from: begin, to: begin + span, ...also }, "range");
}

/// Another journal. What was shown and in focus stays where it is there too.
export function chooseSection(number) {
  const chosen = facts.sections[number];
  const has = (name) => chosen.allocators.some((one) => one.name === name);
  const usual = chosen.allocators.filter((one) => one.variant === "defaults");
  const first = usual.find((one) => !one.null) ?? chosen.allocators[0];
  const kept = [...state.shown].filter(has);
  const shown = kept.length ? kept : (usual.length ? usual : chosen.allocators).map((one) => one.name);
  Object.assign(state, {
    section: number,
    shown: new Set(shown),
    focus: has(state.focus) ? state.focus : first.name,
    from: 0,
    to: chosen.end_ns / 1e9,
    low: null,
    high: null,
    event: null,
    frame: null,
    at: null,
    change: null,
  });
  if (!chosen.views.includes(state.view)) state.view = chosen.views[0];
}

export function addressOf() {
  const words = new URLSearchParams();
  if (facts.sections.length > 1) words.set("section", section().title);
  words.set("op", state.operation);
  words.set("view", state.view);
  words.set("of", state.focus);
  words.set("with", [...state.shown].join(","));
  if (!isWhole()) words.set("s", `${+state.from.toFixed(7)}-${+state.to.toFixed(7)}`);
  if (state.low !== null) words.set("ns", `${+state.low.toPrecision(5)}-${+state.high.toPrecision(5)}`);
  if (state.show !== "latency") words.set("show", state.show);
  words.set("sort", (state.rising ? "" : "-") + state.sort);
  if (state.hidden.size) words.set("hide", [...state.hidden].join(","));
  if (state.event !== null) words.set("event", state.event);
  if (state.weigh !== "calls") words.set("by", state.weigh);
  if (state.inverted) words.set("inverted", 1);
  if (state.find) words.set("find", state.find);
  if (state.frame !== null) words.set("frame", state.frame);
  if (state.change !== null) words.set("advice", state.change);
  if (state.at !== null) words.set("at", +state.at.toFixed(7));
  return `#${words}`;
}

/// Takes over whatever of an address makes sense here; the rest stays as it was.
export function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = facts.sections.findIndex((one) => one.title === words.get("section"));
  chooseSection(Math.max(number, 0));
  const names = section().allocators.map((one) => one.name);
  if (["malloc", "free"].includes(words.get("op"))) state.operation = words.get("op");
  if (section().views.includes(words.get("view"))) state.view = words.get("view");
  if (names.includes(words.get("of"))) state.focus = words.get("of");
  const listed = (name, separator) => (words.get(name) ?? "").split(separator);
  if (words.has("with")) state.shown = new Set(listed("with", ",").filter((name) => names.includes(name)));
  const [from, to] = listed("s", "-").map(Number);
  if (from >= 0 && to > from && to <= endSeconds() * 1.001)
    Object.assign(state, { from, to: Math.min(to, endSeconds()) });
  const [low, high] = listed("ns", "-").map(Number);
  if (low > 0 && high > low) Object.assign(state, { low, high });
  state.show = section().tables.some(({ name }) => name === words.get("show")) ? words.get("show") : "latency";
  const sort = words.get("sort");
  if (sort) Object.assign(state, { sort: sort.replace(/^-/, ""), rising: !sort.startsWith("-") });
  const hidden = listed("hide", ",").filter((word) => /^\d$/.test(word));
  state.hidden = new Set(hidden.map(Number));
  if (/^\d+$/.test(words.get("event") ?? "")) state.event = Number(words.get("event"));
  state.weigh = weighable.includes(words.get("by")) ? words.get("by") : "calls";
  state.inverted = words.get("inverted") === "1";
  state.find = words.get("find") ?? "";
  if (/^[1-9]\d*$/.test(words.get("frame") ?? "")) state.frame = Number(words.get("frame"));
  const place = Number(words.get("advice"));
  if (section().advice?.rows[place - 1]) state.change = place;
  const at = Number(words.get("at") ?? NaN);
  if (at >= 0 && at <= endSeconds()) state.at = at;
}

function keepInAddress() {
  history.replaceState(null, "", addressOf());
}
