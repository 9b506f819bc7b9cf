#!/usr/bin/env python3
"""Hostile clients of a gateway: `lab/gateway/hostile.py`.

A guest, whose key opens one bucket, sends requests that are broken at random places, lies about chunks, names paths that
lead elsewhere, and asks for the owner's objects in every way that S3 has. Others open thousands of connections and say
nothing, or one byte now and then. What must hold: the gateway goes on serving honest clients; it never answers that it
failed itself; the owner's objects are as they were, and nothing of them was told; whatever the guest has stored has the
bytes that were signed; memory stays within bounds.
"""

import argparse
import asyncio
import base64
import collections
import hashlib
import pathlib
import random
import resource
import sys
import tempfile
import time
import urllib.parse
import zlib

from served import GUEST, GUEST_SECRET, KEY, SECRET, Gateway
from signing import Signer

import tools  # served.py adds the folder of this and the next one
from common import end_when_told

CONTENT = random.Random(1).randbytes(70_000)
HIDDEN = b"a secret of the owner: " + random.Random(2).randbytes(50).hex().encode()
AT_ONCE = 48


def check(holds, what):
    if not holds:
        raise AssertionError(what)


class Hostile:
    def __init__(self, gateway):
        self.gateway = gateway
        self.host, port = gateway.address.split(":")
        self.port = int(port)
        address = f"{self.host}:{port}"
        self.owner, self.guest = Signer(address, KEY, SECRET), Signer(address, GUEST, GUEST_SECRET)

    async def send(self, request, patience=30):
        """Sends bytes. Returns the status (0 if the connection was closed without one), and all that came."""
        try:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), patience)
        except (OSError, asyncio.TimeoutError):
            return -1, b""
        answer = b""
        try:
            writer.write(request)
            await asyncio.wait_for(writer.drain(), patience)
            answer = await asyncio.wait_for(reader.read(1 << 16), 1)
            while more := await asyncio.wait_for(reader.read(1 << 16), 0.2):
                answer += more
        except (OSError, asyncio.TimeoutError):
            pass
        finally:
            writer.close()
        head = answer.split(b" ", 2)
        return (int(head[1]) if len(head) > 1 and head[0] == b"HTTP/1.1" and head[1].isdigit() else 0), answer

    async def expect(self, statuses, request, what):
        status, answer = await self.send(request)
        check(status in statuses, f"{what}: answered {status}, not {statuses}\n{answer[:400]!r}")
        return answer.partition(b"\r\n\r\n")[2]

    async def prepare(self):
        for bucket in ("guests", "hidden"):
            await self.expect([200], self.owner.request("PUT", f"/{bucket}"), "making a bucket")
        await self.expect([200], self.owner.request("PUT", "/hidden/plan", body=HIDDEN), "a put of the owner")
        await self.expect([200], self.guest.request("PUT", "/guests/mine", body=CONTENT), "a put of the guest")

    async def expect_unharmed(self):
        body = await self.expect([200], self.owner.request("GET", "/hidden/plan"), "a get of the owner")
        check(body == HIDDEN, "the owner's object has changed")
        listed = await self.expect([200], self.owner.request("GET", "/hidden"), "a listing of the owner")
        check(listed.count(b"<Key>") == 1, f"the owner's bucket has other objects: {listed!r}")

    def requests(self):
        """Returns honest requests of the guest, one of each kind."""
        guest = self.guest
        checksum = {"x-amz-checksum-sha256": digits(hashlib.sha256(b"").digest())}
        return [
            guest.request("PUT", "/guests/small", body=CONTENT[:500]),
            guest.request("PUT", "/guests/large", body=CONTENT),
            guest.request("PUT", "/guests/empty", headers=checksum),
            guest.request("PUT", "/guests/typed", body=b"<p>", headers={"content-type": "text/html", "x-amz-meta-who": "me"}),
            guest.chunked("/guests/chunks", [CONTENT[:9000], CONTENT[9000:12_000]]),
            guest.chunked("/guests/trailer", [CONTENT[:100]], ("x-amz-checksum-crc32", digits(zlib.crc32(CONTENT[:100]).to_bytes(4)))),
            guest.request("GET", "/guests/mine"),
            guest.request("GET", "/guests/mine", headers={"range": "bytes=100-2000"}),
            guest.request("HEAD", "/guests/mine"),
            guest.request("GET", "/guests", [("list-type", "2"), ("prefix", "s"), ("delimiter", "/"), ("max-keys", "3")]),
            guest.request("GET", "/guests", [("uploads", "")]),
            removal(guest, "gone"),
            guest.request("PUT", "/guests/copy", headers={"x-amz-copy-source": "/guests/mine"}),
            guest.request("POST", "/guests/parts", [("uploads", "")]),
            guest.request("PUT", "/guests/mine", [("tagging", "")],
                          b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"),
            guest.request("DELETE", "/guests/gone"),
        ]

    async def mutated(self, count):
        """Sends requests that are broken at random places."""
        chance, honest = random.Random(3), self.requests()
        signed = {hashlib.sha256(body).digest() for body in
                  (CONTENT, CONTENT[:500], b"", b"<p>", CONTENT[:12_000], CONTENT[:100])}
        seen, numbers = collections.Counter(), iter(range(count))

        async def work():
            for _ in numbers:
                request = broken(chance.choice(honest), chance)
                status, answer = await self.send(request)
                seen[status] += 1
                check(status != 500 and HIDDEN not in answer, f"answered {status} to {request[:2000]!r}\n{answer[:1000]!r}")

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        listed = await self.expect([200], self.guest.request("GET", "/guests"), "a listing of the guest")
        for key in (part.split(b"<")[0].decode() for part in listed.split(b"<Key>")[1:]):
            body = await self.expect([200], self.guest.request("GET", f"/guests/{key}"), f"a get of {key}")
            check(hashlib.sha256(body).digest() in signed, f"{key} has bytes that nobody signed")
        return ", ".join(f"{status or 'closed'}: {number}" for status, number in sorted(seen.items()))

    async def crossing(self):
        """Asks for the owner's object in every way, with the guest's key."""
        guest = self.guest
        paths = ["/hidden/plan", "//hidden/plan", "/guests/../hidden/plan", "/guests/%2e%2e/hidden/plan", "/guests/..%2fhidden%2fplan",
                 "/guests/%2E%2E%2Fhidden/plan", "/guests/./../hidden/plan", "/./hidden/plan", "/guests%2f..%2fhidden/plan", "/guests/\\..\\hidden\\plan",
                 "/guests/%25/../../hidden/plan", "/hidden%00/plan", "/guests/%00/../../hidden/plan", "/hidden/%70lan"]
        requests = [guest.request(method, path) for path in paths for method in ("GET", "HEAD", "DELETE")]
        requests += [guest.request("PUT", path, body=b"mine") for path in paths]
        requests += [guest.request("PUT", "/guests/stolen", headers={"x-amz-copy-source": path}) for path in paths]
        requests += [guest.request("GET", "/hidden", query) for query in
                     ([], [("list-type", "2")], [("uploads", "")], [("prefix", "plan")], [("location", "")])]
        requests += [guest.request("GET", "/guests", [("list-type", "2"), ("prefix", prefix)]) for prefix in ("../hidden/", "../", "%2e%2e/")]
        requests += [guest.request("DELETE", "/hidden"), guest.request("PUT", "/hidden")]
        requests += [removal(guest, "../hidden/plan"), removal(guest, "/hidden/plan"), removal(guest, "..")]
        requests += [guest.request("GET", "/plan").replace(b"host: ", b"host: hidden.")]
        requests += [Signer(guest.host, KEY, "not the secret of it").request("GET", "/hidden/plan"),
                     Signer(guest.host, "nobody", SECRET).request("GET", "/hidden/plan"),
                     b"GET /hidden/plan HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"]
        for request in requests:
            status, answer = await self.send(request)
            check(status != 500, f"answered 500 to {request[:300]!r}")
            check(HIDDEN not in answer, f"the owner's bytes were told: {request[:300]!r}")
        stolen = await self.send(guest.request("GET", "/guests/stolen"))
        check(HIDDEN not in stolen[1], "the owner's bytes were copied")
        return f"{len(requests)} requests"

    async def keys(self):
        """Puts, lists, reads and removes keys as long and as odd as S3 allows."""
        odd = ["ä" * 127, "/".join(["é" * 100] * 5), "a/" * 500 + "b", "~!@$&*()=:;,.'", "end.", "a b  c", "…/…", "日本/語.txt", "a\tb", ".hidden", "-", "%41%2F",
               "a//b", "//", "../up", "./.", "a/../b", "x/", "👩‍🚀", "e\u0301", "\u202e", "CON", "a|b<c>", "\\", "\"'`"]
        for key in odd:
            path = "/guests/" + urllib.parse.quote(key, safe="/-._~")
            body = key.encode()
            await self.expect([200], self.guest.request("PUT", path, body=body), f"a put of {key!r}")
            got = await self.expect([200], self.guest.request("GET", path), f"a get of {key!r}")
            check(got == body, f"{key!r} has the bytes {got!r}")
            listed = await self.expect([200], self.guest.request("GET", "/guests", [("prefix", key), ("encoding-type", "url")]), "a listing")
            check(b"<Key>" in listed, f"{key!r} is not listed: {listed!r}")
            await self.expect([204], self.guest.request("DELETE", path), f"a removal of {key!r}")
            await self.expect([404], self.guest.request("GET", path), f"a get of {key!r}, which was removed")
        for path in ("/guests/%00", "/guests/a%00b", "/guests/%ff%fe", "/guests/" + "a" * 1025, "/guests/" + "b" * 256):
            await self.expect([400], self.guest.request("PUT", path, body=b"x"), f"a put of {path[:40]}")
        return f"{len(odd)} keys"

    async def idle(self, count):
        """Opens connections that say nothing, or begin a request and go on a byte now and then. Honest clients are served meanwhile."""
        beginnings = [b"", b"GET /guests HTTP/1.1\r\nhost: a\r\nx: ", b"PRI * HTTP/2.0\r\n", b"\x16\x03\x01"]
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 4 * count), limit[1]))
        lanes, closed = [], 0
        for number in range(count):
            reader, writer = await asyncio.wait_for(asyncio.open_connection(self.host, self.port), 60)
            writer.write(beginnings[number % len(beginnings)])
            lanes.append((reader, writer))
        begun, slowest = time.monotonic(), 0
        while time.monotonic() - begun < 25:
            for reader, writer in lanes[1::4]:
                if not reader.at_eof() and not writer.transport.is_closing():
                    writer.write(b"a")
            asked = time.monotonic()
            await self.expect([200], self.guest.request("GET", "/guests/mine"), "an honest get")
            slowest = max(slowest, time.monotonic() - asked)
            await asyncio.sleep(1)
        for reader, writer in lanes:
            try:
                while await asyncio.wait_for(reader.read(1 << 12), 0.01):
                    pass
                closed += 1
            except ConnectionError:
                closed += 1
            except asyncio.TimeoutError:
                pass
            writer.close()
        check(closed == count, f"{count - closed} of {count} connections that say nothing are still open after 25 s")
        check(slowest < 2, f"an honest get took {slowest:.1f} s meanwhile")
        return f"{count} connections, all closed; an honest get took at most {slowest * 1000:.0f} ms"

    async def flood(self, count):
        """Sends large objects from many clients at once."""
        body = CONTENT * 300
        signed = [self.guest.request("PUT", f"/guests/flood{number}", body=body) for number in range(4)]

        async def put(number):
            reader, writer = await asyncio.open_connection(self.host, self.port)
            writer.write(signed[number % 4])
            await writer.drain()
            answer = await asyncio.wait_for(reader.read(1 << 16), 300)
            writer.close()
            return answer.split(b" ")[1]

        answers = collections.Counter(await asyncio.gather(*(put(number) for number in range(count))))
        check(set(answers) == {b"200"}, f"puts were answered {dict(answers)}")
        return f"{count} puts of {len(body) >> 20} MiB at once"


def digits(digest):
    return base64.b64encode(digest).decode()


def removal(signer, key):
    """Returns the request that removes a key from the guest's bucket along with others."""
    body = f"<Delete><Object><Key>{key}</Key></Object></Delete>".encode()
    return signer.request("POST", "/guests", [("delete", "")], body, {"content-md5": digits(hashlib.md5(body).digest())})


SPLICES = [b"\r\n", b"\0", b"%00", b"..", b"/../", b"\xff\xfe", b"content-length: 18446744073709551616\r\n", b"transfer-encoding: chunked\r\n",
           b"ffffffffffffffff;", b"-1", b"9" * 400, b"a: b\r\n" * 200, b"expect: 100-continue\r\n", b"<!ENTITY x \"y\">", b"&x;", b" ", b"?", b"&", b"="]


def broken(request, chance):
    """Breaks a request at one to four places."""
    for _ in range(chance.randint(1, 4)):
        # Mostly in the head.
        reach = len(request) if chance.random() < 0.2 else min(len(request), request.find(b"\r\n\r\n") % 4096 + 200)
        at = chance.randrange(max(1, reach))
        match chance.randrange(5):
            case 0:
                request = request[:at] + bytes([chance.randrange(256)]) + request[at + 1:]
            case 1:
                request = request[:at] + request[at + chance.randint(1, 30):]
            case 2:
                request = request[:at] + chance.choice(SPLICES) + request[at:]
            case 3:
                request = request[:at] + request[at:at + chance.randint(1, 200)] * 2 + request[at + 200:]
            case _:
                request = request[:at] if chance.random() < 0.2 else request[:at] + request[at:at + 1].swapcase() + request[at + 1:]
    return request


PARTS = {
    "mutated": lambda hostile, args: hostile.mutated(args.requests),
    "crossing": lambda hostile, args: hostile.crossing(),
    "keys": lambda hostile, args: hostile.keys(),
    "idle": lambda hostile, args: hostile.idle(args.connections),
    "flood": lambda hostile, args: hostile.flood(64),
}


async def run(gateway, args):
    hostile = Hostile(gateway)
    await hostile.prepare()
    failed = 0
    for name, part in PARTS.items():
        if args.only and name not in args.only:
            continue
        begun = time.monotonic()
        try:
            told = await part(hostile, args)
            await hostile.expect_unharmed()
            check(gateway.server.poll() is None, "the gateway has ended")
            print(f"{name} ok: {told} ({time.monotonic() - begun:.0f} s, at most {gateway.memory() >> 20} MiB so far)", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{name} FAILED: {error}", flush=True)
    check(gateway.memory() < args.memory << 20, f"the gateway took {gateway.memory() >> 20} MiB")
    log = (gateway.folder / "log").read_bytes()
    panics = [line.decode(errors="replace") for line in log.splitlines() if b"panicked" in line]
    check(not panics, f"a thread of the gateway panicked: {'; '.join(panics[:3])}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--requests", type=int, default=20_000, help="number of broken requests")
    parser.add_argument("--connections", type=int, default=10_000, help="number of connections that say nothing")
    parser.add_argument("--memory", type=int, default=1024, help="the most memory that the gateway may take, in MiB")
    parser.add_argument("--only", action="append", choices=PARTS)
    args = parser.parse_args()
    paritas = tools.paritas(args.paritas)
    end_when_told()
    with tempfile.TemporaryDirectory() as folder:
        with Gateway(paritas, pathlib.Path(folder), "--memory", "512MiB") as gateway:
            failed = asyncio.run(run(gateway, args))
    sys.exit(failed > 0)


main()
