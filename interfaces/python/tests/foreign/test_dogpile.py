"""dogpile.cache's own suites for backends, over ours: those that it installs for authors of backends."""

from __future__ import annotations

import gc
import itertools
from pathlib import Path
from typing import Any

import adamant
import pytest

pytest.importorskip("dogpile.cache")
import adamant.cache.dogpile  # noqa: E402
from dogpile.cache import make_region  # noqa: E402
from dogpile.cache.proxy import ProxyBackend  # noqa: E402
from dogpile.testing.fixtures import (  # noqa: E402
    _GenericBackendTestSuite,
    _GenericSerializerTestSuite,
)


@pytest.fixture(autouse=True, scope="class")
def in_a_folder_of_its_own(request: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A store for each of the classes, set before their setup_class."""
    path = tmp_path_factory.mktemp("dogpile") / "cache.adamant"
    if request.cls is not None:
        request.cls.config_args = {"arguments": {"path": str(path)}, **request.cls.wraps}


class TestBackend(_GenericBackendTestSuite):
    backend = "adamant"
    wraps: dict[str, Any] = {}
    # Before a fixture could be asked; the fixture replaces it.
    config_args: dict[str, Any] = {}

    @classmethod
    def setup_class(cls) -> None:
        """Nothing to ask for: the backend needs no server."""


class TestBackendBehindAProxy(TestBackend):
    wraps = {"wrap": [ProxyBackend]}


class TestBackendWithSerializers(_GenericSerializerTestSuite, TestBackend):
    pass


def test_a_region_is_there_again(tmp_path: Path) -> None:
    """In the next run of a program, which closes nothing: the last user lets the store go."""
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
