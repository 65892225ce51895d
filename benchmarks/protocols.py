"""Exchanges, numbers sent, bytes and time that the default protocol needs, beside GoSta-async and
tracking.

Rows are dealt at random, or lie in the network's order: sorted by a column, so that neighbours are
alike. The answers are the numbers of exchanges after which the mean relative error over nodes and
runs is down to a target, on the same edges for all protocols; GoSta-async is given up after 30
times the exchanges of the default ("over"). Two limits tell what is left to gain: *pooled* is when
the mean of all that nodes and visitors know is down to the target, so that only agreement between
nodes is missing; *averaging* is plain averaging that starts from every row's exact mean.

Run with: python benchmarks/protocols.py [--quick | --variants | --smoke]
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import common
import numpy as np
from engine_runs import estimates
from scipy.spatial import cKDTree

from gosta import datasets, graphs
from gosta.errors import InputError
from gosta.estimation import carried
from gosta.estimation.exchange import Estimator
from gosta.estimation.setting import Setting, make_setting
from gosta.graphs.graph import Graph
from gosta.net.protocol import messages
from gosta.protocols import Protocol, carried_means, tracking
from gosta.runtime.arrays import Floats
from gosta.simulation import engines
from gosta.simulation.engines.compiled import layouts

RUNS = 10
# Runs where rows are in the network's order and n = 3000: there GoSta-async takes 10^8 exchanges.
LARGE_RUNS = 2
# There, tracking is given up after this many times the exchanges of the default protocol.
LARGE_TIMES = 4
SEED = 7
OURS = carried_means.NAME
PROTOCOLS = (OURS, "tracking", "gosta-async")
TARGET = 0.01
STEP = 1.04  # ratio of one checkpoint to the one before
STOP_BELOW = 0.75  # of the target: where a simulation ends
MOST_TIMES = 30  # the exchanges of the default protocol, after which others are given up
# exchanges, relative to the number of nodes, after which the default protocol is given up
PER_NODE = 40_000
# A time is the best of several, until they took this long together ...
TIMED_SECONDS = 1.0
# ... or there are this many.
MOST_REPEATS = 20


class Problem(NamedTuple):
    """A statistic of some rows."""

    title: str
    make: Callable[[int], Any]  # number of rows -> rows in random order
    statistic: str
    by: str  # column by which rows are sorted where they are in the network's order
    choice: Mapping[str, Any] = MappingProxyType({})  # columns and options of the statistic
    n: int = 0  # number of rows, where only one makes sense


class Case(NamedTuple):
    """A problem on a graph."""

    problem: Problem
    graph: str
    n: int
    is_ordered: bool
    target: float = TARGET


class Result(NamedTuple):
    """What a protocol needs to reach the target."""

    exchanges: float  # infinite if it was given up
    pooled: float  # exchanges until the mean of all that is known is down to the target
    most: int  # exchanges after which it was given up
    numbers: float  # sent in an exchange

    @property
    def least(self) -> float:
        """The exchanges, or those after which it was given up."""
        return min(self.exchanges, self.most)

    def __str__(self) -> str:
        return (
            readable(self.exchanges)
            if np.isfinite(self.exchanges)
            else f"over {readable(self.most)}"
        )


def generator(n: int) -> np.random.Generator:
    """Return the source of the rows of a synthetic problem."""
    return np.random.default_rng(1000 + n)


def incomes(n: int) -> dict[str, Any]:
    """Draw lognormal numbers."""
    return {"x": generator(n).lognormal(size=n)}


def normals(n: int) -> dict[str, Any]:
    """Draw pairs of normal numbers with correlation 1/2."""
    x, y = generator(n).normal(size=(2, n))
    return {"x": x, "y": 0.5 * x + np.sqrt(0.75) * y}


def clusters(n: int) -> dict[str, Any]:
    """Draw four clusters in eight dimensions."""
    rng = generator(n)
    label = rng.integers(0, 4, n)
    x = 2 * rng.normal(size=(4, 8))[label] + rng.normal(size=(n, 8))
    return {**{f"x{c}": x[:, c] for c in range(8)}, "label": label}


def scores(n: int) -> dict[str, Any]:
    """Draw normal scores, higher by 1 for two rows in five."""
    rng = generator(n)
    label = (rng.random(n) < 0.4).astype(int)
    return {"score": rng.normal(size=n) + label, "label": label}


def packaged(name: str) -> Callable[[int], Any]:
    """Return a function that takes some rows of a data set of the package."""
    return lambda n: datasets.load(name).shuffle(1).head(n)


SYNTHETIC = [
    Problem("Gini", incomes, "gini-mean-difference", "x"),
    Problem("tau", normals, "kendall-tau", "x", {"columns": ["x", "y"]}),
    Problem("scatter", clusters, "within-cluster-scatter", "label", {"label": "label"}),
    Problem("AUC", scores, "auc", "score", {"label": "label", "score": "score"}),
]
WINE = packaged("wine-quality-red")
CANCER = packaged("breast-cancer")
PACKAGED = [
    Problem(
        "alcohol, n = 1560", WINE, "gini-mean-difference", "alcohol", {"columns": "alcohol"}, 1560
    ),
    Problem(
        "wine scatter, n = 1560",
        WINE,
        "within-cluster-scatter",
        "quality",
        {"centroids": "class-means"},
        1560,
    ),
    Problem("wine distance, n = 900", WINE, "mean-pairwise-distance", "alcohol", n=900),
    Problem("cancer AUC, n = 560", CANCER, "auc", "mean radius", n=560),
]
MIXING = ("complete", "watts-strogatz", "barabasi-albert", "torus", "geometric", "weighted")
ALIKE = ("grid", "torus", "geometric", "blocks")
TINY = ("complete", "watts-strogatz", "barabasi-albert", "cycle")
SIZES = (400, 3000)
SMALL_SIZES = (10, 20, 50)


def geometric(n: int, rng: np.random.Generator) -> Graph:
    """Connect points of the unit square that are near each other; nodes are numbered from left to
    right.
    """
    points = rng.random((n, 2))
    points, radius = points[np.argsort(points[:, 0])], np.sqrt(2 * np.log(n) / (np.pi * n))
    return Graph(
        "geometric", n, cKDTree(points).query_pairs(radius, output_type="ndarray").astype(np.int32)
    )


def blocks(n: int, rng: np.random.Generator) -> Graph:
    """Connect nodes to 8 others of their block of 50 on average, and to 1 of other blocks."""
    block, (i, j) = np.arange(n) // 50, np.triu_indices(n, 1)
    is_edge = rng.random(len(i)) < np.where(block[i] == block[j], 8 / 50, 1 / n)
    return Graph("blocks", n, np.column_stack([i, j])[is_edge].astype(np.int32))


def weighted(n: int, rng: np.random.Generator) -> Graph:
    """Return a small world whose edges fire at lognormal rates."""
    graph = graphs.load("watts-strogatz", n=n, seed=SEED)
    return Graph("weighted", n, graph.edges, rng.lognormal(size=graph.m))


@cache
def make_graph(name: str, n: int) -> Graph:
    """Return a graph in which nodes with neighbouring numbers are near each other, where the family
    allows it.
    """
    own = {"geometric": geometric, "blocks": blocks, "weighted": weighted}
    if name not in own:
        return graphs.load(name, n=n, seed=SEED)
    for seed in range(100):
        try:
            return own[name](n, np.random.default_rng(seed)).check()
        except InputError:  # not connected
            continue
    raise AssertionError(f"{name}: no connected graph of {n} nodes")


def make(case: Case, protocol: str | Protocol) -> Setting:
    """Return the setting of a case for a protocol."""
    problem, table = case.problem, datasets.load(case.problem.make(case.n))
    if case.is_ordered:
        table = table.take(np.argsort(table.columns[problem.by], kind="stable"))
    named = {
        name: problem.choice[name]
        for name in ("columns", "label", "score")
        if name in problem.choice
    }
    options = {name: value for name, value in problem.choice.items() if name not in named}
    return make_setting(
        protocol, table, problem.statistic, make_graph(case.graph, case.n), SEED, options, **named
    )


def measure(
    setting: Setting, target: float, most: int, runs: int = RUNS, engine: str = "compiled"
) -> Result:
    """Simulate until the mean error over nodes and runs is well below the target."""
    at: list[float] = []
    errors: list[tuple[float, float]] = []  # of nodes, and of what they know together
    with closing(engines.find(engine)(setting, SEED)) as simulation:
        batch = simulation.start(range(runs))
        iteration = max(10, setting.placement.nodes // 4)
        while not errors or (errors[-1][0] > STOP_BELOW * target and at[-1] < most):
            simulation.advance(batch, iteration)
            at.append(iteration)
            errors.append(
                (
                    _error(setting, estimates(simulation, batch)),
                    _error(setting, pooled(setting, batch.state)),
                )
            )
            iteration = min(most, max(iteration + 1, int(STEP * iteration)))
    reached, together = (
        first_below(np.array(at), np.array(one), target) for one in zip(*errors, strict=True)
    )
    return Result(
        reached,
        together,
        most,
        setting.gossip.units(setting.estimand.x.shape[1], setting.mean_count),
    )


def _error(setting: Setting, means: Floats) -> float:
    return float(np.abs(setting.values(means) / setting.target - 1.0).mean())


def pooled(setting: Setting, state: Any) -> Floats:
    """Return the mean over nodes of what they know, runs x 1 x means; `owed` is part of it where
    there is momentum.
    """
    rule = setting.gossip
    if isinstance(state, dict):
        count = setting.state_count * rule.fields
        states = state["nodes"][..., :count].reshape(
            *state["nodes"].shape[:2], setting.state_count, rule.fields
        )
    else:
        states = np.array([[node.states for node in nodes] for nodes in state])
    fields = [
        rule.state._fields.index(name)  # type: ignore[attr-defined]
        for name in ("ahead", "owed")
        if name in rule.state._fields  # type: ignore[attr-defined]
    ]
    mean = states[..., fields or [0]].sum(axis=-1).mean(axis=1, keepdims=True)
    return carried.means_of(mean) if rule.carries_means else mean


def first_below(at: Floats, error: Floats, target: float) -> float:
    """Return where the error is below the target from then on, interpolated between checkpoints."""
    above = np.flatnonzero(~(error <= target))
    if not len(above):
        return float(at[0])
    last = int(above[-1])
    if last == len(error) - 1:
        return float("inf")
    share = np.log(error[last] / target) / np.log(error[last] / error[last + 1])
    return float(at[last] * (at[last + 1] / at[last]) ** share)


def seconds(settings: list[Setting], exchanges: list[float]) -> list[float]:
    """Return the time in which one run of each setting gets to its exchanges, measured in turn,
    best of several.

    It is the processor's time, which other programs on the machine do not change; a run is one
    thread.
    """
    simulations = [engines.find("compiled")(setting, SEED) for setting in settings]
    best, start = [np.inf] * len(settings), time.perf_counter()
    for repeat in range(MOST_REPEATS):
        if repeat and time.perf_counter() - start > TIMED_SECONDS:
            break
        for k, (setting, simulation, count) in enumerate(
            zip(settings, simulations, exchanges, strict=True)
        ):
            before = time.process_time()
            batch = simulation.start(range(1))
            simulation.advance(batch, round(count))
            setting.values(estimates(simulation, batch))
            best[k] = min(best[k], time.process_time() - before)
    for simulation in simulations:
        simulation.close()
    return best


class Row(NamedTuple):
    """The results of a case."""

    case: Case
    ours: Result
    tracking: Result
    gosta: Result
    averaging: Result
    seconds: float  # to the target
    gosta_seconds: float

    @property
    def fewer(self) -> float:
        """How many times fewer exchanges than GoSta-async; at least, where that was given up."""
        return self.gosta.least / self.ours.exchanges

    @property
    def fewer_sent(self) -> float:
        """How many times fewer numbers are sent."""
        return self.fewer * self.gosta.numbers / self.ours.numbers

    @property
    def faster(self) -> float:
        """How many times shorter the simulation is."""
        return self.gosta_seconds / self.seconds

    def exchanges_cell(self) -> str:
        """Return the exchanges of all as text."""
        return f"{self.gosta} / {self.tracking} / **{self.ours}** ({self._over}{self.fewer:.1f} x)"

    def details_cell(self) -> str:
        """Return how many times fewer numbers and less time, and the two limits, as text."""
        times = f"{self._over}{self.fewer_sent:.1f} x, {self._over}{self.faster:.1f} x"
        return f"{times}; {readable(self.ours.pooled)}, {self.averaging}"

    @property
    def _over(self) -> str:
        return "" if np.isfinite(self.gosta.exchanges) else "over "


def readable(count: float) -> str:
    """Return a number of exchanges as text."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{count / size:.3g}{letter}"
    return f"{count:.0f}"


def compare(case: Case) -> Row:
    """Measure all protocols on a case; the default reaches the target."""
    is_large = case.is_ordered and case.n == SIZES[1]
    runs, times = (LARGE_RUNS, LARGE_TIMES) if is_large else (RUNS, MOST_TIMES)
    settings = [make(case, name) for name in (*PROTOCOLS, "averaging")]
    ours = measure(settings[0], case.target, PER_NODE * case.n, runs)
    assert np.isfinite(ours.exchanges), (case.problem.title, case.graph, case.n)
    most = [round(factor * ours.exchanges) for factor in (times, MOST_TIMES, MOST_TIMES)]
    others = [
        measure(setting, case.target, last, runs)
        for setting, last in zip(settings[1:], most, strict=True)
    ]
    tracked, gosta, averaging = others
    timed = seconds([settings[0], settings[2]], [ours.exchanges, gosta.least])
    return Row(case, ours, tracked, gosta, averaging, timed[0], timed[1])


def compare_all(
    title: str,
    problems: list[Problem],
    places: list[tuple[str, int]],
    is_ordered: bool,
    target: float = TARGET,
) -> list[Row]:
    """Print two tables with a line for each graph and number of nodes, and a column for each
    problem.
    """
    heading = ["graph", "n", *(problem.title for problem in problems)]
    print(f"\n{title}, to {100 * target:g} %: exchanges of GoSta-async / tracking / {OURS}\n")
    print_row(heading)
    print_row(["---"] * len(heading))
    found = []
    for graph, n in places:
        rows = [
            compare(Case(problem, graph, n or problem.n, is_ordered, target))
            for problem in problems
        ]
        found.append(rows)
        print_row([graph, str(n or ""), *(row.exchanges_cell() for row in rows)])
    print(
        "\nthe same: times fewer numbers sent, times less time; exchanges to the limits, pooled "
        "and averaging\n"
    )
    print_row(heading)
    print_row(["---"] * len(heading))
    for (graph, n), rows in zip(places, found, strict=True):
        print_row([graph, str(n or ""), *(row.details_cell() for row in rows)])
    return [row for rows in found for row in rows]


def print_row(cells: Any) -> None:
    """Print a row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def print_goals(random: list[Row], ordered: list[Row], small: list[Row]) -> None:
    """Print medians beside what was aimed at."""
    print("\nMedians\n")
    print_row(["rows", "times less than GoSta-async", "least", "aim", ""])
    print_row(["---"] * 5)

    def line(title: str, found: list[float], aim: float, least: float = 0.0) -> None:
        if not found:
            return
        median, worst = float(np.median(found)), min(found)
        verdict = "reached" if median >= aim and worst >= least else "missed"
        text = f"{aim:g}" + (f", never below {least:g}" if least else "")
        print_row([title, f"{median:.1f}", f"{worst:.1f}", text, verdict])

    def by_size(title: str, rows: list[Row], aim: float, least: float = 0.0) -> None:
        for n in SIZES:
            line(f"{title}, n = {n}", [row.fewer for row in rows if row.case.n == n], aim, least)
        line(
            f"{title}, data sets of the package",
            [row.fewer for row in rows if row.case.problem.n],
            aim,
            least,
        )

    by_size("random", random, 8)
    line("random, AUC", [row.fewer for row in random if row.case.problem.statistic == "auc"], 2.5)
    wide = [row for row in random if make(row.case, OURS).estimand.x.shape[1] >= 4]
    line("random, numbers sent, rows of 4 numbers or more", [row.fewer_sent for row in wide], 4)
    by_size("in the network's order", ordered, 5, 1)
    line("n = 10 to 50", [row.fewer for row in small], 3)
    line("time, n > 50", [row.faster for row in [*random, *ordered]], 1, 1)


def print_costs(problems: list[Problem], sizes: tuple[int, ...] = SIZES) -> None:
    """Print what an exchange and a node cost, for each protocol and statistic."""
    print("\nOne exchange, and one node\n")
    heading = [
        "statistic",
        "protocol",
        "numbers in a row",
        "numbers sent",
        "bytes sent",
        "bytes a node keeps",
    ]
    heading += [f"million exchanges/s on a core, n = {n}" for n in sizes]
    print_row(heading)
    print_row(["---"] * len(heading))
    for problem in problems:
        for name in PROTOCOLS:
            case = Case(problem, "watts-strogatz", sizes[0], False)
            setting = make(case, name)
            d = setting.estimand.x.shape[1]
            sent, kept = bytes_of(setting)
            speeds = []
            for n in sizes:
                (spent,) = seconds([make(case._replace(n=n), name)], [500 * n])
                speeds.append(f"{500 * n / spent / 1e6:.1f}")
            numbers = f"{setting.gossip.units(d, setting.mean_count):g}"
            print_row([problem.title, name, str(d), numbers, f"{sent:,}", f"{kept:,}", *speeds])


def bytes_of(setting: Setting) -> tuple[int, int]:
    """Return the bytes of the messages of an exchange of real nodes, and those of what a node keeps
    besides its row.

    The names and numbers of rows of all nodes, which real nodes keep too, are the same for all
    protocols, and left out.
    """
    with closing(engines.find("reference")(setting, SEED)) as simulation:
        batch = simulation.start(range(1))
        simulation.advance(batch, 20 * setting.placement.nodes)
        first, second, *_ = batch.state[0]
    seal = messages.Seal(1000, b"s" * 64)
    offer, accept = (_contribution(one, seal) for one in ((first, second), (second, first)))
    sent = [
        messages.Offer(1, 1000, *offer),
        messages.Accept(1, 1000, *accept),
        messages.Confirm(1000),
    ]
    kept = first.snapshot()._replace(homes={})
    return sum(len(messages.encode(one)) for one in sent), len(messages.encode(kept))


def _contribution(
    ends: tuple[Estimator, Estimator], seal: messages.Seal
) -> tuple[Any, messages.Seal]:
    mine, theirs = ends
    return mine.contribution(theirs.name, 0.1, edge_exchanges=100), seal


def changed(module: Any, *changes: tuple[str, str]) -> dict[str, Any]:
    """Return the names that a module defines after some of its text is replaced."""
    text = Path(module.__file__).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, (
            f"{module.__name__} no longer contains {old!r} once: adapt this variant"
        )
        text = text.replace(old, new)
    if module is tracking:
        text += "\n\n" + inspect.getsource(carried_means.meet)
    names: dict[str, Any] = {"__name__": "variant"}
    exec(compile(text, "variant", "exec"), names)
    return names


def averaging_variant(*changes: tuple[str, str]) -> Protocol:
    """Return the default protocol with other constants of averaging, which are those of
    tracking.
    """
    return replace(carried_means.protocol, meet=changed(tracking, *changes)["meet"])


def carrying_variant(*changes: tuple[str, str]) -> dict[str, Any]:
    """Return the functions of `carried` with other constants."""
    names = changed(carried, *changes)
    return {name: names[name] for name in ("weight_of", "rate_of", "REMEMBERED")}


# Parts of the source of carried means that variants replace.
WEIGHT = "1.75 * count / (compared + 0.75 * count)"
RATE = "max(0.0025 * count, 2.0 * count / (compared + count))"
LEAST_RATE = "0.0025 * count, "
SIZE = "REMEMBERED = 16"
VARIANTS: dict[str, Protocol | dict[str, Any]] = {
    "as it is": carried_means.protocol,
    **{
        f"{count} rows remembered": carrying_variant((SIZE, f"REMEMBERED = {count}"))
        for count in (1, 4, 8, 32)
    },
    "all rows weigh the same": carrying_variant((WEIGHT, "count / compared")),
    "weights grow as the square root": carrying_variant(
        (WEIGHT, "1.5 * count / (compared + 0.5 * count)")
    ),
    "weights grow as the square": carrying_variant(
        (WEIGHT, "3.0 * count / (compared + 2.0 * count)")
    ),
    "mean not smoothed": carrying_variant((RATE, "1.0")),
    "mean smoothed less": carrying_variant(
        (RATE, "max(0.0025 * count, 3.0 * count / (compared + 2.0 * count))")
    ),
    "mean smoothed more": carrying_variant((RATE, "max(0.0025 * count, count / compared)")),
    "smoothed for ever": carrying_variant((LEAST_RATE, "0.0, ")),
    "smoothed for a short time": carrying_variant((LEAST_RATE, "0.01 * count, ")),
    "no momentum": averaging_variant(("MOMENTUM_SHARE = 0.4", "MOMENTUM_SHARE = 0.0")),
    "push 0.2": averaging_variant(("MOMENTUM_SHARE = 0.4", "MOMENTUM_SHARE = 0.2")),
    "push 0.6": averaging_variant(("MOMENTUM_SHARE = 0.4", "MOMENTUM_SHARE = 0.6")),
    "memory of 20 exchanges": averaging_variant(("max(5.0, exchanges / 4.0)", "20.0")),
    "memory of half of all exchanges": averaging_variant(("exchanges / 4.0", "exchanges / 2.0")),
    "ramp of 10 exchanges": averaging_variant(("RAMP_EXCHANGES = 40.0", "RAMP_EXCHANGES = 10.0")),
    "all edges pushed alike": averaging_variant(
        ("RARE_EDGE_FACTOR = 4.0", "RARE_EDGE_FACTOR = 1e9")
    ),
}


@contextmanager
def in_use(variant: Protocol | dict[str, Any]) -> Iterator[Protocol]:
    """Change the functions of `carried` for a while, and yield the protocol to simulate."""
    if isinstance(variant, Protocol):
        yield variant
        return
    modules = carried, layouts
    kept = [
        {name: vars(module)[name] for name in variant if name in vars(module)} for module in modules
    ]
    try:
        for module, names in zip(modules, kept, strict=True):
            vars(module).update({name: variant[name] for name in names})
        yield carried_means.protocol
    finally:
        for module, names in zip(modules, kept, strict=True):
            vars(module).update(names)


def compare_variants(cases: list[Case], per_node: int = PER_NODE, **settings: Any) -> None:
    """Print the exchanges of the protocol as it is, and those of its variants as multiples of
    that.
    """
    print_row(
        [
            "variant",
            *(
                f"{case.graph} {case.problem.title}{', ordered' * case.is_ordered}"
                for case in cases
            ),
        ]
    )
    print_row(["---"] * (1 + len(cases)))
    first: list[float] = []
    for name, variant in VARIANTS.items():
        with in_use(variant) as protocol:
            most = [round(4 * at) for at in first] or [per_node * case.n for case in cases]
            pairs = zip(cases, most, strict=True)
            found = [
                measure(make(case, protocol), case.target, last, **settings).exchanges
                for case, last in pairs
            ]
        shown = (
            [f"{a / b:.2f}" for a, b in zip(found, first, strict=True)]
            if first
            else [f"{a:,.0f}" for a in found]
        )
        first = first or found
        print_row([name, *shown])
    assert np.isfinite(first).all()


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--variants", action="store_true", help="compare variants of the default protocol instead"
    )
    parser.add_argument("--quick", action="store_true", help="leave out n = 3000")
    arguments = parser.parse_args()
    common.print_machine("numba")
    start = time.perf_counter()
    if arguments.smoke:
        compare_all(
            "Rows dealt at random", SYNTHETIC[3:], [("complete", 20)], is_ordered=False, target=0.05
        )
        print_costs(SYNTHETIC[3:], (20,))
        tiny = Case(SYNTHETIC[3], "complete", 20, is_ordered=False, target=0.05)
        # which needs no compilation
        compare_variants([tiny], per_node=100, runs=1, engine="reference")
    elif arguments.variants:
        places = (
            ("complete", False),
            ("watts-strogatz", False),
            ("torus", False),
            ("torus", True),
            ("blocks", True),
        )
        compare_variants(
            [
                Case(problem, graph, 400, ordered)
                for graph, ordered in places
                for problem in SYNTHETIC[:2]
            ]
        )
    else:
        compare_everything(SIZES[:1] if arguments.quick else SIZES)
        print_costs(SYNTHETIC)
    print(f"\n{(time.perf_counter() - start) / 60:.1f} minutes")


def compare_everything(sizes: tuple[int, ...]) -> None:
    """Print the tables of all placements, and medians."""
    title, places = "Rows dealt at random", [(graph, n) for n in sizes for graph in MIXING]
    random = compare_all(title, SYNTHETIC, places, is_ordered=False)
    random += compare_all(title, PACKAGED, [(graph, 0) for graph in MIXING[:4]], is_ordered=False)
    title, places = "Rows in the network's order", [(graph, n) for n in sizes for graph in ALIKE]
    ordered = compare_all(title, SYNTHETIC, [*places, ("path", 100)], is_ordered=True)
    ordered += compare_all(title, PACKAGED, [(graph, 0) for graph in ALIKE[:2]], is_ordered=True)
    places = [(graph, n) for n in SMALL_SIZES for graph in TINY]
    small = compare_all("Small networks, rows dealt at random", SYNTHETIC, places, is_ordered=False)
    print_goals(random, ordered, small)


if __name__ == "__main__":
    main()
