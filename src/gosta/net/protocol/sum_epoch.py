"""One epoch of private sums: the statements of it, and what follows for whoever has them.

The order of what participants say is: `join`; the `roster` by the origin; in each round `commit`,
and when all have committed, `part`; where the total cannot be one of rows, `opening`. Of more than
51 participants, `nonce` comes before the first `commit`. A participant that does not contribute
says `refusal`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from gosta.net.addresses import NAME_PATTERN
from gosta.net.members import Trust
from gosta.net.protocol import statements
from gosta.net.protocol.messages import Announcement, Rejected, Signed
from gosta.net.protocol.site import SumSource, largest_rows
from gosta.net.protocol.statements import (
    AnyStatement,
    Commit,
    Join,
    Nonce,
    Opening,
    Part,
    Pool,
    Refusal,
    Roster,
    Slot,
    Statement,
)
from gosta.private import deviations, masks
from gosta.private.deviations import CHECKS, PAD_REACH, Deviations
from gosta.private.noise import NO_NOISE, Noise, choose_noise, draw, open_totals, site_vector
from gosta.private.snapshots import RowSnapshot
from gosta.runtime.arrays import Booleans, Floats, Words
from gosta.sketches.sums import Sums

Said = TypeVar("Said", bound=Statement)
_encode = msgspec.msgpack.Encoder().encode


class Round(NamedTuple):
    """What is added up in one round of an epoch."""

    number: int
    layout: Sums
    noise: Noise
    pads: Noise = NO_NOISE  # of each site, which hide what openings show


class Total(NamedTuple):
    """The total of one round."""

    round: Round
    vector: Words
    totals: Floats


class SumEpoch:
    """The statements of an epoch, and what follows from them."""

    def __init__(self, network: str, name: str, announcement: Announcement, key: bytes) -> None:
        self.network, self.name, self.announcement = network, name, announcement
        # This node's secret key of the epoch; empty once nothing is to be opened with it any more.
        self.key = key
        self.pool = Pool()
        self.suppressed = ""  # what this site's policy forbids
        self.failure = ""  # why a new epoch has to start
        self.totals: list[Total] = []  # of the rounds that are complete
        self.implausible: Round | None = None  # whose total no rows can have
        self.suspects: tuple[tuple[str, str], ...] = ()  # pairs of which one deviates
        self.early: dict[Slot, Signed] = {}  # statements that cannot be checked yet
        self._keys: dict[str, bytes] | None = None
        self._rounds: dict[int, Round] = {}
        self._is_over = False  # no round follows the totals that there are
        self._parts: dict[int, Words] = {}  # of this node, by round
        self._few_rows: dict[int, str] = {}  # of this node's rows, by round

    @property
    def id(self) -> tuple[int, str]:
        """The number of the epoch, and the node that started it."""
        return self.announcement.epoch_id

    @property
    def slots(self) -> Mapping[Slot, tuple[bytes, AnyStatement]]:
        """The statements, by what they are about."""
        return self.pool.slots

    def said(self, kind: type[Said], name: str, number: int = 0) -> Said | None:
        """Return a statement of a site; those of rounds have the round's number."""
        found = self.slots.get(Slot(str(kind.__struct_config__.tag), name, number))
        return found[1] if found is not None and isinstance(found[1], kind) else None

    def said_by_all(self, kind: type[Said], number: int = 0) -> dict[str, Said]:
        """Return the statements of one kind of the participants that made it."""
        found = {name: self.said(kind, name, number) for name in self.participants}
        return {name: statement for name, statement in found.items() if statement is not None}

    @property
    def head(self) -> tuple[int, str, str, bytes]:
        """What each statement of this node begins with, once there is a roster."""
        return *self.id, self.name, self.roster_id

    @property
    def roster(self) -> Roster | None:
        return self.said(Roster, self.announcement.origin)

    @property
    def roster_id(self) -> bytes:
        return self.slots[Slot("roster", self.announcement.origin)][0]

    @property
    def joins(self) -> dict[str, Join]:
        return {
            slot.home: join
            for slot, (_, join) in self.slots.items()
            if slot.kind == "join" and isinstance(join, Join)
        }

    @property
    def refusals(self) -> dict[str, Refusal]:
        found = [statement for _, statement in self.slots.values()]
        refusals = {said.home: said for said in found if isinstance(said, Refusal)}
        return {name: refusals[name] for name in sorted(refusals)}

    @property
    def participants(self) -> tuple[str, ...]:
        return () if self.roster is None else tuple(name for name, _ in self.roster.participants)

    def insert(self, signed: Signed) -> None:
        """Add a statement that was checked, or is this node's own."""
        self.pool.insert(signed)
        self._keys = None

    def missing(self) -> list[str]:
        """Return the participants whose statement is due next and missing."""
        if self.roster is None:
            return []
        if self.keys() is None:
            return [self.announcement.origin]  # it has all that its roster names
        if self.implausible is not None:
            return self.lacking(Slot("opening", "", self.implausible.number))
        return next(filter(None, map(self.lacking, self.due(len(self.totals) + 1))), [])

    def due(self, number: int) -> list[Slot]:
        """Return what every participant says in a round, in order, with an empty name."""
        nonce = (
            [Slot("nonce", "")]
            if len(self.participants) > masks.MAX_PARTNERS + 1 and number == 1
            else []
        )
        return [*nonce, Slot("commit", "", number), Slot("part", "", number)]

    def lacking(self, due: Slot) -> list[str]:
        """Return the participants that have not said something."""
        return [name for name in self.participants if due._replace(home=name) not in self.slots]

    def keys(self) -> dict[str, bytes] | None:
        """Return the participants' public keys.

        None if some are not known, or are not those of the roster.
        """
        if self._keys is None and self.roster is not None:
            joins, ids = self.said_by_all(Join), dict(self.roster.participants)
            found = {
                name: join.key
                for name, join in joins.items()
                if join.key and self.slots[join.slot][0] == ids[name]
            }
            self._keys = found if len(found) == len(ids) else None
        return self._keys

    # Checks of statements.

    def check(
        self, statement: AnyStatement, members: Mapping[str, int], least_participants: int
    ) -> None:
        """Raise `Rejected` for a statement that no honest site makes."""
        match statement:
            case Join():
                if statement.key and not masks.is_public_key(statement.key):
                    raise Rejected("statement", f"the key of {statement.home} is no public key")
            case Roster():
                names = [name for name, _ in statement.participants]
                is_of_members = names == sorted(set(names)) and set(names) <= set(members)
                if (
                    statement.home != statement.origin
                    or not is_of_members
                    or len(names) < least_participants
                ):
                    raise Rejected("statement", f"the roster of {statement.home} does not hold")
            case Refusal():
                if not all(map(NAME_PATTERN.fullmatch, statement.needs)):
                    raise Rejected(
                        "statement", f"the refusal of {statement.home} names what are no sites"
                    )
            case Part():
                known = self._rounds.get(statement.round)
                if known is not None and len(statement.vector) != 8 * (known.layout.size + CHECKS):
                    raise Rejected(
                        "statement", f"the contribution of {statement.home} has the wrong length"
                    )

    def is_due(self, statement: AnyStatement) -> bool:
        """Return whether a statement of a participant refers to what is known already."""
        if isinstance(statement, Join | Roster):
            return True
        if (
            self.keys() is None
            or statement.roster != self.roster_id
            or statement.home not in self.participants
        ):
            return False
        match statement:
            case Nonce():
                return hashlib.sha256(statement.value).digest() == self.joins[statement.home].nonce
            case Part():
                is_known = statement.round in self._rounds and not self.lacking(
                    Slot("commit", "", statement.round)
                )
                return is_known and statement.commits == self.commits(statement.round)
            case Opening():
                wanted = 8 * CHECKS * len(self._partners(statement.home))
                is_open = (
                    self.implausible is not None and self.implausible.number == statement.round
                )
                return is_open and len(statement.words) == wanted
        return True

    def commits(self, number: int) -> bytes:
        """Return a digest of all commitments of a round."""
        return statements.digest_of(
            [self.slots[Slot("commit", name, number)][0] for name in self.participants]
        )

    def keeps_word(self, part: Part) -> bool:
        """Return whether a contribution is the one to which its site has committed."""
        commit = self.said(Commit, part.home, part.round)
        return commit is not None and commit.digest == hashlib.sha256(part.vector).digest()

    # Rounds.

    def round(self, number: int, source: SumSource) -> Round | None:
        """Return what a round is about, if that is known yet."""
        if (
            number not in self._rounds
            and self.roster is not None
            and number == len(self.totals) + 1
            and not self._is_over
        ):
            last = self.totals[-1] if self.totals else None
            layout: Sums | None = source.layout
            if last is not None:
                layout = last.round.layout.following(last.totals, self.min_cell)
            self._is_over = layout is None
            if layout is not None:
                rows = [largest_rows(source.trust, name) for name in self.participants]
                noise = choose_noise(source.settings, layout, len(rows), rows)
                pads = deviations.pad_noise(noise.bits, layout.features_per_row, max(rows))
                self._rounds[number] = Round(number, layout, noise, pads)
        return self._rounds.get(number)

    @property
    def largest(self) -> int:
        """How many numbers a contribution to a round that is known has at most."""
        return max((round_.layout.size for round_ in self._rounds.values()), default=1)

    @property
    def min_cell(self) -> int:
        """The largest of the least numbers of rows in a cell that participants ask for."""
        return max(join.min_cell for join in self.said_by_all(Join).values())

    def earlier_totals(self, number: int) -> tuple[bytes, ...]:
        """Return the totals of the rounds before one, as floats of 64 bits."""
        earlier = self.totals[: number - 1]
        return tuple(total.totals.astype("<f8").tobytes() for total in earlier)

    def nonce(self) -> bytes:
        """Return this node's part of the beacon."""
        return masks.random_bytes(self.key, b"gosta nonce")(32)

    def _beacon(self) -> bytes:
        """Return a number that no participant chooses, for the partners of more than 51."""
        return _encode([nonce.value for nonce in self.said_by_all(Nonce).values()])

    def _partners(self, name: str) -> list[str]:
        return masks.partners(self.participants, name, self._beacon())

    def _context(self, round_: Round) -> bytes:
        """Return what the masks are for, so that no other vector has the same ones."""
        parts = self.network, *self.id, self.roster_id, round_.number, round_.layout.fingerprint
        return _encode(("gosta mask", *parts))

    def noise_context(self, round_: Round, trust: Trust) -> bytes:
        """Return what noise follows from: who takes part, with which rows, the sums and the law."""
        sites = [
            Contributor(name, trust.keys.get(name, b""), self.joins[name].snapshot)
            for name in self.participants
        ]
        return noise_context(self.network, sites, round_)

    def part(self, round_: Round, rows: RowSnapshot, secret: bytes, trust: Trust) -> Words:
        """Return this site's sums and pads with its masks; the same as often as it is computed."""
        if round_.number not in self._parts:
            layout, noise = round_.layout, round_.noise
            sums = site_vector(
                layout, rows.x, noise, masks.random_bytes(secret, self.noise_context(round_, trust))
            )
            random = masks.random_bytes(self.key, self._context(round_))
            pads = draw(round_.pads, CHECKS, random)
            hiding = self._masks(round_)
            self._parts[round_.number] = np.concatenate([sums, pads]) + np.sum(
                list(hiding.values()), axis=0, dtype=np.uint64
            )
        return self._parts[round_.number]

    def few_rows(self, round_: Round, rows: RowSnapshot) -> str:
        """Return why this site's sums would show too much of few of its rows; "" if not."""
        if round_.number not in self._few_rows:
            self._few_rows[round_.number] = round_.layout.few_rows(rows.x)
        return self._few_rows[round_.number]

    def _masks(self, round_: Round) -> dict[str, Words]:
        keys = self.keys()
        assert keys is not None
        size = round_.layout.size + CHECKS
        return masks.pair_masks(
            size, self.name, self.key, keys, self._context(round_), self._beacon()
        )

    # Totals.

    def vectors(self, round_: Round) -> dict[str, Words]:
        """Return all contributions to a round, with their pads."""
        parts = self.said_by_all(Part, round_.number)
        return {name: statements.unpack(part.vector) for name, part in parts.items()}

    def add_up(self, round_: Round, trust: Trust) -> None:
        """Add up all contributions.

        A total that no rows can have, or more than were declared, is none.
        """
        vectors = [vector[: round_.layout.size] for vector in self.vectors(round_).values()]
        exact, totals = open_totals(vectors, round_.noise)
        most = sum(largest_rows(trust, name) for name in self.participants)
        if round_.layout.is_plausible(totals, round_.noise.reach, most):
            self.totals.append(Total(round_, exact.view(np.uint64), totals))
        else:
            self.implausible = round_

    def _bounds(self, name: str, round_: Round, trust: Trust) -> tuple[int, int]:
        """Return the least and largest sum over a half with a pad, in grid units."""
        rows, layout, noise = largest_rows(trust, name), round_.layout, round_.noise
        reach = noise.reach * math.sqrt(layout.size) + PAD_REACH * round_.pads.scale
        most = rows * layout.features_per_row
        ends = layout.least_feature * most - reach, most + reach
        low, high = (math.ceil(end * 2.0**noise.bits) for end in ends)
        return low, min(high, deviations.LARGEST_SUM)

    def _halves(self, round_: Round) -> Booleans:
        """Return the halves, which follow from all contributions: nobody can choose them."""
        content = b"".join(statements.pack(vector) for vector in self.vectors(round_).values())
        return deviations.choose_halves(hashlib.sha256(content).digest(), round_.layout.size)

    def open_masks(self, round_: Round) -> bytes:
        """Return this site's masks summed over the halves that show who deviates."""
        hiding, halves = self._masks(round_), self._halves(round_)
        opened = [deviations.add_up(hiding[partner], halves) for partner in sorted(hiding)]
        return statements.pack(np.concatenate(opened))

    def find_deviations(self, round_: Round, trust: Trust) -> Deviations:
        """Find out who deviates, from all openings."""
        opened, halves = {}, self._halves(round_)
        for name, opening in self.said_by_all(Opening, round_.number).items():
            words = statements.unpack(opening.words).reshape(-1, CHECKS)
            opened[name] = dict(zip(self._partners(name), words, strict=True))
        vectors = self.vectors(round_)
        sums = {name: deviations.add_up(vector, halves) for name, vector in vectors.items()}
        bounds = {name: self._bounds(name, round_, trust) for name in self.participants}
        return deviations.find_deviations(sums, opened, bounds)


class Contributor(NamedTuple):
    """A participant, as noise follows from it."""

    name: str
    key: bytes  # by which it signs: whoever has its name later could repeat its tag
    tag: bytes  # of its snapshot


def noise_context(network: str, sites: Sequence[Contributor], round_: Round) -> bytes:
    """Return what the noise of a round follows from."""
    parts = network, sites, round_.layout.fingerprint, round_.noise
    return hashlib.sha256(_encode(("gosta noise", *parts))).digest()[:16]
