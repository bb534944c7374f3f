"""Python's own tests of mappings and of shelves, over keyspaces.

What they ask that a store cannot do is left out, and named: fromkeys makes a mapping out of nothing, a
copy of a keyspace is a dict and not another keyspace, and what was stored is a value and not the object.
"""

from __future__ import annotations

import ast
import pickle
import shelve
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import adamant
import pytest

mapping_tests: Any = pytest.importorskip(
    "test.mapping_tests", reason="this Python was installed without its own tests"
)
test_shelve: Any = pytest.importorskip(
    "test.test_shelve", reason="this Python was installed without its own tests"
)


class Stores:
    """A keyspace in a store of its own, as often as one is asked for."""

    def setUp(self) -> None:
        self.stores: list[adamant.Store] = []

    def tearDown(self) -> None:
        for store in self.stores:
            store.close()

    def store(self) -> adamant.Store:
        self.stores.append(adamant.in_memory())
        return self.stores[-1]


class TestTexts(Stores, mapping_tests.BasicTestMappingProtocol):  # type: ignore[misc]
    """Over keyspaces of str."""

    def opened(self) -> Any:
        return self.store().keyspace("test", codec="utf-8")

    def type2test(self, *sources: Any, **pairs: Any) -> Any:
        keyspace = self.opened()
        keyspace.update(*sources, **pairs)
        return keyspace

    _tested_class = type2test

    def _reference(self) -> dict[str, str]:
        return {"1": "2", "key1": "value1", "key2": "value2"}


class TestExpiringTexts(TestTexts):
    """Over keyspaces of entries that end, and do not."""

    def opened(self) -> Any:
        return self.store().expiring("test", codec="utf-8")


class TestTransactionTexts(TestTexts):
    """Over what a transaction sees."""

    def opened(self) -> Any:
        store = self.store()
        return store.transaction()[store.keyspace("test", codec="utf-8")]


class Objects(MutableMapping[Any, Any]):
    """Any objects, written to a keyspace by a pair of functions: what a program does with one."""

    def __init__(self, inner: Any, dumps: Callable[[Any], Any], loads: Callable[[Any], Any]) -> None:
        self.inner, self.dumps, self.loads = inner, dumps, loads

    def __getitem__(self, key: Any) -> Any:
        return self.loads(self.inner[self.dumps(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.inner[self.dumps(key)] = self.dumps(value)

    def __delitem__(self, key: Any) -> None:
        del self.inner[self.dumps(key)]

    def __contains__(self, key: Any) -> bool:
        return self.dumps(key) in self.inner

    def __iter__(self) -> Iterator[Any]:
        return map(self.loads, self.inner)

    def __len__(self) -> int:
        return len(self.inner)

    def __bool__(self) -> bool:
        return bool(self.inner)

    def get(self, key: Any, default: Any = None) -> Any:
        return self.loads(self.inner.get(self.dumps(key), self.dumps(default)))

    def pop(self, key: Any, *default: Any) -> Any:
        return self.loads(self.inner.pop(self.dumps(key), *map(self.dumps, default)))

    def popitem(self, *last: Any) -> tuple[Any, Any]:
        key, value = self.inner.popitem(*last)
        return self.loads(key), self.loads(value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return self.loads(self.inner.setdefault(self.dumps(key), self.dumps(default)))

    def clear(self) -> None:
        self.inner.clear()

    def copy(self) -> dict[Any, Any]:
        copied = self.inner.copy()
        return {self.loads(key): self.loads(value) for key, value in copied.items()}


class TestTextObjects(Stores, mapping_tests.TestMappingProtocol):  # type: ignore[misc]
    """Over keyspaces of str."""

    test_fromkeys = None

    def opened(self) -> Objects:
        keyspace = self.store().keyspace("test", codec="utf-8", durability="deferred")
        return Objects(keyspace, repr, ast.literal_eval)

    def type2test(self, *sources: Any, **pairs: Any) -> Objects:
        objects = self.opened()
        objects.update(*sources, **pairs)
        return objects

    _tested_class = type2test

    def test_copy(self) -> None:
        mapping = self._full_mapping({1: 1, 2: 2, 3: 3})
        assert mapping.copy() == {1: 1, 2: 2, 3: 3} and type(mapping.inner.copy()) is dict
        assert self._empty_mapping().copy() == {}
        with pytest.raises(TypeError):
            mapping.inner.copy(None)

    def test_setdefault(self) -> None:
        mapping_tests.BasicTestMappingProtocol.test_setdefault(self)
        mapping = self._empty_mapping()
        assert mapping.setdefault("key0") is None and mapping.setdefault("key0", []) is None
        assert mapping.setdefault("key", []) == [] and mapping.setdefault("key", [1]) == []


class TestPickledObjects(TestTextObjects):
    """Over keyspaces of bytes."""

    def opened(self) -> Objects:
        keyspace = self.store().keyspace("test", durability="deferred")
        return Objects(keyspace, pickle.dumps, pickle.loads)


class TestExpiringPickledObjects(TestTextObjects):
    """Over keyspaces of entries that end, and do not."""

    def opened(self) -> Objects:
        keyspace = self.store().expiring("test", durability="deferred")
        return Objects(keyspace, pickle.dumps, pickle.loads)


class TestShelves(Stores, test_shelve.TestCase):  # type: ignore[misc]
    """The tests of shelve that are over a mapping of bytes."""

    @pytest.fixture(autouse=True)
    def over_keyspaces(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            test_shelve, "byteskeydict", lambda: self.store().keyspace("test"), raising=True
        )

    # Over files of dbm.
    test_open_template = test_ascii_file_shelf = test_binary_file_shelf = None
    test_proto2_file_shelf = test_pathlib_path_file_shelf = test_bytes_path_file_shelf = None
    test_pathlib_bytes_path_file_shelf = None


class TestShelfProtocol0(Stores, mapping_tests.BasicTestMappingProtocol):  # type: ignore[misc]
    """The mappings that shelve makes of keyspaces of bytes."""

    protocol = 0

    def type2test(self, *sources: Any, **pairs: Any) -> Any:
        shelf: Any = shelve.Shelf(self.store().keyspace("test"), protocol=self.protocol)
        shelf.update(*sources, **pairs)
        return shelf

    _tested_class = type2test

    def _reference(self) -> dict[str, Any]:
        return {"key1": "value1", "key2": 2, "key3": (1, 2, 3)}


class TestShelfProtocol5(TestShelfProtocol0):
    protocol = pickle.HIGHEST_PROTOCOL


class TestShelfOfTransaction(TestShelfProtocol0):
    def type2test(self, *sources: Any, **pairs: Any) -> Any:
        store = self.store()
        shelf: Any = shelve.Shelf(store.transaction()[store.keyspace("test")])
        shelf.update(*sources, **pairs)
        return shelf

    _tested_class = type2test
