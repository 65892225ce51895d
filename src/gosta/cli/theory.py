"""``gosta theory``: what is known about a run before it is made, beside the run."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options

if TYPE_CHECKING:
    import numpy as np

    from gosta.estimation.problem import Setting
    from gosta.simulation.trace import Trace

EXAMPLES = """
[bold]Examples[/bold]

gosta theory

gosta theory breast-cancer --statistic auc --graph torus --n 560 --protocol gosta-async

gosta theory wine-quality-red --statistic within-cluster-scatter --graph watts-strogatz --protocol u2 --out u2.pdf
"""
ROWS = 7


def theory(
    data: options.DataName = "breast-cancer",
    statistic: options.StatisticName = "auc",
    graph: options.GraphName = "watts-strogatz",
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol", "-p", help="averaging, u1, u2, gosta-sync or gosta-async; there is no theory for tracking."
        ),
    ] = options.THEORY_PROTOCOL,
    iterations: options.Iterations = None,
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    columns: options.Columns = None,
    label: options.Label = None,
    score: options.Score = None,
    option: options.Option = None,
    drop_missing: options.DropMissing = False,
    n: options.Rows = None,
    path: options.OwnFile = None,
    out: Annotated[Path, typer.Option(help="Where the picture goes: .png, .svg or .pdf.")] = Path("gosta-theory.png"),
    as_json: options.Json = False,
) -> None:
    """Compare simulated errors with the predicted error of a run, the expectation, and the paper's bound."""
    options.check_picture("out", out)
    import gosta
    from gosta.protocols import find
    from gosta.simulation.simulate import setting_of
    from gosta.theory.arguments import formula_for
    from gosta.theory.curves import error_curves
    from gosta.theory.expectations import EXPECTATIONS

    rule, chosen = find(protocol.strip()), options.statistic(statistic)
    formula_for(rule, EXPECTATIONS, "theory")
    table = options.table(data, n, path, columns, label, score, drop_missing)
    settings: dict[str, Any] = {"iterations": iterations, "runs": runs, "seed": seed, **options.values(option)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an interruption is told below
        trace = gosta.simulate(table, chosen, graph=graph, protocol=rule, spacing="log", checkpoints=60, **settings)
    if not trace.complete:
        raise KeyboardInterrupt
    setting = setting_of(trace)
    found = error_curves(setting, trace.iterations)
    facts = _facts(setting)
    print(json.dumps(_record(trace, facts, found)) if as_json else _text(trace, facts, found), flush=True)
    _draw(trace, found, out)
    if not as_json:
        print(f"picture: {out}")


def _facts(setting: Setting) -> dict[str, Any]:
    from gosta.theory import mixing_time, spectral_gap
    from gosta.theory.bounds import data_terms

    terms = data_terms(setting)
    return {
        "spectral_gap": spectral_gap(setting.graph),
        "mixing_time": mixing_time(setting.graph),
        "expectation": _kind(setting),
        "row_term": sum(term.rows**2 for term in terms) ** 0.5,
        "pair_term": sum(term.pairs**2 for term in terms) ** 0.5,
    }


def _kind(setting: Setting) -> str:
    """How far an expectation is one."""
    from gosta.theory.expectations import APPROXIMATE

    if setting.problem.statistic.final is not None:
        return ", of the kernel means; a ratio of means is worse while some nodes have nothing to divide by"
    return " (approximate for this protocol)" * (setting.protocol.name in APPROXIMATE)


def _record(trace: Trace, facts: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    about, error = trace.about, trace.error()
    curves = {"simulated": error["mean"].values, "spread": error["spread"].values, **found}
    return {
        **{key: about[key] for key in ("protocol", "statistic", "data", "graph", "n", "edges", "runs", "seed")},
        **{name: value if value != math.inf else None for name, value in facts.items() if name != "expectation"},
        "relative": about["relative"],
        "iterations": trace.iterations.tolist(),
        **{name: [float(v) if math.isfinite(v) else None for v in values] for name, values in curves.items()},
    }


def _text(trace: Trace, facts: dict[str, Any], found: dict[str, Any]) -> str:
    about, error = trace.about, trace.error()
    gap = facts["spectral_gap"]
    curves = {"simulated": error["mean"].values, "spread": error["spread"].values, **found}
    share = options.share if about["relative"] else (lambda value: f"{value:.3g}")
    cells = {name: ["-" if math.isnan(v) else share(v) for v in values] for name, values in curves.items()}
    lines = [
        f"{about['protocol']} estimates {about['statistic']} of {about['data']} on {about['graph']}: "
        f"{about['n']:,} nodes, {about['edges']:,} edges",
        f"  spectral gap  c = {gap:.3g}: differences shrink by e in 1/c = {options.count(1 / gap)} exchanges; "
        f"visitors mix in {options.count(facts['mixing_time'])}",
        f"  data terms    |h - V| = {facts['row_term']:.4g} between row means, |H - h| = {facts['pair_term']:.4g} "
        "within rows",
        f"  {'iterations':>12}" + "".join(f"{name:>13}" for name in curves),
    ]
    lines += [
        f"  {trace.iterations[k]:>12,}" + "".join(f"{column[k]:>13}" for column in cells.values())
        for k in _spread_out(trace.iterations, about["n"])
    ]
    kind = "relative" if about["relative"] else "absolute"
    explained = {
        "simulated": f"mean over nodes of the {kind} error, {about['runs']} runs; spread: over nodes",
        "predicted": "the same for a single run, from network and kernel alone",
        "expectation": f"error of the mean over infinitely many runs{facts['expectation']}",
        "bound": "the paper's theorem on the expectation: a single run may lie above it",
    }
    return "\n".join([*lines, *(f"{name}: {words}" for name, words in explained.items() if name in curves)])


def _spread_out(iterations: np.ndarray[Any, Any], n: int) -> list[int]:
    """Some checkpoints in equal ratios, from the first meeting of most nodes on."""
    import numpy as np

    wanted = np.geomspace(min(n, iterations[-1]), iterations[-1], ROWS)
    return sorted({int(np.abs(iterations - t).argmin()) for t in wanted})


def _draw(trace: Trace, found: dict[str, Any], path: Path) -> None:
    from gosta.simulation import summary
    from gosta.views import plots

    ax = summary.plot([trace], [f"{trace.about['protocol']}, simulated"])
    plots.draw_theory(ax, summary.error_curve(trace), found)
    plots.save(ax.figure, path)
