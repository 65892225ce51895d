// Charts: what those of all pages have in common.
"use strict";

const COLOURS = "text muted line accent band node-line waiting good edge outline panel".split(" ");
let charts = [];

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function axes(colour, values) {
  const common = {
    stroke: colour.muted,
    grid: { stroke: colour.line, width: 1 },
    ticks: { stroke: colour.line, width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return [
    { ...common, space: 90 },
    { ...common, size: 80, values: (_, marks) => marks.map((mark) => (mark === null ? "" : values(mark))) },
  ];
}

function makeChart(id, options, data) {
  const box = byId(`${id}-chart`);
  box.replaceChildren();
  const date = "{HH}:{mm}:{ss}";
  const plot = new uPlot(
    {
      width: box.clientWidth,
      height: box.clientHeight,
      legend: { show: false },
      padding: [null, 24, null, null],
      tzDate: (seconds) => new Date(1000 * seconds),
      fmtDate: () => uPlot.fmtDate(date),
      ...options,
    },
    data(),
    box,
  );
  return { id, plot, data, box };
}

// The first estimates and intervals are far off: the scale is that of the later ones.
function latestRange([times, ...columns]) {
  const isKnown = (_, k) => columns.some((column) => column[k] !== null);
  const begin = Math.max(0, times.findIndex(isKnown)),
    end = times.findLastIndex(isKnown) + 1;
  const first = end > begin + 10 ? begin + Math.floor((end - begin) / 2) : begin;
  let low = Infinity,
    high = -Infinity;
  for (const column of columns) {
    for (const value of column.slice(first)) {
      if (value !== null && value < low) low = value;
      if (value !== null && value > high) high = value;
    }
  }
  if (low > high) return [0, 1];
  const room = (high - low) * 0.08 || Math.abs(high) * 0.01 || 1;
  return [low - room, high + room];
}

function showCharts() {
  for (const { id, plot, data, box } of charts) {
    if (plot.width !== box.clientWidth) plot.setSize({ width: box.clientWidth, height: box.clientHeight });
    const columns = data();
    plot.setData(columns);
    box.classList.toggle(
      "empty",
      columns.slice(1).every((column) => column.every((value) => value === null)),
    );
    read(plot, id);
  }
}
