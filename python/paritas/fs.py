"""A file system of `fsspec` over a volume.

The package registers the protocol `paritas`, so that pandas, dask and others read and write objects
by URLs. The volume file is named by the storage option ``volume``, or by the environment variable
``PARITAS_VOLUME``:

>>> import pandas  # doctest: +SKIP
>>> pandas.read_csv("paritas://tables/a.csv", storage_options={"volume": "photos.toml"})  # doctest: +SKIP

Objects are written whole: a file that is open for writing appears when it is closed. If an exception
ends the `with` block of a binary file, nothing appears. Files in text mode are closed by Python's own
wrapper, which stores what was written so far, as on all file systems of `fsspec`.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

from . import Volume
from .errors import ParameterError

#: Bytes that a file keeps in memory before it writes them to a temporary file.
_IN_MEMORY = 16 << 20


class VolumeFileSystem(AbstractFileSystem):
    """The objects of a volume as files."""

    protocol = "paritas"
    root_marker = ""

    def __init__(self, volume: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        path = volume or os.environ.get("PARITAS_VOLUME")
        if path is None:
            raise ParameterError(
                "no volume: give the storage option `volume` or set PARITAS_VOLUME"
            )
        self.volume = Volume.open(path)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path).strip("/")
        prefix = path + "/" if path else ""
        entries: dict[str, dict[str, Any]] = {}
        for name, length in self.volume.list(prefix):
            first, slash, _rest = name[len(prefix) :].partition("/")
            full = prefix + first
            kind = "directory" if slash else "file"
            entries[full] = {"name": full, "size": 0 if slash else length, "type": kind}
        if not entries and path:
            entries[path] = self._file_info(path)
        found = [entries[name] for name in sorted(entries)]
        return found if detail else [entry["name"] for entry in found]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path).strip("/")
        try:
            return self._file_info(path)
        except FileNotFoundError:
            if path and not self.volume.list(path + "/"):
                raise
        return {"name": path, "size": 0, "type": "directory"}

    def _file_info(self, path: str) -> dict[str, Any]:
        if not path:
            raise FileNotFoundError(path)
        info = self.volume.stat(path)
        return {"name": path, "size": info.length, "type": "file", "blake3": info.digest}

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        if start is None and end is None:
            return self.volume.get(path)
        length = self.volume.stat(path).length
        first, last, _step = slice(start, end).indices(length)
        return self.volume.get(path, first, max(first, last))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        self.volume.put(path, value)

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        if not os.path.isdir(lpath):
            self.volume.put_file(self._strip_protocol(rpath), lpath)

    def get_file(self, rpath: str, lpath: str, **_: Any) -> None:
        if self.isdir(rpath):
            os.makedirs(lpath, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(lpath) or ".", exist_ok=True)
            self.volume.get_file(self._strip_protocol(rpath), lpath, force=True)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        if not self.isdir(path1):
            with self.open(path1) as source:
                self.volume.put(self._strip_protocol(path2), source)

    def rm_file(self, path: str) -> None:
        self.volume.remove(self._strip_protocol(path))

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        found = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        # A directory is gone with its last object.
        for name in [name for name in found if not self.isdir(name)]:
            self.rm_file(name)

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Does nothing: directories are parts of names."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Does nothing: directories are parts of names."""

    def rmdir(self, path: str) -> None:
        """Does nothing: a directory is gone with its last object."""

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb":
            return _ObjectReader(self, path, mode, **options)
        if mode in ("wb", "xb"):
            if mode == "xb" and self.exists(path):
                raise FileExistsError(path)
            return _ObjectWriter(self.volume, path)
        raise ParameterError(f"objects are opened with mode rb, wb or xb; got {mode}")


class _ObjectReader(AbstractBufferedFile):
    """An object that is read by ranges."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        volume: Volume = self.fs.volume
        return volume.get(self.path, start, end)


class _ObjectWriter(tempfile.SpooledTemporaryFile[bytes]):
    """An object that is stored when it is closed. After an exception in a `with` block it is not."""

    def __init__(self, volume: Volume, name: str) -> None:
        super().__init__(max_size=_IN_MEMORY, mode="w+b")
        self.volume, self.path = volume, name

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            super().close()

    def discard(self) -> None:
        """Gives up what was written."""
        super().close()

    def close(self) -> None:
        if not self.closed:
            self.seek(0)
            try:
                self.volume.put(self.path, self)
            finally:
                super().close()
