// The map of a simulation: nodes and edges on canvases, as there may be 10,000 of them; colours; keys.
"use strict";

// Up to so many nodes have numbers, and are round; up to so many edges are drawn.
const [MAX_NUMBERS, MAX_ROUND, MAX_DRAWN_EDGES] = [60, 3000, 20000];
const MAX_STRETCH = 1.6;
// As gosta/simulation/run_page.py encodes errors in a byte of a node.
const [MIN_ERROR, DECADES, ERROR_STEPS, IS_BELOW] = [1e-6, 7, 127, 128];
// Colours of errors, and of estimates that are below or above the exact value; a list of [error, colour].
const SCALES = {
  error: [
    [1, [179, 84, 10]],
    [0.1, [240, 160, 75]],
    [0.01, [247, 226, 196]],
    [0.001, [125, 184, 224]],
    [0.0001, [31, 111, 181]],
  ],
  below: [
    [1, [67, 40, 135]],
    [0.1, [128, 100, 190]],
    [0.01, [190, 175, 222]],
    [0.001, [216, 206, 235]],
    [0.0001, [238, 236, 241]],
  ],
  above: [
    [1, [0, 90, 60]],
    [0.1, [40, 150, 100]],
    [0.01, [150, 208, 170]],
    [0.001, [196, 228, 206]],
    [0.0001, [236, 241, 237]],
  ],
};

let spots = null; // places of nodes, from 0 to 1: x, y, x, y, ...; null: there is no map
let ends = null; // nodes at the ends of edges: a, b, a, b, ...
let drawn = { places: new Float32Array(0), radius: 1 }; // canvases, and places in pixels
let colourTable = []; // of each byte, as text

const errorOf = (byte) => MIN_ERROR * 10 ** ((DECADES * (byte & ERROR_STEPS)) / ERROR_STEPS);

function bytesOf(text) {
  return Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
}

const pairsOf = (text) => new Uint16Array(bytesOf(text).buffer); // two bytes each, the lower first, as in all browsers

function mix(scale, error) {
  if (error >= scale[0][0]) return scale[0][1];
  const k = scale.findIndex(([limit]) => error >= limit);
  if (k < 0) return scale.at(-1)[1];
  const [[high, from], [low, to]] = [scale[k - 1], scale[k]];
  const part = Math.log(high / error) / Math.log(high / low);
  return from.map((one, c) => Math.round(one + part * (to[c] - one)));
}

const inWords = (colour) => `rgb(${colour.join(" ")})`;

function colourOf(byte) {
  const name = byId("colour").value === "error" ? "error" : byte & IS_BELOW ? "below" : "above";
  return inWords(mix(SCALES[name], errorOf(byte)));
}

function drawMap() {
  colourTable = Array.from({ length: 256 }, (_, byte) => colourOf(byte));
  const box = byId("map");
  if (spots === null) {
    box.replaceChildren(make("p", { className: "note", textContent: scene.note }));
    return;
  }
  if (!drawn.nodes) {
    const [edges, nodes] = ["edges", "nodes"].map((className) => make("canvas", { className }));
    nodes.tabIndex = 0;
    nodes.setAttribute("role", "img");
    nodes.addEventListener("click", (event) => choose(nearest(event.offsetX, event.offsetY)));
    nodes.addEventListener("pointermove", (event) => showHelp(nearest(event.offsetX, event.offsetY)));
    nodes.addEventListener("pointerleave", () => showHelp(null));
    nodes.addEventListener("keydown", onMapKey);
    box.replaceChildren(edges, nodes);
    drawn = { ...drawn, edges, nodes };
  }
  placeMap();
}

function placeMap() {
  if (scene === null || spots === null || !drawn.nodes) return;
  const box = byId("map"),
    size = [box.clientWidth, box.clientHeight],
    [wide, high] = size,
    density = window.devicePixelRatio || 1;
  const radius = Math.max(1.6, Math.min(15, 0.28 * Math.sqrt((wide * high) / scene.nodes)));
  // The map fills its panel, stretched in one direction at most MAX_STRETCH times as much as in the other.
  const sides = [0, 1].map((axis) => {
    const along = spots.filter((_, k) => k % 2 === axis);
    return [along.reduce((a, b) => Math.min(a, b)), along.reduce((a, b) => Math.max(a, b))];
  });
  const fitting = sides.map(([low, top], axis) => (size[axis] - 2 * (radius + 8)) / Math.max(1, top - low)),
    least = Math.min(...fitting);
  const places = new Float32Array(2 * scene.nodes);
  for (let k = 0; k < places.length; k++) {
    const axis = k % 2,
      middle = (sides[axis][0] + sides[axis][1]) / 2;
    places[k] = size[axis] / 2 + (spots[k] - middle) * Math.min(fitting[axis], MAX_STRETCH * least);
  }
  drawn = { ...drawn, places, radius };
  for (const canvas of [drawn.edges, drawn.nodes]) {
    canvas.width = Math.round(wide * density);
    canvas.height = Math.round(high * density);
    canvas.getContext("2d").setTransform(density, 0, 0, density, 0, 0);
  }
  drawEdges();
  showMap();
}

function drawEdges() {
  const pen = drawn.edges.getContext("2d"),
    { places } = drawn;
  pen.clearRect(0, 0, drawn.edges.width, drawn.edges.height);
  const count = ends.length / 2,
    every = Math.max(1, Math.ceil(count / MAX_DRAWN_EDGES));
  pen.strokeStyle = colours().edge;
  pen.globalAlpha = count < 400 ? 0.7 : count < 4000 ? 0.5 : 0.16;
  pen.lineWidth = count < 400 ? 1.2 : 0.7;
  pen.beginPath();
  for (let k = 0; k < count; k += every) {
    const [a, b] = [ends[2 * k], ends[2 * k + 1]];
    pen.moveTo(places[2 * a], places[2 * a + 1]);
    pen.lineTo(places[2 * b], places[2 * b + 1]);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

function showMap() {
  const bytes = frames[at]?.colours;
  if (spots === null || !drawn.nodes || !bytes) return;
  const pen = drawn.nodes.getContext("2d"),
    { places, radius } = drawn,
    colour = colours();
  pen.clearRect(0, 0, drawn.nodes.width, drawn.nodes.height);
  const drawNode = (k, isRound = scene.nodes <= MAX_ROUND) => {
    pen.fillStyle = colourTable[bytes[k]];
    const [x, y] = [places[2 * k], places[2 * k + 1]];
    if (!isRound) {
      pen.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
      return;
    }
    pen.beginPath();
    pen.arc(x, y, Math.max(radius, 2.5), 0, 7);
    pen.fill();
    pen.strokeStyle = colour.outline;
    pen.lineWidth = 0.6;
    if (radius >= 4) pen.stroke();
  };
  for (let k = 0; k < scene.nodes; k++) drawNode(k);
  if (chosen !== null) {
    drawNeighbourhood(pen, colour);
    for (const k of [...visitors(), ...neighboursOf(chosen), chosen]) drawNode(k, true);
    drawMarks(pen, colour);
  }
  if (scene.nodes <= MAX_NUMBERS) drawNumbers(pen);
  drawn.nodes.setAttribute("aria-label", `Map of ${count(scene.nodes)} nodes: ${summary()}`);
}

function drawNumbers(pen) {
  pen.font = `600 ${Math.round(0.8 * drawn.radius)}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (let k = 0; k < scene.nodes; k++) {
    pen.fillStyle = isDark(frames[at].colours[k]) ? "#ffffff" : "#101418";
    pen.fillText(k, drawn.places[2 * k], drawn.places[2 * k + 1]);
  }
}

function isDark(byte) {
  const [r, g, b] = colourTable[byte].match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b < 130;
}

// Edges to neighbours, and dotted lines to the homes of visitors.
function drawNeighbourhood(pen, colour) {
  const { places } = drawn,
    line = (k) => {
      pen.moveTo(places[2 * chosen], places[2 * chosen + 1]);
      pen.lineTo(places[2 * k], places[2 * k + 1]);
    };
  const near = neighboursOf(chosen);
  pen.beginPath();
  near.forEach(line);
  pen.strokeStyle = colour.text;
  pen.globalAlpha = near.length > 100 ? 0.15 : 0.8;
  pen.lineWidth = near.length > 100 ? 0.7 : 1.6;
  pen.stroke();
  pen.globalAlpha = 1;
  pen.beginPath();
  visitors().forEach(line);
  pen.strokeStyle = colour.accent;
  pen.lineWidth = 2;
  pen.setLineDash([2, 4]);
  pen.stroke();
  pen.setLineDash([]);
}

function drawMarks(pen, colour) {
  const { places, radius } = drawn,
    near = neighboursOf(chosen);
  const mark = (nodes, stroke, lineWidth, more) => {
    Object.assign(pen, { strokeStyle: stroke, lineWidth });
    for (const k of nodes) {
      pen.beginPath();
      pen.arc(places[2 * k], places[2 * k + 1], Math.max(radius, 2.5) + more, 0, 7);
      pen.stroke();
    }
  };
  if (near.length <= 100) mark(near, colour.text, 1.4, 1.5);
  mark(visitors(), colour.accent, 2, 4);
  mark([chosen], colour.panel, 5, 4);
  mark([chosen], colour.text, 2.5, 4);
}

function neighboursOf(node) {
  if (scene.edges === (scene.nodes * (scene.nodes - 1)) / 2)
    return Array.from({ length: scene.nodes }, (_, k) => k).filter((k) => k !== node);
  const found = [];
  for (let k = 0; k < ends.length; k++) if (ends[k] === node) found.push(ends[k ^ 1]);
  return found;
}

function nearest(x, y) {
  const { places, radius } = drawn;
  let found = null,
    least = Math.max(radius + 4, 12) ** 2;
  for (let k = 0; k < scene.nodes; k++) {
    const far = (places[2 * k] - x) ** 2 + (places[2 * k + 1] - y) ** 2;
    if (far < least) [found, least] = [k, far];
  }
  return found;
}

// Above the map: the node that the mouse is on, or what to do.
function showHelp(node) {
  const help = `Choose a node with the mouse, with arrow keys on the map, or by its number; Escape ends it. ${scene.note}`;
  if (spots === null) setText(byId("map-help"), "");
  else
    setText(byId("map-help"), node === null ? help.trim() : `${nodeName(node)}: ${distance(frames[at].colours[node])}`);
}

// A byte in words.
function distance(byte) {
  const steps = byte & ERROR_STEPS;
  if (steps === 0) return "exact";
  const size = errorText(Number(errorOf(byte).toPrecision(2)));
  return `${steps === ERROR_STEPS ? "more than " : "about "}${size} ${byte & IS_BELOW ? "below" : "above"} the exact value`;
}

function onMapKey(event) {
  const way = ARROWS[event.key],
    placeOf = (k) => [drawn.places[2 * k], drawn.places[2 * k + 1]];
  if (event.key === "Escape") choose(null);
  else if (way) choose(chosen === null ? 0 : (towards(way, chosen, scene.nodes, placeOf) ?? chosen));
  else return;
  event.preventDefault();
}

function drawLegend() {
  const bar = make("span", { className: "bar" }),
    isError = byId("colour").value === "error",
    text = (error) => errorText(error);
  const colour = (name, error) => inWords(mix(SCALES[name], error));
  const errors = [1, 0.1, 0.01, 0.001, 0.0001];
  const stops = isError
    ? errors.map((error) => colour("error", error))
    : [
        ...errors.map((error) => colour("below", error)),
        ...[...errors].reverse().map((error) => colour("above", error)),
      ];
  bar.style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  const marks = isError
    ? [`error ${text(1)} or more`, text(0.1), text(0.01), text(0.001), `${text(0.0001)} or less`]
    : [`${text(1)} below`, text(0.01), "exact", text(0.01), `${text(1)} above`];
  byId("map-legend").replaceChildren(
    make(
      "li",
      { className: "scale" },
      bar,
      make("span", { className: "marks" }, ...marks.map((mark) => make("span", { textContent: mark }))),
    ),
    make("li", {
      textContent:
        `Colour: ${isError ? "error of the node" : "how far the node's estimate is from the exact value"}, ` +
        `in ${ERROR_STEPS + 1} logarithmic steps from ${text(MIN_ERROR)} to ${text(MIN_ERROR * 10 ** DECADES)}.`,
    }),
    ...(chosen === null ? [] : [legendLine("neighbours", { class: "near" })]),
    ...(chosen === null || scene.is_recording ? [] : [legendLine("homes of its visitors", { class: "home" })]),
  );
}
