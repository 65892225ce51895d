"""What a gossip protocol is: a small pure rule about one node in one exchange.

The rule is applied to each estimated number separately. It is plain arithmetic, so the same source
runs on floats, compiled, and on arrays of all nodes at once.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from gosta.errors import InputError
from gosta.runtime.arrays import Floats
from gosta.runtime.pickling import by_value, is_importable
from gosta.views import html

Function = Callable[..., Any]

# The inputs that `meet` may name as parameters after `me` and `you`.
MEET_INPUTS = {
    "held": "own row x visitor before the swap",
    "fresh": "own row x visitor after the swap; visitor x visitor where a node holds two",
    "known": "the node's running mean kernel value, through the statistic's `local` if it has one",
    "gradient": "gradient of an objective at a node's point: own row x visitor, or all rows known",
    "change": "change of the arrived visitor's smoothed mean, divided by the visitors of its row",
    "exchanges": "number of exchanges of the node, this one included",
    "fewer_exchanges": "the smaller of the two nodes' numbers of exchanges",
    "weight": "weight of this visitor among all so far; 1/exchanges where nodes hold one row each",
    "edge_share": "share of this edge in the node's exchanges, at the end where that is smaller",
    "row_share": "the other node's share of the rows of both; 1/2 where nodes hold one row each",
    "rows": "number of rows that the node holds",
    "tree": "1 for the parent in a spanning tree, -1 for a child, 0 for other nodes",
    "penalty": "factor of half the squared length of the parameters in an objective",
    "pace": "factor of steps, in inverse curvatures of the loss of an objective",
    "tick": "number of the iteration, from 1",
}


SAMPLES = ("held", "fresh", "known", "change", "gradient")  # of these, `meet` names at most one
COPIES = 2  # visitors of each row, where visitors carry means

ALLOWED = "functions of a protocol can use plain arithmetic, math and functions that do the same"
TRIAL_SAMPLE = 0.5  # start value and kernel value of the trial
# Other inputs of `meet`, as a node with three exchanges could have them; shares are as the sample.
TRIAL_INPUTS = {
    "exchanges": 3.0,
    "fewer_exchanges": 2.0,
    "weight": 0.25,
    "rows": 1.0,
    "tree": 1.0,
    "tick": 5.0,
}


class Start(StrEnum):
    """Value that a node's first state is made from; the parameter of `init` names it."""

    ZERO = "zero"
    HELD = "held"  # mean kernel value of the node's rows with themselves
    ROW_MEAN = "row_mean"  # exact mean kernel value of the node's rows with all rows
    MOMENTS = "moments"  # mean moments of the node's own rows


class NodeData(StrEnum):
    """What nodes hold or average, on which the rule that a protocol runs can depend."""

    ROWS = "one row"
    TABLES = "tables"  # or statistics and intervals that need each row's own mean
    MOMENTS = "moments"  # statistics of plain means, of nodes with one row or with tables


class _Shown:
    """How protocols print themselves."""

    name: str
    rule: Any  # text
    summary: str
    keeps: str
    sends: Any  # text, computed or given
    rules: Any  # plain names by NodeData

    @property
    def label(self) -> str:
        """Name of the protocol, and of the rule that runs where that is another one."""
        return self.name if self.rule == self.name else f"{self.name} ({self.rule})"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label!r}, keeps {self.keeps}; sends {self.sends})"

    def _repr_html_(self) -> str:
        rows = {"summary": self.summary, "keeps": self.keeps, "sends per iteration": self.sends}
        rows |= {f"rule for {data}": rule for data, rule in self.rules.items() if rule != self.name}
        return html.table(rows.items(), caption=f"Protocol: {self.label}")


@dataclass(frozen=True, repr=False)
class Protocol(_Shown):
    """A protocol in which nodes keep a few numbers and at most two visitors.

    Examples
    --------
    >>> import gosta
    >>> gosta.protocols.find("gosta-async").inputs
    ('held', 'weight', 'row_share')
    """

    name: str  # by which it is found
    summary: str  # one line on what it does
    keeps: str  # what a node keeps, in words
    state: type[tuple[Any, ...]]  # a NamedTuple of numbers: everything the next exchange needs
    init: Function  # a `Start` value -> the first state
    # State, tick (and `tree`, if `meet` names it) -> the tuple of numbers that a node sends.
    tell: Function
    meet: Function  # state, numbers the other sent, `MEET_INPUTS` by name -> the next state
    read: Function  # state, tick -> the estimate
    # Visitors that a node swaps in an iteration, which draws an edge for each, at least one.
    visitors: int = 1
    estimates_row_means: bool = False  # instead of the statistic
    # Whether nodes keep all rows that they are sent and pass them on, instead of swapping visitors.
    passes_rows: bool = False
    # Whether all nodes take a step in an iteration: those that are not drawn meet themselves.
    every_node: bool = False
    # How far a number sent can be beyond the range of the mean, in units of that range.
    overshoot: float = inf
    # Fields of the state that are differences of estimates: see `Moments.shifted`.
    differences: tuple[str, ...] = ()
    # The rule for statistics of plain means, which need no visitors.
    for_moments: Protocol | None = None
    # The rule where nodes hold several rows, or need each row's own mean.
    for_tables: Protocol | None = None
    # The rule for objectives.
    for_objectives: Protocol | None = None
    # What nodes do, where the protocol's name does not say it: protocols can share rules.
    rule: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", self.rule or self.name)
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(
                f"protocol: name = {self.name!r} must be a text, which tables and plots show"
            )
        _check_signatures(self)
        for name in self.inputs:
            if name not in MEET_INPUTS:
                allowed_names = ", ".join(MEET_INPUTS)
                raise InputError(
                    f"protocol {self.name}: meet has the parameter {name!r}; "
                    f"after the two states it may name: {allowed_names}"
                )
        samples = [name for name in SAMPLES if name in self.inputs]
        allowed: dict[int, list[list[str]]] = {
            0: [[]],
            1: [[], *([name] for name in SAMPLES)],
            2: [[], ["fresh"]],
        }
        if samples not in allowed.get(self.visitors, []) or (
            "weight" in self.inputs and samples != ["held"]
        ):
            raise InputError(
                f"protocol {self.name}: visitors = {self.visitors}, "
                f"and meet names {', '.join(self.inputs)}; with one "
                "visitor it can name one of held (and weight), fresh, known, change, gradient; "
                "with two fresh; with none neither"
            )
        if self.uses_tree and samples not in ([], ["known"], ["change"]):
            raise InputError(
                f"protocol {self.name}: meet names tree and {samples[0]}; with tree, known or "
                "change"
            )
        told = list(inspect.signature(self.tell).parameters)
        expected = (
            "a state, a tick and `tree`, which meet names"
            if self.uses_tree
            else "a state and a tick"
        )
        if len(told) != 2 + self.uses_tree:
            raise InputError(
                f"protocol {self.name}: tell has the parameters {told}; it takes {expected}"
            )
        if self.minimises and "point" not in _fields(self):
            raise InputError(
                f"protocol {self.name}: meet names gradient, and its state has no field point, "
                "the parameter at which it is taken"
            )
        starts = list(inspect.signature(self.init).parameters)
        if len(starts) != 1 or starts[0] not in list(Start):
            text = f"init has the parameters {starts}; it takes one of: {', '.join(Start)}"
            raise InputError(f"protocol {self.name}: {text}")
        if samples and self.averages_moments:
            text = (
                f"init starts from moments, and meet names {samples[0]}, a kernel value; it must "
                "name no sample"
            )
            raise InputError(f"protocol {self.name}: {text}")
        if self.carries_means and self.start is not Start.ZERO:
            text = (
                f"meet names change, and init starts from {self.start}; with change, the sums "
                "start from zero"
            )
            raise InputError(f"protocol {self.name}: {text}")
        _check_functions(self)

    def __reduce_ex__(self, version: Any) -> Any:
        """Pickle functions by their names where another process finds them so, else by value."""
        functions = self.state, self.init, self.tell, self.meet, self.read
        return (
            super().__reduce_ex__(version) if all(map(is_importable, functions)) else by_value(self)
        )

    def rule_for(self, data: NodeData) -> Protocol:
        """Return the protocol that runs under this one's name where nodes have some kind of data.

        >>> import gosta
        >>> gosta.protocols.find("carried-means").rule_for(NodeData.TABLES).label
        'carried-means (tracking)'
        """
        match data:
            case NodeData.MOMENTS:
                return self.for_moments or self
            case NodeData.TABLES:
                return self.for_tables or self
            case NodeData.ROWS:
                return self

    @property
    def rules(self) -> dict[NodeData, str]:
        """Plain name of the rule that nodes run, for each kind of data."""
        return {data: self.rule_for(data).rule for data in NodeData}

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that `meet` takes besides the two states."""
        return tuple(inspect.signature(self.meet).parameters)[2:]

    @cached_property
    def start(self) -> Start:
        """Value that the first state is made from."""
        (name,) = inspect.signature(self.init).parameters
        return Start(name)

    @property
    def draws(self) -> int:
        """Number of edges drawn in an iteration."""
        return max(1, self.visitors)

    @cached_property
    def fields(self) -> int:
        """Number of numbers in a state."""
        return len(self.state._fields)  # type: ignore[attr-defined]

    @cached_property
    def payload_size(self) -> int:
        """Number of numbers that a node sends for each estimated number."""
        return len(self.told(self.state(*[0.0] * self.fields), 1.0))  # type: ignore[arg-type]

    def told(self, state: Any, tick: float, tree: float = 0.0) -> tuple[float, ...]:
        """Return the numbers that a node sends, given its state."""
        numbers: tuple[float, ...] = (
            self.tell(state, tick, tree) if self.uses_tree else self.tell(state, tick)
        )
        return numbers

    @property
    def needs_known(self) -> bool:
        """Whether a node keeps a running mean of its kernel values.

        Only then can statistics with a `local` part be estimated.
        """
        return "known" in self.inputs

    @property
    def carries_means(self) -> bool:
        """Whether visitors carry the means of their rows (`gosta.estimation.carried`)."""
        return "change" in self.inputs

    @property
    def uses_tree(self) -> bool:
        """Whether nodes pass on sums along a spanning tree of the network."""
        return "tree" in self.inputs

    @property
    def minimises(self) -> bool:
        """Whether nodes minimise an objective, with a state for each parameter."""
        return "gradient" in self.inputs

    @property
    def counts_rows(self) -> bool:
        """Whether states are sums over rows.

        The last one of a node then counts the rows that they include.
        """
        return self.carries_means or self.uses_tree

    @property
    def held_visitors(self) -> int:
        """Number of visitors that a node holds."""
        return COPIES if self.carries_means else self.draws

    @property
    def supports_tables(self) -> bool:
        """Whether nodes may hold several rows each."""
        return (
            ("row_share" in self.inputs or self.uses_tree)
            and not self.carries_means
            and self.visitors < 2
        )

    @property
    def averages_moments(self) -> bool:
        """Whether nodes average moments of their own rows instead of kernel values."""
        return self.start is Start.MOMENTS

    @property
    def sends(self) -> str:
        """Numbers sent in one iteration, for observations of d numbers and kernels of k values."""
        once = self.units(0, 0)
        parts = (self.units(1, 0) - once, " d"), (self.units(0, 1) - once, " k"), (once, "")
        return " + ".join(f"{count}{name}" for count, name in parts if count) + " numbers"

    def units(
        self, visitor_size: float, estimated: int, offset_size: int = 0, tree_share: float = 1
    ) -> float:
        """Return how many numbers are sent in one iteration, on average.

        That depends on those in a visitor, those that are estimated, and those in an offset of
        moments; where nodes pass on sums along a tree, on the share of exchanges in which they do.
        """
        told = tree_share * (self.payload_size * self.state_count(estimated) + offset_size)
        told += len({"fewer_exchanges", "edge_share"} & set(self.inputs))
        if (
            self.carries_means
        ):  # the number of rows the visitor was compared with, its mean and smoothed mean
            told += 1 + 2 * estimated
        return 2 * self.draws * (told + (visitor_size if self.visitors else 0))

    def state_count(self, means: int) -> int:
        """Return the number of states of a node: one for each mean, one more if it counts rows."""
        return means + self.counts_rows


@dataclass(frozen=True, repr=False)
class CollectingProtocol(_Shown):
    """A protocol in which nodes keep sets of observations, for comparison.

    Its loop, ``advance(x, options, edges, uniforms, order, start, *arrays)``, is compiled or run as
    it is; `uniforms` are two uniform numbers per iteration, `order` is a random order of the
    observations.

    Examples
    --------
    >>> import gosta
    >>> gosta.protocols.find("flooding").sends
    '2 d + 2 numbers'
    """

    name: str  # by which it is found
    summary: str  # one line on what it does
    keeps: str  # what a node keeps, in words
    file: str  # of the loop
    arrays: Callable[[int, int], dict[str, Any]]  # n, number of kernel values -> arrays of a run
    # Arrays and kernel(x_i, x_i) -> each node's mean over the pairs it holds.
    means: Callable[[dict[str, Any], Any], Any]
    sent: Callable[[int, int, int], int]  # iterations, n, numbers in an observation -> numbers sent
    sends: str  # in one iteration, in words
    draws: int = 1  # edges drawn in an iteration
    estimates_row_means: bool = False  # instead of the statistic
    has_server: bool = False  # whether a server reaches all nodes, and no edges are used

    @property
    def rule(self) -> str:
        """Plain name of what nodes do: that of the protocol."""
        return self.name

    @property
    def rules(self) -> dict[NodeData, str]:
        """Plain name of the rule that nodes run, for each kind of data: nodes hold one row."""
        return {NodeData.ROWS: self.name}

    averages_moments = needs_known = supports_tables = uses_tree = counts_rows = False
    minimises = False


def states_from(protocol: Protocol, values: Floats) -> Floats:
    """Return the first states that a protocol makes from start values: their shape × fields."""
    try:
        states = np.stack(np.broadcast_arrays(values, *protocol.init(values))[1:], axis=-1).astype(
            np.float64
        )
    except Exception as error:  # a user's function can raise anything
        reason = f"{type(error).__name__}: {error}"
        hint = (
            "it gets an array of the numbers of all nodes, so use plain arithmetic, or numpy "
            "instead of math"
        )
        raise InputError(f"protocol {protocol.name}: init fails with {reason}; {hint}") from error
    if states.shape != (*values.shape, protocol.fields) or not np.isfinite(states).all():
        raise InputError(
            f"protocol {protocol.name}: init must return finite numbers, one for each of the array "
            "it gets"
        )
    return states


def _check_functions(protocol: Protocol) -> None:
    """Raise `InputError` if a function of a protocol fails on numbers or returns what it must not.

    Arithmetic errors are let pass: the numbers of the trial need not be those that nodes will have.
    """
    state = _call_for_state(protocol, "init", lambda: protocol.init(TRIAL_SAMPLE))
    if state is None:
        return
    told = _call(
        protocol, "tell", lambda: protocol.told(state, TRIAL_INPUTS["tick"], TRIAL_INPUTS["tree"])
    )
    if told is None:
        return
    if not isinstance(told, tuple) or not all(map(_is_number, told)):
        example = f"(me.{_fields(protocol)[0]},)"
        raise _wrong(
            protocol, "tell", told, f"a tuple of the numbers that a node sends, such as {example}"
        )
    inputs = [TRIAL_INPUTS.get(name, TRIAL_SAMPLE) for name in protocol.inputs]
    first, second = (
        _call_for_state(protocol, "meet", lambda: protocol.meet(state, told, *inputs))
        for _ in range(2)
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
    estimate = _call(protocol, "read", lambda: protocol.read(first, TRIAL_INPUTS["tick"]))
    if estimate is not None and not _is_number(estimate):
        raise _wrong(protocol, "read", estimate, "the estimate, one number")


def _check_signatures(protocol: Protocol) -> None:
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


def _call_for_state(protocol: Protocol, function: str, call: Callable[[], Any]) -> Any:
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
        f"protocol {protocol.name}: {function} returns {result!r} ({kind}); "
        f"it must return {description}"
    )
