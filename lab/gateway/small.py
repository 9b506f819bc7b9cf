#!/usr/bin/env python3
"""Measures small objects over S3 nodes beside rclone, in pairs: `lab/gateway/small.py [--pairs 10] [--label NAME]`.

`paritas volume put --recursive` stores 1,000 files of 64 KiB in a 4+2 volume over six versitygw servers, and `get` fetches
them: once in shards, and once in manifests (`write.inline`), which stores each file on three servers. `rclone copy` (Debian's)
sends as many such files as take the same bytes, 1,500 and 4,000 (manifests are text), to one such server, and fetches 1,000 of them, with 16
transfers. All is in memory (/dev/shm), on one machine. Every file that comes back is compared. A run has a new prefix, so
nothing is replaced. Raw samples go to lab/records/.
"""

import argparse
import contextlib
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import pairs  # noqa: E402
import records  # noqa: E402
import servers  # noqa: E402
import speeds  # noqa: E402
import tools  # noqa: E402
from common import end_when_told, replaced, run  # noqa: E402
from served import KEY, SECRET  # noqa: E402

FILES, SIZE = 1000, 64 << 10
# How files are kept: the files that take as many bytes, and the most bytes of a file that is kept in its manifests.
WAYS = {"shards": (1500, "4 KiB"), "manifests": (4000, "64 KiB")}
COLUMNS = ["what", "round", "paritas_s", "rclone_s"]
KEYS = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}


class Bench:
    """A volume over six servers and a seventh for rclone, each with a bucket, and a tree of small files."""

    def __init__(self, program, folder, addresses, way):
        self.program, self.folder, self.way = program, folder, way
        as_many, inline = WAYS[way]
        folder.mkdir()
        # rclone cannot load a bundle of certificates of one's own.
        self.environment = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"} | KEYS
        self.tree, self.number = folder / "tree", 0
        for part, count in (("own", FILES), ("more", as_many - FILES)):
            (self.tree / part).mkdir(parents=True)
            for number in range(count):
                (self.tree / part / f"{number:04}").write_bytes(os.urandom(SIZE))
        nodes = [word for address in addresses[:6] for word in ("--node", f"s3://bucket/{way}?endpoint=http://{address}&region=us-east-1")]
        self.paritas("init", folder / "tank.toml", "--code", "4+2", *nodes)
        volume = (folder / "tank.toml").read_text()
        (folder / "tank.toml").write_text(replaced(volume, '\n# inline = "4 KiB"\n', f'\ninline = "{inline}"\n'))
        self.remote = {"RCLONE_CONFIG_STORE_TYPE": "s3", "RCLONE_CONFIG_STORE_PROVIDER": "Other", "RCLONE_CONFIG_STORE_ENV_AUTH": "true",
                       "RCLONE_CONFIG_STORE_ENDPOINT": f"http://{addresses[6]}", "RCLONE_CONFIG_STORE_REGION": "us-east-1"}

    def paritas(self, *words):
        run(self.program, "volume", *words, env=self.environment)

    def rclone(self, *words):
        run("rclone", "copy", "--transfers", "16", "--s3-no-check-bucket", *words, env=self.environment | self.remote)

    def runs(self):
        return {"put": (self.put, self.rclone_put), "get": (self.get, self.rclone_get)}

    def put(self):
        self.number += 1
        return seconds(lambda: self.paritas("put", "-q", "--recursive", self.folder / "tank.toml", self.tree / "own", f"run{self.number}"))

    def rclone_put(self):
        return seconds(lambda: self.rclone(self.tree, f"store:bucket/{self.way}/run{self.number}"))

    def get(self):
        return self.fetched(lambda out: self.paritas("get", "-q", "--recursive", self.folder / "tank.toml", "run1", out))

    def rclone_get(self):
        return self.fetched(lambda out: self.rclone(f"store:bucket/{self.way}/run1/own", out))

    def fetched(self, command):
        out = self.folder / "out"
        taken = seconds(lambda: command(out))
        found = next(path.parent for path in out.rglob("0000"))
        _, differing, missing = filecmp.cmpfiles(self.tree / "own", found, [f"{n:04}" for n in range(FILES)], shallow=False)
        if differing or missing:
            sys.exit(f"{len(differing)} files differ, {len(missing)} are missing")
        shutil.rmtree(out)
        return taken


def seconds(action):
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--label", default="", help="the end of the record's name")
    args = parser.parse_args()
    servers.program("versitygw")
    tools.debian("rclone")
    program, source = tools.paritas(), records.origin()
    print(f"{source.processor}, commit {source.commit}\n")
    end_when_told()
    with contextlib.ExitStack() as open_until_end, records.keep("small-objects", args.label, COLUMNS, source) as writer:
        folder = pathlib.Path(open_until_end.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        addresses = [open_until_end.enter_context(speeds.served("versitygw", folder / f"server{number}")) for number in range(7)]
        for number in range(7):
            (folder / f"server{number}" / "data" / "bucket").mkdir()
        benches = [Bench(program, folder / way, addresses, way) for way in WAYS]
        runs = [(f"{op} in {bench.way}", *run) for bench in benches for op, run in bench.runs().items()]
        for what, ours, theirs in runs:
            taken = pairs.Pairs()
            for number in range(args.pairs):
                writer.writerow([what, number, *taken.take(ours, theirs)])
            middle = lambda spread: f"{spread.median:.2f} s ({spread.least:.2f} to {spread.most:.2f})"
            print(f"{what}: paritas {middle(taken.subject())}, rclone {middle(taken.base())}, ratio {taken.ratio()}", flush=True)


if __name__ == "__main__":
    main()
