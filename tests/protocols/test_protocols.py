"""Protocols of a user's own: what is checked, and what a saved trace remembers of them."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import gosta
from gosta import protocols
from gosta.estimation.setting import make_setting
from gosta.protocols import Protocol, gosta_async
from gosta.protocols.protocol import NodeData
from gosta.simulation.engines.compiled.engine import CompiledEngine, choose_layout


class State(NamedTuple):
    z: float


def own_meet(me: State, you: tuple[float], fresh: float, row_share: float) -> State:
    return State(0.9 * (me.z + row_share * (you[0] - me.z)) + 0.1 * fresh)


def own_protocol(name: str) -> Protocol:
    return Protocol(
        name, "A leaky mean.", "an estimate", State, lambda zero: State(zero), lambda me,
        tick: (me.z,), own_meet,
        lambda me, tick: me.z,
    )  # fmt: skip


def test_a_wrong_input_of_meet_is_reported_with_the_right_ones() -> None:
    def meet(me: State, you: tuple[float], freshest: float) -> State:  # noqa: ARG001
        return me

    with pytest.raises(
        gosta.InputError,
        match=r"'freshest'.*held, fresh, known, gradient, change, exchanges, fewer_exchanges",
    ):
        replace(gosta_async.protocol, meet=meet)
    with pytest.raises(gosta.InputError, match=r"init.*zero, held, row_mean, moments"):
        replace(gosta_async.protocol, init=lambda nothing: nothing)


@pytest.mark.parametrize(
    ("visitors", "inputs"),
    [(0, "fresh"), (1, "known, fresh"), (1, "weight, fresh"), (2, "held, weight"), (3, "fresh")],
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
    with pytest.raises(
        gosta.InputError, match=r"tell has the parameters .*'tree'.*; it takes a state and a tick"
    ):
        replace(gosta_async.protocol, tell=tell)
    with pytest.raises(gosta.InputError, match="it takes a state, a tick and `tree`"):
        replace(gosta_async.protocol, meet=lambda me, you, known, tree: me)


def test_a_rule_that_cannot_be_compiled_is_an_error() -> None:
    broken = replace(
        own_protocol("broken"), meet=lambda me, you, fresh: State({"fresh": fresh}["fresh"])
    )
    with pytest.raises(
        gosta.InputError,
        match=r"broken cannot be compiled for gini.*: its function meet: .*arithmetic",
    ):
        gosta.simulate(
            "iris", "gini-mean-difference", protocol=broken, graph="complete", iterations=10, runs=1
        )


class TwoNumbers(NamedTuple):
    z: float
    w: float


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"tell": lambda me, tick: me.z},
            r"tell returns 0.5 \(float\); it must return a tuple.*such as \(me.z,\)",
        ),
        ({"tell": lambda me, tick: [me.z]}, r"tell returns \[0.5\] \(list\)"),
        ({"tell": lambda me, tick: ("z",)}, r"tell returns \('z',\)"),
        ({"tell": lambda me, tick: None}, "tell returns nothing; end it with return"),
        ({"tell": lambda me, tick: ()}, "meet fails with IndexError"),
        ({"tell": "z"}, "tell = 'z' must be a function"),
        ({"meet": lambda me, you, fresh: None}, "meet returns nothing"),
        (
            {"meet": lambda me, you, fresh: fresh},
            r"meet returns 0.5 \(float\); it must return a State of numbers: z",
        ),
        ({"meet": lambda me, you, fresh: TwoNumbers(fresh, 1.0)}, r"meet returns TwoNumbers\("),
        (
            {"meet": lambda me, you, fresh: State((fresh - 9.0) ** 0.5)},
            r"meet returns State\(z=.*j\)\)",
        ),
        (
            {"meet": lambda me, you, fresh: State(me.misspelt)},
            "meet fails with AttributeError.*'misspelt'",
        ),
        (
            {"meet": lambda me, you, fresh: State(time.perf_counter())},
            "meet returns different states for the",
        ),
        ({"meet": lambda me: me}, r"meet has the parameters \['me'\]; it takes a state, the tuple"),
        ({"meet": lambda me, *rest: me}, r"meet has the parameters \['me', 'rest'\]"),
        ({"read": lambda me, tick: None}, "read returns nothing"),
        (
            {"read": lambda me, tick: me},
            r"read returns State\(.*; it must return the estimate, one number",
        ),
        (
            {"read": lambda me: me.z},
            r"read has the parameters \['me'\]; it takes a state and a tick",
        ),
        ({"init": lambda zero: zero}, r"init returns 0.5 \(float\); it must return a State"),
        ({"state": tuple}, "state = <class 'tuple'> must be a NamedTuple"),
        (
            {"init": lambda moments: State(moments)},
            "init starts from moments, and meet names fresh",
        ),
        (
            {"init": lambda held: State(held), "meet": lambda me, you, change: me},
            "meet names change, and init starts",
        ),
    ],
)
def test_a_mistake_in_a_function_is_reported_when_the_protocol_is_made(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(gosta.InputError, match=f"^protocol own: {message}"):
        replace(own_protocol("own"), **change)


@pytest.mark.parametrize("name", [3, "", " "])
def test_a_protocol_has_a_name(name: Any) -> None:
    with pytest.raises(gosta.InputError, match=f"^protocol: name = {name!r} must be a text"):
        own_protocol(name)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"meet": lambda me, you, fresh, exchanges: State(fresh if exchanges < 4 else math.nan)},
            "node .* reads nan",
        ),
        (
            {"meet": lambda me, you, fresh: State(1e300 * fresh * 1e300)},
            "node .* of run 0 reads inf at iteration",
        ),
        (
            {"read": lambda me, tick: math.sqrt(me.z - 9.0)},
            "fails with ValueError.*read must return numbers",
        ),
        (
            {"init": lambda held: State(math.sqrt(held))},
            "init fails with TypeError.*numpy instead of math",
        ),
        ({"init": lambda held: State(held + math.inf)}, "init must return finite numbers"),
    ],
)
def test_numbers_that_do_not_exist_are_an_error(change: dict[str, Any], message: str) -> None:
    """They are not counted as an estimate of 0, whose error would be 100 %."""
    own = replace(own_protocol("own"), **change)
    with pytest.raises(gosta.GostaError, match=f"^protocol own.*{message}"):
        gosta.simulate(
            "iris", "gini-mean-difference", protocol=own, iterations=600, runs=1, engine="reference"
        )


def test_the_root_of_a_negative_number_in_compiled_code_is_an_error() -> None:
    own = replace(own_protocol("own"), read=lambda me, tick: math.sqrt(me.z - 9.0))
    with pytest.raises(
        gosta.NumericalError,
        match="protocol own: node 0 of run 0 reads nan at iteration 1; meet and",
    ):
        gosta.simulate("iris", "gini-mean-difference", protocol=own, iterations=100, runs=1)


def test_a_first_state_may_be_a_plain_number() -> None:
    fixed = replace(own_protocol("own"), init=lambda zero: State(0.0))
    common: dict[str, Any] = {"iterations": 20, "runs": 1, "engine": "reference"}
    traces = [
        gosta.simulate("iris", "variance", protocol=one, **common)
        for one in (fixed, own_protocol("own"))
    ]
    np.testing.assert_array_equal(traces[0].estimates, traces[1].estimates)


def test_what_a_protocol_of_ones_own_cannot_estimate_is_refused() -> None:
    def simulate(statistic: str, nodes: int | None, **changes: Any) -> None:
        gosta.simulate(
            "iris", statistic, protocol=replace(own_protocol("own"), **changes), nodes=nodes, runs=1
        )

    with pytest.raises(
        gosta.InputError, match="averages moments, of which gini-mean-difference is no function"
    ):
        simulate(
            "gini-mean-difference",
            None,
            init=lambda moments: State(moments),
            meet=lambda me, you: me,
            visitors=0,
        )
    with pytest.raises(
        gosta.InputError,
        match=r"own supports one row per node only.*row_share \(with one visitor\)",
    ):
        simulate("gini-mean-difference", 7, visitors=2)


@pytest.mark.parametrize("nodes", [None, 7])
def test_the_protocol_of_the_guide_runs_as_it_stands_there(nodes: int | None) -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (code,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "def meet" in block
    ]
    names: dict[str, Any] = {}
    exec(code, names)
    traces = [
        gosta.simulate(
            "breast-cancer",
            "auc",
            protocol=names["protocol"],
            nodes=nodes,
            iterations=600,
            runs=2,
            engine=engine,
        )
        for engine in ("compiled", "reference")
    ]
    np.testing.assert_array_equal(traces[0].estimates, traces[1].estimates)
    assert traces[0].error()["mean"][-1] < traces[0].error()["mean"][0]


@pytest.mark.parametrize("nodes", [None, 7])
def test_engines_agree_on_a_protocol_of_ones_own(nodes: int | None) -> None:
    traces = [
        gosta.simulate(
            "iris", "gini-mean-difference", protocol=own_protocol("own"), graph="complete",
            nodes=nodes, iterations=400,
            runs=1, engine=engine,
        )
        for engine in ("compiled", "reference")
    ]  # fmt: skip
    np.testing.assert_array_equal(traces[0].estimates, traces[1].estimates)
    assert float(traces[0].error()["mean"][-1]) < 0.9


def test_an_engine_whose_snapshots_are_copies_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As one that keeps its arrays on another device."""

    class Copying(CompiledEngine):
        def snapshot(self, batch: Any) -> Any:
            return {name: array.copy() for name, array in batch.state.items()}

    monkeypatch.setitem(
        gosta.engines.ENGINES,
        "copying",
        lambda setting, seed: Copying(setting, seed, choose_layout(setting)),
    )
    common: dict[str, Any] = {"graph": "complete", "runs": 2, "engine": "copying"}
    part = gosta.simulate("iris", "gini-mean-difference", iterations=1000, checkpoints=10, **common)
    whole = gosta.simulate(
        "iris", "gini-mean-difference", iterations=2000, checkpoints=20, **common
    )
    np.testing.assert_array_equal(gosta.resume(part, iterations=2000).estimates, whole.estimates)


def test_nodes_with_one_class_have_no_local_value() -> None:
    trace = gosta.simulate(
        "breast-cancer",
        "energy-distance",
        columns="mean radius",
        nodes=20,
        by="mean radius",
        iterations=20,
        runs=1,
    )
    assert np.isnan(trace.setting.local_values()[:, 0]).any()


def test_representations_name_the_parts() -> None:
    assert repr(gosta.protocols.find("flooding")).startswith(
        "CollectingProtocol('flooding', keeps all observations"
    )
    assert repr(gosta_async.protocol).startswith("Protocol('gosta-async', keeps an estimate")
    assert "<caption>Protocol: gosta-async</caption>" in gosta_async.protocol._repr_html_()
    trace = gosta.simulate("iris", "gini-mean-difference", graph="complete", iterations=500, runs=1)
    assert "<th>mean relative error at the last checkpoint reached</th>" in trace._repr_html_()


def test_resuming_needs_the_protocol_of_the_trace(tmp_path: Path) -> None:
    """A protocol of one's own that has a built-in name is not replaced by the built-in one."""
    own = own_protocol("gosta-async")
    settings = {"graph": "complete", "runs": 2}
    part = gosta.simulate(
        "iris",
        "gini-mean-difference",
        protocol=own,
        iterations=1000,
        checkpoints=10,
        **settings,  # type: ignore[arg-type]
    )
    whole = gosta.simulate(
        "iris",
        "gini-mean-difference",
        protocol=own,
        iterations=2000,
        checkpoints=20,
        **settings,  # type: ignore[arg-type]
    )
    part.save(tmp_path / "part.nc")
    with pytest.raises(gosta.InputError, match="'gosta-async' is not the one of this trace"):
        gosta.resume(tmp_path / "part.nc", iterations=2000)
    resumed = gosta.resume(tmp_path / "part.nc", iterations=2000, protocol=own)
    np.testing.assert_array_equal(resumed.estimates, whole.estimates)
    other = gosta.simulate(
        "iris",
        "gini-mean-difference",
        protocol=own_protocol("half-forgotten"),
        iterations=100,
        runs=1,
    )
    assert gosta.resume(other, iterations=200).iterations[-1] == 200
    other.save(tmp_path / "other.nc")
    with pytest.raises(gosta.InputError, match="'half-forgotten' is not built in"):
        gosta.resume(tmp_path / "other.nc", iterations=200)
    assert "half-forgotten on watts-strogatz" in repr(gosta.Trace.load(tmp_path / "other.nc"))


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
    first, same = (
        make_setting("tracking", [1.0, 2.0, 4.0], "gini-mean-difference", "complete", 0, {})
        for _ in "ab"
    )
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
        gosta.InputError,
        match="protocol own, gini-mean-difference: an exchange fails with ZeroDivision",
    ):
        gosta.simulate(
            "iris",
            "gini-mean-difference",
            protocol=failing,
            graph="complete",
            iterations=4000,
            runs=2,
            engine=engine,
        )


@pytest.mark.parametrize(
    ("protocol", "data", "rule"),
    [
        ("carried-means", NodeData.ROWS, "carried-means"),
        ("carried-means", NodeData.TABLES, "tracking"),
        ("carried-means", NodeData.MOMENTS, "momentum averaging"),
        ("tracking", NodeData.TABLES, "tracking"),
        ("tracking", NodeData.MOMENTS, "momentum averaging"),
        ("relay", NodeData.MOMENTS, "relayed sums of moments"),
        ("gosta-async", NodeData.TABLES, "gosta-async"),
    ],
)
def test_a_protocol_says_which_rule_it_runs(protocol: str, data: NodeData, rule: str) -> None:
    found = protocols.find(protocol)
    assert isinstance(found, Protocol)
    assert (found.rules[data], found.rule_for(data).rule) == (rule, rule)
    assert found.rule_for(data).name == protocol
    assert found.rule_for(data).label == (protocol if rule == protocol else f"{protocol} ({rule})")


@pytest.mark.parametrize(
    ("statistic", "nodes", "label"),
    [
        ("gini-mean-difference", None, "carried-means"),
        ("gini-mean-difference", 3, "carried-means (tracking)"),
        ("variance", None, "carried-means (momentum averaging)"),
        ("variance", 3, "carried-means (momentum averaging)"),
    ],
)
def test_a_setting_says_which_rule_it_runs(statistic: str, nodes: int | None, label: str) -> None:
    data = [1.0, 2.0, 4.0, 5.0, 7.0, 8.0]
    setting = make_setting("carried-means", data, statistic, "complete", 0, {}, nodes=nodes)
    assert setting.protocol.label == label
