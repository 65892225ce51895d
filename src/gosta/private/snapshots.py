"""Snapshots of rows: a site contributes one, not its file, so that no small change shows.

Two contributions of a site are of the same rows, or of rows of which at least `min_change` people's
differ. So a snapshot is replaced by the rows of the file only if each block of sums of each earlier
contribution would change by no row and nobody, or by those of at least so many rows and people:
also where the network computes something else today, since new sums may add up to earlier ones. A
file with a few corrections does not replace the snapshot: then the site contributes it again.
"""

from __future__ import annotations

import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from gosta.runtime.arrays import Floats
from gosta.sketches.sums import Sums

DIGEST_BYTES = 8  # of a row: two of 100,000 rows agree by chance once in 4 billion files
ROWS, PEOPLE = " rows", " people"  # after the fingerprint of a block: whose digests these are
MAX_CONTRIBUTED = 16  # earlier contributions to each round with which rows are compared


class RowSnapshot(msgspec.Struct, frozen=True, array_like=True, dict=True):
    """A site's encoded rows at some time, in order of size, not of the file's lines."""

    time: float  # when they were read, in seconds since 1970
    encoding: str  # fingerprint of what their numbers are
    width: int  # numbers in an encoded row
    content: bytes  # the rows, as floats of 64 bits
    # whose row each one is; None: the policy names no column of persons
    people: tuple[str, ...] | None = None

    @functools.cached_property
    def x(self) -> Floats:
        """The encoded rows."""
        return np.frombuffer(self.content, dtype="<f8").astype(np.float64).reshape(-1, self.width)

    @functools.cached_property
    def digest(self) -> bytes:
        """A digest of the rows and whose they are."""
        head = repr((self.encoding, self.width, self.people)).encode()
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


def take_snapshot(
    x: Floats, layout: Sums, people: Iterable[object] | None, time: float
) -> RowSnapshot:
    """Return a snapshot of encoded rows."""
    names = None if people is None else np.array([str(name) for name in people], dtype=str)
    order = np.lexsort([*([] if names is None else [names]), *x.T[::-1]])
    content = (x[order] + 0.0).astype("<f8").tobytes()  # without negative zeros
    sorted_names = None if names is None else tuple(names[order].tolist())
    return RowSnapshot(time, layout.encoding, x.shape[1], content, sorted_names)


class Contributed(NamedTuple):
    """What a site remembers of a contribution, to compare later rows with it."""

    settings: bytes  # of the network then, from which the sums follow
    # Of the rounds on which the sums depend, as floats of 64 bits.
    earlier_totals: tuple[bytes, ...]
    blocks: dict[str, bytes]  # digests of rows, or of people, by fingerprint of a block of sums


def block_digests(layout: Sums, rows: RowSnapshot, key: bytes) -> dict[str, bytes]:
    """Return digests of the features of rows and of people in each block of sums.

    `key` is this site's secret.

    Of a first round, which only finds edges, these are also the features in bins of equal width:
    whatever edges are found, what is in none of them shows there.
    """
    blocks = {}
    layouts = {layout, layout.final}
    for name, features in (block for one in layouts for block in one.block_features(rows.x)):
        numbers = np.ascontiguousarray(features, dtype="<i8")
        digests = [_digest(row.tobytes(), key) for row in numbers]
        blocks[name + ROWS] = b"".join(sorted(digests))
        if rows.people is not None:
            blocks[name + PEOPLE] = b"".join(sorted(_of_people(digests, rows.people, key)))
    return blocks


def _of_people(digests: Sequence[bytes], people: Sequence[str], key: bytes) -> Iterator[bytes]:
    """Yield a digest of all rows of each person: a new pseudonym is no change."""
    by_person: dict[str, list[bytes]] = {}
    for person, digest in zip(people, digests, strict=True):
        by_person.setdefault(person, []).append(digest)
    return (_digest(b"".join(sorted(rows)), key) for rows in by_person.values())


def remember(earlier: Sequence[Contributed], new: Contributed) -> tuple[Contributed, ...]:
    """Return the last contributions after one more: `MAX_CONTRIBUTED` to each round.

    Whoever moves the edges that are found, so that every second round is another one, makes no
    first round forgotten.
    """
    known = [*(contributed for contributed in earlier if contributed != new), new]
    alike = [one for one in known if len(one.earlier_totals) == len(new.earlier_totals)]
    forgotten = alike[:-MAX_CONTRIBUTED]
    return tuple(contributed for contributed in known if contributed not in forgotten)


def count_changes(old: bytes, new: bytes) -> int:
    """Return how many rows (or people) changed from one list of digests to another.

    A replaced row counts once.
    """
    before, after = Counter(_split(old)), Counter(_split(new))
    return max((before - after).total(), (after - before).total())


def _digest(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, key=key, digest_size=DIGEST_BYTES).digest()


def _split(digests: bytes) -> list[bytes]:
    return [digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)]
