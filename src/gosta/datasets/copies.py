"""Rows and identifiers that a file has more than once."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gosta.datasets.data import Data
from gosta.datasets.meanings import words_of
from gosta.datasets.roles import WORDS
from gosta.runtime.arrays import Booleans

FEWEST_ROWS = 20  # in which copies are looked for
CHANCE = 0.1  # of the pairs of equal rows, that there would be if columns were independent
LEAST_DISTINCT = 0.8  # of the rows, of values that name rows in a column that is called so
LEAST_UNNAMED = 0.9  # the same of whole numbers in a row, and of codes such as P0012
CODE = re.compile(r"[A-Za-z]{1,4}[-_ ]?\d{2,}")
MORE_WORDS = "mrn pesel processo utente numer pacjent paciente paziente patiente"
ID_WORDS = {*WORDS["identifier"].split(), *MORE_WORDS.split()}


def copied_rows(data: Data) -> Booleans:
    """Return which rows are exact copies of earlier ones; none if chance makes as many.

    Few columns of classes are often equal in many rows: then nothing is said.
    """
    none = np.zeros(len(data), dtype=np.bool_)
    if len(data) < FEWEST_ROWS:
        return none
    rows = np.zeros(len(data), dtype=np.int64)
    all_pairs = by_chance = len(data) * (len(data) - 1) / 2
    for column in data.columns.values():
        codes = _codes(column)
        by_chance *= _equal_pairs(codes) / all_pairs
        rows = np.unique(rows * (codes.max() + 1) + codes, return_inverse=True)[1]
    return _is_repeated(rows) if _equal_pairs(rows) * CHANCE > by_chance else none


def _equal_pairs(codes: NDArray[np.int64]) -> float:
    counts = np.bincount(codes)
    return float(np.sum(counts * (counts - 1.0)) / 2)


def repeated_ids(data: Data, but: Booleans) -> dict[str, Booleans]:
    """Return the columns that name rows, and which rows have a name of earlier ones.

    Rows of `but` do not count.
    """
    found = {}
    for name, column in data.columns.items():
        codes = _codes(column)
        repeated = _is_repeated(codes) & ~but & _present(column)
        if repeated.any() and _names_rows(name, column[_present(column)]):
            found[name] = repeated
    return found


def _names_rows(name: str, present: NDArray[Any]) -> bool:
    """Return whether the values of a column seem to name rows, by its name or by their form."""
    if len(present) < FEWEST_ROWS or present.dtype.kind not in "OUiuf":
        return False
    is_number = present.dtype.kind in "iuf"
    if is_number and (present != np.rint(present)).any():
        return False
    share = len({*present.tolist()}) / len(present)
    if share >= LEAST_DISTINCT and ID_WORDS & {*words_of(name)}:
        return True
    if share < LEAST_UNNAMED:
        return False
    if is_number:
        return bool(np.ptp(present) < 2 * len(present))
    return all(isinstance(one, str) and CODE.fullmatch(one.strip()) for one in present.tolist())


def _present(column: NDArray[Any]) -> Booleans:
    return np.array([value is not None and value == value for value in column.tolist()])


def _codes(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each different value of a column; missing values are equal."""
    numbers: dict[Any, int] = {}
    values = (value if value == value else None for value in column.tolist())
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], dtype=np.int64)


def _is_repeated(codes: NDArray[np.int64]) -> Booleans:
    """Return which values are those of earlier rows."""
    repeated = np.ones(len(codes), dtype=np.bool_)
    repeated[np.unique(codes, return_index=True)[1]] = False
    return repeated
