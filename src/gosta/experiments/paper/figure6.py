"""Figure 6, which is not in the paper: the default protocol against all others.

They are compared by exchanges and by numbers sent.

The second row of panels has the rows of one class next to each other, so that neighbours are alike,
as in many real networks. It has the three fastest protocols, and fewer runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan
from gosta.views.numbers import percent

OURS = "carried-means"
FAST = (OURS, "tracking", "gosta-async")
PROTOCOLS = (*FAST, "gosta-sync", "u2", "flooding", "master-node")
# Iterations within which each gets to 1 % on all networks of the paper, with shuffled rows and with
# sorted ones.
LONG_ITERATIONS = {OURS: 200_000, "tracking": 1_600_000, "gosta-async": 1_600_000}
SORTED_ITERATIONS = {OURS: 800_000, "tracking": 1_600_000, "gosta-async": 4_800_000}
SORTED_SHARE = 5  # shuffled runs for each run with sorted rows
CHECKPOINTS = 100
ERROR = 0.01
LEAST_FACTOR = 6  # by which exchanges are to be fewer on each network
# Exchanges of a node after which errors are compared; before, few rows are counted.
FIRST_PER_NODE = 4
ON_NETWORKS = "on complete, Watts-Strogatz and grid"
RANDOM_PAIRS = (
    f"It is so only where the error is below {percent(ERROR)}. There nodes agree with each other, "
    "and the remaining error comes from which pairs of rows happened to be evaluated, which "
    "neither protocol averages away."
)


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of all protocols on all three networks, and those with sorted rows."""
    shuffled = [_job(plan, graph, name) for graph in model.GRAPHS for name in PROTOCOLS]
    return shuffled + [_sorted_job(plan, graph, name) for graph in model.GRAPHS for name in FAST]


def _job(plan: Plan, graph: str, protocol: str) -> Job:
    """Return a long job; of flooding, which is slow to simulate, the job of figure 4."""
    if protocol == "flooding":
        return plan.job(plan.scatter, graph, protocol)
    if protocol == "master-node":
        last = len(plan.scatter.rows) - 1  # with all rows there is no error
        return plan.job(plan.scatter, "complete", protocol, last, spacing="log")
    iterations = LONG_ITERATIONS.get(protocol, model.ITERATIONS)
    return plan.job(
        plan.scatter, graph, protocol, iterations, spacing="log", checkpoints=CHECKPOINTS
    )


def _sorted_job(plan: Plan, graph: str, protocol: str) -> Job:
    iterations = SORTED_ITERATIONS[protocol]
    fewer = replace(plan, runs=max(1, plan.runs // SORTED_SHARE))
    return fewer.job(
        plan.sorted_scatter, graph, protocol, iterations, spacing="log", checkpoints=CHECKPOINTS
    )


def _histories(plan: Plan, history_of: HistoryOf) -> tuple[model.ByGraph, model.ByGraph]:
    """Return the histories with shuffled and with sorted rows."""
    shuffled = {
        graph: {name: history_of(_job(plan, graph, name)) for name in PROTOCOLS}
        for graph in model.GRAPHS
    }
    ordered = {
        graph: {name: history_of(_sorted_job(plan, graph, name)) for name in FAST}
        for graph in model.GRAPHS
    }
    return shuffled, ordered


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare the exchanges and the numbers sent until the error is 1 %."""
    shuffled, ordered = _histories(plan, history_of)
    table = [
        [f"exchanges, and numbers sent, to {percent(ERROR)} error", "rows", *model.GRAPHS.values()]
    ]
    numbers: dict[str, Any] = {}
    for rows, histories in (("shuffled", shuffled), ("sorted", ordered)):
        for name in next(iter(histories.values())):
            cells = [_cell(name, by_protocol[name]) for by_protocol in histories.values()]
            table.append([layout.NAMES[name], rows, *cells])
        numbers[rows] = {
            g: {name: each.as_json() for name, each in by.items()} for g, by in histories.items()
        }
        numbers[rows] |= {
            "exchanges": _firsts(histories, "iterations"),
            "sent": _firsts(histories, "units"),
        }
    claims = [
        _fewer_exchanges("", shuffled),
        _fewer_exchanges("With rows sorted by class, so that neighbours are alike, ", ordered),
        _never_worse(shuffled, len(plan.scatter.rows)),
        _first_for_numbers_sent(shuffled),
    ]
    return Findings(numbers, claims, table)


def _firsts(histories: model.ByGraph, axis: model.Against) -> dict[str, dict[str, float | None]]:
    """Return where each history is first below 1 %; None if nowhere."""
    firsts = {
        g: {name: each.first_below(ERROR, axis) for name, each in by.items()}
        for g, by in histories.items()
    }
    return {
        g: {name: None if isnan(at) else at for name, at in by.items()} for g, by in firsts.items()
    }


def _cell(name: str, history: model.ErrorHistory) -> str:
    exchanges, sent = history.first_below(ERROR), history.first_below(ERROR, "units")
    if isnan(sent):
        return f"{percent(history.error[-1], '.2f')} after {_millions([history.units[-1]])}"
    return _millions([sent]) if name == "master-node" else f"{exchanges:,.0f}, {_millions([sent])}"


def _millions(numbers: Sequence[float]) -> str:
    return ", ".join("never" if isnan(each) else f"{each / 1e6:.2f} million" for each in numbers)


def _fewer_exchanges(where: str, histories: model.ByGraph) -> Claim:
    (ratios, text), (_, than_tracking) = (
        _ratios(histories, name) for name in ("gosta-async", "tracking")
    )
    what = (
        f"needs at least {LEAST_FACTOR} times fewer exchanges than GoSta-async to {percent(ERROR)} "
        "error."
    )
    measured = f"{text} times fewer {ON_NETWORKS}; {than_tracking} times fewer than tracking"
    sentence = f"{where or 'The default protocol '}{'it ' * bool(where)}{what}"
    return Claim(sentence, measured, min(ratios) >= LEAST_FACTOR, is_ours=True)


def _ratios(histories: model.ByGraph, other: str) -> tuple[list[float], str]:
    """Return how many times fewer exchanges than another protocol are needed, also as text."""
    ratios, texts = [], []
    for by_protocol in histories.values():
        ours, theirs = (by_protocol[name].first_below(ERROR) for name in (OURS, other))
        least = float(by_protocol[other].iterations[-1]) if isnan(theirs) else theirs
        ratios.append(0.0 if isnan(ours) else least / ours)
        texts.append(f"{'at least ' if isnan(theirs) else ''}{ratios[-1]:.1f}")
    return ratios, ", ".join(texts)


def _never_worse(histories: model.ByGraph, n: int) -> Claim:
    """Compare errors at the checkpoints of the default protocol, with the others' interpolated."""
    ratios, only_late = [], []
    first = FIRST_PER_NODE * n // 2
    for by_protocol in histories.values():
        ours, theirs = by_protocol[OURS], by_protocol["gosta-async"]
        compared = ours.iterations >= first
        at = np.log(ours.iterations[compared]), np.log(theirs.iterations)
        error, other = ours.error[compared], np.exp(np.interp(*at, np.log(theirs.error)))
        ratios.append(error / other)
        only_late.append(bool((error <= np.maximum(other, ERROR)).all()))
    worst = [float(ratio.max()) for ratio in ratios]
    return Claim(
        f"After {FIRST_PER_NODE} exchanges a node, its error is at no checkpoint above that of "
        "GoSta-async.",
        f"at most {', '.join(f'{ratio:.2f}' for ratio in worst)} times GoSta-async's {ON_NETWORKS} "
        f"from {first:,} exchanges on, "
        f"{', '.join(f'{np.exp(np.log(ratio).mean()):.2f}' for ratio in ratios)} times on average",
        max(worst) <= 1,
        RANDOM_PAIRS if all(only_late) else model.NO_REASON,
        is_ours=True,
    )


def _first_for_numbers_sent(histories: model.ByGraph) -> Claim:
    """Compare numbers sent; a simulation that ended before 1 % counts as arriving at its end."""
    first, arrived, next_best = [], [], []
    unfinished: dict[str, list[float]] = {}
    for by_protocol in histories.values():
        sent = {name: history.first_below(ERROR, "units") for name, history in by_protocol.items()}
        ours, *others = sent.values()
        ends = [float(history.units[-1]) for history in by_protocol.values()][1:]
        first.append(
            ours < min(end if isnan(at) else at for at, end in zip(others, ends, strict=True))
        )
        arrived.append(ours)
        next_best.append(min((at for at in others if not isnan(at)), default=nan))
        for name, at in sent.items():
            if isnan(at):
                unfinished.setdefault(layout.NAMES[name], []).append(
                    100 * float(by_protocol[name].error[-1])
                )
    ends_at = "; ".join(
        f"{name} ends at {model.range_text(errors)} %" for name, errors in unfinished.items()
    )
    return Claim(
        f"For the numbers it sends, too, it is the first at {percent(ERROR)} error.",
        f"after {_millions(arrived)} numbers {ON_NETWORKS}, the next after "
        f"{_millions(next_best)}{'; ' * bool(ends_at)}{ends_at}",
        all(first),
        is_ours=True,
    )


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw panels by network and order of rows, from where a master has all rows."""
    figure, axes = layout.make_panels(2, 3, 2.1)
    axes[0, 0].set_xscale("log")
    shuffled, ordered = _histories(plan, history_of)
    for row, histories in zip(axes, (shuffled, ordered), strict=True):
        for ax, by_protocol in zip(row, histories.values(), strict=True):
            for k, (name, history) in enumerate(by_protocol.items()):
                layout.draw_history(ax, name, history, "units")
                width = 2.2 if name == "gosta-sync" else 1.2  # visible below GoSta-async
                ax.lines[-1].set(zorder=3 - k / len(PROTOCOLS), linewidth=width)
            ax.axhline(ERROR, color="0.3", linewidth=0.6)
    layout.set_limits(
        axes[0, 0], [each for by in (*shuffled.values(), *ordered.values()) for each in by.values()]
    )
    titles = plan.scatter.title, "the same, rows sorted by class"
    layout.finish(figure, axes, [model.GRAPHS[graph] for graph in shuffled], "numbers sent", titles)
    axes[0, 0].set_xlim(left=plan.scatter.x.size)
    return figure


EXPERIMENT = Experiment(
    "The default protocol, which is not in the paper, and all others", jobs, evaluate, draw
)
