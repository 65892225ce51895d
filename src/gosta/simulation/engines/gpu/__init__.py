"""The engine on a GPU: the exchanges of the compiled engine by numba-cuda, with the same numbers.

A kernel that calls exp, log or a power may differ in the last digit, since a GPU computes these in
its own way. `exchange_loop.py` and `edge_loop.py` are templates of the loops; they are compiled
from their text, not imported. Nothing of numba-cuda is imported before a simulation asks for this
engine.
"""
