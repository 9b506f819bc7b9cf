"""The README's examples, as they stand there."""

import os
import re
import subprocess
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)


def test_there_are_two():
    assert len(EXAMPLES) == 2


def test_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    nodes = [f"disk{disk}" for disk in range(6)]
    [os.mkdir(node) for node in nodes]
    command = [os.environ.get("PARITAS_COMMAND", "paritas"), "volume", "init", "photos.toml"]
    arguments = ["--code=4+2", *(f"--node={node}" for node in nodes)]
    subprocess.run([*command, *arguments], check=True, capture_output=True)
    for example in EXAMPLES:
        exec(compile(example, README, "exec"), {"photo": os.urandom(123_457)})
    assert capsys.readouterr().out == "1 objects read, [] are damaged\n"


@pytest.mark.parametrize("spec", ["zfec:k=3,m=2", "isal-rs:k=10,m=4", "isal-cauchy:k=10,m=4"])
def test_the_codes_of_the_table_exist(spec):
    import paritas

    assert paritas.Codec(spec).code.tolerance >= 2
