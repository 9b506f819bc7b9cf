"""File systems to run a walk on: each is made in a file or a folder, mounted, and unmounted at the end. Needs root.

A place whose driver this machine lacks is no place; `Impossible` says why.
"""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import sys
import time
from typing import Callable, Iterator, NamedTuple

PASSTHROUGH = pathlib.Path(__file__).with_name("passthrough.py")
# Seconds to wait for a mount or a server.
PATIENCE = 20
SSHD = """
Port {port}
ListenAddress 127.0.0.1
HostKey {keys}/host
PidFile none
AuthorizedKeysFile {keys}/user.pub
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


class Impossible(Exception):
    """This machine cannot make a situation."""


class NoDriver(Impossible):
    """The kernel lacks the driver of a file system."""


class Place(NamedTuple):
    """A kind of file system: its name in the table, and how it is mounted with files of its own below a scratch folder."""

    name: str
    mount: Callable[[pathlib.Path], contextlib.AbstractContextManager[pathlib.Path]]
    # Whether only reading is tried.
    is_read_only: bool = False


def call(*command: object, cwd: pathlib.Path | None = None, given: str = "") -> str:
    """Runs a command that must succeed, on an input, and returns what it prints."""
    program = str(command[0])
    if shutil.which(program) is None:
        raise Impossible(f"there is no {program}")
    done = subprocess.run([str(part) for part in command], cwd=cwd, input=given, capture_output=True, text=True)
    if done.returncode:
        raise Impossible(f"{program}: {(done.stderr + done.stdout).strip()}")
    return done.stdout


def wait_until(ready: Callable[[], bool], what: str) -> None:
    """Waits until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        if time.monotonic() > deadline:
            raise Impossible(f"{what} takes longer than {PATIENCE} seconds")
        time.sleep(0.02)


def folder(scratch: pathlib.Path, name: str) -> pathlib.Path:
    """Makes a folder that everybody may enter."""
    made = scratch / name
    made.mkdir(exist_ok=True)
    made.chmod(0o755)
    return made


def is_mounted(point: pathlib.Path) -> bool:
    """Whether something is mounted there, even if it does not answer."""
    lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    return any(line.split()[4] == str(point) for line in lines)


def unmount(point: pathlib.Path) -> None:
    """Unmounts, also what is still in use or does not answer."""
    for command in (["umount", str(point)], ["umount", "-l", str(point)]):
        if subprocess.run(command, capture_output=True).returncode == 0:
            return


@contextlib.contextmanager
def mounted(point: pathlib.Path, *command: object) -> Iterator[pathlib.Path]:
    """Mounts something by a command that ends when it is mounted."""
    call(*command)
    try:
        wait_until(lambda: is_mounted(point), f"mounting {point}")
        yield point
    finally:
        unmount(point)


@contextlib.contextmanager
def served(point: pathlib.Path, *command: object) -> Iterator[subprocess.Popen[bytes]]:
    """Mounts something by a command that runs as long as it is mounted."""
    log = point.with_name(point.name + ".log")
    with log.open("wb") as file:
        server = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        wait_until(lambda: is_mounted(point) or server.poll() is not None, f"mounting {point}")
        if server.poll() is not None:
            raise Impossible(log.read_text().strip())
        yield server
    finally:
        unmount(point)
        server.terminate()
        server.wait()


@contextlib.contextmanager
def image(scratch: pathlib.Path, size: str, *make: object) -> Iterator[pathlib.Path]:
    """Makes a file with a file system in it, and returns its loop device."""
    file = scratch / "image"
    call("truncate", "-s", size, file)
    call(*make, file)
    device = call("losetup", "-f", "--show", file).strip()
    try:
        yield pathlib.Path(device)
    finally:
        subprocess.run(["losetup", "-d", device])


@contextlib.contextmanager
def by_kernel(scratch: pathlib.Path, kind: str, size: str, *make: object) -> Iterator[pathlib.Path]:
    point = folder(scratch, "mount")
    with image(scratch, size, *make) as device, contextlib.ExitStack() as stack:
        try:
            stack.enter_context(mounted(point, "mount", "-t", kind, device, point))
        except Impossible:
            # A module is loaded by the attempt.
            if kind in pathlib.Path("/proc/filesystems").read_text().split():
                raise
            raise NoDriver(f"this kernel has no {kind}") from None
        yield point


@contextlib.contextmanager
def memory(scratch: pathlib.Path, size: str = "200m") -> Iterator[pathlib.Path]:
    point = folder(scratch, "mount")
    with mounted(point, "mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", point):
        yield point


@contextlib.contextmanager
def overlay(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    point = folder(scratch, "mount")
    with memory(folder(scratch, "layers")) as layers:
        lower, upper, work = (folder(layers, name) for name in ("lower", "upper", "work"))
        options = f"lowerdir={lower},upperdir={upper},workdir={work}"
        with mounted(point, "mount", "-t", "overlay", "-o", options, "overlay", point):
            yield point


@contextlib.contextmanager
def exfat(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    point = folder(scratch, "mount")
    with image(scratch, "64M", "mkfs.exfat") as device, mounted(point, "mount.exfat-fuse", device, point):
        yield point


@contextlib.contextmanager
def ntfs(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    point, file = folder(scratch, "mount"), scratch / "image"
    call("truncate", "-s", "64M", file)
    call("mkfs.ntfs", "-F", "-Q", file)
    with mounted(point, "ntfs-3g", file, point):
        yield point


@contextlib.contextmanager
def sshd(scratch: pathlib.Path) -> Iterator[list[str]]:
    """Serves this machine's files by SFTP, and returns options of sshfs."""
    keys = folder(scratch, "keys")
    for name in ("host", "user"):
        call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", keys / name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (keys / "config").write_text(SSHD.format(port=port, keys=keys))
    pathlib.Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", keys / "config"], stderr=subprocess.DEVNULL)

    def listens() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens, "starting sshd")
        options = f"port={port},IdentityFile={keys}/user,UserKnownHostsFile=/dev/null,StrictHostKeyChecking=no"
        yield ["-o", options]
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def sshfs(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    far, point = folder(scratch, "far"), folder(scratch, "mount")
    with sshd(scratch) as options, mounted(point, "sshfs", f"root@127.0.0.1:{far}", point, *options):
        yield point


@contextlib.contextmanager
def bindfs(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    below, point = folder(scratch, "below"), folder(scratch, "mount")
    with mounted(point, "bindfs", below, point):
        yield point


@contextlib.contextmanager
def mergerfs(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    first, second, point = (folder(scratch, name) for name in ("first", "second", "mount"))
    with mounted(point, "mergerfs", "-o", "category.create=rand", f"{first}:{second}", point):
        yield point


@contextlib.contextmanager
def read_only(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder of this disk, `below` of the scratch folder, which cannot be written under another name."""
    below, point = folder(scratch, "below"), folder(scratch, "mount")
    with mounted(point, "mount", "--bind", "-o", "ro", below, point):
        yield point


def passthrough(*options: str) -> Callable[[pathlib.Path], contextlib.AbstractContextManager[pathlib.Path]]:
    @contextlib.contextmanager
    def mount(scratch: pathlib.Path) -> Iterator[pathlib.Path]:
        below, point = folder(scratch, "below"), folder(scratch, "mount")
        with served(point, sys.executable, PASSTHROUGH, below, point, *options):
            yield point

    return mount


def refusing(error: str) -> list[str]:
    calls = ("chmod", "chown", "utimens", "link", "symlink", "rename-flags", "statfs", "fallocate", "fsyncdir", "truncate", "xattr")
    return [f"{call}={error}" for call in calls]


PLACES = [
    Place("ext4", lambda scratch: by_kernel(scratch, "ext4", "128M", "mkfs.ext4", "-q")),
    Place("xfs", lambda scratch: by_kernel(scratch, "xfs", "320M", "mkfs.xfs", "-q")),
    Place("btrfs", lambda scratch: by_kernel(scratch, "btrfs", "192M", "mkfs.btrfs", "-q")),
    Place("tmpfs", memory),
    Place("overlay on tmpfs", overlay),
    Place("exFAT (exfat-fuse)", exfat),
    Place("exFAT (kernel)", lambda scratch: by_kernel(scratch, "exfat", "64M", "mkfs.exfat")),
    Place("FAT32 (kernel)", lambda scratch: by_kernel(scratch, "vfat", "64M", "mkfs.vfat", "-F", "32")),
    Place("NTFS (ntfs-3g)", ntfs),
    Place("sshfs on ext4", sshfs),
    Place("bindfs on ext4", bindfs),
    Place("mergerfs on ext4", mergerfs),
    Place("read-only bind mount", read_only, is_read_only=True),
    Place("FUSE, no chmod", passthrough("chmod=EPERM")),
    Place("FUSE, no chown", passthrough("chown=EPERM")),
    Place("FUSE, no utimensat", passthrough("utimens=EPERM")),
    Place("FUSE, no hard links", passthrough("link=EPERM")),
    Place("FUSE, no flags of renameat2", passthrough("rename-flags=EINVAL")),
    Place("FUSE, no hard links and no flags of renameat2", passthrough("link=EOPNOTSUPP", "rename-flags=EINVAL")),
    Place("FUSE, no statfs", passthrough("statfs=ENOSYS")),
    Place("FUSE, 0 of 0 blocks", passthrough("--zero-blocks")),
    Place("FUSE, no fallocate", passthrough("fallocate=EOPNOTSUPP")),
    Place("FUSE, no fsync of folders", passthrough("fsyncdir=EINVAL")),
    Place("FUSE, no ftruncate", passthrough("truncate=EPERM")),
    Place("FUSE, files of another owner", passthrough("chmod=EPERM", "chown=EPERM", "utimens=EPERM", "--foreign")),
    Place("FUSE, all of these are ENOSYS", passthrough(*refusing("ENOSYS"))),
    Place("FUSE, all of these are EOPNOTSUPP", passthrough(*refusing("EOPNOTSUPP"), "--zero-blocks")),
    Place("FUSE, all of these are EINVAL", passthrough(*refusing("EINVAL"))),
    Place("FUSE, one inode number for all", passthrough("--equal-inodes")),
    Place("FUSE, names of at most 143 bytes", passthrough("--short-names")),
]
