"""What a live page of a network costs: processor time of `gosta watch`, and what it sends to a browser.

The nodes are processes on this machine, with few exchanges, as 64 of them would keep it busy otherwise. The page must
show all of them.

Run with: python benchmarks/live_page.py [--nodes 64 --seconds 30 | --smoke]
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from pathlib import Path

import common
import ports
import psutil
from processes import Processes, gosta
from test_live_page import running

REQUIRED = 0.05  # of a core


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    nodes, seconds = (3, 2.0) if arguments.smoke else (arguments.nodes, arguments.seconds)
    common.print_machine("msgspec")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "net"
        what = ["--data", "breast-cancer", "--nodes", nodes, "--exchanges-per-second", 1]
        assert gosta("network", "init", folder, *what, "--port", ports.free(2 * nodes)).returncode == 0
        with Processes(*(folder / f"node-{k}" for k in range(nodes))) as processes:
            processes.start(*processes.folders)
            processes.wait(lambda found: all(one.estimate for one in found))
            share, size, shown = measure(folder, seconds)
    assert shown == nodes, f"the page shows {shown} of {nodes} nodes"
    too_much = " TOO SLOW" if share > REQUIRED and not arguments.smoke else ""
    print(f"{nodes} nodes: {100 * share:.1f} % of a core, {size / 1000:.1f} kB per second{too_much}")


def measure(folder: Path, seconds: float) -> tuple[float, float, int]:
    """Return the share of a core and bytes per second while a client reads events, and how many nodes run."""
    with running("watch", folder, "--address", "127.0.0.1:0") as (process, url):
        connection = http.client.HTTPConnection(url.split("/")[2], timeout=30)
        connection.request("GET", "/events")
        events = connection.getresponse()
        states: dict[str, str] = {}
        process_times, start, size = psutil.Process(process.pid).cpu_times, 0.0, 0
        while not start or time.monotonic() - start < seconds:
            line = events.fp.readline()
            size += len(line)
            if line.startswith(b'data: {"scene"'):
                states = {str(k): one[0] for k, one in enumerate(json.loads(line[6:])["moment"]["nodes"])}
            elif line.startswith(b"data: {"):
                states |= {k: one[0] for k, one in json.loads(line[6:]).get("nodes", {}).items()}
            if not start and states:  # what starting costs is left out
                before, start, size = sum(process_times()[:2]), time.monotonic(), 0
        taken = time.monotonic() - start
        share = (sum(process_times()[:2]) - before) / taken
        connection.close()
    return share, size / taken, sum(state == "running" for state in states.values())


if __name__ == "__main__":
    main()
