"""A node's state at the start of an epoch, from its rows, its neighbours and the task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from gosta.errors import DataError, NetworkError
from gosta.estimation.carried import REMEMBERED
from gosta.estimation.estimand import Estimand, join_estimands
from gosta.estimation.exchange import (
    MAX_SAMPLE_ROWS,
    MIN_RECENT_HOMES,
    RECENT_HOMES_PER_ROW,
    Estimator,
    LocalRows,
    first_state,
)
from gosta.net.config import NodeConfig, Task, is_for_one_row_each, protocol_of_nodes
from gosta.net.limits import max_kernel_value
from gosta.net.members import OpenTrust, Trust, read_trust
from gosta.net.node.rows import read_rows_and_widths, resolve_files
from gosta.net.node.subject import subject_of
from gosta.private.policy import POLICY_FILE, read_policy, verdict_to_join
from gosta.protocols.protocol import COPIES
from gosta.runtime.arrays import Floats
from gosta.statistics.joint import choose
from gosta.statistics.references import own_references


class Source:
    """A node's rows and the rule by which it estimates; implements `EpochSource`."""

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
        """Make a source of encoded rows, with so many numbers of each encoding; by default, as the task says."""
        self.name, self.task, self.trust = name, task, trust
        self._x, self._neighbours, self._folder, self._widths = x, neighbours, folder, widths
        self.rows = len(x)
        self.estimand = estimand_of(task, x, folder, self._widths)
        has_interval = task.confidence_level is not None
        self.protocol = protocol_of_nodes(task.protocol, self.estimand.statistic, has_interval)
        self.fingerprint = fingerprint(task, folder)
        self.data_digest = digest(x.tobytes())
        self.digest = digest(x.tobytes(), self.fingerprint, *sorted(neighbours), trust.digest)
        self._rows = LocalRows(
            self.estimand
        )  # evaluates the kernel once, before a record is written
        largest = float(np.abs(self.estimand.own_row_means).max())
        if largest > max_kernel_value(self.estimand.mean_degree):
            raise DataError(
                f"{task.statistic}: kernel values of {largest:.3g} are too large; use larger units"
            )

    def with_trust(self, trust: Trust) -> Source:
        """Return the same rows among other members."""
        return Source(
            self.name, self.task, self._x, self._neighbours, self._folder, trust, self._widths
        )

    def estimator(self) -> Estimator:
        return Estimator(
            self.name, self.protocol, self._rows, first_state(self._rows, self.protocol)
        )


def estimand_of(task: Task, x: Floats, folder: Path, widths: tuple[int, ...] = ()) -> Estimand:
    """Return what a task estimates over encoded rows, with so many numbers of each encoding; by default the task's."""
    widths = widths or task.row_widths
    members, options = choose(task.statistic, folder), resolve_files(task.options, folder)
    return replace(join_estimands(members, widths, x, options), level=task.confidence_level)


def fingerprint(task: Task, folder: Path) -> str:
    """Return a digest of the task that all nodes must agree on: see docs/reference/wire.md."""
    references = own_references(task.statistic)
    digests = [hashlib.sha256((folder / file).read_bytes()).hexdigest() for file, _ in references]
    is_one_own = bool(references) and "," not in task.statistic
    parts = {
        "classes": list(task.classes),
        "confidence_level": task.confidence_level,
        "options": task.options,
        "protocol": task.protocol,
        "recent_homes": [RECENT_HOMES_PER_ROW, MIN_RECENT_HOMES],
        "sample": MAX_SAMPLE_ROWS,
        "source": None if not digests else digests[0] if is_one_own else digests,
        "statistic": references[0][1] if is_one_own else task.statistic,
    }
    if is_for_one_row_each(task.protocol):
        parts |= {"copies": COPIES, "remembered": REMEMBERED}
    if task.private is not None:  # the order of strata matters, so that the settings are one text
        parts |= {"columns": list(task.columns), "label": task.label, "score": task.score}
        parts |= {"private": msgspec.json.encode(task.private).decode()}
    return digest(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode())


def check_policy(task: Task, folder: Path) -> None:
    """Raise an error if a site's policy forbids that its rows leave it, or if there is none that can be read."""
    forbidden = verdict_to_join(read_policy(folder), subject_of(task, 0, None, sites=1), [], 0.0)
    if forbidden:
        raise NetworkError(f"{folder / POLICY_FILE}: {forbidden}; change it, or leave the network")


def read_source(config: NodeConfig, folder: Path, has_key: bool = True) -> Source:
    """Read a node's rows and members; `has_key` is False where its exchanges are only checked."""
    name, task = config.node.name, config.network
    rows = read_rows_and_widths(task, folder / config.node.data, folder, config.node.format)
    if has_key:
        check_policy(task, folder)
    trust = read_trust(folder, name, task.id, has_key) if config.node.tls else OpenTrust()
    return Source(name, task, rows.x, config.neighbours, folder, trust, rows.widths)


def digest(*parts: bytes | str) -> str:
    """Return a digest of several parts, in which no part can be taken for another."""
    found = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        found.update(len(raw).to_bytes(8, "big") + raw)
    return found.hexdigest()[:16]
