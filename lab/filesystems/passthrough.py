#!/usr/bin/env python3
"""A FUSE file system that passes a folder through, except for calls that it refuses, as file systems of other kinds do.

    lab/filesystems/passthrough.py FOLDER MOUNT_POINT [CALL=ERROR]... [--zero-blocks] [--equal-inodes] [--foreign] [--short-names]

CALL is one of chmod, chown, utimens, link, symlink, rename-flags, statfs, fallocate, fsyncdir, truncate and xattr, ERROR the
name of an error (EPERM). `--zero-blocks` says that the disk has 0 of 0 blocks, as some FUSE file systems do. With
`--equal-inodes` all files and folders have the same number, and with `--foreign` all belong to user and group 4242, whoever
makes them. With `--short-names` names have at most 143 bytes, as where they are encrypted (eCryptfs, Synology). Runs until it is
unmounted. Needs mfusepy.
"""

import argparse
import ctypes.util
import errno
import os
import pathlib
import time

# Only version 3 of the library hands on the flags of a renaming.
os.environ["FUSE_LIBRARY_PATH"] = ctypes.util.find_library("fuse3") or "libfuse3.so.3"
import mfusepy  # noqa: E402

CALLS = ("chmod", "chown", "utimens", "link", "symlink", "rename-flags", "statfs", "fallocate", "fsyncdir", "truncate", "xattr")
# RENAME_NOREPLACE of renameat2.
NO_REPLACE = 1
FOREIGN = 4242
SHORT_NAME = 143
STATUS = ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_ino", "st_dev", "st_blocks", "st_blksize", "st_rdev")
SPACE = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_favail", "f_ffree", "f_files", "f_frsize", "f_namemax")


def refusal(text: str) -> tuple[str, int]:
    """Parses CALL=ERROR."""
    call, _, error = text.partition("=")
    if call not in CALLS or not hasattr(errno, error):
        raise argparse.ArgumentTypeError(f"{text} is not CALL=ERROR")
    return call, getattr(errno, error)


class Passthrough(mfusepy.Operations):
    """The folder, with refusals."""

    use_ns = True

    def __init__(self, root: pathlib.Path, options: argparse.Namespace):
        self.root, self.options = root, options
        self.refused = dict(options.refuse)

    def place(self, path: str) -> str:
        """Returns where a file is."""
        if self.options.short_names and len(os.fsencode(os.path.basename(path))) > SHORT_NAME:
            raise mfusepy.FuseOSError(errno.ENAMETOOLONG)
        return str(self.root) + path

    def check(self, call: str) -> None:
        """Refuses a call, if it is one that is refused."""
        if call in self.refused:
            raise mfusepy.FuseOSError(self.refused[call])

    def init_with_config(self, conn_info: mfusepy.fuse_conn_info, config_3: mfusepy.fuse_config | None) -> None:
        if config_3 is not None and self.options.equal_inodes:
            config_3.use_ino = 1

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        found = os.lstat(self.place(path))
        status = {name: getattr(found, name) for name in STATUS}
        status |= {f"st_{which}time": getattr(found, f"st_{which}time_ns") for which in "amc"}
        if self.options.equal_inodes:
            status["st_ino"] = 1
        if self.options.foreign:
            status |= {"st_uid": FOREIGN, "st_gid": FOREIGN}
        return status

    def readdir(self, path: str, fh: int) -> list[tuple[str, dict[str, int], int]]:
        found = [(name, os.lstat(os.path.join(self.place(path), name))) for name in [".", "..", *os.listdir(self.place(path))]]
        number = 1 if self.options.equal_inodes else None
        return [(name, {"st_mode": about.st_mode, "st_ino": number or about.st_ino}, 0) for name, about in found]

    def readlink(self, path: str) -> str:
        return os.readlink(self.place(path))

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(self.place(path), mode)

    def rmdir(self, path: str) -> None:
        os.rmdir(self.place(path))

    def unlink(self, path: str) -> None:
        os.unlink(self.place(path))

    def symlink(self, target: str, source: str) -> None:
        self.check("symlink")
        os.symlink(source, self.place(target))

    def link(self, target: str, source: str) -> None:
        self.check("link")
        os.link(self.place(source), self.place(target))

    def rename(self, old: str, new: str) -> None:
        os.rename(self.place(old), self.place(new))

    def chmod(self, path: str, mode: int) -> None:
        self.check("chmod")
        os.chmod(self.place(path), mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        self.check("chown")
        os.chown(self.place(path), uid, gid, follow_symlinks=False)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        self.check("utimens")
        os.utime(self.place(path), ns=times or (time.time_ns(),) * 2, follow_symlinks=False)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        self.check("truncate")
        os.truncate(self.place(path) if fh is None else fh, length)

    def create(self, path: str, mode: int, flags: int) -> int:
        return os.open(self.place(path), flags | os.O_CREAT, mode)

    def open(self, path: str, flags: int) -> int:
        return os.open(self.place(path), flags)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return os.pread(fh, size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        return os.pwrite(fh, data, offset)

    def fallocate(self, path: str, mode: int, offset: int, size: int, fh: int) -> None:
        self.check("fallocate")
        os.posix_fallocate(fh, offset, size)

    def fsync(self, path: str, datasync: int, fh: int) -> None:
        os.fsync(fh)

    def fsyncdir(self, path: str, datasync: int, fh: int) -> None:
        self.check("fsyncdir")

    def release(self, path: str, fh: int) -> None:
        os.close(fh)

    def statfs(self, path: str) -> dict[str, int]:
        self.check("statfs")
        found = os.statvfs(self.place(path))
        space = {name: getattr(found, name) for name in SPACE}
        if self.options.zero_blocks:
            space |= {"f_blocks": 0, "f_bfree": 0, "f_bavail": 0}
        return space

    def getxattr(self, path: str, name: str, position: int = 0) -> bytes:
        self.check("xattr")
        return os.getxattr(self.place(path), name, follow_symlinks=False)

    def listxattr(self, path: str) -> list[str]:
        self.check("xattr")
        return os.listxattr(self.place(path), follow_symlinks=False)

    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> None:
        self.check("xattr")
        os.setxattr(self.place(path), name, value, options, follow_symlinks=False)

    def removexattr(self, path: str, name: str) -> None:
        self.check("xattr")
        os.removexattr(self.place(path), name, follow_symlinks=False)


class Mount(mfusepy.FUSE):
    """The library's mount, whose renaming hands on its flags, too."""

    def rename_fuse_3(self, old: bytes, new: bytes, flags: int) -> int:
        if flags:
            self.operations.check("rename-flags")
            if flags != NO_REPLACE:
                return -errno.EINVAL
            if os.path.lexists(self.operations.place(os.fsdecode(new))):
                return -errno.EEXIST
        return self.rename_fuse_2(old, new)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("mount_point")
    parser.add_argument("refuse", nargs="*", type=refusal, metavar="CALL=ERROR")
    parser.add_argument("--zero-blocks", action="store_true")
    parser.add_argument("--equal-inodes", action="store_true")
    parser.add_argument("--foreign", action="store_true")
    parser.add_argument("--short-names", action="store_true")
    options = parser.parse_intermixed_args()
    os.umask(0)
    operations = Passthrough(options.folder.resolve(), options)
    Mount(operations, options.mount_point, foreground=True, nothreads=True, allow_other=True, default_permissions=True)


if __name__ == "__main__":
    main()
