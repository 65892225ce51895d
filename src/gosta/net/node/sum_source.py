"""What a site brings to private sums: its rows, its policy and the sums that are wanted of it."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gosta.datasets import Data
from gosta.errors import NetworkError
from gosta.net.config import NodeConfig, Task
from gosta.net.members import Trust, read_trust
from gosta.net.node.rows import layout_of, read_table
from gosta.net.node.source import digest, fingerprint
from gosta.net.node.subject import read_people, subject_of
from gosta.private.noise import Noise, Random
from gosta.private.policy import Policy, Subject, read_policy, row_digests
from gosta.private.settings import PrivateSettings
from gosta.private.sums import site_vector
from gosta.runtime.arrays import Floats
from gosta.sketches.layout import Layout


@dataclass(frozen=True, eq=False)
class SumSource:
    """A site's rows and rules; implements the protocol of the same name."""

    task: Task
    layout: Layout
    data: Data  # the site's table
    persons: NDArray[np.object_] | None  # whose row each one is
    policy: Policy
    fingerprint: str
    trust: Trust

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
    def x(self) -> Floats:
        """The encoded rows of the first round."""
        return self.layout.encode(self.data)

    @property
    def rows(self) -> int:
        return len(self.x)

    @functools.cached_property
    def people(self) -> int | None:
        return None if self.persons is None else len(set(self.persons.tolist()))

    @functools.cached_property
    def rows_per_person(self) -> int:
        return 1 if self.persons is None else max(Counter(self.persons.tolist()).values())

    @functools.cached_property
    def rows_digest(self) -> str:
        return digest(self.x.tobytes(), *([] if self.persons is None else map(str, self.persons.tolist())))

    def subject(self) -> Subject:
        return subject_of(self.task, self.rows, self.people, len(self.trust.members), self.rows_per_person)

    def vector(self, layout: Layout, noise: Noise, random: Random) -> NDArray[np.uint64]:
        return site_vector(layout, layout.encode(self.data), noise, random)

    @functools.lru_cache(maxsize=1)  # noqa: B019 - one source is in use
    def row_digests(self, key: bytes) -> bytes:
        return row_digests(self.layout.row_features(self.x), key, self.persons)

    def with_trust(self, trust: Trust) -> SumSource:
        return dataclasses.replace(self, trust=trust)


def read_sum_source(config: NodeConfig, folder: Path, has_key: bool = True) -> SumSource:
    """Read a site's rows, policy and members; `has_key` is False where the node is not run."""
    task, data = config.network, folder / config.node.data
    if not config.node.tls:
        raise NetworkError("node.tls = false: private sums need the keys of all members; set it to true")
    rules = read_policy(folder)
    form = config.node.format
    table, persons = read_table(task, data, form), read_people(task, data, rules.person, form)
    trust = read_trust(folder, config.node.name, task.id, has_key)
    return SumSource(task, layout_of(task), table, persons, rules, fingerprint(task, folder), trust)
