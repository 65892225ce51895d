"""What a site remembers of earlier epochs of private sums, and what follows from it for the next contribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gosta.net.protocol.records import Deviation, PartMade, SitesNoted
from gosta.net.protocol.site import SumSource, largest_rows, layout_of_round
from gosta.net.protocol.statements import Join
from gosta.private import groups, masks
from gosta.private.deviations import MAX_OPENINGS
from gosta.private.groups import Groups
from gosta.private.policy import may_replace
from gosta.private.snapshots import Contributed, RowSnapshot, changes, remember

TAG_BYTES = 16
MAX_WASTED = 1  # epochs that a site may let fail after this one had spent epsilon for them


class Memory(msgspec.Struct, array_like=True):
    """The part of a node's state that outlives epochs."""

    secret: bytes = b""  # of this site: of digests of rows, and of noise
    rows: RowSnapshot | None = None  # of the last commit
    contributed: tuple[Contributed, ...] = ()  # earlier contributions, the latest last
    groups: Groups = ()  # of sites in the same totals without noise, whether or not this one took part
    deviating: dict[str, Deviation] = {}  # sites that did what no honest site does
    agreeing: tuple[str, ...] = ()  # sites whose last word was that their sums may be computed
    wasted: dict[str, int] = {}  # epochs that a site let fail after this one had spent epsilon for them
    openings: tuple[int, int] = 0, 0  # a member list's serial number, and how often masks were opened under it

    def add_part(self, record: PartMade) -> None:
        """Remember what a contribution shows once it is sent."""
        self.groups, self.contributed = record.groups, remember(self.contributed, record.contributed)

    def note(self, record: SitesNoted) -> None:
        self.deviating, self.agreeing, self.groups = record.deviating, record.agreeing, record.groups

    def count_wasted(self, names: Sequence[str]) -> None:
        self.wasted = {**self.wasted, **{name: self.wasted.get(name, 0) + 1 for name in names}}

    def forget_wasted(self, names: Sequence[str]) -> None:
        self.wasted = {name: count for name, count in self.wasted.items() if name not in names}

    def count_opening(self, list_serial: int) -> None:
        serial, count = self.openings
        self.openings = list_serial, 1 + count * (serial == list_serial)

    def has_opened_enough(self, list_serial: int) -> bool:
        """Return whether this site opens no more masks: what they show of its rows adds up."""
        return self.openings[0] == list_serial and self.openings[1] >= MAX_OPENINGS

    def choose_rows(self, source: SumSource, name: str) -> RowSnapshot | None:
        """Return the rows to contribute: those of the file, unless too few changed since earlier contributions.

        Then they are those of the last contribution. None: there is none that the settings of today can use.
        """
        new, last = source.file_rows, self.rows
        if last is not None and last.encodings != new.encodings:
            last = None
        if last is not None and last.digest == new.digest:
            return last
        layouts = (layout_of_round(source.layout, one.first_total) for one in self.contributed)
        is_small = new.rows <= largest_rows(source.trust, name)
        is_allowed = is_small and may_replace(source.policy, changes(layouts, self.contributed, new, self.secret))
        return new if is_allowed else last

    def tag_of(self, rows: RowSnapshot) -> bytes:
        """Return what this site says of the rows that it contributes: another value whenever these change."""
        return masks.random_bytes(self.secret, rows.digest)(TAG_BYTES)

    def missing_agreements(
        self, source: SumSource, name: str, joins: Mapping[str, Join], participants: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the sites whose sums could be computed after one more total, and that have not agreed to it.

        A participant agrees itself when it joins. For a site that takes no part, its last word counts, or that of the
        operator of this site. A site that has contributed nothing but false sums has no secret to protect.
        """
        false = {site for site, one in self.deviating.items() if one.has_no_secret}
        known = tuple(tuple(site for site in group if site not in false) for group in self.groups)
        found = []
        for site in groups.exposed(groups.refine(known, participants), source.policy.min_sites):
            if site == name:
                has_agreed = name in source.agreed.sites
            elif site in participants:
                has_agreed = joins[site].agrees
            else:
                has_agreed = site in source.agreed.sites or site in self.agreeing
            if not has_agreed:
                found.append(site)
        return tuple(found)

    def deviants(self, list_serial: int) -> dict[str, str]:
        """Return the sites that deviated since this member list, and how; another list keeps them on purpose."""
        return {name: one.what for name, one in self.deviating.items() if one.list_serial == list_serial}

    def wasting(self, source: SumSource) -> set[str]:
        """Return the sites for which this one spends no more epsilon until its operator agrees."""
        return {name for name, count in self.wasted.items() if count > MAX_WASTED} - set(source.agreed.sites)
