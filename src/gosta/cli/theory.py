"""``gosta theory``: theoretical errors of a run beside simulated ones."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gosta.cli import options
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.estimation.setting import Setting
    from gosta.simulation.trace import Trace

SHOWN_CHECKPOINTS = 7  # of the 60 that are simulated
CURVES = ("simulated", "spread", "predicted", "expectation", "bound")


@dataclass(frozen=True)
class Simulation(options.Simulation):
    """Options of the simulation that theory is compared with."""

    protocol: Annotated[
        str,
        "carried-means, tracking, averaging, u1, u2, gosta-sync or gosta-async; there is no theory for others.",
        "-p",
    ] = options.DEFAULT_PROTOCOL


def theory(
    simulation: Simulation,
    rows: options.Rows,
    data: options.DataName = "breast-cancer",
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Compare simulated errors with the predicted error of a run, the expectation, and the paper's bound."""
    picture = options.choose_picture(plot, Path("gosta-theory.png"), as_json)
    options.check_picture("plot", picture)
    import gosta
    from gosta.graphs.changing import require_one
    from gosta.graphs.graph import sizes_from
    from gosta.protocols import find
    from gosta.simulation import trace_plots
    from gosta.theory.curves import error_curves
    from gosta.theory.expectations import formula_for
    from gosta.theory.prediction import PREDICTIONS
    from gosta.views import plots

    rule, statistic = (
        find(simulation.protocol.strip()),
        options.find_statistic(simulation.statistic),
    )
    formula_for(rule, PREDICTIONS, "theory")
    require_one(simulation.graph)
    chosen = rows.select(rows.load(data))
    settings = {"spacing": "log", "checkpoints": 60, **simulation.settings(rows)}
    with sizes_from("n"):
        trace = gosta.simulate(chosen, statistic, protocol=rule, **settings)
    setting = trace.setting
    found = error_curves(setting, trace.iterations)
    record = _record(trace, found)
    print(json.dumps(record) if as_json else _text(record, _limits(setting)), flush=True)
    if picture is not None:
        ax = trace_plots.plot_errors([trace], [f"{rule.name}, simulated"])
        plots.draw_theory(ax, trace_plots.error_curve(trace), found)
        plots.save(ax.figure, picture)
        if not as_json:
            print(f"plot: {picture}")


def _record(trace: Trace, found: dict[str, Any]) -> dict[str, Any]:
    from gosta.theory import mixing_time, spectral_gap
    from gosta.theory.expectations import data_terms
    from gosta.theory.prediction import neighbour_correlation

    setting, error = trace.setting, trace.error()
    terms = data_terms(setting)
    curves = {"simulated": error["mean"].values, "spread": error["spread"].values, **found}
    mixing = mixing_time(setting.graph)
    return {
        "protocol": setting.protocol.name,
        "statistic": setting.estimand.statistic.name,
        "data": setting.estimand.data,
        "graph": setting.graph_name,
        "edges": setting.graph.m,
        "runs": trace.info.runs,
        "seed": trace.info.seed,
        "n": setting.placement.nodes,
        "spectral_gap": spectral_gap(setting.graph),
        "mixing_time": mixing if math.isfinite(mixing) else None,
        "row_term": math.hypot(*(term.rows for term in terms)),
        "pair_term": math.hypot(*(term.pairs for term in terms)),
        "neighbour_correlation": neighbour_correlation(setting),
        "relative": trace.is_relative,
        "iterations": trace.iterations.tolist(),
        **{
            name: [float(v) if math.isfinite(v) else None for v in values]
            for name, values in curves.items()
        },
    }


def _limits(setting: Setting) -> str:
    from gosta.theory.expectations import APPROXIMATE

    if setting.estimand.statistic.final is not None:
        return ", of the kernel means; a ratio of means is worse while some nodes have nothing to divide by"
    return " (approximate for this protocol)" * (setting.protocol.name in APPROXIMATE)


def _text(record: dict[str, Any], limits: str) -> str:
    from gosta.theory.curves import similar_rows, unknown_kinds

    gap, curves = record["spectral_gap"], [name for name in CURVES if name in record]
    mixing = math.inf if record["mixing_time"] is None else record["mixing_time"]
    unknown = unknown_kinds(record, record["protocol"])
    alike = similar_rows(curves, record["neighbour_correlation"])
    rows = [("iterations", *curves)]
    for k in _spread_out(record["iterations"], record["n"]):
        cells = [numbers.error(record[name][k], record["relative"]) for name in curves]
        rows.append((f"{record['iterations'][k]:,}", *cells))
    explained = {
        "simulated": f"mean over nodes of the {'relative' if record['relative'] else 'absolute'} error, "
        f"{numbers.count(record['runs'], 'run')}; spread: its standard deviation over nodes",
        "predicted": "error of a single run, derived from network and kernel alone: nothing is fitted to simulations",
        "expectation": f"error of the mean over infinitely many runs{limits}",
        "bound": "the paper's theorem on the expectation: a single run can exceed it",
    }
    return "\n".join(
        [
            f"{record['protocol']} estimates {record['statistic']} of {record['data']} on {record['graph']}: "
            f"{record['n']:,} nodes, {numbers.count(record['edges'], 'edge')}",
            f"  spectral gap  c = {gap:.3g}: differences shrink by e in 1/c = {numbers.count(1 / gap)} exchanges; "
            f"visitors mix in {numbers.count(mixing)}",
            f"  data terms    |h - V| = {record['row_term']:.4g} between row means, "
            f"|H - h| = {record['pair_term']:.4g} within rows",
            terminal.columns(rows, right=range(len(rows[0]))),
            *(f"{name}: {words}" for name, words in explained.items() if name in curves),
            *([unknown] if unknown else []),
            *([alike] if alike else []),
        ]
    )


def _spread_out(iterations: list[int], n: int) -> list[int]:
    """Return indices of checkpoints in about equal ratios, from the first exchange of most nodes on."""
    start, last = min(n, iterations[-1]), iterations[-1]
    wanted = [
        start * (last / start) ** (k / (SHOWN_CHECKPOINTS - 1)) for k in range(SHOWN_CHECKPOINTS)
    ]
    return sorted(
        {min(range(len(iterations)), key=lambda k: abs(iterations[k] - at)) for at in wanted}
    )
