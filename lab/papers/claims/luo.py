"""What Luo, Xu and Plank claim (2009)."""

from ..experiment import Cell, Records
from .judge import Claim, Finding, Verdict, below, compare, fastest, interval, number, over, span, tally, together, within

# The packets beside which the reason is judged: the new algorithm's fastest ones, and a page.
PACKETS = ("1024", "4096")


def column(cells: list[Cell], name: str) -> list[Cell]:
    return [cell for cell in cells if cell.column == name]


def peaks_are_higher(records: Records) -> Finding:
    gains = [cell for cell in records["peaks"] if cell.column == "improvement"]
    narrow = [cell for cell in gains if cell.row.endswith("64 bits")]
    wide = [cell for cell in gains if cell not in narrow]
    here = f"{span(narrow, ' %')} over {len(narrow)} codes at 64 bits"
    if wide:
        here += f"; {span(wide, ' %')} at 256 and 512 bits"
    return Finding(together(compare(cell, 0) for cell in narrow), here)


def peaks_take_small_packets(records: Records) -> Finding:
    """Packets of the peaks at 64 bits, of the new algorithm and of the traditional one. Sweeps have powers of two."""
    of = lambda name: {cell.row.removesuffix(", 64 bits"): cell for cell in column(records["peaks"], name) if cell.row.endswith("64 bits")}
    ours, theirs = of("packet of the new"), of("packet of the traditional")
    verdicts = [below(over(ours[row], theirs[row]), 1, exact=True) for row in ours]
    listed = "; ".join(f"{row} {number(ours[row].value)} ({number(theirs[row].value)})" for row in ours)
    return Finding(together(verdicts), f"bytes of a packet at the peak, at 64 bits, and of the traditional algorithm: {listed}; smaller: {tally(verdicts)}")


def fusion_is_the_reason(records: Records) -> Finding:
    """One load of a word for all its targets, beside the same order of data with a load for each target, at the packets of `PACKETS`.
    Both are measured in pairs with the traditional algorithm."""
    of = {cell.place: cell for cell in records["gains"] if cell.row in PACKETS}
    alone = [cell for (_, column), cell in of.items() if column.endswith(": order alone")]
    whole = [of[cell.row, cell.column.replace("order alone", "new")] for cell in alone]
    fused = [over(new, order) for new, order in zip(whole, alone, strict=True)]
    gained = [compare(cell, 1) for cell in fused]
    here = f"packets of 1 and 4 KiB, times as fast as the traditional algorithm: order alone {span(alone)}, with fusion {span(whole)}; fusion is faster: {tally(gained)}"
    return Finding(together(gained), here)


def caches_miss_less(records: Records) -> Finding:
    """Lines that the first level misses, counted with the caches of the Pentium 4."""
    curves = [column(records["caches"], f"P4, first level: {name}") for name in ("new", "traditional")]
    pairs = [(new, old) for new, old in zip(*curves, strict=True)]
    verdicts = [below(over(new, old), 1, exact=True) for new, old in pairs]
    ratios = {verdict: [over(new, old) for (new, old), one in zip(pairs, verdicts) if one is verdict] for verdict in (Verdict.HOLDS, Verdict.FAILS)}
    listed = ", and ".join(f"{span(found)} times with packets of {packets(found)} bytes" for found in ratios.values() if found)
    return Finding(together(verdicts), f"misses of the first level, beside the traditional algorithm: {listed}")


def packets(cells: list[Cell]) -> str:
    """The sizes of packets of some cells, each run of neighbouring powers of two as a range."""
    runs: list[list[int]] = []
    for size in sorted(int(cell.row) for cell in cells):
        if runs and size == 2 * runs[-1][-1]:
            runs[-1].append(size)
        else:
            runs.append([size])
    return " and ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def instructions(records: Records) -> Finding:
    curves = [column(records["caches"], f"P4, instructions, hundreds: {name}") for name in ("new", "traditional")]
    ratios = [over(new, old) for new, old in zip(*curves, strict=True)]
    return Finding(Verdict.OPEN, f"{span(ratios)} of the instructions")


# Bytes of the largest packets that were run.
LARGE = "32768"


def large_packets_harm(records: Records) -> Finding:
    """The new algorithm beside the traditional one with the same packets, for all seven codes."""
    curves: dict[str, list[Cell]] = {}
    for cell in records["gains"]:
        way = cell.column.partition(": ")[2]
        if way != "order alone":
            curves.setdefault(way, []).append(cell)
    large = [cell for cell in curves["new"] if cell.row == LARGE]
    verdicts = [below(cell, 1) for cell in large]
    here = f"times as fast at 64 bits: {span(large)} with packets of 32 KiB (slower: {tally(verdicts)}), {span(curves['new'])} with any packet"
    wide = [cell for way, cells in curves.items() if way != "new" for cell in cells]
    if wide:
        here += f"; at 256 and 512 bits {span(wide)} with any packet (slower: {tally(below(cell, 1) for cell in wide)})"
    return Finding(together(verdicts), here)


def peaks(records: Records) -> dict[str, Cell]:
    """The peaks of the new algorithm at 64 bits, over all packets."""
    return {name: fastest(column(records["figure-8"], f"{name}: new")) for name in ("EVENODD", "RDP", "X-Code", "STAR")}


def star_is_last(records: Records) -> Finding:
    found = peaks(records)
    others = [over(peak, found["STAR"]) for name, peak in found.items() if name != "STAR"]
    listed = ", ".join(f"{name} {span([peak])}" for name, peak in found.items())
    return Finding(together(compare(other, 1) for other in others), f"peaks as shares of the roofline: {listed}")


def optimal_codes_are_fastest(records: Records) -> Finding:
    found = peaks(records)
    ratios = {(name, other): over(found[name], found[other]) for name in ("RDP", "X-Code") for other in ("EVENODD", "STAR")}
    verdicts = [compare(ratio, 1) for ratio in ratios.values()]
    listed = ", ".join(f"{name} / {other} {interval(ratio)}" for (name, other), ratio in ratios.items())
    return Finding(together(verdicts), f"peaks: {listed}")


def liberation_is_as_fast_as_evenodd(records: Records) -> Finding:
    ratio = over(fastest(column(records["figure-3"], "new")), peaks(records)["EVENODD"])
    return Finding(within(ratio, 0.95, 1.05), f"peaks, k = 11: {interval(ratio)} of EVENODD's; within 5 % counts as equal")


def optimal_codes(records: Records) -> Finding:
    """k is the number of nodes that the data fill: of X-Code, whose every node has parity, two less than its nodes."""
    cells = {cell.place: cell for cell in records["table-6"]}
    names = ("RDP", "X-Code", "X-Code, n = 13")
    filled, xors = ({name: cells[name, column] for name in names} for column in ("nodes' worth of data", "XORs a coding packet"))
    verdicts = [Verdict.HOLDS if xors[name].value == filled[name].value - 1 else Verdict.FAILS for name in names]
    listed = ", ".join(f"{name} {number(xors[name].value)} (k = {filled[name].value:.0f})" for name in names)
    return Finding(together(verdicts), f"XORs a coding word: {listed}")


def fusion_gains_nothing(records: Records) -> Finding:
    """By counts: data words that are read, and lines that a first level misses."""
    of = lambda way, what: column(records["fusion"], f"{way}: {what}")
    reads, lines = "data words read for each one there is", "lines missed for each KiB of data"
    ratios = {what: [over(new, old) for new, old in zip(of("traditional, fused", what), of("traditional", what), strict=True)] for what in (reads, lines)}
    verdicts = [Verdict.HOLDS if ratio.value >= 1 else Verdict.FAILS for found in ratios.values() for ratio in found]
    return Finding(together(verdicts), f"fused, with packets of 64 bytes to 4 KiB: {span(ratios[reads])} times the reads of data words, {span(ratios[lines])} times the misses of the first level")


def writing_gains(records: Records) -> Finding:
    gains = [cell for cell in records["table-8"] if cell.column == "improvement"]
    listed = ", ".join(f"{cell.value:.1f} % ({cell.row.removeprefix('here, ')})" for cell in gains)
    return Finding(together(compare(cell, 0) for cell in gains), f"by their model, with the disk here: {listed}; no interval, because the disk was measured once")


CLAIMS = [
    Claim("The new algorithm's peaks are higher (21 to 47 %)", ("peaks",), peaks_are_higher),
    Claim("The new algorithm peaks with smaller packets than the traditional one (section 5.2)", ("peaks",), peaks_take_small_packets),
    Claim("The peaks are higher because of loop fusion (section 3)", ("gains",), fusion_is_the_reason),
    Claim("The new algorithm misses the caches less", ("caches",), caches_miss_less),
    Claim("(How many instructions it executes, which the paper does not say)", ("caches",), instructions),
    Claim("Large packets make the new algorithm slower than the traditional one (on Pc2d and Pc2q)", ("gains",), large_packets_harm),
    Claim("RDP and X-Code encode the fastest (section 5.3)", ("figure-8",), optimal_codes_are_fastest),
    Claim("Liberation is as fast as EVENODD for k = w (section 5.3)", ("figure-3", "figure-8"), liberation_is_as_fast_as_evenodd),
    Claim("STAR is the slowest of the other codes", ("figure-8",), star_is_last),
    Claim("RDP and X-Code take k - 1 XORs a coding word", ("table-6",), optimal_codes),
    Claim("Loop fusion in the traditional algorithm gains nothing", ("fusion",), fusion_gains_nothing),
    Claim("Writing gets faster (1.6 to 8.3 %)", ("table-8",), writing_gains),
]
