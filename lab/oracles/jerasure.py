#!/usr/bin/env python3
"""Compares the bytes of Paritas's codes with those of libjerasure (Debian's libjerasure-dev).

    lab/oracles/jerasure.py               compare the fixtures, and both libraries
    lab/oracles/jerasure.py --fixtures    compare the fixtures
    lab/oracles/jerasure.py --write       write vectors/jerasure.json anew

vectors/jerasure.json must be what the library makes. Two tests run with the library: crates/core/tests/testsuite/jerasure.rs,
in which each side decodes what the other encoded, and crates/shards/tests/testsuite/foreign/jerasure.rs, which imports
the files of Jerasure's encoder and exports the same bytes. `cargo test` runs these tests, too: there they compare with the
fixtures alone, unless PARITAS_JERASURE names the program that this script builds, as scripts/test has it.

Installs the library. If it cannot be installed, says so and exits with 3.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import tools  # noqa: E402

ROOT = tools.ROOT
PROGRAM = tools.target() / "oracles" / "jerasure"
FIXTURES = ROOT / "vectors" / "jerasure.json"
PACKAGES = ["libjerasure-dev", "libgf-complete-dev"]
NOT_RUN = 3
MULTIPLIER = 0x9E3779B97F4A7C15

LIBERATION_WIDTHS = [3, 5, 7, 11, 13, 17, 23]
BLAUM_ROTH_WIDTHS = [2, 4, 6, 10, 12, 16, 22]


def grid():
    """Yields (technique, k, m, w) for every case."""
    for technique in ["cauchy_orig", "cauchy_good"]:
        for m in [1, 2, 3, 4, 6]:
            for k in [1, 2, 3, 5, 6, 10, 14, 20]:
                smallest = max(2, (k + m - 1).bit_length())
                for w in sorted({smallest, smallest + 1, 8}):
                    yield technique, k, m, w
        for w in range(2, 33):
            yield technique, 2, 2, w
            yield technique, 4 if w > 2 else 1, 3, w
    for w in range(2, 11):
        # The row of Q has every element except 0. k + m is one more than the number of elements.
        if 2**w - 1 <= 31:
            yield "cauchy_good", 2**w - 1, 2, w
    yield "cauchy_good", 60, 2, 11
    for technique, widths in [("liberation", LIBERATION_WIDTHS), ("blaum_roth", BLAUM_ROTH_WIDTHS)]:
        for w in widths:
            for k in sorted({1, 2, w // 2, w - 1, w} - {0}):
                yield technique, k, 2, w
    for k in range(1, 9):
        yield "liber8tion", k, 2, 8


def cases():
    """Yields the grid with sizes: packets of 8 to 72 bytes (Jerasure needs multiples of 8), and one to three strips."""
    for number, (technique, k, m, w) in enumerate(grid()):
        packet = 8 * (1 + number % 9)
        yield technique, k, m, w, packet, packet * w * (1 + number % 3)


def fill(shard: int, length: int) -> bytes:
    """Returns the content of a data shard; crates/core/tests/testsuite/jerasure.rs makes the same."""
    return bytes((i + 1) * (i + 1 + shard) * MULTIPLIER % 2**64 >> 56 for i in range(length))


class Library:
    """The program of jerasure.c, in a process of its own."""

    def __init__(self):
        self.process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def encode(self, technique, k, m, w, packet, length) -> list[bytes]:
        """Returns the parity shards of the data shards that `fill` makes."""
        request = f"encode {technique} {k} {m} {w} {packet} {length}\n".encode()
        self.process.stdin.write(request + b"".join(fill(j, length) for j in range(k)))
        self.process.stdin.flush()
        answer = self.process.stdout.read(m * length)
        if len(answer) != m * length:
            sys.exit(f"the library did not answer to: {request.decode()}")
        return [answer[i * length : (i + 1) * length] for i in range(m)]


def fixtures(version: str) -> str:
    """Returns the text of vectors/jerasure.json, a line for each case. The first three small cases of each technique
    state their parity in full, all others its checksums."""
    library, lines, full = Library(), [], {}
    for technique, k, m, w, packet, length in cases():
        parity = library.encode(technique, k, m, w, packet, length)
        case = {"technique": technique, "k": k, "m": m, "w": w, "packet": packet, "length": length}
        full[technique] = full.get(technique, 0) + (k > 2 and m * length <= 1024)
        if k > 2 and m * length <= 1024 and full[technique] <= 3:
            case["parity"] = [shard.hex() for shard in parity]
        else:
            case["crc32"] = [zlib.crc32(shard) for shard in parity]
        lines.append(json.dumps(case))
    head = json.dumps(f"libjerasure {version}")
    return '{\n"library": ' + head + ',\n"cases": [\n' + ",\n".join(lines) + "\n]\n}\n"


def install() -> str:
    """Builds the C program, and returns the version of the library. Ends the program if there is no library."""
    if not pathlib.Path("/usr/include/jerasure/liberation.h").exists():
        try:
            tools.debian(*PACKAGES)
        except tools.Missing as error:
            print(f"*** NOT RUN: the comparison with libjerasure; {error} ***", file=sys.stderr)
            sys.exit(NOT_RUN)
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-O2", "-Wall", "-Werror", "-I/usr/include/jerasure"]
    source = HERE / "jerasure.c"
    subprocess.run(["cc", *flags, source, "-o", PROGRAM, "-lJerasure", "-lgf_complete"], check=True)
    query = ["dpkg-query", "-W", "-f", "${Version}", "libjerasure2"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write vectors/jerasure.json anew")
    parser.add_argument("--fixtures", action="store_true", help="only compare the fixtures")
    parser.add_argument("--fetch", action="store_true", help="only install the library, and build the program that calls it")
    args = parser.parse_args()
    version = install()
    if args.fetch:
        return
    text = fixtures(version)
    if args.write:
        FIXTURES.write_text(text)
        return
    if json.loads(text)["cases"] != json.loads(FIXTURES.read_text())["cases"]:
        sys.exit(f"{FIXTURES} is not what this library makes; see `{sys.argv[0]} --write`")
    if args.fixtures:
        return
    environment = {**os.environ, "PARITAS_JERASURE": str(PROGRAM)}
    # All tests are named, so that what was built for them is used.
    command = ["bash", "-c", ". scripts/setup && cargo_test --workspace jerasure:: -- --nocapture"]
    sys.exit(subprocess.run(command, cwd=ROOT, env=environment).returncode)


if __name__ == "__main__":
    main()
