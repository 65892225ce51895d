"""Simulating a protocol on a graph, and going on with what was begun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from gosta.errors import InputError
from gosta.estimation.problem import Problem, Setting, rule_for, settle
from gosta.estimation.stopping import looks
from gosta.graphs.graph import Graph
from gosta.protocols import Collecting, Protocol
from gosta.runtime import progress
from gosta.simulation.runner import Simulation
from gosta.simulation.trace import Trace
from gosta.statistics import Statistic
from gosta.statistics import find as find_statistic

MOST = 1 << 53  # ticks are floats, which count exactly up to here
MOST_A_NODE = 10_000  # iterations a node after which nodes that are not done are not waited for
Spacing = Literal["linear", "log"]
EngineName = Literal["compiled", "reference"]


def simulate(
    data: Any,
    statistic: str | Statistic,
    *,
    graph: Any = "watts-strogatz",
    protocol: str | Protocol | Collecting = "tracking",
    iterations: int | None = None,
    runs: int = 10,
    seed: int = 0,
    checkpoints: int = 100,
    spacing: Spacing = "linear",
    clocks: bool = False,
    engine: EngineName = "compiled",
    columns: str | int | Sequence[str | int] | None = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
    nodes: int | None = None,
    deal: str | None = None,
    by: Any = None,
    interval: float | None = None,
    until: float | None = None,
    patience: float = progress.PATIENCE,
    **options: Any,
) -> Trace:
    """Let a protocol estimate a statistic on a network whose nodes hold one row of the data each, or several.

    Parameters
    ----------
    data, statistic, columns, label, score, drop_missing, **options
        As for `gosta.exact`.
    graph
        A family's name (``gosta graph --help``), made for as many nodes as are needed; or a graph, an edge file, a
        networkx graph.
    protocol
        A name from ``gosta protocols``.
    iterations
        Edges drawn in each run (U2 draws two an iteration); by default 100 a node.
    runs, seed
        Independent runs; run r always sees the same edges for the same seed and graph.
    checkpoints, spacing
        How many times estimates are read, evenly ("linear") or in equal ratios ("log"); not used with `until`.
    clocks
        Whether edges fire by Poisson clocks of rate 1, and the time of each checkpoint is recorded as ``time``.
    engine
        "compiled", or "reference", which is plain Python and gives the same numbers.
    nodes, deal, by
        How many nodes there are, if not one for each row; rows are dealt at random, a few nodes having many ("zipf",
        the default) or all as many ("even"). `by` is a column (or its values) that says which node a row is at, or,
        together with `nodes`, whose neighbouring values go to the same node.
    interval
        Confidence level, such as 0.95: every node gives an interval for the population value, see `Trace.intervals`.
    until
        A relative error, such as 0.01, at which the nodes of a run are to stop by what they see themselves; runs that
        do not are ended after `iterations`, by default 10 000 a node.

    Returns
    -------
    Trace
        Ctrl-C ends the runs early; the trace then holds what was computed.

    Examples
    --------
    >>> import gosta
    >>> trace = gosta.simulate("iris", "gini-mean-difference", graph="complete", iterations=20_000, runs=2)
    >>> bool(trace.error()["mean"][-1] < 0.05), round(trace.target, 4)
    (True, 0.9462)
    """
    _check(iterations, runs, checkpoints, seed, until)
    for name, text, known in (("spacing", spacing, Spacing), ("engine", engine, EngineName)):
        if text not in get_args(known):
            raise InputError(f"{name} = {text!r} must be {' or '.join(map(repr, get_args(known)))}")
    setting = settle(
        protocol, data, statistic, graph, seed, options, columns, label, score, drop_missing, nodes, deal, by, interval
    )
    problem = setting.problem
    about = {
        **_about(setting),
        "runs": int(runs),
        "seed": int(seed),
        "spacing": spacing if until is None else "log",
        "clocks": clocks,
        "until": None if until is None else float(until),
        "engine": engine,
        "seconds": 0.0,
    }
    last = (100 if until is None else MOST_A_NODE) * problem.nodes if iterations is None else int(iterations)
    at = _checkpoints(last, checkpoints, spacing) if until is None else looks(min(last, problem.nodes), last)
    return Simulation(setting, at, about).go(patience)


def _about(setting: Setting) -> dict[str, Any]:
    """What is told of a setting, and of what nodes could find alone."""
    problem, network = setting.problem, setting.graph
    about = {
        "protocol": setting.protocol.name,
        "statistic": problem.statistic.name,
        "data": problem.data,
        "content": problem.content,
        "options": problem.plain_options,
        "graph": network.name,
        "n": problem.nodes,
        "rows": problem.n,
        "edges": network.m,
        "interval": problem.level,
        "moments": isinstance(setting.protocol, Protocol) and setting.protocol.begins == "moments",
    }
    if problem.sizes is not None:
        about |= {"smallest": int(problem.sizes.min()), "largest": int(problem.sizes.max())}
        about["alone"] = [None if np.isnan(value) else value for value in problem.alone()[:, 0].tolist()]
    if problem.level is not None:
        about["pooled"] = list(problem.pooled_interval())
    return about


def _checkpoints(last: int, checkpoints: int, spacing: Spacing) -> Any:
    count = min(checkpoints, last)
    even = np.linspace(0, last, count + 1)[1:] if spacing == "linear" else np.geomspace(last, 1, count)
    return np.unique(np.maximum(1, np.round(even))).astype(np.int64)


def _check(iterations: Any, runs: Any, checkpoints: Any, seed: Any, until: Any) -> None:
    counts = {"runs": runs, "checkpoints": checkpoints} | ({} if iterations is None else {"iterations": iterations})
    for name, value in counts.items():
        _check_count(name, value)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed = {seed!r} must be a whole number, not negative")
    if until is not None and (not isinstance(until, float | np.floating) or not 0 < until < 1):
        raise InputError(f"until = {until!r} must be a relative error between 0 and 1, such as 0.01")


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= MOST:
        raise InputError(f"{name} = {value!r} must be a whole number from 1 to {MOST}")


def resume(source: Trace | str | Path, iterations: int | None = None, patience: float = progress.PATIENCE) -> Trace:
    """Go on with a simulation from where it stopped, or beyond where it ended.

    Parameters
    ----------
    source
        A trace, or the file one was saved to.
    iterations
        A new end, with checkpoints as far apart as the last two were; in equal ratios if nodes stop by themselves.

    Returns
    -------
    Trace
        The same numbers as those of a simulation that was never interrupted.
    """
    old = source if isinstance(source, Trace) else Trace.load(source)
    if "now" not in old.rest:
        raise InputError(
            "this trace does not hold the nodes of its runs (reference engine, or too large): it cannot go on"
        )
    setting = setting_of(old)
    at = old.iterations
    if iterations is not None:
        _check_count("iterations", iterations)
        if iterations < at[-1]:
            raise InputError(f"iterations = {iterations}: the trace goes to {at[-1]} already; give more")
    if iterations is not None and iterations > at[-1]:
        if old.about["until"] is not None:
            more = looks(int(at[0]), iterations)
        else:
            step = int(at[-1] - at[-2]) if len(at) > 1 else int(at[-1])
            more = np.unique(np.append(np.arange(at[-1] + step, iterations, step), iterations))
        at = np.append(at, more[more > at[-1]])
    return Simulation(setting, at, dict(old.about), old).go(patience)


def setting_of(trace: Trace) -> Setting:
    """What a trace is about, from what it keeps."""
    about, rest = trace.about, trace.rest
    if "x" not in rest:
        raise InputError("this trace was too large to keep its observations and edges")
    statistic = find_statistic(about["statistic"])
    x = np.ascontiguousarray(rest["x"])
    problem = Problem(statistic, x, about["options"], about["data"], rest.get("sizes"))
    problem = problem.with_interval(about["interval"])
    if problem.content != about["content"]:
        raise InputError(f"{statistic.name} is not the statistic it was when this trace began")
    network = Graph(about["graph"], about["n"], rest.get("edges"), rest.get("weights"))
    return Setting(rule_for(about["protocol"], problem.statistic), problem, network)
