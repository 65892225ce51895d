"""How a site's data file is read by settings of node.toml, from commands to a running node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import ports
import pytest
from commands import command
from reloading_site import Site

from gosta.errors import InputError
from gosta.net.config import NODE_FILE, NodeConfig, NodeSettings, Task, read_node, write
from gosta.net.node.source import read_row_source, read_sum_source

RNG = np.random.default_rng(2)
FRAME = pd.DataFrame(
    {"größe": RNG.normal(size=20).round(3), "krank": np.where(RNG.random(20) < 0.5, "nein", "ja")}
)
GERMAN = ["--sep", ";", "--decimal", ",", "--encoding", "latin-1"]
FIELDS = {"sep": ";", "decimal": ",", "encoding": "latin-1"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


def write_german(path: Path, frame: pd.DataFrame = FRAME) -> None:
    frame.to_csv(path, sep=";", decimal=",", encoding="latin-1", index=False)


def init(run: Any, folder: Path, *arguments: object) -> tuple[int, str, str]:
    network = ["--label", "krank", "--classes", "nein,ja", "--nodes", 3, "--port", ports.free()]
    found: tuple[int, str, str] = run(
        "network", "init", folder, "-s", "auc:größe", *network, *arguments
    )
    return found


def test_files_are_read_as_the_options_of_init_say(run: Any, tmp_path: Path) -> None:
    assert init(run, tmp_path / "net", *GERMAN)[0] == 0
    node = tmp_path / "net" / "node-0"
    write_german(node / "data.csv")
    found = read_row_source(read_node(node / NODE_FILE), node).estimand.x
    np.testing.assert_array_equal(found[:, 0], FRAME["größe"])
    assert "ok       rows: 20 rows" in run("check", node)[1]
    new = tmp_path / "new.csv"
    write_german(new)
    assert run("network", "add", tmp_path / "net", "--data", new, *GERMAN)[0] == 0
    assert (
        read_node(tmp_path / "net" / "node-3" / NODE_FILE).node.format
        == read_node(node / NODE_FILE).node.format
    )
    code, _, err = run("network", "add", tmp_path / "net", "--data", new)
    assert (code, err.count("\n")) == (2, 1)
    assert 'such as encoding = "latin-1" in node.toml (--encoding latin-1)' in err


def test_private_sums_and_enrolment_read_files_alike(run: Any, tmp_path: Path) -> None:
    assert init(run, tmp_path / "net", "--private", "--range", "größe=-5:5", *GERMAN)[0] == 0
    node = tmp_path / "net" / "node-0"
    write_german(node / "data.csv")
    assert read_sum_source(read_node(node / NODE_FILE), node).rows == 20
    task = ["-s", "auc:größe", "--label", "krank", "--classes", "nein,ja", "--enrol"]
    code, _, err = run("network", "init", tmp_path / "invited", *task, *GERMAN)
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "sep is not for enrol: each site says how its file is read, gosta node request --sep" in err
    )
    assert run("network", "init", tmp_path / "invited", *task)[0] == 0
    place = [
        "--name",
        "a",
        "--listen",
        f"127.0.0.1:{ports.free()}",
        "--data",
        node / "data.csv",
        *GERMAN,
    ]
    code, out, _ = run(
        "node", "request", tmp_path / "invited" / "invitation.json", tmp_path / "a", *place
    )
    assert code == 0
    assert "20 declared" in out
    assert (
        msgspec.structs.asdict(read_node(tmp_path / "a" / NODE_FILE).node).items() >= FIELDS.items()
    )


def test_excel_and_doubts_about_the_first_line(run: Any, tmp_path: Path) -> None:
    assert init(run, tmp_path / "net")[0] == 0
    node = tmp_path / "net" / "node-0"
    with pd.ExcelWriter(node / "data.xlsx") as book:
        pd.DataFrame({"größe": [1.0]}).to_excel(book, sheet_name="old", index=False)
        FRAME.to_excel(book, sheet_name="new", index=False)
    text = (node / NODE_FILE).read_text().replace('"data.csv"', '"data.xlsx"')
    (node / NODE_FILE).write_text(text)
    checks = [json.loads(line) for line in run("check", node, "--json")[1].splitlines()]
    doubt = next(one for one in checks if one["check"] == "data")
    assert (doubt["level"], doubt["text"]) == ("warning", "may not be read as it is meant")
    (node / NODE_FILE).write_text(text.replace('header = "auto"', 'header = "yes"\nsheet = "new"'))
    np.testing.assert_array_equal(
        read_row_source(read_node(node / NODE_FILE), node).estimand.x[:, 0], FRAME["größe"]
    )
    assert "warning  data" not in run("check", node)[1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sep": ";;"}, r"node\.sep = ';;' must be one character"),
        ({"decimal": "'"}, r"node\.decimal = \"'\" must be \. or ,"),
        ({"encoding": "klingon"}, r"node\.encoding = 'klingon' is not known; utf-8"),
        ({"encoding": "undefined"}, r"node\.encoding = 'undefined' is not known; utf-8"),
        ({"encoding": "utf\0-8"}, r"node\.encoding = 'utf.*' is not known; utf-8"),
        ({"encoding": "x" * 99}, r"node\.encoding = 'x{40}'\.\.\. has more than 40 characters"),
        ({"header": "maybe"}, r"node\.header = 'maybe' must be yes, no or auto"),
        ({"sheet": "s" * 32}, r"node\.sheet = 's{32}'\.\.\. has more than 31 characters"),
    ],
)
def test_settings_are_checked(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    write(
        tmp_path / NODE_FILE,
        NodeConfig(Task("0" * 16, "auc"), NodeSettings("a", "127.0.0.1:7400", **fields), {}),
    )
    with pytest.raises(InputError, match=message):
        read_node(tmp_path / NODE_FILE)
    encoded = Task("0" * 16, "auc", encoded_columns=2)
    write(
        tmp_path / NODE_FILE, NodeConfig(encoded, NodeSettings("a", "127.0.0.1:7400", sep=";"), {})
    )
    with pytest.raises(
        InputError, match=r"node\.sep = ';' is for a site's own table; rows of this network are enc"
    ):
        read_node(tmp_path / NODE_FILE)


def test_a_running_node_reads_its_file_again_when_the_settings_change(tmp_path: Path) -> None:
    task = Task("0" * 16, "auc", columns=("größe",), label="krank", classes=("nein", "ja"))
    FRAME.to_csv(tmp_path / "data.csv", index=False)
    site = Site(tmp_path, task)
    before = site.node.peer.estimator.rows.estimand.x
    write_german(site.data, FRAME.assign(größe=FRAME["größe"] + 1))
    assert site.poll() == (1, 20)
    assert "such as encoding" in site.node.reload_error
    config = read_node(site.toml)
    write(
        site.toml,
        msgspec.structs.replace(config, node=msgspec.structs.replace(config.node, **FIELDS)),
    )
    assert site.poll(4) == (2, 20)
    assert site.node.reload_error == ""
    np.testing.assert_allclose(site.node.peer.estimator.rows.estimand.x[:, 0], before[:, 0] + 1)
    site.node.stop()
