"""Shard files."""

import copy
import errno
import os
import pickle

import paritas
import pytest


@pytest.fixture
def encoded(tmp_path):
    source = tmp_path / "photo.raw"
    source.write_bytes(os.urandom(300_000))
    disks = [tmp_path / f"disk{disk}" for disk in range(3)]
    [disk.mkdir() for disk in disks]
    shards = paritas.encode_file(source, disks, paritas.Code("4+2"), sync=False)
    return source, disks, shards


def test_a_lost_disk_is_survived_and_repaired(encoded, tmp_path):
    source, disks, shards = encoded
    assert len(shards) == 6
    for shard in disks[1].iterdir():
        shard.unlink()
    [report] = paritas.verify_files(disks)
    assert (report.status, report.tolerable, report.code[:6]) == ("repairable", 0, "cauchy")
    assert sorted(shard.state for shard in report.shards) == ["intact"] * 4 + ["missing"] * 2
    target = tmp_path / "again.raw"
    paritas.decode_file(disks, target, sync=False)
    assert target.read_bytes() == source.read_bytes()
    with pytest.raises(paritas.StorageError):
        paritas.decode_file(disks, target, sync=False)
    [repaired] = paritas.repair_files(disks, sync=False)
    assert len(repaired.repaired) == 2
    [report] = paritas.verify_files(disks, deep=True)
    assert (report.status, report.lost, report.reason) == ("intact", [], None)


def test_too_many_losses_are_told(encoded, tmp_path):
    _, disks, shards = encoded
    for shard in shards[:3]:
        os.unlink(shard)
    [report] = paritas.verify_files(disks)
    assert report.status == "lost" and report.lost == [(0, 300_000)]
    with pytest.raises(paritas.LossError):
        paritas.decode_file(disks, tmp_path / "again.raw")
    assert not (tmp_path / "again.raw").exists()


def test_wrong_paths_are_told(tmp_path):
    with pytest.raises(paritas.ParameterError, match=f"{tmp_path} is a directory"):
        paritas.encode_file(tmp_path, tmp_path)
    for wrong in (None, 5, [5], {"a": "b"}):
        with pytest.raises(TypeError, match=f"a path or a list of paths is needed; got {type(wrong).__name__}"):
            paritas.verify_files(wrong)


def test_what_a_path_raises_is_not_taken_for_a_wrong_type(tmp_path):
    class Interrupted:
        def __init__(self, error):
            self.error = error

        def __fspath__(self):
            raise self.error

    for error in (KeyboardInterrupt, OSError, RuntimeError):
        for act in [
            lambda path: paritas.verify_files([path]),
            lambda path: paritas.info(path),
            lambda path: paritas.protect([path]),
            lambda path: paritas.Volume.create(tmp_path / "v.toml", [path]),
        ]:
            with pytest.raises(error):
                act(Interrupted(error()))
    with pytest.raises(KeyboardInterrupt):
        paritas.Code.from_matrix([[Bit()]], k=1, m=1)


class Bit:
    def __index__(self):
        raise KeyboardInterrupt


def test_no_shards_are_an_error(tmp_path):
    missing = tmp_path / "missing"
    for act in [
        lambda paths: paritas.decode_file(paths, tmp_path / "file"),
        paritas.verify_files,
        paritas.repair_files,
    ]:
        with pytest.raises(paritas.NotFoundError):
            act([tmp_path])
        with pytest.raises(FileNotFoundError, match="missing"):
            act([missing])
    with pytest.raises(OSError):
        paritas.encode_file(tmp_path / "missing", [tmp_path])


def test_one_lost_object_does_not_keep_the_others_from_repair(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    for name, lost in [("a", 3), ("b", 1), ("c", 1)]:
        (tmp_path / name).write_bytes(os.urandom(10_000))
        for shard in paritas.encode_file(tmp_path / name, disk, "4+2", sync=False)[:lost]:
            os.unlink(shard)
    with pytest.raises(paritas.LossError):
        paritas.repair_files(disk, sync=False)
    states = {report.name: report.status for report in paritas.verify_files(disk)}
    assert states == {"a": "lost", "b": "intact", "c": "intact"}


def test_what_cannot_be_opened_is_not_repaired(encoded, tmp_path):
    _, disks, shards = encoded
    os.unlink(shards[2])
    os.symlink(shards[2], shards[2])
    os.unlink(shards[5])
    with pytest.raises(paritas.StorageError, match="shard 2 could not be opened, and was left unchanged"):
        paritas.repair_files(disks, sync=False)
    assert os.path.exists(shards[5]) and os.path.islink(shards[2])
    os.unlink(shards[2])
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(paritas.StorageError):
        paritas.repair_files([*disks, loop], sync=False)
    assert os.path.exists(shards[2]), "all else is repaired"


def test_repair_makes_a_folder_that_is_gone(encoded):
    _, disks, shards = encoded
    gone = disks[-1]
    lost = [shard for shard in shards if os.path.dirname(shard) == str(gone)]
    for shard in lost:
        os.unlink(shard)
    gone.rmdir()
    paritas.repair_files(disks, sync=False)
    assert lost and all(map(os.path.exists, lost))


def test_repair_writes_a_lost_shard_that_is_named_beside_the_others(encoded):
    _, _, shards = encoded
    os.unlink(shards[5])
    [repaired] = paritas.repair_files(shards, sync=False)
    assert repaired.repaired == [5] and not os.path.isdir(shards[5])


def test_what_the_system_refuses_is_named(tmp_path):
    with pytest.raises(paritas.NotFoundError) as error:
        paritas.encode_file(tmp_path / "missing", tmp_path)
    assert error.value.errno == errno.ENOENT
    assert error.value.filename == str(tmp_path / "missing")


def test_errors_of_the_system_have_their_numbers(tmp_path):
    source = tmp_path / "a"
    source.write_bytes(b"hello")
    with pytest.raises(paritas.NotFoundError) as error:
        paritas.encode_file(source, tmp_path / "none")
    assert error.value.errno == errno.ENOENT
    paritas.encode_file(source, tmp_path, "2+1")
    with pytest.raises(paritas.NotFoundError, match="No such file or directory$") as error:
        paritas.decode_file(tmp_path, tmp_path / "none" / "b")
    assert error.value.errno == errno.ENOENT
    loop, none = tmp_path / "loop", tmp_path / "none"
    loop.symlink_to(loop)
    for act in (lambda paths: paritas.decode_file(paths, tmp_path / "b"), paritas.verify_files, paritas.repair_files):
        with pytest.raises(paritas.StorageError) as error:
            act([none, loop])
        assert (error.value.kind, error.value.errno) == ("Io", errno.ELOOP)
        with pytest.raises(paritas.NotFoundError, match="none cannot be read: No such file or directory$") as error:
            act(none)
        assert error.value.errno == errno.ENOENT
    with pytest.raises(paritas.NotFoundError, match="cannot be read: Not a directory$"):
        paritas.verify_files(source / "b")
    with pytest.raises(paritas.NotFoundError) as error:
        paritas.info(tmp_path / "none")
    assert error.value.errno == errno.ENOENT
    # No directories for parity are those by default.
    paritas.protect(source, parity_dirs=[])


def test_a_path_that_is_not_there_is_not_passed_over(tmp_path):
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "shards").mkdir()
    paritas.encode_file(tmp_path / "file", tmp_path / "shards", "2+1")
    paths = [tmp_path / "shards", tmp_path / "typo"]
    with pytest.raises(paritas.NotFoundError, match="typo"):
        paritas.verify_files(paths)
    paritas.decode_file(paths, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"content"
    [lost] = (tmp_path / "shards").glob("*.1of3.*")
    lost.unlink()
    [report] = paritas.repair_files(paths[0])
    assert (report.repaired, report.written) == ([1], [lost])
    [verified] = paritas.verify_files(paths[0])
    assert verified.id == report.id and verified == paritas.verify_files(paths[0])[0]


@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_copies_of_errors_keep_number_and_file(tmp_path, copied):
    with pytest.raises(paritas.NotFoundError) as error:
        paritas.encode_file(tmp_path / "none", tmp_path)
    other = copied(error.value)
    assert (other.errno, other.args, other.kind) == (errno.ENOENT, error.value.args, error.value.kind)
    assert (other.filename, str(other)) == (str(tmp_path / "none"), str(error.value))
    other = copied(paritas.StorageError(errno.EXDEV, "another disk", "a", None, "b"))
    assert (other.filename, other.filename2, str(other)) == ("a", "b", "[Errno 18] another disk: 'a' -> 'b'")
    plain = copied(paritas.LossError("lost"))
    assert (str(plain), vars(plain)) == ("lost", {})


def test_arguments_that_mean_nothing_are_named(tmp_path):
    for call in (paritas.info, paritas.verify, paritas.verify_files):
        with pytest.raises(paritas.ParameterError, match="at least one path"):
            call([])
    for call in (lambda path: paritas.encode_file(path, tmp_path), paritas.verify_files, paritas.info):
        with pytest.raises(paritas.ParameterError, match="NUL|nul"):
            call("a\0b")
    with pytest.raises(TypeError, match="pattern"):
        paritas.protect(tmp_path, exclude=1)


def test_one_pattern_need_not_be_a_list(tmp_path):
    for name in ("a.jpg", "b.tmp"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    paritas.protect(tmp_path, exclude="*.tmp")
    [info] = paritas.info(tmp_path)
    assert (info.exclude, info.files) == (["*.tmp"], 1)
