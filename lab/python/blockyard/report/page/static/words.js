// Numbers as people read them: three significant digits and a unit, as blockyard/units.py writes them.

export const ABSENT = "–";

/// A value and its unit, the first of these in which it is below `most`.
export function scaled(value, units, most, step) {
  let place = 0;
  for (; value >= most && place + 1 < units.length; ++place) value /= step;
  return [value, units[place]];
}

export function duration(ns) {
  if (!(ns > 0)) return "0 ns";
  if (ns >= 119.5e9) return clockWords(Math.round(ns / 1e9));
  const [value, unit] = scaled(ns, ["ns", "us", "ms", "s"], 999.5, 1000);
  return `${threeDigits(value)} ${unit}`;
}

function clockWords(seconds) {
  const [whole, unit] = seconds < 3600 ? [seconds, "min"] : [Math.floor(seconds / 60), "h"];
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} ${unit}`;
}

/// A latency; less than a step of the clock reads as such, one that the measurement could not hold as at least that.
export function latencyWords(ns, stepNs, atLeast = false) {
  if (ns === null || ns === undefined) return ABSENT;
  if (ns < stepNs / 2) return `<${duration(stepNs)}`;
  return atLeast ? `≥${duration(ns)}` : duration(ns);
}

export const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytesWords(count) {
  if (count === null || count === undefined) return ABSENT;
  const [value, unit] = scaled(count, BYTE_UNITS, 1023.5, 1024);
  return unit === "B" ? `${Math.round(value)} B` : `${threeDigits(value)} ${unit}`;
}

export function countWords(count) {
  if (count === null) return ABSENT;
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

export function rateWords(perSecond) {
  if (perSecond === null) return ABSENT;
  return perSecond === 0 ? "0" : perSecond >= 100 ? countWords(perSecond) : threeDigits(perSecond);
}

export function secondsWords(seconds, spanSeconds) {
  const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(Math.max(spanSeconds, 1e-6)))));
  return `${seconds.toFixed(digits)} s`;
}

export function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/// From one to the other, the unit once: `790 to 890 ns`; a single one where they read the same.
export function spanWords(low, high) {
  if (low === high) return low;
  const [, unit] = high.split(" ");
  return low.endsWith(` ${unit}`) ? `${low.slice(0, -unit.length - 1)} to ${high}` : `${low} to ${high}`;
}

export const durationWords = (ns) => (ns === null ? ABSENT : duration(ns));

/// In percent: `0.05 %`, `12.3 %`, `340 %`.
export function shareWords(share) {
  if (share === null || share === undefined) return ABSENT;
  const percent = share * 100;
  if (percent === 0) return "0 %";
  return percent < 0.01 ? "<0.01 %" : `${threeDigits(percent)} %`;
}

/// Of a decade on an axis: `1 ns`, `10 us`.
export function decadeWords(ns) {
  const [value, unit] = scaled(ns, ["ns", "us", "ms", "s"], 999, 1000);
  return `${+value.toPrecision(3)} ${unit}`;
}
