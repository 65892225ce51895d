"""What left a site of private sums: 'gosta audit', its chain of hashes, 'gosta network verify',
status and metrics.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import ports
import pytest
from msgspec.structs import replace
from processes import gosta
from prometheus_client import CollectorRegistry, generate_latest

from gosta.net.audit import verify_sums
from gosta.net.deploy import check, plan
from gosta.net.deploy.network import Network
from gosta.net.deploy.query import View, read_status
from gosta.net.deploy.site_log import parse_lines
from gosta.net.node import status_text
from gosta.net.node.pages import StatusCollector, page
from gosta.net.storage.contributions import find_break
from gosta.net.watch import overview
from gosta.private.settings import PrivateSettings

ROOT = Path(__file__).parents[3]
NAMES = ("node-0", "node-1", "node-2")
ROLES = plan.Roles(label="died", score="risk", classes=("0", "1"))


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network of three processes that released an AUC, and a node that is not in it, since it has
    too few rows.
    """
    net, rng = tmp_path_factory.mktemp("released") / "net", np.random.default_rng(0)
    settings = PrivateSettings(
        bins=8, ranges={"risk": (0.0, 1.0)}, strata={"sex": ("f", "m")}, deadline_seconds=30.0
    )
    made = plan.for_private(plan.Goal("auc"), settings, "complete", 4, 0, ROLES)
    for name in Network.create(net, made, port=ports.free()).config.nodes:
        rows = 60 if name in NAMES else 4
        lines = [f"{rng.random():.3f},{k % 2},{'fm'[k % 3 % 2]}" for k in range(rows)]
        (net / name / "data.csv").write_text("\n".join(["risk,died,sex", *lines, ""]))
    up = gosta("network", "up", net, "--until", "1%", "--json")
    assert up.returncode == 0, up.stderr
    return net


@pytest.fixture
def net(released: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(released, tmp_path / "net"))


def test_audit_says_what_left_the_site(net: Path, gosta_: Any) -> None:
    code, out, _ = gosta_("audit", net / "node-1")
    assert code == 0
    assert re.search(
        r"contribution +1 +[0-9a-f]{16} +60 +\d+ +none +3: node-0, node-1, node-2 +auc\n", out
    )
    assert "columns risk, died, sex; 8 bins; strata: sex = f, sex = m" in out
    assert "2 entries; note the last hash where others keep it" in out
    assert re.search(r"last hash +[0-9a-f]{64}\n", out)
    code, out, _ = gosta_("audit", net / "node-3")
    assert code == 0
    assert re.search(r"suppressed .* auc: 4 rows, 10 needed", out)
    assert "contribution" not in out


def test_anybody_can_check_the_chain(net: Path, gosta_: Any, tmp_path: Path) -> None:
    """The few lines of Python in the document find what was changed or removed in an export."""
    text = (ROOT / "docs" / "explanation" / "privacy.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    export = tmp_path / "audit.jsonl"

    def holds(lines: list[str]) -> bool:
        export.write_text("".join(f"{line}\n" for line in lines))
        return (
            subprocess.run(
                [sys.executable, "-c", program], cwd=tmp_path, capture_output=True
            ).returncode
            == 0
        )

    lines = gosta_("audit", net / "node-0", "--json")[1].splitlines()
    assert [json.loads(line)["entry"]["event"] for line in lines] == ["contribution", "release"]
    assert find_break(parse_lines(lines)) is None
    assert holds(lines)
    assert not holds(lines[1:])
    assert not holds([lines[0].replace('"rows":60', '"rows":61'), lines[1]])
    assert find_break(parse_lines([lines[0].replace('"rows":60', '"rows":61'), lines[1]])) == 1


@pytest.mark.parametrize(
    ("change", "entry"),
    [
        (
            "UPDATE contributions SET entry = replace(entry, "
            "'\"rows\":60', '\"rows\":61') WHERE number = 2",
            2,
        ),
        ("DELETE FROM contributions WHERE number = 1", 1),
    ],
)
def test_a_changed_log_is_found(net: Path, gosta_: Any, change: str, entry: int) -> None:
    with sqlite3.connect(net / "node-0" / "journal.sqlite") as db:
        db.execute(change)
    db.close()
    code, _, err = gosta_("node", net / "node-0")
    assert code == 2
    assert f"was changed: entry {entry}, or one before it was removed; put back the last one" in err
    code, out, _ = gosta_("check", net / "node-0")
    assert code == 1
    assert f"was changed: entry {entry}, or one before it was removed" in " ".join(out.split())
    code, _, err = gosta_("audit", net / "node-0")
    assert code == 1
    assert f"entry {entry} was changed, or one before it was removed" in err
    code, out, _ = gosta_("network", "verify", net)
    assert code == 1
    assert f"node-0: entry {entry} was changed, or one before it was removed" in out


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("DELETE FROM contributions", "it is empty, although the node has contributed to epoch 1"),
        (None, "there is no journal.sqlite: no node has run in this folder, or it was deleted"),
    ],
)
def test_a_log_that_is_gone_is_not_innocence(
    net: Path, gosta_: Any, change: str | None, why: str
) -> None:
    for path in (net / "node-0").glob("journal.sqlite*") if change is None else ():
        path.unlink()
    if change is not None:
        with sqlite3.connect(net / "node-0" / "journal.sqlite") as db:
            db.execute(change)
        db.close()
    code, out, err = gosta_("audit", net / "node-0")
    assert (code, out) == (1, "")
    assert why in err


def test_verify(net: Path, gosta_: Any) -> None:
    code, out, _ = gosta_("network", "verify", net)
    assert code == 0, out
    assert re.findall(r"^(yes|NO|not checked) ", out, re.MULTILINE) == ["yes"] * 10
    assert "32 numbers, bit for bit" in out
    assert gosta_("replay", net)[:2] == (
        0,
        "private sums have no exchanges to replay; 'gosta network verify' adds up the rows again\n",
    )


def test_verify_names_what_it_cannot_check(net: Path) -> None:
    peers, _ = verify_sums.load_sum_peers(net)
    for peer in peers.values():
        report = peer.report
        assert report is not None
        whole, *strata = report.results
        peer.report = replace(report, results=(whole._replace(clipped=2.0), *strata))
    *_, compared, skipped = verify_sums.check_release(peers, dict.fromkeys(peers, ""))
    assert (compared.holds, compared.evidence.count("auc (sex")) == (True, 2)
    assert (skipped.holds, skipped.evidence) == (None, "auc: 2 rows beyond the range")


def test_verify_says_that_a_file_has_other_rows(net: Path, gosta_: Any) -> None:
    with (net / "node-2" / "data.csv").open("a") as file:
        file.write("0.5,1,f\n")
    code, out, _ = gosta_("network", "verify", net)
    assert code == 3
    assert "the file of node-2 has other rows than those contributed" in out
    assert out.count("not checked  ") == 1, "its snapshot has them"


def test_status_page_and_metrics(net: Path, gosta_: Any) -> None:
    status = read_status(net / "node-0")
    assert status.sums is not None
    assert status.sums.left_out == ("node-3",)
    whole, *strata = status.sums.results
    assert [one.stratum for one in strata] == ["sex = f", "sex = m"]
    text = page(status)
    for part in (
        "sites left out",
        "node-3",
        "certainly within",
        "sex = m",
        "shown here, never sent",
    ):
        assert part in text
    out = gosta_("status", net / "node-0")[1]
    assert "auc        the participants" in out
    assert "certainly within" in gosta_("status", net)[1]
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: status))
    metrics = generate_latest(registry).decode()
    assert f'gosta_sums_value{{label="",statistic="auc",stratum=""}} {whole.value[0]}' in metrics
    assert "gosta_sums_left_out 1.0" in metrics
    assert "gosta_sums_contributions_total 1.0" in metrics


def test_results_with_noise_and_curves(net: Path) -> None:
    status = read_status(net / "node-0")
    assert status.sums is not None
    noisy = status.sums.results[0]._replace(is_certified=False, rows=1000.4)
    points = tuple(range(10))
    curve = noisy._replace(
        statistic="quantiles",
        value=points,
        low=points,
        high=points,
        labels=tuple(f"{k}0 %" for k in points),
    )
    sums = replace(
        status.sums, law="laplace", results=(noisy, curve, curve._replace(is_certified=True))
    )
    status = replace(status, sums=sums)
    table, (about, certain) = status_text.results(status), status_text.curves(status)
    assert table[0] == (
        "statistic",
        "rows of",
        "value",
        "95 % interval",
        "rows",
        "beyond the range",
    )
    assert [row[2] for row in table[1:]] == [
        f"about {noisy.value[0]:.6g}",
        "10 values, below",
        "10 values, below",
    ]
    assert table[1][4] == "about 1,000"
    assert about[0] == ("quantiles, the participants", "value")
    assert about[4] == ("30 %", "about 3")
    assert (certain[10], len(certain)) == (("90 %", "9", "9", "9"), 11)
    text, views = page(status), [View("node-0", "complete", 0, status)]
    assert "certainly within" not in text + overview.table(views) + str(overview.explanation(views))
    assert "90 %" in text
    found = json.loads(overview.record(views[0]))["sums"]["results"][1]
    assert (found["labels"][9], found["value"][9]) == ("90 %", 9)
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: status))
    metrics = generate_latest(registry).decode()
    assert 'gosta_sums_value{label="90 %",statistic="quantiles",stratum=""} 9.0' in metrics
    assert 'gosta_sums_low{label="",statistic="auc"' not in metrics


def test_a_site_that_declines_sees_the_total_too(net: Path) -> None:
    declined, own = read_status(net / "node-3").sums, read_status(net / "node-0").sums
    assert declined is not None
    assert own is not None
    assert declined.results == own.results
    assert declined.contributions == 0


def test_the_reason_and_counts_of_a_site_stay_there(net: Path) -> None:
    """What others have of a site that does not take part tells neither its rows nor why."""
    assert "4 rows" in read_status(net / "node-3").sums.reason  # type: ignore[union-attr]
    for name in NAMES:
        status = msgspec.json.encode(read_status(net / name)).decode()
        assert "4 rows" not in status
        assert "10 needed" not in status
        journal = b"".join(path.read_bytes() for path in (net / name).glob("journal.sqlite*"))
        assert b"10 needed" not in journal


def test_check_counts_the_budget(net: Path) -> None:
    (net / "node-0" / "policy.toml").write_text("releases_per_day = 1\n")
    found = check.check(net / "node-0")
    assert found[-1].detail == "1 release in the last 24 hours, 1 allowed"
    assert next(one for one in found if one.check == "journal").level == "ok"
