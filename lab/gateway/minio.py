"""Builds the programs in Go that speak S3 by minio-go."""

import pathlib
import shutil

import common
import tools

HERE = pathlib.Path(__file__).resolve().parent
BUILD = tools.target() / "gateway-go"
MODULE = "github.com/minio/minio-go/v7@v7.4.1"


def program(name: str) -> pathlib.Path:
    """Returns the program of `NAME.go`, built anew if its source, or this file, which has the version of minio-go, is newer."""
    folder, source = BUILD / name, HERE / f"{name}.go"
    built = folder / name
    if not built.exists() or built.stat().st_mtime < max(path.stat().st_mtime for path in (source, pathlib.Path(__file__))):
        tools.go()
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / "main.go")
        (folder / "go.mod").write_text(f"module {name}\n\ngo 1.23\n")
        common.run("go", "get", MODULE, cwd=folder)
        common.run("go", "build", "-o", name, ".", cwd=folder)
    return built
