"""Fleets of Ray tasks. `scripts/test-python --ray` installs Ray and runs this."""

import os
import signal
import subprocess

import pytest
from paritas import Volume, fleet

ray = pytest.importorskip("ray", reason="Ray is not installed: scripts/test-python --ray")


def test_a_fleet_goes_on_after_a_worker_of_ray_died(tmp_path):
    nodes = [tmp_path / f"disk{disk}" for disk in range(6)]
    [node.mkdir() for node in nodes]
    path = tmp_path / "volume.toml"
    command = [os.environ.get("PARITAS_COMMAND", "paritas"), "volume", "init", path, "--code=4+2"]
    subprocess.run([*command, *(f"--node={node}" for node in nodes)], check=True)
    source = tmp_path / "source"
    source.write_bytes(os.urandom(50_000))
    sources = [(f"objects/{number:03}", source) for number in range(500)]
    paths = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    ray.init(num_cpus=2, log_to_driver=False, runtime_env={"env_vars": paths})
    killed = []

    def kill_one(done, of):
        if done >= 250 and not killed:
            # A worker between two tasks has another name.
            found = subprocess.run(["pgrep", "-f", "ray::work"], capture_output=True, text=True)
            killed.extend(int(pid) for pid in found.stdout.split()[:1])
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    settings = {"workers": 2, "engine": "ray"}
    try:
        report = fleet.run(path, "encode", sources=sources, progress=kill_one, **settings)
        assert killed and report.is_done and len(report.names("changed")) == 500
        report = fleet.run(path, "scrub", **settings)
        assert len(report.names("unchanged")) == 500
    finally:
        ray.shutdown()
    volume = Volume.open(path)
    assert [name for name, _ in volume.list("objects/")] == [name for name, _ in sources]
    assert volume.list(fleet.JOURNALS) == []
