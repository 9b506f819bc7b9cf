"""A load of S3 requests, by `load.go`."""

import os
import subprocess
from typing import NamedTuple

import minio
from served import KEY, SECRET


class Run(NamedTuple):
    """The nanoseconds of a run, and of each of its requests."""

    whole: int
    requests: list[int]


class Load:
    """Clients that put and get objects of one size at an endpoint, until the end of the `with` block."""

    def __init__(self, address: str, clients: int, size: int, within: list[str] = ()):
        command = [*within, str(minio.program("load")), address, KEY, SECRET, str(clients), str(size)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error:
            self.process.kill()
        # It ends where its input does.
        self.process.communicate()

    def run(self, op: str, first: int, count: int) -> Run:
        """Does `op` with `count` objects, numbered from `first` on."""
        self.process.stdin.write(f"{op} {first} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if len(line) != count + 1:
            raise SystemExit(f"the load ended in {op} of {count} objects from {first} on")
        return Run(int(line[0]), list(map(int, line[1:])))
