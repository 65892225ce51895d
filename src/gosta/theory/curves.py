"""Errors according to theory at the checkpoints of a run, beside the simulated ones."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gosta.estimation.estimand import scale_of
from gosta.estimation.setting import Setting
from gosta.runtime.arrays import Floats, Integers
from gosta.theory.expectations import (
    APPROXIMATE,
    BOUNDS,
    EXPECTATIONS,
    bounds,
    data_terms,
    expected_estimates,
)
from gosta.theory.prediction import has_prediction, neighbour_correlation, predicted_errors
from gosta.theory.spectrum import mixing_time, spectral_gap
from gosta.views import numbers, terminal

MAX_EXPECTED_NODES = 4000  # eigenvectors of more nodes take minutes

# Correlation of neighbours' row means, from which on a sentence says that neighbours are alike.
NOTABLE_CORRELATION = 0.2
# Kinds of errors.
SIMULATED = "simulated"
SPREAD = "spread"
PREDICTED = "predicted"
EXPECTED = "expectation"
BOUND = "bound"
SHOWN_CHECKPOINTS = 7  # of a comparison, in its table


def unknown_kinds(curves: Mapping[str, Floats], protocol: str) -> str:
    """Name the kinds of errors that theory does not know for a protocol; empty if none."""
    lacking = [kind for kind in (PREDICTED, EXPECTED, BOUND) if kind not in curves]
    return f"{' and '.join(lacking)}: not known for {protocol}" if lacking else ""


def similar_rows(curves: Collection[str], correlation: float) -> str:
    """Return a sentence if neighbours' row means correlate so much that a prediction is too low.

    Otherwise it is empty.

    An expectation knows where rows are, and predictions use it.
    """
    if correlation <= NOTABLE_CORRELATION or PREDICTED not in curves or EXPECTED in curves:
        return ""
    alike = f"neighbours have similar rows (their row means correlate by {correlation:.2f})"
    return f"{alike}: the prediction assumes rows placed at random, and is too low"


def error_curves(setting: Setting, times: Integers, predicted: bool = True) -> dict[str, Floats]:
    """Return errors of estimates by kind, relative where the exact value is not 0.

    ``predicted`` is the error of a single run, from where most nodes have had an exchange;
    ``expectation`` the mean over nodes of the error of expected estimates, approximate for some
    protocols; ``bound`` the theorem's bound on the root mean square over nodes of the error of
    expected estimates. A kind that has no formula for the protocol, or would take minutes, is
    left out. There are none for networks with faults, graphs that change and objectives.
    """
    if setting.faults or setting.changing is not None or setting.protocol.minimises:
        return {}
    name, estimand = setting.protocol.name, setting.estimand
    target = setting.target
    size = scale_of(target) or 1.0
    curves, expected = {}, None
    if name in EXPECTATIONS and estimand.n <= MAX_EXPECTED_NODES:
        errors = (expected_estimates(setting, times) - target[:, None]) / size
        expected = np.linalg.norm(errors, axis=2)
        curves[EXPECTED] = expected.mean(axis=0)
    if predicted and has_prediction(setting) and target.any():
        started = 2 * times * setting.protocol.draws >= estimand.n
        curves = {
            PREDICTED: np.where(started, predicted_errors(setting, times, expected), np.nan),
            **curves,
        }
    if name in BOUNDS:
        curves[BOUND] = bounds(setting, times) / np.sqrt(estimand.n) / size
    return curves


@dataclass(frozen=True, eq=False)
class Comparison:
    """Simulated errors of a protocol beside those of theory."""

    setting: Setting
    runs: int
    seed: int
    iterations: Integers  # at the checkpoints
    curves: Mapping[str, Floats]  # errors at the checkpoints, by kind

    @property
    def is_relative(self) -> bool:
        """Whether errors are relative: they are, unless the exact value is 0."""
        return bool(self.setting.target.any())

    @cached_property
    def _properties(self) -> dict[str, Any]:
        """What theory says of the network and the data, as JSON can store it."""
        terms, mixing = data_terms(self.setting), mixing_time(self.setting.graph)
        return {
            "spectral_gap": spectral_gap(self.setting.graph),
            "mixing_time": mixing if math.isfinite(mixing) else None,
            "row_term": math.hypot(*(term.rows for term in terms)),
            "pair_term": math.hypot(*(term.pairs for term in terms)),
            "neighbour_correlation": neighbour_correlation(self.setting),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return settings, properties of network and data, and all curves, for JSON."""
        setting = self.setting
        return {
            "protocol": setting.protocol.name,
            "statistic": setting.estimand.statistic.name,
            "data": setting.estimand.data,
            "graph": setting.graph_name,
            "edges": setting.graph.m,
            "runs": self.runs,
            "seed": self.seed,
            "n": setting.placement.nodes,
            **self._properties,
            "relative": self.is_relative,
            "iterations": self.iterations.tolist(),
            **{
                kind: [float(error) if math.isfinite(error) else None for error in errors]
                for kind, errors in self.curves.items()
            },
        }

    def __str__(self) -> str:
        """Return a table of the errors, and what they are."""
        known = self.to_dict()
        gap, mixing = known["spectral_gap"], known["mixing_time"] or math.inf
        kinds = [k for k in (SIMULATED, SPREAD, PREDICTED, EXPECTED, BOUND) if k in self.curves]
        rows = [("iterations", *kinds)]
        for k in _spread_out(known["iterations"], known["n"]):
            cells = [numbers.error(known[kind][k], self.is_relative) for kind in kinds]
            rows.append((f"{known['iterations'][k]:,}", *cells))
        explained = [f"{kind}: {text}" for kind, text in self._kinds().items() if kind in kinds]
        notes = [
            unknown_kinds(self.curves, known["protocol"]),
            similar_rows(kinds, known["neighbour_correlation"]),
        ]
        return "\n".join(
            [
                f"{known['protocol']} estimates {known['statistic']} of {known['data']} on "
                f"{known['graph']}: {known['n']:,} nodes, {numbers.count(known['edges'], 'edge')}",
                f"  spectral gap  c = {gap:.3g}: differences shrink by e in 1/c = "
                f"{numbers.count(1 / gap)} exchanges; visitors mix in {numbers.count(mixing)}",
                f"  data terms    |h - V| = {known['row_term']:.4g} between row means, "
                f"|H - h| = {known['pair_term']:.4g} within rows",
                terminal.columns(rows, right=range(len(rows[0]))),
                *explained,
                *filter(None, notes),
            ]
        )

    def _kinds(self) -> dict[str, str]:
        """Return what the kinds of errors are, in words."""
        relative = "relative" if self.is_relative else "absolute"
        limits = " (approximate for this protocol)"
        if self.setting.estimand.statistic.final is not None:
            limits = (
                ", of the kernel means; a ratio of means is worse while some nodes have nothing to "
                "divide by"
            )
        elif self.setting.protocol.name not in APPROXIMATE:
            limits = ""
        return {
            SIMULATED: f"mean over nodes of the {relative} error, "
            f"{numbers.count(self.runs, 'run')}; spread: its standard deviation over nodes",
            PREDICTED: "error of a single run, derived from network and kernel alone: nothing is "
            "fitted to simulations",
            EXPECTED: f"error of the mean over infinitely many runs{limits}",
            BOUND: "the paper's theorem on the expectation: a single run can exceed it",
        }


def _spread_out(iterations: list[int], n: int) -> list[int]:
    """Return indices of checkpoints in equal ratios, from the first exchange of most nodes on."""
    start, last = min(n, iterations[-1]), iterations[-1]
    wanted = [
        start * (last / start) ** (k / (SHOWN_CHECKPOINTS - 1)) for k in range(SHOWN_CHECKPOINTS)
    ]
    return sorted(
        {min(range(len(iterations)), key=lambda k: abs(iterations[k] - at)) for at in wanted}
    )
