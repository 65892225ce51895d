"""What private sums have to know of a vector of sums, whatever follows from its total."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from gosta.datasets.data import Data
from gosta.runtime.arrays import Booleans, Floats, Integers, Words
from gosta.sketches.results import StratumResult


class Sums(Protocol):
    """A vector of sums over rows, of which every site makes the same; one round of a release."""

    @property
    def size(self) -> int:
        """How many numbers the vector has."""

    @property
    def width(self) -> int:
        """How many numbers an encoded row has."""

    @property
    def bits(self) -> int:
        """Binary digits of fractions that are summed where there is no noise."""

    @property
    def features_per_row(self) -> int:
        """To how many numbers a row adds, from 0 to 1 each."""

    @property
    def most_features(self) -> int:
        """To how many numbers a row adds at most in any round."""

    @property
    def squared_change(self) -> float:
        """The squared length of the largest change of the vector by replacing a row."""

    @property
    def budget_share(self) -> float:
        """The share of a release's privacy that the round has, of squares of μ."""

    @property
    def least_feature(self) -> float:
        """The least number that a row adds to a sum; the largest one is at most 1."""

    @property
    def are_counts(self) -> bool:
        """Whether a row adds 0 or 1 to each number."""

    @property
    def bins(self) -> int:
        """The largest number of bins of a column."""

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of what follows from the totals, as policies name them."""

    @property
    def rows_per_column(self) -> float | None:
        """Rows that a model needs for each of its columns, else it shows no more; None: none."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that are read."""

    @property
    def strata(self) -> tuple[str, ...]:
        """The names of the groups of rows that have results of their own."""

    @property
    def fingerprint(self) -> str:
        """16 hex digits that two vectors share only if they are the same."""

    @property
    def encoding(self) -> str:
        """16 hex digits that two vectors share only if their encoded rows are the same."""

    @property
    def blocks(self) -> tuple[str, ...]:
        """16 hex digits for each block of sums: of all that they depend on but rows."""

    @property
    def numbers(self) -> str:
        """How many numbers a site sends, in words."""

    @property
    def final(self) -> Sums:
        """The sums of the last round, as far as they are known."""

    @property
    def shown(self) -> str:
        """What the total shows, in words, where rounds differ in that."""

    def describe(self) -> Mapping[str, str]:
        """Return what is summed, in words."""

    def encode(self, data: Data) -> Floats:
        """Return the numbers of each complete row that its features depend on: n × width."""

    def complete_rows(self, data: Data) -> Booleans:
        """Return which rows `encode` keeps."""

    def sums(self, x: Floats, bits: int = ...) -> Words:
        """Return the sums over encoded rows, in multiples of 2^-bits modulo 2^64."""

    def block_features(self, x: Floats) -> Iterator[tuple[str, Integers]]:
        """Yield the fingerprint of each block of sums, and the features of each row in it."""

    def is_plausible(self, totals: Floats, tolerance: float, most_rows: float = ...) -> bool:
        """Return whether these can be totals over so many rows, with so large errors."""

    @property
    def ranges(self) -> Mapping[str, tuple[float, float]]:
        """The declared range of each column of numbers, beyond which numbers count as its ends."""

    def few_rows(self, x: Floats) -> str:
        """Return why sums over a site's rows would show too much of few of them; "" if not."""

    def following(self, totals: Floats, min_cell: int = 0) -> Sums | None:
        """Return the sums of the next round, which follow from these totals; None: it is over.

        What is of fewer than `min_cell` rows is not shown there.
        """

    def results(
        self,
        totals: Floats,
        min_cell: int = 0,
        noise_variance: float = 0.0,
        level: float | None = None,
        bits: int = ...,
    ) -> list[StratumResult]:
        """Return the results of the last round's totals."""


def run_rounds(
    first: Sums, total_of: Callable[[Sums], Floats], min_cell: int = 0
) -> list[tuple[Sums, Floats]]:
    """Return the sums and the totals of each round; `total_of` gives the totals of one."""
    rounds: list[tuple[Sums, Floats]] = []
    current: Sums | None = first
    while current is not None:
        totals = total_of(current)
        rounds.append((current, totals))
        current = current.following(totals, min_cell)
    return rounds
