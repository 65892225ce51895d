"""Models fitted by real nodes over TLS, against those of other libraries."""

from __future__ import annotations

import json
from pathlib import Path

import lifelines
import numpy as np
import pandas as pd
import ports
import pytest
import statsmodels.api as sm
from fit_cases import CASES, Case
from processes import Processes, gosta

from gosta.net.deploy.fitted import read_fit
from gosta.net.node.status import Status

CLOSE = 1e-6  # standard errors by which coefficients may differ
NAMES = ["node-0", "node-1", "node-2"]
COLUMNS = ("--columns", "age,sex,dose")
SIZES = {"north": 45, "south": 150, "west": 400}


def table() -> pd.DataFrame:
    """Return rows of three uneven sites, at one of which nobody died."""
    rng = np.random.default_rng(5)
    n = sum(SIZES.values())
    age, sex = rng.integers(30, 80, n), rng.choice(["F", "M"], n)
    dose = rng.normal(size=n).round(3)
    eta = -3 + 0.05 * age + 0.6 * (sex == "M") + 0.4 * dose
    died = (rng.random(n) < 1 / (1 + np.exp(-eta))) & (np.arange(n) >= SIZES["north"])
    months = np.ceil(rng.exponential(12 * np.exp(-eta / 2))).clip(1, 12)
    site = np.repeat(list(SIZES), list(SIZES.values()))
    died_text = np.where(died, "yes", "no")
    return pd.DataFrame(
        {"age": age, "sex": sex, "dose": dose, "site": site, "died": died_text}
        | {"months": months.astype(int), "seen": (months < 12).astype(int)}
    )


def all_complete(found: list[Status]) -> bool:
    return all(one.state == "complete" for one in found)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fit") / "patients.csv"
    table().to_csv(path, index=False)
    return path


def fit_by_nodes(folder: Path, data: Path, *model: object) -> None:
    """Make a network, run its nodes until they have a fit, and stop them."""
    place = ("--data", data, "--by", "site", "--port", ports.free(6))
    done = gosta("network", "init", folder, *model, *place)
    assert done.returncode == 0, done.stderr
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(all_complete)
        running = gosta("fit", "--private", folder, "--json")
        assert running.returncode == 0, running.stderr
        processes.stop()
    stopped = gosta("fit", "--private", folder / "node-1", "--json")
    assert json.loads(stopped.stdout) == json.loads(running.stdout)
    checked = gosta("network", "verify", folder)
    assert checked.returncode == 0, checked.stdout


def design() -> np.ndarray:
    rows = table()
    return np.column_stack([rows["age"], rows["sex"] == "M", rows["dose"]]).astype(float)


def test_logistic_regression(tmp_path: Path, data: Path) -> None:
    fit_by_nodes(tmp_path / "net", data, "--fit", "logistic", "--outcome", "died", *COLUMNS)
    fit, report = read_fit(tmp_path / "net")
    outcome = (table()["died"] == "yes").to_numpy().astype(int)
    other = sm.Logit(outcome, sm.add_constant(design())).fit(disp=0, tol=1e-14)
    assert np.abs((fit.coefficients - other.params) / other.bse).max() < CLOSE
    assert fit.standard_errors == pytest.approx(other.bse, rel=CLOSE)
    assert fit.rounds == 1 + len(report.earlier_totals) <= 12
    shown = gosta("fit", "--private", tmp_path / "net", "--robust").stdout
    assert "fitted by private sums over the rows of node-0, node-1, node-2" in shown
    audited = gosta("audit", tmp_path / "net" / "node-0").stdout
    assert "round 2" in audited
    assert f"over {sum(SIZES.values())} rows: sums of weights (1)" in audited
    status = gosta("status", tmp_path / "net" / "node-0").stdout
    assert "fit-logistic, all sites" in status
    assert "sex[M]" in status


def test_cox_regression(tmp_path: Path, data: Path) -> None:
    model = ("--fit", "cox", "--time", "months", "--event", "seen")
    fit_by_nodes(tmp_path / "net", data, *model, *COLUMNS)
    fit, _ = read_fit(tmp_path / "net")
    rows = table().assign(sex=design()[:, 1])[["age", "sex", "dose", "months", "seen"]]
    other = lifelines.CoxPHFitter().fit(rows, "months", "seen", fit_options={"precision": 1e-12})
    moved = fit.coefficients - other.params_.to_numpy()
    assert np.abs(moved / other.standard_errors_.to_numpy()).max() < CLOSE
    assert fit.rounds <= 12


# `python benchmarks/models.py` runs all of them.
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("wine", "randhie")], ids=lambda case: case.name
)
def test_data_sets_of_other_libraries(tmp_path: Path, case: Case) -> None:
    case.rows.to_csv(tmp_path / "data.csv", index=False)
    fit_by_nodes(tmp_path / "net", tmp_path / "data.csv", *case.network_options)
    fit, _ = read_fit(tmp_path / "net")
    assert case.error(fit) < CLOSE
    assert fit.n == len(case.rows)
    assert fit.rounds <= 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fit", "logistic", "--columns", "age"), "needs the outcome"),
        (("--fit", "logistic", "--outcome", "died", "--columns", "age"), "classes of the outcome"),
        (
            ("--fit", "logistic", "--outcome", "died", "--classes", "no,yes", "--columns", "age"),
            "column 'age' has neither a range nor levels",
        ),
        (("--outcome", "died"), "outcome is for models; add --fit"),
        (
            ("--fit", "cox", "--time", "t", "--event", "e", "--columns", "age"),
            "times of a Cox model are missing",
        ),
        (("--fit", "linear", "--outcome", "cost", "--columns", "age"), "the range of the outcome"),
        (("--fit", "logistic", "--bins", "8"), "bins is for statistics"),
        (("--fit", "ridge", "--columns", "age"), "ridge"),
        (
            (
                *("--fit", "logistic", "--outcome", "died", "--classes", "no,yes", "--epsilon"),
                *("1", "--columns", "age", "--range", "age=0:100"),
            ),
            "noise of fits needs delta, too",
        ),
        (
            ("--fit", "cox", "--strata", "site", "--time", "t", "--event", "e", "--columns", "x"),
            "strata = 'site' needs the values",
        ),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = gosta("network", "init", tmp_path / "net", *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"dose": 2.0 * table()["age"]}, "column dose of the model is a combination of age"),
        ({"died": np.where(table()["age"] > 60, "yes", "no")}, "the columns separate the classes"),
    ],
)
def test_what_cannot_be_fitted_is_told_by_every_node(
    tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    table().assign(**changes).to_csv(tmp_path / "data.csv", index=False)
    network = tmp_path / "net"
    model = ("--fit", "logistic", "--outcome", "died", *COLUMNS, "--by", "site")
    gosta(
        "network", "init", network, *model, "--data", tmp_path / "data.csv", "--port", ports.free(6)
    )
    with Processes(*(network / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        for status in processes.wait(all_complete):
            assert status.sums is not None
            assert reason in status.sums.results[0].why
        processes.stop()
    for name in NAMES:
        assert reason in gosta("status", network / name).stdout.replace("\n", " ")
    done = gosta("fit", "--private", network)
    assert done.returncode == 2
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_site_whose_rows_cannot_be_used_is_told_why(tmp_path: Path, data: Path) -> None:
    """Classes of text are none of numbers; a class that no site declared, and no rows."""
    model = ("--fit", "logistic", "--outcome", "died", *COLUMNS, "--by", "site", "--data", data)
    gosta("network", "init", tmp_path / "net", *model, "--port", ports.free(6))
    node = tmp_path / "net" / "node-1"
    lines = (node / "data.csv").read_text().splitlines()
    assert gosta("check", node).returncode == 0
    for changed, reason in {
        lines[1].replace("no", "maybe").replace("yes", "maybe"): "others than those declared",
        "": "has no rows",
    }.items():
        rest = lines[2:] if changed else []
        (node / "data.csv").write_text("\n".join([lines[0], *filter(None, [changed]), *rest]))
        done = gosta("check", node)
        assert done.returncode == 1
        assert reason in done.stdout
