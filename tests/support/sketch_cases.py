"""Layouts of all sketches, tables of extreme rows, and their encoded rows and sums.

Shared by the tests of sensitivity and the audit of epsilon in benchmarks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.runtime.arrays import Floats
from gosta.sketches import SKETCHES, Bins, Layout, make_layout

Whole = NDArray[np.int64]
RANGES = {
    "first": (0.0, 4.0),
    "second": (-1.0, 3.0),
    "time": (0.0, 4.0),
    "score": (-2.0, 3.0),
    "value": (1e-3, 4.0),
}
THRESHOLDS = {"thresholds": "-1,0,0.5,1.7"}
SHARES = {"thresholds": "0,0.25,0.5,0.9"}
OPTIONS: dict[str, dict[str, Any]] = {
    "mmd": {"bandwidth": 1.5},
    "sensitivity": THRESHOLDS,
    "specificity": THRESHOLDS,
    "positive-predictive-value": THRESHOLDS,
    "negative-predictive-value": THRESHOLDS,
    "f1-score": THRESHOLDS,
    "net-benefit": SHARES,
    "net-benefit-of-all": SHARES,
    "time-dependent-auc": {"times": 2.5},
    "uno-concordance": {"horizon": 2.5},
    "survival-brier-score": {"horizon": 2.5},
    "survival-calibration": {"horizon": 2.5},
    "survival-observed-expected-ratio": {"horizon": 2.5},
    "integrated-brier-score": {"times": "1.5,2.5"},
}
# Columns of statistics that take more than one of each role, or any.
COLUMNS: dict[str, tuple[str, ...]] = {
    name: ("first", "second") for name, made in SKETCHES.items() if not made.roles
}
COLUMNS["integrated-brier-score"] = ("time", "event", "score", "second")
# Those whose scores are predicted risks.
RISKS = {name for name, made in SKETCHES.items() if "risk" in made.encode.__name__}
SCORES = ("first", "second", "score")  # columns that can be predicted risks
STRATA: dict[str, tuple[Any, ...]] = {"sex": ("f", "m"), "ward": (1.0, 2.0, 3.0)}
# Of predicted risks.
RISK_RANGES = RANGES | {"score": (0.0, 1.0)}
FAR = 1e9  # beyond all ranges; values of mmd, which has none, must not be larger


class Case(NamedTuple):
    """One layout to check."""

    title: str
    statistics: str
    changes: Mapping[str, Any] = {}  # settings of bins, columns and options

    def layout(self) -> Layout:
        """Return the layout; where edges are to be found, the layout of the first round."""
        changes: dict[str, Any] = {
            "columns": (),
            "options": OPTIONS.get(self.statistics, {}),
            "bins": 6,
        }
        changes |= self.changes
        options, columns = changes.pop("options"), changes.pop("columns")
        columns = columns or COLUMNS.get(self.statistics, ())
        ranges = RISK_RANGES if self.statistics in RISKS else RANGES
        settings = Bins(changes.pop("bins"), ranges, **changes)
        return make_layout(
            self.statistics,
            settings,
            columns=columns,
            label="label",
            score="score",
            classes=(0, 1),
            options=options,
        )


def numbers(rng: np.random.Generator, n: int, low: float, high: float) -> Floats:
    """Return numbers, many of them extreme, none of them negative if the range is not."""
    bins = np.linspace(low, high, 7)
    ends = np.concatenate([bins, np.nextafter(bins, -np.inf), np.nextafter(bins, np.inf)])
    far = np.array([0.0, -0.0, 5e-324, -5e-324, FAR, -FAR, high + 1e-9, low - 1e-9])
    found = rng.choice(np.concatenate([ends, far, rng.uniform(low, high, 20)]), n)
    return np.abs(found) if low >= 0 else found


def make_table(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 3])
    table: dict[str, Any] = {
        name: numbers(rng, n, low, high) for name, (low, high) in RANGES.items()
    }
    table |= {"label": rng.integers(0, 2, n), "event": rng.integers(0, 2, n)}
    return table | {
        name: np.array(values)[rng.integers(0, len(values), n)] for name, values in STRATA.items()
    }


def take(table: Mapping[str, Any], rows: Whole) -> dict[str, Any]:
    return {name: column[rows] for name, column in table.items()}


def encode(layout: Layout, table: Mapping[str, Any]) -> Floats:
    columns = dict(table)
    if RISKS.intersection(sketch.name for sketch in layout.final.sketches):
        columns |= {name: np.clip(columns[name], 0.0, 1.0) for name in SCORES}
    data = Data(
        "rows", columns, label="label", score="score", features=("first", "second"), is_partial=True
    )
    return layout.encode(data)


def sums_of(layout: Layout, x: Floats, bits: int) -> Whole:
    return layout.sums(x, bits).view(np.int64)


def rounds_of(case: Case) -> list[Layout]:
    """Return the layouts of all rounds, the second with edges that some rows give."""
    first = case.layout()
    second = first.following(sums_of(first, encode(first, make_table(300, 8)), 24) / 2.0**24)
    return [first] if second is None else [first, second]
