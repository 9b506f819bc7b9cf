"""Reads the objects with `read(n)` that are sources of puts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import Thread
from typing import Any, Protocol

#: Bytes of a read by `_give_all`.
_PIECE = 1 << 20


class _Feed(Protocol):
    """The put, which wants bytes."""

    def wanted(self) -> int | None: ...
    def give(self, content: Any, wanted: int, /) -> bool: ...
    def fail(self, error: BaseException, /) -> None: ...


def begin(feed: _Feed, read: Callable[[int], Any]) -> None:
    """Lets a thread read what the put wants. At the end of the program, when Python starts no threads
    any more, reads everything at once."""
    if not sys.is_finalizing():
        try:
            # A program ends although such a thread still waits for bytes.
            return Thread(target=_give_wanted, args=(feed, read), daemon=True).start()
        except RuntimeError as error:
            if "shutdown" not in str(error):
                raise
    _give_all(feed, read)


def _give_wanted(feed: _Feed, read: Callable[[int], Any]) -> None:
    try:
        while (size := feed.wanted()) is not None:
            if feed.give(read(size), size):
                return
    except BaseException as error:
        feed.fail(error)


def _give_all(feed: _Feed, read: Callable[[int], Any]) -> None:
    try:
        while not feed.give(read(_PIECE), _PIECE):
            pass
    except BaseException as error:
        feed.fail(error)
