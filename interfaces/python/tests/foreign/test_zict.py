"""zict's own checks of mappings, over a keyspace: it needs no class of ours in between."""

from __future__ import annotations

from pathlib import Path

import adamant
import pytest

pytest.importorskip("zict")
from zict.tests import utils_test  # noqa: E402


@pytest.fixture
def mapping(path: Path, engine: str) -> adamant.Keyspace[str, bytes]:
    db = adamant.open(path, durability="buffered")
    return db.keyspace("zict", key_codec="utf-8", engine=engine)  # type: ignore[call-overload, no-any-return]


def test_a_keyspace_is_a_mapping(mapping: adamant.Keyspace[str, bytes]) -> None:
    utils_test.check_mapping(mapping)


def test_keys_and_values_of_wrong_types(mapping: adamant.Keyspace[str, bytes]) -> None:
    utils_test.check_bad_key_types(mapping)
    utils_test.check_bad_value_types(mapping)
