"""What lost messages and nodes that are down cost: real nodes and journals in virtual time, with and without faults.

Run with: python benchmarks/faults.py [PICTURE]

Sixteen nodes hold the patients of breast-cancer, by the size of their tumours, and gossip the AUC. Then the same with a
fifth of all messages lost, both ways, and one node down at any time, each for three seconds in its turn.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from world import Fault, World

from gosta import graphs
from gosta.estimation.problem import settle
from gosta.runtime.arrays import Floats

NODES, RUNS, SECONDS, DOWN, LOSS = 16, 40, 60, 3.0, 0.2
BY = "mean radius"  # each hospital sees tumours of about one size
LATE = 20  # seconds before the end over which final errors are averaged


def errors(faulty: bool, run: int) -> tuple[Floats, Floats]:
    """The mean error of the nodes and how many exchanges there were, second by second."""
    problem = settle("tracking", "breast-cancer", "auc", "watts-strogatz", 0, {}, nodes=NODES, by=BY).problem
    edges = graphs.make("watts-strogatz", NODES, seed=0).edges
    assert edges is not None
    turns = int(SECONDS / DOWN) if faulty else 0
    faults = [Fault("crash", k * DOWN, f"node-{k % NODES}", DOWN) for k in range(turns)]
    parts = np.split(problem.x, np.cumsum(problem.rows)[:-1])
    pairs = [(int(i), int(j)) for i, j in edges]
    world = World(parts, pairs, faults, run, "auc", loss=LOSS if faulty else 0.0)
    exact, found, done = float(problem.means[0, 0] / problem.means[0, 1]), [], []
    for second in range(1, SECONDS + 1):
        world.clock.run(second)
        peers = list(world.peers.values())
        values = [0.0 if report is None else report.value[0] for report in (peer.report() for peer in peers)]
        found.append(np.abs(np.array(values) / exact - 1).mean())
        done.append(sum(peer.site.meetings for peer in peers) / 2)
    world.check()
    return np.array(found), np.array(done)


def first_below(errors: Floats, goal: float) -> float:
    """The first second from which on the median error stays below."""
    above = np.flatnonzero(np.median(errors, axis=0) >= goal)
    return float(above[-1] + 2 if len(above) else 1)


def draw(path: Path, curves: dict[str, tuple[Floats, Floats]]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for (name, (found, done)), colour in zip(curves.items(), ("tab:blue", "tab:red"), strict=True):
        for ax, x in zip(axes, (np.arange(1, SECONDS + 1), np.median(done, axis=0)), strict=True):
            ax.plot(x, np.median(found, axis=0), color=colour, label=name)
            low, high = np.quantile(found, [0.1, 0.9], axis=0)
            ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes[0].set(xlabel="seconds", ylabel="relative error, mean over nodes", xscale="log", yscale="log")
    axes[1].set(xlabel="exchanges that took place", xscale="log")
    axes[0].legend()
    figure.suptitle(f"AUC of breast-cancer, {NODES} nodes, watts-strogatz; median and 10 to 90 % of {RUNS} runs")
    figure.savefig(path, dpi=120)


def main() -> None:
    start = time.perf_counter()
    names = {"all well": False, f"{100 * LOSS:.0f} % of messages lost, one node down at any time": True}
    curves = {}
    for name, faulty in names.items():
        runs = [errors(faulty, run) for run in range(RUNS)]
        curves[name] = np.array([found for found, _ in runs]), np.array([done for _, done in runs])
        found, done = curves[name]
        print(f"{name}: {np.median(done[:, -1]) / SECONDS:.1f} exchanges a second")
        for goal in (0.02, 0.01, 0.005):
            print(f"  within {100 * goal:g} % after {first_below(found, goal):.0f} s")
        print(f"  error over the last {LATE} s: {100 * np.median(found[:, -LATE:]):.2g} %")
    (_, many), (_, few) = curves.values()
    kept = np.median(few[:, -1]) / np.median(many[:, -1])
    expected = (1 - LOSS) ** 2 * (1 - 1 / NODES) ** 2
    print(f"exchanges kept: {kept:.2f}; {expected:.2f} would be: both messages arrive, both nodes are up")
    same = float(few[:, -1].min())
    at = [np.median([run[np.searchsorted(d, same)] for run, d in zip(*both, strict=True)]) for both in curves.values()]
    print(f"error after {same:,.0f} exchanges: {100 * at[0]:.2g} % and {100 * at[1]:.2g} %")
    print(f"{time.perf_counter() - start:.0f} s for {2 * RUNS * SECONDS} virtual seconds of {NODES} nodes")
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), curves)
    assert at[1] < 2 * at[0], "faults did more than slow it down"


if __name__ == "__main__":
    main()
