"""zarr's own suite for stores, over ours: the one that it installs for authors of stores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adamant
import pytest

pytest.importorskip("pytest_asyncio")
pytest.importorskip("zarr", minversion="3")
from adamant.zarr import AdamantStore  # noqa: E402
from zarr.core.buffer import Buffer, cpu  # noqa: E402
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
