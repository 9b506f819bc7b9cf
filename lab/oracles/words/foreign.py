#!/usr/bin/env python3
"""Writes vectors/foreign/, the fragments of other tools that the tests of import and export read.

    lab/oracles/words/foreign.py

zfec's fragments are made by its own command (PyPI), klauspost/reedsolomon's by Split and Encode, which its
simple encoder calls. (No package has Jerasure's example encoder.) The content of the files is data shard 0 of
vectors/README.md.
"""

import pathlib
import shutil
import subprocess

import run

ROOT = run.ROOT / "vectors" / "foreign"
C, MASK = 0x9E3779B97F4A7C15, (1 << 64) - 1

# name, bytes, k, m
ZFEC = [("two-stripes", 9001, 2, 2), ("tiny.txt", 10, 3, 2), ("wide", 101, 10, 7), ("full", 8192, 2, 1)]
KLAUSPOST = [("split.bin", 1001, 5, 3), ("even", 400, 4, 2)]


def content(length: int) -> bytes:
    """Returns the first `length` bytes of data shard 0."""
    def byte(i: int) -> int:
        z = (256 * i + 1) * C & MASK
        return ((z ^ z >> 32) * C & MASK) >> 56
    return bytes(byte(i) for i in range(length))


def main() -> None:
    run.BUILD.mkdir(parents=True, exist_ok=True)
    _, _, (python, _) = run.zfec()
    _, _, (klauspost,) = run.klauspost()
    shutil.rmtree(ROOT, ignore_errors=True)
    source = run.BUILD / "source"
    for name, length, k, m in ZFEC:
        folder = ROOT / "zfec" / name
        folder.mkdir(parents=True)
        source.write_bytes(content(length))
        command = [python.parent / "zfec", "-k", k, "-m", k + m, "-d", folder, "-p", name, source]
        subprocess.run([*map(str, command)], check=True)
    for name, length, k, m in KLAUSPOST:
        folder = ROOT / "klauspost" / name
        folder.mkdir(parents=True)
        source.write_bytes(content(length))
        subprocess.run([*map(str, [klauspost, "split", source, folder / name, k, m])], check=True)
    (ROOT / ".gitattributes").write_text("* -text\n")
    print(sum(1 for path in ROOT.rglob("*") if path.is_file()), "files in", pathlib.Path(ROOT))


if __name__ == "__main__":
    main()
