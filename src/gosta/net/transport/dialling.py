"""Opening a socket to another site: directly, or through this site's HTTP proxy.

A proxy is asked with CONNECT for a connection to host:port, and then passes on the bytes of both
ends. TLS runs from end to end through it. Loopback is never dialled through a proxy.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import re
import socket
from urllib.request import getproxies, proxy_bypass

from gosta.errors import InputError
from gosta.net.addresses import Address, Proxy, is_loopback, parse_proxy
from gosta.net.transport.tls import describe_error

# Time for a connection through a proxy: shorter than for the neighbour behind it, so that an error
# says which of the two does not answer.
PROXY_TIMEOUT_SECONDS = 4.0
MAX_RESPONSE_BYTES = 16 * 1024  # of a proxy: status line and headers


class ProxyError(ConnectionError):
    """A proxy that cannot be reached, or that does not make the connection."""


def proxy_for(address: Address, setting: str) -> Proxy | None:
    """Return the proxy through which to dial, from the setting `proxy` or from the environment."""
    if setting == "none" or is_loopback(address.host) or _is_exempt(address):
        return None
    if setting:
        return parse_proxy(setting)
    try:
        return parse_proxy(getproxies().get("https", ""))
    except InputError as error:
        raise InputError(f"HTTPS_PROXY = {error}") from None


def _is_exempt(address: Address) -> bool:
    """Return whether NO_PROXY has a host: its name, its domain, or a range such as 10.0.0.0/8."""
    if proxy_bypass(str(address)):
        return True
    ranges = [entry.strip() for entry in getproxies().get("no", "").split(",") if "/" in entry]
    return any(_is_within(address.host, entry) for entry in ranges)


def _is_within(host: str, addresses: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(addresses, strict=False)
    except ValueError:  # a name, or no range
        return False


async def open_socket(address: Address, proxy_setting: str) -> socket.socket:
    """Connect to an address; raises `OSError`, or `InputError` for a proxy that is not one."""
    proxy = proxy_for(address, proxy_setting)
    if proxy is None:
        return await _connect(address)
    try:
        async with asyncio.timeout(PROXY_TIMEOUT_SECONDS):
            return await _connect_through(proxy, address)
    except TimeoutError:
        raise ProxyError(
            f"proxy {proxy.address}: no answer within {PROXY_TIMEOUT_SECONDS:g} s"
        ) from None


async def _connect_through(proxy: Proxy, address: Address) -> socket.socket:
    try:
        opened = await _connect(proxy.address)
    except OSError as error:
        raise ProxyError(f"proxy {proxy.address}: {describe_error(error)}") from None
    try:
        await _request(opened, address, proxy)
    except BaseException:
        opened.close()
        raise
    return opened


async def _connect(address: Address) -> socket.socket:
    loop, last = asyncio.get_running_loop(), OSError(f"{address.host} has no address")
    for family, kind, number, _, place in await loop.getaddrinfo(*address, type=socket.SOCK_STREAM):
        trial = socket.socket(family, kind, number)
        trial.setblocking(False)
        try:
            await loop.sock_connect(trial, place)
        except OSError as error:
            trial.close()
            last = error
        except BaseException:
            trial.close()
            raise
        else:
            return trial
    raise last


async def _request(opened: socket.socket, address: Address, proxy: Proxy) -> None:
    """Ask a proxy for a connection; raise `ProxyError` with its reason if it makes none."""
    lines = [f"CONNECT {address} HTTP/1.1", f"Host: {address}"]
    if proxy.credentials:
        lines.append(
            f"Proxy-Authorization: Basic {base64.b64encode(proxy.credentials.encode()).decode()}"
        )
    loop, response = asyncio.get_running_loop(), b""
    try:
        await loop.sock_sendall(opened, "\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in response:
            more = await loop.sock_recv(opened, 4096)
            response += more
            if not more or len(response) > MAX_RESPONSE_BYTES:
                break
    except OSError as error:
        raise ProxyError(f"proxy {proxy.address}: {describe_error(error)}") from None
    head, end, rest = response.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] ([0-9]{3})(?: |\r|$)", head)
    if status is None or not end:
        raise ProxyError(f"proxy {proxy.address}: it does not answer as an HTTP proxy does")
    if (code := int(status[1])) // 100 != 2:
        raise ProxyError(f"proxy {proxy.address}: {_explain(code, address, proxy)}")
    if rest:  # in TLS the dialling end speaks first
        why = f"it sent {len(rest)} bytes after its answer, before anybody spoke"
        raise ProxyError(f"proxy {proxy.address}: {why}")


def _explain(code: int, address: Address, proxy: Proxy) -> str:
    if code == 407:
        has_credentials = bool(proxy.credentials)
        problem = "it does not accept" if has_credentials else "it wants"
        setting = f"http://user:password@{proxy.address} in HTTPS_PROXY, or proxy in node.toml"
        return f"{problem} user and password, for Basic: {setting}"
    if code in (401, 403, 405):
        return f"it does not permit connections to {address} (status {code})"
    return f"it cannot connect to {address} (status {code})"
