"""Pairwise statistics: their definitions, one family a file, and their exact values.

``TABLE`` holds all of them by name; importing a family enters its statistics.
"""

from gosta.statistics import dispersion, association, ranking, groups  # noqa: F401, I001  (the order of the listing)
from gosta.statistics.definition import TABLE, Statistic, find, statistic

__all__ = ["TABLE", "Statistic", "find", "statistic"]
