"""Figure 3a: iterations to 20 % error on complete graphs, GoSta-sync against U2-gossip."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.errors import NumericalError
from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan
from gosta.protocols import find
from gosta.theory import predict
from gosta.theory.curves import PREDICTED
from gosta.views.numbers import percent
from gosta.views.plots import COLOURS, DASHES, marker, matplotlib, new_figure

PROTOCOLS = ("gosta-sync", "u2")
ERROR = 0.2
FEWEST_NODES = 50
ITERATIONS_PER_NODE = 600  # enough for both protocols on the paper's data
MOST_UNEQUAL = 1.5  # the largest ratio of two times that are about proportional, over the smallest
PROPORTIONAL = (
    "visitors of a complete graph are renewed, and estimates averaged, at a rate of 1/n, as the "
    "predicted curves have it too; the root of n in the bound of U2-gossip does not show"
)


def sizes(plan: Plan) -> list[int]:
    """Return numbers of nodes from 50 to all rows, each about twice the one before."""
    last = len(plan.scatter.rows)
    doublings = max(1, round(np.log2(last / FEWEST_NODES)))
    return sorted(
        {round(float(n)) for n in np.geomspace(min(FEWEST_NODES, last), last, doublings + 1)}
    )


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of both protocols for all sizes."""
    return [_job(plan, n, name) for n in sizes(plan) for name in PROTOCOLS]


def _job(plan: Plan, n: int, protocol: str) -> Job:
    return plan.job(plan.scatter, "complete", protocol, ITERATIONS_PER_NODE * n, n=n, spacing="log")


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare how the iterations to 20 % error grow with the size."""
    nodes = sizes(plan)
    times = {
        name: [history_of(_job(plan, n, name)).first_below(ERROR) for n in nodes]
        for name in PROTOCOLS
    }
    if not np.isfinite(list(times.values())).all():
        raise NumericalError(
            f"{plan.scatter.title}: {percent(ERROR)} error is not reached within "
            f"{ITERATIONS_PER_NODE} times as "
            "many iterations as nodes; take data that depend less on a few rows"
        )
    pairs = list(zip(times["gosta-sync"], times["u2"], strict=True))
    gaps, ratios = (
        [theirs - ours for ours, theirs in pairs],
        [theirs / ours for ours, theirs in pairs],
    )
    table = [["n", "GoSta-sync", "U2-gossip", "U2 / GoSta"]]
    for n, (ours, theirs), ratio in zip(nodes, pairs, ratios, strict=True):
        table.append([f"{n:,}", f"{ours:,.0f}", f"{theirs:,.0f}", f"{ratio:.1f}"])
    at = f"at n = {', '.join(map(str, nodes))}"
    claims = [
        Claim(
            "The gap between U2-gossip and GoSta in iterations to 20 % error widens with the size "
            "of the graph.",
            f"{', '.join(f'{gap:,.0f}' for gap in gaps)} iterations {at}",
            min(gaps) > 0 and gaps == sorted(gaps),
        ),
        Claim(
            "As a ratio it stays about the same: both times are proportional to the size of the "
            "graph.",
            f"{', '.join(f'{ratio:.1f}' for ratio in ratios)} {at} (required: all within a factor "
            f"of {MOST_UNEQUAL}); {PROPORTIONAL}",
            min(ratios) > 1 and max(ratios) < MOST_UNEQUAL * min(ratios),
            is_ours=True,
        ),
    ]
    return Findings({"n": nodes, **times}, claims, table)


def draw(plan: Plan, _history_of: HistoryOf, findings: Findings) -> Any:
    """Draw times against sizes, with the predicted ones."""
    figure = new_figure(layout.WIDTH_INCHES / 2, 2.6, dpi=layout.DPI)
    ax, subject = figure.add_subplot(), plan.scatter
    nodes = findings.numbers["n"]
    for name in PROTOCOLS:
        colour = COLOURS[name]
        times = findings.numbers[name]
        style = {"marker": marker(name), "markersize": 3.5, "color": colour, "linewidth": 1.2}
        ax.plot(nodes, times, label=layout.NAMES[name], **style)
        exchanges = [
            predict(
                "complete",
                name,
                ERROR,
                subject.rows.head(n),
                subject.statistic,
                options=subject.options,
            ).exchanges
            for n in nodes
        ]
        iterations = np.array(exchanges) / find(name).draws
        ax.plot(nodes, iterations, color=colour, linestyle=DASHES[PREDICTED], linewidth=0.8)
    layout.add_theory_legend(ax, [PREDICTED])
    ax.set(xscale="log", yscale="log", xlabel="nodes", ylabel="iterations to 20 % error")
    ax.set_title(f"{subject.title}, complete graph")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(matplotlib("ticker").EngFormatter(sep=" "))
    ax.grid(alpha=0.3, linewidth=0.4)
    ax.legend(frameon=False)
    return figure


EXPERIMENT = Experiment("Iterations to 20 % error on complete graphs", jobs, evaluate, draw)
