"""Making certificates: a network's authority signs those of its nodes and of its coordinator."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gosta.errors import InputError
from gosta.net.addresses import certificate_name
from gosta.net.members import COORDINATOR, dns_names, is_issued_by, key_of
from gosta.net.transport.tls import load_certificate

AUTHORITY_DAYS = 3650
NODE_DAYS = 825  # the longest that all TLS libraries accept
# certificates are valid from an hour ago, as clocks of sites differ
CLOCK_SKEW = timedelta(hours=1)
TLS_USAGES = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]

SigningKey = (
    rsa.RSAPrivateKey
    | ec.EllipticCurvePrivateKey
    | ed25519.Ed25519PrivateKey
    | ed448.Ed448PrivateKey
)


class Pair(NamedTuple):
    """A private key and its certificate, both in PEM."""

    key: bytes
    cert: bytes


def make_key() -> bytes:
    return to_pem(Ed25519PrivateKey.generate())


def to_pem(key: SigningKey, passphrase: bytes | None = None) -> bytes:
    """Return a private key in PEM, encrypted if there is a passphrase."""
    protection = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)


def load_key(pem: bytes, passphrase: bytes | None = None) -> SigningKey:
    """Load a private key; a passphrase is ignored where the key is not encrypted."""
    try:
        key = load_pem_private_key(pem, passphrase if is_encrypted(pem) else None)
    except TypeError:
        raise InputError("the key is encrypted, and no passphrase is given") from None
    except ValueError:
        why = "or the passphrase is wrong" if is_encrypted(pem) else "in PEM is needed"
        raise InputError(f"the key cannot be read: it is no private key, {why}") from None
    if not isinstance(key, SigningKey):
        raise InputError(
            "the key is of a kind that cannot sign certificates; RSA, EC and Ed25519 keys can"
        )
    return key


def load_ed25519(pem: bytes, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    key = load_key(pem, passphrase)
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("the key is not an Ed25519 key; make a new one")
    return key


def is_encrypted(pem: bytes) -> bool:
    return b"ENCRYPTED" in pem


def public_bytes(pem: bytes) -> bytes:
    """Return the public key that belongs to a private Ed25519 key in PEM."""
    return load_ed25519(pem).public_key().public_bytes_raw()


def make_authority(network: str) -> Pair:
    """Make a network's authority: a key that signs the certificates of its nodes."""
    key, start = Ed25519PrivateKey.generate(), datetime.now(UTC) - CLOCK_SKEW
    name, end = _name(f"gosta {network}"), start + timedelta(days=AUTHORITY_DAYS)
    return Pair(
        to_pem(key), _sign(key, name, name, key.public_key(), start, end, is_authority=True)
    )


def issue(
    authority: Pair,
    network: str,
    name: str,
    *,
    not_before: datetime | None = None,
    not_after: datetime | None = None,
) -> Pair:
    """Make a key for a node and a certificate signed by the authority."""
    key = make_key()
    return Pair(
        key,
        certify(
            authority, network, name, public_bytes(key), not_before=not_before, not_after=not_after
        ),
    )


def certify(
    authority: Pair,
    network: str,
    name: str,
    key: bytes,
    *,
    not_before: datetime | None = None,
    not_after: datetime | None = None,
) -> bytes:
    """Return a certificate, signed by the authority, for the key of a node or the coordinator."""
    holder, days = certificate_name(name, network), NODE_DAYS
    extensions: list[x509.ExtensionType] = [x509.SubjectAlternativeName([x509.DNSName(holder)])]
    if name == COORDINATOR:
        # its certificate is no use in TLS, and lists that it signed stay valid
        days = AUTHORITY_DAYS
    else:
        extensions.append(x509.ExtendedKeyUsage(TLS_USAGES))
    signing, cert = load_authority(authority)
    start = not_before or datetime.now(UTC) - CLOCK_SKEW
    end = not_after or min(start + timedelta(days=days), cert.not_valid_after_utc)
    public, extensions = (
        Ed25519PublicKey.from_public_bytes(key),
        [*extensions, _authority_identifier(cert)],
    )
    return _sign(signing, cert.subject, _name(holder[:64]), public, start, end, extensions)


def load_authority(authority: Pair) -> tuple[SigningKey, x509.Certificate]:
    """Load an authority's key and certificate, and check that they can sign certificates."""
    cert = load_certificate(authority.cert)
    try:
        key = load_key(authority.key)
    except InputError as error:
        raise InputError(f"the authority: {error}") from None
    if key.public_key() != cert.public_key():
        raise InputError(
            "the authority's key does not belong to its certificate; give a matching pair"
        )
    check_authority(cert)
    return key, cert


def check_authority(cert: x509.Certificate) -> None:
    """Raise `InputError` for a certificate that cannot be an authority's."""
    extensions = [extension.value for extension in cert.extensions]
    if not any(isinstance(value, x509.BasicConstraints) and value.ca for value in extensions):
        raise InputError(
            "the authority's certificate cannot sign others: one with CA:TRUE is needed"
        )
    expires = cert.not_valid_after_utc
    if expires < datetime.now(UTC):
        raise InputError(
            f"the authority's certificate expired on {expires:%Y-%m-%d}; give a valid one"
        )


def make_request(key: bytes, network: str, name: str) -> bytes:
    """Return a certificate signing request (PEM) for a private key in PEM."""
    holder = certificate_name(name, network)
    builder = x509.CertificateSigningRequestBuilder(_name(holder[:64]))
    builder = builder.add_extension(
        x509.SubjectAlternativeName([x509.DNSName(holder)]), critical=False
    )
    if name != COORDINATOR:
        builder = builder.add_extension(x509.ExtendedKeyUsage(TLS_USAGES), critical=False)
    return builder.sign(load_ed25519(key), None).public_bytes(Encoding.PEM)


def check_request(request: bytes, network: str, name: str) -> bytes:
    """Return the public key of a signing request that its holder signed for this name."""
    try:
        csr = x509.load_pem_x509_csr(request)
        key, is_signed = csr.public_key(), csr.is_signature_valid
        names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        raise InputError(
            f"the certificate request of {name} cannot be read; the site has to make it again"
        ) from None
    if not is_signed or not isinstance(key, Ed25519PublicKey):
        raise InputError(
            f"the certificate request of {name} is not signed with its Ed25519 key; make it again"
        )
    if names.get_values_for_type(x509.DNSName) != [certificate_name(name, network)]:
        raise InputError(
            f"the certificate request is not for {certificate_name(name, network)}; make it again"
        )
    return key.public_bytes_raw()


def check_certificate(
    cert: bytes, authorities: Sequence[x509.Certificate], network: str, name: str
) -> bytes:
    """Return the key in a certificate.

    One of the authorities must have issued it for this name, and it must be valid now.
    """
    certificate = load_certificate(cert)
    holder = certificate_name(name, network)
    if dns_names(certificate) != [holder]:
        raise InputError(
            f"the certificate is for {', '.join(dns_names(certificate)) or 'no DNS name'}, not for "
            f"{holder}"
        )
    if not key_of(certificate):
        raise InputError(
            f"the certificate of {name} is not for an Ed25519 key; have the request signed as it is"
        )
    if not any(is_issued_by(certificate, signer) for signer in authorities):
        raise InputError(f"the certificate of {name} was not issued by this network's authority")
    if not certificate.not_valid_before_utc <= datetime.now(UTC) <= certificate.not_valid_after_utc:
        start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        raise InputError(
            f"the certificate of {name} is valid from {start:%Y-%m-%d} to {end:%Y-%m-%d} only; it "
            "needs a new one"
        )
    extensions = [extension.value for extension in certificate.extensions]
    usages = [value for value in extensions if isinstance(value, x509.ExtendedKeyUsage)]
    if name != COORDINATOR and any(not set(TLS_USAGES) <= set(usage) for usage in usages):
        raise InputError(
            f"the certificate of {name} must be for both ends of TLS: serverAuth and clientAuth"
        )
    return key_of(certificate)


def _sign(
    signing: SigningKey,
    issuer: x509.Name,
    subject: x509.Name,
    key: Ed25519PublicKey,
    start: datetime,
    end: datetime,
    extensions: Sequence[x509.ExtensionType] = (),
    is_authority: bool = False,
) -> bytes:
    others = (
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
        "crl_sign",
    )
    unused = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=not is_authority, key_cert_sign=is_authority, **unused)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .subject_name(subject)
        .serial_number(x509.random_serial_number())
        .public_key(key)
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(
            x509.BasicConstraints(is_authority, 0 if is_authority else None), critical=True
        )
        .add_extension(usage, critical=True)
    )
    for extension in (x509.SubjectKeyIdentifier.from_public_key(key), *extensions):
        builder = builder.add_extension(extension, critical=False)
    # Ed25519 and Ed448 hash the content themselves and take no hash algorithm.
    is_edwards = isinstance(signing, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey)
    return builder.sign(signing, None if is_edwards else hashes.SHA256()).public_bytes(Encoding.PEM)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _authority_identifier(signer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        known = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        known = x509.SubjectKeyIdentifier.from_public_key(signer.public_key())
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(known)
