"""Errors according to theory at the checkpoints of a run, to be shown beside the measured ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from gosta.estimation.estimand import scale_of
from gosta.estimation.setting import Setting
from gosta.runtime.arrays import Floats, Integers
from gosta.theory.expectations import BOUNDS, EXPECTATIONS, bounds, expected_estimates
from gosta.theory.prediction import has_prediction, predicted_errors

MAX_EXPECTED_NODES = 4000  # eigenvectors of more nodes take minutes

# of neighbours' row means: from here on a sentence says that they are alike
NOTABLE_CORRELATION = 0.2
PREDICTED, EXPECTED, BOUND = "predicted", "expectation", "bound"


def unknown_kinds(curves: Mapping[str, Floats], protocol: str) -> str:
    """Return a sentence about the kinds of errors that theory does not know for a protocol; empty if there are none."""
    lacking = [kind for kind in (PREDICTED, EXPECTED, BOUND) if kind not in curves]
    return f"{' and '.join(lacking)}: not known for {protocol}" if lacking else ""


def similar_rows(curves: Collection[str], correlation: float) -> str:
    """Return a sentence if neighbours' row means correlate so much that a prediction is too low; else an empty text.

    An expectation knows where rows are, and predictions use it.
    """
    if correlation <= NOTABLE_CORRELATION or PREDICTED not in curves or EXPECTED in curves:
        return ""
    alike = f"neighbours have similar rows (their row means correlate by {correlation:.2f})"
    return f"{alike}: the prediction assumes rows placed at random, and is too low"


def error_curves(setting: Setting, times: Integers, predicted: bool = True) -> dict[str, Floats]:
    """Return errors of estimates by kind, relative where the exact value is not 0.

    ``predicted`` is the error of a single run, from where most nodes have had an exchange; ``expectation`` the mean
    over nodes of the error of expected estimates, approximate for some protocols; ``bound`` the theorem's bound on the
    root mean square over nodes of that error. A kind that has no formula for the protocol, or would take minutes, is
    left out. There are none for networks with faults and for graphs that change.
    """
    if setting.faults or setting.changing is not None:
        return {}
    name, estimand, target = setting.protocol.name, setting.estimand, setting.target
    size = scale_of(target) or 1.0
    curves, expected = {}, None
    if name in EXPECTATIONS and estimand.n <= MAX_EXPECTED_NODES:
        errors = (expected_estimates(setting, times) - target[:, None]) / size
        expected = np.linalg.norm(errors, axis=2)
        curves[EXPECTED] = expected.mean(axis=0)
    if predicted and has_prediction(setting) and target.any():
        started = 2 * times * setting.protocol.draws >= estimand.n
        curves = {
            PREDICTED: np.where(started, predicted_errors(setting, times, expected), np.nan),
            **curves,
        }
    if name in BOUNDS:
        curves[BOUND] = bounds(setting, times) / np.sqrt(estimand.n) / size
    return curves
