"""A game server's leaderboard over HTTP, with Python's standard library alone.

TALLY_KEYS_REQUIRED=false cargo run --release -- serve     in another terminal
python3 examples/over_http.py [http://127.0.0.1:8420]
"""

import json
import sys
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8420"


def ask(method, path, body=None, retry_key=None):
    headers = {"Content-Type": "application/json"}
    # Once there are keys (`tally keys create --role server`): headers["Authorization"] = "Bearer tally_..."
    if retry_key:
        headers["Idempotency-Key"] = retry_key
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(f"{URL}/v1{path}", data, headers, method=method), timeout=10) as answer:
            return json.load(answer)
    except HTTPError as refused:
        # The body of a refusal says what is wrong; its `code` is for programs.
        raise SystemExit(f"{refused.code}: {refused.read().decode()}")


def shown(entries):
    return ", ".join(f"{entry['rank']} {entry['player']} {entry['score']}" for entry in entries)


# A board, with a weekly one inside it. PUT may be repeated: do it at every start of your game server.
weekly = {"name": "weekly", "schedule": "0 0 * * 1"}
ask("PUT", "/leaderboards/arcade", {"update": "best", "periods": [weekly]})

# One submit counts for all time and for this week. A network may lose the answer: with a key of your own (the match, the
# player) the same request can be sent again and counts once.
for _ in range(2):
    done = ask("POST", "/leaderboards/arcade/scores", {"player": "ada", "score": 1200}, "match-17-ada")
    print(f"ada {done['score']}: rank {done['rank']}")

# Up to 1000 scores in one request. A row that is refused fails alone, so look at each.
rows = [{"board": "arcade", "player": f"p{n:03}", "score": n * 10} for n in range(1, 101)]
results = ask("POST", "/scores/batch", {"scores": rows})["results"]
print(f"{sum('error' not in result for result in results)} players submitted")

print("top 10:", shown(ask("GET", "/leaderboards/arcade/scores?limit=10")["entries"]))
# A player's name can have any character: quote it.
around = ask("GET", f"/leaderboards/arcade/players/{quote('p050', safe='')}/around?above=2&below=2")
print("around p050:", shown(around["entries"]))
friends = ask("POST", "/leaderboards/arcade/among", {"players": ["ada", "p007", "nobody"]})
print("friends:", shown(friends["entries"]))
print("this week:", shown(ask("GET", "/leaderboards/arcade/scores?period=weekly&limit=1")["entries"]))
