"""A site's own policy: which private sums it takes part in. Nobody else can override it.

A verdict is a short text that says what the policy forbids; it is empty if nothing is forbidden. It may contain counts
of rows, so that only the site itself ever sees it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from gosta.errors import InputError
from gosta.private.accounting import Spent, total_epsilon
from gosta.runtime.files import read_toml

POLICY_FILE = "policy.toml"
MAX_POLICY_BYTES = 1 << 20
FIX_HINT = "fix the line"
MISSING_HINT = 'write what it may send, as modes = ["private"] for sums, ["noisy"] for sums with noise, or ["rows"]'
DAY_SECONDS = 86_400.0
LARGEST_COUNT = 10**9  # more than any site has rows

Mode = Literal["rows", "private", "noisy"]
MODES: tuple[Mode, ...] = ("rows", "private", "noisy")


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of a policy.toml."""

    statistics: tuple[str, ...] = ()  # allowed ones: names, or fingerprints of layouts; empty: all
    columns: tuple[str, ...] = ()  # allowed ones; empty: all
    # rows: rows leave; private: sums do; noisy: only sums with noise do
    modes: tuple[Mode, ...] = ("private",)
    min_rows: int = 10  # of this site; people, if there is a column of persons
    min_sites: int = 3  # that take part
    min_share: float = 0.66  # of the members that take part: whoever starts an epoch may leave sites out, and as long
    # as fewer than a third of the members collude, an honest site took part in both of any two totals
    # rows of a class in a bin, without noise: smaller bins are merged with neighbours
    min_cell: int = 5
    max_min_cell: int = 50  # the largest min_cell of another member that this site accepts
    min_change: int = 10  # people whose rows must differ before this site contributes other rows than the last time
    max_bins: int = 1024  # of a column
    # of all releases with noise together; sums without noise are allowed by `modes` alone
    epsilon_budget: float = 10.0
    delta_budget: float = 1e-5  # with which the budget's epsilon is computed
    releases_per_day: int = 0  # 0: no limit
    person: str | None = None  # the column that says whose row it is; counts are of people then


class Policy(Rules, frozen=True):
    """The policy of a site.

    Examples
    --------
    >>> import gosta
    >>> policy = gosta.private.Policy(min_sites=4, min_rows=3)
    >>> sites = [{"age": [31, 42, 50]}, {"age": [65, 33, 40]}, {"age": [20, 71, 58]}]
    >>> gosta.private.release(sites, "variance", columns="age", ranges={"age": (0, 128)}, policy=policy)
    Traceback (most recent call last):
    gosta.errors.InputError: suppressed by policy: 3 sites, 4 needed
    """


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


class Past(NamedTuple):
    """An earlier release: a contribution that was sent, whether or not its total ever became known."""

    time: float  # Unix time, seconds
    spent: Spent | None = None  # None: without noise


def read_policy(folder: Path) -> Policy:
    """Read the policy of a site's folder; raise `InputError` without a valid one, so that nothing leaves the site."""
    path = folder / POLICY_FILE
    try:
        values = read_toml(path, MAX_POLICY_BYTES, FIX_HINT)
    except FileNotFoundError:
        raise InputError(
            f"{path} is missing, and without it nothing leaves this site; {MISSING_HINT}"
        ) from None
    try:
        rules = msgspec.convert(values, Rules)
        _check(rules)
    except msgspec.ValidationError as error:
        raise InputError(f"{path}: {_explain(str(error))}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Policy(**msgspec.structs.asdict(rules))


def _explain(error: str) -> str:
    """Add to a message of msgspec the keys that exist, or the key whose value is wrong."""
    problem, _, place = error.partition(" - at ")
    problem = problem[0].lower() + problem[1:]
    if "unknown field" in problem:
        return f"{problem}; there are: {', '.join(Rules.__struct_fields__)}"
    key = re.sub(r"[`$]|\[.*\]", "", place).lstrip(".")
    allowed = f"; there are: {', '.join(MODES)}" if key == "modes" else ""
    return f"{key}: {problem}{allowed}; {FIX_HINT}"


def _check(rules: Rules) -> None:
    for name in (
        "min_rows",
        "min_sites",
        "min_cell",
        "max_min_cell",
        "min_change",
        "max_bins",
        "releases_per_day",
    ):
        if not 0 <= (value := getattr(rules, name)) <= LARGEST_COUNT:
            raise InputError(f"{name} = {value!r} must be from 0 to {LARGEST_COUNT:,}")
    if rules.min_cell > rules.max_min_cell:
        why = f"exceeds max_min_cell = {rules.max_min_cell}, the largest that this site accepts of others"
        raise InputError(
            f"min_cell = {rules.min_cell} {why}; raise max_min_cell too, or lower min_cell"
        )
    if not 0 <= rules.min_share <= 1:
        raise InputError(f"min_share = {rules.min_share!r} must be from 0 to 1, such as 0.66")
    if not (rules.epsilon_budget > 0 and math.isfinite(rules.epsilon_budget)):
        raise InputError(
            f"epsilon_budget = {rules.epsilon_budget!r} must be a number above 0, such as 10"
        )
    if not 0 <= rules.delta_budget <= 0.1:
        raise InputError(
            f"delta_budget = {rules.delta_budget!r} must be from 0 to 0.1, such as 1e-5"
        )
    if not rules.modes:
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
    if found := _forbidden_names(policy, subject):
        return found
    if subject.bins > policy.max_bins:
        return f"{subject.bins} bins, {policy.max_bins} allowed"
    counted = subject.rows if subject.people is None else subject.people
    if counted < policy.min_rows:
        return f"{_count(counted, 'row' if subject.people is None else 'person')}, {policy.min_rows} needed"
    return over_budget(policy, subject, history) or _too_often(policy, history, now)


def verdict_to_contribute(policy: Policy, sites: int, members: int = 0) -> str:
    """Return what forbids a site to contribute once the participants are known; empty if nothing does."""
    if sites < policy.min_sites:
        return f"{_count(sites, 'site')}, {policy.min_sites} needed"
    if sites < policy.min_share * members:
        return f"{sites} of {members} members, {math.ceil(policy.min_share * members)} needed"
    return ""


def may_replace(policy: Policy, changed: Sequence[int]) -> bool:
    """Return whether rows may replace a snapshot, given how many people changed since each earlier contribution."""
    return all(count == 0 or count >= policy.min_change for count in changed)


def _forbidden_names(policy: Policy, subject: Subject) -> str:
    if policy.statistics and subject.layout not in policy.statistics:
        for name in sorted(set(subject.statistics) - set(policy.statistics)):
            return f"the statistic {name} is not allowed"
    if policy.columns:
        for name in sorted(set(subject.columns) - set(policy.columns)):
            return f"column {name} is not allowed"
    return ""


def over_budget(policy: Policy, subject: Subject, history: Sequence[Past]) -> str:
    """Return what forbids a site to spend so much more; empty if nothing does."""
    if not subject.spent:  # no noise, which `modes` decides about, or nothing new to pay
        return ""
    before = [past.spent for past in history if past.spent is not None]
    spent, after = (
        total_epsilon(one, policy.delta_budget) for one in (before, [*before, *subject.spent])
    )
    if after <= policy.epsilon_budget * (1 + 1e-9):
        return ""
    return f"epsilon {spent:.3g} spent, {after - spent:.3g} more would exceed the budget of {policy.epsilon_budget:g}"


def _too_often(policy: Policy, history: Sequence[Past], now: float) -> str:
    recent = sum(now - past.time < DAY_SECONDS for past in history)
    if not policy.releases_per_day or recent < policy.releases_per_day:
        return ""
    return f"{_count(recent, 'release')} in the last 24 hours, {policy.releases_per_day} allowed"


def _count(number: int, noun: str) -> str:
    plural = "people" if noun == "person" else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
