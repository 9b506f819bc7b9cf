"""What Jugan's poster claims."""

from typing import Callable, Iterable

from .. import jugan
from ..experiment import Cell, Records
from .judge import Claim, Finding, Verdict, below, compare, over, span, tally, together

Judge = Callable[[Records], Finding]
# What "almost twice" means, and how much more one W may gain than another without mattering.
ALMOST_TWICE, LITTLE = 1.8, 1.1


def cells_of(records: Records, run: str, split: str, names: Iterable[str] = jugan.SOURCES) -> list[Cell]:
    """The speed-ups of two threads by a split, of codes run 64 bits at a time or compiled."""
    return [cell for name in names for cell in records[name] if cell.column == f"{run}: {split}, 2 threads"]


def with_source_names(records: Records) -> Records:
    """The records by the identities that derived experiments have."""
    return {f"jugan-{name}": cells for name, cells in records.items()}


def found(cells: list[Cell], verdicts: list[Verdict], about: str) -> Finding:
    if not cells:
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    return Finding(together(verdicts), f"{span(cells)} {about}: {tally(verdicts)}")


def almost_twice(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        cells = cells_of(records, run, "stripe")
        return found(cells, [compare(cell, ALMOST_TWICE) for cell in cells], f"times as fast by stripes; more than {ALMOST_TWICE}")

    return judge


def odd_nodes_suffer(run: str) -> Judge:
    """M = 3, 5, 7: division by nodes beside stripes."""

    def judge(records: Records) -> Finding:
        ratios = []
        for name in jugan.SOURCES:
            stripes = {cell.row: cell for cell in cells_of(records, run, "stripe", [name])}
            by_node = [cell for cell in cells_of(records, run, "node", [name]) if jugan.parities_of(cell) % 2]
            ratios += [over(cell, stripes[cell.row]) for cell in by_node if cell.row in stripes]
        return found(ratios, [below(ratio, 1) for ratio in ratios], "times as fast as by stripes, M = 3, 5, 7; less than as fast")

    return judge


def even_nodes_do_well(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        cells = [cell for cell in cells_of(records, run, "node") if not jugan.parities_of(cell) % 2]
        return found(cells, [compare(cell, ALMOST_TWICE) for cell in cells], f"times as fast by nodes, M = 2, 4, 6, 8; more than {ALMOST_TWICE}")

    return judge


def packet_cells(records: Records, run: str, splits: Iterable[str], packet: int) -> list[Cell]:
    cells = [cell for split in splits for cell in cells_of(records, run, split, ["cauchy"])]
    return [cell for cell in cells if cell.row.endswith(f"packets of {packet}")]


def columns_do_well(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        cells = packet_cells(records, run, ["columns"], 2048)
        return found(cells, [compare(cell, 1) for cell in cells], "times as fast by columns of packets of 2 KiB; more than as fast")

    return judge


def large_packets_are_slower(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        cells = packet_cells(records, run, jugan.SPLITS, 16 << 10)
        return found(cells, [below(cell, 1) for cell in cells], "times as fast with packets of 16 KiB, all splits; slower")

    return judge


def widths_matter_little(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        ratios = [cell for cell in jugan.widths(with_source_names(records)) if cell.column.startswith(f"{run}: ")]
        about = f"between the largest and the smallest speed-up of W = 8, 16, 32; less than {LITTLE}"
        return found(ratios, [below(ratio, LITTLE) for ratio in ratios], about)

    return judge


def one_parity_is_fastest(run: str) -> Judge:
    def judge(records: Records) -> Finding:
        cells = [cell for cell in jugan.one_thread(with_source_names(records)) if cell.row.endswith(f", {run}")]
        first = {cell.row: cell for cell in cells if cell.column == "M = 1"}
        ratios = [over(first[cell.row], cell) for cell in cells if cell.column != "M = 1" and cell.row in first]
        return found(ratios, [compare(ratio, 1) for ratio in ratios], "times as fast as M = 2 to 8, one thread; faster")

    return judge


def settings_are_found(records: Records) -> Finding:
    # Before packets were in the grid, its settings did not name them.
    if not any("packets of" in cell.column for cell in records["regret"]):
        return Finding(Verdict.UNDECIDED, "the records lack these cells")
    cells = [cell for cell in records["regret"] if cell.column == "regret, %"]
    return found(cells, [below(cell, 3) for cell in cells], "% behind the best of threads, splits and packets; less than 3")


def both(text: str, judge: Callable[[str], Judge], sources: tuple[str, ...] = jugan.SOURCES) -> list[Claim]:
    """A claim, judged as the poster ran its library and compiled."""
    return [Claim(f"{text}: {run}", sources, judge(run)) for run in jugan.PACKET_RUNS]


CLAIMS = [
    *both("Two cores are almost twice as fast as one", almost_twice),
    *both("Division by coding nodes suffers if M is no multiple of the cores", odd_nodes_suffer),
    *both("Division by coding nodes is fast if M is a multiple", even_nodes_do_well),
    *both("Columns perform consistently well with packets of 2 KiB", columns_do_well, ("cauchy",)),
    *both("Large packets are slower than one thread", large_packets_are_slower, ("cauchy",)),
    *both("Altering W does not significantly change the speed-up", widths_matter_little, ("reed-solomon",)),
    *both("One thread is extremely fast with M = 1", one_parity_is_fastest),
    Claim("Settings can be found automatically (future work)", ("regret",), settings_are_found),
]
