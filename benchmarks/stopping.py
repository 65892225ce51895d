"""Reliability of `until`: how often the error is as small as promised, and how many exchanges that costs.

For each network and statistic, 20 runs that the nodes end themselves at 1 %, and 20 runs that go on. The promise is
kept where the median node is within 1 % when the run ends. Needed are the exchanges after which that holds in 19 of 20
runs: no rule that does not know the answer could promise it with fewer.

Run with: python benchmarks/stopping.py [--smoke]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import common
import numpy as np

import gosta
from gosta.runtime import progress

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
SEED = 3
LEAST_KEPT = 0.9  # of all runs; 98 % when last measured


class Stopped(NamedTuple):
    """Ends of the runs of one network and statistic."""

    runs: int
    """Runs that the nodes ended."""
    kept: int
    """Runs of those whose median node was within the required error."""
    exchanges: float
    """Median number of exchanges at their end."""
    needed: float
    """Exchanges after which 95 % of runs are within that error; NaN if that is beyond what was simulated."""


def measure(statistic: str, graph: str, n: int, per_node: int, runs: int, until: float) -> Stopped:
    data, more = STATISTICS[statistic]
    rows = gosta.datasets.load(data).shuffle(SEED).head(n)
    settings: dict[str, Any] = {"graph": graph, "runs": runs, "seed": SEED, "iterations": per_node * n, **more}
    trace = gosta.simulate(rows, statistic, until=until, **settings)
    stopped = trace.data["stopped"].values
    ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
    error = trace.data["median"].values[np.arange(runs), ends]
    longer = gosta.simulate(rows, statistic, checkpoints=300, spacing="log", **settings)
    within = (longer.data["median"].values <= until).mean(axis=0) >= 0.95
    beyond = np.flatnonzero(~within)
    needed = longer.iterations[beyond[-1] + 1] if len(beyond) and beyond[-1] + 1 < len(within) else np.nan
    done = stopped > 0
    when = float(np.median(stopped[done])) if done.any() else np.nan
    return Stopped(int(done.sum()), int((error[done] <= until).sum()), when, float(needed))


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    graphs = {"complete": (100, 1000)} if smoke else GRAPHS
    statistics = ["auc"] if smoke else list(STATISTICS)
    runs, until = (4, 0.05) if smoke else (20, 0.01)
    common.print_machine("numba")
    print("| network | statistic | promise kept | exchanges when stopped | needed | ratio |")
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
                print(f"| {graph} | `{statistic}` | {found.kept} of {found.runs} | {end} | {needed} |", flush=True)
                advance(1)
    print(f"\nkept in {kept} of {ended} runs, {100 * kept / ended:.1f} %")
    assert ended, "no run was ended by its nodes"
    assert kept >= LEAST_KEPT * ended, (kept, ended)


if __name__ == "__main__":
    main()
