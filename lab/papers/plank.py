"""Plank et al.: A Performance Evaluation of Open Source Erasure Codes for Storage Applications (talk, FAST 2009)."""

from typing import Iterable

from .command import available, bench_cell, paritas, schedule, shown, sweep
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records

SHAPES = [(6, 2), (14, 2), (12, 4), (10, 6)]
WIDEST = 32
# The packet of the figures. The talk searched the best of each code; figure packets has the curve.
PACKET = 2048
IN_WORDS = ("raid6", "zfec", "reed-solomon")
TALK = "as the talk ran it"
COMPILED = "compiled"


def primes(most: int) -> list[int]:
    return [n for n in range(3, most + 1) if all(n % divisor for divisor in range(2, n))]


def codes(k: int, m: int, effort: Effort) -> dict[str, str]:
    """Returns the specs of all codes of the talk by label, for each legal w up to 32; a quick run takes few w."""
    found = {}
    if m == 2:
        for p in primes(WIDEST + 1):
            if p - 1 >= k:
                found[f"RDP, w = {p - 1}"] = f"rdp:k={k},p={p}"
                found[f"Blaum-Roth, w = {p - 1}"] = f"blaum-roth:k={k},w={p - 1}"
            if p >= k:
                found[f"EVENODD, w = {p - 1}"] = f"evenodd:k={k},p={p}"
                found[f"Liberation, w = {p}"] = f"liberation:k={k},w={p}"
        if k <= 8:
            found["Liber8tion, w = 8"] = f"liber8tion:k={k}"
    for w in range((k + m - 1).bit_length(), WIDEST + 1):
        found[f"CRS good, w = {w}"] = f"cauchy-good:k={k},m={m},w={w}"
        found[f"CRS original, w = {w}"] = f"cauchy-orig:k={k},m={m},w={w}"
    for w in (8, 16, 32):
        found[f"RS, w = {w}"] = f"reed-solomon:k={k},m={m},w={w}"
        if m == 2:
            found[f"RS RAID-6, w = {w}"] = f"raid6:k={k},w={w}"
    found["RS zfec, w = 8"] = f"zfec:k={k},m={m}"
    return few(found) if effort.quick else found


# The w of a quick run.
FEW = 12


def few(found: dict[str, str]) -> dict[str, str]:
    """Returns the codes with w up to `FEW`."""
    return {label: spec for label, spec in found.items() if int(label.partition(", w = ")[2]) <= FEW}


def ways(spec: str, effort: Effort) -> dict[str, tuple]:
    """Returns how a code is run: as the talk's libraries did, 64 bits at a time, and compiled. Codes in words run on 64-bit
    words and on the best kernel."""
    size = ("--set", 2 << 20, "--reps", 20) if effort.quick else ("--set", 64 << 20, "--reps", 20)
    if spec.partition(":")[0] in IN_WORDS:
        return {TALK: ("--kernel", "scalar", *size), COMPILED: ("--kernel", "auto", *size)}
    plain = ("--pass", "smart", "--kernel", "packetwise64", "--packet", PACKET, *size)
    return {TALK: plain, COMPILED: ("--kernel", "jit", *size)}


def speeds(label: str, spec: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """One code: its speed as a fraction of that of one XOR for each byte read, which is the talk's normalised speed."""
    for way, options in ways(spec, effort).items():
        yield bench_cell(label, way, spec, "--op", operation, *options)


def all_codes(k: int, m: int, operation: str):
    def points(effort: Effort) -> list[Point]:
        found = codes(k, m, effort).items()
        return [Point(label, lambda label=label, spec=spec: speeds(label, spec, operation, effort)) for label, spec in found]

    return points


def by_width(records: Records, identity: str) -> Iterable[Cell]:
    """The talk's graphs: a curve a family over w, normalised and raw."""
    for cell in records[identity]:
        family, _, w = cell.row.partition(", w = ")
        yield cell._replace(row=w, column=f"{cell.column}: {family}")
        yield Cell(w, f"{cell.column}, GB/s: {family}", cell.speed, command=cell.command)


# The talk's page on optimised Cauchy matrices: ones of a row of Q's bit matrix on average, for k = 14.
PRINTED_ONES = {("7", "ones a row"): "22.3", ("8", "ones a row"): "28.5", ("9", "ones a row"): "20.1"}


def ones(_: Effort) -> Iterable[Cell]:
    """Ones of the good Cauchy matrix by w, [14,2]."""
    for w in range(4, 13):
        words = ("schedule", f"cauchy-good:k=14,m=2,w={w}")
        yield Cell(str(w), "ones a row", (schedule(*words[1:])["ones"] - 14 * w) / w, command=shown(words))


def packet_curve(effort: Effort) -> Iterable[Cell]:
    """The talk's packet sizes: RDP [6,2] with w = 6."""
    size = ("--set", 8 << 20, "--reps", 20) if effort.quick else ("--set", 256 << 20, "--reps", 20)
    for kernel in available("packetwise64", "packetwise128", "packetwise256"):
        yield from sweep(kernel, "rdp:k=6", "--pass", "direct", "--kernel", kernel, *size)


def packet_search(effort: Effort) -> Iterable[Cell]:
    """What `tune --packet` finds for compiled kernels, in and out of the cache."""
    codes_tried = ["rdp:k=6"] if effort.quick else ["rdp:k=6", "10+4", "liberation:k=6"]
    words = ("tune", "--packet", *codes_tried)
    for line in paritas(*words):
        if line["type"] == "decision":
            row = line["about"]
            yield Cell(row, "fastest packet", float(line["chosen"]), command=shown(words))
            for choice in line["choices"]:
                yield Cell(row, f"{choice['name']} bytes, GB/s", choice["gbps"], command=shown(words))


def best(cells: list[Cell], way: str, *families: str) -> float:
    """Returns the fastest speed of some families."""
    speeds_found = [c.value for c in cells if c.column == way and c.row.partition(",")[0] in families]
    return max(speeds_found, default=float("nan"))


def observations(records: Records) -> Iterable[Cell]:
    """The talk's observations as ratios: each is true where it is above 1."""
    six, twelve = records["plank-encode-6-2"], records["plank-encode-12-4"]
    special = ("RDP", "EVENODD", "Liberation", "Blaum-Roth", "Liber8tion")
    by_place = {cell.place: cell.value for cell in six}
    for way in (TALK, COMPILED):
        of = lambda cells, *families: best(cells, way, *families)
        narrow = {cell.row: cell.value for cell in twelve if cell.column == way}
        claims = {
            "special-purpose codes over Cauchy ones, [6,2]": of(six, *special) / of(six, "CRS good"),
            "RDP over the next best special-purpose code, [6,2]": of(six, "RDP") / of(six, *special[1:]),
            "the good matrix over the original, [6,2], w = 8":
                by_place["CRS good, w = 8", way] / by_place["CRS original, w = 8", way],
            "Anvin's RAID-6 over the best other Reed-Solomon, [6,2]": of(six, "RS RAID-6") / of(six, "RS", "RS zfec"),
            "zfec over plain Reed-Solomon, [12,4]": of(twelve, "RS zfec") / of(twelve, "RS"),
            "Cauchy over Reed-Solomon, [12,4]": of(twelve, "CRS good") / of(twelve, "RS", "RS zfec"),
            "the smallest w over w = 8, Cauchy, [12,4]": narrow["CRS good, w = 4"] / narrow["CRS good, w = 8"],
        }  # fmt: skip
        for claim, ratio in claims.items():
            yield Cell(claim, way, ratio)


ABOUT = (
    f"As the talk ran it: two-operand XORs of 64 bits over whole packets of {PACKET} bytes, schedules by Hafner's method "
    "(smart); Reed-Solomon in words on 64-bit registers. Compiled: the kernel that serves files (word codes: the best word "
    "kernel). The roofline is one XOR for each byte read, so fractions are the talk's normalised speeds."
)
EXPERIMENTS = [
    Experiment("plank", "packets", "Packet sizes, RDP [6,2], w = 6", Kind.TIMED, "fraction of the roofline", (10, 300),
               points=lambda effort: [Point("all", lambda: packet_curve(effort))],
               plot=Plot("bytes of a packet", "fraction of the roofline")),
    Experiment("plank", "packet-search", "The search for the best packet", Kind.TIMED, "bytes, GB/s", (15, 120),
               points=lambda effort: [Point("all", lambda: packet_search(effort))], about="For compiled kernels, by tune."),
    Experiment("plank", "ones", "Ones of the good Cauchy matrix, [14,2]", Kind.EXACT, "ones of a row of Q, on average", (1, 1),
               points=lambda effort: [Point("all", lambda: ones(effort))], printed=lambda: PRINTED_ONES,
               about="The talk shows that some w have far fewer ones than others."),
    *(
        Experiment("plank", f"{operation}-{k}-{m}", f"{operation.capitalize()} [{k},{m}], all codes", Kind.TIMED,
                   "fraction of the roofline", (12, 300), points=all_codes(k, m, operation), about=ABOUT)
        for operation in ("encode", "decode") for k, m in SHAPES
    ),
    *(
        Experiment("plank", f"figure-{operation}-{k}-{m}", f"{operation.capitalize()} [{k},{m}] by w", Kind.TIMED,
                   "fraction of the roofline; GB/s", (0, 0), sources=(f"plank-{operation}-{k}-{m}",),
                   derive=lambda records, identity=f"plank-{operation}-{k}-{m}": by_width(records, identity),
                   plot=Plot("w", "fraction of the roofline, or GB/s", log_x=False))
        for operation in ("encode", "decode") for k, m in SHAPES
    ),
    Experiment("plank", "observations", "The talk's observations, then and now", Kind.TIMED, "ratio; true where above 1",
               (0, 0), sources=("plank-encode-6-2", "plank-encode-12-4"), derive=observations,
               about="Each ratio is of the fastest code of either side, over the w that were measured."),
]  # fmt: skip
