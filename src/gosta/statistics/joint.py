"""Several statistics of the same rows as one, for nodes that exchange rows.

Such nodes estimate them together.

A row holds the numbers of all statistics side by side; those that encode rows alike share them. The
values of the kernels are concatenated, and so are those of `local`, and moments. What follows from
the means, values and intervals, is each statistic's own: see `gosta.estimation.estimand`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import InputError, naming
from gosta.runtime.arrays import Booleans, Floats
from gosta.statistics.definition import (
    Means,
    Moments,
    Observation,
    Options,
    Statistic,
    as_tuple,
    find,
)
from gosta.statistics.intervals import with_mean_products
from gosta.statistics.references import load_statistic, parse_references

Chosen = str | Statistic | Sequence[str | Statistic]


class Member(NamedTuple):
    """A statistic that was asked for."""

    title: str  # as it was written
    statistic: Statistic
    columns: tuple[str, ...] = ()  # empty: those selected for all statistics


class JointRows(NamedTuple):
    """The rows of several statistics."""

    x: Floats  # complete rows, n × d
    kept: Booleans  # which rows of the data these are
    widths: tuple[int, ...]  # numbers in a row of each encoding, in their order


def choose(statistics: Chosen, folder: Path | None = None) -> tuple[Member, ...]:
    """Return the statistics that a text such as "auc,kendall-tau:age+risk" names.

    Texts and statistics can be in a list, too.

    A user's own ones, FILE.py:NAME, are in a folder if one is given.

    >>> [(one.statistic.name, one.columns) for one in choose("auc,kendall-tau:age+risk")]
    [('auc', ()), ('kendall-tau', ('age', 'risk'))]
    """
    items = [statistics] if isinstance(statistics, str | Statistic) else statistics
    if not isinstance(items, list | tuple):
        find(items)  # type: ignore[arg-type]  # raises an error
    members: list[Member] = []
    for item in items:
        if isinstance(item, str):
            members += [
                Member(named.title, load_statistic(named.name, folder), named.columns)
                for named in parse_references(item)
            ]
        else:
            members.append(Member(find(item).name, item))
    if not members:
        raise InputError("statistic is empty: name at least one, such as auc")
    titles = [member.title for member in members]
    for title in titles:
        if titles.count(title) > 1:
            raise InputError(
                f"statistic = {','.join(titles)!r} names {title} twice", remedy="name it once"
            )
    for member in members if len(members) > 1 else ():
        member.statistic.require_mean()
        if member.statistic.is_per_row:
            raise InputError(f"{member.title} has a value for each row", remedy="estimate it alone")
    return tuple(members)


def name_of(members: Sequence[Member]) -> str:
    """Return the name of statistics together: their titles."""
    return ",".join(member.title for member in members)


def check_options(members: Sequence[Member], options: Options) -> None:
    """Raise `InputError` for options that no statistic has, or that have several defaults."""
    if len(members) == 1:
        members[0].statistic.options_by_part(options)
        return
    defaults: dict[str, tuple[str, object]] = {}
    for member in members:
        member.statistic.options_by_part(member.statistic.own_options(options))
        for name, default in member.statistic.options.items():
            title, other = defaults.setdefault(name, (member.title, default))
            if name not in options and other != default:
                differ = (
                    f"option {name} is {other!r} by default for {title} and {default!r} for "
                    f"{member.title}"
                )
                raise InputError(differ, remedy=f"give it for both: --option {name}=...")
    for name in options:
        if name not in defaults:
            known = ", ".join(f"{k}={v!r}" for k, (_, v) in defaults.items()) or "none"
            raise InputError(
                f"{name_of(members)} have no option {name!r}", remedy=f"their options are: {known}"
            )


def encode(members: Sequence[Member], data: Data, options: Options) -> JointRows:
    """Encode the rows that are complete for all statistics."""
    check_options(members, options)
    first = _first_alike(members)
    chosen = [(member, _table(member, data)) for k, member in enumerate(members) if first[k] == k]
    encoded = [_encode(member, table, options) for member, table in chosen]
    kept = np.logical_and.reduce([complete for _, complete in encoded])
    if any((complete != kept).any() for _, complete in encoded):
        if not kept.any():
            raise InputError(
                f"{name_of(members)}: no row of {data.name} is complete for all statistics"
            )
        encoded = [_encode(member, table.take(kept), options) for member, table in chosen]
    for (member, _), (x, _) in zip(chosen, encoded, strict=True):
        if len(members) > 1 and len(x) != kept.sum():
            wrong = (
                f"encode returns {len(x)} rows of {kept.sum()}, so that they cannot be put beside "
                "others"
            )
            raise InputError(f"{wrong}", statistic=member.title)
    return JointRows(
        np.hstack([x for x, _ in encoded]), kept, tuple(x.shape[1] for x, _ in encoded)
    )


def _table(member: Member, data: Data) -> Data:
    return data.select(member.columns) if member.columns else data


def _encode(member: Member, data: Data, options: Options) -> tuple[Floats, Booleans]:
    with naming(member.title):
        own = member.statistic.own_options(options)
        return member.statistic.encode_complete_rows(data, own)[:2]


def _first_alike(members: Sequence[Member]) -> list[int]:
    """Return for each statistic the first that encodes the same columns by the same function."""
    keys = [
        (member.statistic.encode, member.columns, member.statistic.weights) for member in members
    ]
    return [keys.index(key) for key in keys]


def place_numbers(members: Sequence[Member], widths: Sequence[int]) -> list[slice]:
    """Return which numbers of a row each statistic takes."""
    first = _first_alike(members)
    leading = sorted(set(first))
    if len(leading) != len(widths):
        raise InputError(
            f"{name_of(members)}: rows of {len(widths)} encodings where {len(leading)} are needed"
        )
    ends = np.cumsum([0, *widths]).tolist()
    return [slice(ends[k], ends[k + 1]) for k in map(leading.index, first)]


class Part(NamedTuple):
    """One of several statistics, and its place in all that they have in common."""

    title: str
    statistic: Statistic
    numbers: slice  # of a row, that its kernel takes
    kernel: slice  # of the joint kernel's values
    means: slice  # of the means that nodes estimate
    values: slice  # of the values that follow
    no_interval: str = ""  # why nodes can compute none


def why_no_interval(statistic: Statistic, width: int = 1, values: int = 1) -> str:
    """Return why nodes can compute no interval of a statistic; empty if they can.

    `width` is the number of its kernel values, `values` that of its values.

    >>> from gosta.statistics import find
    >>> why_no_interval(find("auc")), why_no_interval(find("mann-whitney"))
    ('', 'mann-whitney is a count, which has no interval')
    """
    if statistic.total:
        return f"{statistic.name} is a count, which has no interval"
    if values > 1:
        return f"{statistic.name} has several values; an interval is defined for one"
    try:
        with_mean_products(statistic, width)
    except InputError as error:
        return str(error)
    return ""


@dataclass(frozen=True, repr=False, eq=False)
class JointStatistic(Statistic):
    """Several statistics as one; its values are those of all parts."""

    parts: tuple[Part, ...] = ()

    @property
    def options(self) -> dict[str, object]:
        return {
            name: default for part in self.parts for name, default in part.statistic.options.items()
        }

    def options_by_part(self, options: Options) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {"encode": {}, "kernel": {}, "final": {}}
        for part in self.parts:
            for name, own in part.statistic.options_by_part(
                part.statistic.own_options(options)
            ).items():
                found[name] |= own
        return found

    @property
    def value_names(self) -> list[str]:
        """The name of each value: its statistic's, with a number where that has several."""
        names = []
        for part in self.parts:
            count = part.values.stop - part.values.start
            names += [part.title] if count == 1 else [f"{part.title} {k + 1}" for k in range(count)]
        return names


def join(parts: Sequence[Part], are_tuples: Sequence[bool], options: Options) -> JointStatistic:
    """Return several statistics as one; `are_tuples` says which kernels return a tuple."""
    statistics = [part.statistic for part in parts]
    options_of_kernels = [
        statistic.options_by_part(statistic.own_options(options))["kernel"]
        for statistic in statistics
    ]
    calls = []
    for k, (part, names, is_tuple) in enumerate(
        zip(parts, options_of_kernels, are_tuples, strict=True)
    ):
        cut = f"[{part.numbers.start}:{part.numbers.stop}]"
        call = f"f{k}(x{cut}, y{cut}{''.join(f', {name}' for name in names)})"
        calls.append(call if is_tuple else f"({call},)")
    defaults = {name: value for names in options_of_kernels for name, value in names.items()}
    parameters = "x, y" + "".join(f", {name}={default!r}" for name, default in defaults.items())
    kernel = _concatenate([statistic.kernel for statistic in statistics], parameters, calls)
    name = ",".join(part.title for part in parts)
    joint = JointStatistic(
        name,
        f"{len(parts)} statistics of the same rows.",
        kernel,
        _not_encoded,
        moments=_join_moments(parts),
        parts=tuple(parts),
    )
    return replace(joint, local=with_locals(joint, statistics).local)


def with_locals(joint: JointStatistic, statistics: Sequence[Statistic]) -> JointStatistic:
    """Return several statistics with others, or the same, as parts: with another `local` of each.

    If one has a `local`, all need one. Without it, the mean over rows of their means is the mean
    over all pairs.
    """
    widths = [part.kernel.stop - part.kernel.start for part in joint.parts]
    has_local = any(statistic.local is not None for statistic in statistics)
    if has_local:
        pairs = zip(statistics, widths, strict=True)
        statistics = [
            statistic if statistic.local is not None else replace(statistic, local=_identity(k))
            for statistic, k in pairs
        ]
    parts, calls, start = [], [], 0
    for k, (part, statistic, width) in enumerate(zip(joint.parts, statistics, widths, strict=True)):
        count = width if statistic.local is None else len(as_tuple(statistic.local((1.0,) * width)))
        parts.append(part._replace(statistic=statistic, means=slice(start, start + count)))
        calls.append(
            f"f{k}(({', '.join(f'h[{c}]' for c in range(part.kernel.start, part.kernel.stop))},))"
        )
        start += count
    local = (
        _concatenate([statistic.local for statistic in statistics], "h", calls)
        if has_local
        else None
    )
    return replace(joint, parts=tuple(parts), local=local)


def _identity(width: int) -> Any:
    # written out, as compiled code needs it
    return eval(f"lambda h: ({', '.join(f'h[{c}]' for c in range(width))},)")


def _concatenate(functions: Sequence[Any], parameters: str, calls: Sequence[str]) -> Any:
    """Return a function, to be compiled, that concatenates results of others: f0, f1, ..."""
    names = ", ".join(f"f{k}" for k in range(len(functions)))
    return eval(
        f"lambda {names}: lambda {parameters}: {' + '.join(calls)}", {"inf": inf, "nan": nan}
    )(*functions)


def _not_encoded(data: Data) -> Floats:
    raise InputError(f"several statistics encode the rows of {data.name} one by one")


def _join_moments(parts: Sequence[Part]) -> Moments | None:
    """Return the moments of statistics of means; None if one is not, since pairs serve all."""
    moments = [part.statistic.moments for part in parts]
    if None in moments or len({one.shifted is None for one in moments if one is not None}) > 1:
        return None
    known = [
        (one, part.numbers) for one, part in zip(moments, parts, strict=True) if one is not None
    ]

    def of_row(x: Observation) -> Means:
        return tuple(value for one, numbers in known for value in one.of_row(x[numbers]))

    def split(m: Means) -> list[Means]:
        ends = np.cumsum([0, *counts]).tolist()
        return [m[start:stop] for start, stop in pairwise(ends)]

    def kernel_mean(m: Means) -> Means:
        own = zip(known, split(m), strict=True)
        return tuple(value for (one, _), part in own for value in as_tuple(one.kernel_mean(part)))

    def shifted(m: Means, by: Means, one: float) -> Means:
        own = zip(known, split(m), strict=True)
        return tuple(
            value
            for (part, numbers), old in own
            for value in part.shifted(old, by[numbers], one)  # type: ignore[misc]
        )

    counts = [len(one.of_row((1.0,) * (numbers.stop - numbers.start))) for one, numbers in known]
    return Moments(of_row, kernel_mean, None if known[0][0].shifted is None else shifted)
