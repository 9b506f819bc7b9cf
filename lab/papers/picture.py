"""README's picture: ours beside each peer, from the records that README's tables are made of."""

import io
import pathlib
import re
from typing import NamedTuple

import readme_tables
import records

PICTURE = records.ROOT / "docs" / "peers.svg"
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


def drawn() -> str:
    """Returns the picture as SVG."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(PANELS), figsize=(9, 3.4), sharey=True, layout="constrained")
    for axes, operation in zip(panels, PANELS):
        record = records.load(f"peers-{operation}-cache-staggered-{readme_tables.RUN}")
        bars(axes, record)
        axes.set_title(PANELS[operation], fontsize=10)
    panels[0].set_ylabel("times as fast as the peer")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.suptitle("Paritas beside other libraries: one core, in cache, the same instruction sets", fontsize=11)
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None}, facecolor="white")
    pyplot.close(figure)
    return re.sub(r"<metadata>.*?</metadata>", "", out.getvalue(), flags=re.S)


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


def write(path: pathlib.Path = PICTURE) -> None:
    path.write_text(drawn(), encoding="utf-8")
