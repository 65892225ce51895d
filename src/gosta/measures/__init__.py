"""Statistics of rows that are no means over pairs: curves, calibration, usefulness, survival.

``MEASURES`` holds all of them by name; importing a family registers its measures.
"""

from gosta.measures import (  # noqa: F401  (the order of the listing)
    calibration,
    classification,
    distribution,
    survival,
    survival_calibration,
    table_one,
    thresholds,
    two_models,
)
from gosta.measures.definition import MEASURES, Measure, Measured, measure

__all__ = ["MEASURES", "Measure", "Measured", "measure"]
