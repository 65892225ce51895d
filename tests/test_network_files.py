"""The files of a network: read, written, and all the ways in which they can be wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gosta.errors import InputError
from gosta.net.config import (
    MOST_BYTES,
    NetworkFile,
    NodeFile,
    Place,
    Task,
    read_network,
    read_node,
    write_network,
    write_node,
)

TASK = Task(
    "0123456789abcdef",
    "mmd",
    interval=0.9,
    options={"bandwidth": 0.1 + 0.2, "positive": 'a "quoted\\ \x7f\n class 𝛼', "rows": [[1.5, 2], [3, -0.0]]},
    classes=("a", 1, 2.5),
    label="ill",
)
FILE = NodeFile(TASK, Place("node-0", "127.0.0.1:7400", "[::1]:7401", rate=3.5), {"node-1": "there:7402", "x_2": ""})


def test_files_come_back_as_they_were(tmp_path: Path) -> None:
    write_node(tmp_path / "node.toml", FILE)
    assert read_node(tmp_path / "node.toml") == FILE
    network = NetworkFile(TASK, "cycle", {"a": "h:1", "b": "h:3"}, (("a", "b"),), 7)
    write_network(tmp_path / "network.toml", network)
    assert read_network(tmp_path / "network.toml") == network
    assert sorted(p.name for p in tmp_path.iterdir()) == ["network.toml", "node.toml"]
    assert (tmp_path / "node.toml").read_text().startswith("# A node")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[node]\n", "[node\n", "cannot read .*line"),
        ("[node]\n", "[knot]\n", "field.*there are: network, node, neighbours"),
        ("listen =", "lisen =", "unknown field `lisen` in \\[node\\]; there are: name, listen"),
        ('statistic = "mmd"', "", "missing required field `statistic` in \\[network\\]"),
        ("rate = 3.5", 'rate = "fast"', "node.rate = 'fast': expected `float`, got `str`"),
        ("rate = 3.5", "rate = -1", "rate = -1.0 must be a finite number"),
        ("rate = 3.5", "rate = inf", "node.rate = inf must be"),
        ("renew = 0.0", "renew = nan", "node.renew = nan must be"),
        ("127.0.0.1:7400", "127.0.0.1", "node.listen = '127.0.0.1' must be host:port"),
        ("127.0.0.1:7400", "127.0.0.1:70000", "port from 1 to 65535"),
        ("127.0.0.1:7400", "::1:7400", "must be host:port"),
        ("127.0.0.1:7400", "", "node.listen = '' must be host:port"),
        ("[::1]:7401", "127.0.0.1:7400", "give it another port"),
        ("there:7402", "there", "neighbours.node-1 = 'there' must be host:port"),
        ('"mmd"', '"mmmd"', "unknown statistic 'mmmd'; did you mean 'mmd'"),
        ('"mmd"', '"../own.py:mine"', "name no folder"),
        ('statistic = "mmd"', 'statistic = "mmd"\nprotocol = "traking"', "did you mean 'tracking'"),
        ("interval = 0.9", "interval = 95", "must lie between 0 and 1"),
        ('"0123456789abcdef"', '"mine"', "16 hexadecimal digits"),
        ('["a", 1, 2.5]', '["a", "a"]', "each class may stand there once"),
        ('["a", 1, 2.5]', "[true]", "network.classes"),
        ("node-1 =", "node-0 =", "is the node itself"),
        ("node-1 =", '"a/b" =', "neighbours = 'a/b': a node's name"),
        ("node-1 =", f"{'a' * 64} =", "at most 63"),
        ("node-1 =", "x_2 =", "cannot read"),
        ('data = "data.csv"', 'data = ""', "node.data = '' must name a file"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "node.toml"
    write_node(path, FILE)
    head, _, rest = path.read_text().partition("[network]\n")
    assert old in rest
    path.write_text(f"{head}[network]\n{rest.replace(old, new, 1)}")
    with pytest.raises(InputError, match=message) as caught:
        read_node(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    with pytest.raises(InputError, match="no such file"):
        read_node(path)
    path.write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_node(path)
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_node(path)
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(InputError, match="cannot read"):
        read_node(path)
    with pytest.raises(InputError, match="Is a directory"):
        read_node(tmp_path)


def test_edges_are_between_nodes(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    for edge, message in ((("a", "c"), "'c', which is not among the nodes"), (("a", "a"), "'a' to itself")):
        write_network(path, NetworkFile(TASK, "g", {"a": "h:1", "b": "h:2"}, (edge,)))
        with pytest.raises(InputError, match=message):
            read_network(path)


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "node.toml"
    write_node(path, FILE)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        write_node(path, NodeFile(TASK, FILE.node, {}))
    assert read_node(path) == FILE
    assert list(tmp_path.iterdir()) == [path]
