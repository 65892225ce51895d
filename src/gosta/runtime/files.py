"""Files: written so that a crash or a full disk never leaves half a file behind; TOML read with a limit."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

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


def read_toml(path: Path, max_bytes: int, hint: str) -> dict[str, Any]:
    """Read a file of settings of limited size; `hint` says how to repair it. `FileNotFoundError` if there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > max_bytes:
        raise InputError(
            f"{path} has more than {max_bytes >> 20} MiB, the limit for such files; is it another file?"
        )
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; {hint}") from None
