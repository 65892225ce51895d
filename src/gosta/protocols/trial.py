"""Trial of a protocol's functions: each is called once, so that a mistake is reported by name."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any

from gosta.errors import InputError

if TYPE_CHECKING:
    from gosta.protocols.protocol import Protocol

ALLOWED = "functions of a protocol can use plain arithmetic, math and functions that do the same"
SAMPLE = 0.5  # start value and kernel value of the trial
# Other inputs of `meet`, as a node with three exchanges could have them; shares are as the sample.
INPUTS = {
    "exchanges": 3.0,
    "fewer_exchanges": 2.0,
    "weight": 0.25,
    "rows": 1.0,
    "tree": 1.0,
    "tick": 5.0,
}


def check_functions(protocol: Protocol) -> None:
    """Raise `InputError` if a function of a protocol fails on numbers or returns what it must not.

    Arithmetic errors are let pass: the numbers of the trial need not be those that nodes will have.
    """
    state = _state(protocol, "init", lambda: protocol.init(SAMPLE))
    if state is None:
        return
    told = _call(protocol, "tell", lambda: protocol.told(state, INPUTS["tick"], INPUTS["tree"]))
    if told is None:
        return
    if not isinstance(told, tuple) or not all(map(_is_number, told)):
        example = f"(me.{_fields(protocol)[0]},)"
        raise _wrong(
            protocol, "tell", told, f"a tuple of the numbers that a node sends, such as {example}"
        )
    inputs = [INPUTS.get(name, SAMPLE) for name in protocol.inputs]
    first, second = (
        _state(protocol, "meet", lambda: protocol.meet(state, told, *inputs)) for _ in range(2)
    )
    if first is None or second is None:
        return
    if not all(a == b or math.isnan(a) for a, b in zip(first, second, strict=True)):
        reason = (
            "returns different states for the same numbers; the schedule is the only randomness "
            "of a run"
        )
        raise InputError(
            f"protocol {protocol.name}: meet {reason}, so leave out random numbers and clocks"
        )
    estimate = _call(protocol, "read", lambda: protocol.read(first, INPUTS["tick"]))
    if estimate is not None and not _is_number(estimate):
        raise _wrong(protocol, "read", estimate, "the estimate, one number")


def check_signatures(protocol: Protocol) -> None:
    """Raise `InputError` unless state and parameters of a protocol are as they must be.

    The state is a NamedTuple, and functions have the parameters that they need.
    """
    if not (
        isinstance(protocol.state, type) and issubclass(protocol.state, tuple) and _fields(protocol)
    ):
        raise InputError(
            f"protocol {protocol.name}: state = {protocol.state!r} must be a NamedTuple of numbers"
        )
    for name in ("init", "tell", "meet", "read"):
        if not callable(getattr(protocol, name)):
            raise InputError(
                f"protocol {protocol.name}: {name} = {getattr(protocol, name)!r} must be a function"
            )
    parameters = inspect.signature(protocol.meet).parameters
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) < 2 or any(parameter.kind not in plain for parameter in parameters.values()):
        reason = (
            "it takes a state, the tuple that the other node's tell returned, and inputs by name"
        )
        raise InputError(
            f"protocol {protocol.name}: meet has the parameters {list(parameters)}; {reason}"
        )
    read = list(inspect.signature(protocol.read).parameters)
    if len(read) != 2:
        raise InputError(
            f"protocol {protocol.name}: read has the parameters {read}; it takes a state and a tick"
        )


def _fields(protocol: Protocol) -> tuple[str, ...]:
    return getattr(protocol.state, "_fields", ())


def _state(protocol: Protocol, function: str, call: Callable[[], Any]) -> Any:
    """Return the state that a function returns; None where that cannot be told from a trial."""
    state = _call(protocol, function, call)
    fields = _fields(protocol)
    if state is not None and (
        getattr(state, "_fields", None) != fields or not all(map(_is_number, state))
    ):
        raise _wrong(
            protocol,
            function,
            state,
            f"a {protocol.state.__name__} of numbers: {', '.join(fields)}",
        )
    return state


def _call(protocol: Protocol, function: str, call: Callable[[], Any]) -> Any:
    """Return what a function returns; None if it cannot compute with the numbers of the trial."""
    try:
        with warnings.catch_warnings():  # numpy warns where math raises
            warnings.simplefilter("ignore")
            result = call()
    except ArithmeticError:
        return None
    except Exception as error:  # a user's function can raise anything
        if isinstance(error, ValueError) and "unpack" not in str(
            error
        ):  # such as the root of a negative number
            return None
        raise InputError(
            f"protocol {protocol.name}: {function} fails with {type(error).__name__}: {error}; "
            f"{ALLOWED}"
        ) from error
    if result is None:
        raise InputError(
            f"protocol {protocol.name}: {function} returns nothing; end it with return"
        )
    return result


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _wrong(protocol: Protocol, function: str, result: object, description: str) -> InputError:
    kind = type(result).__name__
    return InputError(
        f"protocol {protocol.name}: {function} returns {result!r} ({kind}); it must return {description}"
    )
