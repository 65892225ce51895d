"""Theory: the speed of a network and the expected errors of a protocol, without running anything.

There is theory for averaging, U1, U2, GoSta-sync and GoSta-async, but none for tracking, the default protocol of
simulations: functions that need a protocol require its name.
"""

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
