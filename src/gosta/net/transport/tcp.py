"""The transport of real networks: messages over TCP, with TLS on both sides.

Who connects is asked for a certificate, then for a greeting: the first frame in either direction is the sender's name
and network, which its certificate must bear. The end that was called greets only after it has let the caller in, so
that a caller knows where it stands: in TLS 1.3 alone it would hear of a refusal only later, as a broken connection.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Coroutine

from gosta.errors import InputError, shorten
from gosta.net import addresses
from gosta.net.names import identity
from gosta.net.transport.base import Ear
from gosta.net.transport.connection import Connection
from gosta.net.transport.tls import RefusedError, Tls, contexts, describe, names, reason

PATIENCE = 5.0  # seconds for a connection to come about
HANDSHAKES = 64  # callers at a time who have not said who they are; the one who took longest makes room
PER_NEIGHBOUR = 4  # links; the oldest makes room

# A neighbour that is gone without a word is noticed after a minute; so are two ends that wait for each other to read.
KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}


class Streams:
    """Connections of one node: a transport. Without TLS, on the loopback interface only."""

    def __init__(self, name: str, network: str, ear: Ear, tls: Tls | None) -> None:
        self.address = ""  # where it listens, once started
        self._identity = identity(name, network)
        self._network = network
        self._ear = ear
        self._secure = tls is not None
        self._answering: ssl.SSLContext | None = None
        self._calling: ssl.SSLContext | None = None
        if tls:
            self._answering, self._calling = contexts(tls)
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: dict[asyncio.Task[None], None] = {}  # in order
        self._connections: dict[Connection, None] = {}  # in order

    async def start(self, listen: str) -> None:
        """Listen for calls."""
        self._place(listen)
        listening = addresses.bind(listen, "listen")
        self.address = addresses.bound(listening)
        self._begin(self._listen(listening))

    def dial(self, neighbour: str, address: str) -> None:
        """Call a neighbour; the ear will hear `opened` or `failed`."""
        host, port = self._place(address)
        if not self._closed:
            self._begin(self._call(neighbour, identity(neighbour, self._network), host, port))

    def close(self) -> None:
        """Close all connections, and take no more."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        for connection in self._connections:
            connection.close("this node stops")

    async def stop(self) -> None:
        """Close all connections, and wait until they are."""
        self.close()
        waiting = [*self._tasks, *(connection.lost for connection in self._connections)]
        if waiting:
            await asyncio.wait(waiting)

    def _place(self, address: str) -> tuple[str, int]:
        host, port = addresses.parse(address)
        if not self._secure and not addresses.is_loopback(host):
            raise InputError(f"address {address!r}: tls = false is for loopback only, as in 127.0.0.1:{port}")
        return host, port

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _listen(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with listening:
            while True:
                try:
                    caller, place = await loop.sock_accept(listening)
                except OSError:  # no file descriptors are left, say
                    await asyncio.sleep(0.1)
                    continue
                if len(self._handshakes) >= HANDSHAKES:
                    oldest = next(iter(self._handshakes))
                    del self._handshakes[oldest]
                    oldest.cancel()
                    self._ear.refused("stranger", "too many callers at a time: the one who took longest makes room")
                task = self._begin(self._answer(caller, str(addresses.Address(*place[:2]))))
                self._handshakes[task] = None
                task.add_done_callback(lambda done: self._handshakes.pop(done, None))
                await asyncio.sleep(0)  # others have their turn, however many call

    async def _answer(self, caller: socket.socket, place: str) -> None:
        loop, fresh, connection = asyncio.get_running_loop(), Connection(), None
        try:
            async with asyncio.timeout(PATIENCE):
                await loop.connect_accepted_socket(lambda: fresh, caller, ssl=self._answering)
                connection = fresh
                name = await self._introduced(connection)
            connection.send(self._identity.encode())
            self._open(connection, name)
        except TimeoutError:
            shown = self._secure and connection is not None
            self._ear.refused("handshake" if shown else "stranger", f"{place}: did not say in time who it is")
        except OSError as error:
            why, detail = reason(error)
            self._ear.refused(why, f"{place}: {detail}")
        finally:
            self._drop_unless_open(connection)

    async def _call(self, neighbour: str, expected: str, host: str, port: int) -> None:
        loop, fresh, connection = asyncio.get_running_loop(), Connection(), None
        try:
            async with asyncio.timeout(PATIENCE):
                await loop.create_connection(
                    lambda: fresh, host, port, ssl=self._calling, server_hostname=expected if self._secure else None
                )
                connection = fresh
                connection.send(self._identity.encode())
                name = await self._introduced(connection)
            if name != neighbour:
                raise RefusedError("not a neighbour", f"{name} answers there")
            self._open(connection, name)
        except TimeoutError:
            self._ear.failed(neighbour, f"no answer within {PATIENCE:.0f} s")
        except (OSError, ValueError) as error:  # ValueError: a host that cannot be a name
            self._ear.failed(neighbour, describe(error))
        finally:
            self._drop_unless_open(connection)

    async def _introduced(self, connection: Connection) -> str:
        """The name of the neighbour at the other end, by its greeting and its certificate."""
        greeting = (await connection.greeting).decode("ascii", "replace")
        if not greeting:
            hung_up = "it hung up before its greeting: it may not accept this node's certificate, or not know its name"
            raise RefusedError("handshake" if self._secure else "stranger", connection.why or hung_up)
        vouched = names(connection.transport) if self._secure else {greeting}
        if greeting not in vouched:
            raise RefusedError("not a neighbour", f"{greeting!r} has a certificate for {shorten(sorted(vouched))!r}")
        name = greeting.removesuffix(f".{self._network}")
        if name == greeting or not self._ear.knows(name):
            raise RefusedError("not a neighbour", repr(greeting))
        return name

    def _open(self, connection: Connection, name: str) -> None:
        if connection.transport.is_closing():
            raise ConnectionResetError
        shared = connection.transport.get_extra_info("socket")
        shared.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        shared.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option, value in KEEPALIVE.items():
            if hasattr(socket, option):
                shared.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        links = [link for link in self._connections if link.neighbour == name and not link.transport.is_closing()]
        if len(links) >= PER_NEIGHBOUR:
            links[0].close("too many connections")
        self._connections[connection] = None
        connection.lost.add_done_callback(lambda _: self._connections.pop(connection))
        connection.open(name, self._ear)

    def _drop_unless_open(self, connection: Connection | None) -> None:
        if connection and connection not in self._connections:
            connection.transport.abort()
