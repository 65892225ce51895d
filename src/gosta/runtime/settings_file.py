"""Files of settings in TOML: one table says how their keys are read, checked, written, explained.

The table is a struct: each field is a key with its type and default, and its annotation holds a
`Key` with the range of its values and what it means.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

import msgspec

from gosta.errors import InputError
from gosta.runtime.files import read_toml

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")  # keys that need no quotes in TOML
MAX_SHOWN_CHARACTERS = 60  # of a wrong value in a message
COMMENT_WIDTH = 100  # of comments in a file

Settings = TypeVar("Settings", bound=msgspec.Struct)


class Key(NamedTuple):
    """What is known of a key besides its name, its type and its default."""

    text: str  # what it means, as in the comments of the file
    low: float | None = None  # least number; None: not bounded
    high: float | None = None  # largest number
    excludes_ends: bool = False  # whether `low` and `high` themselves are not allowed
    example: str = ""  # a value as it stands in the file, where the default says little

    def allows(self, number: float) -> bool:
        """Return whether a number is within the bounds; if there are any, it must be finite."""
        if self.low is None and self.high is None:
            return True
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        is_inside = low < number < high if self.excludes_ends else low <= number <= high
        return is_inside and math.isfinite(number)

    def rule(self, is_whole: bool) -> str:
        """Return in words which numbers are allowed.

        >>> Key("", 0, 1000).rule(True), Key("", 0, excludes_ends=True, example="10").rule(False)
        ('a whole number from 0 to 1,000', 'a number above 0, such as 10')
        """
        example = f", such as {self.example}" if self.example else ""
        if self.high is not None:
            words = "between {:,} and {:,}" if self.excludes_ends else "from {:,} to {:,}"
            return "a whole number " * is_whole + words.format(self.low, self.high) + example
        if self.excludes_ends:
            return f"a number above {self.low:,}{example}"
        return f"a {'whole' if is_whole else 'finite'} number, {self.low:,} or more{example}"


def keys_of(kind: type[msgspec.Struct]) -> dict[str, Key]:
    """Return the keys of a struct that have an entry in the table."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        name: entry
        for name in kind.__struct_fields__
        for entry in getattr(hints[name], "__metadata__", ())
        if isinstance(entry, Key)
    }


def check_numbers(settings: msgspec.Struct, place: str = "") -> None:
    """Raise `InputError` for numbers out of bounds; `place` stands before their keys."""
    for name, key in keys_of(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, int | float) and not key.allows(value):
            rule = key.rule(isinstance(value, int))
            raise InputError(f"{place}{name} = {value!r} must be {rule}")


def read_settings(
    path: Path,
    kind: type[Settings],
    max_bytes: int,
    check: Callable[[Settings], None],
    fix_hint: str,
    renamed: Mapping[str, str] = MappingProxyType({}),
) -> Settings:
    """Read a file of settings; raise `InputError` with one line for each mistake in it.

    `renamed` has the new names of keys of earlier versions. `FileNotFoundError` if there is none.
    """
    values = read_toml(path, max_bytes, fix_hint)
    try:
        settings = msgspec.convert(values, kind)
        check(settings)
    except msgspec.ValidationError as error:
        reason = _explain(str(error), values, kind, fix_hint, renamed)
        raise InputError(f"{path}: {reason}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return settings


def _explain(
    error: str,
    values: Mapping[str, Any],
    kind: type[msgspec.Struct],
    fix_hint: str,
    renamed: Mapping[str, str],
) -> str:
    """Return a message of msgspec with the key, its value, and the keys or values that exist."""
    problem, _, place = error.partition(" - at ")
    problem = problem[0].lower() + problem[1:]
    keys = [key for key in re.split(r"[.\[\]`$]+", place) if key]
    section: Any = kind
    for key in (key for key in keys if not key.isdigit()):
        hint = get_type_hints(section).get(key) if hasattr(section, "__struct_fields__") else None
        # Of `X | None`, the struct.
        structs = (each for each in get_args(hint) if hasattr(each, "__struct_fields__"))
        section = next(structs, hint)
    if "field" in problem and hasattr(section, "__struct_fields__"):  # missing or unknown
        where = f" in [{'.'.join(keys)}]" if keys else ""
        key = problem.split("`")[-2]
        if key in renamed:
            return f"key {key!r}{where} is now called {renamed[key]!r}; rename it"
        return f"{problem}{where}; there are: {', '.join(section.__struct_fields__)}"
    value: Any = values
    for key in keys:
        with contextlib.suppress(LookupError, TypeError):
            value = value[int(key) if isinstance(value, list) else key]
    shown = str(value)[:MAX_SHOWN_CHARACTERS]
    choices = ", ".join(map(str, _literals(section)))
    allowed = f"; there are: {choices}" if choices else ""
    return f"{'.'.join(keys)} = {shown!r}: {problem}{allowed}; {fix_hint}"


def _literals(hint: Any) -> Iterator[object]:
    """Yield the values of a `Literal` in a type."""
    for part in get_args(hint):
        if isinstance(part, str):
            yield part
        else:
            yield from _literals(part)


def comments(kind: type[msgspec.Struct], indent: str) -> str:
    """Return comments in TOML on the keys of a struct that have an entry in the table."""
    return "".join(
        textwrap.fill(
            f"{name}: {key.text}",
            COMMENT_WIDTH,
            initial_indent=f"#{indent}",
            subsequent_indent=f"#{indent}    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        + "\n"
        for name, key in keys_of(kind).items()
    )


def to_toml(sections: Mapping[str, Any]) -> str:
    """Return TOML with the plain values first, then a section for each mapping.

    Values that are None are left out.
    """
    plain = {name: value for name, value in sections.items() if not isinstance(value, Mapping)}
    tables = {name: value for name, value in sections.items() if isinstance(value, Mapping)}
    lines = _lines(plain)
    lines += [""] * bool(lines)
    for name, table in tables.items():
        lines += _table_lines(_quote(name), table)
    return "\n".join(lines)


def _table_lines(title: str, table: Mapping[str, Any]) -> list[str]:
    """Return a section, and one of its own for each mapping that holds nothing but mappings."""
    is_outer = _has_mappings_only(table)
    nested = {name: value for name, value in table.items() if is_outer or _has_mappings_only(value)}
    own = {name: value for name, value in table.items() if name not in nested}
    lines = [] if is_outer else [f"[{title}]", *_lines(own), ""]
    for name, value in nested.items():
        lines += _table_lines(f"{title}.{_quote(name)}", value)
    return lines


def _has_mappings_only(value: Any) -> bool:
    is_filled = isinstance(value, Mapping) and bool(value)
    return is_filled and all(isinstance(each, Mapping) for each in value.values())


def _lines(values: Mapping[str, Any]) -> list[str]:
    return [
        f"{_quote(name)} = {toml_value(value)}"
        for name, value in values.items()
        if value is not None
    ]


def _quote(name: str) -> str:
    return name if BARE_KEY.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return a value as it stands in TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_lines(value)) + " }"
    if isinstance(value, list | tuple):
        items = [toml_value(item) for item in value]
        if any(isinstance(item, list | tuple) for item in value):
            return "[\n" + "".join(f"  {item},\n" for item in items) + "]"
        return f"[{', '.join(items)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # inf and nan, as TOML writes them
    # TOML forbids one character that JSON allows.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
