"""How often the promise of `until` holds, and how long nodes wait for it.

For each network and statistic, 20 runs that the nodes end themselves at 1 %, and 20 runs that go on. The promise is
kept where the median node is within 1 % when the run ends. Needed are the exchanges after which that holds in 19 of 20
runs: no rule that does not know the answer could promise it with fewer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gosta
from gosta.runtime import progress

RUNS, UNTIL = 20, 0.01
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


def measured(statistic: str, graph: str) -> tuple[int, int, float, float]:
    """Runs that stopped, those of them that kept the promise, exchanges when they did, exchanges needed."""
    n, a_node = GRAPHS[graph]
    data, more = STATISTICS[statistic]
    rows = gosta.datasets.load(data).shuffle(3).head(n)
    common: dict[str, Any] = {"graph": graph, "runs": RUNS, "seed": 3, "iterations": a_node * n, **more}
    trace = gosta.simulate(rows, statistic, until=UNTIL, **common)
    stopped = trace.data["stopped"].values
    ends = np.isfinite(trace.data["mean"].values).sum(axis=1) - 1
    error = trace.data["median"].values[np.arange(RUNS), ends]
    longer = gosta.simulate(rows, statistic, checkpoints=300, spacing="log", **common)
    within = (longer.data["median"].values <= UNTIL).mean(axis=0) >= 0.95
    beyond = np.flatnonzero(~within)
    needed = longer.iterations[beyond[-1] + 1] if len(beyond) and beyond[-1] + 1 < len(within) else np.nan
    done = stopped > 0
    when = float(np.median(stopped[done])) if done.any() else np.nan
    return int(done.sum()), int((error[done] <= UNTIL).sum()), when, float(needed)


def main() -> None:
    print("| network | statistic | promise kept | exchanges when stopped | needed | ratio |")
    print("| --- | --- | --- | --- | --- | --- |")
    total = np.zeros(2, dtype=np.int64)
    with progress.bar("stopping", len(GRAPHS) * len(STATISTICS), 0) as advance:
        for graph in GRAPHS:
            for statistic in STATISTICS:
                done, kept, when, needed = measured(statistic, graph)
                total += done, kept
                end = f"{when:,.0f}" if done else "-"
                shown = f"{needed:,.0f} | {when / needed:.1f}" if np.isfinite(needed) else "more than simulated | -"
                print(f"| {graph} | `{statistic}` | {kept} of {done} | {end} | {shown} |", flush=True)
                advance(1)
    print(f"\nkept in {total[1]} of {total[0]} runs, {100 * total[1] / total[0]:.1f} %")


if __name__ == "__main__":
    main()
