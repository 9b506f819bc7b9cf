"""What several tests need."""

import os
import subprocess

import pytest

COMMAND = os.environ.get("PARITAS_COMMAND", "paritas")


@pytest.fixture
def make_volume(tmp_path):
    """A function that makes a volume of `disks` folders with a code, and returns the path of its file."""

    def make(disks, code):
        nodes = [f"{tmp_path}/disk{disk}" for disk in range(disks)]
        [os.mkdir(node) for node in nodes]
        path = tmp_path / "volume.toml"
        command = [COMMAND, "volume", "init", path, f"--code={code}"]
        arguments = [f"--node={node}" for node in nodes]
        subprocess.run([*command, *arguments], check=True, capture_output=True)
        return path

    return make
