"""A storm over real processes: nodes are killed at random and started again, then all is verified.

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


class Storm:
    """Processes of nodes, some of them dead."""

    def __init__(self, folder: Path, nodes: int, seed: int) -> None:
        self.folder, self.names = folder, [f"node-{k}" for k in range(nodes)]
        self.chance = random.Random(seed)
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

    def rage(self, seconds: float) -> None:
        """Kill a node now and then; start it again after a while."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.chance.expovariate(1.0) * 0.5)
            dead = [name for name in self.names if name not in self.running]
            if dead and (len(dead) > len(self.names) // 4 or self.chance.random() < 0.4):
                self.start(self.chance.choice(dead))
            else:
                self.kill(self.chance.choice(list(self.running)))
        for name in self.names:
            if name not in self.running:
                self.start(name)

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            process.wait(30)


def storm(folder: Path, nodes: int, seconds: float, seed: int) -> list[dict[str, Any]]:
    """What `gosta network verify` finds after a storm and a calm of as long."""
    made = gosta(
        "network", "init", folder, "--nodes", nodes, "--data", "breast-cancer", "--port", free(2 * nodes), "--rate", 20
    )
    assert made.returncode == 0, made.stderr
    weather = Storm(folder, nodes, seed)
    try:
        for name in weather.names:
            weather.start(name)
        time.sleep(5.0)
        weather.rage(seconds)
        time.sleep(max(8.0, seconds / 2))
    finally:
        weather.stop()
    print(f"{weather.kills} kills in {seconds:.0f} s", file=sys.stderr)
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
        *findings, replayed = storm(Path(place) / "network", given.nodes, given.seconds, given.seed)
    for finding in findings:
        print(finding)
    print(replayed)
    sys.exit(not (all(finding["holds"] for finding in findings) and replayed["differ"] == []))


if __name__ == "__main__":
    main()
