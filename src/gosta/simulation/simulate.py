"""Simulating a protocol on a network, and continuing a simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gosta import protocols
from gosta.errors import InputError
from gosta.estimation.setting import Setting, make_setting
from gosta.estimation.stopping import reading_times
from gosta.protocols import AnyProtocol
from gosta.runtime import progress
from gosta.runtime.arrays import Integers
from gosta.schedule import check_faults
from gosta.simulation import engines
from gosta.simulation.run_options import CheckpointOptions, RunInfo, Spacing, check_count
from gosta.simulation.runner import Runner, RunnerFactory
from gosta.simulation.trace import Trace
from gosta.simulation.trace_file import with_protocol
from gosta.statistics.definition import collect_options
from gosta.statistics.joint import Chosen, choose


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
    time: Any = None,
    event: Any = None,
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
    """Simulate a protocol that estimates a statistic on a network of nodes with rows.

    Parameters
    ----------
    data, columns, label, score, time, event, drop_missing, options, **statistic_options
        As for `gosta.exact`.
    statistic
        A name, "auc" or "kendall-tau:age+risk" with its columns, or a `gosta.Statistic`; or
        several, as a list or separated by commas, which nodes estimate together.
    graph
        Name of a family of graphs (``gosta graph --help``), made for as many nodes as are needed;
        or a graph, an edge file, a networkx graph. By default "watts-strogatz", "complete" for
        fewer than 6 nodes. Graphs that change: "cycle,complete@20000" (or ``[("cycle", 0),
        ("complete", 20_000)]``) draws edges from the complete graph from iteration 20,000 on;
        "day.csv,night.csv@5000,repeat@10000" begins again after 10,000.
    protocol
        A name from ``gosta protocols``, or a `gosta.Protocol`.
    iterations, iterations_per_node
        Edges drawn in each run (U2 draws two an iteration), or how many times the number of nodes;
        by default 100 times. An edge has two ends: a node then takes part in 200 exchanges, on
        average.
    runs, seed
        Number of independent runs; run r always draws the same edges for the same seed and graph.
    checkpoints, spacing
        How many times estimates are read, evenly ("linear") or in equal ratios ("log"); not used
        with `until`.
    clocks
        Whether edges fire by Poisson clocks of rate 1, and the time of each checkpoint is recorded
        as ``time``.
    engine
        "compiled"; "gpu", for an NVIDIA GPU (docs/explanation/simulation.md says what it supports);
        or "reference", which is plain Python. All give the same numbers.
    nodes, deal, by
        Number of nodes, if not one for each row; rows are placed at random, many at a few nodes
        ("zipf", the default) or equally many at each ("even"). `by` is a column (or its values)
        that says which node a row is at, or, together with `nodes`, whose neighbouring values are
        at the same node.
    homophily
        From 0 to 1, how alike neighbours are in the column `by`: the share of nodes that hold what
        they would if all were sorted by it along the network; the others hold rows at random.
        Without `nodes`, each holds one row.
    loss
        Probability that a message is lost. An exchange takes one in each direction, and place on
        both sides or on neither.
    away, away_for
        Share of the nodes that are away at any time, and for how long on average: as many exchanges
        as a node has meanwhile (by default 10). They come back as they were.
    partition
        Iterations from and up to which the first half of the nodes is separated from the others.
    interval
        Confidence level, such as 0.95: every node reports an interval for the population value, see
        `Trace.intervals`.
    until
        Relative error, such as 0.01, at which the nodes of a run stop by their own readings; runs
        that do not stop end after `iterations`, by default 10,000 times the number of nodes.
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
    >>> statistic = "gini-mean-difference"
    >>> trace = gosta.simulate("iris", statistic, graph="complete", iterations=20_000, runs=2)
    >>> bool(trace.error()["mean"][-1] < 0.05), round(trace.target, 4)
    (True, 0.9462)
    """
    arguments = locals()
    engines.find(engine)
    times = CheckpointOptions(iterations, iterations_per_node, checkpoints, spacing, until)
    # The iterations are those of the last checkpoint, which depends on the number of nodes.
    info = RunInfo(runs, seed, engine, 0, spacing if until is None else "log", clocks, until)
    faults = check_faults(loss, away, away_for, partition)
    for member in choose(statistic):
        known_options = collect_options(
            member.statistic, options, statistic_options, simulate, arguments
        )
    setting = make_setting(
        protocol,
        data,
        statistic,
        graph,
        seed,
        known_options,
        columns=columns,
        label=label,
        score=score,
        time=time,
        event=event,
        drop_missing=drop_missing,
        nodes=nodes,
        deal=deal,
        by=by,
        interval=interval,
        homophily=homophily,
        faults=faults,
        may_change=True,
    )
    if setting.estimand.statistic.is_per_row and not setting.protocol.estimates_row_means:
        reason = f"a simulation of {setting.protocol.name} reads one value for all"
        raise InputError(
            f"{setting.estimand.statistic.name} has a value for each row, {reason}; use "
            "protocol='u1' (--protocol u1)"
        )
    at = times.times(setting.placement.nodes)
    _check_changes(setting, int(at[-1]))
    return runner(setting, replace(info, iterations=int(at[-1])), at).run(patience)


def _check_changes(setting: Setting, last: int) -> None:
    """Raise `InputError` if a run ends before a graph is in force."""
    for start, name in () if setting.changing is None else setting.changing.changes:
        if start >= last:
            way_out = f"give more iterations (--iterations), or let it begin before {last:,}"
            raise InputError(
                f"graph: {name} is in force from iteration {start:,} on, and runs end before; "
                f"{way_out}"
            )


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
        A new end, with checkpoints as far apart as the last two were; in equal ratios where nodes
        stop by themselves.
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
            "this trace cannot be continued: it does not hold the nodes of its runs (reference "
            "engine, or too large)"
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
    return Runner(_setting_to_resume(trace, protocol), info, at, trace).run(patience)


def _setting_to_resume(trace: Trace, protocol: AnyProtocol | None) -> Setting:
    missing = trace.missing
    if missing.statistic:
        raise InputError(missing.statistic)
    if protocol is not None:
        return with_protocol(trace.setting, protocol, missing)
    if missing.protocol:
        raise InputError(missing.protocol)
    return trace.setting


def _further_checkpoints(trace: Trace, last: int) -> Integers:
    at = trace.iterations
    if trace.info.until is not None:
        times = reading_times(int(at[0]), last)
        return np.extract(times > at[-1], times)
    step = int(at[-1] - at[-2]) if len(at) > 1 else int(at[-1])
    return np.append(np.arange(at[-1] + step, last, step, dtype=np.int64), last)
