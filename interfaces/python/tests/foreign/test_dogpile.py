"""dogpile.cache's own suites for backends, over ours: those that it installs for authors of backends."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("dogpile.cache")
import adamant.cache.dogpile  # noqa: E402, F401  # which registers it
from dogpile.cache.proxy import ProxyBackend  # noqa: E402
from dogpile.testing.fixtures import (  # noqa: E402
    _GenericBackendTestSuite,
    _GenericSerializerTestSuite,
)


@pytest.fixture(autouse=True, scope="class")
def in_a_folder_of_its_own(request: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A store for each of the classes, set before their setup_class."""
    path = tmp_path_factory.mktemp("dogpile") / "cache.adamant"
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
