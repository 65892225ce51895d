"""``gosta report``: the report of a validation study, as a page of HTML or as a PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gosta.cli import options
from gosta.errors import InputError
from gosta.runtime.extras import require_extra

DEFAULT = "report.html"


def report(
    folder: Annotated[Path, typer.Argument(help="The study's folder, with results.json.")],
    out: Annotated[
        Path | None, "The file to write, .html or .pdf; by default report.html in the folder."
    ] = None,
) -> None:
    """Write the report of a validation study: tables, curves, methods, privacy, TRIPOD+AI."""
    from gosta.reports import content, html_page, pdf_pages
    from gosta.runtime.files import write_atomically
    from gosta.studies import results

    file = folder / DEFAULT if out is None else out
    ending = file.suffix.lower()
    if ending not in (".html", ".pdf"):
        raise InputError(f"out = {str(file)!r} must end in .html or .pdf")
    found = results.read(folder)
    options.check_writable("out", file)
    require_extra("plot", purpose="drawing the report's pictures")
    made = content.build(found)
    if ending == ".pdf":
        write_atomically(file, pdf_pages.render(made))
    else:
        write_atomically(file, html_page.render(made))
    print(f"report: {file}")
