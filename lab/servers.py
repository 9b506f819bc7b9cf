"""S3 servers of other projects, built from their sources. Each version has a folder of its own, so what runs is what VERSIONS says."""

import os
import pathlib
import subprocess
import sys

import tools

VERSIONS = {"versitygw": "v1.8.0", "rclone": "v1.71.2", "s3s-fs": "0.13.0"}
# Those that Go builds, and their modules.
MODULES = {"versitygw": "github.com/versity/versitygw/cmd/versitygw", "rclone": "github.com/rclone/rclone"}
FOLDER = pathlib.Path.home() / ".cache" / "paritas" / "services"


def program(name: str) -> pathlib.Path:
    """Returns the program of a server, built if it is missing, which takes minutes."""
    folder = FOLDER / f"{name}-{VERSIONS[name]}"
    built = folder / "bin" / name
    if not built.exists():
        print(f"building {name} {VERSIONS[name]} in {folder}", file=sys.stderr, flush=True)
        if build(name, folder).returncode:
            raise tools.Missing(f"{name} {VERSIONS[name]} cannot be built")
    return built


def build(name: str, folder: pathlib.Path) -> subprocess.CompletedProcess:
    """Builds a server, whose program comes into `bin` of the folder."""
    if name in MODULES:
        tools.go()
        environment = {**os.environ, "GOBIN": str(folder / "bin")}
        return subprocess.run(["go", "install", f"{MODULES[name]}@{VERSIONS[name]}"], env=environment)
    tools.toolchain()
    cargo = ["cargo", "install", "--quiet", "--locked", name, "--version", VERSIONS[name], "--features", "binary"]
    return subprocess.run([*cargo, "--root", folder], stdout=sys.stderr)
