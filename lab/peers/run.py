#!/usr/bin/env python3
"""Measures Paritas side by side with its peers, in memory, on one core, in interleaved rounds.

    lab/peers/run.py [--shapes 10+4,6+3] [--op encode|decode] [--set cache|dram] [--rounds 40]
                     [--align staggered|page] [--variants paritas,isal,…]

Peers: ISA-L and Jerasure (Debian's packages), klauspost/reedsolomon (Go), reed-solomon-simd and
reed-solomon-erasure (Rust). Each is a process of its own (see c/peer.h for the protocol) that first proves
that it decodes what it encodes; then all are sampled in turn, on the same core. `cache` is 512 KiB for all
shards together, `dram` 256 MiB. GB/s is k x shard bytes / seconds / 10^9.

Machines like these alternate between a fast and a slow speed by the millisecond, as a neighbour on the
same core comes and goes. So every sample stands between two runs of a fixed calibration loop, and counts
only where both ran at full speed (within 4 % of that process's best); the sample's own time is
never looked at. How many were kept is reported. Raw samples go to lab/records/.

Installs what is missing with apt-get, cargo and go.
"""

import argparse
import csv
import datetime
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "target" / "peers"
SETS = {"cache": 512 << 10, "dram": 256 << 20}
TOLERANCE = 1.04
DEFAULT_SHAPES = "6+3,8+3,10+4,12+4,10+6,17+3,20+4"
DEFAULT_VARIANTS = "isal,klauspost,klauspost:avx2,jerasure,erasure,simd,paritas,paritas:jit-avx2"


def install() -> None:
    """Builds the peers, and what they need from the registries."""
    BUILD.mkdir(parents=True, exist_ok=True)
    missing = [
        package
        for package, header in [("libisal-dev", "isa-l.h"), ("libjerasure-dev", "jerasure.h")]
        if not pathlib.Path("/usr/include", header).exists()
    ]
    if missing:
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", *missing], check=True)
    for name, libraries in [("isal", ["-lisal"]), ("jerasure", ["-lJerasure", "-lgf_complete"])]:
        source = HERE / "c" / f"{name}.c"
        flags = ["-O2", "-I/usr/include/jerasure", "-Wno-unused-result"]
        subprocess.run(["cc", *flags, source, "-o", BUILD / name, *libraries], check=True)
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    subprocess.run(["go", "build", "-o", BUILD / "go", "."], cwd=HERE / "go", env=environment, check=True)
    target = ["--release", "--quiet", "--target-dir", BUILD / "rust"]
    subprocess.run(["cargo", "build", *target], cwd=HERE / "rust", check=True)


def command(variant: str) -> tuple[list, list]:
    """The program of a variant, and its last argument."""
    name, _, detail = variant.partition(":")
    rust = BUILD / "rust" / "release" / "peers"
    if name == "paritas":
        # paritas, paritas:KERNEL, or paritas:CODE@KERNEL
        code, _, kernel = detail.rpartition("@")
        return [rust], [f"paritas@{code}@{kernel or 'auto'}"]
    if name in ("simd", "erasure"):
        return [rust], [name]
    program = {"isal": "isal", "jerasure": "jerasure", "klauspost": "go"}[name]
    return [BUILD / program], [detail] if detail else []


class Peer:
    """One library at one shape."""

    def __init__(self, variant: str, k: int, m: int, args: argparse.Namespace):
        self.variant, self.k, self.shard = variant, k, SETS[args.set] // (k + m) // 64 * 64
        program, last = command(variant)
        words = [*program, str(k), str(m), str(self.shard), args.op, args.align, *last]
        pinned = ["taskset", "-c", str(os.sched_getaffinity(0).copy().pop())]
        environment = {**os.environ, "GOMAXPROCS": "1"}
        self.process = subprocess.Popen(
            [*pinned, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.samples: list[tuple[int, int, int]] = []
        self.runs = 1
        self.ready = self.wait_until_ready()
        if self.ready:
            self.choose_runs()

    def wait_until_ready(self) -> bool:
        for line in self.process.stdout:
            if line.startswith("bytes "):
                self.shard = int(line.split()[1])
            elif line.strip() == "ready":
                return True
            else:
                sys.exit(f"{self.variant}: {line}")
        return False

    def choose_runs(self) -> None:
        """About 400 microseconds a sample, so that the brackets speak for it."""
        times = [self.sample()[1] for _ in range(3)]
        self.runs = max(1, 400_000 // max(1, min(times)))

    def sample(self) -> tuple[int, int, int]:
        self.process.stdin.write(f"sample {self.runs}\n")
        self.process.stdin.flush()
        before, operation, after = map(int, self.process.stdout.readline().split())
        return before, operation // self.runs, after

    def measure(self) -> None:
        self.samples.append(self.sample())

    def kept(self) -> list[float]:
        """GB/s of the samples whose brackets both ran at full speed."""
        best = min(min(before, after) for before, _, after in self.samples)
        good = [t for before, t, after in self.samples if max(before, after) <= TOLERANCE * best]
        return [self.k * self.shard / t for t in good]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(shape: str, args: argparse.Namespace, writer) -> None:
    k, m = map(int, shape.split("+"))
    peers = [Peer(variant, k, m, args) for variant in args.variants.split(",")]
    absent = [peer.variant for peer in peers if not peer.ready]
    peers = [peer for peer in peers if peer.ready]
    for _ in range(args.rounds):
        for peer in peers:
            peer.measure()
    isal = next((statistics.median(p.kept()) for p in peers if p.variant == "isal" and p.kept()), None)
    for peer in peers:
        speeds = peer.kept()
        for sample in peer.samples:
            writer.writerow([shape, args.op, args.set, args.align, peer.variant, peer.shard, *sample])
        if not speeds:
            print(f"| {shape} | {peer.variant} | no sample was bracketed by full speed | | |")
            continue
        median = statistics.median(speeds)
        ratio = f"{median / isal:.2f}" if isal else "-"
        print(f"| {shape} | {peer.variant} | {median:.1f} ({min(speeds):.1f} to {max(speeds):.1f}) "
              f"| {ratio} | {len(speeds)} of {len(peer.samples)} |", flush=True)
        peer.close()
    for variant in absent:
        print(f"| {shape} | {variant} | cannot serve this shape | | |")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=DEFAULT_SHAPES)
    parser.add_argument("--op", choices=["encode", "decode"], default="encode")
    parser.add_argument("--set", choices=list(SETS), default="cache")
    parser.add_argument("--align", choices=["staggered", "page"], default="staggered")
    parser.add_argument("--variants", default=DEFAULT_VARIANTS)
    parser.add_argument("--rounds", type=int, default=40)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    install()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.strip()
    processor = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line)
    isal = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libisal2"], capture_output=True, text=True)
    print(f"{args.op}, set {args.set} ({SETS[args.set] >> 10} KiB), shards {args.align}, one core of "
          f"{processor}, commit {commit}, ISA-L {isal.stdout} (Debian's)\n")
    print("| k+m | library | GB/s, median (min to max) | x ISA-L | kept |")
    print("| --- | --- | --- | --- | --- |")
    records = ROOT / "lab" / "records"
    records.mkdir(exist_ok=True)
    name = f"peers-{args.op}-{args.set}-{args.align}-{datetime.date.today().isoformat()}.csv"
    with open(records / name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["shape", "op", "set", "align", "variant", "shard_bytes", "before_ns", "ns", "after_ns",
                         processor, commit])
        for shape in args.shapes.split(","):
            measure(shape, args, writer)


if __name__ == "__main__":
    main()
