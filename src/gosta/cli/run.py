"""``gosta run``: simulate protocols on a network."""

from __future__ import annotations

import json
import signal
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options
from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.simulation.trace import Trace

EXAMPLES = """
[bold]Examples[/bold]

gosta run

gosta run iris --statistic gini-mean-difference --graph torus --protocol gosta-async,gosta-sync,u2

gosta run wine-quality-red --statistic within-cluster-scatter --graph torus --iterations 200000 --runs 50 --out wine.nc

gosta run --resume wine.nc --iterations 400000

gosta run --protocol gosta-sync,u2 --log --bound
"""


WITH_RESUME = {"context", "resume", "iterations", "out", "plot", "against", "bound", "as_json", "statistic"}


def run(
    context: typer.Context,
    data: options.DataName = "breast-cancer",
    statistic: options.StatisticName = "auc",
    graph: options.GraphName = "watts-strogatz",
    protocol: Annotated[
        str, typer.Option("--protocol", "-p", help="Names from 'gosta protocols', separated by commas.")
    ] = "gosta-async",
    iterations: options.Iterations = None,
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    checkpoints: Annotated[int, typer.Option(help="How many times estimates are read.")] = 100,
    log: Annotated[bool, typer.Option("--log", help="Checkpoints in equal ratios, on a logarithmic axis.")] = False,
    engine: Annotated[
        str, typer.Option(help="compiled, or reference (plain Python, slow, same numbers).")
    ] = "compiled",
    columns: options.Columns = None,
    label: options.Label = None,
    score: options.Score = None,
    option: options.Option = None,
    drop_missing: options.DropMissing = False,
    n: options.Rows = None,
    path: options.OwnFile = None,
    out: Annotated[Path | None, typer.Option(help="Save the trace: a .nc file, one for each protocol.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with a trace that was saved (its data, its settings).")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where the picture goes: .png, .svg or .pdf.")] = Path("gosta-run.png"),
    against: Annotated[str, typer.Option(help="What the picture's axis shows: iterations or units (numbers sent).")] = (
        "iterations"
    ),
    bound: Annotated[
        bool, typer.Option("--bound", help="Draw what theory says too: expectation, bound, predicted error.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Simulate gossip on a network with one row of the data at each node."""
    options.check_picture("plot", plot)
    if against not in ("iterations", "units"):
        raise InputError(f"against = {against!r} must be 'iterations' or 'units'")
    if out is not None:
        options.check_writable("out", out)
    if resume is not None:
        given = [n for n in context.params if context.get_parameter_source(n).name == "COMMANDLINE"]  # type: ignore[union-attr]
        for name in sorted(set(given) - WITH_RESUME):
            raise InputError(f"{name} goes with a new run; --resume goes on with the settings of {resume}")
    import gosta
    from gosta.protocols import find

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an interruption is told below
        chosen = options.statistic(statistic)
        if resume is not None:
            traces = [gosta.resume(resume, iterations, patience=0)]
        else:
            names = [find(name.strip()).name for name in dict.fromkeys(protocol.split(",")) if name.strip()]
            table = options.table(data, n, path, columns, label, score, drop_missing)
            settings: dict[str, Any] = {
                "iterations": iterations,
                "runs": runs,
                "seed": seed,
                "checkpoints": checkpoints,
            }
            settings |= {"spacing": "log" if log else "linear", "engine": engine, **options.values(option)}
            traces = []
            for name in names:
                traces.append(gosta.simulate(table, chosen, graph=graph, protocol=name, patience=0, **settings))
                if not traces[-1].complete:
                    break
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not lose what the first one kept
    print("\n".join(json.dumps(_record(trace)) for trace in traces) if as_json else _summary(traces), flush=True)
    files = _save(traces, out or resume)
    if bound:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what took long is saved
    _draw(traces, plot, "units" if against == "units" else "iteration", bound)
    if not as_json:
        print(f"picture: {plot}")
    if not traces[-1].complete:
        go_on = f"; go on with: gosta run --resume {files[-1]}" if files and "now" in traces[-1].rest else ""
        print(f"gosta: stopped early, the numbers are those of the checkpoints reached{go_on}", file=sys.stderr)
        raise typer.Exit(130)


def _record(trace: Trace) -> dict[str, Any]:
    """What is printed of a trace, as JSON has it: numbers at the last checkpoint that any run reached."""
    import numpy as np

    about, data, error = trace.about, trace.data, trace.error()
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    none = last < 0
    return {
        **{key: about[key] for key in ("protocol", "statistic", "data", "graph", "n", "edges")},
        "iterations": 0 if none else int(trace.iterations[last]),
        "runs": about["runs"],
        "runs_reached": 0 if none else int(reached[:, last].sum()),
        "seed": about["seed"],
        "exact": _plain(data["target"].mean("node") if "node" in data["target"].dims else data["target"]),
        "estimate": None if none else _plain(data["estimate"][:, last].mean("run")),
        "error": None if none else float(error["mean"][last]),
        "spread": None if none else float(error["spread"][last]),
        "relative": about["relative"],
        "units": 0 if none else int(trace.units[last]),
        "seconds": round(about["seconds"], 3),
        "complete": trace.complete,
    }


def _plain(value: Any) -> Any:
    return value.values.tolist()


def _summary(traces: list[Trace]) -> str:
    records = [_record(trace) for trace in traces]
    first = records[0]
    runs = f"{first['runs']} run{'s' * (first['runs'] > 1)}"
    if first["runs_reached"] < first["runs"]:
        runs = f"{first['runs_reached']} of {runs}"
    kind = "relative error" if first["relative"] else "absolute error (the exact value is 0)"
    lines = [
        f"{first['statistic']} of {first['data']} on {first['graph']}: {first['n']:,} nodes, {first['edges']:,} edges",
        f"exact value {_number(first['exact'])}; after {first['iterations']:,} iterations, {runs}:",
        f"  {'protocol':<14}{'estimate':>12}{'error':>11}{'spread':>11}{'numbers sent':>16}{'seconds':>10}",
    ]
    for r in records:
        error, spread = (_share(r[k], r["relative"]) for k in ("error", "spread"))
        numbers = f"{_number(r['estimate']):>12}{error:>11}{spread:>11}{r['units']:>16,}{r['seconds']:>10.2f}"
        lines.append(f"  {r['protocol']:<14}{numbers}")
    return "\n".join([*lines, f"error: {kind}, mean over nodes; spread: its standard deviation over nodes"])


def _share(value: float | None, relative: bool) -> str:
    return "-" if value is None else options.share(value) if relative else f"{value:.3g}"


def _number(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else ", ".join(f"{v:.4g}" for v in value)


def _save(traces: list[Trace], out: Path | None) -> list[Path]:
    """Save to one file, or to one for each protocol."""
    if out is None:
        return []
    several = len(traces) > 1
    files = [out.with_name(f"{out.stem}-{t.about['protocol']}{out.suffix}") if several else out for t in traces]
    for trace, file in zip(traces, files, strict=True):
        trace.save(file)
    return files


def _draw(traces: list[Trace], path: Path, against: str, bound: bool) -> None:
    from gosta.simulation.plot import draw, draw_theory
    from gosta.simulation.run import setting_of

    ax = draw(traces, against=against)
    if bound:
        from gosta.theory.curves import curves

        for trace in traces:
            draw_theory(ax, trace, curves(setting_of(trace), trace.iterations), against)
    options.save_picture(ax, path)
