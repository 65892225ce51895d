"""Mean, standard deviation and median of the errors of nodes, in compiled code without the interpreter lock."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

from gosta.estimation.estimand import scale_of
from gosta.runtime import compiler
from gosta.runtime.arrays import Floats


class ErrorSummary:
    """Summarises the errors of values against a target, 1 × values, or nodes × values.

    `places` are those of the values of each statistic; of several, the largest error of a node counts.
    """

    def __init__(self, target: Floats, places: Sequence[slice]) -> None:
        self._target = np.ascontiguousarray(target)
        self._starts = np.array([place.start or 0 for place in places])
        self._scales = np.array([scale_of(target[:, place]) or 1.0 for place in places])
        text = Path(__file__).with_name("error_loop.py").read_text(encoding="utf-8")
        compiler.specialise(text, {}, self._trial)

    def _trial(self, module: ModuleType) -> None:
        self._module = module
        self.of(np.zeros((0, *self._target.shape)))

    def of(self, values: Floats) -> Floats:
        """Return mean, standard deviation and median over nodes of the errors of values, ... × nodes × values."""
        out = np.empty((*values.shape[:-2], 3))
        flat = np.ascontiguousarray(values).reshape(-1, *values.shape[-2:])
        self._module.summarise(flat, self._target, self._starts, self._scales, out.reshape(-1, 3))
        return out
