"""A leaderboard's story in redis-py, in both protocols. Arguments: host, port."""

import sys

import redis
from redis.backoff import ConstantBackoff
from redis.exceptions import AuthenticationError, ConnectionError, ReadOnlyError, ResponseError
from redis.retry import Retry

HOST, PORT = sys.argv[1], int(sys.argv[2])


def ask(what):
    print(what, flush=True)
    return sys.stdin.readline().strip()


def connect(protocol, retries=0, **options):
    retry = Retry(ConstantBackoff(0.05), retries)
    return redis.Redis(
        HOST, PORT, protocol=protocol, decode_responses=True, retry=retry, socket_timeout=60, **options
    )


def equal(found, wanted):
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def pairs(list_of_pairs):
    return [tuple(pair) for pair in list_of_pairs]


def refused(kind, words, call):
    try:
        call()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"not refused: {words}")


def sorted_set(r, key):
    equal(r.ping(), True)
    equal(r.zadd(key, {"ann": 30, "bob": 20.5, "cy": 10, "dee": 20.5}), 4)
    equal(r.zadd(key, {"ann": 31}, ch=True, gt=True), 1)
    equal(r.zincrby(key, 5, "cy"), 15.0)
    equal(r.zscore(key, "bob"), 20.5)
    equal(r.zmscore(key, ["ann", "nobody"]), [31.0, None])
    equal(pairs(r.zrange(key, 0, 1, withscores=True)), [("cy", 15.0), ("bob", 20.5)])
    equal(pairs(r.zrevrange(key, 0, 1, withscores=True)), [("ann", 31.0), ("dee", 20.5)])
    equal(r.zrange(key, 0, -1, desc=True), ["ann", "dee", "bob", "cy"])
    equal(r.zrangebyscore(key, "(15", "+inf", start=0, num=2), ["bob", "dee"])
    equal(r.zrange(key, "+inf", 20, byscore=True, desc=True, offset=1, num=2), ["dee", "bob"])
    equal((r.zrank(key, "ann"), r.zrevrank(key, "ann")), (3, 0))
    equal(list(r.zrank(key, "bob", withscore=True)), [1, 20.5])
    equal((r.zcard(key), r.zcount(key, 20, 40)), (4, 3))
    equal((r.type(key), r.exists(key, "nothing")), ("zset", 1))

    # A pipeline answers each command for itself; a transaction is one unit.
    with r.pipeline(transaction=False) as pipe:
        pipe.zadd(key, {"eve": 1}).zrevrank(key, "eve").zadd(key, {"": 1}).zrem(key, "eve").zcard(key)
        added, rank, wrong, removed, count = pipe.execute(raise_on_error=False)
    equal((added, rank, removed, count), (1, 4, 1, 4))
    assert isinstance(wrong, ResponseError) and "member" in str(wrong), wrong
    with r.pipeline(transaction=True) as pipe:
        pipe.zincrby(key, 1, "ann").zincrby(key, -1, "bob").zscore(key, "bob")
        equal(pipe.execute(), [32.0, 19.5, 19.5])

    members = {f"m{number:04}": number for number in range(1_000)}
    equal(r.zadd(f"{key}-many", members), 1_000)
    equal(dict(r.zscan_iter(f"{key}-many", count=100)), members)
    equal(sum(1 for _ in r.zscan_iter(f"{key}-many", match="m00*")), 100)
    assert {key, f"{key}-many", "season"} <= set(r.scan_iter(count=1))
    equal(pairs(r.zpopmax(f"{key}-many", 2)), [("m0999", 999.0), ("m0998", 998.0)])
    equal(pairs(r.zpopmin(f"{key}-many", 1)), [("m0000", 0.0)])
    equal(r.zremrangebyrank(f"{key}-many", 0, 96), 97)
    equal(r.zcard(f"{key}-many"), 900)
    equal(r.delete(f"{key}-many"), 1)
    equal(r.exists(f"{key}-many"), 0)


def leaderboard(r, board):
    call = r.execute_command
    equal(call("LB.CREATE", board, "ORDER", "ascending", "UPDATE", "best", "RANKING", "competition"), "OK")
    refused(ResponseError, "definition_conflict", lambda: call("LB.CREATE", board, "UPDATE", "sum"))
    equal(call("LB.SUBMIT", board, "ann", 61_200, "ID", f"{board}-1"), [61_200, 1, None, None])
    equal(call("LB.SUBMIT", board, "bob", 59_900), [59_900, 1, None, None])
    equal(call("LB.SUBMIT", board, "ann", 61_000), [61_000, 2, 61_200, 2])
    # The same request again is not counted again; another one under its name is refused.
    equal(call("LB.SUBMIT", board, "ann", 61_200, "ID", f"{board}-1")[0], 61_200)
    wrong = "idempotency_key_reused"
    refused(ResponseError, wrong, lambda: call("LB.SUBMIT", board, "ann", 1, "ID", f"{board}-1"))
    equal(call("LB.MSUBMIT", board, "cy", 61_000, "dee", 70_000), [[61_000, 2, None, None], [70_000, 4, None, None]])
    equal(call("LB.TOP", board, 3), [[1, "bob", 59_900], [2, "ann", 61_000], [2, "cy", 61_000]])
    equal(call("LB.AROUND", board, "cy", 1, 1), [[2, "ann", 61_000], [2, "cy", 61_000], [4, "dee", 70_000]])
    equal(call("LB.RANK", board, "dee"), [4, 70_000, 4])
    equal(call("LB.RANK", board, "nobody"), None)
    equal(call("LB.AMONG", board, "dee", "ann", "nobody"), [[1, 2, "ann", 61_000], [2, 4, "dee", 70_000]])
    refused(ResponseError, "no such leaderboard", lambda: call("LB.SUBMIT", "nothing", "ann", 1))


def season(r, player):
    before = r.zcard("season@weekly")
    equal(r.execute_command("LB.SUBMIT", "season", player, 7), [7, before + 1, None, None])
    equal(r.zincrby("season", 2**53, player), 2.0**53 + 7)
    equal(r.zscore("season@weekly", player), 2.0**53 + 7)
    equal(r.zrevrange("season@weekly", before, -1), [player])
    equal(r.zcard("season@weekly:previous"), 0)
    open_one = r.execute_command("LB.PERIODS", "season")[0]
    equal(open_one[3:], ["open", before + 1])
    refused(ReadOnlyError, "period", lambda: r.zadd("season@weekly", {player: 1}))


def everything(r):
    boards = sorted(r.scan_iter())
    return {board: pairs(r.zrange(board, 0, -1, withscores=True)) for board in boards}


stories = {protocol: connect(protocol, retries=200) for protocol in (2, 3)}
for protocol, r in stories.items():
    sorted_set(r, f"duels{protocol}")
    leaderboard(r, f"laps{protocol}")
    season(r, f"ann{protocol}")

# What was acknowledged outlives a kill; the clients connect again by themselves.
before = everything(stories[2])
equal(sorted(before), ["duels2", "duels3", "laps2", "laps3", "season"])
ask("kill")
for r in stories.values():
    equal(everything(r), before)
for protocol, r in stories.items():
    equal(r.zadd(f"duels{protocol}", {"fay": 3}), 1)

# With the first key, nobody may ask without one.
key = ask("key")
for protocol in (2, 3):
    for wrong in ({}, {"password": key[:-1] + "x"}, {"username": "ann", "password": key}):
        refused(AuthenticationError, "", connect(protocol, **wrong).ping)
    equal(connect(protocol, password=key).zscore("duels2", "fay"), 3.0)
    equal(connect(protocol, username="default", password=key).zincrby("duels3", 1, "fay"), 2.0 + protocol)
print("end", flush=True)
