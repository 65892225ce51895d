"""The oracle of all faster code: a statistic by its definition, as a double loop in plain
Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gosta.runtime.arrays import Floats
from gosta.statistics import Statistic
from gosta.statistics.definition import as_tuple


def by_definition(
    statistic: Statistic, x: Floats, normalisation: str | None = None, **options: Any
) -> Any:
    """Return the value of a statistic over encoded rows."""
    parts = statistic.options_by_part(options)
    rows = x.tolist()
    n = len(rows)
    counted = (normalisation or statistic.normalisation) == "V"
    h = []
    for i, own in enumerate(rows):
        values = [
            np.atleast_1d(statistic.kernel(own, other, **parts["kernel"]))
            for j, other in enumerate(rows)
            if counted or i != j
        ]
        h.append(np.sum(values, axis=0) / len(values))
    if statistic.total:
        return float(np.mean(h) * n * (n if counted else n - 1) / 2)
    local = [as_tuple(statistic.local(tuple(row))) if statistic.local else tuple(row) for row in h]
    means = tuple(np.mean(local, axis=0).tolist())
    given = {"rows": n} if statistic.final_needs_rows else {}
    with np.errstate(all="ignore"):
        value = statistic.final(means, **parts["final"], **given) if statistic.final else means
    if not np.isfinite(value).all():  # functions of numpy do not raise
        raise ZeroDivisionError
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value
