"""Several statistics in one network of rows: in simulations, in virtual networks and on the command
line.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import ports
import pytest
import scipy.stats
from commands import command
from engine_runs import estimates
from fault_schedules import check_replay
from msgspec.structs import replace
from sklearn.metrics import roc_auc_score
from virtual_network import VirtualNetwork

import gosta
from gosta.errors import InputError
from gosta.estimation.estimand import kernel_ranges
from gosta.estimation.setting import make_setting
from gosta.net.audit.verify import Journals, verify
from gosta.net.config import NODE_FILE, read_node
from gosta.net.deploy.query import View
from gosta.net.node import status_text
from gosta.net.node.pages import StatusCollector
from gosta.net.node.source import fingerprint
from gosta.net.protocol.records import PartReport, Report, relative_distance
from gosta.net.watch.overview import table
from gosta.simulation import engines
from gosta.statistics.joint import choose, encode

N = 90
RNG = np.random.default_rng(11)
RISK = RNG.normal(size=N).round(1)
PATIENTS = {
    "risk": RISK,
    "age": RNG.integers(20, 90, N) + 20.0 * RISK.round(),
    "cost": np.exp(RNG.normal(size=N)),
    "label": RISK + RNG.normal(size=N) > 0,
}
MIXED = (
    "auc:risk,kendall-tau:risk+age,spearman-rho:risk+age,distance-correlation:risk+age,"
    "gini-index:cost"
)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return command(capsys, monkeypatch)


def setting_of(statistic: str, nodes: int | None = 6, **more: Any) -> Any:
    return make_setting(
        "tracking", PATIENTS, statistic, "complete", 0, more.pop("options", {}), nodes=nodes, **more
    )


def advance(engine: str, setting: Any, iterations: int) -> Any:
    """Return the means that nodes estimate after some iterations of one run."""
    with closing(engines.find(engine)(setting, 0)) as made:
        batch = made.start([0])
        made.advance(batch, iterations)
        return estimates(made, batch)


def test_values_are_those_of_others() -> None:
    found = setting_of(
        "auc:risk,kendall-tau:risk+age,spearman-rho:risk+age,variance:cost,mann-whitney:risk"
    ).estimand
    auc, pairs = (
        roc_auc_score(PATIENTS["label"], RISK),
        PATIENTS["label"].sum() * (~PATIENTS["label"]).sum(),
    )
    rho = scipy.stats.spearmanr(RISK, PATIENTS["age"]).statistic
    tau_a = np.sign(np.subtract.outer(RISK, RISK)) * np.sign(
        np.subtract.outer(PATIENTS["age"], PATIENTS["age"])
    )
    tau = tau_a.sum() / (N * (N - 1))
    wanted = [auc, tau, rho, PATIENTS["cost"].var(ddof=1), auc * pairs]
    np.testing.assert_allclose(found.value, wanted, rtol=1e-10)
    assert found.x.shape[1] == 5, "auc and mann-whitney share two numbers, both correlations two"
    assert setting_of(
        "kendall-tau:risk+age,spearman-rho:risk+age", options={"variant": "b"}
    ).estimand.value == (
        pytest.approx([scipy.stats.kendalltau(RISK, PATIENTS["age"]).statistic, rho])
    )


@pytest.mark.parametrize(
    ("statistic", "interval", "nodes"),
    [
        (MIXED, None, 7),
        ("auc:risk,gini-index:cost", None, None),
        ("auc:risk,gini-index:cost", 0.9, 7),
    ],
)
def test_engines_agree_to_the_last_bit(
    statistic: str, interval: float | None, nodes: int | None
) -> None:
    setting = setting_of(statistic, nodes, interval=interval)
    compiled, reference = advance("compiled", setting, 120), advance("reference", setting, 120)
    np.testing.assert_array_equal(compiled, reference)


@pytest.mark.parametrize(
    "statistic", [MIXED, "variance:risk,covariance:risk+age", "auc:risk,variance:cost"]
)
def test_estimates_are_those_of_each_statistic_alone(statistic: str) -> None:
    """The same edges are drawn, so that each statistic has the same visitors as alone."""
    settings: dict[str, Any] = {
        "graph": "complete",
        "nodes": 6,
        "iterations": 400,
        "runs": 1,
        "engine": "reference",
    }
    together = gosta.simulate(PATIENTS, statistic, **settings)
    assert together.value_names == statistic.split(",")
    for title in statistic.split(","):
        name, columns = title.split(":")
        alone = gosta.simulate(PATIENTS, name, columns=columns.split("+"), **settings)
        assert float(together.data["target"].sel(value=title)) == pytest.approx(alone.target)
        has_other_rule = "local" in name or (name == "variance" and "auc" in statistic)
        tolerance = 0.05 if has_other_rule or statistic == MIXED else 1e-12
        np.testing.assert_allclose(
            together.estimates.sel(value=title)[:, -1], alone.estimates[:, -1], rtol=tolerance
        )


def test_intervals_are_those_of_each_statistic() -> None:
    titles = ["auc:risk", "spearman-rho:risk+age", "gini-index:cost"]
    trace = gosta.simulate(
        PATIENTS,
        titles,
        graph="complete",
        nodes=6,
        iterations=1500,
        runs=1,
        interval=0.9,
        engine="reference",
    )
    low, high = (end.isel(run=0, iteration=-1) for end in trace.intervals())
    for k, title in enumerate(titles):
        wanted = gosta.exact(
            PATIENTS, title.split(":")[0], columns=title.split(":")[1].split("+"), interval=0.9
        )
        if k == 1:
            assert np.isnan(low.sel(value=title)).all()
            assert trace.setting.estimand.no_intervals[k].startswith(
                "spearman-rho: nodes cannot compute its interval"
            )
            continue
        width = wanted.high - wanted.low
        assert trace.setting.estimand.pooled_intervals()[k] == pytest.approx(
            (wanted.low, wanted.high)
        )
        assert float(abs(low.sel(value=title) - wanted.low).max()) < 0.1 * width
        assert float(abs(high.sel(value=title) - wanted.high).max()) < 0.1 * width
    with pytest.raises(InputError, match=r"spearman-rho: nodes cannot .*; mann-whitney is a count"):
        gosta.simulate(PATIENTS, ["spearman-rho:risk+age", "mann-whitney:risk"], interval=0.9)


def test_a_trace_is_saved_resumed_and_stops_when_all_are_content(tmp_path: Path) -> None:
    statistic = ["auc:risk", "gini-index:cost"]
    settings: dict[str, Any] = {"graph": "complete", "nodes": 6, "runs": 2}
    whole = gosta.simulate(PATIENTS, statistic, iterations=200, checkpoints=4, **settings)
    gosta.simulate(PATIENTS, statistic, iterations=100, checkpoints=2, **settings).save(
        tmp_path / "half.nc"
    )
    longer = gosta.resume(tmp_path / "half.nc", iterations=200)
    np.testing.assert_array_equal(longer.estimates, whole.estimates)
    assert (
        gosta.simulate(PATIENTS, ",".join(statistic), iterations=9, **settings).value_names
        == statistic
    )
    stopped = gosta.simulate(PATIENTS, statistic, until=0.05, **settings)
    for title in statistic:
        alone = gosta.simulate(PATIENTS, title, until=0.05, **settings)
        assert (stopped.data["stopped"] >= alone.data["stopped"]).all()
    errors = abs(stopped.estimates / stopped.data["target"] - 1).max("value").mean("node")
    np.testing.assert_allclose(
        stopped.data["mean"], errors, err_msg="the error of a node is its largest one"
    )


def test_rows_must_be_complete_for_all() -> None:
    frame = pd.DataFrame(PATIENTS)
    frame.loc[3, "risk"], frame.loc[[4, 5], "cost"] = np.nan, np.inf
    data = gosta.datasets.load(frame).select(drop_missing=True)
    x, kept, widths = encode(choose("auc:risk,gini-index:cost,kendall-tau:risk+age"), data, {})
    assert (np.flatnonzero(~kept).tolist(), widths, x.shape) == ([3, 4, 5], (2, 1, 2), (N - 3, 5))
    np.testing.assert_array_equal(x[:, [0, 2, 4]], frame[kept][["risk", "cost", "age"]])


def test_one_of_several_has_weights() -> None:
    setting = setting_of("auc@cost:risk,auc:risk,spearman-rho@cost:risk+age")
    wanted = [
        roc_auc_score(PATIENTS["label"], RISK, sample_weight=w) for w in (PATIENTS["cost"], None)
    ]
    assert setting.estimand.value[:2] == pytest.approx(wanted)
    assert setting.estimand.x.shape[1] == 8
    values = setting.values(advance("reference", setting, 600))[0]
    np.testing.assert_allclose(values, np.tile(setting.estimand.value, (6, 1)), rtol=0.1)


def test_own_statistics_and_options(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import gosta\n\n@gosta.statistic\ndef two_gaps(x, y, power=1.0):\n    gap = abs(x[0] - "
        "y[0])\n"
        "    return gap, gap ** power\n\n@gosta.statistic\ndef other_gap(x, y, power=2.0):\n"
        "    return abs(x[0] - y[0]) ** power\n"
    )
    two, other = f"{tmp_path}/own.py:two-gaps:age", f"{tmp_path}/own.py:other-gap:age"
    found = setting_of(f"auc:risk,{two}", options={"power": 0.5}).estimand
    assert found.value_names == ["auc:risk", f"{two} 1", f"{two} 2"]
    np.testing.assert_allclose(
        found.value[1:], gosta.exact(PATIENTS, "two-gaps", columns="age", power=0.5)
    )
    with pytest.raises(
        InputError,
        match=r"option power is 1\.0 by default for .*two-gaps:age and 2\.0 for .*--option",
    ):
        setting_of(f"{two},{other}")
    assert setting_of(f"{two},{other}", options={"power": 3}).estimand.value[1:] == pytest.approx(
        [gosta.exact(PATIENTS, "other-gap", columns="age", power=3)] * 2
    )


@pytest.mark.parametrize(
    ("statistic", "more", "message"),
    [
        ("auc,auc", {}, "statistic = 'auc,auc' names auc twice; name it once"),
        ([], {}, "statistic is empty: name at least one, such as auc"),
        ("auc,nonsense", {}, "unknown statistic 'nonsense'"),
        (
            "auc:risk,variance:cost",
            {"bandwidth": 1.0},
            "auc:risk,variance:cost have no option 'bandwidth'",
        ),
        ("auc:risk,variance:nothing", {}, "unknown column of the data 'nothing'"),
        (
            "auc:risk,kendall-tau:risk",
            {},
            r"kendall-tau:risk: needs columns for first, second; selected are 1 \(risk\); "
            r".*--columns risk,age\)",
        ),
        (
            "auc:risk,variance:cost",
            {"protocol": "u1"},
            "protocol u1 estimates the mean of each row, of one statistic",
        ),
        ("auc:risk,ranks:age", {}, "ranks:age has a value for each row; estimate it alone"),
        (
            "auc:risk,theil-sen:risk+age",
            {},
            "theil-sen.* is a median over pairs of rows, which nodes cannot average",
        ),
        (
            "auc:risk,spearman-rho:risk+age",
            {"protocol": "gosta-async"},
            "protocol gosta-async does not estimate; use",
        ),
    ],
)
def test_what_cannot_be_computed_together_is_said_in_one_line(
    statistic: Any, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        gosta.simulate(PATIENTS, statistic, graph="complete", **more)
    assert "\n" not in str(error.value)


def test_doubts_are_about_the_right_value(run: Any, tmp_path: Path) -> None:
    pd.DataFrame(PATIENTS).to_csv(tmp_path / "patients.csv", index=False)
    (tmp_path / "two.py").write_text(
        "import gosta\n\n@gosta.statistic\ndef two_small(x, y):\n    return 0.01 * abs(x[0] - "
        "y[0]), 0.02\n"
    )
    plot = [
        "--plot",
        tmp_path / "plot.png",
        "--engine",
        "reference",
        "--iterations",
        9,
        "--runs",
        1,
        "--nodes",
        4,
    ]
    command_line = ["run", tmp_path / "patients.csv", *plot, "-s"]
    assert "below 0.5" not in run(*command_line, f"{tmp_path}/two.py:two-small:cost,auc:risk")[1]
    assert (
        "auc is below 0.5"
        in run(*command_line, "gini-index:cost,auc:risk", "--positive", "False")[1]
    )


def test_the_command_line_shows_each_statistic(run: Any, tmp_path: Path) -> None:
    pd.DataFrame(PATIENTS).to_csv(tmp_path / "patients.csv", index=False)
    arguments: list[Any] = [
        "run",
        tmp_path / "patients.csv",
        "-s",
        "auc:risk,variance:cost,spearman-rho:risk+age",
        "--nodes",
        6,
    ]
    arguments += [
        "-g",
        "complete",
        "--runs",
        1,
        "--iterations",
        300,
        "--plot",
        tmp_path / "plot.png",
        "--engine",
        "reference",
    ]
    code, out, _ = run(*arguments, "--interval", "90%")
    assert code == 0
    lines = out.splitlines()
    assert lines[2].split()[:5] == ["protocol", "statistic", "exact", "value", "estimate"]
    assert [line.split()[k] for line, k in zip(lines[3:6], (2, 0, 0), strict=True)] == arguments[
        3
    ].split(",")
    for start in (
        "auc:risk: 90 % interval for the population: ",
        "spearman-rho: nodes cannot compute",
        "variance:cost: comp",
    ):
        assert any(line.startswith(start) for line in lines), start
    code, out, _ = run(*arguments, "--json")
    record = json.loads(out)
    for part, wanted in zip(record["statistics"], record["exact"], strict=True):
        assert part["exact"] == wanted
        assert part["estimate"] == pytest.approx(wanted, rel=0.2)
        assert len(part["local_values"]) == 6
    assert set(record["assumed"]) == set(arguments[3].split(","))
    code, _, err = run(*arguments[:3], "auc:risk,quantiles:age")
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "statistic = 'quantiles:age' is no mean over pairs of rows, which nodes exchange; private "
        "sums have" in err
    )
    code, _, err = run(*arguments, "--bound")
    assert (code, err.count("\n")) == (2, 1)
    assert "there is theory for one statistic only" in err


def make_network(statistic: str, interval: float | None = None) -> VirtualNetwork:
    setting = setting_of(statistic, 4, interval=interval)
    parts, widths = setting.placement.split(setting.estimand.x), setting.estimand.row_widths
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (1, 3)]
    return VirtualNetwork(
        parts,
        edges,
        statistic=statistic,
        confidence_level=interval,
        exchanges_per_second=20.0,
        encoded_columns=widths,
    )


def test_nodes_find_all_values_with_intervals() -> None:
    interval, statistic = 0.9, "auc:risk,kendall-tau:risk+age,spearman-rho:risk+age,variance:cost"
    network = make_network(statistic, interval)
    network.clock.run(40.0)
    network.check()
    check_replay(network)
    wanted = setting_of(statistic, 4, interval=interval).estimand
    np.testing.assert_allclose(network.estimates(), np.tile(wanted.value, (4, 1)), rtol=0.03)
    for peer in network.peers.values():
        report = peer.report()
        assert report is not None
        assert [one.statistic for one in report.statistics] == statistic.split(",")
        errors = [one.expected_error for one in report.statistics]
        assert report.expected_error == max(error for error in errors if error is not None)
        for k, one in enumerate(report.statistics):
            assert (one.low is None) == (one.no_interval != "") == (k == 2)
            if one.low is not None:
                assert (one.low, one.high) == pytest.approx(wanted.pooled_intervals()[k], rel=0.05)
    status = next(iter(network.nodes.values())).status()
    assert [row[0] for row in status_text.results(status)] == ["statistic", *statistic.split(",")]
    lines = table([View(status.node, status.state, 0, status)], width=200).splitlines()
    place = lines[0].index("statistic")
    assert [line[place:].split()[0] for line in lines[1:]] == statistic.split(",")
    metrics = {one.name: one.samples for one in StatusCollector(lambda: status).collect()}
    assert [
        one.labels["statistic"] for one in metrics["gosta_statistic_estimate"]
    ] == statistic.split(",")
    assert [one.value for one in metrics["gosta_statistic_low"]] == [
        one.low for one in status.statistics if one.low
    ]
    records = {name: network.journals[name].load_epoch()[1] for name in network.names}
    findings = verify(Journals(network.task, Path(), network.peers, records))[-4:]
    for finding, title, part in zip(findings, statistic.split(","), status.statistics, strict=True):
        assert (finding.claim, finding.holds) == (
            f"estimates of {title} agree with the value over all rows",
            True,
        )
        assert part.expected_error is not None
        tolerance = float(finding.evidence.partition("tolerance ")[2].partition(" %")[0]) / 100
        assert tolerance < max(0.0101, 6 * part.expected_error), (
            "its own errors, not those of the worst"
        )


def test_rows_are_checked_by_each_statistic() -> None:
    estimand = setting_of("variance:cost,auc:risk").estimand
    assert estimand.is_valid_row((0.5, 1.0, -1.0))
    assert not estimand.is_valid_row((0.5, 1.0, 0.0)), "no class"
    assert kernel_ranges(estimand).tolist() == [[-np.inf, np.inf], [0.0, 2.0], [0.0, 2.0]]


def test_a_report_is_better_by_each_statistic() -> None:
    def report(auc: float, variance: float, error: float) -> Report:
        parts = (
            PartReport("auc", (auc,), None, None, error),
            PartReport("variance", (variance,), None, None, error),
        )
        return Report(1, (auc, variance), None, None, error, "", 2, 9, (), (), parts)

    old, new = report(0.9, 1e6, 0.02), report(0.5, 1e6, 0.05)
    assert relative_distance(old.value, new.value, new.statistics) == pytest.approx(0.8)
    assert new.is_better_than(old), "the old AUC no longer holds, though the variance does"
    assert not report(0.89, 1e6, 0.05).is_better_than(old)


def test_sites_bring_tables_with_all_columns(run: Any, tmp_path: Path) -> None:
    arguments = [
        "network",
        "init",
        tmp_path / "net",
        "-s",
        "auc:risk,kendall-tau:risk+age,spearman-rho:risk+age",
    ]
    code, out, _ = run(
        *arguments,
        "--nodes",
        3,
        "--classes",
        "False,True",
        "--label",
        "label",
        "--port",
        ports.free(),
    )
    assert code == 0
    assert (
        "95 % at every node, but not of all: spearman-rho: nodes cannot compute its interval" in out
    )
    assert "columns risk, age; classes False, True in label" in out
    node = tmp_path / "net" / "node-0"
    pd.DataFrame(PATIENTS).to_csv(node / "data.csv", index=False)
    code, out, _ = run("check", node)
    assert "rows" in out
    assert f"{N} rows" in out
    task = read_node(node / NODE_FILE).network
    assert fingerprint(task, node) != fingerprint(replace(task, statistic="auc:risk"), node)
    code, _, err = run(
        "network", "init", tmp_path / "other", "-s", "auc:risk,mmd:risk+age", "--classes", "a,b"
    )
    assert (code, err.count("\n")) == (2, 1)
    assert "the encoding of a row depends on other rows" in err


def test_a_score_for_one_statistic_beside_columns_of_another(run: Any, tmp_path: Path) -> None:
    """A network without data yet: the score is that of statistics that name no columns."""
    arguments = [
        "--statistic",
        "auc@cost,kendall-tau:age+risk",
        "--score",
        "risk",
        "--label",
        "ill",
    ]
    code, out, error = run(
        "network",
        "init",
        tmp_path / "net",
        *arguments,
        "--classes",
        "no,yes",
        "--nodes",
        3,
        "--port",
        ports.free(6),
    )
    assert (code, error) == (0, "")
    assert "auc@cost,kendall-tau:age+risk" in out
