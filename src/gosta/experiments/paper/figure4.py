"""Figure 4: GoSta-async against gossip-flooding on all three networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan

PROTOCOLS = ("gosta-async", "flooding")


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of both protocols on all three networks."""
    return plan.jobs_by_graph(plan.scatter, PROTOCOLS)


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare errors and spreads, and how both depend on the network."""
    table = [["network", "GoSta-async", "gossip-flooding", "flooding / GoSta, mean"]]
    numbers: dict[str, Any] = {}
    ratios, spreads, at_end, on_average, ahead_until = [], [], [], [], []
    for graph, histories in model.histories_by_graph(plan, history_of, PROTOCOLS).items():
        ours, theirs = histories.values()
        ratios.append(model.advantage(ours.error, theirs.error).factor)
        spreads.append(model.advantage(ours.spread, theirs.spread).factor)
        difference = theirs.error - ours.error
        at_end.append(float(difference[-1]))
        on_average.append(float(difference[model.FIRST_COMPARED :].mean()))
        ahead_until.append(int(np.flatnonzero(np.append(theirs.error > ours.error, True))[0]))
        table.append([model.GRAPHS[graph], ours.final(), theirs.final(), f"{ratios[-1]:.2f}"])
        numbers[graph] = {name: history.as_json() for name, history in histories.items()}
    ratio_text = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    end_text, average_text = (
        ", ".join(f"{100 * value:.1f}" for value in values) for values in (at_end, on_average)
    )
    first = max(ahead_until)
    flooding_ahead = f"{int(ours.iterations[first - 1]):,}" if first else "none"
    claims = [
        Claim(
            "GoSta-async does better than gossip-flooding (slightly, the paper says), which stores "
            "all observations.",
            f"flooding's error is {ratio_text} times GoSta's on average on complete, "
            "Watts-Strogatz and grid, "
            f"more than slightly; it is ahead in the first {flooding_ahead} iterations",
            min(ratios) > 1,
        ),
        Claim(
            "The difference is larger on networks that are less well connected.",
            f"{end_text} percentage points at the end on complete, Watts-Strogatz and grid, "
            f"{average_text} on average over the checkpoints (required: larger on both of the "
            "latter than on complete, at the end)",
            min(at_end[1:]) > at_end[0],
        ),
        Claim(
            "As a ratio it is largest on the complete graph: a better network helps averaging more "
            "than flooding, which everywhere receives the same observations again.",
            f"{ratio_text} times on average on complete, Watts-Strogatz and grid",
            ratios == sorted(ratios, reverse=True),
            is_ours=True,
        ),
        Claim(
            "The error of GoSta-async varies less from node to node.",
            f"flooding's spread is {', '.join(f'{spread:.2f}' for spread in spreads)} times "
            "GoSta's on average",
            min(spreads) > 1,
        ),
    ]
    return Findings(numbers, claims, table)


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw a panel for each network."""
    return layout.draw_by_graph(
        model.histories_by_graph(plan, history_of, PROTOCOLS), plan.scatter.title
    )


EXPERIMENT = Experiment("GoSta-async and gossip-flooding", jobs, evaluate, draw)
