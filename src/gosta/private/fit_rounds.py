"""The sums of a fit's first round, with the noise that settings declare."""

from __future__ import annotations

from gosta.models import Model
from gosta.models.layout import FitLayout, check_size
from gosta.models.noisy import first_noisy
from gosta.private.accounting import gaussian_mu
from gosta.private.settings import PrivateSettings


def first_round(model: Model, settings: PrivateSettings) -> FitLayout:
    """Return the sums of the first round of a fit."""
    if settings.epsilon is None:
        first = FitLayout.first(model)
    else:
        mu = gaussian_mu(settings.epsilon, settings.delta) if settings.delta else 0.0
        first = first_noisy(model, settings.epsilon, settings.delta, mu)
    check_size(first)
    return first
