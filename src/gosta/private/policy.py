"""A site's own policy: which private sums it takes part in. Nobody else can override it.

A verdict is a short text that says what the policy forbids; it is empty if nothing is forbidden. It
may contain counts of rows, so that only the site itself ever sees it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from gosta.errors import InputError
from gosta.private.accounting import Spent, total_epsilon
from gosta.runtime.settings_file import Key, check_numbers, read_settings

POLICY_FILE = "policy.toml"
MAX_POLICY_BYTES = 1 << 20
FIX_HINT = "fix the line"
MISSING_HINT = (
    'write what it may send, as modes = ["private"] for sums, ["noisy"] for sums with noise, or '
    '["rows"]'
)
DAY_SECONDS = 86_400.0
MANY = 10**9  # more than any site has rows

Mode = Literal["rows", "private", "noisy"]
MODES: tuple[Mode, ...] = ("rows", "private", "noisy")


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy of a site: contents of a policy.toml.

    Examples
    --------
    >>> import gosta
    >>> policy = gosta.private.Policy(min_sites=4, min_rows=3)
    >>> sites = [{"age": [31, 42, 50]}, {"age": [65, 33, 40]}, {"age": [20, 71, 58]}]
    >>> ranges = {"age": (0, 128)}
    >>> gosta.private.release(sites, "variance", columns="age", ranges=ranges, policy=policy)
    Traceback (most recent call last):
    gosta.errors.InputError: suppressed by policy: 3 sites, 4 needed
    """

    statistics: Annotated[
        tuple[str, ...],
        Key(
            "that may be computed: names, or fingerprints as 'gosta check' prints them; none: all",
            example='["auc"]',
        ),
    ] = ()
    columns: Annotated[
        tuple[str, ...], Key("that may be used; none: all", example='["risk", "died"]')
    ] = ()
    modes: Annotated[
        tuple[Mode, ...],
        Key('"private": masked sums; "noisy": only with epsilon; "rows": rows may leave this site'),
    ] = ("private",)
    min_rows: Annotated[
        int,
        Key(
            "rows, or people, that this site must have; this and what follows is for sums", 0, MANY
        ),
    ] = 10
    min_sites: Annotated[
        int, Key("sites that must take part; from 2 on, no groups that may be one site", 0, MANY)
    ] = 3
    # Whoever starts an epoch may leave sites out, and as long as fewer than a third of the members
    # collude, an honest site took part in both of any two totals.
    min_share: Annotated[
        float, Key("share of the members that must take part", 0, 1, example="0.66")
    ] = 0.66
    min_cell: Annotated[
        int,
        Key(
            "curves merge bins with fewer rows, smaller strata have no value (only without noise)",
            0,
            MANY,
        ),
    ] = 5
    max_min_cell: Annotated[
        int, Key("the largest min_cell of another member that this site accepts", 0, MANY)
    ] = 50
    min_change: Annotated[
        int,
        Key(
            "rows that must differ before this site contributes others than the last time", 0, MANY
        ),
    ] = 10
    max_bins: Annotated[int, Key("of a column", 0, MANY)] = 1024
    min_rows_per_column: Annotated[
        int, Key("rows of all sites that a model must have for each of its columns", 0, MANY)
    ] = 10
    epsilon_budget: Annotated[
        float,
        Key(
            "at which this site stops: of all its releases with noise together",
            0,
            excludes_ends=True,
            example="10.0",
        ),
    ] = 10.0
    delta_budget: Annotated[
        float, Key("with which that epsilon is computed", 0, 0.1, example="1e-5")
    ] = 1e-5
    releases_per_day: Annotated[
        int, Key("0: no limit; with the same noise as before, a release does not count", 0, MANY)
    ] = 0
    person: Annotated[
        str | None,
        Key("column that tells people apart: then min_rows counts people", example='"patient"'),
    ] = None


class Subject(NamedTuple):
    """What a site is asked to take part in."""

    mode: Mode  # noisy: sums with noise
    statistics: tuple[str, ...]
    columns: tuple[str, ...]  # that are read
    layout: str = ""  # fingerprint of the sums
    bins: int = 0  # the most of a column
    rows: int = 0  # that the site has
    people: int | None = None  # whose rows these are, if there is a column of persons
    spent: tuple[Spent, ...] = ()  # the privacy of each round, if there is noise
    # Rows of all sites that a model needs for each of its columns; None: it is no model.
    rows_per_column: float | None = None
    alone: tuple[str, ...] = ()  # columns of groups of which all rows of the site have one value


class Past(NamedTuple):
    """An earlier release: a contribution that was sent, whether or not its total became known."""

    time: float  # Unix time, seconds
    spent: Spent | None = None  # None: without noise


def read_policy(folder: Path) -> Policy:
    """Read the policy of a site's folder.

    Raises `InputError` without a valid one, so that nothing leaves the site.
    """
    path = folder / POLICY_FILE
    try:
        return read_settings(path, Policy, MAX_POLICY_BYTES, _check, FIX_HINT)
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing, and without it nothing leaves this site; {MISSING_HINT}"
        ) from None


def _check(policy: Policy) -> None:
    check_numbers(policy)
    if policy.min_cell > policy.max_min_cell:
        raise InputError(
            f"min_cell = {policy.min_cell} exceeds max_min_cell = {policy.max_min_cell}, the "
            "largest that this site accepts of others; raise max_min_cell too, or lower min_cell"
        )
    if not policy.modes:
        raise InputError(f"modes = [] allows nothing; there are: {', '.join(MODES)}")


def verdict_to_join(policy: Policy, subject: Subject, history: Sequence[Past], now: float) -> str:
    """Return what forbids a site to take part at all; empty if nothing does."""
    if subject.mode == "rows":
        if "rows" not in policy.modes:
            return "rows mode is not allowed"
        return _forbidden_names(policy, subject)
    if subject.mode == "private" and "private" not in policy.modes:
        return (
            "sums without noise are not allowed"
            if "noisy" in policy.modes
            else "private mode is not allowed"
        )
    if not {"private", "noisy"} & set(policy.modes):
        return "private mode is not allowed"
    if forbidden := _forbidden_names(policy, subject):
        return forbidden
    if subject.bins > policy.max_bins:
        return f"{subject.bins} bins, {policy.max_bins} allowed"
    needed = policy.min_rows_per_column
    if subject.rows_per_column is not None and subject.rows_per_column < needed:
        return f"{subject.rows_per_column:g} rows for each column of the model, {needed} needed"
    counted = subject.rows if subject.people is None else subject.people
    if counted < policy.min_rows:
        noun = "row" if subject.people is None else "person"
        return f"{_count(counted, noun)}, {policy.min_rows} needed"
    if forbidden := _forbidden_groups(policy, subject):
        return forbidden
    return over_budget(policy, subject, history) or _too_often(policy, history, now)


def verdict_to_contribute(policy: Policy, sites: int, members: int = 0) -> str:
    """Return what forbids a site to contribute once the participants are known, or nothing."""
    if sites < policy.min_sites:
        return f"{_count(sites, 'site')}, {policy.min_sites} needed"
    if sites < policy.min_share * members:
        return f"{sites} of {members} members, {math.ceil(policy.min_share * members)} needed"
    return ""


def may_replace(policy: Policy, changed: Sequence[int]) -> bool:
    """Return whether rows may replace a snapshot.

    `changed` says how many people changed since each earlier contribution.
    """
    return all(count == 0 or count >= policy.min_change for count in changed)


def _forbidden_names(policy: Policy, subject: Subject) -> str:
    if policy.statistics and subject.layout not in policy.statistics:
        for name in sorted(set(subject.statistics) - set(policy.statistics)):
            return f"the statistic {name} is not allowed"
    if policy.columns:
        for name in sorted(set(subject.columns) - set(policy.columns)):
            return f"column {name} is not allowed"
    return ""


def _forbidden_groups(policy: Policy, subject: Subject) -> str:
    """Return what forbids groups that may be this site alone, of which sums would hide nothing."""
    alone = [name for name in subject.alone if name not in policy.columns]
    if not alone or policy.min_sites <= 1:
        return ""
    return (
        f"all its rows have one value of {alone[0]}, so that results by {alone[0]} may be those of "
        f"this site alone; {alone[0]} among columns, or min_sites = 1, permits it"
    )


def over_budget(policy: Policy, subject: Subject, history: Sequence[Past]) -> str:
    """Return what forbids a site to spend this privacy, too; empty if nothing does."""
    if not subject.spent:  # no noise, which `modes` decides about, or nothing new to pay
        return ""
    before = [past.spent for past in history if past.spent is not None]
    spent = total_epsilon(before, policy.delta_budget)
    after = total_epsilon([*before, *subject.spent], policy.delta_budget)
    if after <= policy.epsilon_budget * (1 + 1e-9):
        return ""
    return (
        f"epsilon {spent:.3g} spent, {after - spent:.3g} more would exceed the budget of "
        f"{policy.epsilon_budget:g}"
    )


def _too_often(policy: Policy, history: Sequence[Past], now: float) -> str:
    recent = sum(now - past.time < DAY_SECONDS for past in history)
    if not policy.releases_per_day or recent < policy.releases_per_day:
        return ""
    return f"{_count(recent, 'release')} in the last 24 hours, {policy.releases_per_day} allowed"


def _count(number: int, noun: str) -> str:
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
