"""All nodes of a network after the fact: what their journals say together."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gosta.errors import InputError
from gosta.estimation.problem import Problem
from gosta.net.audit import consistency as audit
from gosta.net.audit.consistency import Meeting
from gosta.net.config import Task
from gosta.net.deploy.folders import overview, running
from gosta.net.node.service import stopped_peer
from gosta.net.node.source import fingerprint, problem_of
from gosta.net.protocol.peer import Peer
from gosta.net.storage.journal import KEPT, Met
from gosta.protocols import Protocol
from gosta.runtime.arrays import Floats


class Journals(NamedTuple):
    """What all nodes of a network kept, and their rows together."""

    task: Task
    folder: Path  # of a node, with the files that the task names
    peers: dict[str, Peer]
    records: dict[str, list[Met]]

    @property
    def problem(self) -> Problem:
        """What was to be computed, over all rows in the order of the nodes."""
        own = [peer.site.table.x for peer in self.peers.values()]
        whole = problem_of(self.task, np.concatenate(own), self.folder)
        return dataclasses.replace(whole, sizes=np.array([len(x) for x in own]))

    @property
    def protocol(self) -> Protocol:
        """By which rule."""
        return next(iter(self.peers.values())).site.protocol

    @property
    def forgetful(self) -> list[str]:
        """Nodes that do not have all meetings of the epoch any more."""
        return [name for name, met in self.records.items() if len(met) < self.peers[name].site.meetings]

    def meetings(self) -> list[Meeting]:
        """All meetings of the epoch, in an order in which each node had them."""
        if self.forgetful:
            raise InputError(
                f"{self.forgetful[0]} has forgotten the first meetings of this epoch: journals keep the last {KEPT:,}"
            )
        return audit.meetings(self.records, self.peers)


class Finding(NamedTuple):
    """Something that must hold, whether it does, and how it was seen."""

    claim: str
    holds: bool
    seen: str


def collect(folder: Path) -> Journals:
    """The journals of a network that does not run."""
    network = overview(folder)
    peers, records = {}, {}
    for name in network.nodes:
        if running(folder / name):
            raise InputError(f"{name} is running, and its journal changes; stop the network first")
        _, source, peers[name], journal = stopped_peer(folder / name)
        records[name] = journal.epoch()[1]
        journal.close()
        if source.fingerprint != fingerprint(network.network, folder):
            raise InputError(f"{name}/node.toml and network.toml differ in what is computed; mend one of them")
        if peers[name].epoch == 0:
            raise InputError(f"{name} has not begun yet: it ended right after its start, see its log.jsonl")
        if peers[name].digest != source.digest:
            raise InputError(
                f"{name} has other rows, neighbours or settings than in its last epoch: somebody changed its files "
                "after it stopped; put them back, or run the network again first"
            )
    return Journals(network.network, folder / next(iter(peers)), peers, records)


def verify(journals: Journals) -> list[Finding]:
    """What must hold, and whether it does."""
    epochs = sorted({peer.epoch for peer in journals.peers.values()})
    same = Finding("all nodes are in one epoch", len(epochs) == 1, f"epoch {', '.join(map(str, epochs))}")
    if not same.holds:
        return [same]
    return [same, _visitors(journals), _pairs(journals), *_values(journals)]


def _visitors(journals: Journals) -> Finding:
    wrong = audit.lost_or_doubled(journals.peers)
    on_the_way = [name for name in journals.peers if audit.answer_to(journals.peers, name) is not None]
    seen = f"{len(journals.peers) - len(wrong)} of {len(journals.peers)}, {len(on_the_way)} of them on their way"
    return Finding(
        "every visitor exists exactly once", not wrong, seen + (f"; wrong: {', '.join(wrong)}" * bool(wrong))
    )


def _pairs(journals: Journals) -> Finding:
    claim = "both sides tell the same meetings, in an order that both can have had"
    if journals.forgetful:
        return Finding(claim, True, f"not checked: {journals.forgetful[0]} has forgotten the first ones")
    try:
        return Finding(claim, True, f"{len(journals.meetings()):,} meetings")
    except InputError as error:
        return Finding(claim, False, str(error))


def _values(journals: Journals) -> list[Finding]:
    problem, protocol = journals.problem, journals.protocol
    exact = problem.targets(protocol)[0]
    reports = {name: peer.report() for name, peer in journals.peers.items()}
    missing = [name for name, found in reports.items() if found is None]
    if missing:
        return [Finding("every node has an estimate", False, f"none at {', '.join(missing)}")]
    values = np.array([found.value for found in reports.values() if found is not None])
    expected = [found.expected_error for found in reports.values() if found is not None]
    errors: Floats = np.linalg.norm(values - exact, axis=1) / (np.linalg.norm(exact) or 1.0)
    if None in expected:
        tolerance, told = 0.5, "after few meetings, 50 % are allowed"
    else:
        tolerance = max(0.01, 3 * max(e for e in expected if e is not None))
        told = f"{100 * tolerance:.2g} % are allowed by what the nodes expect"
    seen = (
        f"exact {_shown(exact)}; nodes off by {100 * errors.mean():.2g} %, at most {100 * errors.max():.2g} %; {told}"
    )
    return [Finding("estimates agree with the value over all rows", bool(errors.max() <= tolerance), seen)]


def _shown(values: Floats) -> str:
    return ", ".join(f"{value:.6g}" for value in values)
