"""A first study.toml, from the columns that play a role, and from rows where they are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec.structs import replace

from gosta.datasets.data import Data
from gosta.datasets.dictionary import Column
from gosta.datasets.roles import guess_roles
from gosta.errors import InputError
from gosta.net.deploy.shared_settings import round_range
from gosta.private.settings import PrivateSettings
from gosta.runtime.arrays import Floats
from gosta.sketches.layout_builder import TooManySumsError
from gosta.statistics.assumptions import likely_positive
from gosta.studies.definition import SITE, Asked, Study, check_study, columns_of
from gosta.studies.questions import OF_RISKS, QUESTIONS

MOST_CLASSES = 12  # of a column that is described by classes
# As many are taken as fit, at most these; few if there is noise.
BINS = 80
BINS_WITH_NOISE = 20
DELTA = 1e-6  # far below one over the rows of a study
PLAIN_CLASSES = ("no", "yes")
RISK_THRESHOLDS = (0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Answers:
    """What its author says about a study."""

    title: str = "Validation study"
    questions: tuple[str, ...] = ()  # none: all that the columns allow
    label: str | None = None
    scores: tuple[str, ...] = ()
    time: str | None = None
    event: str | None = None
    groups: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    times: tuple[float, ...] = ()
    horizon: float | None = None
    epsilon: float | None = None
    delta: float | None = None  # with epsilon; None: the default
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    bins: int | None = None  # of each column; None: the most that fit
    risks_over_time: tuple[str, ...] = ()
    also: tuple[str, ...] = ()

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Return the columns by which rows are grouped."""
        return columns_of(self.groups)

    @property
    def predicted(self) -> tuple[str, ...]:
        """Return the columns of scores, and of risks over time."""
        return *self.scores, *self.risks_over_time

    @property
    def named(self) -> tuple[str, ...]:
        """Return the columns that play a role, and those whose range or classes are given."""
        roles = [self.label, *self.predicted, self.time, self.event, *self.group_columns]
        others = [*self.ranges, *self.classes]
        return tuple(dict.fromkeys(name for name in [*roles, *others] if name))


def propose(answers: Answers, data: Data | None = None) -> Study:
    """Return a study: its dictionary from the rows and the answers, and as many bins as fit."""
    is_there = SITE in answers.classes or (data is not None and SITE in data.columns)
    names = [name for name in answers.named if name != SITE or is_there]
    if data is None:
        columns = {name: _declared(name, answers) for name in names}
    else:
        data = data.select(drop_missing=True)
        for name in names:
            data.select(name)  # an error if the column is not there
        guessed = guess_roles(data, list(data.columns))
        left_out = {*guessed.identifiers, *guessed.dates} - {*answers.named}
        found = {
            name: _described(name, answers, data) if name in answers.named else _other(name, data)
            for name in data.columns
            if name not in left_out
        }
        columns = {name: column for name, column in found.items() if column is not None}
    times, horizon = _times(answers, data)
    asked = Asked(
        answers.questions or _questions(answers, columns),
        answers.title,
        answers.label,
        answers.scores,
        answers.time,
        answers.event,
        answers.groups,
        thresholds=answers.thresholds or _thresholds(answers, columns),
        times=times,
        horizon=horizon,
        risks_over_time=answers.risks_over_time,
        also=answers.also,
    )
    check_study(Study(asked, columns))
    return _with_bins(asked, columns, answers)


def fewer_bins(study: Study) -> str:
    """Return why a proposed study has fewer bins than others; "" if it has not."""
    bins, privacy = (BINS if study.privacy.epsilon is None else BINS_WITH_NOISE), study.privacy
    if privacy.bins is None or privacy.bins >= bins:
        return ""
    names = [name for columns in study.groups for name in study.group_names(columns)]
    groups = f"in each of the {len(names)} groups of {', '.join(study.study.groups)}"
    why = groups if names else "for all"
    return (
        f"{privacy.bins} bins of each column in place of {bins}, as the sums {why} must fit "
        "into one release; with fewer groups or scores there are more, and brackets are narrower"
    )


def _with_bins(asked: Asked, columns: dict[str, Column], answers: Answers) -> Study:
    """Return the study with the most bins whose sums fit into one release."""
    privacy = PrivateSettings(answers.bins or (BINS_WITH_NOISE if answers.epsilon else BINS))
    if answers.epsilon is not None:
        delta = DELTA if answers.delta is None else answers.delta
        privacy = replace(privacy, epsilon=answers.epsilon, delta=delta)
    study = Study(asked, columns, privacy)
    try:
        study.layout()
    except TooManySumsError as error:
        if answers.bins is not None or error.bins is None:
            raise
        return Study(asked, columns, replace(privacy, bins=error.bins))
    except InputError:
        pass  # checks of the file say what is missing
    return study


def _declared(name: str, answers: Answers) -> Column:
    """Return what is known of a column without rows."""
    if name in answers.classes:
        return Column("class", classes=answers.classes[name])
    if name in (answers.label, answers.event):
        return Column("class", classes=PLAIN_CLASSES if name == answers.label else (0, 1))
    if name in answers.group_columns:
        raise InputError(
            f"the classes of {name} are missing: give --classes {name}=A,B, or a file (--data)"
        )
    default = (0.0, 1.0) if name in answers.predicted else None
    return Column(range=answers.ranges.get(name, default))


def _described(name: str, answers: Answers, data: Data) -> Column:
    """Return what the rows say of a column that plays a role."""
    if name in answers.classes:
        return Column("class", classes=answers.classes[name])
    if name == answers.event and data.columns[name].dtype.kind in "biuf":
        return Column("class", classes=(0, 1))
    if name in (answers.label, answers.event) or name in answers.group_columns:
        table = data.select(label=name)
        classes = table.class_codes()[1]
        if len(classes) > MOST_CLASSES:
            raise InputError(
                f"column {name!r} has {len(classes)} different values, too many for classes"
            )
        if name == answers.label and likely_positive(table.assumed_classes(None)) is not None:
            classes = classes[::-1]
        return Column("class", classes=tuple(map(_plain, classes)))
    if name in answers.ranges:
        return Column(range=answers.ranges[name])
    values = _numbers(name, data)
    is_risk = name in answers.predicted and values.min() >= 0 and values.max() <= 1
    low, high = (0.0, 1.0) if is_risk else round_range(float(values.min()), float(values.max()))
    return Column(range=(min(low, 0.0), high) if name == answers.time else (low, high))


def _other(name: str, data: Data) -> Column | None:
    """Return what the rows say of a column for Table 1; None for identifiers, dates and texts."""
    values = data.columns[name]
    present = [value for value in values.tolist() if value is not None and value == value]
    distinct = set(map(str, present))
    if values.dtype.kind in "iuf" and len(distinct) > 2:
        is_identifier = values.dtype.kind in "iu" and len(distinct) == len(values)
        found = _numbers(name, data)
        return None if is_identifier else Column(range=round_range(found.min(), found.max()))
    if not 2 <= len(distinct) <= MOST_CLASSES or values.dtype.kind == "M":
        return None
    classes = data.select(label=name).class_codes()[1]
    return Column("class", classes=tuple(map(_plain, classes)))


def _numbers(name: str, data: Data) -> Floats:
    """Return the numbers of a column that are there."""
    values = data.to_floats([name])[:, 0]
    values = values[~np.isnan(values)]
    if not len(values):
        raise InputError(f"column {name!r} of {data.name} has no number")
    return values


def _plain(value: Any) -> str | int | float:
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, str | int | float) else str(value)


def _are_risks(answers: Answers, columns: Mapping[str, Column]) -> bool:
    return bool(answers.scores) and all(columns[name].is_risk for name in answers.scores)


def _questions(answers: Answers, columns: dict[str, Column]) -> tuple[str, ...]:
    """Return all questions that the columns allow."""
    roles = answers.label, answers.scores, answers.time, answers.event
    items = Study(Asked(tuple(QUESTIONS), "", *roles), columns).items
    possible = {item.question for item in items}
    if not _are_risks(answers, columns):
        possible -= set(OF_RISKS)
    return tuple(question for question in QUESTIONS if question in possible)


def _thresholds(answers: Answers, columns: Mapping[str, Column]) -> tuple[float, ...]:
    """Return thresholds of predicted risks; other scores have none that fit."""
    if answers.label is None or not _are_risks(answers, columns):
        return ()
    return RISK_THRESHOLDS


def _times(answers: Answers, data: Data | None) -> tuple[tuple[float, ...], float | None]:
    """Return times at which survival is told, and the horizon: the last of them."""
    times = answers.times
    if not times and answers.time is not None and data is not None:
        most = float(np.quantile(_numbers(answers.time, data), 0.8))
        step = _step_below(most / 4)
        times = tuple(step * k for k in range(1, 5))
    return times, answers.horizon or (times[-1] if times else None)


def _step_below(number: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a number."""
    power = 10.0 ** np.floor(np.log10(number))
    return float(max(factor * power for factor in (1, 2, 5) if factor * power <= number))
