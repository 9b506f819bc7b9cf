"""Situations that people have met, each with what is right then.

Each makes its own files and mounts below a scratch folder that everybody may enter, runs the command, and raises `Wrong` if what
happened is not right, or `Impossible` if this machine cannot make the situation. What is right stands in the first lines.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import zlib
from typing import Callable, Iterator

import mounts
import walk
from mounts import Impossible, folder
from walk import Paritas, bytes_of, check, same, set_time

Situation = Callable[[Paritas, pathlib.Path], None]
ALL: dict[str, Situation] = {}
# A usual user whom every Debian has, and a group whose members are other people.
USER, GROUP, STRANGER = 1, 100, 65534
KEEPS_TIME = 1_500_000_000_000_000_000
# Whoever changes the mode of /dev/fuse holds this until it is as before.
FUSE_MODE = threading.Lock()


def situation(act: Situation) -> Situation:
    """Adds a situation under the name of its function."""
    ALL[act.__name__.replace("_", "-")] = act
    return act


def as_user(user: int, group: int) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", "env", "HOME=/tmp")


def may_read(user: int, group: int, file: pathlib.Path) -> bool:
    return subprocess.run([*as_user(user, group), "cat", str(file)], capture_output=True).returncode == 0


def file(path: pathlib.Path, length: int) -> bytes:
    """Writes a file of bytes that no other file has, with an old time."""
    content = bytes_of(zlib.crc32(os.fsencode(path.name)), length)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    set_time(path, KEEPS_TIME)
    return content


def rot(path: pathlib.Path, at: int) -> None:
    """Damages a byte, and keeps the file's time."""
    walk.damage(path, at)


def tmpfs(point: pathlib.Path, size: str) -> contextlib.AbstractContextManager[pathlib.Path]:
    point.mkdir(exist_ok=True)
    return mounts.mounted(point, "mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", point)


@contextlib.contextmanager
def mount_of_a_user(below: pathlib.Path, point: pathlib.Path) -> Iterator[None]:
    """A FUSE mount of a usual user, at which not even root may look."""
    below.mkdir()
    os.chown(below, USER, GROUP)
    with open_to_users(), mounts.mounted(point, *as_user(USER, GROUP), "bindfs", "--no-allow-other", below, point):
        with contextlib.suppress(PermissionError):
            os.stat(point)
            raise Impossible("root may look at other users' mounts here")
        yield


@contextlib.contextmanager
def open_to_users() -> Iterator[None]:
    """Lets every user mount by FUSE."""
    with FUSE_MODE:
        before = pathlib.Path("/dev/fuse").stat().st_mode
        os.chmod("/dev/fuse", 0o666)
        try:
            yield
        finally:
            os.chmod("/dev/fuse", before & 0o7777)


def protections(paritas: Paritas, root: pathlib.Path) -> dict[str, object]:
    """Returns what `info` says of a protection."""
    return json.loads(paritas("info", "--json", root).out.splitlines()[0])


# Names


@situation
def case_insensitive(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A camera has changed the case of names on a stick that does not tell it (exFAT), and a byte of such a file has rotted.
    Repair makes it whole in place, and with --move-back under the old name."""
    with mounts.exfat(scratch) as disk:
        names = {name: file(disk / "dcim" / name, 300_000) for name in ("img_1.jpg", "img_2.jpg")}
        paritas("protect", disk, "--redundancy", "30%")
        for name in names:
            os.rename(disk / "dcim" / name, disk / "dcim" / name.upper())
        paritas("verify", disk)
        rot(disk / "dcim" / "IMG_2.JPG", 1000)
        paritas("verify", disk, exits=[1])
        paritas("repair", "--restore-changed", "--move-back", disk)
        for name, content in names.items():
            check((disk / "dcim" / name).read_bytes() == content, f"{name} is wrong")
        found = {path.name for path in (disk / "dcim").iterdir() if not walk.KEPT.search(path.name)}
        check(found == set(names), f"the folder has {found}")


@situation
def long_utf8_name(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A Russian name of 40 letters is a usual one, and can be an object's."""
    nodes = [folder(scratch, name) for name in "abc"]
    tree, volume, back = folder(scratch, "tree"), scratch / "tank.toml", scratch / "back"
    names = ("Протокол заседания комиссии по закупкам 2025.docx", "normal", "new\nline", "я" * 127)
    contents = {name: file(tree / name, 1000) for name in names}
    paritas("volume", "init", volume, "--code", "2+1", *[word for node in nodes for word in ("--node", node)])
    paritas("volume", "put", volume, "-r", tree, "p")
    paritas("volume", "get", volume, "-r", "p", back)
    for name, content in contents.items():
        check((back / name).read_bytes() == content, f"{name} is wrong")


@situation
def parity_without_names(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A file system check has put the parity into lost+found, under numbers. It is found by its content if it is given."""
    root, found = folder(scratch, "photos"), folder(scratch, "lost+found")
    contents = {name: file(root / name, 50_000) for name in ("1.jpg", "2.jpg", "3.jpg", "4.jpg")}
    paritas("protect", root, "--redundancy", "60%")
    for number, parity in enumerate(sorted((root / ".paritas").iterdir())):
        parity.rename(found / f"#1310{number}")
    (root / ".paritas").rmdir()
    (root / "2.jpg").unlink()
    paritas("verify", root, found, exits=[1])
    paritas("repair", root, *sorted(found.iterdir()))
    check((root / "2.jpg").read_bytes() == contents["2.jpg"], "the restored file is wrong")


@situation
def exclude_dot_slash(paritas: Paritas, scratch: pathlib.Path) -> None:
    """--exclude ./cache means the folder of that name in the root, not in any folder."""
    root = folder(scratch, "home")
    file(root / "cache" / "junk", 1000)
    kept = file(root / "a" / "cache" / "keep", 1000)
    paritas("protect", root, "--redundancy", "200%", "--exclude", "./cache")
    (root / "a" / "cache" / "keep").unlink()
    (root / "cache" / "junk").unlink()
    paritas("repair", root)
    check((root / "a" / "cache" / "keep").read_bytes() == kept, "the restored file is wrong")
    check(not (root / "cache" / "junk").exists(), "what was excluded was protected")


# What counts as the same file, and as unchanged


@situation
def same_mtime(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A program changes a file on purpose and keeps its time, as VeraCrypt does. Repair does not throw the new content away."""
    root = folder(scratch, "home")
    vault = root / "vault.hc"
    file(vault, 3_000_000)
    file(root / "other", 100_000)
    paritas("protect", root)
    content = bytearray(vault.read_bytes())
    content[500_000:560_000] = bytes_of(99, 60_000)
    with vault.open("r+b") as opened:
        opened.write(content)
    set_time(vault, KEEPS_TIME)
    paritas("verify", "--quick", root, exits=[0, 1])
    paritas("verify", root, exits=[1])
    paritas("repair", root, exits=[0, 1])
    here = [path for path in root.rglob("*") if path.is_file() and path.read_bytes() == content]
    check(bool(here), "the new content is nowhere any more")


@situation
def inode_collision(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A mount shows two disks as one and passes their inode numbers through: different files with several names each have the
    same device and number. Each is protected with its own bytes."""
    below, point = folder(scratch, "below"), folder(scratch, "mount")
    with tmpfs(below / "a", "10m"), tmpfs(below / "b", "10m"):
        contents = {}
        for disk in ("a", "b"):
            path = below / disk / "new.dat"
            path.write_bytes(bytes_of(ord(disk), 5000))
            set_time(path, KEEPS_TIME)
            os.link(path, below / disk / "old.dat")
            contents[disk] = path.read_bytes()
        with mounts.mounted(point, "bindfs", below, point):
            numbers = {(point / disk / "new.dat").stat().st_ino for disk in contents}
            if len(numbers) > 1:
                raise Impossible("the files have different inode numbers")
            paritas("protect", point, "--redundancy", "300%")
            for name in ("new.dat", "old.dat"):
                (point / "b" / name).unlink()
            paritas("verify", point, exits=[1])
            paritas("repair", point)
            for disk, content in contents.items():
                for name in ("new.dat", "old.dat"):
                    check((point / disk / name).read_bytes() == content, f"{disk}/{name} is wrong")


@situation
def shards_with_equal_inodes(paritas: Paritas, scratch: pathlib.Path) -> None:
    """Six shards on six disks of a mount that passes inode numbers through are six shards; one that is named twice is one."""
    below, point, source = folder(scratch, "below"), folder(scratch, "mount"), scratch / "source"
    file(source, 100_000)
    with contextlib.ExitStack() as disks:
        for number in range(6):
            disks.enter_context(tmpfs(below / str(number), "10m"))
        with mounts.mounted(point, "bindfs", below, point):
            to = sorted(point.iterdir())
            paritas("encode", source, "--code", "4+2", *[word for disk in to for word in ("--to", disk)])
            shards = sorted(point.rglob("*.paritas"))
            if len({(shard.stat().st_dev, shard.stat().st_ino) for shard in shards}) > 1:
                raise Impossible("the shards have different inode numbers")
            report = json.loads(paritas("verify", "--json", *to).out.splitlines()[0])
            check(report["status"] == "intact" and report["folder_tolerance"] == 2, f"the report is {report}")
            shards[0].unlink()
            shards[1].unlink()
            paritas("repair", *to)
            paritas("verify", *to)
            for shard in shards[:3]:
                shard.unlink()
            paritas("verify", *to, shards[3], shards[4].parent / "." / shards[4].name, exits=[2])


# Mounts in a tree


@situation
def submount_absent(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A second disk in the protected folder is not mounted today. An update does not take its files for removed, and repair
    does not fill the mount point."""
    root, copy = folder(scratch, "home"), scratch / "copy"
    disk = root / "disk2"
    with tmpfs(disk, "50m"):
        for name in "12345":
            file(disk / name, 400_000)
        shutil.copytree(disk, copy)
        file(root / "own", 300_000)
        paritas("protect", root, "--redundancy", "100%")
    paritas("verify", root, exits=[1, 6])
    own = bytes_of(5, 1000)
    (root / "new").write_bytes(own)
    paritas("protect", "--update", root, exits=range(256))
    paritas("repair", root, exits=range(256))
    check(not any(disk.iterdir()), "repair has filled the mount point")
    with tmpfs(disk, "50m"):
        shutil.copytree(copy, disk, dirs_exist_ok=True)
        (disk / "1").unlink()
        paritas("repair", root)
        same(copy / "1", disk / "1")


@situation
def dead_mount(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A network mount inside the protected folder has died. Nothing is called lost, the mount is named itself, and the rest is
    repaired."""
    far, root = folder(scratch, "far"), folder(scratch, "home")
    file(far / "far", 500_000)
    near = file(root / "near", 50_000)
    mount = root / "a" / "net"
    mount.mkdir(parents=True)
    with mounts.served(mount, "bindfs", "-f", far, mount) as server:
        paritas("protect", root, "--redundancy", "150%")
        server.send_signal(signal.SIGKILL)
        server.wait()
        done = paritas("verify", root, exits=[6])
        named = [line for line in done.out.splitlines() if "skipped" in line or "unreadable" in line]
        check(any("a/net" in line for line in named), f"the report does not name a/net\n{done}")
        paritas("protect", "--update", root, exits=[6])
        (root / "near").unlink()
        paritas("repair", root, exits=[0, 6])
        check((root / "near").read_bytes() == near, "the restored file is wrong")


@situation
def foreign_mount_refuses_all(paritas: Paritas, scratch: pathlib.Path) -> None:
    """root protects a home folder with a FUSE mount of its user, at which root may not look. It is named, the rest protected."""
    home = folder(scratch, "home")
    letter = file(home / "letter", 1000)
    (home / "doc").mkdir()
    for path in (home, home / "doc"):
        os.chown(path, USER, GROUP)
    with mount_of_a_user(scratch / "below", home / "doc"):
        done = paritas("protect", home, "--redundancy", "200%", exits=[0, 6])
        check("doc" in done.out + done.err, f"the mount is not named\n{done}")
        (home / "letter").unlink()
        paritas("repair", home, exits=[0, 6])
        check((home / "letter").read_bytes() == letter, "the restored file is wrong")


@situation
def foreign_mount_later(paritas: Paritas, scratch: pathlib.Path) -> None:
    """The mount appears after the folder was protected. Nothing at its place is protected, so it keeps nothing from going on."""
    home = folder(scratch, "home")
    file(home / "letter", 1000)
    os.chown(home, USER, GROUP)
    paritas("protect", home)
    (home / "doc").mkdir()
    os.chown(home / "doc", USER, GROUP)
    with mount_of_a_user(scratch / "below", home / "doc"):
        file(home / "new", 1000)
        paritas("verify", home)
        paritas("protect", "--update", home, exits=[0, 6])
        files = protections(paritas, home)["files"]
        check(files == 2, f"{files} files are protected; 2 should be")


@situation
def move_back_across(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A protected file was moved to another disk in the same tree. --move-back copies it."""
    root = folder(scratch, "home")
    with tmpfs(root / "disk2", "50m") as disk:
        content = file(root / "a", 400_000)
        file(disk / "x", 1000)
        paritas("protect", root)
        shutil.move(root / "a", disk / "elsewhere")
        paritas("verify", root)
        paritas("repair", "--move-back", root)
        check((root / "a").read_bytes() == content, "the file is wrong")
        check(not (disk / "elsewhere").exists(), "the file is at its new place, too")


@situation
def space_of_submount(paritas: Paritas, scratch: pathlib.Path) -> None:
    """The outer disk is full, and what is lost was on one inside it, which has room."""
    root, parity = folder(scratch, "home"), folder(scratch, "parity")
    with tmpfs(root, "1m"), tmpfs(root / "big", "64m") as disk:
        film = file(disk / "film.mp4", 3_000_000)
        file(root / "small", 20_000)
        paritas("protect", root, "--redundancy", "150%", "--parity-dir", parity)
        (disk / "film.mp4").unlink()
        paritas("verify", parity, exits=[1])
        paritas("repair", parity)
        check((disk / "film.mp4").read_bytes() == film, "the restored file is wrong")


# Room


@situation
def sparse_room(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A damaged sparse image is restored on a disk with less room than its length: the restored one takes as little."""
    with tmpfs(scratch / "disk", "300m") as disk:
        image = disk / "vm.img"
        with image.open("wb") as opened:
            opened.truncate(400 << 20)
            opened.seek(50 << 20)
            opened.write(bytes_of(1, 1_000_000))
        set_time(image, KEEPS_TIME)
        subprocess.run(["cp", "--sparse=always", image, scratch / "vm"], check=True)
        paritas("protect", disk)
        rot(image, (50 << 20) + 1500)
        paritas("repair", "--restore-changed", disk)
        same(scratch / "vm", image)
        taken = image.stat().st_blocks * 512
        check(taken < 20 << 20, f"the restored image takes {taken} bytes")


@situation
def encode_without_room(paritas: Paritas, scratch: pathlib.Path) -> None:
    """Shards that do not fit on a disk are refused before anything is read, with the disk and the bytes; nothing is left."""
    source = scratch / "source"
    file(source, 30_000_000)
    with tmpfs(scratch / "large", "100m") as large, tmpfs(scratch / "small", "4m") as small:
        before = set(small.iterdir()) | set(large.iterdir())
        done = paritas("encode", source, "--code", "2+1", "--to", large, "--to", small, exits=[6])
        check(str(small) in done.err, f"the message does not name the disk\n{done}")
        check(set(small.iterdir()) | set(large.iterdir()) == before, "something is left")
        trace = Paritas(paritas.program, ("strace", "-f", "-qq", "-e", "trace=read,pread64,preadv", "-P", str(source)))
        shows_reads = lambda done: any(f"{call}(" in done.err for call in ("read", "pread64", "preadv"))
        done = trace("encode", source, "--code", "2+1", "--to", large, "--to", small, exits=[6])
        check(not shows_reads(done), f"the source was read\n{done}")
        check(shows_reads(trace("encode", source, "--code", "2+1", "--out", large / "shards")), "strace does not show how the source is read")


# Access


@situation
def acl_widened(paritas: Paritas, scratch: pathlib.Path) -> None:
    """A file of mode 0600 with an ACL entry shows 0660: the group bits are the ACL's mask, and its group may do nothing.
    Whatever is made from it must not let the group read."""
    user = Paritas(paritas.program, as_user(USER, GROUP))
    root, shards = folder(scratch, "home"), folder(scratch, "shards")
    payload, back = root / "pay.ods", root / "back"
    content = file(payload, 100_000)
    for path in (scratch, root, shards, payload):
        os.chown(path, USER, GROUP)
    payload.chmod(0o644)
    check(may_read(STRANGER - 1, GROUP, payload), "the group cannot even read what everybody may")
    payload.chmod(0o600)
    if subprocess.run(["setfacl", "-m", "u:nobody:rw", str(payload)], capture_output=True).returncode:
        raise Impossible("this file system has no ACLs")
    check(not may_read(STRANGER - 1, GROUP, payload), "the group can read the source")

    def expect_closed(*paths: pathlib.Path) -> None:
        for path in paths:
            check(path.is_file(), f"there is no {path}")
            check(not may_read(STRANGER - 1, GROUP, path), f"the group can read {path}")

    user("encode", payload, "--code", "2+1", "--out", shards)
    expect_closed(*shards.iterdir())
    (shards / "pay.ods.0of3.paritas").unlink()
    user("repair", shards)
    expect_closed(*shards.iterdir())
    user("decode", shards, "--out", back)
    expect_closed(back)
    back.unlink()
    user("protect", root, "--redundancy", "200%")
    expect_closed(*(root / ".paritas").iterdir())
    rot(payload, 5000)
    user("repair", "--restore-changed", root)
    check(payload.read_bytes() == content, "the repaired file is wrong")
    expect_closed(payload)
    check("user:nobody:rw-" in walk.acl_of(payload), f"the ACL is {walk.acl_of(payload)}")


@situation
def not_owner(paritas: Paritas, scratch: pathlib.Path) -> None:
    """On a mount where every new file belongs to somebody else (NFS all_squash, CIFS uid=), the user may write, but neither
    change modes nor choose times. Everything is restored all the same."""
    below, point = folder(scratch, "below"), folder(scratch, "mount")
    below.chmod(0o777)
    content = file(below / "a.jpg", 300_000)
    os.chown(below / "a.jpg", STRANGER, STRANGER)
    (below / "a.jpg").chmod(0o666)
    user = Paritas(paritas.program, as_user(USER, GROUP))
    source = scratch / "source"
    file(source, 100_000)
    options = ["-o", "allow_other", "--force-user=root", "--create-for-user=root", "--perms=a+rwX"]
    with mounts.mounted(point, "bindfs", *options, below, point):
        user("protect", point, "--redundancy", "200%")
        (point / "a.jpg").unlink()
        user("repair", point)
        check((point / "a.jpg").read_bytes() == content, "the restored file is wrong")
        user("encode", source, "--code", "2+1", "--out", point / "shards")
        next((point / "shards").iterdir()).unlink()
        user("repair", point / "shards")
        user("decode", point / "shards", "--out", point / "back")
        same(source, point / "back")
