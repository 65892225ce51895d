"""node.toml and network.toml: reading, writing, and errors in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gosta.errors import InputError
from gosta.net.config import (
    MAX_NODE_FILE_BYTES,
    NetworkConfig,
    NodeConfig,
    NodeSettings,
    Task,
    read_network,
    read_node,
    write,
)
from gosta.private.settings import PrivateSettings
from gosta.runtime.settings_file import keys_of

TASK = Task(
    "0123456789abcdef",
    "mmd",
    confidence_level=0.9,
    options={
        "bandwidth": 0.1 + 0.2,
        "positive": 'a "quoted\\ \x7f\n class 𝛼',
        "rows": [[1.5, 2], [3, -0.0]],
    },
    classes=("a", 1, 2.5),
    label="ill",
)
CONFIG = NodeConfig(
    TASK,
    NodeSettings("node-0", "127.0.0.1:7400", "[::1]:7401", exchanges_per_second=3.5),
    {"node-1": "there:7402", "x_2": ""},
)


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    write(tmp_path / "node.toml", CONFIG)
    assert read_node(tmp_path / "node.toml") == CONFIG
    network = NetworkConfig(TASK, "cycle", {"a": "h:1", "b": "h:3"}, (("a", "b"),), 7)
    write(tmp_path / "network.toml", network)
    assert read_network(tmp_path / "network.toml") == network
    assert sorted(p.name for p in tmp_path.iterdir()) == ["network.toml", "node.toml"]
    assert (tmp_path / "node.toml").read_text().startswith("# A node")


def test_the_file_and_the_documents_explain_every_key(tmp_path: Path) -> None:
    write(tmp_path / "node.toml", CONFIG)
    lines = (tmp_path / "node.toml").read_text().splitlines()
    comments = " ".join(line.lstrip("# ") for line in lines)
    documents = Path(__file__).parents[2] / "docs" / "reference" / "files.md"
    for kind in (Task, PrivateSettings, NodeSettings):
        assert list(keys_of(kind)) == list(kind.__struct_fields__)
        for name, key in keys_of(kind).items():
            assert f"{name}: {key.text}" in comments
    listed = documents.read_text(encoding="utf-8")
    assert [name for name in keys_of(NodeSettings) if f"`{name}`" not in listed] == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[node]\n", "[node\n", "cannot read .*line"),
        ("[node]\n", "[knot]\n", "field.*there are: network, node, neighbours"),
        ("listen =", "lisen =", "unknown field `lisen` in \\[node\\]; there are: name, listen"),
        ('statistic = "mmd"', "", "missing required field `statistic` in \\[network\\]"),
        (
            "exchanges_per_second = 3.5",
            'exchanges_per_second = "fast"',
            "node.exchanges_per_second = 'fast': expected `float`, got `str`",
        ),
        (
            "exchanges_per_second = 3.5",
            "exchanges_per_second = -1",
            "exchanges_per_second = -1.0 must be a finite number",
        ),
        (
            "exchanges_per_second = 3.5",
            "exchanges_per_second = inf",
            "node.exchanges_per_second = inf must be",
        ),
        ("epoch_seconds = 0.0", "epoch_seconds = nan", "node.epoch_seconds = nan must be"),
        (
            "keep_exchanges = 100000",
            "keep_exchanges = -1",
            "node.keep_exchanges = -1 must be a whole number, 0 or more",
        ),
        (
            'statistic = "mmd"',
            'statistic = "mmd"\nencoded_columns = [2, 100000000000]',
            "must be 0 or more, and at most 3,600 together",
        ),
        (
            "max_disclosures = 0",
            "max_disclosures = -2",
            "node.max_disclosures = -2 must be a whole number, 0 or more",
        ),
        (
            'statistic = "mmd"',
            'statistic = "mmd"\nuntil = 1.0',
            "network.until = 1.0 must be a relative error below 1",
        ),
        (
            'statistic = "mmd"',
            'statistic = "mmd"\nuntil = nan',
            "network.until = nan must be a relative error below 1",
        ),
        (
            "epoch_seconds = 0.0",
            "epoch_seconds = 5.0",
            "node.epoch_seconds = 5.0 must be 0, or at least 10",
        ),
        (
            "exchanges_per_second =",
            "rate =",
            "key 'rate' in \\[node\\] is now called 'exchanges_per_second'",
        ),
        (
            "max_exchanges_per_second =",
            "most =",
            "key 'most' .* is now called 'max_exchanges_per_second'",
        ),
        ("epoch_seconds =", "renew =", "key 'renew' .* is now called 'epoch_seconds'"),
        ("status_page =", "status =", "key 'status' .* is now called 'status_page'"),
        (
            "confidence_level =",
            "interval =",
            "key 'interval' in \\[network\\] is now called 'confidence_level'",
        ),
        ("127.0.0.1:7400", "127.0.0.1", "node.listen = '127.0.0.1' must be host:port"),
        ("127.0.0.1:7400", "127.0.0.1:70000", "port from 1 to 65535"),
        ("127.0.0.1:7400", "::1:7400", "must be host:port"),
        ('advertise = ""', 'advertise = "there"', "node.advertise = 'there' must be host:port"),
        (
            'proxy = ""',
            'proxy = "http://me:secret@p:99999"',
            "node.proxy = 'http://p:99999' must be an HTTP proxy",
        ),
        (
            'proxy = ""',
            'proxy = "socks5://me:secret@p:1"',
            "node.proxy = 'socks5://p:1' must be an HTTP proxy",
        ),
        ("[::1]:7401", "127.0.0.1:7400", "give it another port"),
        ("there:7402", "there", "neighbours.node-1 = 'there' must be host:port"),
        ('"mmd"', '"mmmd"', "unknown statistic 'mmmd'; did you mean 'mmd'"),
        ('"mmd"', '"../own.py:mine"', "name no folder"),
        ('statistic = "mmd"', 'statistic = "mmd"\nprotocol = "traking"', "did you mean 'tracking'"),
        ("confidence_level = 0.9", "confidence_level = 95", "must be between 0 and 1"),
        ('"0123456789abcdef"', '"mine"', "16 hexadecimal digits"),
        ('["a", 1, 2.5]', '["a", "a"]', "must name each class once"),
        ('["a", 1, 2.5]', "[true]", "network.classes"),
        ("node-1 =", "node-0 =", "is the node itself"),
        ("node-1 =", '"a/b" =', "neighbours = 'a/b': a node's name"),
        ("node-1 =", f"{'a' * 64} =", "at most 63"),
        ("node-1 =", "x_2 =", "cannot read"),
        ('data = "data.csv"', 'data = ""', "node.data = '' must name a file"),
    ],
)
def test_errors_in_a_file_are_reported_in_one_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "node.toml"
    write(path, CONFIG)
    head, _, rest = path.read_text().partition("[network]\n")
    assert old in rest
    path.write_text(f"{head}[network]\n{rest.replace(old, new, 1)}")
    with pytest.raises(InputError, match=message) as caught:
        read_node(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_are_not_node_files(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    with pytest.raises(InputError, match="no such file"):
        read_node(path)
    path.write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(InputError, match="not text in UTF-8"):
        read_node(path)
    path.write_bytes(b"#" * (MAX_NODE_FILE_BYTES + 1))
    with pytest.raises(InputError, match="more than 1 MiB"):
        read_node(path)
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(InputError, match="cannot read"):
        read_node(path)
    with pytest.raises(InputError, match="Is a directory"):
        read_node(tmp_path)


def test_edges_must_join_two_nodes(tmp_path: Path) -> None:
    path = tmp_path / "network.toml"
    for edge, message in (
        (("a", "c"), "'c', which is not among the nodes"),
        (("a", "a"), "'a' to itself"),
    ):
        write(path, NetworkConfig(TASK, "g", {"a": "h:1", "b": "h:2"}, (edge,)))
        with pytest.raises(InputError, match=message):
            read_network(path)


def test_a_full_disk_leaves_the_old_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "node.toml"
    write(path, CONFIG)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        write(path, NodeConfig(TASK, CONFIG.node, {}))
    assert read_node(path) == CONFIG
    assert list(tmp_path.iterdir()) == [path]
