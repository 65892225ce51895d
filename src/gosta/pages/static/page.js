// The live page. What it shows comes as server-sent events: "start" with everything, then "change" with differences
// (gosta/pages/feed.py has the fields). All text of nodes is set as text, never as HTML.
"use strict";

const VALUE = 0, LOW = 1, HIGH = 2, CERTAIN_LOW = 3, CERTAIN_HIGH = 4, ERROR = 5, NODES = 6; // places in a point
const STEPS = [[Infinity, "more than 10 %"], [0.1, "10 % or less"], [0.01, "1 % or less"], [0.001, "0.1 % or less"]];
const MAX_CIRCLE = 14, MAX_NAMES = 30, MAX_NUMBERS = 120, MAX_SPARKS = 120; // nodes or edges
const MAX_POINTS = 720, MAX_LOG_LINES = 200, RETRY_MS = 3000, DETAILS_MS = 1000;
const SIGNS = { good: "", waiting: "…", trouble: "!", away: "×", converged: "✓", complete: "✓" };

const APART = /^(not connected|silent|suspended|.* mismatch)$/; // states of edges

const byId = (id) => document.getElementById(id);
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const darkness = matchMedia("(prefers-color-scheme: dark)");
let scene = null, moment = null, history = [], spots = [], chosen = null, quantity = 0;
let drawn = { nodes: [], edges: [] }, charts = [], detailsAt = -Infinity, log = [];

// Making elements.

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
  list.replaceChildren(...pairs.map(([name, text]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: text }))));
}

// Numbers as text.

function number(value, digits = 6) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}

const interval = (low, high, digits = 5) => (low === null || high === null ? "–" : `${number(low, digits)} to ${number(high, digits)}`);

function percent(error) {
  if (error === null || error === undefined) return "–";
  if (error >= 10) return `${number(error, 3)} x`;
  return error > 0 && error < 1e-8 ? "less than 0.000001 %" : `${(100 * error).toLocaleString("en", { maximumSignificantDigits: 3 })} %`;
}

const clock = (seconds) => new Date(1000 * seconds).toLocaleTimeString("en-GB");

function stepOf(error) {
  if (error === null || error === undefined) return 0;
  return STEPS.filter(([limit]) => error <= limit).length;
}

// The connection.

function connect() {
  const source = new EventSource("events");
  source.onopen = () => showLink("", "Live");
  source.addEventListener("wait", () => showLink("waiting", "Waiting for the first answers"));
  source.addEventListener("start", (event) => { showLink("", "Live"); start(JSON.parse(event.data)); });
  source.addEventListener("change", (event) => change(JSON.parse(event.data)));
  source.onerror = () => {
    showLink("lost", "Connection lost, retrying");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  };
}

function showLink(kind, text) {
  byId("link").className = kind;
  setText(byId("link-text"), text);
}

function start(event) {
  const before = scene;
  const name = chosen === null || before === null ? null : before.nodes[chosen];
  ({ scene, moment, history } = event);
  log = moment.log;
  chosen = scene.nodes.includes(name) ? scene.nodes.indexOf(name) : null;
  const wanted = before === null ? null : before.quantities[quantity];
  quantity = Math.max(0, scene.quantities.indexOf(wanted));
  document.title = `${scene.title} · gosta`;
  setText(byId("title"), scene.title);
  setText(byId("subtitle"), scene.subtitle);
  byId("quantity").replaceChildren(...scene.quantities.map((one, k) => make("option", { value: k, textContent: one })));
  byId("quantity").value = quantity;
  byId("choice").hidden = scene.quantities.length < 2;
  byId("error-panel").hidden = !scene.has_errors;
  document.body.classList.toggle("no-errors", !scene.has_errors);
  spots = layout();
  drawLegend();
  drawMap();
  drawTable();
  drawCharts();
  showAll();
  showLog();
}

function change(event) {
  if (scene === null) return;
  const before = moment.nodes.map((node) => node[0]);
  moment.time = event.time;
  for (const name of ["facts", "totals", "missing", "partly_missing", "refusals"]) if (event[name] !== undefined) moment[name] = event[name];
  for (const [k, node] of Object.entries(event.nodes ?? {})) moment.nodes[k] = node;
  for (const [k, state] of Object.entries(event.edges ?? {})) moment.edges[k] = state;
  const hasNodes = history.length > 0 && history.at(-1)[1][0]?.length > NODES;
  history.push([event.time, moment.totals.map((total, k) => [...total, ...(hasNodes ? moment.nodes.map((node) => node[3][k][VALUE]) : [])])]);
  if (history.length > MAX_POINTS) history = [...history.slice(0, MAX_POINTS / 2).filter((_, k) => k % 2), ...history.slice(MAX_POINTS / 2)];
  announce(moment.nodes.flatMap((node, k) => (node[0] === before[k] ? [] : [`${scene.nodes[k]}: ${node[0]}`])));
  showAll();
  for (const [k, count] of Object.entries(event.activity ?? {})) pulse(Number(k), count);
  if (event.log) {
    log = [...log, ...event.log].slice(-MAX_LOG_LINES);
    showLog();
  }
}

function showAll() {
  showHeadline();
  showMap();
  showTable();
  showRefusals();
  showDetails();
  if (!document.hidden) showCharts();
}

function announce(changes) {
  if (changes.length === 0) return;
  const more = changes.length > 5 ? `, and ${changes.length - 5} more` : "";
  byId("announcement").textContent = changes.slice(0, 5).join(", ") + more;
}

// The headline.

const levelName = () => (scene.level === null ? "interval" : `${number(100 * scene.level, 4)} % interval`);

function showHeadline() {
  const total = moment.totals[quantity] ?? [null, null, null, null, null, null];
  setText(byId("headline-title"), scene.quantities[quantity] ?? "Estimate");
  byId("headline-title").className = scene.quantities.length > 1 ? "unseen" : "";
  setText(byId("value"), total[VALUE] === null ? "none yet" : number(total[VALUE]));
  const accuracy = [];
  if (total[LOW] !== null) accuracy.push([levelName(), interval(total[LOW], total[HIGH])]);
  if (total[CERTAIN_LOW] !== null) accuracy.push(["certainly within", interval(total[CERTAIN_LOW], total[CERTAIN_HIGH])]);
  if (scene.has_errors && total[VALUE] !== null) {
    accuracy.push(["expected error", total[ERROR] === null ? "not known yet" : `at most ${percent(total[ERROR])}`]);
    accuracy.push(["nodes differ by", percent(difference(total[VALUE], moment.nodes.map((node) => node[3][quantity]?.[VALUE])))]);
  }
  definitions(byId("accuracy"), accuracy);
  definitions(byId("facts"), moment.facts);
  const isMissing = moment.missing.length > 0, count = moment.partly_missing;
  byId("missing").hidden = !isMissing && count === 0;
  byId("missing").className = isMissing ? "trouble" : "";
  byId("missing").replaceChildren(...[
    isMissing ? make("strong", { textContent: "Missing: " }) : null,
    isMissing ? `${shorten(moment.missing, 12)}. ` : null,
    count > 0 ? `Not in every node's estimate${isMissing ? "" : " yet"}: the rows of ${count} ${count === 1 ? "site" : "sites"}.` : null,
  ].filter((one) => one !== null));
}

function shorten(names, count) {
  const more = names.length > count ? `, … (${names.length} in all)` : "";
  return names.slice(0, count).join(", ") + more;
}

function difference(mean, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (mean === null || known.length === 0) return null;
  return Math.max(...known.map((value) => Math.abs(value - mean))) / (Math.abs(mean) || 1);
}

// The map.

function layout() {
  const count = scene.nodes.length;
  const angle = (k) => 2 * Math.PI * (k / count) - Math.PI / 2;
  const places = scene.nodes.map((_, k) => [Math.cos(angle(k)), Math.sin(angle(k))]);
  return count > MAX_CIRCLE ? relax(places) : fit(places);
}

// Fruchterman and Reingold: nodes repel each other, edges pull, and steps get smaller.
function relax(places) {
  const count = places.length, ideal = 1.6 / Math.sqrt(count), rounds = Math.max(30, Math.min(300, 2e7 / count ** 2));
  for (let round = 0; round < rounds; round++) {
    const forces = places.map(() => [0, 0]);
    for (let i = 0; i < count; i++) {
      for (let j = 0; j < i; j++) {
        const x = places[i][0] - places[j][0], y = places[i][1] - places[j][1], square = x * x + y * y + 1e-9;
        const push = (ideal * ideal) / square;
        forces[i][0] += x * push; forces[i][1] += y * push; forces[j][0] -= x * push; forces[j][1] -= y * push;
      }
    }
    for (const [i, j] of scene.edges) {
      const x = places[i][0] - places[j][0], y = places[i][1] - places[j][1], pull = Math.hypot(x, y) / ideal;
      forces[i][0] -= x * pull; forces[i][1] -= y * pull; forces[j][0] += x * pull; forces[j][1] += y * pull;
    }
    const step = 0.12 * (1 - round / rounds);
    places = places.map(([x, y], k) => {
      const size = Math.hypot(...forces[k]) || 1, part = Math.min(size, step) / size;
      return [x + forces[k][0] * part, y + forces[k][1] * part];
    });
  }
  return fit(places);
}

function fit(places) {
  const ends = [0, 1].map((axis) => [Math.min(...places.map((one) => one[axis])), Math.max(...places.map((one) => one[axis]))]);
  return places.map((one) => [0, 1].map((axis) => (ends[axis][1] > ends[axis][0] ? (one[axis] - ends[axis][0]) / (ends[axis][1] - ends[axis][0]) : 0.5)));
}

// Push nodes apart that are closer than a distance, within an area.
function separate(places, distance, area) {
  for (let round = 0; round < 60 && places.length <= MAX_NUMBERS; round++) {
    let moved = false;
    for (let i = 0; i < places.length; i++) {
      for (let j = 0; j < i; j++) {
        const x = places[i][0] - places[j][0] || 0.1, y = places[i][1] - places[j][1], far = Math.hypot(x, y);
        if (far >= distance) continue;
        moved = true;
        const part = (distance - far) / far / 2;
        for (const [k, way] of [[i, part], [j, -part]]) {
          places[k] = [places[k][0] + x * way, places[k][1] + y * way].map((one, axis) => Math.min(Math.max(one, area[axis][0]), area[axis][1]));
        }
      }
    }
    if (!moved) break;
  }
  return places;
}

function radius() {
  const count = scene.nodes.length;
  return count <= MAX_CIRCLE ? 17 : count <= MAX_NAMES ? 14 : count <= MAX_NUMBERS ? 11 : 6;
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
  const end = [[r, 0], [0, r], [-r, 0]][step - 1];
  return `M0 ${-r}A${r} ${r} 0 ${step > 2 ? 1 : 0} 1 ${end[0]} ${end[1]}`;
}

function shortName(name) {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}

function drawMap() {
  const r = radius(), box = byId("map"), count = scene.nodes.length;
  const lines = scene.edges.map(() => draw("line"));
  const nodes = scene.nodes.map((name, k) => {
    const group = draw("g", { class: "node", role: "button", tabindex: k === (chosen ?? 0) ? 0 : -1 });
    const text = count <= MAX_NAMES ? shortName(name) : "";
    group.append(
      draw("circle", { class: "frame", r: r + 8 }), draw("path", { class: "ring" }), draw("path", { class: "shape" }),
      draw("text", { class: "sign" }), draw("text", { class: "name", y: r + 20 }), draw("text", { class: "state", y: r + 35 }), draw("title"),
    );
    group.querySelector(".name").textContent = text;
    group.addEventListener("click", () => choose(k, true));
    group.addEventListener("keydown", (event) => onMapKey(event, k));
    return group;
  });
  const sparks = draw("g", { "aria-hidden": "true" });
  const svg = draw("svg", { role: "group", "aria-labelledby": "map-title", "aria-describedby": "map-help" }, draw("g", { "aria-hidden": "true" }, ...lines), sparks, draw("g", {}, ...nodes));
  box.replaceChildren(svg);
  drawn = { svg, edges: lines, nodes, sparks, kinds: [], places: [] };
  placeMap();
}

function placeMap() {
  if (scene === null) return;
  const box = byId("map"), wide = box.clientWidth, high = box.clientHeight, r = radius();
  const sides = scene.nodes.length <= MAX_NAMES ? Math.min(60, wide / 6) : 24, top = r + 10, bottom = scene.nodes.length <= MAX_NAMES ? r + 42 : r + 10;
  drawn.svg.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  const area = [[sides, wide - sides], [top, high - bottom]];
  drawn.places = separate(spots.map(([x, y]) => [sides + x * (wide - 2 * sides), top + y * (high - top - bottom)]), 2 * r + 12, area);
  drawn.nodes.forEach((node, k) => node.setAttribute("transform", `translate(${drawn.places[k].join(" ")})`));
  scene.edges.forEach(([i, j], k) => {
    const [[x1, y1], [x2, y2]] = [drawn.places[i], drawn.places[j]];
    for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) drawn.edges[k].setAttribute(name, value);
  });
}

function showMap() {
  const r = radius(), count = scene.nodes.length;
  moment.nodes.forEach(([state, kind, note, values], k) => {
    const error = values[quantity]?.[ERROR] ?? null, group = drawn.nodes[k];
    const step = kind === "away" ? 0 : stepOf(error), key = [state, kind, step, error === null ? "" : percent(error), note, k === chosen].join("|");
    if (drawn.kinds[k] === key) return;
    drawn.kinds[k] = key;
    group.setAttribute("class", `node ${kind} step-${step}${k === chosen ? " chosen" : ""}`);
    group.setAttribute("aria-pressed", k === chosen);
    const accuracy = !scene.has_errors ? "" : error === null ? ", error not known yet" : `, expected error ${percent(error)}`;
    const label = `${scene.nodes[k]}, ${state}${note ? `, ${note}` : ""}${accuracy}`;
    group.setAttribute("aria-label", label);
    const [, ringPath, shapePath, sign, , stateText, title] = group.children;
    title.textContent = label;
    shapePath.setAttribute("d", shape(kind, r));
    ringPath.setAttribute("d", kind === "good" ? ring(step, r + 4) : "");
    const mark = SIGNS[state] ?? SIGNS[kind];
    sign.textContent = mark || (count > MAX_NAMES && count <= MAX_NUMBERS ? scene.nodes[k].match(/\d{1,3}$/)?.[0] ?? "" : "");
    sign.setAttribute("font-size", mark ? 1.1 * r : 0.9 * r);
    sign.setAttribute("y", kind === "trouble" ? 0.2 * r : 0);
    stateText.textContent = count > MAX_NAMES ? "" : state === "running" && error !== null ? percent(error) : state;
  });
  moment.edges.forEach((state, k) => {
    const kind = state.startsWith("connected via ") ? "via" : state === "unknown" ? "unknown" : APART.test(state) ? "apart" : "";
    if (drawn.edges[k].getAttribute("class") !== kind) drawn.edges[k].setAttribute("class", kind);
  });
}

// An exchange: the edge glows, and a dot travels along it.
function pulse(k, count) {
  if (stillness.matches || document.hidden) return;
  const strength = Math.min(1, 0.5 + count / 20), accent = getComputedStyle(document.body).getPropertyValue("--accent");
  const [i, j] = scene.edges[k], way = Math.random() < 0.5 ? [i, j] : [j, i], delay = 500 * Math.random();
  drawn.edges[k].animate([{ stroke: accent, strokeOpacity: strength, strokeWidth: 3.5 }, {}], { duration: 900, delay, easing: "ease-out" });
  if (scene.edges.length > MAX_SPARKS) return;
  const dot = draw("circle", { class: "spark", r: 3.5 });
  drawn.sparks.append(dot);
  const [from, to] = way.map((one) => `translate(${drawn.places[one][0]}px, ${drawn.places[one][1]}px)`);
  dot.animate([{ transform: from, opacity: 0.2 }, { opacity: 1 }, { transform: to, opacity: 0.2 }], { duration: 700, delay, fill: "backwards" }).finished.then(() => dot.remove(), () => dot.remove());
}

function drawLegend() {
  const sample = (kind, step, text, mark = SIGNS[kind]) => {
    const node = draw("g", { class: `node ${kind} step-${step}`, transform: "translate(13 13)" }, draw("path", { class: "ring", d: kind === "good" ? ring(step, 11) : "" }),
      draw("path", { class: "shape", d: shape(kind, 8) }), draw("text", { class: "sign", "font-size": 10, y: kind === "trouble" ? 1.6 : 0 }));
    node.lastChild.textContent = mark;
    return make("li", {}, draw("svg", { width: 26, height: 26, "aria-hidden": "true" }, node), text);
  };
  const errors = scene.has_errors
    ? [sample("good", 0, "no error known yet"), ...STEPS.map(([, text], k) => sample("good", k + 1, `error ${text}`))]
    : [sample("good", 0, "no result yet"), sample("good", 4, "has the result", "✓")];
  byId("map-legend").replaceChildren(...errors, sample("waiting", 0, "waiting"), sample("trouble", 0, "trouble"), sample("away", 0, "does not run, or is elsewhere"));
}

// Arrow keys move to the nearest node in that direction.
function onMapKey(event, from) {
  const directions = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.key === "Enter" || event.key === " ") {
    choose(from, true);
  } else if (event.key === "Home" || event.key === "End") {
    focusNode(event.key === "Home" ? 0 : scene.nodes.length - 1);
  } else if (event.key === "Escape") {
    choose(null);
  } else if (directions[event.key]) {
    const [right, down] = directions[event.key], [x, y] = drawn.places[from];
    let nearest = null, least = Infinity;
    drawn.places.forEach(([x2, y2], k) => {
      const along = (x2 - x) * right + (y2 - y) * down, beside = Math.abs((x2 - x) * down) + Math.abs((y2 - y) * right);
      if (k !== from && along > 1 && along + 2 * beside < least) [nearest, least] = [k, along + 2 * beside];
    });
    if (nearest !== null) focusNode(nearest);
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

// Details of the chosen node.

async function showDetails() {
  const title = byId("details-title"), box = byId("details");
  if (chosen === null) {
    setText(title, "No node chosen");
    box.replaceChildren(make("p", { className: "muted", textContent: "Choose a node to see its neighbours, round trips and what it rejected." }));
    return;
  }
  const name = scene.nodes[chosen];
  setText(title, name);
  if (performance.now() - detailsAt < DETAILS_MS) return;
  detailsAt = performance.now();
  let found;
  try {
    const answer = await fetch(`node?${encodeURIComponent(name)}`);
    found = answer.ok ? await answer.json() : { facts: [["state", moment.nodes[chosen]?.[0] ?? ""]], tables: [] };
  } catch {
    return; // the connection is lost, and the header says so
  }
  if (scene.nodes[chosen] !== name) return;
  const facts = make("dl");
  for (const [term, text] of found.facts) facts.append(make("dt", { textContent: term }), make("dd", { textContent: text }));
  box.replaceChildren(facts, ...found.tables.map((rows) => make("div", { className: "scroll" }, table(rows))));
}

function table([heading, ...rows]) {
  const cells = (tag, row) => make("tr", {}, ...row.map((text) => make(tag, { textContent: text, className: text.length > 28 ? "long" : "" })));
  return make("table", {}, make("thead", {}, cells("th", heading)), make("tbody", {}, ...rows.map((row) => cells("td", row))));
}

// The table of all nodes.

function drawTable() {
  const head = ["node", "state", "estimate", scene.has_errors ? levelName() : "certainly within", ...(scene.has_errors ? ["expected error"] : [levelName()])];
  const rows = scene.nodes.map((name, k) => {
    const button = make("button", { type: "button", textContent: name });
    button.addEventListener("click", () => choose(k));
    return make("tr", {}, make("td", {}, button), ...head.slice(1).map(() => make("td")));
  });
  byId("table").replaceChildren(make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col", textContent: text })))), make("tbody", {}, ...rows));
}

function showTable() {
  const rows = byId("table").tBodies[0].rows;
  moment.nodes.forEach(([state, kind, note, values], k) => {
    const value = values[quantity] ?? [null, null, null, null, null, null], cells = rows[k].cells;
    rows[k].className = k === chosen ? "chosen" : "";
    cells[1].className = `badge ${kind}`;
    cells[1].title = scene.states[state] ?? "";
    setText(cells[1], note.startsWith("restarted") ? `${state}, ${note}` : state);
    setText(cells[2], number(value[VALUE]));
    const confidence = interval(value[LOW], value[HIGH], 4), bracket = interval(value[CERTAIN_LOW], value[CERTAIN_HIGH], 5);
    setText(cells[3], scene.has_errors ? confidence : bracket);
    setText(cells[4], scene.has_errors ? percent(value[ERROR]) : confidence);
  });
}

// Refusals and log.

function showRefusals() {
  const box = byId("refusals"), key = JSON.stringify(moment.refusals);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const items = moment.refusals.map(([node, sender, reason, count, time, detail]) => make("li", {},
    make("strong", { textContent: reason }), `: ${sender}, refused by ${node}, `, `${count.toLocaleString("en")} ${count === 1 ? "time" : "times"}, last at ${clock(time)}`,
    make("p", { className: "muted", textContent: detail })));
  box.replaceChildren(items.length ? make("ul", {}, ...items) : make("p", { className: "muted", textContent: "No node has rejected a message or a connection." }));
}

function showLog() {
  const box = byId("log"), atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  if (log.length === 0) {
    box.replaceChildren(make("p", { className: "muted", textContent: "No log of a node on this machine: those that gosta network up starts write one." }));
    return;
  }
  box.replaceChildren(...log.map(([time, node, event, text]) => {
    const when = time ? new Date(time).toLocaleTimeString("en-GB") : "";
    return make("p", {}, make("time", { textContent: when }), make("b", { textContent: node }), ` ${event}  ${text}`);
  }));
  if (atEnd) box.scrollTop = box.scrollHeight;
}

// Charts.

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["text", "muted", "line", "accent", "band", "node-line", "waiting", "good"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function axes(colour, values) {
  const common = { stroke: colour.muted, grid: { stroke: colour.line, width: 1 }, ticks: { stroke: colour.line, width: 1 }, font: "12px system-ui, sans-serif" };
  return [{ ...common, space: 90 }, { ...common, size: 80, values: (_, marks) => marks.map((mark) => (mark === null ? "" : values(mark))) }];
}

function drawCharts() {
  charts.forEach((chart) => chart.plot.destroy());
  charts = [];
  if (scene === null || scene.quantities.length === 0) return;
  charts = [estimateChart(), ...(scene.has_errors ? [errorChart()] : [])];
  showCharts();
}

function makeChart(id, options, data) {
  const box = byId(`${id}-chart`);
  box.replaceChildren();
  const date = "{HH}:{mm}:{ss}";
  const plot = new uPlot({ width: box.clientWidth, height: box.clientHeight, legend: { show: false }, tzDate: (seconds) => new Date(1000 * seconds), fmtDate: () => uPlot.fmtDate(date), ...options }, data(), box);
  return { id, plot, data, box };
}

function estimateChart() {
  const colour = colours(), nodes = history.length && history[0][1][0]?.length > NODES ? scene.nodes.length : 0;
  const hidden = { stroke: "transparent", points: { show: false } }, dashed = { stroke: colour.waiting, width: 1.5, dash: [6, 4], points: { show: false } };
  const series = [{}, hidden, hidden, dashed, dashed];
  for (let k = 0; k < nodes; k++) series.push({ stroke: colour["node-line"], width: 1, points: { show: false } });
  series.push({ stroke: colour.text, width: chosen === null ? 0 : 1.5, dash: [2, 3], points: { show: false } }, { stroke: colour.accent, width: 2.5, points: { show: false } });
  const data = () => {
    const points = history.map(([, point]) => point[quantity] ?? []);
    const column = (place) => points.map((point) => point[place] ?? null);
    const each = Array.from({ length: nodes }, (_, k) => column(NODES + k));
    return [history.map(([time]) => time), ...[LOW, HIGH, CERTAIN_LOW, CERTAIN_HIGH].map(column), ...each, chosen === null || !nodes ? column(Infinity) : each[chosen], column(VALUE)];
  };
  const options = {
    series, axes: axes(colour, (mark) => number(mark, 5)), bands: [{ series: [2, 1], fill: colour.band }],
    scales: { y: { range: (plot) => latestRange(plot.data) } },
    hooks: { setCursor: [(plot) => read(plot, "estimate")] },
  };
  const swatch = (attributes) => draw("svg", { width: 24, height: 12, "aria-hidden": "true" }, draw("line", { x1: 0, x2: 24, y1: 6, y2: 6, ...attributes }));
  const total = moment.totals[quantity] ?? [];
  byId("estimate-legend").replaceChildren(...[
    make("li", {}, swatch({ stroke: colour.accent, "stroke-width": 2.5 }), scene.has_errors ? "mean of the nodes" : "result"),
    nodes > 1 && scene.has_errors ? make("li", {}, swatch({ stroke: colour["node-line"], "stroke-width": 1.2 }), "each node") : null,
    chosen !== null && nodes ? make("li", {}, swatch({ stroke: colour.text, "stroke-width": 1.5, "stroke-dasharray": "2 3" }), scene.nodes[chosen]) : null,
    scene.level !== null ? make("li", {}, swatch({ stroke: colour.band, "stroke-width": 12 }), `${levelName()}${scene.has_errors ? ", which contains those of all nodes" : ""}`) : null,
    total[CERTAIN_LOW] !== null && !scene.has_errors ? make("li", {}, swatch({ stroke: colour.waiting, "stroke-width": 1.5, "stroke-dasharray": "6 4" }), "certainly within") : null,
  ].filter((one) => one !== null));
  return makeChart("estimate", options, data);
}

function errorChart() {
  const colour = colours();
  const positive = (value) => (value > 0 ? value : null);
  const data = () => {
    const points = history.map(([, point]) => point[quantity] ?? []);
    const differences = points.map((point) => positive(point.length > NODES ? difference(point[VALUE], point.slice(NODES)) : null));
    return [history.map(([time]) => time), points.map((point) => positive(point[ERROR])), differences];
  };
  const lines = [[colour.accent, [], "largest error that a node expects"], [colour.waiting, [6, 4], "largest difference of a node from the mean"]];
  const options = {
    series: [{}, ...lines.map(([stroke, dash]) => ({ stroke, dash, width: 2, points: { show: false } }))],
    axes: axes(colour, percent), scales: { y: { distr: 3 } }, hooks: { setCursor: [(plot) => read(plot, "error")] },
  };
  byId("error-legend").replaceChildren(...lines.map(([stroke, dash, text]) => make("li", {},
    draw("svg", { width: 24, height: 12, "aria-hidden": "true" }, draw("line", { x1: 0, x2: 24, y1: 6, y2: 6, stroke, "stroke-width": 2, "stroke-dasharray": dash.join(" ") })), text)));
  return makeChart("error", options, data);
}

// The first estimates and intervals are far off: the scale is that of the later ones.
function latestRange([times, ...columns]) {
  const first = times.length > 20 ? Math.floor(times.length / 3) : 0;
  const known = columns.flatMap((column) => column.slice(first).filter((value) => value !== null));
  if (known.length === 0) return [0, 1];
  const low = Math.min(...known), high = Math.max(...known), room = (high - low) * 0.08 || Math.abs(high) * 0.01 || 1;
  return [low - room, high + room];
}

function showCharts() {
  for (const { id, plot, data, box } of charts) {
    if (plot.width !== box.clientWidth) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
    const columns = data();
    plot.setData(columns);
    box.classList.toggle("empty", columns.slice(1).every((column) => column.every((value) => value === null)));
    read(plot, id);
  }
}

// A chart in words, below it and for screen readers: where the mouse is, or now.
function read(plot, id) {
  const place = plot.cursor.idx ?? history.length - 1, [time, point] = history[place] ?? [];
  const values = point?.[quantity];
  if (values === undefined) return;
  const parts = [clock(time)];
  if (id === "estimate") {
    parts.push(`${scene.has_errors ? "mean" : "result"} ${number(values[VALUE])}`);
    if (values[LOW] !== null) parts.push(`${levelName()} ${interval(values[LOW], values[HIGH])}`);
    if (values[CERTAIN_LOW] !== null) parts.push(`certainly within ${interval(values[CERTAIN_LOW], values[CERTAIN_HIGH])}`);
    if (chosen !== null && values.length > NODES) parts.push(`${scene.nodes[chosen]} ${number(values[NODES + chosen])}`);
  } else {
    parts.push(`expected error ${percent(values[ERROR])}`);
    if (values.length > NODES) parts.push(`difference ${percent(difference(values[VALUE], values.slice(NODES)))}`);
  }
  setText(byId(`${id}-reading`), parts.join(" · "));
  byId(`${id}-chart`).setAttribute("aria-label", `Chart of ${scene.quantities[quantity]}: ${parts.join(", ")}`);
}

// Themes.

function applyTheme() {
  const theme = localStorage.getItem("theme") ?? (darkness.matches ? "dark" : "light");
  document.documentElement.dataset.theme = theme;
  setText(byId("theme"), theme === "dark" ? "Light theme" : "Dark theme");
  drawCharts();
}

byId("theme").addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  applyTheme();
});
byId("quantity").addEventListener("change", (event) => {
  quantity = Number(event.target.value);
  drawn.kinds = [];
  drawCharts();
  showAll();
});
darkness.addEventListener("change", applyTheme);
document.addEventListener("visibilitychange", () => { if (scene !== null) showAll(); });
new ResizeObserver(() => { placeMap(); showCharts(); }).observe(byId("map"));
applyTheme();
connect();
