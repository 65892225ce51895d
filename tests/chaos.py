"""Chaos test with real processes: nodes are killed at random and restarted, then the network is verified.

python tests/chaos.py --nodes 16 --seconds 60
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ports import free

GOSTA = [sys.executable, "-m", "gosta"]


def gosta(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*GOSTA, *map(str, words)], capture_output=True, text=True, timeout=300, check=False)


class Processes:
    """Processes of nodes, some of them killed."""

    def __init__(self, folder: Path, nodes: int, seed: int) -> None:
        self.folder, self.names = folder, [f"node-{k}" for k in range(nodes)]
        self.rng = random.Random(seed)
        self.kills = 0
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        with (self.folder / name / "log.jsonl").open("ab") as log:
            self.running[name] = subprocess.Popen([*GOSTA, "node", str(self.folder / name)], stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()
        self.kills += 1

    def kill_at_random(self, seconds: float) -> None:
        """Kill nodes at random times and restart them later."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.rng.expovariate(1.0) * 0.5)
            killed = [name for name in self.names if name not in self.running]
            if killed and (len(killed) > len(self.names) // 4 or self.rng.random() < 0.4):
                self.start(self.rng.choice(killed))
            else:
                self.kill(self.rng.choice(list(self.running)))
        for name in self.names:
            if name not in self.running:
                self.start(name)

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(30)


def run_chaos(folder: Path, nodes: int, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Return the findings of `gosta network verify` and the result of `gosta replay` after random kills."""
    made = gosta(
        "network",
        "init",
        folder,
        "--nodes",
        nodes,
        "--data",
        "breast-cancer",
        "--port",
        free(2 * nodes),
        "--exchanges-per-second",
        20,
    )
    assert made.returncode == 0, made.stderr
    processes = Processes(folder, nodes, seed)
    try:
        for name in processes.names:
            processes.start(name)
        time.sleep(5.0)
        processes.kill_at_random(seconds)
        time.sleep(max(8.0, seconds / 2))
    finally:
        processes.stop()
    print(f"{processes.kills} kills in {seconds:.0f} s", file=sys.stderr)
    findings = gosta("network", "verify", folder, "--json")
    assert findings.stdout, findings.stderr
    replayed = gosta("replay", folder, "--json")
    return [*map(json.loads, findings.stdout.splitlines()), json.loads(replayed.stdout or "{}")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        *findings, replayed = run_chaos(Path(place) / "network", given.nodes, given.seconds, given.seed)
    for finding in findings:
        print(finding)
    print(replayed)
    sys.exit(not (all(finding["holds"] for finding in findings) and replayed["differing"] == []))


if __name__ == "__main__":
    main()
