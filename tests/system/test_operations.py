"""Operations: metrics, alerts and dashboard, service manager, container, log rotation, epochs on
request.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import ports
import promql_parser
import psutil
import pytest
import yaml
from commands import command
from processes import GOSTA, WAIT_SECONDS, Processes, gosta, wait_until
from prometheus_client.parser import text_string_to_metric_families
from promql_parser import VectorSelector
from virtual_network import VirtualNetwork

import gosta as package
from gosta.net.config import NODE_FILE, read_node
from gosta.net.deploy.query import fetch, query_status
from gosta.net.deploy.supervisor import FAILED_CODE
from gosta.net.node import lock
from gosta.net.node.log_file import MAX_LOG_BYTES, OLD_LOGS, old_log
from gosta.net.node.node import REQUESTED
from gosta.net.node.requests import ANSWER_FILE, REQUEST_FILE, Answer, RequestWatcher
from gosta.net.node.service import POLL_SECONDS
from gosta.net.node.status import OWN_STATES, Status
from gosta.net.node.status_text import GOOD_STATES
from gosta.net.protocol import messages as wire
from gosta.net.transport.base import REJECTION_REASONS

OPERATIONS = Path(__file__).parents[2] / "operations"
NODES = 3
NAMES = [f"node-{k}" for k in range(NODES)]
TASK = [
    "--statistic",
    "auc",
    "--score",
    "risk",
    "--label",
    "died",
    "--classes",
    "0,1",
    "--nodes",
    str(NODES),
]


def create(folder: Path, *options: object) -> Path:
    """Create a network of three sites with twenty rows each."""
    made = gosta("network", "init", folder, *TASK, *options, "--port", ports.free())
    assert made.returncode == 0, made.stderr
    for k, name in enumerate(NAMES):
        rows = [f"{(7 * row + 3 * k) % 20 / 20},{row % 2}" for row in range(20)]
        (folder / name / "data.csv").write_text("\n".join(["risk,died", *rows, ""]))
    return folder


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network whose nodes run in tests only."""
    return create(tmp_path_factory.mktemp("stopped") / "net")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes of three nodes that exchange rows."""
    folder = create(tmp_path_factory.mktemp("rows") / "net")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(
            lambda found: all(one.state == "running" and not one.missing for one in found)
        )
        yield processes
        processes.stop()


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes of three nodes of private sums, with noise and a budget, that have a result."""
    private = ["--private", "--range", "risk=0:1", "--bins", 16, "--epsilon", 8]
    folder = create(tmp_path_factory.mktemp("sums") / "net", *private)
    for name in NAMES:
        (folder / name / "policy.toml").write_text("epsilon_budget = 1000.0\n")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(lambda found: all(one.state == "complete" for one in found))
        yield processes
        processes.stop()


def network_of(processes: Processes) -> Path:
    return processes.folders[NAMES[0]].parent


Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]  # of a node: by name and labels


def scrape(processes: Processes, name: str = NAMES[0]) -> Samples:
    body = fetch(read_node(processes.folders[name] / NODE_FILE), "/metrics", 1 << 20)
    assert body is not None
    found: Samples = {}
    for family in text_string_to_metric_families(body.decode()):
        assert family.documentation
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        if not family.samples:
            found[f"{family.name}_total" if family.type == "counter" else family.name] = {}
    return found


def test_metrics_of_running_nodes(rows: Processes, sums: Processes) -> None:
    now = time.time()
    for processes, state, declared in ((rows, "running", None), (sums, "complete", None)):
        found, folder = scrape(processes), processes.folders[NAMES[0]]
        single = {name: values[()] for name, values in found.items() if () in values}
        assert {name: value for ((_, name),), value in found["gosta_state"].items()} == {
            name: name == state for name in OWN_STATES
        }
        wanted = {"members": NODES, "members_seen": NODES, "members_missing": 0, "rows_own": 20}
        wanted |= {"member_list_serial": 1, "member_list_proposed": 0, "reload_failed": 0}
        assert {name: single[f"gosta_{name}"] for name in wanted} == wanted
        assert single.get("gosta_rows_declared") == declared
        ends = {
            name: end - now
            for ((_, name),), end in found["gosta_certificate_end_timestamp_seconds"].items()
        }
        assert 800 * 86_400 < ends["node"] < 826 * 86_400
        assert min(ends["authority"], ends["coordinator"]) > ends["node"]
        assert single["gosta_journal_bytes"] >= (folder / "journal.sqlite").stat().st_size > 0
        assert now - 300 < single["gosta_epoch_start_timestamp_seconds"] <= now + 1
        ((labels, _),) = found["gosta_build_info"].items()
        assert dict(labels)["version"] == package.__version__


@pytest.fixture(scope="module")
def known_labels(rows: Processes, sums: Processes) -> dict[str | None, set[str]]:
    """Labels of every metric of nodes of either kind, and those that Prometheus adds."""
    scraped, by_prometheus = (scrape(rows), scrape(sums)), {"job", "instance"}
    found: dict[str | None, set[str]] = {"up": by_prometheus}
    for name, samples in (item for one in scraped for item in one.items()):
        found.setdefault(name, set(by_prometheus)).update(
            key for labels in samples for key, _ in labels
        )
    # nothing was rejected, and sums with noise have no bracket
    found["gosta_rejected_total"] |= {"reason"}
    for name in ("gosta_sums_low", "gosta_sums_high"):
        found[name] |= found["gosta_sums_value"]
    return found


def test_every_metric_is_documented(rows: Processes) -> None:
    text = (OPERATIONS.parent / "docs" / "how-to" / "operations.md").read_text()
    found = [name for name in scrape(rows) if name.startswith("gosta_")]
    assert [name for name in found if f"`{name}" not in text] == []


def check_expression(text: str, known_labels: dict[str | None, set[str]]) -> list[VectorSelector]:
    """Parse an expression as Prometheus does; check that its metrics and labels exist, and return
    its selectors.
    """
    selectors: list[VectorSelector] = []
    expression = promql_parser.parse(text)
    promql_parser.walk(
        expression,
        lambda node: selectors.append(node) if isinstance(node, VectorSelector) else None,
    )
    assert selectors
    values = {"state": set(OWN_STATES), "reason": {*wire.REASONS, *REJECTION_REASONS}}
    values["certificate"] = {"node", "authority", "coordinator"}
    for selector in selectors:
        for matcher in selector.matchers.matchers:
            assert matcher.name in known_labels[selector.name], text
            assert (
                matcher.name not in values or set(matcher.value.split("|")) <= values[matcher.name]
            ), text
    return selectors


def test_alert_rules(known_labels: dict[str | None, set[str]]) -> None:
    (group,) = yaml.safe_load((OPERATIONS / "alerts.yml").read_text())["groups"]
    names = [rule["alert"] for rule in group["rules"]]
    assert len(set(names)) == len(names) > 10
    states: set[str] = set()
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert set(rule["annotations"]) == {"summary", "description"}
        labels: set[str] = set()
        for selector in check_expression(rule["expr"], known_labels):
            labels |= known_labels[selector.name]
            for matcher in selector.matchers.matchers:
                states |= set(matcher.value.split("|")) if matcher.name == "state" else set()
        assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels
    assert states == set(OWN_STATES) - {*GOOD_STATES, "joining", "contributing"}


def test_dashboard(known_labels: dict[str | None, set[str]]) -> None:
    dashboard = json.loads((OPERATIONS / "dashboard.json").read_text())
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 20
    variables = {one["name"]: one for one in dashboard["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    source = {"type": "prometheus", "uid": "${datasource}"}
    expressions = [one["expr"] for one in dashboard["annotations"]["list"]]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for target in panel.get("targets", []):
            assert panel["datasource"] == target["datasource"] == source
            expressions.append(target["expr"])
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            selectors = check_expression(
                target["expr"].replace("$__rate_interval", "5m"), known_labels
            )
            assert shown <= set.union(*(known_labels[one.name] for one in selectors))
    for name in ("network", "instance"):
        metric, label = re.fullmatch(
            r"label_values\((.*), (\w+)\)", variables[name]["query"]["query"]
        ).groups()  # type: ignore[union-attr]
        assert {one.name for one in check_expression(metric, known_labels)} == {"gosta_up"}
        assert label in known_labels["gosta_up"]
    assert set(re.findall(r"\$(\w+)", " ".join(expressions))) == {"instance", "__rate_interval"}


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze on this machine"
)
def test_systemd_unit(tmp_path: Path) -> None:
    """systemd accepts the unit, finds it hardened, and it runs the command that the tests run."""
    text = (OPERATIONS / "gosta-node@.service").read_text()
    command = "/opt/gosta/bin/gosta node /var/lib/gosta/%i"
    assert f"ExecStart={command}\n" in text
    executable = tmp_path / "gosta"
    executable.write_text(f'#!/bin/sh\nexec {shlex.join(GOSTA)} "$@"\n')
    executable.chmod(0o755)
    unit = tmp_path / "gosta-node@site-a.service"
    unit.write_text(text.replace("/opt/gosta/bin/gosta", str(executable)))

    def analyze(*arguments: str) -> str:
        done = subprocess.run(
            ["systemd-analyze", *arguments, str(unit)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    assert analyze("verify", "--man=no") == ""
    (level,) = re.findall(
        r"Overall exposure level for .*: ([\d.]+)", analyze("security", "--offline=true")
    )
    assert float(level) <= 1.5  # of 10; a unit without restrictions has 9.6
    settings = dict(
        line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line)
    )
    assert (settings["Type"], settings["RestartPreventExitStatus"]) == ("notify", str(FAILED_CODE))
    assert float(settings["WatchdogSec"]) > 10 * POLL_SECONDS


def test_an_epoch_on_request(
    rows: Processes,
    sums: Processes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One node starts it, all follow, and all show the reason; of private sums there is a new
    result.
    """
    networks = [(rows, network_of(rows), "node-0"), (rows, rows.folders["node-2"], "node-2")]
    for processes, folder, origin in [*networks, (sums, network_of(sums), "node-0")]:
        (before,) = {
            one.epoch
            for one in processes.wait(lambda found: len({one.epoch for one in found}) == 1)
        }
        done = command(capsys, monkeypatch)("network", "epoch", folder)
        assert done == (0, f"{origin} started epoch {before + 1}; the other nodes follow\n", "")

        def have_followed(
            found: list[Status], origin: str = origin, epoch: int = before + 1
        ) -> bool:
            started = {(one.epoch, one.epoch_origin, one.epoch_reason) for one in found}
            has_result = all(one.sums is None or one.state == "complete" for one in found)
            return started == {(epoch, origin, REQUESTED)} and has_result

        processes.wait(have_followed)
        assert not (processes.folders[origin] / REQUEST_FILE).exists()
        assert not (processes.folders[origin] / ANSWER_FILE).exists()


def test_requests_for_epochs_that_are_refused(tmp_path: Path) -> None:
    """Too many at once, without neighbours, with withdrawn rows and on a full disk; other files
    count for nothing.
    """
    network = VirtualNetwork([np.ones((3, 1)), np.ones((3, 1))], [(0, 1)])
    (tmp_path / REQUEST_FILE).write_text("0" * 16)
    watcher = RequestWatcher(network.nodes["node-0"], tmp_path, lambda *_, **__: None)
    watcher.poll()  # what was asked for before the node started was removed
    assert network.nodes["node-0"].request_epoch() == "no neighbour is connected"
    network.clock.run(5.0)

    def request(content: str = "0123456789abcdef") -> Answer | None:
        (tmp_path / REQUEST_FILE).write_text(content)
        watcher.poll()
        assert not (tmp_path / REQUEST_FILE).exists()
        path = tmp_path / ANSWER_FILE
        found = msgspec.json.decode(path.read_bytes(), type=Answer) if path.exists() else None
        path.unlink(missing_ok=True)
        return found

    assert [request(content) for content in ("", "x" * 16, "0" * 10_000)] == [None] * 3
    os.mkfifo(tmp_path / REQUEST_FILE)
    watcher.poll()  # does not wait for a writer
    (tmp_path / REQUEST_FILE).unlink()
    answers = [request() for _ in range(8)]
    assert [one and (one.id, one.epoch) for one in answers] == [
        ("0123456789abcdef", 2 + k) for k in range(7)
    ] + [("0123456789abcdef", 8)]
    refusals = [one.refusal for one in answers if one]
    assert refusals[:7] == [""] * 7  # and its first epoch
    assert (
        refusals[7]
        == "a node starts at most 8 epochs at once, and one in 10 s after that; try again in 10 s"
    )
    network.clock.run(network.clock.now + 20.0)
    network.journals["node-0"].fault = lambda _: "full"
    full = request()
    assert full is not None
    assert full.refusal == "its journal cannot be written: database or disk is full"
    network.end_faults()
    network.clock.run(network.clock.now + 20.0)
    network.nodes["node-0"].withdraw()
    withdrawn = request()
    assert withdrawn is not None
    assert withdrawn.refusal.startswith("its rows are withdrawn")


def test_requests_for_epochs_without_a_running_node(
    stopped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for target, message in (
        (
            stopped,
            "no node is running, so that none can start an epoch; start it with: gosta network up "
            f"{stopped}",
        ),
        (stopped / "node-1", f"start it with: gosta node {stopped / 'node-1'}"),
        (stopped / "none", "no such file"),
    ):
        code, out, err = command(capsys, monkeypatch)("network", "epoch", target)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert message in err


@pytest.mark.parametrize("address", ["notify", "@gosta-test-{pid}"])
def test_service_manager_is_told(address: str, stopped: Path, tmp_path: Path) -> None:
    """READY when the node listens, WATCHDOG every second from its event loop, STOPPING; a hung node
    sends nothing.
    """
    folder = stopped / "node-0"
    is_abstract, text = address.startswith("@"), address.format(pid=os.getpid())
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{text[1:]}" if is_abstract else str(tmp_path / text))
        manager.settimeout(WAIT_SECONDS)
        environment = {**os.environ, "NOTIFY_SOCKET": text if is_abstract else str(tmp_path / text)}
        process = subprocess.Popen(
            [*GOSTA, "node", str(folder)], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            assert re.fullmatch(
                rb"READY=1\nSTATUS=disconnected, 1 of 3 sites, epoch \d", manager.recv(4096)
            )
            assert query_status(read_node(folder / NODE_FILE)) is not None
            if is_abstract:
                assert manager.recv(4096).startswith(b"WATCHDOG=1\n")
                _check_that_a_hung_process_is_silent(manager, process)
            process.terminate()
            while (last := manager.recv(4096)) != b"STOPPING=1":
                assert last.startswith(b"WATCHDOG=1\n")
            assert process.wait(WAIT_SECONDS) == 0
        finally:
            process.kill()
            process.wait()


def _check_that_a_hung_process_is_silent(
    manager: socket.socket, process: subprocess.Popen[bytes]
) -> None:
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    manager.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while manager.recv(4096):  # what was sent before
            pass
    manager.settimeout(1.5)
    with pytest.raises(TimeoutError):
        manager.recv(4096)
    process.send_signal(signal.SIGCONT)
    manager.settimeout(WAIT_SECONDS)
    assert manager.recv(4096).startswith(b"WATCHDOG=1\n")


def test_logs_are_rotated_also_after_the_supervisor_was_killed(stopped: Path) -> None:
    log = stopped / "node-0" / "log.jsonl"

    lines = MAX_LOG_BYTES // 1000 + 1

    def fill(number: int) -> None:
        line = json.dumps({"event": str(number), "padding": "x" * 1000}) + "\n"
        with log.open("a") as file:  # as if the node had logged so much
            file.write(line * lines)

    fill(0)
    with subprocess.Popen([*GOSTA, "network", "up", str(stopped), "--json"]) as supervisor:
        wait_until(old_log(log.parent, 1).exists)
        supervisor.kill()
    try:
        fill(1)
        wait_until(old_log(log.parent, 2).exists)
    finally:
        lock.stop_processes([stopped / name for name in NAMES])
    logs = [old_log(log.parent, 2), old_log(log.parent, 1), log]
    assert sorted(log.parent.glob("*log.jsonl*")) == sorted(logs)
    events = [json.loads(line)["event"] for path in logs for line in path.read_text().splitlines()]
    assert [event for event in events if event.isdecimal()] == ["0"] * lines + ["1"] * lines
    assert events[-1] == "stopped"


def test_no_line_is_lost_when_a_log_is_rotated(tmp_path: Path) -> None:
    """What goes to the standard output and error meanwhile, numbered, is there without a gap up to
    the last.
    """
    code = f"""
        import sys
        from pathlib import Path
        from gosta.net.node import log_file
        log_file.MAX_LOG_BYTES = 1000
        rotation = log_file.LogRotation(Path({str(tmp_path)!r}))
        for number in range(2000):
            print(number, file=(sys.stdout, sys.stderr)[number % 2], flush=True)
            if number % 7 == 0:
                rotation.poll()
    """
    with (tmp_path / "log.jsonl").open("ab") as log:
        command = [sys.executable, "-c", textwrap.dedent(code)]
        subprocess.run(command, stdout=log, stderr=log, check=True)
    logs = [
        *(old_log(tmp_path, number) for number in reversed(range(1, OLD_LOGS + 1))),
        tmp_path / "log.jsonl",
    ]
    numbers = [int(line) for path in logs for line in path.read_text().splitlines()]
    assert numbers == list(range(numbers[0], 2000))
    assert len(numbers) > OLD_LOGS * 1000 // len("2000\n")
    assert all(path.stat().st_size < 1100 for path in logs)
    assert sorted(tmp_path.iterdir()) == sorted(logs)
