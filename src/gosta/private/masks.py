"""Masks between pairs of sites: they hide what each site contributes, and cancel in the total.

Two sites i and j with keys of one epoch share a secret, which nobody else can compute from their
public keys. A stream of numbers follows from it: the site whose name is first adds it to its
vector, the other one subtracts it, modulo 2^64. A contribution is uniformly distributed as long as
one partner of its site keeps its key to itself, and the total of all contributions is the total of
the vectors, bit for bit.

    k_ij = HKDF-SHA256(X25519(sk_i, pk_j), info = context, name of i, name of j)
    m_ij = ChaCha20(k_ij) as uint64[m]
    y_i  = v_i + Σ_{j in M(i), i < j} m_ij − Σ_{j in M(i), j < i} m_ij   (mod 2^64)

The names are part of k_ij: otherwise a participant that repeats another one's public key, without
knowing its secret, would get the same numbers with the other sign, and both masks would be gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from gosta.runtime.arrays import Words

KEY_BYTES = 32
# Partners of a site; with at most 51 participants, all the others are its partners.
MAX_PARTNERS = 50


def new_key() -> bytes:
    """Return a new secret key, to be used for one epoch."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes_raw()


def public_key(key: bytes) -> bytes:
    """Return the public key that belongs to a secret one."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()


def is_public_key(data: bytes) -> bool:
    """Return whether bytes are a usable X25519 public key.

    Points of low order, which give everybody the same secret, are not.
    """
    try:
        _secrets(bytes(range(KEY_BYTES)), [data])
    except ValueError:
        return False
    return True


def partners(names: Iterable[str], name: str, beacon: bytes = b"") -> list[str]:
    """Return the participants that share a mask with one of them.

    These are all others; of more than 51 participants, the 25 on either side of it on a ring, whose
    order follows from the beacon: a number to which all participants committed a part before
    anybody knew it.
    """
    others = sorted(set(names) - {name})
    if len(others) <= MAX_PARTNERS:
        return others
    ring = sorted([*others, name], key=lambda site: hashlib.sha256(_joined(beacon, site)).digest())
    place, reach = ring.index(name), MAX_PARTNERS // 2
    return sorted(ring[(place + step) % len(ring)] for step in range(-reach, reach + 1) if step)


def pair_masks(
    size: int, name: str, key: bytes, keys: Mapping[str, bytes], context: bytes, beacon: bytes = b""
) -> dict[str, Words]:
    """Return what a site adds to its vector for each partner.

    The partner adds the same with the other sign.

    Parameters
    ----------
    size
        Numbers in the vector.
    name, key
        The site, and its secret key of this epoch.
    keys
        The public keys of all participants by name.
    context
        What the masks are for: network, epoch, participants, round, layout. Never the same for two
        vectors.
    beacon
        What the partners of more than 51 participants follow from.
    """
    chosen = partners(keys, name, beacon)
    secrets = _secrets(key, [keys[partner] for partner in chosen])
    masks = {}
    for partner, secret in zip(chosen, secrets, strict=True):
        pair = min(name, partner), max(name, partner)
        stream = _stream(size, secret, _joined(context, *pair))
        masks[partner] = stream if name == pair[0] else np.uint64(0) - stream
    return masks


def mask(
    size: int, name: str, key: bytes, keys: Mapping[str, bytes], context: bytes, beacon: bytes = b""
) -> Words:
    """Return what a site adds to its vector for all partners together; see `pair_masks`."""
    masks = pair_masks(size, name, key, keys, context, beacon)
    total = np.zeros(size, dtype=np.uint64)
    for stream in masks.values():
        total += stream
    return total


def _secrets(key: bytes, public_keys: Iterable[bytes]) -> list[bytes]:
    """Return the secret that the owner of a key shares with each of some others."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

    secret_key = X25519PrivateKey.from_private_bytes(key)
    return [
        secret_key.exchange(X25519PublicKey.from_public_bytes(public)) for public in public_keys
    ]


def _stream(size: int, secret: bytes, info: bytes) -> Words:
    return np.frombuffer(_generator(secret, info)(8 * size), dtype="<u8").astype(np.uint64)


def random_bytes(secret: bytes, context: bytes) -> Callable[[int], bytes]:
    """Return a generator of bytes that only the owner of a secret knows, fixed by a context."""
    return _generator(secret, _joined(context, "random bytes"))


def _generator(secret: bytes, info: bytes) -> Callable[[int], bytes]:
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    key = HKDF(SHA256(), KEY_BYTES, salt=None, info=info).derive(secret)
    stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    return lambda count: stream.update(bytes(count))


def _joined(context: bytes, *names: str) -> bytes:
    """Join a context and names, each after its length, so that no two lists give the same bytes."""
    parts = [context, *(name.encode() for name in names)]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
