#!/usr/bin/env python3
"""Measures the Python package beside pyeclib, zfec and `paritas bench`, in one run.

    lab/python_speeds.py [--paritas COMMAND] [--pairs 40]

Needs the packages paritas, numpy, pyeclib and zfec (`pip install ./python numpy pyeclib zfec`). Each call makes the 4
parity shards of 10 data shards. The codes are those of the peers, so that the answers can be compared before a time
counts: `isal-rs` beside pyeclib's isa_l_rs_vand, `zfec` beside zfec. `paritas bench` encodes 10+4, the default code, on
one thread, as the package does beside it. Samples are taken in pairs (see pairs.py); ratios are speeds.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import Callable

import tools
from pairs import Pairs

try:
    import numpy
    import paritas
    import pyeclib.ec_iface
    import zfec
except ModuleNotFoundError as error:
    sys.exit(f"{error}: pip install ./python numpy pyeclib zfec")

K, M = 10, 4
SIZES = {"4 KiB": 4 << 10, "64 KiB": 64 << 10, "1 MiB": 1 << 20}
# Seconds of a sample.
SAMPLE = 0.02
# Bytes that pyeclib puts before each fragment.
HEADER = 80


def timer(call: Callable[[], object]) -> Callable[[], float]:
    """Returns what measures the seconds of a call, over as many calls as fill a sample."""
    begun = time.perf_counter()
    call()
    count = max(1, round(SAMPLE / (time.perf_counter() - begun + 1e-9)))

    def sample() -> float:
        begun = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - begun) / count

    sample()
    return sample


class Ours:
    """Encoding from arrays to arrays, which are used again, as a program would that encodes a stream."""

    def __init__(self, spec: str, data: numpy.ndarray):
        self.data, self.parity = data, numpy.zeros((M, data.shape[1]), numpy.uint8)
        self.prepared = paritas.Codec(spec, threads=1).prepared()

    def __call__(self) -> None:
        self.prepared.run(self.data, self.parity)


def expect(ours: Ours, parity: list[bytes], peer: str) -> None:
    ours()
    if [bytes(row) for row in ours.parity] != parity:
        raise SystemExit(f"{peer} makes other parity")


def beside_pyeclib(data: numpy.ndarray) -> tuple[Callable, Callable]:
    driver = pyeclib.ec_iface.ECDriver(k=K, m=M, ec_type="isa_l_rs_vand", chksum_type="none")
    whole, ours = data.tobytes(), Ours(f"isal-rs:k={K},m={M}", data)
    fragments = driver.encode(whole)
    expect(ours, [fragment[HEADER : HEADER + data.shape[1]] for fragment in fragments[K:]], "pyeclib")
    return ours, lambda: driver.encode(whole)


def beside_zfec(data: numpy.ndarray) -> tuple[Callable, Callable]:
    encoder, shards, ours = zfec.Encoder(K, K + M), [bytes(row) for row in data], Ours(f"zfec:k={K},m={M}", data)
    numbers = list(range(K, K + M))
    expect(ours, encoder.encode(shards, numbers), "zfec")
    return ours, lambda: encoder.encode(shards, numbers)


def bench_seconds(command: pathlib.Path, shard: int) -> float:
    """Returns the seconds of one encoding by `paritas bench`."""
    arguments = ["--code", f"{K}+{M}", "--threads", "1", "--set", str((K + M) * shard), "--json", "--quiet"]
    run = subprocess.run([command, "bench", *arguments], capture_output=True, text=True, check=True)
    return K * shard / (json.loads(run.stdout.splitlines()[-1])["gbps_median"] * 1e9)


def take(name: str, size: str, data: numpy.ndarray, subject: Callable, base: Callable, count: int) -> None:
    pairs = Pairs()
    while pairs.is_open(count):
        pairs.take(subject, base)
    gigabytes = data.nbytes / 1e9
    print(f"| {size} | {name} | {pairs.ratio()} | {gigabytes / pairs.subject().median:.2f} | "
          f"{gigabytes / pairs.base().median:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--paritas", type=pathlib.Path, help="default: built of this tree")
    parser.add_argument("--pairs", type=int, default=40)
    args = parser.parse_args()
    command = args.paritas or tools.paritas()
    print("| shard | beside | times as fast | GB/s | theirs |\n| --- | --- | --- | --- | --- |")
    for size, shard in SIZES.items():
        data = numpy.random.default_rng(1).integers(0, 256, (K, shard), numpy.uint8)
        for name, make in {"pyeclib, isa_l_rs_vand": beside_pyeclib, "zfec": beside_zfec}.items():
            ours, theirs = make(data)
            take(name, size, data, timer(ours), timer(theirs), args.pairs)
        ours = timer(Ours(f"{K}+{M}", data))
        take("paritas bench", size, data, ours, lambda: bench_seconds(command, shard), 20)


if __name__ == "__main__":
    main()
