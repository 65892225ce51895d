"""The member list: reading, signing, verification, and trust in members."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from msgspec.structs import replace

from gosta.errors import InputError
from gosta.net import members
from gosta.net.deploy import certificates
from gosta.net.deploy.certificates import Pair
from gosta.net.members import Keyring, Member, MemberList, OpenTrust, SignedList, Trust

NETWORK = "0123456789abcdef"
KEYS = {name: Ed25519PrivateKey.generate() for name in ("a", "b", "c")}
POLICY = {"statistic": "auc", "columns": "risk, died"}


def public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def make(**changes: Any) -> MemberList:
    made = MemberList(
        NETWORK,
        3,
        "0" * 16,
        POLICY,
        tuple(Member(name, public(key), 7) for name, key in KEYS.items()),
    )
    return replace(made, **changes)


@pytest.fixture(scope="module")
def authority() -> Pair:
    return certificates.make_authority(NETWORK)


def sign(
    authority: Pair, members_: MemberList, holder: str = "coordinator", **dates: datetime
) -> SignedList:
    pair = certificates.issue(authority, NETWORK, holder, **dates)
    key = load_pem_private_key(pair.key, None)
    assert isinstance(key, Ed25519PrivateKey)
    return members.sign_list(members_, key, pair.cert)


def test_a_list_is_written_read_and_verified(authority: Pair, tmp_path: Path) -> None:
    signed = sign(authority, make())
    members.write_list(tmp_path / "members.json", signed)
    assert members.read_list(tmp_path / "members.json") == signed
    assert members.verify_list(signed, authority.cert, NETWORK) == make()
    both = certificates.make_authority(NETWORK).cert + authority.cert
    assert members.verify_list(signed, both, NETWORK) == make(), (
        "one of two authorities, while one is replaced"
    )


def test_every_change_of_a_signed_list_is_noticed(authority: Pair) -> None:
    signed = sign(authority, make())
    for changes in (
        {"serial": 4},
        {"statistic": "1" * 16},
        {"policy": POLICY | {"columns": "name"}},
        {"members": make().members[:2]},
        {"members": (*make().members[:2], Member("c", public(KEYS["c"]), 8))},
        {"revoked": ("0" * 64,)},
        {"authorities": ("0" * 64,)},
    ):
        with pytest.raises(InputError, match="changed after the coordinator signed it"):
            members.verify_list(replace(signed, list=make(**changes)), authority.cert, NETWORK)


def test_lists_of_others(authority: Pair) -> None:
    signed, now = sign(authority, make()), datetime.now(UTC)
    with pytest.raises(InputError, match="is for network 0123456789abcdef; this node's is ffff"):
        members.verify_list(signed, authority.cert, "f" * 16)
    with pytest.raises(InputError, match="another authority"):
        members.verify_list(signed, certificates.make_authority(NETWORK).cert, NETWORK)
    with pytest.raises(InputError, match=r"is not signed by coordinator.0123456789abcdef"):
        members.verify_list(sign(authority, make(), "a"), authority.cert, NETWORK)
    old = sign(
        authority, make(), not_before=now - timedelta(days=2), not_after=now - timedelta(days=1)
    )
    with pytest.raises(InputError, match="certificate is not valid now"):
        members.verify_list(old, authority.cert, NETWORK)
    with pytest.raises(InputError, match="PEM is needed"):
        members.verify_list(replace(signed, certificate="nothing"), authority.cert, NETWORK)


KEY = public(KEYS["a"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": ()}, "length >= 1"),
        ({"members": (Member("a b", KEY),)}, "member 'a b': a name has"),
        ({"members": (Member("coordinator", KEY),)}, "is not 'coordinator'"),
        ({"members": (Member("a", KEY), Member("A", "0" * 64))}, "2 members have the name a"),
        ({"members": (Member("a", KEY), Member("b", KEY))}, "2 members have the key"),
        ({"members": (Member("a", KEY.upper() + "0"),)}, "matching regex"),
        ({"members": (Member("a", KEY, -1),)}, ">= 0"),
        ({"members": (Member("a", KEY, 2**41),)}, "<= "),
        ({"revoked": (KEY,)}, "the key of member a is revoked"),
        ({"revoked": ("x",)}, "matching regex"),
        ({"network": "x"}, "matching regex"),
        ({"serial": 0}, ">= 1"),
        ({"serial": 2**53 + 1}, "<= 9007199254740992"),
        ({"policy": {"a": "\x1b[2J"}}, "cannot be printed"),
        ({"policy": {"a": "x" * 1001}}, "length <= 1000"),
        (
            {"members": tuple(Member(f"n{k}", f"{k:064x}") for k in range(10_001))},
            "length <= 10000",
        ),
    ],
)
def test_invalid_lists(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = tmp_path / "members.json"
    path.write_bytes(msgspec.json.encode(SignedList(make(**changes), "", "0" * 128)))
    with pytest.raises(InputError, match=message) as caught:
        members.read_list(path)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"", b"{}", b"[" * 100_000, b"\xff", b'{"list": 1}', b"null"])
def test_files_that_are_no_lists(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "members.json").write_bytes(content)
    with pytest.raises(InputError, match="does not hold a member list"):
        members.read_list(tmp_path / "members.json")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "large.json").write_bytes(bytes(members.MAX_LIST_BYTES + 1))
    with pytest.raises(InputError, match="more than 4 MiB"):
        members.read_list(tmp_path / "large.json")
    with pytest.raises(InputError, match="no such file"):
        members.read_list(tmp_path / "none.json")
    with pytest.raises(InputError, match="cannot read"):
        members.read_list(tmp_path)


def test_the_largest_list_can_be_read(authority: Pair, tmp_path: Path) -> None:
    many = tuple(
        Member(f"site-{k}-{'x' * 40}", f"{k:064x}", 2**40) for k in range(members.MAX_MEMBERS)
    )
    gone = tuple(f"{k + 10**6:064x}" for k in range(members.MAX_REVOKED))
    signed = sign(authority, make(members=many, revoked=gone))
    members.write_list(tmp_path / "members.json", signed)
    assert members.read_list(tmp_path / "members.json") == signed


def test_a_keyring_signs_and_verifies() -> None:
    a, b = Keyring(KEYS["a"], make()), Keyring(KEYS["b"], make())
    trust: Trust = a
    assert trust.members == {"a": 7, "b": 7, "c": 7}
    signature = b.sign(b"data")
    assert a.verify("b", b"data", signature)
    assert not a.verify("b", b"date", signature)
    assert not a.verify("c", b"data", signature)
    assert not a.verify("d", b"data", signature)
    assert not a.verify("b", b"data", b"")
    assert not a.verify("b", b"data", KEYS["b"].sign(b"data")), "signed for another purpose"


def test_without_tls_all_are_trusted() -> None:
    trust: Trust = OpenTrust()
    assert (trust.members, trust.sign(b"data"), trust.verify("a", b"data", b"")) == ({}, b"", True)


@pytest.fixture
def folder(authority: Pair, tmp_path: Path) -> Path:
    pair = certificates.issue(authority, NETWORK, "a")
    key = load_pem_private_key(pair.key, None)
    assert isinstance(key, Ed25519PrivateKey)
    (tmp_path / "key.pem").write_bytes(pair.key)
    (tmp_path / "key.pem").chmod(0o600)
    (tmp_path / "ca.pem").write_bytes(authority.cert)
    both = (Member("a", public(key), 5), Member("b", public(KEYS["b"])))
    for name in ("members.json", "accepted.json"):
        members.write_list(tmp_path / name, sign(authority, make(members=both)))
    return tmp_path


def test_the_keyring_of_a_folder(folder: Path) -> None:
    keyring = members.read_keyring(folder, "a", NETWORK)
    assert keyring.members == {"a": 5, "b": 0}
    assert keyring.verify("a", b"x", keyring.sign(b"x"))
    with pytest.raises(InputError, match="is not the key of b"):
        members.read_keyring(folder, "b", NETWORK)
    with pytest.raises(InputError, match="does not list c"):
        members.read_keyring(folder, "c", NETWORK)


def test_a_key_that_others_can_read(folder: Path) -> None:
    (folder / "key.pem").chmod(0o640)
    with pytest.raises(InputError, match=r"mode 640\); protect it: chmod 600 .*key.pem"):
        members.read_keyring(folder, "a", NETWORK)


def test_keys_that_cannot_be_used(folder: Path) -> None:
    (folder / "key.pem").write_bytes(b"nothing")
    with pytest.raises(InputError, match="a private key in PEM"):
        members.read_keyring(folder, "a", NETWORK)
    (folder / "key.pem").unlink()
    with pytest.raises(InputError, match=r"cannot read .*key.pem"):
        members.read_keyring(folder, "a", NETWORK)
