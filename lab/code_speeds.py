#!/usr/bin/env python3
"""Ranks codes by speed as the FAST 2009 talk does: its four configurations, all codes that it compares.

    lab/code_speeds.py [--shapes 6+2,14+2,12+4,10+6] [--rounds 3] [--op encode|decode]

Each code runs in three ways on one core: compiled for this processor, compiled for AVX2, and tiled with AVX2
over packets of 4 KiB, as the talk's libraries ran their schedules. All shards together have 512 KiB (tiled:
2 MiB). Codes in the word layout run on word kernels instead. Rounds are interleaved, and the result of every
sample is checked (`paritas bench`). Prints a table of the medians of the rounds, the fastest code first.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARITAS = ROOT / "target" / "release" / "paritas"

# The talk's codes: special-purpose RAID-6, Cauchy matrices chosen in three ways, Reed-Solomon in words.
RAID6 = ["rdp:k={k}", "evenodd:k={k}", "liberation:k={k}", "blaum-roth:k={k}", "raid6:k={k}"]
GENERAL = [
    "cauchy:k={k},m={m}",
    "cauchy-good:k={k},m={m},w=8",
    "cauchy-orig:k={k},m={m},w=8",
    "zfec:k={k},m={m}",
    "reed-solomon:k={k},m={m}",
]
PACKETS = {"best": ["--kernel", "jit"], "AVX2": ["--kernel", "jit-avx2"],
           "tiled": ["--kernel", "avx2", "--packet", "4096", "--set", str(2 << 20)]}
WORDS = {"best": ["--kernel", "auto"], "AVX2": ["--kernel", "jit-avx2"], "tiled": ["--kernel", "avx2"]}
IN_WORDS = ("raid6", "zfec", "reed-solomon")


def specs(k: int, m: int) -> list[str]:
    raid6 = RAID6 if m == 2 else []
    liber8tion = ["liber8tion:k={k}"] if m == 2 and k <= 8 else []
    return [spec.format(k=k, m=m) for spec in raid6 + liber8tion + GENERAL]


def speed(spec: str, op: str, options: list[str]) -> float:
    command = [PARITAS, "bench", "--code", spec, "--op", op, "--threads", "1", "--reps", "21", "--json", *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["gbps_median"]


def measure(shape: str, op: str, rounds: int) -> None:
    k, m = map(int, shape.split("+"))
    samples: dict[str, dict[str, list[float]]] = {spec: {} for spec in specs(k, m)}
    for _ in range(rounds):
        for spec, by_way in samples.items():
            ways = WORDS if spec.split(":")[0] in IN_WORDS else PACKETS
            for way, options in ways.items():
                by_way.setdefault(way, []).append(speed(spec, op, options))
    medians = {spec: {way: statistics.median(s) for way, s in ways.items()} for spec, ways in samples.items()}
    print(f"\n| {op} {shape} | compiled | AVX2 | tiled |\n| --- | --- | --- | --- |")
    for spec, ways in sorted(medians.items(), key=lambda item: -item[1]["best"]):
        print(f"| `{spec}` | {ways['best']:.1f} | {ways['AVX2']:.1f} | {ways['tiled']:.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", default="6+2,14+2,12+4,10+6")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--op", choices=["encode", "decode"], default="encode")
    args = parser.parse_args()
    subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "paritas-cli"], cwd=ROOT, check=True)
    for shape in args.shapes.split(","):
        measure(shape, args.op, args.rounds)


if __name__ == "__main__":
    main()
