// What all pages have in common: the connection, the details of the chosen node, themes.
//
// The scripts of a source (network.js, simulation.js) define start, change, showAll, drawCharts, placeMap, nodeName,
// eventsPath, findDetails, onQuantity, HINT and WAITING, and keep what is shown in scene.
"use strict";

const RETRY_MS = 3000; // before connecting again
const DETAILS_MS = 1000; // between two requests for details

const stillness = matchMedia("(prefers-reduced-motion: reduce)");
const darkness = matchMedia("(prefers-color-scheme: dark)");
const recording = byId("recording"); // the data of a page that is a file of its own
let chosen = null; // place of a node
let quantity = 0; // place of the quantity that is shown
let detailsAt = -Infinity; // when details were requested

// The connection.

let source = null;

function connect() {
  source?.close();
  source = new EventSource(eventsPath());
  source.addEventListener("wait", () => showLink("waiting", WAITING));
  source.addEventListener("start", (event) => {
    showLink("", "Live");
    start(JSON.parse(event.data));
  });
  source.addEventListener("change", (event) => change(JSON.parse(event.data)));
  source.onerror = () => {
    showLink("lost", "Connection lost, retrying");
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, RETRY_MS);
  };
}

// A page that nobody sees asks for nothing: browsers allow few connections to a server, for all their tabs together.
function onVisibility() {
  if (recording !== null) return;
  if (!document.hidden) {
    connect();
  } else {
    source.close();
    showLink("waiting", "Paused");
  }
}

function showLink(kind, text) {
  byId("link").className = kind;
  setText(byId("link-text"), text);
}

function showTitle(title, subtitle, quantities) {
  document.title = `${title} · gosta`;
  setText(byId("title"), title);
  setText(byId("subtitle"), subtitle);
  byId("quantity").replaceChildren(...quantities.map((one, k) => make("option", { value: k, textContent: one })));
  byId("quantity").value = quantity;
  byId("choice").hidden = quantities.length < 2;
}

function announce(changes) {
  if (changes.length === 0) return;
  const more = changes.length > 5 ? `, and ${changes.length - 5} more` : "";
  byId("announcement").textContent = changes.slice(0, 5).join(", ") + more;
}

// Details of the chosen node.

async function showDetails() {
  const title = byId("details-title"),
    box = byId("details");
  if (chosen === null) {
    setText(title, "No node chosen");
    box.replaceChildren(make("p", { className: "muted", textContent: HINT }));
    return;
  }
  const place = chosen;
  setText(title, nodeName(place));
  if (recording === null && performance.now() - detailsAt < DETAILS_MS) return;
  detailsAt = performance.now();
  try {
    const found = await findDetails(place);
    if (chosen === place) box.replaceChildren(...found);
  } catch {
    // the connection is lost, and the header says so
  }
}

function definitionList(pairs) {
  const list = make("dl");
  for (const [term, text] of pairs) list.append(make("dt", { textContent: term }), make("dd", { textContent: text }));
  return list;
}

function table([heading, ...rows]) {
  const cells = (tag, row) =>
    make("tr", {}, ...row.map((text) => make(tag, { textContent: text, className: text.length > 28 ? "long" : "" })));
  return make(
    "table",
    {},
    make("thead", {}, cells("th", heading)),
    make("tbody", {}, ...rows.map((row) => cells("td", row))),
  );
}

// Themes.

function applyTheme() {
  let theme = darkness.matches ? "dark" : "light";
  try {
    theme = localStorage.getItem("theme") ?? theme;
  } catch {
    // this browser stores nothing: the system's theme counts
  }
  setTheme(theme);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  setText(byId("theme"), theme === "dark" ? "Light theme" : "Dark theme");
  drawCharts();
}

byId("theme").addEventListener("click", () => {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  setTheme(theme);
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // this browser stores nothing
  }
});
byId("quantity").addEventListener("change", (event) => {
  quantity = Number(event.target.value);
  onQuantity();
});
darkness.addEventListener("change", applyTheme);
document.addEventListener("visibilitychange", onVisibility);
new ResizeObserver(() => {
  placeMap();
  showCharts();
}).observe(byId("map"));
applyTheme();
if (recording === null) connect();
else start(JSON.parse(recording.textContent));
