"""The findings at the head of docs/papers.md, with figures of records; `lab/readme_tables.py` puts them into the page and checks them."""

from typing import Callable, Iterable

from .. import catalogue, plank
from ..experiment import Cell, agrees, printed
from .judge import Claim, Verdict, compare, counted, fastest, found_about, interval, over, read, span

Claims = dict[str, list[Claim]]

# Experiments that count, and their cells that depend on no search and no matching. The strategies of table 3.5 end with (…, 2) and (…, 3) if they match.
COUNTED: dict[str, Callable[[Cell], bool]] = {name: lambda cell: True for name in ("luo-table-1", "luo-table-2", "luo-table-3", "luo-table-6", "plank-ones")} | {
    "zhou-table-3.1": lambda cell: cell.column in ("baseline", "BN", "SS"),
    "zhou-table-3.5": lambda cell: cell.column == "natural" and cell.row.endswith((",0)", ",1)")),
}
NAMES = {"luo": "Luo", "plank": "Plank", "zhou": "Zhou", "jugan": "Jugan", "uyeda": "Uyeda"}


def findings(claims: Claims) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {text}" for text in (verdicts(claims), counts(), gains(), compiled(), failures(claims)))


def judged(claims: Claims) -> Iterable[tuple[str, Claim, Verdict]]:
    for paper, of_paper in claims.items():
        for claim in of_paper:
            yield paper, claim, found_about(paper, claim).verdict


def verdicts(claims: Claims) -> str:
    return "**Of " + counted(verdict for _, _, verdict in judged(claims)).replace(" claims", " claims**", 1)


def counts() -> str:
    same = []
    for name, is_counted in COUNTED.items():
        theirs = catalogue.by_identity(name).theirs()
        same += [agrees(cell.value, theirs[cell.place]) for cell in read(name).cells if cell.place in theirs and is_counted(cell)]
    theirs = printed("zhou-table-3.1")
    matched = max(abs(cell.value - float(theirs[cell.place])) for cell in read("zhou-table-3.1").cells if cell.column in ("UM", "WM"))
    return (f"**Counts hold.** {sum(same)} of {len(same)} printed counts that depend on no search and no matching agree to the last digit; the savings of matchings are within {matched:.1f} points "
            "of print. Where a document errs, the [errata](errata.md) say so.")  # fmt: skip


def of(name: str, column: str) -> list[Cell]:
    return [cell for cell in read(name).cells if cell.column == column]


def gains() -> str:
    loops = [cell for cell in of("luo-peaks", "improvement") if cell.row.endswith("64 bits")]
    vectors = of("zhou-table-3.1-speed", "V-XOR")
    talk = {cell.row: cell for cell in of("plank-observations", plank.TALK)}
    good = [cell for row, cell in talk.items() if row.startswith("the good matrix")]
    (small,) = [cell for row, cell in talk.items() if row.startswith("the smallest w")]
    of_table = lambda number: {(cell.row, cell.column.partition(": ")[2]): cell for cell in read("uyeda-throughput").cells if cell.column.startswith(f"{number}: ")}
    greedy = of_table("3")
    lazy = [over(cell, greedy[place]) for place, cell in of_table("4").items()]
    held = [compare(cell, bound) is Verdict.HOLDS for cells, bound in ((loops, 0), (vectors, 0), (good, 1), ([small], 1), (lazy, 1)) for cell in cells]
    return (f"**Gains over the older way of running**: data-first loops {span(loops, ' %')} (print 21 to 47), vectors of 256 bits {span(vectors, ' %')} (print 70), the good Cauchy matrix "
            f"{span(good)} times, the smallest w {span([small])} times, lazy decoding {span(lazy)} times (print 2.5 to 3.0). {sum(held)} of these {len(held)} ratios are above 1 with 95 % confidence.")  # fmt: skip


def families(shape: str, way: str) -> dict[str, Cell]:
    """The fastest w of each family, encoding."""
    found: dict[str, list[Cell]] = {}
    for cell in of(f"plank-encode-{shape}", way):
        found.setdefault(plank.family(cell.row), []).append(cell)
    return {family: fastest(cells) for family, cells in found.items()}


def spread(shape: str, way: str) -> Cell:
    """How many times as fast the fastest family is as the slowest, in one way of running."""
    cells = families(shape, way).values()
    return over(fastest(cells), min(cells, key=lambda cell: cell.value))


def compiled() -> str:
    shapes = [f"{k}-{m}" for k, m in plank.SHAPES]
    then = [spread(shape, plank.TALK) for shape in shapes]
    listed = ", ".join(f"{interval(spread(shape, plank.COMPILED))} for [{shape.replace('-', ',')}]" for shape in shapes)
    return (f"**Families of codes differ less once they are compiled.** Encoding, each at its best w, the fastest family is {listed} times as fast as the slowest; as the talk ran them "
            f"it was {span(then)} times. Which family is the fastest differs between the two.")  # fmt: skip


def failures(claims: Claims) -> str:
    listed = "; ".join(f"{claim.text} ({NAMES[paper]})" for paper, claim, verdict in judged(claims) if verdict is Verdict.FAILS)
    return f"**What does not hold**: {listed}."
