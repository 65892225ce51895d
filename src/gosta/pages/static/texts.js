// Making elements, and numbers as text.
"use strict";

const byId = (id) => document.getElementById(id);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  element.append(...children.filter((one) => one !== null));
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function definitions(list, pairs) {
  list.replaceChildren(
    ...pairs.map(([name, text]) =>
      make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text })),
    ),
  );
}

// An entry of a legend: a line, and what it means.
function legendLine(text, attributes) {
  const line = draw("line", { x1: 0, x2: 24, y1: 6, y2: 6, ...attributes });
  return make("li", {}, draw("svg", { width: 24, height: 12, "aria-hidden": "true" }, line), text);
}

// Numbers as text.

function number(value, digits = 6) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}

const interval = (low, high, digits = 5) =>
  low === null || high === null ? "–" : `${number(low, digits)} to ${number(high, digits)}`;

function percent(error) {
  if (error === null || error === undefined) return "–";
  if (error >= 10) return `${number(error, 3)} x`;
  return error > 0 && error < 1e-8
    ? "less than 0.000001 %"
    : `${(100 * error).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
}

const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");
