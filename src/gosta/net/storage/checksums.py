"""Checksums of what a journal holds, so that damaged bytes are found when they are read."""

from __future__ import annotations

import hashlib

CHECKSUM_BYTES = 8


def checksum(number: int, kind: str, body: bytes) -> bytes:
    """Return the checksum of a row of a journal."""
    return hashlib.blake2b(
        b"%d %b " % (number, kind.encode()) + body, digest_size=CHECKSUM_BYTES
    ).digest()
