#!/usr/bin/env python3
"""Measures whole commands on a file in the page cache: paritas beside zfec, par2 and cp.

    lab/compare_files.py [--bytes 1G] [--rounds 5] [--folder DIR] [--code K+M]

All tools get the same file and make the same redundancy (m/k of its size). They run in interleaved
rounds in one session, so that a slow moment of the machine meets all of them; par2 creates only in
the first round, because it takes minutes. Every decoded file is compared with the original before a
time counts. Reported is the median with the lowest and highest, and the ratio to paritas.

`cp` copies as many bytes as the encoder writes (for encode) or as the file has (for decode). Times
are of whole processes without waiting for the disk, except where a line says --sync. The folder decides what is measured: on tmpfs (the default, /dev/shm) the disk
takes no part. Raw samples go to lab/records/ as CSV with the processor and the commit.

Installs what is missing: zfec from PyPI into a virtual environment, par2 from Debian.
"""

import argparse
import csv
import datetime
import filecmp
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_bytes(text: str) -> int:
    return int(text[:-1]) * UNITS[text[-1]] if text[-1] in UNITS else int(text)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=parse_bytes, default=1 << 30)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--code", default="4+2", help="K+M")
    parser.add_argument("--no-par2", action="store_true")
    return parser.parse_args()


def find_zfec() -> tuple[str, str]:
    """The zfec and zunfec commands, installed into a virtual environment if need be."""
    folder = pathlib.Path.home() / ".cache" / "paritas-lab" / "zfec"
    if not (folder / "bin" / "zfec").exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "zfec"], check=True)
    return str(folder / "bin" / "zfec"), str(folder / "bin" / "zunfec")


def find_par2() -> str:
    if not shutil.which("par2"):
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "par2"], check=True)
    return "par2"


def build_paritas() -> str:
    command = ["cargo", "build", "--release", "--quiet", "-p", "paritas-cli"]
    subprocess.run(command, cwd=ROOT, check=True)
    return str(ROOT / "target" / "release" / "paritas")


def run(command: list, folder: pathlib.Path) -> float:
    """The seconds that a command takes."""
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
    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.k, self.m = (int(part) for part in args.code.split("+"))
        self.folder = fresh(args.folder / "paritas-compare")
        self.file = self.folder / "file"
        self.samples: dict[str, list[float]] = {}
        self.paritas = build_paritas()
        self.zfec, self.zunfec = find_zfec()
        self.par2 = None if args.no_par2 else find_par2()
        with open(self.file, "wb") as file:
            for _ in range(args.bytes >> 20):
                file.write(os.urandom(1 << 20))

    def sample(self, what: str, command: list) -> None:
        self.samples.setdefault(what, []).append(run(command, self.folder))

    def check(self, decoded: pathlib.Path) -> None:
        if not filecmp.cmp(self.file, decoded, shallow=False):
            sys.exit(f"{decoded} is not the file that was encoded")
        decoded.unlink()

    def round(self, number: int) -> None:
        for sync in [False, True]:
            name, flag = ("paritas --sync", "--sync") if sync else ("paritas", "--no-sync")
            out = fresh(self.folder / "shards")
            command = [self.paritas, "encode", self.file, "--code", self.args.code, "--out", out]
            self.sample(f"encode: {name}", [*command, flag, "--quiet"])
        self.decode_paritas(out)
        shutil.rmtree(out)
        self.copy()
        self.round_zfec()
        if number == 0 and self.par2:
            self.round_par2()

    def decode_paritas(self, shards: pathlib.Path) -> None:
        """Whole, and with m data shards lost."""
        decoded = self.folder / "decoded"
        command = [self.paritas, "decode", shards, "--out", decoded, "--no-sync", "--quiet"]
        self.sample("decode, nothing lost: paritas", command)
        self.check(decoded)
        for shard in sorted(shards.iterdir())[: self.m]:
            shard.unlink()
        self.sample(f"decode, {self.m} data shards lost: paritas", command)
        self.check(decoded)

    def copy(self) -> None:
        """As many bytes as the encoder writes, into as many files; and the file itself."""
        n = self.k + self.m
        part = self.folder / "part"
        with open(self.file, "rb") as source, open(part, "wb") as target:
            target.write(source.read(self.args.bytes // self.k))
        out = fresh(self.folder / "copies")
        script = f"for i in $(seq {n}); do cp '{part}' '{out}'/$i; done"
        self.sample("encode: cp of the bytes written", ["sh", "-c", script])
        part.unlink()
        shutil.rmtree(out)
        self.sample("decode, nothing lost: cp", ["cp", self.file, self.folder / "copy"])
        (self.folder / "copy").unlink()

    def round_zfec(self) -> None:
        out = fresh(self.folder / "zfec")
        n = self.k + self.m
        shape = ["-k", str(self.k), "-m", str(n)]
        command = [self.zfec, "-q", "-f", *shape, "-p", "share", "-d", out, self.file]
        self.sample("encode: zfec", command)
        shares = sorted(out.iterdir())
        for lost, which in [("nothing lost", shares[: self.k]), (f"{self.m} data shards lost", shares[self.m :])]:
            decoded = self.folder / "decoded"
            self.sample(f"decode, {lost}: zfec", [self.zunfec, "-f", "-o", decoded, *which])
            self.check(decoded)
        shutil.rmtree(out)

    def round_par2(self) -> None:
        out = fresh(self.folder / "par2")
        os.link(self.file, out / "file")
        redundancy = f"-r{100 * self.m // self.k}"
        command = [self.par2, "create", "-q", "-q", redundancy, out / "file.par2", out / "file"]
        self.sample("encode: par2", command)
        shutil.rmtree(out)

    def report(self) -> None:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()
        processor = next(
            (line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line),
            platform.machine(),
        )
        self.write_record(commit, processor)
        print(f"{self.args.bytes / 1e9:.2f} GB, code {self.args.code}, {self.args.rounds} rounds, "
              f"{os.cpu_count()} x {processor}, commit {commit}\n")
        print("| what | seconds, median (low to high) | x paritas |")
        print("| --- | --- | --- |")
        for what, seconds in sorted(self.samples.items()):
            median = statistics.median(seconds)
            base = self.samples[what.split(":")[0] + ": paritas"]
            ratio = median / statistics.median(base)
            spread = f"{min(seconds):.2f} to {max(seconds):.2f}"
            print(f"| {what} | {median:.2f} ({spread}) | {ratio:.2f} |")

    def write_record(self, commit: str, processor: str) -> None:
        records = ROOT / "lab" / "records"
        records.mkdir(exist_ok=True)
        day = datetime.date.today().isoformat()
        with open(records / f"files-{self.args.code}-{self.args.folder.name}-{day}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["what", "round", "seconds", "bytes", "processor", "commit"])
            for what, samples in sorted(self.samples.items()):
                for number, seconds in enumerate(samples):
                    row = [what, number, f"{seconds:.4f}", self.args.bytes, processor, commit]
                    writer.writerow(row)


def main() -> None:
    args = arguments()
    bench = Bench(args)
    try:
        for number in range(args.rounds):
            bench.round(number)
        bench.report()
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)


if __name__ == "__main__":
    main()
