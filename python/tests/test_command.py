"""The command that the package has."""

import os
import signal
import subprocess
import sys
import time

import paritas
import pytest

HERE = [sys.executable, "-m", "paritas"]


def run(*arguments, **options):
    return subprocess.run([*HERE, *arguments], capture_output=True, text=True, timeout=60, **options)


def test_exit_codes_are_those_of_the_command(tmp_path):
    assert run("--version").stdout.startswith("paritas ")
    assert run("no-such-command").returncode == 3
    assert run("verify", tmp_path).returncode == 4
    ran = run("--json", "info", tmp_path / "missing")
    assert ran.returncode != 0 and ran.stderr.startswith('{"type":"error"')


def test_it_encodes_what_the_package_decodes(tmp_path):
    source = tmp_path / os.fsdecode(b"photo \xff")
    source.write_bytes(os.urandom(100_000))
    ran = run("encode", source, "--out", tmp_path / "shards", "--no-sync")
    assert ran.returncode == 0, ran
    [report] = paritas.verify_files(tmp_path / "shards")
    (tmp_path / "other").mkdir()
    paritas.encode_file(source, tmp_path / "other", sync=False)
    [other] = paritas.verify_files(tmp_path / "other")
    assert report.code == other.code == paritas.Code("4+2").spec, "one default code"
    paritas.decode_file(tmp_path / "shards", tmp_path / "back", sync=False)
    assert (tmp_path / "back").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_an_interrupt_ends_it_unless_it_is_ignored(handler, tmp_path):
    source, hold = os.pipe()
    command = subprocess.Popen(
        [*HERE, "encode", "-", "--out", tmp_path / "shards"],
        stdin=source,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
    )
    os.close(source)
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    time.sleep(0.2)
    os.close(hold)
    command.communicate(timeout=60)
    assert (command.returncode == -signal.SIGINT) == (handler == signal.SIG_DFL)
