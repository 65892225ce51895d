"""Supervising a network's processes: start, status, restart, stop, with fake nodes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import ports
import pytest
from commands import command
from terminal import read_rest, read_until

from gosta.errors import NetworkError
from gosta.net.config import NodeConfig, NodeSettings, Task, read_node
from gosta.net.deploy import plan, supervisor
from gosta.net.deploy.network import Network
from gosta.net.deploy.query import View, all_within, query_status
from gosta.net.node import lock
from gosta.net.node.status import Status
from gosta.net.watch import overview
from gosta.net.watch.overview import spread

FAKE_NODE = Path(__file__).parents[1] / "support" / "fake_node.py"


def fake_node(folder: Path) -> list[str]:
    return [sys.executable, str(FAKE_NODE), str(folder)]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "net"
    Network.create(
        folder, plan.for_sites(plan.Goal("kendall-tau"), "cycle", 3, 0), port=ports.free()
    )
    for name in Network.read(folder).config.nodes:
        (folder / name / "data.csv").write_text("a,b\n1,2\n")
    yield folder
    assert not [
        name for name in Network.read(folder).config.nodes if lock.is_running(folder / name)
    ]


@pytest.fixture
def gosta_(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(supervisor, "node_command", fake_node)

    return command(capsys, monkeypatch)


class Reached(Exception):  # noqa: N818
    """The awaited condition holds."""


def run_until(folder: Path, condition: Callable[[Sequence[View]], bool]) -> Sequence[View]:
    """Run a network until a condition holds."""
    seen: list[Sequence[View]] = []

    def show(views: Sequence[View], _elapsed: float) -> None:
        seen.append(views)
        if condition(views):
            raise Reached

    with pytest.raises(Reached):
        supervisor.up(folder, show, seconds=120, command=fake_node)
    return seen[-1]


def are_running(views: Sequence[View]) -> bool:
    return bool(views) and all(view.state == "running" for view in views)


def test_all_nodes_run_until_their_expected_error_is_small(network: Path) -> None:
    views = supervisor.up(network, lambda *_: None, until=0.002, command=fake_node)
    assert [view.name for view in views] == ["node-0", "node-1", "node-2"]
    for k, view in enumerate(views):
        assert view.status is not None
        assert (view.state, view.restarts, view.status.exchanges) == ("running", 0, 1234 + k)
        assert view.status.expected_error == 0.00125
        assert (network / view.name / "got-sigterm").exists()
        assert (network / view.name / "log.jsonl").read_text() == '{"event": "started"}\n'


def test_a_killed_node_is_restarted(network: Path) -> None:
    killed: list[int] = []

    def condition(views: Sequence[View]) -> bool:
        if are_running(views) and not killed:
            killed.append(int((network / "node-1" / "node.lock").read_text()))
            os.kill(killed[0], signal.SIGKILL)
        return bool(killed) and are_running(views) and views[1].restarts == 1

    views = run_until(network, condition)
    assert [view.restarts for view in views] == [0, 1, 0]


def test_a_node_that_fails_once_is_restarted(network: Path) -> None:
    (network / "node-2" / "fails-once").touch()
    views = run_until(network, are_running)
    assert [view.restarts for view in views] == [0, 0, 1]


def test_a_node_that_fails_again_and_again_is_an_error(
    network: Path, gosta_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RESTART_SECONDS", (0.01, 0.02))
    (network / "node-1" / "fails").touch()
    code, out, err = gosta_("network", "up", network, "--json")
    assert (code, out) == (2, "")
    assert (
        "node-1 ended 5 times right after its start; its last message: gosta: this node cannot run"
        in err
    )
    assert err.count("\n") == 1
    assert (network / "node-1" / "log.jsonl").read_text().count("started") == 5


def test_a_node_whose_files_are_wrong_is_not_restarted(network: Path, gosta_: Any) -> None:
    (network / "node-1" / "is-wrong").touch()
    views = run_until(
        network, lambda views: [view.state for view in views] == ["running", "failed", "running"]
    )
    assert [view.restarts for view in views] == [0, 0, 0]
    assert overview.table(views).splitlines()[-1] == "node-1: node.toml is wrong"
    code, out, err = gosta_("network", "up", network, "--until", "1%")
    log = network / "node-1" / "log.jsonl"
    assert (code, out, err) == (2, "", f"gosta: node-1 failed: node.toml is wrong (see {log})\n")
    for name in ("node-0", "node-2"):
        (network / name / "is-wrong").touch()
    assert gosta_("network", "up", network)[0] == 2


def test_a_node_that_was_stopped_is_not_restarted(network: Path) -> None:
    stopped: list[int] = []

    def condition(views: Sequence[View]) -> bool:
        if are_running(views) and not stopped:
            stopped.append(int((network / "node-1" / "node.lock").read_text()))
            os.kill(stopped[0], signal.SIGTERM)
        return [view.state for view in views] == ["running", "stopped", "running"]

    assert [view.restarts for view in run_until(network, condition)] == [0, 0, 0]


def test_nodes_that_are_added_and_removed_meanwhile(network: Path) -> None:
    done: list[str] = []

    def condition(views: Sequence[View]) -> bool:
        names = [view.name for view in views]
        if are_running(views) and not done:
            done.append(Network.read(network).add(network / "node-0" / "data.csv").name)
        elif are_running(views) and names[-1] == "node-3" and len(done) == 1:
            Network.read(network).remove("node-1")  # stops it
            done.append("removed")
        return len(done) == 2 and names == ["node-0", "node-2", "node-3"] and are_running(views)

    run_until(network, condition)
    assert not (network / "node-1").exists()


def test_a_node_that_ignores_sigterm_is_killed(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_SECONDS", 0.2)
    (network / "node-0" / "ignores-sigterm").touch()
    run_until(network, are_running)
    assert not (network / "node-0" / "got-sigterm").exists()
    assert not lock.is_running(network / "node-0")


def test_errors_in_up(network: Path, gosta_: Any, tmp_path: Path) -> None:
    (network / "node-2" / "data.csv").unlink()
    code, _, err = gosta_("network", "up", network)
    assert code == 2
    assert f"node-2 has no data: put its rows into {network / 'node-2' / 'data.csv'} first" in err
    (network / "node-2" / "data.csv").touch()
    for arguments, message in (
        ([tmp_path / "none"], "no such folder"),
        ([network, "--for", "-1"], "for = -1.0 must be a positive number"),
        ([network, "--until", "soon"], "until = 'soon' must be an error such as 1%"),
    ):
        code, _, err = gosta_("network", "up", *arguments)
        assert code == 2
        assert message in err
    with subprocess.Popen(fake_node(network / "node-1")) as other:
        try:
            while not lock.is_running(network / "node-1"):
                assert other.poll() is None
            code, _, err = gosta_("network", "up", network)
            assert code == 2
            assert "node-1 of " in err
            assert "is running already" in err
        finally:
            other.terminate()


def test_output_as_json_and_as_text(network: Path, gosta_: Any) -> None:
    code, out, err = gosta_("network", "up", network, "--until", "0.2%", "--json")
    assert (code, err) == (0, "")
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["node"] for record in records] == ["node-0", "node-1", "node-2"]
    assert records[2]["estimate"] == [0.502]
    code, out, err = gosta_("network", "up", network, "--until", "0.2%")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == [
        *(
            "node",
            "state",
            "rows",
            "sites",
            "exchanges",
            "epoch",
            "estimate",
            "interval",
            "error",
            "difference",
        )
    ]
    assert (
        "node-1  running  7     3 of 3  1,235      1      0.501     0.4 to 0.625  0.125 %  0.25 %"
        in out
    )
    assert "mean estimate 0.501, nodes differ from it by at most 0.2 %" in out
    assert ": all agree within 1 %\nover 3 of 3 sites, 21 of 21 rows\n" in out
    assert f"gosta network verify {network}" in out


def test_ctrl_c_on_a_terminal_stops_all(network: Path) -> None:
    code = f"""
        import sys
        from pathlib import Path
        from gosta.net.deploy import supervisor
        supervisor.node_command = lambda folder: [sys.executable, {str(FAKE_NODE)!r}, str(folder)]
        from gosta.cli.main import main
        sys.argv = ["gosta", "network", "up", {str(network)!r}]
        main()
    """
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": "150", "LINES": "40", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        read_until(ours, b"all agree within 1 %")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all of the group
        rest = read_rest(ours).decode()
    assert process.returncode == 0
    assert "all nodes are stopped" in rest
    assert "Traceback" not in rest
    for name in ("node-0", "node-1", "node-2"):
        assert (network / name / "got-sigterm").exists()


def test_status_of_a_node_and_of_a_network(
    network: Path, gosta_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def from_journal(folder: Path) -> Status:
        assert folder.name == "node-2"
        return msgspec.structs.replace(found, node="node-2", state="stopped", uptime_seconds=None)

    monkeypatch.setattr("gosta.net.deploy.query.status_from_journal", from_journal)
    files = [read_node(network / f"node-{k}" / "node.toml") for k in range(2)]
    nodes = [subprocess.Popen(fake_node(network / f"node-{k}")) for k in range(2)]
    try:
        answers = []
        for file in files:
            while (answer := query_status(file)) is None:
                assert [node.poll() for node in nodes] == [None, None]
            answers.append(answer)
        found = answers[0]
        other = msgspec.structs.replace(files[0], node=files[1].node)
        assert query_status(other) is not None
        assert query_status(msgspec.structs.replace(other, network=Task("f" * 16, "auc"))) is None
        assert (
            query_status(
                msgspec.structs.replace(
                    files[0], node=msgspec.structs.replace(files[1].node, name="x")
                )
            )
            is None
        )
        code, out, err = gosta_("status", network / "node-0")
        assert (code, err) == (0, "")
        assert out.startswith("node-0\n  state  ")
        assert (
            f"  network                              {found.network}\n  running for                "
            "          " in out
        )
        assert "  kendall-tau                          0.5\n" in out
        assert "  95 % interval                        0.4 to 0.625\n" in out
        assert "  over the rows of                     3 of 3 sites, 21 of 21 rows\n" in out
        assert "  epoch                                1, started by node-0: first start\n" in out
        assert "  node-2     connected  55         0.2 s       1.5 ms      0.25 %\n" in out
        assert "  node-1         values  4      7.0 s ago  it tells ?[2J\n" in out
        assert "  offers  99" in out
        assert json.loads(gosta_("status", network / "node-1", "--json")[1])["exchanges"] == 1235
        code, out, _ = gosta_("status", network)
        assert code == 0
        assert [line.split()[1] for line in out.splitlines()[1:4]] == [
            "running",
            "running",
            "stopped",
        ]
        assert gosta_("status", network.parent / "none")[0] == 2
    finally:
        for node in nodes:
            node.terminate()
            node.wait()


def test_status_pages_of_other_programs(tmp_path: Path) -> None:
    def node(page: str) -> NodeConfig:
        return NodeConfig(Task("f" * 16, "auc"), NodeSettings("node-3", "127.0.0.1:1", page), {})

    assert query_status(node(f"127.0.0.1:{ports.free(1)}")) is None
    assert query_status(node("nonsense")) is None
    assert query_status(node("")) is None
    port = ports.free(1)
    server = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    (tmp_path / "status").write_text('{"node": 3}')
    with subprocess.Popen(
        server, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as other:
        try:
            while not _was_queried(other):
                assert other.poll() is None
                assert query_status(node(f"127.0.0.1:{port}")) is None
        finally:
            other.terminate()


def _was_queried(server: subprocess.Popen[bytes]) -> bool:
    """Return whether the server has logged a request."""
    assert server.stderr is not None
    os.set_blocking(server.stderr.fileno(), False)
    return b"GET /status" in (server.stderr.read() or b"")


def test_expected_errors_and_spread(network: Path) -> None:
    views = supervisor.up(network, lambda *_: None, until=0.002, command=fake_node)
    one, two, three = (view.status for view in views if view.status is not None)
    assert all_within([one, two, three], 0.002)
    assert not all_within([one, two, three], 0.001)
    assert not all_within([one, msgspec.structs.replace(two, expected_error=None)], 0.002)
    assert not all_within([one, msgspec.structs.replace(two, epoch=2)], 0.002)
    assert not all_within([one, msgspec.structs.replace(two, missing=("node-2",))], 0.002)
    assert spread([one, msgspec.structs.replace(two, estimate=None)]) is None
    mean, farthest = spread([one, msgspec.structs.replace(two, estimate=(1.5,))]) or ((), 0.0)
    assert (mean, farthest) == ((1.0,), 0.5)


def test_a_broken_network_file_does_not_stop_running_nodes(network: Path) -> None:
    good = (network / "network.toml").read_text()
    seen: list[int] = []

    def condition(views: Sequence[View]) -> bool:
        if are_running(views):
            (network / "network.toml").write_text("garbage [")
            seen.append(1)
        return len(seen) > 3

    try:
        run_until(network, condition)
    finally:
        (network / "network.toml").write_text(good)
    for k in range(3):
        (network / f"node-{k}").rename(network / f"away-{k}")
    with pytest.raises(NetworkError, match="no node's folder"):
        supervisor.up(network, lambda *_: None, command=fake_node)


def test_down_stops_nodes_whichever_process_started_them(network: Path, gosta_: Any) -> None:
    with subprocess.Popen(fake_node(network / "node-1")) as other:
        while not lock.is_running(network / "node-1"):
            assert other.poll() is None
        while not (network / "node-1" / "node.lock").read_text():
            assert other.poll() is None
        code, out, _ = gosta_("network", "down", network)
        assert (code, out) == (0, f"{network}: stopped node-1\n")
        assert other.wait(60) is not None
    assert gosta_("network", "down", network)[1] == f"{network}: no node was running\n"


def test_down_stops_a_network_while_a_killed_node_waits_for_its_restart(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "RESTART_SECONDS", (3600.0, 3600.0))
    down = [sys.executable, "-m", "gosta", "network", "down", str(network)]
    killed: list[int] = []
    stopping: list[subprocess.Popen[str]] = []

    def show(views: Sequence[View], _elapsed: float) -> None:
        if are_running(views) and not killed:
            killed.append(int((network / "node-1" / "node.lock").read_text()))
            os.kill(killed[0], signal.SIGKILL)
        if views[1].state == "restarting soon" and not stopping:
            stopping.append(subprocess.Popen(down, stdout=subprocess.PIPE, text=True))
        assert not stopping or stopping[0].poll() is None, "the nodes go on after down"

    supervisor.up(network, show, command=fake_node)
    assert stopping[0].communicate()[0] == f"{network}: stopped node-0, node-2\n"


def test_narrow_terminals_show_the_main_columns() -> None:
    views = [View(f"node-{k}", "running", 0, None) for k in range(3)]
    assert tuple(overview.table(views, 200).splitlines()[0].split()) == (
        *overview.COMMON_HEADING,
        *overview.ESTIMATE_HEADING,
    )
    assert overview.table(views, 50).splitlines()[0].split() == [
        "node",
        "state",
        "sites",
        "exchanges",
        "estimate",
    ]
    assert overview.table(views, 10).splitlines()[0].split() == [
        "node",
        "state",
        "exchanges",
        "estimate",
    ]


def test_the_summary_says_what_is_wrong(network: Path) -> None:
    change = msgspec.structs.replace
    views = supervisor.up(network, lambda *_: None, until=0.002, command=fake_node)
    one, two, three = (view.status for view in views if view.status is not None)
    partial = change(two, missing=("node-2",), sites_seen=2, rows_seen=14)

    def findings(*statuses: Status) -> str:
        text = overview.summary([View(status.node, status.state, 0, status) for status in statuses])
        return text.splitlines()[0].partition(" %: ")[2]

    assert findings(one, two, three) == "all agree within 1 %"
    assert findings(one, two, change(three, state="converged")) == "all agree within 1 %"
    assert (
        findings(one, change(two, estimate=(0.6,)), three) == "they do not all agree within 1 % yet"
    )
    assert findings(one, partial, three) == "sites are missing in the estimates of node-1"
    assert findings(partial, partial, partial) == "sites are missing"
    assert findings(one, change(two, epoch=4), three) == "nodes are in different epochs, 1 to 4"
    assert (
        findings(one, two, change(three, estimate_epoch=0))
        == "their estimates are of different epochs"
    )
    states = (
        change(one, state="alone"),
        change(two, state="stalled"),
        change(three, state="stalled"),
    )
    assert findings(*states) == "alone: node-0; stalled: node-1, node-2"
    seen = [View("node-0", "running", 0, one), View("node-1", "running", 0, partial)]
    assert (
        overview.summary(seen).splitlines()[1]
        == "over 2 of 3 sites, 14 of 21 rows; missing: node-2"
    )
    failed = [*views[:2], View("node-2", "failed", 0, None, "no data")]
    assert overview.summary(failed) == "2 of 3 nodes have an estimate: failed: node-2"
