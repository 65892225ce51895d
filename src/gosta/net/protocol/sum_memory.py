"""What a site remembers of earlier epochs of private sums, and what follows for the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import NamedTuple

import msgspec

from gosta.errors import GostaError
from gosta.net.protocol.records import Deviation, PartMade, SitesNoted
from gosta.net.protocol.site import SumSource, largest_rows, layouts_of_rounds
from gosta.net.protocol.statements import Join
from gosta.private import companions, masks
from gosta.private.companions import Companions
from gosta.private.deviations import MAX_OPENINGS
from gosta.private.policy import may_replace
from gosta.private.snapshots import (
    ROWS,
    Contributed,
    RowSnapshot,
    block_digests,
    count_changes,
    remember,
)

TAG_BYTES = 16  # of what a site says of its rows
MAX_WASTED = 1  # epochs that a site may let fail after this one had spent epsilon for them
NOT_COMPARED = "its rows cannot be compared with those of an earlier contribution"


class Choice(NamedTuple):
    """The rows that a site contributes next."""

    rows: RowSnapshot | None  # None: there are none that the settings of today can use
    reason: str = ""  # why they are not those of the file


class Memory(msgspec.Struct, array_like=True):
    """The part of a node's state that outlives epochs."""

    secret: bytes = b""  # of this site: of digests of rows, and of noise
    rows: RowSnapshot | None = None  # of the last commit
    contributed: tuple[Contributed, ...] = ()  # earlier contributions, the latest last
    companions: Companions = {}  # sites in totals without noise to which this one contributed
    deviating: dict[str, Deviation] = {}  # sites that did what no honest site does
    # keys of sites whose last word was that their sums may be computed
    agreeing: tuple[bytes, ...] = ()
    # epochs that a site let fail after this one had spent epsilon for them
    wasted: dict[str, int] = {}
    # a member list's serial number, and how often masks were opened under it
    openings: tuple[int, int] = (0, 0)

    def add_part(self, record: PartMade) -> None:
        """Remember what a contribution shows once it is sent."""
        if record.exposes:
            self.companions = companions.add_total(self.companions, record.exposes, record.time)
        if record.contributed is not None:
            self.contributed = remember(self.contributed, record.contributed)

    def note(self, record: SitesNoted) -> None:
        self.deviating, self.agreeing = record.deviating, record.agreeing

    def count_wasted(self, names: Sequence[str]) -> None:
        self.wasted = {**self.wasted, **{name: self.wasted.get(name, 0) + 1 for name in names}}

    def count_opening(self, list_serial: int) -> None:
        serial, count = self.openings
        self.openings = list_serial, 1 + count * (serial == list_serial)

    def has_opened_enough(self, list_serial: int) -> bool:
        """Return whether this site opens no more masks: what they show of its rows adds up."""
        return self.openings[0] == list_serial and self.openings[1] >= MAX_OPENINGS

    def choose_rows(self, source: SumSource, name: str) -> Choice:
        """Return the rows to contribute: those of the file, or those of the last contribution."""
        new, last, most = source.file_rows, self.rows, largest_rows(source.trust, name)
        if last is not None and (last.encoding != new.encoding or last.rows > most):
            last = None
        if last is not None and last.digest == new.digest:
            return Choice(last)
        if new.rows > most:
            allowed = f"the member list allows {most}: declare more to the coordinator"
            return Choice(last, f"{new.rows} rows, and {allowed}")
        reason = self._why_not_replaced(source)
        return Choice(last, reason) if reason else Choice(new)

    def _why_not_replaced(self, source: SumSource) -> str:
        """Return why the rows of the file may not follow earlier contributions.

        Empty if they may.
        """
        known = dict[tuple[bytes, tuple[bytes, ...]], dict[str, bytes]]()
        for earlier in self.contributed:
            about = earlier.settings, earlier.earlier_totals
            try:
                if about not in known:
                    first = source.layout_of(earlier.settings)
                    layout = layouts_of_rounds(first, earlier.earlier_totals)[-1]
                    rows = source.rows_of(earlier.settings)
                    known[about] = block_digests(layout, rows, self.secret)
            except GostaError as error:
                return f"{NOT_COMPARED}: {error}"
            if reason := _why_not_after(earlier, known[about], source):
                return reason
        return ""

    def tag_of(self, rows: RowSnapshot) -> bytes:
        """Return what this site says of its rows: another value whenever these change."""
        return masks.random_bytes(self.secret, rows.digest)(TAG_BYTES)

    def missing_agreements(
        self, source: SumSource, name: str, joins: Mapping[str, Join], participants: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the sites that have not agreed to what one more total would show of them."""
        if source.policy.min_sites <= 1:  # then a total of one site may be known, too
            return ()
        keys = source.trust.keys
        roster = {keys.get(participant, b""): participant for participant in participants}
        names = {key: companion.name for key, companion in self.companions.items()} | roster
        found = companions.separated(self.companions, roster, source.policy.min_sites)
        lacking = {
            names[key]
            for key in found
            if not self._has_agreed(source, name, joins, key, names[key])
        }
        return tuple(sorted(lacking))

    def _has_agreed(
        self, source: SumSource, own_name: str, joins: Mapping[str, Join], key: bytes, name: str
    ) -> bool:
        """Return whether a site agrees, by its own word if it is there.

        Else by its last one, or by this site's.
        """
        agreed, join = source.agreed.sites, joins.get(name)
        if name == own_name:
            return name in agreed
        if join is not None and join.key and source.trust.keys.get(name) == key:
            return join.agrees
        last = self.companions[key].time if key in self.companions else -inf
        # an agreement from before it came back is over
        return key in self.agreeing or agreed.get(name, -inf) > last

    def deviants(self, list_serial: int) -> dict[str, str]:
        """Return the sites that deviated since this member list, and how.

        Another list keeps them on purpose.
        """
        found = self.deviating.items()
        return {
            name: deviation.what
            for name, deviation in found
            if deviation.list_serial == list_serial
        }

    def wasting(self, source: SumSource) -> set[str]:
        """Return the sites for which this one spends no more epsilon until its operator agrees."""
        found = {name for name, count in self.wasted.items() if count > MAX_WASTED}
        return found - source.agreed.sites.keys()


def _why_not_after(earlier: Contributed, blocks: Mapping[str, bytes], source: SumSource) -> str:
    """Return why rows may not follow an earlier contribution.

    `blocks` are their digests in its sums.
    """
    if any(name.endswith(ROWS) and name not in blocks for name in earlier.blocks):
        return f"{NOT_COMPARED}: its settings have changed"
    common = [(old, blocks[name]) for name, old in earlier.blocks.items() if name in blocks]
    changes = [count_changes(old, new) for old, new in common]
    others = source.counted_otherwise(earlier.settings)
    least = f"{source.policy.min_change} needed, or none"
    if not may_replace(source.policy, changes):
        return f"too few rows changed since an earlier contribution; {least}"
    missing = "miss a value that only one needs of an earlier contribution and this one"
    if not may_replace(source.policy, others):
        return f"too few rows {missing}; {least}"
    if any(changes) and any(others):
        return f"rows changed since an earlier contribution, and others {missing}"
    return ""
