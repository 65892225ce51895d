"""Error of statistics from sums, beside the exact values (the table of
docs/reference/statistics.md), and their cost.

Every exact value must lie in its bracket; random sketches are only printed.

Run with: python benchmarks/sketches.py [--smoke]
"""

from __future__ import annotations

from functools import partial

import common
import numpy as np

from gosta.datasets import Data, load
from gosta.sketches import SKETCHES, Bins, Sketch, make_layout
from gosta.sketches.comparison import compare
from gosta.sketches.layout import BITS
from gosta.statistics.definition import Options

ROWS = 5_000
# Numbers of bins of statistics of one column.
MANY = (64, 256)
# Numbers of bins of statistics of several columns.
FEW = (32, 64)
# Those of two scores of the same rows.
TWO_MODELS = (
    "auc-difference",
    "concordance-difference",
    "brier-difference",
    "integrated-discrimination",
    "net-reclassification",
)
# Of events before which the score is taken for the risk.
OF_RISKS_UNTIL = (
    "survival-brier-score",
    "survival-calibration",
    "survival-observed-expected-ratio",
)


def make_rows(n: int) -> Data:
    """Return rows for all statistics: correlated columns, incomes, scores of two classes, censored
    times.
    """
    rng = np.random.default_rng(0)
    died = rng.integers(0, 2, n)
    x = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], size=n)
    columns = {
        "x": x[:, 0],
        "y": x[:, 1] + 0.5 * died,
        "income": rng.lognormal(3, 1, n),
        "died": died,
    }
    columns["score"] = 1 / (1 + np.exp(-rng.normal(size=n) - 1.5 * died))
    columns["rough"] = 1 / (
        1 + np.exp(-np.log(columns["score"] / (1 - columns["score"])) - rng.normal(size=n))
    )
    columns["event"] = (rng.random(n) < 0.7).astype(int)
    columns["time"] = rng.exponential(np.exp(-columns["score"]), n)
    return load(columns).select(label="died", score="score")


def columns_of(name: str) -> str:
    """Return a statistic with the columns that it takes here."""
    roles = SKETCHES[name].roles
    if roles == ("value",):
        return f"{name}:income"
    if name in TWO_MODELS or name == "integrated-brier-score":
        return f"{name}:{'time+event+' * ('time' in roles)}score+rough"
    return name if "time" in roles or "score" in roles else f"{name}:x+y"


def is_of_one_column(made: type[Sketch]) -> bool:
    """Return whether only one column is binned."""
    return sum(role != "event" for role in made.roles) == 1


def line(data: Data, name: str, bins: int, find_edges: bool) -> tuple[int, float, float, float]:
    """Return numbers of the vector, the exact value, the bracket's half width and the error; of a
    curve the largest.
    """
    options: Options = {"horizon": 0.5} if name in OF_RISKS_UNTIL else {}
    if name == "integrated-brier-score":
        options = {"times": "0.3,0.6"}
    found = compare(data, columns_of(name), Bins(bins, find_edges=find_edges), options=options)
    result, exact = found.results[0], found.exact[0]
    assert exact is not None
    low, value, high, wanted = (
        np.array(part, dtype=np.float64) for part in (result.low, result.value, result.high, exact)
    )
    if result.is_certified:
        assert (low <= wanted).all(), (name, low, wanted)
        assert (wanted <= high).all(), (name, wanted, high)
    return (
        found.layout.size,
        float(wanted.max()),
        float((high - low).max() / 2),
        float(np.abs(value - wanted).max()),
    )


def main() -> None:
    """Print both tables."""
    arguments = common.parser(__doc__).parse_args()
    common.print_machine()
    data = make_rows(300 if arguments.smoke else ROWS)
    heading = (
        "| statistic | bins | numbers | value | bracket ± | error "
        "| with found edges: bracket ± | error |"
    )
    print(f"{len(data):,} rows", heading, "| --- " * 8 + "|", sep="\n")
    for name, made in SKETCHES.items():
        for bins in (MANY if is_of_one_column(made) else FEW) if made.is_binned else (1,):
            size, value, width, error = line(data, name, bins, False)
            found = ["", ""]
            if made.is_binned and made.finds_edges:
                found = [f"{number:.2g}" for number in line(data, name, bins, True)[2:]]
            shown = bins if made.is_binned else ""
            print(
                f"| `{name}` | {shown} | {size:,} | {value:.4g} | {width:.2g} | {error:.2g} | "
                f"{found[0]} | {found[1]} |"
            )
    many = make_rows(1_000 if arguments.smoke else 1_000_000)
    for name in ("auc", "gini-index", "kendall-tau", "energy-distance"):
        layout = make_layout(columns_of(name), Bins(64), data=many)
        x = layout.encode(many)
        seconds = common.seconds_of(partial(layout.sums, x))
        totals = layout.sums(x) / 2.0**BITS
        result = common.seconds_of(partial(layout.results, totals, level=0.95))
        print(f"{name}: sums of {len(x):,} rows {seconds:.2f} s, result {1000 * result:.1f} ms")


if __name__ == "__main__":
    main()
