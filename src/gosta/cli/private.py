"""``gosta run --private``: errors of bins and noise, exchanges until all have the sums."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.private.settings import PrivateSettings
    from gosta.simulation.private import Simulated, ValueErrors

# Options of `gosta run` for exchanges of rows only.
FOR_ROWS = (
    "protocol", "iterations", "checkpoints", "log", "until", "interval", "engine", "out", "resume",
    "against", "bound", "homophily", "loss", "away", "away_for", "partition",
    "animate", "report", "live", "open_",
)  # fmt: skip
DRAWS = 200  # of noise, for each epsilon of the plot
SPREADING = {
    "union": ("union of contributions", "exact and masked; a node knows when it has all"),
    "averaging": ("averaging by gossip", "every node within 1 %; not masked"),
    "tree": ("sums along a tree", "exact and masked; one node that is down stops it"),
}
LAWS = {
    "none": "no noise",
    "laplace": "discrete Laplace noise",
    "gaussian": "discrete Gaussian noise",
}


def run_private(
    context: typer.Context,
    simulation: options.Simulation,
    placement: options.Placement,
    rows: options.Rows,
    private: options.Private,
    data: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Simulate private sums, print what they cost, and draw errors of ways to keep rows private."""
    import msgspec

    from gosta.private.settings import check_settings, suggested_bins
    from gosta.simulation.private import simulate_sums

    for name in FOR_ROWS:
        if context.get_parameter_source(name).name == "COMMANDLINE":  # type: ignore[union-attr]
            raise InputError(f"{name} is for exchanges of rows; leave it out with --private")
    table, settings = rows.select(rows.load(data)), private.settings()
    assert settings is not None
    # Values of strata may be taken from the data
    check_settings(msgspec.structs.replace(settings, strata={}))
    if private.bins is None:
        bins = suggested_bins(len(table), settings.epsilon)
        settings = msgspec.structs.replace(settings, bins=bins)
    simulated = simulate_sums(
        table, simulation.statistic, settings,
        graph=simulation.graph, runs=simulation.runs, seed=simulation.seed,
        options=rows.statistic_options(simulation.option),
        nodes=placement.nodes, deal=placement.deal, by=placement.by,
    )  # fmt: skip
    if as_json:
        print(json.dumps(_record(simulated, settings, table.name)), flush=True)
    else:
        print(_text(simulated, settings, table.name, simulation.runs), flush=True)
    if plot is not None:
        _draw(simulated, settings, plot, simulation.seed)
        if not as_json:
            print(f"plot: {plot}")


def _record(simulated: Simulated, settings: PrivateSettings, data: str) -> dict[str, Any]:
    return {
        "data": data,
        "graph": simulated.graph.name,
        "sites": simulated.sites,
        "rows": simulated.rows,
        "bins": simulated.layout.bins,
        "numbers": simulated.layout.size,
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "noise": simulated.noise._asdict()
        | {"standard_deviation": math.sqrt(simulated.noise.variance)},
        "values": [value._asdict() for value in simulated.values],
        "spreading": {name: cost._asdict() for name, cost in simulated.spreading.items()},
    }


def _text(simulated: Simulated, settings: PrivateSettings, data: str, runs: int) -> str:
    layout, noise = simulated.layout, simulated.noise
    statistics = layout.describe()["statistics"]
    sites = numbers.count(simulated.sites, "site")
    where = f"{simulated.rows:,} rows at {sites}, {simulated.graph.name}"
    bins = f"{layout.bins} bins, " if layout.bins > 1 else ""
    is_certain = all(value.is_certified for value in simulated.values)
    certainty = "certainly" if is_certain else "very probably"
    how = LAWS[noise.law]
    if noise.law != "none":
        delta = f", delta {settings.delta:g}" if noise.delta else ""
        deviation = f"{math.sqrt(noise.variance):.3g} in each of them"
        how += f" with standard deviation {deviation} (epsilon {settings.epsilon:g}{delta})"
    heading = ("", "exact", "sums", "bracket", "error of sums", "error of noise", "sampling s.e.")
    table = [heading, *map(_row, simulated.values)]
    if noise.law == "none":
        table = [row[:5] + row[6:] for row in table]
    over_runs = numbers.count(runs, "run")
    lines = [
        f"{statistics} of {data} by private sums: {where}",
        f"{bins}{layout.size:,} numbers, {how}",
        terminal.columns(table, right=range(1, 7)),
        "exact: all rows in one place; sums: without noise; "
        f"bracket: where the exact value {certainty} is",
    ]
    if noise.law != "none":
        lines.append(f"error of noise: root mean square over {over_runs}")
    costs = [("", "exchanges", "bytes", ""), *_spreading(simulated)]
    lines += ["", f"until every node has the sums, on average over {over_runs}:"]
    return "\n".join([*lines, terminal.columns(costs, right=(1, 2))])


def _row(value: ValueErrors) -> tuple[str, ...]:
    title = ", ".join(filter(None, [value.statistic, value.stratum, value.label]))
    error_of_sums = None if value.exact is None else abs(value.value - value.exact)
    size = abs(value.value if value.exact is None else value.exact)

    def shown(error: float | None) -> str:
        relative = error / size if error is not None and size else error
        return numbers.error(relative, relative=bool(size))

    return (
        title,
        numbers.number(value.exact),
        numbers.number(value.value),
        numbers.interval(value.low, value.high, 5),
        shown(error_of_sums),
        shown(value.noise_error),
        shown(value.standard_error),
    )


def _spreading(simulated: Simulated) -> Iterator[tuple[str, ...]]:
    for name, (title, remark) in SPREADING.items():
        exchanges, sent = simulated.spreading[name]
        if math.isinf(exchanges):
            yield title, "did not end", "", remark
        else:
            yield title, f"{exchanges:,.0f}", f"{sent:,.0f}", remark


def _draw(simulated: Simulated, settings: PrivateSettings, plot: Path, seed: int) -> None:
    """Draw the error of the first statistic over epsilon, for each way to keep rows private."""
    from gosta.simulation.private import EPSILONS, errors_over_epsilon
    from gosta.views import plots

    first = simulated.values[0]
    exact = first.value if first.exact is None else first.exact
    errors = errors_over_epsilon(simulated, settings, exact, DRAWS, seed)
    lines = {"no noise": abs(first.value - exact)}
    if first.standard_error is not None:
        lines["sampling standard error"] = first.standard_error
    size = abs(exact) or 1.0
    errors = {name: [error / size for error in way] for name, way in errors.items()}
    lines = {name: error / size for name, error in lines.items()}
    figure = plots.new_figure(6, 4)
    ax = figure.add_subplot()
    plots.draw_privacy(ax, EPSILONS, errors, lines, relative=bool(exact))
    where = f"{simulated.rows:,} rows at {simulated.sites} sites, {simulated.layout.bins} bins"
    ax.set_title(f"{first.statistic}, {where}", fontsize=9)
    ax.legend(frameon=False, fontsize=8)
    plots.save(figure, plot)
