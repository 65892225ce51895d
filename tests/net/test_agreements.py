"""Agreements of a site's operator: the file, and the commands 'gosta network agree' and 'gosta node
leave'.
"""

from __future__ import annotations

import os
import pty
import sys
import time
from pathlib import Path
from typing import Any

import ports
import pytest
from terminal import read_rest, read_until

from gosta.errors import InputError
from gosta.net.agreements import (
    AGREED_FILE,
    Agreements,
    add_agreement,
    read_agreements,
    set_leaving,
)

INIT = (
    "network",
    "init",
    "--private",
    "--score",
    "risk",
    "--label",
    "died",
    "--classes",
    "0,1",
    "--range",
    "risk=0:1",
)
CLEAR = (
    "The exact sums of node-4 can then be computed by everybody who has the totals with and "
    "without it."
)


@pytest.fixture
def net(tmp_path: Path, gosta_: Any) -> Path:
    folder = tmp_path / "net"
    assert gosta_(*INIT, "--nodes", 4, "--port", ports.free(), folder)[0] == 0
    return folder


def test_agreements_are_kept(tmp_path: Path) -> None:
    assert read_agreements(tmp_path) == Agreements()
    add_agreement(tmp_path, ["node-4"])
    before = time.time()
    agreed = add_agreement(tmp_path, ["node-1", "node-4"])
    assert [*agreed.sites] == ["node-4", "node-1"]
    assert before <= min(agreed.sites.values()) <= time.time(), "it is about the site as it is now"
    set_leaving(tmp_path, True, "node-0")
    assert read_agreements(tmp_path).leaves
    assert [*read_agreements(tmp_path).sites] == ["node-4", "node-1", "node-0"]
    add_agreement(tmp_path, ["node-2"])
    assert read_agreements(tmp_path).leaves
    set_leaving(tmp_path, False, "node-0")
    assert not read_agreements(tmp_path).leaves
    assert [*read_agreements(tmp_path).sites] == ["node-4", "node-1", "node-2"]
    assert [path.name for path in tmp_path.iterdir()] == [AGREED_FILE]
    assert (tmp_path / AGREED_FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "does not hold agreements"),
        (b"[]", "does not hold agreements"),
        (b'{"sites": ["a"], "all": true}', "does not hold agreements"),
        (b'{"sites": "node-1"}', "does not hold agreements"),
        (b'{"leaves": 1}', "does not hold agreements"),
        (b'{"sites": {"a\\n": 0}}', "a node's name has at most 63 letters"),
        (
            b'{"sites": {' + b",".join(b'"a%d": 0' % k for k in range(10_001)) + b"}}",
            "does not hold agreements",
        ),
        (b" " * (1 << 20) + b"{}", "more than 1 MiB"),
        (b"[" * 100_000, "does not hold agreements"),
        (b"\xff", "does not hold agreements"),
    ],
)
def test_damaged_agreements_are_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / AGREED_FILE).write_bytes(content)
    with pytest.raises(InputError, match=message) as raised:
        read_agreements(tmp_path)
    assert "\n" not in str(raised.value)
    with pytest.raises(InputError):
        add_agreement(tmp_path, ["node-1"])
    assert (tmp_path / AGREED_FILE).read_bytes() == content


def test_too_many_sites_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="10,001 sites are more than the limit of 10,000"):
        add_agreement(tmp_path, [f"a{k}" for k in range(10_001)])
    assert read_agreements(tmp_path) == Agreements()


def test_agree_for_a_node_and_for_a_network(net: Path, gosta_: Any) -> None:
    code, out, err = gosta_("network", "agree", net / "node-1", "node-4", "--yes")
    assert (code, err) == (0, "")
    assert out.startswith(f"{CLEAR}\nThere is no way back.\n")
    assert "note: node-4 is in no member list here" in out
    assert (
        f"{net / 'node-1'}: node-1 agreed about node-4; running nodes see it by themselves" in out
    )
    assert not (net / "node-0" / AGREED_FILE).exists()
    code, out, _ = gosta_("network", "agree", net, "node-2", "node-3", "--yes")
    assert code == 0
    assert "note" not in out
    assert "node-0, node-1, node-2, node-3 agreed about node-2, node-3" in out
    assert tuple(read_agreements(net / "node-1").sites) == ("node-4", "node-2", "node-3")
    assert tuple(read_agreements(net / "node-2").sites) == ("node-2", "node-3")


def test_without_a_confirmation_nothing_is_agreed(net: Path, gosta_: Any) -> None:
    for command in (("network", "agree", net, "node-3"), ("node", "leave", net / "node-3")):
        code, _, err = gosta_(*command)
        assert (code, err.count("\n")) == (2, 1)
        assert "not confirmed" in err
    assert not list(net.rglob(AGREED_FILE))


def test_a_confirmation_at_the_terminal(net: Path) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.execv(
            sys.executable,
            [sys.executable, "-m", "gosta", "network", "agree", str(net / "node-1"), "node-4"],
        )
    read_until(terminal, b"Do you agree, for node-1? [y/N] ")
    os.write(terminal, b"y\n")
    out = read_rest(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, out
    assert tuple(read_agreements(net / "node-1").sites) == ("node-4",)


def test_leave_and_back(net: Path, gosta_: Any) -> None:
    code, out, _ = gosta_("node", "leave", net / "node-1", "--yes")
    assert code == 0
    assert CLEAR.replace("node-4", "node-1") in out
    assert "gosta network remove NETWORK node-1" in out
    assert read_agreements(net / "node-1").leaves
    assert [*read_agreements(net / "node-1").sites] == ["node-1"]
    code, out, _ = gosta_("node", "leave", net / "node-1", "--back")
    assert code == 0
    assert "node-1 stays" in out
    assert read_agreements(net / "node-1") == Agreements()


def test_with_noise_another_thing_is_agreed(tmp_path: Path, gosta_: Any) -> None:
    folder = tmp_path / "net"
    assert gosta_(*INIT, "--epsilon", 1, "--nodes", 3, "--port", ports.free(), folder)[0] == 0
    code, out, _ = gosta_("network", "agree", folder, "node-2", "--yes")
    assert code == 0
    assert out.startswith(
        "Epochs with node-2 can then cost epsilon again, even if it lets them fail.\n"
    )
    assert tuple(read_agreements(folder / "node-0").sites) == ("node-2",)
    code, out, _ = gosta_("node", "leave", folder / "node-0", "--yes")
    assert (code, "exact sums" in out) == (0, False)


def test_where_rows_are_exchanged_there_is_nothing_to_agree_about(
    tmp_path: Path, gosta_: Any
) -> None:
    init = (
        "network",
        "init",
        tmp_path / "net",
        "--score",
        "risk",
        "--label",
        "died",
        "--classes",
        "0,1",
        "--nodes",
        3,
    )
    assert gosta_(*init, "--port", ports.free())[0] == 0
    for place in (tmp_path / "net", tmp_path / "net" / "node-0"):
        code, _, err = gosta_("network", "agree", place, "node-2", "--yes")
        assert (code, err.count("\n")) == (2, 1)
        assert "this network exchanges rows, not sums: there is nothing to agree about" in err
    code, _, err = gosta_("node", "leave", tmp_path / "net" / "node-0", "--yes")
    assert (code, "exchanges rows" in err) == (2, True)


def test_mistakes_say_what_to_do(net: Path, gosta_: Any) -> None:
    for arguments, message in (
        (
            ("network", "agree", net, "node 3", "--yes"),
            "site = 'node 3': a node's name has at most 63 letters",
        ),
        (("network", "agree", net / "none", "node-3", "--yes"), "no such file"),
        (("node", "leave", net, "--yes"), "is a network's folder; name that of a node"),
    ):
        code, _, err = gosta_(*arguments)
        assert (code, message in err, err.count("\n")) == (2, True, 1), err


def test_removing_a_site_says_what_it_costs(tmp_path: Path, net: Path, gosta_: Any) -> None:
    out = gosta_("network", "remove", net, "node-3")[1]
    assert f"operator runs:\n  gosta network agree {net} node-3\n" in out
    assert (
        "the totals with and without node-3 give its exact sums; none waits if it left by: gosta "
        "node leave" in out
    )
    noisy = tmp_path / "noisy"
    assert gosta_(*INIT, "--epsilon", 2, "--nodes", 4, "--port", ports.free(), noisy)[0] == 0
    out = gosta_("network", "remove", noisy, "node-3")[1]
    assert "the next release, without node-3, costs each site epsilon 2 of its budget" in out
