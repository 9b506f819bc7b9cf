"""The pictures of README and docs/speed.md, from the records that their tables are made of."""

import io
import re
import statistics
from typing import Callable, NamedTuple

import readme_tables
import records

FOLDER = records.ROOT / "docs"
PANELS = {"encode": "encode", "decode": "decode, m data shards lost"}


class Peer(NamedTuple):
    """A bar: its label and color, and the pair of ours and the peer in the records."""

    label: str
    color: str
    names: tuple[str, str]


PEERS = [
    Peer("ISA-L 2.31, AVX2", "#9ecae1", ("paritas:jit-avx2", "isal:avx2")),
    Peer("ISA-L 2.31, AVX-512 and GFNI", "#3182bd", ("paritas", "isal")),
    Peer("klauspost/reedsolomon 1.14, AVX2", "#fdae6b", ("paritas:jit-avx2", "klauspost:avx2")),
    Peer("klauspost/reedsolomon 1.14, AVX-512 and GFNI", "#e6550d", ("paritas", "klauspost")),
]


def draw(paint: Callable) -> str:
    """Returns a picture as SVG; `paint` paints it with pyplot, and returns the figure."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    from matplotlib import pyplot

    figure = paint(pyplot)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)
    return re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.S)


def peers(pyplot):
    """Ours beside each peer, for usual shapes."""
    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(9, 3.4), sharey=True, layout="constrained")
    for axes, operation in zip(panels, PANELS):
        record = records.load(f"peers-{operation}-cache-staggered-{readme_tables.RUN}")
        bars(axes, record)
        axes.set_title(PANELS[operation], fontsize=10)
    panels[0].set_ylabel("times as fast as the peer")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("Paritas beside other libraries: one core, in cache, the same instruction sets", fontsize=11)
    return figure


def bars(axes, record: records.Record) -> None:
    """Draws a bar for each shape and peer, with the interval of 95 %."""
    shapes = readme_tables.RATIO_SHAPES
    width = 0.8 / len(PEERS)
    for number, peer in enumerate(PEERS):
        ratios = [readme_tables.samples(record, shape, *peer.names).ratio() for shape in shapes]
        x = [place + (number - (len(PEERS) - 1) / 2) * width for place in range(len(shapes))]
        errors = [[r.median - r.low for r in ratios], [r.high - r.median for r in ratios]]
        axes.bar(x, [r.median for r in ratios], width, yerr=errors, color=peer.color, label=peer.label, error_kw={"lw": 0.8})
    axes.axhline(1, color="#444", lw=1)
    axes.set_xticks(range(len(shapes)), shapes)
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def growth(pyplot):
    """The time for a byte of data over the number of shards, of long codes."""
    record = records.load(f"peers-encode-1k-staggered-{readme_tables.GROWTH}")
    figure, axes = pyplot.subplots(figsize=(6, 3.4), layout="constrained")
    shapes = list(dict.fromkeys(row["shape"] for row in record.rows))
    counts = [sum(map(int, shape.split("+"))) for shape in shapes]
    sides = [("Paritas, LongCode", "#3182bd", "subject"), ("klauspost/reedsolomon 1.14, Leopard", "#e6550d", "base")]
    for label, color, side in sides:
        times = [statistics.median(nanoseconds_a_kib(row, side) for row in record.rows if row["shape"] == shape) for shape in shapes]
        axes.plot(counts, times, "o-", color=color, label=label, lw=1.2, ms=4)
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{count:,}" for count in counts], rotation=40)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("shards, half of them parity")
    axes.set_ylabel("ns for a KiB of data")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    axes.set_title("Encoding shards of 1 KiB: a line where time grows as log n", fontsize=10)
    return figure


def nanoseconds_a_kib(row: dict[str, str], side: str) -> float:
    """The time of an encoding for each KiB of its data."""
    data = int(row["shape"].split("+")[0]) * int(row[f"{side}_bytes"])
    return float(row[f"{side}_ns"]) / data * 1024


PICTURES = {"peers.svg": peers, "growth.svg": growth}


def write() -> None:
    for name, paint in PICTURES.items():
        (FOLDER / name).write_text(draw(paint), encoding="utf-8")
