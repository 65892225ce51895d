"""Files: written whole or not at all; TOML and JSON read with a limit; the folder of the cache."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from gosta.errors import InputError

Content = TypeVar("Content", bound=msgspec.Struct)


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


def read_limited(path: Path, max_bytes: int, what: str) -> bytes:
    """Read a file of limited size; `what` says in messages what it holds.

    `FileNotFoundError` if there is none.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > max_bytes:
        limit = f"{max_bytes >> 20} MiB" if max_bytes >= 1 << 20 else f"{max_bytes >> 10} KiB"
        raise InputError(f"{path} has more than {limit}, the limit for {what}")
    return content


def read_json(
    path: Path,
    kind: type[Content],
    max_bytes: int,
    what: str,
    hint: str,
    check: Callable[[Content], None],
) -> Content:
    """Read a struct from a JSON file of limited size, and check it.

    `what` says what it holds, and `hint` how to repair it. `FileNotFoundError` if there is none.
    """
    content = read_limited(path, max_bytes, what)
    try:
        found = msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path}: it does not hold {what} ({error}); {hint}") from None
    try:
        check(found)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return found


def write_json(path: Path, content: msgspec.Struct, mode: int = 0o644) -> None:
    """Write a struct as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(content), indent=1)
    write_atomically(path, text + b"\n", mode)


def read_toml(path: Path, max_bytes: int, hint: str) -> dict[str, Any]:
    """Read a file of settings of limited size; `hint` says how to repair it.

    `FileNotFoundError` if there is none.
    """
    content = read_limited(path, max_bytes, "such files; is it another file?")
    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise InputError(f"cannot read {path}: it is not text in UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"cannot read {path}: {error}; {hint}") from None


def cache_folder(name: str) -> Path:
    """Return a folder for files kept between runs, such as compiled code; it is not created.

    It is in GOSTA_CACHE_DIR, or in the platform's user cache folder.
    """
    import platformdirs

    return Path(os.environ.get("GOSTA_CACHE_DIR") or platformdirs.user_cache_dir("gosta")) / name
