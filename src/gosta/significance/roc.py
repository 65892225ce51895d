"""DeLong's tests of two AUCs.

The AUCs are of two scores of the same rows, or of one score in two groups of rows.

The structural components of an AUC are the row means of its kernel: the share of rows of the other
class that a row is ordered correctly against. Its variance is that of the positive rows' components
over their number, plus that of the negative ones over theirs (DeLong, DeLong and Clarke-Pearson
1988; Sun and Xu 2014 compute them from ranks, as here).
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import DataError, InputError, NumericalError, shorten
from gosta.runtime.arrays import Booleans, Floats
from gosta.significance.definition import HypothesisTest, Settings, hypothesis_test
from gosta.statistics import fast, find
from gosta.statistics.distributions import student_quantile, student_tails
from gosta.statistics.estimate import Estimate


@hypothesis_test("auc")
def auc(data: Data, settings: Settings, name: str) -> HypothesisTest:
    """Test whether two AUCs differ: of two `score` columns, or of two groups of rows, `by`."""
    if data.by is not None:
        return _unpaired(data, settings, name)
    if len(_scores(data)) == 2:
        return _paired(data, settings, name)
    how = "score=['a', 'b'] (--score a,b), or of two groups of rows with by=... (--by ...)"
    raise InputError(
        f"auc: compare the AUCs of two scores with {how}; for one AUC against 0.5 test mann-whitney"
    )


def _scores(data: Data) -> tuple[str, ...]:
    """Return the columns of scores that are compared."""
    return data.features if data.has_selected_columns else data.scores


def _paired(data: Data, settings: Settings, name: str) -> HypothesisTest:
    x = find("auc-difference").encode_rows(data, settings.options)
    _check_classes(x, data.name)
    plus = x[:, 2] > 0
    both = np.column_stack([_components(x[:, [k, 2]]) for k in (0, 1)])
    aucs = both[plus].mean(axis=0)
    variance = _variance(both[:, 0] - both[:, 1], plus)
    values = {
        f"auc of {column}": float(one) for column, one in zip(_scores(data), aucs, strict=True)
    }
    method = "DeLong's test of two scores of the same rows: z"
    return _result(name, values, variance, inf, len(x), settings, method)


def _unpaired(data: Data, settings: Settings, name: str) -> HypothesisTest:
    if data.score is None and len(data.features) != 1:
        raise InputError(
            "auc: to compare groups of rows, name one score column with score (--score)"
        )
    codes, groups = data.site_codes()
    if len(groups) != 2:
        found = (
            f"column {data.by!r} has {len(groups)} ({shorten([str(group) for group in groups])})"
        )
        raise DataError(f"auc: by needs two groups of rows, {found}; keep the rows of two")
    classes = tuple(data.class_codes()[1])
    aucs, variances, sizes = [], [], []
    for k, group in enumerate(groups):
        rows = {column: values[codes == k] for column, values in data.columns.items()}
        part = replace(data, name=f"{data.by} = {group}", columns=rows, declared_classes=classes)
        x = find("auc").encode_rows(part, settings.options)
        _check_classes(x, part.name)
        components, plus = _components(x), x[:, 1] > 0
        aucs.append(float(components[plus].mean()))
        variances.append(_variance(components, plus))
        sizes.append(len(x))
    total = sum(variances)
    freedom = (
        total**2 / sum(v**2 / (n - 1) for v, n in zip(variances, sizes, strict=True))
        if total > 0
        else inf
    )
    values = {
        f"auc where {data.by} is {group}": one for group, one in zip(groups, aucs, strict=True)
    }
    method = f"DeLong's test of two groups of rows: t with {freedom:.5g} degrees of freedom"
    return _result(name, values, total, freedom, sum(sizes), settings, method)


def _result(
    name: str,
    values: dict[str, float],
    variance: float,
    freedom: float,
    n: int,
    settings: Settings,
    method: str,
) -> HypothesisTest:
    first, second = values.values()
    gap, error = first - second, sqrt(variance)
    if error == 0 and gap != 0:
        raise NumericalError(
            "auc: the difference has no test, since no row is ordered differently by chance"
        )
    t, reach = (
        gap / error if error else 0.0,
        student_quantile(settings.two_sided_level, freedom) * error,
    )
    effect = Estimate(gap, max(-1.0, gap - reach), min(1.0, gap + reach), error, settings.level)
    effect = settings.one_ended(effect, (-1.0, 1.0))
    p = settings.p_value(*student_tails(t, freedom))
    return HypothesisTest(name, t, p, n, method, values, effect, "difference", settings.alternative)


def _components(x: Floats) -> Floats:
    """Return the share of rows of the other class that each row is ordered correctly against."""
    wins, others = fast.auc(x).sums.T
    return np.asarray(wins / others)


def _variance(components: Floats, plus: Booleans) -> float:
    return sum(
        float(part.var(ddof=1)) / len(part) for part in (components[plus], components[~plus])
    )


def _check_classes(x: Floats, where: str) -> None:
    least = min(int((x[:, -1] > 0).sum()), int((x[:, -1] < 0).sum()))
    if least < 2:
        raise DataError(
            f"auc: a test needs at least two rows of each class, {where} has {least} of one"
        )
