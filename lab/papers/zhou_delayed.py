"""Zhou's dissertation, chapter 4: delayed parity in memory. Speeds over links are in zhou_network.py."""

import math
from fractions import Fraction
from typing import Iterable

from .command import bench_cell, in_percent, paritas, schedule, shown
from .experiment import Cell, Effort, Experiment, Kind, Point, Records, printed
from .zhou import by_row, numbers, rows, rule_packet, set_and_reps, their_kernel

PHASES = {"enc": ("encode", ()), "dec1": ("decode", ("--stage", 1)), "gen": ("promote", ()), "dec2": ("decode", ())}


def width(k: int, m2: int) -> int:
    """Returns the width that makes table 4.3 agree; the dissertation does not state it."""
    return 4 if k + m2 <= 16 else 5


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


def delayed(k: int, m: int, m2: int) -> dict[str, str]:
    """Returns the codes with delayed parity."""
    sizes = f"k={k},m={m},m2={m2},w={width(k, m2)}"
    points = ".".join(map(str, range(k + m2)))
    return {"BB-DPG": f"bbdpg:{sizes}", "optimised DPG": f"dpg:{sizes}", "DPG w/o opt": f"dpg:{sizes},points={points}"}


def groups(row: str) -> Iterable[Cell]:
    """Table 4.3: the lengths of schedules of one group."""
    k, m, m2 = numbers(row)
    w = width(k, m2)
    codes = delayed(k, m, m2)
    for name, spec in codes.items():
        yield Cell(row, name, accounted(k, m, m2, w, spec), command=shown(("schedule", spec)))
    for name, parities in {"(k, m)": m, "(k, m')": m2}.items():
        spec = f"cauchy:k={k},m={parities},w={w}"
        yield Cell(row, name, m2 * total(spec), command=shown(("schedule", spec)))
    whole = codes["BB-DPG"]
    yield Cell(row, "whole group (ours)", total(whole), command=shown(("schedule", whole)))


def of_cuts(k: int, m: int, m2: int) -> Fraction:
    """Returns the least data that must be read to make m2 - m nodes from the k + m others, as a multiple of all data: the cuts of
    theorem 1, whatever code.

    Each of the k + m nodes gives a part b of what it stores. Any k nodes must know all data: p old ones, which know all that they store,
    and k - p new ones, which know no more than they store, and no more than the parts of the other old nodes. So (k + m - p) b >= k - p.
    """
    r = m2 - m
    part = max(Fraction(k - p, k + m - p) for p in range(max(0, k - r), k + 1))
    return part * (k + m) / k


def of_repair(k: int, m2: int, r: int) -> Fraction:
    """Returns (4.1): the data read to repair r nodes of a (k + m2, k) regenerating code, as a multiple of all data."""
    return Fraction(r * (m2 + k - r), k * m2)


def subpackets(k: int, m2: int) -> int:
    """Returns (4.2): the least number of symbols of a node in a regenerating code that repairs one node with the least access."""
    return min(m2 ** math.ceil(Fraction(k + m2 - 1, m2)), m2 ** (k - 1))


def regenerating(row: str) -> Iterable[Cell]:
    """Sections 4.1 and 4.4: delayed parity beside regenerating codes."""
    k, m, m2 = numbers(row)
    words = ("codes", delayed(k, m, m2)["BB-DPG"])
    stage = paritas(*words)[0]["stages"][1]
    w = width(k, m2)
    yield Cell(row, "read by promotion, of all data", stage["reads"] / (k * m2 * w), command=shown(words))
    yield Cell(row, "theorem 1", float(of_cuts(k, m, m2)))
    yield Cell(row, "(4.1), m2 - m nodes repaired", float(of_repair(k, m2, m2 - m)))
    yield Cell(row, "symbols of a node, delayed parity", m2)
    yield Cell(row, "symbols of a node, (4.2)", subpackets(k, m2))


def phases(shape: str, effort: Effort) -> Iterable[Cell]:
    """The speeds of table 4.4, of one shape."""
    k, m, m2 = numbers(shape)
    w = width(k, m2)
    codes = delayed(k, m, m2)
    plain = {"(k, m)": (f"cauchy:k={k},m={m},w={w}", ("enc", "dec1")), "(k, m2)": (f"cauchy:k={k},m={m2},w={w}", ("enc", "dec2"))}
    packets = lambda spec: ("--pass", "wm", "--kernel", their_kernel(), "--packet", rule_packet(spec, "wm"))
    for phase, (operation, stage) in PHASES.items():
        row = f"{shape} {phase}"
        common = ("--op", operation, *set_and_reps(effort))
        for name, spec in codes.items():
            yield bench_cell(row, name, spec, *common, *stage, *packets(spec))
        words = f"dpg:k={k},m={m},m2={m2},base=isal-cauchy"
        yield bench_cell(row, "DPG in words", words, *common, *stage, "--kernel", "auto")
        for name, (spec, there) in plain.items():
            if phase in there:
                yield bench_cell(row, name, spec, *common, *packets(spec))
        yield bench_cell(row, "compiled (ours)", codes["BB-DPG"], *common, *stage, "--kernel", "jit")


OTHERS = ("optimised DPG", "DPG w/o opt", "DPG in words", "(k, m)", "(k, m2)")


def table_4_4(records: Records) -> Iterable[Cell]:
    """Table 4.4: by how many percent each is faster or slower than BB-DPG."""
    cells = {cell.place: cell for cell in records["zhou-delayed"]}
    for row in rows("zhou-table-4.4"):
        for column in (*OTHERS, "compiled (ours)"):
            if (row, column) in cells:
                ours, base = cells[row, column], cells[row, "BB-DPG"]
                doubt = "; ".join(dict.fromkeys(filter(None, (ours.doubt, base.doubt))))
                ratio = Cell(row, column, ours.value / base.value, ours.low / base.high, ours.high / base.low, doubt=doubt, command=ours.command)
                yield in_percent(ratio)


def percents() -> dict[tuple[str, str], str]:
    """Returns the printed speeds of table 4.4 as percentages of BB-DPG's, with the two decimals of the table."""
    theirs = printed("zhou-table-4.4")
    return {
        (row, column): f"{100 * (float(text) / float(theirs[row, 'BB-DPG']) - 1):.2f}"
        for (row, column), text in theirs.items() if column != "BB-DPG"
    }  # fmt: skip


EXPERIMENTS = [
    Experiment(
        "zhou", "table-4.3", "Lengths of schedules of delayed parity", Kind.EXACT, "XORs and copies of a group", (5, 5),
        points=by_row("zhou-table-4.3", lambda row, _: groups(row)), printed="zhou-table-4.3",
        about="BB-DPG is the default bbdpg, DPG the default dpg (one searched matrix), DPG w/o opt has the natural points, "
        "normalised. (k, m) and (k, m') are m' stripes of the searched codes. Whole group is the "
        "schedule of the whole group, as bbdpg is run.",
    ),
    Experiment(
        "zhou", "regenerating", "Delayed parity beside regenerating codes: (4.1), (4.2) and theorem 1", Kind.EXACT, "parts of all data; symbols", (1, 1),
        points=by_row("zhou-table-4.3", lambda row, _: regenerating(row)),
        about="Both read the same. The figure of the regenerating code is the least number of symbols that its nodes can have, by (4.2), a theorem of Balaji and Kumar that is not proved here.",
    ),
    Experiment(
        "zhou", "delayed", "Speeds of delayed parity", Kind.TIMED, "fraction of the roofline", (30, 480),
        points=lambda effort: [Point(shape, lambda shape=shape: phases(shape, effort)) for shape in rows("zhou-table-4.3")],
        about="Two-operand XORs of 256 bits over whole packets by rule (3.1), weighted matching. DPG in words is over ISA-L's code, best "
        "word kernel. enc makes the first stage, gen the second; dec1 and dec2 restore as many nodes as may be lost after each.",
    ),
    Experiment(
        "zhou", "table-4.4", "Speed of delayed parity beside BB-DPG", Kind.TIMED, "percent faster than BB-DPG", (0, 0),
        sources=("zhou-delayed",), derive=table_4_4, printed=percents, comparable=False,
        about="Theirs are the percentages that follow from the printed MB/s. compiled (ours) is BB-DPG as it runs in files.",
    ),
]  # fmt: skip
