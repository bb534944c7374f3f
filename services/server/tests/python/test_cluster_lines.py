"""The lines of docs/cluster.md as they stand there: three nodes, what comes to them from a server, and back.

Ports are exchanged for such as are free, and waiting two seconds for waiting until the nodes are there. Nodes
are told to be patient: a disk that has to write what was built just now may hold up a sync for seconds, and a
node that leads loses that to another one after one second."""

import contextlib
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis

DOCUMENT = Path(__file__).parents[4] / "docs" / "cluster.md"
SECONDS_MAX = 600
PATIENT = "--cluster-heartbeat-ms 1000 --cluster-patience-seconds 100"
JOINED = """for i in $(seq 3000); do
  [ "$(redis-cli -p %s1 adamant.cluster status | grep -c voter)" = 3 ] && break
  sleep 0.1
done"""


def block(language, word):
    """The one block of code that has a word."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT.read_text(), re.S | re.M)
    (found,) = [text for text in blocks if word in text]
    return found


def replaced(text, changes):
    """All at once: what is new is not looked at again."""
    for old in changes:
        assert old in text, f"docs/cluster.md has no {old!r} any more"
    return re.sub("|".join(map(re.escape, changes)), lambda found: changes[found[0]], text)


def is_free(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def free_ten():
    """What three ports begin with that end with 1, 2 and 3, below those that the system gives away."""
    tens = random.sample(range(1000, 3200), 100)
    return str(next(ten for ten in tens if all(is_free(10 * ten + end) for end in (1, 2, 3))))


@contextlib.contextmanager
def shell(lines, folder, programs):
    """Runs lines, and ends what they have left running. What they print goes to a file."""
    environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}")
    with open(folder / "printed", "w+") as printed:
        bash = subprocess.Popen(
            ["bash", "-e", "-c", lines],
            cwd=folder,
            env=environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield bash, folder / "printed"
        finally:
            # The group is of what was started here alone.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(bash.pid, signal.SIGKILL)
            bash.wait(SECONDS_MAX)


@pytest.fixture
def programs(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "adamant-server").symlink_to(os.environ["ADAMANT_SERVER"])
    (folder / "adamant").symlink_to(os.environ["ADAMANT"])
    return folder


HAS_CLIENT = shutil.which("redis-cli") is not None


@pytest.mark.skipif(not HAS_CLIENT, reason="redis-cli (redis-tools) is not installed")
def test_from_one_server_to_three_and_back(port, tmp_path, programs):
    clients, nodes = free_ten(), free_ten()
    changes = {"637": clients, "700": nodes, "sleep 2": JOINED % clients}
    changes["--cluster $1"] = f"--cluster $1 {PATIENT}"
    lines = replaced(block("sh", "--cluster-init"), changes)
    with shell(lines, tmp_path, programs) as (bash, printed):
        assert bash.wait(SECONDS_MAX) == 0, printed.read_text()
        words = printed.read_text()
        assert re.search(r"^OK$", words, re.M) and re.search(r"^hello$", words, re.M), words
        assert words.count("voter") >= 3, words

        with redis.Redis(port=port) as source:
            source.flushall()
            source.mset({f"key {number}": str(number) for number in range(500)})
            source.set("ends", "soon", ex=3600)
        copy = replaced(
            block("python", "scan_iter"), {"port=6379": f"port={port}", "port=6371": f"port={clients}1"}
        )
        exec(compile(copy, str(DOCUMENT), "exec"), {})
        with redis.Redis(port=int(f"{clients}2")) as other:
            assert other.dbsize() == 502
            assert other.get("key 499") == b"499" and 0 < other.ttl("ends") <= 3600

        changes = {"637": clients, "adamant-server app.adamant": "adamant-server app.adamant --port 0"}
        back = replaced(block("sh", "adamant backup"), changes)
        folder = tmp_path / "back"
        folder.mkdir()
        back = back.replace("node-1.adamant", f"{tmp_path}/node-1.adamant")
        with shell(back, folder, programs) as (bash, printed):
            end = time.monotonic() + SECONDS_MAX
            while not (listening := re.search(r"^listening on .*:(\d+)$", printed.read_text(), re.M)):
                assert bash.poll() is None and time.monotonic() < end, printed.read_text()
                time.sleep(0.05)
            with redis.Redis(port=int(listening[1])) as server:
                assert server.dbsize() == 502 and server.get("greeting") == b"hello"
                assert 0 < server.ttl("ends") <= 3600
