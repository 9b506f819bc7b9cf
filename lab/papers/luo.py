"""Luo, Xu, Plank: An Efficient XOR-Scheduling Algorithm for Erasure Codes Encoding (2009)."""

import os
import re
import tempfile
from typing import Iterable

import pairs
from peers.counts import misses

from . import matrices
from .command import available, compared, in_percent, paritas, ratio_cell, schedule, seconds_of, shown, sweep
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records, printed
from .libraries import of_caches

# The ways to run a schedule: the paper's two algorithms on 64-bit words, the first one with the order of the second,
# both algorithms on wider vectors, and a compiled kernel.
WAYS = {
    "traditional": ("packetwise64", "parity"),
    "new": ("datawise64", "data"),
    "order alone": ("packetwise64", "data"),
    "traditional, 256 bits": ("packetwise256", "parity"),
    "new, 256 bits": ("datawise256", "data"),
    "traditional, 512 bits": ("packetwise512", "parity"),
    "new, 512 bits": ("datawise512", "data"),
}
COMPILED = "compiled"
LIBERATION = {k: f"liberation:k={k},w={k}" for k in (5, 11, 17)}
OTHERS = {"EVENODD": "evenodd:k=11", "RDP": "rdp:k=10", "X-Code": "xcode:n=11", "STAR": "star:k=11"}
# X-Code with data worth 11 nodes, as many as k = 11 of table 6. The paper's code has w = 11 packets, so 11 nodes and data worth 9.
WIDER = {"X-Code, n = 13": "xcode:n=13"}
MACHINES = ("P4", "Pd", "Pc2d", "Pc2q")


def measured(spec: str, prefix: str, effort: Effort) -> list[Point]:
    """Returns a point for each curve of a code over packet sizes."""
    names = [name for name, (kernel, _) in WAYS.items() if available(kernel)]
    if effort.quick:
        names = [name for name in names if "bits" not in name]
    points = [Point(f"{prefix}{name}", lambda name=name: curve(spec, prefix, name, effort)) for name in names]
    return [*points, Point(f"{prefix}{COMPILED}", lambda: compiled(spec, prefix, effort))]


def options(effort: Effort) -> tuple:
    """The paper encodes 20 MB at a time, far more than its caches hold."""
    return ("--set", 8 << 20 if effort.quick else 20 << 20, "--reps", pairs.FEWEST)


def curve(spec: str, prefix: str, name: str, effort: Effort) -> Iterable[Cell]:
    """One curve: a code run in one way, for each packet size."""
    kernel, order = WAYS[name]
    return sweep(f"{prefix}{name}", spec, "--pass", "direct", "--kernel", kernel, "--order", order, *options(effort))


def compiled(spec: str, prefix: str, effort: Effort) -> Iterable[Cell]:
    """The same code by the best kernel, as it runs in files."""
    cells = sweep(f"{prefix}{COMPILED}", spec, "--kernel", "jit", *options(effort))
    return [cell for cell in cells if int(cell.row) >= 64]


def gain(prefix: str, spec: str, name: str, effort: Effort) -> Iterable[Cell]:
    """One curve of ratios: a way beside the traditional algorithm on vectors of the same width and the same packets."""
    kernel, order = WAYS[name]
    against = f"kernel={kernel.replace('datawise', 'packetwise')},order=parity"
    more = ("--pass", "direct", "--kernel", kernel, "--order", order, "--sweep", "packet", *options(effort))
    words = ("bench", "--code", spec, *more, "--against", against)
    for line in paritas(*words):
        yield ratio_cell(str(line["packet"]), f"{prefix}: {name}", line, shown(words))


def gains(effort: Effort) -> list[Point]:
    codes = {f"Liberation, k = {k}": spec for k, spec in LIBERATION.items()} | OTHERS
    names = ["new", "order alone", *(() if effort.quick else ("new, 256 bits", "new, 512 bits"))]
    return [
        Point(f"{code}: {name}", lambda code=code, spec=spec, name=name: gain(code, spec, name, effort))
        for code, spec in codes.items() for name in names if available(WAYS[name][0])
    ]  # fmt: skip


def other_codes(effort: Effort) -> list[Point]:
    return [point for name, spec in OTHERS.items() for point in measured(spec, f"{name}: ", effort)]


def sizes(effort: Effort) -> list[Point]:
    return [point for k in (5, 17) for point in measured(LIBERATION[k], f"k = {k}: ", effort)]


def peak(cells: list[Cell], column: str) -> Cell:
    """Returns the fastest cell of a curve."""
    return max((cell for cell in cells if cell.column == column), key=lambda cell: cell.value)


def peaks(records: Records) -> Iterable[Cell]:
    """Table 5: the peaks of figure 3, measured in pairs."""
    return improved("here, 64 bits", LIBERATION[11], records["luo-figure-3"], "", "")


def improved(row: str, spec: str, cells: list[Cell], prefix: str, width: str) -> Iterable[Cell]:
    """Measures both algorithms in pairs, each with the packet that was its fastest in a figure; nothing if the figure lacks
    one of them."""
    names = [f"{prefix}{name}{width}" for name in ("new", "traditional")]
    if not all(any(cell.column == name for cell in cells) for name in names):
        return
    fastest = [peak(cells, name) for name in names]
    packets = [int(cell.row) for cell in fastest]
    (kernel, order), (other, other_order) = (WAYS[f"{name}{width}"] for name in ("new", "traditional"))
    set_bytes = re.search(r"--set (\d+)", fastest[0].command).group(1)
    ratio = compared(
        row, "improvement", spec, f"kernel={other},order={other_order},packet={packets[1]}", "--threads", 1, "--pass", "direct",
        "--kernel", kernel, "--order", order, "--packet", packets[0], "--set", set_bytes, "--reps", 2 * pairs.FEWEST,
    )  # fmt: skip
    yield Cell(row, "new", ratio.speed, doubt=ratio.doubt, command=ratio.command)
    yield Cell(row, "traditional", ratio.speed / ratio.value, doubt=ratio.doubt, command=ratio.command)
    yield in_percent(ratio)
    for name, cell in zip(("new", "traditional"), fastest):
        yield Cell(row, f"packet of the {name}", int(cell.row), command=cell.command)


def all_peaks(records: Records) -> Iterable[Cell]:
    """The same for every code and width that was measured."""
    codes = [("luo-figure-3", "", LIBERATION[11], "Liberation, k = 11")]
    codes += [("luo-figure-7", f"k = {k}: ", LIBERATION[k], f"Liberation, k = {k}") for k in (5, 17)]
    codes += [("luo-figure-8", f"{name}: ", spec, name) for name, spec in OTHERS.items()]
    for source, prefix, spec, name in codes:
        for width in ("", ", 256 bits", ", 512 bits"):
            yield from improved(f"{name}{width or ', 64 bits'}", spec, records[source], prefix, width)


def counts(name: str, spec: str) -> Iterable[Cell]:
    """Table 6: the parameters of the codes, and the XORs that they take for each coding packet."""
    code = paritas("codes", spec)[0]
    xors = schedule(spec, "--pass", "direct")["xors"]
    # The packets of a strip on every node: X-Code has data and coding packets on all of them.
    w = (code["data_cells"] + code["parity_cells"]) // code["nodes"]
    values = {"k": code["data_nodes"], "w": w, "m": code["tolerance"], "nodes' worth of data": code["data_cells"] / w}
    for column, value in {**values, "XORs a coding packet": xors / code["parity_cells"]}.items():
        yield Cell(name, column, value, command=shown(("codes", spec)))


def rdp_here(records: Records) -> Iterable[Cell]:
    """Table 7: RDP at its peak, by the second algorithm and compiled."""
    for column, curve in {"ours": "RDP: new", "compiled": f"RDP: {COMPILED}"}.items():
        fastest = peak(records["luo-figure-8"], curve)
        yield Cell("here", column, fastest.speed, doubt=fastest.doubt, command=fastest.command)


def improvement(new: float, traditional: float, write: float) -> float:
    """The model of section 5.5: by how many percent writing gets faster, if bytes are first encoded, then written."""
    seconds = lambda encode: 1 / encode + 1 / write
    return 100 * (seconds(traditional) / seconds(new) - 1)


def write_speed(effort: Effort) -> Iterable[Cell]:
    """Writes a file, and measures GB/s into the system's buffers, and until the data is on the disk."""
    size = (64 << 20) if effort.quick else (1 << 30)
    block = os.urandom(8 << 20)
    with tempfile.TemporaryFile(dir=".") as file:
        buffered = seconds_of(lambda: [file.write(block) for _ in range(size // len(block))] and file.flush())
        synced = buffered + seconds_of(lambda: os.fsync(file.fileno()))
    for column, seconds in {"into buffers": buffered, "until on disk": synced}.items():
        yield Cell("here", column, size / seconds / 1e9, doubt="one sample, other load unknown")


def written(records: Records) -> Iterable[Cell]:
    """Table 8: the model with the speeds measured here."""
    cells = {cell.column: cell for cell in records["luo-table-5"] if cell.row.startswith("here")}
    new, traditional = cells["new"], cells["traditional"]
    for disk in records["luo-disk"]:
        row = f"here, {disk.column}"
        doubt = "; ".join(dict.fromkeys(filter(None, (new.doubt, disk.doubt))))
        yield new._replace(row=row)
        yield traditional._replace(row=row)
        yield Cell(row, "write", disk.value, doubt=disk.doubt)
        yield Cell(row, "improvement", improvement(new.value, traditional.value, disk.value), doubt=doubt)


def potential(records: Records) -> Iterable[Cell]:
    """Figure 9: the model if encoding gets P percent slower and the disk P percent faster; theirs, from table 8, and
    ours."""
    theirs = printed("luo-table-8")
    speeds = {name: tuple(float(theirs[name, column]) for column in ("new", "traditional", "write")) for name in MACHINES}
    ours = {cell.column: cell for cell in records["luo-table-8"] if cell.row == "here, until on disk"}
    speeds["here"] = tuple(ours[column].value for column in ("new", "traditional", "write"))
    for percent in range(0, 91, 10):
        slower, faster = 1 - percent / 100, 1 + percent / 100
        for name, (new, traditional, write) in speeds.items():
            doubt = ours["improvement"].doubt if name == "here" else ""
            yield Cell(str(percent), name, improvement(new * slower, traditional * slower, write * faster), doubt=doubt)


# The caches of table 4: first and second level of the Pentium 4 and of one core of the Core 2 Quad.
CACHES = {"P4": ("16384,8,64", "1048576,8,64"), "Pc2q": ("32768,8,64", "4194304,16,64")}
LEVELS = {"first level": "L1", "second level": "L2"}


def lines_missed(machine: str, packet: int) -> Iterable[Cell]:
    """Section 4.2 by counts: lines of 64 bytes that are not in a simulated cache, for each KiB of data."""
    first, second = CACHES[machine]
    caches = ["--I1=32768,8,64", f"--D1={first}", f"--LL={second}"]
    for name, (kernel, order) in {name: WAYS[name] for name in ("traditional", "new", "order alone")}.items():
        variant = f"paritas:{LIBERATION[11]}@{kernel}~{packet}~{order}"
        found = of_caches(variant, 11, 2, 8 << 20, caches)
        command = f"lab/peers/counts.py: {variant}, {' '.join(caches)}"
        for level, key in LEVELS.items():
            yield Cell(str(packet), f"{machine}, {level}: {name}", misses(found, key), command=command)
        yield Cell(str(packet), f"{machine}, instructions, hundreds: {name}", found["Ir"] / 100, command=command)


def cache_points(effort: Effort) -> list[Point]:
    packets = [64, 512, 4096, 32768] if effort.quick else [1 << n for n in range(6, 17)]
    machines = ["P4"] if effort.quick else list(CACHES)
    return [Point(f"{machine} {packet}", lambda m=machine, p=packet: lines_missed(m, p)) for machine in machines for packet in packets]


CURVES = Plot("bytes of a packet", "fraction of the roofline")
ABOUT = (
    "traditional is Algorithm 1 on 64-bit words, new is Algorithm 2; order alone has the order of Algorithm 2, but goes "
    "over a packet once for each coding packet. Rows as they stand, copies first, no tiling, nothing fused. compiled is "
    "the kernel that serves files, on the schedule that it would have there. The roofline is the speed of one XOR for each "
    "byte read, by the best kernel, over the same memory."
)

EXPERIMENTS = [
    Experiment("luo", "figure-3", "Figures 3 to 6: packet sizes, Liberation codes with k = w = 11", Kind.TIMED,
               "fraction of the roofline", (15, 60), points=lambda effort: measured(LIBERATION[11], "", effort),
               plot=CURVES, about=ABOUT),
    Experiment("luo", "figure-7", "Packet sizes, Liberation codes with k = w = 5 and 17", Kind.TIMED,
               "fraction of the roofline", (30, 120), points=sizes, plot=CURVES, about=ABOUT),
    Experiment("luo", "figure-8", "Packet sizes, EVENODD, RDP, X-Code and STAR", Kind.TIMED, "fraction of the roofline",
               (60, 240), points=other_codes, plot=CURVES, about=ABOUT),
    Experiment("luo", "gains", "What the new algorithm gains at each packet size", Kind.TIMED,
               "times as fast as the traditional algorithm", (60, 240), points=gains,
               plot=Plot("bytes of a packet", "times as fast as the traditional algorithm"),
               about="In pairs, so other programs disturb these ratios less than the curves above, whose rooflines also feel "
               "what else uses the memory."),
    Experiment("luo", "caches", "Section 4.2: what the caches of the paper's machines miss", Kind.SAMPLED,
               "a KiB of data", (60, 250), points=cache_points, plot=Plot("bytes of a packet", "for each KiB of data"),
               about="Liberation, k = w = 11, 8 MiB, counted by cachegrind, whose caches fetch nothing ahead: lines of 64 bytes that are not in a "
               "cache. 18.9 a KiB is the least: 16 of data and 2.9 of coding. Counts depend on compiler and addresses, not on other load."),
    Experiment("luo", "table-5", "Peaks of figure 3", Kind.TIMED, "GB/s, percent, bytes", (2, 5),
               sources=("luo-figure-3",), derive=peaks, measures=True, printed="luo-table-5", comparable=False,
               about="Both algorithms are measured in pairs, each with the packet that was its fastest in figure 3."),
    Experiment("luo", "peaks", "Peaks of figures 3 to 8", Kind.TIMED, "GB/s, percent, bytes", (5, 15),
               sources=("luo-figure-3", "luo-figure-7", "luo-figure-8"), derive=all_peaks, measures=True),
    Experiment("luo", "table-6", "Parameters of the other codes", Kind.EXACT, "numbers", (1, 1),
               points=lambda _: [Point(name, lambda n=name, s=spec: counts(n, s)) for name, spec in {**OTHERS, **WIDER}.items()],
               printed="luo-table-6", about="X-Code has its coding packets on all nodes: k counts those, w packets of a strip. With 11 "
               "nodes its data fill 9 of them and a coding packet takes 8 XORs; with 13 nodes, 11 and 10."),
    Experiment("luo", "table-1", "Encoding the toy example, packets of two words", Kind.EXACT, "1: the word is in the sum", (1, 1),
               points=matrices.equations, printed="luo-table-1", about="lab/papers/matrices/toy.txt by matrix:FILE."),
    *(
        Experiment("luo", f"table-{number}", f"The XORs of the toy example in the order of the {way} algorithm", Kind.EXACT, "numbers", (1, 1),
                   points=lambda _, run=run: [Point("toy example", lambda: matrices.listed(run))], printed=f"luo-table-{number}",
                   about="lab/papers/matrices/toy.txt by matrix:FILE; the order of packets is that of `paritas schedule`, the loops in "
                   "packets are those of the paper.")
        for number, way, run in ((2, "traditional", matrices.traditional), (3, "new", matrices.new))
    ),
    Experiment("luo", "matrices", "Any matrix: the examples, and the codes of table 6 as matrices in files", Kind.EXACT, "numbers, percent", (10, 10),
               points=matrices.points, about="A matrix alone lacks S of EVENODD and STAR and the row parity of RDP's diagonals, which "
               "section 4.3 treats apart; the search for common sums finds them again. Losses are of nodes, all sets."),
    Experiment("luo", "fusion", "Section 4.2: loop fusion in algorithm 1", Kind.EXACT, "numbers", (2, 10), points=matrices.fusion_points,
               about="Liberation, k = w = 11, words of 8 bytes, rows are packets. A data word is read again unless the XOR before used it. Lines "
               "that a first level of 16 KiB with 8 ways (the Pentium 4 of table 4) misses in one stripe, empty at first; 18.9 a KiB is the least. "
               "A sum that a compiler keeps in a register is written once for each word of a coding packet; the pseudocode adds in memory."),
    Experiment("luo", "table-7", "Speed of RDP", Kind.TIMED, "GB/s", (1, 1), sources=("luo-figure-8",), derive=rdp_here,
               printed="luo-table-7", comparable=False),
    Experiment("luo", "disk", "Speed of the disk here", Kind.TIMED, "GB/s", (1, 10),
               points=lambda effort: [Point("disk", lambda: write_speed(effort))],
               about="The paper took the speed that bonnie measures, which includes the system's buffers."),
    Experiment("luo", "table-8", "Model of writing with the speeds of here", Kind.TIMED, "GB/s, percent", (1, 1),
               sources=("luo-table-5", "luo-disk"), derive=written, printed="luo-table-8", comparable=False),
    Experiment("luo", "figure-9", "Model of writing, encoding P % slower and the disk P % faster", Kind.TIMED,
               "percent faster", (1, 1), sources=("luo-table-8",), derive=potential,
               plot=Plot("P, percent", "writing faster, percent", log_x=False),
               about="The curves of the paper's machines follow from table 8; they are exact."),
]  # fmt: skip
