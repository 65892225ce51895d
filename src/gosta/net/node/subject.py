"""What a site's policy decides about: the mode, statistics, columns, rows and noise of a network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.errors import DataError
from gosta.net.config import Task
from gosta.net.node.rows import layout_of
from gosta.private.accounting import Spent
from gosta.private.noise import choose_noise
from gosta.private.policy import Mode, Subject
from gosta.sketches import Layout
from gosta.statistics.references import parse_references


def columns_of(task: Task) -> tuple[str, ...]:
    """Return the columns that a network of rows names: for all statistics, for each, their weights, label and score."""
    wanted = parse_references(task.statistic)
    own = [column for one in wanted for column in (*one.columns, one.weights)]
    return tuple(filter(None, dict.fromkeys([*task.columns, *own, task.label, task.score])))


def subject_of(
    task: Task, rows: int, people: int | None, sites: int, rows_per_person: int = 1
) -> Subject:
    """Return what a site with so many rows, of so many people, is asked to take part in, together with all sites."""
    if task.private is None:
        wanted = parse_references(task.statistic)
        names = tuple(one.name.partition("@")[0] for one in wanted)
        return Subject("rows", names, columns_of(task), rows=rows, people=people)
    layout, spent = layout_of(task), list[Spent]()
    if task.private.epsilon is not None:
        second = layout.following(
            np.ones(layout.size)
        )  # of two rounds; where the edges are does not matter here
        for one in filter(None, (layout, second)):
            noise = choose_noise(task.private, one, sites)
            spent.append(Spent(noise.law, noise.epsilon, noise.delta, rows_per_person))
    names = tuple(part.partition(":")[0].strip() for part in task.statistic.split(","))
    mode: Mode = "noisy" if spent else "private"
    return Subject(
        mode, names, layout.columns, layout.fingerprint, layout.bins, rows, people, tuple(spent)
    )


def people_of(data: Data, layout: Layout, person: str) -> NDArray[np.object_]:
    """Return whose row each row of a table is, from the column of persons that the policy names."""
    if person not in data.columns:
        raise DataError(
            f"{data.name} has no column {person!r}, which policy.toml calls person; name another one there"
        )
    people: NDArray[np.object_] = data.columns[person].astype(object)
    if any(one is None or one != one for one in people[layout.complete_rows(data)].tolist()):
        what = f"{data.name}: column {person!r} has missing values"
        raise DataError(f"{what}, so that people cannot be counted; fill them in")
    return people
