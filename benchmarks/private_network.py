"""Networks of private sums over mutual TLS on loopback: how long a release takes, what it sends,
and that it is right.

The nodes of the timed network are in one process, as 20 interpreters take longer to start than the
sums. The checked networks are five processes each with a file of its own: `gosta network verify`
compares totals with plain sums bit for bit, and brackets with values over the pooled rows, for all
statistics at once.

Run with: python benchmarks/private_network.py [--data-sets 100 | --smoke]
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np
import ports

from gosta.net.config import HEAD_FILE, JOURNAL_FILE, read_node
from gosta.net.deploy.query import query_status
from gosta.net.node.credentials import load_credentials
from gosta.net.node.node import Environment
from gosta.net.node.restore import restore_peer
from gosta.net.node.source import read_sum_source
from gosta.net.node.status import explain
from gosta.net.node.sum_node import SumNode
from gosta.net.storage.journal import Journal
from gosta.net.transport.tcp import TcpTransport

STATISTICS = (
    "auc:score,mann-whitney:score,roc-curve:score,kolmogorov-smirnov:score,gini-mean-difference:score,gini-index:score,"
    "lorenz-curve:score,quantiles:score,variance:score,covariance:score+age,kendall-tau:score+age,"
    "spearman-rho:score+age,concordance-index:time+event+score,kaplan-meier:time+event,log-rank:time+event,"
    "squared-scatter:score+age,mean-pairwise-distance:score+age,energy-distance:score+age,mmd:score+age"
)
RANGES = ["score=0:1", "age=0:100", "time=0:50", "event=0:1"]
SECONDS = 2.0  # that a release of 20 sites with 512 bins may take
WAIT_SECONDS = 60.0


def make_network(folder: Path, nodes: int, statistics: str, bins: int, *more: str) -> list[Path]:
    columns = {name for one in statistics.split(",") for name in one.partition(":")[2].split("+")}
    ranges = [
        part for one in RANGES if one.partition("=")[0] in columns for part in ("--range", one)
    ]
    subprocess.run(
        [
            *common.GOSTA,
            "network",
            "init",
            str(folder),
            "--private",
            "--statistic",
            statistics,
            "--label",
            "died",
            "--classes",
            "0,1",
            "--bins",
            str(bins),
            *ranges,
            "--nodes",
            str(nodes),
            "--port",
            str(ports.free(2 * nodes)),
            *more,
        ],
        check=True,
        capture_output=True,
    )
    return sorted(folder.glob("node-*"), key=lambda one: int(one.name[5:]))


def write_rows(folders: list[Path], rng: np.random.Generator) -> None:
    """Write each site a file: some sites see other patients, ages and times are often the same."""
    for folder in folders:
        n, shift = int(rng.integers(12, 200)), rng.normal(0, 0.5)
        died = rng.integers(0, 2, n)
        died[:2] = 0, 1
        score = 1 / (1 + np.exp(-(rng.normal(shift, 1, n) + died)))
        columns = [
            score,
            rng.integers(20, 90, n),
            died,
            rng.exponential(9, n).round(),
            rng.integers(0, 2, n),
        ]
        lines = [",".join(map(repr, map(float, row))) for row in zip(*columns, strict=True)]
        (folder / "data.csv").write_text("score,age,died,time,event\n" + "\n".join(lines) + "\n")
        (folder / JOURNAL_FILE).unlink(missing_ok=True)
        (folder / HEAD_FILE).unlink(missing_ok=True)


async def time_release(folders: list[Path]) -> tuple[float, dict[str, Any]]:
    """Run all nodes in this process; return the time until all know the total, and what they
    sent.
    """
    loop, nodes, transports = asyncio.get_running_loop(), [], []
    for folder in folders:
        config = read_node(folder / "node.toml")
        tls, keyring = load_credentials(folder, config, lambda *_, **__: None)
        journal = Journal(folder / JOURNAL_FILE, keep_exchanges=0, secure_delete=True)
        peer = restore_peer(config, read_sum_source(config, folder), journal)
        environment = Environment(loop, random.Random(1), lambda *_, **__: None)
        node = SumNode(config, peer, journal, environment)
        nodes.append(node)
        transports.append(TcpTransport(node, tls, keyring.list))
    start = time.perf_counter()
    for transport, node in zip(transports, nodes, strict=True):
        await transport.start(node.config.node.listen)
        node.start(transport)
    while not all(node.peer.is_complete for node in nodes):
        await asyncio.sleep(0.005)
        assert time.perf_counter() < start + WAIT_SECONDS, {
            node.peer.name: explain(node.peer) for node in nodes
        }
    seconds, sent = time.perf_counter() - start, [node.counters["bytes sent"] for node in nodes]
    assert len({node.peer.report.vector for node in nodes if node.peer.report is not None}) == 1
    for transport, node in zip(transports, nodes, strict=True):
        node.stop()
        await transport.stop()
    return seconds, {"bytes": sent}


def measure(nodes: int, bins: int, graph: str, required: float | None) -> None:
    with tempfile.TemporaryDirectory() as place:
        folders = make_network(Path(place) / "net", nodes, "auc:score", bins, "--graph", graph)
        write_rows(folders, np.random.default_rng(1))
        seconds, found = asyncio.run(time_release(folders))
        run_verify(Path(place) / "net")
    verdict = (
        ""
        if required is None
        else f" (required {required:g} s) {'ok' if seconds <= required else 'TOO SLOW'}"
    )
    sent = found["bytes"]
    print(
        f"{nodes} sites, {bins} bins, {graph}: {seconds:.2f} s from start to complete{verdict}; a "
        f"site sent {np.mean(sent) / 1e3:.0f} kB, at most {max(sent) / 1e3:.0f} kB",
        flush=True,
    )


@contextlib.contextmanager
def processes(folders: list[Path]) -> Iterator[None]:
    started = [
        subprocess.Popen([*common.GOSTA, "node", str(folder)], stderr=subprocess.DEVNULL)
        for folder in folders
    ]
    try:
        yield
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait(20)


def check(data_sets: int, nodes: int, bins: int) -> None:
    """Let processes release all statistics over random data sets, and verify each."""
    with tempfile.TemporaryDirectory() as place:
        folders = make_network(
            Path(place) / "net", nodes, STATISTICS, bins, "--option", "bandwidth=1"
        )
        configs, rng = (
            [read_node(folder / "node.toml") for folder in folders],
            np.random.default_rng(3),
        )
        for _ in range(data_sets):
            write_rows(folders, rng)
            with processes(folders):
                deadline = time.monotonic() + WAIT_SECONDS
                while {status and status.state for status in map(query_status, configs)} != {
                    "complete"
                }:
                    assert time.monotonic() < deadline, "no release"
                    time.sleep(0.1)
                statuses = [query_status(config) for config in configs]
                assert len({repr(one.sums.results) for one in statuses if one and one.sums}) == 1
            run_verify(Path(place) / "net")
    number = len(STATISTICS.split(","))
    print(
        f"{data_sets} data sets, {nodes} processes: totals are the plain sums, {number} statistics "
        "lie in brackets"
    )


def run_verify(folder: Path) -> None:
    """Verify a network."""
    done = subprocess.run(
        [*common.GOSTA, "network", "verify", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    findings = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode in (0, 3), done.stdout + done.stderr
    for word in ("bit for bit", "bracket"):
        assert any(word in one["claim"] + one["evidence"] and one["holds"] for one in findings), (
            findings
        )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument(
        "--data-sets", type=int, default=5, help="data sets that five processes are checked with"
    )
    arguments = parser.parse_args()
    common.print_machine("cryptography")
    if arguments.smoke:
        measure(3, 16, "complete", None)
        check(1, 3, 8)
    else:
        measure(20, 512, "watts-strogatz", SECONDS)
        measure(20, 512, "complete", None)
        check(arguments.data_sets, 5, 32)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
