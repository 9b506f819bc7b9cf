#!/usr/bin/env python3
"""Counts the instructions, loads, stores and cache misses of Paritas and its peers.

    lab/peers/counts.py [--shapes 6+3,10+4] [--op encode|decode] [--set cache] [--align staggered|page]
                        [--variants isal,paritas:jit-avx2]

Each peer of run.py runs under valgrind's cachegrind, which counts exactly and simulates two caches with lines of
64 bytes: a first level of 32 KiB with 8 ways, and a last level of 1 MiB with 16 ways. Each peer runs twice, the second
time with ten more operations. The difference is reported, so that starting and compiling do not count. Valgrind
emulates a processor with AVX2, so no wider instructions are counted.

Figures are per KiB of user data. `least` is the number of lines that the k sources and m targets have: each must be
touched once. Installs valgrind if it is missing.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import tools  # noqa: E402
from peers import run  # noqa: E402

CACHES = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"]
# Operations of the first run, by the end of which everything is compiled, and further operations of the second run.
BEFORE, COUNTED = 30, 10
# The events of cachegrind, by what they count: the misses of both levels, for data and for code.
MISSES = {"L1": ("D1mr", "D1mw"), "L2": ("DLmr", "DLmw"), "code": ("I1mr",)}


def install() -> None:
    if not shutil.which("valgrind"):
        tools.debian("valgrind")


def events(variant: str, k: int, m: int, shard: int, operations: int, args: argparse.Namespace, caches: list[str] = CACHES) -> dict:
    """Returns the events of a whole run of `operations` operations, and the length of a shard."""
    program, last = run.command(variant, k, m, None)
    words = [program[0], *map(str, program[1:]), str(k), str(m), str(shard), args.op, args.align, *last]
    with tempfile.NamedTemporaryFile() as out:
        tool = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *caches, f"--cachegrind-out-file={out.name}"]
        done = subprocess.run([*tool, *words], input=f"sample {operations}\n", capture_output=True, text=True)
        if "ready" not in done.stdout or done.returncode:
            raise RuntimeError(f"{variant}: {done.stdout}{done.stderr}")
        lines = pathlib.Path(out.name).read_text().splitlines()
    names = next(line for line in lines if line.startswith("events:")).split()[1:]
    totals = next(line for line in lines if line.startswith("summary:")).split()[1:]
    shards = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("bytes ")]
    return dict(zip(names, map(int, totals))) | {"shard": int(shards[0]) if shards else shard}


def per_kib(variant: str, k: int, m: int, shard: int, args: argparse.Namespace, runs: tuple[int, int] = (BEFORE, BEFORE + COUNTED),
            caches: list[str] = CACHES) -> dict[str, float]:
    """Returns the events for each KiB of user data: the difference of two runs of as many operations as `runs` says."""
    few, many = (events(variant, k, m, shard, operations, args, caches) for operations in runs)
    kib = (runs[1] - runs[0]) * k * many["shard"] / 1024
    return {name: (many[name] - few[name]) / kib for name in few if name != "shard"}


def misses(found: dict[str, float], level: str) -> float:
    return sum(found[event] for event in MISSES[level])


def count(shape: str, variant: str, args: argparse.Namespace) -> None:
    k, m = map(int, shape.split("+"))
    found = per_kib(variant, k, m, run.shard_bytes(args.set, k, m), args)
    least = 16 * (k + m) / k
    print(f"| {shape} | {variant} | {found['Ir']:.0f} | {found['Dr']:.1f} | {found['Dw']:.1f} | {misses(found, 'L1'):.1f} "
          f"| {least:.1f} | {misses(found, 'L2'):.2f} | {misses(found, 'code'):.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default=run.DEFAULT_SHAPES, help="K+M,…")
    parser.add_argument("--op", choices=["encode", "decode"], default="encode")
    parser.add_argument("--set", choices=[*run.SETS, *run.SHARDS], default="cache")
    parser.add_argument("--align", choices=["staggered", "page"], default="staggered")
    parser.add_argument("--variants", default="isal,paritas:jit-avx2", help="those that are counted; see run.py")
    args = parser.parse_args()
    run.install()
    install()
    print(f"{args.op}, set {args.set}, shards {args.align}; per KiB of user data\n")
    print("| k+m | library | instructions | loads | stores | lines missed in L1 | least | in L2 | code lines missed |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for shape in args.shapes.split(","):
        for variant in args.variants.split(","):
            count(shape, variant, args)


if __name__ == "__main__":
    main()
