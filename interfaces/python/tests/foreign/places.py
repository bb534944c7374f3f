"""Modules of others' tests, loaded with ours in the place of what they were written for."""

from __future__ import annotations

import importlib.util
import os
import sys
import tarfile
import types
from pathlib import Path

import pytest


def load(name: str, path: Path | str, places: dict[str, types.ModuleType]) -> types.ModuleType:
    """The module of a file, in which the names of places import other modules."""
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    with pytest.MonkeyPatch.context() as patch:
        for place, stands_in in places.items():
            patch.setitem(sys.modules, place, stands_in)
        found.loader.exec_module(module)
    return module


def source(name: str) -> Path:
    """The folder of a source distribution that `cargo xtask test --python` fetches (sources.txt)."""
    folder = os.environ.get("ADAMANT_FOREIGN_SOURCES", "")
    archive = Path(folder, f"{name}.tar.gz")
    if not folder or not archive.is_file():
        why = f"the source of {name} is not there, whose tests are in no wheel"
        pytest.skip(why, allow_module_level=True)
    unpacked = Path(folder, name)
    if not unpacked.is_dir():
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
    return unpacked
