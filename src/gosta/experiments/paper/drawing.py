"""How the paper's figures are drawn: as wide as a journal's page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gosta.experiments.paper.model import GRAPHS, ByGraph, Curve
from gosta.views.plots import COLOURS, DASHES, ErrorCurve, draw_curve, matplotlib, new_figure

WIDTH = 7.0  # inches of a page's two columns
TOP = 3.0  # relative error at the upper edge of a picture
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "gosta",
}
NAMES = {
    "tracking": "tracking",
    "gosta-sync": "GoSta-sync",
    "gosta-async": "GoSta-async",
    "u2": "U2-gossip",
    "flooding": "gossip-flooding",
    "master-node": "master-node",
}


def panels(rows: int, columns: int, height: float = 2.0) -> tuple[Any, Any]:
    """A figure with a grid of axes, all with the same scales."""
    figure = new_figure(WIDTH, height * rows + 0.45, dpi=300)
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    return figure, axes


def error_curve(ax: Any, protocol: str, curve: Curve, against: str = "iterations") -> None:
    """The mean error and, as a band, the spread over nodes."""
    shown = ErrorCurve(protocol, getattr(curve, against), curve.error, curve.spread)
    draw_curve(ax, shown, NAMES[protocol], linewidth=1.2)


def theory_curves(ax: Any, protocol: str, at: Any, curves: dict[str, Any]) -> None:
    """What theory says of a protocol; where a bound leaves the picture, it says where to."""
    for name, values in curves.items():
        ax.plot(at, values, color=COLOURS[protocol], linestyle=DASHES[name], linewidth=0.8)
        if name == "bound" and values[-1] > TOP:
            ax.text(
                0.98,
                0.97,
                f"bound ends at {100 * values[-1]:,.0f} %",
                transform=ax.transAxes,
                ha="right",
                va="top",
                fontsize=6.5,
                color=COLOURS[protocol],
            )


def finish(figure: Any, axes: Any, titles: Sequence[str], x: str, rows: Sequence[str] = ()) -> None:
    """Scales, names and one legend for all panels."""
    ticker = matplotlib("ticker")
    for k, title in enumerate(titles):
        axes[0, k].set_title(title)
        axes[-1, k].set_xlabel(x)
    for k, ax in enumerate(axes[:, 0]):
        ax.set_ylabel(f"{rows[k]}\nrelative error" if rows else "relative error")
    for ax in axes.ravel():
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        ax.xaxis.set_major_formatter(ticker.EngFormatter(sep=" "))
        ax.grid(alpha=0.3, linewidth=0.4)
        ax.margins(x=0.02)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)


def theory_legend(ax: Any, names: Sequence[str]) -> None:
    """Explain the dashes, in no protocol's colour."""
    for name in names:
        ax.plot([], [], color="0.3", linestyle=DASHES[name], linewidth=0.8, label=name)


def limits(ax: Any, curves: Sequence[Curve]) -> None:
    """Show all measured curves."""
    low = min(float(np.nanmin(curve.error[curve.error > 0])) for curve in curves)
    ax.set_ylim(low / 3, TOP)


def by_graph(found: ByGraph, title: str, against: str = "iterations", scale: str = "linear") -> Any:
    """Curves by protocol in a panel for each network."""
    figure, axes = panels(1, 3, 2.2)
    axes[0, 0].set_xscale(scale)
    for ax, curves in zip(axes[0], found.values(), strict=True):
        for name, curve in curves.items():
            error_curve(ax, name, curve, against)
    limits(axes[0, 0], [curve for curves in found.values() for curve in curves.values()])
    axis = "iterations" if against == "iterations" else "numbers sent"
    finish(figure, axes, [GRAPHS[graph] for graph in found], axis, [title])
    return figure
