"""A network of private sums in virtual time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hostile import make_trusts
from virtual_network import START_TIME, Fault, VirtualNetwork

from gosta.datasets import Data
from gosta.net.agreements import Agreements
from gosta.net.members import Keyring
from gosta.net.node.rows import sums_of
from gosta.net.node.source import SumSource
from gosta.net.node.sum_node import SumNode
from gosta.net.protocol import statements
from gosta.net.protocol.epochs import Identity
from gosta.net.protocol.sums import SumPeer
from gosta.private.policy import MODES, Policy
from gosta.private.settings import PrivateSettings
from gosta.sketches.sums import Sums

OPEN_POLICY = Policy(modes=MODES, min_rows=0, min_sites=0, min_share=0.0, min_cell=0, min_change=0)
SETTINGS = PrivateSettings(bins=8, ranges={"": (0.0, 1.0)}, deadline_seconds=2.0)


class SumNetwork(VirtualNetwork):
    """Nodes that contribute to private sums, each with its rows, policy and keys."""

    node_type = SumNode
    # as in service.py
    journal_options: ClassVar[Mapping[str, Any]] = {"keep_exchanges": 0, "secure_delete": True}

    def __init__(
        self,
        parts: Sequence[np.ndarray[Any, Any]],
        edges: Sequence[tuple[int, int]],
        schedule: Sequence[Fault] = (),
        seed: int = 0,
        statistic: str = "variance",
        settings: PrivateSettings = SETTINGS,
        policies: Mapping[str, Policy] | None = None,
        declared: int = 1000,
        file_columns: Sequence[str] = (),
        **others: Any,
    ) -> None:
        names = [f"node-{k}" for k in range(len(parts))]
        self.policies = dict.fromkeys(names, OPEN_POLICY) | dict(policies or {})
        self.agreed = dict.fromkeys(names, Agreements())
        # names of the columns of all files; none: those of the sums
        self.file_columns = file_columns
        self.declared = declared  # rows of each site in the member list
        self.keys = {
            name: Ed25519PrivateKey.from_private_bytes(name.encode().ljust(32)) for name in names
        }
        trusts: dict[str, Keyring] = make_trusts(dict.fromkeys(names, declared), self.keys)
        super().__init__(
            parts,
            edges,
            schedule,
            seed,
            statistic,
            trusts=trusts,
            private=settings,
            confidence_level=0.95,
            **others,
        )

    @property
    def has_plain_sums(self) -> bool:
        """Whether a report has the sums of the first round, without noise."""
        assert self.task.private is not None
        return self.task.private.epsilon is None and self.task.fit is None

    @property
    def layout(self) -> Sums:
        return sums_of(self.task)

    def source(self, name: str) -> SumSource:  # type: ignore[override]
        trust, policy, agreed = self.trusts[name], self.policies[name], self.agreed[name]
        data, time = self.table(name), START_TIME + self.clock.now
        return SumSource(
            self.task, self.layout, data, None, policy, agreed, self.fingerprint, trust, time
        )

    def table(self, name: str, parts: Mapping[str, np.ndarray[Any, Any]] | None = None) -> Data:
        columns = dict(
            zip(
                self.file_columns or self.layout.columns, (parts or self.parts)[name].T, strict=True
            )
        )
        return Data(name, columns, is_partial=True, declared_classes=self.task.classes)

    def restore_peer(self, name: str) -> SumPeer:  # type: ignore[override]
        """Restore a node's state from its journal."""
        source, journal = self.source(name), self.journals[name]
        journal.check_owner(name)
        peer = SumPeer(
            Identity(name, self.task.id, self.fingerprint),
            source,
            self.neighbours[name],
            source.trust,
        )
        peer.restore(*journal.load())
        peer.log = [one.entry for one in journal.contributions()]
        return peer

    def remove_member(self, name: str) -> None:
        """Let a member leave for good: all others accept a member list without it."""
        self.crash(name, float("inf"))
        self.names.remove(name)
        self.accept(self.names, self.trusts[name].serial + 1)
        for other in self.names:
            self.change(other, without=name)

    def accept(
        self, members: Sequence[str], serial: int, rows: Mapping[str, int] | None = None
    ) -> None:
        """Let all members accept a list of them."""
        declared = dict.fromkeys(members, self.declared) | dict(rows or {})
        listed = next(iter(make_trusts(declared, self.keys).values())).list
        listed = msgspec.structs.replace(listed, serial=serial)
        self.trusts |= {name: Keyring(self.keys[name], listed) for name in members}

    def agree(self, name: str, *sites: str, leaves: bool = False) -> None:
        """Let the operator of a site agree that the sums of some sites may be computed."""
        now = START_TIME + self.clock.now
        self.agreed[name] = Agreements(
            {**self.agreed[name].sites, **dict.fromkeys(sites, now)}, leaves
        )
        self.change(name)

    @property
    def sum_peers(self) -> dict[str, SumPeer]:
        return self.peers  # type: ignore[return-value]

    def check(self) -> None:
        """Check that every total is the sum over its participants' rows, bit for bit, and nobody
        contributed twice.
        """
        reports: dict[tuple[int, str], bytes] = {}
        for name, peer in self.sum_peers.items():
            report = peer.report
            if report is not None:
                if self.has_plain_sums:
                    assert report.vector == statements.pack(self.plain_sums(report.participants)), (
                        name
                    )
                assert (
                    reports.setdefault((report.epoch, report.origin), report.vector)
                    == report.vector
                )
            made = [
                (one.epoch, one.origin, one.round)
                for one in peer.log
                if one.event == "contribution"
            ]
            assert len(made) == len(set(made)), f"{name} contributed twice to an epoch"

    def plain_sums(
        self, names: Sequence[str], parts: Mapping[str, np.ndarray[Any, Any]] | None = None
    ) -> np.ndarray[Any, Any]:
        """Return the sums over the rows of some nodes."""
        vectors = np.array(
            [self.layout.sums(self.layout.encode(self.table(name, parts))) for name in names]
        )
        return np.asarray(vectors.sum(axis=0, dtype=np.uint64))
