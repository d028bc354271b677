"""The tutorial: a weekly board in Seoul, scores, friends, wallets, and a contest with fees and prizes.

TALLY_KEYS_REQUIRED=false tally serve          in another terminal, on a new data directory
python3 tutorial.py [http://127.0.0.1:8420]
"""

import os
import sys
from typing import List

from tally_client import Tally, TallyError
from tally_client.types import AmongEntry, Entry

url = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8420"
tally = Tally(url, key=os.environ.get("TALLY_KEY"))

# A board keeps the best score of each player: for all time, and for each week, which begins on Monday in Seoul.
# Repeat this at every start of your game server: an equal board is left as it is.
tally.put_board(
    "arcade",
    {"update": "best", "periods": [{"name": "weekly", "schedule": "0 0 * * 1", "time_zone": "Asia/Seoul"}]},
)

# A score is durable when the call returns. Each call has a key of its own, and is sent again if the network loses its answer.
# Give the match as key if your own program may send it again, such as after a crash: it counts once.
for player, score in [("ada", 1200), ("bob", 950), ("cy", 1100), ("dee", 400)]:
    tally.submit("arcade", player, score, idempotency_key=f"match-17-{player}")
ada = tally.submit("arcade", "ada", 1200, idempotency_key="match-17-ada")
print(f"ada has {ada['score']}, rank {ada['rank']}")


# The best of this week, the ranks around a player, and friends among each other.
def shown(entries: List[Entry]) -> str:
    return ", ".join(f"{entry['rank']} {entry['player']} {entry['score']}" for entry in entries)


print("this week:", shown(tally.top("arcade", 3, period="weekly")))
print("around bob:", shown(tally.around("arcade", "bob", above=1, below=1)))
friends: List[AmongEntry] = tally.among("arcade", ["dee", "cy", "nobody"])["entries"]
print("friends of dee:", shown([*friends]))
print(sum(1 for _ in tally.scores("arcade", limit=2)), "players on the board")

# Money belongs to members. An amount is a whole number of the smallest unit, and answers have it as text.
members = {}
for login in ("ada", "bob", "cy"):
    member = tally.create_member(login, login, player=login, idempotency_key=f"join-{login}")
    tally.deposit(member["id"], 1000, idempotency_key=f"welcome-{login}")
    members[login] = member["id"]
paid = tally.transfer(members["ada"], members["bob"], 300, reference="a lost bet")
print(f"ada has {paid['after']} after the transfer")
try:
    tally.transfer(members["ada"], members["bob"], 5000)
except TallyError as error:
    print("refused:", error.code)

# A contest: players apply, which holds the fee; the start takes it; the settlement pays the prizes, once.
currency = paid["currency"]
cup = tally.create_contest(
    {
        "id": "friday-cup",
        "title": "Friday cup",
        "entry_fee": {"currency": currency, "amount": 100},
        "prizes": [
            {"from": 1, "to": 1, "currency": currency, "amount": 200},
            {"from": 2, "to": 2, "currency": currency, "amount": 50},
        ],
    }
)["id"]
tally.open_contest(cup)
for player in members:
    tally.apply(cup, player)
tally.accept(cup, members)
started = tally.start_contest(cup)
prizes = " and ".join(prize["amount"] for prize in started["prizes"])
print(f"{started['enrolled']} players play for {prizes}")
board = started["board"] or ""
for player, score in [("ada", 7), ("bob", 9), ("cy", 8)]:
    tally.submit(board, player, score)
tally.finish_contest(cup)
tally.settle_contest(cup)
for prize in tally.prizes(cup):
    print(f"rank {prize['rank']}: {prize['player']} wins {prize['amount']}")
for name, id in members.items():
    print(f"{name} has {tally.wallets(id)[0]['balance']}")
