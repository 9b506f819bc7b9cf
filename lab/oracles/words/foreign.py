#!/usr/bin/env python3
"""Writes vectors/foreign/: fragments made by other people's tools, for the tests of import and export.

    lab/oracles/words/foreign.py

zfec's own command (PyPI), and klauspost/reedsolomon's Split and Encode, which is what its simple encoder
calls. (Jerasure's example encoder is in no package.) The files' content is data shard 0 of
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
    """Data shard 0."""
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
