"""Coverage of 95 % intervals of models that are fitted with noise, and what epsilon costs.

Rows of three sites are drawn anew for each fit, and the noise; columns are normal with a standard
deviation of an eighth of their range, or 0 and 1. A fit without an interval says that noise is as
large as what its columns tell; coverage is that of the others. Errors are medians of the standard
errors of slopes, in units of those without noise.

Run with: python benchmarks/fit_privacy.py [--draws 100] [--plot docs/images/fit-privacy.png]
          [--smoke]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np

import gosta
from gosta import private
from gosta.errors import GostaError
from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.views import plots

EPSILONS = (1.0, 2.0, 4.0, 8.0)
SIZES = (1_000, 5_000, 50_000)
RANGE = (-4.0, 4.0)  # of columns with a standard deviation of 1
SLOPES = (0.8, -0.5, 0.4, 0.0, 0.3, 0.0, -0.2, 0.0)  # of columns, each third of 0 and 1
LEAST_COVERAGE, FEW = 0.9, 20  # fits with an interval, of which coverage is told
SITES = 3


class Case(NamedTuple):
    """A model with its number of columns."""

    model: str
    columns: int
    options: dict[str, Any]


CASES = (
    Case("logistic", 3, {"classes": (0, 1)}),
    Case("logistic", 8, {"classes": (0, 1)}),
    Case("linear", 3, {"low": -8.0, "high": 8.0}),
    Case("poisson", 3, {"high": 10.0}),
)


class Outcome(NamedTuple):
    """What many fits gave."""

    fits: int
    shown: int  # with intervals
    coverage: float
    ratio: float  # of standard errors to those without noise


def draw_rows(case: Case, n: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Return columns and an outcome that follows the model."""
    columns = {
        f"x{k}": (rng.random(n) < 0.4).astype(float)
        if k % 3 == 2
        else rng.normal(size=n).clip(*RANGE)
        for k in range(case.columns)
    }
    slopes = zip(SLOPES, columns.values(), strict=False)
    eta = np.sum([slope * column for slope, column in slopes], axis=0) - 0.5
    if case.model == "linear":
        y = (eta + rng.normal(size=n)).clip(*(case.options[end] for end in ("low", "high")))
    elif case.model == "poisson":
        y = rng.poisson(np.exp(eta / 2)).astype(float)
    else:
        y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(float)
    return columns | {"y": y}


def truth(case: Case) -> Floats:
    """Return the slopes that rows are drawn with."""
    return np.array(SLOPES[: case.columns]) / (2 if case.model == "poisson" else 1)


def fit(case: Case, n: int, epsilon: float | None, seed: int) -> gosta.models.Fit:
    """Fit rows that are drawn with a seed."""
    rows = draw_rows(case, n, np.random.default_rng(seed))
    names = tuple(rows)[:-1]
    parts = [{name: values[k::SITES] for name, values in rows.items()} for k in range(SITES)]
    ranges = {name: (0.0, 1.0) if set(rows[name]) <= {0.0, 1.0} else RANGE for name in names}
    given: dict[str, Any] = {"columns": names, "ranges": ranges, "epsilon": epsilon, "seed": seed}
    return private.fit(parts, case.model, "y", **given, **case.options)


def outcome(case: Case, n: int, epsilon: float, draws: int) -> Outcome:
    """Return what fits of so many draws give."""
    wanted, hits, errors = truth(case), [], []
    for seed in range(draws):
        try:
            found = fit(case, n, epsilon, seed)
        except GostaError:
            continue
        if np.isfinite(found.standard_errors).all():
            inside = (found.low[1:] <= wanted) & (wanted <= found.high[1:])
            hits.append(inside)
            errors.append(found.standard_errors[1:])
    if len(hits) < min(FEW, draws // 5):
        return Outcome(draws, len(hits), np.nan, np.nan)
    without = fit(case, n, None, 0).standard_errors[1:]
    ratio = float(np.median(np.median(errors, axis=0) / without))
    return Outcome(draws, len(hits), float(np.mean(hits)), ratio)


def compare(
    cases: Sequence[Case], sizes: Sequence[int], epsilons: Sequence[float], draws: int
) -> dict[tuple[int, int, float], Outcome]:
    """Print the coverage and the errors of each case."""
    print("| model | columns | rows | epsilon | with interval | coverage | standard errors |")
    print("| --- |" + " --- |" * 6)
    all_found = {}
    with progress.bar("fits", len(cases) * len(sizes) * len(epsilons), 0) as advance:
        for place, case in enumerate(cases):
            for n in sizes:
                for epsilon in epsilons:
                    found = outcome(case, n, epsilon, draws)
                    all_found[place, n, epsilon] = found
                    known = found.coverage == found.coverage
                    numbers = f"{found.coverage:.1%} | {found.ratio:.2g} ×" if known else "- | -"
                    print(
                        f"| {case.model} | {case.columns} | {n:,} | {epsilon:g} | "
                        f"{found.shown / found.fits:.0%} | {numbers} |",
                        flush=True,
                    )
                    assert not found.coverage < LEAST_COVERAGE, found
                    advance(1)
    return all_found


def draw(path: Path, found: dict[tuple[int, int, float], Outcome]) -> None:
    """Draw standard errors over epsilon, one panel for each case."""
    figure = plots.new_figure(3.2 * len(CASES), 3.2)
    axes = figure.subplots(1, len(CASES), sharey=True)
    for place, (ax, case) in enumerate(zip(axes, CASES, strict=True)):
        for n in SIZES:
            ratios = [found[place, n, epsilon].ratio for epsilon in EPSILONS]
            ax.plot(EPSILONS, ratios, marker="o", label=f"{n:,} rows")
        ax.axhline(1.0, color="0.6", linestyle=":", label="no noise")
        ax.set(xscale="log", yscale="log", xlabel="epsilon", xticks=EPSILONS)
        ax.set_xticklabels([f"{one:g}" for one in EPSILONS])
        ax.minorticks_off()
        ax.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        ax.set_title(f"{case.model}, {case.columns} columns", fontsize=10)
    axes[0].set_ylabel("standard error, without noise 1")
    axes[-1].legend(frameon=False, fontsize=8)
    plots.save(figure, path)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--draws", type=int, default=100, help="fits of each case")
    parser.add_argument("--plot", type=Path, help="draw the errors: a .png, .svg or .pdf file")
    arguments = parser.parse_args()
    common.print_machine()
    if arguments.smoke:
        compare(CASES[:1], (5_000,), (4.0,), 30)
        return
    found = compare(CASES, SIZES, EPSILONS, arguments.draws)
    if arguments.plot is not None:
        draw(arguments.plot, found)


if __name__ == "__main__":
    main()
