"""Roles of columns in networks: declared when a network is made, read from each site's file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gosta
from gosta.net.config import NODE_FILE, read_node
from gosta.net.node.rows import read_rows
from gosta.private.policy import POLICY_FILE, read_policy

ROLES = ("--time", "days", "--event", "died", "--score", "risk")
RANGES = ("--range", "days=0:1000", "--range", "risk=0:1")


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    rng = np.random.default_rng(9)
    rows = zip(
        rng.integers(1, 30, 60),
        rng.integers(1, 900, 60),
        rng.choice(["ja", "nein"], 60),
        rng.random(60).round(3),
        rng.random(60).round(3),
        strict=True,
    )
    lines = ["patient,days,died,risk,old", *(",".join(map(str, row)) for row in rows), ""]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    return tmp_path / "a.csv"


def invite(gosta_: Any, folder: Path, *more: object) -> Path:
    code, _, err = gosta_("network", "init", folder, "--enrol", "--private", *more)
    assert (code, err) == (0, ""), err
    return folder / "invitation.json"


def request(gosta_: Any, invitation: Path, folder: Path, *more: object) -> tuple[int, str, str]:
    where = "--name", folder.name, "--address", "a.example:7400"
    result: tuple[int, str, str] = gosta_("node", "request", invitation, folder, *where, *more)
    return result


def test_a_network_declares_the_roles_of_columns(
    gosta_: Any, tmp_path: Path, patients: Path
) -> None:
    invitation = invite(gosta_, tmp_path / "net", "-s", "cindex", *ROLES, *RANGES)
    code, _, err = request(
        gosta_, invitation, tmp_path / "a", "--data", patients, "--person", "patient"
    )
    assert (code, err) == (0, "")
    site = read_node(tmp_path / "a" / NODE_FILE)
    assert site.network.statistic == "concordance-index"
    assert (site.network.time, site.network.event) == ("days", "died")
    data = gosta.datasets.load(patients)
    x = read_rows(site.network, patients)
    assert x[:, 0].tolist() == data.columns["days"].tolist()
    assert x[:, 1].tolist() == [float(value == "ja") for value in data.columns["died"]]
    assert x[:, 2].tolist() == data.columns["risk"].tolist()
    assert read_policy(tmp_path / "a").person == "patient"
    assert 'person = "patient"' in (tmp_path / "a" / POLICY_FILE).read_text()


def test_two_scores_are_declared_together(gosta_: Any, tmp_path: Path, patients: Path) -> None:
    invitation = invite(
        gosta_, tmp_path / "net", "-s", "delong", "--score", "risk,old", "--label", "died",
        "--classes", "nein,ja", "--range", "risk=0:1", "--range", "old=0:1",
    )  # fmt: skip
    assert request(gosta_, invitation, tmp_path / "a", "--data", patients)[0] == 0
    task = read_node(tmp_path / "a" / NODE_FILE).network
    assert task.scores == ("risk", "old")
    assert read_rows(task, patients).shape == (60, 3)


def test_a_person_column_that_is_not_there_is_an_error(
    gosta_: Any, tmp_path: Path, patients: Path
) -> None:
    invitation = invite(gosta_, tmp_path / "net", "-s", "cindex", *ROLES, *RANGES)
    more = "--data", patients, "--person", "Patient"
    code, _, err = request(gosta_, invitation, tmp_path / "a", *more)
    assert (code, "did you mean 'patient'" in err) == (2, True)
    assert not (tmp_path / "a").exists()
