"""Zhou's dissertation, section 3.3.5: packet sizes, and rule (3.1) under each reading of its cache."""

from typing import Iterable

from .command import compared, sweep
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point
from .zhou import rule_packets, set_and_reps, their_kernel
from .zhou_search import jo_crs

# Figure 3.4: label, and number of parities of Jo-CRS or the spec of another code.
CODES: dict[str, int | str] = {"Jo-CRS, m = 2": 2, "RDP": "rdp:k=6", "Jo-CRS, m = 3": 3, "STAR": "star:k=6"}


def subject(name: str) -> tuple[str, str]:
    """Returns the code of a curve, and the pass that plans it."""
    code = CODES[name]
    return (code, "direct") if isinstance(code, str) else (jo_crs(6, code, (5 + code).bit_length()), "wm")


def settings(way: str, effort: Effort) -> tuple:
    return ("--pass", way, "--kernel", their_kernel(), *set_and_reps(effort))


def curve(name: str, effort: Effort) -> list[Cell]:
    """Figure 3.4: speed for each packet size."""
    spec, way = subject(name)
    return list(sweep(name, spec, *settings(way, effort)))


def rules(name: str, effort: Effort) -> Iterable[Cell]:
    """Rule (3.1): its packet for each cache, and its speed in pairs with the packet that is fastest in a sweep."""
    spec, way = subject(name)
    fastest = max(curve(name, effort), key=lambda cell: cell.value).row
    yield Cell(name, "fastest packet", int(fastest))
    for level, packet in rule_packets(spec, way).items():
        yield Cell(name, f"packet for L{level}", packet)
        more = (*settings(way, effort), "--threads", 1, "--packet", packet)
        share = compared(name, f"speed for L{level}, % of the fastest", spec, f"packet={fastest}", *more)
        yield share._replace(**{end: 100 * getattr(share, end) for end in ("value", "low", "high")})


def of_codes(measure):
    return lambda effort: [Point(name, lambda name=name: measure(name, effort)) for name in CODES]


EXPERIMENTS = [
    Experiment(
        "zhou", "figure-3.4", "Speed and packet size", Kind.TIMED, "fraction of the roofline", (8, 120), points=of_codes(curve),
        plot=Plot("bytes of a packet", "fraction of the roofline"), about="Two-operand XORs of 256 bits over whole packets; Jo-CRS with weighted matching.",
    ),
    Experiment(
        "zhou", "rule-3.1", "Rule (3.1) for packet sizes, beside the fastest", Kind.TIMED, "bytes; percent", (20, 160), points=of_codes(rules),
        about="packet x (w n + t) <= L, for each cache of this processor: the dissertation says only `the CPU cache`; docs/errata.md weighs its hints. "
        "The fastest packet is that of a sweep over powers of two; both packets then run in pairs.",
    ),
]  # fmt: skip
