#!/usr/bin/env python3
"""Keeps parity beside repositories of backups, as docs/backups.md advises, and prints what it takes: `lab/backups/run.py`.

For restic, borg and git-annex: snapshots of a tree that changes, old ones forgotten and pruned, and after each backup the
repository's own check and then `paritas protect --update`. At the end packs and indexes are damaged and deleted. The
repository's own check must find that, `paritas repair` must restore it, the check must be clean afterwards, and the
newest snapshot must be the tree. `--bytes 10G --snapshots 30` is what docs/backups.md shows; `--write` puts it there.
"""

import argparse
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import records  # noqa: E402
import tools  # noqa: E402
from common import differences, end_when_told, parse_bytes, run  # noqa: E402

PAGE = tools.ROOT / "docs" / "backups.md"


def fails(*command, **more) -> bool:
    """Whether a command ends with another exit code than 0."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    return done.returncode != 0


class Tree:
    """The files that are backed up: of all sizes, with bytes that cannot be compressed."""

    def __init__(self, folder: pathlib.Path, size: int, chance: random.Random):
        self.folder, self.chance, self.count = folder, chance, 0
        folder.mkdir()
        self.add(size)

    def add(self, size: int) -> None:
        while size > 0:
            length = min(size, int(self.chance.choice([2e3, 5e4, 1e6, 2e7]) * self.chance.uniform(0.2, 2)))
            path = self.folder / f"{self.count % 50:02}" / f"{self.count:06}"
            path.parent.mkdir(exist_ok=True)
            with path.open("wb") as file:
                for start in range(0, length, 1 << 24):
                    file.write(self.chance.randbytes(min(1 << 24, length - start)))
            self.count, size = self.count + 1, size - length

    def change(self, share: float) -> None:
        """Removes and adds a share of the bytes."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        total = sum(path.stat().st_size for path in files)
        removed = 0
        self.chance.shuffle(files)
        while removed < total * share:
            path = files.pop()
            removed += path.stat().st_size
            path.unlink()
        self.add(removed)


class Restic:
    """Packs in data/, which prunes remove; index/ and snapshots/ beside; locks/ come and go."""

    name, excluded, removable = "restic", ["/locks"], ["data/", "index/", "snapshots/"]

    def __init__(self, folder: pathlib.Path, tree: Tree):
        self.repository, self.tree, self.work = folder / "restic", tree, folder
        self.environment = os.environ | {"RESTIC_PASSWORD": "a", "RESTIC_REPOSITORY": str(self.repository),
                                         "RESTIC_CACHE_DIR": str(folder / "cache")}
        tools.debian("restic") if not shutil.which("restic") else None
        self.run("init")

    def run(self, *words):
        return run("restic", *words, env=self.environment)

    def back_up(self) -> None:
        self.run("backup", self.tree.folder)

    def prune(self, keep: int) -> None:
        self.run("forget", "--keep-last", keep, "--prune")

    def check(self) -> None:
        self.run("check")

    def check_deep(self) -> None:
        self.run("check", "--read-data")

    def is_damaged(self) -> bool:
        return fails("restic", "check", "--read-data", env=self.environment)

    def restored(self, to: pathlib.Path) -> pathlib.Path:
        self.run("restore", "latest", "--target", to)
        return to / self.tree.folder.relative_to("/")

    def victims(self):
        """Files to damage, and one to delete."""
        packs = sorted(path for path in (self.repository / "data").rglob("*") if path.is_file())
        indexes = sorted((self.repository / "index").iterdir())
        return packs[::max(len(packs) // 4, 1)], indexes[0]


class Borg:
    """Segments in data/, which `compact` removes; index, hints and integrity are written anew by each command."""

    name, excluded, removable = "borg", ["/lock.*"], ["data/", "/index.*", "/hints.*", "/integrity.*"]

    def __init__(self, folder: pathlib.Path, tree: Tree):
        self.repository, self.tree, self.number = folder / "borg", tree, 0
        self.environment = os.environ | {"BORG_REPO": str(self.repository), "BORG_BASE_DIR": str(folder / "base"),
                                         "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
        tools.debian("borgbackup") if not shutil.which("borg") else None
        self.run("init", "--encryption", "none")

    def run(self, *words, **more):
        return run("borg", *words, env=self.environment, **more)

    def back_up(self) -> None:
        self.number += 1
        self.run("create", f"::{self.number:04}", self.tree.folder.name, cwd=self.tree.folder.parent)

    def prune(self, keep: int) -> None:
        self.run("prune", "--keep-last", keep)
        self.run("compact")

    def check(self) -> None:
        self.run("check", "--repository-only")

    def check_deep(self) -> None:
        self.run("check", "--verify-data")

    def is_damaged(self) -> bool:
        return fails("borg", "check", "--verify-data", env=self.environment)

    def restored(self, to: pathlib.Path) -> pathlib.Path:
        to.mkdir()
        self.run("extract", f"::{self.number:04}", cwd=to)
        return to / self.tree.folder.name

    def victims(self):
        segments = sorted((path for path in (self.repository / "data").rglob("*") if path.is_file()),
                          key=lambda path: path.stat().st_size)[::-1]
        return segments[:3], min((self.repository / "data").rglob("*"), key=lambda path: (path.is_dir(), path.name))


class GitAnnex:
    """Objects under .git/annex/objects; `dropunused` removes those that no branch has any more. The files of the tree
    are links to them."""

    name, excluded, removable = "git-annex", ["/.git/annex/tmp", "*.lck", "*.lock"], [".git/annex/objects/"]

    def __init__(self, folder: pathlib.Path, tree: Tree):
        self.repository, self.tree = folder / "annex", tree
        self.environment = os.environ | {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
                                         "GIT_COMMITTER_EMAIL": "a@b", "HOME": str(folder)}
        tools.debian("git-annex", "git") if not shutil.which("git-annex") else None
        self.repository.mkdir()
        self.run("init")
        self.run("annex", "init", "backup")

    def run(self, *words):
        return run("git", *words, cwd=self.repository, env=self.environment)

    def back_up(self) -> None:
        for path in self.repository.iterdir():
            if path.name not in (".git", ".paritas"):
                shutil.rmtree(path)
        shutil.copytree(self.tree.folder, self.repository, dirs_exist_ok=True)
        self.run("annex", "add", ".")
        self.run("commit", "--quiet", "--all", "--message", "snapshot")

    def prune(self, keep: int) -> None:
        self.run("annex", "unused")
        self.run("annex", "dropunused", "all", "--force")

    def check(self) -> None:
        self.run("annex", "fsck", "--fast", "--quiet")

    def check_deep(self) -> None:
        self.run("annex", "fsck", "--quiet")

    def is_damaged(self) -> bool:
        # `annex fsck` moves what is damaged away, so git alone looks here.
        return fails("git", "fsck", cwd=self.repository, env=self.environment)

    def restored(self, to: pathlib.Path) -> pathlib.Path:
        shutil.copytree(self.repository, to, ignore=shutil.ignore_patterns(".git", ".paritas"))
        return to

    def victims(self):
        objects = sorted((path for path in (self.repository / ".git/annex/objects").rglob("*") if path.is_file()),
                         key=lambda path: path.stat().st_size)[::-1]
        loose = sorted(path for path in (self.repository / ".git/objects").rglob("*") if path.is_file())
        return objects[:3] + loose[:1], loose[-1]


PROGRAMS = {kind.name: kind for kind in (Restic, Borg, GitAnnex)}


def bytes_in(folder: pathlib.Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def spoil(path: pathlib.Path, chance: random.Random) -> None:
    """Flips a bit every some megabytes, also of files that may not be written. Unlike a disk that rots, this changes the
    system's own time of change, so `repair` must be told to restore what has changed."""
    before = path.stat()
    path.chmod(before.st_mode | 0o200)
    length = before.st_size
    with path.open("r+b") as file:
        for _ in range(1 + (length >> 22)):
            place = chance.randrange(length)
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 0x40]))
    path.chmod(before.st_mode)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def walk(program, kind, size: int, snapshots: int, keep: int) -> list[str]:
    """Backs up, protects, damages and repairs; returns a row of the table."""
    chance = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        tree = Tree(folder / "tree", size, chance)
        parity = folder / "parity"
        parity.mkdir()
        repository = kind(folder, tree)
        first, updates, written = 0.0, [], []
        flags = [word for pattern in repository.excluded for word in ("--exclude", pattern)]
        accepted = [word for pattern in repository.removable for word in ("--accept-removals", pattern)]
        for number in range(snapshots):
            if number:
                tree.change(0.02)
            repository.back_up()
            if number % keep == keep - 1:
                repository.prune(keep // 2)
            repository.check()
            start = time.monotonic()
            if number:
                run(program, "protect", "--update", parity, *accepted)
                updates.append(time.monotonic() - start)
            else:
                run(program, "protect", repository.repository, "--parity-dir", parity, *flags)
                first = time.monotonic() - start
            written.append(bytes_in(parity))
        stored = bytes_in(repository.repository)
        run(program, "verify", parity)
        damaged, deleted = repository.victims()
        for path in damaged:
            spoil(path, chance)
        deleted.chmod(0o600)
        deleted.unlink()
        if not repository.is_damaged():
            raise SystemExit(f"{kind.name} does not see that its repository is damaged")
        run(program, "verify", parity, expect=(1,))
        start = time.monotonic()
        run(program, "repair", "--restore-changed", parity)
        repaired = time.monotonic() - start
        run(program, "repair", parity, "--clean")
        repository.check_deep()
        if differ := differences(tree.folder, repository.restored(folder / "restored")):
            raise SystemExit(f"{kind.name}: what is restored differs from what was backed up: {', '.join(differ)}")
        return [f"{kind.name}", f"{stored / 1e9:.2f} GB", f"{snapshots}", f"{first:.1f} s",
                f"{statistics.median(updates):.2f} s ({max(updates):.1f} s)", f"{100 * written[-1] / stored:.1f} %",
                f"{len(damaged)} damaged, 1 deleted: {repaired:.1f} s"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    options.add_argument("--bytes", type=parse_bytes, default="64M", help="bytes of the tree, as 64M or 10G")
    options.add_argument("--snapshots", type=int, default=8)
    options.add_argument("--keep", type=int, default=4, help="prune after as many snapshots, and keep half of them")
    options.add_argument("--only", choices=PROGRAMS)
    options.add_argument("--write", action="store_true", help="put the table into docs/backups.md")
    given = options.parse_args()
    program = tools.paritas(given.paritas)
    end_when_told()
    rows = []
    for name, kind in PROGRAMS.items():
        if given.only in (None, name):
            rows.append(walk(program, kind, given.bytes, given.snapshots, given.keep))
            print(" | ".join(rows[-1]), flush=True)
    if given.write:
        heads = ["repository of", "size", "snapshots", "first parity", "update, median (longest)", "parity", "repair"]
        lines = ["| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows]]
        before, rest = PAGE.read_text().split("<!-- table -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        PAGE.write_text(f"{before}<!-- table -->\n\n" + "\n".join(lines) + f"\n\n<sub>`{records.command()}`</sub>\n\n<!-- end -->{after}")
    print(f"{len(rows)} passed, 0 failed")


if __name__ == "__main__":
    main()
