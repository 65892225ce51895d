"""Private sums in simulations: what bins and noise cost, and how the sums reach every node.

Four ways to keep rows private are compared, for the same epsilon (and delta):

* rows one by one: every row is replaced by a random one with some probability before anybody sees
  it (randomised response); counts are corrected for it. Nobody need be trusted, nothing is masked.
* each site noises: every site adds all the noise that its own rows need, and shows its sums.
* masks + shared noise: every site adds its share of the noise of one total, and masks its sums.
* no noise: masked sums.
"""

from __future__ import annotations

import math
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
from gosta.sketches.comparison import exact_values
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import check_columns, make_layout
from gosta.sketches.results import StratumResult

NUMBER_BYTES = 8
STATEMENT_BYTES = 128  # of a contribution beside its numbers: names, epoch, signature
ID_BYTES = 16  # of a contribution, in the lists that two nodes compare
AVERAGING_ERROR = 0.01  # relative: averaging never ends
MAX_AVERAGING_EXCHANGES = 5_000  # times the number of nodes
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # for which ways are compared
DELTA = 1e-6  # with these, where noise needs a delta and none is given
# Ways to keep rows private.
ROWS = "rows one by one"
SITES = "each site noises"
SHARED = "masks + shared noise"
Advance = Callable[[float], None]


class ValueErrors(NamedTuple):
    """A value of a statistic over all rows or in one stratum, and its errors by their causes."""

    statistic: str
    stratum: str  # "" for all rows
    label: str  # of one of several values, else ""
    exact: float | None  # over the rows themselves; None where it is not defined
    value: float  # from the sums without noise
    low: float  # the bracket
    high: float
    is_certified: bool  # whether the exact value is certainly in the bracket
    noise_error: float | None  # root mean square over runs of what noise adds; None without noise
    standard_error: float | None  # of the sample of rows, for comparison


class Spreading(NamedTuple):
    """What it takes until every node has the sums."""

    exchanges: float  # between two nodes; infinite if it did not end
    bytes: float  # sent by all nodes together


class Simulated(NamedTuple):
    """Private sums on a network."""

    layout: Layout
    graph: Graph
    sites: int
    rows: int
    noise: Noise
    sums: Floats  # over all rows, without noise
    values: tuple[ValueErrors, ...]
    spreading: dict[str, Spreading]  # by the way in which sums spread


def simulate_sums(
    data: Data,
    statistic: str,
    settings: PrivateSettings,
    *,
    graph: Any = None,
    nodes: int | None = None,
    deal: str | None = None,
    by: str | None = None,
    runs: int = 10,
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
) -> Simulated:
    """Simulate private sums of data in one place; what the settings lack is taken from the data."""
    if deal is not None and (by is not None or nodes is None):
        raise InputError(
            f"deal = {deal!r} requires nodes (--nodes) and excludes by: it places rows at random"
        )
    data = data if by is None else data.with_sites(by, exclude=nodes is None)
    layout = make_layout(statistic, settings, options=options, data=data)
    # Values of strata may be taken from the data.
    check_settings(msgspec.structs.replace(settings, strata={}))
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
        layout = (
            layout.following(draw_totals(layout, sums_of(layout, x), noise, 1, rng)[0]) or layout
        )
    noise, sums = choose_noise(settings, layout, placement.nodes), sums_of(layout, x)
    with progress.bar("private sums", runs + 1) as advance:
        values = _values(layout, x, sums, noise, runs, rng)
        advance(1)
        site_rows = placement.split(x[order])
        spreading = compare_spreading(layout, network, site_rows, runs, seed, advance)
    return Simulated(layout, network, placement.nodes, len(x), noise, sums, values, spreading)


def sums_of(layout: Layout, x: Floats) -> Floats:
    """Return the sums over encoded rows, in units of features."""
    return layout.sums(x, SUM_BITS) / 2.0**SUM_BITS


def draw_totals(
    layout: Layout, sums: Floats, noise: Noise, draws: int, rng: np.random.Generator
) -> Floats:
    """Return sums over all rows with the noise of all participants: draws × size."""
    numbers = draws * layout.size
    total = np.zeros(numbers, dtype=np.uint64)
    for _ in range(noise.participants if noise.law != "none" else 0):
        total += draw(noise, numbers, rng.bytes)
    return sums + total.view(np.int64).reshape(draws, -1) / 2.0**noise.bits


def _values(
    layout: Layout, x: Floats, sums: Floats, noise: Noise, runs: int, rng: np.random.Generator
) -> tuple[ValueErrors, ...]:
    """Return all values from sums without noise, and their errors over runs with noise."""
    noisy: list[list[StratumResult]] = []
    if noise.law != NO_NOISE.law:
        totals = draw_totals(layout, sums, noise, runs, rng)
        noisy = [layout.results(total, 0, noise.variance) for total in totals]
    values = []
    for k, (plain, exact) in enumerate(
        zip(layout.results(sums), exact_values(layout, x), strict=True)
    ):
        for j, value in enumerate(plain.value):
            if value is None:
                continue
            found = [run[k].value[j] for run in noisy if j < len(run[k].value)]
            errors = [noisy_value - value for noisy_value in found if noisy_value is not None]
            values.append(
                ValueErrors(
                    statistic=plain.statistic,
                    stratum=plain.stratum,
                    label=plain.labels[j] if plain.labels else "",
                    exact=None if exact is None else exact[j],
                    value=value,
                    low=plain.low[j],
                    high=plain.high[j],
                    is_certified=plain.is_certified,
                    noise_error=math.sqrt(np.mean(np.square(errors))) if errors else None,
                    standard_error=plain.standard_error,
                )
            )
    return tuple(values)


def first_values(layout: Layout, totals: Floats) -> Floats:
    """Return the first statistic's value for each of several totals; NaN where there is none."""
    sketch, strata = layout.sketches[0], layout.cells[0]
    block = totals[:, : sketch.size * strata].reshape(len(totals), strata, -1).sum(axis=1)
    with np.errstate(all="ignore"):
        return np.array([sketch.result(total).value[0] for total in block])


def root_mean_square_error(layout: Layout, totals: Floats, exact: float) -> float:
    """Return the error of the first statistic; having no value is as wrong as its bounds allow."""
    low, high = layout.sketches[0].bounds
    errors = np.abs(np.clip(first_values(layout, totals), low, high) - exact)
    worst = max(exact - low, high - exact)
    has_value = ~np.isnan(errors)
    errors = np.where(has_value, errors, worst) if math.isfinite(worst) else errors[has_value]
    return float(np.sqrt(np.mean(errors**2))) if len(errors) else math.nan


def draw_randomised_rows(
    layout: Layout, sums: Floats, epsilon: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Return corrected counts after rows kept their place with probability 1 − β, else any of k.

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
    # Each site's share is enough for its own rows: it trusts nobody.
    alone = PrivateSettings(epsilon=settings.epsilon, delta=settings.delta, colluding=0)
    of_each = choose_noise(alone, layout, 1)._replace(participants=sites)
    totals = {}
    if layout.are_counts and layout.features_per_row == 1:
        totals[ROWS] = draw_randomised_rows(layout, sums, settings.epsilon, draws, rng)
    totals[SITES] = draw_totals(layout, sums, of_each, draws, rng)
    totals[SHARED] = draw_totals(layout, sums, shared, draws, rng)
    return {name: root_mean_square_error(layout, t, exact) for name, t in totals.items()}


def errors_over_epsilon(
    simulated: Simulated, settings: PrivateSettings, exact: float, draws: int, seed: int
) -> dict[str, list[float]]:
    """Return the errors of each way to keep rows private, for each of `EPSILONS`."""
    delta = settings.delta or (0.0 if simulated.layout.are_counts else DELTA)
    errors: dict[str, list[float]] = {}
    with progress.bar("errors over epsilon", len(EPSILONS)) as advance:
        for epsilon in EPSILONS:
            changed = msgspec.structs.replace(
                settings, epsilon=epsilon, delta=delta, find_edges=False
            )
            choices = errors_of_choices(
                simulated.layout, simulated.sums, exact, changed, simulated.sites, draws, seed
            )
            for name, error in choices.items():
                errors.setdefault(name, []).append(error)
            advance(1)
    return errors


def spread_by_union(graph: Graph, numbers: int, rng: np.random.Generator) -> Spreading:
    """Spread contributions: nodes that meet compare lists and send what the other one lacks."""
    has: Booleans = np.eye(graph.n, dtype=bool)
    lacking = graph.n * (graph.n - 1)
    exchanges = 0
    sent = 0.0
    while lacking:
        for a, b in graph.draw(rng, 4 * graph.n).tolist():
            exchanges += 1
            different = has[a] ^ has[b]
            moved = int(different.sum())
            sent += 2 * ID_BYTES  # digests of all that each has
            if moved:
                sent += ID_BYTES * int(has[a].sum() + has[b].sum())
                sent += moved * (STATEMENT_BYTES + NUMBER_BYTES * numbers)
                has[a] |= different
                has[b] = has[a]
                lacking -= moved
                if not lacking:
                    break
    return Spreading(exchanges, sent)


def spread_by_averaging(
    graph: Graph, vectors: Floats, is_near: Callable[[Floats], bool], rng: np.random.Generator
) -> Spreading:
    """Average vectors of nodes that meet, until every node's average times n is near the total."""
    held = vectors * graph.n
    near = np.array([is_near(vector) for vector in held])
    most = MAX_AVERAGING_EXCHANGES * graph.n
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
    """Add up masked vectors along a spanning tree, and send the total back."""
    messages = 2 * (graph.n - 1)
    return Spreading(float(messages), float(NUMBER_BYTES * numbers * messages))


def compare_spreading(
    layout: Layout,
    graph: Graph,
    rows: Sequence[Floats],
    runs: int,
    seed: int,
    advance: Advance = lambda _: None,
) -> dict[str, Spreading]:
    """Return means over runs of what each way to spread the sums of all nodes takes."""
    vectors = np.array([sums_of(layout, x) for x in rows])
    value = first_values(layout, vectors.sum(axis=0)[None])[0]

    def is_near(totals: Floats) -> bool:
        error = abs(first_values(layout, totals[None])[0] - value)
        return bool(error <= AVERAGING_ERROR * abs(value))

    union, averaging = [], []
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        union.append(spread_by_union(graph, layout.size, rng))
        averaging.append(spread_by_averaging(graph, vectors, is_near, rng))
        advance(1)
    return {
        "union": Spreading(*np.mean(union, axis=0).tolist()),
        "averaging": Spreading(*np.mean(averaging, axis=0).tolist()),
        "tree": spread_by_tree(graph, layout.size),
    }
