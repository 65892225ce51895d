"""Checks of values across columns: outcomes, times, risks, and rows that are there twice."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping

import numpy as np

from gosta.datasets import Data
from gosta.datasets.copies import copied_rows, repeated_ids
from gosta.datasets.outcomes import contradictions
from gosta.errors import GostaError, shorten
from gosta.net.config import Task
from gosta.net.deploy.findings import Finding, share_text
from gosta.net.node.rows import layout_of
from gosta.private.policy import Policy
from gosta.runtime.arrays import Booleans, Floats
from gosta.views import numbers

OUTCOME = "outcome"
ABOUT_VALUES = (OUTCOME, "risks of")  # how findings of check_values begin
FEWEST_OUTCOMES = 5  # of each class, for the mean risk to be compared with their share
MOST_RATIO = 5.0  # of the mean risk and the share of the outcome, or the other way round
SCORES = ("score", "first", "second")  # roles of risks
MOST_LINES = 5  # of rows that are named


def check_values(
    task: Task, data: Data, policy: Policy, scale: Mapping[str, float]
) -> Iterator[Finding]:
    """Check that outcomes, times, events and risks agree with each other."""
    try:
        table = data.select(label=task.label, drop_missing=True)
        table = dataclasses.replace(table, declared_classes=task.classes, is_partial=True)
        codes = table.class_codes()[0]
    except GostaError:
        return  # other findings say why
    positive = len(task.classes) - 1
    named = [
        dict(zip(sketch.roles, (axis.column for axis in sketch.axes), strict=False))
        for sketch in layout_of(task).sketches
    ]
    roles = next((one for one in named if {"time", "event"} <= one.keys()), None)
    horizon = _horizon(task)
    if roles is not None and horizon is not None:
        yield from _check_outcome(task, table, codes, roles, horizon, policy)
    known = codes[~np.isnan(codes)]
    scores = dict.fromkeys(one[role] for one in named for role in SCORES if role in one)
    for name in scores:
        if name in data.columns and len(known):
            yield from _check_risk(task, table, float(np.mean(known == positive)), name, scale)


def _check_outcome(
    task: Task, table: Data, codes: Floats, roles: Mapping[str, str], horizon: float, policy: Policy
) -> Iterator[Finding]:
    """Check that the outcome is that of an event before the horizon."""
    try:
        times, events = table.to_floats([roles["time"], roles["event"]]).T
    except GostaError:
        return
    outcome = np.where(np.isnan(codes), np.nan, codes == len(task.classes) - 1)
    found = contradictions(outcome, times, events, horizon)
    count = int(np.count_nonzero(found.rows))
    share = share_text(count, len(table), policy)
    text = f"{task.label} and {roles['event']} before {horizon:g} contradict each other in {share}"
    if count == 0:
        yield Finding.ok(OUTCOME, f"{text} of the rows")
        return
    hint = f"is {roles['time']} in the study's unit, and are both coded as the study says?"
    first = f"first in {table.row_names[np.argmax(found.rows)]}"
    made = Finding.error if found.are_nearly_all(policy.min_rows) else Finding.warning
    yield made(OUTCOME, f"{text} of the rows", hint, first)


def _horizon(task: Task) -> float | None:
    """Return the horizon that the statistics of times have in common; None: there is none."""
    given = [task.options.get("horizon")]
    given += [own.get("horizon") for own in task.options.values() if isinstance(own, dict)]
    found = {float(one) for one in given if isinstance(one, int | float)}
    return found.pop() if len(found) == 1 else None


def _check_risk(
    task: Task, table: Data, share: float, name: str, scale: Mapping[str, float]
) -> Iterator[Finding]:
    """Check that a risk is about as large on average as the share of the outcome."""
    declared = task.dictionary.get(name)
    try:
        values = table.to_floats([name])[:, 0]
    except GostaError:
        return
    values = values[~np.isnan(values)]
    is_risk = declared is None or declared.is_risk
    least = FEWEST_OUTCOMES / max(len(table), 1)
    if not is_risk or not len(values) or not least <= share <= 1 - least:
        return
    if values.min() < 0 or values.max() > 1:
        return  # which other findings say
    mean = float(values.mean())
    if mean <= 0 or 1 / MOST_RATIO <= mean / share <= MOST_RATIO:
        return
    factor = scale.get(name, 1.0) * 100.0 ** round(math.log(share / mean, 100))
    hint = "are these risks of this outcome, as shares from 0 to 1?"
    if factor != scale.get(name, 1.0):
        is_one = math.isclose(factor, 1)
        option = f"leave out --scale {name}" if is_one else f"--scale {name}={factor:g}"
        hint += f" If their unit is another: {option}"
    yield Finding.warning(
        f"risks of {name}",
        f"their mean and the share of {task.label} differ by more than {MOST_RATIO:g} times",
        hint,
        f"mean {numbers.number(mean, 3)}, share {numbers.number(share, 3)}",
    )


def check_copies(raw: Data, person: str | None) -> Iterator[Finding]:
    """Check that no rows, and no values that name rows, are there twice.

    `person` is the column of the file that tells people apart, who may have several rows.
    """
    copies = copied_rows(raw)
    if copies.any():
        hint = "if they are no other patients, remove them from the file"
        text = "some rows are exact copies of earlier ones"
        yield Finding.warning("copies", text, hint, _first_rows(raw, copies))
    for name, repeated in repeated_ids(raw, copies).items():
        if name != person:
            hint = "if a patient is there twice, remove one; rows of one patient are no others"
            text = f"{name} seems to name rows or patients, and some have the same value"
            yield Finding.warning("copies", text, hint, _first_rows(raw, repeated))


def _first_rows(data: Data, chosen: Booleans) -> str:
    """Return how many rows are chosen, and which are the first."""
    names = [data.row_names[place] for place in np.flatnonzero(chosen)]
    return f"{numbers.count(len(names), 'row')}: {shorten(names, MOST_LINES)}"
