"""What a site brings to private sums: its rows, its policy and the sums that are wanted of it."""

from __future__ import annotations

import dataclasses
import functools
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.errors import NetworkError
from gosta.net.agreements import Agreements, read_agreements
from gosta.net.config import NodeConfig, Task
from gosta.net.members import Trust, read_trust
from gosta.net.node.rows import in_roles, layout_of, read_table
from gosta.net.node.source import fingerprint
from gosta.net.node.subject import people_of, subject_of
from gosta.private.policy import Policy, Subject, read_policy
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import RowSnapshot, take_snapshot
from gosta.runtime.arrays import Booleans
from gosta.sketches.layout import Layout

_decode_task = msgspec.json.Decoder(Task).decode


@dataclass(frozen=True, eq=False)
class SumSource:
    """A site's rows and rules; implements the protocol of the same name."""

    task: Task
    layout: Layout
    data: Data  # the site's table, with all columns
    persons: NDArray[np.object_] | None  # whose row each one of the table is
    policy: Policy
    agreed: Agreements
    fingerprint: str
    trust: Trust
    time: float = 0.0  # when all of this was read, in seconds since 1970

    @property
    def statistics(self) -> str:
        return self.task.statistic

    @property
    def settings(self) -> PrivateSettings:
        assert self.task.private is not None
        return self.task.private

    @property
    def confidence_level(self) -> float | None:
        return self.task.confidence_level

    @functools.cached_property
    def encoded_settings(self) -> bytes:
        return msgspec.json.encode(self.task)

    @functools.cached_property
    def file_rows(self) -> RowSnapshot:
        return self._encode(self.layout, self.data)

    def layout_of(self, settings: bytes) -> Layout:
        return (
            self.layout if settings == self.encoded_settings else layout_of(_decode_task(settings))
        )

    def rows_of(self, settings: bytes) -> RowSnapshot:
        if settings == self.encoded_settings:
            return self.file_rows
        return self._encode(self.layout_of(settings), in_roles(self.data, _decode_task(settings)))

    def counted_otherwise(self, settings: bytes) -> list[int]:
        before, now = self._complete_rows(settings), self._complete_rows(self.encoded_settings)
        masks = before & ~now, now & ~before
        rows = [int(mask.sum()) for mask in masks]
        return rows + (
            []
            if self.persons is None
            else [len(set(self.persons[mask].tolist())) for mask in masks]
        )

    def _complete_rows(self, settings: bytes) -> Booleans:
        is_now = settings == self.encoded_settings
        return self.layout_of(settings).complete_rows(
            self.data if is_now else in_roles(self.data, _decode_task(settings))
        )

    def _encode(self, layout: Layout, data: Data) -> RowSnapshot:
        people = None if self.persons is None else self.persons[layout.complete_rows(data)]
        return take_snapshot(layout.encode(data), layout, people, self.time)

    @property
    def rows(self) -> int:
        return self.file_rows.rows

    def subject(self, rows: RowSnapshot) -> Subject:
        members = len(self.trust.members)
        return subject_of(self.task, rows.rows, rows.people_count, members, rows.rows_per_person)

    def with_trust(self, trust: Trust) -> SumSource:
        return dataclasses.replace(self, trust=trust)


def read_sum_source(config: NodeConfig, folder: Path, has_key: bool = True) -> SumSource:
    """Read a site's rows, policy and members; `has_key` is False where the node is not run."""
    task, data = config.network, folder / config.node.data
    if not config.node.tls:
        raise NetworkError(
            "node.tls = false: private sums need the keys of all members; set it to true"
        )
    rules, form = read_policy(folder), config.node.format
    table, layout = read_table(task, data, form), layout_of(task)
    persons = None if rules.person is None else people_of(table, layout, rules.person)
    trust, agreed = read_trust(folder, config.node.name, task.id, has_key), read_agreements(folder)
    return SumSource(
        task, layout, table, persons, rules, agreed, fingerprint(task, folder), trust, time.time()
    )
