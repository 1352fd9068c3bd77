// Fingers on the scatter: one moves in time, two zoom about the place between them. Up and down still scroll the page.
import { setRange, state } from "./state.js";

/// `element` takes the gestures, `plotBox()` is where its plot lies on the screen.
export function listenToFingers(element, plotBox) {
  const fingers = new Map();
  let begun = null;

  const grip = () => {
    const places = [...fingers.values()];
    const middle = places.reduce((sum, x) => sum + x, 0) / places.length;
    const spread = places.length > 1 ? Math.max(Math.abs(places[0] - places[1]), 20) : 1;
    return { middle, spread };
  };
  const begin = () => {
    begun = fingers.size ? { ...grip(), from: state.from, to: state.to, count: fingers.size } : null;
  };
  const lift = (event) => {
    if (fingers.delete(event.pointerId)) begin();
  };

  element.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "touch" || fingers.size === 2) return;
    fingers.set(event.pointerId, event.clientX);
    begin();
  });
  element.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, event.clientX);
    const { middle, spread } = grip();
    if (begun.count === 1 && Math.abs(middle - begun.middle) < 6) return;
    const box = plotBox();
    // The time that lay between the fingers stays between them.
    const span = ((begun.to - begun.from) * begun.spread) / spread;
    const held = begun.from + ((begun.middle - box.left) / box.width) * (begun.to - begun.from);
    const from = held - ((middle - box.left) / box.width) * span;
    setRange(from, from + span);
  });
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
}
