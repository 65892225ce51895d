"""The sums by which fits are validated: those of statistics of predictions, in bins."""

from __future__ import annotations

from gosta.models.definition import VALIDATION, Model, State
from gosta.sketches.layout import Layout
from gosta.sketches.layout_builder import Bins, make_layout

RISK_BINS = 128
SCORE_BINS = TIME_BINS = 48  # of a table of both


def class_layout(model: Model, state: State) -> Layout:  # noqa: ARG001
    """Return the sums for predictions from 0 to 1 of two classes."""
    settings = Bins(bins=RISK_BINS, ranges={"prediction": (0.0, 1.0)})
    return make_layout(
        model.validation, settings, score="prediction", label="outcome", classes=(0.0, 1.0)
    )


def time_layout(model: Model, state: State) -> Layout:
    """Return the sums for scores from 0 to 1, and times by their place among the declared ones."""
    edges = model.time_edges(state, TIME_BINS)
    settings = Bins(
        bins=SCORE_BINS,
        ranges={"prediction": (0.0, 1.0), "time": (-1.0, edges[-1] + 1.0)},
        edges={"time": edges},
    )
    return make_layout(model.validation, settings, score="prediction", time="time", event="event")


VALIDATION.update(logistic=class_layout, auc=class_layout, cox=time_layout)
