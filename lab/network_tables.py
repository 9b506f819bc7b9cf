"""Prints the samples of lab/network.py as tables, beside those of Zhou's dissertation (2020), chapter 4.

Speeds are those of the dissertation: MB/s of the user's object, whatever moves on the wire. Rows are dictionaries of
texts by column, as records.load returns them.
"""

import statistics
from typing import Callable, Iterable, NamedTuple

import pairs
from papers.experiment import printed

Row = dict[str, str]


class Shape(NamedTuple):
    """A code with k data shards and m parities, to which promotion adds those up to m2."""

    k: int
    m: int
    m2: int

    def __str__(self) -> str:
        return "+".join(map(str, self))


class Theirs(NamedTuple):
    """Speeds of one code in tables 4.6 to 4.8, in MB/s: BB-DPG, and the (k, m) or (k, m2) code in the same phase."""

    enc: float
    enc_km: float
    enc_km2: float
    dec1: float
    dec1_km: float
    gen: float
    dec2: float
    dec2_km2: float


SHAPES = [Shape(*numbers) for numbers in
          [(5, 2, 3), (6, 2, 4), (8, 2, 4), (9, 2, 4), (9, 3, 5), (10, 4, 6), (12, 3, 6), (16, 4, 8)]]

# The dissertation's table for each rate of links: Raspberry Pi, aws1 and aws2.
TABLES = {11.3: "4.6", 118.5: "4.7", 596.0: "4.8"}

# How far a write may be behind that of the (k, m) code, and which part of its lead before the (k, m2) code it must have.
NEAR, LEAD = 0.03, 0.9


def theirs(rate: float, shape: Shape) -> Theirs:
    table = printed(f"zhou-table-{TABLES[rate]}")
    of = lambda phase, column="BB-DPG": float(table[f"({shape.k},{shape.m},{shape.m2}) {phase}", column])
    return Theirs(of("enc"), of("enc", "(k, m)"), of("enc", "(k, m2)"), of("dec1"), of("dec1", "(k, m)"), of("gen"), of("dec2"),
                  of("dec2", "(k, m2)"))  # fmt: skip


def symbols_read(shape: Shape) -> int:
    """Returns how many of a group's k·m2 symbols promotion reads: theorem 1 of the dissertation."""
    k, m, m2 = shape
    return min((m2 - m) * (k + m), k * m2)


def on_wire(shape: Shape, phase: str, scheme: str) -> float:
    """Returns how many bytes of the object's length have to pass the client's link, one direction after the other."""
    k, m, m2 = shape
    written = {"bbdpg": k + m, "k+m": k + m, "k+m2": k + m2}[scheme]
    made = symbols_read(shape) / (k * m2) + (m2 - m) / k
    return {"enc": written / k, "dec1": 1.0, "dec2": 1.0, "gen": made}[phase]


class Group:
    """The rows of one phase of one scheme."""

    def __init__(self, rows: Iterable[Row]):
        self.rows = list(rows)

    def values(self, column: str) -> list[float]:
        return [float(row[column]) for row in self.rows]

    def median(self, column: str) -> float:
        return statistics.median(self.values(column))

    def speeds(self) -> list[float]:
        return sorted(float(row["bytes"]) / 1e6 / float(row["seconds"]) for row in self.rows)

    def speed(self) -> float:
        return statistics.median(self.speeds())

    def processors(self) -> float:
        """Returns how many processors the command and the servers kept busy."""
        return statistics.median((float(row["client_cpu"]) + float(row["servers_cpu"])) / float(row["seconds"]) for row in self.rows)

    def ratio(self, base: "Group") -> pairs.Ratio:
        """Returns the speed as a multiple of the base's, over the rounds, each of which has both."""
        by_round = {row["round"]: float(row["seconds"]) for row in base.rows}
        both = [(float(row["seconds"]), by_round[row["round"]]) for row in self.rows if row["round"] in by_round]
        return pairs.Pairs(both).ratio()


def grouped(rows: list[Row], *columns: str) -> dict[tuple, Group]:
    keys = dict.fromkeys(tuple(row[column] for column in columns) for row in rows)
    return {key: Group(row for row in rows if tuple(row[column] for column in columns) == key) for key in keys}


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def prototype(rows: list[Row]) -> None:
    """Prints a table a rate, and how the targets stand."""
    for (rate,), group in grouped(rows, "rate").items():
        print_rate(float(rate), grouped(group.rows, "shape", "scheme", "phase"))


def print_rate(rate: float, groups: dict[tuple, Group]) -> None:
    print(f"\n{rate:g} MB/s a link. Ours / theirs.\n")
    print("| (k, m, m2) | phase | MB/s, least to most | of the link | BB-DPG / (k, m) | BB-DPG / (k, m2) | processors |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    shapes = dict.fromkeys(shape for shape, _, _ in groups)
    for text in shapes:
        shape = Shape(*map(int, text.split("+")))
        for phase in ("enc", "dec1", "gen", "dec2"):
            if (text, "bbdpg", phase) in groups:
                print_phase(rate, shape, phase, groups)
    print_targets([Shape(*map(int, text.split("+"))) for text in shapes], groups)


def print_phase(rate: float, shape: Shape, phase: str, groups: dict[tuple, Group]) -> None:
    ours = groups[str(shape), "bbdpg", phase]
    their = theirs(rate, shape)._asdict() if rate in TABLES and shape in SHAPES else {}
    bound = rate / on_wire(shape, phase, "bbdpg")

    def beside(scheme: str, column: str) -> str:
        base = groups.get((str(shape), scheme, phase))
        if base is None:
            return "-"
        return f"{ours.ratio(base).median:.2f}" + (f" / {their[phase] / their[column]:.2f}" if their else "")

    speeds = ours.speeds()
    speed = f"{ours.speed():.4g} ({speeds[0]:.4g} to {speeds[-1]:.4g})" + (f" / {their[phase]:.4g}" if their else "")
    share = f"{ours.speed() / bound:.2f}" + (f" / {their[phase] / bound:.2f}" if their else "")
    print(f"| ({', '.join(map(str, shape))}) | {phase} | {speed} | {share} | {beside('k+m', f'{phase}_km')} | "
          f"{beside('k+m2', f'{phase}_km2')} | {ours.processors():.2f} |")


def print_targets(shapes: list[Shape], groups: dict[tuple, Group]) -> None:
    print(f"\nWrites of BB-DPG: at most {NEAR:.0%} behind (k, m), and ahead of (k, m2) by at least {LEAD} of what the bytes on the wire "
          "give. In brackets the interval of 95 %.\n")
    print("| (k, m, m2) | behind (k, m) | ahead of (k, m2) | at least | bytes of theorem 1 | read for gen |")
    print("| --- | --- | --- | --- | --- | --- |")
    for shape in shapes:
        enc, gen = groups[str(shape), "bbdpg", "enc"], groups.get((str(shape), "bbdpg", "gen"))
        near, far = (enc.ratio(groups[str(shape), scheme, "enc"]) for scheme in ("k+m", "k+m2"))
        least = LEAD * ((shape.k + shape.m2) / (shape.k + shape.m) - 1)
        read = sorted({payload(shape, row) for row in gen.rows}) if gen else []
        print(f"| ({', '.join(map(str, shape))}) | {1 / near.median - 1:.1%} ({1 / near.high - 1:.1%} to {1 / near.low - 1:.1%}) | "
              f"{far.median - 1:.1%} ({far.low - 1:.1%} to {far.high - 1:.1%}) | {least:.1%} | "
              f"{theorem_bytes(shape, int(enc.rows[0]['bytes']))} | {', '.join(map(str, read))} |")


# Bytes of the checksum of each symbol.
CHECKSUM = 8


def payload(shape: Shape, row: Row) -> int:
    """Returns the bytes of symbols that nodes sent for a promotion: each read is about the m2 - m symbols of one node."""
    return int(row["sent"]) - CHECKSUM * int(row["reads"]) * (shape.m2 - shape.m)


def theorem_bytes(shape: Shape, bytes: int) -> int:
    """Returns the bytes that promotion of an object must read."""
    return bytes * symbols_read(shape) // (shape.k * shape.m2)


def units(rows: list[Row]) -> None:
    """Prints the speed by size of transmission units."""
    print("\n| MB/s a link | unit | phase | MB/s, least to most | of the link | processors |\n| --- | --- | --- | --- | --- | --- |")
    for (rate, unit, phase), group in grouped(rows, "rate", "scheme", "phase").items():
        speeds = group.speeds()
        shape = Shape(*map(int, group.rows[0]["shape"].split("+")))
        bound = float(rate) / on_wire(shape, phase, "bbdpg")
        print(f"| {rate} | {unit} | {phase} | {group.speed():.4g} ({speeds[0]:.4g} to {speeds[-1]:.4g}) | "
              f"{group.speed() / bound:.2f} | {group.processors():.2f} |")


def stragglers(rows: list[Row]) -> None:
    """Prints how long a read takes while nodes lag, as multiples of the median of the healthy volume."""
    groups = grouped(rows, "scheme", "phase")
    healthy = {scheme: group.median("seconds") for (scheme, phase), group in groups.items() if phase == "healthy"}
    print("\n| volume | nodes | reads | seconds, median | 99 % | most | of healthy: median | 99 % | arrived, of the object's bytes | "
          "processors |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (scheme, phase), group in groups.items():
        seconds = group.values("seconds")
        base = healthy.get(scheme, float("nan"))
        read = statistics.median(int(row["arrived"]) / int(row["bytes"]) for row in group.rows)
        middle, most = statistics.median(seconds), quantile(seconds, 0.99)
        print(f"| {scheme} | {phase} | {len(seconds)} | {middle:.2f} | {most:.2f} | {max(seconds):.2f} | {middle / base:.2f} | "
              f"{most / base:.2f} | {read:.3f} | {group.processors():.2f} |")
    for scheme in healthy:
        ill = [seconds for (other, phase), group in groups.items() if other == scheme and phase != "healthy"
               for seconds in group.values("seconds")]
        if ill:
            print(f"\n{scheme}: {len(ill)} reads while nodes lag: median {statistics.median(ill) / healthy[scheme]:.2f}, "
                  f"99 % {quantile(ill, 0.99) / healthy[scheme]:.2f} of healthy")


REPORTS: dict[str, Callable[[list[Row]], None]] = {"prototype": prototype, "units": units, "stragglers": stragglers}
