"""A study by private sums in real processes: one release of more sums than fit into 256 KiB."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import ports
from processes import Processes, gosta
from study_data import ROLES, write_sites

from gosta.net.node.status import Status
from gosta.studies import results
from gosta.studies.definition import read_study

NAMES = ["node-0", "node-1", "node-2"]
LEAST_SUMS = 40_000  # of all questions about two scores, by sex


def is_complete(found: list[Status]) -> bool:
    return all(one.state == "complete" and one.sums and one.sums.results for one in found)


def run(*words: object) -> str:
    done = gosta(*words)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def test_all_questions_of_a_study_are_one_release(tmp_path: Path) -> None:
    files, study, net = write_sites(tmp_path), tmp_path / "study", tmp_path / "net"
    run("study", "init", study, "--data", files[1], *ROLES, "--group", "sex", "--yes")
    assert read_study(study).layout().size > LEAST_SUMS
    run("network", "init", net, "--study", study, "--nodes", 3, "--port", ports.free(6))
    for name, file in zip(NAMES, files, strict=True):
        shutil.copy(file, net / name / "data.csv")
    with Processes(*(net / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(is_complete)
        processes.stop()
    run("study", "collect", study, net / "node-1")
    by_sums = {one["statistic"]: one for one in results.read(study)["estimates"]}
    assert results.read(study)["how"]["participants"] == NAMES
    run("study", "run", study, *(word for file in files for word in ("--data", file)))
    exact = {one["statistic"]: one for one in results.read(study)["estimates"]}
    for title in ("auc:risk", "concordance-index:time+event+other", "auc-difference:other+risk"):
        low, high = by_sums[title]["bracket"]
        assert low <= exact[title]["value"] <= high, title
        assert by_sums[title]["n"] == exact[title]["n"]
    tables = [found[next(iter(exact))] for found in (by_sums, exact)]
    assert tables[0]["labels"] == tables[1]["labels"]
    shares = [k for k, label in enumerate(tables[0]["labels"]) if label.startswith("sex = ")]
    there, here = (np.array(table["value"], dtype=float)[shares] for table in tables)
    np.testing.assert_allclose(there, here, rtol=1e-12)
    verified = gosta("network", "verify", net)
    assert "NO " not in verified.stdout
