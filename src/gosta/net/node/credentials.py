"""A node's certificate, key and member list: read and checked, and passed on to neighbours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.x509 import load_pem_x509_certificates

from gosta.errors import InputError, NetworkError
from gosta.net import members
from gosta.net.addresses import certificate_name
from gosta.net.config import NodeConfig
from gosta.net.members import (
    CONFLICT_FILE,
    MEMBERS_FILE,
    PROPOSED_FILE,
    Keyring,
    dns_names,
    key_of,
    read_keyring,
    read_list,
)
from gosta.net.node.contact import Log
from gosta.net.node.source import fingerprint
from gosta.net.transport.tls import TlsFiles, load_certificate

EXPIRY_WARNING = timedelta(days=30)  # before a certificate ends


def load_credentials(folder: Path, config: NodeConfig, log: Log) -> tuple[TlsFiles, Keyring]:
    """Read a node's credentials.

    Raises an error unless they belong to each other and to this node, and are valid now.
    """
    name, network = config.node.name, config.network.id
    files = TlsFiles(folder / "cert.pem", folder / "key.pem", folder / "ca.pem")
    try:
        certificate = load_certificate(files.cert.read_bytes())
    except OSError as error:
        hint = "'gosta network certify' makes one, or 'gosta node join' installs one"
        raise NetworkError(f"cannot read {files.cert}: {error.strerror}; {hint}") from None
    except InputError as error:
        raise InputError(f"{files.cert}: {error}") from None
    holder, names = certificate_name(name, network), dns_names(certificate)
    if holder not in names:
        raise NetworkError(
            f"{files.cert} is for {', '.join(names)[:100] or 'no node'}, and this node is {holder}"
        )
    remaining = certificate.not_valid_after_utc - datetime.now(UTC)
    ends = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    if remaining < timedelta(0):
        sign = "gosta network sign NETWORK where sites keep their keys"
        renew = f"gosta network certify NETWORK, or {sign}"
        raise NetworkError(f"{files.cert} expired on {ends}; renew it with: {renew}")
    if remaining < EXPIRY_WARNING:
        log("certificate expires soon", expires=ends)
    keyring = read_keyring(folder, name, network)
    if key_of(certificate) != keyring.list.keys[name]:
        raise NetworkError(
            f"{files.cert} is not for the key in {files.key}; the two must be of one bundle"
        )
    if keyring.list.statistic != fingerprint(config.network, folder):
        log(
            "differs from the member list",
            reason="[network] in node.toml is not what the members agreed on",
        )
    return files, keyring


def certificate_ends(folder: Path) -> dict[str, float]:
    """Return when the certificates of the node, its authority and its coordinator end.

    Times are in seconds since 1970. Of several authorities, as there are while one replaces
    another, the one that ends first counts. Nothing is returned if the files are just being
    replaced: they are read again.
    """
    try:
        content = {
            "node": (folder / "cert.pem").read_bytes(),
            "authority": (folder / "ca.pem").read_bytes(),
        }
        content["coordinator"] = read_list(folder / MEMBERS_FILE).certificate.encode()
        loaded = {name: load_pem_x509_certificates(pem) for name, pem in content.items()}
    except (OSError, ValueError, InputError):
        return {}
    return {
        name: min(certificate.not_valid_after_utc.timestamp() for certificate in certificates)
        for name, certificates in loaded.items()
    }


class ListFolder:
    """The member lists in a node's folder, and those that neighbours send."""

    def __init__(self, folder: Path, network: str, log: Log) -> None:
        self._folder, self._network, self._log = folder, network, log

    def content(self) -> bytes:
        """Return the list that this node has accepted, as a file; empty if it cannot be read."""
        try:
            return (self._folder / MEMBERS_FILE).read_bytes()
        except OSError:
            return b""

    def proposed(self, serial: int) -> int:
        """Return the serial number of a newer list that waits to be accepted; 0: there is none."""
        try:
            waiting = members.read_list(self._folder / PROPOSED_FILE).list.serial
        except InputError:
            return 0
        return waiting if waiting > serial else 0

    def propose(self, content: bytes, serial: int, digest: bytes) -> None:
        """Write a list that is newer than `serial` to the folder, for the operator to accept.

        A list with the same serial number and another digest is kept as evidence: see `conflict`.
        Raises `InputError` if the coordinator has not signed it.
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
        """Return why the accepted list cannot be trusted; empty if there is no reason.

        If the coordinator signed another list with the same serial number, sites may see different
        members, with keys that are not theirs.
        """
        try:
            other = members.read_list(self._folder / CONFLICT_FILE).list
        except InputError:
            return ""
        if other.serial != serial or members.digest_of(other) == digest:
            return ""
        return (
            f"the coordinator signed two member lists with the serial number {serial}, this site's "
            f"and that in {CONFLICT_FILE}; nothing is contributed until it signs a new one: "
            "compare fingerprints with other sites"
        )

    def fingerprint(self) -> str:
        """Return the fingerprint of the accepted list, as sites compare it on the phone.

        It is empty if the list cannot be read.
        """
        try:
            return members.list_fingerprint(members.read_list(self._folder / MEMBERS_FILE).list)
        except InputError:
            return ""
