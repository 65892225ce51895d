"""Statistics as functions of sums over rows.

So sums can be computed in place of exchanging rows.

``SKETCHES`` holds all of them by name; importing a family registers its sketches.
"""

from gosta.sketches import (  # noqa: F401, I001  (the order of the listing)
    distribution,
    moments,
    association,
    ranking,
    thresholds,
    calibration_ratios,
    recalibration,
    calibration_bins,
    smooth_calibration,
    survival,
    survival_scores,
    survival_risks,
    table_one,
    two_models,
    random_features,
)
from gosta.sketches.definition import SKETCHES, Axis, Features, Result, Sketch
from gosta.sketches.layout import Layout
from gosta.sketches.results import StratumResult
from gosta.sketches.layout_builder import Bins, check_columns, make_layout

__all__ = [
    "SKETCHES",
    "Axis",
    "Bins",
    "Features",
    "Layout",
    "Result",
    "Sketch",
    "StratumResult",
    "check_columns",
    "make_layout",
]
