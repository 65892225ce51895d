"""Make PNG files small, for the repository: fewer pixels and colours. Run with: make pictures"""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

# With these an image takes about 100 kB.
WIDTH = 1400  # pixels at most
COLOURS = 256  # colours at most


def shrink(source: Path, target: Path) -> None:
    """Write a smaller copy of an image."""
    image = Image.open(source).convert("RGB")
    image.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
    few = image.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(target, optimize=True)


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        shrink(file, file)
