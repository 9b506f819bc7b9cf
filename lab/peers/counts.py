#!/usr/bin/env python3
"""Counts the instructions, loads, stores and cache misses of Paritas and its peers.

    lab/peers/counts.py [--shapes 6+3,10+4] [--op encode|decode] [--set cache] [--align staggered|page]
                        [--variants isal,paritas:jit-avx2]

Each peer of run.py runs under valgrind's cachegrind, which counts exactly and simulates two caches with lines of
64 bytes: a first level of 32 KiB with 8 ways, and a last level of 1 MiB with 16 ways. Each peer runs twice, the second
time with ten more operations. The difference is reported, so that starting and compiling do not count. Valgrind
emulates a processor with AVX2, so no wider instructions are counted.

Figures are per KiB of user data. `least` is the number of lines that the k sources and m targets have: each must be
touched once. Installs valgrind with apt-get if it is missing.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

import run

CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"]
# Operations of the first run, by the end of which everything is compiled, and further operations of the second run.
BEFORE, COUNTED = 30, 10


def events(variant: str, k: int, m: int, shard: int, operations: int, args: argparse.Namespace) -> dict:
    """Returns the events of a whole run of `operations` operations, and the length of a shard."""
    program, last = run.command(variant, k, m, None)
    words = [program[0], *map(str, program[1:]), str(k), str(m), str(shard), args.op, args.align, *last]
    with tempfile.NamedTemporaryFile() as out:
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, f"--cachegrind-out-file={out.name}"]
        done = subprocess.run([*tool, *words], input=f"sample {operations}\n", capture_output=True, text=True)
        if "ready" not in done.stdout or done.returncode:
            sys.exit(f"{variant}: {done.stdout}{done.stderr}")
        lines = pathlib.Path(out.name).read_text().splitlines()
    names = next(line for line in lines if line.startswith("events:")).split()[1:]
    totals = next(line for line in lines if line.startswith("summary:")).split()[1:]
    shards = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("bytes ")]
    return dict(zip(names, map(int, totals))) | {"shard": int(shards[0]) if shards else shard}


def count(shape: str, variant: str, args: argparse.Namespace) -> None:
    k, m = map(int, shape.split("+"))
    shard = run.shard_bytes(args.set, k, m)
    few, many = (events(variant, k, m, shard, n, args) for n in (BEFORE, BEFORE + COUNTED))
    kib = COUNTED * k * many["shard"] / 1024
    per_kib = {name: (many[name] - few[name]) / kib for name in few if name != "shard"}
    misses = per_kib["D1mr"] + per_kib["D1mw"]
    least = 16 * (k + m) / k
    print(f"| {shape} | {variant} | {per_kib['Ir']:.0f} | {per_kib['Dr']:.1f} | {per_kib['Dw']:.1f} "
          f"| {misses:.1f} | {least:.1f} | {per_kib['DLmr'] + per_kib['DLmw']:.2f} | {per_kib['I1mr']:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=run.DEFAULT_SHAPES, help="K+M,…")
    parser.add_argument("--op", choices=["encode", "decode"], default="encode")
    parser.add_argument("--set", choices=[*run.SETS, *run.SHARDS], default="cache")
    parser.add_argument("--align", choices=["staggered", "page"], default="staggered")
    parser.add_argument("--variants", default="isal,paritas:jit-avx2", help="those that are counted; see run.py")
    args = parser.parse_args()
    run.install()
    if not shutil.which("valgrind"):
        subprocess.run(["apt-get", "install", "-y", "-qq", "valgrind"], check=True)
    print(f"{args.op}, set {args.set}, shards {args.align}; per KiB of user data\n")
    print("| k+m | library | instructions | loads | stores | lines missed in L1 | least | in L2 | code lines missed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for shape in args.shapes.split(","):
        for variant in args.variants.split(","):
            count(shape, variant, args)


if __name__ == "__main__":
    main()
