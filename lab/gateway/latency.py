#!/usr/bin/env python3
"""Measures how long requests to `paritas serve` take while a node is slow or silent: `lab/gateway/latency.py`.

The gateway serves a 4+2 volume over six hosts (network namespaces with nginx as a WebDAV server, see lab/hosts.py), each
behind a link of its own. minio-go, on the gateway's host, puts and gets objects of 64 KiB with four clients. Rounds with
all nodes healthy, with one behind a link of a tenth of the rate, and with one that answers nothing follow each other in
turn. Printed are the 50th and the 99th percentile of all requests of a kind, and the longest one. Needs root.
"""

import argparse
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import hosts  # noqa: E402
import load  # noqa: E402
import pairs  # noqa: E402
import records  # noqa: E402
import tools  # noqa: E402
from served import Gateway  # noqa: E402

# MB/s of a node's link, and of the gateway's.
RATE, GATEWAY_RATE = 12, 118.5
CLIENTS, SIZE = 4, 64 << 10
# What is done to a node, by the name of a state.
STATES = {
    "healthy": lambda network: None,
    "one node ten times slower": lambda network: network.slow([1], RATE / 10),
    "one node silent": lambda network: network.hang([1]),
}
COLUMNS = ["state", "op", "round", "request", "ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--objects", type=int, default=400, help="objects of a round")
    parser.add_argument("--label", default="", help="the end of the record's name")
    args = parser.parse_args()
    hosts.explain_if_impossible()
    program, source = tools.paritas(), records.origin()
    print(f"{source.processor}, commit {source.commit}\n")
    with (hosts.Network(6, RATE) as network, records.keep("gateway-latency", args.label, COLUMNS, source) as writer):
        show(measure(network, program, args, writer))


def measure(network, program, args, writer):
    """Returns the nanoseconds of all requests, by state and operation."""
    network.shape(hosts.CLIENT, 0, GATEWAY_RATE)
    for node in network.nodes:
        (network.data(node) / "tank").mkdir()
    within = network.within(hosts.CLIENT, [])
    nodes = [network.uri(node, "tank") for node in network.nodes]
    taken = {(op, state): [] for op in ("put", "get") for state in STATES}
    with Gateway(program, network.folder, nodes=nodes, within=within) as gateway, load.Load(gateway.address, CLIENTS, SIZE, within) as clients:
        clients.run("put", 0, args.objects)
        for number in range(args.rounds):
            for state, happens in STATES.items():
                happens(network)
                for op in ("put", "get"):
                    requests = clients.run(op, 0, args.objects).requests
                    taken[op, state] += requests
                    writer.writerows([state, op, number, *pair] for pair in enumerate(requests))
                network.heal()
    return taken


def show(taken):
    print("| request | nodes | p50, ms | p99, ms | longest, ms | p99 x healthy |")
    print("| --- | --- | --- | --- | --- | --- |")
    for (op, state), requests in taken.items():
        ordered, healthy = sorted(requests), sorted(taken[op, "healthy"])
        at = lambda share: pairs.quantile(ordered, share)
        ratio = at(0.99) / pairs.quantile(healthy, 0.99)
        print(f"| {op} | {state} | {at(0.5) / 1e6:.1f} | {at(0.99) / 1e6:.1f} | {ordered[-1] / 1e6:.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
