// Elements of the page, made in one go.

/// `make("button", { type: "button" }, "All")`: an element with these properties and children.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/// Changes an element's words, unless it says the same: what is written has the page laid out again.
export function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

const widths = new WeakMap();
const widthWatcher = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) widths.set(target, contentRect.width);
});

/// An element's width in pixels, asked of the browser once: a question in mid-redraw has the whole page laid out.
export function widthOf(element) {
  if (!widths.has(element)) {
    widths.set(element, element.clientWidth);
    widthWatcher.observe(element);
  }
  return widths.get(element);
}

/// A button that calls `act`.
export function makeButton(words, title, act) {
  const button = make("button", { type: "button", title }, words);
  button.addEventListener("click", act);
  return button;
}
