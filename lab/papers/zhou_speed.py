"""Zhou's dissertation, sections 3.3 and 3.4: speeds of encoding and worst-case decoding (tables 3.7 to 3.13 and 3.15 to
3.27).

All codes of a row are measured once for each width of vectors; the tables are made of these measurements. The real
ISA-L and Jerasure run beside ours in pairs (lab/peers), which turns their speeds into fractions of the same roofline.
"""

from statistics import mean
from typing import Callable, Iterable, NamedTuple

from .command import bench_cell, in_percent, kernels, schedule, shown
from .experiment import Cell, Effort, Experiment, Kind, Point, Records, printed
from .libraries import beside
from .zhou import numbers, rows, rule_packet, set_and_reps
from .zhou_search import jo_crs, worst_loss

# Kernels by the width of their vectors: for packets as papers ran them, and for words of a field.
PACKETS = {64: "packetwise64", 128: "packetwise128", 256: "packetwise256", 512: "packetwise512"}
WORDS = {64: ("scalar",), 128: ("sse2", "neon"), 256: ("avx2",)}
# The packet of tables 3.7 to 3.13, and the width of their vectors.
FIXED, FIXED_BITS = 16 << 10, 128
OPERATIONS = ("encode", "decode")


class Way(NamedTuple):
    """How a code of the tables is run: its spec, and the pass that plans encoding (none for words). Without a template it is
    Jo-CRS, with the smallest w unless another is named."""

    template: str | None
    way: str | None
    w: int | None = None

    def spec(self, k: int, m: int) -> str:
        smallest = max(2, (k + m - 1).bit_length())
        return self.template.format(k=k, m=m, w=smallest) if self.template else jo_crs(k, m, self.w or smallest)

    def decoding(self) -> str | None:
        """Returns the pass that plans decoding (section 3.3.6): matching needs room for temporaries, for which packets by the
        rule leave none, so decoding takes smart schedules."""
        return "smart" if self.way == "wm" else self.way


WAYS = {
    "Jo-CRS": Way(None, "wm"),
    "Jo-CRS, w = 4": Way(None, "wm", 4),
    "Jo-CRS, w = 8": Way(None, "wm", 8),
    "CRS": Way("cauchy-good:k={k},m={m},w={w}", "smart"),
    "CRS, w = 4": Way("cauchy-good:k={k},m={m},w=4", "smart"),
    "CRS, w = 8": Way("cauchy-good:k={k},m={m},w=8", "smart"),
    "STAR": Way("star:k={k}", "direct"), "QFS": Way("qfs:k={k}", "direct"),
    "EO": Way("evenodd:k={k}", "direct"), "RDP": Way("rdp:k={k}", "direct"),
    "Raid6": Way("raid6:k={k}", None), "RS": Way("isal-cauchy:k={k},m={m}", None),
}  # fmt: skip
# Codes for one number of parities.
SPECIAL = {2: ("EO", "RDP", "Raid6"), 3: ("QFS", "STAR")}
COMPILED, BEST = "compiled (ours)", "words (ours)"


def shape(row: str) -> tuple[int, int]:
    """Returns k and m of a row `(n,k)` or `(n,k,w)`."""
    n, k = numbers(row)[:2]
    return k, n - k


def all_rows(*tables: str) -> list[str]:
    """Returns the (n, k) of some tables, in order."""
    names = [row for table in tables for row in rows(f"zhou-table-{table}")]
    return sorted(dict.fromkeys("({},{})".format(*numbers(name)) for name in names), key=lambda row: (shape(row)[1], shape(row)[0]))


def kernel_of(way: Way, bits: int) -> str | None:
    """Returns the kernel of this processor for a code and a width; none if it lacks one."""
    names = (PACKETS[bits],) if way.way else WORDS.get(bits, ())
    return next((name for name in names if name in kernels()), None)


def speed(row: str, name: str, bits: int, operation: str, packet: int | None, effort: Effort) -> Iterable[Cell]:
    """Measures a code at a width, with packets of a size or by the rule; nothing if the processor has no such kernel. Decoding
    takes the packets of encoding, because these are stored."""
    way = WAYS[name]
    spec, kernel = way.spec(*shape(row)), kernel_of(WAYS[name], bits)
    if kernel is None:
        return
    more = ["--op", operation, "--kernel", kernel, *set_and_reps(effort)]
    if way.way:
        chosen = way.way if operation == "encode" else way.decoding()
        more += ["--pass", chosen, "--packet", packet or rule_packet(spec, way.way)]
        if operation == "decode":
            more += ["--erase", worst_loss(spec, chosen)]
    yield bench_cell(row, f"{name}, {bits} bits", spec, *more)


def ours(row: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """Measures the kernels that serve files: compiled ones for packets, and the best for words."""
    k, m = shape(row)
    more = ("--op", operation, *set_and_reps(effort))
    yield bench_cell(row, COMPILED, f"cauchy:k={k},m={m}", "--kernel", "jit", *more)
    yield bench_cell(row, BEST, f"isal-cauchy:k={k},m={m}", "--kernel", "auto", *more)


def by_rule(row: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """A row of tables 3.15 to 3.27."""
    special = SPECIAL.get(shape(row)[1], ())
    wanted = {64: ("CRS", "RS"), 128: ("Jo-CRS", "Jo-CRS, w = 8", "RS"), 256: ("Jo-CRS", "Jo-CRS, w = 8", "CRS", "RS", *special),
              512: ("Jo-CRS", "Jo-CRS, w = 8", "CRS", *special)}  # fmt: skip
    if "Raid6" in special:
        wanted[64] += ("Raid6",)
    for bits, names in wanted.items():
        for name in names:
            yield from speed(row, name, bits, operation, None, effort)
    yield from ours(row, operation, effort)


def fixed(row: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """A row of tables 3.7 to 3.13."""
    k, m = shape(row)
    narrow = ("Jo-CRS, w = 4", "CRS, w = 4") if m <= 3 and k + m <= 16 else ()
    names = ["Jo-CRS, w = 8", "CRS, w = 8", "RS", *narrow, *SPECIAL.get(m, ())]
    for name in names:
        yield from speed(row, name, FIXED_BITS, operation, FIXED, effort)
    if operation == "encode":
        for name in ("CRS, w = 8", "RS", *(("Raid6",) if m == 2 else ())):
            yield from speed(row, name, 64, operation, FIXED, effort)


# Other libraries, as lab/peers/run.py names them; ISA-L and Jerasure are Debian's.
LIBRARIES = {
    "ISA-L, 256 bits": "isal:avx2", "ISA-L, 512 bits": "isal:avx512", "Jerasure, Reed-Solomon": "jerasure:reed_sol_van",
    "Jerasure, Cauchy": "jerasure:cauchy_good", "reed-solomon-simd": "simd",
}  # fmt: skip


def libraries(row: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """Measures the real libraries in pairs with the best word kernel, which has the bytes of ISA-L."""
    k, m = shape(row)
    return beside(row, k, m, operation, "paritas:isal-cauchy@auto", LIBRARIES, set_and_reps(effort)[1])


def measured(name: str, title: str, tables: tuple[str, ...], measure, operation: str, seconds: tuple[float, float], about: str) -> Experiment:
    """Returns an experiment that measures all rows of some tables."""
    points = lambda effort: [Point(row, lambda row=row: measure(row, operation, effort)) for row in all_rows(*tables)]
    unit = "times as fast as the library" if measure is libraries else "fraction of the roofline"
    return Experiment("zhou", f"{name}-{operation}", title, Kind.TIMED, unit, seconds, points=points, about=about)


By = dict[tuple[str, str], Cell]


def by_place(records: Records, *identities: str) -> By:
    return {cell.place: cell for identity in identities for cell in records[identity]}


def library(cells: By, row: str, name: str) -> Cell | None:
    """Returns the speed of a real library as a fraction of the roofline: ours, divided by the ratio to it."""
    base, ratio = cells.get((row, BEST)), cells.get((row, name))
    if base is None or ratio is None:
        return None
    low, high = base.low / ratio.high, base.high / ratio.low
    doubt = "; ".join(filter(None, (base.doubt, ratio.doubt)))
    return Cell(row, name, base.value / ratio.value, low, high, base.speed / ratio.value, doubt, ratio.command)


def general(records: Records, operation: str, bits: int) -> Iterable[Cell]:
    """Tables 3.15 to 3.17 and 3.19 to 3.21."""
    cells = by_place(records, f"zhou-speeds-{operation}", f"zhou-libraries-{operation}")
    columns = {name: f"{name}, {bits} bits" for name in ("Jo-CRS", "Jo-CRS, w = 8", "CRS")}
    columns |= {"Jo-CRS-128": "Jo-CRS, 128 bits", "Jo-CRS-128, w = 8": "Jo-CRS, w = 8, 128 bits"}
    columns |= {f"words, {width} bits (ours)": f"RS, {width} bits" for width in (128, 256)}
    columns |= {BEST: BEST, COMPILED: COMPILED}
    for row in rows("zhou-table-3.17"):
        found = {column: cells.get((row, name)) for column, name in columns.items()}
        found["ISA-L"] = library(cells, row, f"ISA-L, {bits} bits")
        found["JE-128"] = library(cells, row, "Jerasure, Reed-Solomon")
        for column, cell in found.items():
            if cell is not None:
                yield cell._replace(column=column)


def parities(records: Records, operation: str, names: tuple[str, ...], table: str) -> Iterable[Cell]:
    """Tables 3.23, 3.24, 3.26 and 3.27: the machines with vectors of 256 and of 512 bits."""
    cells = by_place(records, f"zhou-speeds-{operation}")
    for row in rows(table):
        for machine, bits in {"i7": 256, "amd": 256, "xeon": 512}.items():
            for name in names:
                cell = cells.get((row, f"{name}, {bits} bits")) or cells.get((row, f"{name}, 256 bits"))
                if cell is not None:
                    yield cell._replace(column=f"{machine}: {name}")
        if (row, COMPILED) in cells:
            yield cells[row, COMPILED]


def of_fixed(records: Records, operation: str, table: str) -> Iterable[Cell]:
    """Tables 3.7 to 3.9 and 3.11 to 3.13."""
    cells = by_place(records, f"zhou-fixed-{operation}")
    alone = {"RS in words": "RS", "STAR": "STAR", "QFS": "QFS", "Raid-6": "Raid6", "EVENODD": "EO", "RDP": "RDP"}
    columns = list(dict.fromkeys(column for _, column in printed(f"zhou-table-{table}")))
    for row in rows(f"zhou-table-{table}"):
        w = (*numbers(row), 8)[2]
        names = alone | {"Proposed": f"Jo-CRS, w = {w}", "CRS": f"CRS, w = {w}"}
        for column in columns:
            place = "({},{})".format(*numbers(row)), f"{names[column]}, {FIXED_BITS} bits"
            if place in cells and not (column == "Raid-6" and w == 4):
                yield cells[place]._replace(row=row, column=column)


def improvement(name: str, column: str, pairs: Iterable[tuple[Cell | None, Cell | None]]) -> Iterable[Cell]:
    """Gives by how many percent the first of each pair is faster, on average; nothing without pairs. The ends of the interval are the
    averages of the least and of the greatest gains that the intervals of the pairs allow."""
    both = [(ours, theirs) for ours, theirs in pairs if ours and theirs]
    if not both:
        return
    gains = [(ours.value / theirs.value, ours.low / theirs.high, ours.high / theirs.low) for ours, theirs in both]
    doubtful = sum(1 for ours, theirs in both if ours.doubt or theirs.doubt)
    doubt = f"{doubtful} of {len(both)} rows too noisy" if doubtful else ""
    value, low, high = (100 * (mean(ends) - 1) for ends in zip(*gains))
    yield Cell(name, column, value, low, high, doubt=doubt)


def improvements(records: Records) -> Iterable[Cell]:
    """Table 3.25: by how many percent Jo-CRS is faster than the others, on average over (n, k)."""
    cells = by_place(records, "zhou-speeds-encode", "zhou-libraries-encode")
    for machine, bits in {"i7": 256, "amd": 256, "xeon": 512}.items():
        wide = lambda row, name: cells.get((row, f"{name}, {bits} bits")) or cells.get((row, f"{name}, 256 bits"))
        references: dict[str, Callable[[str], Cell | None]] = {
            "GF-based RS code w/o vectorization": lambda row: cells.get((row, "RS, 64 bits")),
            "XOR-based CRS code w/o vectorization": lambda row: cells.get((row, "CRS, 64 bits")),
            "Vectorized GF-based RS code": lambda row: library(cells, row, "Jerasure, Reed-Solomon"),
            "Vectorized XOR-based CRS code": lambda row: wide(row, "CRS"),
            "ISA-L": lambda row: library(cells, row, f"ISA-L, {bits} bits"),
            "STAR": lambda row: wide(row, "STAR"), "Quantcast-QFS": lambda row: wide(row, "QFS"),
            "Raid-6 w/o vectorization": lambda row: cells.get((row, "Raid6, 64 bits")),
            "Vectorized Raid-6": lambda row: wide(row, "Raid6"),
            "RDP": lambda row: wide(row, "RDP"), "EVENODD": lambda row: wide(row, "EO"),
            COMPILED: lambda row: cells.get((row, COMPILED)), BEST: lambda row: cells.get((row, BEST)),
        }  # fmt: skip
        for name, of_row in references.items():
            yield from improvement(name, machine, ((wide(row, "Jo-CRS"), of_row(row)) for row in dict.fromkeys(row for row, _ in cells)))


def fixed_improvements(records: Records) -> Iterable[Cell]:
    """Table 3.10: the same with packets of 16 KiB and vectors of 128 bits."""
    cells = by_place(records, "zhou-fixed-encode")
    of = lambda row, name, bits=FIXED_BITS: cells.get((row, f"{name}, {bits} bits"))
    # What is compared, at which w: codes of the smaller w are compared with each other.
    references = {
        "GF-based RS code w/o vectorization": [("Jo-CRS, w = 8", "RS", 64)],
        "XOR-based CRS code w/o vectorization": [("Jo-CRS, w = 8", "CRS, w = 8", 64)],
        "Vectorized GF-based RS code": [("Jo-CRS, w = 8", "RS", 128)],
        "Vectorized XOR-based CRS code": [("Jo-CRS, w = 8", "CRS, w = 8", 128), ("Jo-CRS, w = 4", "CRS, w = 4", 128)],
        "STAR": [("Jo-CRS, w = 8", "STAR", 128), ("Jo-CRS, w = 4", "STAR", 128)],
        "Quancast-QFS": [("Jo-CRS, w = 8", "QFS", 128), ("Jo-CRS, w = 4", "QFS", 128)],
        "Raid-6 w/o vectorization": [("Jo-CRS, w = 8", "Raid6", 64)],
        "Vectorized Raid-6": [("Jo-CRS, w = 8", "Raid6", 128)],
        "RDP": [("Jo-CRS, w = 8", "RDP", 128), ("Jo-CRS, w = 4", "RDP", 128)],
        "EVENODD": [("Jo-CRS, w = 8", "EO", 128), ("Jo-CRS, w = 4", "EO", 128)],
    }
    for name, compared in references.items():
        both = [(of(row, ours), of(row, other, bits)) for row in dict.fromkeys(row for row, _ in cells) for ours, other, bits in compared]
        yield from improvement(name, "improvement", both)


def counted(row: str, operation: str) -> Iterable[Cell]:
    """Tables 3.18 and 3.22: instructions of our kernels for NEON, for each KiB of data. Nothing is timed."""
    k, m = shape(row)
    decodes = operation == "decode"
    for name in ("Jo-CRS", "Jo-CRS, w = 8", "CRS"):
        way = WAYS[name]
        spec, chosen = way.spec(k, m), way.decoding() if decodes else way.way
        lost = ("--erase", worst_loss(spec, chosen)) if decodes else ()
        words = ("schedule", spec, "--pass", chosen, "--kernel", "jit-neon", *lost)
        facts = schedule(*words[1:])
        yield Cell(row, name, 64 * facts["instructions"] / data_cells(facts, k), command=shown(words))
    lost = ("--erase", ",".join(map(str, range(m)))) if decodes else ()
    words = ("schedule", f"isal-cauchy:k={k},m={m}", "--pass", "direct", "--set", 4096, "--kernel", "jit-neon", *lost)
    parts = schedule(*words[1:])["runs"]["parts"]
    yield Cell(row, "ISA-L", 64 * sum(part["instructions"] for part in parts) / k, command=shown(words))


def data_cells(facts: dict, k: int) -> int:
    """Returns the packets of data in a strip, of which a vector each is computed at a time. (A node has as many as are read
    of any node that is read.)"""
    return k * max(facts["reads"])


def by_neon(number: str, operation: str) -> Experiment:
    points = lambda _: [Point(row, lambda row=row: counted(row, operation)) for row in rows(f"zhou-table-{number}")]
    return Experiment(
        "zhou", f"table-{number}", f"Arm: {operation}, codes for any n and k", Kind.EXACT,
        "NEON instructions for each KiB of data (theirs in GB/s)", (2, 2), points=points, printed=f"zhou-table-{number}", comparable=False,
        about="Counted, not timed, because no Arm processor is at hand: instructions of our compiled kernels for 128-bit NEON "
        "without SHA-3 (as their Graviton). ISA-L is its code by our word kernel.",
    )  # fmt: skip


def table(number: str, title: str, sources: tuple[str, ...], derive, about: str, unit: str = "fraction of the roofline (theirs in GB/s)",
          comparable: bool = False) -> Experiment:  # fmt: skip
    return Experiment("zhou", f"table-{number}", title, Kind.TIMED, unit, (0, 0), sources=sources, derive=derive,
                      printed=f"zhou-table-{number}", comparable=comparable, about=about)  # fmt: skip


MEASURED = (
    "Two-operand XORs over whole packets by rule (3.1), all widths of vectors; w is the smallest that fits unless named; RS is ISA-L's code "
    "by our word kernels. Decoding is after the worst loss of m data nodes: of all of them, the one that takes the most XORs and copies, with smart "
    "schedules and the packets of encoding. Words, compiled kernels and libraries decode the first m data nodes. The rule's cache is the first level's. "
    "compiled and words are the kernels that serve files."
)
GENERAL = (
    "Jo-CRS is the matrix that the genetic algorithm found under the weighted cost (lab/jo_crs.py), with weighted matching. ISA-L and JE-128 are Debian's libraries, measured in pairs with our word "
    "kernel: their fraction is ours divided by that ratio. "
)
TABLES = [
    *(
        table(number, f"{operation.capitalize()}, codes for any n and k ({machine}: {bits} bits)",
              (f"zhou-speeds-{operation}", f"zhou-libraries-{operation}"),
              lambda records, operation=operation, bits=bits: general(records, operation, bits), GENERAL)
        for number, operation, machine, bits in (
            ("3.15", "encode", "i7", 256), ("3.16", "encode", "amd", 256), ("3.17", "encode", "xeon", 512),
            ("3.19", "decode", "i7", 256), ("3.20", "decode", "amd", 256), ("3.21", "decode", "xeon", 512),
        )
    ),
    by_neon("3.18", "encode"), by_neon("3.22", "decode"),
    *(
        table(number, f"{operation.capitalize()}, {what} parities", (f"zhou-speeds-{operation}",),
              lambda records, operation=operation, names=names, number=number: parities(records, operation, names, f"zhou-table-{number}"),
              "Columns of i7 and amd have vectors of 256 bits here, those of xeon 512; Raid6 is in words, 256 bits. arm is not timed.")
        for number, operation, what, names in (
            ("3.23", "encode", "three", ("Jo-CRS", "CRS", "QFS", "STAR")), ("3.24", "encode", "two", ("Jo-CRS", "CRS", "EO", "RDP", "Raid6")),
            ("3.26", "decode", "three", ("Jo-CRS", "CRS", "QFS", "STAR")), ("3.27", "decode", "two", ("Jo-CRS", "CRS", "EO", "RDP", "Raid6")),
        )
    ),
    *(
        table(number, f"{operation.capitalize()}, packets of 16 KiB, {what}", (f"zhou-fixed-{operation}",),
              lambda records, operation=operation, number=number: of_fixed(records, operation, number),
              "Vectors of 128 bits. RS in words and Raid-6 are our word kernels with shuffles of 128 bits.")
        for number, operation, what in (
            ("3.7", "encode", "any n and k"), ("3.8", "encode", "three parities"), ("3.9", "encode", "two parities"),
            ("3.11", "decode", "any n and k"), ("3.12", "decode", "three parities"), ("3.13", "decode", "two parities"),
        )
    ),
    table("3.10", "How much faster the proposed code is, packets of 16 KiB", ("zhou-fixed-encode",), fixed_improvements,
          "Averages over the rows of tables 3.7 to 3.9; at both w where both have it.", "percent faster", True),
    table("3.25", "How much faster Jo-CRS is", ("zhou-speeds-encode", "zhou-libraries-encode"), improvements,
          "Averages over all (n, k). Columns i7 and amd have vectors of 256 bits here, xeon 512. Vectorized GF-based RS is Debian's Jerasure. "
          "The last rows are what serves files.", "percent faster", True),
]  # fmt: skip
EXPERIMENTS = [
    *(measured("speeds", f"All speeds of {operation}, packets by the rule", ("3.15", "3.23", "3.24"), by_rule, operation, (35, 420), MEASURED)
      for operation in OPERATIONS),
    *(measured("fixed", f"All speeds of {operation}, packets of 16 KiB", ("3.7",), fixed, operation, (15, 160),
               "As the table before, with packets of 16 KiB and vectors of 128 bits; at 64 bits without vectors.") for operation in OPERATIONS),
    *(measured("libraries", f"Other libraries, {operation}", ("3.15", "3.23", "3.24"), libraries, operation, (20, 220),
               "How many times as fast our best word kernel is, which has the bytes of ISA-L; in pairs, one core, every answer checked. "
               "ISA-L and Jerasure are Debian's.") for operation in OPERATIONS),
    *sorted(TABLES, key=lambda experiment: tuple(map(int, experiment.name.removeprefix("table-").split(".")))),
]  # fmt: skip
