"""The pages of all records: HTML, a file for each document."""

import html
import io
import pathlib
import re
from typing import Iterable

from records import is_plain

from . import catalogue
from .experiment import Cell, Experiment, Kind, agrees
from .store import Record, Store

NAMES = {
    "luo": "Luo, Xu, Plank: An Efficient XOR-Scheduling Algorithm for Erasure Codes Encoding (2009)",
    "plank": "Plank et al.: A Performance Evaluation of Open Source Erasure Codes for Storage Applications (FAST 2009)",
    "zhou": "Zhou: Erasure Coding Optimization for Data Storage (2020)",
    "jugan": "Jugan: Multi-threaded erasure coding in Jerasure",
    "uyeda": "Uyeda, Xia, Chien: Evaluation of a High Performance Erasure Code Implementation (2004)",
}
TITLE = "The papers, measured again"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c22; margin: 0 auto; max-width: 72rem; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 2px solid #ccd; } h3 { margin-top: 2rem; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid #ccd; padding: 0.2rem 0.5rem; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } thead { background: #eef; }
.scroll { overflow-x: auto; } .theirs { color: #667; } .ratio { color: #225; } .same { background: #e3f4e3; } .other { background: #fdeede; }
.doubt { text-decoration: underline dotted #b40; } .about, .origin { color: #445; font-size: 0.9rem; max-width: 60rem; }
nav { font-size: 0.9rem; } figure { margin: 1rem 0; overflow-x: auto; } figure svg { max-width: 100%; min-width: 640px; height: auto; } code, p, li { overflow-wrap: anywhere; }
@media (max-width: 500px) { body { font-size: 15px; padding: 0 0.6rem; } }
"""


def write(folder: pathlib.Path, out: pathlib.Path) -> list[str]:
    """Writes a page for each document, and `index.html` before them, into the folder `out`. Returns the experiments of
    which there is no record."""
    store = Store(folder)
    records = [(experiment, store.read(experiment)) for experiment in catalogue.EXPERIMENTS]
    out.mkdir(parents=True, exist_ok=True)
    save(out / "index.html", TITLE, f"<h1>{TITLE}</h1>{documents(records)}")
    for paper, name in NAMES.items():
        save(out / f"{paper}.html", name, "".join(document(paper, [pair for pair in records if pair[0].paper == paper])))
    return [experiment.identity for experiment, record in records if record is None]


def save(path: pathlib.Path, title: str, body: str) -> None:
    path.write_text(
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="data:,"><style>{STYLE}</style></head><body>{body}</body></html>\n',
        encoding="utf-8",
    )


def documents(records: list[tuple[Experiment, Record | None]]) -> str:
    """Returns links to the documents' pages, and how many figures each has."""
    lines = []
    for paper, name in NAMES.items():
        there = [record for experiment, record in records if experiment.paper == paper and record]
        figures, places = sum(len(record.cells) for record in there), len(there)
        count = f"{figures} figure{plural(figures)} in {places} table{plural(places)} or plot{plural(places)}"
        lines.append(f'<li><a href="{paper}.html">{html.escape(name)}</a>: {count}</li>')
    return f"<ul>{''.join(lines)}</ul>"


def plural(count: int) -> str:
    return "" if count == 1 else "s"


def document(paper: str, records: list[tuple[Experiment, Record | None]]) -> Iterable[str]:
    yield f'<nav><a href="index.html">{TITLE}</a></nav><h1>{html.escape(NAMES[paper])}</h1>'
    yield contents(experiment for experiment, _ in records)
    yield summary([record for _, record in records if record])
    for experiment, record in records:
        yield section(experiment, record)


def contents(experiments: Iterable[Experiment]) -> str:
    """Returns links to the sections of a document."""
    links = (f'<a href="#{experiment.identity}">{html.escape(label(experiment.name))}</a>' for experiment in experiments)
    return f"<nav>{' · '.join(links)}</nav>"


def summary(there: list[Record]) -> str:
    """Returns where the figures come from, how to read them, and what they must be doubted for."""
    processors = sorted({record.origin.processor for record in there})
    commits = sorted({record.origin.commit for record in there})
    efforts = sorted({record.origin.effort for record in there})
    cells = [cell for record in there for cell in record.cells]
    noisy = sum(bool(cell.doubt) for cell in cells)
    doubts = [
        f"{noisy} of {len(cells)} figures are doubtful (underlined in tables, circled in plots). Point at one to see why: its interval is wider than a "
        "tenth of it, it is a single sample or not taken in pairs, or some of the runs that it averages did not decode.",
        "Frequency is not fixed, and the machine may have had other work. So speeds are given as ratios to something that was "
        "measured in the same milliseconds; GB/s only hold for this machine on this day.",
        "Machines and compilers of the documents are ten to twenty years older. Their speeds beside ours say how machines "
        "changed; only ratios within a document say something about methods.",
        "Figures of the documents that are plots are missing in the text that we have, so our plots stand alone.",
    ]
    if "quick" in efforts:
        doubts.append("Some experiments ran with --quick: fewer cells, smaller memory, fewer pairs.")
    if len(commits) > 1 or not all(map(is_plain, commits)):
        doubts.append(f"Not all were measured by one clean commit: {', '.join(commits)}.")
    items = "".join(f"<li>{html.escape(doubt)}</li>" for doubt in doubts)
    return (
        f"<p>Processor: {html.escape(', '.join(processors) or 'none yet')}. Commit: {html.escape(', '.join(commits))}. "
        f"Effort: {', '.join(efforts)}.</p><p>A cell is <b>ours</b> <span class='theirs'>theirs</span>. Where both "
        "count the same, their ratio stands first, or = if they agree to the last printed digit; green cells agree, and yellow "
        "ones differ. Speeds are ratios to what the table's caption names; theirs stand in the unit of the document. Point at a cell to see "
        "its interval and the command that printed it; <code>--seed 1..3</code> stands for a run with each of these seeds, of which the best counts, and "
        "a file in the command is one that the experiment made.</p>"
        f"<h2>Doubts</h2><ol>{items}</ol>"
    )


def section(experiment: Experiment, record: Record | None) -> str:
    drawn = " data-plot" if experiment.plot and record else ""
    head = f'<section id="{experiment.identity}"{drawn}><h3>{label(experiment.name)}: {html.escape(experiment.title)}</h3>'
    about = "".join(f'<p class="about">{html.escape(text)}</p>' for text in catalogue.assumptions(experiment))
    if record is None:
        return f"{head}{about}<p>Not recorded. <code>{command(experiment)}</code></p></section>"
    body = plot(experiment, record.cells) if experiment.plot else table(experiment, record.cells)
    return f"{head}{about}{verdict(experiment, record.cells)}{body}{footer(experiment, record)}</section>"


def label(name: str) -> str:
    kind, _, number = name.partition("-")
    return f"{kind.capitalize()} {number}".strip()


def command(experiment: Experiment) -> str:
    return f"lab/run --paper {experiment.paper} --table {experiment.name}"


def footer(experiment: Experiment, record: Record) -> str:
    """Returns where the cells come from: the record, the experiments that they are derived from, and the commands."""
    commands = list(dict.fromkeys(cell.command for cell in record.cells if cell.command))
    shown = "".join(f"<li><code>{html.escape(text)}</code></li>" for text in commands)
    details = f"<details><summary>Commands ({len(commands)})</summary><ul>{shown}</ul></details>" if commands else ""
    links = ", ".join(f'<a href="#{source}">{source}</a>' for source in experiment.sources)
    derived = f"; derived from {links}" if links else ""
    where = f"{record.origin.processor}, {record.origin.date}, commit {record.origin.commit}, {record.origin.effort} run"
    raw = f"raw: {experiment.identity}.csv"
    return f'<p class="origin"><code>{command(experiment)}</code>; {html.escape(where)}; {raw}{derived}</p>{details}'


def verdict(experiment: Experiment, cells: list[Cell]) -> str:
    """Says how far ours are from the printed figures, and for counts how many are the same."""
    theirs = experiment.theirs()
    both = [cell for cell in cells if cell.place in theirs]
    if experiment.kind is Kind.TIMED or not experiment.comparable or not both:
        return ""
    same = sum(agrees(cell.value, theirs[cell.place]) for cell in both)
    ratios = [cell.value / float(theirs[cell.place]) for cell in both if float(theirs[cell.place])]
    mean = sum(abs(ratio - 1) for ratio in ratios) / len(ratios)
    exact = f"{same} of {len(both)} cells agree to the last printed digit; " if experiment.kind is Kind.EXACT else ""
    return (
        f"<p>{exact}{len(both)} cells: ours are {min(ratios):.3f} to {max(ratios):.3f} "
        f"times theirs, {100 * mean:.1f} % apart on average.</p>"
    )


def table(experiment: Experiment, cells: list[Cell]) -> str:
    theirs = experiment.theirs()
    places = [*(cell.place for cell in cells), *theirs]
    rows, columns = (list(dict.fromkeys(place[i] for place in places)) for i in (0, 1))
    ours = {cell.place: cell for cell in cells}
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    lines = []
    for row in rows:
        fields = "".join(field(experiment, ours.get((row, column)), theirs.get((row, column))) for column in columns)
        lines.append(f"<tr><td>{html.escape(row)}</td>{fields}</tr>")
    caption = f"<p class='about'>{html.escape(experiment.value)}</p>"
    return f'{caption}<div class="scroll"><table><thead><tr><th></th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def field(experiment: Experiment, ours: Cell | None, theirs: str | None) -> str:
    """Returns a field of a table: our figure, with its doubt, interval and command as a title, and theirs."""
    their = f' <span class="theirs">{html.escape(theirs)}</span>' if theirs else ""
    if ours is None:
        return f"<td>{their}</td>"
    kind = ""
    if theirs and experiment.comparable and experiment.kind is not Kind.TIMED:
        kind = "same" if agrees(ours.value, theirs) else "other"
    marked = f'<b class="doubt">{number(ours.value)}</b>' if ours.doubt else f"<b>{number(ours.value)}</b>"
    return f'<td class="{kind}" title="{html.escape(title(ours))}">{ratio(experiment, ours, theirs)}{marked}{their}</td>'


def ratio(experiment: Experiment, ours: Cell, theirs: str | None) -> str:
    """Returns ours over theirs where both count the same; "=" if they agree to the last digit."""
    if not theirs or not experiment.comparable or not float(theirs):
        return ""
    if experiment.kind is not Kind.TIMED and agrees(ours.value, theirs):
        return '<span class="ratio">=</span> '
    return f'<span class="ratio">{ours.value / float(theirs):.3f}</span> '


def title(cell: Cell) -> str:
    parts = [cell.doubt]
    if cell.low is not None and cell.high is not None:
        parts.append(f"{number(cell.low)} to {number(cell.high)}")
    if cell.speed is not None:
        parts.append(f"{cell.speed:.2f} GB/s")
    facts = "; ".join(filter(None, parts))
    return "\n".join(filter(None, [facts, cell.command]))


def number(value: float) -> str:
    """Returns a figure with about three digits; whole numbers as they are."""
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:#.3g}" if abs(value) < 99.95 else f"{value:.0f}"


def plot(experiment: Experiment, cells: list[Cell]) -> str:
    """Returns plots as SVG: one for each group of curves (what stands before a colon), with intervals as bands."""
    groups: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        group, colon, curve = cell.column.rpartition(": ")
        groups.setdefault(group, {}).setdefault(curve if colon else cell.column, []).append(cell)
    return "".join(f"<figure>{drawn(experiment, group, curves)}</figure>" for group, curves in groups.items())


def drawn(experiment: Experiment, group: str, curves: dict[str, list[Cell]]) -> str:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": experiment.identity, "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.2))
    for name, cells in curves.items():
        x, y = places(cells), [cell.value for cell in cells]
        (line,) = axes.plot(x, y, marker=".", label=name)
        if all(cell.low is not None for cell in cells):
            axes.fill_between(x, [c.low for c in cells], [c.high for c in cells], color=line.get_color(), alpha=0.15)
    if marked := [place for cells in curves.values() for place in doubtful(cells)]:
        axes.plot(*zip(*marked), linestyle="none", marker="o", markersize=9, markerfacecolor="none", markeredgecolor="#b40", label="doubtful")
    axes.set(xlabel=experiment.plot.x, ylabel=experiment.plot.y, ylim=(0, None), title=group)
    if experiment.plot.log_x:
        axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    pyplot.close(figure)
    name = f"{label(experiment.name)} {group}".strip()
    return inline(out.getvalue(), f"{experiment.identity}-{group}", name)


def places(cells: list[Cell]) -> list[float] | list[str]:
    """Returns the places on the x axis: numbers, or labels if a row is none."""
    try:
        return [float(cell.row) for cell in cells]
    except ValueError:
        return [cell.row for cell in cells]


def doubtful(cells: list[Cell]) -> list[tuple[float | str, float]]:
    """Returns the points of a curve that are circled, because their figures are doubtful."""
    return [(x, cell.value) for x, cell in zip(places(cells), cells) if cell.doubt]


def inline(svg: str, prefix: str, name: str) -> str:
    """Returns an SVG for the middle of a page: without its head, with names of its own, and with a name for readers."""
    prefix = re.sub(r"\W+", "-", prefix)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(name)}"', 1)
