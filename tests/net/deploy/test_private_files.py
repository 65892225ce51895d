"""Networks of private sums: settings in files, 'gosta network init --private', errors in both."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import ports
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import gosta
from gosta.errors import InputError
from gosta.net.config import NodeConfig, NodeSettings, Task, read_node, write
from gosta.net.deploy import bundles
from gosta.net.deploy.policies import Budget, budget_of, policy_for, policy_text, write_policy
from gosta.net.deploy.query import View
from gosta.net.deploy.shared_settings import round_centres, round_range
from gosta.net.deploy.summary import list_summary
from gosta.net.members import read_list
from gosta.net.node.rows import layout_of, read_rows, subject_of
from gosta.net.node.source import fingerprint
from gosta.net.watch import overview
from gosta.private.policy import Past, Policy, read_policy, verdict_to_join
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
TASK = Task(
    "0123456789abcdef", "auc,gini-index:age of patient", label="died", score="risk", private=PRIVATE
)


def test_settings_of_private_sums_are_read_as_they_were_written(tmp_path: Path) -> None:
    for task in (TASK, replace(TASK, private=PrivateSettings())):
        config = NodeConfig(task, NodeSettings("node-0", "127.0.0.1:7400"), {})
        write(tmp_path / "node.toml", config)
        assert read_node(tmp_path / "node.toml") == config


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "bins = 256",
            "bins = 1",
            "network.private.bins = 1 must be a whole number from 2 to 8,192",
        ),
        (
            "bins = 256",
            "bin = 256",
            r"unknown field `bin` in \[network.private\]; there are: bins, ranges, edges",
        ),
        ("bins = 256", 'bins = "many"', "network.private.bins = 'many': expected `int`, got `str`"),
        (
            "[0.0, 1.0]",
            "[1.0, 0.0]",
            "network.private.ranges = risk=1:0 must be the lowest and the highest value",
        ),
        ("[0.0, 1.0]", "[0.0, inf]", "network.private.ranges = risk=0:inf must be"),
        (
            "[18.0, 65.0]",
            "[65.0, 18.0]",
            "network.private.edges of 'age of patient' must be increasing numbers",
        ),
        ('["f", "m"]', '["f", "f"]', "network.private.strata of 'sex' must name each value once"),
        ('["f", "m"]', "[]", "network.private.strata of 'sex' must name each value once"),
        ("epsilon = 1.0", "epsilon = 0", "network.private.epsilon = 0.0 must be a positive number"),
        (
            "epsilon = 1.0, ",
            "",
            "network.private.delta = 1e-06 is for differential privacy; give epsilon too",
        ),
        ("delta = 1e-06", "delta = 1.0", "network.private.delta = 1.0 must be a probability"),
        (
            "colluding = 2",
            "colluding = -1",
            "network.private.colluding = -1 must be a whole number, 0 or more",
        ),
        (
            "deadline_seconds = 60.0",
            "deadline_seconds = 0",
            "network.private.deadline_seconds = 0.0 must be from 1",
        ),
        ('label = "died"', "until = 0.01", "network.until = 0.01 is for exchanges of rows"),
        ("auc,gini-index", "own.py:mine,auc", "private sums are of statistics that have sketches"),
        ("auc,gini-index", "auc,,gini-index", "private sums are of statistics that have sketches"),
    ],
)
def test_wrong_settings_of_private_sums_say_what_to_do(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
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


INIT = ("network", "init", "--private", "--score", "risk", "--label", "died")
SITES = (*INIT, "--classes", "0,1", "--range", "risk=0:1", "--nodes", 3)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    lines = [f"{k % 97 / 97},{k % 3 // 2},{'fm'[k % 2]},{k % 90}" for k in range(200)]
    path.write_text("\n".join(["risk,died,sex,age", *lines, ""]))
    return path


def test_init_for_sites(tmp_path: Path, gosta_: Any) -> None:
    more = (
        "--bins",
        16,
        "--epsilon",
        1,
        "--delta",
        1e-6,
        "--colluding",
        0,
        "--strata",
        "sex=f,m",
        "--deadline",
        "2m",
    )
    code, out, _ = gosta_(*SITES, *more, "--port", ports.free(), tmp_path / "net")
    assert code == 0
    assert "auc by private sums" in out
    assert "(1, 1e-06)-differentially private" in out
    config = read_node(tmp_path / "net" / "node-2" / "node.toml")
    private = PrivateSettings(
        bins=16,
        ranges={"risk": (0.0, 1.0)},
        strata={"sex": ("f", "m")},
        epsilon=1.0,
        delta=1e-6,
        colluding=0,
        deadline_seconds=120.0,
    )
    assert (config.network.private, config.network.until) == (private, 0.0)
    listed = read_list(tmp_path / "net" / "members.json").list
    assert listed.policy["mode"] == "private sums: no row leaves a site"
    assert "masked sums" in listed.policy["shown to others"]
    short, whole = list_summary(listed), list_summary(listed, has_all=True)
    left_out = [key for key in listed.policy if f"\n  {key}  " not in short]
    assert {"ranges", "bins"} <= {*left_out}
    assert all(f"\n  {key}  " in whole for key in left_out)
    assert f"{len(left_out)} more terms, shown with --all" in short
    assert read_policy(tmp_path / "net" / "node-2") == Policy(
        modes=("noisy",), releases_per_day=3
    )  # by the Laplace law, ten times 1


def test_all_keys_of_a_policy_are_in_its_template_with_their_defaults() -> None:
    lines = [line[2:] for line in policy_text({}).splitlines() if " = " in line]
    found = msgspec.convert(tomllib.loads("\n".join(lines)), Policy)
    assert [line.split(" = ")[0] for line in lines] == list(Policy.__struct_fields__)
    assert replace(found, statistics=(), columns=(), person=None) == Policy()


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        (None, Policy(modes=("rows",))),
        (PrivateSettings(), Policy()),
        (
            PrivateSettings(epsilon=1.0),
            Policy(modes=("noisy",), epsilon_budget=10.0, releases_per_day=3),
        ),
        (
            PrivateSettings(epsilon=0.5),
            Policy(modes=("noisy",), epsilon_budget=5.0, releases_per_day=3),
        ),
        (
            PrivateSettings(epsilon=99.0),
            Policy(modes=("noisy",), epsilon_budget=990.0, releases_per_day=3),
        ),
    ],
)
def test_a_new_policy_allows_what_its_network_does(
    tmp_path: Path, settings: PrivateSettings | None, policy: Policy
) -> None:
    """It is written once: a policy that is there is the site's own."""
    private = None if settings is None else replace(settings, ranges={"risk": (0.0, 1.0)})
    task = Task("0" * 16, "auc", label="died", score="risk", classes=("0", "1"), private=private)
    assert write_policy(tmp_path, task)
    assert read_policy(tmp_path) == policy
    assert (tmp_path / "policy.toml").stat().st_mode & 0o777 == 0o600
    (tmp_path / "policy.toml").write_text("min_rows = 99\n")
    assert not write_policy(tmp_path, task)
    assert read_policy(tmp_path).min_rows == 99


def test_the_budget_of_a_new_policy_is_enough_for_ten_releases() -> None:
    for epsilon, delta in ((1.0, 0.0), (0.3, 1e-6), (2.0, 1e-7)):
        task = replace(TASK, statistic="auc", classes=("0", "1"))
        task = replace(
            task, private=PrivateSettings(ranges={"risk": (0.0, 1.0)}, epsilon=epsilon, delta=delta)
        )
        found = budget_of(task)
        assert found is not None
        assert found.releases == 10
        subject, policy = (
            subject_of(task, 50, None, 4),
            Policy(modes=("noisy",), epsilon_budget=found.epsilon),
        )
        past = [Past(0.0, one) for one in subject.spent]
        assert verdict_to_join(policy, subject, past * 9, 1e9) == ""
        assert "would exceed the budget" in verdict_to_join(policy, subject, past * 10, 1e9)


def test_a_budget_without_a_finite_epsilon_is_no_line_of_a_policy() -> None:
    settings = PrivateSettings(ranges={"risk": (0.0, 1.0)}, epsilon=100.0, delta=1e-3)
    task = Task("0" * 16, "variance:risk", private=settings)
    assert budget_of(task) == Budget(10.0, 0)
    assert "# epsilon_budget = 10.0" in policy_for(task)


def test_init_says_what_it_chose(tmp_path: Path, gosta_: Any, table: Path) -> None:
    sites = (
        *SITES,
        "--statistic",
        "auc,gini-index:age",
        "--range",
        "age=0:99",
        "--strata",
        "sex=f,m",
        "--delta",
        1e-6,
    )
    code, out, _ = gosta_(*sites, "--epsilon", 2, "--port", ports.free(), tmp_path / "net")
    assert code == 0
    assert "few bins         16, since each has noise; --bins sets another number" in out
    assert "budget           each site stops at epsilon 6.6, about 10 releases; policy.toml" in out
    assert "(column age; scores in risk; classes 0, 1 in died; f, m in sex)" in out
    policy = (tmp_path / "net" / "node-0" / "policy.toml").read_text()
    for line in ('statistics = ["auc", "gini-index"]', 'columns = ["risk", "age", "died", "sex"]'):
        assert f"# {line} " in policy
    assert "\nepsilon_budget = 6.6 " in policy
    code, out, _ = gosta_(
        *INIT,
        "--data",
        table,
        "--nodes",
        3,
        "--port",
        ports.free(),
        "--bins",
        1025,
        tmp_path / "own",
    )
    assert code == 0
    assert (
        "warning          1,025 bins: sites whose policy has the default max_bins = 1024 take no "
        "part" in out
    )
    assert (
        "rounded          outwards, the range of risk, from the data; --range declares others"
        in out
    )
    assert (
        "ranges = { risk = [0.0, 1.0] }" in (tmp_path / "own" / "node-0" / "node.toml").read_text()
    )


def test_a_request_with_missing_values_names_no_file_that_is_not_there(
    tmp_path: Path, gosta_: Any
) -> None:
    assert gosta_(*SITES[:-2], "--enrol", tmp_path / "net")[0] == 0
    (tmp_path / "rows.csv").write_text("risk,died\n,1\n0.5,0\n")
    arguments = ("--name", "a", "--listen", "127.0.0.1:7400", "--data", tmp_path / "rows.csv")
    code, _, err = gosta_(
        "node", "request", tmp_path / "net" / "invitation.json", tmp_path / "a", *arguments
    )
    assert code == 2
    assert "correct them, or leave those rows out with --drop-missing" in err
    assert "no site is a member yet" in gosta_("status", tmp_path / "net")[1]
    views = [View("a", "not on this machine", 0, None, is_private=True)]
    assert "exchanges" not in overview.table(views)


def test_documents_name_keys_and_tests_that_exist() -> None:
    root = Path(__file__).parents[3]
    text = (root / "docs" / "how-to" / "network.md").read_text(encoding="utf-8")
    assert [name for name in Policy.__struct_fields__ if f"`{name}`" not in text] == []
    for document in (root / "docs" / "explanation" / "privacy.md", root / "SECURITY.md"):
        named = set(
            re.findall(r"`(?:tests/[a-z_/]*)?(test_\w+\.py)`", document.read_text(encoding="utf-8"))
        )
        assert len(named) > 5
        assert [name for name in named if not list((root / "tests").rglob(name))] == []


@pytest.mark.parametrize("encoded", [False, True])
def test_members_are_told_a_bound_of_the_rows_of_a_site(
    tmp_path: Path, gosta_: Any, table: Path, encoded: bool
) -> None:
    net, port = tmp_path / "net", ports.free()
    if encoded:
        out = gosta_(*INIT, "--data", table, "--nodes", 3, "--deal", "even", "--port", port, net)[1]
        assert (
            "declares         node-0 at most 100 rows, node-1 at most 100 rows, node-2 at most "
            "100 rows" in out
        )
        for command in (("certify", net), ("add", net, "--data", table)):
            assert gosta_("network", *command)[0] == 0
        assert [one.rows for one in read_list(net / "members.json").list.members] == [
            100,
            100,
            100,
            500,
        ]
    else:
        assert gosta_(*SITES[:-2], "--enrol", net)[0] == 0
        request = (
            "node",
            "request",
            net / "invitation.json",
            tmp_path / "a",
            "--name",
            "a",
            "--data",
            table,
        )
        assert (
            "declares at most 500 rows, which is public"
            in gosta_(*request, "--listen", "127.0.0.1:7400")[1]
        )
        assert bundles.read(tmp_path / "a" / "request.json", bundles.Request).rows == 500
        assert (tmp_path / "a" / "policy.toml").exists()
        out = gosta_("network", "sign", net, tmp_path / "a" / "request.json", "--yes")[1]
        assert re.search(r"a +new site +127.0.0.1:7400 +at most 500 rows +[0-9a-f]{4} ", out)
        with table.open("a") as file:
            file.write("0.5,1,f,30\n")
        assert gosta_("node", "request", net / "invitation.json", tmp_path / "a")[0] == 0
        assert gosta_("network", "sign", net, tmp_path / "a" / "request.json", "--yes")[0] == 0
        assert [one.rows for one in read_list(net / "members.json").list.members] == [500]
    words = read_list(net / "members.json").list.policy["declared"]
    assert (
        words
        == "a bound of each site's rows, with room for half as many again, rounded up; it is public"
    )


def test_rows_in_one_place_are_declared_and_distributed(
    tmp_path: Path, gosta_: Any, table: Path
) -> None:
    """The nodes' layout follows from node.toml alone, and their sums are those of the table."""
    more = (
        "--statistic",
        "auc,variance:age",
        "--strata",
        "sex",
        "--bins",
        8,
        "--nodes",
        4,
        "--port",
        ports.free(),
    )
    net = tmp_path / "net"
    assert gosta_(*INIT, *more, "--data", table, net)[0] == 0
    nodes = [net / f"node-{k}" for k in range(4)]
    task = read_node(nodes[0] / "node.toml").network
    layout = layout_of(task)
    assert layout.strata == ("sex = f", "sex = m")
    assert (task.encoded_columns, task.classes) == (0, (0, 1))
    assert (nodes[3] / "data.csv").read_text().startswith("risk,age,died,sex\n")
    sums = np.sum([layout.sums(read_rows(task, node / "data.csv"), 24) for node in nodes], axis=0)
    assert np.array_equal(sums, layout.sums(layout.encode(gosta.datasets.load(table)), 24))


def test_ranges_of_rows_in_one_place_are_rounded_outwards(tmp_path: Path, gosta_: Any) -> None:
    path, rng = tmp_path / "rows.csv", np.random.default_rng(0)
    score, age, dose = rng.uniform(0.0123, 0.9871, 90), rng.integers(19, 88, 90), np.full(90, 37.25)
    lines = [f"{a:.17g},{b},{c}" for a, b, c in zip(score, age, dose, strict=True)]
    path.write_text("\n".join(["score,age,dose", *lines, ""]))
    arguments = (
        "--statistic",
        "variance:score,variance:age,variance:dose",
        "--range",
        "age=18.5:91",
    )
    command = (
        "network",
        "init",
        "--private",
        *arguments,
        "--data",
        path,
        "--nodes",
        3,
        "--port",
        ports.free(),
    )
    code, out, _ = gosta_(*command, tmp_path / "net")
    assert code == 0
    assert "outwards, the ranges of score, dose, from the data; --range declares others" in out
    private = read_node(tmp_path / "net" / "node-0" / "node.toml").network.private
    assert private is not None
    assert private.ranges == {"score": (0.0, 1.0), "age": (18.5, 91.0), "dose": (36.0, 38.0)}
    for text in (f"{score.min()}", f"{score.max()}", "37.25"):
        assert text not in (tmp_path / "net" / "members.json").read_text()


@settings(deadline=None)
@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_a_rounded_range_is_never_narrower(low: float, width: float) -> None:
    high = low + width
    assume(high > low)
    rounded_low, rounded_high = round_range(low, high)
    assert rounded_low <= low < high <= rounded_high
    is_one_value = abs(width / (2**-19 * max(abs(low), abs(high), 1.0)) - 1) < 2e-3
    assert is_one_value or rounded_high - rounded_low <= 1.5 * width * (1 + 1e-6)


@pytest.mark.parametrize(
    ("given", "rounded"),
    [
        ((6.981, 28.11), (6.0, 30.0)),
        ((0.0, 1.0), (0.0, 1.0)),
        ((-0.04, 0.96), (-0.05, 1.0)),
        ((18.0, 90.0), (15.0, 90.0)),
        ((1e9, 1e9 + 0.5), (1e9, 1e9 + 0.5)),
        ((0.0, 1.7e308), (0.0, 1.7e308)),
        ((-1.7e308, -1.5e308), (-1.7e308, -1.5e308)),
    ],
)
def test_rounded_ranges(given: tuple[float, float], rounded: tuple[float, float]) -> None:
    assert round_range(*given) == rounded


def test_bandwidths_and_centres_that_follow_from_the_data_are_rounded(
    tmp_path: Path, gosta_: Any
) -> None:
    arguments = ("--data", "iris", "--nodes", 3, "--port", ports.free())
    command = ("network", "init", "--private", *arguments, "--statistic")
    code, out, _ = gosta_(
        *command, "squared-scatter", "--option", "centroids=class-means", tmp_path / "a"
    )
    assert (code, "centroids, from the data" in out) == (0, True)
    (first, *_) = read_node(tmp_path / "a" / "node-0" / "node.toml").network.options["centroids"]
    assert first == [5.0, 3.4, 1.5, 0.25]  # of setosa: 5.006, 3.428, 1.462, 0.246
    code, out, _ = gosta_(
        *command, "mmd", "--label", "species", "--positive", "setosa", tmp_path / "b"
    )
    assert (code, "bandwidth, from the data" in out) == (0, True)
    assert read_node(tmp_path / "b" / "node-0" / "node.toml").network.options["bandwidth"] == 2.1
    code, out, _ = gosta_(
        *command,
        "mmd",
        "--label",
        "species",
        "--positive",
        "setosa",
        "--option",
        "bandwidth=1.2345",
        tmp_path / "c",
    )
    assert (code, "bandwidth, from the data" in out) == (0, False)
    assert read_node(tmp_path / "c" / "node-0" / "node.toml").network.options["bandwidth"] == 1.2345


def test_centres_keep_the_digits_that_tell_them_apart() -> None:
    centres = np.array([[1000.123, 0.5], [1000.456, 0.5]])
    assert round_centres(centres).tolist() == [[1000.12, 0.5], [1000.46, 0.5]]
    assert round_centres(centres[:1]).tolist() == [[1000.0, 0.5]]
    same = np.array([[1.23456], [1.23456]])
    assert round_centres(same).tolist() == same.tolist()


@pytest.mark.parametrize(
    ("statistic", "columns"), [("auc", None), ("variance", None), ("variance", ["worst area"])]
)
def test_columns_that_were_chosen_by_the_data(
    tmp_path: Path, gosta_: Any, statistic: str, columns: list[str] | None
) -> None:
    """The score of breast-cancer is a projection of all columns; variance takes one by default."""
    command: tuple[object, ...] = (
        "network",
        "init",
        "--private",
        "--statistic",
        statistic,
        "--data",
        "breast-cancer",
        "--nodes",
        3,
    )
    command += ("--columns", columns[0]) if columns else ()
    assert gosta_(*command, "--by", "mean radius", "--port", ports.free(), tmp_path / "net")[0] == 0
    nodes = [tmp_path / "net" / f"node-{k}" for k in range(3)]
    task = read_node(nodes[0] / "node.toml").network
    layout = layout_of(task)
    rows = [read_rows(task, node / "data.csv") for node in nodes]
    assert sum(map(len, rows)) == 569
    totals = np.sum([layout.sums(x, 24) for x in rows], axis=0) / 2.0**24
    (result,) = layout.results(totals)
    assert (
        result.low[0] <= gosta.exact("breast-cancer", statistic, columns=columns) <= result.high[0]
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("network", "init", "--bins", 4), "bins is for private sums; add --private"),
        (("network", "init", "--epsilon", 1), "epsilon is for private sums; add --private"),
        (
            (*SITES, "--until", "1%"),
            "until = '1%' is for exchanges of rows; leave it out with --private",
        ),
        ((*SITES, "--protocol", "tracking"), "protocol = 'tracking' is for exchanges of rows"),
        ((*SITES[:-1], 2), "nodes = 2: private sums need at least 3 sites"),
        (
            (*SITES, "--strata", "sex"),
            "strata = 'sex' needs the values of all sites: --strata sex=a,b",
        ),
        ((*SITES, "--strata", "sex=f,f"), "strata of 'sex' must name each value once"),
        ((*SITES, "--range", "risk=0"), "range = 'risk=0' must be COLUMN=LOW:HIGH"),
        ((*SITES, "--range", "risk=1:0"), "risk=1:0 must be the lowest and the highest value"),
        ((*SITES, "--edges", "0.1,0.5"), "edges = '0.1,0.5' must be COLUMN=A,B,C"),
        ((*SITES, "--edges", "risk=0.5,0.1"), "edges of 'risk' must be increasing numbers"),
        ((*SITES, "--deadline", "soon"), "deadline = 'soon' must be a time such as 90s, 10m or 2h"),
        ((*SITES, "--delta", 0.1), "delta = 0.1 is for differential privacy; give epsilon too"),
        ((*SITES, "--epsilon", -1), "epsilon = -1.0 must be a positive number"),
        ((*INIT, "--classes", "0,1", "--nodes", 3), "--range risk="),
        ((*SITES, "--statistic", "distance-correlation"), "distance-correlation"),
        ((*SITES, "--statistic", "nothing"), "unknown statistic 'nothing'; there are: "),
        ((*SITES, "--classes", "alive,alive"), "classes = alive,alive must name each class once"),
        (
            (*SITES, "--classes", "0,1,2"),
            "auc: needs two classes, 3 are declared (0, 1, 2); name the one to set",
        ),
        (
            (*SITES, "--range", "age=0:1"),
            "range of 'age': this column is not read; those that are: risk",
        ),
        (
            (*SITES, "--edges", "age=1,2"),
            "edges of 'age': this column is not read; those that are: risk",
        ),
        ((*SITES, "--edges", "risk=0.5", "--find-edges"), "find_edges: there are no edges to find"),
        (
            (*SITES, "--bins", "2048", "--strata", "id=" + ",".join(map(str, range(300)))),
            "these are 300 strata, as id has 300 values",
        ),
        (
            (*SITES, "--statistic", "mine.py:own"),
            "no sums are known for kernels of your own; leave out --private if",
        ),
    ],
)
def test_refusals_say_what_to_do(
    tmp_path: Path, gosta_: Any, arguments: tuple[object, ...], message: str
) -> None:
    code, _, err = gosta_(*arguments, tmp_path / "net")
    assert code == 2
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "net").exists()
