"""'gosta check': findings about a node's folder, data, neighbours; reports without values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import ports
import pytest
from transports import RecordingHandler
from virtual_clock import shifted

from gosta.net import addresses
from gosta.net.agreements import add_agreement, set_leaving
from gosta.net.config import NodeConfig, read_node, write
from gosta.net.deploy import check, plan
from gosta.net.deploy.findings import Finding
from gosta.net.deploy.network import Network
from gosta.net.members import read_list, write_list
from gosta.net.node.source import SumSource, fingerprint, read_source
from gosta.net.transport.base import Greeting
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles
from gosta.private.settings import PrivateSettings

ROLES = plan.Roles(label="died", score="risk", classes=("0", "1"))
SETTINGS = PrivateSettings(bins=8, ranges={"risk": (0.0, 1.0)})
ROWS = [(k / 40, k % 2) for k in range(40)]


def write_rows(folder: Path, rows: list[tuple[Any, Any]]) -> None:
    (folder / "data.csv").write_text(
        "\n".join(["risk,died", *(f"{risk},{died}" for risk, died in rows), ""])
    )


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A network of three sites that do not run, with rows."""
    folder = tmp_path / "net"
    made = plan.for_private(plan.Goal("auc"), SETTINGS, "complete", 3, 0, ROLES)
    for name in Network.create(folder, made, port=ports.free()).config.nodes:
        write_rows(folder / name, ROWS)
    return folder


def levels(found: list[Finding]) -> dict[str, str]:
    return {one.check: one.level for one in found}


def find(found: list[Finding], name: str) -> Finding:
    return next(one for one in found if one.check == name)


def test_a_complete_folder_has_no_errors(net: Path) -> None:
    found = check.check(net / "node-0")
    assert set(levels(found).values()) == {"ok", "warning"}
    assert [one.check for one in found if one.level == "warning"] == [
        "neighbour node-1",
        "neighbour node-2",
    ]
    rows = find(found, "rows")
    assert (rows.text, rows.detail) == ("at least 10 rows, as the policy asks", "40 rows")
    assert find(found, "takes part").text == "yes"
    shown = "declares no number of rows, so that it can contribute 100,000 at most"
    assert find(found, "declared rows").text == shown
    assert sorted(path.name for path in (net / "node-0").iterdir()) == [
        *(
            "accepted.json",
            "ca.pem",
            "cert.pem",
            "data.csv",
            "key.pem",
            "members.json",
            "node.toml",
            "policy.toml",
        )
    ]


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        ("node.toml", "settings"),
        ("data.csv", "data"),
        ("cert.pem", "certificate"),
        ("key.pem", "key"),
        ("ca.pem", "member list"),
        ("members.json", "member list"),
        ("accepted.json", "member list"),
    ],
)
def test_a_missing_file_is_a_finding(net: Path, missing: str, name: str) -> None:
    (net / "node-0" / missing).unlink()
    assert find(check.check(net / "node-0"), name).level == "error"


def test_damaged_files_are_findings(net: Path) -> None:
    folder = net / "node-0"
    (folder / "journal.sqlite").write_bytes(b"no journal")
    (folder / "key.pem").chmod(0o644)
    (folder / "members.json").write_text(
        (folder / "members.json").read_text().replace("node-2", "node-9")
    )
    (folder / "cert.pem").write_text("no certificate")
    found = check.check(folder)
    assert [one.check for one in found if one.level == "error"] == [
        *("key", "certificate", "member list", "journal", "neighbours", "takes part")
    ]


@pytest.mark.parametrize(
    ("days", "level", "text"),
    [
        (-400, "error", "is the clock right?"),
        (800, "warning", "expires on"),
        (900, "error", "expired on"),
    ],
)
def test_dates_of_the_certificate(
    net: Path, monkeypatch: pytest.MonkeyPatch, days: int, level: str, text: str
) -> None:
    monkeypatch.setattr(check, "datetime", shifted(days))
    found = find(check.check(net / "node-0"), "certificate")
    assert found.level == level
    assert text in found.text
    assert found.hint


def test_an_empty_folder_and_none(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        assert levels(check.check(folder)) == {"settings": "error"}


def test_the_folder_of_the_network_names_those_of_its_nodes(net: Path) -> None:
    (found,) = check.check(net)
    assert found.text.startswith(
        f"{net} is a network's folder; name that of a node: {net / 'node-0'}, "
    )


@pytest.mark.parametrize(
    ("rows", "name", "level", "text"),
    [
        (
            [("0.123456", 1), *ROWS],
            "column risk",
            "ok",
            "numbers, missing in none of the rows, beyond 0 to 1 in none",
        ),
        ([("", 1), *ROWS], "column risk", "error", "missing in fewer than 10 of the rows"),
        ([("", 1)] * 20 + ROWS, "column risk", "error", "missing in 33 % of the rows"),
        ([(7.77, 1)] * 10 + ROWS, "column risk", "warning", "beyond 0 to 1 in 20 %"),
        ([("zebra", 1), *ROWS], "column risk", "error", "does not hold numbers only"),
        (
            [(0.5, "zebra"), *ROWS],
            "values of died",
            "error",
            "others than those declared for all sites (0, 1)",
        ),
        (ROWS[:7], "rows", "error", "fewer than 10 rows"),
        (ROWS[:7], "takes part", "error", "no: the site's policy forbids it"),
    ],
)
def test_data(
    net: Path, gosta_: Any, rows: list[tuple[Any, Any]], name: str, level: str, text: str
) -> None:
    folder, report = net / "node-0", net / "report.txt"
    write_rows(folder, rows)
    one = find(check.check(folder), name)
    assert one.level == level
    assert text in one.text
    assert gosta_("check", folder, "--report", report)[0] == (1 if level == "error" else 0)
    for value in ("zebra", "0.123456", "7.77", "7 rows", "40 rows", " 7,"):
        assert value not in report.read_text()


def test_other_columns(net: Path) -> None:
    (net / "node-0" / "data.csv").write_text("risk,dead\n0.5,1\n")
    found = find(check.check(net / "node-0"), "column died")
    assert found.level == "error"
    assert (found.text, found.hint) == (
        "not in the file",
        "'dead' seems to be it: --column died=dead",
    )
    assert check.check(net / "node-0")[-1].hint == "--column died=dead"


def test_policy_and_agreement(net: Path) -> None:
    folder = net / "node-0"
    (folder / "policy.toml").write_text('statistics = ["gini-index"]\n')
    found = find(check.check(folder), "takes part")
    assert (found.level, found.detail) == ("error", "the statistic auc is not allowed")
    (folder / "policy.toml").write_text("min_row = 5\n")
    assert "unknown field `min_row`" in find(check.check(folder), "policy").text
    (folder / "policy.toml").unlink()
    checked = check.check(folder)
    assert "is missing, and without it nothing leaves this site" in find(checked, "policy").text
    assert find(checked, "policy").level == "error"
    assert find(checked, "takes part").text == "no: correct this first: policy"
    (folder / "policy.toml").write_text("")
    text = (folder / "node.toml").read_text()
    (folder / "node.toml").write_text(text.replace("bins = 8", "bins = 16"))
    checked = check.check(folder)
    assert find(checked, "agreement").level == "error"
    assert find(checked, "takes part").text == "no: correct this first: agreement"


def test_groups_that_are_one_site_need_its_permission(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, strata={"hospital": ("a", "b")})
    made = plan.for_private(plan.Goal("auc"), settings, "complete", 3, 0, ROLES)
    Network.create(tmp_path / "net", made, port=ports.free())
    folder = tmp_path / "net" / "node-0"
    rows = "\n".join(["risk,died,hospital", *(f"{risk},{died},a" for risk, died in ROWS), ""])
    (folder / "data.csv").write_text(rows)
    found = find(check.check(folder), "takes part")
    assert (found.level, found.text) == ("error", "no: the site's policy forbids it")
    assert found.detail.startswith("all its rows have one value of hospital")
    config = read_node(folder / "node.toml")
    source = read_source(config, folder)
    assert isinstance(source, SumSource)
    assert source.subject(source.file_rows).alone == ("hospital",)
    (folder / "policy.toml").write_text("min_sites = 1\n")
    assert find(check.check(folder), "takes part").level == "ok"
    (folder / "policy.toml").write_text("")
    (folder / "data.csv").write_text(rows.replace(",0,a", ",0,b"))
    assert find(check.check(folder), "takes part").level == "ok"


def test_the_verdict_is_no_if_anything_is_wrong(net: Path) -> None:
    folder = net / "node-0"
    for name, text in {
        "cert.pem": (net / "node-1" / "cert.pem").read_text(),
        "policy.toml": "min_sites = 'x'",
    }.items():
        old = (folder / name).read_text()
        (folder / name).write_text(text)
        found = find(check.check(folder), "takes part")
        assert (found.level, found.text) == (
            "error",
            "no: correct this first: "
            + name.replace("cert.pem", "certificate").removesuffix(".toml"),
        )
        (folder / name).write_text(old)
    (folder / "policy.toml").write_text("min_sites = 9\n")
    found = find(check.check(folder), "takes part")
    assert (found.level, found.detail) == ("error", "3 sites, 9 needed")
    (folder / "members.json").unlink()
    assert (
        find(check.check(folder), "takes part").text
        == "not yet: this site has not joined the network"
    )


def test_rows_of_a_network_that_exchanges_them(tmp_path: Path) -> None:
    made = plan.for_sites(plan.Goal("auc"), "complete", 3, 0, ROLES)
    Network.create(tmp_path / "net", made, port=ports.free())
    folder = tmp_path / "net" / "node-0"
    write_rows(folder, ROWS)
    assert find(check.check(folder), "policy").text == "modes allowed: rows"
    assert find(check.check(folder), "takes part").text == "yes"
    (folder / "policy.toml").write_text("")
    assert find(check.check(folder), "takes part").detail == "rows mode is not allowed"
    (folder / "policy.toml").unlink()
    assert find(check.check(folder), "policy").level == "error"


def test_agreements_and_leaving(net: Path) -> None:
    folder = net / "node-0"
    assert "agreements" not in levels(check.check(folder))
    add_agreement(folder, ["node-9"])
    assert find(check.check(folder), "agreements").text.endswith("with and without them, of node-9")
    set_leaving(folder, True, "node-0")
    found = check.check(folder)
    assert find(found, "agreements").hint == f"to come back: gosta node leave {folder} --back"
    assert find(found, "takes part").text == "no: correct this first: agreements"
    (folder / "agreed.json").write_text("{")
    assert "does not hold agreements" in find(check.check(folder), "agreements").text


def test_two_lists_with_one_serial_number(net: Path) -> None:
    signed = read_list(net / "members.json")
    other = msgspec.structs.replace(
        signed, list=msgspec.structs.replace(signed.list, statistic="0" * 16)
    )
    write_list(net / "node-0" / "conflict.json", other)
    texts = [
        one.text
        for one in check.check(net / "node-0")
        if one.check == "member list" and one.level == "error"
    ]
    assert len(texts) == 1
    assert "signed two member lists with the serial number 1" in texts[0]


def test_neighbours(net: Path) -> None:
    """node-1 answers, and then computes something else; node-2 does not run."""
    folder, other = net / "node-0", read_node(net / "node-1" / "node.toml")
    right = fingerprint(other.network, folder)

    async def checked(digest: str, act: Callable[[], Any]) -> tuple[Any, RecordingHandler]:
        handler = RecordingHandler("node-0", "node-2")
        handler.greeting = Greeting("node-1", other.network.id, digest)
        home = net / "node-1"
        files = TlsFiles(home / "cert.pem", home / "key.pem", home / "ca.pem")
        transport = TcpTransport(handler, files, read_list(home / "members.json").list)
        await transport.start(other.node.listen)
        try:
            return await asyncio.to_thread(act), handler
        finally:
            await transport.stop()

    def call() -> list[Finding]:
        return check.check(folder)

    found, handler = asyncio.run(checked(right, call))
    assert find(found, "neighbour node-1").text.endswith("reached, and it computes the same")
    assert find(found, "neighbour node-2").level == "warning"
    assert find(found, "clock") == Finding("clock", "ok", "as the neighbours'")
    assert [*handler.links, *handler.messages, *handler.mismatches, *handler.rejections] == []
    found, _ = asyncio.run(checked("0" * 16, call))
    assert find(found, "neighbour node-1").level == "error"
    assert "it computes 0000000000000000" in find(found, "neighbour node-1").text
    stranger = net.parent / "other"
    made = plan.for_private(plan.Goal("auc"), SETTINGS, "complete", 3, 0, ROLES)
    Network.create(stranger, made, port=ports.free())
    config = read_node(stranger / "node-0" / "node.toml")
    neighbours = read_node(folder / "node.toml").neighbours
    write(stranger / "node-0" / "node.toml", NodeConfig(config.network, config.node, neighbours))
    found, handler = asyncio.run(checked(right, lambda: check.check(stranger / "node-0")))
    assert find(found, "neighbour node-1").level == "error"
    assert not handler.links


def test_an_address_that_is_taken(net: Path) -> None:
    address = read_node(net / "node-0" / "node.toml").node.listen
    with addresses.listen(address, "listen"):
        assert find(check.check(net / "node-0"), "address").level == "error"
    assert find(check.check(net / "node-0"), "address").level == "ok"


def test_json(net: Path, gosta_: Any) -> None:
    code, out, _ = gosta_("check", net / "node-0", "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert {"check", "level", "text", "hint", "detail"} == set(found[0])
    assert found[-1]["check"] == "takes part"
