"""Which statistics fit the columns of a table, and with which columns.

That is a guess by types, values and names: see `gosta.datasets.roles`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from gosta.analysis.computation import compute
from gosta.datasets.data import DROP_HINT, Data
from gosta.datasets.roles import Roles, guess_roles
from gosta.errors import GostaError
from gosta.measures import MEASURES
from gosta.measures.definition import definition_of
from gosta.statistics import STATISTICS
from gosta.statistics.assumptions import likely_positive


class Fit(NamedTuple):
    """A statistic, and the arguments with which it fits the data; or the reason why it does not."""

    name: str
    summary: str
    group: str  # what its columns are, in words
    arguments: tuple[str, ...]
    reason: str

    @property
    def is_of_roles(self) -> bool:
        """Whether it takes columns as scores, outcomes or times."""
        return bool({"--score", "--time"} & set(self.arguments))


class Choice(NamedTuple):
    """Columns for a statistic, as arguments of `Data.select`, and what they are, in words."""

    group: str
    columns: tuple[str, ...] = ()
    label: str | None = None
    scores: tuple[str, ...] = ()
    time: str | None = None
    event: str | None = None

    def of(self, data: Data, drop_missing: bool) -> Data:
        """Return the data with these columns in their roles, and no others unless selected."""
        roles = {self.label, *self.scores, self.time, self.event, data.weights, data.files}
        if not self.columns:
            kept = {name: data.columns[name] for name in data.columns if name in roles}
            data = replace(data, columns=kept, label=None, score=None, features=())
            data = replace(data, default_columns=(), has_selected_columns=False)
        return data.select(
            self.columns or None,
            self.label,
            self.scores or None,
            drop_missing,
            self.time,
            self.event,
        )

    def arguments(self) -> tuple[str, ...]:
        """Return the words of a command that say the same."""
        has_comma = any("," in column for column in self.columns)
        listed = self.columns if has_comma else [",".join(self.columns)] * bool(self.columns)
        words = [word for text in listed for word in ("--columns", text)]
        roles = {"score": ",".join(self.scores), "label": self.label}
        roles |= {"time": self.time, "event": self.event}
        return (*words, *(word for k, v in roles.items() if v for word in (f"--{k}", v)))


def roles_of(data: Data) -> Roles:
    """Guess the roles of columns: those that the user selected, or all."""
    names = list(data.columns)
    if data.has_selected_columns:
        chosen = {*data.features, data.label, *data.declared_roles.values()}
        names = [name for name in names if name in chosen]
    return guess_roles(data, [name for name in names if name != data.weights])


def fitting(data: Data) -> list[Fit]:
    """Return all statistics, those that fit the data first."""
    roles = roles_of(data)
    fits = []
    for name in [*STATISTICS, *MEASURES]:
        statistic: Any = definition_of(name)
        if statistic.encode.__module__.startswith("gosta."):
            fits.append(_fit(data, name, statistic, roles))
    return sorted(fits, key=lambda fit: bool(fit.reason))


def _fit(data: Data, name: str, statistic: Any, roles: Roles) -> Fit:
    needs, choose = COLUMNS_BY_ENCODER.get(
        statistic.encode.__name__, ("a score and a column of two classes", _in_roles)
    )
    reason = ""
    for choice in choose(roles):
        for drop in (False, True):
            try:
                selected = choice.of(data, drop)
                positive = _positive(selected, statistic)
                _check_fit(selected, name)
            except GostaError as error:
                reason = reason or error.reason
                if error.remedy == DROP_HINT:
                    continue
                break
            words = (*choice.arguments(), *positive, *["--drop-missing"] * drop)
            return Fit(name, statistic.summary, choice.group, words, "")
    if len(data) < 2:
        reason = "needs two rows; the data has one"
    return Fit(name, statistic.summary, "", (), reason or f"needs {needs}")


def _check_fit(data: Data, name: str) -> None:
    """Raise an error if the columns do not fit the statistic."""
    if name in STATISTICS:
        STATISTICS[name].encode_rows(data, {})
    else:
        compute(data, [name])


def _positive(data: Data, statistic: Any) -> tuple[str, ...]:
    """Return the argument that names the positive class, where another would be taken."""
    if data.label is None or "positive" not in statistic.options:
        return ()
    likely = likely_positive(data.assumed_classes())
    return () if likely is None else ("--positive", likely)


def _in_roles(roles: Roles) -> list[Choice]:
    """Return choices of scores, classes and times: all that statistics of these can take."""
    score, scores = tuple(roles.scores[:1]), tuple(roles.models[:2])
    found: list[Choice] = []
    if score and roles.binary:
        found.append(Choice("a score and an outcome", (), roles.binary[0], score))
        if len(scores) == 2:
            found.append(Choice("two scores and an outcome", (), roles.binary[0], scores))
    if roles.times and roles.events:
        time, event = roles.times[0], roles.events[0]
        others = [name for name in roles.binary if name != event]
        found.append(Choice("times to an event", (), None, score, time, event))
        found += [Choice("times in two groups", (), one, (), time, event) for one in others[:1]]
        if len(scores) == 2:
            found.append(Choice("times and two scores", (), None, scores, time, event))
    return found


def _of_two_scores(roles: Roles) -> list[Choice]:
    return [choice for choice in _in_roles(roles) if len(choice.scores) == 2]


def _of_times(roles: Roles) -> list[Choice]:
    return [choice for choice in _in_roles(roles) if choice.time is not None]


def _one_number(roles: Roles) -> list[Choice]:
    return [Choice("one column", (name,)) for name in roles.numbers]


def _two_numbers(roles: Roles) -> list[Choice]:
    return [Choice("two columns", tuple(roles.numbers[:2]))] if len(roles.numbers) > 1 else []


def _all_numbers(roles: Roles) -> list[Choice]:
    return [Choice("several columns", tuple(roles.numbers))] if roles.numbers else []


def _all_columns(roles: Roles) -> list[Choice]:
    names = tuple(dict.fromkeys([*roles.numbers, *roles.classes]))
    return [Choice("all columns", names)] if names else []


def _samples(roles: Roles) -> list[Choice]:
    if not roles.numbers:
        return []
    return [Choice("columns of two groups", tuple(roles.numbers), one) for one in roles.binary[:1]]


def _clusters(roles: Roles) -> list[Choice]:
    if not roles.numbers:
        return []
    return [Choice("columns of groups", tuple(roles.numbers), one) for one in roles.classes[:1]]


def _no_columns(_: Roles) -> list[Choice]:
    return []


# By the name of the encoder: what it needs, in words, and the columns to try. Others take columns
# in the roles of scores, labels, times and events.
COLUMNS_BY_ENCODER: dict[str, tuple[str, Callable[[Roles], list[Choice]]]] = {
    **dict.fromkeys(
        ("value", "positive_value", "trimmed", "winsorised"), ("a column of numbers", _one_number)
    ),
    **dict.fromkeys(("pair", "two_parts"), ("two columns of numbers", _two_numbers)),
    "features": ("columns of numbers", _all_numbers),
    "class_scores": (
        "three classes or more and a score for each, in their order: --columns a,b,c --label class",
        _no_columns,
    ),
    **dict.fromkeys(
        ("two_samples", "scaled_samples"), ("numbers and a column of two classes", _samples)
    ),
    "clustered": ("numbers and a column of classes", _clusters),
    **dict.fromkeys(
        ("two_scores", "two_risks", "survival_of_two"),
        ("two scores, known by their names or named (--score a,b)", _of_two_scores),
    ),
    **dict.fromkeys(
        (
            *("survival", "weighted_survival", "survival_risk", "survival_risks"),
            *("event_times", "grouped_event_times"),
        ),
        ("a time, and whether the event was seen then (--time, --event)", _of_times),
    ),
    "described": ("columns of numbers or classes", _all_columns),
}
