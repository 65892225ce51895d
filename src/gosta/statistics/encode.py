"""From rows to observations: the least a kernel needs, which is what travels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data, Floats
from gosta.errors import InputError


def value(data: Data) -> Floats:
    """One number."""
    return data.values("value")


def positive_value(data: Data) -> Floats:
    """One number, never negative, not zero throughout."""
    x = data.values("value")
    if np.nanmin(x) < 0:
        raise InputError(f"needs values that are not negative, the least is {np.nanmin(x):g}")
    if not np.nanmax(x) > 0:
        raise InputError("needs values that are not all zero")
    return x


def pair(data: Data) -> Floats:
    """Two numbers."""
    return data.values("first", "second")


def points(data: Data) -> Floats:
    """All columns of points."""
    return data.numbers(data.points)


def two_parts(data: Data, split: int = 1) -> Floats:
    """The numbers of the first part, `split` of them, and then those of the second."""
    x = points(data) if data.chosen else pair(data)
    if not 1 <= split < x.shape[1]:
        raise InputError(
            f"split = {split}: of {x.shape[1]} column{'s' * (x.shape[1] > 1)} at least one must be in each part"
        )
    return x


def scored(data: Data, positive: Any = None) -> Floats:
    """Score and class, +1 or −1."""
    signs = data.signs(positive)
    return np.column_stack([data.scores(signs), signs])


def two_samples(data: Data, positive: Any = None) -> Floats:
    """A point, and last its sample, +1 or −1."""
    return np.column_stack([points(data), data.signs(positive)])


def scaled_samples(data: Data, positive: Any = None, bandwidth: float | None = None) -> Floats:
    """A point in units of the bandwidth, and last its sample, +1 or −1.

    The bandwidth is by default the root of the summed variances of all columns, which a network can average too.
    """
    x = points(data)
    width = float(np.sqrt(np.nanvar(x, axis=0).sum())) if bandwidth is None else float(bandwidth)
    if not 0 < width < np.inf:
        raise InputError(f"bandwidth = {width:g} must be a positive number")
    return np.column_stack([x / width, data.signs(positive)])


def celled(data: Data, centroids: Any = None) -> Floats:
    """A point, and last its cell: its class, or the nearest of the centroids.

    Centroids are rows of coordinates, a file of them, or "class-means" for the mean point of each class.
    """
    x = points(data)
    if centroids is None:
        return np.column_stack([x, data.classes()[0]])
    if isinstance(centroids, str) and centroids == "class-means":
        codes, names = data.classes()
        centres = np.array([np.nanmean(x[codes == c], axis=0) for c in range(len(names))])
    else:
        table = datasets.load(centroids if isinstance(centroids, str | Path) else np.asarray(centroids))
        centres = table.numbers(list(table.columns))
    if centres.shape[1] != x.shape[1]:
        raise InputError(f"centroids have {centres.shape[1]} coordinates, the points of {data.name} have {x.shape[1]}")
    nearest = np.full(len(x), np.inf)
    cells = np.zeros(len(x))
    for cell, centre in enumerate(centres):
        distance = ((x - centre) ** 2).sum(axis=1)
        cells[distance < nearest] = cell
        nearest = np.minimum(nearest, distance)
    return np.column_stack([x, np.where(np.isnan(x).any(axis=1), np.nan, cells)])


def survival(data: Data) -> Floats:
    """Time, whether the event was seen then (1) or the row censored (0), and the risk score."""
    x = data.values("time", "event", "score")
    if not set(np.unique(x[:, 1][~np.isnan(x[:, 1])])) <= {0.0, 1.0}:
        raise InputError("the event column must hold 1 (event seen) and 0 (censored) only")
    return x
