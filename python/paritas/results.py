"""What functions and methods return: plain data, which can be compared, copied and pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class VerifyReport:
    """The state of an object's shard files.

    Attributes:
        name: the object's name.
        id: the object's id, which tells it from others of its name.
        code: the spec of its code.
        length: the object's length in bytes, if it is known.
        status: `intact`, `repairable`, `lost`, `unknown` or `inconsistent`.
        tolerable: the number of further shards that may be lost.
        shards: the shards by number.
        lost: the byte ranges of the object that are beyond repair.
        reason: why the object is lost or inconsistent, or why its status is unknown.
    """

    name: str
    id: str
    code: str
    length: int | None
    status: str
    tolerable: int
    shards: list[ShardReport]
    lost: list[tuple[int, int]]
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class ShardReport:
    """The state of a shard.

    Attributes:
        shard: its number.
        state: `intact`, `damaged`, `missing`, `unreadable` or `inconsistent`.
        paths: its files.
    """

    shard: int
    state: str
    paths: list[Path]


@dataclass(frozen=True, kw_only=True)
class RepairReport:
    """The result of a repair.

    Attributes:
        name: the object's name.
        id: the object's id, which tells it from others of its name.
        repaired: the numbers of the shards that were written.
        written: the files that were written, in the order of `repaired`.
        warnings: warnings for the caller.
    """

    name: str
    id: str
    repaired: list[int]
    written: list[Path]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class ProtectReport:
    """The result of `protect`.

    Attributes:
        id: the id of the protection.
        files: the number of protected files.
        bytes: the number of bytes of these files.
        parity_files: the parity files.
        stored_bytes: the number of bytes of all parity files.
        skipped: the paths that are not protected, each with the reason.
        unmatched: patterns of `exclude` that match nothing, perhaps because they are misspelt.
        warnings: warnings for the caller.
    """

    id: str
    files: int
    bytes: int
    parity_files: list[Path]
    stored_bytes: int
    skipped: list[tuple[Path, str]]
    unmatched: list[str]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class UpdateReport:
    """The result of `update` for one protection.

    Attributes:
        id: the id of the protection, which is a new one if everything was made anew.
        updated: what was done: `nothing`, `layer` if new and changed files got parity of their
            own, or `anew` if all parity was made anew.
        kept: the number of files whose bytes were protected already, under this name or
            another.
        added: new files, whose bytes were not protected before.
        changed: files that had other bytes when they were protected before.
        gone: files that do not exist any more, under any name.
        parity_files: the new parity files.
        held: the places that cannot be looked at now, each with the reason. What is protected
            there stays protected.
        skipped: the paths that are not protected, each with the reason.
        warnings: warnings for the caller.
    """

    id: str
    updated: str
    kept: int
    added: list[Path]
    changed: list[Path]
    gone: list[Path]
    parity_files: list[Path]
    held: list[tuple[Path, str]]
    skipped: list[tuple[Path, str]]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class ProtectionInfo:
    """Facts about a protection that are known without reading the files.

    Attributes:
        id: its id.
        label: the beginning of the names of its parity files.
        root: the directory that the paths of protected files are relative to.
        files: the number of protected files.
        bytes: the number of bytes of these files.
        redundancy: the requested redundancy, such as `10%`.
        parity_bytes: the number of bytes of all parity blocks.
        parity_files: the parity files that were found.
        exclude: the patterns of paths that are left out.
        created: when the protection was made or updated, in seconds since 1970.
    """

    id: str
    label: str
    root: Path
    files: int
    bytes: int
    redundancy: str
    parity_bytes: int
    parity_files: list[Path]
    exclude: list[str]
    created: float


@dataclass(frozen=True, kw_only=True)
class ProtectionReport:
    """The state of a protection.

    Attributes:
        id: its id.
        root: the directory that the paths of protected files are relative to.
        status: `intact`, `repairable`, `unknown` or `lost`.
        files: the number of protected files.
        intact_files: the number of protected files whose bytes are right, under their own name
            or another.
        findings: the protected paths that differ from their state when they were protected.
        parity: the parity files that are not intact.
        new: the files that are not protected yet.
    """

    id: str
    root: Path
    status: str
    files: int
    intact_files: int
    findings: list[FileFinding]
    parity: list[Path]
    new: list[Path]


@dataclass(frozen=True, kw_only=True)
class FileFinding:
    """A protected path that differs from its state when it was protected.

    Attributes:
        path: the path.
        state: `touched`, `damaged`, `changed`, `missing`, `moved` or `unreadable`. Touched and
            moved files are intact.
        ranges: the byte ranges of lost blocks, in which all that is damaged or changed lies. A
            block may have bytes of several files, and is lost with any of them.
        moved_to: the current path of the file, if it was moved.
        reason: the reason why it cannot be read.
    """

    path: Path
    state: str
    ranges: list[tuple[int, int]]
    moved_to: Path | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class RestoreReport:
    """The result of a repair of protected files.

    Attributes:
        id: the id of the protection.
        status: the state before the repair, as `verify` reports it.
        restored: the files, directories and links that were restored, or would be.
        moved_back: the files that were moved back: from where, and to where.
        parity: the parity files that were written anew, or would be.
        kept: files that were replaced: the old path, and the current path.
        warnings: warnings for the caller.
    """

    id: str
    status: str
    restored: list[Path]
    moved_back: list[tuple[Path, Path]]
    parity: list[Path]
    kept: list[tuple[Path, Path]]
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class ObjectInfo:
    """The known facts about an object.

    Attributes:
        name: its name.
        length: its length in bytes.
        digest: the BLAKE3 of its bytes in hexadecimal digits.
        code: the spec of its code, or `None` if it has no shards of its own: a small object is kept in
            its manifests, and an object in pieces, as S3 clients and `volume put --resume` store
            large ones, in other objects.
        nodes: after `stat`: the node on which each shard is expected, those of the first stage
            first, or `None` where it is unknown; no nodes if it has no shards of its own. After a put: the nodes that hold something of the object, each once.
        is_owed: whether a put left something for repair.
        created: when it was stored, in seconds since 1970.
        modified: when the file from which it was made last changed, in seconds since 1970, if
            this is known.
        notes: what programs have noted about it, by name.
    """

    name: str
    length: int
    digest: str
    code: str | None
    nodes: list[str | None]
    is_owed: bool
    created: float
    modified: float | None
    notes: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The protection of an object.

    Attributes:
        name: its name.
        state: `intact`, `repairable`, `unknown` or `lost`.
        stage: the stage that its parity has reached, from 1; 0 if the object is kept in its
            manifests because it is small.
        stages: the number of stages of its code.
        missing: the numbers of the shards that are missing.
        tolerable: the number of further nodes that may be lost, whichever they are.
        flaws: the problems that were found on nodes.
    """

    name: str
    state: str
    stage: int
    stages: int
    missing: list[int]
    tolerable: int
    flaws: list[str]


@dataclass(frozen=True, kw_only=True)
class RepairedObject:
    """The result of a repair or promotion of an object.

    Attributes:
        name: its name.
        stored: the number of shards that were written.
        manifests: the number of manifests that were written; a small object is kept in its
            manifests.
        is_removed: whether the object had been removed; the repair then worked on its remains.
        is_owed: whether something is left for another repair.
        read_bytes: the number of bytes of shards that were read.
        flaws: the problems that were found on nodes.
    """

    name: str
    stored: int
    manifests: int
    is_removed: bool
    is_owed: bool
    read_bytes: int
    flaws: list[str]


@dataclass(frozen=True, kw_only=True)
class VolumeStatus:
    """The state of a volume.

    Attributes:
        nodes: the nodes, each with its problem if it has one.
        tolerance: the number of nodes that may be lost.
        lacking_for_puts: the number of further nodes that must become usable before puts and
            removals can succeed.
        owed: the number of objects that wait for repair.
        lost: the number of objects that a repair could not make whole.
        backlog: the number of objects that wait for promotion.
    """

    nodes: list[tuple[str, str | None]]
    tolerance: int
    lacking_for_puts: int
    owed: int
    lost: int
    backlog: int
