"""Which sites' sums follow from several totals: groups of sites that took part in exactly the same totals.

Whoever has several totals can add and subtract them. In every combination, sites that took part in the same totals have
the same factor. So as long as each such group has `min_sites` sites, no combination tells the sums of fewer sites than
one total may tell; a smaller group is *exposed*, and a total that exposes it needs its agreement.
"""

from __future__ import annotations

from collections.abc import Collection

Groups = tuple[tuple[str, ...], ...]


def refine(groups: Groups, participants: Collection[str]) -> Groups:
    """Return the groups after one more total.

    >>> refine((("a", "b", "c", "d"),), ["a", "b", "c", "e"])
    (('a', 'b', 'c'), ('d',), ('e',))
    """
    known = {name for group in groups for name in group}
    parts = [tuple(sorted(set(participants) - known))]
    for group in groups:
        parts += [
            tuple(name for name in group if name in participants),
            tuple(name for name in group if name not in participants),
        ]
    return tuple(sorted(part for part in parts if part))


def exposed(groups: Groups, min_sites: int) -> tuple[str, ...]:
    """Return the sites whose group has fewer than `min_sites` sites."""
    return tuple(sorted(name for group in groups if len(group) < min_sites for name in group))
