"""Exchanges and numbers sent that relay needs, beside the default protocol and GoSta-async; and how
exact it stays.

The first table has the number of exchanges after which the mean relative error over nodes and 10
runs is down to a target, of the Gini mean difference of lognormal rows that are dealt at random, or
sorted, so that nodes with neighbouring numbers are alike. Others are given up after 300 times the
exchanges of relay ("over").

The second has long runs: the largest relative error of a node for a plain mean (the variance),
which is exact, and for the Gini mean difference of sorted rows.

Run with: python benchmarks/relay.py [--smoke]
"""

from __future__ import annotations

from typing import Any

import common
import numpy as np
import protocols
from engine_runs import estimates
from protocols import SYNTHETIC, Case, make, measure, print_row

from gosta.estimation.setting import make_setting
from gosta.graphs.tree import tree_share
from gosta.simulation.engines import read
from gosta.simulation.engines.compiled import engine as compiled

NAMES = "gosta-async", "carried-means", "relay"
MOST_TIMES = 300
PER_NODE = 20_000  # exchanges, relative to the number of nodes, after which relay is given up
GINI = SYNTHETIC[0]
CASES = [
    *[
        Case(GINI, graph, 400, False)
        for graph in ("two-cliques", "star", "barabasi-albert", "geometric", "weighted")
    ],
    *[Case(GINI, graph, 900, False) for graph in ("complete", "watts-strogatz", "torus")],
    Case(GINI, "cycle", 400, False, 0.05),
    *[
        Case(GINI, graph, 400, True)
        for graph in ("star", "barabasi-albert", "geometric", "complete", "torus")
    ],
    Case(GINI, "two-cliques", 400, True, 0.05),
]
HEADING = (
    *("graph", "n", "rows", "error", "GoSta-async", "carried-means", "relay"),
    *("times fewer than carried-means", "numbers sent, times fewer"),
)


def compare(case: Case) -> None:
    """Print what the protocols need in a case."""
    settings = {name: make(case, name) for name in NAMES}
    ours = measure(settings["relay"], case.target, PER_NODE * case.n)
    assert np.isfinite(ours.exchanges), case
    most = round(MOST_TIMES * ours.exchanges)
    gosta, default = (measure(settings[name], case.target, most) for name in NAMES[:2])
    rule, graph = settings["relay"].gossip, settings["relay"].graph
    sent = rule.units(settings["relay"].estimand.x.shape[1], 1, 0, tree_share(graph))
    fewer, over = default.least / ours.exchanges, "" if np.isfinite(default.exchanges) else "over "
    times = [f"{over}{fewer:.1f}", f"{over}{fewer * default.numbers / sent:.1f}"]
    where = [
        case.graph,
        str(case.n),
        "sorted" if case.is_ordered else "random",
        f"{100 * case.target:g} %",
    ]
    print_row([*where, *map(str, (gosta, default, ours)), *times])


def print_long_run(name: str, n: int, marks: list[int]) -> None:
    """Print the largest error of a node after some exchanges."""
    rows, cells = np.sort(np.random.default_rng(5).lognormal(size=n)), []
    for statistic in ("variance", "gini-mean-difference"):
        setting = make_setting("relay", rows, statistic, protocols.make_graph(name, n), 1, {})
        engine: Any = compiled.make(setting, 1)
        batch = engine.start([0])
        for mark in marks:
            engine.advance(batch, mark)
            error = float(
                np.abs(setting.values(estimates(engine, batch)) / setting.target - 1.0).max()
            )
            cells.append(f"{error:.1e}")
            assert error < (1e-9 if statistic == "variance" else 1.0), (name, statistic, error)
        assert (read(engine, batch)[..., -1] == n).all(), name
        engine.close()
    print_row([name, *cells])


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("numba")
    print()
    print_row(HEADING)
    print_row(["---"] * len(HEADING))
    for case in [Case(GINI, "star", 20, False, 0.05)] if smoke else CASES:
        compare(case)
    marks, n = ([20_000], 20) if smoke else ([10**6, 10**8], 100)
    titles = [f"{title}, {mark:.0e} exchanges" for title in ("variance", "Gini") for mark in marks]
    print(f"\nLargest relative error of a node, n = {n}\n")
    print_row(["graph", *titles])
    print_row(["---"] * (1 + len(titles)))
    for name in (
        ["star"]
        if smoke
        else ["two-cliques", "cycle", "path", "star", "torus", "watts-strogatz", "weighted"]
    ):
        print_long_run(name, n, marks)


if __name__ == "__main__":
    main()
