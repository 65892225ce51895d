"""``gosta run``: simulate protocols on a network."""

from __future__ import annotations

import json
import math
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gosta.cli import options
from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.simulation.summary import Axis
    from gosta.simulation.trace import Trace

EXAMPLES = """
[bold]Examples[/bold]

gosta run

gosta run iris --statistic gini-mean-difference --graph torus --protocol gosta-async,gosta-sync,u2

gosta run wine-quality-red --statistic within-cluster-scatter --graph torus --iterations 200000 --runs 50 --out wine.nc

gosta run --resume wine.nc --iterations 400000

gosta run --protocol gosta-sync,u2 --log --bound

gosta run --nodes 20 --protocol tracking,gosta-async

gosta run --nodes 20 --interval 95%

gosta run --nodes 20 --by 'mean radius' --until 1%
"""


WITH_RESUME = {"context", "resume", "iterations", "out", "plot", "against", "bound", "as_json", "statistic"}


def run(
    context: typer.Context,
    data: options.DataName = "breast-cancer",
    statistic: options.StatisticName = "auc",
    graph: options.GraphName = "watts-strogatz",
    protocol: Annotated[
        str, typer.Option("--protocol", "-p", help="Names from 'gosta protocols', separated by commas.")
    ] = "tracking",
    iterations: options.Iterations = None,
    runs: options.Runs = 10,
    seed: options.Seed = 0,
    checkpoints: Annotated[int, typer.Option(help="How many times estimates are read.")] = 100,
    log: Annotated[bool, typer.Option("--log", help="Checkpoints in equal ratios, on a logarithmic axis.")] = False,
    engine: Annotated[
        str, typer.Option(help="compiled, or reference (plain Python, slow, same numbers).")
    ] = "compiled",
    nodes: Annotated[
        int | None, typer.Option(help="Deal the rows to so many nodes, instead of one to each of as many nodes.")
    ] = None,
    deal: options.Deal = None,
    by: options.By = None,
    until: Annotated[
        str | None,
        typer.Option(help="Stop when most nodes, by what they see, think they are within this error: 1%."),
    ] = None,
    interval: options.Interval = None,
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
    """Simulate gossip on a network whose nodes hold one row of the data each, or several."""
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
            if not names:
                raise InputError(f"protocol = {protocol!r} names none; 'gosta protocols' lists them")
            table = options.table(data, n, path, columns, label, score, drop_missing)
            settings: dict[str, Any] = {
                "iterations": iterations,
                "runs": runs,
                "seed": seed,
                "checkpoints": checkpoints,
                "nodes": nodes,
                "deal": deal,
                "by": by,
            }
            if interval is not None:
                settings["interval"] = options.fraction("interval", interval, "a level such as 95% or 0.95")
            if until is not None:
                settings["until"] = options.fraction("until", until, "an error such as 1% or 0.01")
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
    _draw(traces, plot, "units" if against == "units" else "iterations", bound)
    if not as_json:
        print(f"picture: {plot}")
    if not traces[-1].complete:
        go_on = f"; go on with: gosta run --resume {files[-1]}" if files and "now" in traces[-1].rest else ""
        print(f"gosta: stopped early, the numbers are those of the checkpoints reached{go_on}", file=sys.stderr)
        raise typer.Exit(130)


def _record(trace: Trace) -> dict[str, Any]:
    """What is printed of a trace, as JSON has it: numbers of each run at the last checkpoint that it reached."""
    import numpy as np

    about, data = trace.about, trace.data
    reached = np.isfinite(data["mean"].values)
    last = int(reached.any(axis=0).sum()) - 1
    none = last < 0
    until = about["until"] is not None
    runs = np.flatnonzero(reached.any(axis=1) if until else reached[:, last])
    at = reached[runs].sum(axis=1) - 1  # the last checkpoint of each of these runs

    def mean(name: str) -> Any:
        return None if none else data[name].values[runs, at].mean(axis=0).tolist()

    record = {
        **{key: about[key] for key in ("protocol", "statistic", "data", "graph", "n", "rows", "edges")},
        "iterations": 0 if none else round(float(trace.iterations[at].mean())),
        "runs": about["runs"],
        "runs_reached": 0 if none else len(runs),
        "seed": about["seed"],
        "exact": _plain(data["target"].mean("node") if "node" in data["target"].dims else data["target"]),
        "estimate": mean("estimate"),
        "error": mean("mean"),
        "spread": mean("spread"),
        "relative": about["relative"],
        "units": 0 if none else round(float(trace.units[at].mean())),
        "seconds": round(about["seconds"], 3),
        "complete": trace.complete,
    }
    if about["interval"] is not None and not none:
        low, high = (_finite(end.values[runs, at].mean()) for end in trace.intervals())
        pooled = [_finite(end) for end in about["pooled"]]
        record["interval"] = {"level": about["interval"], "low": low, "high": high, "all_rows": pooled}
    if "alone" in about:
        record["alone"] = about["alone"]
    if until:
        stopped = data["stopped"].values > 0
        wrong = trace.data["median"].values[runs, at]
        record["until"] = {
            "error": about["until"],
            "stopped": int(stopped.sum()),
            "kept": int((wrong[stopped[runs]] <= about["until"]).sum()),
            "worst": float(wrong[stopped[runs]].max()) if stopped.any() else None,
        }
    return record


def _finite(value: float) -> float | None:
    """A number as JSON can hold it."""
    return float(value) if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    return value.values.tolist()


def _summary(traces: list[Trace]) -> str:
    records = [_record(trace) for trace in traces]
    first, about = records[0], traces[0].about
    runs = f"{first['runs']} run{'s' * (first['runs'] > 1)}"
    if first["runs_reached"] < first["runs"]:
        runs = f"{first['runs_reached']} of {runs}"
    kind = "relative error" if first["relative"] else "absolute error (the exact value is 0)"
    where = f"{first['n']:,} nodes, {first['edges']:,} edges"
    if first["rows"] != first["n"]:
        where += f", {first['rows']:,} rows ({about['smallest']:,} to {about['largest']:,} a node)"
    stopped = "until" in first and first["until"]["stopped"]
    after = "until the nodes stopped" if stopped else f"after {first['iterations']:,} iterations"
    head = [
        f"{first['statistic']} of {first['data']} on {first['graph']}: {where}",
        f"exact value {_number(first['exact'])}; {after}, {runs}:",
        f"  {'protocol':<14}{'estimate':>12}{'error':>11}{'spread':>11}{'numbers sent':>16}{'seconds':>10}",
    ]
    rows = []
    for r in records:
        error, spread = (_share(r[k], r["relative"]) for k in ("error", "spread"))
        numbers = f"{_number(r['estimate']):>12}{error:>11}{spread:>11}{r['units']:>16,}{r['seconds']:>10.2f}"
        rows.append(f"  {r['protocol']:<14}{numbers}")
    foot = f"error: {kind}, mean over nodes; spread: its standard deviation over nodes"
    return "\n".join([*head, *rows, foot, *_notes(traces, records)])


def _notes(traces: list[Trace], records: list[dict[str, Any]]) -> Iterator[str]:
    """What else there is to say: stopping, intervals, local values, moments."""
    first = records[0]
    for record in records:
        if "until" in record:
            yield f"{record['protocol']}: {_stopped(record)}"
        if "interval" in record:
            interval = record["interval"]
            nodes, pooled = f"{_number(interval['low'])} to {_number(interval['high'])}", interval["all_rows"]
            yield (
                f"{100 * interval['level']:g} % interval for the population: {nodes} at the nodes, on average; "
                f"{_number(pooled[0])} to {_number(pooled[1])} from all rows in one place"
            )
    if "alone" in first and not isinstance(first["exact"], list):
        yield _local_values(first)
    if traces[0].about["interval"] is not None and options.statistic(first["statistic"]).moments:
        yield f"with an interval, {first['statistic']} goes by pairs of rows; without, by means, which is far faster"
    if any(trace.about["moments"] for trace in traces):
        yield f"{first['statistic']} is a function of plain means: tracking averages those, and no rows travel"


def _stopped(record: dict[str, Any]) -> str:
    until = record["until"]
    wanted = options.share(until["error"])
    if not until["stopped"]:
        return f"no run stopped at {wanted} within {record['iterations']:,} iterations"
    runs = f"{until['stopped']} of {record['runs']} runs stopped" if until["stopped"] < record["runs"] else "stopped"
    return (
        f"{runs} after {record['iterations']:,} iterations on average; the median node was within {wanted} in "
        f"{until['kept']} of {until['stopped']} runs (worst {options.share(until['worst'])})"
    )


def _local_values(record: dict[str, Any]) -> str:
    """What those get who average the values that nodes find alone."""
    values = [value for value in record["alone"] if value is not None]
    none = len(record["alone"]) - len(values)
    lack = f" ({none} node{'s have' if none > 1 else ' has'} none: too few rows, or of one class only)" if none else ""
    if not values:
        return f"averaging the nodes' own values is not possible{lack}"
    mean, exact = sum(values) / len(values), record["exact"]
    off = f", off by {options.share(abs(mean - exact) / abs(exact))}" if exact else ""
    return f"averaging the nodes' own values would give {_number(mean)}{off}{lack}"


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


def _draw(traces: list[Trace], path: Path, against: Axis, bound: bool) -> None:
    from gosta.simulation import summary
    from gosta.simulation.simulate import setting_of
    from gosta.views import plots

    ax = summary.plot(traces, [trace.about["protocol"] for trace in traces], against)
    if bound:
        from gosta.theory.curves import error_curves

        for trace in traces:
            tables = trace.about["rows"] != trace.about["n"]
            found = {} if tables else error_curves(setting_of(trace), trace.iterations)
            if found:
                plots.draw_theory(ax, summary.error_curve(trace, against), found)
            else:
                of = "tables at nodes" if tables else trace.about["protocol"]
                print(f"gosta: there is no theory for {of} to draw", file=sys.stderr)
    plots.save(ax.figure, path)
