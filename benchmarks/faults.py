"""Cost of lost packets and of nodes that are down: real nodes and journals in virtual time, with
and without faults.

Sixteen nodes hold the patients of breast-cancer, by the size of their tumours, and gossip the AUC;
once without faults, and once with a fifth of all messages late by 0.2 to 0.6 s, as TCP sends lost
packets again, and one node down at any time, each for three seconds in turn.

Run with: python benchmarks/faults.py [--plot FILE | --smoke]
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import common
import numpy as np
from virtual_network import Fault, VirtualNetwork

from gosta import graphs
from gosta.estimation.setting import make_setting
from gosta.runtime.arrays import Floats

NODES = 16
# How long a node that crashes stays away.
DOWN_SECONDS = 3.0
# Share of the packets that are lost once, and arrive late.
LATE = 0.2
BY = "mean radius"  # each hospital sees tumours of about one size
LATE_SECONDS = 20  # before the end, over which final errors are averaged
SCENARIOS = {
    "no faults": False,
    f"{100 * LATE:.0f} % of packets lost, one node down at any time": True,
}
LEAST_KEPT = 0.25  # of the exchanges
MOST_FACTOR = 2.0  # between the errors after as many exchanges, with and without faults


class Curves(NamedTuple):
    """Arrays with one row for each run and one column for each virtual second."""

    errors: Floats
    """Relative errors, means over nodes."""
    exchanges: Floats
    """Exchanges so far."""


def run(faulty: bool, seed: int, seconds: int) -> Curves:
    """Run a network and check its journals at the end."""
    setting = make_setting(
        "tracking", "breast-cancer", "auc", "watts-strogatz", 0, {}, nodes=NODES, by=BY
    )
    edges = graphs.make("watts-strogatz", NODES, seed=0).edges
    assert edges is not None
    turns = int(seconds / DOWN_SECONDS) if faulty else 0
    faults = [
        Fault("crash", k * DOWN_SECONDS, f"node-{k % NODES}", DOWN_SECONDS) for k in range(turns)
    ]
    parts = setting.placement.split(setting.estimand.x)
    pairs = [(int(i), int(j)) for i, j in edges]
    network = VirtualNetwork(parts, pairs, faults, seed, "auc", late=LATE if faulty else 0.0)
    exact, errors, exchanges = float(setting.target[0, 0]), [], []
    for second in range(1, seconds + 1):
        network.clock.run(second)
        peers = list(network.peers.values())
        values = [
            0.0 if report is None else report.value[0]
            for report in (peer.report() for peer in peers)
        ]
        errors.append(np.abs(np.array(values) / exact - 1).mean())
        exchanges.append(sum(peer.estimator.exchanges for peer in peers) / 2)
    network.check()
    return Curves(np.array(errors), np.array(exchanges))


def first_below(errors: Floats, goal: float) -> float:
    """Return the first second from which on the median error stays below a goal."""
    above = np.flatnonzero(np.median(errors, axis=0) >= goal)
    return float(above[-1] + 2 if len(above) else 1)


def draw(path: Path, found: dict[str, Curves]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for (name, curves), colour in zip(found.items(), ("tab:blue", "tab:red"), strict=True):
        seconds = np.arange(1, curves.errors.shape[1] + 1)
        for ax, x in zip(axes, (seconds, np.median(curves.exchanges, axis=0)), strict=True):
            ax.plot(x, np.median(curves.errors, axis=0), color=colour, label=name)
            low, high = np.quantile(curves.errors, [0.1, 0.9], axis=0)
            ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    axes[0].set(
        xlabel="seconds", ylabel="relative error, mean over nodes", xscale="log", yscale="log"
    )
    axes[1].set(xlabel="exchanges that took place", xscale="log")
    axes[0].legend()
    runs = len(curves.errors)
    figure.suptitle(
        f"AUC of breast-cancer, {NODES} nodes, watts-strogatz; median and 10 to 90 % of {runs} runs"
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--plot", type=Path, help="where to write the picture of both error curves")
    arguments = parser.parse_args()
    runs, seconds = (2, 12) if arguments.smoke else (40, 60)
    common.print_machine("msgspec")
    start = time.perf_counter()
    found = {}
    for name, faulty in SCENARIOS.items():
        each = [run(faulty, seed, seconds) for seed in range(runs)]
        found[name] = Curves(
            np.array([one.errors for one in each]), np.array([one.exchanges for one in each])
        )
        errors, exchanges = found[name]
        print(f"{name}: {np.median(exchanges[:, -1]) / seconds:.1f} exchanges a second")
        for goal in (0.02, 0.01, 0.005):
            print(f"  within {100 * goal:g} % after {first_below(errors, goal):.0f} s")
        print(
            f"  error over the last {LATE_SECONDS} s: "
            f"{100 * np.median(errors[:, -LATE_SECONDS:]):.2g} %"
        )
    without, with_faults = found.values()
    kept = np.median(with_faults.exchanges[:, -1]) / np.median(without.exchanges[:, -1])
    print(
        f"exchanges kept: {kept:.2f}; both nodes are up for {(1 - 1 / NODES) ** 2:.2f} of the time"
    )
    same = float(with_faults.exchanges[:, -1].min())
    at = [
        float(
            np.median(
                [errors[np.searchsorted(done, same)] for errors, done in zip(*curves, strict=True)]
            )
        )
        for curves in found.values()
    ]
    print(f"error after {same:,.0f} exchanges: {100 * at[0]:.2g} % and {100 * at[1]:.2g} %")
    print(
        f"{time.perf_counter() - start:.0f} s for {2 * runs * seconds} virtual seconds of {NODES} "
        "nodes"
    )
    if arguments.plot:
        draw(arguments.plot, found)
    most = 0.05 if arguments.smoke else MOST_FACTOR * at[0]
    assert at[1] < most, f"faults did more than slow it down: {at[1]:.3g} is above {most:.3g}"
    assert kept > LEAST_KEPT, kept


if __name__ == "__main__":
    main()
