"""A node's certificate, key and member list: read and checked at its start, and again when they change."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.x509 import load_pem_x509_certificates

from gosta.errors import GostaError, InputError, NetworkError
from gosta.net.addresses import certificate_name
from gosta.net.config import NodeConfig
from gosta.net.members import (
    ACCEPTED_FILE,
    MEMBERS_FILE,
    Keyring,
    dns_names,
    key_of,
    read_keyring,
    read_list,
)
from gosta.net.node.base import Log
from gosta.net.node.node import Node
from gosta.net.node.reload import stat_file
from gosta.net.node.source import Source, fingerprint
from gosta.net.node.sum_source import SumSource
from gosta.net.node.sums import SumNode
from gosta.net.transport.tcp import TcpTransport
from gosta.net.transport.tls import TlsFiles, load_certificate

CREDENTIAL_FILES = ("cert.pem", "key.pem", "ca.pem", MEMBERS_FILE, ACCEPTED_FILE)
EXPIRY_WARNING = timedelta(days=30)
RELOAD_SECONDS = (
    86_400.0  # between reloads though nothing has changed, to warn of certificates that expire
)


def load_credentials(folder: Path, config: NodeConfig, log: Log) -> tuple[TlsFiles, Keyring]:
    """Read a node's credentials; raise an error unless they belong to each other, to this node and to this moment."""
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
        renew = "gosta network certify NETWORK, or gosta network sign NETWORK where sites keep their keys"
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
    """Return when the certificates of the node, of its authority and of its coordinator end, in seconds since 1970.

    Of several authorities, as there are while one replaces another, the one that ends first counts. Nothing is returned
    if the files are just being replaced: they are read again.
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
        name: min(one.not_valid_after_utc.timestamp() for one in found)
        for name, found in loaded.items()
    }


class CredentialWatcher:
    """Reloads the credentials of a running node when their files change.

    The files of a bundle are written one after the other: they are read once nothing has changed between two calls.
    """

    def __init__(
        self, node: Node | SumNode, transport: TcpTransport, folder: Path, log: Log
    ) -> None:
        self._node, self._transport, self._folder, self._log = node, transport, folder, log
        self._loaded = self._seen = self._stat_files()
        self._loaded_at = time.monotonic()

    def poll(self) -> None:
        last, self._seen = self._seen, self._stat_files()
        is_due = self._seen != self._loaded or time.monotonic() - self._loaded_at > RELOAD_SECONDS
        if not is_due or self._seen != last:
            return
        self._loaded, self._loaded_at = self._seen, time.monotonic()
        self._node.credentials_error = ""
        try:
            self._reload()
        except GostaError as error:
            self._node.credentials_error = str(error)
            self._log("reload failed", reason=str(error))

    def _reload(self) -> None:
        config, peer = self._node.config, self._node.peer
        tls, keyring = load_credentials(self._folder, config, self._log)
        self._transport.reload_tls(tls, keyring.list)
        self._node.certificate_ends = certificate_ends(self._folder)
        if peer.is_withdrawn:  # its rows are read again when they are back
            peer.trust = keyring
        else:
            assert isinstance(peer.source, Source | SumSource)
            self._node.change(config, peer.source.with_trust(keyring))  # type: ignore[arg-type]
        self._log(
            "credentials reloaded", member_list=keyring.list.serial, members=len(keyring.members)
        )

    def _stat_files(self) -> list[tuple[int, int]]:
        return [stat_file(self._folder / name) for name in CREDENTIAL_FILES]
