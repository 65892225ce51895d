"""``gosta theory``: theoretical errors of a run beside simulated ones."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from gosta.cli import options
from gosta.errors import InputError


@dataclass(frozen=True)
class Simulation(options.Simulation):
    """Options of the simulation that theory is compared with."""

    protocol: Annotated[
        str,
        "carried-means, tracking, averaging, u1, u2, gosta-sync or gosta-async; there is no theory "
        "for others.",
        "-p",
    ] = options.DEFAULT_PROTOCOL


def theory(
    simulation: Simulation,
    rows: options.Rows,
    data: options.DataName = "breast-cancer",
    plot: options.Plot = None,
    as_json: options.Json = False,
) -> None:
    """Compare simulated errors with predicted ones, the expectation, and the paper's bound."""
    picture = options.choose_picture(plot, Path("gosta-theory.png"), as_json)
    options.check_picture("plot", picture)
    import gosta
    from gosta.graphs.changing import require_one
    from gosta.graphs.graph import sizes_from
    from gosta.protocols import find
    from gosta.simulation import trace_plots
    from gosta.statistics.objectives import Objective
    from gosta.theory.curves import SIMULATED, SPREAD, Comparison, error_curves
    from gosta.theory.expectations import formula_for
    from gosta.theory.prediction import PREDICTIONS
    from gosta.views import plots

    rule, statistic = (
        find(simulation.protocol.strip()),
        options.find_statistic(rows.weighted(simulation.statistic)),
    )
    if isinstance(statistic, Objective):
        raise InputError(
            f"there is no prediction for {statistic.name}, an objective; "
            "gosta.theory.dual_averaging_bound is for those"
        )
    formula_for(rule, PREDICTIONS, "theory")
    require_one(simulation.graph)
    chosen = rows.select(rows.load(data))
    settings = {"spacing": "log", "checkpoints": 60, **simulation.settings(rows)}
    with sizes_from("n"):
        trace = gosta.simulate(chosen, statistic, protocol=rule, **settings)
    setting = trace.setting
    errors, theoretical = trace.error(), error_curves(setting, trace.iterations)
    curves = {SIMULATED: errors["mean"].values, SPREAD: errors["spread"].values, **theoretical}
    info = trace.info
    comparison = Comparison(setting, info.runs, info.seed, trace.iterations, curves)
    print(json.dumps(comparison.to_dict()) if as_json else comparison, flush=True)
    if picture is not None:
        ax = trace_plots.plot_errors([trace], [f"{rule.name}, simulated"])
        plots.draw_theory(ax, trace_plots.error_curve(trace), theoretical)
        plots.save(ax.figure, picture)
        if not as_json:
            print(f"plot: {picture}")
