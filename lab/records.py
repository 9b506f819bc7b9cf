"""Keeps the raw samples of measurements in lab/records/, and reads them again.

A record is a CSV file. Its first line names the columns and ends with what all samples have in common: the processor,
the commit (see `commit`), the date and the command. A command that ends in `# inferred` was not kept when the samples were
taken; it follows from them.
"""

import contextlib
import csv
import datetime
import hashlib
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Iterator, NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "lab" / "records"
# What git is asked to leave out.
RECORDS = ":!lab/records"


class Origin(NamedTuple):
    """Where samples come from."""

    processor: str
    commit: str
    date: str
    command: str


class Record(NamedTuple):
    name: str
    origin: Origin
    rows: list[dict[str, str]]


def origin(named: str | None = None) -> Origin:
    """The origin of what this process measures now. `named` is the command that is measured, if it was not built of this tree."""
    return Origin(processor(), commit(named), datetime.date.today().isoformat(), command())


def command() -> str:
    """Returns the command line of this process as it was called, without options that name places."""
    program = pathlib.Path(sys.argv[0]).resolve().relative_to(ROOT)
    return shlex.join([str(program), *without_places(sys.argv[1:])])


def commit(named: str | None) -> str:
    """Returns the commit of the tree. Where the tree differs from it, `-dirty-` and a digest of the differences follow; where
    a command was named, which may be of any tree, `-command-` and a digest of it."""
    found = git("rev-parse", "--short", "HEAD").decode().strip()
    if differences := changes():
        found += f"-dirty-{digest(differences)}"
    if named:
        found += f"-command-{digest(pathlib.Path(named).read_bytes())}"
    return found


def changes() -> bytes:
    """Returns how the tree differs from its commit, without records, and with new files among the sources."""
    new = git("ls-files", "-z", "--others", "--exclude-standard", "--", "crates", "lab", RECORDS).split(b"\0")
    contents = ((ROOT / os.fsdecode(path)).read_bytes() for path in new if path)
    return b"".join([git("diff", "--no-ext-diff", "--binary", "HEAD", "--", ".", RECORDS), *contents])


def git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True)
    if done.returncode:
        sys.exit(f"records state their commit, but git does not tell it: {done.stderr.decode().strip()}")
    return done.stdout


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:8]


def is_plain(commit: str) -> bool:
    """Whether figures are of a commit and nothing else."""
    return "-" not in commit


# Options that name a place on this machine, which tells a reader nothing.
PLACES = ("--paritas", "--records", "--before")


def without_places(words: list[str]) -> list[str]:
    """Returns the words of a command without the options that name places."""
    pairs = zip([""] + words, words)
    return [word for before, word in pairs if before not in PLACES and word.partition("=")[0] not in PLACES]


def processor() -> str:
    return named(pathlib.Path("/proc/cpuinfo").read_text())


def named(facts: str) -> str:
    """Returns the name of a processor that the system describes by `facts`. A name that many models share, as virtual machines give
    them ("AMD EPYC"), gets the numbers of the model."""
    found: dict[str, str] = {}
    for line in facts.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    name = found.get("model name", platform.machine())
    if any(map(str.isdigit, name)) or not {"cpu family", "model"} <= found.keys():
        return name
    return f"{name} (family {found['cpu family']}, model {found['model']})"


@contextlib.contextmanager
def keep(kind: str, label: str, columns: list[str], source: Origin) -> Iterator:
    """Opens the record KIND-DATE-LABEL.csv and yields a writer for its rows. The record appears when the measurement
    ends without an error; until then its name ends in `.part`."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / ("-".join(filter(None, [kind, source.date, label])) + ".csv")
    part = path.with_suffix(".csv.part")
    with open(part, "w", newline="", buffering=1) as file:
        writer = csv.writer(file)
        writer.writerow([*columns, *source])
        yield writer
    os.replace(part, path)


def load(name: str) -> Record:
    """Reads the record `name`; ends the program if there is none, or if it does not state its origin."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        sys.exit(f"{path.relative_to(ROOT)} does not exist")
    with open(path, newline="") as file:
        header, *rows = csv.reader(file)
    width = len(rows[0]) if rows else 0
    columns, source = header[:width], header[width:]
    if not rows or len(source) != len(Origin._fields):
        sys.exit(f"{path.relative_to(ROOT)} must have samples and state {', '.join(Origin._fields)}; measure again")
    return Record(name, Origin(*source), [dict(zip(columns, row)) for row in rows])
