"""A backend for dogpile.cache: make_region().configure("adamant", arguments={"path": ...})."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from adamant.cache._shared import shared
from dogpile.cache import register_backend
from dogpile.cache.api import NO_VALUE, BytesBackend

__all__ = ["AdamantBackend"]

_OPTIONS = ("bytes_max", "ttl", "policy", "durability", "engine")


class AdamantBackend(BytesBackend):
    """A backend of dogpile.cache in a store: bounded, and there again after a restart or a crash.

    arguments: path: where the store is; name: which cache in it, "dogpile" by default; and bytes_max, ttl,
    policy, durability and engine as of adamant.cache.Cache. A get is one read, O(log n); set, set_multi
    and delete are one commit. Values are made by one thread at a time, since one process writes the store.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        options = {name: arguments[name] for name in _OPTIONS if name in arguments}
        self._cache = shared(
            arguments["path"], arguments.get("name", "dogpile"), codec="bytes", **options
        )

    def get_serialized(self, key: str) -> Any:
        return self._cache.get(key, NO_VALUE)

    def get_serialized_multi(self, keys: Iterable[str]) -> Sequence[Any]:
        return self._cache.get_many(keys, NO_VALUE)

    def set_serialized(self, key: str, value: bytes) -> None:
        self._cache.set(key, value)

    def set_serialized_multi(self, mapping: Mapping[str, bytes]) -> None:
        self._cache.set_many(mapping.items())

    def delete(self, key: str) -> None:
        self._cache.delete(key)

    def delete_multi(self, keys: Iterable[str]) -> None:
        self._cache.delete_many(keys)


# The entry point of the distribution says the same, for those who do not import this.
register_backend("adamant", __name__, AdamantBackend.__name__)  # type: ignore[no-untyped-call]
