// What to change: a row for each piece of advice. The chosen one marks its events in the scatter plot and its part of
// the flame graph.
import { make } from "./dom.js";
import { change, section, state } from "./state.js";

const ADVICE_COLUMNS = ["#", "change", "in", "blocks", "break it", "share of time, estimated", "measured", "memory"];

const WORDED = [1, 2];

const adviceCard = document.getElementById("advice-card");
const adviceTable = document.getElementById("advice");
const adviceDetails = document.getElementById("advice-details");

/// Of the chosen section, or null.
const adviceIfThere = () => section().advice;

/// The change that is chosen, as its row; null for none.
export const chosenChange = () => adviceIfThere()?.rows[(state.change ?? 0) - 1] ?? null;

export function drawAdvice() {
  const advice = adviceIfThere();
  adviceCard.hidden = !advice;
  if (!advice) return;
  document.getElementById("advice-words").textContent =
    advice.answer + (advice.more ? ` The first ${advice.rows.length} of ${advice.rows.length + advice.more}.` : "");
  const names = ADVICE_COLUMNS.map((name, at) =>
    make("th", { scope: "col", className: WORDED.includes(at) ? "words" : "" }, name),
  );
  adviceTable.replaceChildren(
    make("thead", {}, make("tr", {}, ...names)),
    make("tbody", {}, ...advice.rows.map(adviceRow)),
  );
  markAdvice();
}

function adviceRow({ what, function: name, place, cells }, at) {
  const choose = () => change({ change: state.change === at + 1 ? null : at + 1 }, "frame");
  const button = make("button", { type: "button", title: "Mark its events and its part of the flame graph" }, what);
  const row = make(
    "tr",
    {},
    make("td", {}, `${at + 1}`),
    make("td", { className: "words" }, button),
    make("td", { className: "words" }, name, make("small", {}, place)),
    ...cells.map((words) => make("td", {}, words)),
  );
  row.addEventListener("click", choose); // of the button, too, by keyboard
  return row;
}

/// Shows which row is chosen, and what is behind it.
export function markAdvice() {
  const advice = adviceIfThere();
  if (!advice) return;
  const rows = [...adviceTable.tBodies[0].rows];
  rows.forEach((row, at) => {
    row.classList.toggle("chosen", state.change === at + 1);
    row.querySelector("button").setAttribute("aria-pressed", String(state.change === at + 1));
  });
  const chosen = chosenChange();
  adviceDetails.replaceChildren(
    ...(chosen
      ? [
          make("b", {}, chosen.change),
          make("ul", {}, ...chosen.evidence.map((sentence) => make("li", {}, sentence))),
          ...chosen.code.map((lines) => make("pre", {}, lines)),
        ]
      : []),
  );
}
