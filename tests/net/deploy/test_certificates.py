"""Certificates: their content, and errors for invalid files."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from gosta.errors import InputError
from gosta.net.addresses import certificate_name
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.transport.tls import load_certificate

NETWORK = "0123456789abcdef"
YEAR = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def authority() -> Pair:
    return certificates.make_authority(NETWORK)


def test_an_authority_signs_nodes_only(authority: Pair) -> None:
    cert = x509.load_pem_x509_certificate(authority.cert)
    basic = cert.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = cert.extensions.get_extension_for_class(x509.KeyUsage).value
    assert basic.critical
    assert (basic.value.ca, basic.value.path_length) == (True, 0)
    assert (usage.key_cert_sign, usage.digital_signature) == (True, False)
    cert.verify_directly_issued_by(cert)
    assert authority.key.startswith(b"-----BEGIN PRIVATE KEY-----")


def test_a_certificate_names_node_and_network(authority: Pair) -> None:
    pair = certificates.issue(authority, NETWORK, "node-3")
    cert, signer = (
        x509.load_pem_x509_certificate(pair.cert),
        x509.load_pem_x509_certificate(authority.cert),
    )
    names = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [f"node-3.{NETWORK}"]
    cert.verify_directly_issued_by(signer)
    mine = cert.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    assert mine == signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    key = load_pem_private_key(pair.key, None)
    assert isinstance(key, ed25519.Ed25519PrivateKey)
    assert key.public_key() == cert.public_key()


def test_expiry_dates(authority: Pair) -> None:
    now, day = datetime.now(UTC), timedelta(days=1)
    assert (
        824 * day
        < load_certificate(certificates.issue(authority, NETWORK, "a").cert).not_valid_after_utc
        - now
        < 826 * day
    )
    assert 3649 * day < load_certificate(authority.cert).not_valid_after_utc - now < 3651 * day
    early = certificates.issue(
        authority, NETWORK, "a", not_before=now - 2 * day, not_after=now - day
    )
    assert load_certificate(early.cert).not_valid_after_utc == (now - day).replace(microsecond=0)


def test_an_existing_authority_can_have_an_rsa_key() -> None:
    key = rsa.generate_private_key(65537, 2048)
    start = datetime.now(UTC) - timedelta(days=1)
    name = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "Hospital")])
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), 1, start, start + timedelta(days=30)
    )
    signer = builder.add_extension(x509.BasicConstraints(True, None), True).sign(
        key, hashes.SHA256()
    )
    own = Pair(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        signer.public_bytes(Encoding.PEM),
    )
    pair = certificates.issue(own, NETWORK, "a")
    x509.load_pem_x509_certificate(pair.cert).verify_directly_issued_by(signer)
    assert load_certificate(pair.cert).not_valid_after_utc == signer.not_valid_after_utc, (
        "not later than its authority"
    )


def test_invalid_authorities(authority: Pair) -> None:
    other = certificates.make_authority(NETWORK)
    node = certificates.issue(authority, NETWORK, "a")
    key = load_pem_private_key(authority.key, None)
    secret = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    strange = x25519.X25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    wrong = {
        "the authority: the key is encrypted": authority._replace(key=secret),
        "key cannot be read": authority._replace(key=b"nothing"),
        "kind that cannot sign": authority._replace(key=strange),
        "does not belong to its certificate": authority._replace(key=other.key),
        "certificate cannot be read": authority._replace(cert=b"nothing"),
        "cannot sign others": node,
    }
    for text, pair in wrong.items():
        with pytest.raises(InputError, match=text):
            certificates.issue(pair, NETWORK, "a")


@pytest.mark.parametrize("name", ["", "a.b", "*", "a b", "-a", "é", "a" * 64, "a\n", "a\x00"])
def test_invalid_names(authority: Pair, name: str) -> None:
    with pytest.raises(InputError, match="letters"):
        certificates.issue(authority, NETWORK, name)
    with pytest.raises(InputError, match="letters"):
        certificate_name("a", name)


def test_requests(authority: Pair) -> None:
    key = certificates.make_key()
    request = certificates.make_request(key, NETWORK, "site-a")
    public = certificates.check_request(request, NETWORK, "site-a")
    assert public == certificates.public_bytes(key)
    cert = certificates.certify(authority, NETWORK, "site-a", public)
    signer = load_certificate(authority.cert)
    assert certificates.check_certificate(cert, [signer], NETWORK, "site-a") == public
    with pytest.raises(InputError, match=r"is not for site-b.0123456789abcdef"):
        certificates.check_request(request, NETWORK, "site-b")
    with pytest.raises(InputError, match="cannot be read"):
        certificates.check_request(b"nothing", NETWORK, "site-a")
    lines = request.splitlines()
    lines[2] = lines[2][:-4] + (b"AAAA" if not lines[2].endswith(b"AAAA") else b"BBBB")
    with pytest.raises(InputError, match="certificate request"):
        certificates.check_request(b"\n".join(lines), NETWORK, "site-a")


def test_certificates_that_others_issued(authority: Pair) -> None:
    key, signers, now = (
        certificates.public_bytes(certificates.make_key()),
        [load_certificate(authority.cert)],
        YEAR,
    )
    wrong = {
        r"is for b.0123456789abcdef, not for a.0123456789abcdef": certificates.certify(
            authority, NETWORK, "b", key
        ),
        "not issued by": certificates.certify(
            certificates.make_authority(NETWORK), NETWORK, "a", key
        ),
        "valid from .* only": certificates.certify(
            authority, NETWORK, "a", key, not_before=now, not_after=now + timedelta(days=1)
        ),
    }
    for text, cert in wrong.items():
        with pytest.raises(InputError, match=text):
            certificates.check_certificate(cert, signers, NETWORK, "a")


def test_encrypted_keys() -> None:
    key = certificates.load_key(certificates.make_key())
    secret = certificates.to_pem(key, b"correct horse")
    assert certificates.is_encrypted(secret)
    found = certificates.load_key(secret, b"correct horse")
    assert certificates.to_pem(found) == certificates.to_pem(key)
    with pytest.raises(InputError, match="or the passphrase is wrong"):
        certificates.load_key(secret, b"wrong")
