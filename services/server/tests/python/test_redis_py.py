"""The server as redis-py uses it, by both versions of the protocol."""

import asyncio
import threading
import time

import pytest
import redis
import redis.asyncio


def test_values(client):
    assert client.set("a", "1") is True
    assert client.get("a") == "1"
    assert client.get("nothing") is None
    assert client.set("a", "2", get=True) == "1"
    assert client.set("a", "3", nx=True) is None
    assert client.set("b", "4", xx=True) is None
    assert client.mset({"b": "5", "c": "6"}) is True
    assert client.mget("a", "b", "c", "nothing") == ["2", "5", "6", None]
    assert client.incrby("a", 40) == 42
    assert client.incrbyfloat("a", "0.5") == 42.5
    assert client.append("c", "78") == 3
    assert client.getrange("c", 1, -1) == "78"
    assert client.setrange("c", 1, "__") == 3
    assert client.strlen("c") == 3
    assert client.exists("a", "b", "nothing") == 2
    assert client.delete("a", "nothing") == 1
    assert client.getdel("b") == "5"
    assert client.type("c") == "string"
    assert client.dbsize() == 1


def test_bytes_of_all_kinds(port):
    with redis.Redis(port=port, protocol=3) as client:
        key, value = bytes(range(256)), bytes(reversed(range(256))) * 4000
        assert client.set(key, value)
        assert client.get(key) == value
        assert client.execute_command("ADAMANT.RANGE", b"[" + key, b"[" + key) == [key, value]
        assert client.delete(key) == 1


def test_what_is_wrong_is_an_exception(client):
    client.set("a", "text")
    with pytest.raises(redis.ResponseError, match="not an integer"):
        client.incr("a")
    with pytest.raises(redis.ResponseError, match="unknown command"):
        client.lpush("a", "1")
    with pytest.raises(redis.ResponseError, match="up to 65527 bytes"):
        client.set("k" * 65528, "1")
    assert client.set("", "empty") and client.get("") == "empty" and client.exists("") == 1
    assert client.delete("") == 1 and client.get("") is None
    assert client.get("a") == "text"


def test_pipelines(client):
    with client.pipeline(transaction=False) as pipeline:
        for number in range(2000):
            pipeline.set(f"key:{number}", number)
        pipeline.get("key:1999").incr("key:7")
        replies = pipeline.execute()
    assert replies[:2000] == [True] * 2000
    assert replies[2000:] == ["1999", 8]
    with client.pipeline(transaction=True) as pipeline:
        pipeline.incr("key:7").set("text", "x").incr("text").get("key:7")
        replies = pipeline.execute(raise_on_error=False)
    assert replies[0] == 9 and replies[3] == "9"
    assert isinstance(replies[2], redis.ResponseError)


def test_transactions_that_watch(client, port):
    client.set("balance", "100")
    with client.pipeline() as pipeline:
        pipeline.watch("balance")
        balance = int(pipeline.get("balance"))
        pipeline.multi()
        pipeline.set("balance", balance - 30)
        assert pipeline.execute() == [True]
        pipeline.watch("balance")
        with redis.Redis(port=port) as other:
            other.set("balance", "5")
        pipeline.multi()
        pipeline.set("balance", "0")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    assert client.get("balance") == "5"


def test_transactions_of_many_threads(client):
    """Each takes from one key and gives to another: nothing is lost, and nothing is made."""
    client.mset({"left": "1000", "right": "0"})

    def move(pipeline):
        left, right = int(pipeline.get("left")), int(pipeline.get("right"))
        pipeline.multi()
        pipeline.mset({"left": left - 1, "right": right + 1})

    def work():
        for _ in range(25):
            client.transaction(move, "left", "right")

    run_at_once([work] * 4)
    assert client.mget("left", "right") == ["900", "100"]


def test_scans(client):
    keys = {f"user:{number}" for number in range(700)}
    client.mset({key: "" for key in keys} | {"other": ""})
    assert set(client.scan_iter(match="user:*", count=50)) == keys
    assert set(client.scan_iter()) == keys | {"other"}
    assert set(client.scan_iter(_type="string", count=1000)) == keys | {"other"}
    assert sorted(client.keys("user:69?")) == [f"user:69{digit}" for digit in range(10)]
    assert client.randomkey() in keys | {"other"}


def test_deadlines(client):
    client.set("a", "1", px=80)
    client.set("b", "1", ex=1000)
    client.set("c", "1")
    assert client.expire("c", 1000, nx=True) is True
    assert client.expire("c", 2000, nx=True) is False
    assert 0 < client.ttl("b") <= 1000
    assert client.persist("b") is True and client.ttl("b") == -1
    moment = int(time.time()) + 500
    assert client.expireat("b", moment) is True and client.expiretime("b") == moment
    assert client.getex("b", persist=True) == "1" and client.pttl("b") == -1
    end = time.monotonic() + 60
    while client.exists("a"):
        assert time.monotonic() < end
        time.sleep(0.01)
    assert client.ttl("a") == -2 and client.dbsize() == 2


def test_a_pool_that_threads_share(client):
    def count(number):
        def work():
            for _ in range(100):
                client.incr("all")
                assert client.incr(f"own:{number}") > 0

        return work

    run_at_once([count(number) for number in range(8)])
    assert client.get("all") == "800"
    assert [client.get(f"own:{number}") for number in range(8)] == ["100"] * 8
    assert client.info("clients")["connected_clients"] >= 1


def test_databases(client, port):
    client.set("a", "here")
    with redis.Redis(port=port, db=3, decode_responses=True) as other:
        assert other.get("a") is None
        other.set("a", "there")
        assert client.move("a", 3) is False
        assert client.copy("a", "b", destination_db=3) is True
        assert other.get("b") == "here"
    assert client.info("keyspace")["db3"]["keys"] == 2


def test_what_is_said_of_clients_and_the_server(client):
    client.client_setname("tester")
    listed = client.client_list()
    assert any(one["name"] == "tester" and one["lib-name"] == "redis-py" for one in listed)
    assert client.client_getname() == "tester"
    assert client.ping() is True
    assert client.echo("hello") == "hello"
    assert client.config_get("maxclients") == {"maxclients": "10000"}
    assert client.info("server")["redis_mode"] == "standalone"
    assert client.command_count() > 50
    assert client.execute_command("ADAMANT.CHECK") in ("OK", True)


def test_ranges_in_order(client):
    client.mset({"b": "2", "a": "1", "d": "4", "c": "3"})
    assert client.execute_command("ADAMANT.RANGE", "(a", "[c") == ["b", "2", "c", "3"]
    assert client.execute_command("ADAMANT.RANGE", "-", "+", "REV", "LIMIT", 2) == ["d", "4", "c", "3"]
    assert client.execute_command("ADAMANT.COUNT", "-", "+") == 4


def test_without_threads(port):
    async def work():
        async with redis.asyncio.Redis(port=port, protocol=3, decode_responses=True) as client:
            await client.flushall()
            replies = await asyncio.gather(*(client.incr("n") for _ in range(50)))
            assert sorted(replies) == list(range(1, 51))
            async with client.pipeline(transaction=True) as pipeline:
                assert await pipeline.set("a", "1").incr("a").execute() == [True, 2]

    asyncio.run(work())


def run_at_once(works):
    """Runs functions in threads; what fails in one fails here."""
    failures = []

    def guarded(work):
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
