"""The dictionary of a study or a network: what each column means, and which values it can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from gosta.errors import InputError
from gosta.runtime.settings_file import Key, read_settings

MAX_FILE_BYTES = 1 << 20
FIX_HINT = 'fix the line; a column is a section [columns.risk] with type = "number" or "class"'


class Column(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a column means, the same at all sites."""

    type: Annotated[Literal["number", "class"], Key("number, or class: one of a few values")] = (
        "number"
    )
    unit: Annotated[str, Key("of its numbers, such as years")] = ""
    range: Annotated[
        tuple[float, float] | None,
        Key("lowest and highest number that sites expect, beyond which numbers count as these"),
    ] = None
    classes: Annotated[
        tuple[str | int | float, ...],
        Key("all its values, at all sites; of an outcome, the positive one last"),
    ] = ()
    description: Annotated[str, Key("what it is, in a sentence")] = ""

    @property
    def is_risk(self) -> bool:
        """Whether its range is within that of a predicted risk, from 0 to 1."""
        return self.range is not None and 0 <= self.range[0] < self.range[1] <= 1

    def describe(self) -> str:
        """Return the entry in words.

        >>> Column(unit="years", range=(18, 110), description="age at admission").describe()
        'number in years, 18 to 110: age at admission'
        >>> Column("class", classes=("no", "yes")).describe()
        'class: no, yes'
        """
        unit = f" in {self.unit}" if self.unit else ""
        range_ = f", {self.range[0]:g} to {self.range[1]:g}" if self.range else ""
        classes = ", ".join(map(str, self.classes))
        parts = (f"{self.type}{unit}{range_}", classes, self.description)
        return ": ".join(filter(None, parts))


class DictionaryFile(msgspec.Struct, frozen=True):
    """What is read of a file with a dictionary, such as a study.toml."""

    columns: dict[str, Column]


def read_dictionary(path: Path) -> dict[str, Column]:
    """Read the sections [columns.NAME] of a file in TOML."""

    def check(file: DictionaryFile) -> None:
        check_dictionary(file.columns)

    try:
        return read_settings(path, DictionaryFile, MAX_FILE_BYTES, check, FIX_HINT).columns
    except FileNotFoundError:
        raise InputError(f"dictionary = {str(path)!r}: there is no such file") from None


def check_dictionary(columns: Mapping[str, Column]) -> None:
    """Raise `InputError` for columns that no file can have."""
    for name, column in columns.items():
        where = f"columns.{name}"
        if column.type == "class" and (column.range is not None or column.unit):
            what = "range" if column.range is not None else "unit"
            raise InputError(f"{where}.{what} is for numbers, and its type is class; remove one")
        if column.type == "number" and column.classes:
            raise InputError(f"{where}.classes is for classes, and its type is number; remove one")
        if len({str(value) for value in column.classes}) < len(column.classes):
            raise InputError(f"{where}.classes = {list(column.classes)!r} must name each once")
        if column.range is not None:
            low, high = column.range
            if not (math.isfinite(low) and math.isfinite(high) and low < high):
                raise InputError(
                    f"{where}.range = [{low:g}, {high:g}] must be the lowest and the highest "
                    "number, such as [0, 1]"
                )
