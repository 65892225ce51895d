"""Simulating a protocol on a network, and continuing a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np

from gosta import protocols
from gosta.errors import InputError, unknown
from gosta.estimation.estimand import fingerprint_or_empty, join_estimands
from gosta.estimation.placement import Placement
from gosta.estimation.setting import Setting, make_setting, protocol_for
from gosta.estimation.stopping import reading_times
from gosta.faults import check_faults
from gosta.graphs.changing import ChangingGraph
from gosta.graphs.graph import Graph
from gosta.protocols import AnyProtocol, CollectingProtocol
from gosta.runtime import compiler, progress
from gosta.runtime.arrays import Integers
from gosta.simulation import engines
from gosta.simulation.runner import Runner, RunnerFactory
from gosta.simulation.trace import Spacing, Trace, TraceInfo
from gosta.statistics.definition import collect_options
from gosta.statistics.joint import Chosen, choose

MAX_COUNT = 1 << 53  # ticks are floats, which count exactly up to here
ITERATIONS_PER_NODE = 100
# with `until`: iterations after which nodes that have not stopped are not waited for
MAX_ITERATIONS_PER_NODE = 10_000


def check_run(
    iterations: Any, runs: Any, seed: Any, checkpoints: Any, spacing: Any, engine: str, until: Any
) -> None:
    """Raise `InputError` unless the options of the runs of a simulation are valid."""
    check_count("runs", runs)
    check_count("checkpoints", checkpoints)
    if iterations is not None:
        check_count("iterations", iterations)
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed = {seed!r} must be a whole number, not negative")
    if until is not None and (not isinstance(until, float | np.floating) or not 0 < until < 1):
        raise InputError(
            f"until = {until!r} must be a relative error between 0 and 1, such as 0.01"
        )
    if spacing not in get_args(Spacing):
        raise unknown("spacing", str(spacing), get_args(Spacing))
    engines.find(engine)


def check_count(name: str, value: object) -> None:
    """Raise `InputError` unless a value is a positive whole number."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or not 1 <= value <= MAX_COUNT
    ):
        raise InputError(f"{name} = {value!r} must be a whole number from 1 to {MAX_COUNT}")


def checkpoint_iterations(
    nodes: int, iterations: int | None, checkpoints: int, spacing: Spacing, until: float | None
) -> Integers:
    """Return the iterations at which estimates are read."""
    per_node = ITERATIONS_PER_NODE if until is None else MAX_ITERATIONS_PER_NODE
    last = per_node * nodes if iterations is None else int(iterations)
    if until is not None:
        return reading_times(min(last, nodes), last)
    count = min(checkpoints, last)
    times = (
        np.linspace(0, last, count + 1)[1:] if spacing == "linear" else np.geomspace(last, 1, count)
    )
    return np.unique(np.maximum(1, np.round(times))).astype(np.int64)


def simulate(
    data: Any,
    statistic: Chosen,
    *,
    graph: Any = None,
    protocol: str | AnyProtocol = protocols.DEFAULT,
    iterations: int | None = None,
    iterations_per_node: int | None = None,
    runs: int = 10,
    seed: int = 0,
    checkpoints: int = 100,
    spacing: Spacing = "linear",
    clocks: bool = False,
    engine: str = "compiled",
    columns: str | int | Sequence[str | int] | None = None,
    label: Any = None,
    score: Any = None,
    drop_missing: bool = False,
    nodes: int | None = None,
    deal: str | None = None,
    by: Any = None,
    homophily: float | None = None,
    loss: float | None = None,
    away: float | None = None,
    away_for: float | None = None,
    partition: tuple[int, int] | None = None,
    interval: float | None = None,
    until: float | None = None,
    options: Mapping[str, Any] | None = None,
    patience: float = progress.DELAY_SECONDS,
    runner: RunnerFactory = Runner,
    **statistic_options: Any,
) -> Trace:
    """Simulate a protocol that estimates a statistic on a network whose nodes hold one or several rows each.

    Parameters
    ----------
    data, columns, label, score, drop_missing, options, **statistic_options
        As for `gosta.exact`.
    statistic
        A name, "auc" or "kendall-tau:age+risk" with its columns, or a `gosta.Statistic`; or several, as a list or
        separated by commas, which nodes estimate together.
    graph
        Name of a family of graphs (``gosta graph --help``), made for as many nodes as are needed; or a graph, an edge
        file, a networkx graph. By default "watts-strogatz", "complete" for fewer than 6 nodes. Graphs that change:
        "cycle,complete@20000" (or ``[("cycle", 0), ("complete", 20_000)]``) draws edges from the complete graph from
        iteration 20,000 on; "day.csv,night.csv@5000,repeat@10000" begins again after 10,000.
    protocol
        A name from ``gosta protocols``, or a `gosta.Protocol`.
    iterations, iterations_per_node
        Edges drawn in each run (U2 draws two an iteration), or how many times the number of nodes; by default 100
        times. An edge has two ends: a node then takes part in 200 exchanges, on average.
    runs, seed
        Number of independent runs; run r always draws the same edges for the same seed and graph.
    checkpoints, spacing
        How many times estimates are read, evenly ("linear") or in equal ratios ("log"); not used with `until`.
    clocks
        Whether edges fire by Poisson clocks of rate 1, and the time of each checkpoint is recorded as ``time``.
    engine
        "compiled"; "gpu", for an NVIDIA GPU (docs/explanation/simulation.md says what it supports); or "reference",
        which is plain Python. All give the same numbers.
    nodes, deal, by
        Number of nodes, if not one for each row; rows are placed at random, many at a few nodes ("zipf", the default)
        or equally many at each ("even"). `by` is a column (or its values) that says which node a row is at, or,
        together with `nodes`, whose neighbouring values are at the same node.
    homophily
        From 0 to 1, how alike neighbours are in the column `by`: the share of nodes that hold what they would if
        all were sorted by it along the network; the others hold rows at random. Without `nodes`, each holds one row.
    loss
        Probability that a message is lost. An exchange takes one in each direction, and place on both sides or on
        neither.
    away, away_for
        Share of the nodes that are away at any time, and for how long on average: as many exchanges as a node has
        meanwhile (by default 10). They come back as they were.
    partition
        Iterations from and up to which the first half of the nodes is separated from the others.
    interval
        Confidence level, such as 0.95: every node reports an interval for the population value, see
        `Trace.intervals`.
    until
        Relative error, such as 0.01, at which the nodes of a run stop by their own readings; runs that do not stop end
        after `iterations`, by default 10,000 times the number of nodes.
    patience
        Seconds after which a progress bar appears.
    runner
        What advances the runs; ``gosta run --live`` has one that shows them in a browser.

    Returns
    -------
    Trace
        Estimates and errors at all checkpoints.

    Raises
    ------
    Interrupted
        On Ctrl-C: a KeyboardInterrupt whose `trace` holds the checkpoints that were reached.

    Examples
    --------
    >>> import gosta
    >>> trace = gosta.simulate("iris", "gini-mean-difference", graph="complete", iterations=20_000, runs=2)
    >>> bool(trace.error()["mean"][-1] < 0.05), round(trace.target, 4)
    (True, 0.9462)
    """
    check_run(iterations, runs, seed, checkpoints, spacing, engine, until)
    if iterations_per_node is not None:
        check_count("iterations_per_node", iterations_per_node)
        if iterations is not None:
            raise InputError(
                "iterations and iterations_per_node exclude each other; give one of them"
            )
    arguments = locals()
    faults = check_faults(loss, away, away_for, partition)
    for member in choose(statistic):
        given = collect_options(member.statistic, options, statistic_options, simulate, arguments)
    setting = make_setting(
        protocol, data, statistic, graph, seed, given, columns, label, score, drop_missing, nodes, deal, by, interval,
        homophily, faults, may_change=True,
    )  # fmt: skip
    if setting.estimand.statistic.is_per_row and not setting.protocol.estimates_row_means:
        reason = f"a simulation of {setting.protocol.name} reads one value for all"
        raise InputError(
            f"{setting.estimand.statistic.name} has a value for each row, {reason}; use protocol='u1' (--protocol u1)"
        )
    if iterations_per_node is not None:
        iterations = iterations_per_node * setting.placement.nodes
    at = checkpoint_iterations(setting.placement.nodes, iterations, checkpoints, spacing, until)
    _check_changes(setting, int(at[-1]))
    info = _info(
        setting, runs=int(runs), seed=int(seed), engine=engine, iterations=int(at[-1]), clocks=clocks,
        spacing=spacing if until is None else "log", until=None if until is None else float(until),
    )  # fmt: skip
    return runner(setting, info, at).run(patience)


def _check_changes(setting: Setting, last: int) -> None:
    """Raise `InputError` if a run ends before a graph is in force."""
    for start, name in () if setting.changing is None else setting.changing.changes:
        if start >= last:
            way_out = f"give more iterations (--iterations), or let it begin before {last:,}"
            raise InputError(
                f"graph: {name} is in force from iteration {start:,} on, and runs end before; {way_out}"
            )


def _info(setting: Setting, **run: Any) -> TraceInfo:
    """Return the description of a simulation, given the options of its runs."""
    protocol, estimand, placement, graph = (
        setting.protocol,
        setting.estimand,
        setting.placement,
        setting.graph,
    )
    local = setting.local_values().T.tolist() if placement.has_tables else []
    changing, alike = setting.changing, setting.homophily
    return TraceInfo(
        protocol=protocol.name, protocol_fingerprint=protocol_fingerprint(protocol), **run,
        draws=protocol.draws, averages_moments=protocol.averages_moments, is_relative=bool((setting.target != 0).any()),
        statistic=estimand.statistic.name, statistic_fingerprint=estimand.fingerprint,
        options=estimand.json_options, data=estimand.data, rows=estimand.n,
        graph=graph.name if changing is None else changing.name,
        graph_changes=() if changing is None else changing.changes,
        graph_period=None if changing is None else changing.period, faults=setting.faults,
        homophily=None if alike is None else alike.share, assortativity=None if alike is None else alike.assortativity,
        nodes=placement.nodes, edges=graph.m,
        min_rows=int(placement.rows.min()), max_rows=int(placement.rows.max()),
        local_values=tuple(tuple(None if np.isnan(value) else value for value in values) for values in local),
        level=estimand.level, pooled_intervals=() if estimand.level is None else tuple(estimand.pooled_intervals()),
        row_widths=estimand.row_widths, no_intervals=estimand.no_intervals,
    )  # fmt: skip


def protocol_fingerprint(protocol: AnyProtocol) -> str:
    """Return a digest of a protocol's functions; empty where they depend on something that cannot be hashed."""
    if isinstance(protocol, CollectingProtocol):
        return compiler.fingerprint(Path(protocol.file).read_text(encoding="utf-8"))[:16]
    functions = protocol.init, protocol.tell, protocol.meet, protocol.read
    return fingerprint_or_empty(protocol.state, *functions, protocol.visitors)


def resume(
    source: Trace | str | Path,
    iterations: int | None = None,
    protocol: AnyProtocol | None = None,
    engine: str | None = None,
    patience: float = progress.DELAY_SECONDS,
) -> Trace:
    """Continue a simulation from where it was interrupted, or beyond its end.

    Parameters
    ----------
    source
        A trace, or the file one was saved to.
    iterations
        A new end, with checkpoints as far apart as the last two were; in equal ratios where nodes stop by themselves.
    protocol
        The protocol of the trace, where it is not one of `gosta.protocols.PROTOCOLS`.
    engine
        "compiled" or "gpu", if not the one of the trace; the numbers are the same.
    patience
        Seconds after which a progress bar appears.

    Returns
    -------
    Trace
        The same numbers as those of a simulation that was never interrupted.

    Examples
    --------
    >>> import gosta
    >>> trace = gosta.simulate("iris", "gini-mean-difference", columns=0, iterations=1000, runs=1)
    >>> gosta.resume(trace, iterations=2000).iterations[-1]
    np.int64(2000)
    """
    trace = source if isinstance(source, Trace) else Trace.load(source)
    if not trace.can_resume:
        raise InputError(
            "this trace cannot be continued: it does not hold the nodes of its runs (reference engine, or too large)"
        )
    at = trace.iterations
    if iterations is not None:
        check_count("iterations", iterations)
        if iterations < at[-1]:
            raise InputError(
                f"iterations = {iterations} must be at least {at[-1]}, where the trace ends"
            )
        if iterations > at[-1]:
            at = np.append(at, _further_checkpoints(trace, iterations))
    engines.find(engine or trace.info.engine)
    info = replace(trace.info, iterations=int(at[-1]), engine=engine or trace.info.engine)
    return Runner(setting_of(trace, protocol), info, at, trace).run(patience)


def _further_checkpoints(trace: Trace, last: int) -> Integers:
    at = trace.iterations
    if trace.info.until is not None:
        times = reading_times(int(at[0]), last)
        return np.extract(times > at[-1], times)
    step = int(at[-1] - at[-2]) if len(at) > 1 else int(at[-1])
    return np.append(np.arange(at[-1] + step, last, step, dtype=np.int64), last)


def setting_of(trace: Trace, protocol: AnyProtocol | None = None) -> Setting:
    """Return what a trace simulated, from the arrays it holds."""
    info, arrays = trace.info, trace.resume_data
    if "x" not in arrays:
        raise InputError("this trace does not hold its observations and edges: they were too large")
    try:
        members = choose(info.statistic)
    except InputError:
        if "," in info.statistic:
            raise
        hint = f"import its file first, or on the command line give --statistic FILE.py:{info.statistic}"
        raise InputError(
            f"the statistic {info.statistic!r} of this trace is not built in; {hint}"
        ) from None
    x = np.ascontiguousarray(arrays["x"])
    estimand = join_estimands(members, info.row_widths, x, info.options, info.data).with_interval(
        info.level
    )
    statistic = estimand.statistic
    if estimand.fingerprint != info.statistic_fingerprint:
        raise InputError(
            f"the statistic {statistic.name} has changed since this trace was made; it cannot be continued"
        )
    placement = (
        Placement.of(arrays["counts"], trace.node_names)
        if "counts" in arrays
        else Placement(len(x))
    )
    if protocol is None and info.protocol not in protocols.PROTOCOLS:
        raise InputError(
            f"the protocol {info.protocol!r} is not built in; pass it: resume(..., protocol=...)"
        )
    chosen = protocol_for(
        protocol or info.protocol, statistic, info.level is not None, placement.has_tables
    )
    if protocol_fingerprint(chosen) != info.protocol_fingerprint:
        raise InputError(
            f"the protocol {chosen.name!r} is not the one of this trace; pass that one: resume(..., protocol=...)"
        )
    edges, weights, parents = (arrays.get(name) for name in ("edges", "weights", "parents"))
    network, changing = Graph(info.graph, info.nodes, edges, weights, parents=parents), None
    if info.graph_changes:
        later = [Graph(name, info.nodes, arrays.get(f"edges_{k}"), arrays.get(f"weights_{k}"))
                 for k, (_, name) in enumerate(info.graph_changes, 1)]  # fmt: skip
        starts = (0, *(start for start, _ in info.graph_changes))
        changing = ChangingGraph(starts, (network, *later), info.graph_period)
    return Setting(chosen, estimand, placement, network, info.faults, changing)
