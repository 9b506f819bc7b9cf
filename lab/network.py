#!/usr/bin/env python3
"""Measures volumes on a network: the prototype of Zhou's dissertation (chapter 4), and stragglers as in RobuSTore.

    lab/network.py prototype [--rates 11.3,118.5,596] [--codes 5+2+3,...] [--rounds 5]
    lab/network.py units [--rates 11.3,118.5,596] [--rounds 5]
    lab/network.py stragglers [--rates 118.5] [--rounds 20] [--plain-rounds 1]
    lab/network.py report RECORD...
    lab/network.py --quick

Hosts are network namespaces, each behind a link of its own rate; nodes are off-the-shelf WebDAV servers, and all files
are in memory (see hosts.py). The client runs `paritas volume put`, `promote` and `get`. Times are those of whole
commands; a time counts only if the object came back right. What the nodes sent and received is taken from their logs.

`prototype` measures the codes of tables 4.6 to 4.8. For BB-DPG with (k, m, m2), `enc` stores an object with m parities,
`dec1` gets it with m data shards lost, `gen` promotes it to m2 parities, and `dec2` gets it with m2 data shards lost.
Beside it stand the plain codes k+m and k+m2, in turn. `units` changes the size of transmission units, as figure 4.6
does. `stragglers` gets an object while some of 16 nodes are slow, hang, or cut connections off.

Raw samples go to lab/records/ (see records.py); `report` prints the tables of such records. --quick measures one code at
one rate on a small object, in some seconds, and keeps no record. Needs root. The whole takes an hour and a half.
"""

import argparse
import contextlib
import filecmp
import json
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Iterable, Iterator, NamedTuple

import common
import hosts
import network_tables
import records
import tools
from hosts import Cost, Network
from network_tables import SHAPES, Row, Shape

COLUMNS = ["rate", "shape", "scheme", "phase", "round", "seconds", "inside", "bytes", "sent", "received", "reads", "client_cpu",
           "servers_cpu", "machine_cpu", "arrived"]
# MiB of an object, by rate, so that a transfer takes some seconds.
SIZES = {11.3: 32, 118.5: 256, 596.0: 768}
# The shape of the quick form, and its MiB.
QUICK, QUICK_SIZE = Shape(5, 2, 3), 24
# KiB of transmission units in figure 4.6's sweep.
UNITS = [16, 64, 256, 1024, 4096, 16384]
# Nodes of the volumes that are read while some lag.
NODES = 16
# Volumes that are read while nodes lag, and the settings of one that waits for every node that it has asked.
STRAGGLING = {"LT": "lt:k=128,n=256,nodes=16", "10+6 hedged": "10+6"}
PLAIN = "hedge.at_least = 3600000; limits.timeout = 5"
# Bytes of answers after which a cutting node ends a connection.
CUT_AFTER = 300_000


class Sample(NamedTuple):
    """One command: what it took, what it reported, and what it moved."""

    cost: Cost
    inside: float
    sent: int
    received: int
    reads: int


class Volume:
    """A volume over the first nodes of a network, in a folder of its own on each."""

    def __init__(self, network: Network, paritas: str, name: str, code: str, nodes: int, settings: str = ""):
        self.network, self.paritas, self.name = network, paritas, name
        self.file = network.folder / f"{name}.toml"
        self.nodes = network.nodes[:nodes]
        for node in self.nodes:
            (network.data(node) / name).mkdir()
        uris = [part for node in self.nodes for part in ("--node", network.uri(node, name))]
        self.call("init", self.file, "--code", code, *uris)
        self.file.write_text(with_settings(self.file.read_text(), settings))

    def call(self, command: str, *arguments: object) -> Sample:
        """Runs a command about volumes on the client; ends the program if it fails."""
        self.network.requests()
        line = [self.paritas, "volume", command, *map(str, arguments), "--json"]
        done, cost = self.network.run(line)
        if done.returncode != 0:
            sys.exit(f"{' '.join(line)} failed: {done.stderr.decode(errors='replace')}")
        report = json.loads(done.stdout.splitlines()[-1])
        # Servers notice connections that the client has closed.
        time.sleep(0.03)
        requests = self.network.requests()
        reads = [request for request in requests if request.method == "GET" and "/objects/" in request.path]
        received = sum(request.received for request in requests)
        return Sample(cost, report.get("seconds", cost.seconds), sum(read.sent for read in reads), received, len(reads))

    def put(self, source: pathlib.Path, name: str) -> Sample:
        return self.call("put", self.file, source, name)

    def get(self, name: str, source: pathlib.Path, file: pathlib.Path | None = None) -> Sample:
        """Gets an object, and ends the program if it differs from `source`."""
        into = self.network.folder / "got"
        sample = self.call("get", file or self.file, name, into, "--no-sync", "--force")
        if not filecmp.cmp(source, into, shallow=False):
            sys.exit(f"{self.name}: {name} came back with other bytes")
        into.unlink()
        return sample

    def shards(self, name: str) -> dict[int, tuple[int, pathlib.Path]]:
        """Returns the node and the file of each shard of an object."""
        found = {}
        for node in self.nodes:
            for path in (self.network.data(node) / self.name / "objects").glob(f"*/*/{name}.*of*.paritas"):
                found[int(path.name.split(".")[-2].split("of")[0])] = (node, path)
        return found

    def node_of(self, name: str, shard: int) -> int:
        return self.shards(name)[shard][0]

    @contextlib.contextmanager
    def lost(self, name: str, count: int) -> Iterator[None]:
        """Hides the first shards of an object, which hold data."""
        shards = self.shards(name)
        paths = [shards[shard][1] for shard in range(count)]
        for path in paths:
            path.rename(self.network.folder / path.name)
        yield
        for path in paths:
            (self.network.folder / path.name).rename(path)

    def rerouted(self, nodes: list[int]) -> pathlib.Path:
        """Returns a volume file by which some nodes are reached at the port that cuts connections off."""
        text = self.file.read_text()
        for node in nodes:
            host = self.network.address(node)
            text = common.replaced(text, f"{host}:{hosts.PORT}/", f"{host}:{hosts.CUT_PORT}/")
        file = self.network.folder / f"{self.name}-cut.toml"
        file.write_text(text)
        return file

    def remove(self) -> None:
        self.file.unlink()
        for node in self.nodes:
            shutil.rmtree(self.network.data(node) / self.name)


def with_settings(text: str, settings: str) -> str:
    """Puts settings, as `key = value` or `section.key = value` separated by semicolons, into a volume file."""
    for setting in filter(None, settings.split(";")):
        name = setting.split("=")[0].strip()
        section, _, key = name.rpartition(".")
        value = setting.split("=", 1)[1].strip()
        head = f"[{section}]\n" if section else "\n"
        text = common.replaced(text, head, f"{head}{key} = {value}\n")
    return text


class Lab:
    """What all measurements share: hosts, the command, and an object."""

    def __init__(self, network: Network, paritas: str, size: int):
        self.network, self.paritas, self.bytes = network, paritas, size
        self.source = network.folder / "object"
        common.write_random(self.source, size)

    def volume(self, name: str, code: str, nodes: int, settings: str = "") -> Volume:
        return Volume(self.network, self.paritas, name, code, nodes, settings)

    def keep(self, shape: object, scheme: str, phase: object, number: int, sample: Sample) -> Row:
        cost = sample.cost
        row = [self.network.rate, shape, scheme, phase, number, f"{cost.seconds:.4f}", f"{sample.inside:.4f}", self.bytes,
               sample.sent, sample.received, sample.reads, f"{cost.client:.3f}", f"{cost.servers:.3f}", f"{cost.machine:.3f}",
               cost.arrived]
        return {column: str(value) for column, value in zip(COLUMNS, row)}


def whole_groups(shape: Shape, size: int) -> int:
    """Rounds a size down to whole stripes of a code for any w up to 6, so that nothing is padding."""
    stripe = 64 * 60 * shape.k * shape.m2
    return size // stripe * stripe


def prototype(lab: Lab, shape: Shape, rounds: int) -> Iterator[Row]:
    """Measures a code and its plain siblings, phase by phase and in changing order."""
    k, m, m2 = shape
    volumes = {
        "bbdpg": lab.volume("bbdpg", f"bbdpg:k={k},m={m},m2={m2}", k + m2),
        "k+m": lab.volume("k-m", f"{k}+{m}", k + m),
        "k+m2": lab.volume("k-m2", f"{k}+{m2}", k + m2),
    }
    for number in range(rounds):
        name, taken = f"object{number}", []
        for scheme in rotated(volumes, number):
            taken.append((scheme, "enc", volumes[scheme].put(lab.source, name)))
        if lab.network.server != "nginx":
            yield from writes(lab, shape, number, volumes, taken)
            continue
        for scheme in rotated(["bbdpg", "k+m"], number):
            with volumes[scheme].lost(name, m):
                taken.append((scheme, "dec1", volumes[scheme].get(name, lab.source)))
        taken.append(("bbdpg", "gen", volumes["bbdpg"].call("promote", volumes["bbdpg"].file, name)))
        for scheme in rotated(["bbdpg", "k+m2"], number):
            with volumes[scheme].lost(name, m2):
                taken.append((scheme, "dec2", volumes[scheme].get(name, lab.source)))
        for volume in volumes.values():
            volume.call("rm", volume.file, name)
        for scheme, phase, sample in taken:
            row = lab.keep(shape, scheme, phase, number, sample)
            yield checked(shape, row) if phase == "gen" else row
    for volume in volumes.values():
        volume.remove()


def writes(lab: Lab, shape: Shape, number: int, volumes: dict[str, Volume], taken: list[tuple]) -> Iterator[Row]:
    """Checks that what was written comes back, and takes it away."""
    for volume in volumes.values():
        volume.get(f"object{number}", lab.source)
        volume.call("rm", volume.file, f"object{number}")
    for scheme, phase, sample in taken:
        yield lab.keep(shape, scheme, phase, number, sample)


def checked(shape: Shape, row: Row) -> Row:
    """Ends the program unless the nodes sent exactly the bytes of theorem 1 for a promotion."""
    sent, least = network_tables.payload(shape, row), network_tables.theorem_bytes(shape, int(row["bytes"]))
    if sent != least:
        sys.exit(f"promotion of {shape} read {sent} bytes; theorem 1 names {least}")
    return row


def units(lab: Lab, shape: Shape, rounds: int) -> Iterator[Row]:
    """Measures reads with transmission units of several sizes."""
    k, m, m2 = shape
    for kib in UNITS:
        settings = f"unit = {kib << 10}; block = {min(kib, 256) << 10}"
        volume = lab.volume("units", f"bbdpg:k={k},m={m},m2={m2}", k + m2, settings)
        volume.put(lab.source, "object")
        for number in range(rounds):
            yield lab.keep(shape, f"{kib} KiB", "dec1", number, volume.get("object", lab.source))
        volume.remove()


class Illness(NamedTuple):
    """What is wrong with some nodes, and with how many."""

    name: str
    nodes: int

    def __str__(self) -> str:
        return f"{self.nodes} {self.name}" if self.nodes else self.name


ILLNESSES = [Illness("healthy", 0), *(Illness(name, nodes) for name in ("slow", "hung", "cutting") for nodes in (1, 2, 4))]


def stragglers(lab: Lab, kinds: list[str], rounds: int, plain_rounds: int) -> Iterator[Row]:
    """Measures reads while nodes lag: of an LT volume, and of an MDS volume with hedging and without."""
    schemes = {kind: lab.volume(kind.split()[0], STRAGGLING[kind], NODES) for kind in kinds}
    for volume in schemes.values():
        volume.put(lab.source, "object")
    plain = lab.volume("plain", "10+6", NODES, PLAIN)
    plain.put(lab.source, "object")
    for number in range(rounds):
        for illness in ILLNESSES:
            for scheme in rotated(schemes, number):
                yield lab.keep(f"{NODES} nodes", scheme, illness, number, get_from_ill(lab, schemes[scheme], illness))
    for number in range(plain_rounds):
        for illness in ILLNESSES:
            yield lab.keep(f"{NODES} nodes", "10+6 plain", illness, number, get_from_ill(lab, plain, illness))


def get_from_ill(lab: Lab, volume: Volume, illness: Illness) -> Sample:
    """Gets the object while the nodes of its first shards (which are data, in an MDS code) lag."""
    network, file = lab.network, volume.file
    nodes = [volume.node_of("object", shard) for shard in range(illness.nodes)]
    match illness.name:
        case "slow":
            network.slow(nodes, network.rate / len(network.nodes) / 10)
        case "hung":
            network.hang(nodes)
        case "cutting":
            network.cut(nodes, CUT_AFTER)
            file = volume.rerouted(nodes)
    try:
        return volume.get("object", lab.source, file)
    finally:
        network.heal()


def rotated(things: Iterable, by: int) -> list:
    """Returns the things in another order for each round."""
    listed = list(things)
    by %= len(listed)
    return listed[by:] + listed[:by]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=["prototype", "units", "stragglers", "report"])
    parser.add_argument("records", nargs="*", help="for `report`: names of records")
    parser.add_argument("--quick", action="store_true", help="one code, one rate, a small object, no record")
    parser.add_argument("--rates", type=numbers, help="MB/s of the links")
    parser.add_argument("--codes", type=shapes, default=SHAPES, help="K+M+M2,...")
    parser.add_argument("--server", default="nginx", choices=["nginx", "versitygw"],
                        help="for `prototype`; of versitygw, which logs nothing, only writes")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--kind", choices=STRAGGLING, help="for `stragglers`: only this volume")
    parser.add_argument("--plain-rounds", type=int, default=1, help="rounds without hedging, which can take minutes")
    parser.add_argument("--size", type=int, metavar="MIB", help="size of the object")
    parser.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--label", default="", help="ends the name of the record")
    args = parser.parse_args()
    if args.what is None and not args.quick:
        parser.error("say what to measure, or --quick")
    return args


def numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def shapes(text: str) -> list[Shape]:
    return [Shape(*map(int, part.split("+"))) for part in text.split(",")]


def run_prototype(args: argparse.Namespace, paritas: str) -> Iterator[Row]:
    for rate in args.rates or SIZES:
        with Network(max(shape.k + shape.m2 for shape in args.codes), rate, args.server) as network:
            for shape in args.codes:
                size = whole_groups(shape, (args.size or SIZES.get(rate, 256)) << 20)
                yield from prototype(Lab(network, paritas, size), shape, args.rounds or 5)


def run_units(args: argparse.Namespace, paritas: str) -> Iterator[Row]:
    for rate in args.rates or SIZES:
        with Network(8, rate) as network:
            yield from units(Lab(network, paritas, (args.size or SIZES.get(rate, 256)) << 20), Shape(5, 2, 3), args.rounds or 5)


def run_stragglers(args: argparse.Namespace, paritas: str) -> Iterator[Row]:
    for rate in args.rates or [118.5]:
        with Network(NODES, rate) as network:
            lab, kinds = Lab(network, paritas, (args.size or 256) << 20), [args.kind] if args.kind else list(STRAGGLING)
            yield from stragglers(lab, kinds, 20 if args.rounds is None else args.rounds, args.plain_rounds)


RUNS = {"prototype": run_prototype, "units": run_units, "stragglers": run_stragglers}


def measure(args: argparse.Namespace, paritas: str) -> list[Row]:
    """Measures, and adds each sample to the record as soon as it is taken."""
    rows, source = [], records.origin(args.paritas)
    with records.keep(f"network-{args.what}", args.label, COLUMNS, source) as writer:
        for row in RUNS[args.what](args, paritas):
            rows.append(row)
            writer.writerow(row.values())
            print(*row.values(), file=sys.stderr)
    return rows


def main() -> None:
    args = arguments()
    if args.what == "report":
        for name in args.records:
            record = records.load(name)
            print(f"\n{name}: {record.origin.processor}, commit {record.origin.commit}, {record.origin.date}")
            network_tables.REPORTS[name.split("-")[1]](record.rows)
        return
    hosts.explain_if_impossible()
    paritas = str(tools.paritas(args.paritas))
    if args.quick:
        args.what, args.rates, args.codes, args.size, args.rounds = "prototype", [118.5], [QUICK], QUICK_SIZE, 1
        rows = list(run_prototype(args, paritas))
    else:
        rows = measure(args, paritas)
    network_tables.REPORTS[args.what](rows)


if __name__ == "__main__":
    main()
