// Charts of a simulation: estimates and errors against iterations, and the histogram of estimates.
"use strict";

const BINS = 64;
// Places in the numbers of a frame that sum up all nodes: the mean, and quantiles.
const [MEAN, Q5, Q25, Q50, Q75, Q95] = [0, 1, 2, 3, 4, 5];

function drawCharts() {
  charts.forEach((chart) => chart.plot.destroy());
  charts = [];
  if (scene === null) return;
  charts = [estimateChart(), errorChart(), histogramChart()];
  if (!hasHistogram()) charts.pop().plot.destroy();
  showCharts();
}

const hasHistogram = () => frames.some((frame) => frame.counts.length > 0);

// A line at a place of the x-axis.
function mark(plot, x, stroke, dash, width = 1.5) {
  const at = plot.valToPos(x, "x", true),
    { left, top, width: wide, height } = plot.bbox;
  if (!(at >= left && at <= left + wide)) return;
  const pen = plot.ctx;
  pen.save();
  pen.beginPath();
  Object.assign(pen, { strokeStyle: stroke, lineWidth: width * (window.devicePixelRatio || 1) });
  pen.setLineDash(dash.map((one) => one * (window.devicePixelRatio || 1)));
  pen.moveTo(at, top);
  pen.lineTo(at, top + height);
  pen.stroke();
  pen.restore();
}

// Where the shown frame is, in a chart of all of them.
function markFrame(plot) {
  if (at < frames.length - 1) mark(plot, frames[at].iteration, colours().text, [4, 3], 1);
}

// Mean and quantiles of all nodes over iterations, and the chosen node.
function curveChart(id, numbers, own, yAxis, scale, more) {
  const colour = colours(),
    hidden = { stroke: "transparent", points: { show: false } };
  const series = [
    {},
    ...[hidden, hidden, hidden, hidden],
    ...more.map((dash) => ({ stroke: colour.waiting, width: 1.5, dash, points: { show: false } })),
    { stroke: colour.accent, width: 2.5, points: { show: false } },
    { stroke: colour.text, width: 1.5, dash: [2, 3], points: { show: false } },
  ];
  const options = {
    series,
    axes: axes(colour, yAxis),
    bands: [
      { series: [1, 2], fill: colour.band },
      { series: [3, 4], fill: colour.band },
    ],
    scales: { x: { time: false }, y: scale },
    hooks: { setCursor: [(plot) => read(plot, id)], draw: [markFrame] },
  };
  const data = () => {
    const column = (place) => frames.map((frame) => numbers(frame)[place] ?? null);
    return [
      frames.map((frame) => frame.iteration),
      ...[Q95, Q5, Q75, Q25].map(column),
      ...more.map(() => frames.map(() => scene.exact[quantity])),
      column(MEAN),
      chosen === null ? frames.map(() => null) : own(),
    ];
  };
  byId(`${id}-legend`).replaceChildren(
    ...[
      legendLine("mean of the nodes", { stroke: colour.accent, "stroke-width": 2.5 }),
      ...scene.bands.map((name, k) =>
        numbers(frames[0])[k ? Q5 : Q25] === null
          ? null
          : legendLine(name, { stroke: colour.accent, "stroke-opacity": k ? 0.16 : 0.3, "stroke-width": 12 }),
      ),
      ...more.map((dash) =>
        legendLine(exactName(), { stroke: colour.waiting, "stroke-width": 1.5, "stroke-dasharray": dash.join(" ") }),
      ),
      chosen === null
        ? null
        : legendLine(nodeName(chosen), { stroke: colour.text, "stroke-width": 1.5, "stroke-dasharray": "2 3" }),
    ].filter((one) => one !== null),
  );
  return makeChart(id, options, data);
}

const exactName = () => (scene.has_own_targets ? "mean of the exact values" : "exact value");

function estimateChart() {
  const range = (plot) => latestRange(plot.data.map((column) => [...column]));
  const numbers = (frame) => frame.estimates;
  return curveChart("estimate", numbers, ownEstimates, (mark) => number(mark, 5), { range }, [[6, 4]]);
}

function errorChart() {
  const positive = (value) => (value > 0 ? value : null);
  const numbers = (frame) => frame.errors.map(positive);
  return curveChart("error", numbers, () => ownErrors().map(positive), errorText, { distr: 3 }, []);
}

function histogramChart() {
  const colour = colours();
  const options = {
    series: [
      {},
      {
        stroke: colour.accent,
        fill: colour.accent,
        width: 0,
        paths: uPlot.paths.bars({ size: [0.9, 100] }),
        points: { show: false },
      },
    ],
    axes: axes(colour, (mark) => count(mark)),
    scales: {
      x: { time: false, range: () => frames[at].ends },
      y: { range: (_, __, high) => [0, (high || 1) * 1.05] },
    },
    hooks: {
      setCursor: [(plot) => read(plot, "histogram")],
      draw: [
        (plot) => {
          mark(plot, scene.exact[quantity], colour.waiting, [6, 4]);
          const own = chosen === null ? null : ownNow();
          if (own !== null) mark(plot, own, colour.text, [2, 3]);
        },
      ],
    },
  };
  options.axes[0].values = (_, marks) => marks.map((one) => number(one, 5));
  const data = () => {
    const { ends, counts } = frames[at],
      width = (ends[1] - ends[0]) / BINS;
    return [Array.from({ length: BINS }, (_, k) => ends[0] + (k + 0.5) * width), counts];
  };
  byId("histogram-legend").replaceChildren(
    legendLine("nodes", { stroke: colour.accent, "stroke-width": 12 }),
    legendLine(exactName(), { stroke: colour.waiting, "stroke-width": 1.5, "stroke-dasharray": "6 4" }),
    ...(chosen === null
      ? []
      : [legendLine(nodeName(chosen), { stroke: colour.text, "stroke-width": 1.5, "stroke-dasharray": "2 3" })]),
  );
  return makeChart("histogram", options, data);
}

// A chart in words, below it and for screen readers: where the mouse is, or at the shown frame.
function read(plot, id) {
  const place = plot.cursor.idx,
    parts = id === "histogram" ? readHistogram(place) : readCurve(id, place ?? at);
  setText(byId(`${id}-reading`), parts.join(" · "));
  byId(`${id}-chart`).setAttribute("aria-label", `Chart of ${scene.quantities[quantity]}: ${parts.join(", ")}`);
}

function readCurve(id, place) {
  const frame = frames[place] ?? frames.at(-1);
  const [numbers, text, own] =
    id === "error" ? [frame.errors, errorText, ownErrors] : [frame.estimates, number, ownEstimates];
  const parts = [`iteration ${count(frame.iteration)}`, `mean ${text(numbers[MEAN])}`];
  if (numbers[Q5] !== null) parts.push(`90 % of the nodes ${text(numbers[Q5])} to ${text(numbers[Q95])}`);
  const value = chosen === null ? null : own()[frames.indexOf(frame)];
  if (value !== null && value !== undefined) parts.push(`${nodeName(chosen)} ${text(value)}`);
  return parts;
}

function readHistogram(place) {
  const { ends, counts } = frames[at];
  if (counts.length === 0) return ["the estimates of all nodes were not kept"];
  const width = (ends[1] - ends[0]) / BINS;
  if (place === null || place === undefined)
    return [`${BINS} bins`, `${number(ends[0], 5)} to ${number(ends[1], 5)}`, "the first and the last hold all beyond"];
  const from = ends[0] + place * width;
  return [`${number(from, 6)} to ${number(from + width, 6)}`, `${count(counts[place])} nodes`];
}
