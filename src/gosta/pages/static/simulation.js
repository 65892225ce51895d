// A run of a simulation. What is shown comes as server-sent events while it is simulated: "start" with a scene and all
// frames, then "change" with a frame or another state; or, on a page that is a file of its own, from the file
// (gosta/simulation/run_page.py has the fields). A run that has ended is played again from the frames that are here.
"use strict";

const MAX_FRAMES = 960; // that are kept
const SPEEDS = [0.25, 0.5, 1, 2, 4, 8];
const PLAYED_PER_SECOND = 8; // frames of a run that has ended, at speed 1
const MAX_LISTED = 50; // neighbours
const WAITING = "Preparing the simulation";
const HINT = "Choose a node to see its estimate, its error and its neighbours.";
const STATES = {
  running: ["", "Running"],
  paused: ["waiting", "Paused"],
  finished: ["", "Finished"],
  stopped: ["", "Finished: the nodes stopped by themselves"],
  interrupted: ["waiting", "Interrupted"],
};

let scene = null; // what stays the same
let frames = []; // in order of iterations
let at = 0; // place of the frame that is shown
let state = "running"; // a key of STATES
let speed = 1;
let details = null; // of the chosen node
let estimates = null; // of a recording: frames x nodes x quantities; null: they were too many
let timer = null; // while a run that has ended is played

const nodeName = (k) => scene.node_names[k] ?? `Node ${k.toLocaleString("en")}`;
const eventsPath = () => `events?${quantity}`;
const count = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : "");
const hasEnded = () => scene?.is_recording || !["running", "paused"].includes(state);
const visitors = () => details?.visitors ?? [];

function errorText(error) {
  return scene.is_relative[quantity] ? percent(error) : number(error, 3);
}

function start(event) {
  const isSame = scene !== null && scene.title === event.scene.title;
  scene = event.scene;
  if (scene.is_recording) readRecording(event);
  frames = (event.frames ?? event.recorded[quantity]).map(decode);
  at = frames.length - 1;
  if (!isSame || chosen >= scene.nodes) [chosen, details] = [null, null];
  spots = scene.places === null ? null : pairsOf(scene.places);
  ends = pairsOf(scene.edge_ends);
  showTitle(scene.title, scene.subtitle, scene.quantities);
  byId("node").max = scene.nodes - 1;
  byId("node").placeholder = `0 to ${scene.nodes - 1}`;
  setText(byId("map-title"), "Network");
  setText(byId("estimate-title"), "Estimates against iterations");
  setText(
    byId("error-title"),
    scene.is_relative[quantity] ? "Relative error" : "Absolute error (the exact value is 0)",
  );
  for (const id of ["colour", "node"]) byId(id).parentElement.hidden = spots === null;
  document.body.classList.toggle("no-map", spots === null);
  byId("histogram-panel").hidden = !hasHistogram();
  [state, speed] = [event.state ?? "finished", event.speed ?? speed];
  drawLegend();
  byId("map-legend").hidden = spots === null;
  drawMap();
  showHelp(null);
  drawCharts();
  showAll();
  if (scene.is_recording && !stillness.matches && !isSame) play();
}

// A page that is a file of its own has the frames of all quantities, and the estimates of all nodes.
let recorded = null;
function readRecording(event) {
  recorded = event;
  estimates = event.estimates ? new Float32Array(bytesOf(event.estimates).buffer) : null;
}

function decode([iteration, sent, colours, estimates, errors, ends, counts]) {
  return { iteration, sent, colours: bytesOf(colours), estimates, errors, ends, counts };
}

function change(event) {
  if (scene === null) return;
  const before = state;
  [state, speed] = [event.state, event.speed];
  if (event.frame) {
    frames.push(decode(event.frame));
    if (frames.length > MAX_FRAMES)
      frames = [...frames.slice(0, MAX_FRAMES / 2).filter((_, k) => k % 2 === 0), ...frames.slice(MAX_FRAMES / 2)];
    at = frames.length - 1;
  }
  if (state !== before) {
    detailsAt = -Infinity;
    announce([STATES[state][1]]);
  }
  showAll();
}

function showAll() {
  if (scene === null || frames.length === 0) return;
  showHeadline();
  showControls();
  showMap();
  showDetails();
  showCharts();
}

const summary = () => {
  const { iteration, errors } = frames[at];
  return `iteration ${count(iteration)}, mean error ${errorText(errors[MEAN])}`;
};

function showHeadline() {
  const { iteration, sent, estimates: found, errors } = frames[at],
    [kind, text] = STATES[state];
  setText(byId("headline-title"), `${scene.quantities[quantity]}, mean of the nodes' estimates`);
  byId("headline-title").className = scene.quantities.length > 1 ? "unseen" : "";
  setText(byId("value"), number(found[MEAN]));
  definitions(byId("accuracy"), [
    [exactName(), number(scene.exact[quantity])],
    ["mean error", errorText(errors[MEAN])],
    ...(errors[Q95] === null ? [] : [["19 of 20 nodes within", errorText(errors[Q95])]]),
  ]);
  definitions(byId("facts"), [
    ["iterations", count(iteration)],
    ["at the end", count(scene.iterations)],
    ...(scene.exchanges === null
      ? []
      : [["exchanges a node", number((2 * scene.exchanges * iteration) / scene.nodes, 3)]]),
    ["numbers sent", count(sent)],
    ["nodes", count(scene.nodes)],
    ...(scene.rows === scene.nodes ? [] : [["rows", count(scene.rows)]]),
    ["edges", count(scene.edges)],
  ]);
  showLink(kind, scene.is_recording ? "Recording" : text);
}

// Controls: of the simulation while it runs, of the frames that are here when it has ended.

function showControls() {
  const isPlaying = hasEnded() ? timer !== null : state === "running";
  setText(byId("play"), isPlaying ? "Pause" : hasEnded() ? "Play again" : "Play");
  if (scene.is_recording && !isPlaying) setText(byId("play"), "Play");
  byId("scrub").hidden = !hasEnded();
  byId("at").max = frames.length - 1;
  byId("at").value = at;
  byId("at").setAttribute("aria-valuetext", summary());
  byId("speed").value = speed;
}

function ask(pace) {
  fetch(`pace?${pace}`, { method: "POST" }).catch(() => {}); // a lost connection is shown in the header
}

function play() {
  if (at === frames.length - 1) at = 0;
  clearInterval(timer);
  timer = setInterval(
    () => {
      at = Math.min(at + 1, frames.length - 1);
      if (at === frames.length - 1) stop();
      showAll();
    },
    1000 / (PLAYED_PER_SECOND * speed),
  );
  showAll();
}

function stop() {
  clearInterval(timer);
  timer = null;
  detailsAt = -Infinity;
}

byId("play").addEventListener("click", () => {
  if (scene === null) return;
  if (!hasEnded()) ask(state === "running" ? "pause" : "play");
  else if (timer === null) play();
  else stop();
  showAll();
});
byId("step").addEventListener("click", () => {
  if (scene === null) return;
  if (!hasEnded()) return ask("step");
  stop();
  at = (at + 1) % frames.length;
  showAll();
});
byId("speed").replaceChildren(...SPEEDS.map((one) => make("option", { value: one, textContent: `${one} x` })));
byId("speed").value = 1;
byId("speed").addEventListener("change", (event) => {
  speed = Number(event.target.value);
  if (!hasEnded()) ask(`speed=${speed}`);
  else if (timer !== null) play();
});
byId("at").addEventListener("input", (event) => {
  stop();
  at = Number(event.target.value);
  showAll();
});
byId("colour").addEventListener("change", () => {
  drawLegend();
  drawMap();
});
byId("node").addEventListener("change", (event) => {
  const field = event.target;
  field.setCustomValidity("");
  if (field.value === "") choose(null);
  else if (field.checkValidity()) choose(field.valueAsNumber);
  else {
    field.setCustomValidity(`Nodes have the numbers ${field.placeholder}.`);
    field.reportValidity();
  }
});

function onQuantity() {
  [details, detailsAt] = [null, -Infinity];
  if (recorded === null) {
    connect();
    return;
  }
  const place = at;
  start(recorded);
  at = place;
  showAll();
}

// The chosen node.

function choose(k) {
  [chosen, details, detailsAt] = [k, null, -Infinity];
  byId("node").value = k ?? "";
  drawLegend();
  drawCharts();
  showAll();
}

// What is known of a node: from the server, or from the recording.
async function describe(k) {
  if (recorded === null) return (await fetch(`node?${k},${quantity},${frames[at].iteration}`)).json();
  const near = neighboursOf(k);
  return {
    rows: recorded.rows[k] ?? 1,
    target: recorded.targets[quantity][k] ?? scene.exact[quantity],
    visitors: null,
    neighbour_count: recorded.has_edges ? near.length : null,
    neighbours: near.slice(0, MAX_LISTED).map((one) => [one, recordedEstimate(at, one)]),
    history: frames.map((frame, k2) => [frame.iteration, recordedEstimate(k2, k)]),
  };
}

// The estimate of a node in a recording; from its colour, which is nearly as good, where estimates were too many.
function recordedEstimate(place, node) {
  const width = scene.quantities.length;
  if (estimates !== null) return estimates[(place * scene.nodes + node) * width + quantity];
  const byte = frames[place].colours[node],
    off = byte & ERROR_STEPS ? errorOf(byte) * scene.scales[quantity] : 0;
  return (recorded.targets[quantity][node] ?? scene.exact[quantity]) + (byte & IS_BELOW ? -off : off);
}

async function findDetails(k) {
  const found = await describe(k);
  if (chosen !== k) return [];
  details = found;
  showMap();
  showCharts();
  const own = ownNow(),
    offBy = (value, target) => errorText(Math.abs(value - target) / scene.scales[quantity]);
  const facts = [
    ["estimate", number(own)],
    ["error", offBy(own, details.target)],
    ...(scene.has_own_targets ? [["its exact value", number(details.target)]] : []),
    ...(scene.rows === scene.nodes ? [] : [["rows", count(details.rows)]]),
    ...(details.visitors === null ? [] : [["visitors", visitorText(details.visitors, k)]]),
    [
      "neighbours",
      details.neighbour_count === null ? "not known: not all edges are in this file" : count(details.neighbour_count),
    ],
  ];
  const rows = details.neighbours.map(([one, value]) => [
    nodeName(one),
    number(value),
    ...(scene.has_own_targets ? [] : [offBy(value, details.target)]),
  ]);
  const heading = ["neighbour", "estimate", ...(scene.has_own_targets ? [] : ["error"])];
  const more = details.neighbour_count - rows.length;
  return [
    definitionList(facts),
    ...(rows.length ? [make("div", { className: "scroll" }, table([heading, ...rows]))] : []),
    ...(more > 0 ? [make("p", { className: "muted", textContent: `and ${count(more)} more neighbours` })] : []),
  ];
}

function visitorText(homes, k) {
  if (homes.length === 0) return "none: no row travels in this protocol";
  const names = homes.map((home) => (home === k ? "its own" : `of ${nodeName(home).replace(/^Node /, "node ")}`));
  const isOne = homes.length === 1 && scene.rows === scene.nodes;
  return `${isOne ? "the row" : "rows"} ${names.join(" and ")}`;
}

// The estimates of the chosen node at each frame; null where they are not known.
function ownEstimates() {
  const known = new Map(details?.history ?? []);
  return frames.map((frame) => known.get(frame.iteration) ?? null);
}

// Its estimate at the shown frame, or the last one that is known.
function ownNow() {
  return ownEstimates().findLast((value, k) => k <= at && value !== null) ?? null;
}

function ownErrors() {
  const scale = scene.scales[quantity];
  return ownEstimates().map((value) => (value === null ? null : Math.abs(value - details.target) / scale));
}
