"""The terms in a member list: what a network computes and what its sites show each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gosta.estimation.visitor import MAX_SAMPLE_ROWS
from gosta.net import members
from gosta.net.config import Task, is_for_one_row_each
from gosta.net.members import MemberList
from gosta.net.node.rows import sums_of
from gosta.statistics.references import own_references
from gosta.views import numbers

MODE = "mode"  # key of the words on private sums
MAX_KEY_CHARACTERS = 100  # of a term in a member list: see `MemberList`
MAX_VALUE_CHARACTERS = 1000
MAX_SHOWN_VALUES = 6  # of an option that has several
MAX_COLUMNS = 20  # of a dictionary, in the terms; all sites have the whole


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
    level = task.confidence_level
    common = {
        "interval": "none" if level is None else numbers.percent(level, "g"),
        "columns": ", ".join(task.columns),
        "score": ", ".join(task.scores),
        "time": task.time or "",
        "event": task.event or "",
        "label": task.label or "",
        "classes": ", ".join(map(str, task.classes)),
        "incomplete rows": "left out" * task.drop_missing,
    }
    meanings = list(task.dictionary.items())[:MAX_COLUMNS]
    common |= {f"column {name}": column.describe() for name, column in meanings}
    options = {f"option {name}": text for name, text in _option_words(task.options).items()}
    terms = (_row_terms if task.private is None else _private_terms)(task, common)
    return {
        _printable(key)[:MAX_KEY_CHARACTERS]: _printable(value)[:MAX_VALUE_CHARACTERS]
        for key, value in (terms | options).items()
        if value
    }


def _row_terms(task: Task, common: Mapping[str, str]) -> dict[str, str]:
    own = own_references(task.statistic)
    statistic = own[0][1] if own and "," not in task.statistic else task.statistic
    if own:
        files = ", ".join(str(file) for file, _ in own)
        statistic += f" (Python code in {files}, which every site runs)"
    end = f"when nodes expect an error of at most {numbers.error(task.until)}"
    rows = f"samples of at most {MAX_SAMPLE_ROWS} rows"
    if is_for_one_row_each(task.protocol):
        rows = "the row of each site"
    return {
        "statistic": statistic,
        "protocol": task.protocol,
        **common,
        "exchanges end": end * bool(task.until),
        "shown to others": f"{rows}, as numbers that the statistic needs",
    }


def _private_terms(task: Task, common: Mapping[str, str]) -> dict[str, str]:
    layout, private = sums_of(task), task.private
    assert private is not None
    noise = "none: all members know the exact totals, of which curves merge small bins"
    if task.fit is not None:
        noise = "none: all members know the exact totals of each round"
    if private.epsilon is not None:
        noise = (
            f"every release is ({private.epsilon:g}, {private.delta:g})-differentially private for "
            "each row"
        )
        if private.colluding == 1:
            noise += ", also against each other site"
        elif private.colluding > 1:
            noise += f", also if {private.colluding} of the sites combine what they know"
    return {
        MODE: "private sums: no row leaves a site",
        **layout.describe(),
        **{key: words for key, words in common.items() if key != "columns"},  # the layout has them
        "noise": noise,
        "shown to others": f"{layout.numbers} masked sums a site; only their total over all sites "
        "in an epoch is known",
        "declared": "a bound of each site's rows, with room for half as many again, rounded up; "
        "it is public",
        "left out": f"sites that do not answer within {private.deadline_seconds:g} s",
    }


def _option_words(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options in words; of those by statistic, which statistics have a value."""
    words: dict[str, dict[str, list[str]]] = {}
    for name, value in options.items():
        for option, own in value.items() if isinstance(value, Mapping) else [(name, value)]:
            users = words.setdefault(option, {}).setdefault(_value_words(own), [])
            users += [name] * isinstance(value, Mapping)
    words.pop("levels", None)  # which the dictionary has
    return {
        option: "; ".join(
            text + f" ({', '.join(users)})" * bool(users) for text, users in texts.items()
        )
        for option, texts in words.items()
    }


def _value_words(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return str(value)
    texts = [f"{one:g}" if isinstance(one, float) else str(one) for one in value]
    if len(texts) > MAX_SHOWN_VALUES:
        texts = [*texts[:2], "...", texts[-1]]
    return ", ".join(texts)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
