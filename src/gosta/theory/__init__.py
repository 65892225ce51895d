"""What a network can do, before running anything."""

from gosta.theory.bottleneck import Bottleneck, bottleneck
from gosta.theory.bounds import bound
from gosta.theory.expectations import expectation
from gosta.theory.phantom import PhantomNetwork
from gosta.theory.prediction import Prediction, predict
from gosta.theory.spectrum import mixing_time, spectral_gap

__all__ = [
    "Bottleneck",
    "PhantomNetwork",
    "Prediction",
    "bottleneck",
    "bound",
    "expectation",
    "mixing_time",
    "predict",
    "spectral_gap",
]
