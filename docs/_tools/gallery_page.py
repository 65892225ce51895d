"""Write docs/reference/gallery.md and its images from what `gosta reproduce` made.

Run with: make gallery
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from small_images import shrink

DOCS = Path(__file__).parent.parent
IMAGES = DOCS / "images" / "gallery"


def write(results: Path) -> None:
    """Copy the page, and the figures in small files, from a folder of results."""
    text = (results / "results.md").read_text(encoding="utf-8")
    (DOCS / "reference" / "gallery.md").write_text(
        text.replace("](figure", "](../images/gallery/figure"), encoding="utf-8"
    )
    shutil.rmtree(IMAGES, ignore_errors=True)
    IMAGES.mkdir()
    for figure in sorted(results.glob("figure*.png")):
        shrink(figure, IMAGES / figure.name)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
