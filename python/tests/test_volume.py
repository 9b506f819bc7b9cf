"""Volumes, the file system over one, and fleets. The command makes the volumes."""

import collections
import contextlib
import copy
import io
import mmap
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from functools import partial
from itertools import combinations
from types import SimpleNamespace

import fsspec
import paritas
import pytest
from paritas import fleet


@pytest.fixture
def volume_file(make_volume):
    return make_volume(6, "bbdpg:k=3,m=1,m2=3,base=cauchy")


@pytest.fixture
def volume(volume_file):
    return paritas.Volume.open(volume_file)


def test_a_volume_is_made(tmp_path):
    disks = [tmp_path / f"disk{disk}" for disk in range(6)]
    [disk.mkdir() for disk in disks]
    volume = paritas.Volume.create(tmp_path / "tank.toml", disks)
    assert (volume.code, volume.nodes) == (paritas.Code("4+2").spec, [f"node{node}" for node in range(1, 7)])
    volume.put("a", bytes(100_000))
    assert paritas.Volume.open(tmp_path / "tank.toml").list() == [("a", 100_000)]
    with pytest.raises(paritas.StorageError, match="tank.toml exists"):
        paritas.Volume.create(tmp_path / "tank.toml", disks)
    with pytest.raises(paritas.StorageError):
        paritas.Volume.create(tmp_path / "other.toml", disks)  # the nodes have files of another volume
    assert not (tmp_path / "other.toml").exists()
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    named = paritas.Volume.create(tmp_path / "named.toml", {"here": tmp_path / "one", "there": "two"}, "1+1")
    assert named.nodes == ["here", "there"]
    [(tmp_path / name).mkdir() for name in ("three", "four", "five")]
    code = paritas.Code("2+1")
    made = paritas.Volume.create(tmp_path / "more.toml", [tmp_path / n for n in ("three", "four", "five")], code)
    assert made.code == code.spec
    with pytest.raises(TypeError, match="nodes are a list of paths"):
        paritas.Volume.create(tmp_path / "none.toml", 5)


def test_objects_come_back(volume, tmp_path):
    content = os.urandom(200_000)
    info = volume.put("a/large", content)
    assert (info.length, info.is_owed, info.code) == (200_000, False, volume.code)
    assert volume.put("a/small", memoryview(b"small")).code is None
    volume.put("piped", io.BytesIO(content))
    with mmap.mmap(-1, 5) as memory:
        memory.write(b"bytes")
        volume.put("mapped", memory)
    assert volume.get("mapped") == b"bytes"
    volume.remove("mapped")
    assert volume.get("a/large") == content == volume.get("piped")
    assert volume.get("a/large", 1000, 1010) == content[1000:1010]
    assert volume.list("a/") == [("a/large", 200_000), ("a/small", 5)]
    volume.get_file("a/large", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == content
    with pytest.raises(paritas.ParameterError, match=f"{tmp_path} is a directory"):
        volume.put_file("b", tmp_path)
    volume.put_file("b", tmp_path / "file")
    assert volume.stat("b").digest == info.digest and volume.stat("b").notes == {}
    notes = {"content-type": "text/plain", "x-amz-meta-from": "Paritas"}
    assert volume.put_file("b", tmp_path / "file", notes=notes).notes == notes == volume.stat("b").notes
    volume.put("b", b"small", notes=notes)
    assert volume.stat("b").notes == notes
    with pytest.raises(paritas.ParameterError, match="32768"):
        volume.put("b", b"x", notes={"long": "x" * 32768})
    volume.remove("b")
    with pytest.raises(FileNotFoundError):
        volume.stat("b")
    with pytest.raises(paritas.ParameterError):
        volume.get("a/large", 5, 4)
    with pytest.raises(paritas.ParameterError):
        volume.put("../up", b"x")


def test_a_put_tells_what_stat_tells(volume, tmp_path):
    (tmp_path / "file").write_bytes(os.urandom(50_000))
    for made, name in ((volume.put("memory", bytes(50_000)), "memory"), (volume.put("small", b"x"), "small"),
                       (volume.put_file("file", tmp_path / "file"), "file")):
        known = volume.stat(name)
        same = lambda info: (info.name, info.length, info.digest, info.code, info.created, info.modified, info.notes)
        assert same(made) == same(known)
        assert made.nodes == sorted(set(made.nodes)) and set(made.nodes) <= set(volume.nodes)
        if made.code is not None:
            assert set(made.nodes) <= set(known.nodes)
    assert made.modified == pytest.approx((tmp_path / "file").stat().st_mtime)


def test_a_digest_that_is_none_is_told(volume):
    info = volume.put("object", b"bytes")
    assert volume.get("object", digest=info.digest.upper()) == b"bytes"
    with pytest.raises(paritas.ParameterError, match='64 hexadecimal digits; got "00"'):
        volume.get("object", digest="00")
    with pytest.raises(paritas.StorageError, match="was replaced"):
        volume.get("object", digest="00" * 32)


def test_a_volume_is_closed_after_its_block(volume_file):
    with paritas.Volume.open(volume_file) as volume:
        volume.put("object", b"bytes")
    with pytest.raises(paritas.StorageError, match="the volume is closed"):
        volume.get("object")
    assert "closed" in repr(volume)
    with pytest.raises(paritas.StorageError, match="the volume is closed"), volume:
        pass
    with contextlib.closing(paritas.Volume.open(volume_file)) as volume:
        assert volume.get("object") == b"bytes"


def test_calls_that_are_running_end_after_their_volume_is_closed(volume_file):
    class Closing(io.BytesIO):
        def read(self, size=-1):
            volume.close()
            return super().read(size)

    volume = paritas.Volume.open(volume_file)
    assert volume.put("late", Closing(bytes(3_000_000)), create=True).code is not None
    with paritas.Volume.open(volume_file) as again:
        assert again.stat("late").length == 3_000_000
        with pytest.raises(paritas.ExistsError, match="the object late exists"):
            again.put("late", b"", create=True)
        with pytest.raises(FileExistsError):
            again.put_file("late", volume_file, create=True)


def test_nodes_may_be_any_mapping(tmp_path):
    nodes = {"x": tmp_path / "a", "y": tmp_path / "b"}
    [node.mkdir() for node in nodes.values()]
    for number, mapping in enumerate([types.MappingProxyType(nodes), collections.UserDict(nodes)]):
        [shutil.rmtree(node) or node.mkdir() for node in nodes.values()]
        assert paritas.Volume.create(tmp_path / f"{number}.toml", mapping, "1+1").nodes == ["x", "y"]


def test_results_show_and_compare_what_they_hold(volume):
    info = volume.put("object", b"bytes")
    assert volume.stat("object") == volume.stat("object") and volume.put("other", b"bytes") != info
    assert repr(volume.verify("object")).startswith("Verdict(name='object', ") and "length=5" in repr(info)
    assert pickle.loads(pickle.dumps(info)) == copy.deepcopy(info) == info


def test_sources_that_wait_keep_no_disk_waiting(volume):
    volume.put("object", b"bytes")
    is_over = threading.Event()

    class Slow:
        def read(self, length):
            is_over.wait()
            return b""

    threads = [threading.Thread(target=volume.put, args=(f"{number}", Slow())) for number in range(520)]
    [thread.start() for thread in threads]
    try:
        assert volume.get("object") == b"bytes"
    finally:
        is_over.set()
        [thread.join() for thread in threads]
    assert len(volume.list()) == 521


def test_a_source_that_fails_leaves_nothing(volume):
    class Broken(io.RawIOBase):
        def read(self, size=-1):
            raise RuntimeError("the tape is torn")

    with pytest.raises(paritas.StorageError, match="torn") as error:
        volume.put("broken", Broken())
    assert isinstance(error.value.__cause__, RuntimeError)
    assert volume.list() == []


def test_a_lost_node_is_repaired_and_parity_added(volume, tmp_path):
    volume.put("object", os.urandom(100_000))
    assert volume.backlog() == ["object"]
    assert volume.verify("object").stage == 1
    assert volume.promote("object").stored == 2
    assert volume.verify("object").stage == 2
    for folder in (tmp_path / "disk2").iterdir():
        if folder.name == "objects":
            shutil.rmtree(folder)
    verdict = volume.verify("object")
    assert (verdict.state, len(verdict.missing)) == ("repairable", 1)
    assert volume.repair("object").stored == 1
    assert volume.verify("object", deep=True).state == "intact"
    status = volume.status()
    assert (status.owed, status.backlog) == (0, 0) and len(status.nodes) == 6


def test_fsspec_reads_and_writes(volume_file):
    options = {"volume": str(volume_file), "skip_instance_cache": True}
    fs = fsspec.filesystem("paritas", **options)
    content = os.urandom(100_000)
    with fs.open("paritas://tables/x.bin", "wb") as file:
        file.write(content)
    assert fs.ls("tables", detail=False) == ["tables/x.bin"]
    assert fs.info("tables")["type"] == "directory" and fs.isfile("tables/x.bin")
    with fs.open("tables/x.bin") as file:
        file.seek(50_000)
        assert file.read(100) == content[50_000:50_100]
        file.seek(0)
        assert file.read() == content
    assert fs.cat_file("tables/x.bin", -10) == content[-10:]
    fs.cp_file("tables/x.bin", "tables/y.bin")
    assert sorted(fs.find("")) == ["tables/x.bin", "tables/y.bin"]
    with pytest.raises(ZeroDivisionError), fs.open("half", "wb") as file:
        file.write(content)
        1 / 0
    assert not fs.exists("half")
    fs.rm("tables", recursive=True)
    assert fs.find("") == []
    with pytest.raises(FileNotFoundError):
        fs.open("tables/x.bin").read()


def test_fsspec_makes_a_mapping(volume_file):
    options = {"volume": str(volume_file), "skip_instance_cache": True}
    mapping = fsspec.get_mapper("paritas://", **options)
    mapping["a/b"] = b"bytes"
    assert mapping["a/b"] == b"bytes" and "a/b" in mapping and list(mapping) == ["a/b"]
    del mapping["a/b"]
    assert len(mapping) == 0


def test_a_fleet_promotes_and_repairs(volume_file, volume, tmp_path):
    files = []
    for number in range(12):
        path = tmp_path / f"file{number}"
        path.write_bytes(os.urandom(20_000 + number))
        files.append((f"objects/{number:02}", path))
    report = fleet.run(volume_file, "encode", sources=files, workers=2)
    assert report.is_done and len(report.names("changed")) == 12
    assert volume.get("objects/03") == files[3][1].read_bytes()
    seen = []
    note = lambda done, of: seen.append((done, of))
    report = fleet.run(volume_file, "promote", workers=2, progress=note)
    assert len(report.names("changed")) == 12 and seen[-1] == (12, 12)
    shutil.rmtree(tmp_path / "disk1" / "objects")
    report = fleet.run(volume_file, "scrub", workers=2)
    assert len(report.names("damaged")) == 12 and report.is_done
    report = fleet.run(volume_file, "repair", workers=2)
    assert len(report.names("changed")) == 12
    assert len(fleet.run(volume_file, "scrub", workers=2).names("unchanged")) == 12
    assert volume.list(fleet.JOURNALS) == [], "the journals of runs that are done are gone"


def test_a_fleet_reencodes(volume_file, volume, tmp_path):
    contents = {f"objects/{number}": os.urandom(20_000 + number) for number in range(6)}
    for name, content in contents.items():
        volume.put(name, content)
    old = volume.code
    text = re.sub("(?m)^code = .*$", 'code = "2+2"', volume_file.read_text())
    volume_file.write_text(text)
    # The code tolerates fewer losses than the one before.
    with pytest.raises(paritas.ParameterError, match="write `losses = 2`"):
        fleet.run(volume_file, "reencode", workers=2)
    volume_file.write_text(re.sub("(?m)^losses = .*$", "losses = 2", text))
    report = fleet.run(volume_file, "reencode", workers=2)
    assert len(report.names("changed")) == 6
    changed = paritas.Volume.open(volume_file)
    for name, content in contents.items():
        assert changed.get(name) == content
        assert changed.stat(name).code == changed.code != old
    report = fleet.run(volume_file, "reencode", workers=2)
    assert len(report.names("unchanged")) == 6


def test_the_rate_of_a_fleet_is_that_of_all_workers_together(volume_file, volume):
    for number in range(2):
        volume.put(f"objects/{number}", os.urandom(300_000))
    begun = time.monotonic()
    report = fleet.run(volume_file, "scrub", workers=2, rate=60_000)
    # A node has 100,000 bytes of each object. Those of a second may come at once, the others not.
    assert report.is_done and time.monotonic() - begun > (200_000 - 60_000) / 60_000 - 0.1


def test_a_fleet_goes_on_after_a_worker_died(volume_file, volume, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(os.urandom(10_000))
    sources = [(f"object{number:02}", path) for number in range(40)]
    killed = []

    def kill_one(done, of):
        if not killed:
            killed.append(multiprocessing.active_children()[0].pid)
            os.kill(killed[0], signal.SIGKILL)

    report = fleet.run(volume_file, "encode", sources=sources, workers=2, progress=kill_one)
    assert killed and report.retried > 0
    assert report.is_done and len(report.names("changed")) == 40
    assert [name for name, _ in volume.list("object")] == [name for name, _ in sources]
    assert all(volume.get(name) == path.read_bytes() for name, _ in sources)


def test_two_sources_of_one_name_are_refused(volume_file, tmp_path):
    sources = [("twice", tmp_path / "a"), ("once", tmp_path / "b"), ("twice", tmp_path / "c")]
    with pytest.raises(paritas.ParameterError, match="'twice'"):
        fleet.run(volume_file, "encode", sources=sources)


def test_an_interrupt_in_a_source_stays_one(volume):
    class Source:
        def read(self, _):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        volume.put("object", Source())
    assert volume.list("") == []


def test_only_the_task_that_workers_die_of_fails(volume_file, volume):
    for number in range(12):
        volume.put(f"objects/{number:02}", b"x" * 1_000)
    script = volume_file.with_name("run.py")
    script.write_text(f"""
import os, signal
from paritas import fleet

scrub = fleet._scrub

def die_of_one(volume, task):
    if task.name == "objects/03":
        os.kill(os.getpid(), signal.SIGKILL)
    return scrub(volume, task)

fleet._KINDS["scrub"] = die_of_one

if __name__ == "__main__":
    report = fleet.run({str(volume_file)!r}, "scrub", workers=2)
    print(*report.names("failed"), len(report.names("unchanged")))
""")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert ran.stdout == "objects/03 11\n", ran


NO_JOURNALS = [
    b"",
    b"7\n",
    b"[" * 100_000,
    b'{"written": "now"}\n',
    b'{"written": 9e9}\n{"other": 1}\n',
    b'{"written": %d}\n{"name": [], "state": "unchanged"}\n' % time.time(),
    b'{"written": NaN}\n{"name": "object", "state": "damaged"}\n',
    b'{"written": 9e12}\n{"name": "object", "state": "damaged"}\n',
]


@pytest.mark.parametrize("content", NO_JOURNALS)
def test_a_journal_that_cannot_be_read_counts_as_none(volume_file, volume, content):
    volume.put("object", b"x")
    name = fleet.JOURNALS + fleet._key(None, fleet._digest(volume_file), "scrub", "", None, None)
    volume.put(name, content)
    report = fleet.run(volume_file, "scrub", workers=1)
    assert report.names("unchanged") == ["object"] and volume.list(fleet.JOURNALS) == []


def cut_off(*_):
    raise KeyboardInterrupt


def test_a_path_that_no_file_can_have_ends_no_run(volume_file, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x")
    report = fleet.run(volume_file, "encode", sources=[("bad", "a\0"), ("good", path)], workers=1)
    assert (report.names("failed"), report.names("changed")) == (["bad"], ["good"])


def test_a_fleet_resumes_from_its_journal(volume_file, volume, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    missing = tmp_path / "missing"
    settings = {"sources": [("one", missing), ("two", path), ("three", path)], "workers": 1}
    seen = []
    note = lambda done, of: seen.append((done, of)) or done < 2 or cut_off()
    with pytest.raises(KeyboardInterrupt):
        fleet.run(volume_file, "encode", journal="run", progress=note, **settings)
    missing.write_bytes(b"y" * 10_000)
    note = lambda done, of: seen.append((done, of))
    report = fleet.run(volume_file, "encode", journal="run", progress=note, **settings)
    # What had failed is tried again.
    assert report.is_done and report.resumed == 1 and len(report.names("changed")) == 3
    assert seen == [(1, 3), (2, 3), (2, 3), (3, 3)]
    assert volume.list(fleet.JOURNALS) == []


def test_a_resumed_fleet_stores_changed_sources_again(volume_file, volume, tmp_path):
    sources = [(name, tmp_path / name) for name in ("one", "two", "three")]
    [path.write_bytes(b"x" * 10_000) for _, path in sources]
    stop = lambda done, of: done < 2 or cut_off()
    with pytest.raises(KeyboardInterrupt):
        fleet.run(volume_file, "encode", sources=sources, workers=1, progress=stop)
    # Neither the length nor the time of the modification tells of the change.
    before = os.stat(sources[0][1])
    sources[0][1].write_bytes(b"y" * 10_000)
    os.utime(sources[0][1], ns=(before.st_atime_ns, before.st_mtime_ns))
    report = fleet.run(volume_file, "encode", sources=sources, workers=1)
    assert report.is_done and report.resumed == 1
    assert volume.get("one") == b"y" * 10_000


def test_a_fleet_goes_on_after_its_run_was_killed(volume_file, volume):
    for number in range(6):
        volume.put(f"objects/{number}", b"x" * 10_000)
    run = f"""
import multiprocessing, os, signal
from paritas import fleet

def kill(done, of):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    if done == 3:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    fleet._WRITING = 0.0
    fleet.run({str(volume_file)!r}, "scrub", workers=2, progress=kill)
"""
    script = volume_file.with_name("run.py")
    script.write_text(run)
    # Not a pipe, whose end the workers would hold.
    with open(volume_file.with_name("pids"), "w+") as pids:
        assert subprocess.run([sys.executable, script], stdout=pids).returncode == -signal.SIGKILL
        pids.seek(0)
        workers = {int(pid) for pid in pids.read().split()}
    assert workers
    ends = time.monotonic() + 20
    while any(is_running(pid) for pid in workers):
        assert time.monotonic() < ends, "the workers of a run that was killed end too"
        time.sleep(0.05)
    report = fleet.run(volume_file, "scrub", workers=2)
    assert report.resumed == 3 and len(report.names("unchanged")) == 6
    assert fleet.run(volume_file, "scrub", workers=2).resumed == 0
    assert volume.list(fleet.JOURNALS) == []


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


class FakeVolume:
    """Objects in memory, and the number of lines that were put. It may refuse to remove."""

    def __init__(self):
        self.objects, self.lines, self.refuses = {}, 0, False

    def put(self, name, content):
        self.objects[name] = content
        self.lines += content.count(b"\n")

    def get(self, name):
        if name not in self.objects:
            raise paritas.NotFoundError(name)
        return self.objects[name]

    def remove(self, name):
        if self.refuses:
            raise paritas.StorageError("no")
        del self.objects[name]


def outcomes(numbers, state="changed"):
    return [fleet.Outcome(f"objects/{number:04}", state) for number in numbers]


def journal_of_three_parts():
    """Returns a volume and its journal, if each outcome is written at once."""
    volume = FakeVolume()
    log = fleet._Journal(volume, "run")
    [log.note(outcome) for outcome in outcomes(range(7))]
    assert len(volume.objects) == 3
    return volume, log


def test_a_journal_costs_little_more_than_what_is_new(monkeypatch):
    monkeypatch.setattr(fleet, "_WRITING", -1.0)
    volume, count = FakeVolume(), 1000
    for half in (range(count // 2), range(count // 2, count)):
        log = fleet._Journal(volume, "run")
        assert list(log.outcomes().values()) == outcomes(range(half.start))
        for number, outcome in zip(half, outcomes(half)):
            log.note(outcome)
            assert len(volume.objects) <= (number + 1).bit_length() + 1
    # Each write has a line with its time. A journal that is written whole has 500,000 lines.
    assert volume.lines <= count * (count.bit_length() + 1)
    assert list(fleet._Journal(volume, "run").outcomes().values()) == outcomes(range(count))
    log.end()
    assert volume.objects == {}


def test_later_outcomes_of_a_journal_win(monkeypatch):
    monkeypatch.setattr(fleet, "_WRITING", -1.0)
    volume = FakeVolume()
    [fleet._Journal(volume, "run").note(outcome) for outcome in outcomes([1, 1], "failed")]
    log = fleet._Journal(volume, "run")
    assert log.outcomes() == {}
    [log.note(outcome) for outcome in outcomes([2, 1])]
    assert set(fleet._Journal(volume, "run").outcomes()) == {"objects/0001", "objects/0002"}


def test_parts_that_another_run_has_left_do_not_count(monkeypatch):
    monkeypatch.setattr(fleet, "_WRITING", -1.0)
    volume, log = journal_of_three_parts()
    left = volume.objects[".fleet/run.1"]
    log.end()
    log = fleet._Journal(volume, "run")
    [log.note(outcome) for outcome in outcomes([9])]
    volume.objects[".fleet/run.1"] = left
    assert set(fleet._Journal(volume, "run").outcomes()) == {"objects/0009"}


def test_a_journal_that_is_out_of_date_is_removed_whole_or_says_so(monkeypatch):
    monkeypatch.setattr(fleet, "_WRITING", -1.0)
    volume, _ = journal_of_three_parts()
    monkeypatch.setattr(fleet, "_STALE", 0.0)
    volume.refuses = True
    with pytest.warns(RuntimeWarning, match="the journal .fleet/run cannot be removed"):
        assert fleet._Journal(volume, "run").outcomes() == {}
    volume.refuses = False
    assert fleet._Journal(volume, "run").outcomes() == {} and volume.objects == {}


def test_what_a_volume_refused_to_remove_is_removed_later(monkeypatch):
    monkeypatch.setattr(fleet, "_WRITING", -1.0)
    volume = FakeVolume()
    log = fleet._Journal(volume, "run")
    volume.refuses = True
    [log.note(outcome) for outcome in outcomes(range(8))]
    assert len(volume.objects) > len(log.parts) == 1
    assert len(fleet._Journal(volume, "run").outcomes()) == 8
    volume.refuses = False
    log.end()
    assert volume.objects == {}


def test_a_fleet_resumes_from_a_journal_in_one_piece(volume_file, volume):
    """Journals had one part alone."""
    [volume.put(name, b"x") for name in ("a", "b")]
    name = fleet.JOURNALS + fleet._key(None, fleet._digest(volume_file), "scrub", "", None, None)
    done = '{"name": "a", "state": "unchanged", "detail": "", "source": ""}'
    volume.put(name, f'{{"written": {time.time()}}}\n{done}\n'.encode())
    report = fleet.run(volume_file, "scrub", workers=1)
    assert report.resumed == 1 and report.names("unchanged") == ["a", "b"]
    assert volume.list(fleet.JOURNALS) == []


def test_a_run_that_came_to_its_end_is_finished_even_with_failures(volume_file, volume, tmp_path):
    names = ["o/00", "o/01", "bad//name"]
    [volume.put(name, os.urandom(10_000)) for name in names[:2]]
    settings = {"names": names, "workers": 1, "journal": "nightly"}
    report = fleet.run(volume_file, "repair", **settings)
    assert report.names("failed") == ["bad//name"] and report.names("unchanged") == names[:2]
    assert volume.list(fleet.JOURNALS) == [], "a run that came to its end leaves no journal"
    # A folder has `objects` only if it has a shard.
    shutil.rmtree(next(tmp_path.glob("disk*/objects")))
    missing = [name for name in names[:2] if volume.verify(name).state == "repairable"]
    assert missing
    report = fleet.run(volume_file, "repair", **settings)
    assert report.resumed == 0 and report.names("changed") == missing


def test_a_journal_is_of_one_kind_of_work_and_its_arguments(volume_file, volume):
    [volume.put(name, b"x" * 10_000) for name in ("a", "b")]
    settings = {"workers": 1, "journal": "nightly"}
    with pytest.raises(KeyboardInterrupt):
        fleet.run(volume_file, "repair", names=["a", "b"], progress=cut_off, **settings)
    assert fleet.run(volume_file, "scrub", names=["a", "b"], **settings).resumed == 0
    assert fleet.run(volume_file, "repair", names=["a"], **settings).resumed == 0
    assert fleet.run(volume_file, "repair", **settings).resumed == 0
    text = volume_file.read_text()
    volume_file.write_text(text + "# another disk is behind it\n")
    assert fleet.run(volume_file, "repair", names=["a", "b"], **settings).resumed == 0
    volume_file.write_text(text)
    # The order of the names is that of a set, which no two processes share.
    assert fleet.run(volume_file, "repair", names=["b", "a"], **settings).resumed == 1
    assert volume.list(fleet.JOURNALS) == []


def test_an_old_journal_says_nothing_and_is_removed(volume_file, volume, monkeypatch):
    [volume.put(name, b"x" * 10_000) for name in ("one", "two")]
    with pytest.raises(KeyboardInterrupt):
        fleet.run(volume_file, "scrub", workers=1, journal="run", progress=cut_off)
    [(run, _)] = volume.list(fleet.JOURNALS)
    day_before = f'{{"written": {time.time() - 90_000}}}\n'.encode()
    volume.put(f"{run}.1", volume.get(run))
    volume.put(run, day_before)
    volume.put(fleet.JOURNALS + "mine", b"no journal")
    # A run over everything leaves journals alone while a part of them is of use.
    report = fleet.run(volume_file, "scrub", workers=1)
    assert sorted(report.outcomes) == ["one", "two"] and len(volume.list(fleet.JOURNALS)) == 3
    monkeypatch.setattr(fleet, "_STALE", 0.0)
    assert fleet.run(volume_file, "promote", names=["one"], workers=1).is_done
    assert [name for name, _ in volume.list(fleet.JOURNALS)] == [fleet.JOURNALS + "mine"]
    assert fleet.run(volume_file, "scrub", workers=1, journal="run").resumed == 0


def test_wrong_arguments_are_refused(volume_file):
    for arguments in [{"kind": "paint"}, {"kind": "encode"}, {"kind": "scrub", "engine": "horses"}]:
        with pytest.raises(paritas.ParameterError):
            fleet.run(volume_file, **arguments)
    for name in ("workers", "rate"):
        for number in (0, -1):
            with pytest.raises(paritas.ParameterError, match=f"`{name}` must be .*; got {number}$"):
                fleet.run(volume_file, "scrub", **{name: number})
    with pytest.raises(paritas.ParameterError, match="a//b"):
        fleet.run(volume_file, "scrub", journal="a//b")
    with pytest.raises(TypeError, match="list of names; got the single name 'o/01'"):
        fleet.run(volume_file, "scrub", names="o/01")
    with pytest.raises(TypeError, match="must be of type str; got None"):
        fleet.run(volume_file, "scrub", names=["o/01", None])
    for name in ("workers", "rate"):
        with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
            fleet.run(volume_file, "scrub", **{name: 1.5})


def test_sources_may_be_a_dictionary(volume_file, volume, tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    report = fleet.run(volume_file, "encode", sources={"ab": tmp_path / "file"}, workers=1)
    assert report.names("changed") == ["ab"] and volume.get("ab") == b"content"


def test_objects_are_chosen_by_one_argument(volume_file):
    chosen = {"prefix": "o/", "names": ["o/01"], "sources": [("o/01", "file")]}
    for first, second in combinations(chosen, 2):
        kind = "encode" if second == "sources" else "scrub"
        with pytest.raises(paritas.ParameterError, match=f"got `{first}` and `{second}`$"):
            fleet.run(volume_file, kind, **{name: chosen[name] for name in (first, second)})


def test_a_worker_that_cannot_open_the_volume_fails(tmp_path):
    settings = fleet._Settings(str(tmp_path / "none.toml"), "", None, 1)
    outcome = fleet.work(settings, fleet.Task("scrub", "object"))
    assert outcome.state == "failed" and "none.toml" in outcome.detail


def test_a_script_that_runs_a_fleet_when_it_is_imported_is_told(volume_file, volume):
    volume.put("object", b"x")
    script = volume_file.with_name("run.py")
    script.write_text(f"from paritas import fleet\nfleet.run({str(volume_file)!r}, 'scrub', workers=1)\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1, ran
    assert ran.stderr.splitlines()[-1].startswith("RuntimeError: no worker process can start; a script")


def test_names_that_are_not_utf_8_are_wrong_names(volume_file, volume, tmp_path):
    for ask in (volume.get, volume.stat, volume.remove, lambda name: volume.put(name, b"x")):
        with pytest.raises(paritas.ParameterError, match="must be text in UTF-8; got 'a"):
            ask("a\udcff")
    with pytest.raises(TypeError):
        volume.get(b"a")
    path = tmp_path / "file"
    path.write_bytes(b"x")
    report = fleet.run(volume_file, "encode", sources=[("a\udcff", path), ("b", path)], workers=1)
    assert report.names("failed") == ["a\udcff"] and report.names("changed") == ["b"]


def test_a_repair_that_writes_manifests_changes_the_object(volume_file, volume, tmp_path):
    [volume.put(name, b"small") for name in ("kept", "removed")]
    volume.remove("removed")
    shutil.rmtree(next(tmp_path.glob("disk*/manifests/kept@")))
    report = fleet.run(volume_file, "repair", names=["kept", "removed"], workers=1)
    assert report.names("changed") == ["kept"] and report.names("gone") == ["removed"]
    assert volume.repair("kept").manifests == 0 and not volume.repair("kept").is_removed


def test_workers_without_a_task_take_no_part_of_the_rate(volume_file, volume):
    volume.put("object", os.urandom(600_000))
    begun = time.monotonic()
    # The node sends 200,000 bytes: one second's worth at once, and as much in the next second.
    report = fleet.run(volume_file, "scrub", workers=8, rate=100_000)
    assert report.is_done and time.monotonic() - begun < 10


def test_the_order_of_sources_makes_no_other_run():
    sources = [("a", "/a"), ("b", "/b")]
    keys = {fleet._key(None, "", "encode", "", None, order) for order in (sources, sources[::-1])}
    assert len(keys) == 1


class FakeRay:
    """What fleets use of Ray. Tasks are done in this process, when they are waited for."""

    exceptions = SimpleNamespace(WorkerCrashedError=ZeroDivisionError)

    def __init__(self):
        self.running, self.most = [], 0

    def is_initialized(self):
        return True

    def remote(self, max_retries):
        return lambda work: SimpleNamespace(remote=partial(self.begin, work))

    def begin(self, *call):
        self.running.append(partial(*call))
        self.most = max(self.most, len(self.running))
        return self.running[-1]

    def wait(self, references, num_returns):
        self.running.remove(references[0])
        return references[:1], references[1:]

    def get(self, reference):
        return reference()


def test_ray_is_given_as_many_tasks_at_once_as_there_are_workers(volume_file, volume, monkeypatch):
    ray = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", ray)
    [volume.put(f"objects/{number}", b"x") for number in range(7)]
    report = fleet.run(volume_file, "scrub", workers=3, engine="ray")
    assert len(report.names("unchanged")) == 7 and ray.most == 3


def test_a_worker_of_an_earlier_run_sees_a_changed_volume_file(volume_file, volume, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", FakeRay())
    volume.put("object", os.urandom(20_000))
    settings = {"workers": 1, "engine": "ray"}
    assert fleet.run(volume_file, "reencode", **settings).names("unchanged") == ["object"]
    text = re.sub("(?m)^code = .*$", 'code = "2+2"', volume_file.read_text())
    volume_file.write_text(re.sub("(?m)^losses = .*$", "losses = 2", text))
    assert fleet.run(volume_file, "reencode", **settings).names("changed") == ["object"]


def test_ray_that_is_not_installed_is_named(volume_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match="pip install ray"):
        fleet.run(volume_file, "scrub", engine="ray")


def test_a_pipe_keeps_no_other_thread_waiting(tmp_path):
    nodes = [tmp_path / f"n{node}" for node in range(4)]
    [node.mkdir() for node in nodes]
    volume = paritas.Volume.create(tmp_path / "tank.toml", nodes, "2+2")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(b"hello"), daemon=True)
    threading.Timer(0.2, writer.start).start()
    volume.put_file("a", fifo)
    assert volume.get("a") == b"hello"


def test_a_file_that_is_no_volume_file_is_there(tmp_path):
    other = tmp_path / "other.toml"
    other.write_text("name = 'x'\n")
    with pytest.raises(paritas.ParameterError, match="not a volume file"):
        paritas.Volume.open(other)


def test_a_put_keeps_the_time_that_it_is_given(volume):
    for time in (0.0, -1.5, 1_234_567_890.123_456_7):
        assert volume.put("a", b"x", modified=time).modified == time == volume.stat("a").modified
    for wrong in (float("nan"), float("inf"), 1e300):
        with pytest.raises(paritas.ParameterError, match="seconds since 1970; got"):
            volume.put("a", b"x", modified=wrong)


def test_ranges_of_any_length_are_read(volume):
    content = os.urandom(300_000)
    volume.put("a", content)
    for start, end in [(0, 0), (5, 5), (5, 6), (300_000, 300_000), (299_999, None), (7, 200_000)]:
        assert volume.get("a", start, end) == content[start:end]
    for start, end in [(0, 300_001), (300_001, None), (5, 4), (0, 2**63)]:
        with pytest.raises(paritas.ParameterError):
            volume.get("a", start, end)
