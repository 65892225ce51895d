"""Statistics as functions of sums over rows, so that sums can be computed in place of exchanging rows.

``SKETCHES`` holds all of them by name; importing a family registers its sketches.
"""

from gosta.sketches.definition import SKETCHES, Axis, Features, Result, Sketch

__all__ = ["SKETCHES", "Axis", "Features", "Result", "Sketch"]
