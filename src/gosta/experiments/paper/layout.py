"""Layout of the paper's figures: as wide as a journal's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gosta.experiments.paper.model import GRAPHS, Against, ByGraph, ErrorHistory
from gosta.runtime.arrays import Floats, Integers
from gosta.theory.curves import BOUND
from gosta.views.numbers import percent
from gosta.views.plots import COLOURS, DASHES, ErrorCurve, draw_curve, new_figure, set_scales

WIDTH_INCHES = 7.0  # two columns of a page
DPI = 300
MAX_LEGEND_COLUMNS = 6  # with more names, the legend has two lines
MAX_ERROR = 3.0  # relative error at the upper edge of a figure
STYLE = {
    **dict.fromkeys(("font.size", "axes.titlesize", "axes.labelsize"), 8),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 7),
    "legend.fontsize": 7.5,
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    "svg.fonttype": "none",
    "svg.hashsalt": "gosta",
}
NAMES = {
    "carried-means": "carried-means",
    "tracking": "tracking",
    "gosta-sync": "GoSta-sync",
    "gosta-async": "GoSta-async",
    "u2": "U2-gossip",
    "flooding": "gossip-flooding",
    "master-node": "master-node",
}


def make_panels(rows: int, columns: int, height: float = 2.0) -> tuple[Any, Any]:
    """Return a figure and its grid of axes, which share their scales."""
    figure = new_figure(WIDTH_INCHES, height * rows + 0.45, dpi=DPI)
    return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)


def draw_history(
    ax: Any, protocol: str, history: ErrorHistory, against: Against = "iterations"
) -> None:
    """Draw the mean error and a band for the spread over nodes."""
    curve = ErrorCurve(protocol, history.against(against), history.error, history.spread)
    draw_curve(ax, curve, NAMES[protocol], linewidth=1.2)


def draw_theory(ax: Any, protocol: str, times: Integers, curves: Mapping[str, Floats]) -> None:
    """Draw theoretical errors; where a bound leaves the figure, a text says where it ends."""
    for kind, values in curves.items():
        ax.plot(times, values, color=COLOURS[protocol], linestyle=DASHES[kind], linewidth=0.8)
        if kind == BOUND and values[-1] > MAX_ERROR:
            text = f"bound ends at {percent(values[-1], ',.0f')}"
            style = {"ha": "right", "va": "top", "fontsize": 6.5, "color": COLOURS[protocol]}
            ax.text(0.98, 0.97, text, transform=ax.transAxes, **style)


def add_theory_legend(ax: Any, kinds: Sequence[str]) -> None:
    """Explain the dashes of theoretical curves, in grey."""
    for kind in kinds:
        ax.plot([], [], color="0.3", linestyle=DASHES[kind], linewidth=0.8, label=kind)


def set_limits(ax: Any, histories: Sequence[ErrorHistory]) -> None:
    """Choose the range of errors so that all histories are visible."""
    low = min(float(np.nanmin(history.error[history.error > 0])) for history in histories)
    ax.set_ylim(low / 3, MAX_ERROR)


def finish(
    figure: Any, axes: Any, titles: Sequence[str], x_label: str, row_titles: Sequence[str]
) -> None:
    """Set scales and labels, and add one legend for all panels."""
    for k, title in enumerate(titles):
        axes[0, k].set_title(title)
        axes[-1, k].set_xlabel(x_label)
    for ax, title in zip(axes[:, 0], row_titles, strict=True):
        ax.set_ylabel(f"{title}\nrelative error")
    for ax in axes.ravel():
        set_scales(ax, log_x=ax.get_xscale() == "log")
        ax.margins(x=0.02)
    handles, names = axes[0, 0].get_legend_handles_labels()
    columns = len(names) if len(names) <= MAX_LEGEND_COLUMNS else -(-len(names) // 2)
    figure.legend(handles, names, loc="outside upper center", ncols=columns, frameon=False)


def draw_by_graph(
    histories: ByGraph, title: str, against: Against = "iterations", x_scale: str = "linear"
) -> Any:
    """Draw the histories of all protocols in a panel for each network."""
    figure, axes = make_panels(1, 3, 2.2)
    axes[0, 0].set_xscale(x_scale)
    for ax, by_protocol in zip(axes[0], histories.values(), strict=True):
        for name, history in by_protocol.items():
            draw_history(ax, name, history, against)
    set_limits(
        axes[0, 0],
        [history for by_protocol in histories.values() for history in by_protocol.values()],
    )
    x_label = "iterations" if against == "iterations" else "numbers sent"
    finish(figure, axes, [GRAPHS[graph] for graph in histories], x_label, [title])
    return figure
