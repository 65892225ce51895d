"""A network's folders: creating them, adding and removing nodes, and errors."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import ports
import pytest

import gosta
from gosta.errors import InputError, NetworkError
from gosta.estimation.setting import make_setting
from gosta.net.config import NetworkConfig, read_node
from gosta.net.deploy import certificates, plan
from gosta.net.deploy.network import Network
from gosta.net.node import lock
from gosta.net.node.rows import read_rows


@pytest.fixture
def port() -> int:
    return ports.free()


def create(folder: Path, port: int, graph: str = "cycle", nodes: int = 5) -> Network:
    return Network.create(
        folder, plan.for_sites(plan.Goal("kendall-tau"), graph, nodes, 0), port=port
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_cannot_be_written(tmp_path: Path, port: int) -> None:
    create(tmp_path / "net", port)
    (tmp_path / "net").chmod(0o500)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match=r"cannot write .*Permission denied"):
            create(tmp_path / "other", port)
        with pytest.raises(InputError, match=r"cannot write .*Permission denied"):
            Network.read(tmp_path / "net").add()
        with pytest.raises(InputError, match=r"cannot write .*Permission denied"):
            Network.read(tmp_path / "net").remove("node-1")
    finally:
        tmp_path.chmod(0o700)
        (tmp_path / "net").chmod(0o700)
    assert len(Network.read(tmp_path / "net").config.nodes) == 5


def test_init_writes_rows_bit_for_bit(gosta_: Any, tmp_path: Path, port: int) -> None:
    folder = tmp_path / "net"
    code, out, err = gosta_(
        "network", "init", folder, "--data", "breast-cancer", "--port", port, "--nodes", 6
    )
    assert (code, err) == (0, "")
    assert "569: node-0" in out
    assert f"gosta network up {folder}" in out
    network = Network.read(folder).config
    setting = make_setting("tracking", "breast-cancer", "auc", "watts-strogatz", 0, {}, nodes=6)
    files = [read_node(folder / name / "node.toml") for name in network.nodes]
    x = np.concatenate([read_rows(f.network, folder / f.node.name / f.node.data) for f in files])
    np.testing.assert_array_equal(x, setting.estimand.x)
    assert all(f.network == network.network for f in files)
    assert (network.network.encoded_columns, network.network.confidence_level) == (2, 0.95)
    for a, b in network.edges:
        assert read_node(folder / a / "node.toml").neighbours[b] == network.nodes[b]
        assert read_node(folder / b / "node.toml").neighbours[a] == network.nodes[a]
    assert sum(len(f.neighbours) for f in files) == 2 * len(network.edges) == 2 * setting.graph.m


def test_keys_are_readable_by_their_owner_only(tmp_path: Path, port: int) -> None:
    create(tmp_path / "net", port)
    keys = sorted((tmp_path / "net").rglob("key.pem"))
    assert len(keys) == 6  # with the authority's
    keys.append(tmp_path / "net" / "authority" / "coordinator-key.pem")
    assert {stat.S_IMODE(key.stat().st_mode) for key in keys} == {0o600}
    assert not list((tmp_path / "net").glob("node-*/authority"))


def test_an_existing_authority(gosta_: Any, tmp_path: Path, port: int) -> None:
    create(tmp_path / "first", port)
    own = tmp_path / "first" / "authority"
    init = (
        "network",
        "init",
        tmp_path / "second",
        "-s",
        "kendall-tau",
        "--port",
        port,
        "--authority",
    )
    assert gosta_(*init, own)[0] == 0
    assert (tmp_path / "second" / "node-0" / "ca.pem").read_bytes() == (
        own / "cert.pem"
    ).read_bytes()
    code, _, err = gosta_(*init, tmp_path)
    assert code == 2
    assert "must hold cert.pem and key.pem" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--data", "breast-cancer", "--nodes", "600"],
            "nodes = 600 must be a whole number from 2",
        ),
        (["--data", "breast-cancer", "--graph", "nosuch"], "unknown graph or file 'nosuch'"),
        (["--data", "breast-cancer", "--protocol", "u2"], "protocol = 'u2' is for simulations"),
        (["--data", "breast-cancer", "-s", "mann-whitney", "--interval", "95%"], "is a count"),
        (
            ["--data", "breast-cancer", "--interval", "most"],
            "interval = 'most' must be none, or a level",
        ),
        (["--data", "breast-cancer", "--classes", "a,b"], "classes is for sites' own files"),
        (
            ["--data", "breast-cancer", "--host", "a", "--host", "b"],
            "host is given 2 times for 8 nodes",
        ),
        (
            ["--data", "breast-cancer", "--host", "a.example:9000"],
            "host = 'a.example:9000' must be a name or an IP",
        ),
        (
            ["--data", "breast-cancer", "--host", "0.0.0.0"],
            "host = '0.0.0.0' is nothing that neighbours can dial",
        ),
        (["--data", "breast-cancer", "--port", "65530"], "8 nodes need ports up to 65545"),
        (
            ["--data", "breast-cancer", "--exchanges-per-second", "-1"],
            "exchanges_per_second = -1.0 must be",
        ),
        (["--score", "risk", "--label", "ill"], "--classes benign,malignant"),
        (["--score", "risk", "--classes", "one"], "--classes benign,malignant"),
        (["--columns", "a,b", "--label", "ill", "--classes", "x,y"], "depends on other rows"),
        (["-s", "mmd", "--columns", "a", "--classes", "x,y"], "depends on other rows"),
        (["-s", "kendall-tau", "--columns", "a"], "needs columns for first, second"),
        (["-s", "spearman-rho", "--interval", "95%"], "nodes cannot compute its interval"),
        (["-s", "kendall-tau", "--protocol", "flooding"], "is for simulations"),
        (["-s", "kendall-tau", "--by", "site"], "by requires --data"),
        (["-s", "kendall-tau", "-o", "nosuch=1"], "has no option 'nosuch'"),
        (["-s", "none.py:mine"], "no such file: none.py"),
    ],
)
def test_errors_in_init_leave_no_files(
    gosta_: Any, tmp_path: Path, port: int, arguments: list[str], message: str
) -> None:
    first = [] if "--port" in arguments else ["--port", port]
    code, out, err = gosta_("network", "init", tmp_path / "net", *first, *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_existing_folders_are_not_changed(tmp_path: Path, port: int) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "mine").write_text("x")
    with pytest.raises(InputError, match="exists already"):
        create(tmp_path / "net", port)
    assert [p.name for p in tmp_path.rglob("*")] == ["net", "mine"]
    with pytest.raises(InputError, match="No such file or directory"):
        create(tmp_path / "no" / "net", port)
    with pytest.raises(InputError, match="Not a directory"):
        create(tmp_path / "net" / "mine" / "net", port)
    (tmp_path / "empty").mkdir()
    create(tmp_path / "empty", port)
    assert Network.read(tmp_path / "empty").config.graph == "cycle"


def test_ports_in_use_are_rejected(tmp_path: Path, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port + 5))
        other.listen()
        with pytest.raises(InputError, match=f"port {port + 5} of 127.0.0.1 is in use.*--port"):
            create(tmp_path / "net", port)
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_files(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    certify, calls = certificates.certify, iter(range(9))

    def interrupted(*arguments: Any, **dates: Any) -> Any:
        if next(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return certify(*arguments, **dates)

    monkeypatch.setattr(certificates, "certify", interrupted)
    with pytest.raises(KeyboardInterrupt):
        create(tmp_path / "net", port)
    assert list(tmp_path.iterdir()) == []


def test_a_user_statistic_is_copied_to_the_nodes(gosta_: Any, tmp_path: Path, port: int) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "import gosta\n@gosta.statistic(name='files-own')\ndef f(x, y): return max(x[0], y[0])\n"
    )
    folder, data = tmp_path / "net", tmp_path / "x.csv"
    data.write_text("a\n" + "".join(f"{k}\n" for k in range(20)))
    code, out, err = gosta_(
        "network", "init", folder, "--data", data, "-s", f"{own}:files-own", "--port", port
    )
    assert (code, err) == (0, "")
    assert "for own.py:files-own" in out
    file = read_node(folder / "node-3" / "node.toml")
    assert file.network.statistic == "own.py:files-own"
    assert (folder / "node-3" / "own.py").read_text() == own.read_text()
    assert gosta_("network", "add", folder)[0] == 0
    assert (folder / "node-8" / "own.py").read_text() == own.read_text()


def test_the_reason_for_having_no_interval_is_printed(
    gosta_: Any, tmp_path: Path, port: int
) -> None:
    init = ("network", "init", "--port", port, "-s", "mann-whitney")
    code, out, _ = gosta_(*init, tmp_path / "a", "--data", "breast-cancer")
    assert code == 0
    assert "interval   none: mann-whitney is a count" in out
    code, out, _ = gosta_(
        *init, tmp_path / "b", "--score", "s", "--classes", "x,y", "--interval", "none"
    )
    assert code == 0
    assert "  interval " not in out
    assert "puts its rows there as data.csv (scores in s; classes x, y in label)" in out
    assert Network.read(tmp_path / "b").config.network.confidence_level is None
    assert not list((tmp_path / "b").rglob("data.csv"))


def test_nodes_by_a_column_and_graphs_from_files(gosta_: Any, tmp_path: Path, port: int) -> None:
    init = ("network", "init", "--port", port, "--data", "iris", "-s", "gini-mean-difference")
    code, out, _ = gosta_(
        *init, tmp_path / "a", "-c", "sepal length", "--by", "species", "-g", "complete"
    )
    assert code == 0
    assert "150: node-0 50 of setosa, node-1 50 of versicolor, node-2 50 of virginica" in " ".join(
        out.split()
    )
    (tmp_path / "g.csv").write_text("0,1\n1,2\n2,3\n")
    code, out, _ = gosta_(*init, tmp_path / "b", "-c", "sepal length", "-g", tmp_path / "g.csv")
    assert code == 0
    assert "4 nodes, 3 edges" in out
    (tmp_path / "w.csv").write_text("0,1,2.5\n1,2,1\n")
    code, _, err = gosta_(*init, tmp_path / "c", "-c", "sepal length", "-g", tmp_path / "w.csv")
    assert code == 2
    assert "has weights" in err


def test_add_a_node(gosta_: Any, tmp_path: Path, port: int) -> None:
    folder, rows = tmp_path / "net", tmp_path / "rows.csv"
    create(folder, port, "star")
    rows.write_text("a,b\n1,2\n")
    code, out, err = gosta_("network", "add", folder, "--data", rows)
    assert (code, err) == (0, "")
    assert f"{folder / 'node-5'}: a new node, with neighbours node-1, node-2" in out
    network = Network.read(folder).config
    assert network.edges[-2:] == (("node-1", "node-5"), ("node-2", "node-5"))
    file = read_node(folder / "node-5" / "node.toml")
    assert file.neighbours == {name: network.nodes[name] for name in ("node-1", "node-2")}
    assert (folder / "node-5" / file.node.data).read_text() == "a,b\n1,2\n"
    assert read_node(folder / "node-1" / "node.toml").neighbours["node-5"] == file.node.listen
    assert len(set(network.nodes.values())) == 6
    Network.read(folder).remove("node-5")
    assert Network.read(folder).add(neighbours=["node-3"]).name == "node-6"


def test_errors_in_add(tmp_path: Path, port: int) -> None:
    folder, rows = tmp_path / "net", tmp_path / "rows.csv"
    data = gosta.datasets.load("iris")
    goal = plan.Goal("kendall-tau")
    made = plan.for_data(
        goal, data.select(["sepal length", "petal length"]), "cycle", 4, "even", None, 0
    )
    Network.create(folder, made, port=port)
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=r"unknown node of .* 'node-9'"):
        Network.read(folder).add(neighbours=["node-9"])
    rows.write_text("a\n1\n")
    with pytest.raises(InputError, match="has the columns a where x1, x2 are needed"):
        Network.read(folder).add(rows)
    with pytest.raises(InputError, match="No such file"):
        Network.read(folder).add(tmp_path / "none.csv")
    (folder / "authority" / "key.pem").rename(folder / "key.pem")
    with pytest.raises(InputError, match=r"must hold cert.pem and key.pem"):
        Network.read(folder).add()
    (folder / "key.pem").rename(folder / "authority" / "key.pem")
    assert sorted(folder.rglob("*")) == before
    with pytest.raises(InputError, match="no such folder"):
        Network.read(tmp_path / "none").add()


def connected(network: NetworkConfig) -> bool:
    reached = {next(iter(network.nodes))}
    for _ in network.nodes:
        reached |= {name for edge in network.edges if reached & set(edge) for name in edge}
    return reached == set(network.nodes)


def test_removing_the_centre_of_a_star_joins_its_neighbours(
    gosta_: Any, tmp_path: Path, port: int
) -> None:
    folder = tmp_path / "net"
    create(folder, port, "star")
    code, out, _ = gosta_("network", "remove", folder, "node-0")
    assert code == 0
    assert "node-1 and node-2 are neighbours now" in out
    network = Network.read(folder).config
    assert "node-0" not in network.nodes
    assert len(network.edges) == 3
    assert connected(network)
    for name in network.nodes:
        neighbours = read_node(folder / name / "node.toml").neighbours
        assert set(neighbours) == {n for edge in network.edges if name in edge for n in edge} - {
            name
        }
    assert (folder / "node-0.removed" / "key.pem").exists()
    assert gosta_("network", "remove", folder, "node-4", "--delete")[0] == 0
    assert not list(folder.glob("node-4*"))
    Network.read(folder).remove("node-3")
    with pytest.raises(NetworkError, match="has 2 nodes; without node-1"):
        Network.read(folder).remove("node-1")


def test_removing_a_node_of_a_ring_needs_no_new_edge(tmp_path: Path, port: int) -> None:
    create(tmp_path / "net", port)
    assert Network.read(tmp_path / "net").remove("node-2").new_edges == ()
    assert connected(Network.read(tmp_path / "net").config)


def test_a_node_that_does_not_stop_is_not_removed(
    tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "STOP_TIMEOUT_SECONDS", 0.1)
    folder = tmp_path / "net"
    create(folder, port)
    assert not lock.is_running(folder / "node-1")
    with (folder / "node-1" / "node.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write("4194305\n")  # no process has this id
        file.flush()
        assert lock.is_running(folder / "node-1")
        with pytest.raises(
            NetworkError, match="node-1 does not stop; kill it with: kill -9 4194305"
        ):
            Network.read(folder).remove("node-1")
    assert not lock.is_running(folder / "node-1")
    assert "node-1" in Network.read(folder).config.nodes


def test_changes_for_folders_elsewhere_are_printed(gosta_: Any, tmp_path: Path, port: int) -> None:
    folder = tmp_path / "net"
    create(folder, port)
    (folder / "node-1").rename(tmp_path / "at-a-site")
    code, out, _ = gosta_("network", "add", folder, "--neighbours", "node-1,node-3")
    assert code == 0
    assert "node-1's folder is on another machine; set in its node.toml, in [neighbours]: " in out
    where = Network.read(folder).config.nodes
    assert f'node-2 = "{where["node-2"]}", node-5 = "{where["node-5"]}"' in out
    code, out, _ = gosta_("network", "remove", folder, "node-2")
    assert code == 0
    assert f'in [neighbours]: node-0 = "{where["node-0"]}", node-5 = "{where["node-5"]}"' in out


WITHOUT_FCNTL = """
import sys
sys.modules["fcntl"] = None  # as on Windows
from gosta.cli.main import main
for line in sys.argv[1:]:
    sys.argv = ["gosta", *line.split()]
    try:
        main()
    except SystemExit as end:
        if end.code:
            print(end.code, file=sys.stderr)
"""


def test_without_file_locks_networks_can_be_made_but_not_run(tmp_path: Path, port: int) -> None:
    folder = tmp_path / "net"
    commands = [
        f"network init {folder} --data breast-cancer --nodes 3 --port {port}",
        f"network add {folder}",
    ]
    commands += [f"network remove {folder} node-1", f"network certify {folder}"]
    fail = [f"node {folder / 'node-0'}", f"network up {folder}", f"network down {folder}"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_FCNTL, *commands, *fail],
        capture_output=True,
        text=True,
        check=True,
    )
    message = "running nodes is supported on Linux and macOS only"
    errors = done.stderr.splitlines()
    assert errors[1::2] == ["2"] * len(fail), errors
    assert all(message in error for error in errors[::2])
