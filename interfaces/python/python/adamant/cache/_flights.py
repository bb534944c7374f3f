"""One caller makes a value, others that want the same wait for it."""

from __future__ import annotations

import threading
from typing import Any


class Flight:
    """A value that is being made: by one thread, waited for by others."""

    __slots__ = ("_landed", "maker", "result")

    def __init__(self) -> None:
        self._landed = threading.Event()
        self.maker = threading.get_ident()
        self.result: tuple[Any] | None = None

    def wait(self) -> tuple[Any] | None:
        """Waits until it was made, and gives it; None if that has failed, so that another tries."""
        self._landed.wait()
        return self.result

    def land(self) -> None:
        self._landed.set()


class Flights:
    """Values that are being made, by their keys."""

    __slots__ = ("_by_key", "_lock")

    def __init__(self) -> None:
        self._by_key: dict[bytes, Flight] = {}
        self._lock = threading.Lock()

    def join(self, key: bytes) -> tuple[Flight, bool]:
        """The flight of a key, and whether it is new: then the caller makes the value and calls end()."""
        with self._lock:
            flight = self._by_key.get(key)
            # A value that needs itself: its maker would wait for itself for ever.
            if flight is not None and flight.maker != threading.get_ident():
                return flight, False
            flight = self._by_key[key] = Flight()
            return flight, True

    def end(self, key: bytes, flight: Flight) -> None:
        """Wakes those who wait: the flight has its result, or it failed."""
        with self._lock:
            if self._by_key.get(key) is flight:
                del self._by_key[key]
        flight.land()
