"""TLS settings: both ends must show a certificate of the network's authority."""

from __future__ import annotations

import asyncio
import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cryptography import x509

from gosta.errors import InputError
from gosta.net.members import MemberList, key_of

NOT_YET_VALID = 9  # X509_V_ERR_CERT_NOT_YET_VALID of OpenSSL
EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED of OpenSSL


class TlsFiles(NamedTuple):
    """Paths of a node's certificate, its key, and the authority's certificate."""

    cert: Path
    key: Path
    authority: Path


class RejectedError(ConnectionError):
    """A connection that is rejected, for one of REJECTION_REASONS."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def rejection_of(error: OSError) -> tuple[str, str]:
    """Return the reason, one of REJECTION_REASONS, and a description of an error in a handshake."""
    if isinstance(error, RejectedError):
        return error.reason, str(error)
    reason = "handshake"
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = "expired" if error.verify_code in (NOT_YET_VALID, EXPIRED) else "authority"
    elif isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
        reason = "handshake" if "ALERT" in (error.reason or "") else "unauthenticated"
    return reason, describe_error(error)


def load_certificate(cert: bytes) -> x509.Certificate:
    """Return a certificate in PEM; raise `InputError` if it is none."""
    try:
        return x509.load_pem_x509_certificate(cert)
    except ValueError:
        raise InputError("the certificate cannot be read: a certificate in PEM is needed") from None


def check_peer(certificate: bytes, name: str, members: MemberList | None) -> None:
    """Raise `RejectedError` unless a certificate (DER) is valid and has the key of that member."""
    try:
        loaded = x509.load_der_x509_certificate(certificate)
        key, expires = key_of(loaded), loaded.not_valid_after_utc
    except ValueError:
        raise RejectedError("handshake", f"the certificate of {name} cannot be read") from None
    if expires < datetime.now(UTC):
        raise RejectedError(
            "expired", f"the certificate of {name} expired on {expires:%Y-%m-%d %H:%M}"
        )
    if members is None:
        return
    if name not in members.keys:
        raise RejectedError("key", f"{name} is not in member list {members.serial}")
    if key != members.keys[name]:
        why = (
            "is revoked"
            if key.hex() in members.revoked
            else f"is not its key in member list {members.serial}"
        )
        raise RejectedError("key", f"the key of {name} {why}")


def peer_certificate(transport: asyncio.BaseTransport) -> bytes:
    """Return the certificate (DER) of the other end of a TLS connection."""
    return transport.get_extra_info("ssl_object").getpeercert(True) or b""


def describe_error(error: Exception) -> str:
    """Return an error of a connection in words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate of the other end: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, ConnectionResetError):
        return "connection closed by the other end"
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)  # negative numbers are errors of the resolver
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def make_context(files: TlsFiles, protocol: int) -> ssl.SSLContext:
    """Return the context of the accepting or of the dialling end of connections."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    # the authority can be an intermediate one
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # sessions are never resumed
    try:
        for path in files:
            path.open("rb").close()
        context.load_verify_locations(files.authority)
        # empty: OpenSSL must not prompt at the terminal
        context.load_cert_chain(files.cert, files.key, password="")
    except ssl.SSLError as error:
        paths = f"{files.cert}, its key {files.key} and {files.authority}"
        raise InputError(
            f"{paths} cannot be used ({describe_error(error)}): a certificate in PEM, its key "
            "without a password, and the authority's certificate are needed"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    return context
