"""Plank et al.: A Performance Evaluation of Open Source Erasure Codes for Storage Applications (talk, FAST 2009)."""

from typing import Iterable

import pairs

from .command import available, bench_cell, best_packet, paritas, same_kernel_cell, schedule, shown, sweep
from .experiment import Cell, Effort, Experiment, Kind, Plot, Point, Records
from .libraries import normalised

SHAPES = [(6, 2), (14, 2), (12, 4), (10, 6)]
WIDEST = 32
IN_WORDS = ("raid6", "zfec", "reed-solomon")
TALK = "as the talk ran it"
COMPILED = "compiled"
LIBRARY = "library of today"
PACKET = "its packet, bytes"
# How the talk ran a code: schedules by Hafner's method, XORs of 64 bits.
PLAIN = ("--pass", "smart", "--kernel", "packetwise64")


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


def family(label: str) -> str:
    return label.partition(", w = ")[0]


def few(found: dict[str, str]) -> dict[str, str]:
    """Returns the codes of a quick run: of each family the two smallest w, and 8; of Reed-Solomon codes in words, all."""
    kept: dict[str, list[str]] = {}
    for label in found:
        of_family = kept.setdefault(family(label), [])
        if len(of_family) < 2 or family(label).startswith("RS") or label.endswith(", w = 8"):
            of_family.append(label)
    return {label: spec for label, spec in found.items() if label in kept[family(label)]}


def set_bytes(effort: Effort) -> int:
    return 2 << 20 if effort.quick else 64 << 20


# Bytes of all shards when packets are searched for: most that a stripe of the largest packets takes, and more than the second-level
# cache has. Short samples allow more pairs.
SEARCHED_SET = 16 << 20


def packet_of(spec: str, effort: Effort) -> int:
    """Returns the best packet of a code, run as the talk did. Packets are stored, so decoding has the packet that encodes
    fastest."""
    return best_packet(spec, *PLAIN, "--set", min(set_bytes(effort), SEARCHED_SET))


def is_in_words(spec: str) -> bool:
    return spec.partition(":")[0] in IN_WORDS


def speeds(label: str, spec: str, operation: str, effort: Effort) -> Iterable[Cell]:
    """One code: its speed as a fraction of that of one XOR for each byte read: as the talk's libraries ran, of an XOR of 64
    bits; compiled, of the best XOR."""
    more = ("--op", operation, "--set", set_bytes(effort), "--reps", pairs.FEWEST)
    if is_in_words(spec):
        yield same_kernel_cell(label, TALK, spec, "--kernel", "packetwise64", *more)
        yield bench_cell(label, COMPILED, spec, "--kernel", "auto", *more)
        return
    packet = packet_of(spec, effort)
    yield Cell(label, PACKET, packet)
    yield same_kernel_cell(label, TALK, spec, *PLAIN, "--packet", packet, *more)
    yield bench_cell(label, COMPILED, spec, "--kernel", "jit", *more)


# Jerasure's name for a family. Debian's package lacks RDP and EVENODD, which were added for the study.
TECHNIQUES = {"CRS good": "cauchy_good", "CRS original": "cauchy_orig", "RS": "reed_sol_van", "RS RAID-6": "reed_sol_r6_op",
              "Liberation": "liberation", "Blaum-Roth": "blaum_roth", "Liber8tion": "liber8tion"}  # fmt: skip


def other_libraries(k: int, m: int, operation: str) -> dict[str, str]:
    """Returns the variants of libraries with codes of their own by label; each is described in lab/peers/run.py."""
    found = {"RS ISA-L, w = 8": "isal", "RS reed-solomon-erasure, w = 8": "erasure", "RS liberasurecode, w = 16": "liberasurecode:rs_vand",
             "RS klauspost, w = 8": "klauspost"}  # fmt: skip
    if m == 2 and operation == "encode":
        found["RS RAID-6 ISA-L, w = 8"] = "isal:raid6"
    if (k, m) == (10, 6):
        found |= {f"flat XOR of distance {distance}": f"liberasurecode:flat_xor_hd:{distance}" for distance in (3, 4)}
    return found


def library(label: str, k: int, m: int, operation: str, effort: Effort) -> Iterable[Cell]:
    """One library: its speed as a fraction of that of the best XOR. Jerasure has the packet of our code."""
    technique = TECHNIQUES.get(family(label))
    variant = "zfec" if family(label) == "RS zfec" else other_libraries(k, m, operation).get(label)
    if technique:
        spec, w = codes(k, m, effort)[label], label.rpartition(" ")[2]
        variant = f"jerasure:{technique}@{w}" if is_in_words(spec) else f"jerasure:{technique}@{w}@{packet_of(spec, effort)}"
    yield from normalised(label, LIBRARY, k, m, operation, variant, set_bytes(effort))


def all_codes(k: int, m: int, operation: str):
    def points(effort: Effort) -> list[Point]:
        found = codes(k, m, effort)
        ours = [Point(label, lambda label=label, spec=spec: speeds(label, spec, operation, effort)) for label, spec in found.items()]
        labels = [label for label in found if family(label) in (*TECHNIQUES, "RS zfec")] + list(other_libraries(k, m, operation))
        return ours + [Point(f"library, {label}", lambda label=label: library(label, k, m, operation, effort)) for label in labels]

    return points


def by_width(records: Records, identity: str) -> Iterable[Cell]:
    """The talk's graphs: a curve a family over w, normalised and raw."""
    for cell in records[identity]:
        name, _, w = cell.row.partition(", w = ")
        if w and cell.column != PACKET:
            yield cell._replace(row=w, column=f"{cell.column}: {name}")
            yield Cell(w, f"{cell.column}, GB/s: {name}", cell.speed, doubt=cell.doubt, command=cell.command)


# The talk's page on optimised Cauchy matrices: ones of a row of Q's bit matrix on average, for k = 14.
PRINTED_ONES = {("7", "ones a row"): "22.3", ("8", "ones a row"): "28.5", ("9", "ones a row"): "20.1"}


def ones(_: Effort) -> Iterable[Cell]:
    """Ones of the good Cauchy matrix by w, [14,2]."""
    for w in range(4, 13):
        words = ("schedule", f"cauchy-good:k=14,m=2,w={w}")
        yield Cell(str(w), "ones a row", (schedule(*words[1:])["ones"] - 14 * w) / w, command=shown(words))


def xors(k: int, m: int) -> Iterable[Cell]:
    """XORs of every code in packets, as the talk ran it. A packet is 1/w of a shard."""
    for label, spec in codes(k, m, Effort()).items():
        if not is_in_words(spec):
            words = ("schedule", spec, "--pass", "smart")
            yield Cell(label, f"[{k},{m}]", schedule(*words[1:])["xors"] / int(label.rpartition(" ")[2]), command=shown(words))


def packet_curve(effort: Effort) -> Iterable[Cell]:
    """The talk's packet sizes: RDP [6,2] with w = 6."""
    size = ("--set", 8 << 20 if effort.quick else 64 << 20, "--reps", pairs.FEWEST)
    for kernel in available("packetwise64", "packetwise128", "packetwise256"):
        yield from sweep(kernel, "rdp:k=6", "--pass", "direct", "--kernel", kernel, *size)


def packet_search(effort: Effort) -> Iterable[Cell]:
    """What `tune --packet` finds, run as the talk did and compiled, in and out of the cache."""
    codes_tried = ["rdp:k=6"] if effort.quick else ["rdp:k=6", "cauchy-good:k=12,m=4", "liberation:k=6"]
    for way, more in ((TALK, PLAIN), (COMPILED, ())):
        words = ("tune", "--packet", *more, *codes_tried)
        for line in paritas(*words):
            row = line["about"].removesuffix(", packetwise64")
            yield Cell(row, f"{way}: fastest packet", float(line["chosen"]), command=shown(words))
            for choice in line["choices"]:
                yield Cell(row, f"{way}: {choice['name']} bytes, GB/s", choice["gbps"], command=shown(words))


def best(cells: list[Cell], way: str, *families: str, w: int | None = None) -> Cell | None:
    """Returns the fastest cell of some families, at any w that was measured or at one."""
    of_way = [cell for cell in cells if cell.column == way and family(cell.row) in families]
    chosen = [cell for cell in of_way if w is None or cell.row.endswith(f", w = {w}")]
    return max(chosen, key=lambda cell: cell.value, default=None)


OVERLAP = "undecided: the interval holds 1"


def claim(name: str, way: str, subject: Cell | None, base: Cell | None) -> Iterable[Cell]:
    """Compares two cells; the interval is the widest that theirs allow. Nothing if a side was not measured."""
    if subject is None or base is None:
        return
    low, high = subject.low / base.high, subject.high / base.low
    doubt = OVERLAP if low <= 1 <= high else subject.doubt or base.doubt
    yield Cell(name, way, subject.value / base.value, low, high, doubt=doubt, command=f"{subject.row} / {base.row}")


SPECIAL = ("RDP", "EVENODD", "Liberation", "Blaum-Roth", "Liber8tion")


def observations(records: Records) -> Iterable[Cell]:
    """The talk's observations as ratios: each holds where it is above 1."""
    six, six_back, twelve = (records[f"plank-{name}"] for name in ("encode-6-2", "decode-6-2", "encode-12-4"))
    smallest = (12 + 4 - 1).bit_length()
    for way in (TALK, COMPILED, LIBRARY):
        of = lambda cells, *families, w=None: best(cells, way, *families, w=w)
        claims = {
            "special-purpose codes over Cauchy ones, [6,2]": (of(six, *SPECIAL), of(six, "CRS good")),
            "RDP over the next best special-purpose code, [6,2]": (of(six, "RDP"), of(six, *SPECIAL[1:])),
            "the good matrix over the original, [6,2], w = 8": (of(six, "CRS good", w=8), of(six, "CRS original", w=8)),
            "the good matrix over the original, [12,4], w = 8": (of(twelve, "CRS good", w=8), of(twelve, "CRS original", w=8)),
            "Anvin's RAID-6 over plain Reed-Solomon, encoding [6,2], w = 8": (of(six, "RS RAID-6", w=8), of(six, "RS", w=8)),
            "Anvin's RAID-6 over plain Reed-Solomon, decoding [6,2], w = 8": (of(six_back, "RS RAID-6", w=8), of(six_back, "RS", w=8)),
            "zfec over plain Reed-Solomon, [6,2]": (of(six, "RS zfec"), of(six, "RS")),
            "zfec over plain Reed-Solomon, [12,4]": (of(twelve, "RS zfec"), of(twelve, "RS")),
            "Cauchy over Reed-Solomon, [12,4]": (of(twelve, "CRS good"), of(twelve, "RS", "RS zfec")),
            "the smallest w over w = 8, Cauchy, [12,4]": (of(twelve, "CRS good", w=smallest), of(twelve, "CRS good", w=8)),
        }  # fmt: skip
        for name, sides in claims.items():
            yield from claim(name, way, *sides)


ABOUT = (
    "As the talk ran it: two-operand XORs of 64 bits over whole packets, schedules by Hafner's method (smart), with the packet "
    "that encodes fastest (lab: paritas tune --packet; decoding has the same, because packets are stored). Reed-Solomon in words: "
    "64-bit words doubled by Anvin's method, other factors looked up byte by byte. Luby's and Cleversafe's libraries are not to "
    "be had; their code is the original Cauchy matrix, CRS original. Compiled: the kernel that serves files (word codes: the best word "
    "kernel), packets of 64 bytes. Library of today: Jerasure 2, ISA-L and liberasurecode of Debian, zfec of PyPI, reed-solomon-erasure "
    "of crates.io and klauspost/reedsolomon, with the vectors that they choose. Debian's Jerasure lacks RDP and EVENODD. "
    "The talk shows speeds normalised and does not say by what. Here the divisor is the speed of one XOR for each byte read, on the "
    "same machine: of 64 bits for the first column, of the widest vectors for the others. "
    "A quick run has the two smallest w of each family and 8, and 2 MiB of shards in all; a whole run every w up to 32, and 64 MiB (16 when it "
    "searches for packets)."
)
EXPERIMENTS = [
    Experiment("plank", "packets", "Packet sizes, RDP [6,2], w = 6", Kind.TIMED, "fraction of the roofline", (10, 300),
               points=lambda effort: [Point("all", lambda: packet_curve(effort))],
               plot=Plot("bytes of a packet", "fraction of the roofline"), about="XORs in the order of the matrix, of two operands, over whole packets, with vectors of three widths. "
               "64 MiB of shards in all (quick: 8). The talk does not say what its speeds are divided by: here, by one XOR for each byte read, "
               "with the widest vectors."),
    Experiment("plank", "packet-search", "The search for the best packet", Kind.TIMED, "bytes, GB/s", (15, 120),
               points=lambda effort: [Point("all", lambda: packet_search(effort))], about="For compiled kernels, by tune."),
    Experiment("plank", "ones", "Ones of the good Cauchy matrix, [14,2]", Kind.EXACT, "ones of a row of Q, on average", (1, 1),
               points=lambda effort: [Point("all", lambda: ones(effort))], printed=lambda: PRINTED_ONES,
               about="The talk shows that some w have far fewer ones than others."),
    Experiment("plank", "xors", "XORs of the codes in packets", Kind.EXACT, "XORs of a whole shard", (5, 5),
               points=lambda _: [Point(f"[{k},{m}]", lambda k=k, m=m: xors(k, m)) for k, m in SHAPES],
               about="Schedules by Hafner's method (smart), as the talk ran them: XORs of packets, divided by the packets of a shard. "
               "A quick run counts all codes as well."),
    *(
        Experiment("plank", f"{operation}-{k}-{m}", f"{operation.capitalize()} [{k},{m}], all codes", Kind.TIMED,
                   "fraction of the roofline", (15, 1080) if operation == "encode" else (10, 500), points=all_codes(k, m, operation), about=ABOUT)
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
               (0, 0), sources=("plank-encode-6-2", "plank-decode-6-2", "plank-encode-12-4"), derive=observations,
               about="Each ratio is of the fastest code of either side, over the w that were measured. Its interval is the widest that "
               "the intervals of both sides allow."),
]  # fmt: skip
