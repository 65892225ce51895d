"""Chaos test with real processes: nodes are killed at random and restarted, then the network is
verified.

python tests/support/chaos.py --nodes 16 --seconds 60
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ports import free
from processes import Processes, gosta


def kill_at_random(processes: Processes, seconds: float, rng: random.Random) -> int:
    """Kill nodes at random times, restart them later, in the end all; return how many were
    killed.
    """
    kills, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(rng.expovariate(1.0) * 0.5)
        killed = [name for name in processes.folders if name not in processes.running]
        if killed and (len(killed) > len(processes.folders) // 4 or rng.random() < 0.4):
            processes.start(rng.choice(killed))
        else:
            processes.kill(rng.choice(list(processes.running)))
            kills += 1
    processes.start(*(processes.folders.keys() - processes.running.keys()))
    return kills


def run_chaos(folder: Path, nodes: int, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Return the findings of `gosta network verify` and the result of `gosta replay` after random
    kills.
    """
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
    with Processes(*(folder / f"node-{k}" for k in range(nodes))) as processes:
        processes.start(*processes.folders)
        processes.wait_for_exchanges(30)
        kills = kill_at_random(processes, seconds, random.Random(seed))
        processes.wait_for_exchanges(50)
        processes.stop()
    print(f"{kills} kills in {seconds:.0f} s", file=sys.stderr)
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
        *findings, replayed = run_chaos(
            Path(place) / "network", given.nodes, given.seconds, given.seed
        )
    for finding in findings:
        print(finding)
    print(replayed)
    sys.exit(not (all(finding["holds"] for finding in findings) and replayed["differing"] == []))


if __name__ == "__main__":
    main()
