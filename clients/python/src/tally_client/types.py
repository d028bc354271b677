"""The shapes of requests and answers, as the OpenAPI document of the server has them.

They are dictionaries, so that an answer may have more fields in a later version. A class with an underscore has the fields that
its public one always has. A test of the project compares them with the document.
"""

from __future__ import annotations

from typing import Any, Dict, List, Literal, Optional, TypedDict, Union

#: An instant of RFC 3339, such as ``2026-11-20T10:00:00Z``. Answers are in UTC with microseconds.
Instant = str
#: Money of an answer: a whole number of the smallest unit of its currency, as text.
Money = str
#: Money of a request: a whole number of the smallest unit, 1 to 10^15.
Amount = Union[int, str]
#: A score: an exact integer, or a float of a float64 board, where ``inf`` and ``-inf`` are strings.
Score = Union[int, float, str]

ContestState = Literal["draft", "open", "running", "finished", "settled", "cancelled"]
ApplicationStatus = Literal["pending", "accepted", "rejected"]

#: What each rank of a range gets.
Prize = TypedDict("Prize", {"from": int, "to": int, "currency": str, "amount": Amount})
PrizeRange = TypedDict("PrizeRange", {"from": int, "to": int, "currency": str, "amount": Money})


class _Period(TypedDict):
    name: str
    schedule: str


class Period(_Period, total=False):
    """A recurring period of a board, such as a week. ``schedule`` is cron of five fields in ``time_zone`` (UTC)."""

    time_zone: str
    keep: int
    grace_s: int
    prizes: List[Prize]
    prize_ties: Literal["split", "each"]


class BoardDefinition(TypedDict, total=False):
    """What is left out has its default at creation, which comes first, and keeps its value after that."""

    order: Literal["descending", "ascending"]
    update: Literal["best", "latest", "sum"]
    ranking: Literal["ordinal", "competition", "dense"]
    ties: Literal["first", "last", "player", "player_reversed"]
    score: Literal["int64", "float64"]
    subscore: Literal["none", "descending", "ascending"]
    all_time: bool
    periods: List[Period]


class Board(TypedDict):
    board: str
    order: Literal["descending", "ascending"]
    update: Literal["best", "latest", "sum"]
    ranking: Literal["ordinal", "competition", "dense"]
    ties: Literal["first", "last", "player", "player_reversed"]
    score: Literal["int64", "float64"]
    subscore: Literal["none", "descending", "ascending"]
    all_time: bool
    periods: List[Period]
    counts: Dict[str, int]
    created_at: Instant


class _BatchRow(TypedDict):
    board: str
    player: str
    score: Score


class BatchRow(_BatchRow, total=False):
    """A score of ``submit_many``. ``idempotency_key`` makes it happen once, ``at`` is the instant at which it happened."""

    subscore: Union[int, str]
    at: Instant
    idempotency_key: str
    id: str


class _Previous(TypedDict):
    score: Score
    rank: Optional[int]


class Previous(_Previous, total=False):
    subscore: Union[int, str]


class _Submitted(TypedDict):
    board: str
    period: str
    player: str
    score: Score
    at: Instant
    rank: Optional[int]
    changed: bool
    previous: Optional[Previous]


class _WindowRank(TypedDict):
    period: str
    score: Score
    at: Instant
    rank: Optional[int]
    total: Optional[int]
    percentile: Optional[float]


class WindowRank(_WindowRank, total=False):
    """The record of a player in a window of a board. A banned player has no rank."""

    subscore: Union[int, str]


class Submitted(_Submitted, total=False):
    """The record after a submit; ``windows`` with ``windows="all"``."""

    subscore: Union[int, str]
    closed_periods: List[str]
    windows: List[WindowRank]


class RowError(TypedDict):
    code: str
    detail: str


class BatchResult(TypedDict, total=False):
    """A row of a batch: with ``error`` it was refused, else it has the fields of ``Submitted``."""

    board: str
    period: str
    player: str
    score: Score
    subscore: Union[int, str]
    at: Instant
    rank: Optional[int]
    changed: bool
    previous: Optional[Previous]
    closed_periods: List[str]
    windows: List[WindowRank]
    replayed: bool
    idempotency_key: str
    id: str
    error: RowError


class Profile(TypedDict, total=False):
    name: str
    avatar_url: str
    metadata: Dict[str, Any]


class _Entry(TypedDict):
    rank: int
    player: str
    score: Score
    at: Instant


class Entry(_Entry, total=False):
    """``profile`` comes with ``expand`` only."""

    subscore: Union[int, str]
    profile: Optional[Profile]


class _AmongEntry(TypedDict):
    overall_rank: int


class AmongEntry(Entry, _AmongEntry):
    """``rank`` is among the players, ``overall_rank`` that of the whole board."""


class Among(TypedDict):
    board: str
    period: str
    total: int
    entries: List[AmongEntry]
    missing: List[str]


class _PlayerRank(TypedDict):
    board: str
    period: str
    player: str
    score: Score
    at: Instant
    rank: int
    total: int
    percentile: float


class PlayerRank(_PlayerRank, total=False):
    subscore: Union[int, str]


class PeriodInstance(TypedDict):
    period: str
    name: str
    starts_at: Instant
    ends_at: Instant
    start: Instant
    end: Instant
    state: Literal["open", "closing", "closed"]
    total: int


class _Member(TypedDict):
    id: str
    login_id: str
    name: str
    player: str
    has_password: bool
    has_pin: bool
    created_at: Instant


class Member(_Member, total=False):
    phone_number: str
    pin_locked_until: Instant
    closed_at: Instant


class Credit(TypedDict):
    amount: Money
    expires_at: Instant


class _Wallet(TypedDict):
    member: str
    currency: str
    balance: Money
    held: Money
    available: Money


class Wallet(_Wallet, total=False):
    promotional: Money
    credits: List[Credit]


class _Transaction(TypedDict):
    id: str
    type: str
    currency: str
    amount: Money
    before: Money
    after: Money
    counterparty: Optional[str]
    group_id: str
    reference: Optional[str]
    status: Literal["posted"]
    at: Instant


class Transaction(_Transaction, total=False):
    counterparty_name: Optional[str]
    actor: str
    reason: Optional[str]
    metadata: Optional[Dict[str, Any]]


class Hold(TypedDict):
    id: str
    member: str
    currency: str
    amount: Money
    state: Literal["open", "captured", "voided", "expired"]
    status: Literal["open", "captured", "voided", "expired"]
    captured: Optional[Money]
    to: Optional[str]
    group_id: Optional[str]
    expires_at: Optional[Instant]
    created_at: Instant
    ended_at: Optional[Instant]


class EntryFee(TypedDict):
    currency: str
    amount: Amount


class _NewContest(TypedDict):
    title: str


class NewContest(_NewContest, total=False):
    id: str
    staff: List[str]
    capacity: int
    on_invalid: Literal["reject", "skip"]
    auto_accept: bool
    players_min: Optional[int]
    below_min: Literal["cancel", "start"]
    join_s: Optional[int]
    attempts_max: Optional[int]
    entry_fee: Optional[EntryFee]
    leaderboard: BoardDefinition
    prizes: List[Prize]
    prize_ties: Literal["split", "each"]
    division_size: Optional[int]
    opens_at: Optional[Instant]
    starts_at: Optional[Instant]
    ends_at: Optional[Instant]
    review_s: Optional[int]


class Division(TypedDict):
    division: int
    board: str
    players: int
    n: int
    members: int


class ContestCounts(TypedDict):
    pending: Optional[int]
    accepted: Optional[int]
    rejected: Optional[int]
    players: int
    members: int


class _Contest(TypedDict):
    id: str
    state: ContestState
    title: str
    staff: List[str]
    capacity: int
    entry_fee: Optional[EntryFee]
    prizes: List[PrizeRange]
    board: Optional[str]
    counts: ContestCounts
    opens_at: Optional[Instant]
    starts_at: Optional[Instant]
    ends_at: Optional[Instant]
    created_at: Instant
    updated_at: Instant


class Contest(_Contest, total=False):
    """``board`` is its leaderboard. With ``divisions``, each of them has one."""

    divisions: List[Division]


class FailedApplication(TypedDict):
    player: str
    code: str
    detail: str


class StartedContest(Contest):
    contest: Contest
    enrolled: int
    failed: List[FailedApplication]
    took_ms: float


class _Application(TypedDict):
    player: str
    state: ApplicationStatus
    status: ApplicationStatus
    applied_at: Instant


class Application(_Application, total=False):
    hold_id: str


class _Decided(TypedDict):
    player: str


class Decided(_Decided, total=False):
    """What became of one player: its application, or an ``error``."""

    state: ApplicationStatus
    status: ApplicationStatus
    applied_at: Instant
    hold_id: str
    error: RowError


class _ContestPlayer(TypedDict):
    player: str
    place: int
    banned: bool


class ContestPlayer(_ContestPlayer, total=False):
    division: int
    member: str
    attempts: int


class _Payout(TypedDict):
    player: str
    rank: int
    currency: str
    amount: Money


class Payout(_Payout, total=False):
    """A prize of a contest or of a closed period."""

    member: str
    division: int
    paid: bool
    group_id: str
    code: Literal["member_closed", "limit_exceeded", "no_member"]
    reason: Literal["member_closed", "limit_exceeded", "no_member"]
    reversed: Money
