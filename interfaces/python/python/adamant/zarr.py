"""A store for zarr, versions 3: AdamantStore(path) keeps arrays in a keyspace.

    import zarr
    from adamant.zarr import AdamantStore

    temperatures = zarr.create_array(AdamantStore("weather.adamant"), shape=(8, 8), dtype="f4")

Chunks are values and metadata are values, so a chunk is written as a whole or not at all.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from typing import Self

from adamant._mapping import Keyspace
from adamant._shared import shared_store
from adamant._store import Durability, Path, Store
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.abc.store import Store as ZarrStore
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype

__all__ = ["AdamantStore"]


class AdamantStore(ZarrStore):
    """A store of zarr in a keyspace: chunks and metadata by their paths, in order.

    path: where the store is, or None with an open store. keyspace: where in it. durability: what a chunk
    that is written waits for; "buffered" survives the end of the process. Objects of one path share the
    store of this process; read_only reads beside the process that writes it, as it was when it was opened.

    A get costs O(log n), and from 4 KiB on copies nothing: the array lies in the store's memory. It touches
    the device only for pages that are not in memory. Sets and deletes are one commit each, in a thread, so
    that the loop never waits for the device; delete_dir() is one commit, too. list_dir() costs O(log n)
    for each name that it gives, not for what lies below.
    """

    supports_writes: bool = True
    supports_deletes: bool = True
    supports_listing: bool = True

    def __init__(
        self,
        path: Path | Store,
        *,
        keyspace: str = "zarr",
        durability: Durability = "buffered",
        read_only: bool = False,
    ) -> None:
        super().__init__(read_only=read_only)
        self._store = path if isinstance(path, Store) else None
        self._path = None if isinstance(path, Store) else os.path.abspath(os.fsdecode(path))
        self._name, self._durability = keyspace, durability
        self._opened: Keyspace[str, bytes] | None = None

    async def _open(self) -> None:
        await super()._open()
        self.keyspace  # noqa: B018  # what cannot be opened fails here

    @property
    def keyspace(self) -> Keyspace[str, bytes]:
        """The keyspace that chunks and metadata are in; the first use opens the store."""
        if self._opened is None:
            store = self._store or shared_store(self._path or "", read_only=self.read_only)
            self._opened = store.keyspace(self._name, key_codec="utf-8", durability=self._durability)
            self._store = store
            self._is_open = True
        return self._opened

    def close(self) -> None:
        """Lets the store go; it is closed with its last user, or where it was opened."""
        super().close()
        self._opened = None
        if self._path is not None:
            self._store = None

    def with_read_only(self, read_only: bool = False) -> Self:
        place: Path | Store | None = self._path if self._path is not None else self._store
        assert place is not None, "a store is of a path or of an open store"
        return type(self)(
            place, keyspace=self._name, durability=self._durability, read_only=read_only
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._place() == other._place()

    __hash__ = None  # type: ignore[assignment]

    def _place(self) -> tuple[object, ...]:
        return (self._path or id(self._store), self._name, self.read_only)

    def __getstate__(self) -> dict[str, object]:
        if self._path is None:
            raise TypeError("a store that was given open cannot be pickled; give its path")
        return {**self.__dict__, "_store": None, "_opened": None, "_is_open": False}

    def __str__(self) -> str:
        return f"adamant://{self._path or self._store}/{self._name}"

    def __repr__(self) -> str:
        return f"AdamantStore('{self}')"

    # Reads, which touch the device only for pages that are not in memory: on the loop.

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """A value or a part of it, None for a key that is not there. From 4 KiB on it copies nothing."""
        value = self.keyspace.lend(key)
        if value is None:
            return None
        part = _slice(byte_range, len(value))
        return (prototype or default_buffer_prototype()).buffer.from_bytes(value[part])

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        return self.get_sync(key, prototype=prototype, byte_range=byte_range)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        return [self.get_sync(key, prototype=prototype, byte_range=part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        return key in self.keyspace

    async def getsize(self, key: str) -> int:
        value = self.keyspace.lend(key)
        if value is None:
            raise FileNotFoundError(key)
        return len(value)

    async def list(self) -> AsyncIterator[str]:
        for key in self.keyspace:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self.keyspace.keys(prefix=prefix):
            yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        folder = prefix.rstrip("/") + "/" if prefix.rstrip("/") else ""
        seen: set[str] = set()
        start = folder
        while (key := next(iter(self.keyspace.keys(start=start, prefix=folder)), None)) is not None:
            name, slash, _ = key[len(folder) :].partition("/")
            # The next one that is not below it: "0" comes right behind "/".
            start = folder + name + ("0" if slash else "\0")
            if name not in seen:
                seen.add(name)
                yield name

    # Writes, each one commit. The synchronous ones are for zarr's own threads.

    def set_sync(self, key: str, value: Buffer) -> None:
        """Sets a value: one commit."""
        self._check_writable()
        self.keyspace.put(key, _contents(value))

    def delete_sync(self, key: str) -> None:
        """Deletes a key, whether it is there or not: one commit."""
        self._check_writable()
        self.keyspace.delete(key)

    async def set(self, key: str, value: Buffer) -> None:
        await asyncio.to_thread(self.set_sync, key, value)

    async def _set_many(self, values: Iterable[tuple[str, Buffer]]) -> None:
        self._check_writable()
        contents = {key: _contents(value) for key, value in values}
        await asyncio.to_thread(self.keyspace.update, contents)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        self._check_writable()
        await asyncio.to_thread(self.keyspace.setdefault, key, _contents(value))

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self.delete_sync, key)

    async def delete_dir(self, prefix: str) -> None:
        self._check_writable()
        folder = prefix.rstrip("/")
        part = slice(folder + "/", folder + "0") if folder else slice(None)
        await asyncio.to_thread(self.keyspace.__delitem__, part)

    async def clear(self) -> None:
        self._check_writable()
        await asyncio.to_thread(self.keyspace.clear)


def _contents(value: Buffer) -> bytes:
    if not isinstance(value, Buffer):
        raise TypeError(f"expected a Buffer of zarr as a value, found {type(value).__name__}")
    return value.to_bytes()


def _slice(part: ByteRequest | None, length: int) -> slice:
    """What a request for bytes means in a value of this length."""
    if part is None:
        return slice(None)
    if isinstance(part, RangeByteRequest):
        return slice(part.start, part.end)
    if isinstance(part, OffsetByteRequest):
        return slice(part.offset, None)
    if isinstance(part, SuffixByteRequest):
        return slice(max(0, length - part.suffix), None)
    raise ValueError(f"Unexpected byte_range, got {part}.")
