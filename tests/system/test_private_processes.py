"""Private sums in real processes, over mutual TLS: sites that leave, policies that go, journals
that are put back.
"""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import ports
import pytest
from processes import Processes, gosta

from gosta.net.config import HEAD_FILE, JOURNAL_FILE
from gosta.net.node.status import Status
from gosta.private.policy import POLICY_FILE

INIT = ("--private", "--statistic", "auc", "--score", "mean radius", "--range", "mean radius=5:30")
NAMES = [f"node-{k}" for k in range(5)]


def make(folder: Path, *more: object) -> Path:
    place = ("--nodes", 5, "--deal", "even", "--data", "breast-cancer", "--port", ports.free(10))
    done = gosta("network", "init", folder, *INIT, *place, *more)
    assert done.returncode == 0, done.stderr
    return folder


def all_complete(sites: int, found: list[Status]) -> bool:
    return all(
        one.state == "complete" and one.sums and len(one.sums.participants) == sites
        for one in found
    )


def all_later(epoch: int, found: list[Status]) -> bool:
    return all(one.epoch > epoch for one in found)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A network that has a result, and is stopped."""
    folder = make(tmp_path_factory.mktemp("private") / "net")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(lambda found: all_complete(5, found))
        processes.stop()
    return folder


def copy(net: Path, folder: Path) -> Path:
    shutil.copytree(net, folder)
    return folder


def needs_agreement(status: Status, name: str) -> bool:
    """Return whether a node shows no result until its site agrees to sums without a site that is
    gone.
    """
    needed = status.sums.needed_agreements if status.sums else ()
    return (status.state, needed) == ("suppressed", (name,))


@pytest.mark.parametrize("how", ["leaves", "is removed"])
def test_a_result_comes_back_after_a_site_goes(net: Path, tmp_path: Path, how: str) -> None:
    folder, others = copy(net, tmp_path / "net"), NAMES[:4]
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(lambda found: all_complete(5, found))
        if how == "leaves":
            assert gosta("node", "leave", folder / "node-4", "--yes").returncode == 0
            processes.wait(lambda found: found[0].state == "suppressed", ["node-4"])
        else:
            done = gosta("network", "remove", folder, "node-4")
            assert done.returncode == 0, done.stderr
            processes.wait(
                lambda found: all(needs_agreement(one, "node-4") for one in found), others
            )
            shown = " ".join(gosta("status", folder / "node-0").stdout.split())
            assert f"gosta network agree {folder / 'node-0'} node-4" in shown
            assert gosta("network", "agree", folder, "node-4", "--yes").returncode == 0
        found = processes.wait(lambda found: all_complete(4, found), others)
        assert len({one.estimate for one in found}) == 1
        processes.stop()
    events = gosta("audit", folder / "node-0", "--json").stdout
    assert ('"event":"agreement"' in events) == (how == "is removed")


def test_without_its_policy_a_running_node_sends_nothing(net: Path, tmp_path: Path) -> None:
    folder = copy(net, tmp_path / "net")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        processes.wait(lambda found: all_complete(5, found))
        (folder / "node-2" / POLICY_FILE).rename(folder / "policy.saved")
        processes.wait(lambda found: found[0].state == "withdrawn", ["node-2"])
        sent = gosta("audit", folder / "node-2", "--json").stdout.count('"event":"contribution"')
        assert gosta("network", "epoch", folder / "node-0").returncode == 0
        processes.wait(lambda found: found[0].state == "suppressed", ["node-0"])
        assert (
            gosta("audit", folder / "node-2", "--json").stdout.count('"event":"contribution"')
            == sent
        )
        (folder / "policy.saved").rename(folder / "node-2" / POLICY_FILE)
        processes.wait(lambda found: all_complete(5, found))
        processes.stop()
    (folder / "node-2" / POLICY_FILE).unlink()
    done = gosta("node", folder / "node-2")
    assert done.returncode == 2
    assert "policy.toml is missing, and without it nothing leaves this site" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_older_copy_of_a_journal_is_refused(net: Path, tmp_path: Path) -> None:
    """Also one of a node that was stopped in the usual way, so that nothing in it is missing."""
    folder = copy(net, tmp_path / "net")
    site = folder / "node-1"
    shutil.copy(site / JOURNAL_FILE, tmp_path / "old.sqlite")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        epoch = max(one.epoch for one in processes.wait(lambda found: all_complete(5, found)))
        assert gosta("network", "epoch", folder / "node-0").returncode == 0
        processes.wait(
            lambda found: all_complete(5, found) and all(one.epoch > epoch for one in found)
        )
        processes.stop()
    for file in site.glob(f"{JOURNAL_FILE}*"):
        file.unlink()
    shutil.copy(tmp_path / "old.sqlite", site / JOURNAL_FILE)
    done = gosta("node", site)
    assert done.returncode == 2
    assert (
        f"journal {site / JOURNAL_FILE} is not this site's last one: its log of contributions ends"
        in done.stderr
    )
    (site / JOURNAL_FILE).unlink()
    assert gosta("node", site).returncode == 2, "nor does it start without one"
    (site / HEAD_FILE).unlink()
    with Processes(site) as processes:
        processes.start("node-1")
        processes.wait(lambda found: found[0].sums is not None)
        processes.stop()


def test_one_member_does_not_spend_the_others_budget(tmp_path: Path) -> None:
    """An epoch is requested again and again: the rows are the same, and so is the noise, which is
    paid once.
    """
    folder = make(tmp_path / "net", "--epsilon", "1", "--bins", "16")
    with Processes(*(folder / name for name in NAMES)) as processes:
        processes.start(*NAMES)
        values = set()
        for _ in range(4):
            found = processes.wait(lambda found: all_complete(5, found))
            values |= {one.estimate for one in found}
            epoch = max(one.epoch for one in found)
            assert gosta("network", "epoch", folder / "node-1").returncode == 0
            processes.wait(partial(all_later, epoch))
        found = processes.wait(lambda found: all_complete(5, found))
        assert len(values | {one.estimate for one in found}) == 1
        assert {one.sums.spent_epsilon for one in found if one.sums} == {1.0}
        processes.stop()
