"""How many tests of each suite of others ran, for `cargo xtask test --python` to print."""

from __future__ import annotations

from collections import Counter
from typing import Any

HERE = "tests/foreign"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    suites: dict[str, Counter[str]] = {}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, []):
            folder, _, file = report.nodeid.partition("::")[0].rpartition("/")
            if folder == HERE:
                suites.setdefault(file, Counter())[outcome] += 1
    for name, counts in sorted(suites.items()):
        found = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
        terminalreporter.write_line(f"suite of others: {name}: {found}")
