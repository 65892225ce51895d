"""Names of nodes and networks."""

from __future__ import annotations

import re

from gosta.errors import InputError

NAME_PATTERN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?")  # a label of a DNS name, for certificates
NAME_RULE = "at most 63 letters a-z, digits, '-' and '_', a letter or digit first and last"


def certificate_name(name: str, network: str) -> str:
    """Return the DNS name in a node's certificate; it includes the network, since an authority can serve several.

    >>> certificate_name("node-3", "0123456789abcdef")
    'node-3.0123456789abcdef'
    """
    if not (NAME_PATTERN.fullmatch(name) and NAME_PATTERN.fullmatch(network)):
        raise InputError(f"name {name!r} of a node of network {network!r} must have {NAME_RULE}")
    return f"{name}.{network}"
