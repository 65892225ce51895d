"""Networks of private sums: their settings in files, 'gosta network init --private', and errors in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from gosta.errors import InputError
from gosta.net.config import NodeConfig, NodeSettings, Task, read_node, write
from gosta.net.node.source import fingerprint
from gosta.private.settings import PrivateSettings

PRIVATE = PrivateSettings(
    bins=256,
    ranges={"risk": (0.0, 1.0), "": (-1.5, 2.0)},
    edges={"age of patient": (18.0, 65.0)},
    find_edges=True,
    strata={"sex": ("f", "m"), "ward": (1, 2)},
    epsilon=1.0,
    delta=1e-6,
    colluding=2,
    deadline_seconds=60.0,
)
TASK = Task("0123456789abcdef", "auc,gini-index:age of patient", label="died", score="risk", private=PRIVATE)


def test_settings_of_private_sums_are_read_as_they_were_written(tmp_path: Path) -> None:
    for task in (TASK, replace(TASK, private=PrivateSettings())):
        config = NodeConfig(task, NodeSettings("node-0", "127.0.0.1:7400"), {})
        write(tmp_path / "node.toml", config)
        assert read_node(tmp_path / "node.toml") == config


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bins = 256", "bins = 1", "network.private.bins = 1 must be a whole number from 2 to 8,192"),
        ("bins = 256", "bin = 256", r"unknown field `bin` in \[network.private\]; there are: bins, ranges, edges"),
        ("bins = 256", 'bins = "many"', "network.private.bins = 'many': expected `int`, got `str`"),
        ("[0.0, 1.0]", "[1.0, 0.0]", "network.private.ranges = risk=1:0 must be the lowest and the highest value"),
        ("[0.0, 1.0]", "[0.0, inf]", "network.private.ranges = risk=0:inf must be"),
        ("[18.0, 65.0]", "[65.0, 18.0]", "network.private.edges of 'age of patient' must be increasing numbers"),
        ('["f", "m"]', '["f", "f"]', "network.private.strata of 'sex' must name each value once"),
        ('["f", "m"]', "[]", "network.private.strata of 'sex' must name each value once"),
        ("epsilon = 1.0", "epsilon = 0", "network.private.epsilon = 0.0 must be a positive number"),
        ("epsilon = 1.0, ", "", "network.private.delta = 1e-06 is for differential privacy; give epsilon too"),
        ("delta = 1e-06", "delta = 1.0", "network.private.delta = 1.0 must be a probability"),
        ("colluding = 2", "colluding = -1", "network.private.colluding = -1 must be a number of sites"),
        ("deadline_seconds = 60.0", "deadline_seconds = 0", "network.private.deadline_seconds = 0.0 must be from 1"),
        ('label = "died"', "until = 0.01", "network.until = 0.01 is for exchanges of rows"),
        ("auc,gini-index", "own.py:mine,auc", "private sums are of statistics that have sketches"),
        ("auc,gini-index", "auc,,gini-index", "private sums are of statistics that have sketches"),
    ],
)
def test_wrong_settings_of_private_sums_say_what_to_do(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "node.toml"
    write(path, NodeConfig(TASK, NodeSettings("node-0", "127.0.0.1:7400"), {}))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_node(path)


def test_sites_that_would_sum_other_numbers_have_other_fingerprints(tmp_path: Path) -> None:
    reordered = {name: PRIVATE.strata[name] for name in reversed(PRIVATE.strata)}
    changes: list[dict[str, Any]] = [
        {"bins": 255},
        {"ranges": {"risk": (0.0, 2.0)}},
        {"edges": {}},
        {"find_edges": False},
        {"strata": reordered},
        {"epsilon": 2.0},
        {"delta": 0.0},
        {"colluding": 0},
        {"deadline_seconds": 61.0},
    ]
    tasks = [
        TASK,
        replace(TASK, private=None),
        replace(TASK, columns=("age",)),
        replace(TASK, score="age"),
        replace(TASK, label="ill"),
        replace(TASK, classes=("0", "1")),
        replace(TASK, statistic="auc"),
        replace(TASK, options={"positive": "yes"}),
        *(replace(TASK, private=replace(PRIVATE, **change)) for change in changes),
    ]
    assert len({fingerprint(task, tmp_path) for task in tasks}) == len(tasks)
