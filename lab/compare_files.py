#!/usr/bin/env python3
"""Measures whole commands on a file in the page cache: paritas beside zfec, par2 and cp.

    lab/compare_files.py [--bytes 1G] [--rounds 20] [--minutes N] [--folder DIR] [--code K+M] [--no-par2] [--label NAME]
    lab/compare_files.py --volume [--bytes 1G] [--rounds 20] ...

All tools get the same file and make the same redundancy (m/k of its size). Every command runs in pairs, one of paritas
and one of the other tool, back to back in alternating order, so that a slow moment of the machine meets both; where
the ratio stays uncertain, up to four times as many rounds are taken (see pairs.py). --minutes limits them: no round
begins after N minutes, except the first. par2 creates only once and beforehand, because it takes minutes (1 GiB took
261 s on a busy machine). Every decoded file is compared with the original before a time counts. Reported are the
median and the 10th percentile of all samples, and the ratio of the pairs.

`cp` copies as many bytes as the encoder writes (for encode) or as the file has (for decode). Times
are of whole processes without waiting for the disk, except where a line says --sync. The folder decides what is measured:
on tmpfs (the default, /dev/shm) the disk takes no part; it needs room for seven times the file. Raw samples go to
lab/records/ (see records.py).

With --volume, `paritas volume put` and `get` stand beside `paritas encode` and `decode` instead. The volume has a folder
for each of the k + m shards, and nothing waits for the disk.

Installs what is missing: zfec from PyPI into an environment of its own, par2 from Debian.
"""

import argparse
import filecmp
import math
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Callable

import common
import pairs
import records
import tools

COLUMNS = ["what", "subject", "base", "round", "seconds", "base_seconds", "bytes"]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=common.parse_file_bytes, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--minutes", metavar="N", type=float, default=math.inf, help="begin no round after N, except the first")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--code", default="4+2", help="K+M")
    parser.add_argument("--no-par2", action="store_true")
    parser.add_argument("--volume", action="store_true", help="compare a volume's put and get with encode and decode")
    parser.add_argument("--label", default="", help="ends the name of the record")
    return parser.parse_args()


def find_zfec() -> tuple[str, str]:
    """Returns the zfec and zunfec commands."""
    programs = tools.zfec()
    return str(programs / "zfec"), str(programs / "zunfec")


def find_par2() -> str:
    if not shutil.which("par2"):
        tools.debian("par2")
    return "par2"


def run(command: list, folder: pathlib.Path) -> float:
    """Runs a command, and returns the seconds that it takes."""
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True)
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{command} failed: {done.stderr.decode(errors='replace')}")
    return seconds


def fresh(folder: pathlib.Path) -> pathlib.Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


class Bench:
    """The commands: each method runs one, checks what it made, removes it, and returns the seconds it took."""

    def __init__(self, args: argparse.Namespace, folder: pathlib.Path):
        self.args, self.folder = args, folder
        self.k, self.m = (int(part) for part in args.code.split("+"))
        self.file = self.folder / "file"
        self.paritas = str(tools.paritas())
        self.par2 = None if args.no_par2 or args.volume else find_par2()
        common.write_random(self.file, args.bytes)
        self.shards, self.damaged, self.shares = (self.folder / name for name in ("shards", "damaged", "shares"))
        self.nodes, self.volume = self.folder / "nodes", self.folder / "volume.toml"
        self.make_shards()
        if args.volume:
            self.make_volume()
        else:
            self.zfec, self.zunfec = find_zfec()
            run(self.sharing(fresh(self.shares)), self.folder)

    def make_shards(self) -> None:
        """Makes the input of our decoding: shards, and links to those that remain after a loss."""
        run(self.encoding(fresh(self.shards), "--no-sync"), self.folder)
        fresh(self.damaged)
        for shard in sorted(self.shards.iterdir())[self.m :]:
            os.link(shard, self.damaged / shard.name)

    def make_volume(self) -> None:
        """Makes a volume that does not wait for the disk, with the file in it as `kept`."""
        nodes = [fresh(self.nodes / str(number)) for number in range(self.k + self.m)]
        options = [part for node in nodes for part in ("--node", node)]
        run([self.paritas, "volume", "init", self.volume, "--code", self.args.code, *options], self.folder)
        self.volume.write_text(common.replaced(self.volume.read_text(), "\n# sync = true\n", "\nsync = false\n"))
        run(self.putting("kept"), self.folder)

    def encoding(self, out: pathlib.Path, sync: str) -> list:
        return [self.paritas, "encode", self.file, "--code", self.args.code, "--out", out, sync, "--quiet"]

    def putting(self, name: str) -> list:
        return [self.paritas, "volume", "put", self.volume, self.file, name, "--quiet"]

    def sharing(self, out: pathlib.Path) -> list:
        shape = ["-k", str(self.k), "-m", str(self.k + self.m)]
        return [self.zfec, "-q", "-f", *shape, "-p", "share", "-d", out, self.file]

    def into(self, command: Callable[[pathlib.Path], list]) -> float:
        """Runs a command that fills a folder, and returns the seconds."""
        out = fresh(self.folder / "out")
        seconds = run(command(out), self.folder)
        shutil.rmtree(out)
        return seconds

    def decoded(self, command: Callable[[pathlib.Path], list]) -> float:
        """Runs a command that writes the file, checks the file, and returns the seconds."""
        out = self.folder / "decoded"
        seconds = run(command(out), self.folder)
        if not filecmp.cmp(self.file, out, shallow=False):
            sys.exit(f"{out} differs from the file that was encoded")
        out.unlink()
        return seconds

    def encode(self, sync: str = "--no-sync") -> float:
        return self.into(lambda out: self.encoding(out, sync))

    def decode(self, shards: pathlib.Path) -> float:
        return self.decoded(lambda out: [self.paritas, "decode", shards, "--out", out, "--no-sync", "--quiet"])

    def put(self) -> float:
        seconds = run(self.putting("new"), self.folder)
        run([self.paritas, "volume", "rm", self.volume, "new"], self.folder)
        return seconds

    def get(self) -> float:
        return self.decoded(lambda out: [self.paritas, "volume", "get", self.volume, "kept", out, "--no-sync", "--quiet"])

    def zfec_encode(self) -> float:
        return self.into(self.sharing)

    def zfec_decode(self, lost: int) -> float:
        shares = sorted(self.shares.iterdir())[lost : lost + self.k]
        return self.decoded(lambda out: [self.zunfec, "-f", "-o", out, *shares])

    def par2_create(self) -> float:
        def command(out: pathlib.Path) -> list:
            os.link(self.file, out / "file")
            return [self.par2, "create", "-q", "-q", f"-r{100 * self.m // self.k}", out / "file.par2", out / "file"]

        return self.into(command)

    def copy_shards(self) -> float:
        """Copies the number of bytes that the encoder writes, into the same number of files."""
        part = self.folder / "part"
        with open(self.file, "rb") as source, open(part, "wb") as target:
            target.write(source.read(self.args.bytes // self.k))
        seconds = self.into(lambda out: ["sh", "-ec", f"for i in $(seq {self.k + self.m}); do cp '{part}' '{out}'/$i; done"])
        part.unlink()
        return seconds

    def copy_file(self) -> float:
        return self.decoded(lambda out: ["cp", self.file, out])


Comparison = tuple[str, str, Callable[[], float], str, Callable[[], float]]


def comparisons(bench: Bench) -> list[Comparison]:
    """Returns the comparisons, each as the operation, and the names and commands of two tools."""
    return with_shards(bench) if bench.args.volume else with_others(bench)


def with_shards(bench: Bench) -> list[Comparison]:
    return [
        ("put", "paritas volume", bench.put, "paritas encode", bench.encode),
        ("get", "paritas volume", bench.get, "paritas decode", lambda: bench.decode(bench.shards)),
    ]


def with_others(bench: Bench) -> list[Comparison]:
    whole, damaged = (lambda: bench.decode(bench.shards)), (lambda: bench.decode(bench.damaged))
    lost = f"decode, {bench.m} data shards lost"
    return [
        ("encode", "paritas", bench.encode, "zfec", bench.zfec_encode),
        ("encode", "paritas", bench.encode, "cp of the bytes written", bench.copy_shards),
        ("encode", "paritas --sync", lambda: bench.encode("--sync"), "paritas", bench.encode),
        ("decode, nothing lost", "paritas", whole, "zfec", lambda: bench.zfec_decode(0)),
        ("decode, nothing lost", "paritas", whole, "cp", bench.copy_file),
        (lost, "paritas", damaged, "zfec", lambda: bench.zfec_decode(bench.m)),
        (lost, "paritas", damaged, "cp", bench.copy_file),
    ]


def measure(bench: Bench) -> dict[tuple[str, str, str], pairs.Pairs]:
    """Samples by operation and names."""
    rounds, all_of_them = bench.args.rounds, comparisons(bench)
    taken = {names(comparison): pairs.Pairs() for comparison in all_of_them}
    if bench.par2:
        once = taken["encode", "paritas", "par2"] = pairs.Pairs()
        once.take(bench.encode, bench.par2_create)
    end = time.monotonic() + 60 * bench.args.minutes
    while unsettled := [comparison for comparison in all_of_them if taken[names(comparison)].is_open(rounds)]:
        for comparison in unsettled:
            _, _, subject, _, base = comparison
            taken[names(comparison)].take(subject, base)
        if time.monotonic() > end:
            break
    return taken


def names(comparison: Comparison) -> tuple[str, str, str]:
    what, ours, _, theirs, _ = comparison
    return what, ours, theirs


def report(args: argparse.Namespace, taken: dict[tuple[str, str, str], pairs.Pairs], source: records.Origin) -> None:
    write_record(args, taken, source)
    print(f"{args.bytes / 1e9:.2f} GB, code {args.code}, {os.cpu_count()} x {source.processor}, commit {source.commit}\n")
    print("| what | ours | seconds, median (p10) | beside | seconds, median (p10) | times as fast (95 %) | pairs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (what, ours, theirs), samples in taken.items():
        subject, base = (f"{side.median:.2f} ({side.p10:.2f})" for side in (samples.subject(), samples.base()))
        ratio = samples.ratio()
        print(f"| {what} | {ours} | {subject} | {theirs} | {base} | {ratio} | {ratio.pairs} |")


def write_record(args: argparse.Namespace, taken: dict, source: records.Origin) -> None:
    kind = "volume" if args.volume else "files"
    with records.keep(f"{kind}-{args.code}-{args.folder.name}", args.label, COLUMNS, source) as writer:
        for operation, samples in taken.items():
            for number, (ours, theirs) in enumerate(samples.pairs):
                writer.writerow([*operation, number, f"{ours:.4f}", f"{theirs:.4f}", args.bytes])


def main() -> None:
    args, source = arguments(), records.origin()
    common.end_when_told()
    folder = args.folder / "paritas-compare"
    try:
        report(args, measure(Bench(args, fresh(folder))), source)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
