#!/usr/bin/env python3
"""Latency of a gateway with a slow or a silent node: `lab/gateway/latency.py`.

A 4+2 volume over six WebDAV servers (`rclone serve webdav`), each behind a relay that delays all bytes by two milliseconds.
Clients put and get objects of 64 KiB through the gateway, first with all nodes healthy, then with one whose relay delays ten
times as long, then with one whose relay accepts connections and answers nothing, and healthy again. Prints the median and the
99th percentile of each, and the ratio to the healthy ones.
"""

import argparse
import asyncio
import concurrent.futures
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from kills import Client
from served import KEY, SECRET, Gateway, run

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DELAY, SLOWER = 0.002, 10
LENGTH = 64 << 10


class Relay:
    """Forwards connections to a server. `delay` is in seconds; None forwards nothing."""

    def __init__(self, port):
        self.target, self.delay, self.port = port, DELAY, None
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(ready)), daemon=True).start()
        ready.wait()

    async def serve(self, ready):
        server = await asyncio.start_server(self.connection, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        await server.serve_forever()

    async def connection(self, reader, writer):
        try:
            there = await asyncio.open_connection("127.0.0.1", self.target)
            await asyncio.gather(self.forward(reader, there[1]), self.forward(there[0], writer))
        except OSError:
            pass
        finally:
            writer.close()

    async def forward(self, reader, writer):
        """Passes bytes on after the delay. Those behind them are delayed at the same time."""
        line = asyncio.Queue()

        async def deliver():
            while True:
                due, data = await line.get()
                await asyncio.sleep(max(0, due - time.monotonic()))
                while self.delay is None:
                    await asyncio.sleep(0.05)
                if not data:
                    break
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

        delivery = asyncio.create_task(deliver())
        try:
            while data := await reader.read(1 << 16):
                line.put_nowait((time.monotonic() + (self.delay or 0), data))
        finally:
            line.put_nowait((0, b""))
            await delivery


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Nodes:
    """Six servers, each behind a relay."""

    def __init__(self, folder):
        self.servers, self.relays = [], []
        for number in range(6):
            place, port = folder / f"disk{number}", free_port()
            place.mkdir()
            command = ["rclone", "serve", "webdav", place, "--addr", f"127.0.0.1:{port}", "--dir-cache-time", "0"]
            self.servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            self.wait_for(port)
            self.relays.append(Relay(port))

    @staticmethod
    def wait_for(port):
        for _ in range(200):
            try:
                return socket.create_connection(("127.0.0.1", port), 1).close()
            except OSError:
                time.sleep(0.05)
        raise RuntimeError(f"no server at port {port}")

    def stop(self):
        for server in self.servers:
            server.kill()


def timed(client, method, key, body=b""):
    begun = time.monotonic()
    client.expect(200, method, f"/latency/{key}", body=body)
    return time.monotonic() - begun


def measure(client, count, at_once, name):
    """Returns the times of puts and of gets."""
    body = os.urandom(LENGTH)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        puts = list(pool.map(lambda number: timed(client, "PUT", f"{name}-{number}", body), range(count)))
        gets = list(pool.map(lambda number: timed(client, "GET", f"{name}-{number}"), range(count)))
    return puts, gets


def told(times, healthy):
    parts = []
    for at in (50, 99):
        value, usual = (statistics.quantiles(found, n=100)[at - 1] for found in (times, healthy))
        parts.append(f"p{at} {value * 1000:6.1f} ms ({value / usual:.2f})")
    return ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", default=ROOT / "target" / "release" / "paritas", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=300, help="number of puts, and of gets, for each state of the nodes")
    parser.add_argument("--at-once", type=int, default=4)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        nodes = Nodes(folder)
        try:
            uris = [f"http://127.0.0.1:{relay.port}/" for relay in nodes.relays]
            gateway = Gateway(args.paritas, folder / "gateway", nodes=uris)
            client = Client(gateway)
            client.expect(200, "PUT", "/latency")
            measure(client, 20, args.at_once, "warm")
            states, relay = {}, nodes.relays[2]
            for name, delay in [("healthy", DELAY), ("slow", DELAY * SLOWER), ("silent", None), ("healthy again", DELAY)]:
                relay.delay = delay
                states[name] = measure(client, args.count, args.at_once, name.replace(" ", "-"))
                for verb, times, usual in zip(("put", "get"), states[name], states["healthy"]):
                    print(f"{name:14} {verb}: {told(times, usual)}", flush=True)
            gateway.kill()
        finally:
            nodes.stop()


main()
