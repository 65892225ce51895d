"""Check the built pages: every link, anchor and image inside the site exists.

No page loads anything from the web.

Sphinx warns of references that it cannot resolve; this also sees what is written in HTML, templates
and notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

# The attributes by which a tag loads something as soon as the page is shown.
LOADED = {
    "img": "src",
    "script": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
}


class Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if values.get(LOADED.get(tag, "")) and values.get("rel") not in (
            "canonical",
            "index",
            "search",
            "next",
            "prev",
        ):
            self.loaded.add(values[LOADED[tag]])


def problems(folder: Path, pages: Iterable[str]) -> list[str]:
    """Return a line for each link that leads nowhere, and for each resource of the web."""

    @cache
    def page(path: Path) -> Page:
        return Page(path.read_text(encoding="utf-8"))

    lines = []
    for path in sorted(folder / f"{name}.html" for name in pages):
        for address in sorted(page(path).links | page(path).loaded):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page(path).loaded and parts.scheme != "data":
                    lines.append(f"{path.relative_to(folder)} loads {address}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                lines.append(f"{path.relative_to(folder)} refers to {address}, which is not there")
            elif target.suffix == ".html" and unquote(parts.fragment) not in page(target).anchors:
                lines.append(
                    f"{path.relative_to(folder)} refers to {address}, which has no such anchor"
                )
    return lines


def _check(app: Sphinx, exception: Exception | None) -> None:
    from sphinx.util import logging

    logger = logging.getLogger(__name__)
    if exception is None and app.builder.name == "html":
        for line in problems(Path(app.outdir), [*app.env.found_docs, "genindex", "search"]):
            logger.warning(line)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}
