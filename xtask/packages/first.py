"""What a package must be able to do once it is installed."""

import sys
import tempfile
from pathlib import Path

import adamant

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "app.adamant"
    with adamant.open(path) as db:
        db.keyspace("users", codec="utf-8")["7"] = "Ada Lovelace"
    with adamant.open(path) as db:
        found = db.keyspace("users", codec="utf-8")["7"]
    sys.exit(found != "Ada Lovelace" and f"expected Ada Lovelace, found {found}")
