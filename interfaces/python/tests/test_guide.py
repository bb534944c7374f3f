"""Every piece of Python in the guide and the READMEs runs, page by page, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
# What a page needs beside the package.
PAGES: dict[str, list[str]] = {
    "README.md": [],
    "docs/guide/python.md": [],
    "docs/guide/python-cache.md": ["cachelib", "dogpile.cache"],
    "docs/guide/python-shelf.md": [],
    "docs/guide/python-zarr.md": ["fsspec", "zarr", "zict"],
    "docs/guide/python-arrays.md": ["numpy", "pandas", "pyarrow"],
    "docs/guide/python-asyncio.md": [],
    "interfaces/python/README.md": [],
}
PIECE = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_pieces_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece of text behind one of Python is what that has printed."""
    for package in PAGES[page]:
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    words = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "guide"}
    printed = None
    pieces = 0
    for found in PIECE.finditer(words):
        kind, text = found.groups()
        line = words.count("\n", 0, found.start()) + 2
        if kind == "text":
            assert printed == text, f"{page}:{line}"
            printed = None
            continue
        pieces += 1
        # Lines of the page, so that a traceback names them.
        code = compile("\n" * (line - 1) + text, str(ROOT / page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, names)
        printed = output.getvalue()
    assert pieces > 0
