"""Making certificates: a network's authority signs those of its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gosta.errors import InputError
from gosta.net.addresses import certificate_name
from gosta.net.transport.tls import load_certificate

AUTHORITY_DAYS = 3650
NODE_DAYS = 825  # the longest that all TLS libraries accept
CLOCK_SKEW = timedelta(hours=1)  # certificates are valid from an hour ago, as clocks of sites differ

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


class Pair(NamedTuple):
    """A private key and its certificate, both in PEM."""

    key: bytes
    cert: bytes


def make_authority(network: str) -> Pair:
    """Make a network's authority: a key that signs the certificates of its nodes."""
    start = datetime.now(UTC) - CLOCK_SKEW
    return _make_pair(f"gosta {network}", start, start + timedelta(days=AUTHORITY_DAYS))


def issue(
    authority: Pair, network: str, name: str, *, not_before: datetime | None = None, not_after: datetime | None = None
) -> Pair:
    """Make a key for a node and a certificate signed by the authority."""
    holder = certificate_name(name, network)
    key, cert = _load_authority(authority)
    start = not_before or datetime.now(UTC) - CLOCK_SKEW
    end = not_after or min(start + timedelta(days=NODE_DAYS), cert.not_valid_after_utc)
    extensions = (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
        x509.SubjectAlternativeName([x509.DNSName(holder)]),
        _authority_identifier(cert),
    )
    return _make_pair(holder[:64], start, end, (key, cert.subject), extensions)


def _make_pair(
    name: str,
    start: datetime,
    end: datetime,
    signer: tuple[SigningKey, x509.Name] | None = None,  # None: it is an authority and signs itself
    extensions: Sequence[x509.ExtensionType] = (),
) -> Pair:
    own_key = ed25519.Ed25519PrivateKey.generate()
    subject, is_authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), signer is None
    key, issuer = signer or (own_key, subject)
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=not is_authority, key_cert_sign=is_authority, **unused)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .public_key(own_key.public_key())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True)
        .add_extension(usage, critical=True)
    )
    for extension in (x509.SubjectKeyIdentifier.from_public_key(own_key.public_key()), *extensions):
        builder = builder.add_extension(extension, critical=False)
    is_edwards = isinstance(key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)  # hashes by itself
    cert = builder.sign(key, None if is_edwards else hashes.SHA256())
    own_pem = own_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(own_pem, cert.public_bytes(Encoding.PEM))


def _load_authority(authority: Pair) -> tuple[SigningKey, x509.Certificate]:
    cert = load_certificate(authority.cert)
    try:
        key = load_pem_private_key(authority.key, password=None)
    except TypeError:
        raise InputError("the authority's key is encrypted; give it without a password") from None
    except ValueError:
        raise InputError("the authority's key cannot be read: a private key in PEM is needed") from None
    if not isinstance(key, SigningKey):
        raise InputError("the authority's key is of a kind that cannot sign certificates; RSA and EC keys can")
    if key.public_key() != cert.public_key():
        raise InputError("the authority's key does not belong to its certificate; give a matching pair")
    if not any(isinstance(one.value, x509.BasicConstraints) and one.value.ca for one in cert.extensions):
        raise InputError("the authority's certificate cannot sign others: one with CA:TRUE is needed")
    expires = cert.not_valid_after_utc
    if expires < datetime.now(UTC):
        raise InputError(f"the authority's certificate expired on {expires:%Y-%m-%d}; give a valid one")
    return key, cert


def _authority_identifier(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        known = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)
