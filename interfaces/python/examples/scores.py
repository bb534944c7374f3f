"""High scores: python scores.py STORE add GAME PLAYER POINTS | top GAME | player NAME

Keys and values are typed. A program in Rust reads the same keyspaces, by
typed::<(String, Reverse<u32>, String), Json<serde_json::Value>>() and
typed::<(String, String), u32>().
"""

from __future__ import annotations

import sys
from itertools import islice

import adamant
from adamant.typed import Json, Reverse, u32

SHOWN = 3


class Scores:
    """By game the highest first, and by player: two orders of the same entries."""

    def __init__(self, db: adamant.Store) -> None:
        self.db = db
        self.by_points = db.keyspace("by points").typed(tuple[str, Reverse[u32], str], Json)
        self.by_player = db.keyspace("by player").typed(tuple[str, str], u32)

    def add(self, game: str, player: str, points: int) -> bool:
        """Records points, if they are the most of this player in this game."""

        def record(transaction: adamant.Transaction) -> bool:
            best, rank = transaction[self.by_player], transaction[self.by_points]
            before = best.get((player, game))
            if before is not None and before >= points:
                return False
            if before is not None:
                del rank[game, before, player]
            best[player, game] = points
            rank[game, points, player] = {"before": before}
            return True

        return self.db.run(record)

    def top(self, game: str) -> None:
        best = self.by_points.items(prefix=(game,))
        for (_, points, player), about in islice(best, SHOWN):
            print(f"{points:6} {player}, before: {about['before']}")

    def of_player(self, player: str) -> None:
        for (_, game), points in self.by_player.items(prefix=(player,)):
            print(f"{points:6} {game}")


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    with adamant.open(sys.argv[1]) as db:
        scores = Scores(db)
        match sys.argv[2:]:
            case ["add", game, player, points]:
                print("a new best" if scores.add(game, player, int(points)) else "no new best")
            case ["top", game]:
                scores.top(game)
            case ["player", name]:
                scores.of_player(name)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
