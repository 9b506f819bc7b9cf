"""What several programs of the lab do alike: run a command, end when told, compare trees, change a text, find a free port, read and write bytes."""

import argparse
import filecmp
import os
import pathlib
import re
import signal
import socket
import subprocess
from typing import Collection

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def run(*command: object, expect: Collection[int] = (0,), **more) -> str:
    """Runs a command, and returns what it prints. If its exit code is not expected, the error has the end of what it printed."""
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode not in expect:
        raise RuntimeError(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def end_when_told() -> None:
    """Lets SIGTERM and SIGHUP end this program as Ctrl-C does, so that `with` and `finally` take everything away. A terminal that is
    closed sends SIGHUP, which `nohup` ignores."""
    for told in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(told) != signal.SIG_IGN:
            signal.signal(told, signal.default_int_handler)


def differences(left: pathlib.Path, right: pathlib.Path, leave_out: Collection[str] = ()) -> list[str]:
    """Returns the paths in two trees at which a file or folder is in one alone, is not of the same kind, or has other bytes.
    Names in `leave_out` are not compared at any depth."""
    found = filecmp.dircmp(left, right, ignore=list(leave_out))
    _, differ, unreadable = filecmp.cmpfiles(left, right, found.common_files, shallow=False)
    below = [f"{name}/{path}" for name in found.common_dirs for path in differences(left / name, right / name, leave_out)]
    return sorted([*found.left_only, *found.right_only, *found.common_funny, *differ, *unreadable, *below])


def replaced(text: str, old: str, new: str) -> str:
    """Returns a text with `new` in place of the first `old`, which must be there."""
    assert old in text, f"there is no {old!r} in:\n{text}"
    return text.replace(old, new, 1)


def free_port() -> int:
    """Returns a port of loopback at which nothing listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def parse_bytes(text: str) -> int:
    """Reads a number of bytes as 4096, 64M or 10G."""
    found = re.fullmatch("([0-9]+)([KMG]?)", text)
    if not found:
        raise argparse.ArgumentTypeError(f"must be a number of bytes as 4096, 64M or 10G; got {text}")
    return int(found[1]) * UNITS[found[2]]


def parse_file_bytes(text: str) -> int:
    """Reads the length of a file that is worth measuring."""
    length = parse_bytes(text)
    if length < UNITS["M"]:
        raise argparse.ArgumentTypeError(f"must be at least 1M; got {text}")
    return length


def write_random(path: pathlib.Path, length: int) -> None:
    """Writes a file of random bytes."""
    with open(path, "wb") as file:
        for start in range(0, length, UNITS["M"]):
            file.write(os.urandom(min(UNITS["M"], length - start)))
