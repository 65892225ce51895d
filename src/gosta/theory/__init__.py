"""Theory: the speed of a network and the expected errors of a protocol, without running anything.

Predictions of a run's error are for the default protocol of simulations unless another one is
named; expectations and bounds are those of the paper's protocols and require a name.
"""

from gosta.theory.bottleneck import Bottleneck as Bottleneck
from gosta.theory.bottleneck import bottleneck as bottleneck
from gosta.theory.dual_averaging import DualAveragingBound as DualAveragingBound
from gosta.theory.dual_averaging import dual_averaging_bound as dual_averaging_bound
from gosta.theory.expectations import PhantomNetwork as PhantomNetwork
from gosta.theory.expectations import bound as bound
from gosta.theory.expectations import expectation as expectation
from gosta.theory.prediction import Prediction as Prediction
from gosta.theory.prediction import predict as predict
from gosta.theory.spectrum import mixing_time as mixing_time
from gosta.theory.spectrum import spectral_gap as spectral_gap
