"""Make links between the site and the documents beside it work in both places.

SECURITY.md, CONTRIBUTING.md and CHANGELOG.md stand in the root of the repository; docs/project/
includes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata

ROOT_DOCUMENT = re.compile(r"\]\((?:\.\./)*(SECURITY|CONTRIBUTING|CHANGELOG)\.md")


def rewrite(text: str) -> str:
    """Return a page with links between the root and docs/ turned into links of the site.

    >>> rewrite("[a](../../SECURITY.md#keys), [b](docs/how-to/watch.md)")
    '[a](/project/security.md#keys), [b](/how-to/watch.md)'
    """
    text = ROOT_DOCUMENT.sub(lambda match: f"](/project/{match[1].lower()}.md", text)
    return text.replace("](docs/", "](/")


def _rewrite_content(_app: Sphinx, *arguments: object) -> None:
    content = arguments[-1]
    assert isinstance(content, list)
    content[0] = rewrite(content[0])


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("source-read", _rewrite_content)
    app.connect("include-read", _rewrite_content)
    return {"parallel_read_safe": True}
