"""Addresses as people write them: host:port."""

from __future__ import annotations

import ipaddress
import socket

from gosta.errors import InputError


def split(address: str) -> tuple[str, int]:
    """The host and the port of an address.

    >>> split("hospital.example:7000"), split("[::1]:7000")
    (('hospital.example', 7000), ('::1', 7000))
    """
    host, _, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host == f"[{bare}]"
    number = int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1
    if not bare or number not in range(65536) or (":" in bare and not bracketed):
        raise InputError(f"address {address!r}: host:port is needed, as in 192.0.2.1:7000 or [2001:db8::1]:7000")
    return bare, number


def join(host: str, port: int) -> str:
    """An address from its host and port.

    >>> join("::1", 7000)
    '[::1]:7000'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and nobody else can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bind(address: str, setting: str) -> socket.socket:
    """A socket that listens at an address, which a setting of node.toml gives."""
    host, port = split(address)
    try:
        family, *_, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = family == socket.AF_INET6 and host == "::" and socket.has_dualstack_ipv6()
        listening = socket.create_server(place[:2], family=family, backlog=128, dualstack_ipv6=both)
    except OSError as error:
        raise InputError(
            f"{setting} = {address!r} in node.toml: cannot listen there ({error.strerror}); "
            "give an address of this machine and a port that is free"
        ) from None
    listening.setblocking(False)
    return listening


def bound(listening: socket.socket) -> str:
    """Where a socket listens, with the port that port 0 became."""
    return join(*listening.getsockname()[:2])
