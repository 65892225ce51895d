"""Certificates: who a node is, vouched for by an authority that all nodes of a network trust."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gosta.errors import InputError
from gosta.net.names import identity

AUTHORITY_DAYS = 3650
NODE_DAYS = 825  # the longest that all TLS libraries accept
SLACK = timedelta(hours=1)  # clocks of sites differ


SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey


class Pair(NamedTuple):
    """A private key and the certificate of its holder, both PEM."""

    key: bytes
    cert: bytes


def authority(network: str) -> Pair:
    """Make an authority for a network: its key signs the certificates of the nodes."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"gosta {network}")
    start = datetime.now(UTC) - SLACK
    builder = (
        _builder(key, subject, start, start + timedelta(days=AUTHORITY_DAYS))
        .issuer_name(subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    return Pair(_key_pem(key), builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))


def issue(
    authority: Pair,
    network: str,
    name: str,
    *,
    not_before: datetime | None = None,
    not_after: datetime | None = None,
) -> Pair:
    """Make a key for a node, and a certificate signed by the authority that says whose key it is."""
    holder = identity(name, network)
    signing, signer = _opened(authority)
    start = not_before or datetime.now(UTC) - SLACK
    end = not_after or min(start + timedelta(days=NODE_DAYS), signer.not_valid_after_utc)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(key, _subject(holder[:64]), start, end)
        .issuer_name(signer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(holder)]), critical=False)
        .add_extension(_authority_identifier(signer), critical=False)
    )
    edwards = isinstance(signing, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)  # these hash by themselves
    return Pair(_key_pem(key), builder.sign(signing, None if edwards else hashes.SHA256()).public_bytes(Encoding.PEM))


def expires(cert: bytes) -> datetime:
    """When a certificate ends."""
    return _certificate(cert).not_valid_after_utc


def _opened(authority: Pair) -> tuple[SigningKey, x509.Certificate]:
    cert = _certificate(authority.cert)
    try:
        key = load_pem_private_key(authority.key, password=None)
    except TypeError:
        raise InputError("the authority's key is encrypted: give it without a password") from None
    except ValueError:
        raise InputError("the authority's key cannot be read: a private key in PEM is needed") from None
    if not isinstance(key, SigningKey):
        raise InputError("the authority's key is of a kind that does not sign certificates; RSA and EC keys do")
    if key.public_key() != cert.public_key():
        raise InputError("the authority's key is not that of its certificate: give the two that belong together")
    try:
        signs = cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        signs = False
    if not signs:
        raise InputError("the authority's certificate may not sign others: one with CA:TRUE is needed")
    if cert.not_valid_after_utc < datetime.now(UTC):
        raise InputError(f"the authority's certificate expired on {cert.not_valid_after_utc:%Y-%m-%d}")
    return key, cert


def _certificate(cert: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(cert)
    except ValueError:
        raise InputError("the certificate cannot be read: a certificate in PEM is needed") from None


def _builder(
    key: ec.EllipticCurvePrivateKey, subject: x509.Name, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _authority_identifier(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        known = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)


def _usage(signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
