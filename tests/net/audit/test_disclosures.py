"""Which rows left a site: `gosta audit` of a stopped and of a running node."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from ports import free
from processes import Processes

from gosta.net.config import NodeConfig, NodeSettings, Task, read_node, write
from gosta.net.node.source import read_row_source
from gosta.net.storage.journal import Journal
from gosta.net.storage.ledger import Shown

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A node with ten rows, of which some were sent to two neighbours, and some of an earlier
    file.
    """
    (tmp_path / "data.csv").write_text("x1,x2\n" + "0.5,1.0\n" * 10)
    (tmp_path / "policy.toml").write_text('modes = ["rows"]\n')
    port = free(2)
    settings = NodeSettings("node-0", f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}", tls=False)
    write(
        tmp_path / "node.toml",
        NodeConfig(Task("0" * 16, "auc", encoded_columns=2), settings, {"node-1": ""}),
    )
    data = read_row_source(read_node(tmp_path / "node.toml"), tmp_path).data_digest
    journal = Journal(tmp_path / "journal.sqlite")
    journal.check_owner("node-0")
    journal.append([], [Shown("earlier", "node-1", 0, 1, 1)])
    journal.append([], [Shown(data, "node-1", 8, 4, 10)])
    journal.save_snapshot(b"never read")
    journal.append([], [Shown(data, "node-2", 0, 4, 10)])
    journal.append([], [Shown(data, "node-1", 8, 4, 10)])
    journal.close()
    return tmp_path


def test_an_audit_shows_rows_neighbours_and_who_can_see_them(folder: Path, gosta_: Call) -> None:
    code, out, _ = gosta_("audit", folder)
    assert code == 0
    assert "earlier (an earlier file)" in out
    assert "4 of 10" in out
    assert "they can be seen by all nodes" in out
    found = [json.loads(line) for line in gosta_("audit", folder, "--json")[1].splitlines()]
    assert [
        (one["neighbour"], one["samples"], one["rows"], one["of"], one["is_current"])
        for one in found
    ] == [("node-1", 2, 4, 10, True), ("node-2", 1, 4, 10, True), ("node-1", 1, 1, 1, False)]


def test_an_audit_needs_no_policy(folder: Path, gosta_: Call) -> None:
    """What left a site can be seen where its policy is missing, or forbids that anything else
    leaves it.
    """
    whole = gosta_("audit", folder)
    for policy in ('modes = ["private"]\n', "modes =\n"):
        (folder / "policy.toml").write_text(policy)
        assert gosta_("audit", folder) == whole
    (folder / "policy.toml").unlink()
    assert gosta_("audit", folder) == whole


def test_an_audit_of_every_row(folder: Path, gosta_: Call) -> None:
    rows = [
        json.loads(line) for line in gosta_("audit", folder, "--rows", "--json")[1].splitlines()
    ]
    current = {row["row"]: row["neighbours"] for row in rows if row["is_current"]}
    both = {"node-1": 2, "node-2": 1}
    assert current == {
        0: both,
        1: both,
        2: {"node-2": 1},
        3: {"node-2": 1},
        8: {"node-1": 2},
        9: {"node-1": 2},
    }
    assert "node-1 2 x, node-2 1 x" in gosta_("audit", folder, "--rows")[1]


def test_an_audit_without_a_journal_or_without_rows(folder: Path, gosta_: Call) -> None:
    (folder / "journal.sqlite").unlink()
    code, _, error = gosta_("audit", folder)
    assert (code, error.count("\n")) == (2, 1)
    assert "no row left this site" in error
    Journal(folder / "journal.sqlite").close()
    assert gosta_("audit", folder)[1] == "node-0: no row of this site was sent to a neighbour\n"


def test_an_audit_of_a_running_node(folder: Path, gosta_: Call) -> None:
    stopped = gosta_("audit", folder, "--rows", "--json")
    journal = Journal(folder / "journal.sqlite")
    journal._db.execute("DELETE FROM snapshot")  # the test's snapshot is not that of a peer
    journal._db.execute("DELETE FROM records")
    journal.close()
    config = read_node(folder / "node.toml")
    with Processes(folder) as node:
        node.start(folder.name)
        node.wait(lambda _: True)
        code, out, _ = gosta_("audit", folder, "--rows", "--json")
        settings = msgspec.structs.replace(config.node, status_page="")
        write(folder / "node.toml", msgspec.structs.replace(config, node=settings))
        refused = gosta_("audit", folder)
        node.stop()
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert len(rows) < len(stopped[1].splitlines())  # those after the snapshot are gone
    assert {row["row"] for row in rows if row["is_current"]} == {8, 9, 0, 1}
    assert refused[0] == 2
    assert "set status_page in node.toml, or stop the node first" in refused[2]
