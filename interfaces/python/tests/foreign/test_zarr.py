"""zarr's own suite for stores, over ours: the one that it installs for authors of stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adamant
import pytest

pytest.importorskip("pytest_asyncio")
pytest.importorskip("zarr", minversion="3")
import zarr  # noqa: E402
from adamant.zarr import AdamantStore  # noqa: E402
from zarr.core.buffer import Buffer, cpu, default_buffer_prototype  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402


class TestStore(StoreTests[AdamantStore, cpu.Buffer]):
    store_cls = AdamantStore
    buffer_cls = cpu.Buffer

    async def set(self, store: AdamantStore, key: str, value: Buffer) -> None:
        store.keyspace[key] = value.to_bytes()

    async def get(self, store: AdamantStore, key: str) -> Buffer:
        return self.buffer_cls.from_bytes(store.keyspace[key])

    @pytest.fixture
    def store_kwargs(self, tmp_path: Path) -> dict[str, Any]:
        path = tmp_path / "store"
        # What is opened to be read must be there.
        with adamant.open(path) as store:
            store.keyspace("zarr")
        return {"path": str(path)}

    def test_store_repr(self, store: AdamantStore) -> None:
        assert repr(store) == f"AdamantStore('adamant://{store._path}/zarr')"

    def test_store_supports_writes(self, store: AdamantStore) -> None:
        assert store.supports_writes and store.supports_deletes

    def test_store_supports_listing(self, store: AdamantStore) -> None:
        assert store.supports_listing


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_are_there_again(tmp_path: Path, zarr_format: Any) -> None:
    path = tmp_path / "store"
    root = zarr.create_group(AdamantStore(path), zarr_format=zarr_format)
    array = root.create_array("a/b", shape=(100, 100), chunks=(10, 100), dtype="i4")
    array[:] = 7
    array[5:15, 3] = 9
    root.attrs["unit"] = "kelvin"
    del root, array
    adamant.open(path).close()  # the last user has let it go
    again = zarr.open_group(AdamantStore(path, read_only=True), mode="r")
    found = again["a/b"]
    assert isinstance(found, zarr.Array)
    assert int(found[:].sum()) == 7 * 10_000 + 2 * 10  # type: ignore[union-attr]
    assert again.attrs["unit"] == "kelvin" and list(again["a"].array_keys()) == ["b"]  # type: ignore[union-attr]


async def test_large_values_are_lent(tmp_path: Path) -> None:
    store = AdamantStore(tmp_path / "store")
    await store.set("c/0", cpu.Buffer.from_bytes(b"x" * 100_000))
    first = await store.get("c/0", default_buffer_prototype())
    second = await store.get("c/0", default_buffer_prototype())
    assert first is not None and second is not None
    one, other = (buffer.as_numpy_array().__array_interface__["data"][0] for buffer in (first, second))
    assert one == other
    # What was lent stays as it was.
    await store.set("c/0", cpu.Buffer.from_bytes(b"y" * 100_000))
    store.close()
    assert first.to_bytes() == b"x" * 100_000


async def test_listing_a_folder_skips_what_lies_below(db: adamant.Store) -> None:
    store = AdamantStore(db)
    names = ["a", "a/zarr.json", "a/c/0", "a-b/c", "a0", "b/x/y/z", "\u00e9/x", "a/c/1"]
    for name in names:
        store.keyspace[name] = b""
    assert [name async for name in store.list_dir("")] == ["a", "a-b", "a0", "b", "\u00e9"]
    assert [name async for name in store.list_dir("a/")] == ["c", "zarr.json"]
    await store.delete_dir("a")
    assert [name async for name in store.list()] == ["a", "a-b/c", "a0", "b/x/y/z", "\u00e9/x"]
    assert store == AdamantStore(db) and store != AdamantStore(db, keyspace="other")
    with pytest.raises(TypeError, match="cannot be pickled"):
        store.__getstate__()
