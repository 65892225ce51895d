"""Parts that all benchmarks share: arguments, the description of the machine, timing side by side,
report lines.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

# What benchmarks share with the tests: networks in virtual time, free ports, processes.
TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "support")]

GOSTA = [sys.executable, "-m", "gosta"]
REPEATS = 3
TITLE_WIDTH = 60
# Without contraction to fused multiply-add C rounds as gosta does, and answers can be compared bit
# for bit.
C_FLAGS = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that all benchmarks have."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--smoke",
        action="store_true",
        help="check the answers on tiny sizes; times mean nothing then",
    )
    return made


def print_machine(*packages: str) -> None:
    """Print the processor and the versions that the numbers below depend on."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", *packages))
    processor = platform.processor() or platform.machine()
    print(
        f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}, {versions}",
        flush=True,
    )


def seconds_of(work: Callable[[], object]) -> float:
    """Time one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_side_by_side(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int = REPEATS
) -> tuple[float, float]:
    """Time two pieces of work in turn, so that a busy moment hits both; return the shortest time of
    each.
    """
    pairs = [(seconds_of(ours), seconds_of(theirs)) for _ in range(repeats)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


@contextmanager
def compiled_c(text: str) -> Iterator[ctypes.CDLL | None]:
    """Compile functions in C; None where there is no gcc."""
    if shutil.which("gcc") is None:
        print("gcc is not installed: the comparisons with C are skipped")
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "functions.c", Path(folder) / "functions.so"
        source.write_text(text)
        subprocess.run(["gcc", *C_FLAGS, str(source), "-o", str(library), "-lm"], check=True)
        yield ctypes.CDLL(str(library))


def print_ratio(title: str, ours: float, theirs: float, required: float | None) -> None:
    """Print both times in seconds and how many times faster ours is.

    `required` is the ratio below which the line says TOO SLOW; None, as in smoke mode, makes no
    such statement.
    """
    ratio = theirs / ours
    verdict = (
        ""
        if required is None
        else f" (required {required:g}x) {'ok' if ratio >= required else 'TOO SLOW'}"
    )
    times = f"{_readable(ours):>11} {_readable(theirs):>11}"
    print(f"{title:<{TITLE_WIDTH}} {times} {ratio:8.2f}x{verdict}", flush=True)


def print_heading(title: str) -> None:
    """Print the heading of the lines of `print_ratio`."""
    print(f"{title:<{TITLE_WIDTH}} {'gosta':>11} {'other':>11} {'ratio':>9}", flush=True)


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
