"""The transport of real networks: messages over TCP with mutual TLS.

After the TLS handshake the first frame in either direction is a greeting: the wire version, the sender's name and
network, which its certificate must contain, and what it computes; the certificate's key must be the one in the member
list. The accepting end greets only after it has accepted the name of the dialling end, which thereby learns whether it
was accepted: in TLS 1.3 alone it would learn of a rejection later, from a broken connection. Ends that differ in
version or statistic part after the greeting.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Coroutine

from gosta.errors import InputError, shorten
from gosta.net import addresses
from gosta.net.addresses import certificate_name
from gosta.net.members import MemberList
from gosta.net.transport.base import CHECK, Greeting, Handler
from gosta.net.transport.connection import Connection
from gosta.net.transport.tls import RejectedError, TlsFiles, check_peer, describe_error, make_context, rejection_of

HANDSHAKE_TIMEOUT_SECONDS = 5.0  # from the connection to the greeting
MAX_HANDSHAKES = 64  # at a time; beyond that the oldest is cancelled
MAX_LINKS_PER_NEIGHBOUR = 4  # beyond that the oldest is closed

# Detects within a minute a neighbour that vanished, and two ends that wait for each other to read.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}


class TcpTransport:
    """The connections of one node; without TLS on the loopback interface only."""

    def __init__(self, handler: Handler, tls: TlsFiles | None, members: MemberList | None = None) -> None:
        self.address = ""  # where it listens, after `start`
        self._network, self._handler = handler.greeting.network, handler
        self._has_tls, self._is_closed = tls is not None, False
        self._members = members
        self._server_context = make_context(tls, ssl.PROTOCOL_TLS_SERVER) if tls else None
        self._client_context = make_context(tls, ssl.PROTOCOL_TLS_CLIENT) if tls else None
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: dict[asyncio.Task[None], None] = {}  # oldest first
        self._connections: dict[Connection, None] = {}  # oldest first

    async def start(self, listen: str) -> None:
        """Listen for neighbours; at an empty address nowhere."""
        if not listen:
            return
        self._check_address(listen)
        listener = addresses.listen(listen, "listen")
        self.address = addresses.listening_address(listener)
        self._spawn(self._accept_all(listener))

    def dial(self, neighbour: str, address: str) -> None:
        host, port = self._check_address(address)
        if not self._is_closed:
            self._spawn(self._connect(neighbour, certificate_name(neighbour, self._network), host, port))

    def reload_tls(self, tls: TlsFiles, members: MemberList | None) -> None:
        """Use other certificates and another member list from now on, and end the links that they do not permit."""
        server, client = make_context(tls, ssl.PROTOCOL_TLS_SERVER), make_context(tls, ssl.PROTOCOL_TLS_CLIENT)
        trusted = set(self._server_context.get_ca_certs(binary_form=True)) if self._server_context else set()
        is_withdrawn = not trusted <= set(server.get_ca_certs(binary_form=True))
        self._server_context, self._client_context, self._members = server, client, members
        for connection in list(self._connections) if is_withdrawn else ():
            connection.close("an authority is no longer trusted: connecting anew")
        self.check_links()

    def check_links(self) -> None:
        """End the links to nodes whose certificate has expired or whose key is no longer in the member list."""
        for connection in list(self._connections) if self._has_tls else ():
            if connection.transport.is_closing():
                continue
            try:
                self._check_certificate(connection, connection.neighbour)
            except RejectedError as error:
                self._handler.on_rejected(error.reason, str(error))
                connection.close(str(error))

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        for connection in self._connections:
            connection.close("this node is stopping")

    async def stop(self) -> None:
        """Close all connections and wait until they are closed."""
        self.close()
        waiting = [*self._tasks, *(connection.lost for connection in self._connections)]
        if waiting:
            await asyncio.wait(waiting)

    def _check_address(self, address: str) -> tuple[str, int]:
        host, port = addresses.parse(address)
        if not self._has_tls and not addresses.is_loopback(host):
            raise InputError(f"address {address!r}: tls = false is for loopback only, as in 127.0.0.1:{port}")
        return host, port

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept_all(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listener:
            while True:
                try:
                    client, place = await loop.sock_accept(listener)
                except OSError:  # for example, no file descriptors are left
                    await asyncio.sleep(0.1)
                    continue
                if len(self._handshakes) >= MAX_HANDSHAKES:
                    oldest = next(iter(self._handshakes))
                    del self._handshakes[oldest]
                    oldest.cancel()
                    detail = "too many handshakes at a time: the oldest is cancelled"
                    self._handler.on_rejected("unauthenticated", detail)
                task = self._spawn(self._accept(client, str(addresses.Address(*place[:2]))))
                self._handshakes[task] = None
                task.add_done_callback(lambda done: self._handshakes.pop(done, None))
                await asyncio.sleep(0)  # let other tasks run between many connections

    async def _accept(self, client: socket.socket, place: str) -> None:
        loop, fresh, connection = asyncio.get_running_loop(), Connection(), None
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_SECONDS):
                await loop.connect_accepted_socket(lambda: fresh, client, ssl=self._server_context)
                connection = fresh
                greeting = await self._identify(connection)
            if greeting.note == CHECK:  # 'gosta check': the neighbour's node need not even run
                connection.send(self._handler.greeting._replace(note=f"{time.time():.0f}").encode())
                connection.close()
                return
            connection.send(self._handler.greeting.encode())
            self._establish(connection, greeting)
        except TimeoutError:
            why = "handshake" if self._has_tls and connection is not None else "unauthenticated"
            self._handler.on_rejected(why, f"{place}: no greeting within {HANDSHAKE_TIMEOUT_SECONDS:g} s")
        except OSError as error:
            why, detail = rejection_of(error)
            self._handler.on_rejected(why, f"{place}: {detail}")
        finally:
            self._abort_unless_established(connection)

    async def _connect(self, neighbour: str, expected: str, host: str, port: int) -> None:
        loop, fresh, connection = asyncio.get_running_loop(), Connection(), None
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_SECONDS):
                tls, server = self._client_context, expected if self._has_tls else None
                await loop.create_connection(lambda: fresh, host, port, ssl=tls, server_hostname=server)
                connection = fresh
                connection.send(self._handler.greeting.encode())
                greeting = await self._identify(connection)
            if greeting.name != neighbour:
                raise RejectedError("not a neighbour", f"the node there is {greeting.name}")
            if not self._establish(connection, greeting):
                self._handler.on_dial_failed(neighbour, "mismatch")
        except TimeoutError:
            self._handler.on_dial_failed(neighbour, f"no answer within {HANDSHAKE_TIMEOUT_SECONDS:.0f} s")
        except (OSError, ValueError) as error:  # ValueError: an invalid host name
            self._handler.on_dial_failed(neighbour, describe_error(error))
        finally:
            self._abort_unless_established(connection)

    async def _identify(self, connection: Connection) -> Greeting:
        """Return the greeting of the neighbour at the other end, after comparing it with its certificate."""
        raw = await connection.greeting
        if not raw:
            closed = "closed before the greeting: the other end may reject this certificate, or run another version"
            raise RejectedError("handshake" if self._has_tls else "unauthenticated", connection.close_reason or closed)
        certificate = connection.transport.get_extra_info("peercert") or {}
        certified = {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
        greeting = Greeting.decode(raw)
        claimed = f"{greeting.name}.{greeting.network}"
        if self._has_tls and claimed not in certified:
            raise RejectedError("not a neighbour", f"{claimed!r} has a certificate for {shorten(sorted(certified))!r}")
        if greeting.network != self._network or not self._handler.is_neighbour(greeting.name):
            raise RejectedError("not a neighbour", repr(claimed))
        if self._has_tls:
            self._check_certificate(connection, greeting.name)
        return greeting

    def _check_certificate(self, connection: Connection, name: str) -> None:
        tls = connection.transport.get_extra_info("ssl_object")
        check_peer(tls.getpeercert(True) or b"", name, self._members)

    def _establish(self, connection: Connection, greeting: Greeting) -> bool:
        """Make a connection a link, and return True, unless the two ends cannot exchange."""
        name, mismatch = greeting.name, self._handler.greeting.mismatch(greeting)
        if mismatch is not None:
            connection.close()  # after the greeting is sent, so that the other end learns why
            self._handler.on_mismatch(name, *mismatch)
            return False
        if connection.transport.is_closing():
            raise ConnectionResetError
        raw_socket = connection.transport.get_extra_info("socket")
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in KEEPALIVE.items():
            if hasattr(socket, option):
                raw_socket.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        links = [link for link in self._connections if link.neighbour == name and not link.transport.is_closing()]
        if len(links) >= MAX_LINKS_PER_NEIGHBOUR:
            links[0].close("too many connections")
        self._connections[connection] = None
        connection.lost.add_done_callback(lambda _: self._connections.pop(connection))
        connection.establish(name, self._handler)
        return True

    def _abort_unless_established(self, connection: Connection | None) -> None:
        if connection and connection not in self._connections and not connection.transport.is_closing():
            connection.transport.abort()
