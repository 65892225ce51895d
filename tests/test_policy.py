"""A site's policy: reading it, and what it forbids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gosta.errors import InputError
from gosta.private.accounting import Spent
from gosta.private.policy import (
    MODES,
    Past,
    Policy,
    Subject,
    changed_rows,
    read_policy,
    row_digests,
    verdict_to_contribute,
    verdict_to_join,
)

NOW = 1_000_000.0
ASKED = Subject("private", ("auc",), ("risk", "died"), "0123456789abcdef", bins=64, rows=50)
NOISY = ASKED._replace(mode="noisy", spent=(Spent("laplace", 1.0),))


def test_no_file_allows_all_modes(tmp_path: Path) -> None:
    policy = read_policy(tmp_path)
    assert (policy.modes, policy.has_file, policy.min_rows) == (MODES, False, 10)


def test_a_file_allows_private_sums_only(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('min_rows = 20\ncolumns = ["risk"]\nepsilon_budget = 4\n')
    policy = read_policy(tmp_path)
    assert (policy.modes, policy.has_file) == (("private",), True)
    assert (policy.min_rows, policy.min_sites, policy.columns, policy.epsilon_budget) == (20, 3, ("risk",), 4.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min_row = 5", "unknown field `min_row`; there are: statistics, columns, modes, min_rows"),
        ("has_file = true", "unknown field `has_file`; there are"),
        ('min_rows = "5"', "min_rows: expected `int`, got `str`; fix the line"),
        ("min_sites = -1", "min_sites = -1 must be 0 or more"),
        ('modes = ["all"]', "modes: invalid enum value 'all'; there are: rows, private, noisy"),
        ("modes = []", r"modes = \[\] allows nothing"),
        ("epsilon_budget = inf", "epsilon_budget = inf must be a number above 0"),
        ("delta_budget = 1.0", "delta_budget = 1.0 must be from 0 to 0.1"),
        ("min_rows = ", "cannot read .*policy.toml: Invalid value"),
        ("\0\xff", "cannot read"),
        ("#" * (1 << 20) + "\n", "more than 1 MiB"),
    ],
)
def test_mistakes_in_the_file_are_one_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=message) as raised:
        read_policy(tmp_path)
    assert "policy.toml" in str(raised.value)


@pytest.mark.parametrize(
    ("rules", "subject", "verdict"),
    [
        ({}, ASKED, ""),
        ({}, NOISY, ""),
        ({}, ASKED._replace(mode="rows"), "rows mode is not allowed"),
        ({"modes": ("rows",)}, ASKED._replace(mode="rows"), ""),
        ({"modes": ("rows",)}, ASKED, "private mode is not allowed"),
        ({"modes": ("rows",)}, NOISY, "private mode is not allowed"),
        ({"modes": ("noisy",)}, ASKED, "sums without noise are not allowed"),
        ({"modes": ("noisy",)}, NOISY, ""),
        ({"statistics": ("gini-index",)}, ASKED, "the statistic auc is not allowed"),
        (
            {"statistics": ("gini-index",), "modes": MODES},
            ASKED._replace(mode="rows"),
            "the statistic auc is not allowed",
        ),
        ({"statistics": ("0123456789abcdef",)}, ASKED, ""),
        ({"columns": ("risk",)}, ASKED, "column died is not allowed"),
        ({"max_bins": 32}, ASKED, "64 bins, 32 allowed"),
        ({}, ASKED._replace(rows=7), "7 rows, 10 needed"),
        ({}, ASKED._replace(rows=1), "1 row, 10 needed"),
        ({"person": "patient"}, ASKED._replace(people=7), "7 people, 10 needed"),
        ({"epsilon_budget": 4.0}, ASKED, "sums without noise are not within a budget of epsilon 4"),
    ],
)
def test_verdict_to_join(rules: dict[str, Any], subject: Subject, verdict: str) -> None:
    assert verdict_to_join(Policy(**rules), subject, [], NOW) == verdict


def test_budget() -> None:
    policy = Policy(epsilon_budget=4.0)
    history = [Past(NOW - 10 * 86_400, Spent("laplace", 1.6))] * 2
    assert verdict_to_join(policy, NOISY, history[:1], NOW) == ""
    assert verdict_to_join(policy, NOISY, history, NOW) == "epsilon 3.2 spent, 1 more would exceed the budget of 4"
    exactly = [Past(NOW, Spent("laplace", 1.0))] * 3
    assert verdict_to_join(policy, NOISY, exactly, NOW) == ""
    assert verdict_to_join(policy, NOISY, [*exactly, Past(NOW, None)], NOW) == ""  # allowed then, without noise
    thrice = NOISY._replace(spent=(Spent("laplace", 1.0, rows_per_person=5),))
    assert verdict_to_join(policy, thrice, [], NOW) == "epsilon 0 spent, 5 more would exceed the budget of 4"


def test_releases_a_day() -> None:
    policy, history = Policy(releases_per_day=2), [Past(NOW - 90_000), Past(NOW - 80_000), Past(NOW - 10)]
    assert verdict_to_join(policy, ASKED, history[:2], NOW) == ""
    assert verdict_to_join(policy, ASKED, history, NOW) == "2 releases in the last 24 hours, 2 allowed"


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"sites": 3}, ""),
        ({"sites": 2}, "2 sites, 3 needed"),
        ({"sites": 4, "members": 8}, ""),
        ({"sites": 4, "members": 9}, "4 of 9 members, 5 needed"),
        ({"sites": 3, "changed": 0}, ""),
        (
            {"sites": 3, "changed": 3},
            "3 rows changed since an earlier contribution: 10 needed, or the same data and sites",
        ),
        ({"sites": 3, "changed": 3, "has_noise": True}, ""),
        ({"sites": 3, "changed": 10, "same_participants": False}, ""),
        (
            {"sites": 3, "changed": 0, "same_participants": False},
            "0 rows changed since an earlier contribution, in which other sites took part: 10 needed, or the same data "
            "and sites",
        ),
    ],
)
def test_verdict_to_contribute(arguments: dict[str, Any], verdict: str) -> None:
    assert verdict_to_contribute(Policy(), **arguments) == verdict
    assert verdict_to_contribute(Policy(person="patient"), **arguments) == verdict.replace("rows", "people")


def test_changed_rows_are_counted_from_digests() -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0], [3.0, 4.0], [0.0, 1.0]])
    key = b"k" * 32

    def changed(rows: list[list[float]]) -> int:
        return changed_rows(row_digests(x, key), row_digests(np.array(rows), key))

    assert changed([[-0.0, 1], [3, 4], [1, 2], [3, 4]]) == 0  # another order, another zero
    assert changed([[1, 2], [3, 4], [0, 1]]) == 1  # one of two equal rows left
    assert changed([[1, 2], [3, 4], [3, 5], [0, 1]]) == 1  # one replaced
    assert changed([[1, 2], [3, 4], [3, 5], [9, 9], [0, 1]]) == 2
    assert changed_rows(b"", row_digests(x, key)) == 4
    assert changed_rows(row_digests(x, key), row_digests(x, b"l" * 32)) == 4


def test_changed_people_are_counted_from_digests() -> None:
    x, key = np.array([[1.0], [2.0], [3.0]]), b"k" * 32
    old = row_digests(x, key, ["ann", "ann", "bob"])
    assert len(old) == 16
    assert changed_rows(old, row_digests(x[[1, 0, 2]], key, np.array(["ann", "ann", "bob"]))) == 0
    assert changed_rows(old, row_digests(x + 1, key, ["ann", "ann", "bob"])) == 2
    assert changed_rows(old, row_digests(x, key, ["ann", "bob", "bob"])) == 2
    assert changed_rows(old, row_digests(np.vstack([x, [[4.0]]]), key, ["ann", "ann", "bob", "bob"])) == 1
