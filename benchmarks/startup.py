"""Start-up of the command line against the bare import of the libraries it rests on.

Run with: python benchmarks/startup.py
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tempfile
import time

REFERENCE = [sys.executable, "-c", "import numba, scipy, sklearn.datasets"]
REFERENCE_OF_RUN = [sys.executable, "-c", "import numba, scipy, xarray"]
COMMANDS = {
    "gosta --help": ["--help"],
    "gosta exact breast-cancer --statistic auc": ["exact", "breast-cancer", "--statistic", "auc"],
    "gosta exact breast-cancer --statistic kendall-tau": ["exact", "breast-cancer", "--statistic", "kendall-tau"],
    "gosta exact breast-cancer --statistic mmd": ["exact", "breast-cancer", "--statistic", "mmd"],
}
WANTED = 2.0


def best(command: list[str]) -> float:
    times = []
    for _ in range(4):  # the first fills the caches
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def seconds_to_bar() -> float:
    """From the command to the first sign of the progress bar on a terminal."""
    times = []
    for _ in range(4):
        terminal, other = pty.openpty()
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "gosta", "run", "--runs", "2"]
            environment = {**os.environ, "TERM": "xterm"}
            process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=other, env=environment)
            os.close(other)
            os.read(terminal, 1)
            times.append(time.perf_counter() - start)
            process.wait()
        os.close(terminal)
    return min(times)


def main() -> None:
    reference = best(REFERENCE)
    print(f"{'import numba, scipy, sklearn.datasets':<52} {reference:6.2f} s")
    for title, arguments in COMMANDS.items():
        ratio = best([sys.executable, "-m", "gosta", *arguments]) / reference
        verdict = "ok" if ratio <= WANTED else "TOO SLOW"
        print(f"{title:<52} {ratio * reference:6.2f} s {ratio:6.2f} of that (at most {WANTED:g}) {verdict}")
    reference, bar = best(REFERENCE_OF_RUN), seconds_to_bar()
    verdict = "ok" if bar <= WANTED * reference else "TOO SLOW"
    print(f"{'import numba, scipy, xarray':<52} {reference:6.2f} s")
    print(
        f"{'gosta run, until its bar':<52} {bar:6.2f} s {bar / reference:6.2f} of that (at most {WANTED:g}) {verdict}"
    )


if __name__ == "__main__":
    main()
