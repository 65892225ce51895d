"""Private sums in simulations: what bins and noise cost, and how many exchanges it takes until every node has the sums.

Four ways to keep rows private are compared, for the same epsilon (and delta):

* rows one by one: every row is replaced by a random one with some probability before anybody sees it (randomised
  response); counts are corrected for it. Nobody need be trusted, and nothing is masked.
* each site noises: every site adds all the noise that its own rows need, and shows its sums.
* masks + shared noise: every site adds its share of the noise of one total, and masks its sums.
* no noise: masked sums.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gosta import graphs
from gosta.datasets.data import Data
from gosta.errors import InputError
from gosta.estimation.placement import Placement, assign_at_random, assign_by_column
from gosta.graphs.graph import Graph, sizes_from
from gosta.private.noise import NO_NOISE, SUM_BITS, Noise, choose_noise, draw
from gosta.private.settings import PrivateSettings, check_settings
from gosta.runtime import progress
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches import Layout, StratumResult, check_columns, make_layout
from gosta.sketches.layout import Part
from gosta.statistics import STATISTICS
from gosta.statistics.exact import measure

NUMBER_BYTES = 8
STATEMENT_BYTES = 128  # of a contribution beside its numbers: names, epoch, signature
ID_BYTES = 16  # of a contribution, in the lists that two nodes compare
AVERAGING_ERROR = 0.01  # relative: averaging never ends
MOST_EXCHANGES = 5_000  # of averaging, times the number of nodes
ROWS, SITES, SHARED = "rows one by one", "each site noises", "masks + shared noise"
Advance = Callable[[float], None]


class ValueErrors(NamedTuple):
    """A value of a statistic over all rows or in one stratum, and how far off it is for which reason."""

    statistic: str
    stratum: str  # "" for all rows
    label: str  # of one of several values, else ""
    exact: float | None  # over the rows themselves; None in strata
    value: float  # from the sums without noise
    low: float  # the bracket
    high: float
    is_certified: bool  # whether the exact value is certainly in the bracket
    noise_error: float | None  # root mean square over runs of what noise adds; None without noise
    standard_error: float | None  # of the sample of rows, for comparison


class Simulated(NamedTuple):
    """Private sums on a network."""

    layout: Layout
    graph: Graph
    sites: int
    rows: int
    noise: Noise
    sums: Floats  # over all rows, without noise
    values: tuple[ValueErrors, ...]
    spreading: dict[str, Spreading]


def first_values(layout: Layout, totals: Floats) -> Floats:
    """Return the first statistic's value over all rows for each of several totals; NaN where there is none."""
    sketch = layout.sketches[0]
    strata = max(1, len(layout.strata))
    block = totals[:, : sketch.size * strata].reshape(len(totals), strata, -1).sum(axis=1)
    with np.errstate(all="ignore"):
        return np.array([sketch.result(one).value[0] for one in block])


def root_mean_square_error(layout: Layout, totals: Floats, exact: float) -> float:
    """Return the error of the first statistic over several totals; no value is as wrong as its bounds allow."""
    low, high = layout.sketches[0].bounds
    errors = np.abs(np.clip(first_values(layout, totals), low, high) - exact)
    worst = max(exact - low, high - exact)
    errors = (
        np.where(np.isnan(errors), worst, errors)
        if math.isfinite(worst)
        else errors[~np.isnan(errors)]
    )
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else math.nan


def draw_totals(
    layout: Layout, sums: Floats, noise: Noise, draws: int, rng: np.random.Generator
) -> Floats:
    """Return totals with the noise of all participants, draws × size, from the sums over all rows."""
    numbers = draws * layout.size
    total = np.zeros(numbers, dtype=np.uint64)
    for _ in range(noise.participants if noise.law != "none" else 0):
        total += draw(noise, numbers, rng.bytes)
    return sums + total.view(np.int64).reshape(draws, -1) / 2.0**noise.bits


def draw_randomised_rows(
    layout: Layout, sums: Floats, epsilon: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Return corrected counts after every row kept its place with probability 1 − β, else got one of k at random.

    β = k / (k + e^ε − 1): the place a row has is at most e^ε times as probable as any other.
    """
    k, counts = layout.size, np.rint(sums).astype(np.int64)
    moved = k / (k + math.exp(epsilon) - 1)
    kept = rng.binomial(counts, 1 - moved, size=(draws, k))
    placed = rng.multinomial(counts.sum() - kept.sum(axis=1), np.full(k, 1 / k))
    return np.asarray((kept + placed - counts.sum() * moved / k) / (1 - moved))


def errors_of_choices(
    layout: Layout,
    sums: Floats,
    exact: float,
    settings: PrivateSettings,
    sites: int,
    draws: int,
    seed: int,
) -> dict[str, float]:
    """Return the root mean squared error of each way to keep rows private, for one epsilon."""
    assert settings.epsilon is not None
    rng = np.random.default_rng(seed)
    shared = choose_noise(settings, layout, sites)
    found = {}
    if layout.are_counts and layout.features_per_row == 1:
        totals = draw_randomised_rows(layout, sums, settings.epsilon, draws, rng)
        found[ROWS] = root_mean_square_error(layout, totals, exact)
    for name, noise in ((SITES, _noise_of_each(settings, layout, sites)), (SHARED, shared)):
        found[name] = root_mean_square_error(
            layout, draw_totals(layout, sums, noise, draws, rng), exact
        )
    return found


def _noise_of_each(settings: PrivateSettings, layout: Layout, sites: int) -> Noise:
    """Return the noise if each site's share is enough for its own rows: it then trusts nobody."""
    alone = PrivateSettings(epsilon=settings.epsilon, delta=settings.delta, colluding=0)
    return choose_noise(alone, layout, 1)._replace(participants=sites)


class Spreading(NamedTuple):
    """What it takes until every node has the sums."""

    exchanges: float  # between two nodes; infinite if it did not end
    bytes: float  # sent by all nodes together


def spread_by_union(graph: Graph, numbers: int, rng: np.random.Generator) -> Spreading:
    """Spread contributions: two nodes that meet compare lists, and each sends what the other one lacks."""
    has: Booleans = np.eye(graph.n, dtype=bool)
    lacking, exchanges, sent = graph.n * (graph.n - 1), 0, 0.0
    while lacking:
        for a, b in graph.draw(rng, 4 * graph.n).tolist():
            exchanges += 1
            different = has[a] ^ has[b]
            moved = int(different.sum())
            sent += 2 * ID_BYTES  # digests of all that each has
            if moved:
                sent += ID_BYTES * int(has[a].sum() + has[b].sum()) + moved * (
                    STATEMENT_BYTES + NUMBER_BYTES * numbers
                )
                has[a] |= different
                has[b] = has[a]
                lacking -= moved
                if not lacking:
                    break
    return Spreading(exchanges, sent)


def spread_by_averaging(
    graph: Graph, vectors: Floats, is_near: Callable[[Floats], bool], rng: np.random.Generator
) -> Spreading:
    """Average vectors between two nodes that meet, until every node's multiple of its average is near the total."""
    held = vectors * graph.n
    near = np.array([is_near(vector) for vector in held])
    most = MOST_EXCHANGES * graph.n
    exchanges = 0
    while not near.all():
        if exchanges >= most:
            return Spreading(math.inf, math.inf)
        for a, b in graph.draw(rng, 16).tolist():
            exchanges += 1
            held[a] = held[b] = (held[a] + held[b]) / 2
            near[a] = near[b] = is_near(held[a])
            if near.all():
                break
    return Spreading(exchanges, 2.0 * NUMBER_BYTES * vectors.shape[1] * exchanges)


def spread_by_tree(graph: Graph, numbers: int) -> Spreading:
    """Add up masked vectors along a spanning tree to its root, and send the total back: two messages an edge."""
    edges = 2 * (len(spanning_tree(graph)))
    return Spreading(edges, float(NUMBER_BYTES * numbers * edges))


def spanning_tree(graph: Graph) -> list[tuple[int, int]]:
    """Return the edges, parent first, by which a search in breadth from node 0 reaches all nodes."""
    if graph.edges is None:
        return [(0, node) for node in range(1, graph.n)]
    neighbours: list[list[int]] = [[] for _ in range(graph.n)]
    for a, b in graph.edges.tolist():
        neighbours[a].append(b)
        neighbours[b].append(a)
    tree, seen, waiting = [], {0}, deque([0])
    while waiting:
        node = waiting.popleft()
        for other in neighbours[node]:
            if other not in seen:
                seen.add(other)
                tree.append((node, other))
                waiting.append(other)
    return tree


def compare_spreading(
    layout: Layout,
    graph: Graph,
    rows: Sequence[Floats],
    runs: int,
    seed: int,
    advance: Advance = lambda _: None,
) -> dict[str, Spreading]:
    """Return means over runs of what each way to spread the sums of all nodes takes."""
    vectors = np.array([layout.sums(x, SUM_BITS) / 2.0**SUM_BITS for x in rows])
    value = first_values(layout, vectors.sum(axis=0)[None])[0]

    def is_near(totals: Floats) -> bool:
        return bool(
            abs(first_values(layout, totals[None])[0] - value) <= AVERAGING_ERROR * abs(value)
        )

    found: dict[str, list[Spreading]] = {
        "union": [],
        "averaging": [],
        "tree": [spread_by_tree(graph, layout.size)],
    }
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        found["union"].append(spread_by_union(graph, layout.size, rng))
        found["averaging"].append(spread_by_averaging(graph, vectors, is_near, rng))
        advance(1)
    return {name: Spreading(*np.mean(several, axis=0).tolist()) for name, several in found.items()}


def simulate_sums(
    data: Data, statistic: str, settings: PrivateSettings, *, graph: Any = None, nodes: int | None = None,
    deal: str | None = None, by: str | None = None, runs: int = 10, seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Simulated:  # fmt: skip
    """Simulate private sums of data in one place; what the settings lack, such as ranges, is taken from the data."""
    if deal is not None and (by is not None or nodes is None):
        raise InputError(
            f"deal = {deal!r} requires nodes (--nodes) and excludes by: it places rows at random"
        )
    data = data if by is None else data.with_sites(by, exclude=nodes is None)
    layout = make_layout(statistic, settings, options=options, data=data)
    check_settings(
        msgspec.structs.replace(settings, strata={})
    )  # values of strata may be taken from the data
    check_columns(layout, settings)
    x = layout.encode(data)
    order, placement = np.arange(len(x)), Placement(len(x))
    if by is not None:
        order, placement = assign_by_column(data, layout.complete_rows(data), nodes, seed)
    elif nodes is not None:
        order, placement = assign_at_random(len(x), nodes, deal or "zipf", seed)
    with sizes_from("nodes", most=len(x) if by is None else 0):
        network = graphs.load(graph, n=placement.nodes, seed=seed).in_order_of(placement.names)
    rng = np.random.default_rng(seed)
    if layout.next_round is not None:  # edges are found with noise, once
        noise = choose_noise(settings, layout, placement.nodes)
        following = layout.following(draw_totals(layout, _sums(layout, x), noise, 1, rng)[0])
        layout = following or layout
    noise, sums = choose_noise(settings, layout, placement.nodes), _sums(layout, x)
    with progress.bar("private sums", runs + 1) as advance:
        values = _values(layout, data, sums, noise, runs, rng)
        advance(1)
        spreading = compare_spreading(
            layout, network, placement.split(x[order]), runs, seed, advance
        )
    return Simulated(layout, network, placement.nodes, len(x), noise, sums, values, spreading)


def _sums(layout: Layout, x: Floats) -> Floats:
    return layout.sums(x, SUM_BITS) / 2.0**SUM_BITS


def _values(
    layout: Layout, data: Data, sums: Floats, noise: Noise, runs: int, rng: np.random.Generator
) -> tuple[ValueErrors, ...]:
    plain = layout.results(sums)
    noisy: list[list[StratumResult]] = []
    if noise is not NO_NOISE:
        noisy = [
            layout.results(t, 0, noise.variance)
            for t in draw_totals(layout, sums, noise, runs, rng)
        ]
    exact = {part.title: _exact(part, data) for part in layout.parts}
    found = []
    for k, one in enumerate(plain):
        for j, value in enumerate(one.value):
            errors = [run[k].value[j] - value for run in noisy if j < len(run[k].value)]
            found.append(
                ValueErrors(
                    statistic=one.statistic,
                    stratum=one.stratum,
                    label=one.labels[j] if one.labels else "",
                    exact=None if one.stratum else float(exact[one.statistic][j]),
                    value=value,
                    low=one.low[j],
                    high=one.high[j],
                    is_certified=one.is_certified,
                    noise_error=math.sqrt(np.mean(np.square(errors))) if errors else None,
                    standard_error=one.standard_error,
                )
            )
    return tuple(found)


def _exact(part: Part, data: Data) -> Floats:
    """Return the values of a statistic over the rows themselves."""
    selected = data.select(part.columns)
    name = part.sketch.name
    if name in STATISTICS:
        return np.atleast_1d(
            np.asarray(measure(selected, name, options=part.options).value, dtype=np.float64)
        )
    exact = part.sketch.exact(part.sketch.encode(selected, **part.options))
    assert exact is not None, name
    return exact
