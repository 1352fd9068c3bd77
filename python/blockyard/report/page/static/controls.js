// The choices above the charts: operation, view, allocators, and the allocator of the scatter.
import { facts } from "./data.js";
import { drawSwatch } from "./look.js";
import { addressOf, change, chooseSection, section, state } from "./state.js";

const VIEW_WORDS = {
  "as-run": "As-run: every repeat as it came, the machine's interruptions included.",
  attributed: "Attributed: as-run less the events that the machine slowed down (preempted, migrated, interrupted).",
  inherent: "Inherent: of each event the least over all repeats, a lower bound of what the allocator does.",
};
const toast = document.getElementById("toast");
let toastTimer = 0;

export function makeControls() {
  const sectionPick = document.getElementById("section");
  sectionPick.replaceChildren(...facts.sections.map((one, place) => new Option(one.title, place)));
  document.getElementById("section-pick").hidden = facts.sections.length < 2;
  sectionPick.addEventListener("change", () => {
    chooseSection(Number(sectionPick.value));
    change({}, "choice", "range", "section");
  });
  document.getElementById("focus").addEventListener("change", (event) => change({ focus: event.target.value, event: null }, "choice"));
  return drawControls;
}

function drawControls() {
  document.getElementById("section").value = state.section;
  segments("operation", [["malloc", section().touched ? "malloc + first touch" : "malloc"], ["free", "free"]], () => true);
  segments("view", ["as-run", "attributed", "inherent"].map((name) => [name, name]), (name) => section().views.includes(name));
  document.getElementById("view-words").textContent = VIEW_WORDS[state.view]
    + (section().views.includes("attributed") ? "" : " Attributed is not in this report.");
  const focus = document.getElementById("focus");
  focus.replaceChildren(...section().allocators.map((one) => new Option(one.name, one.name)));
  focus.value = state.focus;
  drawChips();
}

function segments(name, choices, isThere) {
  const box = document.getElementById(name);
  if (box.children.length === choices.length) {
    for (const input of box.querySelectorAll("input")) input.checked = input.value === state[name];
    return;
  }
  box.replaceChildren(...choices.map(([value, words]) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name, value, checked: value === state[name], disabled: !isThere(value) });
    input.addEventListener("change", () => change({ [name]: value, event: null }, "choice"));
    const text = document.createElement("span");
    text.textContent = words;
    label.append(input, text);
    return label;
  }));
}

function drawChips() {
  const box = document.getElementById("allocators");
  const names = section().allocators.map((one) => one.name).join();
  if (box.dataset.names !== names) {
    box.dataset.names = names;
    box.replaceChildren(...section().allocators.map((allocator) => {
      const label = document.createElement("label");
      label.className = "chip";
      label.title = `${allocator.name} ${allocator.version}; its runs are graded ${allocator.grade}`;
      const input = Object.assign(document.createElement("input"), { type: "checkbox", value: allocator.name });
      input.addEventListener("change", () => {
        if (input.checked) state.shown.add(allocator.name);
        else state.shown.delete(allocator.name);
        change({}, "choice");
      });
      label.append(input, document.createElement("canvas"), allocator.grade === "poor" ? `${allocator.name} !` : allocator.name);
      return label;
    }));
  }
  for (const label of box.children) {
    const input = label.querySelector("input");
    input.checked = state.shown.has(input.value);
    drawSwatch(label.querySelector("canvas"), section().allocators.find((one) => one.name === input.value));
  }
}

export async function copyText(text, said) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page from disk may be refused the clipboard; a selected text field may not.
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast.textContent = said;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { toast.textContent = ""; }, 2500);
}

export function linkOfView() {
  return location.href.split("#")[0] + addressOf();
}
