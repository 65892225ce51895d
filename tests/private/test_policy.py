"""A site's policy: reading it, and what it forbids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gosta.errors import InputError
from gosta.private.accounting import Spent
from gosta.private.policy import (
    MODES,
    Past,
    Policy,
    Subject,
    may_replace,
    read_policy,
    verdict_to_contribute,
    verdict_to_join,
)

NOW = 1_000_000.0
ASKED = Subject("private", ("auc",), ("risk", "died"), "0123456789abcdef", bins=64, rows=50)
NOISY = ASKED._replace(mode="noisy", spent=(Spent("laplace", 1.0),))


def test_without_a_file_nothing_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match="is missing, and without it nothing leaves this site; write what it may send",
    ):
        read_policy(tmp_path)
    (tmp_path / "policy.toml").mkdir()
    with pytest.raises(InputError, match=r"cannot read .*policy.toml: Is a directory"):
        read_policy(tmp_path)


def test_a_file_allows_private_sums_only(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('min_rows = 20\ncolumns = ["risk"]\nepsilon_budget = 4\n')
    policy = read_policy(tmp_path)
    assert policy.modes == ("private",)
    assert (policy.min_rows, policy.min_sites, policy.columns, policy.epsilon_budget) == (
        20,
        3,
        ("risk",),
        4.0,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("min_row = 5", "unknown field `min_row`; there are: statistics, columns, modes, min_rows"),
        ('min_rows = "5"', "min_rows = '5': expected `int`, got `str`; fix the line"),
        ("min_sites = -1", "min_sites = -1 must be a whole number from 0 to 1,000,000,000"),
        (
            'modes = ["all"]',
            "modes.0 = 'all': invalid enum value 'all'; "
            "there are: rows, private, noisy; fix the line",
        ),
        ("modes = []", r"modes = \[\] allows nothing"),
        ("epsilon_budget = inf", "epsilon_budget = inf must be a number above 0, such as 10"),
        ("epsilon_budget = nan", "epsilon_budget = nan must be a number above 0"),
        ("max_min_cell = -1", "max_min_cell = -1 must be a whole number from 0 to 1,000,000,000"),
        (
            f"min_cell = {2**80}",
            "min_cell = 1208925819614629174706176 must be a whole number from 0 to 1,000,000,000",
        ),
        (
            "min_cell = 51",
            "min_cell = 51 exceeds max_min_cell = 50, .*; "
            "raise max_min_cell too, or lower min_cell",
        ),
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
        (
            {},
            ASKED._replace(alone=("hospital",)),
            "all its rows have one value of hospital, so that results by hospital may be those of "
            "this site alone; hospital among columns, or min_sites = 1, permits it",
        ),
        ({"min_sites": 1}, ASKED._replace(alone=("hospital",)), ""),
        (
            {"columns": ("risk", "died", "hospital")},
            ASKED._replace(columns=("risk", "died", "hospital"), alone=("hospital",)),
            "",
        ),
        ({"person": "patient"}, ASKED._replace(people=7), "7 people, 10 needed"),
        ({"epsilon_budget": 4.0}, ASKED, ""),
        (
            {},
            NOISY._replace(spent=(Spent("laplace", 10.5),)),
            "epsilon 0 spent, 10.5 more would exceed the budget of 10",
        ),
        ({"epsilon_budget": 0.5}, NOISY._replace(spent=()), ""),
    ],
)
def test_verdict_to_join(rules: dict[str, Any], subject: Subject, verdict: str) -> None:
    assert verdict_to_join(Policy(**rules), subject, [], NOW) == verdict


def test_budget() -> None:
    policy = Policy(epsilon_budget=4.0)
    history = [Past(NOW - 10 * 86_400, Spent("laplace", 1.6))] * 2
    assert verdict_to_join(policy, NOISY, history[:1], NOW) == ""
    assert (
        verdict_to_join(policy, NOISY, history, NOW)
        == "epsilon 3.2 spent, 1 more would exceed the budget of 4"
    )
    exactly = [Past(NOW, Spent("laplace", 1.0))] * 3
    assert verdict_to_join(policy, NOISY, exactly, NOW) == ""
    assert (
        verdict_to_join(policy, NOISY, [*exactly, Past(NOW, None)], NOW) == ""
    )  # allowed then, without noise
    thrice = NOISY._replace(spent=(Spent("laplace", 1.0, rows_per_person=5),))
    assert (
        verdict_to_join(policy, thrice, [], NOW)
        == "epsilon 0 spent, 5 more would exceed the budget of 4"
    )


def test_releases_a_day() -> None:
    policy, history = (
        Policy(releases_per_day=2),
        [Past(NOW - 90_000), Past(NOW - 80_000), Past(NOW - 10)],
    )
    assert verdict_to_join(policy, ASKED, history[:2], NOW) == ""
    assert (
        verdict_to_join(policy, ASKED, history, NOW) == "2 releases in the last 24 hours, 2 allowed"
    )


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ({"sites": 3}, ""),
        ({"sites": 2}, "2 sites, 3 needed"),
        ({"sites": 4, "members": 6}, ""),
        ({"sites": 4, "members": 7}, "4 of 7 members, 5 needed"),
    ],
)
def test_verdict_to_contribute(arguments: dict[str, Any], verdict: str) -> None:
    assert verdict_to_contribute(Policy(), **arguments) == verdict


def test_rows_replace_those_of_earlier_contributions_unless_a_few_changed() -> None:
    assert may_replace(Policy(), [])
    assert may_replace(Policy(), [0, 10, 50])
    assert not may_replace(Policy(), [0, 9, 50])
