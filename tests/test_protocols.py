"""Protocols of a user's own: what is checked, and what a saved trace remembers of them."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gosta
from gosta.estimation.setting import make_setting
from gosta.protocols import Protocol, gosta_async
from gosta.simulation.engines.compiled.one_row import OneRowEngine


class State(NamedTuple):
    z: float


def own_meet(me: State, you: tuple[float], fresh: float, row_share: float) -> State:
    return State(0.9 * (me.z + row_share * (you[0] - me.z)) + 0.1 * fresh)


def own_protocol(name: str) -> Protocol:
    return Protocol(
        name, "A leaky mean.", "an estimate", State, lambda zero: State(zero), lambda me, tick: (me.z,), own_meet,
        lambda me, tick: me.z,
    )  # fmt: skip


def test_a_wrong_input_of_meet_is_reported_with_the_right_ones() -> None:
    def meet(me: State, you: tuple[float], freshest: float) -> State:  # noqa: ARG001
        return me

    with pytest.raises(gosta.InputError, match=r"'freshest'.*held, fresh, known, change, exchanges, fewer_exchanges"):
        replace(gosta_async.protocol, meet=meet)
    with pytest.raises(gosta.InputError, match=r"init.*zero, held, row_mean, moments"):
        replace(gosta_async.protocol, init=lambda nothing: nothing)


@pytest.mark.parametrize(
    ("visitors", "inputs"), [(0, "fresh"), (1, "known, fresh"), (1, "weight, fresh"), (2, "held, weight"), (3, "fresh")]
)
def test_inputs_that_no_exchange_yields_are_an_error(visitors: int, inputs: str) -> None:
    meet = eval(f"lambda me, you, {inputs}: me")
    with pytest.raises(gosta.InputError, match=f"visitors = {visitors}, and meet names {inputs}"):
        replace(gosta_async.protocol, meet=meet, visitors=visitors)


def test_wrong_uses_of_a_tree_are_an_error() -> None:
    def tell(me: State, tick: float, tree: float) -> tuple[float]:  # noqa: ARG001
        return (me.z,)

    with pytest.raises(gosta.InputError, match="meet names tree and fresh"):
        replace(gosta_async.protocol, meet=lambda me, you, fresh, tree: me, tell=tell)
    with pytest.raises(gosta.InputError, match=r"tell has the parameters .*'tree'.*; it takes a state and a tick"):
        replace(gosta_async.protocol, tell=tell)
    with pytest.raises(gosta.InputError, match="it takes a state, a tick and `tree`"):
        replace(gosta_async.protocol, meet=lambda me, you, known, tree: me)


def test_a_rule_that_cannot_be_compiled_is_an_error() -> None:
    broken = replace(own_protocol("broken"), meet=lambda me, you, fresh: me.misspelt + fresh)
    with pytest.raises(gosta.InputError, match="protocol broken cannot be compiled for gini-mean-difference"):
        gosta.simulate("iris", "gini-mean-difference", protocol=broken, graph="complete", iterations=10, runs=1)


@pytest.mark.parametrize("nodes", [None, 7])
def test_engines_agree_on_a_protocol_of_ones_own(nodes: int | None) -> None:
    traces = [
        gosta.simulate(
            "iris", "gini-mean-difference", protocol=own_protocol("own"), graph="complete", nodes=nodes, iterations=400,
            runs=1, engine=engine,
        )
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    np.testing.assert_array_equal(traces[0].estimates, traces[1].estimates)
    assert float(traces[0].error()["mean"][-1]) < 0.9


def test_an_engine_whose_snapshots_are_copies_can_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that keeps its arrays on another device."""

    class Copying(OneRowEngine):
        def snapshot(self, batch: Any) -> Any:
            return {name: array.copy() for name, array in batch.state.items()}

    monkeypatch.setitem(gosta.engines.ENGINES, "copying", Copying)
    common: dict[str, Any] = {"graph": "complete", "runs": 2, "engine": "copying"}
    part = gosta.simulate("iris", "gini-mean-difference", iterations=1000, checkpoints=10, **common)
    whole = gosta.simulate("iris", "gini-mean-difference", iterations=2000, checkpoints=20, **common)
    np.testing.assert_array_equal(gosta.resume(part, iterations=2000).estimates, whole.estimates)


def test_nodes_with_one_class_have_no_local_value() -> None:
    trace = gosta.simulate(
        "breast-cancer", "energy-distance", columns="mean radius", nodes=20, by="mean radius", iterations=20, runs=1
    )
    assert None in trace.info.local_values[0]


def test_representations_name_the_parts() -> None:
    assert repr(gosta.protocols.find("flooding")).startswith("CollectingProtocol('flooding', keeps all observations")
    assert repr(gosta_async.protocol).startswith("Protocol('gosta-async', keeps an estimate")
    assert "<caption>Protocol: gosta-async</caption>" in gosta_async.protocol._repr_html_()
    trace = gosta.simulate("iris", "gini-mean-difference", graph="complete", iterations=500, runs=1)
    assert "<th>mean relative error at the last checkpoint reached</th>" in trace._repr_html_()


def test_resuming_needs_the_protocol_of_the_trace(tmp_path: Path) -> None:
    """A protocol of one's own that has a built-in name is not replaced by the built-in one."""
    own = own_protocol("gosta-async")
    settings = {"graph": "complete", "runs": 2}
    part = gosta.simulate("iris", "gini-mean-difference", protocol=own, iterations=1000, checkpoints=10, **settings)  # type: ignore[arg-type]
    whole = gosta.simulate("iris", "gini-mean-difference", protocol=own, iterations=2000, checkpoints=20, **settings)  # type: ignore[arg-type]
    part.save(tmp_path / "part.nc")
    with pytest.raises(gosta.InputError, match="'gosta-async' is not the one of this trace"):
        gosta.resume(tmp_path / "part.nc", iterations=2000)
    resumed = gosta.resume(tmp_path / "part.nc", iterations=2000, protocol=own)
    np.testing.assert_array_equal(resumed.estimates, whole.estimates)
    other = gosta.simulate(
        "iris", "gini-mean-difference", protocol=own_protocol("half-forgotten"), iterations=100, runs=1
    )
    with pytest.raises(gosta.InputError, match="'half-forgotten' is not built in"):
        gosta.resume(other, iterations=200)


def test_ctrl_c_raises_with_the_partial_trace() -> None:
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(gosta.Interrupted) as interrupted:
        gosta.simulate("iris", "gini-mean-difference", iterations=10**12, checkpoints=1000, runs=3)
    timer.join()
    assert isinstance(interrupted.value, KeyboardInterrupt)
    trace = interrupted.value.trace
    assert not trace.is_complete
    reached = set(trace.resume_data["reached"].tolist())
    assert len(reached) == 1
    assert 0 < reached.pop() < 10**12


def test_settings_compare_and_hash_by_content() -> None:
    first, same = (make_setting("tracking", [1.0, 2.0, 4.0], "gini-mean-difference", "complete", 0, {}) for _ in "ab")
    other = make_setting("tracking", [1.0, 2.0, 5.0], "gini-mean-difference", "complete", 0, {})
    assert first.estimand == same.estimand != other.estimand
    assert len({first.estimand, same.estimand, other.estimand}) == 2
    assert first.placement == same.placement
    assert len({first, replace(first), other}) == 2


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_a_rule_that_fails_is_named(engine: str) -> None:
    def meet(me: State, you: tuple[float], fresh: float, exchanges: float) -> State:  # noqa: ARG001
        return State(fresh / (exchanges - 15.0))

    failing = replace(own_protocol("own"), meet=meet)
    with pytest.raises(
        gosta.InputError, match="protocol own, gini-mean-difference: an exchange fails with ZeroDivision"
    ):
        gosta.simulate(
            "iris", "gini-mean-difference", protocol=failing, graph="complete", iterations=4000, runs=2, engine=engine
        )
