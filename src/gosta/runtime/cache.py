"""Where things are kept between runs: compiled code and downloaded files."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def folder(name: str) -> Path:
    """A folder under GOSTA_CACHE_DIR, or else in the platform's place for such things; it may not exist yet."""
    return Path(os.environ.get("GOSTA_CACHE_DIR") or platformdirs.user_cache_dir("gosta")) / name
