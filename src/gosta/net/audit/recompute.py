"""A release of private sums, computed again from the participants' snapshots and secrets.

A site's noise follows from its secret, so that with all journals in one place the total is known to
the last bit. What the settings of today do not give, or what a journal no longer has, is not
computed: then a `NetworkError` says why.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gosta.errors import NetworkError
from gosta.models.layout import FitLayout
from gosta.net.members import Trust
from gosta.net.protocol import site, statements
from gosta.net.protocol.site import SumReport, SumSource
from gosta.net.protocol.statements import Join
from gosta.net.protocol.sum_epoch import Contributor, Round, noise_context
from gosta.net.protocol.sums import SumPeer
from gosta.private import masks
from gosta.private.log import LogEntry
from gosta.private.noise import Noise, choose_noise, draw
from gosta.private.snapshots import RowSnapshot
from gosta.runtime.arrays import Floats, Words
from gosta.sketches.comparison import exact_values
from gosta.sketches.layout import Layout
from gosta.sketches.results import StratumResult, Values

FALSE_ALARMS = 1e-9  # how often noise that has its law is said not to have it
MOST_WORDS = 2.0**62  # in grid units; larger numbers are no total
STEEPEST = 0.5  # exp(STEEPEST · |noise| / standard deviation) has a mean for every law


class Recomputed(NamedTuple):
    """The total of one round, as reported and as it follows from the snapshots here."""

    round: Round
    total: Words | None  # as it is reported; None: no sum is so
    sums: Words  # over the snapshots that are here
    noise: Words  # of the same sites

    @property
    def rest(self) -> Words:
        """What the total has beyond the sites whose snapshots are here."""
        if self.total is None:
            raise NetworkError(f"what is reported of round {self.round.number} is no total")
        return self.total - self.sums - self.noise


@dataclass(frozen=True, eq=False)
class Release:
    """A release as one node reports it, and all nodes whose journals are here."""

    report: SumReport
    peers: Mapping[str, SumPeer]
    # why the journal of a site could not be read
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> tuple[int, str]:
        """The epoch, and the node that started it."""
        return self.report.epoch_id

    @property
    def here(self) -> dict[str, SumPeer]:
        """The participants whose journals are here."""
        return {name: self.peers[name] for name in self.report.participants if name in self.peers}

    @property
    def absent(self) -> list[str]:
        """The participants whose journals are elsewhere."""
        return [name for name in self.report.participants if name not in self.peers]

    @property
    def not_here(self) -> list[str]:
        """Why the participants whose journals are not here cannot be checked."""
        return [self.unread.get(name, f"no journal of {name} is here") for name in self.absent]

    def joined_with_latest_list(self, name: str) -> bool:
        join = self.here[name].said(Join)
        is_known = self.is_of(self.here[name]) and join is not None
        return is_known and join is not None and join.list_digest == self.trust.list_digest

    @property
    def tags(self) -> dict[str, bytes]:
        """What each participant says of the rows that it contributes."""
        return dict(zip(self.report.participants, self.report.tags, strict=True))

    @property
    def source(self) -> SumSource:
        """The settings of the network, at one of its sites."""
        return next(iter((self.here or self.peers).values())).source

    @property
    def trust(self) -> Trust:
        """The latest member list."""
        return max((peer.trust for peer in self.peers.values()), key=lambda trust: trust.serial)

    @property
    def is_fit(self) -> bool:
        """Whether a model is fitted, whose coefficients have no brackets."""
        return isinstance(self.source.layout, FitLayout)

    @property
    def round_count(self) -> int:
        return 1 + len(self.report.earlier_totals)

    def is_of(self, peer: SumPeer) -> bool:
        """Return whether the release is of a node's last epoch, whose statements it still has."""
        return peer.current.id == self.id

    def reported_by(self, peer: SumPeer) -> SumReport | None:
        """Return what a node reports of this release."""
        report = peer.report
        return report if report is not None and report.epoch_id == self.id else None

    def entries(self, peer: SumPeer) -> list[LogEntry]:
        """Return what a node's log has of the epoch."""
        return [entry for entry in peer.log if entry.epoch_id == self.id]

    @cached_property
    def snapshots(self) -> dict[str, RowSnapshot]:
        """The rows that participants contributed, of those whose journals still have them."""
        tags = self.tags
        return {
            name: rows
            for name, peer in self.here.items()
            if (rows := peer.rows) is not None and peer.memory.tag_of(rows) == tags[name]
        }

    @property
    def without_snapshot(self) -> list[str]:
        return [name for name in self.report.participants if name not in self.snapshots]

    @cached_property
    def wanted_rounds(self) -> tuple[Round, ...]:
        """The rounds of the release, as they follow from the settings and the earlier totals.

        They end where a total is none.
        """
        layouts = site.layouts_of_rounds(
            self.source.layout, self.report.earlier_totals, self.report.min_cell
        )
        settings, count = self.source.settings, len(self.report.participants)
        rounds = []
        for number, one in enumerate(layouts, 1):
            noise = choose_noise(settings, one, count)
            # Without noise they can be fewer, by the rows that members declared then.
            bits = min(noise.bits, self.report.bits) if noise.law == "none" else noise.bits
            rounds.append(Round(number, one, noise._replace(bits=bits)))
        return tuple(rounds)

    @property
    def has_other_settings(self) -> bool:
        """Whether the settings of today are not those of the release."""
        known = {peer.identity.fingerprint for peer in self.peers.values()}
        return self.report.settings not in known

    @cached_property
    def differences(self) -> list[str]:
        """The fields of the report that do not follow from the settings of today."""
        if self.has_other_settings:
            return ["they have changed since"]
        last, report, settings = self.wanted_rounds[-1], self.report, self.source.settings
        wanted = {
            "layout": last.layout.fingerprint,
            "law": last.noise.law,
            "bits": last.noise.bits,
            "epsilon": settings.epsilon or 0.0,
            "delta": settings.delta,
        }
        reported = {name: getattr(report, name) for name in wanted}
        wanted["rounds"], reported["rounds"] = len(self.wanted_rounds), self.round_count
        return [
            f"{name} {reported[name]}, by the settings {value}"
            for name, value in wanted.items()
            if reported[name] != value
        ]

    @property
    def rounds(self) -> tuple[Round, ...]:
        """What was added up in each round.

        `NetworkError` if the settings of today do not give what is reported.
        """
        if self.differences:
            raise NetworkError(f"the settings: {self.differences[0]}")
        return self.wanted_rounds

    def noise_id(self, current: Round) -> bytes:
        """Return what the noise of a round follows from, besides the sites' secrets."""
        network = next(iter(self.peers.values())).identity.network
        sites = zip(self.report.participants, self.report.keys, self.report.tags, strict=True)
        return noise_context(network, [Contributor(*contributor) for contributor in sites], current)

    @cached_property
    def recomputed(self) -> tuple[Recomputed, ...]:
        """The totals of all rounds, computed again."""
        return tuple(self._recompute(round_) for round_ in self.rounds)

    def _recompute(self, current: Round) -> Recomputed:
        size = current.layout.size
        sums, drawn = np.zeros(size, dtype=np.uint64), np.zeros(size, dtype=np.uint64)
        for name in self.snapshots:
            site_sums, noise = self.own_sums(name, current)
            sums, drawn = sums + site_sums, drawn + noise
        if current.number == len(self.rounds):
            words = _whole(self.report.vector)
        else:
            packed = self.report.earlier_totals[current.number - 1]
            words = _counted(packed, current.noise.bits)
        has_size = words is not None and len(words) == size
        return Recomputed(current, words if has_size else None, sums, drawn)

    def own_sums(self, name: str, current: Round) -> tuple[Words, Words]:
        """Return a participant's sums over its snapshot, and its share of the noise."""
        sums = current.layout.sums(self.snapshots[name].x, current.noise.bits)
        random = masks.random_bytes(self.peers[name].memory.secret, self.noise_id(current))
        return sums, draw(current.noise, current.layout.size, random)

    @cached_property
    def results(self) -> list[tuple[StratumResult, Values | None]]:
        """Each result, with the value over the rows of all participants in one place.

        None: there is none.
        """
        x = np.concatenate([self.snapshots[name].x for name in self.report.participants])
        min_cell = self.report.min_cell if self.report.law == "none" else 0
        layout = self.rounds[-1].layout
        if isinstance(layout, Layout):
            values = exact_values(layout, x, min_cell=min_cell)
        else:
            assert isinstance(layout, FitLayout)
            values = layout.exact_values(x)
        if len(values) != len(self.report.results):
            reported = f"{len(self.report.results)} results are reported"
            raise NetworkError(f"{reported}, and there are {len(values)}")
        return list(zip(self.report.results, values, strict=True))


def _whole(vector: bytes) -> Words | None:
    return None if len(vector) % 8 else statements.unpack(vector)


def _counted(total: bytes, bits: int) -> Words | None:
    """Return a total in units of features as whole numbers of grid units; None if it is none."""
    values = np.frombuffer(total, dtype="<f8").astype(np.float64) * 2.0**bits
    is_small = np.isfinite(values).all() and (np.abs(values) < MOST_WORDS).all()
    is_whole = is_small and (np.rint(values) == values).all()
    return values.astype(np.int64).view(np.uint64) if is_whole else None


def digest(vector: bytes) -> bytes:
    return hashlib.sha256(vector).digest()


def allowed_mean(noise: Noise, size: int) -> tuple[float, float]:
    """Return the ends between which the mean of absolute noise lies, but once in a billion.

    `size` is how many values there are. The ends are Chernoff's: P(mean ≥ c) ≤ exp(n (K(t) − tc))
    for every t > 0, where K(t) is the logarithm of the mean of exp(t|Z|), and likewise below. Any t
    gives an end; the best of some is taken.
    """
    unit = max(math.sqrt(noise.variance), 2.0**-noise.bits)
    cumulant, level = _cumulant(noise, unit), math.log(2 / FALSE_ALARMS) / size
    low = max((-cumulant(-t) - level) / t for t in np.geomspace(0.01, 20, 200).tolist())
    high = min((cumulant(t) + level) / t for t in np.geomspace(0.001, STEEPEST, 100).tolist())
    return max(low, 0.0) * unit, high * unit


def _cumulant(noise: Noise, unit: float) -> Callable[[float], float]:
    """Return K for the total of all participants' noise, in units of its standard deviation."""
    if noise.law == "gaussian":
        return lambda t: math.log(math.erfc(-t / math.sqrt(2))) + t * t / 2
    size, probabilities = _laplace_law(noise)
    values = np.minimum(np.arange(size), size - np.arange(size)) / unit
    return lambda t: math.log(float(probabilities @ np.exp(t * values)))


def _laplace_law(noise: Noise) -> tuple[int, Floats]:
    """Return the probabilities of 0, 1, 2, ..., −2, −1 of a total's Laplace noise.

    They are those of the difference of two negative binomial numbers.

    Their index is 1 where all shares are those of the law, and larger where sites that collude add
    theirs.
    """
    size = 1 << math.ceil(math.log2(max(2 * noise.reach, 64)))
    a, index = math.exp(-1 / noise.scale), noise.participants / noise.shares
    angles = 2 * math.pi * np.arange(size) / size
    transform = ((1 - a) ** 2 / ((1 - a) ** 2 + 2 * a * (1 - np.cos(angles)))) ** index
    return size, np.maximum(np.fft.ifft(transform).real, 0.0)
