"""Damaged files of a site of private sums: commands say what is wrong, a running node goes on."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import ports
import pytest
from memory_transport import MemoryNetwork
from virtual_clock import VirtualClock

from gosta.cli.main import main
from gosta.errors import GostaError
from gosta.net.config import HEAD_FILE, JOURNAL_FILE, NODE_FILE, read_node
from gosta.net.node import service
from gosta.net.node.credentials import ListFolder, load_credentials
from gosta.net.node.reload import FileWatcher
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol.sum_epoch import Round
from gosta.net.storage.contributions import write_head
from gosta.net.storage.journal import Journal
from gosta.private.noise import NO_NOISE

FILES = (
    "policy.toml",
    NODE_FILE,
    "agreed.json",
    "conflict.json",
    "members.json",
    HEAD_FILE,
    JOURNAL_FILE,
    "data.csv",
)
SIZE = 100 << 20
Damage = Callable[[Path, bytes, random.Random], None]


def run(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["gosta", *map(str, arguments)])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the folder of a network, with an entry in the log of its first site."""
    place = tmp_path_factory.mktemp("files")
    rng = random.Random(3)
    rows = [f"{rng.random():.3f},{k % 2}" for k in range(120)]
    (place / "rows.csv").write_text("\n".join(["risk,died", *rows]) + "\n")
    folder, given = (
        place / "net",
        ["--data", place / "rows.csv", "--statistic", "auc", "--score", "risk"],
    )
    given += [
        "--label",
        "died",
        "--range",
        "risk=0:1",
        "--private",
        "--nodes",
        3,
        "--port",
        ports.free(6),
    ]
    with pytest.MonkeyPatch.context() as patch:
        assert run("network", "init", folder, *given, monkeypatch=patch) == 0
    site = folder / "node-0"
    node, journal = make_node(site)
    entry = node.peer._entry(
        "suppressed", node._now(), Round(1, node.peer.source.layout, NO_NOISE), reason="a test"
    )
    journal.append((), (), (entry,))
    write_head(site / HEAD_FILE, journal.contributions())
    journal.close()
    return folder


def make_node(folder: Path, clock: VirtualClock | None = None) -> tuple[SumNode, Journal]:
    """Make a node as its process does."""
    config = read_node(folder / NODE_FILE)
    load_credentials(folder, config, lambda *_, **__: None)
    made, journal = service._make_node(
        config,
        folder,
        clock or VirtualClock(),  # type: ignore[arg-type]
        lambda *_, **__: None,
    )
    assert isinstance(made, SumNode)
    made.lists = ListFolder(folder, config.network.id, lambda *_, **__: None)
    return made, journal


def flip(path: Path, content: bytes, rng: random.Random) -> None:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 8])):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    path.write_bytes(changed)


def cut(path: Path, content: bytes, rng: random.Random) -> None:
    path.write_bytes(content[: rng.randrange(len(content))])


def zeros(path: Path, content: bytes, _: random.Random) -> None:
    path.write_bytes(bytes(len(content)))


def empty(path: Path, _content: bytes, _: random.Random) -> None:
    path.write_bytes(b"")


def nested(path: Path, _content: bytes, _: random.Random) -> None:
    path.write_bytes(b"[" * 200_000)


def huge(path: Path, content: bytes, _: random.Random) -> None:
    path.write_bytes(content)
    with path.open("r+b") as file:
        file.truncate(SIZE)


def folder(path: Path, _content: bytes, _: random.Random) -> None:
    path.mkdir()


def loop(path: Path, _content: bytes, _: random.Random) -> None:
    path.symlink_to(path.name)


DAMAGES: tuple[Damage, ...] = (flip, cut, zeros, empty, nested, huge, folder, loop)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_an_error_in_words(
    made: Path, tmp_path: Path, name: str, damage: Damage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command ends with another exception, and a node that starts can say what is wrong."""
    site, rng = tmp_path / "node-0", random.Random(f"{name} {damage.__name__}")
    shutil.copytree(made / "node-0", site)
    path = site / name
    content = path.read_bytes() if path.exists() else b'{"sites":["node-1"],"leaves":false}'
    path.unlink(missing_ok=True)
    damage(path, content, rng)
    for command in ("status", "check", "audit"):
        assert run(command, site, monkeypatch=monkeypatch) in (0, 1, 2)
    try:
        node, journal = make_node(site)
        node._find_conflict()
        node.status()
        journal.close()
    except GostaError as error:
        assert str(error)
    else:
        is_unreadable = damage in (zeros, nested, huge, folder, loop)
        assert not (is_unreadable and name in ("policy.toml", "agreed.json")), (
            "without them nothing is contributed"
        )


@pytest.mark.parametrize(
    "rows",
    ["0.5,maybe", "high,1", "0.5", ",1", "0.5,1,7"],
    ids=["class", "number", "short", "missing", "long"],
)
def test_a_data_file_with_a_wrong_row_does_not_stop_a_running_node(
    made: Path, tmp_path: Path, rows: str
) -> None:
    """It says so, keeps its rows, its timers and its status, and takes the corrected file."""
    site, clock = tmp_path / "node-0", VirtualClock()
    shutil.copytree(made / "node-0", site)
    node, journal = make_node(site, clock)
    node.start(MemoryNetwork(clock, 0.01).attach(node.peer.name, node), "boot")
    watcher = FileWatcher(node, site, lambda *_, **__: None)
    count = node.peer.source.rows  # type: ignore[attr-defined]
    data = site / node.config.node.data
    right = data.read_text()
    for text, is_error in ((right + rows + "\n", True), (right + "0.25,1\n", False)):
        data.write_text(text)
        for _ in range(12):
            watcher.poll()
            clock.run(clock.now + 1.0)
        assert bool(node.reload_error) == is_error
        assert node.status().rows == count + (not is_error)
        assert "heartbeat" in node._timers
    journal.close()
