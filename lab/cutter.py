#!/usr/bin/env python3
"""A proxy that cuts connections off: after some bytes of answers, it resets a connection.

    lab/cutter.py PORT SERVER_PORT BYTES

Listens on PORT of all addresses and passes connections on to SERVER_PORT of this host. Used by lab/network.py.
"""

import asyncio
import contextlib
import socket
import struct
import sys

CHUNK = 64 << 10


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: float) -> None:
    """Copies at most `most` bytes."""
    while most > 0 and (chunk := await reader.read(int(min(CHUNK, most)))):
        writer.write(chunk)
        await writer.drain()
        most -= len(chunk)


async def relay(server_port: int, most: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    server_reader, server_writer = await asyncio.open_connection("127.0.0.1", server_port)
    ways = {asyncio.ensure_future(pump(reader, server_writer, float("inf"))),
            asyncio.ensure_future(pump(server_reader, writer, most))}
    _, running = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in running:
        way.cancel()
    await asyncio.gather(*ways, return_exceptions=True)
    # Resets the connection instead of closing it, unless the client has closed it.
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    server_writer.transport.abort()


async def main() -> None:
    port, server_port, most = map(int, sys.argv[1:])
    server = await asyncio.start_server(lambda *ends: relay(server_port, most, *ends), "0.0.0.0", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
