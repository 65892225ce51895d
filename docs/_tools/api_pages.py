"""Pages of public names: comments describe fields, and types link to their pages."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from public_names import fields, public_names

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx import addnodes
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment
    from sphinx.util.typing import ExtensionMetadata

BEFORE_NUMPYDOC = 100  # which reads the sections at 500
ARRAYS = ("Booleans", "Edges", "Floats", "Integers")  # names of array types inside the package


def _sentence(comment: str) -> str:
    """Return a comment with a capital letter, unless it begins with a symbol, and a full stop."""
    first = comment.split(maxsplit=1)[0]
    is_symbol = len(first) == 1 and first != "a"
    return (comment if is_symbol else comment[0].upper() + comment[1:]).rstrip(".") + "."


def _add_fields(
    _app: Sphinx, what: str, _name: str, value: Any, _options: object, lines: list[str]
) -> None:
    """Add the fields that the docstring of a class does not name to its section Attributes."""
    if what not in ("class", "exception") or not inspect.isclass(value):
        return
    said = "\n".join(lines)
    items = []
    for name, field in fields(value).items():
        if field.comment and f"\n{name}\n" not in said:
            annotation = re.sub(rf"\b({'|'.join(ARRAYS)})\b", "ndarray", field.annotation)
            items += [f"{name} : {annotation}", f"    {_sentence(field.comment)}"]
    if not items:
        return
    # Lines below headings consist of dashes.
    headings = [k for k in range(1, len(lines)) if lines[k] and set(lines[k]) == {"-"}]
    titles = {lines[k - 1]: k - 1 for k in headings}
    after = min(
        (titles[title] for title in ("Examples", "Notes") if title in titles), default=len(lines)
    )
    if "Attributes" not in titles:
        items = ["Attributes", "----------", *items]
    elif lines[after - 1] == "":
        after -= 1
    lines[after:after] = [*([""] if items[0] == "Attributes" else []), *items, ""]


def _skip(
    _app: Sphinx, _what: str, _name: str, value: object, _skip: bool, _options: object
) -> bool | None:
    """Leave out fields of NamedTuples, which stand under Attributes, and methods that scikit-learn
    writes.
    """
    is_field = (inspect.getdoc(value) or "").startswith("Alias for field number")
    is_of_others = str(getattr(value, "__module__", "")).startswith("sklearn.")
    return True if is_field or is_of_others else None


def _resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.TextElement
) -> nodes.Node | None:
    """Resolve the full name of a public object to its page; show other names as they are."""
    if node.get("refdomain") != "py":
        return None
    homes = {
        f"{getattr(v, '__module__', '')}.{getattr(v, '__qualname__', '')}": n
        for n, v in public_names().items()
    }
    if (name := homes.get(node["reftarget"])) is not None:
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, content)
    # Names in a signature or a docstring are shown even if they are not public.
    is_in_code = node["reftype"] in ("class", "obj") and "py:module" in node
    return content if is_in_code else None


def _hide_overloads(_app: Sphinx) -> None:
    """Show a function with its own signature, without those that type checkers need."""
    from sphinx.pycode import ModuleAnalyzer

    for value in public_names().values():
        if inspect.isfunction(value):
            analyzer = ModuleAnalyzer.for_module(value.__module__)
            analyzer.analyze()
            analyzer.overloads.clear()


def setup(app: Sphinx) -> ExtensionMetadata:
    from sphinx.util.inspect import TypeAliasForwardRef

    # Signatures show aliases by their last name, as in `float | ndarray`.
    TypeAliasForwardRef.__repr__ = lambda self: self.name.rpartition(".")[2]
    app.connect("builder-inited", _hide_overloads)
    app.connect("autodoc-process-docstring", _add_fields, BEFORE_NUMPYDOC)
    app.connect("autodoc-skip-member", _skip)
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True}
