"""Regression models: fitted by real nodes over mutual TLS, against other libraries' coefficients;
in one place, against these libraries' time; and what members can compute of rows from the totals.

Each data set is split over three processes of nodes with a file each, of 8 %, 27 % and 65 % of the
rows; the first one has one class only, or no events.

Run with: python benchmarks/models.py [--min-cell 5 | --smoke]
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import lifelines
import numpy as np
import pandas as pd
import ports
import statsmodels.api as sm
from fit_cases import CASES, Case
from processes import Processes
from row_attacks import Shares, attack_cox, attack_logistic
from sklearn.linear_model import LinearRegression, LogisticRegression

import gosta
from gosta.net.deploy.fitted import read_fit
from gosta.net.node.status import Status

Floats = np.ndarray[Any, np.dtype[np.float64]]
Fitter = Callable[[], Floats]
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


def make_rows(n: int, columns: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, columns))
    eta = x @ rng.normal(size=columns) / 3
    time, end = np.ceil(50 * rng.exponential(np.exp(-eta))), np.ceil(50 * rng.exponential(size=n))
    return pd.DataFrame(x, columns=[f"x{k}" for k in range(columns)]).assign(
        sick=(rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int),
        cost=eta + rng.normal(size=n),
        visits=rng.poisson(np.exp(eta.clip(-3, 3))),
        time=np.minimum(time, end),
        event=(time <= end).astype(int),
    )


def others_of(rows: pd.DataFrame, names: list[str]) -> dict[str, tuple[str, Fitter]]:
    """Return for each library and model the model's name, and what fits its coefficients."""
    x, with_one = rows[names].to_numpy(), sm.add_constant(rows[names].to_numpy())
    survival = rows[[*names, "time", "event"]]
    precise = {"solver": "newton-cholesky", "tol": 1e-8, "C": np.inf}

    def classifier() -> Floats:
        found = LogisticRegression(**precise).fit(x, rows["sick"])
        return np.append(found.intercept_, found.coef_)

    def regressor() -> Floats:
        found = LinearRegression().fit(x, rows["cost"])
        return np.append(found.intercept_, found.coef_)

    return {
        "logistic, scikit-learn": ("logistic", classifier),
        "logistic, statsmodels": (
            "logistic",
            lambda: sm.Logit(rows["sick"], with_one).fit(disp=0).params,
        ),
        "linear, scikit-learn": ("linear", regressor),
        "linear, statsmodels": ("linear", lambda: sm.OLS(rows["cost"], with_one).fit().params),
        "poisson, statsmodels": (
            "poisson",
            lambda: sm.Poisson(rows["visits"], with_one).fit(disp=0, method="newton").params,
        ),
        "cox, lifelines": (
            "cox",
            lambda: lifelines.CoxPHFitter().fit(survival, "time", "event").params_,
        ),
    }


def time_in_one_place(n: int, columns: int) -> None:
    """Print how long fits of rows in memory take, beside those of other libraries."""
    rows = make_rows(n, columns)
    names = [f"x{k}" for k in range(columns)]
    outcomes = {"logistic": "sick", "linear": "cost", "poisson": "visits", "cox": None}
    data = gosta.datasets.load(rows)
    common.print_heading(f"{n:,} rows, {columns} columns")
    for title, (model, other) in others_of(rows, names).items():

        def ours(model: str = model) -> gosta.Fit:
            return gosta.fit(data, model, outcome=outcomes[model], columns=names)

        np.testing.assert_allclose(ours().coefficients, other(), rtol=1e-4, atol=1e-4)
        common.print_ratio(title, *common.best_side_by_side(ours, other), None)


def attack(draws: int) -> None:
    """Print how many rows a member computes from the totals of all rounds."""

    def show(title: str, found: list[Shares]) -> None:
        computed, chance = np.mean(found, axis=0)
        print(f"| {title} | {computed:.0%} | {chance:.0%} |", flush=True)

    seeds = range(draws)
    print("\n| age in years, sex, outcome | rows computed | by chance |\n| --- | --- | --- |")
    for n in (12, 20, 40, 80):
        found = [attack_logistic(n, np.random.default_rng(seed)) for seed in seeds]
        show(f"logistic, {n} rows, {n // 2} for each column", found)
    for least in (0, 5, 10, 20, 40):
        found = [attack_cox(400, least, np.random.default_rng(seed)) for seed in seeds]
        show(f"cox, 400 rows, 40 weeks, {least} events in a bin or more", found)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--min-cell", type=int, default=0, help="of all sites' policies")
    arguments = parser.parse_args()
    common.print_machine("scikit-learn", "statsmodels", "lifelines")
    cases = [case for case in CASES if not arguments.smoke or case.name in SMOKE]
    time_in_one_place(*((2_000, 3) if arguments.smoke else (100_000, 20)))
    attack(2 if arguments.smoke else 20)
    check_nodes(cases, arguments.min_cell)


if __name__ == "__main__":
    main()
