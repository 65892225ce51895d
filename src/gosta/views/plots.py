"""Plots of errors: a colour and marker for each protocol, a band for the spread, dashes for theory.

The functions take arrays and labels, so that simulations, sweeps and the paper's experiments share
them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.runtime.extras import require
from gosta.runtime.files import write_atomically
from gosta.views.numbers import percent

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = {
    "carried-means": "#882255",
    "tracking": "#AA7744",
    "gosta-async": "#0072B2",
    "gosta-sync": "#009E73",
    "u2": "#D55E00",
    "u1": "#E69F00",
    "averaging": "#56B4E9",
    "flooding": "#CC79A7",
    "master-node": "#000000",
    "relay": "#332288",
    "gradient-tracking": "#882255",
    "dual-averaging": "#0072B2",
    "dual-averaging-sync": "#009E73",
}
# So that protocols can be told apart in grey print, too.
MARKERS = {
    "carried-means": "o",
    "tracking": "s",
    "gosta-async": "^",
    "gosta-sync": "v",
    "u2": "D",
    "u1": "P",
    "averaging": "X",
    "flooding": "<",
    "master-node": ">",
    "relay": "*",
    "gradient-tracking": "o",
    "dual-averaging": "^",
    "dual-averaging-sync": "v",
}
OTHER_MARKERS = "phd8"  # of users' own protocols
MARKED = 7  # points of a curve, about, that have its marker
# Ways to keep rows private; lines without a mark do not depend on epsilon.
PRIVACY_COLOURS = {
    "rows one by one": "#D55E00",
    "each site noises": "#E69F00",
    "masks + shared noise": "#0072B2",
    "no noise": "#009E73",
    "sampling standard error": "#777777",
}
# Theory is drawn in its protocol's colour.
DASHES = {"predicted": (0, (5, 2)), "expectation": (0, (1, 1)), "bound": (0, (6, 2, 1, 2))}


class ErrorCurve(NamedTuple):
    """Mean error over nodes at each checkpoint, and its standard deviation over nodes."""

    protocol: str  # selects colour and marker
    x: Floats  # iterations, or numbers sent
    mean: Floats
    spread: Floats


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib, which is an optional dependency."""
    return require(f"matplotlib.{module}", "plot", "drawing plots")


def new_figure(width: float, height: float, dpi: int = 150) -> Any:
    """Return an empty figure, with width and height in inches."""
    return matplotlib("figure").Figure(figsize=(width, height), layout="constrained", dpi=dpi)


def shown_figure(width: float, height: float) -> Any:
    """Return an empty figure that notebooks show, and scripts with ``pyplot.show()``.

    pyplot knows of it, so that users see and close it like figures of other packages.
    """
    return matplotlib("pyplot").figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, according to the file's ending."""
    content, kind = io.BytesIO(), path.suffix[1:].lower()
    # So that a file depends on its content only.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    figure.savefig(content, format=kind, metadata=undated.get(kind))
    write_atomically(path, content.getvalue())


def marker(protocol: str) -> str:
    """Return the marker of a protocol; the same each time for one of a user's own.

    >>> marker("u2"), marker("mine") in OTHER_MARKERS
    ('D', True)
    """
    return MARKERS.get(protocol) or OTHER_MARKERS[sum(map(ord, protocol)) % len(OTHER_MARKERS)]


def draw_curve(
    ax: Any,
    curve: ErrorCurve,
    label: str | None = None,
    colour: Any = None,
    linewidth: float = 1.5,
    band_opacity: float = 0.15,
) -> None:
    """Draw the mean error and a band for the spread over nodes.

    The band extends as far below the mean as above it on a logarithmic axis, where mean - spread
    may not exist.
    """
    mean = np.where(curve.mean > 0, curve.mean, np.nan)  # 0 has no place on a logarithmic axis
    every = max(1, len(mean) // MARKED)
    place = [*MARKERS, curve.protocol].index(curve.protocol)
    # So that curves that lie on each other show all their markers.
    first = 3 * every * place // len(MARKERS) % every
    (line,) = ax.plot(
        curve.x, mean, label=label, linewidth=linewidth,
        color=colour or COLOURS.get(curve.protocol),
        marker=marker(curve.protocol), markersize=3.5 * linewidth, markevery=(first, every),
    )  # fmt: skip
    if band_opacity:
        factor = 1 + curve.spread / mean
        ax.fill_between(
            curve.x,
            mean / factor,
            mean * factor,
            color=line.get_color(),
            alpha=band_opacity,
            linewidth=0,
        )


def set_scales(ax: Any, relative: bool = True, log_x: bool = False) -> None:
    """Make the error axis logarithmic, in per cent if relative; abbreviate numbers on the other."""
    abbreviate = matplotlib("ticker").EngFormatter()
    ax.set_yscale("log")
    ax.set_xscale("log" if log_x else "linear")
    if relative:
        _label_logarithmic(ax.yaxis, lambda value: percent(value, "g"))
    if log_x:
        _label_logarithmic(ax.xaxis, abbreviate)
    else:
        ax.xaxis.set_major_formatter(abbreviate)
    ax.grid(alpha=0.3, linewidth=0.5)


def _label_logarithmic(axis: Any, write: Callable[[float], str]) -> None:
    """Label the ticks that matplotlib labels on a logarithmic axis, in our own format."""
    base = matplotlib("ticker").LogFormatter

    class Formatter(base):  # type: ignore[misc, valid-type]
        def __call__(self, value: float, position: int | None = None) -> str:
            return write(value) if super().__call__(value, position) else ""

    axis.set_major_formatter(Formatter(labelOnlyBase=False))
    axis.set_minor_formatter(Formatter(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))


def draw_theory(ax: Any, curve: ErrorCurve, theory: Mapping[str, Floats]) -> None:
    """Add theoretical curves, by kind, to the plot of a measured one.

    A bound may begin far above everything else: the axis is extended only to where it ends.
    """
    colour = COLOURS.get(curve.protocol)
    known = ax.get_legend_handles_labels()[1]
    top = 10 * np.nanmax(curve.mean)
    for kind, values in theory.items():
        ax.plot(curve.x, values, color=colour, linestyle=DASHES[kind], linewidth=1)
        if kind not in known:
            ax.plot([], [], label=kind, color="0.3", linestyle=DASHES[kind], linewidth=1)
        if np.isfinite(values[-1]):
            top = max(top, 3 * values[-1])
    ax.set_ylim(top=max(top, ax.get_ylim()[1] if known[-1] in theory else top))
    ax.legend(frameon=False)


def draw_privacy(
    ax: Any,
    epsilons: Sequence[float],
    errors: Mapping[str, Sequence[float]],
    lines: Mapping[str, float],
    relative: bool = False,
) -> None:
    """Draw errors over epsilon for several ways to keep rows private.

    Errors that do not depend on epsilon are lines; relative errors are shown in per cent.
    """
    for name, values in errors.items():
        ax.plot(epsilons, values, label=name, color=PRIVACY_COLOURS[name], marker="o", markersize=3)
    for name, value in lines.items():
        if value > 0:  # 0 has no place on a logarithmic axis
            ax.axhline(
                value, label=name, color=PRIVACY_COLOURS[name], linestyle=(0, (4, 2)), linewidth=1
            )
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlabel("epsilon")
    ax.set_ylabel("relative error, root mean square" if relative else "root mean squared error")
    if relative:
        _label_logarithmic(ax.yaxis, lambda value: percent(value, "g"))
    ax.grid(alpha=0.3, linewidth=0.5)
