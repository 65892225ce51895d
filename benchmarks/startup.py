"""Start-up of the command line against the bare import of the libraries it uses.

Run with: python benchmarks/startup.py [--smoke]
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time

import common

import gosta

STATISTICS = ("auc", "kendall-tau", "mmd")
# What the commands have to import in any case.
EXACT_LIBRARIES = "numba, scipy, sklearn.datasets"
RUN_LIBRARIES = "numba, scipy, xarray"
REQUIRED = 0.5  # a command takes at most twice as long as the imports
REPEATS = 4  # the first fills the caches of the file system


def run(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def import_libraries(names: str) -> None:
    run([sys.executable, "-c", f"import {names}"])


def seconds_to_progress_bar() -> float:
    """Time a run on a terminal up to the first sign of its progress bar; the run itself must
    succeed.
    """
    terminal, other = pty.openpty()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [*common.GOSTA, "run", "--runs", "2"],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=other,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(other)
        os.read(terminal, 1)
        seconds = time.perf_counter() - start
        assert process.wait() == 0
    os.close(terminal)
    return seconds


def main() -> None:
    smoke = common.parser(__doc__).parse_args().smoke
    repeats, required = (1, None) if smoke else (REPEATS, REQUIRED)
    exact_libraries, run_libraries = ("sys", "sys") if smoke else (EXACT_LIBRARIES, RUN_LIBRARIES)
    common.print_machine("numba", "scipy", "xarray")
    common.print_heading(f"beside: import {exact_libraries}")
    commands: dict[tuple[str, ...], str] = {("--help",): "reproduce"}
    for name in STATISTICS[:1] if smoke else STATISTICS:
        commands["exact", "breast-cancer", "-s", name] = str(gosta.exact("breast-cancer", name))[:6]
    for arguments, expected in commands.items():
        command = [*common.GOSTA, *arguments]
        printed = run(command)
        assert expected in printed, (command, expected, printed)
        times = common.best_side_by_side(
            lambda command=command: run(command),  # type: ignore[misc]
            lambda: import_libraries(exact_libraries),
            repeats,
        )
        common.print_ratio(" ".join(["gosta", *arguments]), *times, required)
    common.print_heading(f"beside: import {run_libraries}")
    bars = [seconds_to_progress_bar() for _ in range(repeats)]
    imports = [common.seconds_of(lambda: import_libraries(run_libraries)) for _ in range(repeats)]
    common.print_ratio("gosta run, until its progress bar", min(bars), min(imports), required)


if __name__ == "__main__":
    main()
