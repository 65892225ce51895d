// The map of a network: where nodes are, how they look, and keys. Each node is an element of its own, for
// screen readers; a network has a few hundred of them.
"use strict";

// Up to so many nodes are on a circle, have names, numbers, and room of their own; up to so many edges have sparks.
const [MAX_CIRCLE, MAX_NAMES, MAX_NUMBERS, MAX_SEPARATED, MAX_SPARKS] = [14, 30, 120, 400, 120];
const STEPS = [
  [Infinity, "more than 10 %"],
  [0.1, "10 % or less"],
  [0.01, "1 % or less"],
  [0.001, "0.1 % or less"],
];
const SIGNS = { good: "", waiting: "…", trouble: "!", away: "×", converged: "✓", complete: "✓" }; // of kinds and states
const APART = /^(not connected|silent|suspended|.* mismatch)$/; // states of edges

let spots = []; // places of nodes, from 0 to 1
let drawn = { nodes: [], edges: [] }; // elements, and places in pixels

function stepOf(error) {
  if (error === null || error === undefined) return 0;
  return STEPS.filter(([limit]) => error <= limit).length;
}

function layout() {
  const count = scene.nodes.length;
  const angle = (k) => 2 * Math.PI * (k / count) - Math.PI / 2;
  const places = scene.nodes.map((_, k) => [Math.cos(angle(k)), Math.sin(angle(k))]);
  return count > MAX_CIRCLE ? relax(places) : fit(places);
}

// Fruchterman and Reingold: nodes repel each other, edges pull, and steps get smaller.
function relax(places) {
  const count = places.length,
    ideal = 1.6 / Math.sqrt(count),
    rounds = Math.max(30, Math.min(300, 2e7 / count ** 2));
  for (let round = 0; round < rounds; round++) {
    const forces = places.map(() => [0, 0]);
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < i; j++) {
        const x = places[i][0] - places[j][0],
          y = places[i][1] - places[j][1],
          square = x * x + y * y + 1e-9;
        const push = (ideal * ideal) / square;
        forces[i][0] += x * push;
        forces[i][1] += y * push;
        forces[j][0] -= x * push;
        forces[j][1] -= y * push;
      }
    }
    for (const [i, j] of scene.edges) {
      const x = places[i][0] - places[j][0],
        y = places[i][1] - places[j][1],
        pull = Math.hypot(x, y) / ideal;
      forces[i][0] -= x * pull;
      forces[i][1] -= y * pull;
      forces[j][0] += x * pull;
      forces[j][1] += y * pull;
    }
    const step = 0.12 * (1 - round / rounds);
    places = places.map(([x, y], k) => {
      const size = Math.hypot(...forces[k]) || 1,
        part = Math.min(size, step) / size;
      return [x + forces[k][0] * part, y + forces[k][1] * part];
    });
  }
  return fit(places);
}

function fit(places) {
  const ends = [0, 1].map((axis) => [
    Math.min(...places.map((one) => one[axis])),
    Math.max(...places.map((one) => one[axis])),
  ]);
  return places.map((one) =>
    [0, 1].map((axis) =>
      ends[axis][1] > ends[axis][0] ? (one[axis] - ends[axis][0]) / (ends[axis][1] - ends[axis][0]) : 0.5,
    ),
  );
}

// Push nodes apart that are closer than the room that one takes, [width, height], within an area.
function separate(places, [width, height], area) {
  for (let round = 0; round < 100 && places.length <= MAX_SEPARATED; round++) {
    let moved = false;
    for (let i = 0; i < places.length; i++) {
      for (let j = 0; j < i; j++) {
        const x = (places[i][0] - places[j][0] || 0.1) / width,
          y = (places[i][1] - places[j][1]) / height,
          far = Math.hypot(x, y);
        if (far >= 1) continue;
        moved = true;
        const part = (1 - far) / far / 2;
        for (const [k, way] of [
          [i, part],
          [j, -part],
        ]) {
          places[k] = [places[k][0] + x * width * way, places[k][1] + y * height * way].map((one, axis) =>
            Math.min(Math.max(one, area[axis][0]), area[axis][1]),
          );
        }
      }
    }
    if (!moved) break;
  }
  return places;
}

function radius() {
  const count = scene.nodes.length;
  return count <= MAX_CIRCLE ? 17 : count <= MAX_NAMES ? 14 : count <= MAX_NUMBERS ? 11 : 5;
}

function shape(kind, r) {
  if (kind === "waiting") return `M0 ${-1.15 * r}L${1.15 * r} 0L0 ${1.15 * r}L${-1.15 * r} 0Z`;
  if (kind === "trouble") return `M0 ${-1.2 * r}L${1.15 * r} ${0.85 * r}L${-1.15 * r} ${0.85 * r}Z`;
  if (kind === "away") return `M${-0.85 * r} ${-0.85 * r}H${0.85 * r}V${0.85 * r}H${-0.85 * r}Z`;
  return `M${-r} 0a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
}

// An arc that says what the colour says: a quarter for each step.
function ring(step, r) {
  if (step === 0) return "";
  if (step === 4) return `M0 ${-r}a${r} ${r} 0 1 1 0 ${2 * r}a${r} ${r} 0 1 1 0 ${-2 * r}`;
  const end = [
    [r, 0],
    [0, r],
    [-r, 0],
  ][step - 1];
  return `M0 ${-r}A${r} ${r} 0 ${step > 2 ? 1 : 0} 1 ${end[0]} ${end[1]}`;
}

function shortName(name) {
  return name.length > 16 ? `${name.slice(0, 8)}…${name.slice(-7)}` : name;
}

function drawMap() {
  const r = radius(),
    box = byId("map"),
    count = scene.nodes.length;
  showHelp();
  const lines = scene.edges.map(() => draw("line"));
  const nodes = scene.nodes.map((name, k) => {
    const group = draw("g", { class: "node", role: "button", tabindex: k === (chosen ?? 0) ? 0 : -1 });
    const text = count <= MAX_NAMES ? shortName(name) : "";
    group.append(
      draw("circle", { class: "frame", r: r + 8 }),
      draw("path", { class: "ring" }),
      draw("path", { class: "shape" }),
      draw("text", { class: "sign" }),
      draw("text", { class: "name", y: r + 20 }),
      " ", // between two texts, for screen readers
      draw("text", { class: "state", y: r + 35 }),
    );
    group.querySelector(".name").textContent = text;
    group.addEventListener("click", () => choose(k));
    for (const one of ["pointerenter", "focus"])
      group.addEventListener(one, () => showHelp(group.getAttribute("aria-label")));
    for (const one of ["pointerleave", "blur"]) group.addEventListener(one, () => showHelp());
    group.addEventListener("keydown", (event) => onMapKey(event, k));
    return group;
  });
  const sparks = draw("g", { "aria-hidden": "true" });
  const svg = draw(
    "svg",
    { role: "group", "aria-labelledby": "map-title" },
    draw("g", { "aria-hidden": "true" }, ...lines),
    sparks,
    draw("g", {}, ...nodes),
  );
  box.replaceChildren(svg);
  drawn = { svg, edges: lines, nodes, sparks, kinds: [], places: [] };
  placeMap();
}

// Above the map: the node that the mouse or the focus is on, or what to do.
function showHelp(node) {
  const help = scene.nodes.length
    ? "Choose a node with the mouse, or with Tab, arrow keys and Enter."
    : "No site is a member yet.";
  setText(byId("map-help"), node ?? help);
}

function placeMap() {
  if (scene === null) return;
  const box = byId("map"),
    wide = box.clientWidth,
    high = box.clientHeight,
    r = radius();
  const hasNames = scene.nodes.length <= MAX_NAMES,
    sides = hasNames ? Math.min(60, wide / 6) : 24;
  const area = [
    [sides, wide - sides],
    [r + 10, high - r - (hasNames ? 42 : 10)],
  ];
  const room = hasNames ? [Math.min(110, wide / 4), 2 * r + 40] : [2.4 * r + 7, 2.4 * r + 7];
  drawn.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  drawn.places = separate(
    spots.map((spot) => spot.map((one, axis) => area[axis][0] + one * (area[axis][1] - area[axis][0]))),
    room,
    area,
  );
  drawn.nodes.forEach((node, k) => node.setAttribute("transform", `translate(${drawn.places[k].join(" ")})`));
  scene.edges.forEach(([i, j], k) => {
    const [[x1, y1], [x2, y2]] = [drawn.places[i], drawn.places[j]];
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) drawn.edges[k].setAttribute(name, value);
  });
}

function showMap() {
  const r = radius(),
    count = scene.nodes.length;
  moment.nodes.forEach(([state, kind, note, values], k) => {
    const error = values[quantity]?.[ERROR] ?? null,
      group = drawn.nodes[k];
    const step = kind === "away" ? 0 : stepOf(error),
      key = [state, kind, step, error === null ? "" : percent(error), note, k === chosen].join("|");
    if (drawn.kinds[k] === key) return;
    drawn.kinds[k] = key;
    group.setAttribute("class", `node ${kind} step-${step}${k === chosen ? " chosen" : ""}`);
    group.setAttribute("aria-pressed", k === chosen);
    const accuracy = !scene.has_errors
      ? ""
      : error === null
        ? "error not known yet"
        : `${percent(error)} expected error`;
    const isRunning = state === "running" && error !== null; // first what the map shows, as voice control expects
    const parts = isRunning ? [accuracy, state, note] : [state, note, accuracy];
    const label = [scene.nodes[k], ...parts.filter((part) => part !== "")].join(", ");
    group.setAttribute("aria-label", label);
    const [, ringPath, shapePath, sign, , stateText] = group.children;
    shapePath.setAttribute("d", shape(kind, r));
    ringPath.setAttribute("d", kind === "good" ? ring(step, 1.12 * r + 2) : "");
    const mark = SIGNS[state] ?? SIGNS[kind];
    sign.textContent =
      mark || (count > MAX_NAMES && count <= MAX_NUMBERS ? (scene.nodes[k].match(/\d{1,3}$/)?.[0] ?? "") : "");
    sign.setAttribute("font-size", mark ? 1.1 * r : 0.9 * r);
    sign.setAttribute("y", kind === "trouble" ? 0.2 * r : 0);
    stateText.textContent = count > MAX_NAMES ? "" : isRunning ? percent(error) : state;
  });
  moment.edges.forEach((state, k) => {
    const kind = state.startsWith("connected via ")
      ? "via"
      : state === "unknown"
        ? "unknown"
        : APART.test(state)
          ? "apart"
          : "";
    if (drawn.edges[k].getAttribute("class") !== kind) drawn.edges[k].setAttribute("class", kind);
  });
}

// An exchange: the edge glows, and a dot travels along it.
function pulse(k, count) {
  if (stillness.matches) return;
  const strength = Math.min(1, 0.5 + count / 20),
    accent = getComputedStyle(document.body).getPropertyValue("--accent");
  const [i, j] = scene.edges[k],
    way = Math.random() < 0.5 ? [i, j] : [j, i],
    delay = 500 * Math.random();
  drawn.edges[k].animate([{ stroke: accent, strokeOpacity: strength, strokeWidth: 3.5 }, {}], {
    duration: 900,
    delay,
    easing: "ease-out",
  });
  if (scene.edges.length > MAX_SPARKS) return;
  const dot = draw("circle", { class: "spark", r: 3.5 });
  drawn.sparks.append(dot);
  const [from, to] = way.map((one) => `translate(${drawn.places[one][0]}px, ${drawn.places[one][1]}px)`);
  dot
    .animate([{ transform: from, opacity: 0.2 }, { opacity: 1 }, { transform: to, opacity: 0.2 }], {
      duration: 700,
      delay,
      fill: "backwards",
    })
    .finished.then(
      () => dot.remove(),
      () => dot.remove(),
    );
}

function drawLegend() {
  const sample = (kind, step, text, mark = SIGNS[kind]) => {
    const node = draw(
      "g",
      { class: `node ${kind} step-${step}`, transform: "translate(13 13)" },
      draw("path", { class: "ring", d: kind === "good" ? ring(step, 11) : "" }),
      draw("path", { class: "shape", d: shape(kind, 8) }),
      draw("text", { class: "sign", "font-size": 10, y: kind === "trouble" ? 1.6 : 0 }),
    );
    node.lastChild.textContent = mark;
    return make("li", {}, draw("svg", { width: 26, height: 26, "aria-hidden": "true" }, node), text);
  };
  const errors = scene.has_errors
    ? [sample("good", 0, "no error known yet"), ...STEPS.map(([, text], k) => sample("good", k + 1, `error ${text}`))]
    : [sample("good", 0, "no result yet"), sample("good", 4, "has the result", "✓")];
  byId("map-legend").replaceChildren(
    ...errors,
    sample("waiting", 0, "waiting"),
    sample("trouble", 0, "trouble"),
    sample("away", 0, "does not run, or is elsewhere"),
    legendLine("exchanges", { class: "busy" }),
    legendLine("connected by a forwarder", { class: "via" }),
    legendLine("not connected", { class: "apart" }),
  );
}

function onMapKey(event, from) {
  const way = ARROWS[event.key];
  if (event.key === "Enter" || event.key === " ") {
    choose(from);
  } else if (event.key === "Home" || event.key === "End") {
    focusNode(event.key === "Home" ? 0 : scene.nodes.length - 1);
  } else if (event.key === "Escape") {
    choose(null);
  } else if (way) {
    focusNode(towards(way, from, scene.nodes.length, (k) => drawn.places[k]) ?? from);
  } else {
    return;
  }
  event.preventDefault();
}

function focusNode(k) {
  drawn.nodes.forEach((node, one) => node.setAttribute("tabindex", one === k ? 0 : -1));
  drawn.nodes[k].focus();
}

function choose(k) {
  chosen = k;
  if (k !== null) drawn.nodes.forEach((node, one) => node.setAttribute("tabindex", one === k ? 0 : -1));
  detailsAt = -Infinity;
  drawCharts();
  showAll();
}
