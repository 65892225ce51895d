"""Fits of models as sites make them: from sums of features that are rounded."""

from __future__ import annotations

import numpy as np

from gosta.models import Fit, Model
from gosta.runtime.arrays import Floats


def fit_rounded(model: Model, rows: Floats, bits: int) -> Fit:
    """Fit encoded rows with features rounded to multiples of 2^-bits."""
    states, totals = [model.first()], []
    while not states[-1].is_done:
        places, values = model.features(rows, states[-1])
        assert values.min() >= 0
        assert values.max() <= 1
        rounded = np.floor(values * 2.0**bits + 0.5) / 2.0**bits
        size = model.size(states[-1])
        totals.append(np.zeros(size) + np.bincount(places.ravel(), rounded.ravel(), size))
        states.append(model.following(states[-1], totals[-1]))
    return model.fit_of(states, totals)
