"""Files kept between runs: compiled code and downloads."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def folder(name: str) -> Path:
    """Return a folder under GOSTA_CACHE_DIR, or in the platform's user cache folder; it is not created."""
    return Path(os.environ.get("GOSTA_CACHE_DIR") or platformdirs.user_cache_dir("gosta")) / name
