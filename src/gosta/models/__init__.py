"""Regression models: coefficients that follow from sums over rows, round by round.

``MODELS`` holds all of them by name; importing a family registers its models. Estimators with
scikit-learn's interface are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gosta.models import cox, ranking, regression, validation  # noqa: F401
from gosta.models.definition import MODELS
from gosta.models.definition import Model as Model
from gosta.models.definition import State as State
from gosta.models.definition import find_model as find_model
from gosta.models.definition import make_model as make_model
from gosta.models.design import Design, make_design
from gosta.models.fit import Fit
from gosta.models.saving import load, save
from gosta.runtime.extras import require

if TYPE_CHECKING:
    from gosta.models.estimators import GostaAUCRanker as GostaAUCRanker
    from gosta.models.estimators import GostaClassifier as GostaClassifier
    from gosta.models.estimators import GostaCox as GostaCox
    from gosta.models.estimators import GostaPoissonRegressor as GostaPoissonRegressor
    from gosta.models.estimators import GostaRegressor as GostaRegressor

_ESTIMATORS = [
    "GostaAUCRanker",
    "GostaClassifier",
    "GostaCox",
    "GostaPoissonRegressor",
    "GostaRegressor",
]
__all__ = ["MODELS", "Design", "Fit", "load", "make_design", "save", *_ESTIMATORS]


def __getattr__(name: str) -> object:
    if name not in _ESTIMATORS:
        raise AttributeError(f"module 'gosta.models' has no attribute {name!r}")
    require("sklearn", "data", "an estimator with scikit-learn's interface")
    from gosta.models import estimators

    return getattr(estimators, name)
