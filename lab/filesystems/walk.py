"""The walk through all that Paritas does with files, in a folder on some file system.

It has a few cells, each of which is run by itself: protection in place, restored files in another folder, shards, and a volume
of three folders. In each, bytes are compared, exit codes are checked, nothing unknown may lie about at the end, and what the file
system keeps of a file (abilities.py) must be as it was. What it cannot keep may be told once for each kind, as a warning.
"""

import filecmp
import os
import pathlib
import random
import re
import shutil
import subprocess
from typing import Callable, Iterable, NamedTuple

import abilities

# A name that a file gets when repair replaces what is in it.
KEPT = re.compile(r"\.damaged-")
# The name of the list of restored files, which a repair writes beside the parity.
RESTORED = re.compile(r"\.paritas/tree-[0-9a-f]{8}\.restored\.parity")
# A name of 120 bytes. What a command adds to it is too much where names are encrypted.
LONG_NAME = "я" * 60
# A moment at which files of the walk have changed last.
MOMENT = 1_400_000_001_123_456_700


class Wrong(Exception):
    """Something did not happen as it should."""


class Done(NamedTuple):
    """A command that has ended."""

    command: str
    code: int
    out: str
    err: str

    @property
    def warnings(self) -> list[str]:
        found = (line.partition("warning: ") for line in self.err.splitlines())
        return [warning for before, _, warning in found if warning and before in ("", "paritas: ")]

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.out}{self.err}exit code {self.code}"


class Paritas:
    """The command, which notes what it warned of."""

    def __init__(self, program: pathlib.Path, user: tuple[str, ...] = ()):
        self.program, self.user = program, user
        self.warnings: list[str] = []

    def __call__(self, *arguments: object, exits: Iterable[int] = (0,), stdin: bytes = b"") -> Done:
        """Runs the command, which must end with one of these codes and warn of nothing twice."""
        words = [str(word) for word in arguments]
        ran = subprocess.run([*self.user, str(self.program), *words], input=stdin, capture_output=True)
        out, err = (text.decode(errors="replace") for text in (ran.stdout, ran.stderr))
        done = Done(" ".join(["paritas", *words]), ran.returncode, out, err)
        if done.code not in tuple(exits):
            raise Wrong(f"the exit code should be one of {list(exits)}\n{done}")
        kinds = [kind_of(warning) for warning in done.warnings]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise Wrong(f"the same warning comes {kinds.count(kind)} times\n{done}")
        self.warnings += [kind for kind in kinds if kind not in self.warnings]
        return done


def kind_of(warning: str) -> str:
    """Returns a warning without the names and numbers in it."""
    words = ("…" if "/" in word or ".paritas" in word else word for word in warning.split())
    return re.sub(r"\d+", "#", " ".join(words))


def check(right: bool, message: str) -> None:
    if not right:
        raise Wrong(message)


def same(one: pathlib.Path, other: pathlib.Path) -> None:
    """Compares the bytes of two files."""
    check(other.is_file(), f"there is no file {other}")
    check(filecmp.cmp(one, other, shallow=False), f"{other} has other bytes than {one}")


def listing(folder: pathlib.Path) -> set[str]:
    """Names all that is below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def expect_listing(folder: pathlib.Path, expected: set[str]) -> None:
    found = listing(folder)
    check(found == expected, f"in {folder} are {sorted(found - expected)} too many, {sorted(expected - found)} too few")


def bytes_of(seed: int, length: int) -> bytes:
    return random.Random(seed).randbytes(length)


def damage(file: pathlib.Path, at: int = 1000) -> None:
    """Changes a byte, and keeps the time where the file system lets one choose it."""
    before = file.stat().st_mtime_ns
    with file.open("r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte[0] ^ 255]))
    set_time(file, before)


def set_time(file: pathlib.Path, moment: int = MOMENT) -> None:
    abilities.works(lambda: os.utime(file, ns=(moment, moment)))


def acl_of(file: pathlib.Path) -> str:
    """Returns the access control list, in which the rights of owner, group and others are those of the mode."""
    return subprocess.run(["getfacl", "-cp", str(file)], capture_output=True, text=True).stdout


class Tree:
    """A folder with a file of each sort that a file system can have."""

    def __init__(self, folder: pathlib.Path, able: abilities.Abilities):
        self.folder, self.able = folder, able
        folder.mkdir()
        (folder / "sub" / "deep").mkdir(parents=True)
        for name, length in {"a.bin": 200_000, "sub/b.bin": 50_000, "sub/empty": 0, "sub/deep/c.txt": 300, "keep": 10, "keep-too": 10, LONG_NAME: 20_000}.items():
            self.file(name, bytes_of(length, length), 0o640)
        self.file("holes.img", bytes_of(1, 5000), 0o600, at=3 << 20)
        self.decorate("sub/b.bin")
        if able.hard_links:
            os.link(folder / "a.bin", folder / "sub" / "twin")
        if able.symbolic_links:
            os.symlink("b.bin", folder / "sub" / "symlink")
        if able.owner:
            # A file that is restored belongs to whom its folder belongs.
            for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
                os.chown(place, 1, 100)
        self.attributes = {name: self.known(name) for name in listing(folder)}

    def file(self, name: str, content: bytes, mode: int, at: int = 0) -> None:
        """Writes a file whose content begins behind a hole of `at` bytes."""
        path = self.folder / name
        with path.open("wb") as file:
            file.seek(at)
            file.write(content)
        if self.able.owner:
            os.chown(path, 1, 100)
        if self.able.modes:
            path.chmod(mode)
        set_time(path)

    def decorate(self, name: str) -> None:
        """Gives a file an ACL entry and an attribute, where they are kept."""
        path = self.folder / name
        if self.able.attributes:
            os.setxattr(path, "user.paritas", b"value")
        if self.able.acls:
            subprocess.run(["setfacl", "-m", "u:daemon:r", str(path)], check=True)
        set_time(path)

    def known(self, name: str) -> dict[str, object]:
        """Returns what the file system keeps of a file."""
        path, able = self.folder / name, self.able
        status = path.lstat()
        known: dict[str, object] = {"type": status.st_mode >> 12}
        if path.is_symlink():
            return known | {"target": os.readlink(path)}
        if able.modes:
            known["mode"] = oct(status.st_mode & 0o7777)
        if path.is_dir():
            return known
        known["size"] = status.st_size
        if able.owner:
            known["owner"] = (status.st_uid, status.st_gid)
        if able.times:
            known["time"] = status.st_mtime_ns
        if able.hard_links and path.name == "twin":
            known["links"] = status.st_nlink
        if able.attributes:
            known["attributes"] = [name for name in os.listxattr(path) if name.startswith("user.")]
        if able.acls:
            known["acl"] = [entry for entry in acl_of(path).splitlines() if entry.startswith("user:daemon")]
        if able.sparse:
            known["sparse"] = status.st_blocks * 512 < status.st_size / 2
        return known

    def expect_attributes(self) -> None:
        """Compares what is kept of all files with what it was, and names all differences."""
        wrong = []
        for name, before in self.attributes.items():
            now = self.known(name)
            wrong += [f"{name}: {key} was {before[key]!r}, is {now.get(key)!r}" for key in before if now.get(key) != before[key]]
        check(not wrong, "what the file system keeps was not restored:\n" + "\n".join(wrong))


class Walk:
    """The walk through one place, with a scratch folder elsewhere."""

    def __init__(self, program: pathlib.Path, place: pathlib.Path, scratch: pathlib.Path):
        self.place, self.scratch = place, scratch
        self.paritas = Paritas(program)
        self.able = abilities.measure(place)

    def cells(self) -> dict[str, Callable[[], None]]:
        return {"protect": self.protect, "repair --to": self.restore, "shards": self.shards, "volume": self.volume}

    # Protection

    def protect(self) -> None:
        paritas, root = self.paritas, self.place / "tree"
        tree = Tree(root, self.able)
        copy = self.scratch / "copy"
        paritas("protect", root, "--redundancy", "150%")
        paritas("verify", root)
        tree.file("sub/new.bin", bytes_of(7, 30_000), 0o600)
        tree.attributes["sub/new.bin"] = tree.known("sub/new.bin")
        paritas("protect", "--update", root)
        paritas("verify", root)
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".paritas"))
        before = listing(root)
        damage(root / "a.bin")
        damage(root / LONG_NAME)
        for name in ("sub/b.bin", "sub/empty", "holes.img", "sub/new.bin", "sub/symlink"):
            (root / name).unlink(missing_ok=True)
        shutil.rmtree(root / "sub" / "deep")
        paritas("verify", root, exits=[1])
        # What has written the wrong byte is a program, whose doing is kept where the file system shows it.
        paritas("repair", "--restore-changed", root)
        self.expect_bytes(copy, root)
        self.clean(root)
        lists = {name for name in listing(root) if RESTORED.fullmatch(name)}
        check(len(lists) == 1, f"the repair has written the lists {sorted(lists)} of restored files")
        expect_listing(root, before | lists)
        tree.expect_attributes()
        paritas("verify", root)

    def clean(self, root: pathlib.Path) -> None:
        """Removes what repair has kept beside, if it has."""
        if any(KEPT.search(name) for name in listing(root)):
            self.paritas("repair", "--clean", root)

    def expect_bytes(self, copy: pathlib.Path, root: pathlib.Path) -> None:
        for path in copy.rglob("*"):
            if path.is_file() and not path.is_symlink():
                same(path, root / path.relative_to(copy))

    def restore(self) -> None:
        """Restores files of another file system, which keeps everything, into the place."""
        paritas, parity, to = self.paritas, self.scratch / "parity", self.place / "restored"
        home = abilities.measure(self.scratch)
        tree = Tree(self.scratch / "home", home)
        copy = self.scratch / "home-copy"
        parity.mkdir()
        to.mkdir()
        paritas("protect", tree.folder, "--parity-dir", parity, "--redundancy", "300%")
        shutil.copytree(tree.folder, copy, symlinks=True)
        gone = ("a.bin", "sub/twin", "sub/b.bin", "holes.img", "sub/symlink")
        for name in gone:
            (tree.folder / name).unlink(missing_ok=True)
        # A link that cannot be made may count as something that was not restored.
        done = paritas("repair", tree.folder, parity, "--to", to, exits=[0] if self.able.symbolic_links else [0, 5])
        for name in gone[:-1]:
            same(copy / name, to / name)
        expected = {"sub", *gone} - (set() if self.able.symbolic_links else {"sub/symlink"})
        expect_listing(to, expected)
        for kind, is_kept in {"modes": self.able.modes, "times": self.able.times}.items():
            check(is_kept or kind in done.out + done.err, f"{kind} cannot be kept, and nothing says so\n{done}")

    # Shards

    def shards(self) -> None:
        paritas, folder, source = self.paritas, self.place / "shards", self.source()
        paritas("encode", source, "--code", "4+2", "--out", folder)
        names = {f"payload.bin.{index}of6.paritas" for index in range(6)}
        expect_listing(folder, names)
        paritas("verify", folder)
        self.decode(source, folder)
        damage(folder / "payload.bin.0of6.paritas")
        (folder / "payload.bin.1of6.paritas").unlink()
        paritas("verify", folder, exits=[1])
        self.decode(source, folder)
        paritas("repair", folder)
        expect_listing(folder, names)
        (folder / "payload.bin.3of6.paritas").write_bytes(b"not a shard")
        paritas("repair", folder)
        paritas("repair", folder, "--remove-moved-aside")
        expect_listing(folder, names)
        paritas("encode", source, "--code", "4+2", "--out", folder, exits=[3])
        paritas("encode", source, "--code", "4+2", "--out", folder, "--force")
        expect_listing(folder, names)
        paritas("verify", folder)
        (folder / "payload.bin.5of6.paritas").unlink()
        other = self.folders("other")[0]
        paritas("repair", folder, "--to", other)
        expect_listing(other, {"payload.bin.5of6.paritas"})
        paritas("verify", folder, other)
        self.spread(source)
        self.promotion(source)
        self.odd_name(source)
        self.long_name(source)

    def source(self) -> pathlib.Path:
        source = self.scratch / "payload.bin"
        source.write_bytes(bytes_of(3, 150_001))
        source.chmod(0o640)
        os.chown(source, 1, 100)
        set_time(source)
        return source

    def folders(self, *names: str) -> list[pathlib.Path]:
        made = [self.place / name for name in names]
        for folder in made:
            folder.mkdir()
        return made

    def decode(self, source: pathlib.Path, folder: pathlib.Path) -> None:
        back = self.place / "back.bin"
        self.paritas("decode", folder, "--out", back)
        same(source, back)
        if self.able.modes:
            check(back.stat().st_mode & 0o7777 == 0o640, f"{back} has the mode {oct(back.stat().st_mode)}")
        if self.able.times:
            late = abs(back.stat().st_mtime_ns - MOMENT)
            check(late <= self.able.step, f"the time of {back} is {late} nanoseconds away")
        self.paritas("decode", folder, "--out", back, exits=[3])
        self.paritas("decode", folder, "--out", back, "--force")
        same(source, back)
        back.unlink()

    def spread(self, source: pathlib.Path) -> None:
        """Shards in three folders, one of which is replaced by an empty one, and another one added."""
        paritas = self.paritas
        disks = self.folders("disk1", "disk2", "disk3")
        to = [word for disk in disks for word in ("--to", disk)]
        paritas("encode", source, "--code", "4+2", *to)
        for file in disks[2].iterdir():
            file.unlink()
        paritas("repair", *disks)
        counts = [len(list(disk.iterdir())) for disk in disks]
        check(counts == [2, 2, 2], f"the folders have {counts} shards; each should have 2")
        more = self.folders("disk4", "disk5", "disk6")
        paritas("repair", "--rebalance", *disks, *more)
        counts = [len(list(disk.iterdir())) for disk in [*disks, *more]]
        check(counts == [1] * 6, f"the folders have {counts} shards; each should have 1")
        paritas("verify", *disks, *more)

    def promotion(self, source: pathlib.Path) -> None:
        folder = self.place / "delayed"
        self.paritas("encode", source, "--code", "bbdpg:k=3,m=1,m2=2", "--out", folder)
        before = len(listing(folder))
        self.paritas("promote", folder)
        check(len(listing(folder)) > before, "promotion has added no file")
        self.paritas("verify", folder)

    def odd_name(self, source: pathlib.Path) -> None:
        """A name that the file system may refuse is refused with the character, or shards have another one."""
        folder, name = self.place / "odd", "when: 10:30?.bin"
        done = self.paritas("encode", source, "--name", name, "--out", folder, exits=[0, 3, 6])
        if done.code == 0:
            self.paritas("verify", folder)
            self.decode(source, folder)
        else:
            check(":" in self.able.refused_names, f"the file system takes such a name\n{done}")
            named = any(mark in done.err for mark in ("`:`", "':'", '":"', "`?`", "'?'", '"?"'))
            check(named, f"the message does not say which character the file system refuses\n{done}")
            expect_listing(folder, set())

    def long_name(self, source: pathlib.Path) -> None:
        """Temporary names, and those of what is moved aside, are cut where they would be too long."""
        paritas, folder = self.paritas, self.place / "long"
        names = {f"{LONG_NAME}.{index}of6.paritas" for index in range(6)}
        encode = ("encode", source, "--code", "4+2", "--name", LONG_NAME, "--out", folder)
        paritas(*encode)
        (folder / min(names)).write_bytes(b"not a shard")
        paritas("repair", folder)
        check(len(listing(folder) - names) == 1, "what was in the way is gone")
        paritas("repair", folder, "--remove-moved-aside")
        paritas(*encode, "--force")
        expect_listing(folder, names)
        self.decode(source, folder)

    # A volume

    def volume(self) -> None:
        paritas, source, file = self.paritas, self.source(), self.scratch / "volume.toml"
        nodes = self.folders("node1", "node2", "node3")
        paritas("volume", "init", file, "--code", "2+1", *[word for node in nodes for word in ("--node", node)])
        large, small = "2024: a/large?.bin", "small"
        paritas("volume", "put", file, source, large)
        paritas("volume", "put", file, "-", small, stdin=b"small\n")
        paritas("volume", "put", file, source, small)
        paritas("volume", "put", file, "-", "gone", stdin=b"gone\n")
        check(set(paritas("volume", "ls", file).out.splitlines()) == {large, small, "gone"}, "the list is wrong")
        self.get(file, large, source)
        self.get(file, small, source)
        paritas("volume", "rm", file, "gone")
        check(set(paritas("volume", "ls", file).out.splitlines()) == {large, small}, "the list is wrong after a removal")
        # In each object one shard may be damaged.
        for shard, node in zip(sorted(nodes[0].rglob("*.paritas")), nodes):
            damage(shard)
        paritas("volume", "verify", file, "--deep", exits=[1])
        self.get(file, large, source)
        paritas("volume", "repair", file, "--deep")
        shutil.rmtree(nodes[1] / "objects")
        paritas("volume", "verify", file, exits=[1])
        paritas("volume", "repair", file)
        paritas("volume", "verify", file, "--deep")
        self.get(file, large, source)
        left = [name for node in nodes for name in listing(node) if name.startswith((".paritas-new/", "probe-"))]
        check(not left, f"the nodes have {left}")

    def get(self, volume: pathlib.Path, name: str, source: pathlib.Path) -> None:
        back = self.place / "got.bin"
        self.paritas("volume", "get", volume, name, back)
        same(source, back)
        back.unlink()


class ReadOnlyWalk(Walk):
    """The walk through a place that can be read only; `below` is where it can be written."""

    def __init__(self, program: pathlib.Path, place: pathlib.Path, scratch: pathlib.Path):
        self.below = place.with_name("below")
        self.place, self.scratch = place, scratch
        self.paritas = Paritas(program)
        self.able = abilities.measure(self.below)

    def protect(self) -> None:
        """Parity elsewhere; what is damaged cannot be repaired in place, and is not touched."""
        paritas, root, parity = self.paritas, self.place / "tree", self.scratch / "parity"
        Tree(self.below / "tree", self.able)
        parity.mkdir()
        paritas("protect", root, exits=[6])
        paritas("protect", root, "--parity-dir", parity, "--redundancy", "150%")
        paritas("verify", root, parity)
        damage(self.below / "tree" / "a.bin")
        before = (root / "a.bin").read_bytes()
        paritas("verify", root, parity, exits=[1])
        done = paritas("repair", "--restore-changed", root, parity, exits=[5, 6])
        check("read-only" in (done.out + done.err).lower(), f"the message should say that the file system is read-only\n{done}")
        check((root / "a.bin").read_bytes() == before, "the file was changed")

    def restore(self) -> None:
        """What is damaged there is restored elsewhere."""
        root, to = self.place / "tree", self.scratch / "restored"
        to.mkdir()
        self.paritas("repair", "--restore-changed", root, self.scratch / "parity", "--to", to)
        check((to / "a.bin").read_bytes() == bytes_of(200_000, 200_000), "the restored file is wrong")

    def shards(self) -> None:
        paritas, folder, source = self.paritas, self.place / "shards", self.source()
        paritas("encode", source, "--out", folder, exits=[6])
        paritas("encode", source, "--out", self.below / "shards")
        paritas("verify", folder)
        damage(self.below / "shards" / "payload.bin.0of6.paritas")
        before = listing(folder)
        paritas("verify", folder, exits=[1])
        done = paritas("repair", folder, exits=[6])
        check("read-only" in done.err.lower(), f"the message should say that the file system is read-only\n{done}")
        expect_listing(folder, before)
        back = self.scratch / "back.bin"
        paritas("decode", folder, "--out", back)
        same(source, back)

    def volume(self) -> None:
        paritas, source, file = self.paritas, self.source(), self.scratch / "volume.toml"
        names = ("node1", "node2", "node3")
        for name in names:
            (self.below / name).mkdir()
        nodes = [word for name in names for word in ("--node", self.below / name)]
        paritas("volume", "init", file, "--code", "2+1", *nodes)
        paritas("volume", "put", file, source, "object")
        file.write_text(file.read_text().replace(str(self.below), str(self.place)))
        back = self.scratch / "got.bin"
        paritas("volume", "get", file, "object", back)
        same(source, back)
        paritas("volume", "verify", file)
        done = paritas("volume", "put", file, source, "another", exits=[6])
        check("read-only" in done.err.lower(), f"the message should say that the file system is read-only\n{done}")
