"""Regression models: coefficients that follow from sums over rows, round by round.

``MODELS`` holds all of them by name; importing a family registers its models.
"""

from gosta.models import cox, ranking, regression  # noqa: F401
from gosta.models.definition import MODELS, Model, State, find_model, make_model
from gosta.models.design import Design, make_design
from gosta.models.fit import Fit

__all__ = ["MODELS", "Design", "Fit", "Model", "State", "find_model", "make_design", "make_model"]
