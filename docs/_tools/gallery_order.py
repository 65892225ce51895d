"""The order of the examples in their gallery: from a first run to a protocol that a user wrote."""

from __future__ import annotations

ORDER = (
    "first_run",
    "averaging_local_values",
    "comparing_protocols",
    "how_the_graph_matters",
    "what_faults_cost",
    "intervals_at_nodes",
    "several_statistics",
    "learning_a_ranking",
    "your_own_statistic",
    "your_own_protocol",
    "private_sums_or_rows",
    "a_regression_model",
    "the_paper_in_small",
)


def position(file: str) -> tuple[int, str]:
    """Return where an example stands; those that are not named here come last, by their names."""
    name = file.removesuffix(".py")
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)
