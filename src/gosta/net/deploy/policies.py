"""The policy.toml of a new site: what it takes part in, and other rules as comments to fill in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from gosta.net.config import MIN_SITES, Task
from gosta.net.node.rows import subject_of
from gosta.private.accounting import total_epsilon
from gosta.private.policy import POLICY_FILE, Policy
from gosta.private.settings import RELEASES_IN_BUDGET
from gosta.runtime.files import write_atomically
from gosta.runtime.settings_file import keys_of, toml_value
from gosta.views import numbers

BUDGET_DIGITS = 3  # significant digits of a budget
LINE_WIDTH = 30  # columns of a key and its value, before what it means

HEADER = """\
# What this site takes part in. Nobody else can change or see this file; a running node reads it
# again when it changes. Without this file, or with a mistake in it, nothing leaves the site.
# Remove the # of a line to set it; the values of such lines are the defaults. Where the policy
# forbids a contribution, nothing leaves the site, and the others learn that it declined, not why.
"""
# With noise: a member that claims other rows in each epoch spends a budget in days, not minutes.
RELEASES_PER_DAY = 3


class Budget(NamedTuple):
    """A budget of privacy, and for how many releases it is enough."""

    epsilon: float
    releases: int


def write_policy(folder: Path, task: Task, person: str | None = None) -> bool:
    """Write a policy.toml that allows what a network does, unless there is one.

    `person` is the column that tells people apart, if rows of one person are several. Returns
    whether it was written.
    """
    path = folder / POLICY_FILE
    if path.exists() or path.is_symlink():
        return False
    write_atomically(path, policy_for(task, person), mode=0o600)
    return True


def policy_for(task: Task, person: str | None = None) -> str:
    """Return a policy.toml with a network's mode and budget, and the other rules as comments."""
    subject = subject_of(task, 0, None, _least_sites(task))
    budget = budget_of(task)
    in_force = {"modes": _toml_list([subject.mode])}
    if budget is not None and budget.releases:
        in_force["epsilon_budget"] = f"{budget.epsilon:g}"
        in_force["releases_per_day"] = str(RELEASES_PER_DAY)
    if person is not None:
        in_force["person"] = toml_value(person)
    names = {"statistics": subject.statistics, "columns": subject.columns}
    examples = {key: _toml_list(values) for key, values in names.items() if values}
    return policy_text(in_force, examples)


def policy_text(
    in_force: Mapping[str, str], examples: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return a policy.toml with all keys: some in force, the others as comments."""
    lines = []
    default = Policy()
    for name, key in keys_of(Policy).items():
        shown = examples.get(name) or key.example or toml_value(getattr(default, name))
        line = f"{name} = {in_force[name]}" if name in in_force else f"# {name} = {shown}"
        lines.append(f"{line:{LINE_WIDTH}}  # {key.text}")
    return "\n".join([HEADER.rstrip(), *lines, ""])


def budget_of(task: Task) -> Budget | None:
    """Return the budget for the usual number of releases, or fewer if its epsilon is infinite.

    Its number of releases is 0 if that of one release is infinite. None without noise.
    """
    spent = subject_of(task, 0, None, _least_sites(task)).spent
    if not spent:
        return None
    policy = Policy()
    for releases in range(RELEASES_IN_BUDGET, 0, -1):
        epsilon = total_epsilon(spent * releases, policy.delta_budget)
        if math.isfinite(epsilon):
            return Budget(_rounded_up(epsilon), releases)
    return Budget(policy.epsilon_budget, 0)


def budget_words(task: Task) -> str:
    """Return in words where sites stop, for a network's summary; empty without noise."""
    budget = budget_of(task)
    if budget is None:
        return ""
    if not budget.releases:
        why = f"no release is within epsilon {budget.epsilon:g}, the default of policy.toml"
        return f"{why}; set another there, or take a smaller epsilon or delta"
    releases = numbers.count(budget.releases, "release")
    return f"each site stops at epsilon {budget.epsilon:g}, about {releases}; {POLICY_FILE}"


def _least_sites(task: Task) -> int:
    """Return the least number of sites of a network; the noise's distribution is that of more."""
    return MIN_SITES if task.private is None else max(MIN_SITES, task.private.colluding + 1)


def _rounded_up(epsilon: float) -> float:
    scale = 10.0 ** (BUDGET_DIGITS - 1 - math.floor(math.log10(epsilon)))
    return math.ceil(epsilon * scale - 1e-6) / scale


def _toml_list(names: Iterable[str]) -> str:
    return toml_value(list(dict.fromkeys(names)))
