// The choices above the charts: operation, view, allocators, and the allocator of the scatter.
import { facts } from "./data.js";
import { make, makeButton } from "./dom.js";
import { drawSwatch } from "./look.js";
import { addressOf, allocatorNamed, change, chooseSection, section, state } from "./state.js";

const VIEW_WORDS = {
  "as-run": "As-run: every repeat as it came, the machine's interruptions included.",
  attributed:
    "Attributed: as-run less the events that the machine slowed down (preempted, migrated, interrupted); " +
    "one that it slowed down in every repeat counts with the least of them.",
  inherent: "Inherent: of each event the least over all repeats, a lower bound of what the allocator does.",
};
const toast = document.getElementById("toast");
let toastTimer = 0;

export function makeControls() {
  const sectionPick = document.getElementById("section");
  sectionPick.replaceChildren(...sectionNames().map((name, place) => new Option(name, place)));
  document.getElementById("section-pick").hidden = facts.sections.length < 2;
  sectionPick.addEventListener("change", () => {
    chooseSection(Number(sectionPick.value));
    change({}, "choice", "range", "section");
  });
  const focusPick = document.getElementById("focus");
  focusPick.addEventListener("change", () => change({ focus: focusPick.value, event: null }, "choice"));
  return drawControls;
}

/// The journals' names alone where they tell the sections apart.
function sectionNames() {
  const journals = facts.sections.map((one) => one.journal);
  return new Set(journals).size === journals.length ? journals : facts.sections.map((one) => one.title);
}

function drawControls() {
  const { touched, views, allocators } = section();
  document.getElementById("section").value = state.section;
  drawSegments("operation", { malloc: touched ? "malloc + first touch" : "malloc", free: "free" });
  drawSegments("view", { "as-run": "as-run", attributed: "attributed", inherent: "inherent" }, views);
  document.getElementById("view-words").textContent =
    VIEW_WORDS[state.view] + (views.includes("attributed") ? "" : " Attributed is not in this report.");
  const focusPick = document.getElementById("focus");
  focusPick.replaceChildren(...allocators.map((one) => new Option(one.name, one.name)));
  focusPick.value = state.focus;
  drawChips();
}

/// One of a few, side by side; those that are not among the `possible` can't be chosen.
function drawSegments(name, choices, possible = Object.keys(choices)) {
  const box = document.getElementById(name);
  if (!box.children.length) box.append(...Object.keys(choices).map((value) => makeSegment(name, value)));
  for (const label of box.children) {
    const [input, words] = label.children;
    Object.assign(input, { checked: input.value === state[name], disabled: !possible.includes(input.value) });
    words.textContent = choices[input.value];
  }
}

function makeSegment(name, value) {
  const input = make("input", { type: "radio", name, value });
  input.addEventListener("change", () => change({ [name]: value, event: null }, "choice"));
  return make("label", {}, input, make("span"));
}

/// The allocators to choose from, those in their defaults and each variant in a row of its own.
function drawChips() {
  const box = document.getElementById("allocators");
  const { allocators } = section();
  const drawn = `${state.section}`;
  if (box.dataset.drawn !== drawn) {
    box.dataset.drawn = drawn;
    const variants = [...new Set(allocators.map((one) => one.variant))];
    box.replaceChildren(
      ...variants.map((variant) => {
        const members = allocators.filter((one) => one.variant === variant);
        return variants.length > 1 ? makeChipRow(variant, members) : chipsOf(members);
      }),
    );
  }
  for (const input of box.querySelectorAll("input")) {
    input.checked = state.shown.has(input.value);
    drawSwatch(input.nextElementSibling, allocatorNamed(input.value));
  }
}

/// A row whose name shows all of it, or none where all are shown.
function makeChipRow(variant, members) {
  const names = members.map((one) => one.name);
  const toggle = makeButton(variant, `Show all or none of ${variant}`, () => {
    const all = names.every((name) => state.shown.has(name));
    for (const name of names) state.shown[all ? "delete" : "add"](name);
    change({}, "choice");
  });
  return make("div", { className: "chip-row" }, toggle, chipsOf(members));
}

const chipsOf = (members) => make("div", { className: "chips" }, ...members.map(makeChip));

function makeChip({ name, base, version, grade }) {
  const input = make("input", { type: "checkbox", value: name, ariaLabel: name });
  input.addEventListener("change", () => {
    state.shown[input.checked ? "add" : "delete"](name);
    change({}, "choice");
  });
  const words = grade === "poor" ? `${base} !` : base;
  const title = `${name} ${version}; its runs are graded ${grade}`;
  return make("label", { className: "chip", title }, input, make("canvas"), words);
}

export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from disk may be refused the clipboard; a selected text field may not.
    const field = make("textarea", { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast.textContent = said;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    toast.textContent = "";
  }, 2500);
}

export function linkOfView() {
  return location.href.split("#")[0] + addressOf();
}
