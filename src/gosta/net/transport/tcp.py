"""The transport of real networks: messages over TCP with mutual TLS.

After the TLS handshake the first frame in either direction is a greeting: the wire version, the
sender's name and network, which its certificate must contain, and what it computes; the
certificate's key must be the one in the member list. The accepting end greets only after it has
accepted the name of the dialling end, which thereby learns whether it was accepted: in TLS 1.3
alone it would learn of a rejection later, from a broken connection. Ends that differ in version or
statistic part after the greeting.

Two neighbours that can only dial out wait for each other at members that can be reached: see
`forwarding`.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any, TypeVar, cast

from gosta.errors import InputError, shorten
from gosta.net import addresses
from gosta.net.addresses import certificate_name
from gosta.net.members import MemberList
from gosta.net.transport import forwarding
from gosta.net.transport.base import CHECK, FORWARDS, NO_FORWARDERS, Greeting, Handler
from gosta.net.transport.connection import Connection, keep_alive
from gosta.net.transport.dialling import open_socket
from gosta.net.transport.forwarding import (
    FORWARD,
    PAIRED,
    SWITCH_SECONDS,
    WAIT_SECONDS,
    Forwarder,
    OnForwarding,
)
from gosta.net.transport.tls import (
    RejectedError,
    TlsFiles,
    check_peer,
    describe_error,
    make_context,
    peer_certificate,
    rejection_of,
)

HANDSHAKE_TIMEOUT_SECONDS = 5.0  # from the connection to the greeting
MAX_HANDSHAKES = 64  # at a time; beyond that the oldest is cancelled
MAX_LINKS_PER_NEIGHBOUR = 4  # beyond that the oldest is closed
MAX_FORWARDERS_AT_ONCE = 3  # at which a node waits for a neighbour
NEXT_FORWARDER_SECONDS = 2.0  # after which it waits at one more; at once if one fails
# Time after which a forwarder that failed is asked again, while the node waits at others.
RETRY_FORWARDER_SECONDS = 5.0
# Time for which a forwarder whose link ended is asked after the others.
AVOID_FORWARDER_SECONDS = 600.0

Result = TypeVar("Result")


class TcpTransport:
    """The connections of one node; without TLS on the loopback interface only."""

    def __init__(
        self,
        handler: Handler,
        tls: TlsFiles | None,
        members: MemberList | None = None,
        proxy: str = "",
        on_forwarding: OnForwarding | None = None,
    ) -> None:
        """Make a transport without connections.

        `proxy` is the setting in node.toml; without `on_forwarding`, the node does not forward.
        """
        self.address = ""  # where it listens, after `start`
        self._network, self._handler = handler.greeting.network, handler
        self._has_tls, self._is_closed = tls is not None, False
        self._members, self._proxy = members, proxy
        self._forwarder = Forwarder(on_forwarding) if on_forwarding else None
        self._meetings: dict[str, asyncio.Task[None]] = {}  # by neighbour
        self._avoided: dict[tuple[str, str], float] = {}  # until when, by neighbour and forwarder
        self._server_context = make_context(tls, ssl.PROTOCOL_TLS_SERVER) if tls else None
        self._client_context = make_context(tls, ssl.PROTOCOL_TLS_CLIENT) if tls else None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._handshakes: dict[asyncio.Task[None], None] = {}  # oldest first
        self._connections: dict[Connection, None] = {}  # oldest first

    async def start(self, listen: str) -> None:
        """Listen for neighbours; at an empty address nowhere."""
        if not listen:
            return
        self._check_address(listen)
        listener = addresses.listen(listen, "listen")
        self.address = addresses.listening_address(listener)
        accepting = self._spawn(self._accept_all(listener))
        accepting.add_done_callback(lambda _: listener.close())

    def dial(
        self, neighbour: str, address: str, forwarders: Mapping[str, str] = NO_FORWARDERS
    ) -> None:
        if address:
            place = self._check_address(address)
            if not self._is_closed:
                self._spawn(self._connect(neighbour, place))
        elif not self._has_tls:
            raise InputError(f"neighbours.{neighbour} = '': forwarders need TLS, and tls = false")
        elif not self._is_closed and (
            neighbour not in self._meetings or self._meetings[neighbour].done()
        ):
            self._meetings[neighbour] = self._spawn(self._meet(neighbour, forwarders))

    def reload_tls(self, tls: TlsFiles, members: MemberList | None) -> None:
        """Use other certificates and members, and end the links that they do not permit."""
        server = make_context(tls, ssl.PROTOCOL_TLS_SERVER)
        client = make_context(tls, ssl.PROTOCOL_TLS_CLIENT)
        before, trusted = self._server_context, set(server.get_ca_certs(binary_form=True))
        self._server_context, self._client_context, self._members = server, client, members
        if before is not None and not set(before.get_ca_certs(binary_form=True)) <= trusted:
            for connection in list(self._connections):
                connection.close("an authority is no longer trusted: connecting anew")
        self.check_links()

    def check_links(self) -> None:
        """End links to nodes whose certificate has expired or whose key is no longer listed."""
        for connection in list(self._connections) if self._has_tls else ():
            if connection.transport.is_closing():
                continue
            try:
                self._check_certificate(connection, connection.neighbour)
            except RejectedError as error:
                self._handler.on_rejected(error.reason, str(error))
                connection.close(str(error))
        if self._forwarder is not None and self._has_tls:
            self._forwarder.check(self._members)

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

    def _check_address(self, address: str) -> addresses.Address:
        place = addresses.parse(address)
        if not self._has_tls and not addresses.is_loopback(place.host):
            hint = f"tls = false is for loopback only, as in 127.0.0.1:{place.port}"
            raise InputError(f"address {address!r}: {hint}")
        return place

    def _spawn(self, work: Coroutine[None, None, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept_all(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
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
                note = f"{time.time():.0f}{FORWARDS if self._forwarder and self._members else ''}"
                connection.send(self._handler.greeting._replace(note=note).encode())
                connection.close()
                return
            if greeting.note.startswith(FORWARD):
                self._handshakes.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)
                await self._forward(connection, greeting)
                return
            connection.send(self._handler.greeting.encode())
            self._establish(connection, greeting)
        except TimeoutError:
            why = "handshake" if self._has_tls and connection is not None else "unauthenticated"
            self._handler.on_rejected(
                why, f"{place}: no greeting within {HANDSHAKE_TIMEOUT_SECONDS:g} s"
            )
        except OSError as error:
            why, detail = rejection_of(error)
            self._handler.on_rejected(why, f"{place}: {detail}")
        finally:
            self._abort_unless_established(connection)

    async def _forward(self, connection: Connection, request: Greeting) -> None:
        """Forward between two members that can only dial out."""
        own, other = self._handler.greeting, request.note.removeprefix(FORWARD)
        if self._forwarder is None or self._members is None:
            forwarding.refuse(connection, own, "it does not forward")
        else:
            await self._forwarder.serve(connection, own, request.name, other[:80], self._members)

    async def _connect(self, neighbour: str, place: addresses.Address) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_SECONDS):
                is_linked = await self._link(
                    neighbour, await open_socket(place, self._proxy), is_client=True
                )
            if not is_linked:
                self._handler.on_dial_failed(neighbour, "mismatch")
        except (OSError, ValueError) as error:  # ValueError: an invalid host name
            self._handler.on_dial_failed(neighbour, _describe_dial(error))

    async def _link(
        self, neighbour: str, opened: socket.socket, is_client: bool, via: str = ""
    ) -> bool:
        """Make a socket to a neighbour a link; return False if the two cannot exchange."""
        loop, fresh, connection = asyncio.get_running_loop(), Connection(), None
        fresh.via = via
        try:
            if is_client:
                tls, server = self._client_context, certificate_name(neighbour, self._network)
                name = server if self._has_tls else None
                await loop.create_connection(
                    lambda: fresh, sock=opened, ssl=tls, server_hostname=name
                )
            else:
                await loop.connect_accepted_socket(lambda: fresh, opened, ssl=self._server_context)
            connection = fresh
            if is_client:
                connection.send(self._handler.greeting.encode())
            greeting = await self._identify(connection)
            if greeting.name != neighbour:
                raise RejectedError("not a neighbour", f"the node there is {greeting.name}")
            if not is_client:
                connection.send(self._handler.greeting.encode())
            return self._establish(connection, greeting)
        finally:
            self._abort_unless_established(connection)

    async def _meet(self, neighbour: str, forwarders: Mapping[str, str]) -> None:
        """Wait for a neighbour at forwarders, until one leads to a link: both can only dial out."""
        loop, names = asyncio.get_running_loop(), self._order(neighbour, forwarders)
        end = loop.time() + WAIT_SECONDS
        waiting: dict[asyncio.Task[str], str] = {}
        reasons, retry_at = dict[str, str](), dict.fromkeys(names, 0.0)
        try:
            while True:
                now = loop.time()
                asked = set(waiting.values())
                free = [name for name in names if name not in asked and retry_at[name] <= now < end]
                if free and len(waiting) < MAX_FORWARDERS_AT_ONCE:
                    name = free[0]
                    task = self._spawn(self._wait_at(name, forwarders[name], neighbour))
                    waiting[task] = name
                if not waiting:
                    break
                done, _ = await asyncio.wait(
                    waiting, timeout=NEXT_FORWARDER_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    name = waiting.pop(task)
                    reasons[name] = task.result()
                    retry_at[name] = loop.time() + RETRY_FORWARDER_SECONDS
                if "" in reasons.values():
                    return
        finally:
            for task in waiting:
                task.cancel()
        failures = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
        why = f"it only dials out, as this node; forwarders: {failures}"
        self._handler.on_dial_failed(neighbour, why)

    def _order(self, neighbour: str, forwarders: Mapping[str, str]) -> list[str]:
        """Return forwarders in the order in which to ask them.

        Those whose links ended come last, the latest at the end. Both neighbours saw the links end,
        so that they ask in nearly the same order, and a forwarder that ends or silences links on
        purpose is left alone while there are others.
        """
        now = asyncio.get_running_loop().time()
        self._avoided = {key: until for key, until in self._avoided.items() if until > now}
        names = forwarding.order((self._handler.greeting.name, neighbour), forwarders)
        return sorted(names, key=lambda name: self._avoided.get((neighbour, name), 0.0))

    def _avoid(self, neighbour: str, forwarder: str) -> None:
        self._avoided[neighbour, forwarder] = (
            asyncio.get_running_loop().time() + AVOID_FORWARDER_SECONDS
        )

    async def _wait_at(self, forwarder: str, address: str, neighbour: str) -> str:
        """Wait for a neighbour at a forwarder; return why there is no link, if there is none."""
        own = self._handler.greeting
        opened: socket.socket | None = None
        assert self._client_context is not None
        try:
            async with asyncio.timeout(HANDSHAKE_TIMEOUT_SECONDS):
                opened = await open_socket(addresses.parse(address), self._proxy)
                keep_alive(opened)
                server = certificate_name(forwarder, self._network)
                request = own._replace(note=FORWARD + neighbour)
                check = partial(check_peer, name=forwarder, members=self._members)
                tls = await forwarding.ask(opened, self._client_context, server, request, check)
            try:
                async with asyncio.timeout(WAIT_SECONDS + SWITCH_SECONDS):
                    answer = await tls.receive()
            except (TimeoutError, ConnectionResetError):
                return f"{neighbour} did not come"
            if answer != PAIRED:
                return "it does not answer as a forwarder does"
            try:
                async with asyncio.timeout(HANDSHAKE_TIMEOUT_SECONDS):
                    await forwarding.switch(opened, tls)
                    handed, opened = opened, None
                    is_linked = await self._link(
                        neighbour, handed, is_client=own.name < neighbour, via=forwarder
                    )
            except OSError:
                self._avoid(neighbour, forwarder)
                raise
            return "" if is_linked else "mismatch"
        except (OSError, ValueError) as error:
            return _describe_dial(error)
        finally:
            if opened is not None:
                opened.close()

    async def _identify(self, connection: Connection) -> Greeting:
        """Return the greeting of the other end, after comparing it with its certificate."""
        raw = await connection.greeting
        if not raw:
            reason = "handshake" if self._has_tls else "unauthenticated"
            closed = (
                "closed before the greeting: the other end may reject this certificate, "
                "or run another version"
            )
            raise RejectedError(reason, connection.close_reason or closed)
        certificate = connection.transport.get_extra_info("peercert") or {}
        certified = {
            value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"
        }
        greeting = Greeting.decode(raw)
        claimed = f"{greeting.name}.{greeting.network}"
        if self._has_tls and claimed not in certified:
            detail = f"{claimed!r} has a certificate for {shorten(sorted(certified))!r}"
            raise RejectedError("not a neighbour", detail)
        is_member = self._members is not None and greeting.name in self._members.keys
        is_allowed = is_member and (greeting.note == CHECK or greeting.note.startswith(FORWARD))
        if greeting.network != self._network or not (
            is_allowed or self._handler.is_neighbour(greeting.name)
        ):
            raise RejectedError("not a neighbour", repr(claimed))
        if self._has_tls:
            self._check_certificate(connection, greeting.name)
        return greeting

    def _check_certificate(self, connection: Connection, name: str) -> None:
        check_peer(peer_certificate(connection.transport), name, self._members)

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
        raw_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        keep_alive(raw_socket)
        links = [
            link
            for link in self._connections
            if link.neighbour == name and not link.transport.is_closing()
        ]
        if len(links) >= MAX_LINKS_PER_NEIGHBOUR:
            links[0].close("too many connections")
        self._connections[connection] = None
        connection.lost.add_done_callback(lambda _: self._connections.pop(connection))
        if connection.via:
            connection.lost.add_done_callback(lambda _: self._avoid(name, connection.via))
        connection.establish(name, self._handler)
        return True

    def _abort_unless_established(self, connection: Connection | None) -> None:
        if connection is None or connection in self._connections:
            return
        if not connection.transport.is_closing():
            connection.transport.abort()


def _describe_dial(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {HANDSHAKE_TIMEOUT_SECONDS:.0f} s"
    return describe_error(error)
