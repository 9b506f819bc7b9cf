"""Other people's libraries, measured in pairs with ours by the programs of lab/peers."""

import argparse
import functools
import sys
from typing import Iterable

import pairs
from peers import counts
from peers import run as peers

from .experiment import Cell

# Pairs of a comparison.
ROUNDS = 20
# The library in Go.
IN_GO = "klauspost"


def install(*variants: str) -> None:
    """Installs and builds all peers; those in Go only if one of the variants is. What cannot be had raises tools.Missing."""
    install_most()
    if any(variant.startswith(IN_GO) for variant in variants):
        install_those_in_go()


@functools.cache
def install_most() -> None:
    peers.install(peers.DEBIAN + ("python", "rust"))


@functools.cache
def install_those_in_go() -> None:
    peers.install(("go",))


def beside(row: str, k: int, m: int, operation: str, ours: str, variants: dict[str, str], set_bytes: int) -> Iterable[Cell]:
    """Measures how many times as fast ours is as each library that can serve the shape; lab/peers/run.py describes variants."""
    install(*variants.values())
    args = argparse.Namespace(op=operation, set=set_bytes, align="staggered", before=None)
    started = peers.start(k, m, [ours, *variants.values()], args)
    try:
        for name, variant in variants.items():
            if started[variant].ready:
                command = f"lab/peers/run.py --shapes {k}+{m} --op {operation} --set {set_bytes} --pairs {ours}/{variant}"
                yield ratio(row, name, started[ours], started[variant], command)
    finally:
        for peer in started.values():
            peer.close()


def normalised(row: str, column: str, k: int, m: int, operation: str, variant: str, set_bytes: int) -> Iterable[Cell]:
    """Measures a library: its speed as a fraction of that of one XOR for each byte read, with the best kernel, as
    `paritas bench --best-roofline` does. Says so if the library cannot serve the shape."""
    install(variant)
    args = argparse.Namespace(op=operation, set=set_bytes, align="staggered", before=None)
    started = peers.start(k, m, ["xor", variant], args)
    try:
        if started[variant].ready:
            command = f"lab/peers/run.py --shapes {k}+{m} --op {operation} --set {set_bytes} --pairs {variant}/xor"
            yield ratio(row, column, started[variant], started["xor"], command)
        else:
            print(f"  {variant} cannot serve [{k},{m}]", file=sys.stderr)
    finally:
        for peer in started.values():
            peer.close()


def ratio(row: str, name: str, subject: peers.Peer, base: peers.Peer, command: str) -> Cell:
    """Takes pairs of samples until the ratio is known; returns it for equally many bytes, with the speed of the subject."""
    taken = pairs.Pairs()
    while taken.is_open(ROUNDS):
        taken.take(subject.sample, base.sample)
    scale = subject.shard / base.shard
    found = pairs.Pairs([(a / scale, b) for a, b in taken.pairs]).ratio()
    speed = subject.k * subject.shard / taken.subject().median
    doubt = "too noisy" if found.is_noisy else ""
    return Cell(row, name, found.median, found.low, found.high, speed, doubt, command)


def of_caches(variant: str, k: int, m: int, set_bytes: int, caches: list[str]) -> dict[str, float]:
    """Returns what cachegrind counts for each KiB of user data while a variant encodes, with simulated caches."""
    install(variant)
    counts.install()
    args = argparse.Namespace(op="encode", align="staggered")
    return counts.per_kib(variant, k, m, peers.shard_bytes(set_bytes, k, m), args, (2, 4), caches)
