"""A virtual machine with Debian's kernel, for the drivers of file systems that this machine's kernel lacks.

The machine sees all files of this one, without being able to change them, and has /run in memory as its only place to write.
It runs one command as root, with this machine's Python and programs, and stops. QEMU imitates the processor, because KVM is
seldom there where the tests run.
"""

import contextlib
import pathlib
import platform
import shlex
import shutil
import subprocess
import tempfile
from typing import Iterator

from mounts import Impossible, call

# The modules that reach this machine's files, and those of the file systems.
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "loop", "nls_cp437", "nls_ascii", "nls_utf8", "vfat", "exfat")
# The program that is the machine's shell, linked statically.
BUSYBOX = pathlib.Path("/bin/busybox")
# Seconds until a machine that does not stop by itself is stopped.
PATIENCE = 600
# What the machine does first. The command's output goes to the second serial port, the kernel's words to the first.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir /dev /root
/bin/busybox mount -t devtmpfs devtmpfs /dev
for module in {modules}; do /bin/busybox insmod $module || exit; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /root
/bin/busybox mount -t proc proc /root/proc
/bin/busybox mount -t sysfs sysfs /root/sys
/bin/busybox mount -t devtmpfs devtmpfs /root/dev
/bin/busybox mount -t tmpfs -o mode=755 tmpfs /root/run
HOME=/run TMPDIR=/run PATH={path} /bin/busybox chroot /root /bin/sh -c {command} > /dev/ttyS1 2>&1 < /dev/null
/bin/busybox poweroff -f
"""


def run(*command: object) -> str:
    """Runs a command in a machine of its own, and returns what it prints."""
    with scratch() as folder:
        words = shlex.join(str(part) for part in command)
        kernel, said = boot_files(folder, words), folder / "said"
        console = ["-display", "none", "-no-reboot", "-serial", f"file:{folder / 'console'}", "-serial", f"file:{said}"]
        root = ["-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap", "-device", "virtio-9p-pci,fsdev=host,mount_tag=host"]
        start = ["-kernel", kernel, "-initrd", folder / "initrd", "-append", "console=ttyS0 panic=-1 quiet"]
        machine = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "1G", "-smp", "1", "-nodefaults", *console, *root, *start]
        try:
            subprocess.run([str(part) for part in machine], stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=True)
        except FileNotFoundError:
            raise Impossible("there is no qemu-system-x86_64") from None
        except subprocess.CalledProcessError as error:
            raise Impossible(f"QEMU: {error.stderr.decode().strip()}") from error
        except subprocess.TimeoutExpired:
            raise Impossible(f"the machine takes longer than {PATIENCE} seconds") from None
        return said.read_text()


@contextlib.contextmanager
def scratch() -> Iterator[pathlib.Path]:
    folder = pathlib.Path(tempfile.mkdtemp(prefix="paritas-machine-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def boot_files(folder: pathlib.Path, command: str) -> pathlib.Path:
    """Makes the first file system of the machine, `initrd`, and returns the kernel."""
    unpacked, first = folder / "kernel", folder / "first"
    call("apt-get", "-qq", "download", package(), cwd=folder)
    for archive in folder.glob("*.deb"):
        call("dpkg-deb", "--extract", archive, unpacked)
    version = next((unpacked / "lib" / "modules").iterdir()).name
    call("depmod", "-b", unpacked, version)
    (first / "bin").mkdir(parents=True)
    if not BUSYBOX.exists():
        raise Impossible(f"there is no {BUSYBOX}")
    shutil.copy(BUSYBOX, first / "bin")
    needed = modules(unpacked, version)
    for module in needed:
        shutil.copy(module, first)
    names = " ".join("/" + module.name for module in needed)
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    (first / "init").write_text(INIT.format(modules=names, path=path, command=shlex.quote(command)))
    (first / "init").chmod(0o755)
    call("cpio", "--quiet", "-o", "-H", "newc", "-O", folder / "initrd", cwd=first, given=call("find", ".", cwd=first))
    return next((unpacked / "boot").glob("vmlinuz-*"))


def package() -> str:
    """Returns the name of the package that has Debian's kernel."""
    if platform.machine() != "x86_64":
        raise Impossible(f"the machine is made for x86_64, and this is {platform.machine()}")
    _, _, depends = call("apt-cache", "depends", "linux-image-amd64").partition("Depends:")
    if not depends:
        raise Impossible("apt knows no kernel of Debian")
    return depends.split()[0]


def modules(unpacked: pathlib.Path, version: str) -> list[pathlib.Path]:
    """Returns all modules that are needed, each after those that it needs."""
    needed: dict[pathlib.Path, None] = {}
    for name in MODULES:
        shown = call("modprobe", "-d", unpacked, "-S", version, "--show-depends", name)
        needed |= {pathlib.Path(line.split()[1]): None for line in shown.splitlines() if line.startswith("insmod")}
    return list(needed)
