"""Errors of protocols whose averaging has momentum: derived, not fitted.

They are `tracking` and `carried-means`.

Estimates of nodes are a sum over modes of the network, and modes differ in one number only: their
rate κ, the share of a mode that averaging removes while every node takes part in one exchange. In
each mode six numbers follow a linear equation. This module computes their covariances, from the
first exchange on:

- *estimate*, with momentum applied, and *debt*, what is still owed to it
  (`gosta.protocols.tracking.average`). An exchange moves the estimate by a share κ of itself and
  owes it a multiple of that, which is paid out over a quarter of all exchanges.
  The two make a damped oscillation whose frequency is √(MOMENTUM_SHARE · κ) and whose damping is
  5/(2 · exchanges): a mode shrinks like (√κ · exchanges)^(−5/2), where plain averaging needs 1/κ
  exchanges.
- *counted*, what estimates have received of a row's mean; *mean*, the mean of a row with the rows
  it has met; *visitor*, the deviation of the rows that are met from the average row, which visitors
  carry along; *row*, the deviation of the row itself.

Exchanges are random, so two kinds of noise are added: averaging takes energy out of two nodes and
spreads it over all modes, and what a node does at its exchanges happens more or less often. A
remainder of the kernel is met again where a visitor returns; only what returns sooner than a mode
responds matters to it. Modes lose energy to each other, so that a step is solved for all of them at
once.

Approximations: rows are placed at random; all nodes have the same number of exchanges, the harmonic
mean over nodes; edges have one share in the exchanges of a node, the mean over edges; in the mean
over modes, hubs do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gosta.estimation.carried import REMEMBERED, rate_of, weight_of
from gosta.protocols.protocol import COPIES
from gosta.protocols.tracking import MOMENTUM_SHARE, RAMP_EXCHANGES, SMOOTH, payout_exchanges
from gosta.runtime.arrays import Floats
from gosta.theory.spectrum import scipy_module
from gosta.theory.summaries import ErrorMoments, KernelMoments, NetworkSummary

ESTIMATE, DEBT, COUNTED, MEAN, VISITOR, ROW = range(6)
SIZE = 6
# The distinct entries of a covariance matrix.
PAIRS = [(i, j) for i in range(SIZE) for j in range(i, SIZE)]
AT = {pair: place for place, pair in enumerate(PAIRS)}
DUPLICATE = (
    np.array(
        [[(i, j) in ((p, q), (q, p)) for p, q in PAIRS] for i in range(SIZE) for j in range(SIZE)]
    )
    * 1.0
)
ELIMINATE = (DUPLICATE / DUPLICATE.sum(axis=0)).T
FIRST_STEP = 0.5  # of the integration, in exchanges of a node
GROWTH = 0.06  # later steps of the integration, relative to the exchanges of a node so far
GAMMA = 1 - 1 / math.sqrt(2)  # of the two-stage Runge-Kutta rule: stable however fast a mode is
# Exchanges of a node after which a visitor is back.
LAGS = np.append(0.0, np.geomspace(0.05, 1e6, 160))


class Growth(NamedTuple):
    """How the means that are averaged grow, per exchange of a node."""

    start: float  # share of all rows that are counted for the first time, where that is all at once
    follow: float  # rate at which what is counted follows the mean
    renew: float  # rate at which a mean forgets what it was
    compared: float  # rows that are met in one exchange
    missing: float  # share of the mean that is not counted yet, where it grows from 0


class Source(NamedTuple):
    """A protocol's way to the means that are averaged."""

    growth: Callable[[NetworkSummary, float], Growth]
    copies: int  # visitors of each row that carry its mean; 1 where the mean stays at its node
    # Variance of how often a row is met, relative to independent visits, where nodes compare many.
    evenness: float


def missing_of_tracking(exchanges: Floats) -> Floats:
    """Return what a smoothed mean lacks of its value, as a share.

    It is the mean of 6/((k + 2)(k + 3)) over numbers of exchanges k.

    Each exchange multiplies the rest by 1 − 2/(k + 3); numbers of exchanges are Poisson.
    """
    return 6 * (_moment(1, exchanges) - _moment(2, exchanges))


def _moment(k: int, t: Floats) -> Floats:
    """Return the integral of y^k exp(−ty) over y from 0 to 1."""
    t = np.maximum(t, 1e-6)
    integral: Floats = math.factorial(k) * scipy_module("special").gammainc(k + 1, t) / t ** (k + 1)
    return integral


def tracking_growth(_network: NetworkSummary, t: float) -> Growth:
    """Return the growth of the mean that a node keeps: a running mean over visitors, smoothed."""
    at = np.array(t)
    missing = float(missing_of_tracking(at))
    leaves = 6 * float(_moment(2, at) - _moment(3, at))
    return Growth(0.0, max(SMOOTH, leaves / missing), 1 / (t + 1), 1.0, missing)


def carried_growth(network: NetworkSummary, t: float) -> Growth:
    """Return the growth of the means that visitors carry.

    A visitor arrives somewhere in every second exchange.

    The first visitor of a row leaves home in the first exchange, the second in the second one; each
    is then counted at once. A node remembers a row more with every exchange, up to `REMEMBERED`;
    visitors meet nodes by their pace.
    """
    paces, weights = network.paces, network.paces * network.pace_shares
    now = t * network.rarity
    full = (REMEMBERED - 1) / paces  # when a node remembers as many rows as it can
    rows = float(weights @ np.minimum(REMEMBERED, 1 + paces * now))
    until = np.minimum(now, full)
    compared = (
        float(weights @ (until + paces * until**2 / 2 + REMEMBERED * (now - until))) / 2 + rows
    )
    pace = network.rarity / 2
    start = math.exp(-t) * (1 + t) / 2
    return Growth(
        start, pace * rate_of(rows, compared), pace * weight_of(rows, compared), rows, 0.0
    )


TRACKING = Source(tracking_growth, 1, 0.0)
# A visitor waits for two exchanges at each place, so its number of visits varies half as much as a
# Poisson number.
CARRIED = Source(carried_growth, COPIES, 0.5)


class MomentumErrors:
    """Predicted errors over time, integrated as far as they are asked for.

    `source` is None where nodes average moments of their own rows and never meet others.
    """

    def __init__(
        self, source: Source | None, network: NetworkSummary, kernel: KernelMoments
    ) -> None:
        self.source, self.network, self.kernel = source, network, kernel
        rates, counts = network.merged()
        # Whether there is a single slowest mode, along which the rows are known.
        self.is_single = counts[0] < 1.5
        # The last mode is the mean over all nodes, whose share is 0: it takes no part in means over
        # modes.
        self.rates = np.append(np.minimum(rates * network.n / 4 * network.rarity, 1.0), 0.0)
        self.shares = np.append(counts / network.n, 0.0)
        self.copies = 1 if source is None else source.copies
        # Visitors move equally often whatever the graph, so often in an exchange of a typical node;
        # nodes do not.
        self.moves = network.rarity if self.copies > 1 else 1.0
        # Where means travel, a row and a row that is remembered both move.
        returns = np.exp(-2.0 * self.copies * np.outer(LAGS, self.rates)) @ self.shares - np.exp(
            -self.copies * LAGS
        )
        # Probability that rows meet again, less the probability for two random rows.
        self.returns = np.maximum(0.0, returns)
        self.covariances = self._first_covariances()
        # By time: the variance over all modes, over the slowest of them, and that of the mean over
        # all nodes.
        self.times: list[float] = []
        self.modes: list[float] = []
        self.slowest: list[float] = []
        self.means: list[float] = []
        self._note(0.0)

    def _first_covariances(self) -> Floats:
        kernel, covariances = self.kernel, np.zeros((len(self.rates), len(PAIRS)))
        if self.source is None:
            # A row is in both places of the kernel.
            covariances[:-1, AT[ESTIMATE, ESTIMATE]] = 4 * kernel.rows
        else:
            for pair in [
                (i, j) for i in (MEAN, VISITOR, ROW) for j in (MEAN, VISITOR, ROW) if i <= j
            ]:
                # The first visitor is the row of a neighbour, or of the node itself.
                covariances[:-1, AT[pair]] = kernel.rows
            weights, met = (
                self.network.paces * self.network.pace_shares,
                np.ones_like(self.network.paces),
            )
            if self.source is CARRIED:
                # Rows that a node remembers in its first exchange.
                met = np.clip(self.network.paces, 1.0, REMEMBERED)
            covariances[:, AT[MEAN, MEAN]] += (
                kernel.pairs * float(weights @ (1 / met)) / self.copies
            )
        if self.is_single:
            covariances[0] *= kernel.slowest
        return covariances

    def at(self, t: float) -> ErrorMoments:
        """Return the moments of errors after `t` exchanges of all nodes together."""
        exchanges = 2 * t / self.network.n
        while self.times[-1] * self.network.rarity < exchanges:
            self._step(max(FIRST_STEP, GROWTH * self.times[-1]))
        times = np.array(self.times) * self.network.rarity
        modes, slowest, mean = (
            np.interp(exchanges, times, values) for values in (self.modes, self.slowest, self.means)
        )
        passed = exchanges * self.network.paces
        lacking, bias, scale = 0.0, 0.0, 1.0
        if self.source is CARRIED:
            # A node has an estimate unless it had no exchange, or one with a node that had none
            # before.
            new = self.network.pace_shares @ -np.expm1(-passed)
            lacking = float(
                self.network.pace_shares @ (np.exp(-passed) * (1 + self.network.paces * new))
            )
            scale = 1 / (1 - min(lacking, 0.9)) ** 2
        elif self.source is TRACKING:
            # The last change is not in the estimate yet. In a ratio the bias cancels, but noise
            # counts for more.
            missing = float(
                self.network.pace_shares @ missing_of_tracking(np.maximum(passed - 1, 0.0))
            )
            bias, scale = (
                self.kernel.start * missing,
                1 / (1 - (1 + self.kernel.start) * min(missing, 0.9)) ** 2,
            )
        # Along the slowest mode, nodes of one half are off by about as much as those of the other.
        bias = math.copysign(math.sqrt(bias**2 + scale * slowest), bias)
        return ErrorMoments(bias, 0.0, float(scale * (modes - slowest) + mean), lacking)

    def _note(self, time: float) -> None:
        """Keep the variances of estimates, of which averaging removes a share κ of each mode."""
        energy = np.maximum(self.covariances[:, AT[ESTIMATE, ESTIMATE]], 0.0)
        of_modes = self.shares * (1 - self.rates) * energy
        kept = (
            time,
            float(of_modes.sum()),
            float(of_modes[0]) if self.is_single else 0.0,
            energy[-1] / self.network.n,
        )
        for column, value in zip(
            (self.times, self.modes, self.slowest, self.means), kept, strict=True
        ):
            column.append(value)

    def _step(self, length: float) -> None:
        """Advance by a number of exchanges of a node: one step of an implicit Runge-Kutta rule."""
        t = self.times[-1] + length / 2
        alone_matrix, coupling, by_rate, noise = self._equation(t)
        rates, shares = self.rates[:, None], self.shares
        size = len(PAIRS)
        h = GAMMA * length
        inverse: Floats = np.asarray(
            np.linalg.inv(np.eye(size) - h * alone_matrix), dtype=np.float64
        )
        means = [np.tensordot(shares * self.rates**k, inverse, axes=1) for k in range(3)]
        shared = np.eye(2 * size) - h * np.block(
            [[means[0] @ coupling, means[1] @ by_rate], [means[1] @ coupling, means[2] @ by_rate]]
        )

        def slope(state: Floats) -> Floats:
            both = coupling @ (shares @ state) + rates * (by_rate @ ((shares * self.rates) @ state))
            return np.asarray(_times(alone_matrix, state) + both + noise)

        def solve(right: Floats) -> Floats:
            alone = _times(inverse, right)
            both = np.linalg.solve(
                shared, np.concatenate([shares @ alone, (shares * self.rates) @ alone])
            )
            return _times(
                inverse, right + h * (coupling @ both[:size] + rates * (by_rate @ both[size:]))
            )

        first = solve(slope(self.covariances))
        second = solve(slope(self.covariances + (1 - 2 * GAMMA) * length * first))
        self.covariances = self.covariances + length * (first + second) / 2
        self._note(self.times[-1] + length)

    def _equation(self, t: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return four terms that change covariances.

        They are what a mode itself adds, what the mean over modes adds, what that mean weighted by
        rates adds, and noise.
        """
        network, source = self.network, self.source
        unit = np.eye(SIZE)
        payout = 1 / payout_exchanges(t + 1)
        gain = (
            MOMENTUM_SHARE
            * network.push
            * min(1.0, (t + 1) / RAMP_EXCHANGES)
            * payout_exchanges(t + 1)
        )
        moved = np.zeros((SIZE, SIZE))  # by averaging, times the difference of two estimates
        moved[ESTIMATE, ESTIMATE], moved[DEBT, ESTIMATE] = 1 + gain * payout, (1 - payout) * gain
        changed = np.zeros((SIZE, SIZE))  # at a node, in each of its exchanges
        changed[ESTIMATE, DEBT], changed[DEBT, DEBT] = payout, -payout
        drift, fade = np.zeros((SIZE, SIZE)), -moved
        coupling, noise = _both(changed, changed), np.zeros((len(self.rates), len(PAIRS)))
        by_rate = np.zeros_like(coupling)
        if source is not None:
            growth = source.growth(network, t)
            grown = _grown(growth, self.copies)
            changed = changed + grown
            coupling = _both(changed, changed) + (self.copies / self.moves - 1) * _both(
                grown, grown
            )
            drift[ESTIMATE, ROW] = growth.start
            fade[VISITOR, VISITOR] = -2.0
            if self.copies > 1:
                travelling = np.diag([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])
                fade -= 2 * travelling
                by_rate += 4 / (self.shares @ self.rates) * _both(travelling, travelling)
            noise = self._noise(growth, t)
        by_rate += (
            2
            / network.rarity
            * (_both(moved, moved) - _both(moved, changed) - _both(changed, moved))
        )
        changed = changed + drift
        alone = _both(changed, unit) + _both(unit, changed)
        return (
            alone + self.rates[:, None, None] * (_both(fade, unit) + _both(unit, fade)),
            coupling,
            by_rate,
            noise,
        )

    def _noise(self, growth: Growth, t: float) -> Floats:
        """Return the noise of rows that are met, by mode."""
        kernel, rates, source = self.kernel, self.rates, self.source
        assert source is not None
        noise = np.zeros((len(rates), len(PAIRS)))
        shared = np.zeros(SIZE)
        shared[[ESTIMATE, COUNTED]] = kernel.start * growth.follow * growth.missing
        fresh = np.zeros(SIZE)
        fresh[MEAN], fresh[[ESTIMATE, COUNTED]] = growth.renew, growth.follow * growth.renew
        # A remainder counts again if it is met again while a mode responds: within 1/κ exchanges,
        # or 0.4/ω of a mode of frequency ω, since up to there 1/√s has the integral that cos(ωs)/√s
        # has in all. One of many counts little.
        often = np.minimum(1 / growth.compared, self.returns)
        sums = np.append(0.0, np.cumsum((often[1:] + often[:-1]) / 2 * np.diff(LAGS)))
        response = 1 / (rates + 2.5 * np.sqrt(MOMENTUM_SHARE * self.network.push * rates) + 1e-12)
        remainder = kernel.pairs * (
            1 / growth.compared + 2 * np.interp(np.minimum(t, response), LAGS, sums)
        )
        # Where visitors mix at once, their noise is three times in drift and coupling together; it
        # should be once. The mean of those that are remembered varies less than one of them.
        spread = _window_variance(rates, growth.compared)
        visitors = -2 * kernel.rows * spread
        visitors[-1] = source.evenness * kernel.rows
        noise += ((remainder + visitors) / self.moves)[:, None] * _square(fresh)
        noise[:, AT[VISITOR, VISITOR]] += 4 * rates * kernel.rows * spread
        return noise + _square(shared)


def _grown(growth: Growth, copies: int) -> Floats:
    """Return what an exchange changes of means and of what is counted of them."""
    change = np.zeros((SIZE, SIZE))
    change[MEAN, MEAN], change[MEAN, VISITOR] = -growth.renew, growth.renew
    change[COUNTED] = growth.follow * change[MEAN]
    change[COUNTED, MEAN] += growth.follow
    change[COUNTED, COUNTED] -= growth.follow
    if copies == 1:
        change[COUNTED, ROW] += growth.follow
    change[ESTIMATE] = change[COUNTED]
    return change


def _window_variance(rates: Floats, width: float) -> Floats:
    """Return the variance of the mean of `width` successive visitors, relative to that of one."""
    gap = np.minimum(np.maximum(2 * rates, 1e-3 / width), 1.0)
    keep = 1 - gap
    return np.asarray((width * (1 + keep) / gap - 2 * keep * (1 - keep**width) / gap**2) / width**2)


def _both(left: Floats, right: Floats) -> Floats:
    """Return the map P → left · P · rightᵀ, made symmetric, on the distinct entries of P."""
    return np.asarray(ELIMINATE @ np.kron(left, right) @ DUPLICATE)


def _square(vector: Floats) -> Floats:
    """Return the distinct entries of a vector times itself."""
    return np.asarray(ELIMINATE @ np.outer(vector, vector).ravel())


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """Multiply the matrix and the vector of each mode."""
    return np.asarray(np.matmul(matrices, vectors[:, :, None])[:, :, 0])
