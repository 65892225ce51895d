"""Figure 6, which is not in the paper: tracking against all other protocols, for the same numbers sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from gosta.experiments.paper import drawing, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan
from gosta.experiments.study import Job
from gosta.views.numbers import percent

PROTOCOLS = ("tracking", "gosta-async", "gosta-sync", "u2", "flooding", "master-node")
LONG_ITERATIONS = 1_600_000  # within which GoSta-async gets to 1 % on all networks of the paper
CHECKPOINTS = 100
ERROR = 0.01
LEAST_FACTOR = 4  # by which tracking is to need fewer exchanges
RANDOM_PAIRS = (
    f"It is so only where the error is below {percent(ERROR)}. There nodes agree with each other, and the remaining "
    "error comes from which pairs of rows happened to be evaluated, which neither protocol averages away."
)


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of all protocols on all three networks."""
    return [_job(plan, graph, name) for graph in model.GRAPHS for name in PROTOCOLS]


def _job(plan: Plan, graph: str, protocol: str) -> Job:
    """Return a long job for the two protocols of the first claims; the slow simulation of flooding is figure 4's."""
    if protocol == "flooding":
        return plan.job(plan.scatter, graph, protocol)
    if protocol == "master-node":
        last = len(plan.scatter.rows) - 1  # with all rows there is no error
        return plan.job(plan.scatter, "complete", protocol, last, spacing="log")
    iterations = LONG_ITERATIONS if protocol in ("tracking", "gosta-async") else model.ITERATIONS
    return plan.job(plan.scatter, graph, protocol, iterations, spacing="log", checkpoints=CHECKPOINTS)


def _histories(plan: Plan, history_of: HistoryOf) -> model.ByGraph:
    return {graph: {name: history_of(_job(plan, graph, name)) for name in PROTOCOLS} for graph in model.GRAPHS}


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare the numbers sent until the error is 1 %."""
    histories = _histories(plan, history_of)
    sent = {g: {name: each.first_below(ERROR, "units") for name, each in by.items()} for g, by in histories.items()}
    table = [[f"numbers sent to {percent(ERROR)} error", *model.GRAPHS.values()]]
    for name in PROTOCOLS:
        cells = [_cell(histories[graph][name], sent[graph][name]) for graph in model.GRAPHS]
        table.append([drawing.NAMES[name], *cells])
    numbers: dict[str, Any] = {g: {name: each.as_json() for name, each in by.items()} for g, by in histories.items()}
    numbers["sent"] = {g: {name: None if isnan(at) else at for name, at in by.items()} for g, by in sent.items()}
    late = _never_worse(histories, len(plan.scatter.rows))
    return Findings(numbers, [_fewer_exchanges(histories), late, _first_for_numbers_sent(histories, sent)], table)


def _cell(history: model.ErrorHistory, at: float) -> str:
    if isnan(at):
        return f"{percent(history.error[-1], '.2f')} after {_millions([history.units[-1]])}"
    return _millions([at])


def _millions(numbers: Sequence[float]) -> str:
    return ", ".join("never" if isnan(each) else f"{each / 1e6:.2f} million" for each in numbers)


def _fewer_exchanges(histories: model.ByGraph) -> Claim:
    ratios, texts = [], []
    for by_protocol in histories.values():
        ours, theirs = (by_protocol[name].first_below(ERROR) for name in ("tracking", "gosta-async"))
        least = float(by_protocol["gosta-async"].iterations[-1]) if isnan(theirs) else theirs
        ratios.append(0.0 if isnan(ours) else least / ours)
        texts.append(f"{'at least ' if isnan(theirs) else ''}{ratios[-1]:.1f}")
    return Claim(
        f"Tracking needs at least {LEAST_FACTOR} times fewer exchanges than GoSta-async to {percent(ERROR)} error.",
        f"{', '.join(texts)} times fewer on complete, Watts-Strogatz and grid",
        min(ratios) >= LEAST_FACTOR,
    )


def _never_worse(histories: model.ByGraph, n: int) -> Claim:
    ratios, only_late = [], []
    for by_protocol in histories.values():
        ours, theirs = by_protocol["tracking"], by_protocol["gosta-async"]
        compared = ours.iterations >= n
        ratios.append((ours.error / theirs.error)[compared])
        only_late.append(bool((ours.error <= np.maximum(theirs.error, ERROR))[compared].all()))
    worst = [float(ratio.max()) for ratio in ratios]
    return Claim(
        "After as many exchanges as there are nodes, its error is at no checkpoint above that of GoSta-async.",
        f"at most {', '.join(f'{ratio:.2f}' for ratio in worst)} times GoSta-async's on complete, Watts-Strogatz and "
        f"grid from {n:,} exchanges on, {', '.join(f'{np.exp(np.log(ratio).mean()):.2f}' for ratio in ratios)} times "
        "on average",
        max(worst) <= 1,
        *([RANDOM_PAIRS] if all(only_late) else []),
    )


def _first_for_numbers_sent(histories: model.ByGraph, sent: Mapping[str, Mapping[str, float]]) -> Claim:
    """Compare numbers sent; a protocol whose simulation ended before 1 % counts as arriving at its end."""
    first, next_best = [], []
    unfinished: dict[str, list[float]] = {}
    for graph, by_protocol in histories.items():
        ours, *others = (sent[graph][name] for name in PROTOCOLS)
        ends = [float(by_protocol[name].units[-1]) for name in PROTOCOLS[1:]]
        arrivals = [end if isnan(at) else at for at, end in zip(others, ends, strict=True)]
        first.append(ours < min(arrivals))
        next_best.append(min((at for at in others if not isnan(at)), default=nan))
        for name in PROTOCOLS[1:]:
            if isnan(sent[graph][name]):
                unfinished.setdefault(drawing.NAMES[name], []).append(100 * float(by_protocol[name].error[-1]))
    ends_at = "; ".join(f"{name} ends at {model.range_text(errors)} %" for name, errors in unfinished.items())
    return Claim(
        f"For the numbers it sends, too, it is the first at {percent(ERROR)} error.",
        f"after {_millions([sent[graph]['tracking'] for graph in histories])} numbers on complete, Watts-Strogatz and "
        f"grid, the next after {_millions(next_best)}{'; ' * bool(ends_at)}{ends_at}",
        all(first),
    )


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw a panel for each network, against numbers sent, from where a master has received all rows."""
    figure = drawing.draw_by_graph(_histories(plan, history_of), plan.scatter.title, "units", "log")
    for ax in figure.axes:
        for k, (name, line) in enumerate(zip(PROTOCOLS, ax.lines, strict=True)):
            width = 2.2 if name == "gosta-sync" else 1.2  # visible below GoSta-async
            line.set(zorder=3 - k / len(PROTOCOLS), linewidth=width)
        ax.axhline(ERROR, color="0.3", linewidth=0.6)
    figure.axes[0].set_xlim(left=plan.scatter.x.size)
    return figure


EXPERIMENT = Experiment("Tracking, which is not in the paper, and all others", jobs, evaluate, draw)
