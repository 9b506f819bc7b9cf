#!/usr/bin/env python3
"""Runs Paritas on the file systems that people have, and in situations that they have met.

    lab/filesystems/run.py [--paritas COMMAND] [NAME]...
    lab/filesystems/run.py [--paritas COMMAND] --write
    lab/filesystems/run.py [--paritas COMMAND] --as-json NAME

Every file system of mounts.py is mounted, and walk.py is gone through on it. Then the situations of situations.py are made.
With names, only those file systems and situations are tried whose names have one of them in it. Without, the table of
docs/filesystems.md is compared with what was found; --write puts it there. A file system whose driver this kernel lacks is tried
in a virtual machine (machine.py), which calls this program with --as-json. One that cannot be tried there either is named.

Needs root, mfusepy in this Python, and the Debian packages that scripts/test-services installs. Exit code 1 if anything is not as
it should be.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import traceback
from typing import NamedTuple

import abilities
import machine
import mounts
import situations
import walk

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import common  # noqa: E402
import tools  # noqa: E402

PAGE = tools.ROOT / "docs" / "filesystems.md"
TABLE = re.compile(r"(?<=<!-- table: file systems -->\n).*?(?=<!-- end -->)", re.DOTALL)
NOT_TRIED = "not tried: "
CELLS = ("protect", "repair --to", "shards", "volume")
WORKERS = os.cpu_count() or 1


class Outcome(NamedTuple):
    """What was found on one file system, or in one situation."""

    name: str
    # Why each cell failed that did.
    failures: dict[str, str]
    # Why it could not be tried.
    impossible: str | None = None
    able: abilities.Abilities | None = None
    warnings: tuple[str, ...] = ()


def walk_anywhere(place: mounts.Place, program: pathlib.Path) -> Outcome:
    """Goes through all cells on a file system, here or in a machine whose kernel has its driver."""
    try:
        try:
            return walk_on(place, program)
        except mounts.NoDriver:
            return walk_in_machine(place, program)
    except mounts.Impossible as why:
        return Outcome(place.name, {}, str(why))


def walk_in_machine(place: mounts.Place, program: pathlib.Path) -> Outcome:
    said = machine.run(sys.executable, "-B", pathlib.Path(__file__).resolve(), "--paritas", program, "--as-json", place.name)
    try:
        found = json.loads(said.splitlines()[-1])
    except (IndexError, ValueError):
        raise mounts.Impossible(f"the machine says: {said.strip() or 'nothing'}") from None
    able = abilities.Abilities(**found.pop("able"))
    return Outcome(**found, able=able._replace(refused_names=tuple(able.refused_names)))


def walk_on(place: mounts.Place, program: pathlib.Path) -> Outcome:
    """Mounts a file system and goes through all cells."""
    with scratch_folder() as scratch, contextlib.ExitStack() as stack:
        folder = stack.enter_context(place.mount(mounts.folder(scratch, "disk")))
        kind = walk.ReadOnlyWalk if place.is_read_only else walk.Walk
        walking = kind(program, folder, mounts.folder(scratch, "elsewhere"))
        found = {cell: failure(act) for cell, act in walking.cells().items()}
        failures = {cell: wrong for cell, wrong in found.items() if wrong is not None}
        return Outcome(place.name, failures, None, walking.able, tuple(walking.paritas.warnings))


def situation(name: str, program: pathlib.Path) -> Outcome:
    """Makes one situation."""
    with scratch_folder() as scratch:
        try:
            why = failure(lambda: situations.ALL[name](walk.Paritas(program), scratch))
        except mounts.Impossible as impossible:
            return Outcome(name, {}, str(impossible))
        return Outcome(name, {} if why is None else {"situation": why})


@contextlib.contextmanager
def scratch_folder():
    """Makes a folder that everybody may enter; it is removed if nothing is mounted in it any more."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="paritas-filesystems-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        if str(folder) not in pathlib.Path("/proc/mounts").read_text():
            shutil.rmtree(folder, ignore_errors=True)


def failure(act) -> str | None:
    """Returns why something failed, if it did."""
    try:
        act()
    except walk.Wrong as wrong:
        line = next(frame.lineno for frame in reversed(traceback.extract_tb(wrong.__traceback__)) if frame.name not in ("check", "__call__"))
        return f"line {line}: {wrong}"
    except mounts.Impossible:
        raise
    except Exception:
        return traceback.format_exc()
    return None


def table(outcomes: list[Outcome]) -> str:
    """Returns the table of docs/filesystems.md."""
    # What is said on a file system that keeps everything is about something else.
    usual = next(set(outcome.warnings) for outcome in outcomes if outcome.able)
    told = sorted({warning for outcome in outcomes for warning in outcome.warnings} - usual)
    head = ["", "modes", "owner", "times", "links", "ACLs", "`user.*`", "holes", "upper case is", "refused in names", "new names only", "free space", *CELLS, "says"]
    rows = [head, ["---"] * len(head)]
    for outcome in outcomes:
        if outcome.able is None:
            rows.append([outcome.name, *[""] * (len(head) - 2), NOT_TRIED + str(outcome.impossible).partition("\n")[0]])
            continue
        cells = ["fails" if cell in outcome.failures else "whole" for cell in CELLS]
        notes = ", ".join(str(number) for number, warning in enumerate(told, 1) if warning in outcome.warnings)
        rows.append([outcome.name, *shown(outcome.able), *cells, notes])
    notes = "".join(f"{number}. {warning}\n" for number, warning in enumerate(told, 1))
    return "".join("| " + " | ".join(row) + " |\n" for row in rows) + "\n" + notes


def shown(able: abilities.Abilities) -> list[str]:
    yes = {True: "kept", False: "–"}
    links = " and ".join(kind for kind, has in (("hard", able.hard_links), ("symbolic", able.symbolic_links)) if has)
    return [
        yes[able.modes],
        yes[able.owner],
        abilities.STEPS.get(able.step, "–"),
        links or "–",
        yes[able.acls],
        yes[able.attributes],
        yes[able.sparse],
        "another name" if able.case else "the same name",
        ", ".join(name if len(name) > 1 else f"`{name}`" for name in able.refused_names) or "nothing",
        "yes" if able.no_replace else "–",
        "known" if able.space else "–",
    ]


def report(outcome: Outcome) -> None:
    if outcome.impossible is not None:
        print(f"{outcome.name}: not tried: {outcome.impossible}")
    elif not outcome.failures:
        print(f"{outcome.name}: right")
    for cell, why in outcome.failures.items():
        print(f"{outcome.name}: {cell} FAILED: {why}")
    sys.stdout.flush()


def compare_page(found: str, write: bool) -> bool:
    """Whether the page has this table, without regard to rows that could not be tried on one of both machines. With `write`
    it is put there."""
    page = PAGE.read_text()
    if write:
        PAGE.write_text(TABLE.sub(lambda _: found, page))
        return True
    listed = TABLE.search(page)
    there, here = (rows(text) for text in (listed.group() if listed else "", found))
    tried = {name for name in there.keys() | here.keys() if not any(NOT_TRIED in table.get(name, "") for table in (there, here))}
    if all(there.get(name) == here.get(name) for name in tried):
        return True
    print(f"the table of {PAGE.relative_to(tools.ROOT)} is another one; lab/filesystems/run.py --write renews it:\n{found}")
    return False


def rows(table: str) -> dict[str, str]:
    """Returns the lines of a table, and of the notes beneath it, by what they begin with."""
    return {line.strip("| ").partition(" |")[0]: line for line in table.splitlines() if line}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--paritas", help="the command [default: an optimised build of this tree]")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--as-json", metavar="NAME", help="go through one file system, and print what was found")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("lab/filesystems/run.py needs root, to mount file systems")
    program = tools.paritas(options.paritas)
    if options.as_json is not None:
        place = next(place for place in mounts.PLACES if place.name == options.as_json)
        found = walk_on(place, program)
        print(json.dumps(found._asdict() | {"able": found.able and found.able._asdict()}))
        return
    for part in options.names:
        if not any(part in name for name in [*(place.name for place in mounts.PLACES), *situations.ALL]):
            sys.exit(f"no file system and no situation has {part} in its name")
    wanted = lambda name: not options.names or any(part in name for part in options.names)
    common.end_when_told()
    outcomes, pool = [], concurrent.futures.ThreadPoolExecutor(WORKERS)
    try:
        walks = [pool.submit(walk_anywhere, place, program) for place in mounts.PLACES if wanted(place.name)]
        made = [pool.submit(situation, name, program) for name in situations.ALL if wanted(name)]
        for future in [*walks, *made]:
            outcomes.append(future.result())
            report(outcomes[-1])
    finally:
        # Those that run take their mounts away at their end. No other one begins.
        pool.shutdown(cancel_futures=True)
    right = options.names or compare_page(table(outcomes[: len(walks)]), options.write)
    failed = sum(len(outcome.failures) for outcome in outcomes)
    skipped = sum(outcome.impossible is not None for outcome in outcomes)
    passed = sum(len(CELLS) for outcome in outcomes if outcome.able) + sum(outcome.able is None for outcome in outcomes) - skipped - failed
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(0 if failed == 0 and right else 1)


if __name__ == "__main__":
    main()
