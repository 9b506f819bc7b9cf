#!/usr/bin/env python3
"""Measures `paritas serve` beside other S3 servers in pairs: versitygw, s3s-fs and `rclone serve s3`.

    lab/gateway/speeds.py [--only versitygw|s3s-fs|rclone] [--folder /dev/shm] [--pairs 20] [--label NAME]

Paritas serves a 4+2 volume over six folders, so it stores one and a half times the bytes; the others write files to one
folder of the same disk, without redundancy. All answer the same client, minio-go: one client puts and gets an
object of 1 GiB, and 16 clients put and get 64 KiB objects. Every byte that comes back is compared. Puts of Paritas are
synced; the others do not sync (in /dev/shm that costs nothing). A pair is one run of ours and one of the peer's, back to
back, in alternating order (see lab/pairs.py). Raw samples go to lab/records/.

A peer takes some ten minutes with --pairs 5. Installs what is missing: Go, versitygw and rclone (built by Go), s3s-fs (built by cargo).
"""

import argparse
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import load  # noqa: E402
import pairs  # noqa: E402
import records  # noqa: E402
import servers  # noqa: E402
import tools  # noqa: E402
from common import end_when_told, free_port  # noqa: E402
from served import KEY, SECRET, Gateway, wait_for  # noqa: E402

# The bytes of an object, the clients, and the objects of a run.
LOADS = [(1 << 30, 1, 1), (64 << 10, 16, 400)]
COLUMNS = ["bytes", "clients", "objects", "op", "peer", "paritas_ns", "peer_ns"]


def versitygw(folder, port):
    (folder / "sidecar").mkdir()
    keys = {"ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET}
    posix = ["posix", "--sidecar", folder / "sidecar", folder / "data"]
    return [servers.program("versitygw"), "--port", f"127.0.0.1:{port}", "--quiet", *posix], keys


def s3s_fs(folder, port):
    keys = ["--access-key", KEY, "--secret-key", SECRET]
    return [servers.program("s3s-fs"), "--host", "127.0.0.1", "--port", str(port), *keys, folder / "data"], {}


def rclone(folder, port):
    serve = ["serve", "s3", "--auth-key", f"{KEY},{SECRET}", "--addr", f"127.0.0.1:{port}"]
    return [servers.program("rclone"), *serve, folder / "data"], {}


PEERS = {"versitygw": versitygw, "s3s-fs": s3s_fs, "rclone": rclone}


@contextlib.contextmanager
def served(name, folder):
    """A peer serves a folder; yields its host and port."""
    (folder / "data").mkdir(parents=True)
    port = free_port()
    command, keys = PEERS[name](folder, port)
    with open(folder / "log", "w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **keys})
    try:
        wait_for(port)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


@contextlib.contextmanager
def both(program, name, place):
    """Paritas and a peer serve folders below a new one; yields the host and port of each."""
    with tempfile.TemporaryDirectory(dir=place) as folder:
        folder = pathlib.Path(folder)
        with Gateway(program, folder) as gateway, served(name, folder / name) as theirs:
            yield gateway.address, theirs


def measure(ours, theirs, size, clients, objects, op, least):
    """Takes pairs of runs until their ratio is known."""
    taken = pairs.Pairs()
    with load.Load(ours, clients, size) as subject, load.Load(theirs, clients, size) as base:
        for side in (subject, base):
            side.run("put", 0, objects)
        while taken.is_open(least):
            taken.take(lambda: subject.run(op, 0, objects).whole, lambda: base.run(op, 0, objects).whole)
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PEERS, help="the peers, all unless some are named")
    parser.add_argument("--folder", type=pathlib.Path, default="/dev/shm", help="where the servers' folders are made")
    parser.add_argument("--pairs", type=int, default=20, help="the fewest pairs of a comparison")
    parser.add_argument("--label", default="", help="the end of the record's name")
    args = parser.parse_args()
    peers = args.only or list(PEERS)
    for name in peers:
        servers.program(name)
    program, source = tools.paritas(), records.origin()
    print(f"{source.processor}, commit {source.commit}, {args.folder}; {', '.join(f'{name} {servers.VERSIONS[name]}' for name in peers)}\n")
    print("| objects | clients | request | paritas, MB/s | peer, MB/s | ratio (95 %) | ours is | pairs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    end_when_told()
    with records.keep("gateway-speeds", args.label, COLUMNS, source) as writer:
        for name in peers:
            for size, clients, objects in LOADS:
                with both(program, name, args.folder) as (ours, theirs):
                    for op in ("put", "get"):
                        taken = measure(ours, theirs, size, clients, objects, op, args.pairs)
                        writer.writerows([size, clients, objects, op, name, *pair] for pair in taken.pairs)
                        show(name, size, clients, objects, op, taken)


def show(name, size, clients, objects, op, taken):
    speed = lambda spread: f"{size * objects * 1e3 / spread.median:.0f}"
    ratio = taken.ratio()
    print(f"| {objects} of {size >> 10} KiB | {clients} | {op} | {speed(taken.subject())} | {name} {speed(taken.base())} "
          f"| {ratio} | {ratio.verdict} | {ratio.pairs} |", flush=True)


if __name__ == "__main__":
    main()
