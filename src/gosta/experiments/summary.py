"""Summary of a sweep: records, a table of text, a plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gosta.experiments.study import AXES, Job
from gosta.runtime.extras import require
from gosta.views import numbers, terminal
from gosta.views.plots import COLOURS, ErrorCurve, draw_curve, marker, matplotlib, new_figure, set_scales

if TYPE_CHECKING:
    import pandas as pd

MAX_LINES = 30  # of the table; with more jobs, seeds are averaged
MAX_PANELS = 150  # of the plot
TEXT_AXES = ("data", "statistic", "graph", "protocol")


def records(jobs: Sequence[Job], frame: pd.DataFrame, failed: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a record for each job that finished or failed: its settings and the numbers at its last checkpoint."""
    by_job = dict(list(frame.groupby("job", sort=False)))
    out: list[dict[str, Any]] = []
    for job in jobs:
        settings: dict[str, Any] = {name: getattr(job, name) for name in AXES}
        if job.key in failed:
            out.append({**settings, "failed": failed[job.key]})
        elif job.key in by_job:
            rows = by_job[job.key]
            rows = rows[rows["iteration"] == rows["iteration"].iloc[-1]]
            first = rows.iloc[0]
            values = {name: rows[name].tolist() for name in ("exact", "estimate")}
            out.append(
                {
                    **settings,
                    "n": int(first["n"]),
                    "edges": int(first["edges"]),
                    "options": dict(job.options),
                    "runs": job.runs,
                    "iterations": int(first["iteration"]),
                    **{name: value[0] if len(value) == 1 else value for name, value in values.items()},
                    "error": float(first["error"]),
                    "spread": float(first["spread"]),
                    "relative": bool(first["relative"]),
                    "units": int(first["units"]),
                }
            )
    return out


def as_text(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the last numbers of each job as a table, below the settings that all jobs share, and all failures."""
    pandas = require("pandas", "sim", "summaries of sweeps")
    finished = pandas.DataFrame([record for record in records if "failed" not in record])
    failed = [record for record in records if "failed" in record]
    lines = [] if finished.empty else _table(finished)
    if failed:
        lines.append(f"{numbers.count(len(failed), 'job')} failed:")
    for reason in dict.fromkeys(record["failed"] for record in failed):
        alike = [record for record in failed if record["failed"] == reason]
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        lines += [f"  {_describe(alike[0])}{more}:", f"    {reason}"]
    return "\n".join(lines)


def _table(finished: pd.DataFrame) -> list[str]:
    varied = [name for name in AXES if finished[name].nunique() > 1]
    constant = [name for name in AXES if name not in varied]
    constant += [name for name in ("runs", "iterations") if finished[name].nunique() == 1]
    shared = [f"{name} {_value(finished[name].iloc[0])}" for name in constant]
    if "seed" in varied and len(finished) > MAX_LINES:
        varied.remove("seed")
        shared.append(f"means over {finished['seed'].nunique()} seeds")
    rows = [[*varied, "error", "spread", "numbers sent"]]
    for names, group in finished.groupby(varied, sort=False) if varied else [((), finished)]:
        error, spread, units = (float(group[name].mean()) for name in ("error", "spread", "units"))
        relative = bool(group["relative"].all())
        errors = [numbers.error(value, relative) for value in (error, spread)]
        rows.append([*map(_value, names), *errors, numbers.count(units)])
    right = [k for k, name in enumerate(rows[0]) if name not in TEXT_AXES]
    kinds = {True: "relative error", False: "absolute error where the exact value is 0"}
    kind = ", ".join(kinds[relative] for relative in sorted(finished["relative"].unique(), reverse=True))
    explanation = f"error: {kind}, mean over nodes; spread: its standard deviation over nodes"
    return [", ".join(shared), terminal.columns(rows, right), explanation]


def _describe(record: Mapping[str, Any]) -> str:
    size = "" if record["n"] is None else f", n = {record['n']:,}"
    subject = f"{record['statistic']} of {record['data']}, {record['protocol']} on {record['graph']}"
    return f"{subject}{size}, seed {record['seed']}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def draw(frame: pd.DataFrame, title: str) -> Any:
    """Draw error curves by statistic and graph: protocols by colour and marker, sizes by shade, means over seeds."""
    line_2d = matplotlib("lines").Line2D
    frame = frame[frame["component"] == 0]
    sizes = sorted(frame["n"].unique()) if frame.groupby("data")["n"].nunique().max() > 1 else []
    rows = list(dict.fromkeys(zip(frame["data"], frame["statistic"], strict=True)))
    columns = list(dict.fromkeys(frame["graph"]))
    omitted = max(0, len(rows) - max(1, MAX_PANELS // len(columns)))
    rows = rows[: len(rows) - omitted]
    colours = _colours(list(dict.fromkeys(frame["protocol"])))
    width, height = max(5.2, 1.0 + 3.0 * len(columns)), 1.3 + 2.2 * len(rows)
    figure = new_figure(width, height)
    panels = figure.subplots(len(rows), len(columns), sharex=True, sharey="row", squeeze=False)
    for (data, statistic), line in zip(rows, panels, strict=True):
        subject = frame[(frame["data"] == data) & (frame["statistic"] == statistic)]
        for graph, ax in zip(columns, line, strict=True):
            here = subject[subject["graph"] == graph]
            for (protocol, n), curves in here.groupby(["protocol", "n"], sort=True):
                shade = _shade(colours[protocol], sizes.index(n), len(sizes)) if sizes else colours[protocol]
                _draw_mean(ax, protocol, curves, n if sizes else 1, shade, band=not sizes)
            _set_scales(ax, here)
        kind = "relative" if subject["relative"].all() else "absolute"
        line[0].set_ylabel(f"{statistic}\n{data}\n{kind} error", fontsize=8)
        line[0].set_ylim(bottom=_floor(subject))
    for graph, top, bottom in zip(columns, panels[0], panels[-1], strict=True):
        top.set_title(graph, fontsize=9)
        bottom.set_xlabel("iterations a node" if sizes else "iterations (edges drawn)", fontsize=8)
    keys = [line_2d([], [], color=colour, marker=marker(name), label=name) for name, colour in colours.items()]
    keys += [
        line_2d([], [], color=_shade("#333333", k, len(sizes)), linewidth=3, label=f"n = {n:,}")
        for k, n in enumerate(sizes)
    ]
    ncols = min(len(keys), int(width / 1.1))
    figure.legend(handles=keys, loc="outside lower center", ncols=ncols, frameon=False, fontsize=8)
    figure.suptitle(f"{title}: {_caption(frame, not sizes, omitted)}", fontsize=9)
    return figure


def _floor(subject: pd.DataFrame) -> float | None:
    """Return the lower end of the axis: errors a thousand times below most, as of averaging, are cut off."""
    errors = subject.loc[subject["error"] > 0]
    if errors.empty:
        return None
    usual = errors.groupby("job")["error"].last().median()
    return float(max(errors["error"].min() / 2.5, usual / 1000))


def _caption(frame: pd.DataFrame, bands: bool, omitted: int) -> str:
    runs, seeds = int(frame["runs"].max()), frame["seed"].nunique()
    parts = [f"mean of {numbers.count(runs, 'run')}" + (f" for each of {seeds} seeds" if seeds > 1 else "")]
    parts += ["bands: spread over nodes"] * bands + [f"{omitted} more rows are not shown"] * bool(omitted)
    return "; ".join(parts)


def _draw_mean(ax: Any, protocol: str, curves: pd.DataFrame, scale: int, colour: Any, band: bool) -> None:
    mean = curves.groupby("iteration")[["error", "spread"]].mean()
    curve = ErrorCurve(protocol, mean.index.to_numpy() / scale, mean["error"].to_numpy(), mean["spread"].to_numpy())
    draw_curve(ax, curve, colour=colour, linewidth=1.4, band_opacity=0.13 * band)


def _set_scales(ax: Any, here: pd.DataFrame) -> None:
    if (here["error"] > 0).any():
        set_scales(ax, here["relative"].all(), (here["spacing"] == "log").all())
    if here.empty:
        ax.text(0.5, 0.5, "no result", transform=ax.transAxes, ha="center", va="center", fontsize=8, color="0.5")
    ax.tick_params(labelsize=7, which="both")


def _colours(protocols: Sequence[str]) -> dict[str, str]:
    others = iter([*(f"C{k}" for k in range(10))] * len(protocols))
    return {name: COLOURS.get(name) or next(others) for name in protocols}


def _shade(colour: str, place: int, count: int) -> Any:
    """Return the colour itself for the largest size, a paler one for smaller sizes."""
    strength = 1.0 if count == 1 else 0.35 + 0.65 * place / (count - 1)
    return tuple(1 - strength * (1 - part) for part in matplotlib("colors").to_rgb(colour))
