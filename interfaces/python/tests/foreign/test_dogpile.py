"""dogpile.cache's own suites for backends, over ours: those that it installs for authors of backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import adamant.cache.dogpile
import pytest
from dogpile.cache import make_region
from dogpile.cache.proxy import ProxyBackend
from dogpile.testing.fixtures import _GenericBackendTestSuite, _GenericSerializerTestSuite


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
    """In the next run of a program, which closes nothing; and the entry point names the backend."""
    arguments = {"path": tmp_path / "cache.adamant", "bytes_max": 1 << 20}
    for expected in ("made", "made", "made"):
        region = make_region().configure("adamant", arguments=arguments)
        assert region.get_or_create("key", lambda: "made") == expected
        backend = region.actual_backend
        assert isinstance(backend, adamant.cache.dogpile.AdamantBackend)
        assert backend._cache.statistics().entries == 1 and backend._cache.check() == []
        backend._cache.close()
    with pytest.raises(adamant.InvalidArgument, match="another name"):
        one = make_region().configure("adamant", arguments=arguments)
        make_region().configure("adamant", arguments={**arguments, "bytes_max": 5})
    del one
