"""Changed files of a running node are used if complete; a deleted data file withdraws the rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from reloading_site import ROWS, Site

from gosta.errors import InputError
from gosta.net.agreements import add_agreement
from gosta.net.config import Task, read_node, write
from gosta.net.node.reload import STABLE_POLLS, UNFINISHED_POLLS, stat_file
from gosta.net.node.source import read_row_source


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.node.stop()


def test_new_rows_are_used_once_the_file_is_complete(site: Site) -> None:
    assert site.poll() == (1, 2)
    for k in range(5):  # it is written slowly: never the same for two polls
        site.data.write_text(ROWS + "0.125,1.0\n" * k)
        assert site.poll(1) == (1, 2)
    assert site.poll(STABLE_POLLS - 1) == (2, 6)
    assert site.poll(10) == (2, 6)
    assert site.events.count("reloaded") == 1


def test_the_same_content_is_no_change(site: Site) -> None:
    for k in range(3):
        os.utime(site.data, ns=(k, k))
        site.toml.write_bytes(site.toml.read_bytes())
        assert site.poll() == (1, 2)
    site.data.write_text(ROWS + "1.5,1.0\n")
    site.poll(1)
    site.data.write_text(ROWS)
    assert site.poll(5) == (1, 2)
    assert "reloaded" not in site.events


def test_a_line_without_an_end_is_half_a_line_for_a_while(site: Site) -> None:
    site.data.write_text(ROWS + "0.125,1.0")
    assert site.poll(UNFINISHED_POLLS - 1) == (1, 2)
    assert site.poll(1) == (2, 3)
    change_settings(site, exchanges_per_second=7.5)
    site.poll()
    assert site.node.config.node.exchanges_per_second == 7.5


def test_invalid_files_change_nothing_and_are_shown(site: Site) -> None:
    site.data.write_text(ROWS + "0.125\n")
    assert site.poll() == (1, 2)
    assert "data.csv" in site.node.status().reload_error
    assert site.events.count("reload failed") == 1
    site.poll(5)
    assert site.events.count("reload failed") == 1
    site.data.write_text(ROWS)
    assert site.poll() == (1, 2)
    assert site.node.status().reload_error == ""
    site.toml.write_text("nothing\n")
    site.poll()
    assert "node.toml" in site.node.reload_error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            None,
            "policy.toml is missing, and without it nothing leaves this site; write what it may "
            "send",
        ),
        ("", "rows mode is not allowed; change it, or leave the network"),
        ("min_rows = many\n", "policy.toml: Invalid value"),
        ("min_row = 5\n", "unknown field `min_row`; there are: statistics"),
        ("min_sites = -1\n", "min_sites = -1 must be a whole number from 0 to 1,000,000,000"),
        ('modes = ["rows"]\nmin_cell = 99\n', "min_cell = 99 exceeds max_min_cell = 50"),
    ],
)
def test_without_a_policy_that_allows_it_the_rows_are_withdrawn(
    site: Site, text: str | None, reason: str
) -> None:
    policy = site.data.with_name("policy.toml")
    allowed = policy.read_text()
    if text is None:
        policy.unlink()
    else:
        policy.write_text(text)
    site.poll()
    assert site.node.status().state == "withdrawn"
    assert site.node.reload_error.startswith("withdrawn: ")
    assert reason in site.node.reload_error
    assert "\n" not in site.node.reload_error
    assert site.events.count("reload failed") == 1
    site.data.write_text(ROWS + "0.125,1.0\n")  # new rows change nothing
    site.poll()
    assert site.node.peer.is_withdrawn
    policy.write_text(allowed)
    assert site.poll()[1] == 3
    assert not site.node.peer.is_withdrawn
    assert site.node.reload_error == ""


def test_a_policy_that_can_no_longer_be_opened_is_noticed(site: Site) -> None:
    """Its size and modification time are as before."""
    policy = site.data.with_name("policy.toml")
    before = stat_file(policy)
    policy.chmod(0o200)
    assert stat_file(policy) != before
    policy.unlink()
    policy.mkdir()
    site.poll()
    assert "policy.toml: Is a directory" in site.node.reload_error
    assert site.node.peer.is_withdrawn


def test_a_node_does_not_start_without_a_policy(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.node.stop()
    (tmp_path / "policy.toml").unlink()
    config = read_node(site.toml)
    with pytest.raises(InputError, match="is missing, and without it nothing leaves this site"):
        read_row_source(config, tmp_path)
    assert (
        len(read_row_source(config, tmp_path, has_key=False).estimand.x) == 2
    )  # to check what it did earlier


def test_agreements_are_loaded(site: Site) -> None:
    assert site.poll() == (1, 2)
    add_agreement(site.data.parent, ["node-4"])
    site.poll()
    assert site.events.count("reloaded") == 1


def change_settings(site: Site, **settings: Any) -> None:
    config = read_node(site.toml)
    write(
        site.toml,
        msgspec.structs.replace(config, node=msgspec.structs.replace(config.node, **settings)),
    )


def test_some_settings_need_a_restart(site: Site) -> None:
    change_settings(site, keep_exchanges=5)
    site.poll()
    assert "restart the node" in site.node.reload_error
    change_settings(site, keep_exchanges=100_000, exchanges_per_second=7.5)
    site.poll()
    assert site.node.reload_error == ""
    assert site.node.config.node.exchanges_per_second == 7.5


def test_a_changed_file_of_the_statistic_needs_a_restart(tmp_path: Path) -> None:
    """Other sites would go on with the old kernel, and nobody would notice."""
    own = tmp_path / "own.py"
    text = "import gosta\n\n@gosta.statistic\ndef reload_gap(x, y):\n    return abs(x[0] - y[0])\n"
    own.write_text(text)
    (tmp_path / "data.csv").write_text(ROWS)
    site = Site(tmp_path, Task("0" * 16, "own.py:reload-gap", encoded_columns=2))
    own.write_text(text.replace("abs", "2 * abs"))
    site.data.write_text(ROWS + "0.75,1.0\n")
    assert site.poll() == (1, 2)
    assert site.node.reload_error.startswith(
        "restart the node: a file that the statistic needs has changed"
    )
    own.write_text(text)
    site.data.write_text(ROWS + "0.75,1.0\n0.5,1.0\n")
    assert site.poll() == (2, 4)
    site.node.stop()


def test_a_deleted_data_file_withdraws_the_rows(site: Site) -> None:
    site.data.unlink()
    assert site.poll(1) == (1, 2)
    assert not site.node.peer.is_withdrawn
    assert site.poll(1) == (2, 2)
    assert site.node.peer.is_withdrawn
    assert site.node.status().state == "withdrawn"
    assert site.poll(5) == (2, 2)
    site.data.write_text(ROWS)
    assert site.poll() == (3, 2)
    assert not site.node.peer.is_withdrawn
    assert site.events.count("withdrawn") == 1


def test_another_data_file_can_be_named_before_it_is_there(site: Site) -> None:
    other = site.data.with_name("other.csv")
    change_settings(site, data="other.csv")
    assert site.poll() == (1, 2)
    assert "other.csv" in site.node.reload_error
    assert not site.node.peer.is_withdrawn
    other.write_text(ROWS + "1.5,1.0\n")
    assert site.poll() == (2, 3)
    assert site.node.reload_error == ""
    site.data.unlink()
    assert site.poll(5) == (2, 3)
    other.unlink()
    site.poll()
    assert site.node.peer.is_withdrawn
