"""Pairwise statistics: their definitions, one family a file, and their exact values.

``STATISTICS`` holds all of them by name; importing a family registers its statistics.
"""

# The order is that of the listing.
from gosta.statistics import dispersion, location, association, ranking, groups, objectives  # noqa: F401, I001
from gosta.statistics.definition import STATISTICS, Statistic, find, statistic

__all__ = ["STATISTICS", "Statistic", "find", "statistic"]
