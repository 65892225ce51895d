"""What a site's operator agreed to, in agreed.json: whose exact sums may be computed.

Two totals without noise, one with a site and one without it, differ in that site's sums. A site
does not contribute to a second one unless its operator agreed to that, by the name of the other
site; or by its own, for its own sums.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gosta.errors import InputError
from gosta.net.addresses import check_name
from gosta.runtime.files import read_json, write_json

AGREED_FILE = "agreed.json"
MAX_BYTES = 1 << 20
MAX_SITES = 10_000
HINT = "delete it, and agree again: gosta network agree FOLDER SITE..."


class Agreements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of agreed.json."""

    # Names of sites whose exact sums may be computed from two totals, and when that was agreed to,
    # in seconds since 1970; some may no longer be members.
    sites: Annotated[dict[str, float], Meta(max_length=MAX_SITES)] = {}
    leaves: bool = False  # whether this site contributes to no further epoch


def read_agreements(folder: Path) -> Agreements:
    """Read what was agreed to in a node's folder: nothing if there is no file."""
    path = folder / AGREED_FILE
    try:
        return read_json(
            path,
            Agreements,
            MAX_BYTES,
            "agreements",
            HINT,
            lambda agreed: check_sites(agreed.sites),
        )
    except FileNotFoundError:
        return Agreements()


def add_agreement(folder: Path, names: Iterable[str]) -> Agreements:
    """Agree that the exact sums of these sites may be computed; return all that was agreed to."""
    return _write(folder, read_agreements(folder), names)


def set_leaving(folder: Path, leaves: bool, name: str = "") -> Agreements:
    """Say that a site leaves, or that it does not.

    With its own name, it agrees about its own sums, or no longer.
    """
    old = msgspec.structs.replace(read_agreements(folder), leaves=leaves)
    if leaves or not name:
        return _write(folder, old, [name] if name else [])
    others = {site: time_ for site, time_ in old.sites.items() if site != name}
    return _write(folder, msgspec.structs.replace(old, sites=others))


def check_sites(names: Iterable[str]) -> None:
    """Raise `InputError` for names that no site can have."""
    for name in names:
        check_name("site", name)


def _write(folder: Path, old: Agreements, names: Iterable[str] = ()) -> Agreements:
    sites = {**old.sites, **dict.fromkeys(names, time.time())}
    check_sites(sites)
    if len(sites) > MAX_SITES:
        raise InputError(
            f"{len(sites):,} sites are more than the limit of {MAX_SITES:,} in "
            f"{folder / AGREED_FILE}; {HINT}"
        )
    new = msgspec.structs.replace(old, sites=sites)
    write_json(folder / AGREED_FILE, new, mode=0o600)
    return new
