"""Looks up the commits that documents cite: in their text, and by naming a record of lab/records, whose first line has its commit."""

import csv
import re
import subprocess
from typing import Iterator

import records

COMMIT = re.compile(r"\bcommit ([0-9a-f]{7,40}(?:-(?:dirty|command)[-0-9a-f]*)?)\b")
RECORD = re.compile(r"`(?:lab/records/)?([\w./+-]+\.csv)`")


def doubts() -> list[str]:
    """Returns a line for each document and commit that nobody can look up here: one that this clone lacks, or a tree that was
    changed and not committed."""
    if is_shallow():
        return ["whether the commits that documents cite exist is not known: this clone has no whole history"]
    lines = []
    for path in [records.ROOT / "README.md", *sorted((records.ROOT / "docs").glob("*.md"))]:
        # Of several places in a document, the last one to be found is named.
        for commit, place in dict(commits(path.read_text())).items():
            if why := doubt(commit):
                lines.append(f"{path.relative_to(records.ROOT)}, {place}: commit {commit} {why}")
    return lines


def commits(text: str) -> Iterator[tuple[str, str]]:
    """Yields each commit that a document cites, and where: in its text, or in which record."""
    yield from ((found[1], "text") for found in COMMIT.finditer(text))
    for found in RECORD.finditer(text):
        path = records.FOLDER / found[1]
        if path.is_file():
            with open(path, newline="") as file:
                stated = (COMMIT.fullmatch(f"commit {field}") for field in next(csv.reader(file)))
                yield from ((field[1], found[1]) for field in stated if field)


def doubt(commit: str) -> str:
    """Returns why a commit cannot be looked up; empty if it can."""
    known = not subprocess.run(["git", "cat-file", "-e", f"{commit.partition('-')[0]}^{{commit}}"], cwd=records.ROOT, capture_output=True).returncode
    reasons = ["" if known else "is not in this repository", "" if records.is_plain(commit) else "is not just what was measured"]
    return " and ".join(filter(None, reasons))


def is_shallow() -> bool:
    """Whether this tree is no clone, or a clone without all commits."""
    asked = ["git", "rev-parse", "--is-shallow-repository"]
    return subprocess.run(asked, cwd=records.ROOT, capture_output=True, text=True).stdout.strip() != "false"
