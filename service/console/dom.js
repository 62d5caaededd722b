// Elements made from data. Text becomes text nodes, so nothing that is shown can become markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element: attributes by name (`on…` are listeners, null and false are left out), children as nodes or text. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** A section of the page with its three states: waiting, something to show, and a note in its place. */
export class Panel {
  constructor(id) {
    this.section = document.getElementById(id);
    this.body = this.section.querySelector(".body");
    this.note = this.section.querySelector(".note");
  }

  wait() {
    this.section.setAttribute("aria-busy", "true");
  }

  /** A slider of the panel is being dragged: what it stands in must not be replaced now. */
  get held() {
    return this.body.querySelector("input:active") !== null;
  }

  /** The control that has the focus keeps it, by its place; where it is gone, the last one gets it. */
  show(...nodes) {
    const place = this.#controls.indexOf(document.activeElement);
    this.#settle("");
    this.body.replaceChildren(...nodes);
    if (place >= 0) (this.#controls[place] ?? this.#controls.at(-1))?.focus();
  }

  get #controls() {
    return [...this.body.querySelectorAll("input, button:enabled")];
  }

  say(text) {
    this.#settle(text);
    this.body.replaceChildren();
  }

  /** Why something that was asked for did not happen, above what was shown last. */
  fail(problem) {
    this.#settle(problem.message, "problem");
  }

  /** What is shown is of old: it stays, but pale. */
  age() {
    this.#settle(this.body.childElementCount ? "" : "Nothing is known yet.", "old");
  }

  #settle(text, kind = "") {
    this.section.setAttribute("aria-busy", "false");
    this.section.dataset.kind = kind;
    this.note.textContent = text;
    this.note.hidden = !text;
  }
}
