"""Middleboxes between sites: an HTTP proxy for CONNECT, and a router that forwards a port.

Run with: python middleboxes.py proxy HOST:PORT [USER:PASSWORD], or: python middleboxes.py port
HOST:PORT TO_HOST:PORT
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys
from collections.abc import Mapping

from gosta.net.addresses import parse


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with contextlib.suppress(OSError):
        writer.close()


async def join(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    port: int,
    greeting: bytes = b"",
) -> None:
    """Connect to a host, say so, and copy bytes both ways."""
    there_reader, there_writer = await asyncio.open_connection(host, port)
    writer.write(greeting)
    await asyncio.gather(copy(reader, there_writer), copy(there_reader, writer))


class Proxy:
    """An HTTP proxy that makes connections to permitted hosts; `hosts` says where some of them
    are.
    """

    def __init__(self, credentials: str = "", hosts: Mapping[str, str] | None = None) -> None:
        self.credentials, self.hosts = credentials, hosts
        self.requests: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request, *headers = (await reader.readuntil(b"\r\n\r\n")).decode("ascii").split("\r\n")
            method, address, version = request.split(" ")
            assert (method, version) == ("CONNECT", "HTTP/1.1")
            self.requests.append(address)
            given = (
                f"Proxy-Authorization: Basic {base64.b64encode(self.credentials.encode()).decode()}"
            )
            if self.credentials and given not in headers:
                writer.write(
                    b"HTTP/1.1 407 Authentication required\r\nProxy-Authenticate: Basic\r\n\r\n"
                )
            elif self.hosts is not None and address not in self.hosts:
                writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
            else:
                place = parse(self.hosts[address] if self.hosts else address)
                await join(
                    reader,
                    writer,
                    *place,
                    b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n",
                )
        except OSError:
            writer.write(b"HTTP/1.1 502 Bad gateway\r\n\r\n")
        finally:
            writer.close()


async def main(kind: str, here: str, more: str = "") -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await join(reader, writer, *parse(more))
        writer.close()

    server = await asyncio.start_server(
        Proxy(more).serve if kind == "proxy" else forward, *parse(here)
    )
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
