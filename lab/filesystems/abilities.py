"""What a file system keeps of a file besides its bytes, found out by trying."""

import ctypes
import errno
import functools
import os
import pathlib
import shutil
import subprocess
from typing import Callable, NamedTuple

# Moments before 2038 whose parts are all different, in nanoseconds since 1970, and the steps in which file systems count.
MOMENTS = (1_000_000_001_123_456_789, 1_111_111_113_987_654_321, 1_234_567_891_222_333_111)
STEPS = {1: "1 ns", 100: "100 ns", 1_000: "1 µs", 10_000_000: "10 ms", 1_000_000_000: "1 s", 2_000_000_000: "2 s"}
# Characters and names that some file systems refuse.
NAMES = {":": "a:b", "?": "a?b", "*": "a*b", '"': 'a"b', "<": "a<b", "\\": "a\\b", "dot at the end": "ab.", "blank at the end": "ab "}
AT_FDCWD, NO_REPLACE = -100, 1


class Abilities(NamedTuple):
    """What a file system keeps. A step of 0 means that it keeps no chosen time."""

    modes: bool
    owner: bool
    step: int
    hard_links: bool
    symbolic_links: bool
    acls: bool
    attributes: bool
    sparse: bool
    case: bool
    refused_names: tuple[str, ...]
    no_replace: bool
    space: bool

    @property
    def times(self) -> bool:
        return self.step > 0


def works(act: Callable[[], bool | None]) -> bool:
    """Whether something is not refused, and has the effect that it should have (None counts as such)."""
    try:
        return act() is not False
    except OSError:
        return False


def measure(folder: pathlib.Path) -> Abilities:
    """Tries everything in a folder of its own, which is removed at the end."""
    place = folder / "tried"
    place.mkdir()
    try:
        return Trial(place).abilities()
    finally:
        # A driver that cannot remove a folder is no reason to stop.
        shutil.rmtree(place, ignore_errors=True)


class Trial:
    """Files with which a file system is tried out."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.file = folder / "file"
        self.file.write_bytes(b"content")

    def abilities(self) -> Abilities:
        refused = tuple(shown for shown, name in NAMES.items() if not works(functools.partial(self.name, name)))
        return Abilities(
            modes=works(self.modes),
            owner=works(self.owner),
            step=self.step(),
            hard_links=works(self.hard_link),
            symbolic_links=works(self.symbolic_link),
            acls=works(self.acl),
            attributes=works(self.attribute),
            sparse=works(self.sparse),
            case=not (self.folder / "FILE").exists(),
            refused_names=refused,
            no_replace=works(self.no_replace),
            space=works(lambda: os.statvfs(self.folder).f_blocks > 0),
        )

    def modes(self) -> bool:
        wanted = (0o640, 0o604, 0o751, 0o644)
        for mode in wanted:
            self.file.chmod(mode)
            if self.file.stat().st_mode & 0o7777 != mode:
                return False
        return True

    def owner(self) -> bool:
        os.chown(self.file, 1, 100)
        kept = (self.file.stat().st_uid, self.file.stat().st_gid) == (1, 100)
        os.chown(self.file, os.geteuid(), os.getegid())
        return kept

    def step(self) -> int:
        """Returns the longest step in which all moments that are kept can be counted."""
        kept = []
        for moment in MOMENTS:
            try:
                os.utime(self.file, ns=(moment, moment))
            except OSError:
                return 0
            kept.append(self.file.stat().st_mtime_ns)
        if any(abs(then - moment) > max(STEPS) for then, moment in zip(kept, MOMENTS)):
            return 0
        return max(step for step in STEPS if all(then % step == 0 for then in kept))

    def hard_link(self) -> bool:
        os.link(self.file, self.folder / "link")
        # Some FUSE file systems link files, but show each name as a file of its own.
        return (self.folder / "link").stat().st_nlink == 2 and os.path.samefile(self.file, self.folder / "link")

    def symbolic_link(self) -> bool:
        os.symlink("file", self.folder / "symlink")
        return os.readlink(self.folder / "symlink") == "file"

    def acl(self) -> bool:
        change = ["setfacl", "-m", "u:daemon:r", str(self.file)]
        if subprocess.run(change, capture_output=True).returncode:
            return False
        shown = subprocess.run(["getfacl", "-cp", str(self.file)], capture_output=True, text=True).stdout
        return "user:daemon:r--" in shown

    def attribute(self) -> bool:
        os.setxattr(self.file, "user.paritas", b"value")
        return os.getxattr(self.file, "user.paritas") == b"value"

    def sparse(self) -> bool:
        path = self.folder / "sparse"
        with path.open("wb") as file:
            file.seek(4 << 20)
            file.write(b"end")
        return path.stat().st_blocks * 512 < 1 << 20

    def name(self, name: str) -> bool:
        (self.folder / name).write_bytes(b"")
        return name in os.listdir(self.folder)

    def no_replace(self) -> bool:
        """Renames by renameat2, which must replace nothing."""
        new, taken = self.folder / "new", self.folder / "taken"
        for path in (new, taken):
            path.write_bytes(b"")
        libc = ctypes.CDLL(None, use_errno=True)

        def rename(to: pathlib.Path) -> int:
            code = libc.renameat2(AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(to), NO_REPLACE)
            return 0 if code == 0 else ctypes.get_errno()

        return rename(taken) == errno.EEXIST and rename(self.folder / "free") == 0
