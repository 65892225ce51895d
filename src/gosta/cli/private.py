"""``gosta run --private``: errors of bins and of noise, and exchanges until every node has the sums."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.runtime import progress
from gosta.views import numbers, terminal

if TYPE_CHECKING:
    from gosta.private.settings import PrivateSettings
    from gosta.simulation.private import Simulated, ValueErrors

# Options of `gosta run` for exchanges of rows only.
FOR_ROWS = (
    "protocol", "iterations", "checkpoints", "log", "until", "interval", "engine", "out", "resume", "against", "bound",
    "homophily", "loss", "away", "away_for", "partition",
    "animate", "report", "live", "open_",
)  # fmt: skip
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # of the plot
DRAWS = 200  # of noise, for each of them
DELTA = 1e-6  # of the plot, where noise needs one and none is given
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
    """Simulate private sums, print what they cost, and draw the error of each way to keep rows private."""
    import msgspec

    from gosta.private.settings import check_settings, suggested_bins
    from gosta.simulation.private import simulate_sums

    for name in FOR_ROWS:
        if context.get_parameter_source(name).name == "COMMANDLINE":  # type: ignore[union-attr]
            raise InputError(f"{name} is for exchanges of rows; leave it out with --private")
    table, settings = rows.select(rows.load(data)), private.settings()
    assert settings is not None
    # values of strata may be taken from the data
    check_settings(msgspec.structs.replace(settings, strata={}))
    if private.bins is None:
        settings = msgspec.structs.replace(
            settings, bins=suggested_bins(len(table), settings.epsilon)
        )
    found = simulate_sums(
        table, simulation.statistic, settings, graph=simulation.graph, runs=simulation.runs, seed=simulation.seed,
        options=rows.statistic_options(simulation.option),
        nodes=placement.nodes, deal=placement.deal, by=placement.by,
    )  # fmt: skip
    print(
        json.dumps(_record(found, settings, table.name))
        if as_json
        else _text(found, settings, table.name, simulation.runs),
        flush=True,
    )
    if plot is not None:
        _draw(found, settings, plot, simulation.seed)
        if not as_json:
            print(f"plot: {plot}")


def _record(found: Simulated, settings: PrivateSettings, data: str) -> dict[str, Any]:
    return {
        "data": data,
        "graph": found.graph.name,
        "sites": found.sites,
        "rows": found.rows,
        "bins": found.layout.bins,
        "numbers": found.layout.size,
        "epsilon": settings.epsilon,
        "delta": settings.delta,
        "noise": found.noise._asdict() | {"standard_deviation": math.sqrt(found.noise.variance)},
        "values": [value._asdict() for value in found.values],
        "spreading": {name: one._asdict() for name, one in found.spreading.items()},
    }


def _text(found: Simulated, settings: PrivateSettings, data: str, runs: int) -> str:
    layout, noise = found.layout, found.noise
    statistics = layout.describe()["statistics"]
    where = f"{found.rows:,} rows at {numbers.count(found.sites, 'site')}, {found.graph.name}"
    bins = f"{layout.bins} bins, " if layout.bins > 1 else ""
    certainty = (
        "certainly" if all(value.is_certified for value in found.values) else "very probably"
    )
    how = LAWS[noise.law]
    if noise.law != "none":
        privacy = f"epsilon {settings.epsilon:g}" + (
            f", delta {settings.delta:g}" if noise.delta else ""
        )
        how += (
            f" with standard deviation {math.sqrt(noise.variance):.3g} in each of them ({privacy})"
        )
    heading = ("", "exact", "sums", "bracket", "error of sums", "error of noise", "sampling s.e.")
    table = [heading, *map(_row, found.values)]
    if noise.law == "none":
        table = [row[:5] + row[6:] for row in table]
    return "\n".join(
        [
            f"{statistics} of {data} by private sums: {where}",
            f"{bins}{layout.size:,} numbers, {how}",
            terminal.columns(table, right=range(1, 7)),
            f"exact: all rows in one place; sums: without noise; bracket: where the exact value {certainty} is",
            *(
                [f"error of noise: root mean square over {numbers.count(runs, 'run')}"]
                if noise.law != "none"
                else []
            ),
            "",
            f"until every node has the sums, on average over {numbers.count(runs, 'run')}:",
            terminal.columns([("", "exchanges", "bytes", ""), *_spreading(found)], right=(1, 2)),
        ]
    )


def _row(value: ValueErrors) -> tuple[str, ...]:
    title = ", ".join(filter(None, [value.statistic, value.stratum, value.label]))
    bins = None if value.exact is None else abs(value.value - value.exact)
    size = abs(value.value if value.exact is None else value.exact)

    def error(found: float | None) -> str:
        return numbers.error(
            found if found is None or not size else found / size, relative=bool(size)
        )

    return (
        title,
        numbers.number(value.exact),
        numbers.number(value.value),
        numbers.interval(value.low, value.high, 5),
        error(bins),
        error(value.noise_error),
        error(value.standard_error),
    )


def _spreading(found: Simulated) -> Iterator[tuple[str, ...]]:
    for name, (title, remark) in SPREADING.items():
        one = found.spreading[name]
        if math.isinf(one.exchanges):
            yield title, "did not end", "", remark
        else:
            yield title, f"{one.exchanges:,.0f}", f"{one.bytes:,.0f}", remark


def _draw(found: Simulated, settings: PrivateSettings, plot: Path, seed: int) -> None:
    """Draw the error of the first statistic over epsilon, for each way to keep rows private."""
    import msgspec

    from gosta.simulation.private import errors_of_choices
    from gosta.views import plots

    first = found.values[0]
    exact = first.value if first.exact is None else first.exact
    delta = settings.delta or (0.0 if found.layout.are_counts else DELTA)
    errors: dict[str, list[float]] = {}
    with progress.bar("errors over epsilon", len(EPSILONS)) as advance:
        for epsilon in EPSILONS:
            changed = msgspec.structs.replace(
                settings, epsilon=epsilon, delta=delta, find_edges=False
            )
            made = errors_of_choices(
                found.layout, found.sums, exact, changed, found.sites, DRAWS, seed
            )
            for name, error in made.items():
                errors.setdefault(name, []).append(error)
            advance(1)
    lines = {"no noise": abs(first.value - exact)}
    if first.standard_error is not None:
        lines["sampling standard error"] = first.standard_error
    size = abs(exact) or 1.0
    errors = {name: [error / size for error in one] for name, one in errors.items()}
    lines = {name: error / size for name, error in lines.items()}
    figure = plots.new_figure(6, 4)
    ax = figure.add_subplot()
    plots.draw_privacy(ax, EPSILONS, errors, lines, relative=bool(exact))
    ax.set_title(
        f"{first.statistic}, {found.rows:,} rows at {found.sites} sites, {found.layout.bins} bins",
        fontsize=9,
    )
    ax.legend(frameon=False, fontsize=8)
    plots.save(figure, plot)
