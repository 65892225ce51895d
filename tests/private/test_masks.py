"""Masks cancel in the total, are what their definition says, and hide everything but the total."""

from __future__ import annotations

import hmac
import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from gosta.private import masks
from gosta.runtime.arrays import Words

CONTEXT = b"network 1, epoch 7"


def keys_of(names: list[str], seed: int = 0) -> dict[str, bytes]:
    rng = np.random.default_rng(seed)
    return {name: rng.bytes(32) for name in names}


def contributions(
    vectors: Mapping[str, Words], keys: Mapping[str, bytes], context: bytes = CONTEXT
) -> dict[str, Words]:
    public = {name: masks.public_key(key) for name, key in keys.items()}
    sent = {
        name: masks.mask(len(v), name, keys[name], public, context) for name, v in vectors.items()
    }
    return {name: vector + sent[name] for name, vector in vectors.items()}


def total(vectors: Mapping[str, Words]) -> Words:
    found: Words = np.sum(list(vectors.values()), axis=0, dtype=np.uint64)
    return found


def draw_vectors(names: list[str], size: int, seed: int) -> dict[str, Words]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(2**64, size=size, dtype=np.uint64) for name in names}


@pytest.mark.parametrize("sites", [2, 3, 5, 20, 51, 52, 60])
def test_masks_cancel_bit_for_bit(sites: int) -> None:
    names = [f"site-{k}" for k in range(sites)]
    vectors = draw_vectors(names, 9, seed=sites)
    sent = contributions(vectors, keys_of(names))
    assert np.array_equal(total(sent), total(vectors))
    assert all((sent[name] != vectors[name]).all() for name in names)


def test_partners_are_mutual_and_follow_from_the_context() -> None:
    names = [f"site-{k}" for k in range(120)]
    of = {name: masks.partners(names, name, CONTEXT) for name in names}
    assert {len(found) for found in of.values()} == {50}
    assert all(name in of[other] for name in names for other in of[name])
    assert of["site-0"] != masks.partners(names, "site-0", b"another epoch")
    assert masks.partners(["b", "a", "c"], "b", CONTEXT) == ["a", "c"]


def chacha20(key: bytes, blocks: int) -> bytes:
    """Return the first blocks of the key stream, as RFC 8439 defines it, for nonce 0."""

    def quarter(s: list[int], a: int, b: int, c: int, d: int) -> None:
        for one, two, three, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[one] = (s[one] + s[two]) % 2**32
            mixed = s[three] ^ s[one]
            s[three] = (mixed << turn | mixed >> (32 - turn)) % 2**32

    content = b""
    for counter in range(blocks):
        first = np.frombuffer(
            b"expand 32-byte k" + key + counter.to_bytes(16, "little"), dtype="<u4"
        ).tolist()
        s = list(first)
        for _ in range(10):
            for k in range(4):
                quarter(s, k, k + 4, k + 8, k + 12)
            for k in range(4):
                quarter(s, k, 4 + (k + 1) % 4, 8 + (k + 2) % 4, 12 + (k + 3) % 4)
        content += b"".join(
            ((a + b) % 2**32).to_bytes(4, "little") for a, b in zip(s, first, strict=True)
        )
    return content


def test_a_mask_is_what_its_definition_says() -> None:
    """X25519 of RFC 7748, section 6.1; then HKDF and ChaCha20, written out here."""
    assert chacha20(bytes(32), 1)[:8].hex() == "76b8e0ada0f13d90"  # RFC 8439, A.1
    bob = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    alice_public = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    secret = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")
    assert (
        masks.public_key(bob).hex()
        == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    )
    info = b"\0\0\0\x07context\0\0\0\x05alice\0\0\0\x03bob"
    extracted = hmac.digest(bytes(32), secret, "sha256")
    stream = np.frombuffer(
        chacha20(hmac.digest(extracted, info + b"\1", "sha256"), 3), dtype="<u8"
    )[:20]
    public = {"alice": alice_public, "bob": masks.public_key(bob)}
    assert np.array_equal(masks.mask(20, "bob", bob, public, b"context"), -stream)


def test_keys_of_low_order_are_no_keys() -> None:
    assert masks.is_public_key(masks.public_key(masks.new_key()))
    assert masks.new_key() != masks.new_key()
    for wrong in (b"", bytes(31), bytes(32), b"\1" + bytes(31)):
        assert not masks.is_public_key(wrong)


def test_masks_differ_between_epochs_and_pairs() -> None:
    """Also if a participant repeats another one's public key: both masks of an honest site would
    cancel.
    """
    keys = keys_of(["a", "b", "c"])
    public = {name: masks.public_key(key) for name, key in keys.items()}
    copied = masks.mask(50, "b", keys["b"], public | {"c": public["a"]}, CONTEXT)
    assert len(np.unique(copied)) == 50
    other = masks.mask(50, "b", keys["b"], public, b"epoch 8")
    assert not np.isin(masks.mask(50, "b", keys["b"], public, CONTEXT), other).any()


def test_contributions_are_uniform() -> None:
    """Chi-square of all bytes that leave a site with constant data: a false alarm once in a million
    seeds.
    """
    names, zeros = ["a", "b", "c"], np.zeros(512, dtype=np.uint64)
    found = [contributions({"a": zeros}, keys_of(names, seed))["a"].tobytes() for seed in range(60)]
    counts = np.bincount(np.frombuffer(b"".join(found), dtype=np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_others_see_the_total_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that knows the total and what colluding sites know gives byte for byte what they
    see.

    The masks between two honest sites are drawn at random here, which is what ChaCha20 with a key
    that nobody knows stands for. For other data with the same total there are masks, each as
    probable as the ones drawn, with which every site sends the same bytes; and the simulator,
    without honest data, draws what they send from the same numbers.
    """
    honest, colluding = ["b", "d", "e"], ["a", "c"]
    names, size = sorted(honest + colluding), 40
    keys = keys_of(names)
    public = {name: masks.public_key(key) for name, key in keys.items()}
    real = masks._stream
    rng = np.random.default_rng(1)
    pairs = list(itertools.combinations(honest, 2))
    drawn = {pair: rng.integers(2**64, size=size, dtype=np.uint64) for pair in pairs}

    def sent(
        vectors: Mapping[str, Words], between_honest: Mapping[tuple[str, str], Words]
    ) -> dict[str, Words]:
        known = {masks._joined(CONTEXT, *pair): stream for pair, stream in between_honest.items()}

        def stream(size: int, secret: bytes, info: bytes) -> Words:
            return known[info] if info in known else real(size, secret, info)

        monkeypatch.setattr(masks, "_stream", stream)
        return contributions(vectors, keys)

    data = draw_vectors(names, size, seed=2)
    moved = rng.integers(1000, size=size, dtype=np.uint64)
    others = data | {"b": data["b"] + moved, "e": data["e"] - moved}
    first = sent(data, drawn)
    assert not np.array_equal(first["b"], sent(others, drawn)["b"])
    same = sent(others, drawn | {("b", "e"): drawn["b", "e"] - moved})
    assert {name: vector.tobytes() for name, vector in first.items()} == {
        n: v.tobytes() for n, v in same.items()
    }

    def simulate(
        total: Words, colluders: Mapping[str, Words], random: Mapping[str, Words]
    ) -> dict[str, Words]:
        """Return what all sites send, from the colluding sites' keys and data and the total."""
        monkeypatch.setattr(masks, "_stream", real)
        found = {n: v + masks.mask(size, n, keys[n], public, CONTEXT) for n, v in colluders.items()}
        rest = total - np.sum(list(found.values()), axis=0, dtype=np.uint64)
        return (
            found
            | dict(random)
            | {honest[-1]: rest - np.sum(list(random.values()), axis=0, dtype=np.uint64)}
        )

    made = simulate(
        total(data),
        {name: data[name] for name in colluding},
        {name: first[name] for name in honest[:-1]},
    )
    assert {name: vector.tobytes() for name, vector in made.items()} == {
        n: v.tobytes() for n, v in first.items()
    }
