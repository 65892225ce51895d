"""Which sites' sums follow from several totals without noise: of those not in all of them.

Whoever has several totals can add and subtract them, and sites that are in exactly the same ones
have the same factor in every combination. So a site contributes to all its totals together with the
same sites, its *companions*. Another site may come or go only if it agrees that its own sums can be
computed.

It is enough that every honest site looks at the totals to which it contributed itself. Any two
totals that have an honest site in common have the same sites then, but for those that agreed;
totals that have none in common share no honest sites at all. So in every combination of totals,
whoever chose their participants and whoever knows of them, all honest sites of a total that did not
agree have the same factor: what follows is their sum, and nothing about fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Companion(NamedTuple):
    """A site in earlier totals of this site."""

    name: str
    is_in_all: bool  # of these totals, not only in some
    time: float  # of the last one with it


Companions = dict[bytes, Companion]  # by public key: a name can be given to another site later


def add_total(known: Companions, participants: Mapping[bytes, str], time: float) -> Companions:
    """Return the companions after one more total; `participants` are names by public key."""
    kept = {
        key: companion._replace(is_in_all=companion.is_in_all and key in participants)
        for key, companion in known.items()
    }
    common = _common(known, participants)
    return kept | {key: Companion(name, key in common, time) for key, name in participants.items()}


def separated(known: Companions, participants: Collection[bytes], min_sites: int) -> set[bytes]:
    """Return the sites whose sums could be computed after one more total.

    If fewer than `min_sites` sites are left that are in all totals, these are among them.

    >>> five = {b"a": "a", b"b": "b", b"c": "c", b"d": "d", b"e": "e"}
    >>> known = add_total({}, five, 0.0)
    >>> sorted(separated(known, [b"a", b"b", b"c", b"d", b"f"], 3))
    [b'e', b'f']
    >>> sorted(separated(known, [b"a", b"b", b"f"], 3))
    [b'a', b'b', b'c', b'd', b'e', b'f']
    """
    common = _common(known, participants)
    everybody = known.keys() | set(participants)
    return everybody - common if len(common) >= min_sites else everybody


def _common(known: Companions, participants: Collection[bytes]) -> set[bytes]:
    """Return the participants that are in all earlier totals, too."""
    return {key for key in participants if not known or (key in known and known[key].is_in_all)}
