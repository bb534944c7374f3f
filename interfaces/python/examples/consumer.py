"""Two processes and a queue that nobody polls: python consumer.py STORE

A producer writes jobs to a store. This process reads the store beside it, waits for its commits, and
keeps the number of the last one that it has handled in a store of its own: begun again, it goes on
behind that. A job is handled again only if the process dies before the number is written.
"""

from __future__ import annotations

import subprocess
import sys

import adamant

JOBS = ["sweep", "wash up", "cook"]


def produce(path: str) -> None:
    with adamant.open(path) as db:
        jobs = db.keyspace("jobs", codec="utf-8")
        number = len(jobs)
        for words in [*JOBS, "go home"]:
            jobs[f"{number:020}"] = words
            number += 1


def consume(path: str) -> None:
    with adamant.open(path + ".consumer") as own:
        done = own.keyspace("done", codec="utf-8")
        with adamant.open(path, beside_writer=True) as db:
            changes = db.changes(int(done.get("commit", "0")))
        for commit in changes:
            for change in commit.changes:
                if change.kind == "put" and change.keyspace == "jobs":
                    print("doing", (change.value or b"").decode())
            done["commit"] = str(commit.number)
            if any(change.value == b"go home" for change in commit.changes):
                break


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    if "produce" in sys.argv:
        produce(sys.argv[1])
        return 0
    # So that there is a store whose feed can be read.
    with adamant.open(sys.argv[1]) as db:
        db.record_changes(1 << 20)
    producer = subprocess.Popen([sys.executable, __file__, sys.argv[1], "produce"])
    consume(sys.argv[1])
    return producer.wait()


if __name__ == "__main__":
    sys.exit(main())
