#!/usr/bin/env python3
"""Prints digests of the fragments that pyeclib makes, rebuilds and decodes, with all its backends on ISA-L and Jerasure.

scripts/test-dropins runs it twice, with the real libraries and with those of Paritas on the library path, and compares.
With the argument `paritas`, it fails unless both of these were loaded and called.
"""

import ctypes
import hashlib
import itertools
import random
import sys

from pyeclib.ec_iface import ECDriver

BACKENDS = ["isa_l_rs_vand", "isa_l_rs_vand_inv", "isa_l_rs_cauchy", "jerasure_rs_vand", "jerasure_rs_cauchy"]
SHAPES = [(10, 4), (4, 2), (6, 3), (3, 1)]
SIZES = [1, 100, 4096, 70_000, 1 << 20]


def digest(fragments):
    return hashlib.sha256(b"".join(fragments)).hexdigest()[:16]


def one(backend, k, m, size, chance):
    driver = ECDriver(k=k, m=m, ec_type=backend)
    content = chance.randbytes(size)
    fragments = driver.encode(content)
    print(backend, k, m, size, digest(fragments))
    lost = list(itertools.combinations(range(k + m), m))
    for gone in chance.sample(lost, min(4, len(lost))):
        left = [fragment for i, fragment in enumerate(fragments) if i not in gone]
        assert driver.decode(left) == content, (backend, k, m, size, gone)
        assert driver.reconstruct(left, list(gone)) == [fragments[i] for i in gone], (backend, k, m, size, gone)


def loaded(name):
    """Returns the library of this process whose file's name begins with `name`."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if f"/{name}" in line}
    return [ctypes.CDLL(path) for path in paths]


def main():
    chance = random.Random(5)
    for backend, (k, m), size in itertools.product(BACKENDS, SHAPES, SIZES):
        one(backend, k, m, size, chance)
    if sys.argv[1:] == ["paritas"]:
        (isal,) = loaded("libisal")
        (jerasure,) = loaded("libJerasure")
        counts = isal.paritas_isal_programs(), jerasure.paritas_jerasure_programs()
        assert min(counts) > 0, counts
        print(f"pyeclib: {counts[0]} programs for tables of ISA-L, {counts[1]} for matrices of Jerasure", file=sys.stderr)


if __name__ == "__main__":
    main()
