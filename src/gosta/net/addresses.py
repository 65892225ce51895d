"""Names and addresses of nodes."""

from __future__ import annotations

import errno
import ipaddress
import os
import re
import socket
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from gosta.errors import InputError

NAME_PATTERN = re.compile(
    r"[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?"
)  # a label of a DNS name, for certificates
OUTBOUND = "outbound"  # instead of a host: the node only dials out
ALL_INTERFACES = ("0.0.0.0", "::")  # hosts where one can listen, and which nobody can dial
FIRST_PORT = 7400  # of the nodes of a network, by default
MIN_UNPRIVILEGED_PORT = 1024  # smaller ones are for root
# from the port of an enrolled site, beside which other sites on its machine may have theirs, to
# that of its status page
ENROLLED_OFFSET = 1000
MAX_PORT = 65535
PRIVILEGED_OFFSET = 7000  # the status page of a node at port 443 is at port 7443
NAME_RULE = "at most 63 letters a-z, digits, '-' and '_', a letter or digit first and last"


def certificate_name(name: str, network: str) -> str:
    """Return the DNS name in a node's certificate.

    It includes the network, since an authority can serve several.

    >>> certificate_name("node-3", "0123456789abcdef")
    'node-3.0123456789abcdef'
    """
    if not (NAME_PATTERN.fullmatch(name) and NAME_PATTERN.fullmatch(network)):
        raise InputError(f"name {name!r} of a node of network {network!r} must have {NAME_RULE}")
    return f"{name}.{network}"


def check_name(field: str, name: str) -> None:
    """Raise `InputError` for what cannot be a node's name; `field` says where it stands."""
    if not NAME_PATTERN.fullmatch(name):
        raise InputError(f"{field} = {name[:80]!r}: a node's name has {NAME_RULE}")


def check_address(field: str, address: str) -> None:
    """Raise `InputError` for what cannot be an address; `field` says where it stands."""
    try:
        port = parse(address).port
    except InputError as error:
        raise InputError(f"{field} = {error}") from None
    if port == 0:
        raise InputError(
            f"{field} = {address!r} must end in a port from 1 to 65535, such as 127.0.0.1:7400"
        )


class Address(NamedTuple):
    """A host and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Address:
    """Parse host:port; an IPv6 host is in brackets.

    >>> parse("hospital.example:7400"), parse("[::1]:7400")
    (Address(host='hospital.example', port=7400), Address(host='::1', port=7400))
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host == f"[{bare}]"
    if not re.fullmatch(r"[0-9A-Za-z._:%-]+", bare) or bracketed != _is_ipv6(bare):
        raise InputError(f"{text!r} must be host:port, such as 127.0.0.1:7400 or [::1]:7400")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > 65535:
        raise InputError(f"{text!r} must end in a port from 1 to 65535, such as 127.0.0.1:7400")
    return Address(bare, int(port))


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


class Proxy(NamedTuple):
    """An HTTP proxy, through which connections are made with the method CONNECT."""

    address: Address
    credentials: str = ""  # user:password


def parse_proxy(text: str) -> Proxy | None:
    """Parse the address of an HTTP proxy; None for "" and "none".

    >>> parse_proxy("http://user:secret@proxy.example:3128")
    Proxy(address=Address(host='proxy.example', port=3128), credentials='user:secret')
    """
    if text in ("", "none"):
        return None
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        host, port, parts = "", 0, urlsplit("")
    shown = re.sub(r"[^/]*@", "", text)[:80]  # without the password
    if parts.scheme != "http" or not re.fullmatch(r"[0-9A-Za-z._:%-]+", host):
        raise InputError(f"{shown!r} must be an HTTP proxy, such as http://proxy.example:3128")
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}" if parts.username else ""
    if any(character in user for character in "\r\n"):
        raise InputError(f"{shown!r}: user and password of a proxy are on one line")
    return Proxy(Address(host, port), user)


def parse_host(text: str) -> str:
    """Return the host of a node as neighbours dial it, or "outbound".

    It is without the brackets of an IPv6 address.

    >>> parse_host("a.example"), parse_host("[2001:db8::1]")
    ('a.example', '2001:db8::1')
    """
    host = text.removeprefix("[").removesuffix("]")
    if host.lower() == OUTBOUND:
        return OUTBOUND
    try:
        parse(str(Address(host, 1)))
    except InputError:
        raise InputError(
            f"host = {text!r} must be a name or an IP address, without a port"
        ) from None
    require_reachable("host", text, host)
    return host


def require_reachable(field: str, given: str, host: str) -> None:
    """Raise `InputError` for a host that stands for all interfaces of a machine."""
    if host in ALL_INTERFACES:
        raise InputError(
            f"{field} = {given!r} is nothing that neighbours can dial; give a name or an IP address"
        )


def everywhere(host: str, port: int) -> Address:
    """Return where a node listens: on loopback if it is reached there, else on all interfaces.

    >>> everywhere("127.0.0.1", 7400), everywhere("a.example", 7400)
    (Address(host='127.0.0.1', port=7400), Address(host='0.0.0.0', port=7400))
    """
    if is_loopback(host):
        return Address(host, port)
    return Address("::" if ":" in host else "0.0.0.0", port)


def is_loopback(host: str) -> bool:
    """Return whether a host is reachable from this machine only.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(address: str, setting: str) -> socket.socket:
    """Open a listening socket at an address; `setting` is its key in node.toml, for messages."""
    try:
        return open_listener(parse(address))
    except OSError as error:
        raise InputError(
            f"{setting} = {address!r} in node.toml: cannot listen there ({error.strerror}); give "
            "an address of this machine and a free port"
        ) from None


def listen_for_page(address: str, option: str, or_any_port: bool = False) -> socket.socket:
    """Open a listening socket for a page, at any port if this one is taken and that is allowed.

    `option` is the name of the address in the error message.
    """
    place = parse(address)
    try:
        return open_listener(place)
    except OSError as error:
        if or_any_port:
            return open_listener(place._replace(port=0))
        # Errors of the resolver have negative numbers; `strerror` of others repeats the address.
        code = error.errno or 0
        way_out = "give an address of this machine"
        if code in (errno.EADDRINUSE, errno.EACCES):
            way_out = "give another port, or 0 for any that is free"
        reason = os.strerror(code) if code > 0 else error.strerror
        why = f"cannot listen there ({reason})"
        raise InputError(f"{option} = {address!r}: {why}; {way_out}") from None


def page_url(listener: socket.socket) -> str:
    """Return the address of a page in a browser, from its listening socket."""
    host, port = parse(listening_address(listener))
    return f"http://{Address(socket.gethostname() if host in ALL_INTERFACES else host, port)}/"


def open_listener(address: Address) -> socket.socket:
    """Open a listening socket for an event loop; raises `OSError`."""
    family, *_, place = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
    both = family == socket.AF_INET6 and address.host == "::" and socket.has_dualstack_ipv6()
    listener = socket.create_server(place[:2], family=family, backlog=128, dualstack_ipv6=both)
    listener.setblocking(False)
    return listener


def listening_address(listener: socket.socket) -> str:
    """Return the address of a listening socket, with the port that was chosen for port 0."""
    return str(Address(*listener.getsockname()[:2]))


def choose_addresses(nodes: int, hosts: Sequence[str], port: int) -> list[Address]:
    """Return where nodes can be reached; the host is "outbound" for those that only dial out.

    Nodes on one machine have two ports each, the second one for the status page.
    """
    if len(hosts) not in (1, nodes):
        raise InputError(
            f"host is given {len(hosts)} times for {nodes} nodes; give it once, or once for each "
            "node"
        )
    chosen = list[Address]()
    nodes_at = Counter[str]()
    for host in [parse_host(text) for text in hosts] * (nodes // len(hosts)):
        chosen.append(Address(host, port + 2 * nodes_at[machine_of(host)]))
        nodes_at[machine_of(host)] += 1
    last = max(address.port for address in chosen)
    if not 1 <= port <= last < 65535:
        raise InputError(
            f"port = {port}: {nodes} nodes need ports up to {last + 1}; ports go from 1 to 65535"
        )
    # With a node on loopback this is a trial: nodes that only dial out are on this machine too.
    is_trial = any(is_loopback(address.host) for address in chosen)
    for address in chosen:
        if (is_trial or address.host != OUTBOUND) and (taken := _taken_port(address)):
            raise InputError(f"port {taken} is in use or not permitted; choose another with --port")
    return chosen


def free_address(host: str, first_port: int) -> Address:
    """Return the first address from a port on whose port and status page's port are free."""
    for port in range(first_port, 65534, 2):
        address = Address(host, port)
        if not _taken_port(address):
            return address
    raise InputError(f"no port of {host} is free; name one with --port")


def reachable_at(address: Address) -> str:
    """Return where neighbours reach a node; empty if it only dials out."""
    return "" if address.host == OUTBOUND else str(address)


def page_address(port: int, offset: int = 1) -> Address:
    """Return the address of the status page of a node with this port: on loopback."""
    shift = offset if port >= MIN_UNPRIVILEGED_PORT else PRIVILEGED_OFFSET
    return Address("127.0.0.1", port + (shift if port + shift <= MAX_PORT else -shift))


def machine_of(host: str) -> str:
    """Return a host that nodes on one machine share; who only dials out may be on this one."""
    return "127.0.0.1" if host == OUTBOUND or is_loopback(host) else host


def _taken_port(address: Address) -> str:
    """Return a port of a node that is not free on this machine, and its host; empty if all are."""
    page = page_address(address.port)
    needed = [page]
    if address.host != OUTBOUND:
        needed = [address, page._replace(host=address.host)]
    return next((f"{port} of {host}" for host, port in needed if not _is_free(host, port)), "")


def _is_free(host: str, port: int) -> bool:
    """Return whether this machine could listen there; ports of other machines count as free."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, port))
        except OSError as error:
            return error.errno not in (errno.EADDRINUSE, errno.EACCES)
    return True
