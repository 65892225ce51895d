// Charts of the chosen quantity over time.
"use strict";

function drawCharts() {
  charts.forEach((chart) => chart.plot.destroy());
  charts = [];
  if (scene === null || scene.quantities.length === 0) return;
  charts = [estimateChart(), ...(scene.has_errors ? [errorChart()] : [])];
  showCharts();
}

function estimateChart() {
  const colour = colours(),
    nodes = past.length && past[0][1][0]?.length > NODES ? scene.nodes.length : 0;
  const hidden = { stroke: "transparent", points: { show: false } },
    dashed = { stroke: colour.waiting, width: 1.5, dash: [6, 4], points: { show: false } };
  const series = [{}, hidden, hidden, dashed, dashed];
  for (let k = 0; k < nodes; k++) series.push({ stroke: colour["node-line"], width: 1, points: { show: false } });
  series.push(
    { stroke: colour.text, width: chosen === null ? 0 : 1.5, dash: [2, 3], points: { show: false } },
    { stroke: colour.accent, width: 2.5, points: { show: false } },
  );
  const data = () => {
    const points = past.map(([, point]) => point[quantity] ?? []);
    const column = (place) => points.map((point) => point[place] ?? null);
    const each = Array.from({ length: nodes }, (_, k) => column(NODES + k));
    return [
      past.map(([time]) => time),
      ...[LOW, HIGH, CERTAIN_LOW, CERTAIN_HIGH].map(column),
      ...each,
      chosen === null || !nodes ? column(Infinity) : each[chosen],
      column(VALUE),
    ];
  };
  const options = {
    series,
    axes: axes(colour, (mark) => number(mark, 5)),
    bands: [{ series: [2, 1], fill: colour.band }],
    scales: { y: { range: (plot) => latestRange(plot.data) } },
    hooks: { setCursor: [(plot) => read(plot, "estimate")] },
  };
  const total = moment.totals[quantity] ?? [];
  byId("estimate-legend").replaceChildren(
    ...[
      legendLine(scene.has_errors ? "mean of the nodes" : "result", { stroke: colour.accent, "stroke-width": 2.5 }),
      nodes > 1 && scene.has_errors
        ? legendLine("each node", { stroke: colour["node-line"], "stroke-width": 1.2 })
        : null,
      chosen !== null && nodes
        ? legendLine(scene.nodes[chosen], { stroke: colour.text, "stroke-width": 1.5, "stroke-dasharray": "2 3" })
        : null,
      scene.level !== null
        ? legendLine(`${levelName()}${scene.has_errors ? ", which contains those of all nodes" : ""}`, {
            stroke: colour.band,
            "stroke-width": 12,
          })
        : null,
      total[CERTAIN_LOW] !== null && !scene.has_errors
        ? legendLine("certainly within", { stroke: colour.waiting, "stroke-width": 1.5, "stroke-dasharray": "6 4" })
        : null,
    ].filter((one) => one !== null),
  );
  return makeChart("estimate", options, data);
}

function errorChart() {
  const colour = colours();
  const positive = (value) => (value > 0 ? value : null);
  const data = () => {
    const points = past.map(([, point]) => point[quantity] ?? []);
    const differences = points.map((point) =>
      positive(point.length > NODES ? difference(point[VALUE], point.slice(NODES)) : null),
    );
    return [past.map(([time]) => time), points.map((point) => positive(point[ERROR])), differences];
  };
  const lines = [
    [colour.accent, [], "largest error that a node expects"],
    [colour.waiting, [6, 4], "largest difference of a node from the mean"],
  ];
  const options = {
    series: [{}, ...lines.map(([stroke, dash]) => ({ stroke, dash, width: 2, points: { show: false } }))],
    axes: axes(colour, percent),
    scales: { y: { distr: 3 } },
    hooks: { setCursor: [(plot) => read(plot, "error")] },
  };
  byId("error-legend").replaceChildren(
    ...lines.map(([stroke, dash, text]) =>
      legendLine(text, { stroke, "stroke-width": 2, "stroke-dasharray": dash.join(" ") }),
    ),
  );
  return makeChart("error", options, data);
}

// A chart in words, below it and for screen readers: where the mouse is, or now.
function read(plot, id) {
  const place = plot.cursor.idx ?? past.length - 1,
    [time, point] = past[place] ?? [];
  const values = point?.[quantity];
  if (values === undefined) return;
  const parts = [clock(time)];
  if (id === "estimate") {
    parts.push(`${scene.has_errors ? "mean" : "result"} ${number(values[VALUE])}`);
    if (values[LOW] !== null) parts.push(`${levelName()} ${interval(values[LOW], values[HIGH])}`);
    if (values[CERTAIN_LOW] !== null)
      parts.push(`certainly within ${interval(values[CERTAIN_LOW], values[CERTAIN_HIGH])}`);
    if (chosen !== null && values.length > NODES)
      parts.push(`${scene.nodes[chosen]} ${number(values[NODES + chosen])}`);
  } else {
    parts.push(`expected error ${percent(values[ERROR])}`);
    if (values.length > NODES) parts.push(`difference ${percent(difference(values[VALUE], values.slice(NODES)))}`);
  }
  setText(byId(`${id}-reading`), parts.join(" · "));
  byId(`${id}-chart`).setAttribute("aria-label", `Chart of ${scene.quantities[quantity]}: ${parts.join(", ")}`);
}
