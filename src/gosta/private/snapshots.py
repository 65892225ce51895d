"""Snapshots of a site's rows: what a site contributes, instead of its file, so that no small change of the file shows.

Two contributions of a site are of the same rows, or of rows of which at least `min_change` people's differ. So a
snapshot is replaced by the rows of the file only if for every earlier contribution no people's, or at least so many
people's, features differ, and so do the numbers of the same columns, since other sums of these may add up to the
earlier ones. A file with a few corrections does not replace it: then the site contributes its last snapshot again.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from gosta.runtime.arrays import Floats
from gosta.sketches import Layout

DIGEST_BYTES = 8  # of a row: two of 100,000 rows agree by chance once in 4 billion files
MAX_CONTRIBUTED = 16  # earlier contributions to each round with which rows are compared


class RowSnapshot(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A site's encoded rows at some time."""

    time: float  # when they were read, in seconds since 1970
    encodings: tuple[str, ...]  # fingerprints of what their numbers are
    width: int  # numbers in an encoded row
    content: bytes  # the rows, as floats of 64 bits
    people: tuple[str, ...] | None = None  # whose row each one is; None: the policy names no column of persons

    @functools.cached_property
    def x(self) -> Floats:
        """The encoded rows."""
        return np.frombuffer(self.content, dtype="<f8").astype(np.float64).reshape(-1, self.width)

    @functools.cached_property
    def digest(self) -> bytes:
        """A digest of the rows and whose they are."""
        head = repr((self.encodings, self.width, self.people)).encode()
        return hashlib.sha256(hashlib.sha256(head).digest() + self.content).digest()

    @property
    def rows(self) -> int:
        return len(self.x)

    @property
    def people_count(self) -> int | None:
        return None if self.people is None else len(set(self.people))

    @property
    def rows_per_person(self) -> int:
        """Rows that one person has at most."""
        return 1 if not self.people else max(Counter(self.people).values())


def take_snapshot(x: Floats, layout: Layout, people: Iterable[object] | None, time: float) -> RowSnapshot:
    """Return a snapshot of encoded rows."""
    names = None if people is None else tuple(map(str, people))
    return RowSnapshot(time, tuple(layout.encodings), x.shape[1], x.astype("<f8").tobytes(), names)


class Contributed(NamedTuple):
    """What a site remembers of a contribution, to compare later rows with it."""

    first_total: bytes  # of the first round, as floats of 64 bits, from which the layout of the second one follows;
    # empty: of a first round
    blocks: dict[str, bytes]  # by fingerprint of a block of sums: digests of the people's features in it; by that of an
    # encoding: of the people's numbers, which other sums of the same columns share


def contributed(layout: Layout, first_total: bytes, rows: RowSnapshot, key: bytes) -> Contributed:
    """Return what to remember of a contribution of rows to a layout's sums; `key` is this site's secret.

    Of a first round, which only finds edges, also the features that rows have with bins of equal width: whatever edges
    are found, what is in none of them shows there.
    """
    features = {name: found for one in {layout, layout.final} for name, found in one.block_features(rows.x)}
    features |= {name: rows.x[:, columns].astype("<f8").view("<i8") for name, columns in layout.encodings.items()}
    return Contributed(first_total, {name: row_digests(found, key, rows.people) for name, found in features.items()})


def remember(earlier: Sequence[Contributed], new: Contributed) -> tuple[Contributed, ...]:
    """Return the last contributions after one more: of first rounds and of second rounds so many each.

    Whoever moves the edges that are found, so that every second round is another one, makes no first round forgotten.
    """
    found = [*(one for one in earlier if one != new), new]
    rounds = [[one for one in found if bool(one.first_total) == is_second] for is_second in (False, True)]
    kept = [one for of_round in rounds for one in of_round[-MAX_CONTRIBUTED:]]
    return tuple(one for one in found if one in kept)


def changes(layouts: Iterator[Layout], earlier: Sequence[Contributed], rows: RowSnapshot, key: bytes) -> list[int]:
    """Return how many people's features differ from those of each block of earlier contributions.

    `layouts` are those of the earlier contributions, as far as they follow from today's settings.
    """
    found, known = [], dict[str, dict[str, bytes]]()
    for layout, one in zip(layouts, earlier, strict=True):
        if layout.fingerprint not in known:
            known[layout.fingerprint] = contributed(layout, b"", rows, key).blocks
        blocks = known[layout.fingerprint]
        found += [count_changes(old, blocks[name]) for name, old in one.blocks.items() if name in blocks]
    return found


def row_digests(
    features: NDArray[np.int64], key: bytes, people: Sequence[object] | NDArray[np.generic] | None = None
) -> bytes:
    """Return digests of the features of rows, in order of size; nobody without the key learns anything from them.

    With people, to whom rows belong, a digest is of all rows of one person.
    """
    digests = [_digest(row.tobytes(), key) for row in np.ascontiguousarray(features, dtype="<i8")]
    if people is not None:
        of_person: dict[str, list[bytes]] = {}
        for person, digest in zip(people, digests, strict=True):
            of_person.setdefault(str(person), []).append(digest)
        digests = [_digest(name.encode() + b"\0" + b"".join(sorted(own)), key) for name, own in of_person.items()]
    return b"".join(sorted(digests))


def count_changes(old: bytes, new: bytes) -> int:
    """Return how many rows (or people) changed from one list of digests to another; a replaced row counts once."""
    before, after = Counter(_split(old)), Counter(_split(new))
    return max((before - after).total(), (after - before).total())


def _digest(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, key=key, digest_size=DIGEST_BYTES).digest()


def _split(digests: bytes) -> list[bytes]:
    return [digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)]
