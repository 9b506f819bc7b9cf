"""What several tests need."""

import os
import subprocess

import pytest

COMMAND = os.environ.get("PARITAS_COMMAND", "paritas")


@pytest.fixture
def make_volume(tmp_path):
    """A function that makes a volume of `disks` folders with a code, in the folder `where`, and returns the path of its
    file."""

    def make(disks, code, where=tmp_path):
        nodes = [where / f"disk{disk}" for disk in range(disks)]
        [node.mkdir(parents=True) for node in nodes]
        path = where / "volume.toml"
        command = [COMMAND, "volume", "init", path, f"--code={code}"]
        arguments = [f"--node={node}" for node in nodes]
        subprocess.run([*command, *arguments], check=True, capture_output=True)
        return path

    return make
