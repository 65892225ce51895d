"""Member lists on the wire: a node passes its list on to neighbours with an older one, to be accepted there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gosta.errors import InputError
from gosta.net import members
from gosta.net.members import MEMBERS_FILE, PROPOSED_FILE


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

    def propose(self, content: bytes, serial: int) -> None:
        """Write a list that is newer than a serial number to the folder, where the operator can accept it.

        Raises `InputError` if the coordinator has not signed it.
        """
        signed, path = members.parse_list(content), self._folder / PROPOSED_FILE
        if signed.list.serial > max(serial, self.proposed(serial)):
            members.verify_list(signed, (self._folder / "ca.pem").read_bytes(), self._network)
            members.write_list(path, signed)
            self._log("member list proposed", serial=signed.list.serial, accept=f"gosta node accept {self._folder}")


class NoLists:
    """For nodes without a member list."""

    def content(self) -> bytes:
        return b""

    def proposed(self, serial: int) -> int:  # noqa: ARG002
        return 0

    def propose(self, content: bytes, serial: int) -> None:  # noqa: ARG002
        raise InputError("this node has no member list")
