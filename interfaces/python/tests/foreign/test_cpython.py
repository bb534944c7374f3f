"""CPython's own tests of dbm and shelve, over adamant.dbm and adamant.shelf.

They are those of the interpreter at hand, where it has them: the whole module is run with another dbm, or
shelve, imported in it.
"""

from __future__ import annotations

import importlib.util
import re
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import adamant.dbm
import adamant.shelf
import pytest
from foreign.places import load

if importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_dbm") is None:
    pytest.skip("this interpreter came without its own tests", allow_module_level=True)


def in_the_place_of_dbm() -> types.ModuleType:
    """A module dbm whose only kind of database is ours."""
    ours: Any = types.ModuleType("dbm.adamant")
    place: Any = types.ModuleType("dbm")
    for name in ("open", "error"):
        for module in (ours, place):
            setattr(module, name, getattr(adamant.dbm, name))
    place._names, place._modules, place._defaultmod = [ours.__name__], {}, ours
    place.adamant = ours

    def whichdb(filename: Any) -> str | None:
        found = adamant.dbm.whichdb(filename)
        return ours.__name__ if found == "adamant.dbm" else found

    place.whichdb = whichdb
    assert isinstance(place, types.ModuleType)
    return place


def foreign(name: str, places: dict[str, types.ModuleType]) -> Any:
    found = importlib.util.find_spec(f"test.{name}")
    assert found is not None and found.origin is not None
    return load(found.name, found.origin, places)


DBM = in_the_place_of_dbm()
PLACES = {"dbm": DBM, "dbm.adamant": DBM.adamant}
TEST_DBM = foreign("test_dbm", PLACES)
# What finds the kind of a database is imported anew by each test of it.
TEST_DBM.import_helper = types.SimpleNamespace(import_fresh_module=lambda name: DBM)
OURS = {"shelve": adamant.shelf, "test.test_dbm": TEST_DBM}
TEST_SHELVE = foreign("test_shelve", PLACES | OURS)


def cases(module: types.ModuleType) -> Iterator[unittest.TestCase]:
    for suite in unittest.defaultTestLoader.loadTestsFromModule(module):
        assert isinstance(suite, unittest.TestSuite)
        for case in suite:
            assert isinstance(case, unittest.TestCase)
            yield case


CASES = {case.id(): case for module in (TEST_DBM, TEST_SHELVE) for case in cases(module)}
# None of them is over a database of the standard library.
assert not [name for name in CASES if re.search("(File|TestCase)_(dumb|gnu|ndbm|sqlite3)", name)]
assert sum("adamant" in name for name in CASES) > 70


@pytest.mark.parametrize("name", CASES)
def test_of_cpython(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = unittest.TestResult()
    CASES[name].run(result)
    assert not result.failures and not result.errors, (result.failures + result.errors)[0][1]
    if result.skipped:
        pytest.skip(result.skipped[0][1])
    assert result.testsRun == 1
