"""A volume over six folders, and a gateway before it that can be killed and started again."""

import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import hosts  # noqa: E402
from common import free_port, run  # noqa: E402

KEY, SECRET = "owner", "0123456789abcdef"
GUEST, GUEST_SECRET = "guest", "fedcba9876543210"


def wait_for(port):
    for _ in range(200):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise RuntimeError(f"nothing listens at port {port}")


class WebDav:
    """A folder that nginx serves by WebDAV until the end of the `with` block; it can fall silent: connections are made, but nothing
    is answered."""

    def __init__(self, folder):
        hosts.install()
        self.port = free_port()
        folder.mkdir()
        (folder / "data").mkdir()
        (folder / "nginx.conf").write_text(hosts.NGINX.format(folder=folder, port=f"127.0.0.1:{self.port}", webdav=hosts.WEBDAV))
        self.command = ["nginx", "-c", folder / "nginx.conf", "-e", folder / "error"]
        self.uri = f"webdav+http://127.0.0.1:{self.port}/"

    def __enter__(self):
        self.server = subprocess.Popen(self.command)
        try:
            wait_for(self.port)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.server.kill()
        self.server.wait()

    @contextlib.contextmanager
    def silent(self):
        self.server.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.server.send_signal(signal.SIGCONT)


class Gateway:
    """A gateway with two keys: the owner's opens every bucket, the guest's the bucket `guests` alone. Its nodes are six folders,
    or those that are given: folders, WebDAV servers, and what else a volume knows by its URI. `within` stands before its
    commands, and chooses the host on which they run. It serves until the end of the `with` block, and must then end well."""

    def __init__(self, program, folder, *options, nodes=None, within=()):
        self.program, self.folder, self.server, self.options, self.within = program, folder, None, options, within
        nodes = nodes or [folder / f"disk{number}" for number in range(6)]
        self.disks = [node for node in nodes if isinstance(node, pathlib.Path)]
        self.services = [node for node in nodes if isinstance(node, WebDav)]
        for disk in self.disks:
            disk.mkdir()
        keys = folder / "keys.toml"
        keys.write_text(f'[[key]]\nid = "{KEY}"\nsecret = "{SECRET}"\n'
                        f'[[key]]\nid = "{GUEST}"\nsecret = "{GUEST_SECRET}"\nbuckets = ["guests"]\n')
        keys.chmod(0o600)
        named = [word for node in nodes for word in ("--node", node.uri if isinstance(node, WebDav) else node)]
        run(*within, program, "volume", "init", folder / "tank.toml", "--code", "4+2", *named)
        self.endpoint = None

    def __enter__(self):
        try:
            self.start("127.0.0.1:0")
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, error, *_):
        if error:
            self.kill()
        else:
            self.stop()

    @property
    def address(self):
        """The host and the port."""
        return self.endpoint.removeprefix("http://")

    def start(self, address):
        command = [*self.within, self.program, "serve", self.folder / "tank.toml", "--keys", self.folder / "keys.toml", "--listen", address]
        with open(self.folder / "log", "a") as log:
            self.server = subprocess.Popen([*command, *self.options], stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.server.stdout.readline()
        if "serving S3 at " not in line:
            raise RuntimeError(f"the gateway does not serve at {address}: {(self.folder / 'log').read_text()[-3000:]}")
        self.endpoint = line.split("serving S3 at ")[1].split(";")[0]

    def kill(self):
        if self.server:
            self.server.kill()
            self.server.wait()

    def move(self, address):
        """Kills the gateway, and starts another one elsewhere."""
        self.kill()
        self.start(address)

    def replace(self):
        """Kills the gateway, and starts another one at its address."""
        self.move(self.address)

    @contextlib.contextmanager
    def elsewhere(self, address):
        """The gateway serves at another address for a while."""
        before = self.address
        try:
            self.move(address)
            yield
        finally:
            self.move(before)

    @contextlib.contextmanager
    def without(self, *disks):
        """Some disks are gone for a while."""
        for disk in disks:
            self.disks[disk].rename(self.folder / f"away{disk}")
        try:
            yield
        finally:
            for disk in disks:
                (self.folder / f"away{disk}").rename(self.disks[disk])

    def memory(self):
        """Returns the largest memory that the gateway has taken so far, in bytes."""
        with open(f"/proc/{self.server.pid}/status") as status:
            line = next(line for line in status if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10

    def stop(self):
        self.server.send_signal(signal.SIGTERM)
        try:
            assert self.server.wait(timeout=40) == 0, "the gateway did not end with 0"
        finally:
            self.kill()
