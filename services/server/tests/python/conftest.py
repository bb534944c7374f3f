"""A server for the tests: the program that `ADAMANT_SERVER` names, on a store of its own."""

import os
import subprocess

import pytest
import redis

SECONDS_MAX = 60


@pytest.fixture(scope="session")
def port(tmp_path_factory):
    store = tmp_path_factory.mktemp("server") / "store"
    options = ["--port", "0", "--databases", "4", "--durability", "buffered"]
    command = [os.environ["ADAMANT_SERVER"], str(store), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        line = server.stdout.readline()
        yield int(line.strip().rsplit(":", 1)[1])
        server.terminate()
        # What was taken in is answered, and the store closed.
        assert server.wait(SECONDS_MAX) == 0


@pytest.fixture(params=[2, 3], ids=["RESP2", "RESP3"])
def client(request, port):
    with redis.Redis(
        port=port, protocol=request.param, decode_responses=True, socket_timeout=SECONDS_MAX
    ) as client:
        client.flushall()
        yield client
