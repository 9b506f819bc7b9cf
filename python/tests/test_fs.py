"""The file system of `fsspec` over a volume. The command makes the volumes."""

import gzip
import io
import os
import pickle
from datetime import UTC, datetime, timedelta

import fsspec
import paritas
import pytest
from paritas.fs import VolumeFileSystem


@pytest.fixture
def volume_file(make_volume):
    return make_volume(3, "2+1")


@pytest.fixture
def fs(volume_file):
    return fsspec.filesystem("paritas", volume=str(volume_file), skip_instance_cache=True)


def test_a_reader_never_mixes_versions(fs):
    fs.pipe("rw", b"A" * 1_000_000)
    file = fs.open("rw", block_size=100_000)
    first = file.read(10_000)
    fs.pipe("rw", b"B" * 1_000_000)
    with pytest.raises(paritas.StorageError, match="^rw was replaced") as error:
        first + file.read()
    assert isinstance(error.value, OSError) and error.value.kind == "Busy"
    with fs.open("rw", block_size=100_000) as file:
        assert file.read() == b"B" * 1_000_000


def test_a_reader_without_a_cache_stops_at_the_end(fs):
    content = os.urandom(300_000)
    fs.pipe("object", content)
    with fs.open("object", cache_type="none") as file:
        assert b"".join(iter(lambda: file.read(65536), b"")) == content


def test_a_reader_notices_an_object_that_shrank_or_is_gone(fs):
    fs.pipe("rw", b"A" * 1_000_000)
    file = fs.open("rw", block_size=100_000)
    fs.pipe("rw", b"short")
    file.seek(900_000)
    with pytest.raises(OSError, match="^rw was replaced: it has 5 bytes"):
        file.read(10)
    file = fs.open("rw")
    fs.rm("rw")
    with pytest.raises(FileNotFoundError, match="rw"):
        file.read()


def test_a_reader_does_not_mind_the_same_bytes(fs):
    fs.pipe("rw", b"A" * 1_000_000)
    file = fs.open("rw", block_size=100_000)
    fs.pipe("rw", b"A" * 1_000_000)
    assert file.read() == b"A" * 1_000_000


def write_all(fs, tmp_path):
    """Writes an object in every way there is."""
    fs.pipe("before", b"before")
    (tmp_path / "local").write_bytes(b"local")
    ways = {
        "tr/binary": {"mode": "wb"},
        "tr/text": {"mode": "w", "encoding": "utf-8"},
        "tr/gzip": {"mode": "wb", "compression": "gzip"},
        "tr/both.gz": {"mode": "wt", "compression": "infer"},
    }
    with fs.transaction:
        for name, options in ways.items():
            with fs.open(name, **options) as file:
                file.write("text" if "b" not in options["mode"] else b"text")
            assert file.closed
        with fs.open("tr/x", "xb") as file:
            file.write(b"text")
        fs.pipe("tr/piped", b"text")
        fs.put_file(tmp_path / "local", "tr/put")
        fs.cp_file("before", "tr/copied")
        yield


def test_a_transaction_shows_all_at_its_end(fs, tmp_path):
    for _ in write_all(fs, tmp_path):
        assert fs.find("tr") == [] and fs.find("") == ["before"]
    for name in ("tr/binary", "tr/text", "tr/x", "tr/piped"):
        assert fs.cat(name) == b"text"
    assert gzip.decompress(fs.cat("tr/gzip")) == gzip.decompress(fs.cat("tr/both.gz")) == b"text"
    assert (fs.cat("tr/put"), fs.cat("tr/copied")) == (b"local", b"before")
    fs.pipe("after", b"after")
    assert fs.cat("after") == b"after", "the transaction has ended"


def test_a_transaction_that_fails_leaves_nothing(fs, tmp_path):
    writing = write_all(fs, tmp_path)
    next(writing)
    with pytest.raises(ZeroDivisionError):
        writing.throw(ZeroDivisionError())
    assert fs.find("") == ["before"]
    fs.pipe("after", b"after")
    assert fs.cat("after") == b"after", "the transaction has ended"


def test_a_file_that_is_open_when_its_transaction_ends_is_refused(fs):
    with pytest.raises(ValueError, match="^one must be closed before"), fs.transaction:
        fs.open("one", "wb").write(b"1")
    assert not fs.exists("one")


def test_a_file_without_autocommit_waits(fs):
    for commits in (True, False):
        name = f"waits/{commits}"
        file = fs.open(name, "wb", autocommit=False)
        file.write(b"bytes")
        file.close()
        assert file.closed and not fs.exists(name)
        with pytest.raises(ValueError, match=f"{name} is closed"):
            file.write(b"more")
        file.commit() if commits else file.discard()
        file.close()
        assert fs.exists(name) == commits


def test_a_url_in_a_transaction_that_fails_leaves_nothing(volume_file):
    """`fsspec.open` does not tell files of exceptions; the transaction does."""
    fs = fsspec.filesystem("paritas", volume=str(volume_file))
    open_file = fsspec.open("paritas://url.gz", "wt", compression="gzip", volume=str(volume_file))
    assert open_file.fs is fs
    with pytest.raises(ZeroDivisionError), fs.transaction, open_file as file:
        file.write("text")
        1 / 0
    assert not fs.exists("url.gz")
    with fs.transaction, open_file as file:
        file.write("text")
    assert gzip.decompress(fs.cat("url.gz")) == b"text"


def test_folders_are_removed_with_recursive_only(fs):
    fs.pipe({"dir/a": b"a", "dir/sub/b": b"b", "c": b"c"})
    for paths in ("dir", "/dir/", ["c", "dir"], "*"):
        with pytest.raises(IsADirectoryError, match="dir"):
            fs.rm(paths)
    assert fs.find("") == ["c", "dir/a", "dir/sub/b"]
    for recursive in (False, True):
        with pytest.raises(FileNotFoundError):
            fs.rm("none", recursive=recursive)
    fs.rm(["dir", "c"], recursive=True)
    assert fs.find("") == []


def test_folders_are_not_opened(fs):
    fs.pipe("dir/a", b"a")
    for mode in ("rb", "r"):
        for path in ("dir", "/dir/", ""):
            with pytest.raises(IsADirectoryError):
                fs.open(path, mode)
    with pytest.raises(FileNotFoundError):
        fs.open("none")


def test_slashes_at_the_ends_of_names_are_dropped_everywhere(fs, tmp_path):
    fs.pipe("/p/a", b"a")
    fs.pipe({"//p/b": b"b"})
    for mode, content in (("wb", b"c"), ("w", "c")):
        with fs.open(f"/p/{mode}", mode) as file:
            file.write(content)
    (tmp_path / "local").write_bytes(b"local")
    fs.put(str(tmp_path / "local"), "/p/put")
    fs.cp("/p/a", "/p/copied")
    fs.mv("/p/copied", "/p/moved")
    names = ["p/a", "p/b", "p/moved", "p/put", "p/w", "p/wb"]
    assert fs.find("/") == fs.ls("/p", detail=False) == fs.glob("/p/*") == names
    assert fs.cat("/p/a") == fs.cat_file("p/a/") == b"a" and fs.cat_file("/p/a", 0, 1) == b"a"
    assert fs.cat("paritas:///p/a") == fs.open("/p/a").read() == fs.open("/p/a", "rb").read()
    assert fs.info("/p/a")["name"] == "p/a" and fs.isdir("/p") and fs.exists("/p/a")
    fs.get("/p/put", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == b"local"
    fs.rm_file("/p/a")
    fs.rm("/p/b")
    fs.rm("/p", recursive=True)
    assert fs.find("") == []


WAYS = [
    {"mode": "wb"},
    {"mode": "xb"},
    {"mode": "w"},
    {"mode": "wb", "compression": "gzip"},
    {"mode": "wb", "compression": "bz2"},
    {"mode": "wb", "compression": "xz"},
    {"mode": "wb", "compression": "zip"},
    {"mode": "wt", "compression": "gzip", "encoding": "utf-16"},
]


@pytest.mark.parametrize("options", WAYS, ids=lambda options: "-".join(options.values()))
def test_an_exception_in_a_block_stores_nothing(fs, options):
    content = os.urandom(100_000).hex()
    content = content.encode() if "b" in options["mode"] else content
    with pytest.raises(ZeroDivisionError), fs.open("half", **options) as file:
        file.write(content)
        1 / 0
    assert file.closed and not fs.exists("half")
    with fs.open("whole", **options) as file:
        file.write(content)
    back = options | {"mode": "rb" if "b" in options["mode"] else "r"}
    with fs.open("whole", **back) as file:
        assert file.read() == content


def test_a_file_that_cannot_be_opened_stores_nothing(fs):
    fs.pipe("kept", b"kept")
    with pytest.raises(LookupError):
        fs.open("kept", "w", encoding="none")
    with pytest.raises(ValueError, match="squash"):
        fs.open("kept", "wb", compression="squash")
    assert fs.cat("kept") == b"kept"


def test_writers_seek_and_read_back(fs):
    with fs.open("zip", "wb") as file:
        assert file.writable() and file.seekable() and file.readable()
        assert file.write(b"0123456789") == 10 == file.tell()
        assert file.seek(2) == 2 and file.read(3) == b"234"
        assert file.seek(-1, os.SEEK_END) == 9 and file.truncate() == 9
        file.seek(0)
        file.write(b"x")
    assert fs.cat("zip") == b"x12345678"


def test_times_are_those_of_stat(fs, tmp_path):
    fs.pipe("dir/now", b"now")
    age = datetime.now(UTC) - fs.created("dir/now")
    assert timedelta(seconds=-2) < age < timedelta(minutes=2)
    assert fs.modified("dir/now") == fs.created("/dir/now")
    assert fs.info("dir/now")["modified"] == fs.info("dir/now")["created"]
    (tmp_path / "old").write_bytes(b"old")
    os.utime(tmp_path / "old", (0, 1_000_000_000.5))
    fs.put_file(tmp_path / "old", "old")
    assert fs.modified("old") == datetime(2001, 9, 9, 1, 46, 40, 500_000, tzinfo=UTC)
    for ask in (fs.created, fs.modified):
        with pytest.raises(FileNotFoundError):
            ask("none")
        with pytest.raises(IsADirectoryError):
            ask("dir")


def test_wrong_arguments_are_of_the_kind_parameters(fs, monkeypatch):
    monkeypatch.delenv("PARITAS_VOLUME", raising=False)
    with pytest.raises(paritas.ParameterError, match="no volume") as error:
        fsspec.filesystem("paritas", skip_instance_cache=True)
    assert error.value.kind == "Parameters"
    for mode in ("ab", "r+b", "a", "zz"):
        with pytest.raises(paritas.ParameterError, match="mode rb, wb or xb; got ") as error:
            fs.open("a", mode)
        assert error.value.kind == "Parameters"


def test_a_folder_is_not_moved_into_itself(fs):
    fs.pipe({"d/a": b"1", "d/sub/b": b"2"})
    for target in ("d/sub", "d", "/d/sub/deeper/"):
        with pytest.raises(paritas.ParameterError, match="into itself"):
            fs.copy("d", target, recursive=True)
    with pytest.raises(paritas.ParameterError, match="into itself"):
        fs.mv("d", "d/sub", recursive=True)
    assert fs.find("") == ["d/a", "d/sub/b"]
    fs.mv("d", "dd", recursive=True)
    assert fs.find("") == ["dd/a", "dd/sub/b"]


def test_the_environment_is_asked_each_time(make_volume, tmp_path, monkeypatch):
    for name in ("one", "two"):
        monkeypatch.setenv("PARITAS_VOLUME", str(make_volume(3, "2+1", tmp_path / name)))
        fsspec.filesystem("paritas").pipe("object", name.encode())
    assert fsspec.filesystem("paritas").cat("object") == b"two"
    monkeypatch.setenv("PARITAS_VOLUME", str(tmp_path / "one" / "volume.toml"))
    assert fsspec.filesystem("paritas").cat("object") == b"one"


def test_a_relative_path_is_looked_for_each_time(make_volume, tmp_path, monkeypatch):
    for name in ("one", "two"):
        make_volume(3, "2+1", tmp_path / name)
        monkeypatch.chdir(tmp_path / name)
        fsspec.filesystem("paritas", volume="volume.toml").pipe("object", name.encode())
    assert fsspec.filesystem("paritas", volume="volume.toml").cat("object") == b"two"
    monkeypatch.chdir(tmp_path / "one")
    assert fsspec.filesystem("paritas", volume="volume.toml").cat("object") == b"one"


def test_a_file_system_that_is_made_again_elsewhere_keeps_its_volume(volume_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARITAS_VOLUME", volume_file.name)
    systems = [
        fsspec.filesystem("paritas"),
        fsspec.filesystem("paritas", volume=volume_file.name),
        VolumeFileSystem(volume_file.name),
    ]
    systems[0].pipe("object", b"bytes")
    pickled = [pickle.dumps(fs) for fs in systems]
    told = [fs.to_json() for fs in systems]
    monkeypatch.chdir(tmp_path / "disk0")
    monkeypatch.delenv("PARITAS_VOLUME")
    for fs in pickled:
        assert pickle.loads(fs).cat("object") == b"bytes"
    for fs in told:
        assert fsspec.AbstractFileSystem.from_json(fs).cat("object") == b"bytes"


def test_an_object_may_be_the_beginning_of_others(fs):
    fs.pipe({"e": b"1", "e/f": b"2"})
    kinds = {(entry["name"], entry["type"]) for entry in fs.ls("")}
    assert kinds == {("e", "file"), ("e", "directory")}
    assert fs.find("") == ["e", "e/f"]


@pytest.fixture
def tree(fs):
    """A file system with some objects."""
    fs.pipe({"a": b"0123456789", "dir/b": b"bb", "dir/sub/c": b"ccc"})
    return fs


def test_what_is_for_one_object_refuses_folders_and_what_is_not_there(tree, tmp_path):
    target = str(tmp_path / "target")
    asks = [
        tree.cat,
        tree.cat_file,
        lambda path: tree.cat_file(path, 0, 1),
        tree.open,
        tree.head,
        tree.rm,
        tree.rm_file,
        tree.created,
        lambda path: tree.get(path, target),
        lambda path: tree.copy(path, "copy"),
        lambda path: tree.mv(path, "moved"),
    ]
    for ask in asks:
        for path, shown in (("dir", "dir"), ("/dir/", "dir"), ("", "")):
            with pytest.raises(IsADirectoryError) as error:
                ask(path)
            assert error.value.filename == shown
        with pytest.raises(FileNotFoundError, match="none"):
            ask("none")
    with pytest.raises(IsADirectoryError):
        tree.put(tmp_path, "put")
    with pytest.raises(IsADirectoryError):
        tree.open("", "wb")
    assert tree.find("") == ["a", "dir/b", "dir/sub/c"] and not os.path.exists(target)


def test_names_that_no_object_can_have_are_not_there(tree):
    for name in ("a//b", "../up", "a\udcff"):
        assert not (tree.exists(name) or tree.isfile(name) or tree.isdir(name))
        with pytest.raises(paritas.ParameterError):
            tree.cat(name)


def test_a_volume_that_does_not_answer_is_not_an_empty_one(tree, tmp_path):
    for disk in tmp_path.glob("disk*"):
        disk.rename(disk.with_name(f"away-{disk.name}"))
    for ask in (tree.exists, tree.isfile, tree.isdir, tree.ls, tree.find):
        with pytest.raises(paritas.StorageError):
            ask("a")


def test_listings_tell_files_from_folders(tree):
    a = {"name": "a", "size": 10, "type": "file"}
    b, c = ({"name": name, "size": size, "type": "file"} for name, size in (("dir/b", 2), ("dir/sub/c", 3)))
    folder, sub = ({"name": name, "size": 0, "type": "directory"} for name in ("dir", "dir/sub"))
    assert tree.ls("") == [a, folder] and tree.ls("dir") == [b, sub]
    assert tree.find("", detail=True) == {entry["name"]: entry for entry in (a, b, c)}
    assert tree.find("", withdirs=True) == ["a", "dir", "dir/b", "dir/sub", "dir/sub/c"]
    assert tree.find("dir", withdirs=True, detail=True)["dir"] == folder == tree.info("dir")
    assert tree.find("dir", maxdepth=1) == ["dir/b"] and tree.find("none") == []
    assert tree.find("dir", maxdepth=1, withdirs=True) == ["dir", "dir/b", "dir/sub"]
    assert tree.find("a") == ["a"] and tree.find("a", detail=True)["a"].items() >= a.items()
    with pytest.raises(ValueError, match="got 0"):
        tree.find("", maxdepth=0)
    with pytest.raises(FileNotFoundError):
        tree.ls("none")
    assert list(tree.walk("")) == [("", ["dir"], ["a"]), ("dir", ["sub"], ["b"]), ("dir/sub", [], ["c"])]
    assert tree.glob("**/c") == ["dir/sub/c"] and tree.glob("dir/*") == ["dir/b", "dir/sub"]
    assert tree.du("") == 15 and tree.du("dir", total=False) == {"dir/b": 2, "dir/sub/c": 3}
    assert tree.sizes(["a", "dir/b"]) == [10, 2] and tree.isdir("dir") and tree.isfile("dir/b")


def test_parts_of_objects_are_read(tree):
    ranges = {(None, None): b"0123456789", (2, 4): b"23", (-3, None): b"789", (None, -8): b"01"}
    ranges |= {(8, 99): b"89", (20, 30): b"", (5, 2): b"", (-99, 1): b"0"}
    for (start, end), content in ranges.items():
        assert tree.cat_file("a", start, end) == content == tree.cat("a", start=start, end=end)
    starts, ends = zip(*ranges)
    assert tree.cat_ranges(["a"] * len(ranges), list(starts), list(ends)) == list(ranges.values())
    [missing, folder] = tree.cat_ranges(["none", "dir"], 0, 1)
    assert isinstance(missing, FileNotFoundError) and isinstance(folder, IsADirectoryError)
    assert tree.head("a", 3) == b"012" and tree.tail("a", 3) == b"789"


def test_several_objects_are_read(tree):
    everything = {"a": b"0123456789", "dir/b": b"bb", "dir/sub/c": b"ccc"}
    assert tree.cat("", recursive=True) == everything
    assert tree.cat("a", recursive=True) == b"0123456789"
    assert tree.cat(["a", "dir/b"]) == {"a": b"0123456789", "dir/b": b"bb"}
    for ask in (["a", "none"], ["a", "dir"]):
        with pytest.raises(OSError, match=ask[1]):
            tree.cat(ask)
        assert tree.cat(ask, on_error="omit") == {"a": b"0123456789"}
        assert isinstance(tree.cat(ask, on_error="return")[ask[1]], OSError)
    tree.pipe("odd/[1]*?.csv", b"odd")
    assert tree.cat("odd", recursive=True) == {"odd/[1]*?.csv": b"odd"}


def test_a_file_grows_when_it_is_truncated(tree):
    for size in (10, 20 << 20):
        with tree.open("grown", "wb") as file:
            file.write(b"abc")
            assert file.truncate(size) == size
        assert tree.size("grown") == size and tree.cat_file("grown", 0, 5) == b"abc\0\0"


def test_an_empty_variable_names_no_volume(monkeypatch):
    monkeypatch.setenv("PARITAS_VOLUME", "")
    with pytest.raises(paritas.ParameterError, match="no volume"):
        VolumeFileSystem(skip_instance_cache=True)


def test_objects_are_created_once(tree, tmp_path):
    (tmp_path / "local").write_bytes(b"local")
    creates = [
        lambda path: tree.open(path, "xb"),
        lambda path: tree.pipe_file(path, b"x", mode="create"),
        lambda path: tree.put_file(tmp_path / "local", path, mode="create"),
    ]
    for number, create in enumerate(creates):
        with pytest.raises(FileExistsError) as error:
            create("/a")
        assert error.value.filename == "a"
        create(f"new/{number}")
    assert tree.cat("a") == b"0123456789"
    assert tree.cat(["new/1", "new/2"]) == {"new/1": b"x", "new/2": b"local"}
    # What appears meanwhile is not replaced either.
    late = tree.open("late", "xb")
    late.write(b"late")
    tree.pipe_file("late", b"first")
    with pytest.raises(paritas.ExistsError, match="the object late exists"):
        late.close()
    with pytest.raises(FileExistsError), tree.transaction:
        tree.pipe_file("twice", b"one", mode="create")
        tree.pipe_file("twice", b"two", mode="create")
    assert tree.cat(["late", "twice"]) == {"late": b"first", "twice": b"one"}
    tree.touch("new/empty")
    assert tree.cat("new/empty") == b""
    with pytest.raises(NotImplementedError):
        tree.touch("new/empty", truncate=False)


def test_folders_go_out_and_come_in(tree, tmp_path):
    tree.get("dir", str(tmp_path / "out"), recursive=True)
    assert (tmp_path / "out" / "sub" / "c").read_bytes() == b"ccc"
    tree.put(str(tmp_path / "out"), "in", recursive=True)
    tree.copy("in", "copy", recursive=True)
    assert tree.find("in") == ["in/b", "in/sub/c"] and tree.cat("copy/sub/c") == b"ccc"
    with io.BytesIO() as file:
        tree.get_file("a", file)
        assert file.getvalue() == b"0123456789"


def test_an_object_that_is_moved_to_itself_stays(tree):
    tree.mv("a", "/a")
    tree.mv("dir/b", "dir/")
    tree.copy("/a", "a")
    assert tree.cat("a") == b"0123456789" and tree.cat("dir/b") == b"bb"


def test_only_what_was_copied_is_removed_by_a_move(tree):
    tree.pipe("dir/d", b"dd")
    tree.mv("dir", "new", recursive=True, maxdepth=1)
    assert tree.find("") == ["a", "dir/sub/c", "new/b", "new/d"]


def test_copies_keep_notes_and_the_time_of_the_file(fs, tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    os.utime(tmp_path / "file", ns=(0, 1_234_567_890_123_456_789))
    fs.volume.put_file("file", tmp_path / "file", notes={"a": "1"})
    fs.volume.put("memory", b"content", notes={"b": "2"})
    fs.cp("file", "copy")
    fs.mv("memory", "moved")
    with fs.transaction:
        fs.mv("copy", "late")
    fs.rename("late", "named")
    kept = {name: (fs.volume.stat(name).notes, fs.volume.stat(name).modified) for name in fs.find("")}
    of_file = {"a": "1"}, os.stat(tmp_path / "file").st_mtime
    assert kept == {"file": of_file, "named": of_file, "moved": ({"b": "2"}, None)}
    assert fs.modified("named") == fs.modified("file")


def test_transactions_remove_and_move_at_their_end(tree):
    with pytest.raises(ZeroDivisionError), tree.transaction:
        tree.rm("a")
        tree.mv("dir", "new", recursive=True)
        1 / 0
    assert tree.find("") == ["a", "dir/b", "dir/sub/c"]
    with tree.transaction:
        tree.rm("a")
        tree.mv("dir", "new", recursive=True)
        with pytest.raises(FileNotFoundError):
            tree.rm_file("none")
        assert tree.find("") == ["a", "dir/b", "dir/sub/c"]
    assert tree.cat("", recursive=True) == {"new/b": b"bb", "new/sub/c": b"ccc"}


def test_a_transaction_that_is_refused_holds_nothing_back(tree):
    with pytest.raises(paritas.ParameterError), tree.transaction:
        tree.pipe("first", b"1")
        tree.pipe("a//b", b"2")
        tree.rm("a")
    tree.pipe("later", b"3")
    assert tree.find("") == ["a", "dir/b", "dir/sub/c", "first", "later"]


def test_only_empty_folders_are_removed_without_recursive(tree):
    for path, kind in (("dir", OSError), ("", OSError), ("a", NotADirectoryError)):
        with pytest.raises(kind, match="directory|empty"):
            tree.rmdir(path)
    tree.mkdir("made")
    tree.rmdir("made")
