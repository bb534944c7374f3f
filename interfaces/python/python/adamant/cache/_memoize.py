"""Functions that remember in a cache what they returned, also between runs of the program."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import inspect
import pickle
import sys
import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast

from adamant.cache._cache import Cache
from adamant.cache._encoding import encode_key
from adamant.cache._reads import DEFAULT, MISSING, TTL

P = ParamSpec("P")
R = TypeVar("R")

# What the coroutines of one loop are making, by key: each loop waits for its own.
_Futures: TypeAlias = dict[bytes, asyncio.Future[Any]]


class Memoized(Generic[P, R]):
    """A function that looks into a cache before it runs. A miss costs a read and a commit beside it."""

    __wrapped__: Callable[P, R]

    def __init__(self, cache: Cache, function: Callable[P, R], options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self._cache, self._function = cache, function
        self._name: str = options.pop("name") or f"{function.__module__}.{function.__qualname__}"
        self._key: Callable[..., Any] | None = options.pop("key")
        self._options = options
        self._is_async = inspect.iscoroutinefunction(function)
        if self._is_async and sys.version_info >= (3, 12):
            inspect.markcoroutinefunction(self)
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Futures]
        self._loops = weakref.WeakKeyDictionary()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        key = self.cache_key(*args, **kwargs)
        make = functools.partial(self._function, *args, **kwargs)
        if self._is_async:
            return cast(R, self._await(key, cast(Callable[[], Awaitable[Any]], make)))
        return self._cache.get_or_set(key, make, **self._options)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        # Of a method: what it is called on is its first argument.
        return self if instance is None else functools.partial(cast(Any, self), instance)

    def cache_key(self, *args: P.args, **kwargs: P.kwargs) -> tuple[str, Any]:
        """The key that the cache has for a call.

        Arguments of str, bytes, numbers, None and tuples of such are in it; others by a digest of
        their pickles, which can differ for equal objects: then the function runs once more.
        """
        given: Any = self._key(*args, **kwargs) if self._key is not None else (args, *_named(kwargs))
        try:
            encode_key((self._name, given))
        except (TypeError, ValueError):
            given = hashlib.sha256(pickle.dumps(given, 4)).hexdigest()
        return self._name, given

    def invalidate(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Forgets what a call returned; whether it was there. One commit."""
        return self._cache.delete(self.cache_key(*args, **kwargs))

    async def _await(self, key: Any, make: Callable[[], Awaitable[Any]]) -> Any:
        """get_or_set() of a coroutine function: reads on the loop, commits in a thread."""
        cache, encoded, early = self._cache, encode_key(key), self._options["early"]
        making = self._loops.setdefault(asyncio.get_running_loop(), {})
        found, is_due = cache.look(encoded, early)
        while found is MISSING or is_due:
            if (others := making.get(encoded)) is None:
                return await self._make(making, encoded, make)
            if found is not MISSING:
                break
            # Shielded: a cancelled coroutine must not cancel what others wait for.
            landed = await asyncio.shield(others)
            if landed is not None:
                return landed[0]
            found, is_due = cache.look(encoded, early, counts=False)
        return found

    async def _make(
        self, making: _Futures, encoded: bytes, make: Callable[[], Awaitable[Any]]
    ) -> Any:
        cache, options = self._cache, self._options
        landed = making[encoded] = asyncio.get_running_loop().create_future()
        made = None
        try:
            began = cache.clock()
            value = await make()
            seconds = max(0.0, cache.clock() - began)
            made = (value,)
            await asyncio.to_thread(
                cache.put_encoded, encoded, value, options["ttl"], options["tags"], seconds
            )
            return value
        finally:
            del making[encoded]
            landed.set_result(made)


def memoize(
    cache: Cache,
    *,
    name: str | None = None,
    ttl: TTL = DEFAULT,
    tags: Iterable[str] | str = (),
    key: Callable[..., Any] | None = None,
    early: float = 0.0,
) -> Callable[[Callable[P, R]], Memoized[P, R]]:
    """A decorator that has a function, or a coroutine function, remember what it returned.

    name: what its entries are called, and shared by; the function's module and name if none is given.
    ttl, tags, early: see Cache.set and Cache.get_or_set. key: gives the key for the arguments.
    Callers of the same arguments wait for the one that runs. What a function raises is not remembered.
    """
    options = {"name": name, "ttl": ttl, "tags": tags, "key": key, "early": early}
    return lambda function: Memoized(cache, function, dict(options))


def _named(kwargs: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(kwargs.items()))
