"""The feed of changes, its cursors, and stores that follow another process."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import adamant
import pytest
from adamant import Change


def news(db: adamant.Store, after: int = 0) -> list[adamant.Commit]:
    with db.changes(after, timeout=0) as changes:
        return list(changes)


def test_each_kind_of_change(db: adamant.Store) -> None:
    one = db.keyspace("one", engine="lsm")
    other = db.keyspace("other", key_codec="utf-8")
    ending = db.expiring("ending")
    db.record_changes(1 << 20)
    one[b"a"] = b"1"
    del one[b"a"]
    one[b"b"] = b"2"
    one.rename(b"b", b"c")
    other["x"] = b"3"
    one.swap(b"c", b"c")
    one.move_to(b"c", other, "y")
    del one[b"k":b"p"]
    one[b"d"] = b"6"
    one.clear()
    ending.put(b"token", b"4", deadline=1.9e9)
    ending[b"for ever"] = b"5"
    db.rename_keyspace("one", "new")
    db.keyspace("later")
    db.drop_keyspace("later")
    found = news(db)
    assert [commit.number for commit in found] == list(range(1, len(found) + 1))
    assert db.last_change == found[-1].number
    ids = {change.keyspace: change.keyspace_id for commit in found for change in commit.changes}

    def is_in(name: str, **more: Any) -> Change:
        return Change(keyspace=name, keyspace_id=ids[name], **more)

    expected = [
        is_in("one", kind="put", key=b"a", value=b"1"),
        is_in("one", kind="removed", key=b"a"),
        is_in("one", kind="put", key=b"b", value=b"2"),
        is_in(
            "one", kind="moved", key=b"b", target="one", target_id=ids["one"], target_key=b"c"
        ),
        is_in("other", kind="put", key=b"x", value=b"3"),
        is_in(
            "one", kind="moved", key=b"c", target="other", target_id=ids["other"], target_key=b"y"
        ),
        is_in("one", kind="range removed", start=b"k", stop=b"p"),
        is_in("one", kind="put", key=b"d", value=b"6"),
        is_in("one", kind="cleared"),
        is_in("ending", kind="put", key=b"token", value=b"4", deadline=1.9e9),
        is_in("ending", kind="put", key=b"for ever", value=b"5"),
        is_in("one", kind="renamed", new_name="new"),
        is_in("later", kind="created"),
        is_in("later", kind="dropped"),
    ]
    made = [change for commit in found for change in commit.changes if change.kind != "swapped"]
    assert made == expected
    with db.batch() as batch:
        batch.put(other, "p", b"1")
        batch.put(other, "q", b"2")
    (commit,) = news(db, db.last_change - 1)
    assert {change.key for change in commit.changes} == {b"p", b"q"}
    assert db.own_change == commit.number
    db.wait_durable(commit.number)


def test_a_feed_waits_for_commits(db: adamant.Store) -> None:
    db.record_changes(1 << 20)
    jobs = db.keyspace("jobs", codec="utf-8")
    changes = db.changes(db.last_change)
    start = time.monotonic()
    assert changes.next(timeout=0) is None
    assert changes.next(timeout=0.25) is None and list(db.changes(1, timeout=0.01)) == []
    assert 0.25 <= time.monotonic() - start < 20

    def work() -> None:
        for number in range(20):
            time.sleep(0.001)
            jobs[str(number)] = "sweep"

    thread = threading.Thread(target=work)
    thread.start()
    taken = []
    for commit in changes:
        taken += [change.key for change in commit.changes]
        if len(taken) == 20:
            break
    thread.join()
    assert taken == [b"%d" % number for number in range(20)]
    assert changes.after == db.last_change == 21
    assert repr(changes) == "<adamant.Changes after 21>"
    # Threads that share one get each commit once.
    shared = db.changes(0, timeout=0.2)
    numbers: list[int] = []
    threads = [
        threading.Thread(target=lambda: numbers.extend(it.number for it in shared)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(1, 22))


def test_a_feed_that_ends(db: adamant.Store) -> None:
    db.record_changes(1 << 20)
    changes = db.changes()

    def raises() -> None:
        with pytest.raises(adamant.Closed):
            changes.next()

    thread = threading.Thread(target=raises)
    thread.start()
    time.sleep(0.05)
    changes.close()
    changes.close()
    thread.join()
    assert changes.closed and repr(changes) == "<adamant.Changes closed>"
    with pytest.raises(adamant.Closed):
        next(changes)
    with pytest.raises(TypeError):
        pickle.dumps(changes)
    changes = db.changes()
    db.close()
    with pytest.raises(adamant.Closed):
        changes.next()


def test_what_is_not_there(db: adamant.Store) -> None:
    for work in (
        lambda: db.changes(),
        lambda: db.last_change,
        lambda: db.changes_info(),
        lambda: db.cursors.get("worker"),
        lambda: db.batch().set_cursor("worker", 1),
        lambda: db.transaction().set_cursor("worker", 1),
        lambda: db.wait_durable(1),
    ):
        with pytest.raises(adamant.ChangesNotRecorded, match="Store.record_changes"):
            work()
    db.record_changes(2000)
    slow = db.changes()
    towns = db.keyspace("towns")
    for number in range(100):
        towns[b"%d" % number] = b"x" * 100
    with pytest.raises(adamant.ChangesUnknown, match="Store.record_changes") as found:
        slow.next()
    info = db.changes_info()
    assert (found.value.after, found.value.first, found.value.last) == (0, info.first, 101)
    assert 80 < info.first < 101 == info.last and info.bytes <= info.bytes_max == 2000
    with pytest.raises(adamant.ChangesUnknown, match="another store") as found:
        db.changes(1000)
    again = pickle.loads(pickle.dumps(found.value))
    assert str(again) == str(found.value) and again.after == 1000
    with pytest.raises(adamant.WrongKind, match="Store.changes"):
        db.keyspace("adamant.changes")
    with pytest.raises(adamant.InvalidArgument):
        db.changes(timeout=-1)
    assert [info.kind for info in db.keyspaces()] == ["changes", "plain"]
    db.record_changes(None)
    with pytest.raises(adamant.ChangesNotRecorded):
        news(db)


def test_cursors(path: Path) -> None:
    with adamant.open(path, durability="buffered") as db:
        db.record_changes(1 << 20)
        jobs, done = db.keyspace("jobs", codec="utf-8"), db.keyspace("done")
        for number in range(10):
            jobs[str(number)] = "sweep"
        assert dict(db.cursors) == {} and db.cursors.get("worker", 0) == 0
        for commit in db.changes(timeout=0):
            with db.batch() as batch:
                for change in commit.changes:
                    if change.keyspace == "jobs" and change.key is not None:
                        batch.put(done, change.key, b"%d" % commit.number)
                batch.set_cursor("worker", commit.number)
            if commit.number == 6:
                break
        assert len(done) == 4 and db.cursors["worker"] == 6
        last = db.last_change
        db.cursors["other"] = 3
        with db.transaction() as transaction:
            transaction.set_cursor("worker", 7)
        assert db.last_change == last, "that is no change"
        assert list(db.cursors) == ["other", "worker"] and len(db.cursors) == 2
        del db.cursors["other"]
        with pytest.raises(KeyError):
            del db.cursors["other"]
        with pytest.raises(KeyError):
            db.cursors["other"]
        with pytest.raises(adamant.InvalidArgument):
            db.cursors[""] = 1
    with adamant.open(path) as db:
        assert repr(db.cursors) == "<adamant.Cursors {'worker': 7}>"


def readers(path: Path) -> list[str]:
    return sorted(os.listdir(path / "readers"))


def test_a_store_follows_another_one(path: Path) -> None:
    with adamant.open(path, durability="buffered") as db:
        towns = db.keyspace("towns", codec="utf-8")
        towns["Bern"] = "0"
        assert not db.refresh() and not db.wait_for_change()
        beside = adamant.open(path, beside_writer=True)
        here = readers(path)

        def seen() -> str:
            return beside.keyspace("towns", codec="utf-8")["Bern"]

        for number in range(1, 5):
            towns["Bern"] = str(number)
            assert seen() == str(number - 1)
            assert beside.wait_for_change(10) and beside.refresh() and seen() == str(number)
        assert not beside.refresh() and not beside.wait_for_change(timeout=0.01)
        # Nobody held a keyspace, so it is the same reader still, and was not opened again.
        assert readers(path) == here
        held = beside.keyspace("towns", codec="utf-8")
        towns["Bern"] = "5"
        assert beside.refresh() and (held["Bern"], seen()) == ("4", "5")
        assert readers(path) != here
        with pytest.raises(adamant.Error):
            beside.snapshot()[held]["Bern"]
        found = []
        waiting = threading.Thread(target=lambda: found.append(beside.wait_for_change()))
        waiting.start()
        time.sleep(0.05)
        towns["Bern"] = "6"
        waiting.join()
        assert found == [True] and seen() == "5"
        beside.close()
        for work in (beside.refresh, beside.wait_for_change):
            with pytest.raises(adamant.Closed):
                work()
        assert held["Bern"] == "4"


def test_a_feed_of_another_process(path: Path) -> None:
    script = """
        import sys
        import adamant

        with adamant.open(sys.argv[1]) as db:
            jobs = db.keyspace("jobs", codec="utf-8")
            for line in sys.stdin:
                jobs["job"] = line.strip()
    """
    with adamant.open(path) as db:
        db.record_changes(1 << 20)
    words = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    with adamant.open(path, beside_writer=True) as beside:
        changes = beside.changes()
    writer = subprocess.Popen(words, stdin=subprocess.PIPE, text=True)
    assert writer.stdin is not None
    for job in ["", "sweep", "wash up", "cook"]:
        if job:
            print(job, file=writer.stdin, flush=True)
        commit = changes.next(timeout=60)
        assert commit is not None
        kind, value = ("put", job.encode()) if job else ("created", None)
        assert [(it.kind, it.value) for it in commit.changes] == [(kind, value)]
    writer.stdin.close()
    assert writer.wait() == 0
    assert changes.next(timeout=0.05) is None


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no such signals")
@pytest.mark.parametrize("work", ["next(db.changes())", "db.changes().next()", "db.wait_for_change()"])
def test_a_signal_ends_waiting(path: Path, work: str) -> None:
    script = f"""
        import signal
        import sys
        import adamant

        # Where tests run in the background the signal may be ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        db = adamant.open(sys.argv[1], beside_writer=True)
        print("waits", flush=True)
        try:
            {work}
        except KeyboardInterrupt:
            print("was interrupted")
    """
    with adamant.open(path) as db:
        db.record_changes(1 << 20)
    words = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    waiting = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert waiting.stdout is not None and waiting.stdout.readline() == "waits\n"
    time.sleep(0.2)
    waiting.send_signal(signal.SIGINT)
    assert waiting.communicate(timeout=10)[0] == "was interrupted\n"
