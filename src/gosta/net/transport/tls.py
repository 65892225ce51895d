"""TLS settings: both ends must show a certificate of the network's authority."""

from __future__ import annotations

import os
import ssl
from asyncio import BaseTransport
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError

NOT_YET_VALID, EXPIRED = 9, 10  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


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


def make_contexts(files: TlsFiles) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the contexts of the accepting and of the dialling end of connections."""
    return _make_context(files, ssl.PROTOCOL_TLS_SERVER), _make_context(files, ssl.PROTOCOL_TLS_CLIENT)


def certified_names(transport: BaseTransport) -> set[str]:
    """Return the DNS names in the certificate of the other end."""
    certificate = transport.get_extra_info("peercert") or {}
    return {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}


def rejection_of(error: OSError) -> tuple[str, str]:
    """Return the rejection reason, one of REJECTION_REASONS, and a description of an error in a handshake."""
    if isinstance(error, RejectedError):
        return error.reason, str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        is_date = error.verify_code in (NOT_YET_VALID, EXPIRED)
        return "expired" if is_date else "authority", describe_error(error)
    if isinstance(error, ssl.SSLError):
        is_tls = isinstance(error, ssl.SSLEOFError) or "ALERT" in (error.reason or "")
        return "handshake" if is_tls else "unauthenticated", describe_error(error)
    return "handshake", describe_error(error)


def expiry_date(cert: bytes) -> datetime:
    """Return the time after which a certificate, in PEM, is invalid."""
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificate(cert).not_valid_after_utc
    except ValueError:
        raise InputError("the certificate cannot be read: a certificate in PEM is needed") from None


def describe_error(error: Exception) -> str:
    """Return a short description of a connection error."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate of the other end: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, ConnectionResetError):
        return "connection closed by the other end"
    if isinstance(error, OSError) and error.errno and error.errno > 0:  # negative: an error of the resolver
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _make_context(files: TlsFiles, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the authority can be an intermediate one
    context.hostname_checks_common_name = False
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # sessions are never resumed
    try:
        for path in files:
            path.open("rb").close()
        context.load_verify_locations(files.authority)
        context.load_cert_chain(files.cert, files.key, password="")  # empty: OpenSSL must not prompt at the terminal
    except ssl.SSLError as error:
        raise InputError(
            f"{files.cert}, its key {files.key} and {files.authority} cannot be used ({describe_error(error)}): "
            "a certificate in PEM, its key without a password, and the authority's certificate are needed"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    return context
