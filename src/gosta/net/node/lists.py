"""Member lists on the wire: a node passes its list on to neighbours with an older one, to be accepted there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gosta.errors import InputError
from gosta.net import members
from gosta.net.members import CONFLICT_FILE, MEMBERS_FILE, PROPOSED_FILE


class ListFolder:
    """The member lists in a node's folder."""

    def __init__(self, folder: Path, network: str, log: Callable[..., None]) -> None:
        self._folder, self._network, self._log = folder, network, log

    def content(self) -> bytes:
        """Return the list that this node has accepted, as a file; empty if it cannot be read."""
        try:
            return (self._folder / MEMBERS_FILE).read_bytes()
        except OSError:
            return b""

    def proposed(self, serial: int) -> int:
        """Return the serial number of a list that waits to be accepted, if it is newer than a given one; else 0."""
        try:
            found = members.read_list(self._folder / PROPOSED_FILE).list.serial
        except InputError:
            return 0
        return found if found > serial else 0

    def propose(self, content: bytes, serial: int, digest: bytes) -> None:
        """Write a list that is newer than a serial number to the folder, where the operator can accept it.

        One with the same serial number and another digest is kept as evidence: see `conflict`. Raises `InputError` if
        the coordinator has not signed it.
        """
        signed, path = members.parse_list(content), self._folder / PROPOSED_FILE
        if signed.list.serial > max(serial, self.proposed(serial)):
            members.verify_list(signed, (self._folder / "ca.pem").read_bytes(), self._network)
            members.write_list(path, signed)
            self._log(
                "member list proposed",
                serial=signed.list.serial,
                accept=f"gosta node accept {self._folder}",
            )
        elif signed.list.serial == serial and members.digest_of(signed.list) != digest:
            members.verify_list(signed, (self._folder / "ca.pem").read_bytes(), self._network)
            members.write_list(self._folder / CONFLICT_FILE, signed)

    def conflict(self, serial: int, digest: bytes) -> str:
        """Return why the accepted list cannot be trusted: the coordinator signed another one with its serial number.

        Then sites may see different members, with keys that are not theirs. Empty: there is no evidence of that.
        """
        try:
            other = members.read_list(self._folder / CONFLICT_FILE).list
        except InputError:
            return ""
        if other.serial != serial or members.digest_of(other) == digest:
            return ""
        return (
            f"the coordinator signed two member lists with the serial number {serial}, this site's and that in "
            f"{CONFLICT_FILE}; nothing is contributed until it signs a new one: compare fingerprints with other sites"
        )

    def fingerprint(self) -> str:
        """Return the fingerprint of the accepted list, as sites compare it on the phone; empty if it cannot be read."""
        try:
            return members.list_fingerprint(members.read_list(self._folder / MEMBERS_FILE).list)
        except InputError:
            return ""


class NoLists:
    """For nodes without a member list."""

    def content(self) -> bytes:
        return b""

    def proposed(self, serial: int) -> int:  # noqa: ARG002
        return 0

    def propose(self, content: bytes, serial: int, digest: bytes) -> None:  # noqa: ARG002
        raise InputError("this node has no member list")

    def conflict(self, serial: int, digest: bytes) -> str:  # noqa: ARG002
        return ""

    def fingerprint(self) -> str:
        return ""
