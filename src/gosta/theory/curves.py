"""All that theory says about the error of a run, beside which a measured one can be drawn."""

from __future__ import annotations

import numpy as np

from gosta.estimation.problem import Setting, size_of
from gosta.runtime.arrays import Floats
from gosta.theory import bounds, expectations, prediction
from gosta.theory.arguments import Ticks

MOST_EXPECTED = 4000  # nodes; eigenvectors of more take minutes

PREDICTED, EXPECTED, BOUND = "predicted", "expectation", "bound"


def curves(setting: Setting, ticks: Ticks, predicted: bool = True) -> dict[str, Floats]:
    """Errors of estimates, relative where the exact value is not 0, as traces have them.

    ``predicted`` is the error of a single run once nodes have met at all; ``expectation`` the mean over nodes of the
    error of expected estimates, approximate for some protocols; ``bound`` the theorem's, for the root mean square over
    nodes of the same. What is not known for a protocol, or takes too long, is left out.
    """
    name, problem = setting.protocol.name, setting.problem
    target = problem.targets(setting.protocol)
    size = size_of(target) or 1.0
    found, expected = {}, None
    if name in expectations.TABLE and problem.n <= MOST_EXPECTED:
        errors = (expectations.expected_estimates(setting, ticks) - target[:, None]) / size
        expected = np.linalg.norm(errors, axis=2)
        found[EXPECTED] = expected.mean(axis=0)
    if predicted and name in prediction.TABLE and target.any():
        met = 2 * ticks * setting.protocol.draws >= problem.n
        found = {PREDICTED: np.where(met, prediction.predicted_errors(setting, ticks, expected), np.nan), **found}
    if name in bounds.TABLE:
        found[BOUND] = bounds.bounds(setting, ticks) / np.sqrt(problem.n) / size
    return found
