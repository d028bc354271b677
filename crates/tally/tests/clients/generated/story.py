"""The story of docs/tutorial.md in the client that openapi-python-client generates: a board of the week with friends, wallets,
the prizes of a closed round, and a contest. Argument: the address.

mypy checks this file with `--strict`, so the types of the client are part of what it tests.
"""

from __future__ import annotations

import sys
import time
from datetime import datetime, timezone
from io import BytesIO
from typing import TypeVar

from tally_client import Client
from tally_client.api.contests import (
    accept_applications,
    apply_to_contest,
    create_contest,
    finish_contest,
    list_contest_prizes,
    open_contest,
    settle_contest,
    start_contest,
)
from tally_client.api.imports import import_chunk
from tally_client.api.leaderboards import list_period_prizes, list_periods, put_leaderboard
from tally_client.api.members import create_member
from tally_client.api.scores import get_rank, list_among, list_around, list_scores, submit_batch, submit_score
from tally_client.api.service import get_metrics
from tally_client.api.wallets import deposit, get_wallets, transfer
from tally_client.models import (
    Among,
    AmongPlayers,
    AroundPage,
    Batch,
    BatchAnswer,
    BatchRow,
    Board,
    BoardPut,
    BoardPutUpdate,
    Contest,
    ContestPlayers,
    ContestPrizeList,
    ContestState,
    Decided,
    EntryFeeIn,
    Import,
    Member,
    NewApplication,
    NewContest,
    NewDeposit,
    NewMember,
    NewScore,
    NewTransfer,
    Page,
    Period,
    PeriodItemState,
    PeriodList,
    PeriodPrizeList,
    PlayerRank,
    PrizeIn,
    Problem,
    RefusedRow,
    StartedContest,
    SubmitScoreWindows,
    Submitted,
    SubmittedRow,
    Transaction,
    WalletList,
)
from tally_client.types import UNSET, File, Unset

T = TypeVar("T")

client = Client(base_url=sys.argv[1])


def good(kind: type[T], answer: object) -> T:
    assert isinstance(answer, kind), answer
    return answer


def equal(found: object, wanted: object) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


# A field that is left out is not sent: the same PUT again changes nothing, whatever the board has.
first = BoardPut(all_time=False, periods=[Period(name="weekly", schedule="0 0 * * 1", time_zone="Asia/Seoul")])
board = good(Board, put_leaderboard.sync("laps", client=client, body=first))
equal((board.all_time, board.periods[0].keep, board.update.value), (False, 12, "best"))
again = good(Board, put_leaderboard.sync("laps", client=client, body=BoardPut()))
equal((again.all_time, len(again.periods)), (False, 1))
equal(BoardPut().to_dict(), {})

good(Board, put_leaderboard.sync("goals", client=client, body=BoardPut(update=BoardPutUpdate.SUM)))
for _ in range(2):
    done = good(
        Submitted,
        submit_score.sync("goals", client=client, body=NewScore(player="ada", score=2**53 + 1), idempotency_key="m1"),
    )
    equal((done.score, done.rank), (2**53 + 1, 1))
rows = [BatchRow(board="goals", player=f"p{number}", score=number) for number in range(5)]
rows.append(BatchRow(board="goals", player="p1", score=1, at=datetime(2999, 1, 1, tzinfo=timezone.utc)))
results = good(BatchAnswer, submit_batch.sync(client=client, body=Batch(scores=rows))).results
assert all(isinstance(row, SubmittedRow) for row in results[:5]), results
equal(good(RefusedRow, results[5]).error.code, "at_in_future")
page = good(Page, list_scores.sync("goals", client=client, limit=2))
equal([(entry.rank, entry.player) for entry in page.entries], [(1, "ada"), (2, "p4")])
rest = good(Page, list_scores.sync("goals", client=client, cursor=page.next_cursor))
equal([entry.player for entry in rest.entries], ["p3", "p2", "p1", "p0"])
assert rest.next_cursor is UNSET, rest
around = good(AroundPage, list_around.sync("goals", "p2", client=client, above=1, below=1))
equal([entry.player for entry in around.entries], ["p3", "p2", "p1"])
friends = good(Among, list_among.sync("goals", client=client, body=AmongPlayers(players=["p2", "ada", "nobody"])))
equal([(entry.rank, entry.overall_rank, entry.player) for entry in friends.entries], [(1, 1, "ada"), (2, 4, "p2")])
equal(friends.missing, ["nobody"])
equal(good(PlayerRank, get_rank.sync("goals", "p2", client=client)).rank, 4)
equal(good(Problem, get_rank.sync("goals", "nobody", client=client)).code, "player_not_ranked")

head = '{"board":"goals","digest":"%s","lines_before":0,"lines_after":1,"last":true}\n' % ("0" * 64)
line = '{"line":1,"player":"zoe","score":3}\n'
imported = import_chunk.sync(client=client, body=File(payload=BytesIO((head + line).encode())))
equal(good(Import, imported).taken, 1)
assert "tally_connections" in good(str, get_metrics.sync(client=client))

members = {}
for login in ("ann", "bob", "cid"):
    body = NewMember(login_id=login, name=login.title(), player=login)
    members[login] = good(Member, create_member.sync(client=client, body=body, idempotency_key=login)).id
good(Transaction, deposit.sync(client=client, body=NewDeposit(to=members["ann"], amount=1000)))
body_of_transfer = NewTransfer(from_=members["ann"], to=members["bob"], amount="400", reference="a bet")
for _ in range(2):
    moved = good(Transaction, transfer.sync(client=client, body=body_of_transfer, idempotency_key="bet-1"))
    equal((moved.after, moved.counterparty), ("600", members["bob"]))
wallets = good(WalletList, get_wallets.sync(members["bob"], client=client)).items
equal([(wallet.balance, wallet.available) for wallet in wallets], [("400", "400")])
currency = wallets[0].currency

# A board of the week, and of a round that ends with its minute and pays prizes. What closes it is the clock.
winner = PrizeIn(from_=1, to=1, currency=currency, amount=500)
seoul = Period(name="weekly", schedule="0 0 * * 1", time_zone="Asia/Seoul")
rounds = Period(name="round", schedule="* * * * *", keep=1000, prizes=[winner])
good(Board, put_leaderboard.sync("race", client=client, body=BoardPut(periods=[seoul, rounds])))


def play_round() -> str:
    """Plays in one round, and returns its name. A round that ends meanwhile has some of the scores only."""
    while True:
        for player, score in (("cid", 30), ("dee", 20)):
            new = NewScore(player=player, score=score)
            done = good(Submitted, submit_score.sync("race", client=client, body=new, windows=SubmitScoreWindows.ALL))
            assert not isinstance(done.windows, Unset)
            equal(sorted(window.period.split(":")[0] for window in done.windows), ["all_time", "round", "weekly"])
        page = good(Page, list_scores.sync("race", client=client, period="round"))
        if [entry.player for entry in page.entries] == ["cid", "dee"]:
            return page.period


played = play_round()
page = good(Page, list_scores.sync("race", client=client, period="weekly", limit=1))
equal([(entry.rank, entry.player, entry.score) for entry in page.entries], [(1, "cid", 30)])

fee, prize = EntryFeeIn(currency=currency, amount=100), PrizeIn(from_=1, to=1, currency=currency, amount=150)
good(Contest, create_contest.sync(client=client, body=NewContest(id="cup", title="Cup", entry_fee=fee, prizes=[prize])))
equal(good(Contest, open_contest.sync("cup", client=client)).state, ContestState.OPEN)
for player in ("ann", "bob"):
    apply_to_contest.sync("cup", client=client, body=NewApplication(player=player))
good(Decided, accept_applications.sync("cup", client=client, body=ContestPlayers(players=["ann", "bob"])))
equal(good(StartedContest, start_contest.sync("cup", client=client)).enrolled, 2)
for player, score in (("ann", 3), ("bob", 5)):
    good(Submitted, submit_score.sync("contest:cup", client=client, body=NewScore(player=player, score=score)))
good(Contest, finish_contest.sync("cup", client=client))
equal(good(Contest, settle_contest.sync("cup", client=client)).state, ContestState.SETTLED)
prizes = good(ContestPrizeList, list_contest_prizes.sync("cup", client=client)).items
equal([(one.player, one.amount, one.paid) for one in prizes], [("bob", "150", True)])
equal(good(WalletList, get_wallets.sync(members["bob"], client=client)).items[0].balance, "450")

while not (closed := good(PeriodPrizeList, list_period_prizes.sync("race", client=client, period=played))).settled:
    time.sleep(1)
equal([(one.rank, one.player, one.amount, one.paid) for one in closed.items], [(1, "cid", "500", True)])
items = good(PeriodList, list_periods.sync("race", client=client, limit=1000)).items
equal([item.state for item in items if item.period == played], [PeriodItemState.CLOSED])
page = good(Page, list_scores.sync("race", client=client, period=played))
equal([(entry.rank, entry.player) for entry in page.entries], [(1, "cid"), (2, "dee")])
# A round that ended while the scores came in has the same winner, and is paid as well.
won = int(good(WalletList, get_wallets.sync(members["cid"], client=client)).items[0].balance)
assert won >= 500 and won % 500 == 0, won
print("end")
