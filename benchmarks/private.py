"""Error of the AUC under differential privacy, by way to keep rows private.

What masks and noise cost a site.

Errors are root mean squares over draws of the noise, bins included, with 20 sites of which one may
collude; for each way the best of 4 to 64 bins. Scores lie in [0, 1]: ranks of the breast cancer
data's (569 rows), or two normal classes with an AUC of 0.9. "Before" are numbers of a prototype
with a trusted curator's noise, which ours must not exceed.

Run with: python benchmarks/private.py [--plot docs/images/privacy.png | --smoke]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import common
import numpy as np

import gosta
from gosta.private import masks
from gosta.private.noise import choose_noise, draw
from gosta.private.settings import PrivateSettings
from gosta.runtime import progress
from gosta.runtime.arrays import Floats
from gosta.simulation.private import (
    ROWS,
    SHARED,
    SITES,
    draw_totals,
    errors_of_choices,
    root_mean_square_error,
)
from gosta.sketches import Bins, Layout, make_layout
from gosta.views import plots

SITE_COUNT = 20
BIN_COUNTS = (4, 8, 16, 32, 64)
SIZES = (569, 5_000, 50_000)
BEFORE = {(569, 1.0): 0.021, (569, 4.0): 0.007, (5_000, 1.0): 0.0027, (50_000, 1.0): 0.0004}
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-6
DRAWS = 1_000
GAUSSIAN = "with Gaussian noise"


class Rows(NamedTuple):
    """Scores of two classes, their AUC and its standard error."""

    data: gosta.Data
    auc: gosta.Estimate


class NotCounts(NamedTuple):
    """One feature of a row of which is not said that it is a count: its noise is Gaussian."""

    features_per_row: int = 1
    squared_change: float = 2.0
    are_counts: bool = False
    bits: int = 24
    most_features: int = 1
    budget_share: float = 1.0


def make_rows(n: int) -> Rows:
    """Return the ranks of the scores of the breast cancer data, or scores of two normal classes."""
    if n == 569:
        cancer = gosta.datasets.load("breast-cancer")
        x = gosta.statistics.find("auc").encode_rows(cancer, {})
        label, score = x[:, 1] > 0, (np.argsort(np.argsort(x[:, 0])) + 0.5) / n
    else:
        rng = np.random.default_rng(0)
        shift = 2**0.5 * NormalDist().inv_cdf(0.9)
        label = rng.random(n) < 0.37
        score = np.array(
            [NormalDist().cdf(z) for z in rng.normal(size=n) + shift * label - shift / 2]
        )
    data = gosta.datasets.load({"score": score, "label": label.astype(float)})
    return Rows(data, gosta.exact(data, "auc", score="score", label="label", interval=0.95))


def sums_of(rows: Rows, bins: int) -> tuple[Layout, Floats]:
    """Return the layout and the sums over all rows."""
    settings = Bins(bins=bins, ranges={"score": (0.0, 1.0)})
    layout = make_layout("auc", settings, score="score", label="label", classes=(0, 1))
    return layout, layout.sums(
        layout.encode(rows.data.select(score="score", label="label")), 24
    ) / 2.0**24


def best_errors(
    rows: Rows, epsilon: float, bin_counts: Sequence[int], draws: int
) -> dict[str, tuple[float, int]]:
    """Return the least error of each way, and its number of bins."""
    best: dict[str, tuple[float, int]] = {}
    settings, delta = (
        PrivateSettings(epsilon=epsilon),
        PrivateSettings(epsilon=epsilon, delta=DELTA),
    )
    for bins in bin_counts:
        layout, sums = sums_of(rows, bins)
        errors = errors_of_choices(layout, sums, rows.auc.value, settings, SITE_COUNT, draws, bins)
        gaussian = choose_noise(delta, NotCounts(), SITE_COUNT)
        totals = draw_totals(layout, sums, gaussian, draws // 4, np.random.default_rng(bins))
        errors[GAUSSIAN] = root_mean_square_error(layout, totals, rows.auc.value)
        for name, error in errors.items():
            best[name] = min(best.get(name, (np.inf, 0)), (error, bins))
    return best


def compare(
    sizes: Sequence[int], bin_counts: Sequence[int], draws: int, must_be_as_good: bool
) -> None:
    """Print the error of each way.

    That of masks with shared noise is at most what it was before.
    """
    ways = [ROWS, SITES, SHARED, GAUSSIAN]
    print(f"| rows | sampling s.e. | epsilon | {' | '.join(ways)}, delta {DELTA:g} | before |")
    print("| --- |" + " --- |" * (len(ways) + 3))
    for n in sizes:
        rows = make_rows(n)
        for epsilon in (1.0, 4.0):
            best = best_errors(rows, epsilon, bin_counts, draws)
            shown = " | ".join(f"{best[way][0]:.2g} ({best[way][1]} bins)" for way in ways)
            before = BEFORE.get((n, epsilon))
            print(
                f"| {n:,} | {rows.auc.standard_error:.2g} | "
                f"{epsilon:g} | {shown} | {before or '-'} |",
                flush=True,
            )
            assert best[SHARED][0] < best[SITES][0] < best[ROWS][0] or n > 5_000 or epsilon > 1, (
                best
            )
            if must_be_as_good and before is not None:
                assert best[SHARED][0] <= before, (n, epsilon, best[SHARED], before)


def print_costs(bins: int) -> None:
    """Print the time that a site spends on its keys, masks and noise, and what it sends."""
    numbers = 2 * bins
    keys = {f"site-{k}": masks.new_key() for k in range(SITE_COUNT)}
    public = {name: masks.public_key(key) for name, key in keys.items()}
    vectors = [masks.mask(numbers, name, key, public, b"benchmark") for name, key in keys.items()]
    assert not np.sum(vectors, axis=0, dtype=np.uint64).any()
    laplace = choose_noise(PrivateSettings(epsilon=1.0), NotCounts(are_counts=True), SITE_COUNT)
    gaussian = choose_noise(PrivateSettings(epsilon=1.0, delta=DELTA), NotCounts(), SITE_COUNT)
    work = {
        "key": lambda: masks.public_key(masks.new_key()),
        "mask": lambda: masks.mask(numbers, "site-0", keys["site-0"], public, b"benchmark"),
        "Laplace noise": lambda: draw(laplace, numbers),
        "Gaussian noise": lambda: draw(gaussian, numbers),
    }
    times = {name: min(common.seconds_of(step) for _ in range(20)) for name, step in work.items()}
    shown = ", ".join(f"{name} {1000 * seconds:.2f} ms" for name, seconds in times.items())
    print(
        f"\na site of {SITE_COUNT}, AUC with {bins} bins "
        f"({numbers} numbers, {8 * numbers} bytes): {shown}",
        flush=True,
    )


def draw_errors(path: Path, sizes: Sequence[int], epsilons: Sequence[float], draws: int) -> None:
    """Draw the error of each way over epsilon, one panel for each number of rows."""
    figure = plots.new_figure(4 * len(sizes), 3.6)
    axes = figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0]
    with progress.bar("errors over epsilon", len(sizes) * len(epsilons), 0) as advance:
        for ax, n in zip(axes, sizes, strict=True):
            rows, errors = make_rows(n), {name: list[float]() for name in (ROWS, SITES, SHARED)}
            for epsilon in epsilons:
                best = best_errors(rows, epsilon, BIN_COUNTS, draws)
                for name, values in errors.items():
                    values.append(best[name][0])
                advance(1)
            layout, sums = sums_of(rows, 256)
            no_noise = root_mean_square_error(layout, sums[None], rows.auc.value)
            lines = {"no noise": no_noise, "sampling standard error": rows.auc.standard_error}
            plots.draw_privacy(ax, epsilons, errors, lines)
            ax.set_title(f"{n:,} rows at {SITE_COUNT} sites", fontsize=10)
    for ax in axes[1:]:
        ax.set_ylabel("")
    axes[0].set_ylabel("error of the AUC (root mean square)")
    axes[-1].legend(frameon=False, fontsize=8)
    plots.save(figure, path)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--plot", type=Path, help="draw the errors over epsilon: a .png, .svg or .pdf file"
    )
    arguments = parser.parse_args()
    common.print_machine("cryptography")
    if arguments.smoke:
        compare(SIZES[:1], (8,), 50, must_be_as_good=False)
        print_costs(16)
    else:
        compare(SIZES, BIN_COUNTS, DRAWS, must_be_as_good=True)
        print_costs(512)
    if arguments.plot is not None:
        draw_errors(arguments.plot, SIZES, EPSILONS, DRAWS // 4)


if __name__ == "__main__":
    main()
