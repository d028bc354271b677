"""The calls of a tally server by what they are for."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Any, Iterable, List, Mapping, Optional, Union, cast
from urllib.parse import quote

from . import types as t
from .errors import TallyError
from .events import EventStream
from .pages import Pages
from .transport import QueryValue, Retry, Transport


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value; a final underscore keeps a name apart from a keyword."""
    return {name.rstrip("_"): value for name, value in fields.items() if value is not None}


class Tally:
    """A tally server. Any number of threads may use one object.

        tally = Tally("https://tally.example.com", key="tally_...")
        rank = tally.submit("arcade", "ada", 1200)["rank"]

    Every change has an idempotency key and is retried, so it counts once or raises a ``TallyError``. Give ``idempotency_key``
    if your program may make the same call twice, such as after a crash: the server knows it for 24 hours.
    """

    def __init__(
        self,
        url: str,
        *,
        key: Optional[str] = None,
        timeout: float = 10.0,
        retry: Retry = Retry(),
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        """``key`` is an API key or the token of a member. ``timeout`` is how many seconds one attempt waits for the server."""
        self._transport = Transport(url, key, timeout, retry, ssl_context)

    def __enter__(self) -> Tally:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes idle connections."""
        self._transport.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, QueryValue]] = None,
        body: Any = None,
        changes: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
        acting_player: Optional[str] = None,
    ) -> Any:
        """Any operation of the server, with the retries of this client: ``request("GET", "/v1/currencies")``.

        ``changes`` says whether the call changes something; by default all but ``GET`` do. ``acting_player`` is the staff
        player of a contest that a server key acts for.
        """
        return self._transport.request(
            method,
            path,
            query=query,
            body=body,
            changes=changes,
            idempotency_key=idempotency_key,
            acting_player=acting_player,
        )

    def health(self) -> Any:
        """Whether the server is alive."""
        return self.request("GET", "/healthz")

    # Leaderboards

    def put_board(
        self, board: str, definition: Optional[t.BoardDefinition] = None, *, idempotency_key: Optional[str] = None
    ) -> t.Board:
        """Makes a board, or changes the periods of one. Repeat it at every start of your program."""
        path = _path("leaderboards", board)
        answer = self.request("PUT", path, body=definition or {}, idempotency_key=idempotency_key)
        return cast(t.Board, answer)

    def board(self, board: str) -> t.Board:
        return cast(t.Board, self.request("GET", _path("leaderboards", board)))

    def boards(self, *, limit: int = 100) -> Pages[t.Board]:
        return self._list(_path("leaderboards"), limit)

    def delete_board(self, board: str) -> None:
        """Removes a board and its scores at once."""
        self.request("DELETE", _path("leaderboards", board))

    def periods(self, board: str, *, limit: int = 100) -> Pages[t.PeriodInstance]:
        """The instances of the periods of a board, newest first."""
        return self._list(_path("leaderboards", board, "periods"), limit)

    # Scores and ranks

    def submit(
        self,
        board: str,
        player: str,
        score: t.Score,
        *,
        subscore: Optional[int] = None,
        at: Optional[t.Instant] = None,
        windows: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Submitted:
        """Submits a score. It is durable when this returns, and has its rank. ``at`` is when it happened: now by default.

        ``windows="all"`` adds ``windows``: the rank in each window that the score counted for, such as all time and this week.
        """
        body = _given(player=player, score=score, subscore=subscore, at=at)
        path, query = _path("leaderboards", board, "scores"), {"windows": windows}
        answer = self.request("POST", path, query=query, body=body, idempotency_key=idempotency_key)
        return cast(t.Submitted, answer)

    def submit_many(
        self,
        scores: Iterable[t.BatchRow],
        *,
        windows: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> List[t.BatchResult]:
        """Submits 1 to 1,000 scores. A row that is refused fails alone: look at the ``error`` of each result."""
        body, query = {"scores": list(scores)}, {"windows": windows}
        path = _path("scores", "batch")
        answer = self.request("POST", path, query=query, body=body, idempotency_key=idempotency_key)
        return cast(List[t.BatchResult], answer["results"])

    def scores(
        self,
        board: str,
        *,
        period: Optional[str] = None,
        expand: Optional[str] = None,
        limit: int = 100,
        order: Optional[str] = None,
        offset: Optional[int] = None,
        min: Union[int, float, str, None] = None,
        max: Union[int, float, str, None] = None,
    ) -> Pages[t.Entry]:
        """The ranks of a board, best first; with ``order="worst"`` worst first. ``limit`` is the size of a page, 1 to 1,000."""
        path = _path("leaderboards", board, "scores")
        same: dict[str, QueryValue] = {"period": period, "expand": expand, "limit": limit, "order": order}

        def fetch(cursor: Optional[str]) -> tuple[list[t.Entry], Optional[str]]:
            place: dict[str, QueryValue] = {"offset": offset} if cursor is None else {"cursor": cursor}
            page = self.request("GET", path, query={**same, "min": min, "max": max, **place})
            return page["entries"], page.get("next_cursor")

        return Pages(fetch)

    def top(self, board: str, count: int, *, period: Optional[str] = None) -> List[t.Entry]:
        """The best ``count`` of a board, at most 1,000, in one request."""
        return self.scores(board, period=period, limit=count).take(count)

    def rank(self, board: str, player: str, *, period: Optional[str] = None) -> Optional[t.PlayerRank]:
        """The rank of a player, or None if the player has none."""
        try:
            path = _path("leaderboards", board, "players", player)
            return cast(t.PlayerRank, self.request("GET", path, query={"period": period}))
        except TallyError as error:
            if error.code == "player_not_ranked":
                return None
            raise

    def around(
        self, board: str, player: str, *, above: int = 5, below: int = 5, period: Optional[str] = None
    ) -> List[t.Entry]:
        """The ranks around a player; ``above`` and ``below`` are 0 to 100."""
        path = _path("leaderboards", board, "players", player, "around")
        answer = self.request("GET", path, query={"above": above, "below": below, "period": period})
        return cast(List[t.Entry], answer["entries"])

    def among(self, board: str, players: Iterable[str], *, period: Optional[str] = None) -> t.Among:
        """The ranks of players among each other, such as friends."""
        path, body = _path("leaderboards", board, "among"), {"players": list(players)}
        return cast(t.Among, self.request("POST", path, query={"period": period}, body=body, changes=False))

    def remove_player(self, board: str, player: str) -> None:
        """Takes a player out of a board."""
        self.request("DELETE", _path("leaderboards", board, "players", player))

    def period_prizes(self, board: str, period: str, *, limit: int = 100) -> Pages[t.Payout]:
        """Prizes of a closed period."""
        return self._list(_path("leaderboards", board, "prizes"), limit, period=period)

    def board_events(self, board: str, *, last_event_id: Optional[str] = None) -> EventStream:
        """Changes of a board as they happen: ``score``, ``period_closed``, ``period_paid``, ``reset``."""
        return EventStream(self._transport, _path("leaderboards", board, "events"), last_event_id)

    # Members and money

    def create_member(
        self,
        login_id: str,
        name: str,
        *,
        player: Optional[str] = None,
        password: Optional[str] = None,
        pin: Optional[str] = None,
        phone_number: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Member:
        body = _given(
            login_id=login_id, name=name, player=player, password=password, pin=pin, phone_number=phone_number
        )
        return cast(t.Member, self.request("POST", _path("members"), body=body, idempotency_key=idempotency_key))

    def member(self, member: str) -> t.Member:
        return cast(t.Member, self.request("GET", _path("members", member)))

    def find_member(
        self, *, login_id: Optional[str] = None, phone_number: Optional[str] = None, player: Optional[str] = None
    ) -> Optional[t.Member]:
        """The member with this login, phone number or player, or None. Give one of them."""
        by = _given(login_id=login_id, phone_number=phone_number, player=player)
        items = self.request("GET", _path("members"), query=by)["items"]
        return cast(t.Member, items[0]) if items else None

    def sign_in(self, login: str, password: str) -> str:
        """Signs a member in, and uses the token for what this client sends from then on. Returns the token."""
        body = {"loginId": login, "password": password}
        token = self.request("POST", "/auth/signin", body=body, changes=False)["data"]["accessToken"]
        self._transport.key = token
        return cast(str, token)

    def wallets(self, member: str) -> List[t.Wallet]:
        """The wallets of a member, one for each currency."""
        return cast(List[t.Wallet], self.request("GET", _path("wallets", member))["items"])

    def transactions(
        self, member: str, *, currency: Optional[str] = None, limit: int = 100
    ) -> Pages[t.Transaction]:
        """The transactions of a member, newest first."""
        return self._list(_path("wallets", member, "transactions"), limit, currency=currency)

    def deposit(
        self,
        to: str,
        amount: t.Amount,
        *,
        currency: Optional[str] = None,
        reference: Optional[str] = None,
        reason: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        expires_at: Optional[t.Instant] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Transaction:
        """Puts money into a wallet. With ``expires_at`` it is promotional credit until then."""
        more = _given(currency=currency, reference=reference, reason=reason, metadata=metadata)
        body = {**_given(to=to, amount=amount, expires_at=expires_at), **more}
        return self._moved("deposits", body, idempotency_key)

    def withdraw(
        self,
        from_: str,
        amount: t.Amount,
        *,
        currency: Optional[str] = None,
        reference: Optional[str] = None,
        reason: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        promotional: Optional[bool] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Transaction:
        """Takes money out of a wallet."""
        more = _given(currency=currency, reference=reference, reason=reason, metadata=metadata)
        body = {**_given(from_=from_, amount=amount, promotional=promotional), **more}
        return self._moved("withdrawals", body, idempotency_key)

    def transfer(
        self,
        from_: str,
        to: str,
        amount: t.Amount,
        *,
        currency: Optional[str] = None,
        reference: Optional[str] = None,
        reason: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Transaction:
        """Moves money from one member to another. The answer is the side of the sender."""
        more = _given(currency=currency, reference=reference, reason=reason, metadata=metadata)
        return self._moved("transfers", {**_given(from_=from_, to=to, amount=amount), **more}, idempotency_key)

    def place_hold(
        self,
        member: str,
        amount: t.Amount,
        *,
        currency: Optional[str] = None,
        expires_at: Optional[t.Instant] = None,
        reason: Optional[str] = None,
        metadata: Optional[Mapping[str, Any]] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Hold:
        """Reserves money until it is captured or voided."""
        more = _given(currency=currency, expires_at=expires_at, reason=reason, metadata=metadata)
        body = {"member": member, "amount": amount, **more}
        return cast(t.Hold, self.request("POST", _path("holds"), body=body, idempotency_key=idempotency_key))

    def capture_hold(
        self,
        hold: str,
        *,
        amount: Optional[t.Amount] = None,
        to: Optional[str] = None,
        idempotency_key: Optional[str] = None,
    ) -> t.Hold:
        """Takes held money: all of it, or ``amount``; for the member ``to``, or as a fee."""
        path, body = _path("holds", hold, "capture"), _given(amount=amount, to=to)
        return cast(t.Hold, self.request("POST", path, body=body, idempotency_key=idempotency_key))

    def void_hold(self, hold: str, *, idempotency_key: Optional[str] = None) -> t.Hold:
        """Gives held money back."""
        path = _path("holds", hold, "void")
        return cast(t.Hold, self.request("POST", path, body={}, idempotency_key=idempotency_key))

    def my_events(self, *, last_event_id: Optional[str] = None) -> EventStream:
        """The transactions of the member that signed in, as they happen: ``transaction``, ``reset``."""
        return EventStream(self._transport, _path("me", "events"), last_event_id)

    # Contests

    def create_contest(self, contest: t.NewContest, *, idempotency_key: Optional[str] = None) -> t.Contest:
        """Makes a contest in the state ``draft``."""
        answer = self.request("POST", _path("contests"), body=contest, idempotency_key=idempotency_key)
        return cast(t.Contest, answer)

    def contest(self, contest: str) -> t.Contest:
        return cast(t.Contest, self.request("GET", _path("contests", contest)))

    def contests(
        self, *, state: Optional[t.ContestState] = None, series: Optional[str] = None, limit: int = 100
    ) -> Pages[t.Contest]:
        """Of one state or one series, or all."""
        return self._list(_path("contests"), limit, state=state, series=series)

    def open_contest(self, contest: str, *, acting_player: Optional[str] = None) -> t.Contest:
        """Lets players apply."""
        return cast(t.Contest, self._act(contest, "open", acting_player))

    def start_contest(self, contest: str, *, acting_player: Optional[str] = None) -> t.StartedContest:
        """Makes the accepted players those of the contest, and takes their fees."""
        return cast(t.StartedContest, self._act(contest, "start", acting_player))

    def finish_contest(self, contest: str, *, acting_player: Optional[str] = None) -> t.Contest:
        """Ends the scores. The review begins."""
        return cast(t.Contest, self._act(contest, "finish", acting_player))

    def settle_contest(self, contest: str, *, acting_player: Optional[str] = None) -> t.Contest:
        """Ends the review and pays the prizes. ``state`` is ``finished`` while some are still being paid."""
        return cast(t.Contest, self._act(contest, "settle", acting_player))

    def cancel_contest(self, contest: str, *, acting_player: Optional[str] = None) -> t.Contest:
        """Ends a contest without prizes, and pays fees back."""
        return cast(t.Contest, self._act(contest, "cancel", acting_player))

    def apply(
        self, contest: str, player: Optional[str] = None, *, idempotency_key: Optional[str] = None
    ) -> t.Application:
        """Applies for a player, or for the member that signed in. Holds the entry fee."""
        path = _path("contests", contest, "applications")
        answer = self.request("POST", path, body=_given(player=player), idempotency_key=idempotency_key)
        return cast(t.Application, answer)

    def withdraw_application(self, contest: str, player: str) -> None:
        self.request("DELETE", _path("contests", contest, "applications", player))

    def applications(
        self, contest: str, *, state: Optional[t.ApplicationStatus] = None, limit: int = 100
    ) -> Pages[t.Application]:
        """The applications of a contest that has not started. Pending ones by default."""
        return self._list(_path("contests", contest, "applications"), limit, state=state)

    def accept(
        self, contest: str, players: Iterable[str], *, acting_player: Optional[str] = None
    ) -> List[t.Decided]:
        """Accepts 1 to 1,000 players, each for itself: look at the ``error`` of each result."""
        return self._decide(contest, "accept", players, acting_player)

    def reject(
        self, contest: str, players: Iterable[str], *, acting_player: Optional[str] = None
    ) -> List[t.Decided]:
        """Rejects 1 to 1,000 players and releases their fees, each for itself."""
        return self._decide(contest, "reject", players, acting_player)

    def contest_players(self, contest: str, *, limit: int = 100) -> Pages[t.ContestPlayer]:
        return self._list(_path("contests", contest, "players"), limit)

    def prizes(self, contest: str, *, preview: Optional[bool] = None, limit: int = 100) -> Pages[t.Payout]:
        """The prizes of a settled contest; with ``preview``, those that a settlement would pay now."""
        return self._list(_path("contests", contest, "prizes"), limit, preview=preview)

    def contest_events(self, contest: str, *, last_event_id: Optional[str] = None) -> EventStream:
        """Changes of the state of a contest as they happen: ``contest``, ``reset``."""
        return EventStream(self._transport, _path("contests", contest, "events"), last_event_id)

    def _moved(self, what: str, body: dict[str, Any], idempotency_key: Optional[str]) -> t.Transaction:
        answer = self.request("POST", _path(what), body=body, idempotency_key=idempotency_key)
        return cast(t.Transaction, answer)

    def _act(self, contest: str, what: str, acting_player: Optional[str]) -> Any:
        return self.request("POST", _path("contests", contest, what), acting_player=acting_player)

    def _decide(
        self, contest: str, what: str, players: Iterable[str], acting_player: Optional[str]
    ) -> List[t.Decided]:
        path, body = _path("contests", contest, "applications", what), {"players": list(players)}
        answer = self.request("POST", path, body=body, acting_player=acting_player)
        return cast(List[t.Decided], answer["results"])

    def _list(self, path: str, limit: int, **query: QueryValue) -> Pages[Any]:
        def fetch(cursor: Optional[str]) -> tuple[list[Any], Optional[str]]:
            page = self.request("GET", path, query={**query, "limit": limit, "cursor": cursor})
            return page["items"], page.get("next_cursor")

        return Pages(fetch)
