"""Pictures of a study: curves with bands, and forest plots of values with their intervals.

The functions take plain arrays and texts, so that commands, notebooks and reports share them.
Bands are pale for intervals, which are about the population, and darker for brackets, in which the
value over the rows lies for certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.views.numbers import number, percent, short, short_interval

# Okabe and Ito's palette and dashes, so that curves can be told apart in grey print, too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2)))
GREY = "#777777"
INTERVAL_OPACITY, BRACKET_OPACITY = 0.15, 0.35
BINS = "bins of rows"  # in the legend, where points need no other name
ROWS = "number of rows"  # in the legend, of bars
MOST_MARKED = 30  # points that are marked; a curve of more is a line
MOST_DRAWN = 2000  # points of a curve; more cannot be seen
FONT = "small"  # of texts inside a picture, relative to those at the axes
MOST_ENTRIES = 6  # of a legend; one of more is smaller
LEAST_TICKS = 4  # of a risk table; with fewer there are others between them
TICK_ROOM = 0.09  # between ticks, relative to the axis
FOREST_MARGIN = 0.08  # beside the ends of intervals, relative to the axis
ROOM = 1.05  # of an axis, relative to the largest value


class Curve(NamedTuple):
    """Points of a curve; NaN where it has no value."""

    x: Floats
    y: Floats
    label: str = ""  # in the legend
    low: Floats | None = None  # ends of the intervals
    high: Floats | None = None
    bracket: tuple[Floats, Floats] | None = None
    counts: Floats | None = None  # rows that each point rests on
    at_risk: tuple[Floats, Sequence[str]] | None = None  # times, and how many are at risk then
    is_binned: bool = False  # each point stands for a bin: drawn as points with their intervals
    is_sampled: bool = False  # known at these points only, with steps between them

    @property
    def tops(self) -> Floats:
        """The highest that is drawn at each point."""
        return self.y if self.high is None else np.fmax(self.y, self.high)


class Line(NamedTuple):
    """A line of a forest plot."""

    label: str
    value: float
    low: float
    high: float
    size: str = ""  # on how many rows it rests, such as "n = 120"; "": not written
    is_summary: bool = False  # over all rows, drawn below the groups as a diamond

    @property
    def name(self) -> str:
        """What stands left of it."""
        return f"{self.label}\n({self.size})" if self.size else self.label

    @property
    def text(self) -> str:
        """What stands right of it: the value, and its interval if it has one."""
        ends = (self.low, self.high)
        if not np.isfinite(ends).all():
            return short(self.value)
        return f"{short(self.value, *ends)} ({short_interval(self.value, *ends)})"


class Style(NamedTuple):
    """How curves of one kind are drawn."""

    title: str
    diagonal: str = ""  # what lies on the diagonal, in the legend
    line: str = ""  # what the horizontal line is, in the legend
    is_share: bool = True  # both axes go from 0 to 1
    ends: tuple[tuple[float, float], ...] = ()  # points that every such curve has
    has_steps: bool = False
    has_histogram: bool = False  # of the rows that points rest on
    has_risk_table: bool = False  # of rows at risk, below


PLAIN = Style("", is_share=False)
CALIBRATION = Style("Calibration curve", diagonal="ideal", is_share=False, has_histogram=True)
# By the name of the statistic; others are drawn as they are.
STYLES = {
    "roc-curve": Style("ROC curve", diagonal="chance", ends=((0.0, 0.0), (1.0, 1.0))),
    "precision-recall-curve": Style("Precision-recall curve", line="prevalence"),
    "calibration-curve": CALIBRATION,
    "smooth-calibration-curve": CALIBRATION,
    "survival-calibration": CALIBRATION._replace(title="Calibration at the horizon"),
    "survival-smooth-calibration": CALIBRATION._replace(title="Calibration at the horizon"),
    "net-benefit": Style("Decision curve", line="none", is_share=False),
    "kaplan-meier": Style(
        "Kaplan-Meier curve",
        is_share=False,
        ends=((0.0, 1.0),),
        has_steps=True,
        has_risk_table=True,
    ),
    "lorenz-curve": Style("Lorenz curve", diagonal="equality", ends=((0.0, 0.0), (1.0, 1.0))),
}


def draw_curves(
    ax: Any,
    kind: str,
    curves: Sequence[Curve],
    axes: tuple[str, str],
    line: float | None = None,
    others: Sequence[Curve] = (),
    level: float | None = None,
) -> None:
    """Draw curves of one kind, the name of a statistic.

    `line` is where the horizontal line is, such as the prevalence; `others` are curves to compare
    with, such as the net benefit of treating all; `level` is that of the intervals.
    """
    style = STYLES.get(kind, PLAIN)
    for place, curve in enumerate(curves):
        _draw(ax, _shown(curve, style), style, place)
    for curve in others:
        ax.plot(curve.x, curve.y, color=GREY, linestyle="-", linewidth=1.2, label=curve.label)
    _set_limits(ax, style, curves, others)
    if style.diagonal:
        ax.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle=DASHES[1], zorder=1)
        ax.plot([], [], color=GREY, linewidth=1, linestyle=DASHES[1], label=style.diagonal)
    if style.line and line is not None:
        name = style.line if line == 0 else f"{style.line} {number(line, 3)}"
        ax.axhline(line, color=GREY, linewidth=1, linestyle=DASHES[1], label=name, zorder=1)
    has_brackets = any(c.bracket is not None and np.isfinite(c.bracket).any() for c in curves)
    bands = {BRACKET_OPACITY: "bracket"} if has_brackets else {}
    if level is not None and any(curve.low is not None for curve in curves):
        bands[INTERVAL_OPACITY] = f"{percent(level, 'g')} interval"
    for opacity, name in bands.items():
        ax.fill_between([], [], [], color=GREY, alpha=opacity, linewidth=0, label=name)
    if style.has_histogram:
        _draw_histogram(ax, curves)
    if style.has_risk_table:
        _write_risk_table(ax, curves)
    horizontal, vertical = axes
    ax.set_xlabel(horizontal)
    ax.set_ylabel(vertical)
    finish(ax, "upper left" if style.has_histogram else "best")


def finish(ax: Any, legend: str = "best") -> None:
    """Add what all pictures have: a faint grid, and a legend if there is something in it."""
    ax.grid(alpha=0.3, linewidth=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    entries = len(ax.get_legend_handles_labels()[1])
    if entries:
        size = FONT if entries <= MOST_ENTRIES else "x-small"
        ax.legend(frameon=False, fontsize=size, loc=legend)


def _shown(curve: Curve, style: Style) -> Curve:
    """Return a curve in order, with its ends, and without points that cannot be told apart."""
    order = np.argsort(curve.x, kind="stable")
    chosen = order[np.isfinite(curve.y[order])]
    if len(chosen) > MOST_DRAWN:
        chosen = chosen[np.linspace(0, len(chosen) - 1, MOST_DRAWN).round().astype(int)]
    first = [end for end in style.ends if not len(chosen) or end[0] < curve.x[chosen[0]]]
    last = [end for end in style.ends if len(chosen) and end[0] > curve.x[chosen[-1]]]

    def extended(values: Floats, axis: int) -> Floats:
        before, after = ([end[axis] for end in ends] for ends in (first, last))
        return np.concatenate([before, values[chosen], after])

    bracket = curve.bracket
    return Curve(
        extended(curve.x, 0),
        extended(curve.y, 1),
        curve.label,
        None if curve.low is None else extended(curve.low, 1),
        None if curve.high is None else extended(curve.high, 1),
        None if bracket is None else (extended(bracket[0], 1), extended(bracket[1], 1)),
        is_binned=curve.is_binned,
        is_sampled=curve.is_sampled,
    )


def _draw(ax: Any, curve: Curve, style: Style, place: int) -> None:
    look: dict[str, Any] = {"color": COLOURS[place % len(COLOURS)]}
    if curve.is_binned:
        _draw_bins(ax, curve, look)
        return
    has_steps = style.has_steps and not curve.is_sampled
    step = {"step": "post"} if has_steps else {}
    if curve.low is not None and curve.high is not None:
        opacity = {"alpha": INTERVAL_OPACITY, "linewidth": 0}
        ax.fill_between(curve.x, curve.low, curve.high, **look, **opacity, **step)
    if curve.bracket is not None:
        opacity = {"alpha": BRACKET_OPACITY, "linewidth": 0}
        ax.fill_between(curve.x, *curve.bracket, **look, **opacity, **step)
    look |= {"linestyle": DASHES[place % len(DASHES)], "linewidth": 1.6}
    if has_steps:
        look["drawstyle"] = "steps-post"
    elif len(curve.x) <= MOST_MARKED:
        look |= {"marker": "o", "markersize": 3.5}
    ax.plot(curve.x, curve.y, label=curve.label or None, **look)


def _draw_bins(ax: Any, curve: Curve, look: dict[str, Any]) -> None:
    """Draw points with thin lines for intervals, and thick ones for brackets."""
    if curve.low is not None and curve.high is not None:
        ax.vlines(curve.x, curve.low, curve.high, linewidth=1, **look)
    if curve.bracket is not None:
        ax.vlines(curve.x, *curve.bracket, linewidth=4, alpha=BRACKET_OPACITY, **look)
    ax.plot(curve.x, curve.y, "o", markersize=4.5, label=curve.label or BINS, **look)


def _set_limits(ax: Any, style: Style, curves: Sequence[Curve], others: Sequence[Curve]) -> None:
    if style.is_share:
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
    elif style.diagonal:
        most = max(float(np.nanmax([*curve.x, *curve.tops])) for curve in curves)
        ax.set(xlim=(0, ROOM * most), ylim=(0, ROOM * most), aspect="equal")
    elif style.has_steps:
        ax.set(xlim=(0, None), ylim=(0, 1.01))
    elif style.line:  # what is far below nothing is of no use either
        highest = [curve.tops for curve in curves] + [curve.y for curve in others]
        most = max(float(np.nanmax(values)) for values in highest)
        ax.set_ylim(-0.25 * most, ROOM * most)


def _draw_histogram(ax: Any, curves: Sequence[Curve]) -> None:
    """Draw how many rows points rest on, as bars at the lower edge with an axis of their own."""
    counted = [curve for curve in curves if curve.counts is not None]
    if not counted:
        return
    bars = ax.inset_axes((0, 0, 1, 0.12), sharex=ax, zorder=0)
    for place, curve in enumerate(counted):
        known = np.isfinite(curve.y)
        width = 0.012 * np.ptp(ax.get_xlim())
        bars.bar(
            curve.x[known] + place * width,
            np.asarray(curve.counts)[known],
            width=width,
            color=COLOURS[place % len(COLOURS)],
            alpha=0.45,
        )
    bars.set_axis_off()
    ax.fill_between([], [], [], color=COLOURS[0], alpha=0.45, linewidth=0, label=ROWS)


def _write_risk_table(ax: Any, curves: Sequence[Curve]) -> None:
    """Write below the axis how many rows are at risk at its ticks, a line for each curve."""
    tables = [(curve.label, *curve.at_risk) for curve in curves if curve.at_risk is not None]
    if not tables:
        return
    ticks = _time_ticks(ax, tables[0][1])
    ax.set_xticks(ticks, [number(time, 4) for time in ticks])
    _write_below(ax, 0.0, 0, "at risk", "right")
    for line, (label, times, rows) in enumerate(tables):
        row = line + (len(curves) > 1)
        if len(curves) > 1:
            _write_below(ax, 0.0, row, label, "right")
        for time, text in zip(times, rows, strict=True):
            _write_below(ax, time, row, text, "center")


def _time_ticks(ax: Any, times: Floats) -> list[float]:
    """Return times of the risk table; where they are few, round ones far from them, too."""
    low, high = ax.get_xlim()
    ticks = times.tolist()
    for time in ax.get_xticks() if len(ticks) < LEAST_TICKS else ():
        if low <= time <= high and min(abs(time - tick) for tick in ticks) > TICK_ROOM * high:
            ticks.append(float(time))
    return sorted(ticks)


def _write_below(ax: Any, x: float, row: int, text: str, align: str) -> None:
    """Write a text below the horizontal axis' name, in a row that counts from 0."""
    shift = -18.0 if align == "right" else 0.0  # points, so that it ends left of the first number
    ax.annotate(
        text,
        (x, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(shift, -36.0 - 11.0 * row),
        textcoords="offset points",
        ha=align,
        va="top",
        fontsize=FONT,
    )


def draw_forest(ax: Any, lines: Sequence[Line], reference: float | None = None) -> None:
    """Draw values with their intervals under each other, the summary as a diamond.

    `reference` is the value that says nothing, such as 0 of a difference.
    """
    places = np.arange(len(lines))[::-1]
    for place, line in zip(places, lines, strict=True):
        colour = COLOURS[1] if line.is_summary else COLOURS[0]
        marker = "D" if line.is_summary else "s"
        if np.isfinite([line.low, line.high]).all():
            ax.plot((line.low, line.high), [place, place], color=colour, linewidth=1.6)
        ax.plot(line.value, place, marker=marker, color=colour, markersize=6, linestyle="")
        at = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": FONT}
        ax.text(1.02, place, line.text, **at)
    if reference is not None:
        ax.axvline(reference, color=GREY, linewidth=1, linestyle=DASHES[1], zorder=1)
    ax.set_yticks(places, [line.name for line in lines], fontsize=FONT)
    ax.set_ylim(-0.7, len(lines) - 0.3)
    ax.margins(x=FOREST_MARGIN)
    ax.tick_params(axis="y", length=0)
    finish(ax)
    ax.grid(visible=False, axis="y")
