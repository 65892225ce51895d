"""Rounds of a logistic fit whose coefficients a lying member moved: what one row weighs in their
sums, and which rounds a site refuses; and how often it refuses rounds of honest fits.

Run with: python benchmarks/false_rounds.py [--smoke]
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import common
import numpy as np

from gosta.models import make_design, make_model
from gosta.models.effective_rows import few_rows

Floats = np.ndarray[Any, np.dtype[np.float64]]
RNG = np.random.default_rng(11)
ROWS, COLUMNS, FARTHEST = 1000, 5, 30.0
TRIES = 60  # boundaries and slopes for each direction
PAIRS = 20  # of rounds that are not refused


def lies(directions: int) -> None:
    """Print what rounds show at coefficients of random directions."""
    names = [f"x{k}" for k in range(COLUMNS)]
    ranges = dict.fromkeys(names, (-6.0, 6.0))
    made = make_model("logistic", make_design(names, ranges=ranges), outcome="y", classes=(0, 1))
    x = np.clip(RNG.normal(size=(ROWS, COLUMNS)), -6, 6)
    rows = np.column_stack([(x + 6) / 12, RNG.random(ROWS) < 0.4])
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    fine = made.following(made.first(), made.totals(rows, made.first()))

    def weights_at(direction: Floats, boundary: float) -> tuple[bool, Floats]:
        """Return whether a round is refused, and the weights of its sums."""
        found = tuple(float(one) for one in (-boundary, *direction))
        is_refused = bool(few_rows(made, rows, replace(fine, coefficients=found)))
        distance = z @ direction - boundary
        risks, others = 1 / (1 + np.exp(-distance)), 1 / (1 + np.exp(distance))
        return is_refused, np.array([risks, others, risks * others])

    edge, refused, shares, gaps, means, pairs = [], 0, [], [], [], []
    for _ in range(directions):
        direction = RNG.normal(size=COLUMNS)
        direction *= FARTHEST / np.abs(direction).max()
        is_refused, weights = weights_at(direction, (z @ direction).max() + 5)
        edge.append(weights[2].max() / weights[2].sum())
        refused += is_refused
        taken = []
        for _ in range(TRIES):
            slope = 10 ** RNG.uniform(-1.5, 0)
            place = np.quantile(z @ direction, RNG.uniform(0.5, 1)) * slope + RNG.uniform(0, 8)
            is_refused, weights = weights_at(direction * slope, place)
            taken += [] if is_refused else [weights]
        most = max((one for three in taken for one in three), key=lambda w: w.max() / w.sum())
        row = z[most.argmax()]
        shares.append(most.max() / most.sum())
        gaps.append(np.sqrt(np.mean((most @ z / most.sum() - row) ** 2)))
        means.append(np.sqrt(np.mean(row**2)))
        pairs.append(max(leverage(taken) for _ in range(PAIRS)))
    print(f"\n{ROWS:,} rows, {COLUMNS} columns, {directions} directions, boundary beyond all rows:")
    print(f"one row has over 90 % of the weight: {np.mean(np.array(edge) > 0.9):.0%}")
    print(f"refused: {refused / directions:.0%}")
    print("of rounds that are not refused, the one in which a row weighs most:")
    print(f"most weight of a row: {max(shares):.2f}, median {np.median(shares):.2f}")
    print(f"its columns less weighted means, median: {np.median(gaps):.2f} standard deviations")
    print(f"its columns less means of all rows, median: {np.median(means):.2f}")
    mostly = np.mean(np.array(pairs) > 0.9)
    print(f"two rounds, of which some combination is mostly of one row: {mostly:.0%}")


def leverage(taken: list[Floats]) -> float:
    """Return the largest share of a row in squares of a combination of weights of two rounds."""
    first, second = RNG.choice(len(taken), 2, replace=False)
    weights = np.vstack([np.ones(ROWS), taken[first][[0, 2]], taken[second][[0, 2]]]).T
    u, values, _ = np.linalg.svd(weights / np.linalg.norm(weights, axis=0), full_matrices=False)
    return float((u[:, values > 1e-6] ** 2).sum(axis=1).max())


def honest(draws: int) -> None:
    """Print how many fits to three uneven sites are refused, of each model and kind of columns."""
    for has_large_values in (False, True):
        fits, refused = Counter[str](), Counter[str]()
        for _ in range(draws):
            name, is_refused = honest_fit(has_large_values)
            fits[name] += bool(name)
            refused[name] += is_refused
        kind = "with" if has_large_values else "without"
        found = ", ".join(f"{n} {refused[n]} of {fits[n]}" for n in sorted(filter(None, fits)))
        print(f"honest fits that are refused, columns {kind} large values: {found}")


def honest_fit(has_large_values: bool) -> tuple[str, bool]:
    """Return the model that was fitted, and whether a site refused; "" if there is no best fit."""
    n = int(np.exp(RNG.uniform(np.log(100), np.log(3000))))
    k = int(RNG.integers(1, min(12, n // 12) + 1))
    x = np.column_stack([draw_column(n, has_large_values) for _ in range(k)])
    size = RNG.choice([0.1, 0.5, 1.5, 4.0] if has_large_values else [0.1, 0.5, 1.0, 2.0])
    spread = x.std(axis=0)
    predictor = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1) @ RNG.normal(size=k)
    predictor *= size / np.sqrt(k)
    name = str(RNG.choice(["logistic", "logistic", "poisson", "cox"]))
    base, responses, options = RNG.uniform(-4, 0), np.zeros((n, 1)), dict[str, Any]()
    if name == "logistic":
        responses[:, 0] = RNG.random(n) < 1 / (1 + np.exp(-base - predictor))
        options = {"outcome": "y", "classes": (0, 1), "penalty": float(RNG.choice([0, 0, 1]))}
    elif name == "poisson":
        counts = RNG.poisson(np.exp(np.clip(base + predictor, -20, 4)))
        high = 2.0 * max(counts.max(), 1)
        responses[:, 0], options = counts / high, {"outcome": "y", "high": high}
    else:
        times = np.ceil(RNG.exponential(10 * np.exp(-np.clip(predictor, -8, 8)))).clip(1, 30)
        seen = (RNG.random(n) < 0.6) & (times < 30)
        responses = np.column_stack([times - 1, seen, np.zeros(n)])
        options = {"time": "t", "event": "e", "times": tuple(np.arange(1.0, 31)), "min_cell": 5}
    low, high_ends = x.min(axis=0) - 0.1, x.max(axis=0) + 0.1
    ranges = {f"x{j}": (float(low[j]), float(high_ends[j])) for j in range(k)}
    made = make_model(name, make_design(list(ranges), ranges=ranges), **options)
    rows = np.column_stack([(x - low) / (high_ends - low), responses])
    orders = [np.argsort(responses[:, 0], kind="stable"), np.argsort(x[:, 0]), RNG.permutation(n)]
    first = max(10, int(RNG.choice([0.03, 0.08, 0.3]) * n))
    sites = np.split(rows[orders[RNG.integers(3)]], [first, first + (n - first) // 3])
    state, is_refused = made.first(), False
    while not state.is_done:
        is_refused |= any(few_rows(made, site, state) for site in sites)
        state = made.following(state, made.totals(rows, state))
    return ("", False) if state.failure else (name, is_refused)


def draw_column(n: int, has_large_values: bool) -> Floats:
    """Return a column: normal, of 0 and 1, or of two further kinds."""
    normal = RNG.normal(size=n)
    kind = RNG.integers(4)
    if kind == 1:
        return np.exp(normal) if has_large_values else RNG.gamma(2, size=n)
    if kind == 2:
        return (normal > 0.8 * RNG.normal()).astype(np.float64)
    if kind == 3:
        return RNG.standard_t(3, size=n) if has_large_values else RNG.uniform(size=n)
    return normal


def main() -> None:
    arguments = common.parser(__doc__).parse_args()
    common.print_machine()
    lies(5 if arguments.smoke else 200)
    honest(6 if arguments.smoke else 200)


if __name__ == "__main__":
    main()
