#!/usr/bin/env python3
"""Measures Paritas and its peers in pairs, in memory, on one core.

    lab/peers/run.py [--shapes 10+4,6+3] [--op encode|decode|patterns] [--set cache|dram|1k|4k|BYTES] [--rounds 40]
                     [--align staggered|page] [--words | --pairs paritas/isal,paritas:jit-avx2/isal:avx2,…]
                     [--before PROGRAM] [--label NAME]

--op patterns repairs another pattern of m lost shards in each call: all patterns in turn, or some 2,000 of them. Our program,
reed-solomon-erasure and klauspost/reedsolomon do it; the latter has met all patterns before, so its inverses are kept.

Wide shapes: `klauspost:leopard` is that library with WithLeopardGF, whose bytes are those of our `leopard8`, as in --pairs
paritas:leopard8@auto/klauspost:leopard --shapes 32+32,128+128. For more than 256 shards it has 16 bits. `long` is Paritas'
code for thousands of shards: compare it by --pairs long/simd,long/klauspost:leopard --shapes 1024+1024. `leopard16` makes the bytes of these two.

Peers: ISA-L, Jerasure and liberasurecode (Debian's packages), zfec (PyPI), klauspost/reedsolomon (Go), reed-solomon-simd
and reed-solomon-erasure (Rust). Each is a process of its own (c/peer.h describes the protocol). Before it is measured, it
must prove that it decodes what it encodes, and variants that should have the same bytes must have the same.

--set gives the length of shards: `cache` is 512 KiB for all shards together, `dram` 256 MiB, `1k` and `4k` are shards
of 1 and 4 KiB. The length is rounded to whole strips of Paritas; a peer that needs strips of its own rounds it again.
GB/s is k x shard bytes / seconds / 10^9.

A variant is a library, perhaps with a detail. `klauspost:avx2` and `isal:avx2` use no wider instructions than AVX2.
`jerasure:TECHNIQUE@W@PACKET` and `liberasurecode:flat_xor_hd:HD` are explained in c/. `xor` is no library: one XOR for each
byte read, over the same streams, by our best kernel; it can stand where Paritas does.
`paritas:KERNEL`, `paritas:FAMILY@KERNEL` and `paritas:SPEC@KERNEL` name the kernel and the code. Without --pairs, the
default code is compared with ISA-L and klauspost/reedsolomon, on AVX2 and on the best instructions of the processor.
With --words, the codes that have the peers' bytes (`isal-cauchy`, `backblaze`) are compared instead.

`before:…` is an earlier Paritas: the program that `cargo build --release` in `rust/` made of an earlier tree. --before
gives its path.

The speed of a shared machine changes within milliseconds. So each sample of ours is taken back to back with one of the
peer's, on the same core and in alternating order, and the ratio of each pair counts (see lab/pairs.py). A pair takes
about a millisecond, unless one operation takes longer; the median is reported. Speeds are the median and the 90th
percentile of all samples. Raw samples go to lab/records/ (see lab/records.py).

Installs what is missing.
"""

import argparse
import collections
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import pairs  # noqa: E402
import records  # noqa: E402
import tools  # noqa: E402

BUILD = tools.target() / "peers"
# Bytes of all shards together, and bytes of one shard, by the name of a set.
SETS = {"cache": 512 << 10, "dram": 256 << 20}
SHARDS = {"1k": 1 << 10, "4k": 4 << 10}
DEFAULT_SHAPES = "6+3,8+3,10+4,12+4,10+6,17+3,20+4"
DEFAULT_PAIRS = "paritas:jit-avx2/isal:avx2,paritas:jit-avx2/klauspost:avx2,paritas/isal,paritas/klauspost"
WORD_PAIRS = ("paritas:isal-cauchy@jit-avx2/isal:avx2,paritas:isal-cauchy@jit-avx2/klauspost:avx2,"
              "paritas:backblaze@jit-avx2/klauspost:avx2,"
              "paritas:isal-cauchy@auto/isal,paritas:isal-cauchy@auto/klauspost,paritas:backblaze@auto/klauspost")
# The family that has the same bytes as a library.
BYTES = {"isal": "isal-cauchy", "klauspost": "backblaze", "klauspost:leopard": "leopard8", "erasure": "backblaze"}
# Libraries whose detail names a code and a kernel.
OURS = ("paritas", "before", "xor")
# Libraries whose programs repair a new pattern in each call.
REPAIRERS = ("paritas", "erasure", "klauspost")
COLUMNS = ["shape", "op", "set", "align", "subject", "base", "subject_bytes", "base_bytes", "subject_ns", "base_ns"]
# Peers of libraries that Debian has.
DEBIAN = ("isal", "jerasure", "liberasurecode")
# The exit code of a peer that cannot serve a shape.
REFUSED = 3
# Nanoseconds: a sample has as many operations as take this long, and at least one.
SAMPLE = 250_000


def install(which: tuple[str, ...] = DEBIAN + ("python", "go", "rust")) -> None:
    """Builds peers, and installs what they need: those of Debian's libraries, those in Python, in Go and in Rust."""
    tools.toolchain()
    BUILD.mkdir(parents=True, exist_ok=True)
    if "isal" in which:
        install_debian()
    if "python" in which:
        tools.zfec()
    if "go" in which:
        install_go()
    if "rust" in which:
        target = ["--release", "--quiet", "--locked", "--target-dir", BUILD / "rust"]
        subprocess.run(["cargo", "build", *target], cwd=HERE / "rust", check=True)


def install_go() -> None:
    tools.go()
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    if subprocess.run(["go", "mod", "download"], cwd=HERE / "go", env=environment).returncode:
        raise tools.Missing("the modules that the peer in Go needs cannot be had")
    subprocess.run(["go", "build", "-o", BUILD / "go", "."], cwd=HERE / "go", env=environment, check=True)


def install_debian() -> None:
    missing = [
        package
        for package, header in [("libjerasure-dev", "jerasure.h"), ("liberasurecode-dev", "liberasurecode")]
        if not pathlib.Path("/usr/include", header).exists()
    ]
    if missing:
        tools.debian(*missing)
    headers, libraries = tools.isal()
    linked = {
        "isal": [f"-I{headers}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lisal"],
        "jerasure": ["-lJerasure", "-lgf_complete"],
        "liberasurecode": ["-lerasurecode"],
    }
    for name, links in linked.items():
        source = HERE / "c" / f"{name}.c"
        flags = ["-O2", "-I/usr/include/jerasure", "-Wno-unused-result"]
        subprocess.run(["cc", *flags, source, "-o", BUILD / name, *links], check=True)


def parts(variant: str) -> tuple[str, str, str]:
    """Splits a variant into its library, its code (for Paritas), and the rest of its detail."""
    name, _, detail = variant.partition(":")
    code, _, detail = detail.rpartition("@") if name in OURS else ("", "", detail)
    return name, code, detail


def command(variant: str, k: int, m: int, before: str | None) -> tuple[list, list]:
    """Returns the program of a variant, and its last argument if there is one."""
    name, code, detail = parts(variant)
    rust = BUILD / "rust" / "release" / "peers"
    if name in ("xor", "simd", "erasure", "long", "leopard16"):
        return [rust], [name]
    if name in OURS:
        is_family = code and ":" not in code and "+" not in code
        spec = f"{code}:k={k},m={m}" if is_family else code
        return [before if name == "before" else rust], [f"paritas@{spec}@{detail or 'auto'}"]
    if name == "zfec":
        return [tools.zfec() / "python", HERE / "zfec_peer.py"], []
    program = {"isal": "isal", "jerasure": "jerasure", "liberasurecode": "liberasurecode", "klauspost": "go"}[name]
    return [BUILD / program], [detail] if detail else []


def shard_bytes(size: str | int, k: int, m: int) -> int:
    """Returns the number of bytes of a shard before it is rounded to strips; `size` names a set, or is its bytes."""
    return SHARDS[size] if size in SHARDS else SETS.get(size, size) // (k + m) // 64 * 64


def set_of(text: str) -> str | int:
    """Reads the name of a set, or its bytes."""
    if text in SETS or text in SHARDS:
        return text
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be {', '.join([*SETS, *SHARDS])} or a number of bytes; got {text}")
    return int(text)


class Peer:
    """A library at one shape, in a process of its own."""

    def __init__(self, variant: str, k: int, m: int, shard: int, args: argparse.Namespace):
        self.variant, self.k, self.shard, self.parity, self.runs = variant, k, shard, "", 1
        program, last = command(variant, k, m, args.before)
        words = [*program, str(k), str(m), str(shard), args.op, args.align, *last]
        pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        environment = {**os.environ, "GOMAXPROCS": "1"}
        self.process = subprocess.Popen(
            [*pinned, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.ready = self.wait_until_ready()
        if self.ready:
            self.choose_runs()

    def wait_until_ready(self) -> bool:
        """Reads what the peer says of itself; returns whether it can serve this shape. Any other end ends the program."""
        for line in self.process.stdout:
            word, _, value = line.strip().partition(" ")
            if word == "bytes":
                self.shard = int(value)
            elif word == "parity":
                self.parity = value
            elif word == "ready":
                return True
            else:
                sys.exit(f"{self.variant}: {line}")
        if (code := self.process.wait()) != REFUSED:
            sys.exit(f"{self.variant}: exit code {code} of {shlex.join(self.process.args)}")
        return False

    def choose_runs(self) -> None:
        """Raises the number of operations of a sample until they take `SAMPLE`. The first operations of a process take longer."""
        for _ in range(30):
            nanoseconds = min(self.sample() for _ in range(10))
            if nanoseconds * self.runs >= SAMPLE:
                return
            self.runs = max(self.runs + 1, min(8 * self.runs, int(SAMPLE / nanoseconds)))

    def sample(self) -> float:
        """Takes a sample, and returns the nanoseconds of one operation."""
        self.process.stdin.write(f"sample {self.runs}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline()) / self.runs

    @property
    def bytes(self) -> tuple[str, int] | None:
        """Returns the family whose bytes the parity has, and its length; None if no other peer can have the same bytes."""
        name, code, _ = parts(self.variant)
        whose = code.partition(":")[0] if name in OURS else BYTES.get(self.variant, BYTES.get(name))
        return (whose, self.shard) if whose in BYTES.values() else None

    def speeds(self, spread: pairs.Spread) -> str:
        """Returns the median and the 90th percentile in GB/s."""
        return f"{self.k * self.shard / spread.median:.2f} ({self.k * self.shard / spread.p10:.2f})"

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def start(k: int, m: int, variants: list[str], args: argparse.Namespace) -> dict[str, Peer]:
    """Starts the peers. Those of Paritas come first, because their strips determine the length for all."""
    length, peers = shard_bytes(args.set, k, m), {}
    for variant in sorted(variants, key=lambda variant: not variant.startswith(OURS)):
        peers[variant] = Peer(variant, k, m, length, args)
        if variant.startswith(OURS) and peers[variant].ready:
            length = peers[variant].shard
    expect_same_bytes(peers)
    return peers


def expect_same_bytes(peers: dict[str, Peer]) -> None:
    """Ends the program if peers that should have the same parity differ."""
    by_bytes = collections.defaultdict(set)
    for peer in peers.values():
        if peer.ready and peer.bytes:
            by_bytes[peer.bytes].add(peer.parity)
    for (whose, _), parities in by_bytes.items():
        if len(parities) > 1:
            sys.exit(f"parity of {whose} differs: {[(p.variant, p.parity) for p in peers.values()]}")


def measure(shape: str, comparisons: list[tuple[str, str]], args: argparse.Namespace, writer) -> list[float]:
    """Measures a shape, and prints a line for each comparison. Returns the milliseconds that each pair took."""
    k, m = map(int, shape.split("+"))
    peers = start(k, m, list(dict.fromkeys(name for names in comparisons for name in names)), args)
    absent = [variant for variant, peer in peers.items() if not peer.ready]
    taken = {names: pairs.Pairs() for names in comparisons if not set(names) & set(absent)}
    durations = []
    while unsettled := {names: samples for names, samples in taken.items() if samples.is_open(args.rounds)}:
        for (subject, base), samples in unsettled.items():
            began = time.perf_counter()
            pair = samples.take(peers[subject].sample, peers[base].sample)
            durations.append(1e3 * (time.perf_counter() - began))
            writer.writerow([shape, args.op, args.set, args.align, subject, base, peers[subject].shard, peers[base].shard,
                             *(f"{nanoseconds:.1f}" for nanoseconds in pair)])
    for (subject, base), samples in taken.items():
        # A peer with strips of its own may have another length, so bytes a second are compared.
        scale = peers[subject].shard / peers[base].shard
        ratio = pairs.Pairs([(a / scale, b) for a, b in samples.pairs]).ratio()
        print(f"| {shape} | {peers[subject].shard} | {subject} | {peers[subject].speeds(samples.subject())} | {base} "
              f"| {peers[base].speeds(samples.base())} | {ratio} | {ratio.verdict} | {ratio.pairs} |", flush=True)
    for peer in peers.values():
        peer.close()
    for variant in absent:
        print(f"| {shape} | | {variant} | cannot serve this shape | | | | | |")
    return durations


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=DEFAULT_SHAPES, help="K+M,…")
    parser.add_argument("--op", choices=["encode", "decode", "patterns"], default="encode")
    parser.add_argument("--set", type=set_of, default="cache", help="the length of shards: cache, dram, 1k, 4k, or the bytes of all")
    parser.add_argument("--align", choices=["staggered", "page"], default="staggered", help="where shards begin")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pairs", default=DEFAULT_PAIRS, help="the variants to compare, as OURS/PEER,…")
    which.add_argument("--words", dest="pairs", action="store_const", const=WORD_PAIRS, help="codes that have the peers' bytes")
    parser.add_argument("--rounds", type=int, default=40, help="the fewest pairs of a comparison")
    parser.add_argument("--before", metavar="PROGRAM", help="the program of the variants `before`")
    parser.add_argument("--label", default="", help="the end of the record's name")
    args = parser.parse_args()
    for variant in args.pairs.replace(",", "/").split("/"):
        if args.op == "patterns" and parts(variant)[0] not in REPAIRERS:
            parser.error(f"--op patterns: {variant} does not repair patterns; {', '.join(REPAIRERS)} do")
    return args


def main() -> None:
    args = arguments()
    install()
    source = records.origin()
    print(f"{args.op}, set {args.set}, shards {args.align}, one core of "
          f"{source.processor}, commit {source.commit}, ISA-L {tools.ISAL} (Debian 13's)\n")
    print("| k+m | shard | ours | GB/s, median (p90) | peer | GB/s, median (p90) | ratio (95 %) | ours is | pairs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    comparisons = [tuple(pair.split("/")) for pair in args.pairs.split(",")]
    durations = []
    with records.keep(f"peers-{args.op}-{args.set}-{args.align}", args.label, COLUMNS, source) as writer:
        for shape in args.shapes.split(","):
            durations += measure(shape, comparisons, args, writer)
    if durations:
        print(f"\nA pair took {statistics.median(durations):.2f} ms (median)")


if __name__ == "__main__":
    main()
