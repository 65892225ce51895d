"""Data: rows of named columns, the form in which every statistic takes its input."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import cells
from gosta.datasets.class_names import event_flags, is_known_pair
from gosta.datasets.columns import Columns, as_column, match_key, value_text
from gosta.datasets.roles import could_play, declared_roles, fill_roles
from gosta.datasets.row_names import RowNames
from gosta.errors import DataError, InputError, shorten, unknown
from gosta.runtime.arrays import Booleans, Floats
from gosta.views import html

MOST_UNKNOWN = 10  # values that an error lists
DROP_HINT = "drop those rows with drop_missing=True (--drop-missing)"


class SeveralScoresError(DataError):
    """Several scores where a statistic takes one."""


@dataclass
class ReadLog:
    """What was read of data, and assumed in place of the user, while rows were encoded."""

    columns: dict[str, None] = field(default_factory=dict)  # that were read, in that order
    # By name, such as "positive": see `gosta.statistics.assumptions`.
    assumed: dict[str, Any] = field(default_factory=dict)

    def update(self, other: ReadLog) -> None:
        """Add what another log has."""
        self.columns |= other.columns
        self.assumed |= other.assumed


@dataclass(frozen=True)
class Data:
    """Named columns of equal length, and the roles of some of them.

    Examples
    --------
    >>> import gosta
    >>> data = gosta.datasets.load({"risk": [0.2, 0.9, 0.4], "died": ["no", "yes", "no"]})
    >>> data
    Data('the data', 3 rows, columns: risk, died)
    >>> data.select(label="died").features
    ('risk',)
    """

    name: str  # of the data, in messages
    columns: Columns  # one array per column, numbers or text
    label: str | None = None  # the column of classes
    score: str | None = None  # the column of scores
    # several columns of scores, of models that are compared; then there is no single one
    scores: tuple[str, ...] = ()
    time: str | None = None  # the column of times to an event
    event: str | None = None  # the column that says whether the event was seen then
    by: str | None = None  # the column of the sites that hold the rows
    weights: str | None = None  # the column of the rows' weights
    # a row's coordinates; by default all columns without a role
    features: tuple[str, ...] = ()
    # for statistics that need fewer columns than there are, in this order
    default_columns: tuple[str, ...] = ()
    # by the user: then `features` are used, never `default_columns`
    has_selected_columns: bool = False
    # Whether rows with missing or infinite values are left out; otherwise they are an error.
    drop_missing: bool = False
    # all classes in order, if declared beforehand; the rows need not have all
    declared_classes: tuple[Any, ...] = ()
    # whether other sites have more rows: then too few for a value are allowed
    is_partial: bool = False
    # the column of the files that the rows were read from, if there are several
    files: str | None = None
    # whether a file's first line was taken for the names of its columns; None: no file
    has_header: bool | None = None
    doubts: tuple[str, ...] = ()  # about how a file was read, each with the way out
    # what the rows are called in messages
    row_names: RowNames = field(default=RowNames(), compare=False, repr=False)
    # Where reading of these data, and of what is derived from them, is noted; None: nowhere.
    log: ReadLog | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.features:
            roles = {self.label, self.by, self.weights, self.files, *self.declared_roles.values()}
            rest = tuple(c for c in self.columns if c not in roles)
            object.__setattr__(self, "features", rest)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __repr__(self) -> str:
        return f"Data({self.name!r}, {len(self)} rows, columns: {shorten(list(self.columns))})"

    def _repr_html_(self) -> str:
        roles = {
            role: getattr(self, role)
            for role in ("label", "score", "time", "event", "by", "weights")
            if getattr(self, role) is not None
        }
        if self.scores:
            roles["scores"] = ", ".join(self.scores)
        rows = {"rows": f"{len(self):,}", "features": shorten(list(self.features), 12), **roles}
        return html.table(rows.items(), caption=f"Data: {self.name}")

    def head(self, n: int) -> Data:
        """Return the first n rows."""
        if not 1 <= n <= len(self):
            raise InputError(
                f"n = {n} rows requested, {self.name} has {len(self)}",
                remedy=f"take 1 to {len(self)}",
            )
        return self.take(slice(n))

    def take(self, rows: Any) -> Data:
        """Return some of the rows: a slice, positions, or a boolean for each row."""
        taken = {k: v[rows] for k, v in self.columns.items()}
        names = self.row_names.take(rows, len(self))
        return dataclasses.replace(self, columns=taken, row_names=names)

    def shuffle(self, seed: int) -> Data:
        """Return the rows in a random order."""
        return self.take(np.random.default_rng(seed).permutation(len(self)))

    def select(
        self,
        columns: object = None,
        label: object = None,
        score: object = None,
        drop_missing: bool = False,
        time: object = None,
        event: object = None,
    ) -> Data:
        """Return the rows with the columns that the user wants in each role.

        Columns are given by name, or by position if none has that number as its name; label, score,
        time and event also as values. A list of names is several scores.
        """
        data = dataclasses.replace(self, drop_missing=drop_missing or self.drop_missing)
        if label is not None:
            data = data._with("label", label)
        if isinstance(score, list | tuple) and all(isinstance(one, str) for one in score):
            data = data._with_scores(score)
        elif score is not None:
            data = dataclasses.replace(data, scores=())._with("score", score)
        for role, given in {"time": time, "event": event}.items():
            if given is not None:
                data = data._with(role, given)
        if columns is None:
            return data
        if score is not None:
            raise InputError("score and columns are both given: give one of the two")
        wanted = (
            [columns]
            if isinstance(columns, str) or not isinstance(columns, Iterable)
            else list(columns)
        )
        if not wanted:
            raise InputError("columns is empty: name at least one column")
        names = tuple(map(data._column, wanted))
        if len(set(names)) < len(names):
            raise InputError(f"columns = {shorten(names)}: give each column once")
        return dataclasses.replace(data, features=names, has_selected_columns=True)

    def with_sites(self, by: object, exclude: bool) -> Data:
        """Return the rows with a site for each, given by a column, by several or by values.

        If it is excluded, the column is not a feature unless the user selected it.
        """
        names = self._columns_of_groups(by)
        data = self._with("by", by) if len(names) < 2 else self._grouped_by(names, exclude)
        return (
            data
            if exclude and not self.has_selected_columns
            else dataclasses.replace(data, features=self.features)
        )

    def _columns_of_groups(self, by: object) -> list[str]:
        """Return the names of several columns, given as a list or separated by commas."""
        if isinstance(by, str) and by not in self.columns:
            by = by.split(",")
        is_list = isinstance(by, list | tuple) and all(isinstance(one, str) for one in by)
        names = [str(one).strip() for one in by] if is_list else []  # type: ignore[attr-defined]
        is_known = len(names) != len(self) or set(names) <= set(self.columns)
        return [self._column(name) for name in names] if len(names) > 1 and is_known else []

    def _grouped_by(self, names: Sequence[str], exclude: bool) -> Data:
        """Return the rows with a site for each combination of values of several columns."""
        combined, texts = np.zeros(len(self)), [""]
        for name in names:
            codes, values = self._positions("by", name)
            combined = combined * len(values) + codes
            texts = [
                f"{text}, {value_text(v)}" if text else value_text(v)
                for text in texts
                for v in values
            ]
        text_of = {float(place): text for place, text in enumerate(texts)}
        column = np.empty(len(self), dtype=np.dtype(object, metadata={"order": texts}))
        column[:] = [text_of.get(code) for code in combined.tolist()]
        title = ", ".join(names)
        left = names if exclude and not self.has_selected_columns else ()
        return dataclasses.replace(
            self,
            by=title,
            columns={**self.columns, title: column},
            features=tuple(name for name in self.features if name not in left),
        )

    def with_weights(self, weights: object) -> Data:
        """Return the rows with weights, given by a column, which is no feature then, or values."""
        data = self._with("weights", weights)
        rest = tuple(
            name for name in self.features if name != data.weights or self.has_selected_columns
        )
        return dataclasses.replace(data, features=rest)

    def row_weights(self) -> Floats | None:
        """Return the weight of each row, NaN where it is missing; None if rows have no weights."""
        if self.weights is None:
            return None
        weights = self.to_floats([self.weights])[:, 0]
        if (weights < 0).any():
            low = np.nanargmin(weights)
            place = f"in {self.row_names[low]}"
            raise DataError(
                f"weights column {self.weights!r} holds {weights[low]:g} {place}",
                remedy="weights are not negative",
            )
        if not self.is_partial and not (weights > 0).any():
            raise DataError(f"weights column {self.weights!r} holds no weight above 0")
        return weights

    @property
    def declared_roles(self) -> dict[str, str]:
        """The columns of roles that statistics name, where these were declared."""
        return declared_roles(self.scores or self.score, self.time, self.event)

    def _with_scores(self, names: Sequence[str]) -> Data:
        """Return the rows with one or several columns of scores."""
        columns = tuple(map(self._column, names))
        if not columns or len(set(columns)) < len(columns):
            raise InputError(f"score = {shorten(columns)!r}: give each column of scores once")
        is_one = len(columns) == 1
        score, scores = (columns[0], ()) if is_one else (None, columns)
        return dataclasses.replace(self, score=score, scores=scores, features=())

    def require_one_score(self) -> None:
        """Raise an error if there are several scores, and one is needed."""
        if self.scores and not self.has_selected_columns:
            raise SeveralScoresError(
                f"takes one score, and there are {len(self.scores)} ({shorten(self.scores)})",
                remedy=f"name one beside the statistic, as in auc:{self.scores[0]}",
            )

    def _with(self, role: str, given: object) -> Data:
        """Return the rows with a column in a role, such as label or weights, made if needed."""
        if isinstance(given, str | int | np.integer):
            name = self._column(given)
            if name == getattr(self, role):
                return self
            changes: dict[str, Any] = {role: name, "features": ()}
        else:
            values = as_column(role, given)
            if len(values) != len(self):
                raise DataError(
                    f"{role} has {len(values)} values, {self.name} has {len(self)} rows"
                )
            candidates = (role, *(f"{role}-{k}" for k in range(len(self.columns))))
            name = next(free for free in candidates if free not in self.columns)
            changes = {role: name, "columns": {**self.columns, name: values}}
        return dataclasses.replace(self, **changes)

    def _column(self, name: object) -> str:
        if isinstance(name, bool) or not isinstance(name, str | int | np.integer):
            raise InputError(f"{name!r} is neither a column's name nor its position")
        if str(name) in self.columns:
            return str(name)
        if isinstance(name, str):
            numbered = re.compile(rf"{re.escape(name)}\.\d+")  # names that were there twice
            meant = list(filter(numbered.fullmatch, self.columns))
            error = unknown(f"column of {self.name}", name, self.columns, meant=meant)
            error.remedy = "; ".join(self.doubts)
            raise error
        if not -len(self.columns) <= name < len(self.columns):
            raise InputError(
                f"column {name} requested, {self.name} has {len(self.columns)} columns"
            )
        return list(self.columns)[name]

    def columns_for(self, *roles: str) -> Floats:
        """Return a column for each role: selected, declared, named like it, or the default one.

        Roles that nothing says may be the other columns, in order, if there are as many of these.
        """
        if "score" in roles:
            self.require_one_score()
        names = self._selected(roles) if self.has_selected_columns else self._found(roles)
        if names is None:
            raise self._missing_roles(roles)
        return self.to_floats(names)

    def _selected(self, roles: Sequence[str]) -> tuple[str, ...] | None:
        """Return selected columns for all roles, or for those but declared times and events."""
        if len(self.features) == len(roles):
            return self.features
        declared = {k: v for k, v in self.declared_roles.items() if k in ("time", "event")}
        return fill_roles(roles, declared, self.features)

    def _found(self, roles: Sequence[str]) -> tuple[str, ...] | None:
        named = {role: role for role in roles if role in self.columns}
        known = {
            role: name for role, name in (named | self.declared_roles).items() if role in roles
        }
        if not known and len(self.default_columns) >= len(roles):
            return self.default_columns[: len(roles)]
        rest = [name for name in self.features if name not in known.values()]
        return fill_roles(roles, known, rest)

    def _missing_roles(self, roles: Sequence[str]) -> DataError:
        """Return the error for columns that do not fit the roles."""
        count = len(roles)
        needed = "one column" if count == 1 else f"columns for {', '.join(roles)}"
        given = (
            f"{'selected are' if self.has_selected_columns else f'{self.name} has'} "
            f"{len(self.features)}"
        )
        # Those that are there already first, then others.
        example = [
            name for name in dict.fromkeys([*self.features, *self.columns]) if name != self.label
        ][:count]
        advice = f"select {count}, as with columns={example!r} (--columns {','.join(example)})"
        if len(example) < count:
            advice = "use other data"
        elif {"time", "event"} & set(roles):
            advice = "; ".join(filter(None, map(self._advice, roles)))
        listed = shorten(self.features, 12) or "none"
        return DataError(f"needs {needed}", remedy=f"{given} ({listed}); {advice}")

    def _advice(self, role: str) -> str:
        """Return how to name the column of a role, with those that could play it."""
        if role in self.declared_roles or role in self.columns:
            return ""
        likely = shorten(could_play(self, role), 3)
        option = "score" if role in ("first", "second") else role
        return f"name the {role} with --{option}" + (f" ({likely}?)" if likely else "")

    def to_floats(self, names: Sequence[str]) -> Floats:
        """Return columns as floats, n × len(names); NaN where a row is to be dropped."""
        if not names:
            raise DataError(
                f"{self.name} has no columns besides label and score",
                remedy="select some with columns=...",
            )
        out = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            out[:, k] = self._floats(name)
            self._note_column(name)
        return out

    def _floats(self, name: str) -> Floats:
        column = self._in_numbers(name)
        if column.dtype.kind in "biuf":
            values = column.astype(np.float64)
            if (
                column.dtype.kind in "iu"
                and (large := np.abs(values) >= cells.EXACT_INTEGERS).any()
            ):
                raise cells.rounded(column[large.argmax()], name, self.row_names[large.argmax()])
        elif column.dtype.kind in "OUS":
            values = cells.to_floats(name, column, self.row_names)
        elif column.dtype.kind == "M":
            raise DataError(
                f"column {name!r} holds dates ({column.dtype}) where numbers are needed",
                remedy=cells.DATE_HINT,
            )
        else:
            raise DataError(f"column {name!r} holds {column.dtype} values where numbers are needed")
        bad = ~np.isfinite(values)
        if bad.any():
            if not self.drop_missing:
                holes = f"{bad.sum()} missing or infinite value{'s' if bad.sum() > 1 else ''}"
                raise DataError(
                    f"column {name!r} has {holes} (first in {self.row_names[bad.argmax()]})",
                    remedy=DROP_HINT,
                )
            values[bad] = np.nan
        return values

    def _in_numbers(self, name: str) -> NDArray[Any]:
        """Return a column; the names of events, such as yes and no, as 1 and 0."""
        column = self.columns[name]
        if name != (self.event or "event") or column.dtype.kind not in "OU":
            return column
        flags = event_flags(column.tolist())
        if flags is None:
            return column
        seen = {value_text(value) for value, flag in zip(column, flags, strict=True) if flag == 1}
        self.note_assumption(event=", ".join(sorted(seen)))
        return np.array(flags)

    def check_row_count(self, rows: int) -> None:
        """Raise an error for too few complete rows."""
        if rows < (1 if self.is_partial else 2):
            least = "one complete row" if self.is_partial else "two complete rows"
            raise DataError(f"needs at least {least}, {self.name} has {rows}")

    def logged(self) -> tuple[Data, ReadLog]:
        """Return the rows with a new log of what is read of them, and that log."""
        log = ReadLog()
        return dataclasses.replace(self, log=log), log

    def _note_column(self, name: str) -> None:
        if self.log is not None:
            self.log.columns[name] = None

    def note_assumption(self, **assumed: Any) -> None:
        """Note what is assumed where the user had not said it, if anybody asked for it."""
        if self.log is not None:
            self.log.assumed |= assumed

    def complete_rows(self, columns: Iterable[str]) -> Booleans:
        """Return which rows have a value in some columns, and a site where rows have one."""
        kept = (
            np.ones(len(self), dtype=np.bool_)
            if self.by is None
            else ~np.isnan(self.site_codes()[0])
        )
        for name in columns:
            values = self.class_codes()[0] if name == self.label else self._floats(name)
            kept &= ~np.isnan(values)
        return kept

    def class_codes(self) -> tuple[Floats, list[Any]]:
        """Return each row's position in the ordered classes (NaN: missing), and these classes."""
        if self.label is None:
            remedy = (
                f"name one of these with label=... (--label ...): {shorten(list(self.columns), 12)}"
            )
            raise DataError(
                "needs labels", remedy=f"{self.name} has no column called 'label', {remedy}"
            )
        if self.is_partial and not self.declared_classes:
            how = "in one order: classes = [...] in [network] (gosta network init --classes a,b)"
            raise DataError(
                f"a site's rows need not have all classes, so declare these for all sites, {how}"
            )
        self._note_column(self.label)
        codes, classes = self._positions("label", self.label)
        if not self.declared_classes:
            return self._positive_last(codes, classes)
        where = f"label column {self.label!r}"
        declared = list(self.declared_classes)
        return self._among(declared, codes, classes, where, "class", "classes"), declared

    def _positive_last(self, codes: Floats, classes: list[Any]) -> tuple[Floats, list[Any]]:
        """Return two classes with the positive one last, where both of their names say it."""
        if len(classes) != 2:
            return codes, classes
        kind = self.columns[self.label or ""].dtype
        has_order = "order" in dict(kind.metadata or {})  # as categories of a data frame have it
        names = [value_text(one) for one in reversed(classes)]
        if has_order or not is_known_pair(*names):
            return codes, classes
        return 1.0 - codes, classes[::-1]

    def level_codes(self, column: str, levels: Sequence[Any], setting: str = "strata") -> Floats:
        """Return each row's position among the declared values of a column; NaN: missing."""
        name = self._column(column)
        self._note_column(name)
        where = f"column {name!r}"
        return self._among(levels, *self._positions(setting, name), where, "value", setting)

    def _among(
        self,
        declared: Sequence[Any],
        codes: Floats,
        found: list[Any],
        where: str,
        what: str,
        setting: str,
    ) -> Floats:
        """Return the positions of values among the declared ones, in any form of a value."""
        position = {match_key(value): k for k, value in enumerate(declared)}
        named = shorten([value_text(value) for value in declared])
        plural = "classes" if what == "class" else f"{what}s"
        if len(position) < len(declared):
            raise InputError(f"{setting} = {named}: give each {what} once")
        others = [
            f"{value_text(value)!r} (first in {self.row_names[np.argmax(codes == k)]})"
            for k, value in enumerate(found)
            if match_key(value) not in position
        ]
        if others:
            is_one = len(others) == 1
            listed = f"the {what if is_one else plural} {shorten(others, MOST_UNKNOWN)}"
            raise DataError(
                f"{where} has {listed}, {'which is none' if is_one else 'none'} of those declared "
                f"for all sites: {named}",
                remedy=f"say what {'it stands' if is_one else 'each stands'} for "
                "(--value COLUMN:VALUE=MEANING, --na-values VALUE), correct the "
                f"row{'' if is_one else 's'}, or declare {'it' if is_one else 'them'} for all "
                f"sites ({setting})",
            )
        positions = np.array([position[match_key(value)] for value in found], dtype=np.float64)
        declared_codes = np.full(len(codes), np.nan)
        present = ~np.isnan(codes)
        declared_codes[present] = positions[codes[present].astype(np.int64)]
        return declared_codes

    def levels_of(self, column: str) -> list[Any]:
        """Return the different values of a column, in order; of no and yes, yes is the last."""
        codes, values = self._positions("factor", column)
        return dataclasses.replace(self, label=column)._positive_last(codes, values)[1]

    def site_codes(self) -> tuple[Floats, list[Any]]:
        """Return each row's position in the ordered sites (NaN: missing), and these sites."""
        assert self.by is not None
        return self._positions("by", self.by)

    def _positions(self, role: str, name: str) -> tuple[Floats, list[Any]]:
        try:
            codes, values = _distinct(self.columns[name])
        except TypeError:
            raise DataError(
                f"{role} column {name!r} holds neither numbers nor text in UTF-8"
            ) from None
        missing = np.isnan(codes)
        if missing.any() and not self.drop_missing:
            first = f"first in {self.row_names[missing.argmax()]}"
            raise DataError(
                f"{role} column {name!r} has {missing.sum()} missing values ({first})",
                remedy=DROP_HINT,
            )
        return codes, values

    def class_signs(self, positive: object = None) -> Floats:
        """Return +1 for rows of the positive class, −1 for others, NaN without a label."""
        codes, classes = self.class_codes()
        place, assumed = self._positive_place(classes, positive)
        self.note_assumption(**assumed)
        signs = np.where(codes == place, 1.0, -1.0)
        signs[np.isnan(codes)] = np.nan
        return signs

    def assumed_classes(self, positive: object = None) -> dict[str, Any]:
        """Return which class is the positive one, which are not, and whether the user named it."""
        return self._positive_place(self.class_codes()[1], positive)[1]

    def _positive_place(self, classes: list[Any], positive: object) -> tuple[int, dict[str, Any]]:
        """Return the position of the positive class, and what is assumed about the classes."""
        where, names = f"label column {self.label!r}", [value_text(c) for c in classes]
        if len(names) < 2:
            raise DataError(f"needs two classes, {where} has {shorten(names) or 'none'} only")
        if positive is None and len(names) > 2:
            remedy = (
                "name the one to set against the rest with positive=... (--positive ...), or say "
                "which stands for a missing value (--na-values ...)"
            )
            raise DataError(
                f"needs two classes, {where} has {len(names)} ({shorten(names)})", remedy=remedy
            )
        place = len(names) - 1 if positive is None else _position(positive, classes, names, where)
        others = names[:place] + names[place + 1 :]
        return place, {
            "positive": names[place],
            "negative": others,
            "positive_was_given": positive is not None,
        }


def _distinct(column: NDArray[Any]) -> tuple[Floats, list[Any]]:
    """Return positions in the ordered distinct values (NaN: missing), and these values."""
    if column.dtype != object:
        values, inverse = np.unique(column, return_inverse=True)
        return np.where(column == column, inverse, np.nan), values[values == values].tolist()
    order = dict(column.dtype.metadata or {}).get("order")  # of a data frame's categories
    present = (value for value in set(column.tolist()) if value is not None and value == value)
    classes = sorted(present, key=order.index if order else _sort_key)
    index = {value: k for k, value in enumerate(classes)}
    return np.array([index.get(v, np.nan) for v in column.tolist()], dtype=np.float64), classes


def _sort_key(value: Any) -> tuple[int, Any]:
    """Return a sort key: numbers by size, then text and other values by their text."""
    if isinstance(value, bytes):
        raise TypeError
    return (0, value) if isinstance(value, Real | Decimal | np.bool_) else (1, str(value))


def _position(positive: Any, classes: list[Any], names: list[str], where: str) -> int:
    for known, wanted in (
        (classes, positive),
        (names, value_text(positive)),
    ):  # by value, or by its text
        with contextlib.suppress(TypeError, ValueError):
            return known.index(wanted)
    raise unknown(f"class of {where}", value_text(positive), names)
