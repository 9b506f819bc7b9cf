"""Parity beside files that stay where they are."""

import os
import signal
from contextlib import contextmanager

import paritas
import pytest


@pytest.fixture
def photos(tmp_path):
    root = tmp_path / "photos"
    (root / "2005").mkdir(parents=True)
    for number in range(5):
        (root / "2005" / f"{number}.jpg").write_bytes(os.urandom(20_000))
    return root


def overwrite(path, at):
    """Overwrites some bytes. To the system this is the work of a program, not of a disk."""
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(bytes(100))


def test_damage_is_found_and_repaired(photos):
    made = paritas.protect(photos, redundancy="50%", sync=False)
    assert (made.files, made.bytes, made.skipped, made.warnings) == (5, 100_000, [], [])
    assert all(path.is_file() for path in made.parity_files)
    [known] = paritas.info(photos)
    assert (known.id, known.root, known.files, known.redundancy) == (made.id, photos, 5, "50%")
    assert [report.status for report in paritas.verify(photos)] == ["intact"]

    one, two = photos / "2005" / "1.jpg", photos / "2005" / "2.jpg"
    before = one.read_bytes(), two.read_bytes()
    overwrite(one, 5_000)
    two.unlink()
    [report] = paritas.verify([photos])
    assert (report.status, report.files, report.intact_files) == ("repairable", 5, 3)
    found = {finding.path: finding for finding in report.findings if finding.path.suffix == ".jpg"}
    assert (found[one].state, found[two].state) == ("changed", "missing")
    assert any(start <= 5_000 < end for start, end in found[one].ranges)

    [would] = paritas.repair(photos, dry_run=True)
    assert two in would.restored and one not in would.restored and not two.exists()
    [done] = paritas.repair(photos, restore_changed=True, sync=False)
    assert done.status == "repairable" and {one, two} <= set(done.restored)
    assert (one.read_bytes(), two.read_bytes()) == before
    assert [report.status for report in paritas.verify(photos)] == ["intact"]


def test_what_cannot_be_restored_is_raised_after_the_rest(photos):
    paritas.protect(photos, redundancy="5%", sync=False)
    for number in range(1, 5):
        (photos / "2005" / f"{number}.jpg").unlink()
    assert [report.status for report in paritas.verify(photos)] == ["lost"]
    with pytest.raises(paritas.LossError, match="too few blocks are left for .*jpg and 3 others"):
        paritas.repair(photos, sync=False)


def test_settings_are_the_commands(photos, tmp_path):
    parity = tmp_path / "parity"
    parity.mkdir()
    settings = {"parity_dirs": parity, "exclude": ["0.jpg", "*.none"], "label": "old", "sync": False}
    made = paritas.protect(photos, **settings)
    assert (made.files, made.unmatched) == (4, ["*.none"])
    assert {path.parent for path in made.parity_files} == {parity}
    [known] = paritas.info([photos, parity])
    assert known.label == "old" and known.exclude == ["0.jpg", "*.none"]
    with pytest.raises(paritas.StorageError):
        paritas.protect(photos, **settings)
    assert paritas.protect(photos, force=True, **settings).files == 4
    with pytest.raises(paritas.ParameterError, match="^`exclude`: .*unclosed"):
        paritas.protect(photos, exclude="[")
    with pytest.raises(paritas.ParameterError, match="percentage"):
        paritas.protect(photos, redundancy="a lot")


def test_changes_are_followed(photos):
    made = paritas.protect(photos, redundancy="50%", sync=False)
    [report] = paritas.update(photos, sync=False)
    assert (report.id, report.updated, report.kept, report.parity_files) == (made.id, "nothing", 5, [])
    (photos / "2005" / "new.jpg").write_bytes(os.urandom(30_000))
    (photos / "2005" / "0.jpg").unlink()
    with pytest.raises(paritas.StorageError, match="`update` updates that protection"):
        paritas.protect(photos, sync=False)
    [report] = paritas.update([photos], checksum=True, sync=False)
    assert report.updated in ("layer", "anew") and report.kept == 4 and report.parity_files
    assert ([path.name for path in report.added], report.changed) == (["new.jpg"], [])
    assert [path.name for path in report.gone] == ["0.jpg"]
    assert [report.status for report in paritas.verify(photos)] == ["intact"]


def test_an_update_of_too_much_needs_consent(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    for number in range(40):
        (root / str(number)).write_bytes(os.urandom(1000))
    paritas.protect(root, sync=False)
    for number in range(30):
        (root / str(number)).unlink()
    with pytest.raises(paritas.StorageError, match="accept_changes"):
        paritas.update(root, sync=False)
    [report] = paritas.update(root, accept_changes=True, sync=False)
    assert len(report.gone) == 30


def test_what_is_not_protected_is_told(photos):
    for act in (paritas.info, paritas.verify, paritas.repair, paritas.update):
        with pytest.raises(paritas.NotFoundError):
            act(photos)
    (photos / ".paritas").mkdir()  # an interrupted run may leave it
    with pytest.raises(paritas.NotFoundError, match="there is no protection"):
        paritas.verify(photos)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file that takes longer to protect, with as much parity, than signals come. It has no holes, which are not read."""
    path = tmp_path_factory.mktemp("large") / "large"
    with open(path, "wb") as file:
        for _ in range(128):
            file.write(os.urandom(1 << 20) * 8)
    return path


@pytest.fixture
def root(large, tmp_path):
    (tmp_path / "root").mkdir()
    os.link(large, tmp_path / "root" / "large")
    return tmp_path / "root"


@contextmanager
def interrupted(firings):
    """Sends signals while the block runs: soon, and then every 0.05 s. The last of `firings` raises KeyboardInterrupt in it."""
    fired = []

    def fire(*_):
        fired.append(None)
        if len(fired) == firings:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, fire)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(fired) == firings


@pytest.mark.parametrize("threads, firings", [(1, 1), (2, 1), (1, 4), (2, 4)])
def test_an_interrupt_ends_protection(root, threads, firings):
    with interrupted(firings):
        paritas.protect(root, redundancy="100%", threads=threads, sync=False)
    assert [path for path in root.rglob("*") if path.is_file()] == [root / "large"]


def test_an_interrupt_ends_an_update(root, tmp_path):
    (root / "large").rename(tmp_path / "large")
    (root / "small").write_bytes(b"small")
    paritas.protect(root, redundancy="100%", sync=False)
    before = sorted(root.rglob("*"))
    (tmp_path / "large").rename(root / "large")
    with interrupted(4):
        paritas.update(root, sync=False)
    assert sorted(root.rglob("*")) == sorted([*before, root / "large"])
    assert [report.status for report in paritas.verify(root, quick=True)] == ["intact"]
