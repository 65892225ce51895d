"""What the operator of a site agreed to, in agreed.json of the node's folder: whose exact sums may be computed.

Two totals without noise, one with a site and one without it, differ in that site's sums. A site does not contribute to
a second one unless its operator agreed to that, by the name of the other site; or by its own, for its own sums.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gosta.errors import InputError
from gosta.net.addresses import NAME_PATTERN, NAME_RULE
from gosta.runtime.files import write_atomically

AGREED_FILE = "agreed.json"
MAX_BYTES = 1 << 20
MAX_SITES = 10_000
HINT = "delete it, and agree again: gosta network agree FOLDER SITE..."


class Agreements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of agreed.json."""

    # Names of sites whose exact sums may be computed from two totals, and when that was agreed to, in seconds since
    # 1970; some may no longer be members.
    sites: Annotated[dict[str, float], Meta(max_length=MAX_SITES)] = {}
    leaves: bool = False  # whether this site contributes to no further epoch


def read_agreements(folder: Path) -> Agreements:
    """Read what was agreed to in a node's folder: nothing if there is no file; `InputError` if it is damaged."""
    path = folder / AGREED_FILE
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return Agreements()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    if len(content) > MAX_BYTES:
        raise InputError(
            f"{path} has more than {MAX_BYTES >> 20} MiB, the limit for agreements; {HINT}"
        )
    try:
        found = msgspec.json.decode(content, type=Agreements)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} does not hold agreements ({error}); {HINT}") from None
    try:
        check_sites(found.sites)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return found


def add_agreement(folder: Path, names: Iterable[str]) -> Agreements:
    """Agree that the exact sums of these sites may be computed; return all that was agreed to."""
    return _write(folder, read_agreements(folder), names)


def set_leaving(folder: Path, leaves: bool, name: str = "") -> Agreements:
    """Say that a site leaves, or that it does not; with its own name, agree about its own sums, or no longer."""
    old = msgspec.structs.replace(read_agreements(folder), leaves=leaves)
    if leaves or not name:
        return _write(folder, old, [name] if name else [])
    return _write(
        folder,
        msgspec.structs.replace(
            old, sites={one: at for one, at in old.sites.items() if one != name}
        ),
    )


def check_sites(names: Iterable[str]) -> None:
    """Raise `InputError` for names that no site can have."""
    for name in names:
        if not NAME_PATTERN.fullmatch(name):
            raise InputError(f"site = {name[:80]!r}: a site's name has {NAME_RULE}")


def _write(folder: Path, old: Agreements, names: Iterable[str] = ()) -> Agreements:
    sites = {**old.sites, **dict.fromkeys(names, time.time())}
    check_sites(sites)
    if len(sites) > MAX_SITES:
        raise InputError(
            f"{len(sites):,} sites are more than the limit of {MAX_SITES:,} in {folder / AGREED_FILE}; {HINT}"
        )
    new = msgspec.structs.replace(old, sites=sites)
    write_atomically(
        folder / AGREED_FILE,
        msgspec.json.format(msgspec.json.encode(new), indent=1) + b"\n",
        mode=0o600,
    )
    return new
