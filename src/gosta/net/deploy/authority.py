"""A network's authority, which signs certificates, and its coordinator, who signs the member list.

Both keys lie in the folder `authority/` of the network, encrypted if there is a passphrase. The
authority's key can be elsewhere instead, in a hospital's own public key infrastructure: then the
certificates are issued there.

An authority is replaced in three steps, so that at no time a member meets a certificate that it
does not trust: all members trust the new one too; all certificates are issued by it; the old one is
no longer trusted.
"""

from __future__ import annotations

import getpass
import os
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from gosta.errors import InputError
from gosta.net import members
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.members import COORDINATOR, MemberList, SignedList
from gosta.net.transport.tls import load_certificate
from gosta.runtime.files import write_atomically

FOLDER, TRUSTED_FILE, NEXT = "authority", "trusted.pem", "next"
COORDINATOR_KEY, COORDINATOR_CERT, COORDINATOR_REQUEST = (
    f"coordinator-{it}.pem" for it in ("key", "cert", "request")
)
PASSPHRASE_VARIABLE = "GOSTA_PASSPHRASE"
MIN_PASSPHRASE_CHARACTERS = 8
README = """\
key.pem is the key of this network's authority: with it, one can make certificates for any node.
coordinator-key.pem signs the member list, which says whose keys belong to the network.
Keep both safe, and away from the nodes, which do not need them; 'gosta network add' and 'sign' do.
"""


class Passphrase:
    """The passphrase of the authority's keys, from a file, the environment, or the terminal.

    The terminal is asked once.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._found = file, b""

    def read(self, repeat: bool = False) -> bytes:
        """Return the passphrase; `repeat` asks twice at the terminal, for a new one."""
        self._found = self._found or self._read(repeat).encode()
        return self._found

    def _read(self, repeat: bool) -> str:
        if self._file is not None:
            try:
                text = self._file.read_text(encoding="utf-8")[:10_000].rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                why = getattr(error, "strerror", None) or "it is not text"
                raise InputError(
                    f"passphrase_file = {str(self._file)!r} cannot be read: {why}"
                ) from None
        elif (text := os.environ.get(PASSPHRASE_VARIABLE, "")) == "":
            if not sys.stdin.isatty():
                where = f"in a terminal, in {PASSPHRASE_VARIABLE} or with --passphrase-file"
                raise InputError(f"the authority's key needs its passphrase: give it {where}")
            text = getpass.getpass("passphrase of the authority's key: ")
            if repeat and getpass.getpass("the same again: ") != text:
                raise InputError("the two passphrases differ; try again")
        if len(text) < MIN_PASSPHRASE_CHARACTERS:
            raise InputError(f"a passphrase has at least {MIN_PASSPHRASE_CHARACTERS} characters")
        return text


@dataclass(frozen=True, repr=False)
class Authority:
    """Keys and certificates in PEM; keys are not encrypted in memory."""

    network: str
    signer: Pair  # an empty key: it is elsewhere
    trusted: tuple[bytes, ...]  # certificates of all authorities that members trust now
    coordinator: Pair  # an empty certificate: it is not signed yet
    following: Pair | None = None  # the authority that will replace this one
    passphrase: bytes | None = None  # with which keys are written

    @property
    def is_here(self) -> bool:
        return bool(self.signer.key)

    @property
    def ca(self) -> bytes:
        """Content of the members' ca.pem."""
        return b"".join(self.trusted)

    @property
    def trusted_certificates(self) -> list[x509.Certificate]:
        return list(map(load_certificate, self.trusted))

    def certify(self, name: str, key: bytes) -> bytes:
        """Return a certificate for a member's public key."""
        self._check_holder(name)
        return certificates.certify(self.signer, self.network, name, key)

    def make_pair(self, name: str) -> Pair:
        """Return a new key and its certificate for a member."""
        self._check_holder(name)
        return certificates.issue(self.signer, self.network, name)

    def _check_holder(self, name: str) -> None:
        if not self.is_here:
            raise InputError(
                "the authority must hold cert.pem and key.pem to issue certificates: there is no "
                "key.pem"
            )
        if name.lower() == COORDINATOR:
            raise InputError(
                f"a node cannot be called {name!r}: that is the name of who signs the member list"
            )

    def sign(self, listed: MemberList) -> SignedList:
        """Return a member list with the coordinator's certificate and signature."""
        if not self.coordinator.cert:
            raise InputError(
                "the coordinator has no certificate yet; have the authority sign "
                f"{FOLDER}/{COORDINATOR_REQUEST}, then: gosta network sign --certificate FILE"
            )
        return members.sign_list(
            listed, certificates.load_ed25519(self.coordinator.key), self.coordinator.cert
        )

    def with_coordinator_certificate(self, cert: bytes) -> Authority:
        key = certificates.check_certificate(
            cert, self.trusted_certificates, self.network, COORDINATOR
        )
        if key != certificates.public_bytes(self.coordinator.key):
            raise InputError(
                f"the coordinator's certificate is for another key than that in {COORDINATOR_KEY}"
            )
        return replace(self, coordinator=Pair(self.coordinator.key, cert))


def make(
    network: str,
    source: Path | None = None,
    passphrase: Passphrase | None = None,
    encrypt: bool = False,
) -> Authority:
    """Make an authority, or take one from a folder.

    The folder has its cert.pem and, unless the key is elsewhere, its key.pem.
    """
    passphrase = passphrase or Passphrase()
    secret = None
    if source is None:
        signer = certificates.make_authority(network)
    else:
        signer, is_encrypted = _read_pair(source, passphrase)
        encrypt = encrypt or is_encrypted
    if encrypt:
        secret = passphrase.read(repeat=True)
    key = certificates.make_key()
    made = Authority(network, signer, (_first(signer.cert),), Pair(key, b""), passphrase=secret)
    return _certify_coordinator(made) if made.is_here else made


def write(folder: Path, authority: Authority) -> None:
    """Write an authority into the folder of its network."""
    inside = folder / FOLDER
    inside.mkdir(mode=0o700, exist_ok=True)
    write_atomically(inside / "README", README)
    _write_pair(inside, "key.pem", "cert.pem", authority.signer, authority.passphrase)
    _write_pair(
        inside, COORDINATOR_KEY, COORDINATOR_CERT, authority.coordinator, authority.passphrase
    )
    if not authority.is_here:
        request = certificates.make_request(
            authority.coordinator.key, authority.network, COORDINATOR
        )
        write_atomically(inside / COORDINATOR_REQUEST, request)
    write_atomically(inside / TRUSTED_FILE, authority.ca)
    if authority.following is not None:
        (inside / NEXT).mkdir(mode=0o700, exist_ok=True)
        _write_pair(inside / NEXT, "key.pem", "cert.pem", authority.following, authority.passphrase)
    elif (inside / NEXT).is_dir():
        shutil.rmtree(inside / NEXT)


def read(folder: Path, network: str, passphrase: Passphrase | None = None) -> Authority:
    """Read the authority of a network; one of an earlier version gets a coordinator."""
    inside = folder / FOLDER
    passphrase = passphrase or Passphrase()
    signer, is_encrypted = _read_pair(inside, passphrase)
    trusted: tuple[bytes, ...] = (_first(signer.cert),)
    if (inside / TRUSTED_FILE).exists():
        trusted = split((inside / TRUSTED_FILE).read_bytes())
    following = _read_pair(inside / NEXT, passphrase)[0] if (inside / NEXT).is_dir() else None
    if (inside / COORDINATOR_KEY).exists():
        pem = (inside / COORDINATOR_KEY).read_bytes()
        is_encrypted = is_encrypted or certificates.is_encrypted(pem)
        key = certificates.load_ed25519(
            pem, passphrase.read() if certificates.is_encrypted(pem) else None
        )
        file = inside / COORDINATOR_CERT
        cert = file.read_bytes() if file.exists() else b""
        coordinator = Pair(certificates.to_pem(key), cert)
    else:
        coordinator = Pair(certificates.make_key(), b"")
    secret = passphrase.read() if is_encrypted else None
    authority = Authority(network, signer, trusted, coordinator, following, secret)
    if authority.is_here and not coordinator.cert:
        return _certify_coordinator(authority)
    return authority


def rotate(
    authority: Authority, source: Path | None = None, passphrase: Passphrase | None = None
) -> tuple[int, Authority]:
    """Do the next of the three steps that replace the authority.

    Returns its number and the changed authority. `source` is the folder of the new authority, in
    the first step; by default one is made.
    """
    if not authority.is_here:
        raise InputError(
            "the authority's key is not here: only an authority whose key is here can be replaced"
        )
    if authority.following is not None:
        changed = replace(authority, signer=authority.following, following=None)
        return 2, _certify_coordinator(changed)
    if source is not None and len(authority.trusted) > 1:
        raise InputError(
            f"authority = {str(source)!r}: the last replacement is not finished; run this without "
            "--authority"
        )
    if len(authority.trusted) > 1:
        return 3, replace(authority, trusted=(_first(authority.signer.cert),))
    if source is None:
        following = certificates.make_authority(authority.network)
    else:
        following = _read_pair(source, passphrase or Passphrase())[0]
        certificates.load_authority(following)
    return 1, replace(
        authority, following=following, trusted=(*authority.trusted, _first(following.cert))
    )


def split(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates in a PEM file one by one."""
    try:
        found = x509.load_pem_x509_certificates(pem)
        return tuple(each.public_bytes(Encoding.PEM) for each in found)
    except ValueError:
        raise InputError(
            "the authority's certificate cannot be read: a certificate in PEM is needed"
        ) from None


def _certify_coordinator(authority: Authority) -> Authority:
    pair = authority.coordinator
    cert = certificates.certify(
        authority.signer, authority.network, COORDINATOR, certificates.public_bytes(pair.key)
    )
    return replace(authority, coordinator=Pair(pair.key, cert))


def _first(pem: bytes) -> bytes:
    """Return the first certificate of a file, without the text and the chain that may follow it."""
    return split(pem)[0]


def _read_pair(folder: Path, passphrase: Passphrase) -> tuple[Pair, bool]:
    """Read an authority, whose key may be missing, and return whether its key is encrypted."""
    try:
        cert = (folder / "cert.pem").read_bytes()
        pem = b""
        if (folder / "key.pem").exists():
            members.check_private(folder / "key.pem")
            pem = (folder / "key.pem").read_bytes()
    except OSError as error:
        raise InputError(
            f"authority = {str(folder)!r} must hold cert.pem and key.pem: {error.strerror}"
        ) from None
    if not pem:
        certificates.check_authority(load_certificate(cert))
        return Pair(b"", cert), False
    is_encrypted = certificates.is_encrypted(pem)
    try:
        key = certificates.load_key(pem, passphrase.read() if is_encrypted else None)
    except InputError as error:
        raise InputError(f"{folder / 'key.pem'}: {error}") from None
    pair = Pair(certificates.to_pem(key), cert)
    certificates.load_authority(pair)
    return pair, is_encrypted


def _write_pair(folder: Path, key: str, cert: str, pair: Pair, passphrase: bytes | None) -> None:
    if pair.key:
        pem = certificates.to_pem(certificates.load_key(pair.key), passphrase)
        write_atomically(folder / key, pem, mode=0o600)
    if pair.cert:
        write_atomically(folder / cert, pair.cert)
