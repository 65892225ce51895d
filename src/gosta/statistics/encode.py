"""Encoders: from rows of data to the fewest numbers that a kernel needs.

These numbers are what nodes exchange.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gosta import datasets
from gosta.datasets.data import Data
from gosta.datasets.doubts import is_per_cent
from gosta.errors import DataError, InputError, NumericalError, shorten
from gosta.runtime.arrays import Booleans, Floats, project
from gosta.statistics.definition import features as features

ROUNDING = 1e-10  # relative, of sums of weights
# of values that are divided by the bandwidth: six digits of their differences are left
MAX_BANDWIDTHS = 1e10


def value(data: Data) -> Floats:
    """Encode a row as one number."""
    return data.columns_for("value")


def positive_value(data: Data) -> Floats:
    """Encode a row as one number that is not negative; not all are zero."""
    x = _complete(data, data.columns_for("value"))
    if x.min() < 0:
        raise DataError(f"needs values that are not negative, the least is {x.min():g}")
    if not data.is_partial and not x.max() > 0:
        raise DataError("needs values that are not all zero")
    return x


def pair(data: Data) -> Floats:
    """Encode a row as two numbers."""
    return data.columns_for("first", "second")


def two_parts(data: Data, split: int = 1) -> Floats:
    """Encode a row as `split` numbers of a first part, followed by those of a second part."""
    x = features(data) if data.has_selected_columns else pair(data)
    if not 1 <= split < x.shape[1]:
        columns = f"{x.shape[1]} column{'s' * (x.shape[1] > 1)}"
        raise InputError(f"split = {split}: of {columns} at least one must be in each part")
    return x


def scored(data: Data, positive: Any = None) -> Floats:
    """Encode a row as its score and its class, +1 or −1.

    The score is the score column; or the only feature; or, of several, x · (mean of + rows − mean
    of − rows).
    """
    data.require_one_score()
    names = (
        [data.score] if data.score is not None and not data.has_selected_columns else data.features
    )
    x = _two_classes(data, names, positive)
    if x.shape[1] == 2:
        return x
    x, signs = x[:, :-1], x[:, -1]
    if np.ptp(signs) == 0:
        reason = (
            f"a score is computed from several columns by the means of both classes, {data.name} "
            "has one class only"
        )
        raise DataError(reason, remedy="name one score column with score (--score)")
    with np.errstate(over="ignore", invalid="ignore"):
        direction = _mean(data, x, signs > 0) - _mean(data, x, signs < 0)
        scores = project(x, direction[None])[:, 0]
    data.note_assumption(score="class means")
    if not np.isfinite(scores).all():
        raise DataError(
            "the columns are too large for a score: it is not finite",
            remedy="scale them or name a score column",
        )
    return np.column_stack([scores, signs])


def risk(data: Data, positive: Any = None) -> Floats:
    """Encode a row as its predicted risk, from 0 to 1, and its class, +1 or −1.

    The risk is the score column, or the only feature.
    """
    data.require_one_score()
    has_score = data.score is not None and not data.has_selected_columns
    names = [data.score] if has_score and data.score is not None else list(data.features)
    if len(names) != 1:
        raise DataError(
            f"needs one column of predicted risks, there are {shorten(names) or 'none'}",
            remedy="name it with score (--score)",
        )
    _check_risks(data, data.to_floats(names), names)
    return _two_classes(data, names, positive)


def two_scores(data: Data, positive: Any = None) -> Floats:
    """Encode a row as two scores and its class, +1 or −1."""
    signs = data.class_signs(positive)
    x = _complete(data, data.columns_for("first", "second"), signs)
    if not data.is_partial and np.ptp(x[:, -1]) == 0:
        raise DataError(f"needs two classes, the complete rows of {data.name} have one only")
    return x


def two_risks(data: Data, positive: Any = None) -> Floats:
    """Encode a row as two predicted risks, from 0 to 1, and its class, +1 or −1."""
    names = data.features if data.has_selected_columns else data.scores or ("first", "second")
    x = two_scores(data, positive)
    _check_risks(data, data.columns_for("first", "second"), names)
    return x


def class_scores(data: Data, average: str = "pairs") -> Floats:
    """Encode a row as a score for each class, its class, and two weights.

    A pair of rows counts by the first weight of the row that should score higher for its own class,
    times the second weight of the other. `average`: "pairs" of classes all count the same; one
    class against the rest, all the same ("macro") or by their rows ("weighted").
    """
    codes, classes = data.class_codes()
    _require_all_rows(
        data, "the share of each class", "compute auc with positive=... for each class"
    )
    if len(classes) != len(data.features):
        given = f"{len(data.features)} columns for {len(classes)} classes"
        raise DataError(
            "needs a column of scores for each class, in the order of classes",
            remedy=f"there are {given}",
        )
    x = _complete(data, features(data), codes)
    labels = x[:, -1].astype(np.int64)
    sizes = np.bincount(labels, _weights(data, x), len(classes))
    if sizes.min() <= 0 or len(classes) < 2:
        raise DataError(
            "needs rows of two classes or more, and of each", remedy=f"{data.name} lacks some"
        )
    n, one = sizes.sum(), np.ones(len(classes))
    choices = {
        "pairs": (n / sizes, n / sizes),
        "macro": (n / sizes * (n / (n - sizes)), one),
        "weighted": (n / (n - sizes), one),
    }
    if average not in choices:
        raise InputError(f"average = {average!r} must be 'pairs', 'macro' or 'weighted'")
    return np.column_stack([x, *(weights[labels] for weights in choices[average])])


def trimmed(data: Data, share: float = 0.1) -> Floats:
    """Encode a row as a number and 1, or 0 if it is in the share of lowest or highest rows."""
    x, kept = _trimmed_rows(data, share)
    return np.column_stack([x, kept])


def winsorised(data: Data, share: float = 0.1) -> Floats:
    """Encode a row as a number, moved to the lowest or highest of the rows that trimming leaves."""
    x, kept = _trimmed_rows(data, share)
    return np.clip(x, x[kept].min(), x[kept].max())


def _trimmed_rows(data: Data, share: float) -> tuple[Floats, Booleans]:
    """Return a number for each row, and whether it is in neither share at the ends."""
    _check_share("share", share, 0.5)
    _require_all_rows(data, "the order of all rows", "quantiles of private sums say where to cut")
    x = _complete(data, value(data))
    weights, order = _weights(data, x), np.argsort(x[:, 0], kind="stable")
    kept, unit = np.empty(len(x), dtype=np.bool_), weights.sum() / len(x)
    below, above = np.cumsum(weights[order]), np.cumsum(weights[order][::-1])[::-1]
    # in rows of mean weight: whole numbers where all weights are equal
    counted = np.minimum(below, above) / unit
    whole = np.rint(counted)
    counted = np.where(np.abs(counted - whole) <= ROUNDING * whole, whole, counted)
    kept[order] = counted > share * len(x)
    return x, kept


def _weights(data: Data, x: Floats) -> Floats:
    """Return the weight of each row, 1 by default."""
    weights = data.row_weights()
    # Where rows are left out, they are encoded again: see `Statistic.encode_complete_rows`.
    return np.ones(len(x)) if weights is None or len(weights) != len(x) else np.nan_to_num(weights)


def _mean(data: Data, x: Floats, chosen: Booleans) -> Floats:
    """Return the mean of each column over some rows, which count by their weights."""
    if data.weights is None:
        return np.asarray(x[chosen].mean(axis=0))
    weights = _weights(data, x)[chosen]
    return np.asarray((weights[:, None] * x[chosen]).sum(axis=0) / weights.sum())


def _check_share(name: str, share: float, most: float) -> None:
    is_number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not is_number or not 0 < share < most:
        raise InputError(f"{name} = {share!r} must lie between 0 and {most:g}")


def _require_all_rows(data: Data, what: str, remedy: str) -> None:
    if data.is_partial:
        raise DataError(f"needs {what}, which a site does not know", remedy=remedy)


def described(data: Data, levels: Mapping[str, Sequence[Any]] | None = None) -> Floats:
    """Encode a row as its features: numbers, or positions of classes among the declared levels.

    NaN stands for a missing value, also where rows with missing values are not left out.
    """
    kept, classes = replace(data, drop_missing=True), levels or {}
    columns = [
        kept.level_codes(name, classes[name], "levels")
        if len(classes.get(name, ()))
        else kept.to_floats([name])[:, 0]
        for name in data.features
    ]
    return np.column_stack(columns)


def two_samples(data: Data, positive: Any = None) -> Floats:
    """Encode a row as its features, followed by its sample, +1 or −1."""
    return _two_classes(data, data.features, positive)


def scaled_samples(data: Data, positive: Any = None, bandwidth: float | None = None) -> Floats:
    """Encode a row as its features in units of the bandwidth, followed by its sample, +1 or −1.

    The bandwidth is by default the root of the summed variances of all columns, which a network can
    average too. Rows in one place are centred first, since a division rounds large numbers by more
    than they may differ by.
    """
    x = two_samples(data, positive)
    with np.errstate(over="ignore", invalid="ignore"):
        everywhere = np.ones(len(x), dtype=np.bool_)
        features = x[:, :-1] if data.is_partial else x[:, :-1] - _mean(data, x[:, :-1], everywhere)
        spread = _mean(data, (features - _mean(data, features, everywhere)) ** 2, everywhere)
        width = float(np.sqrt(spread.sum())) if bandwidth is None else bandwidth
    if bandwidth is None and not 0 < width < np.inf:
        if width == 0 and np.ptp(features, axis=0).max() == 0:
            raise DataError(
                "all rows are alike, so that they give no bandwidth",
                remedy="give one: bandwidth=1 (-o bandwidth=1)",
            )
        raise NumericalError(
            f"the numbers are too {'small; use smaller' if width == 0 else 'large; use larger'} "
            "units"
        )
    if (
        isinstance(width, bool)
        or not isinstance(width, int | float | np.number)
        or not 0 < width < np.inf
    ):
        raise InputError(f"bandwidth = {width!r} must be a positive number")
    data.note_assumption(bandwidth=float(width))
    if data.is_partial and np.abs(features).max() > MAX_BANDWIDTHS * width:
        reason = (
            f"values of up to {np.abs(features).max():g} are too large for a bandwidth of {width:g}"
        )
        raise DataError(
            f"{reason}: digits would be lost",
            remedy="subtract one number from the column at all sites",
        )
    return np.column_stack([features / width, x[:, -1]])


def clustered(data: Data, centroids: Any = None) -> Floats:
    """Encode a row as its features, followed by its cluster.

    That is its class, or the nearest of the centroids.

    Centroids are rows of coordinates, a file of them, or "class-means" for the mean point of each
    class.
    """
    by_means = isinstance(centroids, str) and centroids == "class-means"
    if centroids is None or by_means:
        codes = data.class_codes()[0]
        x = _complete(data, features(data), codes)
        if centroids is None:
            return x
        x, classes = x[:, :-1], x[:, -1]
        centres = np.array([_mean(data, x, classes == c) for c in np.unique(classes)])
    else:
        x = _complete(data, features(data))
        rows = datasets.load(centroids)
        centres = rows.to_floats(list(rows.columns))
    if centres.shape[1] != x.shape[1]:
        raise DataError(
            f"centroids have {centres.shape[1]} coordinates, the points of {data.name} have "
            f"{x.shape[1]}"
        )
    return np.column_stack([x, _nearest(x, centres)])


def _nearest(x: Floats, centres: Floats) -> Floats:
    nearest = np.full(len(x), np.inf)
    clusters = np.zeros(len(x))
    with np.errstate(over="ignore", invalid="ignore"):
        for number, centre in enumerate(centres):
            distance = ((x - centre) ** 2).sum(axis=1)
            clusters[distance < nearest] = number
            nearest = np.minimum(nearest, distance)
    if not np.isfinite(nearest).all():
        raise DataError(
            "the points are too far from the centroids: a distance is not finite",
            remedy="scale the columns",
        )
    return clusters


def survival(data: Data) -> Floats:
    """Encode a row as a time, 1 for an event then or 0 if it is censored, and its risk score."""
    return _with_events(_complete(data, _times(data, "score")))


def survival_of_two(data: Data) -> Floats:
    """Encode a row as in `survival`, with two risk scores."""
    return _with_events(_complete(data, _times(data, "first", "second")))


def survival_risk(data: Data) -> Floats:
    """Encode a row as a time, 1 for an event then or 0, and its predicted risk of an event."""
    x = survival(data)
    name = data.features[-1] if data.has_selected_columns else data.score or "score"
    _check_risks(data, data.columns_for("time", "event", "score")[:, 2:], [name])
    return x


def survival_risks(data: Data) -> Floats:
    """Encode a row as a time, 1 for an event then or 0, and one predicted risk or several."""
    known, names = data.declared_roles, data.features
    if {"time", "event"} <= known.keys():
        names = tuple(dict.fromkeys([known["time"], known["event"], *names]))
    if not data.has_selected_columns or len(names) <= 3:
        return survival_risk(data)
    x = data.to_floats(names)
    check_times(data, x[:, 0], names[0])
    _check_risks(data, x[:, 2:], names[2:])
    return _with_events(_complete(data, x))


def _times(data: Data, *roles: str) -> Floats:
    """Return the columns of times, of events, and of further roles."""
    x = data.columns_for("time", "event", *roles)
    selected = data.features[0] if len(data.features) == x.shape[1] else None
    check_times(data, x[:, 0], data.time or (data.has_selected_columns and selected) or "time")
    return x


def check_times(data: Data, times: Floats, name: str) -> None:
    """Raise an error that names the first time below 0."""
    if not (times < 0).any():
        return
    row = np.argmax(times < 0)
    value = f"{times[row]:g}"
    raise DataError(
        f"the time {name} must not be below 0, {data.row_names[row]} has {value}",
        remedy=f"correct the row, or if it stands for a missing value: --na-values {name}:{value}",
    )


def _check_risks(data: Data, risks: Floats, names: Sequence[str]) -> None:
    """Raise an error that names the first predicted risk that is none."""
    beyond = np.argwhere((risks < 0) | (risks > 1))
    if not len(beyond):
        return
    row, column = beyond[0]
    name = names[column]
    remedy = f"of per cent, --scale {name}=0.01 makes shares"
    if not is_per_cent(risks[:, column]):
        remedy = (
            "correct the row, or if it stands for a missing value, name it as the file has it: "
            f"--na-values {name}:VALUE"
        )
    raise DataError(
        f"the predicted risk {name} must lie from 0 to 1, {data.row_names[row]} has "
        f"{risks[row, column]:g}",
        remedy=remedy,
    )


def event_times(data: Data) -> Floats:
    """Encode a row as a time, and whether the event was observed then (1) or not (0)."""
    return _with_events(_complete(data, _times(data)))


def grouped_event_times(data: Data, positive: Any = None) -> Floats:
    """Encode a row as a time, whether the event was observed then, and its class, +1 or −1."""
    signs = data.class_signs(positive)
    return _with_events(_complete(data, _times(data), signs))


def _with_events(x: Floats) -> Floats:
    if not set(np.unique(x[:, 1])) <= {0.0, 1.0}:
        raise DataError("the event column must hold 1 (event observed) and 0 (censored) only")
    return x


def is_not_negative(row: Sequence[float]) -> bool:
    """Return whether `positive_value` can have made a row."""
    return row[0] >= 0.0


def has_sign(row: Sequence[float]) -> bool:
    """Return whether an encoder of two classes or samples can have made a row."""
    return row[-1] in (-1.0, 1.0)


def has_class_score(row: Sequence[float]) -> bool:
    """Return whether `class_scores` can have made a row."""
    return 0.0 <= row[-3] < len(row) - 3 and float(row[-3]).is_integer() and min(row[-2:]) > 0.0


def has_cluster(row: Sequence[float]) -> bool:
    """Return whether `clustered` can have made a row."""
    return row[-1] >= 0.0 and float(row[-1]).is_integer()


def has_event(row: Sequence[float]) -> bool:
    """Return whether `survival` can have made a row."""
    return row[1] in (0.0, 1.0)


def _complete(data: Data, *parts: Floats) -> Floats:
    """Return the parts side by side, without incomplete rows if these are to be dropped."""
    x = np.column_stack(parts)
    if data.drop_missing:
        x = x[~np.isnan(x).any(axis=1)]
        data.check_row_count(len(x))
    return x


def _two_classes(data: Data, names: Sequence[str], positive: Any) -> Floats:
    """Return complete rows of some columns, with the sign of their class as last number."""
    signs = data.class_signs(positive)  # first: missing labels are the first error to report
    x = _complete(data, data.to_floats(names), signs)
    if data.drop_missing and not data.is_partial and np.ptp(x[:, -1]) == 0:
        raise DataError(f"needs two classes, the complete rows of {data.name} have one only")
    return x
