"""Figure 6, which is not in the paper: tracking against all other protocols, for the same numbers sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

import numpy as np

from gosta.experiments.paper import drawing
from gosta.experiments.paper.model import (
    GRAPHS,
    ITERATIONS,
    ByGraph,
    Claim,
    Curve,
    Curves,
    Found,
    Plan,
    between,
    numbers_of,
    time_to,
)
from gosta.experiments.study import Job

PROTOCOLS = ("tracking", "gosta-async", "gosta-sync", "u2", "flooding", "master-node")
LONG = 1_600_000  # iterations within which GoSta-async gets to 1 % on all networks of the paper
CHECKPOINTS = 100
WANTED = 0.01
FEWER = 4


def figure6_jobs(plan: Plan) -> list[Job]:
    """All protocols on all three networks."""
    return [_job(plan, graph, name) for graph in GRAPHS for name in PROTOCOLS]


def _job(plan: Plan, graph: str, protocol: str) -> Job:
    """Long for the two that are compared most; flooding, which computes much, is that of figure 4."""
    if protocol == "flooding":
        return plan.job(plan.scatter, graph, protocol)
    if protocol == "master-node":
        last = len(plan.scatter.rows) - 1  # with all rows there is no error
        return plan.job(plan.scatter, "complete", protocol, last, spacing="log")
    iterations = LONG if protocol in ("tracking", "gosta-async") else ITERATIONS
    return plan.job(plan.scatter, graph, protocol, iterations, spacing="log", checkpoints=CHECKPOINTS)


def _curves(plan: Plan, curve: Curves) -> dict[str, dict[str, Curve]]:
    return {graph: {name: curve(_job(plan, graph, name)) for name in PROTOCOLS} for graph in GRAPHS}


def figure6(plan: Plan, curve: Curves) -> Found:
    """Tracking against all others."""
    curves = _curves(plan, curve)
    sent = {g: {name: time_to(each, WANTED, "units") for name, each in curves[g].items()} for g in GRAPHS}
    table = [[f"numbers sent to {100 * WANTED:.0f} % error", *GRAPHS.values()]]
    table += [[drawing.NAMES[name], *(_when(curves[g][name], sent[g][name]) for g in GRAPHS)] for name in PROTOCOLS]
    numbers: dict[str, Any] = {
        graph: {name: numbers_of(each) for name, each in curves[graph].items()} for graph in GRAPHS
    }
    numbers["sent"] = {g: {name: None if isnan(at) else at for name, at in sent[g].items()} for g in GRAPHS}
    claims = [_fewer_claim(curves), _never_worse_claim(curves, len(plan.scatter.rows)), _first_claim(curves, sent)]
    return Found(numbers, claims, table)


def _when(curve: Curve, at: float) -> str:
    if isnan(at):
        return f"{100 * curve.error[-1]:.2f} % after {_millions([curve.units[-1]])}"
    return _millions([at])


def _millions(numbers: Sequence[float]) -> str:
    return ", ".join("never" if isnan(each) else f"{each / 1e6:.2f} million" for each in numbers)


def _fewer_claim(curves: ByGraph) -> Claim:
    ratios, texts = [], []
    for each in curves.values():
        ours, theirs = (time_to(each[name], WANTED) for name in ("tracking", "gosta-async"))
        least = float(each["gosta-async"].iterations[-1]) if isnan(theirs) else theirs
        ratios.append(0.0 if isnan(ours) else least / ours)
        texts.append(f"{'at least ' if isnan(theirs) else ''}{ratios[-1]:.1f}")
    return Claim(
        f"Tracking needs at least {FEWER} times fewer exchanges than GoSta-async to {100 * WANTED:.0f} % error.",
        f"{', '.join(texts)} times fewer on complete, Watts-Strogatz and grid",
        min(ratios) >= FEWER,
    )


CHANCE = (
    f"It is so only where the error is below {100 * WANTED:.0f} %. There nodes agree with each other, and what is left "
    "is the chance of which rows have met, which neither averages away."
)


def _never_worse_claim(curves: ByGraph, n: int) -> Claim:
    ratios, late = [], []
    for each in curves.values():
        ours, theirs = each["tracking"], each["gosta-async"]
        later = ours.iterations >= n
        ratios.append((ours.error / theirs.error)[later])
        late.append(bool((ours.error <= np.maximum(theirs.error, WANTED))[later].all()))
    worst = [float(ratio.max()) for ratio in ratios]
    return Claim(
        "After as many exchanges as there are nodes, its error is at no checkpoint above that of GoSta-async.",
        f"at most {', '.join(f'{ratio:.2f}' for ratio in worst)} times GoSta-async's on complete, Watts-Strogatz and "
        f"grid from {n:,} exchanges on, {', '.join(f'{np.exp(np.log(ratio).mean()):.2f}' for ratio in ratios)} times "
        "on average",
        max(worst) <= 1,
        *([CHANCE] if all(late) else []),
    )


def _first_claim(curves: ByGraph, sent: Mapping[str, Mapping[str, float]]) -> Claim:
    """A protocol that was stopped too early to tell counts as there at its end."""
    first, after = [], []
    behind: dict[str, list[float]] = {}
    for graph, each in curves.items():
        ours, *others = (sent[graph][name] for name in PROTOCOLS)
        ends = [float(each[name].units[-1]) for name in PROTOCOLS[1:]]
        there = [end if isnan(at) else at for at, end in zip(others, ends, strict=True)]
        first.append(ours < min(there))
        after.append(min((at for at in others if not isnan(at)), default=nan))
        for name in PROTOCOLS[1:]:
            if isnan(sent[graph][name]):
                behind.setdefault(drawing.NAMES[name], []).append(100 * float(each[name].error[-1]))
    stopped = "; ".join(f"{name} ends at {between(errors)} %" for name, errors in behind.items())
    return Claim(
        f"For the numbers it sends, too, it is the first at {100 * WANTED:.0f} % error.",
        f"after {_millions([sent[graph]['tracking'] for graph in curves])} numbers on complete, Watts-Strogatz and "
        f"grid, the next after {_millions(after)}{'; ' * bool(stopped)}{stopped}",
        all(first),
    )


def draw_figure6(plan: Plan, curve: Curves, _found: Found) -> Any:
    """Three panels against numbers sent, from where a master would have heard all rows."""
    figure = drawing.by_graph(_curves(plan, curve), plan.scatter.title, "units", "log")
    for ax in figure.axes:
        for k, (name, line) in enumerate(zip(PROTOCOLS, ax.lines, strict=True)):
            line.set(zorder=3 - k / len(PROTOCOLS), linewidth=2.2 if name == "gosta-sync" else 1.2)  # seen below async
        ax.axhline(WANTED, color="0.3", linewidth=0.6)
    figure.axes[0].set_xlim(left=plan.scatter.x.size)
    return figure
