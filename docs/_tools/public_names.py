"""The public names of the package, and what the comments beside the fields of its classes say.

The names have pages in docs/reference/api/, written by autosummary;
tests/repository/test_documentation.py asks for them.
"""

from __future__ import annotations

import ast
import inspect
import io
import textwrap
import tokenize
from functools import cache
from types import ModuleType
from typing import NamedTuple

import gosta


@cache
def public_names() -> dict[str, object]:
    """Return all public objects by name.

    One that is public in two modules has its shorter name only.

    >>> public_names()["gosta.Graph"] is gosta.graphs.Graph
    True
    """
    modules = [
        gosta,
        *(value for name in gosta.__all__ if isinstance(value := getattr(gosta, name), ModuleType)),
    ]
    names: dict[str, object] = {}
    for module in modules:
        called = "gosta" if module is gosta else f"gosta.{module.__name__.rpartition('.')[2]}"
        for name in _own_names(module):
            value = getattr(module, name)
            if isinstance(value, ModuleType) or any(value is other for other in names.values()):
                continue
            names[f"{called}.{name}"] = value
    return names


def _own_names(module: ModuleType) -> list[str]:
    """Return the public names of a module: `__all__`, or what it re-exports of its submodules."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    inside = f"{module.__name__}."
    return [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith(inside)
    ]


class Field(NamedTuple):
    """A field of a dataclass, a NamedTuple or a struct."""

    annotation: str
    comment: str  # empty, if it has none


def fields(cls: type) -> dict[str, Field]:
    """Return the fields of a class and its bases with the comments beside or above them.

    >>> fields(gosta.Graph)["n"]
    Field(annotation='int', comment='number of nodes')
    """
    by_name: dict[str, Field] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.startswith("gosta.") and "__annotations__" in vars(base):
            by_name |= _fields_in(textwrap.dedent(inspect.getsource(base)))
    return {name: field for name, field in by_name.items() if not name.startswith("_")}


def _fields_in(source: str) -> dict[str, Field]:
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.ClassDef)
    lines = source.splitlines()
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    by_name = {}
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above: list[str] = []
            line = node.lineno - 1
            while line in comments and lines[line - 1].lstrip().startswith("#"):
                above.insert(0, comments[line])
                line -= 1
            own_lines = range(node.lineno, (node.end_lineno or 0) + 1)
            beside = [comments[number] for number in own_lines if number in comments]
            said = " ".join([*above, *beside])
            annotation = node.annotation
            # A key of a settings file says itself what it means: Annotated[int, Key("...")].
            match annotation:
                case ast.Subscript(ast.Name("Annotated"), ast.Tuple([kind, ast.Call() as key])):
                    annotation = kind
                    said = "; ".join(filter(None, [ast.literal_eval(key.args[0]), said]))
            by_name[node.target.id] = Field(ast.unparse(annotation), said)
    return by_name
