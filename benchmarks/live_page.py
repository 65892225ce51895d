"""What live pages cost: processor time of `gosta watch` and of `gosta run --live`, and what they
send to a browser.

The nodes of the network are processes on this machine, with few exchanges, as 64 of them would keep
it busy otherwise. The page must show all of them. The run is a default simulation at its default
pace; its cost is what the process takes beyond `gosta.simulate`, and its last frame must have the
error of that.

Run with: python benchmarks/live_page.py [--nodes 64 --seconds 30 --simulated 10000 | --smoke]
"""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import common
import numpy as np
import ports
import psutil
from processes import Processes, gosta, serving

import gosta as gosta_package

# Most of a core that the page of a network may take.
REQUIRED = 0.05
# Most of a core that the page of a run may take.
REQUIRED_OF_RUN = 0.5
# Least frames of a run per second.
REQUIRED_FRAMES = 4.0
STATISTIC = "gini-mean-difference"


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--simulated", type=int, default=10_000)
    arguments = parser.parse_args()
    nodes, seconds = (3, 2.0) if arguments.smoke else (arguments.nodes, arguments.seconds)
    common.print_machine("msgspec")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "net"
        what = ["--data", "breast-cancer", "--nodes", nodes, "--exchanges-per-second", 1]
        assert (
            gosta("network", "init", folder, *what, "--port", ports.free(2 * nodes)).returncode == 0
        )
        with Processes(*(folder / f"node-{k}" for k in range(nodes))) as processes:
            processes.start(*processes.folders)
            processes.wait(lambda found: all(one.estimate for one in found))
            share, size, shown = measure(folder, seconds)
    assert shown == nodes, f"the page shows {shown} of {nodes} nodes"
    too_much = " TOO SLOW" if share > REQUIRED and not arguments.smoke else ""
    print(
        f"{nodes} nodes: {100 * share:.1f} % of a core, {size / 1000:.1f} kB per second{too_much}"
    )
    simulated, speed = (50, 8) if arguments.smoke else (arguments.simulated, 1)
    share, rate, size = measure_run(simulated, speed)
    too_much = (
        " TOO SLOW"
        if (share > REQUIRED_OF_RUN or rate < REQUIRED_FRAMES) and not arguments.smoke
        else ""
    )
    cost = (
        f"{100 * share:.1f} % of a core beyond the simulation, "
        f"{size / 1000:.1f} kB per second{too_much}"
    )
    print(f"a run of {simulated:,} nodes: {rate:.1f} frames per second, {cost}")


def measure(folder: Path, seconds: float) -> tuple[float, float, int]:
    """Return the share of a core and bytes per second while a client reads events, and how many
    nodes run.
    """
    with serving("watch", folder, "--address", "127.0.0.1:0") as (process, url):
        connection = http.client.HTTPConnection(url.split("/")[2], timeout=30)
        connection.request("GET", "/events")
        events = connection.getresponse()
        states: dict[str, str] = {}
        process_times, start, size = psutil.Process(process.pid).cpu_times, 0.0, 0
        while not start or time.monotonic() - start < seconds:
            line = events.fp.readline()
            size += len(line)
            if line.startswith(b'data: {"scene"'):
                states = {
                    str(k): one[0] for k, one in enumerate(json.loads(line[6:])["moment"]["nodes"])
                }
            elif line.startswith(b"data: {"):
                states |= {k: one[0] for k, one in json.loads(line[6:]).get("nodes", {}).items()}
            if not start and states:  # what starting costs is left out
                before, start, size = sum(process_times()[:2]), time.monotonic(), 0
        taken = time.monotonic() - start
        share = (sum(process_times()[:2]) - before) / taken
        connection.close()
    return share, size / taken, sum(state == "running" for state in states.values())


def measure_run(nodes: int, speed: int) -> tuple[float, float, float]:
    """Return the share of a core beyond the simulation, frames and bytes per second while a client
    reads events.
    """
    values = np.random.default_rng(0).gamma(2.0, 1.0, nodes)
    gosta_package.simulate(values, STATISTIC, runs=1)  # compiled from here on
    before = time.process_time()
    trace = gosta_package.simulate(values, STATISTIC, runs=1)
    simulated = time.process_time() - before
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "values.npy"
        np.save(file, values[:, None])
        with serving("run", file, "--statistic", STATISTIC, "--live", "--plot", "none") as (
            process,
            url,
        ):
            host = url.split("/")[2]
            for method, path in [("POST", f"/pace?speed={speed}"), ("GET", "/events?0")]:
                connection = http.client.HTTPConnection(host, timeout=60)
                connection.request(method, path, headers={"Origin": f"http://{host}"})
                answer = connection.getresponse()
            found, frame = (
                read_run(answer, psutil.Process(process.pid)),
                float(trace.data["mean"][0, -1]),
            )
    assert found.error == frame, (
        f"the last frame has an error of {found.error}, the simulation of {frame}"
    )
    return (
        (found.cpu_seconds - simulated) / found.seconds,
        found.frames / found.seconds,
        found.size / found.seconds,
    )


class WatchedRun(NamedTuple):
    """What a client saw of a run: from its first frame on."""

    seconds: float
    cpu_seconds: float  # of the process
    frames: int
    size: int  # in bytes
    error: float  # in the last frame


def read_run(events: http.client.HTTPResponse, process: psutil.Process) -> WatchedRun:
    """Read events until the run has ended."""
    start, before, frames, size, error = 0.0, 0.0, 0, 0, 0.0
    while True:
        line = events.fp.readline()
        size += len(line)
        event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
        if "scene" in event:  # what starting costs is left out
            start, before, size = time.monotonic(), sum(process.cpu_times()[:2]), 0
        if "frame" in event:
            frames, error = frames + 1, event["frame"][4][0]
        if event.get("state") == "finished":
            taken = time.monotonic() - start, sum(process.cpu_times()[:2]) - before
            return WatchedRun(*taken, frames, size, error)


if __name__ == "__main__":
    main()
