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
        # Errors of the system would lose their number and the file on the way to another process.
        of_system = {name: getattr(self, name, None) for name in ("errno", "filename", "filename2")}
        return _restored, (type(self), self.args, self.__dict__, of_system)


def _restored(
    kind: type[ParitasError], args: tuple[Any, ...], state: dict[str, Any], of_system: dict[str, Any]
) -> ParitasError:
    error = kind(*args)
    error.__dict__.update(state)
    for name, value in of_system.items():
        # A name that is None would be shown.
        if value is not None:
            setattr(error, name, value)
    return error


class ParameterError(ParitasError, ValueError):
    """An argument that cannot be used: a spec, a number, the length of a buffer."""

    kind = "Parameters"


class LossError(ParitasError):
    """More is lost or damaged than the code can restore."""


class NotFoundError(ParitasError, FileNotFoundError):
    """There is no object of this name, or the given files are not shards."""


class StorageError(ParitasError, OSError):
    """A file or node could not be read or written."""


class ExistsError(StorageError, FileExistsError):
    """A file or object exists already, and must not be replaced."""

    kind = "Exists"
