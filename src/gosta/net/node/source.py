"""What a site brings to a network: its rows, its policy and its keys, in both modes."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.errors import DataError, NetworkError
from gosta.estimation.carried import REMEMBERED
from gosta.estimation.estimand import Estimand, join_estimands
from gosta.estimation.exchange import (
    MIN_RECENT_HOMES,
    RECENT_HOMES_PER_ROW,
    Estimator,
    LocalRows,
    first_state,
)
from gosta.estimation.visitor import MAX_SAMPLE_ROWS
from gosta.net.agreements import Agreements, read_agreements
from gosta.net.config import NodeConfig, Task, is_for_one_row_each, protocol_of_nodes
from gosta.net.limits import max_kernel_value
from gosta.net.members import OpenTrust, Trust, read_trust
from gosta.net.node.rows import (
    in_roles,
    people_of,
    read_rows_and_widths,
    read_table,
    resolve_files,
    single_groups,
    subject_of,
    sums_of,
)
from gosta.private.policy import POLICY_FILE, Policy, Subject, read_policy, verdict_to_join
from gosta.private.settings import PrivateSettings
from gosta.private.snapshots import RowSnapshot, take_snapshot
from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Booleans, Floats
from gosta.sketches.sums import Sums
from gosta.statistics.joint import choose
from gosta.statistics.references import own_references

_decode_task = msgspec.json.Decoder(Task).decode


class RowSource:
    """A site's rows and the rule by which it estimates; implements `EpochSource`."""

    def __init__(
        self,
        name: str,
        task: Task,
        x: Floats,
        neighbours: Collection[str],
        folder: Path,
        trust: Trust,
        widths: tuple[int, ...] = (),
    ) -> None:
        """Make a source of encoded rows; `widths` of encodings are by default those of the task."""
        self.name, self.task, self.trust = name, task, trust
        self._x, self._neighbours, self._folder, self._widths = x, neighbours, folder, widths
        self.rows = len(x)
        self.estimand = estimand_of(task, x, folder, widths)
        has_interval = task.confidence_level is not None
        self.protocol = protocol_of_nodes(task.protocol, self.estimand.statistic, has_interval)
        self.fingerprint = fingerprint(task, folder)
        self.data_digest = digest(x.tobytes())
        self.digest = digest(x.tobytes(), self.fingerprint, *sorted(neighbours), trust.digest)
        # This evaluates the kernel once, before a record is written.
        self._rows = LocalRows(self.estimand)
        largest = float(np.abs(self.estimand.own_row_means).max())
        if largest > max_kernel_value(self.estimand.mean_degree):
            raise DataError(
                f"{task.statistic}: kernel values of {largest:.3g} are too large; use larger units"
            )

    def with_trust(self, trust: Trust) -> RowSource:
        """Return the same rows among other members."""
        return RowSource(
            self.name, self.task, self._x, self._neighbours, self._folder, trust, self._widths
        )

    def estimator(self) -> Estimator:
        """Return the node's state at the start of an epoch."""
        state = first_state(self._rows, self.protocol)
        return Estimator(self.name, self.protocol, self._rows, state)


@dataclass(frozen=True, eq=False)
class SumSource:
    """A site's rows and rules for private sums; implements the protocol of the same name."""

    task: Task
    layout: Sums
    data: Data  # the site's table, with all columns
    persons: NDArray[np.object_] | None  # whose row each row of the table is
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

    @functools.cached_property
    def single_groups(self) -> tuple[str, ...]:
        """The columns of groups of which all rows have one value."""
        return single_groups(self.task, self.data, self.layout)

    def layout_of(self, settings: bytes) -> Sums:
        is_now = settings == self.encoded_settings
        return self.layout if is_now else sums_of(_decode_task(settings))

    def rows_of(self, settings: bytes) -> RowSnapshot:
        if settings == self.encoded_settings:
            return self.file_rows
        return self._encode(self.layout_of(settings), self._table_of(settings))

    def counted_otherwise(self, settings: bytes) -> list[int]:
        before = self._complete_rows(settings)
        now = self._complete_rows(self.encoded_settings)
        masks = before & ~now, now & ~before
        rows = [int(mask.sum()) for mask in masks]
        if self.persons is None:
            return rows
        return rows + [len(set(self.persons[mask].tolist())) for mask in masks]

    def _table_of(self, settings: bytes) -> Data:
        is_now = settings == self.encoded_settings
        return self.data if is_now else in_roles(self.data, _decode_task(settings))

    def _complete_rows(self, settings: bytes) -> Booleans:
        return self.layout_of(settings).complete_rows(self._table_of(settings))

    def _encode(self, layout: Sums, data: Data) -> RowSnapshot:
        people = None if self.persons is None else self.persons[layout.complete_rows(data)]
        return take_snapshot(layout.encode(data), layout, people, self.time)

    @property
    def rows(self) -> int:
        return self.file_rows.rows

    def subject(self, rows: RowSnapshot) -> Subject:
        members = len(self.trust.members)
        asked = subject_of(self.task, rows.rows, rows.people_count, members, rows.rows_per_person)
        return asked._replace(alone=self.single_groups)

    def with_trust(self, trust: Trust) -> SumSource:
        """Return the same rows among other members."""
        return dataclasses.replace(self, trust=trust)


Source = RowSource | SumSource


def read_source(config: NodeConfig, folder: Path, has_key: bool = True) -> Source:
    """Read what a site brings to its network; `has_key` is False where its node is not run."""
    read = read_row_source if config.network.private is None else read_sum_source
    return read(config, folder, has_key)


def read_row_source(config: NodeConfig, folder: Path, has_key: bool = True) -> RowSource:
    """Read a node's rows and members; `has_key` is False where its exchanges are only checked."""
    name, task = config.node.name, config.network
    rows = read_rows_and_widths(task, folder / config.node.data, folder, config.node.format)
    if has_key:
        check_policy(task, folder)
    trust = read_trust(folder, name, task.id, has_key) if config.node.tls else OpenTrust()
    return RowSource(name, task, rows.x, config.neighbours, folder, trust, rows.widths)


def read_sum_source(config: NodeConfig, folder: Path, has_key: bool = True) -> SumSource:
    """Read a site's rows, policy and members; `has_key` is False where the node is not run."""
    task = config.network
    if not config.node.tls:
        raise NetworkError(
            "node.tls = false: private sums need the keys of all members; set it to true"
        )
    policy, layout = read_policy(folder), sums_of(task)
    data = read_table(task, folder / config.node.data, config.node.format)
    return SumSource(
        task,
        layout,
        data,
        None if policy.person is None else people_of(data, layout, policy.person),
        policy,
        read_agreements(folder),
        fingerprint(task, folder),
        read_trust(folder, config.node.name, task.id, has_key),
        time.time(),
    )


def estimand_of(task: Task, x: Floats, folder: Path, widths: tuple[int, ...] = ()) -> Estimand:
    """Return what a task estimates over encoded rows.

    `widths` are the numbers of each encoding in a row, by default those of the task.
    """
    widths = widths or task.row_widths
    members, options = choose(task.statistic, folder), resolve_files(task.options, folder)
    estimand = join_estimands(members, widths, x, options)
    return dataclasses.replace(estimand, level=task.confidence_level)


def fingerprint(task: Task, folder: Path) -> str:
    """Return a digest of the task that all nodes must agree on: see docs/reference/wire.md."""
    references = own_references(task.statistic)
    digests = [hashlib.sha256((folder / file).read_bytes()).hexdigest() for file, _ in references]
    is_one_file = bool(references) and "," not in task.statistic
    parts: dict[str, Any] = {
        "classes": list(task.classes),
        "confidence_level": task.confidence_level,
        "options": task.options,
        "protocol": task.protocol,
        "recent_homes": [RECENT_HOMES_PER_ROW, MIN_RECENT_HOMES],
        "sample": MAX_SAMPLE_ROWS,
        "source": None if not digests else digests[0] if is_one_file else digests,
        "statistic": references[0][1] if is_one_file else task.statistic,
    }
    if is_for_one_row_each(task.protocol):
        parts |= {"copies": COPIES, "remembered": REMEMBERED}
    if task.private is not None:  # the order of strata matters, so that the settings are one text
        parts |= {"columns": list(task.columns), "label": task.label, "score": task.score}
        parts |= {"time": task.time, "event": task.event}
        parts |= {"private": msgspec.json.encode(task.private).decode()}
    if task.fit is not None:
        parts |= {"fit": msgspec.json.encode(task.fit, order="deterministic").decode()}
    if task.dictionary:
        parts |= {
            "dictionary": msgspec.json.encode(task.dictionary, order="deterministic").decode()
        }
    return digest(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode())


def check_policy(task: Task, folder: Path) -> None:
    """Raise an error unless there is a policy that permits that a site's rows leave it."""
    forbidden = verdict_to_join(read_policy(folder), subject_of(task, 0, None, sites=1), [], 0.0)
    if forbidden:
        raise NetworkError(f"{folder / POLICY_FILE}: {forbidden}; change it, or leave the network")


def digest(*parts: bytes | str) -> str:
    """Return a digest of several parts, in which no part can be taken for another."""
    content = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        content.update(len(raw).to_bytes(8, "big") + raw)
    return content.hexdigest()[:16]
