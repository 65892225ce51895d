"""Regression models: fitted by real nodes over mutual TLS, against other libraries' coefficients,
and in one place, against these libraries' time.

Each data set is split over three processes of nodes with a file each, of 8 %, 27 % and 65 % of the
rows; the first one has one class only, or no events.

Run with: python benchmarks/models.py [--min-cell 5 | --smoke]
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

import common
import numpy as np
import ports
from fit_cases import CASES, Case
from processes import Processes

import gosta
from gosta.net.deploy.fitted import read_fit
from gosta.net.node.status import Status

NAMES = ["node-0", "node-1", "node-2"]
SMOKE = ("gbsg2",)
CLOSE = 1e-6  # standard errors by which coefficients may differ
MOST_ROUNDS = 12


def fit_by_nodes(case: Case, folder: Path, min_cell: int) -> tuple[float, list[Status], gosta.Fit]:
    """Return seconds from the start of the processes to the release, statuses, and the fit."""
    data = folder / "data.csv"
    case.rows.to_csv(data, index=False)
    network = folder / "network"
    place = ["--data", str(data), "--by", "site", "--port", str(ports.free(6))]
    init = [*common.GOSTA, "network", "init", str(network), *case.network_options, *place]
    done = subprocess.run(init, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in NAMES:
        policy = f'modes = ["private"]\nmin_rows = 1\nmin_cell = {min_cell}\n'
        (network / name / "policy.toml").write_text(policy)
    with Processes(*(network / name for name in NAMES)) as processes:
        start = time.perf_counter()
        processes.start(*NAMES)
        found = processes.wait(lambda statuses: all(one.state == "complete" for one in statuses))
        seconds = time.perf_counter() - start
        processes.stop()
    return seconds, found, read_fit(network).fit


def check_nodes(cases: list[Case], min_cell: int) -> None:
    """Print for each case how near its coefficients are, and what they cost."""
    titles = ["data", "model", "rows", "coefficients", "rounds", "off by"]
    titles += ["a site sent", "its rows are", "seconds"]
    print(f"| {' | '.join(titles)} |")
    print(f"|{' --- |' * len(titles)}")
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            seconds, statuses, fit = fit_by_nodes(case, Path(folder), min_cell)
        error = case.error(fit)
        assert fit.n == len(case.rows)
        assert fit.rounds <= MOST_ROUNDS
        assert error < CLOSE or fit.warnings, error
        sent = np.mean([one.counters["bytes sent"] for one in statuses])
        rows = case.rows.drop(columns="site").size * 8 / len(NAMES)
        penalty = f", λ = {case.penalty:g}" if case.penalty else ""
        cells = [case.name, case.model + penalty, f"{fit.n:,}", f"{len(fit.names)}"]
        cells += [f"{fit.rounds}", f"{error:.0e}", f"{sent / 1e3:,.0f} kB"]
        cells += [f"{rows / 1e3:,.0f} kB", f"{seconds:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--min-cell", type=int, default=1, help="of all sites' policies")
    arguments = parser.parse_args()
    common.print_machine("scikit-learn", "statsmodels", "lifelines")
    cases = [case for case in CASES if not arguments.smoke or case.name in SMOKE]
    check_nodes(cases, arguments.min_cell)


if __name__ == "__main__":
    main()
