"""Write the page of a run, which the home page shows.

400 nodes agree on an AUC; the run is played in the browser.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import gosta

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.util.typing import ExtensionMetadata


def _write(app: Sphinx, exception: Exception | None) -> None:
    page = Path(app.outdir) / "run.html"
    if exception is None and app.builder.name == "html":
        data = gosta.datasets.load("breast-cancer", n=400)
        trace = gosta.simulate(data, "auc", graph="watts-strogatz", runs=1, iterations=20_000)
        trace.report(page)


def setup(app: Sphinx) -> ExtensionMetadata:
    app.connect("build-finished", _write, priority=400)  # before links are checked
    return {"parallel_read_safe": True}
