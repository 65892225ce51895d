// A network of nodes. What is shown comes as server-sent events: "start" with everything, then "change" with differences
// (gosta/pages/feed.py has the fields). All text of nodes is set as text, never as HTML.
"use strict";

const MAX_POINTS = 720; // of the history
const MAX_LOG_LINES = 200;
// Places in a value; in a point of the history, the nodes' own values follow.
const [VALUE, LOW, HIGH, CERTAIN_LOW, CERTAIN_HIGH, ERROR, NODES] = [0, 1, 2, 3, 4, 5, 6];
const WAITING = "Waiting for the first answers";
const HINT = "Choose a node to see its neighbours, round trips and what it rejected.";

let scene = null; // what stays the same for long: names, edges, quantities
let moment = null; // what changes: values, states
let past = []; // points: [time, values of each quantity]
let log = [];

const nodeName = (k) => scene.nodes[k];
const eventsPath = () => "events";

function start(event) {
  const before = scene;
  const name = chosen === null || before === null ? null : before.nodes[chosen];
  ({ scene, moment, history: past } = event);
  log = moment.log;
  chosen = scene.nodes.includes(name) ? scene.nodes.indexOf(name) : null;
  const wanted = before === null ? null : before.quantities[quantity];
  quantity = Math.max(0, scene.quantities.indexOf(wanted));
  showTitle(scene.title, scene.subtitle, scene.quantities);
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
  for (const name of ["facts", "totals", "missing", "partly_missing", "rejections"])
    if (event[name] !== undefined) moment[name] = event[name];
  for (const [k, node] of Object.entries(event.nodes ?? {})) moment.nodes[k] = node;
  for (const [k, state] of Object.entries(event.edges ?? {})) moment.edges[k] = state;
  const hasNodes = past.length > 0 && past.at(-1)[1][0]?.length > NODES;
  past.push([event.time, moment.totals.map((total, k) => [...total, ...(hasNodes ? liveValues(k) : [])])]);
  if (past.length > MAX_POINTS)
    past = [...past.slice(0, MAX_POINTS / 2).filter((_, k) => k % 2), ...past.slice(MAX_POINTS / 2)];
  announce(moment.nodes.flatMap((node, k) => (node[0] === before[k] ? [] : [`${scene.nodes[k]}: ${node[0]}`])));
  showAll();
  for (const [k, count] of Object.entries(event.activity ?? {})) pulse(Number(k), count);
  if (event.log) {
    log = [...log, ...event.log].slice(-MAX_LOG_LINES);
    showLog();
  }
}

// A quantity at each node; null where it is old.
function liveValues(k) {
  return moment.nodes.map(([, , , values, isLive]) => (isLive ? (values[k]?.[VALUE] ?? null) : null));
}

function showAll() {
  showHeadline();
  showMap();
  showTable();
  showRejections();
  showDetails();
  showCharts();
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
  if (total[CERTAIN_LOW] !== null)
    accuracy.push(["certainly within", interval(total[CERTAIN_LOW], total[CERTAIN_HIGH])]);
  if (scene.has_errors && total[VALUE] !== null) {
    accuracy.push(["expected error", total[ERROR] === null ? "not known yet" : `at most ${percent(total[ERROR])}`]);
    accuracy.push(["nodes differ by", percent(difference(total[VALUE], liveValues(quantity)))]);
  }
  definitions(byId("accuracy"), accuracy);
  definitions(byId("facts"), moment.facts);
  const isMissing = moment.missing.length > 0,
    count = moment.partly_missing;
  byId("missing").hidden = !isMissing && count === 0;
  byId("missing").className = isMissing ? "trouble" : "";
  byId("missing").replaceChildren(
    ...[
      isMissing ? make("strong", { textContent: "Missing: " }) : null,
      isMissing ? `${shorten(moment.missing, 12)}. ` : null,
      count > 0
        ? `Not in every node's estimate${isMissing ? "" : " yet"}: the rows of ${count} ${count === 1 ? "site" : "sites"}.`
        : null,
    ].filter((one) => one !== null),
  );
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

// The table of all nodes.

function drawTable() {
  const head = [
    "node",
    "state",
    "estimate",
    scene.has_errors ? levelName() : "certainly within",
    ...(scene.has_errors ? ["expected error"] : [levelName()]),
  ];
  const rows = scene.nodes.map((name, k) => {
    const button = make("button", { type: "button", textContent: name });
    button.addEventListener("click", () => choose(k));
    return make("tr", {}, make("td", {}, button), ...head.slice(1).map(() => make("td")));
  });
  byId("table").replaceChildren(
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col", textContent: text })))),
    make("tbody", {}, ...rows),
  );
}

function showTable() {
  const rows = byId("table").tBodies[0].rows;
  moment.nodes.forEach(([state, kind, note, values], k) => {
    const value = values[quantity] ?? [null, null, null, null, null, null],
      cells = rows[k].cells;
    rows[k].className = k === chosen ? "chosen" : "";
    cells[1].className = `badge ${kind}`;
    cells[1].title = scene.states[state] ?? "";
    setText(cells[1], note.startsWith("restarted") ? `${state}, ${note}` : state);
    setText(cells[2], number(value[VALUE]));
    const confidence = interval(value[LOW], value[HIGH], 4),
      bracket = interval(value[CERTAIN_LOW], value[CERTAIN_HIGH], 5);
    setText(cells[3], scene.has_errors ? confidence : bracket);
    setText(cells[4], scene.has_errors ? percent(value[ERROR]) : confidence);
  });
}

// Rejections and log.

function showRejections() {
  const box = byId("rejections"),
    key = JSON.stringify(moment.rejections);
  if (box.dataset.key === key) return;
  box.dataset.key = key;
  const items = moment.rejections.map(([node, sender, reason, count, time, detail, isHarmless]) =>
    make(
      "li",
      { className: isHarmless ? "harmless" : "" },
      make("strong", { textContent: isHarmless ? `${reason}, which is harmless` : reason }),
      `: ${sender}, rejected by ${node}, `,
      `${count.toLocaleString("en")} ${count === 1 ? "time" : "times"}, last at ${clock(time)}`,
      make("p", { className: "muted", textContent: detail }),
    ),
  );
  box.replaceChildren(
    items.length
      ? make("ul", {}, ...items)
      : make("p", { className: "muted", textContent: "No node has rejected a message or a connection." }),
  );
}

function showLog() {
  const box = byId("log"),
    atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  if (log.length === 0) {
    box.replaceChildren(
      make("p", {
        className: "muted",
        textContent: "No log of a node on this machine: those that gosta network up starts write one.",
      }),
    );
    return;
  }
  box.replaceChildren(
    ...log.map(([time, node, event, text]) => {
      const when = time ? new Date(time).toLocaleTimeString("en-GB") : "";
      return make("p", {}, make("time", { textContent: when }), make("b", { textContent: node }), ` ${event}  ${text}`);
    }),
  );
  if (atEnd) box.scrollTop = box.scrollHeight;
}

async function findDetails(k) {
  const answer = await fetch(`node?${encodeURIComponent(scene.nodes[k])}`);
  const found = answer.ok ? await answer.json() : { facts: [["state", moment.nodes[k]?.[0] ?? ""]], tables: [] };
  return [
    definitionList(found.facts),
    ...found.tables.map((rows) => make("div", { className: "scroll" }, table(rows))),
  ];
}

function onQuantity() {
  drawn.kinds = [];
  drawCharts();
  showAll();
}
