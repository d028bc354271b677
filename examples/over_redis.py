"""A game server's leaderboard over the Redis protocol, with redis-py (pip install redis).

TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
python3 examples/over_redis.py [redis://127.0.0.1:8421 [http://127.0.0.1:8420]]
"""

import json
import sys
from urllib.request import Request, urlopen

import redis

REDIS, HTTP = (sys.argv[1:] + ["redis://127.0.0.1:8421", "http://127.0.0.1:8420"][len(sys.argv) - 1 :])[:2]

# Once there are keys (`tally keys create --role server`): redis://:tally_...@host:8421
r = redis.Redis.from_url(REDIS, decode_responses=True)
# Commands that Redis does not have are sent by name; integers come back as integers, without loss.
lb = r.execute_command


def shown(entries):
    return ", ".join(f"{rank} {player} {score}" for rank, player, score in entries)


# A board; it may be repeated. Its week is added over HTTP, where periods are defined.
lb("LB.CREATE", "arcade", "UPDATE", "best")
weekly = json.dumps({"periods": [{"name": "weekly", "schedule": "0 0 * * 1"}]}).encode()
urlopen(Request(f"{HTTP}/v1/leaderboards/arcade", weekly, {"Content-Type": "application/json"}, method="PUT"))

# One submit counts for all time and for this week. A network may lose the reply: with an ID of your own (the match, the
# player) the same request can be sent again and counts once.
for _ in range(2):
    score, rank, _previous_score, _previous_rank = lb("LB.SUBMIT", "arcade", "ada", 1200, "ID", "match-17-ada")
    print(f"ada {score}: rank {rank}")

# Many at once: one round trip, and each still gets its own reply. transaction=False, because nothing here must be one
# unit; raise_on_error=False, because a score that is refused fails alone.
with r.pipeline(transaction=False) as pipe:
    for n in range(1, 101):
        pipe.execute_command("LB.SUBMIT", "arcade", f"p{n:03}", n * 10)
    replies = pipe.execute(raise_on_error=False)
print(f"{sum(not isinstance(reply, Exception) for reply in replies)} players submitted")

print("top 10:", shown(lb("LB.TOP", "arcade", 10)))
print("around p050:", shown(lb("LB.AROUND", "arcade", "p050", 2, 2)))
friends = lb("LB.AMONG", "arcade", "ada", "p007", "nobody")
print("friends:", shown((rank, player, score) for rank, _overall, player, score in friends))

# A board is a key and reads like a sorted set, best last; @weekly is its week, read only.
best = r.zrevrange("arcade@weekly", 0, 0, withscores=True)
print("this week:", shown((at + 1, player, round(score)) for at, (player, score) in enumerate(best)))
