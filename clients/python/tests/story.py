"""What the package promises, against a real server behind a proxy. Argument: the address of the proxy.

A line on the standard output asks the test for a fault; the answer is a line on the standard input.
"""

from __future__ import annotations

import http.server
import json
import os
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from itertools import islice
from typing import Any, Callable

from tally_client import (
    FileStorage,
    MemoryStorage,
    QueuedScore,
    Retry,
    SubmitQueue,
    Tally,
    TallyError,
    types,
)

URL = sys.argv[1]
# Patient: a server of a busy machine may take long to start.
RETRY = Retry(attempts=200, first_wait=0.02, longest_wait=0.3)
ONCE = Retry(attempts=1)

# The calls that this story made, so that it leaves out none.
called: set[str] = set()


class Recorded(Tally):
    """A client that notes its calls."""

    def __getattribute__(self, name: str) -> Any:
        called.add(name)
        return super().__getattribute__(name)


tally = Recorded(URL, retry=RETRY)
once = Tally(URL, retry=ONCE)


def ask(what: str) -> str:
    print(what, flush=True)
    return sys.stdin.readline().strip()


def equal(found: object, wanted: object) -> None:
    assert found == wanted, f"found {found!r}, wanted {wanted!r}"


def failure(call: Callable[[], Any]) -> TallyError:
    try:
        result = call()
    except TallyError as error:
        return error
    raise AssertionError(f"it succeeds: {result}")


def score(player: str) -> Any:
    rank = tally.rank("sums", player)
    return rank and rank["score"]


def errors() -> None:
    wrong = failure(lambda: tally.put_board("b", {"periods": [{"name": "weekly", "schedule": "nonsense"}]}))
    equal((wrong.code, wrong.status), ("invalid_definition", 422))
    assert "schedule" in wrong.errors[0]["pointer"] and wrong.request_id and wrong.message, vars(wrong)
    assert str(wrong).startswith("invalid_definition: "), wrong
    equal(failure(lambda: tally.board("nothing")).code, "leaderboard_not_found")
    lost = failure(Tally("http://127.0.0.1:1", retry=Retry(attempts=2, first_wait=0.001)).health)
    equal((lost.code, lost.status), ("network_error", 0))
    assert "127.0.0.1:1" in str(lost), lost
    try:
        Tally("localhost:8420")
    except ValueError as error:
        assert "http://" in str(error), error
    else:
        raise AssertionError("an address without a scheme is taken")


def throttled() -> None:
    class Throttle(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"code": "too_many_attempts", "detail": "wait"}).encode()
            self.send_response(429)
            self.send_header("Retry-After", "900")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Throttle) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        error = failure(Tally(f"http://127.0.0.1:{server.server_port}").health)
        equal((error.code, error.retry_after), ("too_many_attempts", 900.0))
        server.shutdown()


def retries() -> None:
    tally.put_board("sums", {"update": "sum"})
    # The server commits and its answer is lost. Without retries the call fails, and the effect is there.
    ask("cut lost-1")
    lost = failure(lambda: once.submit("sums", "ann", 1, idempotency_key="lost-1"))
    equal(lost.code, "network_error")
    equal(score("ann"), 1)
    # With them, it succeeds and counts once.
    ask("cut lost-2")
    done = tally.submit("sums", "ann", 10, idempotency_key="lost-2")
    equal((done["score"], done["rank"]), (11, 1))
    ranked = tally.submit("sums", "ann", 10, idempotency_key="lost-2", windows="all")
    equal([(one["period"], one["rank"], one["score"]) for one in ranked["windows"]], [("all_time", 1, 11)])
    # The same with a key that the package makes: the player is the mark for the proxy.
    ask("cut bob-the-mark")
    tally.submit("sums", "bob-the-mark", 5)
    equal(score("bob-the-mark"), 5)
    # A batch, and money.
    ask("cut dee-the-mark")
    rows: list[types.BatchRow] = [{"board": "sums", "player": name, "score": 3} for name in ("cy", "dee-the-mark")]
    tally.submit_many(rows)
    equal((score("cy"), score("dee-the-mark")), (3, 3))
    member = tally.create_member("ann", "Ann", player="ann")["id"]
    ask("cut the-deposit")
    tally.deposit(member, 70, reference="the-deposit")
    equal(tally.wallets(member)[0]["balance"], "70")
    equal([line["amount"] for line in tally.transactions(member)], ["70"])
    found = tally.find_member(player="ann")
    assert found and found["id"] == member, found
    # A server that is killed answers after its restart.
    with ThreadPoolExecutor(20) as threads:
        calls = [threads.submit(tally.submit, "sums", "eve", at) for at in range(20)]
        ask("kill")
        for call in calls:
            call.result()
    equal(score("eve"), 190)
    # Integers beyond 2^53 keep their digits.
    equal(tally.submit("sums", "max", 2**62 + 1)["score"], 2**62 + 1)


def pages() -> None:
    tally.put_board("pages")
    rows: list[types.BatchRow] = [{"board": "pages", "player": f"p{at}", "score": at} for at in range(25)]
    equal(len(tally.submit_many(rows, windows="all")[0]["windows"]), 1)
    equal([entry["player"] for entry in tally.scores("pages", limit=4)], [row["player"] for row in rows][::-1])
    equal([len(page) for page in tally.scores("pages", limit=10, offset=2).pages()], [10, 10, 3])
    equal(len(tally.scores("pages", limit=4).take(6)), 6)
    equal(len(tally.top("pages", 3)), 3)
    equal(tally.rank("pages", "nobody"), None)
    equal([board["board"] for board in tally.boards(limit=1)], ["pages", "sums"])


def events() -> None:
    tally.create_contest({"id": "cup", "title": "Cup"})
    stream = tally.contest_events("cup", last_event_id="0")
    states: list[tuple[str, str | None]] = []

    def kill_and_start() -> None:
        # The server ends, and the stream goes on with the next one.
        ask("kill")
        tally.start_contest("cup")

    steps: list[Callable[[], object]] = [
        lambda: tally.open_contest("cup"),
        kill_and_start,
        lambda: tally.finish_contest("cup"),
        lambda: tally.settle_contest("cup"),
        stream.close,
    ]
    for event in stream:
        equal(event.type, "contest")
        states.append((event.data["state"], event.id))
        steps.pop(0)()
    equal([state for state, _ in states], ["draft", "open", "running", "finished", "settled"])
    equal(stream.last_event_id, states[4][1])
    # Another stream goes on behind the event that it is given.
    event = next(iter(tally.contest_events("cup", last_event_id=states[2][1])))
    equal((event.data["state"], event.id), ("finished", states[3][1]))
    # A live feed begins before its first event.
    feed = tally.board_events("pages")
    ended = threading.Event()

    def submit() -> None:
        number = 1_000
        while not ended.wait(0.05):
            number += 1
            tally.submit("pages", "live", number)

    submits = threading.Thread(target=submit)
    submits.start()
    heard = next(event for event in feed if event.type == "score")
    ended.set()
    submits.join()
    equal([entry["player"] for entry in heard.data["entries"]], ["live"])
    # Another thread closes a stream that waits.
    waiting = tally.contest_events("cup")
    reader = threading.Thread(target=lambda: list(waiting))
    reader.start()
    waiting.close()
    reader.join()
    gone = failure(lambda: next(iter(tally.board_events("nothing"))))
    equal(gone.code, "leaderboard_not_found")


def queue() -> None:
    with tempfile.TemporaryDirectory() as folder:
        storage = FileStorage(os.path.join(folder, "scores.json"))
        told: list[str] = []

        def sent(score: QueuedScore, _: types.BatchResult) -> None:
            told.append(score["player"])

        def refused(score: QueuedScore, error: TallyError) -> None:
            told.append(f"{score['player']} {error.code}")

        def queue_of(client: Tally) -> SubmitQueue:
            return SubmitQueue(client, storage=storage, max=3, on_sent=sent, on_refused=refused)

        away = queue_of(Tally("http://127.0.0.1:1", retry=ONCE))
        away.add("sums", "q1", 4)
        away.add("nowhere at all@", "q2", 4)
        away.add("sums", "q3", 5)
        equal(failure(lambda: away.add("sums", "q4", 4)).code, "queue_full")
        report = away.flush()
        assert report.error and report.error.code == "network_error", report
        equal((report.sent, report.refused, report.waiting), (0, 0, 3))
        # The program ends; its next run has the scores. The first answer is lost, and they count once.
        ask("cut q3")
        broken = queue_of(Tally(URL, retry=ONCE)).flush()
        assert broken.error and broken.error.code == "network_error", broken
        equal(broken.waiting, 3)
        done = queue_of(tally).flush()
        equal((done.sent, done.refused, done.waiting), (2, 1, 0))
        equal((score("q1"), score("q3")), (4, 5))
        equal([line for line in told if " " not in line], ["q1", "q3"])
        assert told[1].startswith("q2 "), told
    # What was sent a day ago without an answer is not sent again.
    memory = MemoryStorage()
    old = {"board": "sums", "player": "q1", "score": 4, "id": "old", "sent_at": time.time() - 86_400}
    memory.save(json.dumps([old]))
    equal(SubmitQueue(tally, storage=memory, on_refused=refused).flush().refused, 1)
    equal(told[-1], "q1 outcome_unknown")
    # A score that an earlier release of the package stored counts once, under the key that it has there.
    for _ in range(2):
        memory.save(json.dumps([{"board": "sums", "player": "q6", "score": 4, "id": "stored-before"}]))
        equal(SubmitQueue(tally, storage=memory).flush().sent, 1)
    equal(score("q6"), 4)
    for broken_text in ["{broken", "[1]", '["id"]', "5", "null"]:
        memory.save(broken_text)
        equal(failure(SubmitQueue(tally, storage=memory).size).code, "storage_failed")


def members() -> None:
    password = "a long password"
    kim = tally.create_member("kim", "Kim", player="kim", password=password)["id"]
    equal(tally.member(kim)["login_id"], "kim")
    currency = tally.deposit(kim, 100)["currency"]
    tally.withdraw(kim, 10, currency=currency)
    hold = tally.place_hold(kim, 30)["id"]
    equal(tally.capture_hold(hold, amount=20)["captured"], "20")
    equal(tally.void_hold(tally.place_hold(kim, 30)["id"])["state"], "voided")
    ann = tally.find_member(login_id="ann")
    assert ann
    tally.transfer(kim, ann["id"], 5)
    with Recorded(URL, retry=RETRY) as own:
        equal(failure(lambda: own.sign_in("kim", "another password")).code, "invalid_credentials")
        assert "." in own.sign_in("kim", password)
        equal(own.request("GET", "/v1/me/wallet")["balance"], "65")
        # The member hears of its own money, from the first event on.
        amounts = [event.data["amount"] for event in islice(own.my_events(last_event_id=f"{currency}.0"), 4)]
        equal(amounts, ["100", "10", "20", "5"])
        own.close()


def boards() -> None:
    prizes: list[types.Prize] = [{"from": 1, "to": 1, "currency": "KRW", "amount": 5}]
    tally.put_board("weeks", {"periods": [{"name": "weekly", "schedule": "0 0 * * 1", "prizes": prizes}]})
    tally.submit("weeks", "ann", 1, at=datetime.now(timezone.utc).isoformat())
    week = tally.periods("weeks").take(1)[0]
    equal((week["name"], week["state"], week["total"]), ("weekly", "open", 1))
    equal(failure(lambda: tally.period_prizes("weeks", "weekly:1971-01-01").take(1)).code, "period_not_found")
    equal(len(tally.around("weeks", "ann")), 1)
    equal(tally.among("weeks", ["ann", "bob"])["missing"], ["bob"])
    tally.remove_player("weeks", "ann")
    equal(tally.board("weeks")["counts"]["all_time"], 0)
    tally.delete_board("weeks")


def contests() -> None:
    cup = tally.create_contest({"title": "Small cup"})["id"]
    tally.open_contest(cup)
    for player in ("ann", "kim", "max", "eve"):
        tally.apply(cup, player)
    tally.withdraw_application(cup, "eve")
    decided = tally.accept(cup, ["ann", "eve"]) + tally.reject(cup, ["max"])
    found = [row["error"]["code"] if "error" in row else row["status"] for row in decided]
    equal(found, ["accepted", "not_applied", "rejected"])
    equal([one["player"] for one in tally.applications(cup)], ["kim"])
    equal(tally.start_contest(cup)["enrolled"], 1)
    equal([one["player"] for one in tally.contest_players(cup)], ["ann"])
    tally.submit(tally.contest(cup)["board"] or "", "ann", 1)
    tally.finish_contest(cup)
    equal(tally.prizes(cup, preview=True).take(9), [])
    equal(tally.settle_contest(cup)["state"], "settled")
    equal(tally.prizes(cup).take(9), [])
    other = tally.create_contest({"title": "No cup"})["id"]
    equal(tally.cancel_contest(other)["state"], "cancelled")
    equal([one["id"] for one in tally.contests(state="cancelled")], [other])


def background() -> None:
    waiting = SubmitQueue(tally)
    waiting.add("sums", "q5", 1)
    stop = waiting.flush_every(0.005)
    while waiting.size() > 0:
        time.sleep(0.005)
    stop()
    equal(score("q5"), 1)


errors()
throttled()
retries()
pages()
events()
queue()
members()
boards()
contests()
background()
missing = {name for name in vars(Tally) if not name.startswith("_")} - called
assert not missing, missing
print("end", flush=True)
