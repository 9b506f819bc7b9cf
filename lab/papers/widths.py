"""Reads the machine code of the lab's kernels: how wide their XORs are.

A compiler may widen a loop over 64-bit words, or join XORs. Then a kernel would not be what its name says, and what
is measured with it not what the papers did.
"""

import pathlib
import platform
import re
import shutil
import subprocess
from collections import Counter

# The function of each width, on x86-64.
WIDTHS = (64, 128, 256, 512)
VECTOR_XOR = re.compile(r"\sv?p?xor(?:ps|pd|d|q)?\s+(?P<operands>.*%(?P<kind>[xyz])mm.*)$")
WORD_XOR = re.compile(r"\sxor\s+(?:%r\w+,.*\(|.*\(.*\),%r\w+)")
JOINED = re.compile(r"\svpternlog")


def can_read() -> bool:
    return platform.machine() == "x86_64" and shutil.which("objdump") is not None


def xors(binary: pathlib.Path, width: int) -> Counter:
    """Counts the XORs of a kernel's function by bits: those of vectors, and those of 64 bits with memory (which also finish
    packets that are no multiple of a vector). XORs of three inputs count as `joined`."""
    counts: Counter = Counter()
    for line in instructions(binary, f"paritas::run::tiled::packets::bits{width}"):
        if found := VECTOR_XOR.search(line):
            if len(set(re.findall(r"%\w+", found["operands"]))) > 1:  # With itself, it is a zero.
                counts[{"x": 128, "y": 256, "z": 512}[found["kind"]]] += 1
        elif WORD_XOR.search(line):
            counts[64] += 1
        elif JOINED.search(line):
            counts["joined"] += 1
    return counts


def products(binary: pathlib.Path) -> tuple[int, int]:
    """Returns how many instructions of the function that multiplies words for the kernel of 64 bits have a register of 64
    bits as an operand, and how many one of a vector."""
    lines = instructions(binary, "paritas::run::tiled::products::Product::run")
    return tuple(sum(bool(re.search(register, line)) for line in lines) for register in (r"%r\w+", "%[xyz]mm"))


def instructions(binary: pathlib.Path, symbol: str) -> list[str]:
    """Returns the lines of a function."""
    command = ["objdump", "--disassemble=" + symbol, "--demangle", "--no-show-raw-insn", binary]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
