"""The layout of a vector of sums, in which several statistics lie side by side.

Each is there over all rows and in every stratum.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import Data
from gosta.errors import naming
from gosta.runtime.arrays import Booleans, Floats, Integers, Words
from gosta.sketches.definition import MOST_ROWS, Features, Sketch, Tables
from gosta.sketches.results import StratumResult, hidden_strata, no_result, stratum_result
from gosta.statistics.references import titles_in_words

# Binary digits of a feature after the point. Sums of 2^29 rows are exact in a float64, those of
# 2^39 in a uint64.
BITS = 24
# Features of rows are computed in a few steps from floats: of a number from 0 to 1 far less than
# this is lost.
FEATURE_ERROR = 1e-13
ROWS_PER_CHUNK = 4096


class Part(NamedTuple):
    """One statistic of a layout."""

    title: str  # as it was asked for
    sketch: Sketch
    columns: tuple[str, ...]  # of the data, in the order in which the sketch takes them
    options: dict[str, Any]  # of the encoder
    has_label: bool  # whether the label is read

    @property
    def row_key(self) -> str:
        """Return what the encoded rows depend on."""
        return json.dumps(
            [self.columns, self.options, self.has_label], default=_plain, sort_keys=True
        )

    @property
    def key(self) -> str:
        """Return what the sums depend on; parts with the same share them."""
        return json.dumps(
            [self.columns, self.options, self.sketch.key], default=_plain, sort_keys=True
        )


@dataclass(frozen=True)
class Layout:
    """The vector of sums for given settings, of which every site makes the same."""

    parts: tuple[Part, ...]
    label: str | None = None
    classes: tuple[Any, ...] = ()
    levels: tuple[tuple[str, tuple[Any, ...]], ...] = ()  # columns of the strata, and their values
    # Columns whose values together name strata: (("sex",), ("ward",)), or (("sex", "ward"),).
    groups: tuple[tuple[str, ...], ...] = ()
    # Makes the layout of the second round from the totals of this one, which only finds edges.
    next_round: Callable[[Floats], Layout] | None = field(default=None, compare=False, repr=False)
    # The layout whose encoded rows this one takes, if not its own: so rows are encoded once for
    # both rounds.
    rows: Layout | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @property
    def sketches(self) -> tuple[Sketch, ...]:
        return tuple(part.sketch for part in self.parts)

    @property
    def statistics(self) -> tuple[str, ...]:
        """Return the names of the statistics, each once."""
        return tuple(dict.fromkeys(sketch.name for sketch in self.sketches))

    @cached_property
    def _strata(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """Return the strata of each of the groups of columns: ("sex = f", "ward = a") is one."""
        named = {column: [f"{column} = {one}" for one in values] for column, values in self.levels}
        return tuple(tuple(product(*(named[one] for one in columns))) for columns in self.groups)

    @cached_property
    def strata(self) -> tuple[str, ...]:
        """Return the names of the strata, such as "sex = f, ward = a"."""
        return tuple(", ".join(parts) for strata in self._strata for parts in strata)

    @cached_property
    def _crossed(self) -> tuple[tuple[str, ...], ...]:
        """Return the groups of columns that have sums; strata of the others add up some of these.

        Without strata it is one group of no column.
        """
        return tuple(
            one for one in self.groups if not any({*one} < {*other} for other in self.groups)
        ) or ((),)

    @cached_property
    def cells(self) -> tuple[int, ...]:
        """Return how many strata each group of columns with sums has; without strata, one."""
        return tuple(prod(self._shape(columns)) for columns in self._crossed)

    def _shape(self, columns: Iterable[str]) -> tuple[int, ...]:
        levels = dict(self.levels)
        return tuple(len(levels[column]) for column in columns)

    @property
    def terms(self) -> dict[str, int]:
        """Return how many sums add up to those of a stratum, by columns such as "sex, ward".

        Those over all rows are of no column.
        """
        return {
            ", ".join(columns): prod(self._shape(self._frame(columns)))
            // prod(self._shape(columns))
            for columns in ((), *self.groups)
        }

    def _frame(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the group with sums that has certain columns, and the fewest strata."""
        having = (one for one in self._crossed if {*columns} <= {*one})
        return min(having, key=lambda one: prod(self._shape(one)))

    @cached_property
    def _offsets(self) -> dict[str, int]:
        """Return where the sums of each key begin."""
        offsets: dict[str, int] = {}
        end = 0
        for part in self.parts:
            if part.key not in offsets:
                offsets[part.key] = end
                end += part.sketch.size * sum(self.cells)
        return offsets

    @cached_property
    def _blocks(self) -> tuple[tuple[Part, int, slice], ...]:
        """Return the parts that have sums of their own.

        With each come the place where its sums begin, and its numbers of an encoded row.
        """
        if self.rows is not None:
            columns = {part.row_key: columns for part, _, columns in self.rows._blocks}
            return tuple(
                (part, self._offsets[part.key], columns[part.row_key]) for part in self.parts
            )
        blocks, column, seen = [], 0, set()
        for part in self.parts:
            if part.key not in seen:
                seen.add(part.key)
                blocks.append(
                    (part, self._offsets[part.key], slice(column, column + part.sketch.width))
                )
                column += part.sketch.width
        return tuple(blocks)

    @property
    def size(self) -> int:
        """Return how many numbers the vector has."""
        return sum(part.sketch.size for part, _, _ in self._blocks) * sum(self.cells)

    @property
    def width(self) -> int:
        """Return how many numbers an encoded row has."""
        if self.rows is not None:
            return self.rows.width
        return int(self._blocks[-1][2].stop) + len(self.levels)

    @property
    def features_per_row(self) -> int:
        of_stratum = sum(part.sketch.features_per_row for part, _, _ in self._blocks)
        return of_stratum * len(self.cells)

    @property
    def most_features(self) -> int:
        return max(self.features_per_row, self.final.features_per_row)

    @property
    def squared_change(self) -> float:
        """Return the squared length of the largest change of the vector by replacing a row."""
        if self.strata or self._has_missing:  # then a row's features can be elsewhere, or none
            return 2.0 * self.features_per_row
        return sum(part.sketch.squared_change for part, _, _ in self._blocks)

    @property
    def bits(self) -> int:
        return BITS

    @property
    def budget_share(self) -> float:
        return 1.0

    @property
    def least_feature(self) -> float:
        return 0.0

    @property
    def are_counts(self) -> bool:
        return all(part.sketch.are_counts for part, _, _ in self._blocks)

    @property
    def bins(self) -> int:
        """Return the largest number of bins of a column, also of those still to be found."""
        if self.rows is not None:
            return self.rows.bins
        return max((axis.bins for sketch in self.sketches for axis in sketch.axes), default=1)

    @property
    def rows_per_column(self) -> None:
        return None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the data that are read."""
        if self.rows is not None:
            return self.rows.columns
        names = [name for part in self.parts for name in part.columns]
        label = [self.label] if self.label and self._has_classes else []
        return tuple(dict.fromkeys([*names, *label, *(column for column, _ in self.levels)]))

    @property
    def _has_missing(self) -> bool:
        """Return whether incomplete rows count in some of the sums."""
        return any(part.sketch.has_missing for part in self.parts)

    @property
    def _has_classes(self) -> bool:
        return any(part.has_label for part in self.parts)

    @cached_property
    def fingerprint(self) -> str:
        """Return 16 hex digits that two layouts share only if they are the same."""
        parts = [
            [part.title, part.key, part.sketch.name, part.sketch.options] for part in self.parts
        ]
        content = [
            parts,
            self.label,
            self.classes,
            self.levels,
            self.groups,
            self.rows and self.rows.fingerprint,
        ]
        return _digest(content)

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """Return 16 hex digits for each block of sums: of all that they depend on but rows."""
        frame = self.rows or self
        content = (
            [part.key, part.has_label and [frame.label, frame.classes], self.levels, self.groups]
            for part, _, _ in self._blocks
        )
        return tuple(_digest(one) for one in content)

    @cached_property
    def encoding(self) -> str:
        """Return 16 hex digits that layouts share only if their encoded rows are the same.

        Bins do not matter.
        """
        frame = self.rows or self
        encoders = [[part.sketch.encode.__qualname__, part.row_key] for part, _, _ in frame._blocks]
        return _digest([encoders, frame.label, frame.classes, frame.levels])

    def encode(self, data: Data) -> Floats:
        """Return the numbers of each row that its features depend on: n × width.

        Rows in which a column is missing are left out if the data say so; otherwise they are an
        error. Sums that count missing values do so in the rows in which those are there that the
        other sums need: so there is one number of rows.
        """
        if self.rows is not None:
            return self.rows.encode(data)
        data = self._with_classes(data)
        kept, codes = self._complete(data)
        data = data.take(kept)
        data.check_row_count(len(data))
        whole = replace(data, drop_missing=False)
        blocks = [
            self._encoded(part, data if part.sketch.has_missing else whole)
            for part, _, _ in self._blocks
        ]
        return np.ascontiguousarray(np.column_stack([*blocks, codes[kept]]))

    def complete_rows(self, data: Data) -> Booleans:
        """Return which rows `encode` keeps: those with all values that are needed."""
        if self.rows is not None:
            return self.rows.complete_rows(data)
        return self._complete(self._with_classes(data))[0]

    def _with_classes(self, data: Data) -> Data:
        if self.label is not None and self._has_classes:
            data = data.select(label=self.label)
        return replace(data, declared_classes=self.classes) if self.classes else data

    def _complete(self, data: Data) -> tuple[Booleans, Floats]:
        """Return which rows have all values that are needed, and places in columns of strata."""
        codes = np.empty((len(data), len(self.levels)))
        for k, (column, levels) in enumerate(self.levels):
            codes[:, k] = data.level_codes(column, levels)
        kept = np.asarray(~np.isnan(codes).any(axis=1))
        if data.by is not None:
            kept &= ~np.isnan(data.site_codes()[0])
        if self._has_classes:
            kept &= ~np.isnan(data.class_codes()[0])
        names = list(
            dict.fromkeys(
                name
                for part in self.parts
                if not part.sketch.has_missing
                for name in data.select(part.columns).features
            )
        )
        if names:
            kept &= ~np.isnan(data.to_floats(names)).any(axis=1)
        return kept, codes

    @staticmethod
    def _encoded(part: Part, data: Data) -> Floats:
        with naming(part.title):
            return part.sketch.encode(data.select(part.columns), **part.options)

    def rows_of(self, part: Part, x: Floats) -> Floats:
        """Return the numbers of encoded rows that one statistic takes."""
        columns = next(columns for block, _, columns in self._blocks if block.key == part.key)
        return np.ascontiguousarray(x[:, columns])  # as compiled loops need it

    def sums(self, x: Floats, bits: int = BITS) -> Words:
        """Return the sums of the features of encoded rows, as integers.

        Each feature is rounded to a multiple of 2^-bits.

        What a row adds depends on nothing but this row, not on its place among the others: so the
        sums are those of a set of rows, and one row that is replaced changes them by no more than
        noise is made for.
        """
        sums = np.zeros(self.size, dtype=np.int64)
        for start in range(0, len(x), ROWS_PER_CHUNK):
            rows = x[start : start + ROWS_PER_CHUNK]
            for positions, values in self._features(rows):
                rounded = np.floor(values * 2.0**bits + 0.5)
                sums += np.bincount(positions.ravel(), rounded.ravel(), self.size).astype(np.int64)
        return sums.view(np.uint64)

    def features(self, x: Floats) -> Features:
        """Return the features of encoded rows, at their places in the vector of sums."""
        places, values = zip(*self._features(x), strict=True)
        return Features(np.hstack(places), np.hstack(values))

    def _features(self, x: Floats) -> Iterator[Features]:
        """Yield the features of encoded rows of each block, at their places in the whole vector."""
        strata = self._places(x)
        for part, offset, columns in self._blocks:
            positions, values = part.sketch.features(x[:, columns])
            for own in strata:
                yield Features(positions + (offset + own * part.sketch.size)[:, None], values)

    def _codes(self, x: Floats, columns: Sequence[str]) -> Integers:
        """Return the place of each encoded row among the strata of a group of columns."""
        codes = np.zeros(len(x), dtype=np.int64)
        names = [name for name, _ in self.levels]
        for column, values in zip(columns, self._shape(columns), strict=True):
            codes = codes * values + x[:, names.index(column) - len(names)].astype(np.int64)
        return codes

    def _places(self, x: Floats) -> list[Integers]:
        """Return the place of each encoded row's strata among all that have sums."""
        starts = np.cumsum([0, *self.cells])
        return [
            start + self._codes(x, columns)
            for start, columns in zip(starts, self._crossed, strict=False)
        ]

    def rows_by_stratum(self, x: Floats) -> Iterator[Floats]:
        """Yield encoded rows: all, and those of each stratum."""
        yield x
        for columns in self.groups:
            codes = self._codes(x, columns)
            for k in range(prod(self._shape(columns))):
                yield x[codes == k]

    def block_features(self, x: Floats) -> Iterator[tuple[str, Integers]]:
        """Yield the fingerprint of each block of sums, and the features of each encoded row in it.

        These are places in the block, and multiples of 2^-24, side by side. Two rows are the same
        exactly if each adds the same to the block's sums. The place of a feature that is 0 is −1.
        """
        strata = self._places(x)
        for name, (part, _, columns) in zip(self.blocks, self._blocks, strict=True):
            width = (len(strata) + 1) * part.sketch.features_per_row
            found = np.empty((len(x), width), dtype=np.int64)
            for start in range(0, len(x), ROWS_PER_CHUNK):
                chunk = slice(start, start + ROWS_PER_CHUNK)
                positions, values = part.sketch.features(x[chunk, columns])
                rounded = np.floor(values * 2.0**BITS + 0.5)
                places = [positions + own[chunk, None] * part.sketch.size for own in strata]
                shown = [np.where(rounded > 0, own, -1) for own in places]
                found[chunk] = np.hstack([*shown, rounded])
            yield name, found

    def _totals(self, totals: Floats) -> Iterator[tuple[Part, str, Floats, int]]:
        """Yield each statistic's totals, overall and by stratum, and how many each is a sum of."""
        for part in self.parts:
            offset, size = self._offsets[part.key], part.sketch.size
            block = totals[offset : offset + size * sum(self.cells)].reshape(-1, size)
            names = iter(("", *self.strata))
            for columns in ((), *self.groups):
                for added in self._added_up(block, columns):
                    yield part, next(names), added.sum(axis=0), len(added)

    def _added_up(self, block: Floats, columns: tuple[str, ...]) -> Floats:
        """Return the sums of each stratum of a group of columns: strata × sums to add × size."""
        frame = self._frame(columns)
        start = sum(self.cells[: self._crossed.index(frame)])
        sums = block[start : start + prod(self._shape(frame))]
        sums = sums.reshape(*self._shape(frame), -1)
        first = np.moveaxis(sums, [frame.index(one) for one in columns], range(len(columns)))
        return first.reshape(prod(self._shape(columns)), -1, block.shape[1])

    def results(
        self,
        totals: Floats,
        min_cell: int = 0,
        noise_variance: float = 0.0,
        level: float | None = None,
        bits: int = BITS,
    ) -> list[StratumResult]:
        """Return the results for totals over all rows in units of features.

        For each statistic these are all rows, then strata.

        Without noise, results of groups (classes, clusters, strata) with fewer rows than `min_cell`
        have no value, and bins with fewer are merged with neighbours where a result shows bins.
        `noise_variance` is that of each total, `level` that of the intervals, `bits` what sites
        rounded to.
        """
        rounding = 2.0 ** -(bits + 1) + FEATURE_ERROR
        all_totals = list(self._totals(np.asarray(totals, dtype=np.float64)))
        hidden, sketches = dict[str, str](), {}
        if noise_variance == 0 and min_cell > 1:
            hidden = self._hidden(all_totals, min_cell)
            sketches = self._beside(all_totals, hidden, min_cell)
        results = []
        with np.errstate(all="ignore"):
            for part, stratum, own, terms in all_totals:
                if stratum in hidden:
                    results.append(no_result(part.title, stratum, hidden[stratum]))
                    continue
                noise = noise_variance * terms
                result = stratum_result(
                    part.title,
                    stratum,
                    sketches.get((part.title, stratum), part.sketch),
                    own,
                    min_cell=min_cell,
                    noise=noise,
                    level=level,
                    rounding=rounding,
                )
                results.append(result)
        return results

    def _hidden(
        self, totals: Sequence[tuple[Part, str, Floats, int]], min_cell: int
    ) -> dict[str, str]:
        """Return the strata to hide, and why: of all statistics, as all show a number of rows."""
        groups: dict[str, list[Floats]] = {}
        for part, stratum, own, _ in totals:
            groups.setdefault(stratum, []).append(part.sketch.groups_of(own))
        del groups[""]
        return hidden_strata(
            {name: np.concatenate(parts) for name, parts in groups.items()},
            {name: float(parts[0].sum()) for name, parts in groups.items()},
            [(self._named.get(whole, ""), members) for whole, members in self._lines()],
            min_cell,
        )

    def _beside(
        self,
        totals: Sequence[tuple[Part, str, Floats, int]],
        hidden: Mapping[str, str],
        min_cell: int,
    ) -> dict[tuple[str, str], Sketch]:
        """Return the sketch of each statistic for each stratum that is shown, and for all rows.

        Strata that are hidden add up to what is left of the rows of which they are a part.
        """
        found: dict[tuple[str, str], Sketch] = {}
        shown = [name for name in ("", *self.strata) if name not in hidden]
        columns = [name for name, _ in self.levels]
        for part in self.parts:
            own = {stratum: sums for other, stratum, sums, _ in totals if other is part}
            rows, groups = [own[name] for name in shown], []
            for whole, names in self._lines():
                name = self._named.get(whole, "")
                if name in hidden or (whole and not name):
                    continue
                places = [shown.index(name) for name in names if name in shown]
                left = [own[name] for name in names if name in hidden]
                if left:
                    places.append(len(rows))
                    rows.append(np.sum(left, axis=0))
                groups.append((shown.index(name), places))
            made = part.sketch.beside(Tables(rows, groups, len(shown), columns, hidden), min_cell)
            found |= {(part.title, name): one for name, one in zip(shown, made, strict=True)}
        return found

    @cached_property
    def _named(self) -> dict[frozenset[str], str]:
        """Return the names of strata by their values."""
        return {frozenset(parts): ", ".join(parts) for own in self._strata for parts in own}

    def _lines(self) -> list[tuple[frozenset[str], tuple[str, ...]]]:
        """Return strata that together are all rows of some values of columns, or all rows.

        Of combined columns, the number of rows of each value of one of them is told by Table 1.
        """
        singles = {frozenset([value]) for parts in self._named for value in parts}
        lines = []
        for strata in self._strata:
            for whole in sorted({frozenset[str](), *self._named, *singles}, key=sorted):
                members = tuple(", ".join(parts) for parts in strata if whole < {*parts})
                lines.append((whole, members))
        return [line for line in lines if line[1]]

    def is_plausible(self, totals: Floats, tolerance: float, most_rows: float = MOST_ROWS) -> bool:
        """Return whether these can be totals over `most_rows` rows at most.

        Each has an error of at most `tolerance`.

        Sums of wrong masks are random numbers of 64 bits, of which this takes none for a total.
        """
        if not np.isfinite(totals).all():
            return False
        counts: dict[str, list[tuple[float, int]]] = {}
        for part, stratum, t, terms in self._totals(np.asarray(totals, dtype=np.float64)):
            if not part.sketch.is_plausible(t, tolerance * terms):
                return False
            alike = counts.setdefault(stratum, [])
            alike.append((part.sketch.count(t), part.sketch.size * terms))
        for counted in counts.values():
            rows, terms_of = np.array(counted).T
            error = tolerance * 2 * np.sqrt(terms_of.max())
            if np.ptp(rows) > 0.5 + error or rows.max() > most_rows + error:
                return False
        return True

    def few_rows(self, x: Floats) -> str:
        """Return "": every row has the same weight."""
        return ""

    def following(self, totals: Floats, min_cell: int = 0) -> Layout | None:
        """Return the layout of the second round, with edges that the totals of this one give.

        It is None if this layout is final.
        """
        return None if self.next_round is None else self.next_round(totals)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return the range of each column that has one."""
        axes = (axis for sketch in self.sketches for axis in sketch.axes)
        return {axis.column: (axis.low, axis.high) for axis in axes if np.isfinite(axis.low)}

    @property
    def final(self) -> Layout:
        """Return the layout of the last round, with bins of equal width until edges are found."""
        return self if self.rows is None else self.rows

    @property
    def shown(self) -> str:
        return ""

    @property
    def numbers(self) -> str:
        """Return how many numbers a site sends: "64", or "256, then at most 128" in two rounds."""
        return f"{self.size:,}" + (
            f", then at most {self.rows.size:,}" if self.rows is not None else ""
        )

    def describe(self) -> dict[str, str]:
        """Return what is summed, in words: in both rounds, if there are two."""
        final, first = self.final, [axis.column for sketch in self.sketches for axis in sketch.axes]
        axes = {
            axis.column: axis
            for sketch in final.sketches
            for axis in sketch.axes
            if np.isfinite(axis.low)
        }
        per_row = f"{self.features_per_row}" + f", then {final.features_per_row}" * (
            self.rows is not None
        )
        lines = {
            "statistics": titles_in_words([part.title for part in final.parts]),
            "rounds": f"two: the first one finds edges of bins of {', '.join(first)}"
            * (self.rows is not None),
            "columns": ", ".join(self.columns),
            "ranges": ", ".join(
                f"{name} {axis.low:g} to {axis.high:g}" for name, axis in axes.items()
            ),
            "bins": ", ".join(
                f"{name} {axis.bins}" for name, axis in axes.items() if axis.bins > 1
            ),
            "strata": "; ".join(
                [f"{column}: {', '.join(map(str, levels))}" for column, levels in final.levels]
                + [f"each of {', '.join(map('+'.join, final.groups))}"] * (len(final.groups) > 1)
            ),
            "numbers": f"{self.numbers}; a row adds to {per_row} of them",
            "layout": self.fingerprint,
        }
        return {name: text for name, text in lines.items() if text}


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, default=_plain, sort_keys=True).encode()).hexdigest()[
        :16
    ]


def _plain(value: Any) -> Any:
    """Return a value that JSON does not know in a form that it does."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return vars(value) if hasattr(value, "__dict__") else str(value)
