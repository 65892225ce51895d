"""Checks of what neighbours send in exchanges: the bounds of the statistic, of the member list and of signatures."""

from __future__ import annotations

from gosta.errors import GostaError
from gosta.estimation.estimand import kernel_ranges, payload_bounds
from gosta.estimation.exchange import MAX_SAMPLE_ROWS, Contribution, Estimator, Visitor
from gosta.net.limits import MAX_CACHED_SEALS, MAX_HOMES, MAX_ROWS_FACTOR, MAX_TOLD_FACTOR, max_kernel_value
from gosta.net.members import Trust
from gosta.net.protocol import messages as wire
from gosta.net.protocol.messages import Rejected, Seal


class Checks:
    """The checks of one epoch, and what they have found so far."""

    def __init__(self, estimator: Estimator) -> None:
        self._estimator, estimand = estimator, estimator.rows.estimand
        self._bounds: list[list[float]] = payload_bounds(estimand, estimator.protocol).tolist()
        self._ranges: list[list[float]] = kernel_ranges(estimand).tolist()
        self._verified: dict[bytes, Visitor] = {}  # by signature, as visitors return
        self._degree = estimand.mean_degree
        # The largest number in a row, or absolute kernel value; at least 1, in case that all rows are alike.
        self._largest = max(1.0, float(abs(estimand.x).max()), estimator.largest_mean)

    def clip(self, payload: tuple[float, ...]) -> tuple[float, ...]:
        """Return own numbers within the bounds; otherwise what the node was told could make others reject it."""
        return tuple(min(max(number, low), high) for number, (low, high) in zip(payload, self._bounds, strict=True))

    def check(self, sender: str, theirs: Contribution, seal: Seal, trust: Trust, network: str, epoch: int) -> None:
        """Raise `Rejected` unless a contribution is within the bounds of statistic, member list and signatures."""
        visitor, estimator = theirs.visitor, self._estimator
        if not wire.is_valid(theirs, len(self._bounds)):
            raise Rejected("malformed", "lengths or numbers of the contribution are out of bounds")
        _check_member(sender, theirs.rows, trust)
        if estimator.homes.get(sender, (theirs.rows,))[0] != theirs.rows:
            raise Rejected("rows", "it has other rows than its visitors")
        if self._verified.get(seal.signature) != visitor and visitor != estimator.issued:
            self._check_shape(visitor)
            _check_member(visitor.home, visitor.rows, trust)
            if not trust.verify(visitor.home, wire.signed_visitor(network, epoch, visitor), seal.signature):
                raise Rejected("signature", f"a visitor of {visitor.home} is not signed by it")
            self._check_rows(sender, visitor)
            if len(self._verified) >= MAX_CACHED_SEALS:
                self._verified.clear()
            self._verified[seal.signature] = visitor
        widest = self._widest
        for told, (low, high) in zip(theirs.payload, self._bounds, strict=True):
            is_possible = low <= told <= high
            if not is_possible or abs(told) > widest:  # others may have told an honest node such a number
                detail = f"it tells a mean of {told:.3g}, which the statistic cannot have"
                raise Rejected("values", detail, is_blamed=not is_possible)

    @property
    def _widest(self) -> float:
        return MAX_TOLD_FACTOR * self._largest**self._degree

    def _check_shape(self, visitor: Visitor) -> None:
        rows, has_sample = self._estimator.rows, self._estimator.protocol.visitors > 0
        columns, sample = (rows.estimand.x.shape[1], MAX_SAMPLE_ROWS) if has_sample else (0, 0)
        if not wire.is_valid_visitor(visitor, columns, sample, rows.width):
            raise Rejected("malformed", "lengths or numbers of the visitor are out of bounds")

    def _check_rows(self, sender: str, visitor: Visitor) -> None:
        """Raise `Rejected` unless a visitor's rows are such as the kernel takes, and the same as before."""
        homes, rows, home = self._estimator.homes, self._estimator.rows, visitor.home
        if home == sender and homes.get(home, (visitor.rows, visitor.diagonal)) != (visitor.rows, visitor.diagonal):
            raise Rejected("rows", "its visitor has other rows than its earlier ones")
        if len(homes) > MAX_HOMES:
            raise Rejected("member", f"more than {MAX_HOMES:,} homes")
        if not all(map(rows.estimand.is_valid_row, visitor.sample)):
            raise Rejected("visitor", f"a row of {home} has a class or a weight that does not exist")
        if visitor.sample:
            try:
                found = rows.kernel_means(visitor.sample)  # cached for the exchange
            except GostaError as error:
                raise Rejected("visitor", str(error), is_blamed=home == sender) from None
            largest, kernel = max(abs(number) for row in visitor.sample for number in row), float(abs(found).max())
            if kernel > max_kernel_value(self._degree):
                raise Rejected("visitor", f"kernel values of {kernel:.3g} are too large", is_blamed=False)
            self._largest = max(self._largest, largest, kernel)
            self._check_means(sender, visitor)
            self._largest = max(self._largest, *map(abs, (*visitor.correction, *visitor.diagonal)))

    def _check_means(self, sender: str, visitor: Visitor) -> None:
        """Raise `Rejected` for a correction or a diagonal that the statistic cannot have."""
        widest = min(MAX_TOLD_FACTOR * self._largest, max_kernel_value(self._degree))
        for correction, mean, (low, high) in zip(visitor.correction, visitor.diagonal, self._ranges, strict=True):
            if not low <= mean <= high or abs(correction) > high - low or max(abs(mean), abs(correction)) > widest:
                detail = f"{visitor.home} has means that the statistic cannot have"
                raise Rejected("visitor", detail, is_blamed=visitor.home == sender)


def _check_member(name: str, rows: int, trust: Trust) -> None:
    if trust.members and name not in trust.members:
        raise Rejected("member", f"{name} is not a member", is_blamed=False)  # the sender may have a newer list
    declared = trust.members.get(name, 0)
    if declared and rows > MAX_ROWS_FACTOR * declared:
        raise Rejected("rows", f"{name} claims {rows:,} rows and has declared {declared:,}")
