"""Zhou: Erasure Coding Optimization for Data Storage (dissertation, 2020)."""

import pathlib
import re
from typing import Iterable

from .command import available, bench, bench_cell, compared, in_percent, of_bench, paritas, schedule, shown, timed
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records, printed

# Strategies (i, j) of table 3.2: whether the matrix is normalised, and the pass.
STRATEGIES = ["0,0", "0,1", "0,2", "0,3", "1,0", "1,1", "1,2", "1,3"]
# The widest vectors of the dissertation's workstation.
THEIR_WIDTH = "packetwise256"


def rows(table: str) -> list[str]:
    """Returns the rows of a printed table, in order."""
    return list(dict.fromkeys(row for row, _ in printed(table)))


def numbers(text: str) -> tuple[int, ...]:
    """Returns the numbers of a label like `(8,6,4)`."""
    return tuple(map(int, re.findall(r"\d+", text)))


def natural(n: int, k: int, w: int) -> str:
    """Returns the code whose points are 0, 1, …: data first, then parity."""
    return f"cauchy:k={k},m={n - k},w={w},points=" + ".".join(map(str, range(n)))


def unscaled(n: int, k: int, w: int) -> str:
    """Returns the same code without normalisation, the baseline of table 3.1."""
    return schedule(natural(n, k, w), "--strategy", "0,0")["code"]


def reductions(row: str) -> Iterable[Cell]:
    """Table 3.1: XORs of the baseline, and by how many percent each technique reduces them."""
    spec = natural(*numbers(row))
    count = lambda *more: schedule(spec, *more)["xors"]
    start = count("--strategy", "0,0")
    yield Cell(row, "baseline", start, command=shown(("schedule", spec, "--strategy", "0,0")))
    ways = {"BN": ("1,0",), "SS": ("0,1",), "UM": ("0,2",), "WM": ("0,3",), "slp (ours)": ()}
    for name, strategy in ways.items():
        more = ("--strategy", *strategy) if strategy else ("--normalise", "off")
        command = shown(("schedule", spec, *more))
        yield Cell(row, name, 100 - 100 * count(*more) / start, command=command)


def gains(row: str, effort: Effort) -> Iterable[Cell]:
    """Table 3.1, S-CO and V-XOR: gains in speed over 64-bit XORs, one output after the other."""
    n, k, w = numbers(row)
    packet = packet_by_rule(w * n, 0, unit=64)
    common = ("--threads", 1, "--pass", "direct", "--packet", packet, *set_and_reps(effort))
    ways = {
        "S-CO": ("packetwise64", "data"), "S-CO, word by word": ("datawise64", "data"), "V-XOR": (THEIR_WIDTH, "parity"),
        "V-XOR, 512 bits": ("packetwise512", "parity"), "compiled (ours)": ("jit", "parity"),
    }  # fmt: skip
    for name, (kernel, order) in ways.items():
        if kernel == "jit" or available(kernel):
            against = "kernel=packetwise64,order=parity"
            more = (*common, "--kernel", kernel, "--order", order)
            yield in_percent(compared(row, name, unscaled(n, k, w), against, *more))


def set_and_reps(effort: Effort) -> tuple:
    """Shards that do not fit into the second-level cache; a quick run takes the fewest pairs that give a verdict."""
    return ("--set", 4 << 20, "--reps", 20) if effort.quick else ("--set", 64 << 20, "--reps", 41)


def second_level_cache() -> int:
    """Returns the bytes of the second-level cache of a core."""
    try:
        text = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text().strip()
    except OSError:
        return 512 << 10
    return int(text.rstrip("KM")) << (20 if text.endswith("M") else 10)


def packet_by_rule(cells: int, intermediates: int, unit: int) -> int:
    """Returns the packet of rule (3.1): the largest multiple of `unit` so that packet x (w n + t) <= L."""
    return max(unit, second_level_cache() // (cells + intermediates) // unit * unit)


def searches(row: str, effort: Effort) -> Iterable[Cell]:
    """Table 3.5: XORs and copies of a strategy, without search, by annealing and by the genetic algorithm."""
    shape, (i, j) = numbers(row)[:3], numbers(row)[3:]
    words = ("schedule", natural(*shape), "--strategy", f"{i},{j}")
    yield Cell(row, "natural", paritas(*words)[0]["total"], command=shown(words))
    for name in () if effort.quick else ("sa", "ga"):
        searched = (*words, "--search", name, "--cost", "total", "--evaluations", 2000)
        yield Cell(row, name.upper(), paritas(*searched)[0]["total"], command=shown(searched))


def costs(row: str, effort: Effort) -> Iterable[Cell]:
    """Table 3.6: speed of matrices found under three cost functions, run by strategy (1, 3) on 256-bit vectors."""
    evaluations = 100 if effort.quick else 2000
    for name, cost in {"XORs": "xors", "XORs and copies": "total", "weighted": "weighted"}.items():
        search = ("--search", "ga", "--strategy", "1,3", "--cost", cost, "--evaluations", evaluations)
        weight = ("--weight", 1.5) if cost == "weighted" else ()
        code = schedule(natural(*numbers(row)), *search, *weight)["code"]
        kernel = available(THEIR_WIDTH, "packetwise128")[0]
        yield bench_cell(row, name, code, "--pass", "wm", "--kernel", kernel, "--packet", 4096, *set_and_reps(effort))


PACKET_CODES = {  # figure 3.4: label, spec, rows of a strip
    "Jo-CRS, m = 2": "cauchy:k=6,m=2", "RDP": "rdp:k=6", "Jo-CRS, m = 3": "cauchy:k=6,m=3", "STAR": "star:k=6",
}  # fmt: skip


def packet_curve(name: str, spec: str, effort: Effort) -> Iterable[Cell]:
    """Figure 3.4: speed for each packet size."""
    kernel = available(THEIR_WIDTH, "packetwise128")[0]
    more = ("--pass", "wm" if "CRS" in name else "direct", "--kernel", kernel, "--sweep", "packet", *set_and_reps(effort))
    for line in bench(spec, *more):
        yield timed(str(line["packet"]), name, line, shown(of_bench(spec, *more)))


def rule_beside_optimum(records: Records) -> Iterable[Cell]:
    """Rule (3.1) beside the packet that was fastest in figure 3.4, among powers of two."""
    for name, spec in PACKET_CODES.items():
        curve = {int(cell.row): cell for cell in records["zhou-figure-3.4"] if cell.column == name}
        facts = schedule(spec, "--pass", "wm" if "CRS" in name else "direct")
        cells = sum(facts["reads"]) + facts["copies"] - facts["temps"]
        rule = packet_by_rule(cells, facts["temps"], unit=8)
        rounded = max((packet for packet in curve if packet <= rule), default=min(curve))
        best = max(curve.values(), key=lambda cell: cell.value)
        yield Cell(name, "packet by the rule", rule)
        yield Cell(name, "next power of two below", rounded)
        yield Cell(name, "fastest packet", int(best.row))
        yield Cell(name, "speed by the rule, % of the fastest", 100 * curve[rounded].value / best.value)


# How the codes of tables 3.17 to 3.27 are run: spec, pass, kernels in order of preference. Words run on the word kernel
# that needs no more than the named instruction set.
WIDEST = ("packetwise512", "packetwise256", "packetwise128")
CODES = {
    "Jo-CRS": ("cauchy:k={k},m={m}", "wm", WIDEST),
    "CRS": ("cauchy-good:k={k},m={m},w={w}", "smart", WIDEST),
    "ISA-L": ("isal-cauchy:k={k},m={m}", None, ("avx2", "neon")),
    "Jo-CRS-128": ("cauchy:k={k},m={m}", "wm", ("packetwise128",)),
    "JE-128": ("isal-cauchy:k={k},m={m}", None, ("sse2", "neon")),
    "QFS": ("qfs:k={k}", "direct", WIDEST),
    "STAR": ("star:k={k}", "direct", WIDEST),
    "EO": ("evenodd:k={k}", "direct", WIDEST),
    "RDP": ("rdp:k={k}", "direct", WIDEST),
    "Raid6": ("raid6:k={k}", None, ("avx2", "neon")),
    "compiled (ours)": ("cauchy:k={k},m={m}", "slp", ("jit",)),
    "words, best kernel (ours)": ("isal-cauchy:k={k},m={m}", None, ("auto",)),
}


def codes_beside(row: str, operation: str, names: list[str], effort: Effort) -> Iterable[Cell]:
    """Tables 3.17 to 3.27: speeds of codes, as fractions of one XOR for each byte read."""
    n, k = numbers(row)
    for name in names:
        template, way, kernels = CODES[name]
        spec = template.format(k=k, m=n - k, w=max(2, (n - 1).bit_length()))
        kernel = next((kernel for kernel in kernels if kernel in ("jit", "auto") or available(kernel)), None)
        if kernel:
            more = ("--op", operation, "--kernel", kernel, *set_and_reps(effort))
            yield bench_cell(row, name, spec, *more, *(packets_of(spec, way) if kernel in WIDEST else ()))


def packets_of(spec: str, way: str) -> tuple:
    """Returns the pass, and the packet of rule (3.1) for encoding."""
    facts = schedule(spec, "--pass", way)
    cells = sum(facts["reads"]) + facts["copies"] - facts["temps"]
    return "--pass", way, "--packet", packet_by_rule(cells, facts["temps"], unit=64)


def code_table(number: str, operation: str, about: str) -> Experiment:
    """Returns a table of speeds; the printed one is of their Xeon, which has AVX-512."""
    name = f"zhou-table-{number}"
    names = [*dict.fromkeys(column for _, column in printed(name)), "compiled (ours)", "words, best kernel (ours)"]
    measure = lambda row, effort: codes_beside(row, operation, names, effort)
    return Experiment(
        "zhou", f"table-{number}", f"Speed of {operation}, {about}", Kind.TIMED, "fraction of the roofline (theirs in GB/s)",
        (10, 240), points=by_row(name, measure, few=4), printed=name, comparable=False,
        about="Packets by rule (3.1). ISA-L and JE-128 are ISA-L's code by our word kernels, with shuffles of 256 and of 128 bits; "
        "the best word kernel may have GFNI. Jo-CRS is our default matrix. Decoding is after the loss of the first m nodes.",
    )  # fmt: skip


def pinned(k: int, m: int, w: int, pin: dict, start: str) -> str:
    """Returns the code of the first m parities of a pinned matrix."""
    dotted = lambda name, count: ".".join(map(str, pin[start + name][:count]))
    points, scales = dotted("points", k + m), (dotted("row-scale", m), dotted("column-scale", k))
    return f"cauchy:k={k},m={m},w={w},points={points},rows={scales[0]},columns={scales[1]}"


def total(spec: str) -> int:
    """Returns XORs and copies of encoding."""
    return schedule(spec)["total"]


def accounted(k: int, m: int, m2: int, w: int, spec: str) -> int:
    """Counts a group as the dissertation does: m T(k, m2) + (m2 - m) T(k, m) + m (m2 - m) w, where the first T is C's
    and the second that of C-bar."""
    pin = paritas("codes", spec)[0]["pin"]
    bar = "bar-" if "bar-points" in pin else ""
    first, last = total(pinned(k, m2, w, pin, "")), total(pinned(k, m, w, pin, bar))
    return m * first + (m2 - m) * last + m * (m2 - m) * w


def groups(row: str) -> Iterable[Cell]:
    """Table 4.3: the lengths of schedules of one group."""
    k, m, m2 = numbers(row)
    w = 4 if k + m2 <= 16 else 5
    sizes = f"k={k},m={m},m2={m2},w={w}"
    ways = {
        "BB-DPG": f"bbdpg:{sizes}",
        "optimised DPG": f"dpg:{sizes}",
        "DPG w/o opt": f"dpg:{sizes},points=" + ".".join(map(str, range(k + m2))),
    }
    for name, spec in ways.items():
        yield Cell(row, name, accounted(k, m, m2, w, spec), command=shown(("schedule", spec)))
    for name, parities in {"(k, m)": m, "(k, m')": m2}.items():
        spec = f"cauchy:k={k},m={parities},w={w}"
        yield Cell(row, name, m2 * total(spec), command=shown(("schedule", spec)))
    whole = ways["BB-DPG"]
    yield Cell(row, "whole group (ours)", total(whole), command=shown(("schedule", whole)))


def by_row(table: str, measure, few: int | None = None):
    """Returns a function that makes a point of each printed row; a quick run takes the first `few`."""

    def points(effort: Effort) -> list[Point]:
        names = rows(table)[: few if effort.quick else None]
        return [Point(name, lambda name=name: measure(name, effort)) for name in names]

    return points


EXPERIMENTS = [
    Experiment(
        "zhou", "table-3.1", "XORs of the baseline, and how many percent of them each technique saves", Kind.EXACT,
        "XORs, then percent of them", (4, 4),
        points=by_row("zhou-table-3.1", lambda row, _: reductions(row)), printed="zhou-table-3.1",
        about="Baseline, BN and SS agree in every row; print cuts one digit of BN. Maximum matchings are not unique, so UM and WM differ by up to "
        "2.1 points. The column slp is ours: common pairs of anything, then refined, without normalisation.",
    ),
    Experiment(
        "zhou", "table-3.1-speed", "Gains in speed by S-CO and V-XOR", Kind.TIMED, "percent faster than the baseline",
        (90, 600), points=by_row("zhou-table-3.1", gains, few=6), printed="zhou-table-3.1", comparable=False,
        about="The baseline is run as theirs: 64-bit XORs of two operands over whole packets (packetwise64), sized by "
        "rule (3.1) for the second-level cache here. S-CO orders the operations by data; word by word is the second "
        "algorithm of Luo, Xu and Plank. V-XOR widens the XORs to 256 bits. Copies have the same width as XORs; theirs "
        "were memcpy. compiled (ours) is the same matrix and the same XORs in a compiled kernel.",
    ),
    Experiment(
        "zhou", "figure-3.4", "Speed and packet size", Kind.TIMED, "fraction of the roofline", (40, 240),
        points=lambda effort: [Point(n, lambda n=n, s=s: packet_curve(n, s, effort)) for n, s in PACKET_CODES.items()],
        plot=Plot("bytes of a packet", "fraction of the roofline"),
        about="Two-operand XORs of 256 bits over whole packets. Jo-CRS is our default matrix, with weighted matching.",
    ),
    Experiment(
        "zhou", "rule-3.1", "Rule (3.1) for packet sizes, beside the fastest", Kind.TIMED, "bytes; percent", (1, 1),
        sources=("zhou-figure-3.4",), derive=rule_beside_optimum,
        about="packet x (w n + t) <= L, with L the second-level cache of a core, rounded down to a packet of figure 3.4.",
    ),
    Experiment(
        "zhou", "table-3.5", "XORs and copies of all strategies, without search, by SA and by GA", Kind.EXACT,
        "XORs and copies", (3, 1500), points=by_row("zhou-table-3.5", searches), printed="zhou-table-3.5",
        about="Searches of 2000 evaluations from a fixed seed; the dissertation does not say how long theirs ran. A quick "
        "run has the natural columns alone. 20 cells are lost in the text that we have.",
    ),
    Experiment(
        "zhou", "table-3.6", "Speed of matrices found under three cost functions", Kind.TIMED, "fraction of the roofline",
        (40, 900), points=by_row("zhou-table-3.6", costs, few=2), printed="zhou-table-3.6", comparable=False,
        about="Theirs in GB/s. Ours are run as theirs, two-operand XORs of 256 bits over packets of 4 KiB, strategy (1, 3).",
    ),
    Experiment(
        "zhou", "table-4.3", "Lengths of schedules of delayed parity", Kind.EXACT, "XORs and copies of a group", (5, 5),
        points=by_row("zhou-table-4.3", lambda row, _: groups(row)), printed="zhou-table-4.3",
        about="BB-DPG is the default bbdpg, DPG the default dpg (one searched matrix), DPG w/o opt has the natural points, "
        "normalised. (k, m) and (k, m') are m' stripes of the searched codes. Whole group is the "
        "schedule of the whole group, as bbdpg is run.",
    ),
    code_table("3.17", "encode", "codes for any n and k"), code_table("3.21", "decode", "codes for any n and k"),
    code_table("3.23", "encode", "three parities"), code_table("3.24", "encode", "two parities"),
    code_table("3.26", "decode", "three parities"), code_table("3.27", "decode", "two parities"),
]  # fmt: skip
