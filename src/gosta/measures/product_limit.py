"""Kaplan and Meier's curve of times that can be censored, and how each row moves it.

With the roles of events and censored rows exchanged, it is the curve of the time until censoring,
by which rows are weighted whose event is rarely seen (inverse probability of censoring). At one
time, events come first, then censored rows.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from gosta.runtime.arrays import Floats, Integers


class ProductLimit:
    """The curve of rows with a time, 1 for an event then or 0, and weights."""

    def __init__(self, x: Floats, weights: Floats, of_censoring: bool = False) -> None:
        self.ends, place = np.unique(x[:, 0], return_inverse=True)
        self.place, self.weights = place.reshape(-1), weights
        self.is_event, count = x[:, 1] > 0, len(self.ends)
        events, censored = (
            np.bincount(self.place, weights * rows, count)
            for rows in (self.is_event, ~self.is_event)
        )
        leaving = events + censored
        self.at_risk = np.cumsum(leaving[::-1])[::-1]
        self.is_end = self.is_event ^ of_censoring  # of which rows the curve is about
        self.ended = censored if of_censoring else events
        # Rows among which one ends at a time, and those of them that stay.
        self.risk = self.at_risk - events if of_censoring else self.at_risk
        self.stay = self.risk - self.ended
        self.has_ended, self.is_of_censoring = self.ended != 0, of_censoring
        factors = np.divide(self.stay, self.risk, out=np.ones(count), where=self.has_ended)
        self.curve = np.concatenate([[1.0], np.cumprod(factors)])

    @classmethod
    def of_censoring(cls, x: Floats, weights: Floats) -> Self:
        """Return the curve of the time until censoring."""
        return cls(x, weights, True)

    def steps(self, times: Floats) -> Integers:
        """Return how many different times of rows lie before each time."""
        return np.searchsorted(self.ends, times, side="left")

    def before(self, times: Floats) -> Floats:
        """Return the share that stays until each time, without what ends at that time."""
        return np.asarray(self.curve[self.steps(times)])

    def inverse_before(self, times: Floats) -> Floats:
        """Return 1 / the share that stays until each time; 0 where nothing stays."""
        share = self.before(times)
        return np.divide(1.0, share, out=np.zeros(len(share)), where=share > 0)

    def log_slopes(self, times: Floats, loads: Floats) -> Floats:
        """Return for each row the derivative by its weight of Σ load · log(share before time)."""
        count = len(self.ends)
        sums = np.bincount(self.steps(times), loads, count + 1)
        loaded = np.cumsum(sums[::-1])[::-1][1:]  # loads of times after each time of rows
        risk, stay = (
            np.divide(loaded, rows, out=np.zeros(count), where=self.has_ended & (rows > 0))
            for rows in (self.risk, self.stay)
        )
        passed = np.concatenate([[0.0], np.cumsum(stay - risk)])[self.place]
        staying = 0.0 if self.is_of_censoring else (stay - risk)[self.place]
        return np.asarray(passed + np.where(self.is_end, -risk[self.place], staying))

    def log_variances(self, times: Floats) -> Floats:
        """Return the variances of the logarithms of shares before times.

        Σ w² (∂ log share / ∂w)² over rows; with equal weights that is Greenwood's formula.
        """
        count, squares = len(self.ends), self.weights**2
        risk, stay = (
            np.divide(1.0, rows, out=np.zeros(count), where=self.has_ended & (rows > 0))
            for rows in (self.risk, self.stay)
        )
        passed = np.concatenate([[0.0], np.cumsum(stay - risk)])
        own = passed[self.place] + np.where(
            self.is_end, -risk[self.place], (stay - risk)[self.place]
        )
        left = np.bincount(self.place, squares * own**2, count)
        steps = self.steps(times)
        gone = np.concatenate([[0.0], np.cumsum(left)])[steps]
        there = np.bincount(self.place, squares, count)
        waiting = np.concatenate([np.cumsum(there[::-1])[::-1], [0.0]])[steps]
        return np.asarray(gone + passed[steps] ** 2 * waiting)
