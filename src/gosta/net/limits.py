"""Bounds on every number that a node reads from its files or from a neighbour."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 256 * 1024  # enough for a visitor of 8 rows of 3,600 numbers
MAX_ROW_VALUE: Final = 1e50  # products of kernel values of such rows are still finite
MAX_ESTIMATE: Final = 1e250  # sums of products of two kernel values of such rows stay below
MAX_COUNT: Final = 2**53  # integers up to here are exact in a float and in JSON
MAX_ROWS: Final = 2**40  # at one node
MAX_NAME_CHARACTERS: Final = 64
MAX_EPOCHS_AHEAD: Final = 2**32  # a neighbour further ahead is wrong, and following it would leave no epochs to start
MAX_HOMES: Final = 100_000  # nodes whose visitors one node keeps apart
