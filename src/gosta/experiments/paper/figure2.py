"""Figure 2: GoSta-sync against U2-gossip, for both data sets on all three networks."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from gosta.estimation.setting import make_setting
from gosta.experiments.jobs import Job
from gosta.experiments.paper import layout, model
from gosta.experiments.paper.model import Claim, Experiment, Findings, HistoryOf, Plan
from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.theory.curves import BOUND, EXPECTED, error_curves
from gosta.views.numbers import percent

PROTOCOLS = ("gosta-sync", "u2")
FIRST_STEPS = 0.2  # of the iterations: where the gap is to be largest
GROWTH = 5  # times that the gap is to grow until then
THEORY_POINTS = 25


def jobs(plan: Plan) -> list[Job]:
    """Return the jobs of both data sets on all three networks."""
    return [
        job
        for subject in (plan.auc, plan.scatter)
        for job in plan.jobs_by_graph(subject, PROTOCOLS)
    ]


def evaluate(plan: Plan, history_of: HistoryOf) -> Findings:
    """Compare errors, spreads, and the gap between the two protocols early on."""
    table = [["data", "network", "GoSta-sync", "U2-gossip", "U2 / GoSta"]]
    numbers: dict[str, Any] = {}
    errors, spreads, early = [], [], []
    for subject in (plan.auc, plan.scatter):
        for graph in model.GRAPHS:
            ours, theirs = (history_of(plan.job(subject, graph, name)) for name in PROTOCOLS)
            errors.append(model.advantage(ours.error, theirs.error))
            spreads.append(model.advantage(ours.spread, theirs.spread))
            gap = theirs.error - ours.error
            early.append(
                (float(ours.iterations[gap.argmax()]), float(gap.max() / max(gap[0], 1e-3)))
            )
            ratio = f"{(theirs.error / ours.error)[-1]:.1f}"
            table.append([subject.title, model.GRAPHS[graph], ours.final(), theirs.final(), ratio])
            numbers[f"{subject.data} {graph}"] = {
                "gosta-sync": ours.as_json(),
                "u2": theirs.as_json(),
            }
    start = int(ours.iterations[model.FIRST_COMPARED])
    claims = [
        Claim(
            "GoSta-sync has a lower mean error than U2-gossip on every network, for both data "
            "sets.",
            f"lower at {model.range_text([100 * e.share for e in errors], '.0f')} % of the "
            f"checkpoints from {start:,} "
            f"on, and {model.range_text([e.factor for e in errors], '.1f')} times lower on average",
            all(e.share == 1 for e in errors),
        ),
        Claim(
            "Its error also varies less from node to node.",
            f"spread lower at {model.range_text([100 * s.share for s in spreads], '.0f')} % of the "
            f"checkpoints; {model.range_text([s.factor for s in spreads], '.1f')} times lower on "
            "average",
            all(s.share == 1 for s in spreads),
        ),
        Claim(
            "The gap between the two grows strongly in the first steps.",
            "the difference of the errors is largest after "
            f"{model.range_text([at for at, _ in early], ',.0f')} "
            f"iterations, {model.range_text([grown for _, grown in early], '.0f')} times "
            f"that after {int(ours.iterations[0]):,} "
            f"(required: at least {GROWTH} times, within the first {percent(FIRST_STEPS)})",
            all(at <= FIRST_STEPS * model.ITERATIONS and grown >= GROWTH for at, grown in early),
        ),
    ]
    return Findings(numbers, claims, table)


def draw(plan: Plan, history_of: HistoryOf, _findings: Findings) -> Any:
    """Draw six panels, with the theory of GoSta-sync."""
    subjects = (plan.auc, plan.scatter)
    figure, axes = layout.make_panels(2, 3)
    shown = []
    with progress.bar("theory of figure 2", axes.size) as advance:
        for ax, (subject, graph) in zip(
            axes.ravel(), itertools.product(subjects, model.GRAPHS), strict=True
        ):
            for name in PROTOCOLS:
                shown.append(history_of(plan.job(subject, graph, name)))
                layout.draw_history(ax, name, shown[-1])
            _draw_theory(ax, plan, subject, graph, shown[-1].iterations)
            advance(1)
    layout.add_theory_legend(axes[0, 0], [EXPECTED, BOUND])
    layout.set_limits(axes[0, 0], shown)
    layout.finish(
        figure,
        axes,
        list(model.GRAPHS.values()),
        "iterations",
        [subject.title for subject in subjects],
    )
    return figure


def _draw_theory(
    ax: Any, plan: Plan, subject: model.Subject, graph: str, iterations: Floats
) -> None:
    setting = make_setting(
        "gosta-sync", subject.rows, subject.statistic, graph, plan.seed, subject.options
    )
    times = np.unique(np.linspace(iterations[0], iterations[-1], THEORY_POINTS).astype(np.int64))
    layout.draw_theory(ax, "gosta-sync", times, error_curves(setting, times, predicted=False))


EXPERIMENT = Experiment("GoSta-sync and U2-gossip", jobs, evaluate, draw)
