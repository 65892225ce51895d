"""Making certificates: a network's authority signs those of its nodes."""

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
from gosta.net.names import certificate_name

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
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"gosta {network}")
    start = datetime.now(UTC) - CLOCK_SKEW
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
    """Make a key for a node and a certificate signed by the authority."""
    holder = certificate_name(name, network)
    signing_key, signer = _load_authority(authority)
    start = not_before or datetime.now(UTC) - CLOCK_SKEW
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
    is_edwards = isinstance(signing_key, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)  # hashes by itself
    algorithm = None if is_edwards else hashes.SHA256()
    return Pair(_key_pem(key), builder.sign(signing_key, algorithm).public_bytes(Encoding.PEM))


def _load_authority(authority: Pair) -> tuple[SigningKey, x509.Certificate]:
    cert = _load_certificate(authority.cert)
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
    try:
        signs = cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        signs = False
    if not signs:
        raise InputError("the authority's certificate cannot sign others: one with CA:TRUE is needed")
    if cert.not_valid_after_utc < datetime.now(UTC):
        raise InputError(
            f"the authority's certificate expired on {cert.not_valid_after_utc:%Y-%m-%d}; give a valid one"
        )
    return key, cert


def _load_certificate(cert: bytes) -> x509.Certificate:
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
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    return x509.KeyUsage(digital_signature=not signs_certificates, key_cert_sign=signs_certificates, **unused)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
