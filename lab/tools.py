"""Installs what measurements need if it is missing: the tools of a build, packages of Debian and of PyPI, and our command."""

import functools
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import venv

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The folder of the environments, by their names, in the one that cargo builds in.
TOOLS = "lab-tools"
# The newest ISA-L that Debian has: Debian 13's. Debian 12 has 2.30, which is from before GFNI.
ISAL = "2.31.1-1.1"
# The zfec of PyPI.
ZFEC = "1.6.0.0"


class Missing(SystemExit):
    """Something cannot be installed. This ends a program that does not catch it."""


@functools.cache
def target() -> pathlib.Path:
    """Returns the folder that cargo builds in, as `target_folder` of scripts/setup does. Where no cargo can read our manifest yet, that is
    the usual one."""
    ask = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
    try:
        return pathlib.Path(json.loads(subprocess.run(ask, cwd=ROOT, capture_output=True, check=True).stdout)["target_directory"])
    except (OSError, subprocess.CalledProcessError):
        return (ROOT / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()


@functools.cache
def toolchain() -> None:
    """Installs what a build needs as scripts/setup does, and lets this process find it."""
    setup = ["bash", "-c", '. scripts/setup >&2 && printf %s "$PATH"']
    done = subprocess.run(setup, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Missing("scripts/setup cannot install what a build needs")
    os.environ["PATH"] = done.stdout


@functools.cache
def go() -> None:
    """Installs Go if it is missing or too old, and lets this process find it."""
    toolchain()
    get = ["bash", "-c", '. scripts/setup >&2 && get_go >&2 && printf %s "$PATH"']
    done = subprocess.run(get, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Missing("Go cannot be installed")
    os.environ["PATH"] = done.stdout


def paritas(named: str | pathlib.Path | None = None) -> pathlib.Path:
    """Returns the command that is named, or our command, optimised, built of this tree."""
    if named:
        if not pathlib.Path(named).is_file():
            raise SystemExit(f"there is no command {named}")
        return pathlib.Path(named).resolve()
    toolchain()
    if subprocess.run(["cargo", "build", "--release", "--quiet", "-p", "paritas-cli"], cwd=ROOT).returncode:
        raise Missing("cargo cannot build paritas")
    return target() / "release" / "paritas"


def debian(*packages: str) -> None:
    """Installs the packages of Debian that are missing. Only at a terminal may sudo ask for a password."""
    root = [] if os.geteuid() == 0 else ["sudo"] if sys.stdin.isatty() else ["sudo", "-n"]
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    try:
        packages = [name for name in packages if subprocess.run(["dpkg", "-s", name], capture_output=True).returncode]
        if not packages:
            return
        subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*apt, "install", "-y", "--no-install-recommends", *packages], check=True, stdout=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"as root, please run: apt-get install {' '.join(packages)}") from error


def debian_of(suite: str, *packages: str) -> pathlib.Path:
    """Returns a folder with packages of another suite of Debian, unpacked beside the system's own. `packages` are NAME=VERSION."""
    folder = target() / TOOLS / f"{suite}-{'-'.join(packages)}"
    if folder.exists():
        return folder
    state = folder.with_suffix(".state")
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    try:
        mirrors = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
        mirror = next(uri for uri in mirrors if "security" not in uri)
        (state / "sources").write_text(f"deb {mirror} {suite} main\n")
        own = {"Dir::Etc::sourcelist": state / "sources", "Dir::Etc::sourceparts": "/dev/null",
               "Dir::State::lists": state / "lists", "Dir::Cache": state / "cache"}
        apt = ["apt-get", "-qq", *(word for name, value in own.items() for word in ("-o", f"{name}={value}"))]
        subprocess.run([*apt, "update"], check=True)
        subprocess.run([*apt, "download", *packages], check=True, cwd=state, stderr=subprocess.DEVNULL)
        for package in state.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, state / "root"], check=True)
    except (OSError, StopIteration, subprocess.CalledProcessError) as error:
        raise Missing(f"Debian's suite {suite} cannot be had for {' '.join(packages)}") from error
    (state / "root").rename(folder)
    shutil.rmtree(state)
    return folder


def isal() -> tuple[pathlib.Path, pathlib.Path]:
    """Returns the folders of the headers and of the libraries of the newest ISA-L."""
    root = debian_of("trixie", f"libisal2={ISAL}", f"libisal-dev={ISAL}") / "usr"
    return root / "include", next(root.glob("lib/*/libisal.so")).parent


def environment(name: str, *packages: str) -> pathlib.Path:
    """Returns the folder of the programs of an environment that has just these packages of PyPI."""
    folder, wanted = target() / TOOLS / name, " ".join(packages)
    # Written when all is there.
    ready = folder / "ready"
    if not ready.exists() or ready.read_text() != wanted:
        print(f"installing {wanted} in {folder}", file=sys.stderr, flush=True)
        # Debian has the module for environments in a package of its own.
        if importlib.util.find_spec("ensurepip") is None:
            debian("python3-venv")
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", *packages], check=True, stdout=sys.stderr)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Missing(f"{wanted} of PyPI cannot be installed in {folder}") from error
        ready.write_text(wanted)
    return folder / "bin"


def zfec() -> pathlib.Path:
    """Returns the folder of zfec's programs, and of a Python that has zfec."""
    return environment(f"zfec-{ZFEC}", f"zfec=={ZFEC}")
