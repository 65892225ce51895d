"""``gosta.exact``: a statistic over rows in one place.

With bins, it is computed from sums, as private networks compute it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from gosta import datasets
from gosta.analysis.computation import LEVEL, compute
from gosta.datasets.data import Data
from gosta.errors import InputError, NumericalError
from gosta.measures import MEASURES, Measure
from gosta.measures.definition import NO_VALUE
from gosta.runtime.arrays import Floats
from gosta.sketches.comparison import compare
from gosta.sketches.estimates import estimate_of
from gosta.sketches.layout_builder import Bins
from gosta.statistics.definition import (
    Normalisation,
    Options,
    Statistic,
    collect_options,
    find,
    with_weights,
)
from gosta.statistics.estimate import Estimate
from gosta.statistics.estimate_tables import as_frame
from gosta.statistics.exact import LEAST_SAMPLE, Columns, measure
from gosta.statistics.names import resolve
from gosta.statistics.triples import Sampling


@overload
def exact(data: object, statistic: list[Any] | tuple[Any, ...], **others: Any) -> Any: ...
@overload
def exact(data: object, statistic: str | Statistic, *, by: object, **others: Any) -> Any: ...
@overload
def exact(
    data: object,
    statistic: str | Statistic,
    *,
    columns: Columns | None = None,
    label: object = None,
    score: object = None,
    time: object = None,
    event: object = None,
    normalisation: Normalisation | None = None,
    interval: None = None,
    drop_missing: bool = False,
    bins: None = None,
    ranges: None = None,
    edges: None = None,
    find_edges: bool = False,
    weights: object = None,
    sample: None = None,
    options: Options | None = None,
    **statistic_options: Any,
) -> float | Floats: ...
@overload
def exact(
    data: object, statistic: str | Statistic, *, interval: float, **others: Any
) -> Estimate: ...
@overload
def exact(data: object, statistic: str | Statistic, *, bins: int, **others: Any) -> Estimate: ...
@overload
def exact(data: object, statistic: str | Statistic, *, sample: int, **others: Any) -> Estimate: ...
@overload
def exact(
    data: object, statistic: str | Statistic, *, edges: Mapping[str, Any], **others: Any
) -> Estimate: ...
def exact(
    data: object,
    statistic: str | Statistic | list[Any] | tuple[Any, ...],
    *,
    columns: Columns | None = None,
    label: object = None,
    score: object = None,
    time: object = None,
    event: object = None,
    normalisation: Normalisation | None = None,
    interval: float | None = None,
    drop_missing: bool = False,
    bins: int | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    edges: Mapping[str, Sequence[float]] | None = None,
    find_edges: bool = False,
    by: object = None,
    weights: object = None,
    sample: int | None = None,
    seed: int = 0,
    options: Options | None = None,
    **statistic_options: Any,
) -> Any:
    """Compute a statistic over all rows, or several, or over groups of rows.

    Parameters
    ----------
    data
        A data set's name, a file, or an object in memory: see `gosta.datasets.load`.
    statistic
        A name from ``gosta statistics`` or a function decorated with ``@gosta.statistic``; or a
        list of them, in which "kendall-tau:age+risk" names the columns of one.
    columns
        The columns to use, by name or position; needed where the data have more than the statistic
        takes.
    label, score
        The column of classes (or the classes themselves) and the column of scores; a list of two
        columns for statistics of two scores. Without a score column, rows are scored by their only
        column, or of several by x · (difference of the class means).
    time, event
        The columns of times to an event, and of whether it was seen then (1) or not (0).
    normalisation
        "U" leaves out pairs of a row with itself, "V" counts them. Default: the textbook's choice.
    interval
        Confidence level, such as 0.95: returns an `Estimate`; for the AUC with DeLong's standard
        error.
    drop_missing
        Leave out rows with missing or infinite values instead of raising an error.
    bins, ranges, edges, find_edges
        With bins or edges the value is computed from sums only, as a network of private sums does:
        returns an `Estimate` with a `bracket`, in which the value over the rows lies. Bins of a
        column have equal width within its range (by default that of the rows); or edges between
        them; or with `find_edges` about equally many rows each.
    by
        A column, such as "hospital", several, such as ``["sex", "ward"]``, or the values of one:
        the statistic of each group too, with intervals (95 % unless `interval` says otherwise), its
        difference from that of the largest group, the mean of the groups' own values, and how much
        they differ beyond chance.
    weights
        The column of row weights, or the weights themselves: a pair of rows counts by the product
        of its weights. An interval takes rows for a sample of n with weights of their own, not for
        as many rows as their weights add up to. ``"auc@w"`` is the AUC with the weights in column
        w.
    sample, seed
        For kernels of three rows: so many random triples instead of all. Returns an `Estimate` with
        the standard error of sampling; with `interval`, with that of the rows as a sample of a
        population, too.
    options, **statistic_options
        The statistic's options, such as ``variant="b"`` for ``kendall-tau``. An option that has the
        name of a parameter of this function is given in ``options={...}``.

    Returns
    -------
    float, array, Estimate or data frame
        A number; an array for a statistic of several numbers; an `Estimate` of a curve, of Table 1,
        and if `interval`, `bins` or `edges` is given. For a list of statistics or with `by` a
        pandas data frame (a list of dictionaries if pandas is not installed), a row for each
        statistic and group, with what was assumed; its `attrs["heterogeneity"]` compares the
        groups, and ``Estimate.from_dict(frame.attrs["estimates"][0]).plot()`` draws them.

    Examples
    --------
    >>> import gosta
    >>> gosta.exact([1.0, 2.0, 4.0], "gini-mean-difference")
    2.0
    >>> patients = {"risk": [0.1, 0.4, 0.35, 0.8], "ill": [0, 0, 1, 1]}
    >>> gosta.exact(patients, "auc", columns="risk", label="ill")
    0.75
    >>> estimate = gosta.exact("breast-cancer", "auc", interval=0.95)
    >>> f"{estimate.value:.3f}, {estimate.low:.3f} to {estimate.high:.3f}"
    '0.963, 0.945 to 0.975'
    >>> estimate = gosta.exact("breast-cancer", "auc", bins=256)
    >>> low, high = estimate.bracket
    >>> f"{estimate.value:.4f}, certainly within {low:.4f} to {high:.4f}"
    '0.9631, certainly within 0.9611 to 0.9651'
    >>> names = ["variance:sepal length", "kendall-tau:sepal length+petal length"]
    >>> table = gosta.exact("iris", names, variant="b")
    >>> table["value"].round(4).tolist()
    [0.6857, 0.7185]
    >>> gosta.exact([1.0, 2.0, 4.0], "gini-mean-difference", weights=[1, 1, 0])
    1.0
    """
    if "strata" in statistic_options:
        where = (
            "gosta.private.release(..., strata={...}), or the command 'gosta exact DATA --bins 64 "
            "--strata ...'"
        )
        raise InputError(
            "strata: for the exact values of groups give by=COLUMN",
            remedy=f"for results of sums use {where}",
        )
    if by is not None or isinstance(statistic, list | tuple):
        if bins is not None or edges is not None or find_edges:
            raise InputError("bins are for one statistic", remedy="give its name alone, without by")
        chosen = statistic if isinstance(statistic, list | tuple) else [statistic]
        table = _select(data, columns, (label, score, time, event), drop_missing, weights)
        own = {**(options or {}), **statistic_options}
        return as_frame(
            compute(
                table,
                chosen,
                by=by,
                normalisation=normalisation,
                interval=interval,
                options=own,
                sampling=make_sampling(sample, seed),
            )
        )
    statistic = resolve(statistic) if isinstance(statistic, str) else statistic
    is_measure = isinstance(statistic, str) and statistic in MEASURES
    found = MEASURES[str(statistic)] if is_measure else find(statistic)
    given = collect_options(found, options, statistic_options, exact, locals())
    table = _select(data, columns, (label, score, time, event), drop_missing, weights)
    if bins is None and edges is None:
        sampling = make_sampling(sample, seed)
        if isinstance(found, Measure) or table.scores:
            estimate, *others = compute(
                table,
                [found],
                normalisation=normalisation,
                interval=interval,
                options=given,
                sampling=sampling,
            )
            if others:  # one for each score
                return as_frame([estimate, *others])
            if estimate.reason:
                raise InputError(estimate.reason, remedy=estimate.remedy)
        else:
            chosen_one = found if table.weights is None else with_weights(found, table.weights)
            estimate = measure(table, chosen_one, normalisation, interval, given, sampling)
        is_table = isinstance(found, Measure) and found.has_missing
        is_value = estimate.level is None and estimate.at is None and not is_table
        return estimate.value if is_value else estimate
    name = statistic if isinstance(statistic, str) else statistic.name
    if normalisation not in (None, getattr(found, "normalisation", "U")):
        raise InputError(
            f"normalisation = {normalisation!r}: from sums {name} has that of textbooks",
            remedy="leave it out",
        )
    settings = Bins(
        64 if bins is None else bins,
        ranges or {},
        {k: tuple(v) for k, v in (edges or {}).items()},
        find_edges,
    )
    if table.weights is not None:
        raise InputError(
            f"weights = {table.weights!r}: sums in bins have none", remedy="leave out bins"
        )
    (result,) = compare(table, name, settings, interval or LEVEL, given).results
    if not result.has_value:
        raise NumericalError(f"{result.statistic} is not defined here: {NO_VALUE}")
    return estimate_of(result, interval or LEVEL)._replace(data=table.name)


def make_sampling(size: int | None, seed: int) -> Sampling | None:
    """Return how triples of rows are sampled; None: all are computed."""
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < LEAST_SAMPLE:
        raise InputError(
            f"sample = {size!r} must be a whole number, {LEAST_SAMPLE} or more, such as 1000000"
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed = {seed!r} must be a whole number, 0 or more")
    return Sampling(int(size), int(seed))


def _select(
    data: object,
    columns: Columns | None,
    roles: tuple[object, object, object, object],
    drop_missing: bool,
    weights: object,
) -> Data:
    label, score, time, event = roles
    table = datasets.load(data).select(columns, label, score, drop_missing, time, event)
    return table if weights is None else table.with_weights(weights)
