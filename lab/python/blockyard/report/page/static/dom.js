// Elements of the page, made in one go.

/// `make("button", { type: "button" }, "All")`: an element with these properties and children.
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/// A button that calls `act`.
export function makeButton(words, title, act) {
  const button = make("button", { type: "button", title }, words);
  button.addEventListener("click", act);
  return button;
}
