"""The README's examples, as they stand there."""

import os
import re
import subprocess
from pathlib import Path

import numpy
import paritas
import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)

#: What `zfec.Encoder(3, 5).encode([b"abcd", b"efgh", b"ijkl"])` returns.
ZFEC = [b"abcd", b"efgh", b"ijkl", b"qrs4", b"ABC\xd9"]


def test_there_are_two():
    assert len(EXAMPLES) == 2


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nodes = [f"disk{disk}" for disk in range(6)]
    [os.mkdir(node) for node in nodes]
    command = [os.environ.get("PARITAS_COMMAND", "paritas"), "volume", "init", "tank.toml"]
    arguments = ["--code=4+2", *(f"--node={node}" for node in nodes)]
    subprocess.run([*command, *arguments], check=True, capture_output=True)
    for example in EXAMPLES:
        exec(compile(example, README, "exec"), {"photo": os.urandom(123_457), "__name__": "__main__"})
    assert capsys.readouterr().out == "1 objects read, [] are damaged\n"


def test_the_example_of_embedding_runs():
    text = (README.parent / "docs" / "embedding.md").read_text()
    [example] = re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    codec = paritas.Codec("10+4")
    names = {"numpy": numpy, "prepared": codec.prepared()}
    exec(compile(example, "embedding.md", "exec"), names)
    assert codec.verify(names["shards"]) == []
    starts = {shard.ctypes.data for shard in names["shards"]}
    lines = (max(starts) - min(starts)) / 13 / 64
    assert lines % 2 == 1


def test_blocks_and_parity_are_what_zfec_returns():
    """The rows of zfec in `python/README.md`, with a case that zfec itself has computed."""
    blocks = [b"abcd", b"efgh", b"ijkl"]
    codec = paritas.Codec("zfec:k=3,m=2")
    shards = [*blocks, *codec.encode(blocks)]
    assert [bytes(shard) for shard in shards] == ZFEC
    assert codec.reconstruct([None, *shards[1:4], None])[:3] == blocks


@pytest.mark.parametrize("spec", ["zfec:k=3,m=2", "isal-rs:k=10,m=4", "isal-cauchy:k=10,m=4"])
def test_the_codes_of_the_table_exist(spec):
    assert paritas.Codec(spec).code.tolerance >= 2
