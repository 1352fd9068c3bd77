// All that is known of one event, in words.
import { constants } from "./data.js";
import { latencyOf } from "./model.js";
import { section } from "./state.js";
import { countWords, duration, secondsWords } from "./words.js";

const KINDS = ["malloc", "calloc", "aligned malloc", "free", "realloc"];

/// Everything known of an event, as [label, value] pairs.
export function eventRows(model, index) {
  const { singles } = model;
  const rows = [
    ["call", `${KINDS[singles.kind[index]]} of ${countWords(singles.size[index])} B`],
    ["thread", threadWords(singles.thread[index])],
    ["time", secondsWords(singles.time[index], 1e-3)],
    ["frame", countWords(singles.frame[index])],
  ];
  let slow = 0;
  for (let repeat = 0; repeat < singles.repeats; ++repeat) {
    const ns = latencyOf(singles, repeat, index);
    const isSlow = ns > model.completeAbove;
    slow += isSlow;
    rows.push([
      `repeat ${repeat + 1}${isSlow ? ", slow" : ""}`,
      `${duration(ns)}: ${constants.cause_words[singles.cause[repeat][index]]}`,
    ]);
  }
  if (singles.calls[index]) rows.push(["system calls, when traced", singles.phrases[singles.calls[index]]]);
  rows.push(["slow in", `${slow} of ${singles.repeats} repeats`]);
  return rows;
}

function threadWords(thread) {
  const name = section().threads[thread];
  return name ? `${thread} (${name})` : String(thread);
}
