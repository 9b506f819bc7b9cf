"""A load of S3 requests, by `load.go`."""

import os
import pathlib
import shutil
import subprocess
from typing import NamedTuple

import tools
from served import KEY, SECRET

HERE = pathlib.Path(__file__).resolve().parent
BUILD = tools.TARGET / "gateway-load"


class Run(NamedTuple):
    """The nanoseconds of a run, and of each of its requests."""

    whole: int
    requests: list[int]


def program() -> pathlib.Path:
    """Returns the load's program, built if its source is newer."""
    built, source = BUILD / "load", HERE / "load.go"
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        tools.go()
        BUILD.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, BUILD / "main.go")
        (BUILD / "go.mod").write_text("module load\n\ngo 1.23\n")
        subprocess.run(["go", "get", "github.com/minio/minio-go/v7@v7.4.1"], cwd=BUILD, check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["go", "build", "-o", "load", "."], cwd=BUILD, check=True)
    return built


class Load:
    """Clients that put and get objects of one size at an endpoint, until the end of the `with` block."""

    def __init__(self, address: str, clients: int, size: int, within: list[str] = ()):
        command = [*within, str(program()), address, KEY, SECRET, str(clients), str(size)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)

    def __enter__(self) -> "Load":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()

    def run(self, op: str, first: int, count: int) -> Run:
        """Does `op` with `count` objects, numbered from `first` on."""
        self.process.stdin.write(f"{op} {first} {count}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if len(line) != count + 1:
            raise SystemExit(f"the load ended in {op} of {count} objects from {first} on")
        return Run(int(line[0]), list(map(int, line[1:])))
