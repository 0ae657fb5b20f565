"""Make what an iterator yields in another thread, a little ahead of who takes it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

AHEAD = 4
"""So many are made before they are taken."""
LOOK_SECONDS = 0.1


class _End:
    """What comes last: the error that ended the iterator, if one did."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Maker(Generic[T]):
    """Makes items until nobody takes them any more."""

    def __init__(self, items: Iterator[T]) -> None:
        self.made: queue.Queue[T | _End] = queue.Queue(AHEAD)
        self.is_left = threading.Event()
        self._items = items

    def make(self) -> None:
        try:
            for item in self._items:
                if not self._put(item):
                    return
            self._put(_End())
        except BaseException as error:  # noqa: BLE001 - raised again where items are taken
            self._put(_End(error))

    def _put(self, item: T | _End) -> bool:
        while not self.is_left.is_set():
            try:
                self.made.put(item, timeout=LOOK_SECONDS)
                return True
            except queue.Full:
                continue
        return False


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items; a thread of their own makes them."""
    maker = _Maker(items)
    thread = threading.Thread(target=maker.make, daemon=True)
    thread.start()
    try:
        while not isinstance(item := maker.made.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        maker.is_left.set()
        thread.join()
