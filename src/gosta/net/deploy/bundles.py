"""The files that a coordinator and its sites send each other; none of them is secret.

An invitation goes to all sites, a request comes back from each, and a bundle goes to each. What a
file says is checked on the phone, by its fingerprint, or follows from what was checked there: a
bundle is signed by the coordinator, whose authority the invitation names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from gosta.errors import InputError
from gosta.net import addresses, members
from gosta.net.config import Task
from gosta.net.limits import MAX_ROWS
from gosta.net.members import COORDINATOR, MAX_LIST_BYTES, MAX_MEMBERS, Pem, ShortText, SignedList
from gosta.runtime.files import read_json, write_json

INVITATION_FILE, REQUEST_FILE, CSR_FILE = "invitation.json", "request.json", "request.csr"
MAX_INVITATION_BYTES = 1 << 24  # with the files that the statistic needs
MAX_REQUEST_BYTES = 1 << 16
# a member list and the addresses of 10,000 neighbours
MAX_BUNDLE_BYTES = MAX_LIST_BYTES + (1 << 21)


class Invitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a network computes, and the certificate of its authority."""

    network: Task
    # that the statistic needs: code, options
    files: Annotated[dict[ShortText, bytes], Meta(max_length=20)]
    authority: Pem


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site that wants to be a member, or to change its key, its address or its number of rows."""

    network: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    name: str
    # host:port where neighbours reach it; empty: it only dials out
    address: Annotated[str, Meta(max_length=300)]
    rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)]  # that it declares; 0: not declared
    request: Pem  # the certificate signing request


# name: host:port
Places = Annotated[dict[str, Annotated[str, Meta(max_length=300)]], Meta(max_length=MAX_MEMBERS)]


class Bundle(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What makes a site a member: its certificate, the member list, and its neighbours."""

    name: str
    certificate: Pem
    neighbours: Places  # empty addresses: they only dial out
    members: SignedList
    forwarders: Places = {}  # members that connect it to such neighbours, if it only dials out too


File = TypeVar("File", Invitation, Request, Bundle)
MAX_BYTES = {Invitation: MAX_INVITATION_BYTES, Request: MAX_REQUEST_BYTES, Bundle: MAX_BUNDLE_BYTES}


def read(path: Path, kind: type[File]) -> File:
    """Read a file of one of the three kinds and check it."""
    what = f"a {kind.__name__.lower()}"
    try:
        return read_json(path, kind, MAX_BYTES[kind], what, "ask for it again", _check)
    except FileNotFoundError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def write(path: Path, content: Invitation | Request | Bundle) -> None:
    """Write a file of one of the three kinds."""
    write_json(path, content)


def fingerprint(content: Invitation | Request) -> str:
    """Return the fingerprint of all that a file says, to compare on the phone."""
    return members.fingerprint(msgspec.json.encode(content, order="sorted"))


def check_site_name(name: str) -> None:
    """Raise `InputError` for a name that a site cannot have."""
    addresses.check_name("name", name)
    if name.lower() == COORDINATOR:
        raise InputError(f"name = {name!r} is that of the coordinator; choose another one")


def _check(content: Invitation | Request | Bundle) -> None:
    if isinstance(content, Request):
        check_site_name(content.name)
        if content.address:
            addresses.check_address("address", content.address)
    elif isinstance(content, Bundle):
        check_site_name(content.name)
        members.check_list(content.members.list)
        listed = content.members.list.keys
        for kind, places in (("neighbour", content.neighbours), ("forwarder", content.forwarders)):
            for name, address in places.items():
                if name not in listed or name == content.name:
                    raise InputError(f"{kind} {name[:80]!r} is not another member of the list")
                if address or kind == "forwarder":
                    addresses.check_address(f"address of {name}", address)
    else:
        for name in content.files:
            is_plain = name == Path(name).name and name.isprintable()
            if not name or name.startswith(".") or not is_plain:
                raise InputError(
                    f"the name {name[:80]!r} of a file must be a plain name without a folder"
                )
