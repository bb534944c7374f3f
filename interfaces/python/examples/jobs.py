"""A queue of jobs that survives crashes: python jobs.py STORE add WORDS... | work | list"""

from __future__ import annotations

import sys

import adamant


def add(db: adamant.Store, words: list[str]) -> None:
    waiting = db.keyspace("waiting", codec="utf-8")

    def append(transaction: adamant.Transaction) -> None:
        queue = transaction[waiting]
        last = queue.last()
        number = int(last[0]) + 1 if last else 0
        for word in words:
            queue[f"{number:020}"] = word
            number += 1

    db.run(append)


def work(db: adamant.Store) -> None:
    waiting, done = (db.keyspace(name, codec="utf-8") for name in ("waiting", "done"))
    for number, words in waiting.items():
        print("doing", words)
        # The job is done and out of the queue in one commit, or still in it.
        with db.batch() as batch:
            batch.move_to(waiting, number, done, number)


def show(db: adamant.Store) -> None:
    for info in db.keyspaces():
        for number, words in db.keyspace(info.name, codec="utf-8").items():
            print(f"{info.name:8} {int(number):4} {words}")


def main() -> int:
    if len(sys.argv) < 3 or sys.argv[2] not in ("add", "work", "list"):
        print(__doc__, file=sys.stderr)
        return 2
    with adamant.open(sys.argv[1]) as db:
        if sys.argv[2] == "add":
            add(db, sys.argv[3:])
        elif sys.argv[2] == "work":
            work(db)
        else:
            show(db)
    return 0


if __name__ == "__main__":
    sys.exit(main())
