"""Limits that rest on each other."""

from __future__ import annotations

from gosta.net.limits import MAX_MESSAGE_BYTES, MAX_SUMS
from gosta.private.deviations import CHECKS
from gosta.private.settings import MAX_BINS
from gosta.sketches.layout_builder import MOST_NUMBERS


def test_the_largest_contribution_is_one_message() -> None:
    assert MAX_SUMS == MOST_NUMBERS
    rest = 10_000  # names, digests, signature
    assert 8 * (MAX_SUMS + CHECKS) + rest < MAX_MESSAGE_BYTES
    assert 2 * MAX_BINS <= MAX_SUMS
