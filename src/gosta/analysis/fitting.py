"""Which statistics fit the columns of a table, and with which columns.

That is a guess by types, values and names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gosta.datasets.data import DROP_HINT, Data
from gosta.errors import GostaError
from gosta.measures import MEASURES
from gosta.measures.intervals import estimate as measured
from gosta.statistics import STATISTICS
from gosta.statistics.assumptions import ORDERED_BY_POSITIVE, likely_positive

MOST_CLASSES = 10  # different values of a column of classes, each in two rows on average
LABELS = r"label|class|diagnosis|outcome|target|ill|sick|died|dead|death|case|y"
SCORES = r"score|risk|prob\w*|predict\w*|prediction|p"
TIMES = r"time\w*|days|months|years|duration|follow.?up|survival\w*"
EVENTS = r"event|status|died|dead|death|observed"
IDENTIFIERS = r"(.*[ _-])?(id|nr|index|number)"


class Fit(NamedTuple):
    """A statistic, and the arguments with which it fits the data; or the reason why it does not."""

    name: str
    summary: str
    arguments: list[str]
    reason: str


@dataclass(frozen=True)
class Roles:
    """The columns that could play each role, the likeliest first."""

    numbers: list[str]  # of many values, not identifiers
    scores: list[str]
    binary: list[str]  # of two classes
    classes: list[str]  # of two to ten
    times: list[str]
    events: list[str]  # 0 and 1


class Choice(NamedTuple):
    """Columns for a statistic: as arguments of `Data.select`."""

    columns: tuple[str, ...] = ()
    label: str | None = None
    score: str | None = None


def fitting(data: Data) -> list[Fit]:
    """Return all statistics, those that fit the data first."""
    roles = _roles(data)
    fits = []
    for name in [*STATISTICS, *MEASURES]:
        statistic: Any = STATISTICS.get(name) or MEASURES[name]
        if not statistic.encode.__module__.startswith("gosta."):
            continue
        fits.append(_fit(data, name, str(statistic.summary), statistic.encode, roles))
    return sorted(fits, key=lambda fit: bool(fit.reason))


def _fit(data: Data, name: str, summary: str, encode: Callable[..., Any], roles: Roles) -> Fit:
    needs, choices = COLUMNS_BY_ENCODER.get(
        encode.__name__, ("columns that are not known", _no_columns)
    )
    reason = ""
    for choice in choices(roles):
        for drop in (False, True):
            selected = data.select(choice.columns or None, choice.label, choice.score, drop)
            try:
                _check_fit(selected, name)
            except GostaError as error:
                reason = reason or error.reason
                if error.remedy == DROP_HINT:
                    continue
                break
            return Fit(
                name,
                summary,
                [*_arguments(choice), *_positive(selected, name), *["--drop-missing"] * drop],
                "",
            )
    if len(data) < 2:
        return Fit(name, summary, [], "needs two rows; the data has one")
    return Fit(name, summary, [], reason or f"needs {needs}")


def _check_fit(data: Data, name: str) -> None:
    """Raise an error if the columns do not fit the statistic."""
    if name in STATISTICS:
        STATISTICS[name].encode_rows(data, {})
    else:
        measured(MEASURES[name], MEASURES[name].encode_rows(data, {}).x)


def _arguments(choice: Choice) -> list[str]:
    words = []
    if choice.columns:
        has_comma = any("," in column for column in choice.columns)
        listed = choice.columns if has_comma else [",".join(choice.columns)]
        words += [word for text in listed for word in ("--columns", text)]
    words += ["--score", choice.score] if choice.score is not None else []
    return words + (["--label", choice.label] if choice.label is not None else [])


def _positive(data: Data, name: str) -> list[str]:
    """Return the argument that names the positive class, where another would be taken."""
    if name not in ORDERED_BY_POSITIVE:
        return []
    likely = likely_positive(data.assumed_classes())
    return [] if likely is None else ["--positive", likely]


def _roles(data: Data) -> Roles:
    """Guess the roles of columns: those that the user selected, or all."""
    names = (
        data.features
        if data.has_selected_columns
        else [name for name in data.columns if name != data.files]
    )
    values = {name: _values(data, name) for name in names}
    kinds = {
        name: len(set(column[column == column].tolist()))
        for name, column in values.items()
        if column is not None
    }
    numeric = {name for name in kinds if _is_numeric(data, name)}
    classes = [
        name for name, count in kinds.items() if 2 <= count <= min(MOST_CLASSES, len(data) // 2)
    ]
    events = [name for name in classes if name in numeric and _is_event(data, name)]
    numbers = [
        n
        for n in names
        if n in numeric and kinds[n] > 2 and n != data.label and not _matches(n, IDENTIFIERS)
    ]
    plain = [name for name in numbers if name not in classes] or numbers
    times = [name for name in plain if _matches(name, TIMES)]
    events = _by_name(events, EVENTS, None)
    # Beside a time, a column of events is no column of classes, unless there is no other.
    labels = sorted(
        _by_name(classes, LABELS, data.label), key=lambda name: bool(times) and name in events[:1]
    )
    binary = [name for name in labels if kinds[name] == 2]
    scores = _by_name([name for name in plain if name not in times] or plain, SCORES, data.score)
    return Roles(plain, scores, binary, labels, times, events)


def _values(data: Data, name: str) -> Any:
    try:
        return data.select(label=name, drop_missing=True).class_codes()[0]
    except GostaError:  # neither numbers nor text
        return None


def _is_numeric(data: Data, name: str) -> bool:
    try:
        data.select(drop_missing=True).to_floats([name])
    except GostaError:
        return False
    return True


def _is_event(data: Data, name: str) -> bool:
    values = data.select(drop_missing=True).to_floats([name])[:, 0]
    return set(values[~np.isnan(values)].tolist()) <= {0.0, 1.0}


def _matches(name: str, pattern: str) -> bool:
    return re.fullmatch(pattern, name.strip(), re.IGNORECASE) is not None


def _by_name(names: Iterable[str], pattern: str, given: str | None) -> list[str]:
    """Return the given name first, then those that match a pattern, then the others."""
    others = list(names)[::-1] if pattern == LABELS else list(names)
    return sorted(others, key=lambda name: (name != given, not _matches(name, pattern)))


def _no_columns(_: Roles) -> list[Choice]:
    return []


def _one_number(roles: Roles) -> list[Choice]:
    return [Choice((name,)) for name in roles.numbers]


def _two_numbers(roles: Roles) -> list[Choice]:
    return [Choice(tuple(roles.numbers[:2]))] if len(roles.numbers) > 1 else []


def _all_numbers(roles: Roles) -> list[Choice]:
    return [Choice(tuple(roles.numbers))] if roles.numbers else []


def _scored(roles: Roles) -> list[Choice]:
    return [
        Choice((), label, score)
        for label in roles.binary[:1]
        for score in roles.scores[:1]
        if label != score
    ]


def _two_scores(roles: Roles) -> list[Choice]:
    return [
        Choice(tuple(roles.scores[:2]), label)
        for label in roles.binary[:1]
        if len(roles.scores) > 1
    ]


def _samples(roles: Roles) -> list[Choice]:
    return [Choice(tuple(roles.numbers), label) for label in roles.binary[:1] if roles.numbers]


def _clusters(roles: Roles) -> list[Choice]:
    return [Choice(tuple(roles.numbers), label) for label in roles.classes[:1] if roles.numbers]


def _events(with_score: bool, with_label: bool) -> Callable[[Roles], list[Choice]]:
    def choices(roles: Roles) -> list[Choice]:
        found = []
        for time, event in zip(roles.times[:1], roles.events[:1], strict=False):
            scores: Sequence[tuple[str, ...]] = (
                [(score,) for score in roles.scores[:1]] if with_score else [()]
            )
            labels = [name for name in roles.binary if name != event][:1] if with_label else [None]
            found += [Choice((time, event, *score), label) for score in scores for label in labels]
        return found

    return choices


# By the name of the encoder: what it needs, in words, and the columns to try.
COLUMNS_BY_ENCODER: dict[str, tuple[str, Callable[[Roles], list[Choice]]]] = {
    **dict.fromkeys(
        ("value", "positive_value", "trimmed", "winsorised"), ("a column of numbers", _one_number)
    ),
    **dict.fromkeys(("pair", "two_parts"), ("two columns of numbers", _two_numbers)),
    "features": ("columns of numbers", _all_numbers),
    "scored": ("a score and a column of two classes", _scored),
    "two_scores": ("two scores and a column of two classes", _two_scores),
    "class_scores": (
        "three classes or more and a score for each, in their order: --columns a,b,c --label class",
        _no_columns,
    ),
    **dict.fromkeys(
        ("two_samples", "scaled_samples"), ("numbers and a column of two classes", _samples)
    ),
    "clustered": ("numbers and a column of classes", _clusters),
    **dict.fromkeys(
        ("survival", "survival_risk", "survival_risks"),
        ("a time, whether the event was seen then (0 and 1), and a score", _events(True, False)),
    ),
    "event_times": ("a time, and whether the event was seen then (0 and 1)", _events(False, False)),
    "grouped_event_times": (
        "a time, whether the event was seen then (0 and 1), and a column of two classes",
        _events(False, True),
    ),
}
