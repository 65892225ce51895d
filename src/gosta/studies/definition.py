"""The file of a study, ``study.toml``: read, checked, and turned into statistics and settings."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from gosta.datasets.columns import match_key
from gosta.datasets.dictionary import Column, check_dictionary
from gosta.errors import InputError, unknown
from gosta.measures import MEASURES
from gosta.private.settings import PrivateSettings, check_groups, check_settings
from gosta.runtime.settings_file import Key, check_numbers, comments, read_settings, to_toml
from gosta.sketches import SKETCHES
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import TooManySumsError, make_layout, option_names
from gosta.sketches.risk_moments import LEAST_RISK
from gosta.statistics import STATISTICS
from gosta.studies.questions import EXTRA, NEEDS, NO_COLUMNS, OF_RISKS, QUESTIONS, Answer

STUDY_FILE = "study.toml"
SITE = "site"  # the group of rows by the file that holds them, where the dictionary has none
MAX_STUDY_FILE_BYTES = 1 << 20
FIX_HINT = "fix the line; 'gosta study init' writes such files"
# Where a decision curve is read: every twentieth, which are edges of 20, 40, 60 or 80 bins.
DECISION_THRESHOLDS = tuple(k / 20 for k in range(1, 20))
CURVE, AT_RISK = "kaplan-meier", "numbers-at-risk"
CURVE_STEPS = 20  # of a range, at which sums tell a curve: edges of 20 or 40 bins
# Between groups of rows by predicted risk, the same in one place and by sums.
RISK_CUTS = tuple(k / 10 for k in range(1, 10))
DECISIONS = ("net-benefit", "net-benefit-of-all")  # statistics of a decision curve


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Section [study]: the questions, and the columns that play a role in them."""

    questions: Annotated[tuple[str, ...], Key(f"some of: {', '.join(QUESTIONS)}")]
    title: Annotated[str, Key("of the report")] = "Validation study"
    label: Annotated[str | None, Key("column of the outcome, a class")] = None
    scores: Annotated[
        tuple[str, ...],
        Key("columns of scores: one, or two models on the same patients, the older first"),
    ] = ()
    time: Annotated[str | None, Key("column of times to an event, or to the end of follow-up")] = (
        None
    )
    event: Annotated[
        str | None, Key("column that holds 1 if the event was observed then, or 0 if not")
    ] = None
    groups: Annotated[
        tuple[str, ...],
        Key(
            "columns of classes, each alone; sex+ward is one group for each combination; site is "
            "the hospital, in one place without such a column"
        ),
    ] = ()
    table: Annotated[
        tuple[str, ...], Key("columns that Table 1 describes; without it, all in the dictionary")
    ] = ()
    thresholds: Annotated[
        tuple[float, ...], Key("of scores, for sensitivity, predictive values and reclassification")
    ] = ()
    decision_thresholds: Annotated[
        tuple[float, ...], Key("of the decision curve; by default 0.05, 0.1, ..., 0.95")
    ] = DECISION_THRESHOLDS
    times: Annotated[tuple[float, ...], Key("at which survival is told")] = ()
    horizon: Annotated[
        float | None, Key("the time before which scores predict an event", 0, excludes_ends=True)
    ] = None
    risks_over_time: Annotated[
        tuple[str, ...],
        Key("columns of predicted risks of an event before each of times, for the Brier score"),
    ] = ()
    also: Annotated[
        tuple[str, ...], Key(f"statistics that are left out without it: {', '.join(EXTRA)}")
    ] = ()
    confidence_level: Annotated[float, Key("of the intervals", 0, 1, True, "0.95")] = 0.95


class Item(NamedTuple):
    """One statistic of a study."""

    question: str
    statistic: str
    columns: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the statistic with its columns, as `gosta exact` takes it."""
        return f"{self.statistic}:{'+'.join(self.columns)}"


class Study(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    """Contents of a study.toml."""

    study: Asked
    columns: dict[str, Column]  # the dictionary
    privacy: PrivateSettings = PrivateSettings()

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Return all statistics that answer the questions, each once."""
        found: dict[str, Item] = {}
        for question in self.study.questions:
            for answer in QUESTIONS[question]:
                if answer.is_extra and answer.statistic not in self.study.also:
                    continue
                for columns in self._columns_of(answer):
                    item = Item(question, answer.statistic, columns)
                    if answer.statistic in MEASURES or answer.statistic in STATISTICS:
                        found.setdefault(item.title, item)
        return tuple(found.values())

    @property
    def summed(self) -> tuple[Item, ...]:
        """Return the statistics that private sums have."""
        return tuple(item for item in self.items if item.statistic in SKETCHES)

    def _columns_of(self, answer: Answer) -> Iterator[tuple[str, ...]]:
        """Yield the columns that a statistic takes, for each score; none if a role is missing."""
        if "columns" in answer.roles:
            yield self.table
            return
        asked = self.study
        roles = {name: getattr(asked, name) for name in ("label", "time", "event", "horizon")}
        if "risks_over_time" in answer.roles:
            if asked.time and asked.event and asked.risks_over_time:
                yield asked.time, asked.event, *asked.risks_over_time
            return
        if "other" in answer.roles:
            pairs = [asked.scores[::-1]] if len(asked.scores) == 2 else []
        else:
            scores = asked.scores if "score" in answer.roles else ("",)
            pairs = [(score, "") for score in scores]
        for pair in pairs:
            given = roles | dict(zip(("score", "other"), pair, strict=True))
            given["risks"] = self.has_risks(pair[0])
            if all(given.get(role) for role in answer.roles):
                yield tuple(str(given[role]) for role in answer.roles if role not in NO_COLUMNS)

    def has_risks(self, score: str) -> bool:
        """Return whether the range of a score is within that of a risk."""
        return score in self.columns and self.columns[score].is_risk

    @property
    def table(self) -> tuple[str, ...]:
        """Return the columns of Table 1."""
        return self.study.table or tuple(self.columns)

    @property
    def roles(self) -> tuple[str, ...]:
        """Return the columns that play a role, of which every row needs a value."""
        asked = self.study
        scores = *asked.scores, *asked.risks_over_time
        named = [asked.label, *scores, asked.time, asked.event, *self.group_columns]
        return tuple(dict.fromkeys(name for name in named if name))

    @property
    def classes(self) -> tuple[Any, ...]:
        """Return the classes of the outcome, the positive one last."""
        return () if self.study.label is None else self.columns[self.study.label].classes

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Return the columns of each grouping: one, or several whose values are combined."""
        return tuple(tuple(one.split("+")) for one in self.known_groups)

    @property
    def known_groups(self) -> tuple[str, ...]:
        """Return the groups by columns of the dictionary: not by site, if it does not have it."""
        asked = self.study.groups
        if SITE in self.columns:
            return asked
        return tuple(one for one in asked if SITE not in one.split("+"))

    @property
    def group_columns(self) -> tuple[str, ...]:
        """Return the columns by which rows are grouped."""
        return columns_of(self.known_groups)

    def group_names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of all groups by some columns: their values, such as "f, a"."""
        levels = [map(str, self.columns[name].classes) for name in columns]
        return tuple(", ".join(parts) for parts in product(*levels))

    def options_of(self, statistic: str, by_sums: bool = False) -> dict[str, Any]:
        """Return the options of a statistic that the study sets."""
        asked = self.study
        steps = self._curve_steps() if statistic in (CURVE, AT_RISK) else ()
        times = list(asked.times)
        if not by_sums:  # over rows the curve steps at each event
            times = [] if statistic == CURVE else sorted({*times, *steps})
        is_decision = statistic in DECISIONS
        thresholds = asked.decision_thresholds if is_decision else asked.thresholds
        given: dict[str, Any] = {
            "thresholds": list(thresholds),
            "times": times,
            "steps": list(steps),
            "horizon": asked.horizon,
            "cuts": list(RISK_CUTS),
            "levels": {
                name: list(column.classes)
                for name, column in self.columns.items()
                if column.type == "class"
            },
        }
        if by_sums:
            known = option_names(SKETCHES[statistic])
        else:
            given["floor"] = LEAST_RISK  # as sums have it
            known = set((MEASURES.get(statistic) or STATISTICS[statistic]).options)
        return {name: value for name, value in given.items() if value and name in known}

    def _curve_steps(self) -> tuple[float, ...]:
        """Return the steps of the range at which sums tell a curve, beside the times asked for.

        A step near one of these is left out, since few events lie between the two.
        """
        ends, asked = self.columns[self.study.time or ""].range, self.study.times
        if ends is None:
            return ()
        low, high = ends
        near = (high - low) / CURVE_STEPS / 2
        steps = (low + (high - low) * (k / CURVE_STEPS) for k in range(1, CURVE_STEPS + 1))
        return tuple(step for step in steps if all(abs(step - time) >= near for time in asked))

    @property
    def private(self) -> PrivateSettings:
        """Return the settings of private sums, with ranges and strata from the dictionary."""
        read = {name for item in self.summed for name in item.columns}
        ranges = {
            name: column.range
            for name, column in self.columns.items()
            if name in read and column.range is not None and name != self.study.event
        }
        return replace(
            self.privacy,
            ranges={**ranges, **self.privacy.ranges},
            strata={name: self.columns[name].classes for name in self.group_columns},
            groups=self.known_groups,
        )

    @property
    def statistics(self) -> str:
        """Return all statistics that private sums have, as networks take them."""
        return ",".join(item.title for item in self.summed)

    @property
    def options(self) -> dict[str, dict[str, Any]]:
        """Return the options of all statistics that private sums have, by statistic."""
        names = dict.fromkeys(item.statistic for item in self.summed)
        return {name: own for name in names if (own := self.options_of(name, True))}

    def layout(self) -> Layout:
        """Return the layout of the sums of all statistics."""
        return self._layout

    @cached_property
    def _layout(self) -> Layout:
        for name in dict.fromkeys(name for item in self.summed for name in item.columns):
            column = self.columns[name]
            if column.type == "number" and column.range is None and name != self.study.event:
                raise InputError(
                    f"columns.{name}.range is missing: private sums need the lowest and the "
                    "highest number that sites expect, such as range = [0, 100]"
                )
        try:
            return make_layout(
                self.statistics,
                self.private,
                label=self.study.label,
                classes=self.classes,
                options=self.options,
            )
        except TooManySumsError as error:
            where = rf"gosta study init --bins \1, or bins = \1 under [privacy] of {STUDY_FILE}"
            remedy = re.sub(r"--bins (\d+)", where, error.remedy)
            error.remedy = remedy
            raise


def columns_of(groups: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of groups such as "sex+ward", each once.

    >>> columns_of(["sex", "sex+ward"])
    ('sex', 'ward')
    """
    return tuple(dict.fromkeys(name for one in groups for name in one.split("+")))


def read_study(place: Path) -> Study:
    """Read a study.toml, or the one in a folder."""
    path = place / STUDY_FILE if place.is_dir() else place
    try:
        return read_settings(path, Study, MAX_STUDY_FILE_BYTES, check_study, FIX_HINT)
    except FileNotFoundError:
        raise InputError(f"no such file: {path}; 'gosta study init' writes one") from None


def study_text(study: Study) -> str:
    """Return the contents of a study.toml, with a comment on each key."""
    columns = {
        name: {"type": column.type, **_given(column)} for name, column in study.columns.items()
    }
    sections = {"study": _given(study.study), "columns": columns, "privacy": _given(study.privacy)}
    about: dict[str, type[msgspec.Struct]] = {
        "study": Asked,
        "columns": Column,
        "privacy": PrivateSettings,
    }
    texts = {name: to_toml({name: values}) for name, values in sections.items()}
    parts = zip(study.columns.values(), texts["columns"].rstrip().split("\n\n"), strict=True)
    texts["columns"] = "".join(f"{part}\n{_to_fill_in(column)}\n" for column, part in parts)
    return "\n".join(f"{comments(about[name], '   ')}{text}" for name, text in texts.items())


def _to_fill_in(column: Column) -> str:
    """Return lines for what the dictionary does not say of a column, to be filled in by hand."""
    unit = '# unit = ""  # TO FILL IN, such as years\n'
    description = '# description = ""  # TO FILL IN: what it is, in a sentence\n'
    has_unit = column.unit or column.type == "class" or column.is_risk
    return ("" if has_unit else unit) + ("" if column.description else description)


def _given(settings: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    return plain


def check_study(study: Study) -> None:
    """Raise `InputError` for a study that cannot be computed."""
    asked = study.study
    check_dictionary(study.columns)
    check_numbers(asked, "study.")
    if not asked.questions:
        raise InputError(f"study.questions is empty: name some of {', '.join(QUESTIONS)}")
    for question in asked.questions:
        if question not in QUESTIONS:
            raise unknown("question", question, list(QUESTIONS))
    for name in (*study.roles, *asked.table):
        if name not in study.columns:
            raise InputError(f"column {name!r} is not in the dictionary: add [columns] {name}")
    for key in ("label", "time", "event"):
        if getattr(asked, key) == "":
            raise InputError(f"study.{key} = '' must name a column; leave it out if there is none")
    check_groups(asked.groups, {*study.columns, SITE}, "study.groups", "the dictionary")
    for key in ("scores", "table"):
        names = getattr(asked, key)
        if len(set(names)) < len(names):
            raise InputError(f"study.{key} = {', '.join(names)}: give each column once")
    _check_columns(study)
    for name in filter(None, (asked.label, *study.group_columns)):
        _check_class(name, study.columns[name], "two classes" if name == asked.label else "")
    if asked.event is not None:
        _check_event(asked.event, study.columns[asked.event])
    for name in filter(None, (*asked.scores, asked.time, *asked.risks_over_time)):
        if study.columns[name].type != "number":
            raise InputError(f"columns.{name}.type = 'class' must be number: it is a score or time")
    if len(asked.scores) > 2:
        raise InputError(f"study.scores = {', '.join(asked.scores)}: name one, or two to compare")
    for name in asked.also:
        if name not in EXTRA:
            raise unknown("statistic", name, list(EXTRA))
        if EXTRA[name] not in asked.questions:
            raise InputError(
                f"study.also: {name} belongs to {EXTRA[name]}, which is not among study.questions"
            )
    for question in asked.questions:
        if question in OF_RISKS:
            _check_risks(study, question)
        if not any(item.question == question for item in study.items):
            raise InputError(f"study.questions: {question} needs {NEEDS[question]}")
    _check_times(study)
    for key in ("strata", "groups"):
        if getattr(study.privacy, key):
            raise InputError(f"privacy.{key} is set by study.groups: remove it")
    check_settings(study.private, "privacy.")


def _check_columns(study: Study) -> None:
    """Raise `InputError` for names that lists of statistics cannot have, and missing classes."""
    for name, column in study.columns.items():
        if column.type == "class" and not column.classes:
            raise InputError(f"columns.{name}.classes is missing: name all values of {name}")
        if any(sign in name for sign in ",+") or name != name.strip():
            raise InputError(
                f"column {name!r} has a comma, a plus sign or a space at its end in its name: give "
                f"it another one, under which files are read (--column NAME={shlex.quote(name)})"
            )


def _check_event(name: str, column: Column) -> None:
    if {match_key(value) for value in column.classes} != {0, 1}:
        raise InputError(
            f"columns.{name} tells events: it must be of type 'class' with classes = [0, 1], and "
            f"sites say what their values stand for (--value {name}:yes=1,no=0)"
        )


def _check_class(name: str, column: Column, needed: str) -> None:
    if column.type != "class":
        raise InputError(f"columns.{name}.type = 'number' must be class, with all its classes")
    if len(column.classes) < 2 or (needed and len(column.classes) != 2):
        raise InputError(
            f"columns.{name}.classes = {list(column.classes)!r} must be "
            f"{needed or 'two classes or more'}, such as ['no', 'yes']"
        )


def _check_times(study: Study) -> None:
    """Raise `InputError` for times that the range of times does not have."""
    asked = study.study
    for name in asked.risks_over_time:
        if not study.has_risks(name):
            raise InputError(
                f"study.risks_over_time: {name} must be a risk: columns.{name}.range = [0, 1]"
            )
    count = len(asked.risks_over_time)
    if count and not 1 < count == len(asked.times):
        raise InputError(
            f"study.risks_over_time = {', '.join(asked.risks_over_time)}: name a column for each "
            f"of study.times, of which there are {len(asked.times)}; two or more"
        )
    ends = None if asked.time is None else study.columns[asked.time].range
    horizon = () if asked.horizon is None else (asked.horizon,)
    for name, times in {"times": asked.times, "horizon": horizon}.items():
        for time in times:
            if ends is not None and not ends[0] < time < ends[1]:
                raise InputError(
                    f"study.{name} = {time:g} must lie within columns.{asked.time}.range, "
                    f"{ends[0]:g} to {ends[1]:g}"
                )


def _check_risks(study: Study, question: str) -> None:
    for name in study.study.scores:
        ends = study.columns[name].range
        if ends is not None and not study.has_risks(name):
            raise InputError(
                f"study.questions: {question} needs predicted risks from 0 to 1, and the range of "
                f"{name} is {ends[0]:g} to {ends[1]:g}; leave the question out, or change the scale"
            )
