"""TLS: both ends show a certificate of the network's authority, or there is no connection."""

from __future__ import annotations

import os
import ssl
from asyncio import BaseTransport
from pathlib import Path
from typing import NamedTuple

from gosta.errors import InputError

NOT_YET_VALID, EXPIRED = 9, 10  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED


class Tls(NamedTuple):
    """The files with a node's certificate, its key, and the authority's certificate."""

    cert: Path
    key: Path
    authority: Path


class RefusedError(ConnectionError):
    """Somebody who is turned away, for one of REASONS."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def contexts(files: Tls) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What the answering and the calling end of a connection need."""
    return _context(files, ssl.PROTOCOL_TLS_SERVER), _context(files, ssl.PROTOCOL_TLS_CLIENT)


def names(transport: BaseTransport) -> set[str]:
    """Whom the certificate of the other end is for."""
    shown = transport.get_extra_info("peercert") or {}
    return {value for kind, value in shown.get("subjectAltName", ()) if kind == "DNS"}


def reason(error: OSError) -> tuple[str, str]:
    """Why a caller is turned away, as one of REASONS and in words, from what went wrong."""
    if isinstance(error, RefusedError):
        return error.reason, str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        dated = error.verify_code in (NOT_YET_VALID, EXPIRED)
        return "expired" if dated else "authority", describe(error)
    if isinstance(error, ssl.SSLError):
        understood = isinstance(error, ssl.SSLEOFError) or "ALERT" in (error.reason or "")
        return "handshake" if understood else "stranger", describe(error)
    return "handshake", describe(error)


def describe(error: Exception) -> str:
    """What went wrong, in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    if isinstance(error, ConnectionResetError):
        return "it hung up"
    if isinstance(error, OSError) and error.errno and error.errno > 0:  # below 0: of the resolver
        return os.strerror(error.errno)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _context(files: Tls, protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an authority of one's own may have another above it
    context.hostname_checks_common_name = False
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0  # sessions are never resumed
    try:
        for path in files:
            path.open("rb").close()
        context.load_verify_locations(files.authority)
        context.load_cert_chain(files.cert, files.key, password="")  # empty: OpenSSL must not ask at the terminal
    except ssl.SSLError as error:
        raise InputError(
            f"{files.cert}, its key {files.key} and {files.authority} cannot be used ({describe(error)}): "
            "a certificate in PEM, its key without a password, and the authority's certificate are needed"
        ) from None
    except OSError as error:
        raise InputError(f"cannot read {error.filename}: {error.strerror}") from None
    return context
