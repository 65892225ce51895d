"""What noise does to a study: how many rows it needs, and how exactly rows are counted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gosta.net.config import MIN_SITES
from gosta.private.accounting import MAX_EPSILON
from gosta.private.noise import choose_noise
from gosta.sketches.layout import Layout
from gosta.studies.definition import Study

# Of these, the first that a study has tells how many rows it needs; others are alike.
TELLING = ("auc", "concordance-index")
# Of an AUC, by noise, beyond which it mostly has no value: found by trying 195 to 1955 rows.
MOST_ERROR = 0.125
GOOD_ERROR = 0.05  # of an AUC, by noise, with which it still tells good scores from poor ones
USUAL_ROWS = 1_000  # of a group; noise that hides what these tell is worth a warning


class Effect(NamedTuple):
    """What noise does to a statistic of a study."""

    statistic: str
    deviation: float  # of the noise in each number
    least_rows: float  # of a group; with fewer there is no value
    good_rows: float  # of a group, for which the error by noise is small
    groups: int  # whose noise adds up over all rows

    @property
    def text(self) -> str:
        """Return the effect in words."""
        parts = f"a group of fewer than about {_rough(self.least_rows)} rows has"
        if self.groups == 1:
            parts = f"fewer than about {_rough(self.least_rows)} rows have"
        return (
            f"standard deviation {_rough(self.deviation)} in each number: {parts} no value of "
            f"{self.statistic}, and {_rough(self.good_rows)} are needed for an error by noise of "
            f"{GOOD_ERROR:g}; several times as many if one class is rare, and for calibration"
        )


def count_errors(study: Study, participants: int) -> dict[str, float]:
    """Return the errors by noise of the number of rows of a group, by statistic."""
    layout = study.layout()
    return _count_errors(layout, _deviation(study, layout, participants))


def _deviation(study: Study, layout: Layout, participants: int) -> float:
    """Return the standard deviation of the noise in each number."""
    return math.sqrt(choose_noise(study.privacy, layout, participants).variance)


def _count_errors(layout: Layout, deviation: float) -> dict[str, float]:
    sketches = {part.title: part.sketch for part in layout.final.parts}
    return {
        title: deviation * math.sqrt(sketch.count(np.ones(sketch.size)))
        for title, sketch in sketches.items()
    }


def effect_of_noise(study: Study) -> Effect | None:
    """Return what noise does to a study in a network of the fewest sites; None: there is none.

    An AUC of two classes of n/2 rows each, in b bins of scores that tell nothing, has the standard
    error s √(2b/3) / n by noise of the standard deviation s in each of 2b counts: that of the
    number of rows, s √(2b), by √3 n.
    """
    if study.privacy.epsilon is None:
        return None
    layout = study.layout()
    deviation = _deviation(study, layout, MIN_SITES)
    errors = _count_errors(layout, deviation)
    items = [item for name in TELLING for item in study.summed if item.statistic == name]
    item = (items or study.summed)[0]
    error = errors[item.title] / math.sqrt(3)
    groups = layout.final.terms[""]
    return Effect(item.statistic, deviation, error / MOST_ERROR, error / GOOD_ERROR, groups)


def warning_of_noise(study: Study) -> str:
    """Return what to say of noise that hides what a usual number of rows tells; "" if not."""
    effect = effect_of_noise(study)
    if effect is None or effect.good_rows <= USUAL_ROWS:
        return ""
    assert study.privacy.epsilon is not None
    epsilon = study.privacy.epsilon * effect.good_rows / USUAL_ROWS
    larger = "a larger epsilon"
    if epsilon <= MAX_EPSILON:
        larger += f" (about {_rough(epsilon)} for {USUAL_ROWS:,} rows)"
    whose = "groups" if effect.groups > 1 else "studies"
    return (
        f"noise hides what {whose} of less than about {_rough(effect.good_rows)} rows tell; ask "
        f"fewer questions, {'take fewer groups' if effect.groups > 1 else 'fewer scores'} or set "
        f"{larger}"
    )


def _rough(number: float) -> str:
    """Return a number with two digits."""
    return f"{float(f'{number:.2g}'):,.12g}"
