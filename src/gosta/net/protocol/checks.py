"""Checks of what neighbours send in exchanges: bounds, the member list and signatures."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite

from gosta.errors import GostaError
from gosta.estimation.estimand import ROUNDING, kernel_ranges, mean_bounds, payload_bounds
from gosta.estimation.exchange import Estimator
from gosta.estimation.visitor import MAX_SAMPLE_ROWS, Contribution, Visitor
from gosta.net.limits import (
    MAX_CACHED_SEALS,
    MAX_HOMES,
    MAX_ROWS,
    MAX_ROWS_FACTOR,
    MAX_TOLD_FACTOR,
    max_kernel_value,
)
from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol.messages import Rejected, Seal


class Checks:
    """The checks of one epoch, and what they have found so far."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator, estimand = estimator, estimator.rows.estimand
        self._bounds: list[list[float]] = payload_bounds(estimand, estimator.protocol).tolist()
        # Numbers of a payload before those that belong to the visitor.
        carried_count = (
            0
            if estimator.visitor_memory is None
            else len(estimator.visitor_memory.carried[0].numbers)
        )
        self._told_count = len(self._bounds) - carried_count
        self._mean_bounds: list[list[float]] = []  # of what sums are divided by counts
        if estimator.growing is not None:
            self._mean_bounds = mean_bounds(estimand, estimator.protocol).tolist()
        self._ranges: list[list[float]] = kernel_ranges(estimand).tolist()
        self._verified: dict[bytes, Visitor] = {}  # by signature, as visitors return
        self._degree = estimand.mean_degree
        # The largest number in a row, or absolute kernel value; at least 1, in case that all rows
        # are alike.
        self._largest = max(1.0, float(abs(estimand.x).max()), estimator.largest_mean)

    def clip(self, payload: tuple[float, ...]) -> tuple[float, ...]:
        """Return own numbers within the bounds.

        Otherwise what the node was told could make others reject it.
        """
        return tuple(
            min(max(number, low), high)
            for number, (low, high) in zip(payload, self._bounds, strict=True)
        )

    def check(
        self, sender: str, theirs: Contribution, seal: Seal, trust: Trust, network: str, epoch: int
    ) -> None:
        """Raise `Rejected` for a contribution that cannot be, or is not signed."""
        visitor, estimator = theirs.visitor, self._estimator
        if not wire.is_valid(theirs, len(self._bounds)):
            raise Rejected("malformed", "lengths or numbers of the contribution are out of bounds")
        if estimator.visitor_memory is not None and (theirs.rows, visitor.rows) != (1, 1):
            raise Rejected(
                "rows",
                f"it has several rows; {estimator.protocol.name} is for one row at each node",
            )
        _check_member(sender, theirs.rows, trust)
        if estimator.homes.get(sender, (theirs.rows,))[0] != theirs.rows:
            raise Rejected("rows", "it has other rows than its visitors")
        if self._verified.get(seal.signature) != visitor and visitor != estimator.issued:
            self._check_shape(visitor)
            _check_member(visitor.home, visitor.rows, trust)
            if not trust.verify(
                visitor.home, wire.signed_visitor(network, epoch, visitor), seal.signature
            ):
                raise Rejected("signature", f"a visitor of {visitor.home} is not signed by it")
            self._check_rows(sender, visitor)
            if len(self._verified) >= MAX_CACHED_SEALS:
                self._verified.clear()
            self._verified[seal.signature] = visitor
        told = self._told_count
        if estimator.visitor_memory is not None:
            self._check_remembered(visitor)
            self._check_means(
                theirs.payload[told:],
                self._bounds[told:],
                self._widest_kernel,
                "its visitor carries",
            )
        if estimator.growing is not None:
            self._check_sums(sender, theirs.payload)
        else:
            self._check_means(
                theirs.payload[:told], self._bounds[:told], self._widest, "it tells a mean of"
            )

    def _check_sums(self, sender: str, payload: tuple[float, ...]) -> None:
        """Raise `Rejected` for sums that are not possible means times a possible number of rows.

        Both what the sender would have told a parent, with what was counted of it before, and what
        it would have told a child, without what it has counted of this node: sums of possible sums
        are possible, differences need not be.
        """
        estimator, growing = self._estimator, self._estimator.growing
        assert growing is not None
        count = len(estimator.states)
        places, none = zip(payload[-3:], self._bounds[-3:], strict=True), (0.0,) * count
        if not all(
            low <= number <= high and number == int(number) for number, (low, high) in places
        ):
            raise Rejected("values", "it tells a place in the tree that cannot be")
        counted, sent = growing.received.get(sender, none), growing.sent.get(sender, none)
        below = [
            told + known for told, known in zip(payload[: 2 * count : 2], counted, strict=True)
        ]
        others = [
            told - known for told, known in zip(payload[1 : 2 * count : 2], sent, strict=True)
        ]
        if any(not -ROUNDING <= sums[-1] < MAX_ROWS for sums in (below, others)):
            raise Rejected(
                "values",
                f"it tells sums over {below[-1]:.3g} or {others[-1]:.3g} rows, which cannot be",
            )
        if not estimator.offset:
            for *sums, rows in (below, others):
                bounds, slack = [], ROUNDING * max(1.0, rows)
                for low, high in self._mean_bounds:
                    is_bounded = isfinite(high - low)
                    margin = slack * (high - low)
                    bounds.append(
                        [low * rows - margin, high * rows + margin] if is_bounded else [-inf, inf]
                    )
                self._check_means(sums, bounds, max(1.0, rows) * self._widest, "it tells a sum of")

    @property
    def _widest(self) -> float:
        """The largest mean of products that is possible."""
        return MAX_TOLD_FACTOR * self._largest**self._degree

    @property
    def _widest_kernel(self) -> float:
        """The largest mean of kernel values that is possible."""
        return min(MAX_TOLD_FACTOR * self._largest, max_kernel_value(self._degree))

    def _check_means(
        self, means: Sequence[float], bounds: list[list[float]], widest: float, what: str
    ) -> None:
        """Raise `Rejected` for means, or numbers of rows, that the statistic cannot have."""
        for mean, (low, high) in zip(means, bounds, strict=True):
            is_possible = low <= mean <= high
            if (
                not is_possible or abs(mean) > widest
            ):  # others may have told an honest node such a number
                detail = f"{what} {mean:.3g}, which the statistic cannot have"
                raise Rejected("values", detail, is_blamed=not is_possible)

    def _check_remembered(self, visitor: Visitor) -> None:
        """Raise `Rejected` for a visitor that the kernel does not take with a known row."""
        memory, rows = self._estimator.visitor_memory, self._estimator.rows
        assert memory is not None
        for home, row in memory.remembered.items():
            if home != visitor.home:
                try:
                    values = rows.pair_values(visitor.sample[0], row)  # cached for the exchange
                except Exception as error:  # a user's function can raise anything
                    detail = (
                        f"the kernel of rows of {visitor.home} and "
                        f"{home} fails with {type(error).__name__}"
                    )
                    raise Rejected("visitor", detail, is_blamed=False) from None
                self._largest = max(self._largest, *map(self._check_kernel, values))

    def _check_kernel(self, value: float) -> float:
        """Return a kernel value's size.

        Raise `Rejected` if products of such values would not be finite.
        """
        size = abs(value)
        if not size <= max_kernel_value(self._degree):
            raise Rejected("visitor", f"kernel values of {size:.3g} are too large", is_blamed=False)
        return size

    def _check_shape(self, visitor: Visitor) -> None:
        rows, has_sample = self._estimator.rows, self._estimator.protocol.visitors > 0
        columns, sample = (rows.estimand.x.shape[1], MAX_SAMPLE_ROWS) if has_sample else (0, 0)
        if not wire.is_valid_visitor(visitor, columns, sample, rows.width):
            raise Rejected("malformed", "lengths or numbers of the visitor are out of bounds")

    def _check_rows(self, sender: str, visitor: Visitor) -> None:
        """Raise `Rejected` unless the kernel takes a visitor's rows, and they are as before."""
        homes, rows, home = self._estimator.homes, self._estimator.rows, visitor.home
        if home == sender and homes.get(home, (visitor.rows, visitor.diagonal)) != (
            visitor.rows,
            visitor.diagonal,
        ):
            raise Rejected("rows", "its visitor has other rows than its earlier ones")
        if len(homes) > MAX_HOMES:
            raise Rejected("member", f"more than {MAX_HOMES:,} homes")
        if not all(map(rows.estimand.is_valid_row, visitor.sample)):
            raise Rejected(
                "visitor", f"a row of {home} has a class or a weight that does not exist"
            )
        if visitor.sample:
            try:
                found = rows.kernel_means(visitor.sample)  # cached for the exchange
            except GostaError as error:
                raise Rejected("visitor", str(error), is_blamed=home == sender) from None
            largest = max(abs(number) for row in visitor.sample for number in row)
            kernel = self._check_kernel(float(abs(found).max()))
            self._largest = max(self._largest, largest, kernel)
            self._check_home_means(sender, visitor)
            self._largest = max(self._largest, *map(abs, (*visitor.correction, *visitor.diagonal)))

    def _check_home_means(self, sender: str, visitor: Visitor) -> None:
        """Raise `Rejected` for a correction or a diagonal that the statistic cannot have."""
        widest = self._widest_kernel
        for correction, mean, (low, high) in zip(
            visitor.correction, visitor.diagonal, self._ranges, strict=True
        ):
            if (
                not low <= mean <= high
                or abs(correction) > high - low
                or max(abs(mean), abs(correction)) > widest
            ):
                detail = f"{visitor.home} has means that the statistic cannot have"
                raise Rejected("visitor", detail, is_blamed=visitor.home == sender)


def _check_member(name: str, rows: int, trust: Trust) -> None:
    if trust.members and name not in trust.members:
        raise Rejected(
            "member", f"{name} is not a member", is_blamed=False
        )  # the sender may have a newer list
    declared = trust.members.get(name, 0)
    if declared and rows > MAX_ROWS_FACTOR * declared:
        raise Rejected("rows", f"{name} claims {rows:,} rows and has declared {declared:,}")
