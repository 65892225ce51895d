"""Reliability of `until`: how often the error is as small as promised, and how many exchanges that
costs.

For each network and statistic, 20 runs that the nodes end themselves at 1 %, and 20 runs that go
on. The promise is kept where the median node is within 1 % when the run ends. Needed are the
exchanges after which that holds in 19 of 20 runs: no rule that does not know the answer could
promise it with fewer. Two more tables have small networks: ten runs on each of ten samples of rows.
The constants of the rule (`gosta.estimation.stopping.Rule`) were chosen on the cases of the second,
with `--tune`; those of the first, with other rows, statistics and seeds, verify it (for
`few_nodes`, the first were looked at, too).

Run with: python benchmarks/stopping.py [--smoke] [--small | --tune]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import common
import numpy as np

import gosta
from gosta.estimation.stopping import (
    MAX_READINGS,
    MIN_CHANGES,
    READINGS_PER_DOUBLING,
    RULE,
    expected_errors,
)
from gosta.runtime import progress
from gosta.simulation.runner import STOPPING_SHARE

GRAPHS = {
    "complete": (400, 1500),
    "watts-strogatz": (400, 1500),
    "torus": (400, 2000),
    "barabasi-albert": (400, 2000),
    "geometric": (400, 3000),
    "star": (400, 2000),
    "cycle": (200, 8000),
    "two-cliques": (200, 12_000),
}
STATISTICS: dict[str, tuple[str, dict[str, Any]]] = {
    "auc": ("breast-cancer", {}),
    "gini-mean-difference": ("wine-quality-red", {"columns": "alcohol"}),
    "kendall-tau": ("wine-quality-red", {"columns": ["alcohol", "density"]}),
    "within-cluster-scatter": ("wine-quality-red", {"centroids": "class-means"}),
}
SMALL_NODES = 10, 20, 50, 100, 400
# Samples of rows for each case.
SAMPLES = 10
# Runs on each sample.
RUNS = 10
# Rows at each node, in cases with several.
ROWS_PER_NODE = 20
# Most nodes of these cases.
MAX_NODES_WITH_TABLES = 20
TUNING_ITERATIONS_PER_NODE = 3000
SEED = 3
LEAST_KEPT = 0.9  # of all runs; see docs/explanation/protocols.md for the share when last measured


class Stopped(NamedTuple):
    """Ends of the runs of one network and statistic."""

    runs: int
    """Runs that the nodes ended."""
    kept: int
    """Runs of those whose median node was within the required error."""
    exchanges: float
    """Median number of exchanges at their end."""
    needed: float
    """Exchanges after which 95 % of runs are within that error; NaN if it takes more."""


def measure(statistic: str, graph: str, n: int, per_node: int, runs: int, until: float) -> Stopped:
    data, more = STATISTICS[statistic]
    rows = gosta.datasets.load(data).shuffle(SEED).head(n)
    settings: dict[str, Any] = {
        "graph": graph,
        "runs": runs,
        "seed": SEED,
        "iterations": per_node * n,
        **more,
    }
    trace = gosta.simulate(rows, statistic, until=until, **settings)
    stopped = trace.data["stopped"].values
    ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
    error = trace.data["median"].values[np.arange(runs), ends]
    longer = gosta.simulate(rows, statistic, checkpoints=300, spacing="log", **settings)
    within = (longer.data["median"].values <= until).mean(axis=0) >= 0.95
    beyond = np.flatnonzero(~within)
    needed = (
        longer.iterations[beyond[-1] + 1]
        if len(beyond) and beyond[-1] + 1 < len(within)
        else np.nan
    )
    done = stopped > 0
    when = float(np.median(stopped[done])) if done.any() else np.nan
    return Stopped(int(done.sum()), int((error[done] <= until).sum()), when, float(needed))


class Case(NamedTuple):
    """Rows of a small network."""

    title: str
    statistic: str
    kind: str
    """How rows are made: see `small_rows`."""
    by: str | None = None
    """Column by which rows are placed, 20 at each node; None: one row at each."""


class Suite(NamedTuple):
    """Cases of small networks, and the seeds of their samples of rows and of their runs."""

    cases: Sequence[Case]
    graphs: Sequence[str]
    seeds: Sequence[int]


TUNING = Suite(
    [
        Case("Gini index, log-normal", "gini-index", "log-normal"),
        Case("AUC, equal classes", "auc", "equal classes"),
        Case("Gini index, sorted", "gini-index", "sorted"),
        Case("Gini index, heavy tails", "gini-index", "heavy tails"),
        Case("AUC, one row in twenty positive", "auc", "rare class"),
        Case("AUC, 20 rows per node, by score", "auc", "equal classes", by="score"),
    ],
    ["complete", "watts-strogatz"],
    range(SAMPLES),
)
VERIFICATION = Suite(
    [
        Case("Kendall's tau", "kendall-tau", "correlated"),
        Case("concordance, a third censored", "concordance-index", "censored"),
        Case("mean difference, Pareto", "gini-mean-difference", "pareto"),
        Case("mean difference, sorted", "gini-mean-difference", "uniform, sorted"),
        Case("mean distance, two columns", "mean-pairwise-distance", "plane"),
        Case("AUC, one row in ten positive", "auc", "one class in ten"),
        Case("Gini index, 20 rows per node, by value", "gini-index", "log-normal", by="value"),
    ],
    ["complete", "watts-strogatz", "barabasi-albert"],
    range(1000, 1000 + SAMPLES),
)
SMOKE = Suite(TUNING.cases[:1], TUNING.graphs[:1], [0])
# What `--tune` compares with the rule that nodes use.
VARIANTS = {
    "as it is": RULE,
    "factor 2": RULE._replace(factor=2.0),
    "factor 3": RULE._replace(factor=3.0),
    "short memory": RULE._replace(more_memory=8.0),
    "long memory": RULE._replace(memory=8.0),
    "few nodes are 30": RULE._replace(few_nodes=30.0),
    "few nodes are 100": RULE._replace(few_nodes=100.0),
}


def small_rows(kind: str, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([n, seed])
    if "class" in kind:
        share = {"rare class": 20, "one class in ten": 10}.get(kind, 2)
        label = rng.permutation(np.arange(n) < max(2, n // share))
        return {"score": rng.normal(size=n) + 1.5 * label, "label": label}
    first, other = rng.normal(size=(2, n))
    if kind == "correlated":
        return {"first": first, "second": 0.8 * first + 0.6 * other}
    if kind == "censored":
        return {
            "time": first,
            "score": -0.5 * first - 0.75**0.5 * other,
            "event": rng.random(n) < 2 / 3,
        }
    if kind == "plane":
        return {"first": first, "second": rng.exponential(size=n)}
    if kind == "uniform, sorted":
        return {"value": np.sort(rng.random(n))}
    if kind == "pareto":
        return {"value": 1.0 + rng.pareto(2.5, size=n)}
    value = rng.lognormal(0.0, 2.0 if kind == "heavy tails" else 1.0, size=n)
    return {"value": np.sort(value) if kind == "sorted" else value}


def simulate_small(case: Case, graph: str, nodes: int, seed: int, **options: Any) -> gosta.Trace:
    rows = small_rows(case.kind, nodes * (1 if case.by is None else ROWS_PER_NODE), seed)
    if case.by is not None:
        options |= {"by": case.by, "nodes": nodes, "iterations": 2000 * nodes}
    return gosta.simulate(rows, case.statistic, graph=graph, runs=RUNS, seed=seed, **options)


class Ends(NamedTuple):
    """How the runs of a case ended: those that nodes ended, of these those that kept the promise,
    and when.
    """

    ended: int
    kept: int
    exchanges: list[float]
    """Of a node, at the end of each run."""

    def text(self, runs: int) -> str:
        share = f"{100 * self.kept / self.ended:.0f} %" if self.ended else "none stopped"
        return f"{share}, {np.median(self.exchanges):.0f}" + f" ({self.ended} stopped)" * (
            self.ended < runs
        )


def measure_small(case: Case, graph: str, nodes: int, seeds: Sequence[int], until: float) -> Ends:
    """Run a case until its nodes stop."""
    ended, kept, when = 0, 0, []
    for seed in seeds:
        trace = simulate_small(case, graph, nodes, seed, until=until)
        stopped = trace.data["stopped"].values
        ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
        errors, done = trace.data["median"].values[np.arange(RUNS), ends], stopped > 0
        ended, kept = ended + int(done.sum()), kept + int((errors[done] <= until).sum())
        when += (2 * stopped[done] / nodes).tolist()
    return Ends(ended, kept, when)


def replay_small(
    case: Case, graph: str, nodes: int, seeds: Sequence[int], until: float
) -> dict[str, Ends]:
    """Run a case once without an end, and return where each variant of the rule would have ended
    it.
    """
    ended, kept = dict.fromkeys(VARIANTS, 0), dict.fromkeys(VARIANTS, 0)
    when: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for seed in seeds:
        last = TUNING_ITERATIONS_PER_NODE * nodes
        count = round(READINGS_PER_DOUBLING * np.log2(last)) + 1
        trace = simulate_small(
            case, graph, nodes, seed, **{"iterations": last, "checkpoints": count, "spacing": "log"}
        )
        times = trace.iterations[trace.iterations >= nodes]
        estimates = trace.data["estimates"].values[:, -len(times) :, :, None]
        medians = trace.data["median"].values[:, -len(times) :]
        for name, rule in VARIANTS.items():
            for run in range(RUNS):
                for k in range(MIN_CHANGES, len(times)):
                    part = slice(max(0, k + 1 - MAX_READINGS), k + 1)
                    exchanges = 2 * times[k] / nodes
                    errors = expected_errors(
                        list(estimates[run, part]), times[part].tolist(), nodes, exchanges, rule
                    )
                    if (errors <= until).mean() >= STOPPING_SHARE:
                        ended[name], kept[name] = (
                            ended[name] + 1,
                            kept[name] + int(medians[run, k] <= until),
                        )
                        when[name].append(exchanges)
                        break
    return {name: Ends(ended[name], kept[name], when[name]) for name in VARIANTS}


def print_small(suite: Suite, nodes: Sequence[int], until: float) -> None:
    print("| rows | network | " + " | ".join(f"{n} nodes" for n in nodes) + " |")
    print("| --- | --- |" + " --- |" * len(nodes))
    for case in suite.cases:
        for graph in suite.graphs:
            chosen = [n for n in nodes if case.by is None or n <= MAX_NODES_WITH_TABLES]
            cells = [
                measure_small(case, graph, n, suite.seeds, until).text(RUNS * len(suite.seeds))
                if n in chosen
                else "-"
                for n in nodes
            ]
            print(f"| {case.title} | {graph} | {' | '.join(cells)} |", flush=True)


def print_variants(suite: Suite, nodes: Sequence[int], until: float) -> None:
    """Print for each variant of the rule the share of runs that keep the promise, the lowest of a
    case, and when.
    """
    print(
        "| nodes | rule | kept | lowest | not stopped | exchanges of a node |\n| --- | --- | --- | "
        "--- | --- | --- |"
    )
    for n in nodes:
        cases = [c for c in suite.cases if c.by is None or n <= MAX_NODES_WITH_TABLES]
        found = [
            replay_small(case, graph, n, suite.seeds, until)
            for case in cases
            for graph in suite.graphs
        ]
        runs = RUNS * len(suite.seeds)
        for name in VARIANTS:
            ends = [one[name] for one in found]
            ended, kept = sum(e.ended for e in ends), sum(e.kept for e in ends)
            lowest = min((e.kept / e.ended for e in ends if e.ended), default=np.nan)
            when = np.exp(np.mean([np.log(np.median(e.exchanges)) for e in ends if e.ended]))
            kept_share = f"{100 * kept / max(1, ended):.1f} %"
            shares = f"{kept_share} | {100 * lowest:.0f} % | {runs * len(ends) - ended}"
            print(f"| {n} | {name} | {shares} | {when:.0f} |", flush=True)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--small", action="store_true", help="the tables of small networks only")
    parser.add_argument(
        "--tune", action="store_true", help="compare constants of the rule on the tuning cases"
    )
    arguments = parser.parse_args()
    smoke = arguments.smoke
    common.print_machine("numba")
    if smoke or arguments.tune:
        print_variants(
            SMOKE if smoke else TUNING, SMALL_NODES[: 1 if smoke else None], 0.05 if smoke else 0.01
        )
    if arguments.tune:
        return
    suites = {"smoke": SMOKE} if smoke else {"verification": VERIFICATION, "tuning": TUNING}
    for title, suite in suites.items():
        print(f"\n{title}:")
        print_small(suite, SMALL_NODES[: 1 if smoke else None], 0.05 if smoke else 0.01)
    if arguments.small:
        return
    graphs = {"complete": (100, 1000)} if smoke else GRAPHS
    statistics = ["auc"] if smoke else list(STATISTICS)
    runs, until = (4, 0.05) if smoke else (20, 0.01)
    print("\n| network | statistic | promise kept | exchanges when stopped | needed | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    ended = kept = 0
    with progress.bar("stopping", len(graphs) * len(statistics), 0) as advance:
        for graph, (n, per_node) in graphs.items():
            for statistic in statistics:
                found = measure(statistic, graph, n, per_node, runs, until)
                ended, kept = ended + found.runs, kept + found.kept
                end = f"{found.exchanges:,.0f}" if found.runs else "-"
                needed = "more than simulated | -"
                if np.isfinite(found.needed):
                    needed = f"{found.needed:,.0f} | {found.exchanges / found.needed:.1f}"
                print(
                    f"| {graph} | `{statistic}` | {found.kept} of {found.runs} | {end} | {needed} "
                    "|",
                    flush=True,
                )
                advance(1)
    print(f"\nkept in {kept} of {ended} runs, {100 * kept / ended:.1f} %")
    assert ended, "no run was ended by its nodes"
    assert kept >= LEAST_KEPT * ended, (kept, ended)


if __name__ == "__main__":
    main()
