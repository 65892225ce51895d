"""Stability of the default protocol in long runs, and how far the numbers that nodes send exceed
the range of the mean.

The first table has 10⁸ exchanges on networks of 100 nodes with sorted log-normal rows: the largest
relative error of a node on the way, the relative difference of conserved sums (`ahead` + `owed`
summed over nodes, against what visitors have been counted with), and the largest distance from 1 of
the share of rows that are counted.

The second has small random networks (up to 12 nodes, two of three with weights) on several
schedules, with the shares of edges that real nodes would tell. It shows by how many ranges the
numbers sent exceed the range of the mean, median and largest of 50 networks;
`gosta.protocols.tracking.OVERSHOOT` is what receivers allow.

Run with: python benchmarks/stability.py [--smoke]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import common
import numpy as np
from engine_runs import advance, conserved_sums, estimates, small_graph
from numpy.typing import NDArray

from gosta import graphs
from gosta.estimation.setting import make_setting
from gosta.graphs.graph import Graph
from gosta.protocols.tracking import OVERSHOOT
from gosta.runtime.arrays import Floats, Integers
from gosta.simulation.engines.compiled import engine as compiled

PROTOCOL = "carried-means"
STATISTIC = "gini-mean-difference"
N = 100
FAMILIES = (
    "complete",
    "cycle",
    "path",
    "star",
    "torus",
    "barabasi-albert",
    "watts-strogatz",
    "geometric",
    "two-cliques",
)
CONSERVED = 1e-9
# Schedules on which numbers sent must stay within OVERSHOOT.
SAFE = "at random", "in turn", "3 times in a row"


def long_graphs() -> dict[str, Graph]:
    """Return the networks of the first table."""
    made = {name: graphs.load(name, n=N, seed=1) for name in FAMILIES}
    made["binary tree"] = graphs.from_edges(np.array([((k - 1) // 2, k) for k in range(1, N)]))
    edges = edges_of(made["watts-strogatz"])
    weights = np.exp(np.random.default_rng(3).normal(0.0, 2.0, len(edges)))
    made["watts-strogatz, weights over 4 orders"] = graphs.from_edges(edges, weights=weights)
    return made


def edges_of(graph: Graph) -> NDArray[np.int32]:
    """Return the list of edges, which only complete graphs do not have."""
    assert graph.edges is not None
    return graph.edges


def print_long_run(title: str, graph: Graph, marks: list[int]) -> None:
    """Print what a long run conserves, and its errors after some exchanges."""
    rows = np.sort(np.random.default_rng(5).lognormal(size=N))
    setting = make_setting(PROTOCOL, rows, STATISTIC, graph, 1, {})
    engine: Any = compiled.make(setting, 1)
    batch, target = engine.start([0]), setting.target
    errors = []
    for mark in marks:
        engine.advance(batch, mark)
        errors.append(float(np.abs(setting.values(estimates(engine, batch)) / target - 1.0).max()))
    left, right = conserved_sums(engine, batch)
    engine.close()
    difference = float(np.abs(left / right - 1.0).max())
    shares = batch.state["nodes"][0][:, setting.gossip.fields * setting.mean_count]
    cells = " | ".join(f"{error:.1e}" for error in errors)
    print(
        f"| {title} | {cells} | {difference:.0e} | {np.abs(shares - 1.0).max():.0e} |", flush=True
    )
    assert difference < CONSERVED, difference
    assert max(errors) <= 1.0, errors


def at_random(graph: Graph, rng: np.random.Generator, count: int) -> Integers:
    """Draw edges as simulations do."""
    chosen = graph.draw_with_numbers(rng, count)[1]
    return rng.integers(graph.m, size=count) if chosen is None else chosen


def in_turn(graph: Graph, rng: np.random.Generator, count: int) -> Integers:
    """Return all edges in a random order, again and again."""
    return np.resize(rng.permutation(graph.m), count)


def in_a_row(mean: int) -> Callable[[Graph, np.random.Generator, int], Integers]:
    """Return a schedule that uses each edge several times in a row, `mean` on average."""

    def draw(graph: Graph, rng: np.random.Generator, count: int) -> Integers:
        return np.repeat(rng.integers(graph.m, size=count), rng.geometric(1.0 / mean, size=count))[
            :count
        ]

    return draw


def parts_in_turn(mean: int) -> Callable[[Graph, np.random.Generator, int], Integers]:
    """Return a schedule in which two parts of the network and the edges between them are used in
    turn.
    """

    def draw(graph: Graph, rng: np.random.Generator, count: int) -> Integers:
        ends = (rng.random(graph.n) < 0.5)[graph.edges].sum(axis=1)
        groups = [group for group in (np.flatnonzero(ends == k) for k in range(3)) if len(group)]
        lengths = rng.geometric(1.0 / mean, size=count)
        found = (
            rng.choice(groups[k % len(groups)], length)
            for k, length in enumerate(lengths[: 1 + 4 * count // mean])
        )
        return np.concatenate(list(found))[:count]

    return draw


SCHEDULES: dict[str, Callable[[Graph, np.random.Generator, int], Integers]] = {
    "at random": at_random,
    "in turn": in_turn,
    **{f"{mean} times in a row": in_a_row(mean) for mean in (3, 10, 30, 100)},
    **{
        f"parts of the network in turn, {mean} exchanges each": parts_in_turn(mean)
        for mean in (30, 100, 1000)
    },
}


def shares_of(graph: Graph, chosen: Integers) -> Floats:
    """Return the share of each edge in its ends' exchanges so far, the smaller one, as real nodes
    estimate it.
    """
    uses, exchanges = (
        np.zeros(graph.m),
        np.bincount(edges_of(graph).ravel(), minlength=graph.n).astype(float),
    )
    found = np.empty(len(chosen))
    for t, edge in enumerate(chosen.tolist()):
        ends = edges_of(graph)[edge]
        found[t] = (uses[edge] + 1.0) / exchanges[ends].max()
        uses[edge] += 1.0
        exchanges[ends] += 1.0
    return found


def overshoot(title: str, seed: int, count: int) -> tuple[float, float]:
    """Return by how much the means sent, and the shares of rows counted, exceed 0 to 1 in a run of
    rows of 0 and 1.
    """
    rng = np.random.default_rng([seed, count])
    graph = small_graph(rng, weighted=bool(seed % 3))
    rows = np.where(np.arange(graph.n) < max(1, graph.n // (2 + seed % 2)), 1.0, 0.0)
    setting = make_setting(PROTOCOL, rows, STATISTIC, graph, seed, {})
    engine: Any = compiled.make(setting, 0)
    batch, chosen = engine.start([0]), SCHEDULES[title](graph, rng, count)
    edges, shares, most = edges_of(graph)[chosen], shares_of(graph, chosen), np.zeros(2)
    for first in range(0, count, 10):
        part = slice(first, first + 10)
        advance(engine, batch, edges[part], shares[part])
        sent = batch.state["nodes"][0][:, [1, setting.gossip.fields + 1]]
        most = np.maximum(most, np.maximum(sent - 1.0, -sent).max(axis=0))
    engine.close()
    return float(most[0]), float(most[1])


def print_overshoot(title: str, networks: int, counts: tuple[int, ...]) -> None:
    """Print how far numbers that nodes send exceed the range of the mean on a schedule."""
    cells = []
    for count in counts:
        found = np.array([overshoot(title, seed, count) for seed in range(networks)])
        cells += [f"{np.median(one) + 0.0:.2g}, {one.max() + 0.0:.2g}" for one in found.T]
        assert title not in SAFE or found.max() < OVERSHOOT, (title, found.max())
    print(f"| {title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    common.print_machine("numba")
    marks = [10_000] if smoke else [10**k for k in range(5, 9)]
    print(
        "| network | "
        + " | ".join(f"error after {mark:,}" for mark in marks)
        + " | conserved | share counted |"
    )
    print("| --- |" + " --- |" * (len(marks) + 2))
    for title, graph in list(long_graphs().items())[: 2 if smoke else None]:
        print_long_run(title, graph, marks)
    counts, networks = ((200,), 3) if smoke else ((2000, 20_000), 50)
    columns = [
        f"{what}, {count:,} exchanges" for count in counts for what in ("mean", "share counted")
    ]
    print("\n| edges are used | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for title in SCHEDULES:
        print_overshoot(title, networks, counts)


if __name__ == "__main__":
    main()
