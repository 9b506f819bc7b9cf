#!/usr/bin/env python3
"""Kills a gateway in the middle of puts, uploads, copies and removals: `lab/gateway/kills.py`.

After each kill another gateway looks: what was acknowledged must be there with all its bytes, and what was not must be as
before or complete. At the end, the volume must have nothing that is lost.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import http.client
import pathlib
import random
import tempfile
import time

from served import KEY, SECRET, Gateway
from signing import Signer

import tools  # served.py adds the folder of this and the next one
from common import end_when_told, run

SIZES = [300, 70_000, 3_000_000]
PART = 5 << 20


class Client:
    def __init__(self, gateway):
        self.host = gateway.address
        self.signer = Signer(self.host, KEY, SECRET)

    def ask(self, method, path, query=(), body=b"", headers=None):
        """Sends a request. Returns the status and the body of its answer."""
        head = self.signer.request(method, path, query, body, headers)[: -len(body) or None]
        lines = head.decode().split("\r\n")
        sent = dict(line.split(": ", 1) for line in lines[1:] if line)
        lane = http.client.HTTPConnection(self.host, timeout=60)
        try:
            lane.request(method, lines[0].split(" ")[1], body, sent)
            answer = lane.getresponse()
            return answer.status, answer.read()
        finally:
            lane.close()

    def expect(self, status, *request, **more):
        got, body = self.ask(*request, **more)
        assert got == status, f"{request[:2]}: {got} {body[:300]}"
        return body


def put(client, path, body):
    return lambda: client.expect(200, "PUT", path, body=body)


def copy(client, path, body):
    client.expect(200, "PUT", "/kills/source", body=body)
    return lambda: client.expect(200, "PUT", path, headers={"x-amz-copy-source": "/kills/source"})


def upload(client, path, body):
    """Returns what completes an upload of two parts."""
    text = client.expect(200, "POST", path, [("uploads", "")])
    name = text.split(b"<UploadId>")[1].split(b"<")[0].decode()
    parts = ""
    for number, part in enumerate([body[:PART], body[PART:]], 1):
        client.expect(200, "PUT", path, [("partNumber", str(number)), ("uploadId", name)], part)
        parts += f"<Part><PartNumber>{number}</PartNumber><ETag>{hashlib.md5(part).hexdigest()}</ETag></Part>"
    whole = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    return lambda: client.expect(200, "POST", path, [("uploadId", name)], whole)


def remove(client, path, _body):
    return lambda: client.expect(204, "DELETE", path)


KINDS = [put, upload, copy, remove]


class Trials:
    def __init__(self, gateway, seed):
        self.gateway, self.chance = gateway, random.Random(seed)
        # How long each kind takes when nobody kills it.
        self.times = {}
        self.told = collections.Counter()
        self.acknowledged = {}

    def trial(self, number):
        client, kind = Client(self.gateway), KINDS[number % len(KINDS)]
        path = f"/kills/{kind.__name__}/{number}"
        length = PART + self.chance.choice(SIZES) if kind is upload else self.chance.choice(SIZES)
        old = self.chance.randbytes(1000) if kind is remove or self.chance.random() < 0.5 else None
        new = None if kind is remove else self.chance.randbytes(length)
        if old is not None:
            client.expect(200, "PUT", path, body=old)
        act = kind(client, path, new)
        if (kind, length) not in self.times:
            begun = time.monotonic()
            act()
            self.times[kind, length] = time.monotonic() - begun
            return self.judge(path, old, new, True)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answer = pool.submit(act)
            time.sleep(self.chance.random() * 1.2 * self.times[kind, length])
            self.gateway.replace()
        self.judge(path, old, new, is_acknowledged(answer))

    def judge(self, path, old, new, is_acknowledged):
        """Looks at an object through the gateway that runs now."""
        client = Client(self.gateway)
        found = []
        for _ in range(2):
            status, body = client.ask("GET", path)
            assert status in (200, 404), f"{path}: {status} {body[:300]}"
            found.append(body if status == 200 else None)
        kind = path.split("/")[2]
        wanted = [new] if is_acknowledged else [old, new]
        assert found[0] in wanted, f"{path}: {'' if is_acknowledged else 'not '}acknowledged, but it is neither"
        assert found[0] == found[1], f"{path}: two readers found different things"
        listed = client.expect(200, "GET", "/kills", [("list-type", "2"), ("prefix", path.removeprefix("/kills/"))])
        assert (f"<Key>{path.removeprefix('/kills/')}<".encode() in listed) == (found[0] is not None), f"{path}: the listing differs"
        self.told[kind, "acknowledged" if is_acknowledged else "complete" if found[0] == new else "as before"] += 1
        self.acknowledged[path] = found[0]


def is_acknowledged(answer):
    """Whether the right answer came. None may come, because the gateway was killed, but no other one."""
    try:
        answer.result()
    except (ConnectionError, http.client.HTTPException):
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    args = parser.parse_args()
    paritas = tools.paritas(args.paritas)
    print(f"seed {args.seed}", flush=True)
    end_when_told()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with Gateway(paritas, folder) as gateway:
            Client(gateway).expect(200, "PUT", "/kills")
            trials = Trials(gateway, args.seed)
            for number in range(args.kills):
                trials.trial(number)
            for path, content in trials.acknowledged.items():
                status, body = Client(gateway).ask("GET", path)
                assert (body if status == 200 else None) == content, f"{path} has changed since"
        run(paritas, "volume", "repair", folder / "tank.toml")
        run(paritas, "volume", "verify", folder / "tank.toml", "--deep")
    for kind in KINDS:
        states = {state: number for (name, state), number in trials.told.items() if name == kind.__name__}
        print(f"{kind.__name__}: " + ", ".join(f"{number} {state}" for state, number in sorted(states.items())))
    print("nothing that was acknowledged was lost, and nothing was there in half")


if __name__ == "__main__":
    main()
