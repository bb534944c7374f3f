"""The types: of the package, of these tests, of the examples, and the stubs beside what they describe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import adamant
import pytest

HERE = Path(__file__).parent
PACKAGE = Path(adamant.__file__).parent


# What some modules of the package, and tests, are written for.
OTHERS = ["cachelib", "dogpile.cache", "fsspec", "pytest_asyncio", "zarr", "zict"]


def mypy(module: str, *arguments: str, cache: Path) -> None:
    """Runs a program of mypy from the folder of the package, whose settings it finds there."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=HERE.parent,
        env={**os.environ, "MYPY_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_sources_tests_and_examples_have_types(tmp_path: Path) -> None:
    for package in OTHERS:
        pytest.importorskip(package)
    assert (PACKAGE / "py.typed").is_file()
    sources = [HERE.parent / name for name in ("tests", "benchmarks", "examples")]
    typed = [str(folder) for folder in sources if any(folder.glob("*.py"))]
    mypy("mypy", "--strict", *typed, cache=tmp_path)
    mypy("mypy", "--strict", "-p", "adamant", cache=tmp_path)


def test_stubs_say_what_there_is(tmp_path: Path) -> None:
    for package in OTHERS:
        pytest.importorskip(package)
    allowed = str(HERE / "stubtest_allowlist.txt")
    configured = ("--mypy-config-file", "pyproject.toml")
    mypy("mypy.stubtest", "adamant", "--allowlist", allowed, *configured, cache=tmp_path)
