"""Run the tests of numbers as on other processors; whatever differs there is a result that is not
pinned.

Linear algebra (OpenBLAS), numpy's loops and compiled code choose their instructions by the
processor, and how they share work by the number of cores. Each changes the last digits of floats;
no order, sign, choice, digest or printed digit may follow from these.

Run with: make portable, or python tests/support/portable.py [--only TITLE] [what pytest takes]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[2]
# Rooms whose results are floats that are computed, not passed on.
ROOMS = [
    "analysis",
    "contract",
    "estimation",
    "experiments",
    "graphs",
    "models",
    "protocols",
    "significance",
    "simulation",
    "sketches",
    "statistics",
    "theory",
]
# Instructions that numpy chooses at start, of those that this processor has: without them it takes
# plain loops.
CHOSEN_AT_START: list[str] = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])


class Processor(NamedTuple):
    """A processor to run as."""

    title: str
    cores: int
    variables: dict[str, str]
    compiles_anew: bool  # in a cache of its own, which is empty at first


PROCESSORS = [
    Processor("skylakex", 2, {"OPENBLAS_CORETYPE": "SkylakeX"}, False),
    Processor("haswell", 1, {"OPENBLAS_CORETYPE": "Haswell"}, False),
    Processor(
        "generic",
        1,
        {
            "OPENBLAS_CORETYPE": "Zen",
            "NPY_DISABLE_CPU_FEATURES": " ".join(CHOSEN_AT_START),
            "NUMBA_CPU_NAME": "generic",
        },
        True,
    ),
]


def run(processor: Processor, targets: list[str]) -> int:
    """Run tests as on a processor, and return the exit code of pytest."""
    cores = sorted(os.sched_getaffinity(0))[: processor.cores]
    threads = str(len(cores))
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ,
            "OPENBLAS_NUM_THREADS": threads,
            "NUMBA_NUM_THREADS": threads,
            **processor.variables,
            **({"GOSTA_CACHE_DIR": cache} if processor.compiles_anew else {}),
        }
        command = [sys.executable, "-m", "pytest", *targets]
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        finally:
            os.sched_setaffinity(0, before)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=[each.title for each in PROCESSORS])
    known, targets = parser.parse_known_args()
    # Doctests last, as they define statistics.
    targets = targets or [*(f"tests/{room}" for room in ROOMS), "src"]
    failed = []
    for processor in PROCESSORS:
        if known.only in (None, processor.title):
            settings = " ".join(f"{name}={value!r}" for name, value in processor.variables.items())
            print(f"as on {processor.title}, {processor.cores} cores: {settings}", flush=True)
            if run(processor, targets):
                failed.append(processor.title)
    print(f"differs as on: {', '.join(failed)}" if failed else "the same as on all of them")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
