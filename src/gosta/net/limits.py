"""Bounds on every number that a node reads from its files or from a neighbour."""

MAX_MESSAGE_BYTES = 256 * 1024  # enough for a visitor of 8 rows of 3,600 numbers
MAX_ROW_VALUE = 1e50  # products of kernel values of such rows are still finite
MAX_ESTIMATE = 1e250  # sums of products of two kernel values of such rows stay below
MAX_COUNT = 2**53  # integers up to here are exact in a float and in JSON
MAX_ROWS = 2**40  # at one node
MAX_NAME_CHARACTERS = 64
MAX_EPOCHS_AHEAD = 2**32  # a neighbour further ahead is wrong, and following it would leave no epochs to start
MAX_HOMES = 100_000  # nodes whose visitors one node keeps apart
