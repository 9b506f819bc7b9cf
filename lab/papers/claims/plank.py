"""What the talk of Plank and others claims (2009)."""

from itertools import combinations
from statistics import median
from typing import Callable, Iterable

from .. import plank
from ..experiment import Cell, Records
from .judge import Claim, Finding, Verdict, below, compare, interval, marked, number, over, span, tally, together

Judge = Callable[[Records], Finding]
# What the ways to run a code are called here, in the order of the page.
WAYS = {plank.TALK: "then", plank.COMPILED: "compiled", plank.LIBRARY: "libraries"}


def shown(cell: Cell) -> str:
    """A ratio with its interval, and why nothing follows from it."""
    return interval(cell._replace(doubt="undecided") if cell.doubt == plank.OVERLAP else cell)


def observed(name: str, decide: Callable[[Cell], Verdict] = lambda cell: compare(cell, 1)) -> Judge:
    """Judges a ratio of `observations` as the talk ran the codes. How it is today stands beside it."""

    def judge(records: Records) -> Finding:
        cells = {cell.column: cell for cell in records["observations"] if cell.row == name}
        here = "; ".join(f"{label} {shown(cells[way])}" for way, label in WAYS.items() if way in cells)
        then = cells.get(plank.TALK)
        return Finding(decide(then) if then else Verdict.UNDECIDED, here or "the records lack these cells")

    return judge


def is_close(cell: Cell) -> Verdict:
    """Whether the others are at most 10 % behind, or lead: the talk says `very close behind`."""
    return below(cell, 1.1)


def does_not_help(cell: Cell) -> Verdict:
    return below(cell, 1)


# What the fractions of the XOR's speed are of: these codes, as far as their w.
NORMALISED = {"RDP": 6, "CRS good": 8, "CRS original": 8, "RS RAID-6": 8, "RS": 8}


def fractions(records: Records) -> Finding:
    """What codes reach of the speed of the XOR, encoding [6,2]. Counts say what RDP can reach."""
    cells = {cell.place: cell for cell in records["encode-6-2"]}
    said = []
    for family, w in NORMALISED.items():
        both = [cells[f"{family}, w = {w}", way] for way in (plank.TALK, plank.COMPILED)]
        said.append(f"{family}, w = {w}: {' and '.join(map(marked, both))}")
    return Finding(Verdict.OPEN, "then of an XOR of 64 bits, and compiled of the best XOR: " + "; ".join(said))


def ends(cells: list[Cell], family: str) -> tuple[Cell, Cell]:
    """The cells of a family with its smallest and its largest w, as the talk ran it."""
    of_family = [cell for cell in cells if cell.column == plank.TALK and plank.family(cell.row) == family]
    width = lambda cell: int(cell.row.rpartition(" ")[2])
    return min(of_family, key=width), max(of_family, key=width)


def by_w(families: tuple[str, ...], decide: Callable[[Cell], Verdict], words: str) -> Judge:
    """The smallest w of each family beside the largest one up to 32, encoding [6,2] and [14,2]."""

    def judge(records: Records) -> Finding:
        said, verdicts = [], []
        for shape in ("6-2", "14-2"):
            for family in families:
                small, large = ends(records[f"encode-{shape}"], family)
                ratio = over(small, large)
                verdicts.append(decide(ratio))
                said.append(f"{family} [{shape.replace('-', ',')}] {shown(ratio)}")
        return Finding(together(verdicts), f"then, speed with the smallest w over that with the largest: {', '.join(said)}; {words}: {tally(verdicts)}")

    return judge


ENCODED = tuple(f"encode-{k}-{m}" for k, m in plank.SHAPES)


def faster_than_disks(records: Records) -> Finding:
    """The slowest code of all shapes and w beside the disk. The disk was measured once, so its speed has no interval."""
    (disk,) = [cell for cell in records["luo-disk"] if cell.column == "until on disk"]
    of = lambda way: [cell._replace(value=cell.speed) for name in ENCODED for cell in records[name] if cell.column == way]
    speeds = {way: of(way) for way in (plank.TALK, plank.LIBRARY)}
    said = "; ".join(f"{WAYS[way]} {span(found)} GB/s, {number(median(cell.value for cell in found))} in the median" for way, found in speeds.items())
    slowest = [over(min(found, key=lambda cell: cell.value), disk) for found in speeds.values()]
    return Finding(together(compare(ratio, 1) for ratio in slowest), f"{said}; the disk here wrote {number(disk.value)} GB/s ({disk.doubt})")


# What "roughly" means: percent of the pairs of codes in which the one with fewer XORs is the faster.
ROUGHLY = 75


def in_order(pairs: Iterable[tuple[Cell, Cell]]) -> Cell:
    """In how many percent of the pairs the first code is faster than the second. A pair whose intervals overlap may go either way, and the
    interval has both."""
    found = list(pairs)
    share = lambda is_so: 100 * sum(1 for fewer, more in found if is_so(fewer, more)) / len(found)
    return Cell("", "", share(lambda fewer, more: fewer.value > more.value), share(lambda fewer, more: fewer.low > more.high),
                share(lambda fewer, more: fewer.high >= more.low))  # fmt: skip


def fewer_xors_are_faster(records: Records) -> Finding:
    """All pairs of codes in packets whose numbers of XORs differ, as the talk ran them."""
    said, shares = [], []
    for k, m in plank.SHAPES:
        xors = {cell.row: cell.value for cell in records["xors"] if cell.column == f"[{k},{m}]"}
        cells = [cell for cell in records[f"encode-{k}-{m}"] if cell.column == plank.TALK and cell.row in xors]
        cells.sort(key=lambda cell: xors[cell.row])
        shares.append(in_order((fewer, more) for fewer, more in combinations(cells, 2) if xors[fewer.row] < xors[more.row]))
        doubtful = sum(1 for cell in cells if cell.doubt)
        said.append(f"[{k},{m}] {interval(shares[-1])}" + (f" ({doubtful} of {len(cells)} codes doubtful)" if doubtful else ""))
    verdicts = [compare(share, ROUGHLY) for share in shares]
    here = f"then, pairs of codes in which the one with fewer XORs is faster, %: {', '.join(said)}; more than {ROUGHLY}: {tally(verdicts)}"
    return Finding(together(verdicts), here)


def faster(ratio: Cell) -> Verdict:
    return compare(ratio, 1)


CLAIMS = [
    Claim("Special-purpose RAID-6 codes are faster than Cauchy codes, [6,2]", ("observations",), observed("special-purpose codes over Cauchy ones, [6,2]")),
    Claim("The number of XORs roughly matters", ("xors", *ENCODED), fewer_xors_are_faster),
    Claim("RDP is the fastest special-purpose code, [6,2]", ("observations",), observed("RDP over the next best special-purpose code, [6,2]")),
    Claim("The other special-purpose codes are very close behind RDP (here: at most 10 %)", ("observations",), observed("RDP over the next best special-purpose code, [6,2]", is_close)),
    Claim("The good Cauchy matrix is faster than the original, [6,2], w = 8", ("observations",), observed("the good matrix over the original, [6,2], w = 8")),
    Claim("The good Cauchy matrix is faster than the original, [12,4], w = 8", ("observations",), observed("the good matrix over the original, [12,4], w = 8")),
    Claim("Small w are faster: the smallest beside w = 8, Cauchy, [12,4]", ("observations",), observed("the smallest w over w = 8, Cauchy, [12,4]")),
    Claim("Anvin's RAID-6 is faster than plain Reed-Solomon, encoding [6,2], w = 8", ("observations",),
          observed("Anvin's RAID-6 over plain Reed-Solomon, encoding [6,2], w = 8")),
    Claim("Anvin's optimisation does not help decoding", ("observations",),
          observed("Anvin's RAID-6 over plain Reed-Solomon, decoding [6,2], w = 8", does_not_help)),
    Claim("zfec is the best standard Reed-Solomon code, [6,2]", ("observations",), observed("zfec over plain Reed-Solomon, [6,2]")),
    Claim("(zfec beside plain Reed-Solomon, [12,4], which the talk does not judge)", ("observations",),
          observed("zfec over plain Reed-Solomon, [12,4]", lambda cell: Verdict.OPEN)),
    Claim("Cauchy is the better general-purpose code, [12,4]", ("observations",), observed("Cauchy over Reed-Solomon, [12,4]")),
    Claim("RDP and EVENODD perform better when w is smaller", ("encode-6-2", "encode-14-2"), by_w(("RDP", "EVENODD"), faster, "smaller is faster")),
    Claim("Codes of minimal density improve when w increases", ("encode-6-2", "encode-14-2"),
          by_w(("Liberation", "Blaum-Roth"), lambda ratio: below(ratio, 1), "larger is faster")),
    Claim("Libraries keep up with disks", (*ENCODED, "luo-disk"), faster_than_disks),
    Claim("(Speeds as fractions of an XOR's, which the talk does not define)", ("encode-6-2",), fractions),
]  # fmt: skip
