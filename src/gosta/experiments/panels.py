"""Plots of a sweep: error curves, or the last errors against a number that was swept.

There is a row of panels for each statistic and data set, and a column for each graph. Protocols
differ by colour and marker, other settings that were swept by shade; seeds are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gosta.errors import InputError
from gosta.experiments.jobs import KEYS, NAMED, Sweep, setting_text
from gosta.graphs import is_family, parse_family
from gosta.graphs.changing import is_changing
from gosta.views import numbers
from gosta.views.plots import (
    COLOURS,
    ErrorCurve,
    draw_curve,
    marker,
    matplotlib,
    new_figure,
    set_scales,
)

if TYPE_CHECKING:
    import pandas as pd

MAX_PANELS = 150
MAX_TICKS = 9  # values of a swept number that are written at the axis
ITERATIONS = "iterations"
LEAST_VALUES = 3  # of a swept number, for which errors are drawn against it unless told otherwise
LEAST_RATIO = 8.0  # of the largest to the smallest value, for a logarithmic axis
Figure = Callable[[float, float], Any]  # makes one, given its width and height


class Layout(NamedTuple):
    """What is drawn where."""

    against: str  # "iterations", or the swept number
    values: list[float]  # of that number
    rows: list[tuple[str, str]]  # data and statistic of each row of panels
    columns: list[str]  # the graph of each column
    per_node: bool  # whether iterations are divided by the number of nodes, where these differ
    variants: list[str]  # further settings that were swept, in words; empty if there are none
    omitted: int  # rows for which there is no room


def draw(
    frame: pd.DataFrame,
    title: str,
    plan: Sweep,
    against: str | None = None,
    figure: Figure = new_figure,
) -> Any:
    """Draw the results of a sweep; return the panels, an array of axes.

    Parameters
    ----------
    frame
        Results, as `ResultFolder.frame` returns them.
    title
        Begin of the title.
    plan
        The jobs.
    against
        As for `choose_axis`.
    figure
        Function that makes the figure.
    """
    frame = frame[frame["component"] == 0]
    against = choose_axis(plan, against)
    if against not in (ITERATIONS, *plan.swept):
        frame = _with_parameter(frame, against)
    if against != ITERATIONS:
        frame = frame.loc[frame.groupby("job", sort=False)["iteration"].idxmax()]
    others = [name for name in plan.swept if name not in (*NAMED, "seed", against)]
    jobs = frame.drop_duplicates("job").set_index("job")[others].astype(object)
    frame = frame.assign(
        variant=frame["job"].map({job: _describe(others, row) for job, row in jobs.iterrows()})
    )
    layout = _lay_out(frame, against, bool(others))
    colours = _colours(list(dict.fromkeys(frame["protocol"])))
    width, height = max(5.2, 1.0 + 3.0 * len(layout.columns)), 1.3 + 2.2 * len(layout.rows)
    made = figure(width, height)
    panels = made.subplots(
        len(layout.rows), len(layout.columns), sharex=True, sharey="row", squeeze=False
    )
    for (data, statistic), line in zip(layout.rows, panels, strict=True):
        subject = frame[(frame["data"] == data) & (frame["statistic"] == statistic)]
        for graph, ax in zip(layout.columns, line, strict=True):
            _draw_panel(ax, subject[subject["graph"] == graph], layout, colours)
        kind = "relative" if subject["relative"].all() else "absolute"
        line[0].set_ylabel(f"{statistic}\n{data}\n{kind} error", fontsize=8)
        line[0].set_ylim(bottom=_floor(subject))
    x_label = "iterations / number of nodes" if layout.per_node else "iterations (edges drawn)"
    for graph, top, bottom in zip(layout.columns, panels[0], panels[-1], strict=True):
        top.set_title(graph, fontsize=9)
        bottom.set_xlabel(x_label if against == ITERATIONS else against, fontsize=8)
    _add_legend(made, width, colours, layout.variants)
    made.suptitle(f"{title}: {_caption(frame, layout)}", fontsize=9)
    return panels


def choose_axis(plan: Sweep, against: str | None) -> str:
    """Return what errors are drawn against: "iterations", or the name of a number that was swept.

    By default it is the number with most values, if it has at least three.
    """
    swept = {name: {job[name] for job in plan.jobs} for name in plan.swept if name != "seed"}
    candidates = {name: values for name, values in swept.items() if KEYS[name].column != "string"}
    for parameters in map(_parameters, dict.fromkeys(job["graph"] or "" for job in plan.jobs)):
        for name, value in parameters.items():
            candidates.setdefault(name, set()).add(value)
    counts = {name: len(values) for name, values in candidates.items() if len(values) > 1}
    if against is None:
        most = max(counts, key=lambda name: counts[name], default=ITERATIONS)
        return most if counts.get(most, 0) >= LEAST_VALUES else ITERATIONS
    if against not in (ITERATIONS, *counts):
        names = ", ".join([ITERATIONS, *counts])
        raise InputError(
            f"against = {against!r} is not a number that is swept; choose from: {names}"
        )
    return against


def _parameters(graph: str) -> dict[str, float]:
    """Return the parameters in the name of a graph of a family; none for other graphs."""
    return parse_family(graph)[1] if is_family(graph) and not is_changing(graph) else {}


def _with_parameter(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return results whose graphs have a parameter, as a column instead of a part of names."""
    values = frame["graph"].map(lambda graph: _parameters(graph).get(name))
    names = frame["graph"].map(lambda graph: _without(graph, name))
    return frame.assign(**{name: values, "graph": names})[values.notna()]


def _without(graph: str, parameter: str) -> str:
    """Return the name of a graph without a parameter of its family.

    >>> _without("watts-strogatz:k=8,p=0.1", "k")
    'watts-strogatz:p=0.1'
    """
    family, _, parameters = graph.partition(":")
    left = [part for part in parameters.split(",") if part.partition("=")[0] != parameter]
    return f"{family}:{','.join(left)}" if left else family


def _describe(names: Sequence[str], values: Sequence[Any]) -> str:
    parts = [
        (name, value)
        for name, value in zip(names, values, strict=True)
        if value is not None and value == value
    ]
    return ", ".join(
        f"{name} = {setting_text(name, value)}" for name, value in parts
    ) or "at random" * bool(names)


def _lay_out(frame: pd.DataFrame, against: str, has_variants: bool) -> Layout:
    rows = list(dict.fromkeys(zip(frame["data"], frame["statistic"], strict=True)))
    columns = list(dict.fromkeys(frame["graph"]))
    room = max(1, MAX_PANELS // len(columns))
    variants = list(dict.fromkeys(frame["variant"])) if has_variants else []
    values = [] if against == ITERATIONS else sorted(map(float, frame[against].unique()))
    per_node = frame["nodes"].nunique() > 1
    return Layout(
        against, values, rows[:room], columns, per_node, variants, max(0, len(rows) - room)
    )


def _draw_panel(ax: Any, here: pd.DataFrame, layout: Layout, colours: dict[str, str]) -> None:
    for (protocol, variant), curves in here.groupby(["protocol", "variant"], sort=False):
        colour, count = colours[protocol], len(layout.variants)
        shade = _shade(colour, layout.variants.index(variant), count) if count else colour
        curve = _curve(protocol, curves, layout)
        draw_curve(ax, curve, colour=shade, linewidth=1.4, band_opacity=0.13 * (not count))
    if here.empty:
        ax.text(
            0.5,
            0.5,
            "no result",
            transform=ax.transAxes,
            ha="center",
            va="center",
            fontsize=8,
            color="0.5",
        )
    elif layout.against == ITERATIONS:
        if (here["error"] > 0).any():
            # Nodes that stop by themselves are read in equal ratios, too.
            is_log = (here["spacing"] == "log") | here["until"].notna()
            set_scales(ax, here["relative"].all(), is_log.all())
    else:
        _set_number_axis(ax, here, layout)
    ax.tick_params(labelsize=7, which="both")


def _curve(protocol: str, rows: pd.DataFrame, layout: Layout) -> ErrorCurve:
    """Return the mean error over seeds, against iterations or a number that was swept."""
    is_curve = layout.against == ITERATIONS
    mean = rows.groupby("iteration" if is_curve else layout.against)[["error", "spread"]].mean()
    x = mean.index.to_numpy(dtype=float) / (
        rows["nodes"].iloc[0] if is_curve and layout.per_node else 1
    )
    return ErrorCurve(protocol, x, mean["error"].to_numpy(), mean["spread"].to_numpy())


def _set_number_axis(ax: Any, here: pd.DataFrame, layout: Layout) -> None:
    """Write the swept numbers at the axis; it is logarithmic if they differ by a large factor."""
    values = layout.values
    is_log = values[0] > 0 and values[-1] >= LEAST_RATIO * values[0]
    if (here["error"] > 0).any():
        set_scales(ax, here["relative"].all(), is_log)
    shown = values[:: -(-len(values) // MAX_TICKS)]
    is_setting = layout.against in KEYS  # otherwise it is a parameter of a family of graphs
    ax.set_xticks(
        shown,
        [setting_text(layout.against, value) if is_setting else f"{value:g}" for value in shown],
    )
    ax.set_xticks([], minor=True)


def _floor(subject: pd.DataFrame) -> float | None:
    """Return the lower end of the axis, which cuts off errors a thousand times below most."""
    errors = subject.loc[subject["error"] > 0]
    if errors.empty:
        return None
    usual = errors.groupby("job")["error"].last().median()
    return float(max(errors["error"].min() / 2.5, usual / 1000))


def _caption(frame: pd.DataFrame, layout: Layout) -> str:
    runs, seeds = int(frame["runs"].max()), frame["seed"].nunique()
    parts = [
        f"mean of {numbers.count(runs, 'run')}"
        + (f" for each of {seeds} seeds" if seeds > 1 else "")
    ]
    parts += ["at the last checkpoint"] * (layout.against != ITERATIONS)
    parts += ["bands: spread over nodes"] * (not layout.variants)
    return "; ".join(
        [*parts, *[f"{layout.omitted} more rows are not shown"] * bool(layout.omitted)]
    )


def _add_legend(
    figure: Any, width: float, colours: dict[str, str], variants: Sequence[str]
) -> None:
    line_2d = matplotlib("lines").Line2D
    keys = [
        line_2d([], [], color=colour, marker=marker(name), label=name)
        for name, colour in colours.items()
    ]
    for k, variant in enumerate(variants):
        keys.append(
            line_2d([], [], color=_shade("#333333", k, len(variants)), linewidth=3, label=variant)
        )
    ncols = min(len(keys), int(width / 1.1))
    figure.legend(handles=keys, loc="outside lower center", ncols=ncols, frameon=False, fontsize=8)


def _colours(protocols: Sequence[str]) -> dict[str, str]:
    others = iter([*(f"C{k}" for k in range(10))] * len(protocols))
    return {name: COLOURS.get(name) or next(others) for name in protocols}


def _shade(colour: str, place: int, count: int) -> Any:
    """Return the colour itself for the last of some settings, paler ones for those before."""
    strength = 1.0 if count == 1 else 0.35 + 0.65 * place / (count - 1)
    return tuple(1 - strength * (1 - part) for part in matplotlib("colors").to_rgb(colour))
