#!/usr/bin/env python3
"""Compares Paritas's word codes with the libraries that define them, byte by byte and in both directions.

    lab/oracles/words/run.py [--write] [--only isal,jerasure,zfec,klauspost,simd]

ISA-L and Jerasure (Debian's libisal-dev and libjerasure-dev), zfec (PyPI), klauspost/reedsolomon (Go) and the crate
reed-solomon-simd are installed if they are missing. A small program serves each library (c/serve.h describes the protocol). For a grid of k, m, w and
lengths, crates/core/examples/words_oracle has both sides encode, compares the bytes, has each side decode what the
other encoded, and prints what it compared. With --write, vectors/oracles/words.json and long.json are written instead,
for the tests on machines without these libraries.

Exits with 1 if bytes differ, and with 2 if none differ but a library was skipped.
"""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

import tools  # noqa: E402
from tools import ROOT, Missing  # noqa: E402

BUILD = tools.target() / "oracles-words"
FIXTURES = ROOT / "vectors" / "oracles"
BYTES_A_JERASURE_LONG = 8


def run(*command, **options) -> str:
    """Runs a command, which must succeed, and returns what it prints."""
    done = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, **options)
    return done.stdout


def install(*command, **options) -> str:
    """Runs a command without which a library cannot be had."""
    try:
        return run(*command, **options)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(error) from error


def debian(package: str, header: str) -> str:
    """Installs a package if its header is missing, and returns its version."""
    if not pathlib.Path("/usr/include", header).exists():
        tools.debian(package)
    return run("dpkg-query", "-W", "-f", "${Version}", package)


def compile_c(name: str, *libraries: str) -> list:
    flags = ["-O2", "-Wall", "-I/usr/include/jerasure"]
    run("cc", *flags, HERE / "c" / f"{name}.c", "-o", BUILD / name, *libraries)
    return [BUILD / name]


class Oracle(NamedTuple):
    """A library: its name and version, its codes (FAMILY/W/UNIT, where lengths are multiples of UNIT), and the command
    that serves it."""

    title: str
    groups: list[str]
    program: list


def isal() -> Oracle:
    version = debian("libisal-dev", "isa-l.h")
    return Oracle(f"ISA-L {version}", ["isal-cauchy/8/1", "isal-rs/8/1", "raid6/8/32"], compile_c("isal", "-lisal"))


def jerasure() -> Oracle:
    version = debian("libjerasure-dev", "jerasure.h")
    groups = [f"{family}/{w}/{BYTES_A_JERASURE_LONG}" for family in ("reed-solomon", "raid6") for w in (8, 16, 32)]
    return Oracle(f"Jerasure {version}", groups, compile_c("jerasure", "-lJerasure", "-lgf_complete"))


def zfec() -> Oracle:
    python = tools.zfec() / "python"
    return Oracle(f"zfec {tools.ZFEC}", ["zfec/8/1"], [python, HERE / "serve_zfec.py"])


def klauspost() -> Oracle:
    tools.go()
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    install("go", "mod", "download", cwd=HERE / "go", env=environment)
    run("go", "build", "-o", BUILD / "klauspost", ".", cwd=HERE / "go", env=environment)
    module = "github.com/klauspost/reedsolomon"
    version = run("go", "list", "-m", "-f", "{{.Version}}", module, cwd=HERE / "go", env=environment).strip()
    return Oracle(f"klauspost/reedsolomon {version}", ["backblaze/8/1", "leopard8/8/64", "leopard16/16/64"],
                  [BUILD / "klauspost"])


def simd() -> Oracle:
    manifest = HERE / "simd" / "Cargo.toml"
    install("cargo", "build", "--quiet", "--release", "--manifest-path", manifest, "--target-dir", BUILD / "simd")
    lock = tomllib.loads((HERE / "simd" / "Cargo.lock").read_text())
    version = next(package["version"] for package in lock["package"] if package["name"] == "reed-solomon-simd")
    return Oracle(f"reed-solomon-simd {version}", ["leopard16/16/2"], [BUILD / "simd" / "release" / "simd-oracle"])


ORACLES = {"isal": isal, "jerasure": jerasure, "zfec": zfec, "klauspost": klauspost, "simd": simd}


class Comparison(NamedTuple):
    """What `words_oracle` printed of a library, and whether bytes differ."""

    printed: str
    differs: bool


def compare(oracle: Oracle, *options: str) -> Comparison:
    command = [tools.target() / "debug" / "examples" / "words_oracle", oracle.title, *oracle.groups, *options, "--", *oracle.program]
    try:
        return Comparison(run(*command), False)
    except subprocess.CalledProcessError as error:
        return Comparison(error.stdout, True)


def write_fixtures(cases: list[str]) -> None:
    long = [case for case in cases if json.loads(case)["spec"].startswith("leopard16:")]
    for name, chosen in ("words.json", [case for case in cases if case not in long]), ("long.json", long):
        (FIXTURES / name).write_text('{"version": 1, "cases": [\n' + ",\n".join(chosen) + "\n]}\n")
        print(f"{len(chosen)} cases written to {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the files of vectors/oracles instead")
    parser.add_argument("--only", default=",".join(ORACLES), help="the libraries, separated by commas")
    parser.add_argument("--fetch", action="store_true", help="only install and build the libraries")
    args = parser.parse_args()
    BUILD.mkdir(parents=True, exist_ok=True)
    if args.fetch:
        for oracle in map(ORACLES.get, args.only.split(",")):
            with contextlib.suppress(Missing):
                oracle()
        return
    run("bash", "-c", ". scripts/setup && build_all", cwd=ROOT)
    cases, skipped, differ = [], [], []
    for name in args.only.split(","):
        try:
            oracle = ORACLES[name]()
        except Missing as error:
            skipped.append(f"{name}: {error}")
            continue
        compared = compare(oracle, *(["--write"] if args.write else []))
        if compared.differs:
            differ.append(oracle.title)
        if args.write:
            cases += compared.printed.splitlines()
        else:
            print(compared.printed, end="", flush=True)
    for line in skipped:
        print(f"SKIPPED {line}")
    print(f"{len(args.only.split(',')) - len(skipped)} libraries compared, {len(skipped)} skipped, "
          f"{len(differ)} differ {differ or ''}")
    if args.write and not skipped and not differ:
        write_fixtures(cases)
    sys.exit(1 if differ else 2 if skipped else 0)


if __name__ == "__main__":
    main()
