"""fsspec's own suites for file systems, over ours: those that it installs for authors of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fsspec")
from adamant.fsspec import AdamantFileSystem  # noqa: E402
from fsspec.tests.abstract import (  # noqa: E402
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)


class Fixtures(AbstractFixtures):  # type: ignore[misc]
    @pytest.fixture
    def fs(self, tmp_path: Path) -> AdamantFileSystem:
        path = str(tmp_path / "files.adamant")
        return AdamantFileSystem(path, skip_instance_cache=True)

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def fs_path(self) -> str:
        return "folder"


class TestCopy(AbstractCopyTests, Fixtures):  # type: ignore[misc]
    pass


class TestGet(AbstractGetTests, Fixtures):  # type: ignore[misc]
    pass


class TestPut(AbstractPutTests, Fixtures):  # type: ignore[misc]
    pass


class TestOpen(AbstractOpenTests, Fixtures):  # type: ignore[misc]
    pass


class TestPipe(AbstractPipeTests, Fixtures):  # type: ignore[misc]
    pass
