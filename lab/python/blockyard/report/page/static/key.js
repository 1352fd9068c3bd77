// The key to the scatter: what its shades and its marks mean; each cause can be left out.
import { make } from "./dom.js";
import { CAUSES, densityRamp } from "./look.js";
import { spriteOf } from "./marks.js";
import { change, state } from "./state.js";

export function drawKey() {
  const causes = CAUSES.map((cause, place) => make("li", {}, causeChoice(cause, place)));
  document
    .getElementById("scatter-key")
    .replaceChildren(make("li", {}, "few", rampPicture(), "many events"), ...causes);
}

function rampPicture() {
  const ramp = make("canvas", { className: "ramp", width: 256, height: 1 });
  const context = ramp.getContext("2d");
  const image = context.createImageData(256, 1);
  new Uint32Array(image.data.buffer).set(densityRamp());
  context.putImageData(image, 0, 0);
  return ramp;
}

function causeChoice(cause, place) {
  const sprite = spriteOf(place);
  const canvas = make("canvas", { width: sprite.width, height: sprite.height });
  canvas.getContext("2d").drawImage(sprite, 0, 0);
  const box = make("input", { type: "checkbox", name: "cause", checked: !state.hidden.has(place) });
  box.addEventListener("change", () => {
    if (box.checked) state.hidden.delete(place);
    else state.hidden.add(place);
    change({}, "marks");
  });
  return make("label", {}, box, canvas, cause.name);
}
