"""Erasure codes compiled to machine code: in memory, in files, over disks, hosts and buckets.

`protect`, `update`, `verify`, `repair` and `info` handle parity beside files that stay where they are. `encode_file` and its
companions handle shards of files. `Volume` keeps objects on nodes. `Codec` works in memory. The package also has the
command: `paritas`, or `python -m paritas`.

>>> import paritas
>>> codec = paritas.Codec("4+2")
>>> data = codec.split(b"hello, world")
>>> shards = [*data, *codec.encode(data)]       # 6 shards, any 2 of which may be lost
>>> shards[0] = shards[3] = None
>>> codec.join(codec.reconstruct(shards), 12)
b'hello, world'

Shards are any objects with the buffer protocol (bytes, bytearray, memoryview, numpy arrays) and are
used where they are. Every call that computes, reads or writes releases the interpreter, and may be
made from several threads at once; no other thread may change a buffer while a call uses it.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from ._paritas import (
    Code,
    Codec,
    LtBlocks,
    LtDecoder,
    LtEncoder,
    Prepared,
    Schedule,
    Volume,
    decode_file,
    encode_file,
    info,
    protect,
    repair,
    repair_files,
    update,
    verify,
    verify_files,
)
from .errors import ExistsError, LossError, NotFoundError, ParameterError, ParitasError, StorageError
from .results import (
    FileFinding,
    ObjectInfo,
    ProtectionInfo,
    ProtectionReport,
    ProtectReport,
    RepairedObject,
    RepairReport,
    RestoreReport,
    ShardReport,
    UpdateReport,
    Verdict,
    VerifyReport,
    VolumeStatus,
)

if TYPE_CHECKING:
    from . import fleet as fleet

try:
    __version__ = version("paritas")
except PackageNotFoundError:  # run from the source tree
    __version__ = "0"

__all__ = [
    "Code",
    "Codec",
    "ExistsError",
    "FileFinding",
    "LossError",
    "LtBlocks",
    "LtDecoder",
    "LtEncoder",
    "NotFoundError",
    "ObjectInfo",
    "ParameterError",
    "ParitasError",
    "Prepared",
    "ProtectReport",
    "ProtectionInfo",
    "ProtectionReport",
    "RepairReport",
    "RepairedObject",
    "RestoreReport",
    "Schedule",
    "ShardReport",
    "StorageError",
    "UpdateReport",
    "Verdict",
    "VerifyReport",
    "Volume",
    "VolumeStatus",
    "decode_file",
    "encode_file",
    "info",
    "protect",
    "repair",
    "repair_files",
    "update",
    "verify",
    "verify_files",
]


def __getattr__(name: str) -> Any:
    # It brings the machinery of processes, which few programs need.
    if name == "fleet":
        return import_module(".fleet", __name__)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
