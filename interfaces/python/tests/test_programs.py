"""The examples and the benchmark run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def run(program: str, *arguments: str) -> str:
    script = str(PACKAGE / program)
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_queue_of_jobs(tmp_path: Path) -> None:
    store = str(tmp_path / "jobs.adamant")
    run("examples/jobs.py", store, "add", "sweep", "wash up")
    run("examples/jobs.py", store, "add", "cook")
    assert run("examples/jobs.py", store, "work") == "doing sweep\ndoing wash up\ndoing cook\n"
    assert run("examples/jobs.py", store, "list").split("\n")[1] == "done        1 wash up"


def test_the_consumer_that_waits(tmp_path: Path) -> None:
    store = str(tmp_path / "jobs.adamant")
    for _ in range(2):
        done = run("examples/consumer.py", store)
        assert done == "doing sweep\ndoing wash up\ndoing cook\ndoing go home\n"


def test_the_scores(tmp_path: Path) -> None:
    store = str(tmp_path / "scores.adamant")

    def add(game: str, player: str, points: int) -> str:
        return run("examples/scores.py", store, "add", game, player, str(points))

    played = [("go", "ada", 9), ("go", "bob", 256), ("go", "ada", 70_000), ("chess", "ada", 7)]
    for game, player, points in played:
        assert add(game, player, points) == "a new best\n"
    assert add("go", "bob", 255) == "no new best\n"
    shown = " 70000 ada, before: 9\n   256 bob, before: None\n"
    assert run("examples/scores.py", store, "top", "go") == shown
    assert run("examples/scores.py", store, "player", "ada") == "     7 chess\n 70000 go\n"


def test_the_benchmark_compares_what_is_there() -> None:
    """Whether it runs, and every store has what was put; not how fast."""
    printed = run("benchmarks/compare.py", "--entries", "300", "--rounds", "1")
    rows = [line for line in printed.split("\n") if line.startswith("| ")]
    assert len(rows) == 14 and all("sqlite3" in rows[first] for first in (0, 7))
    assert all(row.count("|") > 4 for row in rows)


def test_the_benchmark_of_caches() -> None:
    """Whether it runs, and each cache has what was set; not how fast."""
    printed = run("benchmarks/caches.py", "--entries", "100", "--rounds", "1")
    rows = [line for line in printed.split("\n") if line.startswith("| ")]
    assert len(rows) == 6 and all(row.count("|") >= 4 for row in rows)
