"""Roles of columns: which column a statistic takes for what, and which could play a role.

A statistic names the roles of its columns, such as "time", "event" and "score". What a column could
be is a guess by its name, its type and its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gosta.datasets.class_names import event_flags
from gosta.errors import GostaError
from gosta.runtime.arrays import Floats

if TYPE_CHECKING:
    from gosta.datasets.data import Data

MOST_CLASSES = 10  # different values of a column of classes, each in two rows on average
FEWEST_NUMBERED = 10  # rows from which on whole numbers that are all different may count rows
LEAST_CODE = 10_000  # from which on whole numbers that are all different are rather codes
# Words in the names of columns, also German, French and Spanish ones.
WORDS = {
    "outcome": "label class diagnosis outcome target ill sick died dead death deceased case y "
    "mortality diagnose ergebnis krank verstorben gestorben tod tot befund "
    "deces décès decede décédé mort issue malade fallecido muerte muerto resultado",
    "score": "score risk prob probability predict predicted prediction pred p risiko "
    "wahrscheinlichkeit vorhersage prognose risque riesgo puntaje",
    "time": "time times days months years duration follow followup fu survival tte los "
    "zeit tage monate jahre dauer nachbeobachtung überleben temps jours mois durée duree suivi "
    "tiempo dias días meses",
    "event": "event status died dead death deceased observed relapse ereignis verstorben gestorben "
    "tod tot rezidiv deces décès decede décédé mort evento fallecido muerte muerto",
    "identifier": "id nr no num number index code mrn pid patient person subject case fall kennung "
    "nummer numero número dossier",
    "place": "zip plz postcode postal postleitzahl phone telefon ssn",
    "date": "date datum fecha year jahr año annee année birth dob born geburt geburtsjahr "
    "geburtsdatum naissance nacimiento admitted aufnahme entry",
    "group": "sex gender geschlecht sexe sexo site hospital centre center clinic klinik zentrum "
    "ward station group gruppe arm treatment race ethnicity",
}


def fill_roles(
    roles: Sequence[str], known: Mapping[str, str], others: Sequence[str]
) -> tuple[str, ...] | None:
    """Return a column for each role: the known one, or the next of the others; None: not so many.

    >>> fill_roles(("time", "event", "score"), {"time": "days", "event": "died"}, ["risk"])
    ('days', 'died', 'risk')
    """
    if len(others) != sum(role not in known for role in roles) and not set(roles) <= set(known):
        return None
    rest = iter(others)
    return tuple(known[role] if role in known else next(rest) for role in roles)


def declared_roles(
    score: str | Sequence[str] | None, time: str | None, event: str | None
) -> dict[str, str]:
    """Return the column of each role that statistics name, of those that were declared.

    >>> declared_roles(["old", "new"], "days", None)
    {'time': 'days', 'first': 'old', 'second': 'new'}
    """
    scores = [] if score is None else [score] if isinstance(score, str) else list(score)
    roles = {"time": time, "event": event}
    if len(scores) == 1:
        roles["score"] = scores[0]
    elif len(scores) == 2:
        roles |= {"first": scores[0], "second": scores[1]}
    return {role: name for role, name in roles.items() if name is not None}


def could_play(data: Data, role: str) -> list[str]:
    """Return the columns that could play a role that statistics name, the likeliest first."""
    found = guess_roles(data, list(data.columns))
    return {"time": found.times, "event": found.events}.get(role, found.scores)


@dataclass(frozen=True)
class Roles:
    """The columns that could play each role, the likeliest first."""

    numbers: list[str]  # of many values, not identifiers
    scores: list[str]  # those called so first
    models: list[str]  # scores that are called so, or were named by the user
    binary: list[str]  # of two classes
    classes: list[str]  # of two to ten
    times: list[str]
    events: list[str]  # 0 and 1
    identifiers: list[str]  # and postcodes
    dates: list[str]


class _Column:
    """What is known of a column: the values that are not missing, and what they can be."""

    def __init__(self, data: Data, name: str) -> None:
        self.name, self.rows = name, len(data)
        self.words = set(
            re.findall(r"[^\W\d_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
        )
        self.distinct = _distinct(data, name)
        self.numbers = _numbers(data, name)
        present = [one for one in data.columns[name].tolist() if one is not None and one == one]
        numbers = self.numbers
        self.flags = event_flags(present) if numbers is None else numbers.tolist()

    def is_called(self, role: str) -> bool:
        """Return whether the name has a word of a role."""
        return bool(self.words & set(WORDS[role].split()))

    @property
    def is_whole(self) -> bool:
        values = self.numbers
        return values is not None and bool((values == np.rint(values)).all())

    @property
    def is_date(self) -> bool:
        """Whether whole numbers are years, or days such as 20240131."""
        values = self.numbers
        if values is None or not self.is_whole or self.distinct < 3:
            return False
        months, days = values // 100 % 100, values % 100
        is_day = (values > 19_000_000) & (values < 21_000_000) & (months < 13) & (days < 32)
        is_year = (values >= 1880) & (values <= 2100)
        return bool(is_day.all() or (is_year.all() and not self.is_called("time")))

    @property
    def is_identifier(self) -> bool:
        """Whether the values name rows, or places: whole numbers that differ from row to row."""
        if self.is_called("time") or self.is_called("score"):
            return False
        if self.numbers is None:
            return self.distinct > MOST_CLASSES
        if not self.is_whole:
            return False
        is_named = self.is_called("place")
        is_named |= self.is_called("identifier") and self.distinct > self.rows / 2
        if len(self.numbers) < FEWEST_NUMBERED or self.distinct < len(self.numbers):
            return is_named
        reach = float(np.ptp(self.numbers))
        return is_named or reach < 2 * self.rows or float(self.numbers.min()) >= LEAST_CODE

    @property
    def is_event(self) -> bool:
        return self.flags is not None and set(self.flags) == {0.0, 1.0}

    @property
    def is_share(self) -> bool:
        """Whether all values are between 0 and 1, as risks are."""
        values = self.numbers
        return values is not None and bool(((values >= 0) & (values <= 1)).all())


def guess_roles(data: Data, names: Sequence[str]) -> Roles:
    """Guess which columns play which role."""
    columns = [_Column(data, name) for name in names if name != data.files]
    columns = [column for column in columns if column.distinct]
    dates = [c for c in columns if c.is_date or data.columns[c.name].dtype.kind == "M"]
    dates += [c for c in columns if c.is_called("date") and c not in dates and c.distinct > 2]
    usual = [column for column in columns if column not in dates]
    few = [
        c
        for c in usual
        if 2 <= c.distinct <= min(MOST_CLASSES, c.rows // 2) and not c.is_called("place")
    ]
    identifiers = [c for c in usual if c not in few and c.is_identifier]
    many = [
        c
        for c in usual
        if c.numbers is not None
        and c.distinct > 2
        and c not in identifiers
        and c.name != data.label
    ]
    many = many or [
        c for c in identifiers if c.numbers is not None and not c.is_called("identifier")
    ]
    numbers = [c for c in many if c not in few] or many
    times = [c for c in numbers if c.is_called("time") and c.numbers.min() >= 0]
    times.sort(key=lambda c: c.name != data.time)
    scores = [c for c in numbers if c not in times] or numbers
    given = [name for name in (data.score, *data.scores) if name is not None]
    scores.sort(key=lambda c: (c.name not in given, not c.is_called("score"), not c.is_share))
    # Of columns that say nothing about themselves, the last one is the outcome.
    last_first = few[::-1]
    classes = sorted(
        last_first,
        key=lambda c: (c.name != data.label, not c.is_called("outcome"), c.is_called("group")),
    )
    binary = [column for column in classes if column.distinct == 2]
    events = [column for column in few if column.is_event]
    events.sort(key=lambda c: (c.name != data.event, not c.is_called("event")))
    models = [column for column in scores if column.name in given or column.is_called("score")]
    parts = numbers, scores, models, binary, classes, times, events, identifiers, dates
    return Roles(*([column.name for column in part] for part in parts))


def _distinct(data: Data, name: str) -> int:
    """Return how many different values a column has; 0 if they are neither numbers nor text."""
    try:
        codes: Floats = data.select(label=name, drop_missing=True).class_codes()[0]
    except GostaError:
        return 0
    return len(np.unique(codes[~np.isnan(codes)]))


def _numbers(data: Data, name: str) -> Any:
    """Return the values of a column of numbers that are not missing; None if it is another."""
    try:
        values = data.select(drop_missing=True).to_floats([name])[:, 0]
    except GostaError:
        return None
    return values[~np.isnan(values)]
