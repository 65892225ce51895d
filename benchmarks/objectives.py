"""Exchanges until nodes are within 1 % of the minimum of an objective, for each protocol.

Nodes have a row each, at random or in the order of a column along the network. Dual averaging has
the best of several step sizes for each line; gradient tracking has its default. "Over" means that
it was not reached in the number of iterations. Beside them: the steps that dual averaging takes in
one place, each with the exact gradient, so without bias and disagreement; and the bias of gradients
at 0, the distance of what nodes expect to fold in from the exact gradient, relative to its length.

Run with: python benchmarks/objectives.py [--smoke]
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import common
import numpy as np

import gosta
from gosta.datasets import Data
from gosta.estimation.estimand import ObjectiveEstimand
from gosta.protocols.dual_averaging import STEP
from gosta.simulation.trace import SNAPSHOT, Trace
from gosta.views import terminal

ERROR = 0.01
PACES = (0.3, 1.0, 3.0, 10.0)
CHECKPOINTS = 60
PLACES = (None, "mean radius")  # the column in whose order rows are
GRAPHS = ("complete", "watts-strogatz", "cycle")
BIAS_EXCHANGES = (2, 20, 200)
RUNS = 200  # over which the bias is averaged


def mixture(n: int, columns: int = 4, classes: int = 5) -> Data:
    """Return Gaussian classes that overlap, with means in a plane."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, classes, n)
    means = np.zeros((classes, columns))
    means[:, :2] = rng.normal(scale=2.0, size=(classes, 2))
    x = means[label] + rng.normal(size=(n, columns))
    table = {f"x{k}": x[:, k] for k in range(columns)}
    return gosta.datasets.load({**table, "label": label})


def reached(trace: Trace) -> float:
    """Return the exchanges a node after which the error stays below the limit; infinite: over."""
    below = trace.error()["mean"].values <= ERROR
    above = np.flatnonzero(~below)
    first = above[-1] + 1 if len(above) else 0
    if first == len(below):
        return np.inf
    return float(2 * trace.iterations[first] / trace.setting.placement.nodes)


def steps_in_one_place(estimand: ObjectiveEstimand, limit: int) -> float:
    """Return the steps that dual averaging takes with exact gradients, with the best step size."""
    pairs = estimand.pairs
    best = float(limit)
    for pace in PACES:
        dual, mean = np.zeros(estimand.mean_count), np.zeros(estimand.mean_count)
        point = mean
        for t in range(1, int(best)):
            slopes, _ = pairs.loss.derivatives(pairs.features @ point, 1e-5)
            dual = dual + (pairs.weight * slopes @ pairs.features - dual) / t
            point = -dual / (1.0 / (pace * estimand.pace * STEP * sqrt(t)) + estimand.penalty)
            mean = mean + (point - mean) / t
            if t % 10 == 0 and pairs.values(mean[None])[0] <= (1 + ERROR) * estimand.value[0]:
                best = t
                break
    return best if best < limit else np.inf


def bias(data: Data, graph: str, exchanges: int, by: str | None) -> float:
    """Return the relative error of expected gradients at 0 after some exchanges a node.

    The expectation is over runs. What visitors have in common with their hosts is that error.
    """
    trace = gosta.simulate(
        data, "pairwise-logistic", protocol="dual-averaging", graph=graph, runs=RUNS, checkpoints=1,
        iterations=len(data) * exchanges // 2, **_places(by),
    )  # fmt: skip
    estimand: Any = trace.setting.estimand
    visitors = trace.resume_data[SNAPSHOT + "visitors"][:, :, 0]
    of_rows, x = estimand.objective.pairs.of_rows, estimand.x
    shown = np.mean([of_rows(x, x[held]).mean(axis=0) for held in visitors], axis=0)
    exact = estimand.pairs.weight * estimand.pairs.features.sum(axis=0)
    return float(np.linalg.norm(shown - exact) / np.linalg.norm(exact))


def _places(by: str | None) -> dict[str, Any]:
    return {} if by is None else {"homophily": 1.0, "by": by}


def line(data: Data, objective: str, graph: str, by: str | None, limit: int) -> tuple[str, ...]:
    """Return a line of the table."""
    n = len(data)
    settings: dict[str, Any] = {"graph": graph, "runs": 1, "spacing": "log", **_places(by)}
    settings |= {"checkpoints": CHECKPOINTS}
    plain = min(
        reached(
            gosta.simulate(
                data,
                objective,
                protocol="dual-averaging",
                iterations=n * limit,
                pace=pace,
                **settings,
            )
        )
        for pace in PACES
    )
    trace = gosta.simulate(
        data, objective, protocol="gradient-tracking", iterations=n * limit // 4, **settings
    )
    ours, estimand = reached(trace), trace.setting.estimand
    assert isinstance(estimand, ObjectiveEstimand)
    assert ours <= plain, f"{objective}, {graph}: gradient tracking needs more exchanges"
    row, parameters = estimand.x.shape[1], estimand.mean_count
    ratio, more = min(plain, 2.0 * limit) / ours, "> " * bool(np.isinf(plain))
    sent = (row + parameters) / (row + 2 * parameters)  # numbers in a message, of one and the other
    return (
        f"{objective}, {graph}, {'random' if by is None else 'sorted'}",
        _count(steps_in_one_place(estimand, limit)),
        *(_count(plain), _count(ours)),
        *(f"{more}{ratio:.1f}", f"{more}{sent * ratio:.1f}"),
    )


def _count(number: float) -> str:
    return "over" if np.isinf(number) else f"{number:,.0f}"


def _biases(data: Data, graph: str, by: str | None) -> list[str]:
    return [f"{100 * bias(data, graph, count, by):.1f} %" for count in BIAS_EXCHANGES]


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("numba")
    n, limit = (24, 40) if smoke else (100, 8000)
    cancer = gosta.datasets.load("breast-cancer", n=n)
    table: list[tuple[str, ...]] = [
        ("", "one place", "dual averaging", "gradient tracking", "ratio", "of numbers sent")
    ]
    cases = [(graph, by) for graph in GRAPHS[: 1 if smoke else None] for by in PLACES]
    table += [line(cancer, "pairwise-logistic", graph, by, limit) for graph, by in cases]
    table.append(line(mixture(n), "metric-logistic", "watts-strogatz", None, limit))
    print(terminal.columns(table, right=range(1, 6)))
    titles = [f"after {count} exchanges" for count in BIAS_EXCHANGES]
    biases = [
        (f"{graph}, {'random' if by is None else 'sorted'}", *_biases(cancer, graph, by))
        for graph, by in cases
    ]
    print("bias of expected gradients:")
    print(terminal.columns([("", *titles), *biases], right=(1, 2, 3)))


if __name__ == "__main__":
    main()
