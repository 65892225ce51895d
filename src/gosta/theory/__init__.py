"""Theory: the speed of a network and the expected errors of a protocol, without running anything.

There is theory for averaging, U1, U2, GoSta-sync and GoSta-async, but none for the default protocol of simulations:
functions that need a protocol require its name.
"""

from gosta.theory.bottleneck import Bottleneck as Bottleneck
from gosta.theory.bottleneck import bottleneck as bottleneck
from gosta.theory.bounds import bound as bound
from gosta.theory.expectations import expectation as expectation
from gosta.theory.phantom import PhantomNetwork as PhantomNetwork
from gosta.theory.prediction import Prediction as Prediction
from gosta.theory.prediction import predict as predict
from gosta.theory.spectrum import mixing_time as mixing_time
from gosta.theory.spectrum import spectral_gap as spectral_gap
