#!/usr/bin/env python3
"""Prints the cases of vectors/codes.json and vectors/words.json for vectors.c, a case a line:

    SPEC PACKET BYTES DATA_ROWS ROWS TAIL LOST;LOST;… TOO_MANY;TOO_MANY;… PARITY,PARITY,…

DATA_ROWS is 0 if shards hold either data or parity, and TAIL the bytes of a packet of a shorter strip at the end. LOST and
TOO_MANY are numbers of nodes with commas between them. A list without entries is a dash, and so is the parity if the
vectors have only its digests. Cases whose matrix is not the default one of their spec are left out.
"""

import json
import pathlib

VECTORS = pathlib.Path(__file__).resolve().parents[3] / "vectors"


def lists(lists):
    return ";".join(",".join(map(str, nodes)) for nodes in lists) or "-"


def line(case, packet, size, tail):
    rows = case.get("rows", 1)
    parity = ",".join(case.get("parity", [])) or "-"
    fields = [case["spec"], packet, size, case.get("data_rows", 0), rows, tail]
    return " ".join(map(str, [*fields, lists(case["lost"]), lists(case["lost_too_many"]), parity]))


def main():
    for case in json.loads((VECTORS / "codes.json").read_text())["cases"]:
        tail = case.get("tail", 0)
        size = case["rows"] * (case["stripes"] * case["packet"] + tail)
        if case["default_pin"]:
            print(line(case, case["packet"], size, tail))
    for case in json.loads((VECTORS / "words.json").read_text())["cases"]:
        print(line(case, 0, case["words"] * case["w"] // 8, 0))


if __name__ == "__main__":
    main()
