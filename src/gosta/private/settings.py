"""What a network of private sums computes, beyond the statistic and its columns; the same at all sites."""

from __future__ import annotations

import msgspec


class PrivateSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bins, strata, noise and deadlines of private sums."""

    bins: int = 64  # of each column that is binned
    ranges: dict[str, tuple[float, float]] = {}  # lowest and highest value by column; "" for columns not named
    edges: dict[str, tuple[float, ...]] = {}  # between bins, by column, instead of bins of equal width
    find_edges: bool = False  # whether a first sum over bins of equal width finds edges, so that bins hold equally many
    strata: dict[str, tuple[str | int | float, ...]] = {}  # values of columns; each combination has results of its own
    epsilon: float | None = None  # of the differential privacy of one release; None: no noise
    delta: float = 0.0
    colluding: int = 1  # sites that may combine what they know without weakening epsilon and delta for others
    deadline_seconds: float = 600.0  # that a site has to join an epoch, and then to contribute; then it is left out
