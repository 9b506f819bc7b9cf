"""The exceptions of the package.

An argument of a wrong type raises `TypeError`, and a number that is negative or too large `OverflowError`, as in Python's
own functions.
"""


class ParitasError(Exception):
    """An error of Paritas."""

    #: The name of the kind of error, as in the Rust library.
    kind: str = "Internal"


class ParameterError(ParitasError, ValueError):
    """An argument that cannot be used: a spec, a number, the length of a buffer."""

    kind = "Parameters"


class LossError(ParitasError):
    """More is lost or damaged than the code can restore."""


class NotFoundError(ParitasError, FileNotFoundError):
    """There is no object of this name, or the given files are not shards."""


class StorageError(ParitasError, OSError):
    """A file or node could not be read or written, or must not be replaced."""
