"""Figure 5: GoSta-async against a master node, for the same numbers sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan
from gosta.views.numbers import percent

ITERATIONS = 500_000  # the paper does not say how long it waited for GoSta to catch up
EARLY = 0.1  # of the numbers sent: where the master is to be ahead
SOON = 0.5  # of the numbers sent: until where GoSta is to catch up
MASTER_STARTS_LATE = (
    "On the complete graph GoSta-async is ahead from the beginning: until the master has received "
    "all rows and sent one on, nodes there have had about two exchanges each."
)


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of GoSta-async on all three networks, and of a master node."""
    return [*plan.jobs_by_graph(plan.scatter, ["gosta-async"], ITERATIONS), _master_job(plan)]


def _master_job(plan: Plan) -> Job:
    """Return the job of a master that sends about as many numbers as GoSta-async."""
    subject = plan.scatter
    n, numbers = subject.x.shape
    steps = max(1, min(n, 2 * (numbers + 1) * ITERATIONS // (n * numbers) - 1))
    return plan.job(subject, "complete", "master-node", steps)


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Find where the master is ahead, and from where on GoSta-async is."""
    master = history_of(_master_job(plan))
    table = [["network", "GoSta-async at the end", "catches up after (numbers sent)"]]
    numbers: dict[str, Any] = {"master-node": master.as_json()}
    caught_up, master_ahead = [], []
    for graph, histories in model.histories_by_graph(
        plan, history_of, ["gosta-async"], ITERATIONS
    ).items():
        ours = histories["gosta-async"]
        error = np.interp(master.units, ours.units, ours.error, left=1.0)
        behind = np.flatnonzero(master.error < error)
        master_ahead.append(
            bool(len(behind)) and bool(master.units[behind[0]] < EARLY * master.units[-1])
        )
        last = int(behind[-1]) + 1 if len(behind) else 0
        caught_up.append(float(master.units[last]) if last < len(error) else float("inf"))
        after = f"{caught_up[-1]:,.0f}" if caught_up[-1] < np.inf else "never"
        table.append([model.GRAPHS[graph], ours.final(), after])
        numbers[graph] = {"gosta-async": ours.as_json()}
    table.append(["master-node", master.final(), ""])
    when = ", ".join(
        f"{units / 1e6:.2f} million" if units < np.inf else "never" for units in caught_up
    )
    claims = [
        Claim(
            "A master node is ahead early on.",
            f"within the first {percent(EARLY)} of the numbers sent, ahead on {sum(master_ahead)} "
            "of 3 networks",
            all(master_ahead),
            MASTER_STARTS_LATE if master_ahead == [False, True, True] else model.NO_REASON,
        ),
        Claim(
            "GoSta-async soon catches up, for the same numbers sent.",
            f"for good after {when} numbers on complete, Watts-Strogatz and grid, "
            f"of {ours.units[-1] / 1e6:.1f} million in all (required: within {percent(SOON)})",
            max(caught_up) <= SOON * ours.units[-1],
        ),
        Claim(
            "The better the network is connected, the sooner.",
            f"for good after {when} numbers",
            caught_up == sorted(set(caught_up)) and max(caught_up) < np.inf,
        ),
    ]
    numbers["caught_up"] = [None if units == np.inf else units for units in caught_up]
    return Findings(numbers, claims, table)


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw a panel for each network, against numbers sent."""
    master = {"master-node": history_of(_master_job(plan))}
    ours = model.histories_by_graph(plan, history_of, ["gosta-async"], ITERATIONS)
    histories = {graph: {**by_protocol, **master} for graph, by_protocol in ours.items()}
    return layout.draw_by_graph(histories, plan.scatter.title, "units")


EXPERIMENT = Experiment("GoSta-async and a master node", jobs, evaluate, draw)
