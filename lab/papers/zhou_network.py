"""Zhou's dissertation, section 4.9: objects over links, measured by lab/network.py on the machine at hand. That takes root, as hosts
are network namespaces; without it these experiments fail and leave no record."""

from typing import Callable, Iterable, Iterator

import hosts
import network
import network_tables
from network_tables import Group, Row, Shape

from .command import binary
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records
from .zhou import numbers, rows

# MB/s of the links of the dissertation's tables: Raspberry Pi, aws1 and aws2.
LINKS = {"4.6": 11.3, "4.7": 118.5, "4.8": 596.0}
SCHEMES = {"BB-DPG": "bbdpg", "(k, m)": "k+m", "(k, m2)": "k+m2"}
# The code of figure 4.6.
UNITS_SHAPE = Shape(5, 2, 3)
# MiB of an object by rate, in a whole run and in a quick one; a whole run's transfers take one to three seconds. The dissertation
# does not say how long its objects are. Figure 4.6 has longer ones in a quick run, because its units may have 16 MiB.
SIZES = {11.3: 24, 118.5: 192, 596.0: 576}
QUICK_SIZES = {11.3: 2, 118.5: 16, 596.0: 48}
QUICK_UNITS = {11.3: 4, 118.5: 16, 596.0: 48}
# Rounds of a whole run. From six on, the least and the greatest of them hold the median with 95 % confidence, 1 - 2^(1 - 6).
ROUNDS = 6


def rounds(effort: Effort) -> int:
    return 1 if effort.quick else ROUNDS


def mebibytes(effort: Effort, rate: float, quick: dict[float, int]) -> int:
    return (quick if effort.quick else SIZES)[rate]


def over_links(rate: float, nodes: int, size: int, measure: Callable[[network.Lab], Iterator[Row]]) -> list[Row]:
    """Returns the samples of a measurement over links that are made for it, with an object of `size` bytes."""
    hosts.explain_if_impossible()
    with network.Network(nodes, rate) as links:
        return list(measure(network.Lab(links, str(binary()), size)))


def median(row: str, column: str, group: Group, command: str) -> Cell:
    """Returns the median of the rounds, with the least and the greatest speed."""
    speeds = group.speeds()
    count = len(speeds)
    doubt = "" if count >= ROUNDS else "a single sample" if count == 1 else f"only {count} samples"
    return Cell(row, column, group.speed(), speeds[0], speeds[-1], doubt=doubt, command=command)


def prototype(rate: float, shape: Shape, effort: Effort) -> Iterable[Cell]:
    """The cells of one code in a table: MB/s of the object."""
    size, count = mebibytes(effort, rate, QUICK_SIZES), rounds(effort)
    run = lambda lab: network.prototype(lab, shape, count)
    found = over_links(rate, shape.k + shape.m2, network.whole_groups(shape, size << 20), run)
    command = f"lab/network.py prototype --rates {rate:g} --codes {shape} --size {size} --rounds {count}"
    name = f"({','.join(map(str, shape))})"
    columns = {scheme: column for column, scheme in SCHEMES.items()}
    for (scheme, phase), group in network_tables.grouped(found, "scheme", "phase").items():
        yield median(f"{name} {phase}", columns[scheme], group, command)


def table(number: str) -> Experiment:
    rate = LINKS[number]
    shapes = lambda: [Shape(*shape) for shape in dict.fromkeys(tuple(numbers(row.split(" ")[0])) for row in rows(f"zhou-table-{number}"))]
    points = lambda effort: [
        Point(str(shape), lambda shape=shape: prototype(rate, shape, effort)) for shape in shapes()
    ]  # fmt: skip
    return Experiment(
        "zhou", f"table-{number}", f"Objects over links of {rate:g} MB/s", Kind.TIMED, "MB/s of the object",
        ({"4.6": 22, "4.7": 16, "4.8": 14}[number], {"4.6": 780, "4.7": 850, "4.8": 700}[number]),
        points=points, printed=f"zhou-table-{number}",
        about="Namespaces on one machine as nodes, each with a link of that rate, so that all nodes share this machine's processors. A whole "
        f"run takes the median of {ROUNDS} rounds; a quick one has a single round with smaller objects, whose times hold 10 to 50 ms for the "
        "start of each command, so that it is slower than the link allows. docs/network.md says more, and compares with the bounds of the wire.",
    )  # fmt: skip


def units(rate: float, effort: Effort) -> Iterable[Cell]:
    """The curve of one system in figure 4.6: speed by the size of transmission units."""
    size, count = mebibytes(effort, rate, QUICK_UNITS), rounds(effort)
    nodes = UNITS_SHAPE.k + UNITS_SHAPE.m2
    found = over_links(rate, nodes, size << 20, lambda lab: network.units(lab, UNITS_SHAPE, count))
    command = f"lab/network.py units --rates {rate:g} --size {size} --rounds {count}"
    for (unit, phase), group in network_tables.grouped(found, "scheme", "phase").items():
        yield median(unit.removesuffix(" KiB"), f"{rate:g} MB/s: {phase}", group, command)


def writes(records: Records) -> Iterable[Cell]:
    """Figure 4.7: writes of all codes over the links of the three systems."""
    for number, rate in LINKS.items():
        for cell in records[f"zhou-table-{number}"]:
            shape, phase = cell.row.split(" ")
            if phase == "enc":
                yield cell._replace(row=shape, column=f"{rate:g} MB/s: {cell.column}")


EXPERIMENTS = [
    *map(table, LINKS),
    Experiment(
        "zhou", "figure-4.6", "Transmission units over the links of the three systems, (5, 2, 3)", Kind.TIMED, "MB/s of the object", (14, 320),
        points=lambda effort: [Point(f"{rate:g} MB/s", lambda rate=rate: units(rate, effort)) for rate in LINKS.values()],
        plot=Plot("KiB of a unit", "MB/s of the object"),
        about="Reads of whole objects, with nothing lost. A unit that is longer than a shard is the shard.",
    ),
    Experiment(
        "zhou", "figure-4.7", "Writes over the links of the three systems", Kind.TIMED, "MB/s of the object", (0, 0),
        sources=tuple(f"zhou-table-{number}" for number in LINKS), derive=writes, plot=Plot("(k, m, m2)", "MB/s of the object", log_x=False),
    ),
]  # fmt: skip
