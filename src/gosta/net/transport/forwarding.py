"""Forwarding: a member that can be reached connects two members that can only dial out.

Both dial the forwarder, with mutual TLS, and their greetings name each other: "forward NAME". The
forwarder, which requires that both are members of the network, answers each with its greeting. When
both are there, it sends each PAIRED, and each answers READY. With that the TLS with the forwarder
has served its purpose, which is to tell it who the two are, and ends. On the bare connections the
forwarder sends each START, and from then on copies bytes both ways. The two run their ordinary TLS
over it, with each other's certificates: the forwarder sees what any router between them would see.
Nobody sends a byte to the forwarder between READY and START, nor the forwarder to a member between
PAIRED and READY, so that no byte of one layer is taken for a byte of the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from gosta.net.limits import Budget
from gosta.net.members import MemberList
from gosta.net.transport.base import Greeting
from gosta.net.transport.connection import (
    BUFFER_BYTES,
    CLOSE_TIMEOUT_SECONDS,
    MAX_GREETING_BYTES,
    MAX_WRITE_BUFFER_BYTES,
    Connection,
    FrameReader,
    encode_frame,
    keep_alive,
)
from gosta.net.transport.tls import RejectedError, check_peer, peer_certificate

FORWARD: Final = "forward "  # a greeting's note, followed by a member's name
REFUSED: Final = "refused: "  # the note of a forwarder's greeting, followed by the reason
# What forwarder and members say to each other: see above.
PAIRED = b"paired"
READY = b"ready"
START = b"\n"
# A member may wait this long for the other one: proxies end connections that are silent for longer.
WAIT_SECONDS = 60.0
SWITCH_SECONDS = 5.0  # from PAIRED to READY
MAX_CONNECTIONS = 256  # that wait or are forwarded at a time, in all
MAX_CONNECTIONS_PER_MEMBER = 32
# Requests of one member that are served at once; after that one in this time.
REQUESTS_AT_ONCE = 64
REQUEST_SECONDS = 1.0

Result = TypeVar("Result")


class OnForwarding(Protocol):
    """Callback of a forwarder."""

    def __call__(self, first: str, second: str, forwarded: int | None) -> None:
        """Handle the start of forwarding between members, or its end with the bytes forwarded."""


def order(pair: Iterable[str], forwarders: Iterable[str]) -> list[str]:
    """Return forwarders in the order in which both nodes of a pair try them.

    Other pairs have other orders.

    >>> order(("b", "a"), ["x", "y", "z"]) == order(("a", "b"), ["z", "y", "x"])
    True
    """
    ends = " ".join(sorted(pair))
    return sorted(forwarders, key=lambda name: hashlib.blake2b(f"{ends} {name}".encode()).digest())


# At the forwarder.


class Waiting:
    """A member that waits for another one, and then is connected to it."""

    def __init__(self, connection: Connection, member: str, other: str) -> None:
        self.connection, self.member, self.other = connection, member, other
        self.certificate = peer_certificate(connection.transport)
        self.answer = connection.expect()  # READY; empty when the connection ends
        self.is_paired: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Forwarder:
    """The connections that a node forwards."""

    def __init__(self, on_forwarding: OnForwarding) -> None:
        self._on_forwarding = on_forwarding
        self._waiting: dict[tuple[str, str], Waiting] = {}  # by who waits, and for whom
        self._forwarded: dict[Waiting, asyncio.BaseTransport] = {}
        self._connections: Counter[str] = Counter()  # of each member
        self._requests = Budget(REQUESTS_AT_ONCE, REQUEST_SECONDS)

    async def serve(
        self, connection: Connection, own: Greeting, member: str, other: str, listed: MemberList
    ) -> None:
        """Hold a member's connection until the other one is there, then forward until one ends.

        Raises `RejectedError` if that is refused.
        """
        if why := self._refusal(member, other, listed):
            refuse(connection, own, why)
            raise RejectedError("forwarding", f"{member} to {other!r}: {why}")
        if connection.transport.is_closing():
            raise ConnectionResetError
        connection.send(own.encode())
        keep_alive(connection.transport.get_extra_info("socket"))
        waiting = Waiting(connection, member, other)
        self._connections[member] += 1
        try:
            partner = self._waiting.pop((other, member), None)
            if partner is not None:
                partner.is_paired.set_result(None)
                await self._forward(partner, waiting)
            elif await self._wait(waiting):
                await waiting.has_ended  # the task of the other one does the rest
        finally:
            self._connections[member] -= 1

    def check(self, listed: MemberList | None) -> None:
        """End connections of nodes with expired certificates or that are no longer members."""
        for waiting in (*self._waiting.values(), *self._forwarded):
            try:
                check_peer(waiting.certificate, waiting.member, listed)
            except RejectedError:
                transport = self._forwarded.get(waiting, waiting.connection.transport)
                cast("asyncio.Transport", transport).abort()

    def _refusal(self, member: str, other: str, listed: MemberList) -> str:
        """Return why a request is refused; empty if it is not."""
        if other == member or other not in listed.keys:
            return "there is no such member"
        if not self._requests.take(member, asyncio.get_running_loop().time()):
            return "too many requests"
        if self._connections[member] >= MAX_CONNECTIONS_PER_MEMBER:
            return f"{MAX_CONNECTIONS_PER_MEMBER} connections of one member at most"
        if self._connections.total() >= MAX_CONNECTIONS:
            return f"{MAX_CONNECTIONS} connections at most"
        return ""

    async def _wait(self, waiting: Waiting) -> bool:
        """Return whether the other one came."""
        key = waiting.member, waiting.other
        if key in self._waiting:  # it dialled again: the old connection may be dead
            self._waiting[key].connection.close("replaced by a newer connection")
        self._waiting[key] = waiting
        events: set[asyncio.Future[Any]] = {waiting.is_paired, waiting.answer}
        try:
            await asyncio.wait(events, timeout=WAIT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._waiting.get(key) is waiting:
                del self._waiting[key]
        return waiting.is_paired.done()

    async def _forward(self, *pair: Waiting) -> None:
        """Forward between two members until one of them ends."""
        ends = Copier(), Copier()
        ends[0].other, ends[1].other = ends[1], ends[0]
        members, has_begun = (pair[0].member, pair[1].member), False
        try:
            async with asyncio.timeout(SWITCH_SECONDS):
                for waiting in pair:
                    waiting.connection.send(PAIRED)
                if {await waiting.answer for waiting in pair} != {READY}:
                    return
                for waiting, end in zip(pair, ends, strict=True):
                    self._forwarded[waiting] = await end.take_over(waiting.connection)
            has_begun = True
            self._on_forwarding(*members, None)
            for end in ends:
                end.transport.write(START)
            await asyncio.wait({end.lost for end in ends}, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.transport.close()  # after what is buffered is sent
            await asyncio.wait({end.lost for end in ends}, timeout=CLOSE_TIMEOUT_SECONDS)
        except (TimeoutError, OSError):
            pass
        finally:
            for waiting in pair:
                transport = self._forwarded.pop(waiting, waiting.connection.transport)
                cast("asyncio.Transport", transport).abort()
            if not pair[0].has_ended.done():
                pair[0].has_ended.set_result(None)
            if has_begun:
                self._on_forwarding(*members, sum(end.count for end in ends))


class Copier(asyncio.Protocol):
    """One end of a forwarded connection: what arrives here is written to the other one.

    At most MAX_WRITE_BUFFER_BYTES wait to be written; beyond that, nothing is read from the other
    end.
    """

    other: Copier
    transport: asyncio.Transport

    def __init__(self) -> None:
        self.count = 0  # bytes
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def take_over(self, connection: Connection) -> asyncio.BaseTransport:
        """Take the socket of a connection, whose TLS ends here."""
        if connection.transport.is_closing():
            raise ConnectionResetError
        bare = socket.socket(fileno=os.dup(connection.transport.get_extra_info("socket").fileno()))
        bare.setblocking(False)
        connection.transport.abort()
        await connection.lost  # nothing reads from the socket any more
        return (await asyncio.get_running_loop().connect_accepted_socket(lambda: self, bare))[0]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(MAX_WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        self.count += len(data)
        if not hasattr(self.other, "transport"):  # this end did not wait for START
            self.transport.abort()
        elif not self.other.transport.is_closing():
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost.set_result(None)


def refuse(connection: Connection, own: Greeting, why: str) -> None:
    """Answer a request to forward with the reason for which it is refused."""
    connection.send(own._replace(note=REFUSED + why).encode())
    connection.close()


# At a member that can only dial out.


class BareTls:
    """TLS on a socket, driven by hand, since the socket is used without this TLS afterwards."""

    def __init__(self, opened: socket.socket, context: ssl.SSLContext, server: str) -> None:
        self._socket, self._loop = opened, asyncio.get_running_loop()
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server)
        self._frames = FrameReader(MAX_GREETING_BYTES)

    async def handshake(self) -> bytes:
        """Return the certificate (DER) of the other end."""
        await self._run(self._tls.do_handshake)
        return self._tls.getpeercert(True) or b""

    async def send(self, message: bytes) -> None:
        await self._run(partial(self._tls.write, encode_frame(message)))

    async def receive(self) -> bytes:
        """Return the next frame."""
        while (message := self._frames.next_message()) is None:
            space = self._frames.free_space()
            received = await self._run(partial(self._tls.read, len(space)))
            if not received:
                raise ConnectionResetError
            space[: len(received)] = received
            self._frames.advance(len(received))
        return message

    async def _run(self, action: Callable[[], Result]) -> Result:
        while True:
            try:
                result = action()
                needs_more = False
            except ssl.SSLWantReadError:
                needs_more = True
            except ssl.SSLError:
                await self._flush()  # the alert says why
                raise
            await self._flush()
            if not needs_more:
                return result
            received = await self._loop.sock_recv(self._socket, BUFFER_BYTES)
            if not received:
                raise ConnectionResetError
            self._incoming.write(received)

    async def _flush(self) -> None:
        if self._outgoing.pending:
            await self._loop.sock_sendall(self._socket, self._outgoing.read())


async def ask(
    opened: socket.socket,
    context: ssl.SSLContext,
    server: str,
    own: Greeting,
    check: Callable[[bytes], None],
) -> BareTls:
    """Ask the forwarder at the other end of a socket to forward to a member.

    `server` is the name in the forwarder's certificate, which `check` checks, and `own` names the
    member. Raises `ConnectionError` if the forwarder refuses.
    """
    tls = BareTls(opened, context, server)
    check(await tls.handshake())
    await tls.send(own.encode())
    answer = Greeting.decode(await tls.receive())
    if answer.note.startswith(REFUSED):
        raise ConnectionRefusedError(
            f"it refuses to forward: {answer.note.removeprefix(REFUSED)[:80]!r}"
        )
    return tls


async def switch(opened: socket.socket, tls: BareTls) -> None:
    """End the TLS with a forwarder that has said PAIRED: the socket leads to the other member."""
    await tls.send(READY)
    if await asyncio.get_running_loop().sock_recv(opened, len(START)) != START:
        raise ConnectionResetError
