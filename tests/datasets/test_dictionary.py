"""The dictionary of columns: what is refused, in one line."""

from __future__ import annotations

import pytest

from gosta.datasets.dictionary import Column, check_dictionary
from gosta.errors import InputError


def test_columns_that_files_can_have() -> None:
    check_dictionary(
        {"risk": Column(range=(0, 1), unit="%"), "died": Column("class", classes=("no", "yes"))}
    )


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (Column("class", range=(0.0, 1.0)), r"columns.c.range is for numbers"),
        (Column("class", unit="years"), r"columns.c.unit is for numbers"),
        (Column(classes=("a", "b")), r"columns.c.classes is for classes"),
        (Column("class", classes=("a", "a")), r"must name each once"),
        (Column(range=(1.0, 0.0)), r"columns.c.range = \[1, 0\] must be the lowest"),
        (Column(range=(0.0, float("nan"))), r"columns.c.range = \[0, nan\] must be"),
    ],
)
def test_columns_that_are_refused(column: Column, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_dictionary({"c": column})
