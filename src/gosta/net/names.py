"""Names of nodes and networks."""

from __future__ import annotations

import re

from gosta.errors import InputError

NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")  # a label of a DNS name, as certificates hold it
ALLOWED = "at most 63 letters a-z, digits, '-' and '_', a letter or digit first and last"


def identity(name: str, network: str) -> str:
    """What a node's certificate is for; with the network in it, as an authority may serve several networks.

    >>> identity("node-3", "0123456789abcdef")
    'node-3.0123456789abcdef'
    """
    if not (NAME.fullmatch(name) and NAME.fullmatch(network)):
        raise InputError(f"name {name!r} of a node of network {network!r}: {ALLOWED}, please")
    return f"{name}.{network}"
