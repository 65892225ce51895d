"""The terms in a member list: what a network computes and what its sites show each other."""

from __future__ import annotations

from collections.abc import Mapping

from gosta.estimation.exchange import MAX_SAMPLE_ROWS
from gosta.net import members
from gosta.net.config import Task, is_for_one_row_each
from gosta.net.members import MemberList
from gosta.net.node.rows import layout_of
from gosta.private.settings import PrivateSettings
from gosta.statistics.references import own_references
from gosta.views import numbers

MODE = "mode"  # key of the words on private sums


def declared_rows(task: Task, rows: int) -> int:
    """Return how many rows a site declares: in private sums a bound, which hides their number."""
    return members.declared_bound(rows) if task.private else rows


def has_bounds(listed: MemberList) -> bool:
    """Return whether the rows that members declare are bounds, as in private sums."""
    return MODE in listed.policy


def row_words(rows: int, is_bound: bool) -> str:
    """Return in words what a site declares.

    >>> row_words(200, True), row_words(220, False), row_words(0, True)
    ('at most 200 rows', '220 rows', 'no number of rows')
    """
    if not rows:
        return "no number of rows"
    return "at most " * is_bound + numbers.count(rows, "row")


def terms_of(task: Task) -> dict[str, str]:
    """Return in words what a network computes and what its sites show each other."""
    if task.private is not None:
        return _clean(_private_words(task, task.private))
    level, files = task.confidence_level, [str(file) for file, _ in own_references(task.statistic)]
    statistic = (
        task.statistic
        if not files or "," in task.statistic
        else own_references(task.statistic)[0][1]
    )
    is_for_one_row = is_for_one_row_each(task.protocol)
    shown = (
        "the row of each site" if is_for_one_row else f"samples of at most {MAX_SAMPLE_ROWS} rows"
    )
    words = {
        "statistic": statistic
        + f" (Python code in {', '.join(files)}, which every site runs)" * bool(files),
        "protocol": task.protocol,
        "interval": "none" if level is None else f"{numbers.percent(level, 'g')}",
        "columns": ", ".join(task.columns),
        "score": task.score or "",
        "label": task.label or "",
        "classes": ", ".join(map(str, task.classes)),
        "incomplete rows": "left out" * task.drop_missing,
        "exchanges end": f"when nodes expect an error of at most {numbers.error(task.until)}"
        * bool(task.until),
        "shown to others": f"{shown}, as numbers that the statistic needs",
    }
    words |= {f"option {name}": str(value) for name, value in task.options.items()}
    return _clean(words)


def _private_words(task: Task, private: PrivateSettings) -> dict[str, str]:
    layout, level = layout_of(task), task.confidence_level
    noise = "none: all members know the exact totals, of which curves merge small bins"
    if private.epsilon is not None:
        noise = (
            f"every release is ({private.epsilon:g}, {private.delta:g})-differentially private for "
            "each row"
        )
        one, some = (
            "against each other site",
            f"if {private.colluding} of the sites combine what they know",
        )
        noise += f", also {one if private.colluding == 1 else some}" * (private.colluding > 0)
    words = {MODE: "private sums: no row leaves a site", **layout.describe()}
    words |= {
        "interval": "none" if level is None else f"{numbers.percent(level, 'g')}",
        "score": task.score or "",
        "label": task.label or "",
        "classes": ", ".join(map(str, task.classes)),
        "incomplete rows": "left out" * task.drop_missing,
        "noise": noise,
        "shown to others": f"{layout.numbers} masked sums a site; only their total over all sites "
        "in an epoch is known",
        "declared": "a bound of each site's rows, with room for half as many again, rounded up; "
        "it is public",
        "left out": f"sites that do not answer within {private.deadline_seconds:g} s",
    }
    return words | {f"option {name}": str(value) for name, value in task.options.items()}


def _clean(words: Mapping[str, str]) -> dict[str, str]:
    return {
        _printable(key)[:100]: _printable(value)[:1000] for key, value in words.items() if value
    }


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
