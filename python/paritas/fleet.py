"""Work on many objects by many workers: scrub, repair, promote, re-encode, encode.

>>> from paritas import fleet
>>> report = fleet.run("photos.toml", "scrub", workers=8)           # doctest: +SKIP
>>> report = fleet.run("photos.toml", "repair", engine="ray")       # doctest: +SKIP

The workers are processes of this machine, or tasks of a Ray cluster, whose nodes must be able to open
the volume file. Processes import the script that starts them, so a script calls `run` under
``if __name__ == "__main__":``. Each task is the work on one object. A task may be done twice, because
a worker can die after it has done its work and before it has reported this; every kind of work can be
done twice without harm.

Every few seconds, the finished tasks are written to a journal in the volume. If a run was cut off (killed,
interrupted, ended by an error) and is started again within a day with the same arguments and the same
volume file, it continues where it stopped. Failed tasks are tried again. A source is stored again if its
file was changed or replaced after it was read. If an object was done and has been replaced or removed
since, the next run handles it. A run that reached its end is finished, even if some of its tasks failed:
its journal is removed, and the next run begins anew.

A run keeps its tasks and outcomes in memory. For a million objects with names of 20 characters, these
take about 500 MB, and the final journal has 83 MB (135 MB for sources). A write to the journal does not
rewrite all of it: a run that writes 1,000 times writes five times the size of the final journal in total.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from ctypes import c_bool
from dataclasses import asdict, astuple, dataclass, field
from functools import lru_cache
from itertools import count, islice
from multiprocessing import current_process, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.context import SpawnContext
from operator import index
from threading import Thread
from typing import Any, NamedTuple, TypeAlias
from uuid import uuid4

from . import ObjectInfo, RepairedObject, Volume
from .errors import LossError, NotFoundError, ParameterError, ParitasError

_Path: TypeAlias = str | os.PathLike[str]

#: Objects whose names begin with this are journals of runs.
JOURNALS = ".fleet/"

#: Number of workers that may die during a task before the task fails.
ATTEMPTS = 3

#: Seconds between two writings of the journal.
_WRITING = 5.0

#: Seconds after which a journal that has not been written to is out of date.
_STALE = 86_400.0

#: The error message if the worker processes end before they begin to work.
_NO_WORKERS = (
    'no worker process can start; a script must call `fleet.run` under `if __name__ == "__main__":`, '
    "because each worker imports the script"
)


@dataclass(frozen=True, slots=True)
class Task:
    """The work on one object."""

    kind: str
    name: str
    #: The file to encode, for the kind ``encode``.
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a task."""

    name: str
    #: ``unchanged``, ``changed``, ``damaged`` (a scrub found damage), ``gone``, or ``failed``.
    state: str
    detail: str = ""
    #: For the kind ``encode``, the identity of the file at the time when it was read.
    source: str = ""


@dataclass
class Report:
    """The result of a run."""

    kind: str
    #: The outcome of each object, by name.
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    #: Number of objects that an earlier run had done.
    resumed: int = 0
    #: Number of tasks that were begun again because their worker died.
    retried: int = 0

    def names(self, state: str) -> list[str]:
        """Returns the names of the objects with an outcome."""
        return sorted(name for name, outcome in self.outcomes.items() if outcome.state == state)

    @property
    def is_done(self) -> bool:
        """Whether no task failed."""
        return not self.names("failed")


def run(
    volume: _Path,
    kind: str,
    *,
    prefix: str = "",
    names: Iterable[str] | None = None,
    sources: Mapping[str, _Path] | Iterable[tuple[str, _Path]] | None = None,
    workers: int | None = None,
    engine: str = "processes",
    rate: int | None = None,
    journal: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Does work of a kind on many objects of a volume.

    Args:
        volume: the volume file.
        kind: ``scrub`` (reads every block), ``repair``, ``promote``, ``reencode`` (encodes objects
            anew if they do not have the code that the volume file names now), or ``encode`` (stores
            `sources`).
        prefix, names: the objects, by the beginning of their names or by their names; by default
            all objects to which the kind of work applies.
        sources: for ``encode``, the names of objects and the files with their bytes, as pairs or as
            a dictionary.
        workers: the number of tasks at once; by default one for each processor.
        engine: ``processes`` or ``ray``.
        rate: the limit in bytes a second for each node in each direction, for all workers together;
            by default the volume file's `background_rate`.
        journal: the name of the run; by default its kind. A run continues where an earlier one was
            cut off if both have the same name, kind, prefix, names, sources and volume file. Runs
            with the same name that differ in one of these are independent.
        progress: is called with the number of objects done and the number of all objects.

    Raises:
        ParameterError: if an argument cannot be used, if more than one of `prefix`, `names` and
            `sources` is given, or if two sources have the same name.
        TypeError: if `names` is a single string, or if a name is not a string.
        RuntimeError: if no worker process can start, for example because the script calls `run`
            outside ``if __name__ == "__main__":``.
        ImportError: if the engine is ``ray``, and Ray is not installed.
        ParitasError: if the volume cannot be opened or listed.
    """
    if kind not in _KINDS:
        raise ParameterError(f"the kind must be one of {', '.join(_KINDS)}; got {kind!r}")
    if (kind == "encode") != (sources is not None):
        raise ParameterError("`sources` must be given for `encode`, and for nothing else")
    chosen: dict[str, object] = {"`prefix`": prefix or None, "`names`": names, "`sources`": sources}
    given = [argument for argument, value in chosen.items() if value is not None]
    if len(given) > 1:
        raise ParameterError(f"only one argument can choose the objects; got {' and '.join(given)}")
    if engine not in _ENGINES:
        raise ParameterError(f"the engine must be one of {', '.join(_ENGINES)}; got {engine!r}")
    if isinstance(names, (str, bytes)):
        raise TypeError(f"`names` must be a list of names; got the single name {names!r}")
    if workers is not None and index(workers) < 1:
        raise ParameterError(f"`workers` must be at least 1; got {workers}")
    if rate is not None and index(rate) < 1:
        raise ParameterError(f"`rate` must be at least 1 byte a second; got {rate}")
    if engine == "ray":
        _import_ray()
    elif getattr(current_process(), "_inheriting", False):
        # This process is a worker that imports the script. Python marks it so until its work begins.
        raise RuntimeError(_NO_WORKERS)
    names = None if names is None else list(names)
    pairs = sources.items() if isinstance(sources, Mapping) else sources
    sources = None if pairs is None else [(name, os.path.abspath(path)) for name, path in pairs]
    for name in [*(names or ()), *(name for name, _ in sources or ())]:
        if not isinstance(name, str):
            raise TypeError(f"the names of objects must be of type str; got {name!r}")
    named = Counter(name for name, _ in sources or ())
    doubled = [name for name, files in named.items() if files > 1]
    if doubled:
        raise ParameterError(f"`sources` has several files for the object {doubled[0]!r}")
    path = os.path.abspath(volume)
    opened = Volume.open(path)
    _remove_stale_journals(opened)
    tasks = list(_tasks(opened, kind, prefix, names, sources))
    digest = _digest(path)
    log = _Journal(opened, _key(journal, digest, kind, prefix, names, sources))
    done = log.outcomes()
    for task in tasks:
        if _has_changed(task, done.get(task.name)):
            del done[task.name]
    report = Report(kind, outcomes=done, resumed=len(done))
    left = [task for task in tasks if task.name not in done]
    total = len({*done, *(task.name for task in left)})
    # Each worker gets its part of the rate, even if it finds nothing to do.
    used = max(1, min(workers or os.cpu_count() or 1, len(left)))
    settings = _Settings(path, digest, rate, used)
    try:
        for outcome, is_retried in _ENGINES[engine](settings, left, used):
            report.retried += is_retried
            if outcome is None:
                continue
            report.outcomes[outcome.name] = outcome
            log.note(outcome)
            if progress:
                progress(len(report.outcomes), total)
    except BaseException:
        log.keep()
        raise
    log.end()
    return report


@dataclass(frozen=True)
class _Settings:
    """The settings with which a worker opens the volume."""

    path: str
    #: The digest of the volume file. A worker of Ray outlives a run; it opens the volume anew if the
    #: file has changed.
    digest: str
    rate: int | None
    workers: int


@lru_cache(maxsize=4)
def _open(settings: _Settings) -> Volume:
    return Volume.open(
        settings.path, background=True, rate=settings.rate, workers=settings.workers
    )


def work(settings: _Settings, task: Task) -> Outcome:
    """Does a task, in a worker."""
    try:
        volume = _open(settings)
    except (ParitasError, OSError) as error:
        return Outcome(task.name, "failed", f"the volume cannot be opened: {error}")
    try:
        return _KINDS[task.kind](volume, task)
    except NotFoundError as error:
        if task.kind == "encode":
            return Outcome(task.name, "failed", str(error))
        return Outcome(task.name, "gone")
    # ValueError: the path of a source has a character that no path can have.
    except (ParitasError, OSError, ValueError) as error:
        return Outcome(task.name, "failed", str(error))


def _scrub(volume: Volume, task: Task) -> Outcome:
    verdict = volume.verify(task.name, deep=True)
    if verdict.state == "intact":
        return Outcome(task.name, "unchanged")
    # The missing shards may be on nodes that do not answer.
    state = "failed" if verdict.state == "unknown" else "damaged"
    return Outcome(task.name, state, "; ".join([verdict.state, *verdict.flaws]))


def _repair(volume: Volume, task: Task) -> Outcome:
    repaired = volume.repair(task.name, deep=True)
    if repaired.is_owed:
        return Outcome(task.name, "failed", "; ".join(repaired.flaws) or "something is left")
    if repaired.is_removed:
        return Outcome(task.name, "gone")
    return _changed(task, repaired.stored + repaired.manifests)


def _promote(volume: Volume, task: Task) -> Outcome:
    promoted = volume.promote(task.name)
    return _changed(task, promoted.stored, _owed(promoted))


def _reencode(volume: Volume, task: Task) -> Outcome:
    return _changed(task, int(volume.reencode(task.name)))


def _encode(volume: Volume, task: Task) -> Outcome:
    assert task.source is not None
    # Taken before the file is read, so that a later change is noticed.
    source = _identity(task.source)
    stored = volume.put_file(task.name, task.source)
    return Outcome(task.name, "changed", _owed(stored), source)


def _owed(done: ObjectInfo | RepairedObject) -> str:
    return "something is left for repair" if done.is_owed else ""


def _identity(path: str) -> str:
    """Returns the properties that change when a file is written to or replaced: inode, length, times.

    Programs can set back the time of the last modification, but not the time of the last change
    (ctime).
    """
    status = os.stat(path)
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


def _has_changed(task: Task, outcome: Outcome | None) -> bool:
    """Whether the file of a finished task has changed or was replaced since it was read."""
    if task.source is None or outcome is None:
        return False
    try:
        return outcome.source != _identity(task.source)
    except OSError:
        return True


def _changed(task: Task, written: int, detail: str = "") -> Outcome:
    return Outcome(task.name, "changed" if written else "unchanged", detail)


_KINDS: dict[str, Callable[[Volume, Task], Outcome]] = {
    "scrub": _scrub,
    "repair": _repair,
    "promote": _promote,
    "reencode": _reencode,
    "encode": _encode,
}


def _tasks(
    volume: Volume,
    kind: str,
    prefix: str,
    names: Iterable[str] | None,
    sources: Iterable[tuple[str, _Path]] | None,
) -> Iterator[Task]:
    """Yields the tasks, the most urgent first."""
    if sources is not None:
        yield from (Task(kind, name, os.fspath(path)) for name, path in sources)
        return
    if names is None:
        by_kind = {"repair": volume.most_urgent_first, "promote": volume.backlog}
        every = lambda start: [name for name, _ in volume.list(start)]
        names = by_kind.get(kind, every)(prefix)
    yield from (Task(kind, name) for name in names if not name.startswith(JOURNALS))


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _key(journal: str | None, digest: str, kind: str, prefix: str, names: Any, sources: Any) -> str:
    """Returns the name of the journal of a run. It depends on all arguments, but not on the order of
    names and of sources."""
    names, sources = (None if given is None else sorted(given) for given in (names, sources))
    asked = json.dumps([digest, kind, prefix, names, sources])
    return f"{journal or kind}-{hashlib.sha256(asked.encode()).hexdigest()[:16]}"


#: Errors that mean that there is no journal, or that it cannot be read.
_NO_JOURNAL = (NotFoundError, LossError, ValueError, TypeError, KeyError, RecursionError, OverflowError)


#: Bytes at the start of a journal's part that contain its first line, which states when it was written.
_HEAD = 100


class _Journal:
    """The outcomes of a run, kept as objects of the volume. These are the parts of the journal; each
    part has fewer outcomes than the part before it.

    New outcomes become a new part. As long as the last part has at most as many outcomes as the new
    part, it is merged into it. So an outcome is written again only if its part at least doubles, and
    there are about log2 n parts.
    """

    def __init__(self, volume: Volume, key: str) -> None:
        self.volume, self.key = volume, key
        found = _read_parts(volume, key)
        self.parts = [part.outcomes for part in found]
        #: An id that all parts of this journal have, and no part of another run has.
        self.run = found[0].run if found else uuid4().hex
        self.new: list[Outcome] = []
        #: Number of objects that the journal may have.
        self.stored = len(found)
        self.written = time.monotonic()
        if all(_is_stale(part.written) for part in found):
            self.parts, self.run = [], uuid4().hex
            self.end()

    def outcomes(self) -> dict[str, Outcome]:
        """Returns the outcomes of an earlier run, without failed tasks, which are tried again."""
        last = {outcome.name: outcome for part in self.parts for outcome in part}
        return {name: outcome for name, outcome in last.items() if outcome.state != "failed"}

    def note(self, outcome: Outcome) -> None:
        self.new.append(outcome)
        if time.monotonic() - self.written > _WRITING:
            self._write()

    def keep(self) -> None:
        """Writes the journal of a run that is cut off, if the volume still allows it."""
        if self.new or self.parts:
            self._write()

    def end(self) -> None:
        """Removes the journal of a run that reached its end; a later run begins anew."""
        try:
            self._remove_from(0)
        except ParitasError as error:
            name = _part_name(self.key, 0)
            what = f"the journal {name} cannot be removed, so a run within a day repeats its outcomes"
            warnings.warn(f"{what}: {error}", RuntimeWarning, stacklevel=3)

    def _write(self) -> None:
        """Stores the new outcomes. If the volume refuses now, they are stored with the next outcome."""
        parts, last = list(self.parts), self.new
        while parts and len(parts[-1]) <= len(last):
            last = parts.pop() + last
        entries = [{"written": time.time(), "run": self.run}, *map(asdict, last)]
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        parts.append(last)
        self.stored = max(self.stored, len(parts))
        with suppress(ParitasError):
            self.volume.put(_part_name(self.key, len(parts) - 1), lines.encode())
            self.parts, self.new, self.written = parts, [], time.monotonic()
            self._remove_from(len(parts))

    def _remove_from(self, part: int) -> None:
        """Removes parts, the last one first, because readers stop at the first missing number."""
        while self.stored > part:
            with suppress(NotFoundError):
                self.volume.remove(_part_name(self.key, self.stored - 1))
            self.stored -= 1


def _part_name(key: str, number: int) -> str:
    return f"{JOURNALS}{key}.{number}" if number else f"{JOURNALS}{key}"


class _Part(NamedTuple):
    """A part of a journal."""

    #: When it was written, in seconds since 1970.
    written: float
    run: str
    outcomes: list[Outcome]


def _read_parts(volume: Volume, key: str) -> list[_Part]:
    """Returns the parts of a journal, up to the first part that belongs to another run."""
    found: list[_Part] = []
    for number in count():
        try:
            part = _read_part(volume, _part_name(key, number))
        except NotFoundError:
            break
        except ParameterError:
            # No object can have this name.
            raise
        except _NO_JOURNAL:
            part = _Part(0.0, found[0].run if found else uuid4().hex, [])
        if found and part.run != found[0].run:
            break
        found.append(part)
    return found


def _read_part(volume: Volume, name: str) -> _Part:
    """Reads one part. A journal of an earlier version has one part, without the id of a run."""
    head, *lines = volume.get(name).decode().splitlines()
    outcomes = [Outcome(**json.loads(line)) for line in lines]
    if not all(isinstance(text, str) for outcome in outcomes for text in astuple(outcome)):
        raise ValueError(f"{name} is no journal")
    return _Part(_time_of(head), str(json.loads(head).get("run", "")), outcomes)


def _time_of(head: str) -> float:
    """Returns the time in the first line of a part of a journal."""
    return float(json.loads(head)["written"])


def _is_stale(written: float) -> bool:
    # A wrong clock may have given a time in the future.
    return not abs(time.time() - written) <= _STALE


def _remove_stale_journals(volume: Volume) -> None:
    """Removes the journals of runs that were cut off and not started again in time."""
    found: list[tuple[str, int]] = []
    with suppress(ParitasError):
        found = volume.list(JOURNALS)
    times: dict[str, dict[str, float]] = {}
    for name, length in found:
        # Another run may remove it first. An object that is not a journal stays.
        with suppress(*_NO_JOURNAL, ParitasError):
            head = volume.get(name, 0, min(length, _HEAD)).decode()
            times.setdefault(_run_of(name), {})[name] = _time_of(head.partition("\n")[0])
    for parts in times.values():
        # A run may last longer than a day, so the part that it wrote last decides.
        if all(map(_is_stale, parts.values())):
            for name in parts:
                with suppress(ParitasError):
                    volume.remove(name)


def _run_of(part: str) -> str:
    """Returns the common beginning of the names of all parts of a journal."""
    return re.sub(r"\.[0-9]+$", "", part)


#: An engine yields an outcome, or None for a task that is begun again; and whether it is begun again.
_Step = tuple[Outcome | None, bool]


def _by_processes(settings: _Settings, tasks: Sequence[Task], workers: int) -> Iterator[_Step]:
    """Does tasks by processes.

    If a process dies, the other processes die with it, and it is unknown which task killed it. So all
    tasks that had been begun by then are done again, one at a time: if a process dies again, the task
    that killed it is known. Then the other tasks continue together.

    Raises:
        RuntimeError: if the first processes die before they begin to work.
    """
    # A forked process would have a copy of the volume, but not the threads that work for it.
    context = get_context("spawn")
    has_started = context.RawValue(c_bool, False)
    deaths = dict.fromkeys(tasks, 0)
    left, alone = list(tasks), list[Task]()
    while left or alone:
        is_alone = bool(alone)
        begun: list[Task] = []
        waiting: list[Task] = []
        with _pool(context, 1 if is_alone else workers, has_started) as pool:
            at_once = 1 if is_alone else 2 * workers
            for task, outcome, was_begun in _each(pool, settings, alone or left, at_once):
                if outcome is not None:
                    yield outcome, False
                    continue
                (begun if was_begun else waiting).append(task)
        if begun and not has_started.value:
            raise RuntimeError(_NO_WORKERS)
        for task in begun:
            deaths[task] += is_alone
            if deaths[task] == ATTEMPTS:
                yield Outcome(task.name, "failed", f"{ATTEMPTS} workers died of it"), False
            else:
                yield None, True
        again = [task for task in begun if deaths[task] < ATTEMPTS]
        if is_alone:
            alone = waiting + again
        else:
            left, alone = waiting, again


@contextmanager
def _pool(
    context: SpawnContext, workers: int, has_started: c_bool
) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool of processes for the block. Tasks that have not been begun by its end are dropped."""
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(has_started,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(has_started: c_bool) -> None:
    """Tells the run that a worker has started, and makes this worker end when the run is killed.
    Otherwise the worker would stay for ever."""
    # This uses no lock, because a worker that is killed here would keep it.
    has_started.value = True
    parent = parent_process()
    assert parent is not None

    def end() -> None:
        wait_for([parent.sentinel])
        os._exit(1)

    Thread(target=end, daemon=True).start()


def _each(
    pool: ProcessPoolExecutor, settings: _Settings, tasks: Sequence[Task], at_once: int
) -> Iterator[tuple[Task, Outcome | None, bool]]:
    """Yields each task with its outcome, or with None if a worker has died, and whether the task was
    begun. Hands at most `at_once` tasks to the pool at a time."""
    waiting = iter(tasks)
    running: dict[Future[Outcome], Task] = {}
    is_broken = False
    while True:
        for task in islice(waiting, 0 if is_broken else at_once - len(running)):
            try:
                running[pool.submit(work, settings, task)] = task
            except BrokenProcessPool:
                is_broken = True
                yield task, None, False
        if not running:
            break
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                yield task, future.result(), True
            except BrokenProcessPool:
                is_broken = True
                yield task, None, True
    yield from ((task, None, False) for task in waiting)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        what = "the engine `ray` needs Ray, which cannot be imported: pip install ray"
        raise ImportError(what) from error
    return ray


def _by_ray(settings: _Settings, tasks: Sequence[Task], workers: int) -> Iterator[_Step]:
    """Does tasks by Ray, which begins the tasks of a worker that died again."""
    ray = _import_ray()
    if not ray.is_initialized():
        ray.init()
    remote = ray.remote(max_retries=ATTEMPTS - 1)(work)
    waiting = iter(tasks)
    running: dict[Any, Task] = {}
    while True:
        # Ray begins all tasks for which the cluster has a processor.
        for task in islice(waiting, workers - len(running)):
            running[remote.remote(settings, task)] = task
        if not running:
            return
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            task = running.pop(reference)
            try:
                yield ray.get(reference), False
            except ray.exceptions.WorkerCrashedError:
                yield Outcome(task.name, "failed", f"{ATTEMPTS} workers died of it"), False


_ENGINES: dict[str, Callable[[_Settings, Sequence[Task], int], Iterator[_Step]]] = {
    "processes": _by_processes,
    "ray": _by_ray,
}
