"""A cache for cachelib, and so for Flask-Caching and others: AdamantCache(path)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from adamant._store import Durability, Path
from adamant.cache._shared import shared
from cachelib.base import BaseCache
from cachelib.serializers import BaseSerializer, SimpleSerializer

__all__ = ["AdamantCache"]


class AdamantCache(BaseCache):
    """A cache of cachelib in a store: bounded, and there again after a restart or a crash.

    path: where the store is. name: which cache in it. bytes_max: bytes of keys and values at most; what
    was used least recently makes room. The rest is as in SimpleCache. A get is one read, O(log n); set,
    add, inc and delete are one commit each, and so are set_many and delete_many; all are atomic. Objects
    of one path share the store of this process.
    """

    serializer: BaseSerializer = SimpleSerializer()

    def __init__(
        self,
        path: Path,
        default_timeout: int | timedelta = 300,
        ignore_delete_many_errors: bool = True,
        *,
        name: str = "cachelib",
        bytes_max: int = 1 << 30,
        durability: Durability = "buffered",
    ) -> None:
        super().__init__(default_timeout, ignore_delete_many_errors)
        options = {"bytes_max": bytes_max, "durability": durability}
        self._cache = shared(path, name, codec="bytes", **options)

    def _ttl(self, timeout: int | timedelta | None) -> int | None:
        seconds = self._normalize_timeout(timeout)
        return max(0, seconds) if seconds else None

    def get(self, key: str) -> Any:
        written = self._cache.get(key)
        return None if written is None else self.serializer.loads(written)

    def set(self, key: str, value: Any, timeout: int | timedelta | None = None) -> bool:
        written = self.serializer.dumps(value)
        # None: the serializer has logged why it could not.
        return written is not None and self._cache.set(key, written, self._ttl(timeout))

    def add(self, key: str, value: Any, timeout: int | timedelta | None = None) -> bool:
        written = self.serializer.dumps(value)
        return written is not None and self._cache.add(key, written, self._ttl(timeout))

    def set_many(
        self, mapping: dict[str, Any], timeout: int | timedelta | None = None
    ) -> list[Any]:
        written = {key: self.serializer.dumps(value) for key, value in mapping.items()}
        entries = [(key, value) for key, value in written.items() if value is not None]
        return self._cache.set_many(entries, self._ttl(timeout))

    def delete(self, key: str) -> bool:
        return self._cache.delete(key)

    def delete_many(self, *keys: str) -> list[Any]:
        # A key that is not there counts as deleted.
        self._cache.delete_many(keys)
        return list(keys)

    def has(self, key: str) -> bool:
        return key in self._cache

    def clear(self) -> bool:
        self._cache.clear()
        return True

    def inc(self, key: str, delta: int = 1) -> int | None:
        with self._cache.transact():
            return super().inc(key, delta)

    def dec(self, key: str, delta: int = 1) -> int | None:
        with self._cache.transact():
            return super().dec(key, delta)
