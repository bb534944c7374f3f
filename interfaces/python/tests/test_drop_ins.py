"""What our caches and stores for other packages do beside what the suites of those ask for."""

from __future__ import annotations

import asyncio
import gc
import itertools
import pickle
from pathlib import Path
from typing import Any

import adamant
import pytest


def test_what_was_used_last_stays(tmp_path: Path) -> None:
    """Where cachelib counts entries (threshold), ours counts bytes."""
    pytest.importorskip("cachelib")
    from adamant.cache.cachelib import AdamantCache

    cache = AdamantCache(tmp_path / "cache.adamant", bytes_max=1_000)
    for number in range(50):
        assert cache.set(f"key {number}", "x" * 50) and cache.get("key 0") == "x" * 50
    assert cache.get("key 49") is not None and cache.get("key 1") is None
    assert not cache.set("large", "x" * 2_000) and cache.get("large") is None
    with pytest.raises(adamant.InvalidArgument, match="bytes_max"):
        AdamantCache(tmp_path / "cache.adamant", bytes_max=1)


def test_a_region_is_there_again(tmp_path: Path) -> None:
    """In the next run of a program, which closes nothing: the last user lets the store go."""
    pytest.importorskip("dogpile.cache")
    import adamant.cache.dogpile
    from dogpile.cache import make_region

    path = tmp_path / "cache.adamant"
    arguments = {"path": path, "bytes_max": 1 << 20}
    made = itertools.count(1)
    for _ in range(3):
        region = make_region().configure("adamant", arguments=arguments)
        assert region.get_or_create("key", lambda: next(made)) == 1
        backend = region.actual_backend
        assert isinstance(backend, adamant.cache.dogpile.AdamantBackend)
        assert backend._cache.statistics().entries == 1 and backend._cache.check() == []
        del region, backend
        gc.collect()
        adamant.open(path).close()
    assert next(made) == 2
    one = make_region().configure("adamant", arguments=arguments)
    with pytest.raises(adamant.InvalidArgument, match="another name"):
        make_region().configure("adamant", arguments={**arguments, "bytes_max": 5})
    other = make_region().configure("adamant", arguments={**arguments, "name": "other"})
    one.set("key", "in one")
    assert not other.get("key") and one.get("key") == "in one"


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_arrays_are_there_again(tmp_path: Path, zarr_format: Any) -> None:
    pytest.importorskip("zarr", minversion="3")
    import zarr
    from adamant.zarr import AdamantStore

    path = tmp_path / "store"
    root = zarr.create_group(AdamantStore(path), zarr_format=zarr_format)
    array = root.create_array("a/b", shape=(100, 100), chunks=(10, 100), dtype="i4")
    array[:] = 7
    array[5:15, 3] = 9
    root.attrs["unit"] = "kelvin"
    del root, array
    again = zarr.open_group(AdamantStore(path, read_only=True), mode="r")
    found = again["a/b"]
    assert isinstance(found, zarr.Array)
    assert int(found[:].sum()) == 7 * 10_000 + 2 * 10  # type: ignore[union-attr]
    assert again.attrs["unit"] == "kelvin" and "a/b" in again and list(again.group_keys()) == ["a"]


def test_large_values_are_lent(tmp_path: Path) -> None:
    pytest.importorskip("zarr", minversion="3")
    from adamant.zarr import AdamantStore
    from zarr.core.buffer import cpu

    store = AdamantStore(tmp_path / "store")
    store.set_sync("c/0", cpu.Buffer.from_bytes(b"x" * 100_000))
    first = store.get_sync("c/0")
    second = store.get_sync("c/0")
    assert first is not None and second is not None
    one, other = (buffer.as_numpy_array().__array_interface__["data"][0] for buffer in (first, second))
    assert one == other
    # What was lent stays as it was.
    store.set_sync("c/0", cpu.Buffer.from_bytes(b"y" * 100_000))
    store.close()
    assert first.to_bytes() == b"x" * 100_000


def test_listing_a_folder_skips_what_lies_below(db: adamant.Store) -> None:
    pytest.importorskip("zarr", minversion="3")
    from adamant.zarr import AdamantStore

    async def work() -> None:
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

    asyncio.run(work())


def test_a_buffer_spills_to_a_store(db: adamant.Store) -> None:
    """As dask.distributed uses it: what is more than memory is to hold goes to the store."""
    pytest.importorskip("zict")
    from zict import Buffer, Func

    mapping = db.keyspace("spilled", key_codec="utf-8")
    memory: dict[str, int] = {}
    buffer = Buffer(memory, Func(lambda number: b"%d" % number, int, mapping), n=3)
    for number in range(10):
        buffer[str(number)] = number
    assert len(memory) == 3 and len(mapping) == 7
    assert dict(buffer) == {str(number): number for number in range(10)}


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    from adamant.fsspec import AdamantFileSystem

    files = AdamantFileSystem(str(tmp_path / "files.adamant"), skip_instance_cache=True)
    with files.open("a/b", "wb") as file:
        file.write(b"half")
        assert not files.exists("a/b")
        file.write(b" and half")
    assert files.cat("adamant://a/b") == b"half and half" and files.cat_file("a/b", 5, 8) == b"and"
    with pytest.raises(ZeroDivisionError), files.open("a/b", "wb") as file:
        file.write(b"half")
        1 / 0  # noqa: B018
    dropped = files.open("a/b", "wb")
    dropped.write(b"half")
    del dropped
    gc.collect()
    with files.open("a/b", "ab") as file:
        file.write(b"!")
    assert files.cat("a/b") == b"half and half!"
    # Of two that create a file, the first to close it does.
    one, other = files.open("new", "xb"), files.open("new", "xb")
    one.close()
    with pytest.raises(FileExistsError):
        other.close()
    for path, kind in (("a", IsADirectoryError), ("none", FileNotFoundError)):
        with pytest.raises(kind):
            files.cat_file(path)


def test_directories_of_files(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    from adamant.fsspec import AdamantFileSystem

    path = str(tmp_path / "files.adamant")
    files = AdamantFileSystem(path, skip_instance_cache=True)
    for name in ("a-b/c", "a/x", "a/y/z", "a0", "b/c/d"):
        files.pipe(name, b"x")
    files.mkdir("empty")
    assert files.ls("", detail=False) == ["a-b", "a", "a0", "b", "empty"]
    assert files.ls("a-b", detail=False) == ["a-b/c"] and files.ls("empty") == []
    assert sorted(files.find("")) == ["a-b/c", "a/x", "a/y/z", "a0", "b/c/d"]
    for path_, kind in (("a", IsADirectoryError), ("", IsADirectoryError), ("a/x/y", NotADirectoryError)):
        with pytest.raises(kind):
            files.pipe_file(path_, b"")
    with pytest.raises(OSError, match="not empty"):
        files.rmdir("b")
    files.rm("b", recursive=True)
    files.rmdir("empty")
    assert not files.exists("b") and not files.exists("empty") and files.exists("a0")
    # What is pickled is the path.
    again = pickle.loads(pickle.dumps(files))
    assert again.cat("a/x") == b"x" and again.keyspace.name == "files"
