"""The exceptions of the package.

An argument of a wrong type raises `TypeError`, and a number that is negative or too large `OverflowError`, as in Python's
own functions.
"""

from typing import Any


class ParitasError(Exception):
    """An error of Paritas."""

    #: The name of the kind of error, as in the Rust library.
    kind: str = "Internal"

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors of the system would lose their number on the way to another process.
        return _restored, (type(self), self.args, self.__dict__, getattr(self, "errno", None))


def _restored(kind: type[ParitasError], args: tuple[Any, ...], state: dict[str, Any], errno: int | None) -> ParitasError:
    error = kind(*args)
    error.__dict__.update(state)
    if isinstance(error, OSError):
        error.errno = errno
    return error


class ParameterError(ParitasError, ValueError):
    """An argument that cannot be used: a spec, a number, the length of a buffer."""

    kind = "Parameters"


class LossError(ParitasError):
    """More is lost or damaged than the code can restore."""


class NotFoundError(ParitasError, FileNotFoundError):
    """There is no object of this name, or the given files are not shards."""


class StorageError(ParitasError, OSError):
    """A file or node could not be read or written, or must not be replaced."""
