"""Figure 3b: GoSta-sync against GoSta-async on all three networks."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan

PROTOCOLS = ("gosta-sync", "gosta-async")
ITERATIONS = 50_000


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of both protocols on all three networks."""
    return plan.jobs_by_graph(plan.scatter, PROTOCOLS, ITERATIONS)


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare errors at every checkpoint."""
    table = [["network", "GoSta-sync", "GoSta-async", "largest ratio"]]
    numbers: dict[str, Any] = {}
    ratios = []
    for graph, histories in model.histories_by_graph(
        plan, history_of, PROTOCOLS, ITERATIONS
    ).items():
        ours, theirs = histories.values()
        difference = np.abs(
            np.log(ours.error[model.FIRST_COMPARED :] / theirs.error[model.FIRST_COMPARED :])
        )
        ratios.append(float(np.exp(difference.max())))
        table.append([model.GRAPHS[graph], ours.final(), theirs.final(), f"{ratios[-1]:.2f}"])
        numbers[graph] = {name: history.as_json() for name, history in histories.items()}
    claim = Claim(
        "GoSta-async does about as well as GoSta-sync.",
        f"errors differ by a factor of at most {model.range_text(ratios)} on the three networks "
        f"from {int(ours.iterations[model.FIRST_COMPARED]):,} iterations on (required: less than "
        "two)",
        max(ratios) < 2,
    )
    return Findings(numbers, [claim], table)


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw a panel for each network."""
    return layout.draw_by_graph(
        model.histories_by_graph(plan, history_of, PROTOCOLS, ITERATIONS), plan.scatter.title
    )


EXPERIMENT = Experiment("GoSta-sync and GoSta-async", jobs, evaluate, draw)
