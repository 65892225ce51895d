"""The member list of a network: which nodes belong to it, their keys, and who may change that.

The list is signed by the network's coordinator, whose certificate one of the network's authorities
signed. Every site sees it and accepts it; a node verifies signatures of other members against the
keys in it. The key of a member is an Ed25519 key, the same in its TLS certificate.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import msgspec
from msgspec import Meta

from gosta.errors import InputError, NetworkError
from gosta.net.addresses import NAME_PATTERN, NAME_RULE, certificate_name
from gosta.net.limits import MAX_COUNT, MAX_ROWS
from gosta.runtime.files import read_json, write_json

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

MEMBERS_FILE = "members.json"
ACCEPTED_FILE = "accepted.json"  # the list that the site's operator accepted
PROPOSED_FILE = "proposed.json"  # a newer list from a neighbour, which waits to be accepted
CONFLICT_FILE = "conflict.json"  # another list with the serial number of the accepted one
LIST_HINT = "ask the coordinator for it again"
COORDINATOR = "coordinator"  # its name in its certificate; no node has this name
MAX_LIST_BYTES = 1 << 22  # 10,000 members take half of it
MAX_MEMBERS = 10_000
MAX_REVOKED = 20_000
# The current one, the next one while it is replaced, and room for an intermediate one of each.
MAX_AUTHORITIES = 4
# signed with the data: one purpose each
LIST_PURPOSE, NODE_PURPOSE = (b"gosta member list\0", b"gosta node\0")

Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]  # 32 bytes: a public key
ShortText = Annotated[str, Meta(max_length=100)]
Text = Annotated[str, Meta(max_length=1000)]
Pem = Annotated[str, Meta(max_length=20_000)]  # a certificate


class Trust(Protocol):
    """The members of a network, and their signatures."""

    @property
    def members(self) -> Mapping[str, int]:
        """Rows that each member declared, the node itself included; 0: not declared.

        Empty: there is no list.
        """

    @property
    def keys(self) -> Mapping[str, bytes]:
        """Public key of each member. Empty: there is no list."""

    @property
    def digest(self) -> str:
        """Digest of the members' names and keys."""

    @property
    def serial(self) -> int:
        """Serial number of the member list; 0: there is none."""

    @property
    def list_digest(self) -> bytes:
        """Digest of the whole member list; empty: there is none."""

    def sign(self, data: bytes) -> bytes:
        """Return this node's signature."""

    def verify(self, name: str, data: bytes, signature: bytes) -> bool:
        """Return whether a member signed the data; False also for nodes that are not members."""


class OpenTrust:
    """Trust in everybody, for nodes without TLS on one machine, which have no member list."""

    members: Mapping[str, int] = {}
    keys: Mapping[str, bytes] = {}
    digest, serial, list_digest = "", 0, b""

    def sign(self, data: bytes) -> bytes:  # noqa: ARG002
        return b""

    def verify(self, name: str, data: bytes, signature: bytes) -> bool:  # noqa: ARG002
        return True


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    key: Hex32  # its Ed25519 public key
    # that it declared, in private sums a bound; 0: not declared
    rows: Annotated[int, Meta(ge=0, le=MAX_ROWS)] = 0


class MemberList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, dict=True):
    network: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
    serial: Annotated[int, Meta(ge=1, le=MAX_COUNT)]  # one more with every change
    statistic: Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]  # fingerprint of what is computed
    policy: Annotated[dict[ShortText, Text], Meta(max_length=50)]  # what is computed, in words
    members: Annotated[tuple[Member, ...], Meta(min_length=1, max_length=MAX_MEMBERS)]
    # keys that no member may have
    revoked: Annotated[tuple[Hex32, ...], Meta(max_length=MAX_REVOKED)] = ()
    # certificates that ca.pem holds
    authorities: Annotated[tuple[Pem, ...], Meta(max_length=MAX_AUTHORITIES)] = ()

    @functools.cached_property
    def keys(self) -> Mapping[str, bytes]:
        """The public key of each member."""
        return {member.name: bytes.fromhex(member.key) for member in self.members}


class SignedList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Contents of members.json: a member list, the coordinator's certificate and its signature."""

    list: MemberList
    certificate: Pem
    signature: Annotated[str, Meta(pattern="^[0-9a-f]{128}$")]


class Keyring:
    """A node's key and the keys of all members; implements `Trust`."""

    def __init__(
        self, key: Ed25519PrivateKey | None, members: MemberList
    ) -> None:  # None: it only verifies
        self.list, self.serial, self._key = members, members.serial, key
        self.members: Mapping[str, int] = {each.name: each.rows for each in members.members}
        self.keys = members.keys
        self.digest = hashlib.sha256(repr(sorted(self.keys.items())).encode()).hexdigest()[:16]
        self.list_digest = digest_of(members)

    def sign(self, data: bytes) -> bytes:
        if self._key is None:
            raise NetworkError("a node's key is needed to sign, and there is none")
        return self._key.sign(NODE_PURPOSE + data)

    def verify(self, name: str, data: bytes, signature: bytes) -> bool:
        key = self.keys.get(name)
        return key is not None and verify(key, NODE_PURPOSE + data, signature)


def verify(key: bytes, data: bytes, signature: bytes) -> bool:
    """Return whether a signature was made with the private key that belongs to a public one."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public_key(key).verify(signature, data)
    except (InvalidSignature, ValueError):  # ValueError: 32 bytes that are no key
        return False
    return True


@functools.lru_cache(maxsize=MAX_MEMBERS)
def _public_key(key: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(key)


def fingerprint(content: bytes) -> str:
    """Return the first 128 bits of a digest, in groups that can be read out on the phone.

    >>> fingerprint(b"")
    'e3b0 c442 98fc 1c14 9afb f4c8 996f b924'
    """
    digits = hashlib.sha256(content).hexdigest()[:32]
    return " ".join(digits[k : k + 4] for k in range(0, 32, 4))


def list_fingerprint(members: MemberList) -> str:
    """Return the fingerprint of all that a member list says, to compare on the phone."""
    return fingerprint(_signed_bytes(members))


def declared_bound(rows: int) -> int:
    """Return a bound of a site's rows, with room for half as many again.

    It is 1, 2 or 5 times a power of ten, and at least 10.

    >>> [declared_bound(rows) for rows in (0, 1, 10, 120, 140, 201)]
    [0, 10, 20, 200, 500, 500]
    """
    if rows <= 0:
        return 0
    wanted = rows + rows // 2
    scale: int = 10 ** max(len(str(wanted - 1)) - 1, 1)
    return min(
        next(scale * factor for factor in (1, 2, 5, 10) if scale * factor >= wanted), MAX_ROWS
    )


def digest_of(members: MemberList) -> bytes:
    """Return a digest of a whole list."""
    return hashlib.sha256(_signed_bytes(members)).digest()


def sign_list(members: MemberList, key: Ed25519PrivateKey, certificate: bytes) -> SignedList:
    """Sign a member list as the coordinator, whose certificate is given in PEM."""
    check_list(members)
    return SignedList(members, certificate.decode("ascii"), key.sign(_signed_bytes(members)).hex())


def verify_list(signed: SignedList, authorities: bytes, network: str) -> MemberList:
    """Return the list if the coordinator of this network signed it.

    `authorities` are certificates in PEM.
    """
    members = signed.list
    if members.network != network:
        raise InputError(
            f"the member list is for network {members.network}; this node's is {network}"
        )
    certificate = _coordinator_certificate(signed.certificate.encode(), authorities, network)
    if not verify(key_of(certificate), _signed_bytes(members), bytes.fromhex(signed.signature)):
        raise InputError(
            "the member list was changed after the coordinator signed it; ask the coordinator for "
            "it again"
        )
    return members


def read_list(path: Path) -> SignedList:
    """Read a signed list; whose signature it has is not checked yet."""
    try:
        return read_json(
            path,
            SignedList,
            MAX_LIST_BYTES,
            "a member list",
            LIST_HINT,
            lambda signed: check_list(signed.list),
        )
    except FileNotFoundError:
        raise InputError(
            f"no such file: {path}; 'gosta network init' and 'gosta node join' write member lists"
        ) from None


def parse_list(content: bytes) -> SignedList:
    """Return a signed list that came from a neighbour."""
    try:
        signed = msgspec.json.decode(content, type=SignedList)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"this is no member list ({error}); {LIST_HINT}") from None
    check_list(signed.list)
    return signed


def write_list(path: Path, signed: SignedList) -> None:
    """Write a signed list."""
    write_json(path, signed)


def check_list(members: MemberList) -> None:
    """Raise `InputError` for invalid names, repeated or revoked keys, and unprintable texts."""
    names = [member.name for member in members.members]
    keys = [member.key for member in members.members]
    for name in names:
        if not NAME_PATTERN.fullmatch(name) or name == COORDINATOR:
            raise InputError(
                f"member {name[:80]!r}: a name has {NAME_RULE}, and is not {COORDINATOR!r}"
            )
    for what, values in (("name", [name.lower() for name in names]), ("key", keys)):
        value, count = Counter(values).most_common(1)[0]
        if count > 1:
            raise InputError(f"{count} members have the {what} {value}; each needs its own")
    for member in members.members:
        if member.key in members.revoked:
            raise InputError(
                f"the key of member {member.name} is revoked; it needs a new one: gosta node "
                "request"
            )
    for text in (text for pair in members.policy.items() for text in pair):
        if not text.isprintable():
            raise InputError(
                f"policy {text[:80]!r} has characters that cannot be printed; leave them out"
            )


def read_keyring(folder: Path, name: str, network: str) -> Keyring:
    """Read a node's key and the list that its site accepted, verified against its ca.pem.

    The key must be in the list.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = read_private_key(folder / "key.pem")
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{folder / 'key.pem'} is not an Ed25519 key; make a new one: gosta network certify "
            "NETWORK"
        )
    members = read_verified(folder, network)
    if members != read_list(folder / ACCEPTED_FILE).list:
        raise InputError(
            f"{folder / MEMBERS_FILE} was not accepted yet; see it and do so: gosta node accept "
            f"{folder}"
        )
    listed_key = members.keys.get(name)
    if listed_key is None:
        raise InputError(
            f"{folder / MEMBERS_FILE} does not list {name}: it is not a member, or its name was "
            "changed"
        )
    if listed_key != key.public_key().public_bytes_raw():
        raise InputError(
            f"{folder / 'key.pem'} is not the key of {name} in {MEMBERS_FILE}; the two must be of "
            "one bundle"
        )
    return Keyring(key, members)


def read_verified(folder: Path, network: str) -> MemberList:
    """Read the member list in a node's folder, verified against its ca.pem."""
    try:
        return verify_list(
            read_list(folder / MEMBERS_FILE), (folder / "ca.pem").read_bytes(), network
        )
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None


def read_trust(folder: Path, name: str, network: str, has_key: bool) -> Keyring:
    """Read the members of a node's folder, with its key or only to verify signatures of others."""
    return (
        read_keyring(folder, name, network)
        if has_key
        else Keyring(None, read_verified(folder, network))
    )


def read_private_key(path: Path) -> object:
    """Read a private key in PEM, which is not encrypted and which other users cannot read."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    check_private(path)
    try:
        return load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (TypeError, ValueError):
        raise InputError(
            f"{path} cannot be used: a private key in PEM, without a password, is needed"
        ) from None


def check_private(path: Path) -> None:
    """Raise `InputError` if other users of this machine can read or change a key file."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    if mode & 0o077 and os.name == "posix":
        raise InputError(
            f"{path} can be read or changed by other users (mode {mode:o}); protect it: chmod 600 "
            f"{path}"
        )


def key_of(certificate: x509.Certificate) -> bytes:
    """Return the Ed25519 public key in a certificate; empty if its key is of another kind."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = certificate.public_key()
    return key.public_bytes_raw() if isinstance(key, Ed25519PublicKey) else b""


def dns_names(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names in a certificate."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return names.get_values_for_type(x509.DNSName)


def is_issued_by(certificate: x509.Certificate, signer: x509.Certificate) -> bool:
    """Return whether an authority signed a certificate."""
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(signer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _coordinator_certificate(pem: bytes, authorities: bytes, network: str) -> x509.Certificate:
    """Return the coordinator's certificate if an authority signed it and it is valid now."""
    from cryptography import x509

    try:
        certificate, signers = (
            x509.load_pem_x509_certificate(pem),
            x509.load_pem_x509_certificates(authorities),
        )
    except ValueError:
        raise InputError(
            "the coordinator's or the authority's certificate cannot be read: PEM is needed"
        ) from None
    expected = certificate_name(COORDINATOR, network)
    if dns_names(certificate) != [expected] or not key_of(certificate):
        raise InputError(
            f"the member list is not signed by {expected}; ask the coordinator for it again"
        )
    if not any(is_issued_by(certificate, signer) for signer in signers):
        raise InputError(
            "the member list is signed by the coordinator of another authority than that in ca.pem"
        )
    if not certificate.not_valid_before_utc <= datetime.now(UTC) <= certificate.not_valid_after_utc:
        end = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
        raise InputError(
            f"the coordinator's certificate is not valid now (it ends on {end}); it has to sign "
            "the list anew"
        )
    return certificate


def _signed_bytes(members: MemberList) -> bytes:
    return LIST_PURPOSE + msgspec.json.encode(members, order="sorted")
