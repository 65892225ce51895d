"""Logistic regression, and the restricted cubic spline that it is fitted with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gosta.errors import NumericalError
from gosta.runtime.arrays import Floats

# Of Newton's method: ten are usual. Of separated rows, each moves the least logit by about 1, and
# after more steps than these all risks would be 0 or 1 but for rounding.
MOST_STEPS = 30
MOST_HALVINGS = 30
CONVERGED = 1e-9  # change of a logit by a step; the step after it would be of its square
LOSS_ROUNDING = 1e-13  # relative, of sums over rows
MOST_LEVERAGE = 0.99  # of a row; its influence is divided by what is left of 1
NO_FIT = "there is no best fit: risks separate the classes, or there are too few rows"


class Fit(NamedTuple):
    """The fit of a logistic regression."""

    coefficients: Floats
    information: Floats  # the second derivative of the negative log likelihood


def expit(logits: Floats) -> Floats:
    """Return the risks of logits."""
    return np.asarray(1 / (1 + np.exp(-logits)))


def logit(risks: Floats, floor: float) -> Floats:
    """Return the logits of risks; those nearer than `floor` to 0 or 1 are moved there first."""
    moved = np.clip(risks, floor, 1 - floor)
    return np.asarray(np.log(moved) - np.log1p(-moved))


def fit(design: Floats, target: Floats, weights: Floats, offset: Floats | float = 0.0) -> Fit:
    """Return the coefficients that maximise the likelihood, by Newton's method.

    `target` is the weighted sum of the rows of the design, n × k, that are positive.
    """
    coefficients, fitted = np.zeros(design.shape[1]), offset + np.zeros(len(design))
    for _ in range(MOST_STEPS):
        risks = expit(fitted)
        information = (design.T * (weights * risks * expit(-fitted))) @ design
        try:
            np.linalg.cholesky(information)  # an error unless it is positive
            step = np.linalg.solve(information, target - design.T @ (weights * risks))
        except np.linalg.LinAlgError:
            break
        is_last = np.abs(design @ step).max() <= CONVERGED
        loss = _loss(fitted, coefficients, target, weights)
        for _ in range(MOST_HALVINGS):
            moved = _loss(fitted + design @ step, coefficients + step, target, weights)
            if moved <= loss + LOSS_ROUNDING * abs(loss):
                break
            step = step / 2
        else:
            break
        coefficients, fitted = coefficients + step, fitted + design @ step
        if is_last:
            return Fit(coefficients, information)
    raise NumericalError(NO_FIT)


def _loss(fitted: Floats, coefficients: Floats, target: Floats, weights: Floats) -> float:
    """Return the negative log likelihood, but for a constant."""
    return float(weights @ np.logaddexp(0.0, fitted) - coefficients @ target)


def leverages(design: Floats, weights: Floats, fitted: Floats, found: Fit) -> Floats:
    """Return the share of each row in its own fitted logit, which is less than 1."""
    inverse = np.linalg.inv(found.information)
    own = np.einsum("ij,jk,ik->i", design, inverse, design)
    shares = weights * expit(fitted) * expit(-fitted) * own
    return np.asarray(np.clip(shares, 0.0, MOST_LEVERAGE))


def spline(z: Floats, knots: Floats) -> Floats:
    """Return 1, z and the restricted cubic spline terms of z: n × knots.

    The terms are Harrell's: cubic between knots, linear beyond the first and the last one.
    """
    columns = [np.ones_like(z), z]
    if len(knots) > 2:
        last, before = knots[-1], knots[-2]
        for knot in knots[:-2]:
            cubes = [np.maximum(z - at, 0.0) ** 3 for at in (knot, before, last)]
            columns.append(
                (
                    cubes[0]
                    - cubes[1] * (last - knot) / (last - before)
                    + cubes[2] * (before - knot) / (last - before)
                )
                / (last - knots[0]) ** 2
            )
    return np.column_stack(columns)
