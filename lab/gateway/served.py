"""A volume over six folders, and a gateway before it that can be killed and started again."""

import contextlib
import os
import signal
import subprocess

KEY, SECRET = "owner", "0123456789abcdef"
GUEST, GUEST_SECRET = "guest", "fedcba9876543210"


def run(*command, **more):
    """Runs a command, and returns what it prints. Its own output is shown if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


class Gateway:
    """A gateway with two keys: the owner's opens every bucket, the guest's the bucket `guests` alone."""

    def __init__(self, program, folder, *options):
        self.program, self.folder, self.server, self.options = program, folder, None, options
        self.disks = [folder / f"disk{number}" for number in range(6)]
        for disk in self.disks:
            disk.mkdir()
        keys = folder / "keys.toml"
        keys.write_text(f'[[key]]\nid = "{KEY}"\nsecret = "{SECRET}"\n'
                        f'[[key]]\nid = "{GUEST}"\nsecret = "{GUEST_SECRET}"\nbuckets = ["guests"]\n')
        keys.chmod(0o600)
        nodes = [word for disk in self.disks for word in ("--node", disk)]
        run(program, "volume", "init", folder / "tank.toml", "--code", "4+2", *nodes)
        self.endpoint = None
        self.start("127.0.0.1:0")

    def start(self, address):
        command = [self.program, "serve", self.folder / "tank.toml", "--keys", self.folder / "keys.toml", "--listen", address]
        with open(self.folder / "log", "a") as log:
            self.server = subprocess.Popen([*command, *self.options], stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.server.stdout.readline()
        self.endpoint = line.split("serving S3 at ")[1].split(";")[0]

    def kill(self):
        self.server.kill()
        self.server.wait()

    def replace(self):
        """Kills the gateway, and starts another one at its address."""
        self.kill()
        self.start(self.endpoint.removeprefix("http://"))

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
        assert self.server.wait(timeout=40) == 0, "the gateway did not end with 0"
