"""Writing files so that a crash or a full disk never leaves half a file behind."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from gosta.errors import InputError


def write_atomically(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Write a file under a temporary name, flush it to disk and rename it into place.

    On failure the old file, if any, is unchanged and `InputError` names the path and the reason.
    """
    try:
        payload = content.encode() if isinstance(content, str) else content
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            Path(draft).chmod(mode)
            Path(draft).replace(path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    except UnicodeEncodeError:
        raise InputError(f"cannot write {path}: its content is not valid UTF-8 text") from None
