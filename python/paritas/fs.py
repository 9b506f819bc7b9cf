"""A file system of `fsspec` over a volume.

The package registers the protocol `paritas`, so that pandas, dask and others read and write objects
by URLs. The volume file is named by the storage option ``volume``, or by the environment variable
``PARITAS_VOLUME``:

>>> import pandas  # doctest: +SKIP
>>> pandas.read_csv("paritas://tables/a.csv", storage_options={"volume": "photos.toml"})  # doctest: +SKIP

A path is the name of an object. Slashes at both ends of a path are dropped, so ``/tables/a.csv`` is
``tables/a.csv``.

Objects are written whole: a file that is open for writing appears when it is closed. If an exception
ends the `with` block of a file that the method `open` of the file system returned, nothing appears.
This also holds in text mode and with ``compression``. Three cases are different:

- `fsspec.open`, which pandas and others use, closes its files without telling them of the exception,
  so the bytes written so far are stored. Within ``with fs.transaction`` they are not stored.
- Other wrappers, such as a `gzip.GzipFile` around a file, do not tell the file of the exception either.
- A file that is dropped without being closed is stored as it is when Python frees it.

Within ``with fs.transaction``, objects appear and are removed when the block ends, one after the other.
If an exception ends the block, or if one of the objects is refused, the remaining changes are dropped.

A file that is open for reading shows one version of its object. If the object is replaced meanwhile,
reading raises `StorageError`; bytes of two versions are never mixed.

Folders are parts of names: a folder exists as long as there is an object whose name begins with it.
Methods for a single object raise `IsADirectoryError` for a folder. `cat`, `get`, `put`, `copy`, `mv`
and `rm` accept folders with ``recursive=True``.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem, make_instance
from fsspec.transaction import Transaction
from fsspec.utils import isfilelike

from . import ObjectInfo, Volume
from .errors import NotFoundError, ParameterError

#: Bytes that a file keeps in memory before it writes them to a temporary file.
_IN_MEMORY = 16 << 20

#: The options of text mode.
_TEXT = ("encoding", "errors", "newline")


class _FromEnvironment:
    """The volume file that `PARITAS_VOLUME` currently names."""

    def __get__(self, instance: Any, owner: Any) -> str | None:
        path = os.environ.get("PARITAS_VOLUME")
        return path and os.path.abspath(path)


class _WorkingFolder:
    """The current working folder, to which the path of a volume file may be relative."""

    def __get__(self, instance: Any, owner: Any) -> str | None:
        try:
            return os.getcwd()
        except FileNotFoundError:
            return None


class _Transaction(Transaction):
    """Objects that appear and are removed together."""

    def complete(self, commit: bool = True) -> None:
        fs = self.fs
        try:
            super().complete(commit)
        finally:
            # If an object is refused, older versions of fsspec would hold back all later objects.
            fs._intrans, fs._transaction = False, None
            for file in self.files:
                file.discard()
            self.files.clear()


class VolumeFileSystem(AbstractFileSystem):
    """The objects of a volume as files."""

    protocol = "paritas"
    root_marker = ""
    transaction_type = _Transaction

    #: `fsspec` keeps file systems by their arguments, and by these.
    _named_by_environment = _FromEnvironment()
    _working_folder = _WorkingFolder()
    _extra_tokenize_attributes = ("_named_by_environment", "_working_folder")

    def __init__(self, volume: str | os.PathLike[str] | None = None, **options: Any) -> None:
        super().__init__(**options)
        path = volume or self._named_by_environment
        if not path:
            message = "no volume: give the storage option `volume` or set PARITAS_VOLUME"
            raise ParameterError(message)
        self._volume_file = os.path.abspath(path)
        self._opened = os.getpid(), Volume.open(self._volume_file)

    @property
    def volume(self) -> Volume:
        """The volume. A forked process, such as that of a data loader, opens it again."""
        process, volume = self._opened
        if process != os.getpid():
            volume = Volume.open(self._volume_file)
            self._opened = os.getpid(), volume
        return volume

    # When a file system is made again from the results of these two methods, the working folder and
    # the environment may have changed.

    def __reduce__(self) -> Any:
        options = {**self.storage_options, "volume": self._volume_file}
        return make_instance, (type(self), self.storage_args[1:], options)

    def to_dict(self, **options: Any) -> dict[str, Any]:
        told = super().to_dict(**options)
        return {**told, "args": self.storage_args[1:], "volume": self._volume_file}

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        stripped = super()._strip_protocol(path)
        # The paths of a list are stripped already.
        return stripped.strip("/") if isinstance(stripped, str) else stripped

    def _entries(self, path: str, depth: int | None) -> dict[tuple[str, str], dict[str, Any]]:
        """Returns the entries below a folder, down to a depth, by name and type. A name can be that of
        an object and also the beginning of other names: it is then both a file and a directory."""
        prefix = path + "/" if path else ""
        entries: dict[tuple[str, str], dict[str, Any]] = {}
        for name, length in self.volume.list(prefix):
            steps = name[len(prefix) :].split("/")
            for count in range(1, len(steps))[:depth]:
                folder = prefix + "/".join(steps[:count])
                entries[folder, "directory"] = _folder_info(folder)
            if depth is None or len(steps) <= depth:
                entries[name, "file"] = {"name": name, "size": length, "type": "file"}
        return entries

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        path = self._strip_protocol(path)
        entries = self._entries(path, 1)
        if not entries and path:
            entries[path, "file"] = self._file_info(path)
        found = [entries[key] for key in sorted(entries)]
        return found if detail else [entry["name"] for entry in found]

    def find(
        self,
        path: str,
        maxdepth: int | None = None,
        withdirs: bool = False,
        detail: bool = False,
        **_: Any,
    ) -> Any:
        """Returns the names of all objects below a folder, or with `detail` the known facts about each.
        It takes one listing of the volume."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError(f"maxdepth must be at least 1; got {maxdepth}")
        path = self._strip_protocol(path)
        entries = self._entries(path, maxdepth)
        if entries and path and withdirs:
            entries[path, "directory"] = _folder_info(path)
        if not entries and path:
            with suppress(FileNotFoundError):
                entries[path, "file"] = self._file_info(path)
        # If a name is both a file and a directory, the file is reported.
        kinds = ("directory", "file") if withdirs else ("file",)
        found = {name: entries[name, kind] for name, kind in sorted(entries) if kind in kinds}
        return found if detail else list(found)

    def du(
        self,
        path: str,
        total: bool = True,
        maxdepth: int | None = None,
        withdirs: bool = False,
        **_: Any,
    ) -> Any:
        found = self.find(path, maxdepth=maxdepth, withdirs=withdirs, detail=True)
        sizes = {name: entry["size"] for name, entry in found.items()}
        return sum(sizes.values()) if total else sizes

    def _kind(self, path: str) -> str | None:
        """Returns `file` or `directory`, or None if nothing has this name.

        Raises:
            StorageError: if too few nodes answer to decide.
        """
        try:
            return str(self.info(path)["type"])
        except (FileNotFoundError, ParameterError):
            return None

    def exists(self, path: str, **_: Any) -> bool:
        return self._kind(path) is not None

    def isfile(self, path: str) -> bool:
        return self._kind(path) == "file"

    def isdir(self, path: str) -> bool:
        return self._kind(path) == "directory"

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        path = self._strip_protocol(path)
        try:
            return self._file_info(path)
        except FileNotFoundError:
            if path and not self.volume.list(path + "/"):
                raise
        return _folder_info(path)

    def _file_info(self, path: str) -> dict[str, Any]:
        if not path:
            raise FileNotFoundError(path)
        return _object_info(self.volume.stat(path))

    def _object(self, path: str) -> ObjectInfo:
        """Returns the known facts about an object, which must not be a folder."""
        with self._expecting_object(path):
            return self.volume.stat(path)

    @contextmanager
    def _expecting_object(self, path: str) -> Iterator[None]:
        """Raises IsADirectoryError if the block does not find `path` because it is a folder."""
        if not path:
            raise _is_folder(path)
        try:
            yield
        except FileNotFoundError:
            if not self.volume.list(path + "/"):
                raise
            raise _is_folder(path) from None

    def created(self, path: str) -> datetime:
        """Returns when the object was stored, in UTC.

        Raises:
            IsADirectoryError: if it is a folder.
        """
        info = _object_info(self._object(self._strip_protocol(path)))
        return datetime.fromtimestamp(info["created"], UTC)

    def modified(self, path: str) -> datetime:
        """Returns when the file from which the object was made last changed, in UTC. If the object was
        not made from a file, returns when it was stored.

        Raises:
            IsADirectoryError: if it is a folder.
        """
        info = _object_info(self._object(self._strip_protocol(path)))
        return datetime.fromtimestamp(info["modified"], UTC)

    def cat(
        self, path: str | list[str], recursive: bool = False, on_error: str = "raise", **options: Any
    ) -> Any:
        """Returns the bytes of an object. For several objects, or with `recursive`, returns a
        dictionary by name.

        Raises:
            FileNotFoundError: if a name is not that of an object or folder.
            IsADirectoryError: if a name is that of a folder, without `recursive`.
        """
        names = self.expand_path(path, recursive=recursive)
        if names == [self._strip_protocol(path)]:
            return self.cat_file(names[0], **options)
        contents: dict[str, Any] = {}
        for name in names:
            try:
                contents[name] = self.cat_file(name, **options)
            except Exception as error:
                if recursive and isinstance(error, IsADirectoryError):
                    continue
                if on_error == "raise":
                    raise
                if on_error == "return":
                    contents[name] = error
        return contents

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        if start is None and end is None:
            with self._expecting_object(path):
                return self.volume.get(path)
        known = self._object(path)
        first, last, _step = slice(start, end).indices(known.length)
        return self.volume.get(path, first, max(first, last), digest=known.digest)

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        path = self._strip_protocol(path)
        create = mode == "create"
        self._expect_free_if(create, path)
        if self._intrans:
            self._write_later(path, io.BytesIO(value), create=create)
        else:
            self.volume.put(path, value, create=create)

    def _expect_free_if(self, create: bool, path: str) -> None:
        """With `create`, raises FileExistsError if an object or folder has this name. `Volume.put`
        looks again for an object, once it has read its source."""
        if create and self.exists(path):
            raise _os_error(errno.EEXIST, path)

    def put(
        self, lpath: Any, rpath: Any, recursive: bool = False, *rest: Any, **options: Any
    ) -> None:
        """Stores files; with `recursive`, also all files in folders.

        Raises:
            FileNotFoundError: if a file does not exist.
            IsADirectoryError: if `lpath` is a folder, without `recursive`.
        """
        if not recursive and isinstance(lpath, (str, os.PathLike)) and os.path.isdir(lpath):
            raise _is_folder(os.fspath(lpath))
        super().put(lpath, rpath, recursive, *rest, **options)

    def put_file(self, lpath: str, rpath: str, mode: str = "overwrite", **_: Any) -> None:
        """Stores a file with its mode and time; within a transaction, only its bytes."""
        rpath = self._strip_protocol(rpath)
        if os.path.isdir(lpath):
            return
        create = mode == "create"
        self._expect_free_if(create, rpath)
        if not self._intrans:
            self.volume.put_file(rpath, lpath, create=create)
            return
        with open(lpath, "rb") as source:
            self._write_later(rpath, source, create=create)

    def get(
        self, rpath: Any, lpath: Any, recursive: bool = False, *rest: Any, **options: Any
    ) -> None:
        """Writes objects to files; with `recursive`, also all objects in folders.

        Raises:
            FileNotFoundError: if a name is not that of an object or folder.
            IsADirectoryError: if `rpath` is a folder, without `recursive`.
        """
        self._expect_object_unless(recursive, rpath)
        super().get(rpath, lpath, recursive, *rest, **options)

    def get_file(self, rpath: str, lpath: Any = None, *, outfile: Any = None, **_: Any) -> None:
        """Writes an object to a file, or to a file object that is open for writing."""
        rpath = self._strip_protocol(rpath)
        if outfile is not None or isfilelike(lpath):
            with self.open(rpath) as source:
                shutil.copyfileobj(source, lpath if outfile is None else outfile)
            return
        os.makedirs(os.path.dirname(lpath) or ".", exist_ok=True)
        try:
            with self._expecting_object(rpath):
                self.volume.get_file(rpath, lpath, force=True)
        except IsADirectoryError:
            os.makedirs(lpath, exist_ok=True)

    def _expect_object_unless(self, recursive: bool, path: Any) -> None:
        """Raises IsADirectoryError for a folder, unless `recursive` is set."""
        if not recursive and isinstance(path, str) and self.isdir(path):
            raise _is_folder(self._strip_protocol(path))

    def copy(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **options: Any,
    ) -> None:
        """Copies objects within the volume, with their notes and the times of their files; with
        `recursive`, also all objects in folders.

        Raises:
            FileNotFoundError: if a name is not that of an object or folder.
            IsADirectoryError: if `path1` is a folder, without `recursive`.
            ParameterError: if a folder would be copied into itself.
        """
        self._expect_object_unless(recursive, path1)
        if recursive and isinstance(path1, str) and isinstance(path2, str):
            source, target = self._strip_protocol(path1), self._strip_protocol(path2)
            if f"{target}/".startswith(f"{source}/" if source else ""):
                raise ParameterError(f"the folder {source!r} cannot be copied into itself ({target})")
        super().copy(path1, path2, recursive, maxdepth, on_error, **options)

    def mv(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        **options: Any,
    ) -> None:
        """Moves objects in the same way as `copy` copies them, and removes each after it is copied."""
        self.copy(path1, path2, recursive, maxdepth, on_error="raise", is_moved=True, **options)

    def cp_file(self, path1: str, path2: str, *, is_moved: bool = False, **_: Any) -> None:
        source, target = self._strip_protocol(path1), self._strip_protocol(path2)
        try:
            content = self.open(source)
        except IsADirectoryError:
            return
        with content:
            if source == target:
                return
            kept = {"notes": content.known.notes, "modified": content.known.modified}
            if self._intrans:
                self._write_later(target, content, **kept)
            else:
                self.volume.put(target, content, **kept)
        if is_moved:
            self.rm_file(source)

    def _write_later(self, path: str, source: Any, **options: Any) -> None:
        """Lets the current transaction store an object. `options` are those of `Volume.put`."""
        with self.open(path, "wb") as target:
            target.options = options
            shutil.copyfileobj(source, target)

    def rm_file(self, path: str) -> None:
        path = self._strip_protocol(path)
        if self._intrans:
            self._object(path)
            self.transaction.files.append(_Removal(self, path))
            return
        with self._expecting_object(path):
            self.volume.remove(path)

    def rm(
        self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None
    ) -> None:
        """Removes objects; with `recursive`, also all objects in folders.

        Raises:
            FileNotFoundError: if a name is not that of an object or folder.
            IsADirectoryError: if a name is that of a folder, without `recursive`; nothing is removed.
        """
        found = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        if not recursive:
            for name in filter(self.isdir, found):
                raise _is_folder(name)
        for name in found:
            # A folder comes before its objects, and is gone with the last of them.
            with suppress(IsADirectoryError):
                self.rm_file(name)

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Does nothing: directories are parts of names."""

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Does nothing: directories are parts of names."""

    def rmdir(self, path: str) -> None:
        """Does nothing: a directory is gone with its last object.

        Raises:
            NotADirectoryError: if it is an object.
            OSError: if the directory is not empty.
        """
        path = self._strip_protocol(path)
        if self.isfile(path):
            raise _os_error(errno.ENOTDIR, path)
        if self._entries(path, 1):
            raise _os_error(errno.ENOTEMPTY, path)

    def open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        cache_options: dict[str, Any] | None = None,
        compression: str | None = None,
        **options: Any,
    ) -> Any:
        """Opens an object to read or to write it. If the mode has no ``b``, opens it as text.

        Args:
            compression: the name of a compression that `fsspec` knows, or ``infer`` to choose it by
                the name of the object.
            autocommit: whether an object that is written appears when it is closed. Otherwise it
                appears with `commit`, and never with `discard`. The default is True outside
                transactions and False within them.

        Raises:
            FileNotFoundError: if the object to read does not exist.
            IsADirectoryError: if the object to read is a folder.
            FileExistsError: if the mode has ``x``, and an object or folder has this name.
        """
        if mode.startswith("r"):
            return super().open(path, mode, block_size, cache_options, compression, **options)
        path = self._strip_protocol(path)
        autocommit = options.pop("autocommit", not self._intrans)
        codec = get_compression(path, compression)
        text = {name: options.pop(name) for name in _TEXT if name in options}
        binary = mode if "b" in mode else mode.replace("t", "") + "b"
        file = self._open(path, binary, autocommit=autocommit, **options)
        try:
            file = file if codec is None else _CompressedWriter(file, compr[codec](file, mode="w"))
            file = file if "b" in mode else _TextWriter(file, **text)
        except BaseException:
            file.discard()
            raise
        if not autocommit:
            self.transaction.files.append(file)
        return file

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        if mode == "rb":
            return _ObjectReader(self, path, **options)
        if mode in ("wb", "xb"):
            if not path:
                raise _is_folder(path)
            create = mode == "xb"
            self._expect_free_if(create, path)
            return _ObjectWriter(self, path, options.get("autocommit", True), create=create)
        message = f"objects are opened with mode rb, wb or xb; got {mode}"
        raise ParameterError(message)


class _ObjectReader(AbstractBufferedFile):
    """The version of an object that exists when the file is opened, read by ranges."""

    def __init__(self, fs: VolumeFileSystem, path: str, **options: Any) -> None:
        self.known = fs._object(path)
        super().__init__(fs, path, "rb", **{**options, "size": self.known.length})
        self.details = _object_info(self.known)

    def _fetch_range(self, start: int, end: int) -> bytes:
        volume: Volume = self.fs.volume
        end = min(end, self.size)
        return volume.get(self.path, start, end, digest=self.known.digest) if start < end else b""


class _Whole(io.IOBase):
    """A file that is written whole: if an exception ends its `with` block, it is discarded."""

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def discard(self) -> None:
        """Closes the file, and discards the bytes that were written."""
        raise NotImplementedError


class _ObjectWriter(_Whole, io.BufferedIOBase):
    """An object that is stored when it is closed, or by `commit` without `autocommit`. After an
    exception in a `with` block it is not stored."""

    def __init__(
        self, fs: VolumeFileSystem, name: str, autocommit: bool, **options: Any
    ) -> None:
        super().__init__()
        self.fs, self.path, self.autocommit = fs, name, autocommit
        self.mode = "wb"
        #: The options of `Volume.put`.
        self.options = options
        self._content = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)
        self._is_given_up = False

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        return self._open_content().read(-1 if size is None else size)

    def write(self, data: Any, /) -> int:
        return self._open_content().write(data)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._open_content().seek(offset, whence)

    def tell(self) -> int:
        return self._open_content().tell()

    def truncate(self, size: int | None = None, /) -> int:
        content = self._open_content()
        if size is not None:
            content.rollover()  # In memory, a file does not grow by this.
        content.truncate(size)
        return content.tell() if size is None else size

    def _open_content(self) -> tempfile.SpooledTemporaryFile[bytes]:
        if self.closed:
            raise ValueError(f"{self.path} is closed")
        return self._content

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        if self._is_given_up:
            self._content.close()
        elif self.autocommit:
            self._store()

    def commit(self) -> None:
        """Stores the bytes that were written, unless they were already stored or discarded."""
        if not self.closed:
            raise ValueError(f"{self.path} must be closed before it is committed")
        self._store()

    def give_up(self) -> None:
        """Prevents the object from being stored. It can still be written to until it is closed."""
        self._is_given_up = True

    def discard(self) -> None:
        """Closes the object, and discards the bytes that were written."""
        self.give_up()
        self.close()
        self._content.close()

    def _store(self) -> None:
        if not self._content.closed:
            with self._content as content:
                content.seek(0)
                self.fs.volume.put(self.path, content, **self.options)


class _CompressedWriter(_Whole, io.BufferedIOBase):
    """An object that is compressed while it is written."""

    def __init__(self, target: _ObjectWriter, compressor: Any) -> None:
        super().__init__()
        self.path, self.mode = target.path, "wb"
        self._target, self._compressor = target, compressor

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._compressor.seekable())

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._compressor.seek(offset, whence))

    def tell(self) -> int:
        return int(self._compressor.tell())

    def write(self, data: Any, /) -> int:
        return int(self._compressor.write(data))

    def close(self) -> None:
        if self.closed:
            return
        super().close()
        try:
            # Closing the compressor writes the end of the stream.
            self._compressor.close()
        except BaseException:
            self._target.discard()
            raise
        self._target.close()

    def commit(self) -> None:
        """Stores the bytes that were written, unless they were already stored or discarded."""
        self._target.commit()

    def discard(self) -> None:
        """Closes the object, and discards the bytes that were written."""
        self._target.give_up()
        self.close()
        self._target.discard()


class _TextWriter(_Whole, io.TextIOWrapper):
    """An object that is written as text."""

    def __init__(self, target: _ObjectWriter | _CompressedWriter, **options: Any) -> None:
        self.path, self._target = target.path, target
        # The declared type requires attributes that only raw files have.
        buffer: Any = target
        super().__init__(buffer, **options)

    def close(self) -> None:
        try:
            if not self.closed:
                self.flush()
        except BaseException:
            self.discard()
            raise
        super().close()

    def commit(self) -> None:
        """Stores the bytes that were written, unless they were already stored or discarded."""
        self._target.commit()

    def discard(self) -> None:
        """Closes the object, and discards the bytes that were written."""
        self._target.discard()


class _Removal:
    """An object that is removed when its transaction ends."""

    def __init__(self, fs: VolumeFileSystem, name: str) -> None:
        self.fs, self.name = fs, name

    def commit(self) -> None:
        with suppress(NotFoundError):
            self.fs.volume.remove(self.name)

    def discard(self) -> None:
        """Leaves the object as it is."""


def _object_info(known: ObjectInfo) -> dict[str, Any]:
    return {
        "name": known.name,
        "size": known.length,
        "type": "file",
        "blake3": known.digest,
        "created": known.created,
        "modified": known.created if known.modified is None else known.modified,
    }


def _folder_info(path: str) -> dict[str, Any]:
    return {"name": path, "size": 0, "type": "directory"}


def _os_error(number: int, path: str) -> OSError:
    """Returns the error with a number of `errno`, in the form that a system call on the path raises."""
    return OSError(number, os.strerror(number), path)


def _is_folder(path: str) -> OSError:
    return _os_error(errno.EISDIR, path)
