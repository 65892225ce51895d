"""Reference pages completed at build: the command line, the list of protocols, the glossary.

A page of docs/reference/ holds what stands before the list; the list is appended when the page is
read. The glossary is a table, which every forge shows, and is read as a glossary, so that pages can
refer to {term}`visitor`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from typer.main import get_command

from gosta import protocols
from gosta.cli.examples import EXAMPLES
from gosta.cli.main import _app
from gosta.protocols.protocol import MEET_INPUTS

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def command_line() -> str:
    """Return every command with its arguments, options and examples, in Markdown."""
    return "\n".join(_command("gosta", get_command(_app()), 2))


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    if name != "gosta":
        yield f"{'#' * level} {name}\n"
        yield inspect.cleandoc(_plain(command.help or "")) + "\n"
    inside = getattr(command, "commands", None)
    if inside is not None:
        for subname, subcommand in inside.items():
            yield from _command(f"{name} {subname}", subcommand, level + (name != "gosta"))
        return
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"```text\n{name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    panels: dict[str, list[tuple[str, str]]] = {}
    # Arguments come first.
    for parameter in sorted(command.params, key=lambda parameter: parameter.param_type_name):
        # A record says how an option is written, and what it does; None if it is hidden.
        record = parameter.get_help_record(context)
        if record is not None:
            title = parameter.rich_help_panel or f"{parameter.param_type_name}s"
            panels.setdefault(title, []).append(record)
    for title, records in panels.items():
        yield f"| {title} | |\n| --- | --- |"
        for written, said in records:
            yield f"| `{_cell(written)}` | {_cell(_plain(said))} |"
        yield ""
    examples = [line for line in EXAMPLES.splitlines() if f"{line} ".startswith(f"{name} ")]
    if examples:
        yield "Examples:\n\n```text\n" + "\n".join(examples) + "\n```\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _plain(text: str) -> str:
    """Return a help text without the markup of the terminal, which a page shows in its own way."""
    return re.sub(r"\[/?(bold|dim|italic)\]", "", text).replace("\\[", "[")


def protocol_list() -> str:
    """Return a table of all protocols, and one of the inputs of a rule, in Markdown."""
    rows = [
        "| protocol | what it does | a node keeps | an iteration sends |",
        "| --- | --- | --- | --- |",
    ]
    for name, protocol in protocols.PROTOCOLS.items():
        mark = " (the default)" if name == protocols.DEFAULT else ""
        rows.append(
            f"| `{name}`{mark} | {protocol.summary} | {protocol.keeps} | {protocol.sends} |"
        )
    rows += [
        "",
        "## Inputs of a rule",
        "",
        "After the two states, `meet` of a {py:class}`gosta.Protocol` can name:",
        "",
    ]
    rows += [
        "| input | what it is |",
        "| --- | --- |",
        *(f"| `{k}` | {what} |" for k, what in MEET_INPUTS.items()),
    ]
    return "\n".join(rows) + "\n"


def as_glossary(page: str) -> str:
    """Return a page with its table of terms as a glossary.

    >>> print(as_glossary("| **site** | Who owns rows. |\\n"))
    ```{glossary}
    site
      Who owns rows.
    ```
    """
    row = re.compile(r"^\| \*\*(.+?)\*\*(.*?) \| (.+) \|$", re.M)
    entries = [f"{term}{more}\n  {meaning}" for term, more, meaning in row.findall(page)]
    return page[: page.index("|")] + "```{glossary}\n" + "\n\n".join(entries) + "\n```"


PAGES: dict[str, Callable[[str], str]] = {
    "reference/command-line": lambda page: f"{page}\n{command_line()}",
    "reference/protocols": lambda page: f"{page}\n{protocol_list()}",
    "reference/glossary": as_glossary,
}


def _complete(_app: Sphinx, page: str, content: list[str]) -> None:
    if page in PAGES:
        content[0] = PAGES[page](content[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("source-read", _complete)
    return {"parallel_read_safe": True}
