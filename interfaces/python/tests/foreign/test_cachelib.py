"""cachelib's own suites for caches, over ours: those that its tests share between all caches."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
from foreign.places import load, source

pytest.importorskip("cachelib")
from adamant.cache.cachelib import AdamantCache  # noqa: E402
from cachelib.serializers import BaseSerializer  # noqa: E402

TESTS = source("cachelib-0.17.0") / "tests"

# What starts the servers of other caches.
XPROCESS: Any = types.ModuleType("xprocess")
XPROCESS.ProcessStarter = object
CONFTEST = load("conftest", TESTS / "conftest.py", {"xprocess": XPROCESS})


def suite(name: str) -> Any:
    return load(f"cachelib_{name}", TESTS / f"{name}.py", {"conftest": CONFTEST})


class PrintedValues(BaseSerializer):
    """As the one with which cachelib tests that a serializer can be replaced."""

    def dumps(self, value: Any, protocol: int = 0) -> bytes:
        return repr(value).encode()

    def loads(self, bvalue: bytes) -> Any:
        return eval(bvalue)


class PrintingCache(AdamantCache):
    serializer = PrintedValues()


@pytest.fixture(autouse=True, params=[AdamantCache, PrintingCache])
def cache_factory(request: Any, tmp_path: Path) -> None:
    def factory(self: object, *args: Any, **options: Any) -> AdamantCache:
        cache: AdamantCache = request.param(tmp_path / "cache.adamant", *args, **options)
        return cache

    request.cls.cache_factory = factory


SUITES: Any = (
    suite("common").CommonTests,
    suite("has").HasTests,
    suite("clear").ClearTests,
    suite("serializer").SerializerTests,
)


class TestCache(*SUITES):  # type: ignore[misc]
    pass
