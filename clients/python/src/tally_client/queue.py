"""Scores that wait for a network, in a bounded queue that outlives the program."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, List, Mapping, Optional, Protocol, Union, cast

from . import types as t
from .errors import TallyError

if TYPE_CHECKING:
    from .client import Tally


class QueueStorage(Protocol):
    """Where a queue keeps its scores: one text."""

    def load(self) -> Optional[str]: ...

    def save(self, text: str) -> None: ...


class MemoryStorage:
    """Forgets its scores when the program ends."""

    def __init__(self) -> None:
        self._text: Optional[str] = None

    def load(self) -> Optional[str]:
        return self._text

    def save(self, text: str) -> None:
        self._text = text


class FileStorage:
    """Keeps its scores in a file. Each queue needs a file of its own: two with one file overwrite each other's scores."""

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self._path = os.fspath(path)

    def load(self) -> Optional[str]:
        try:
            with open(self._path, encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def save(self, text: str) -> None:
        # The file has the old scores or the new ones, whenever the power fails.
        draft = f"{self._path}.new"
        with open(draft, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self._path)


class QueuedScore(t.BatchRow, total=False):
    """A score that waits. With its ``idempotency_key`` it counts once; ``sent_at`` is when it was first sent, in seconds since 1970."""

    sent_at: float


def _present(row: Any) -> QueuedScore:
    """A stored score. Earlier releases of this package named its key ``id``."""
    if not isinstance(row, dict):
        raise TypeError(f"a score is an object, not {row!r}")
    if "id" in row:
        row["idempotency_key"] = row.pop("id")
    return cast(QueuedScore, row)


@dataclass
class FlushReport:
    """What a flush did."""

    #: Scores that count now.
    sent: int = 0
    #: Scores that the server refused.
    refused: int = 0
    #: Scores that still wait.
    waiting: int = 0
    #: Why they wait.
    error: Optional[TallyError] = None


#: The server keeps the outcome of a key for 24 hours. An hour is left for clocks and for the way.
_KNOWN_FOR = 23 * 3_600.0
_BATCH = 500
#: Errors of a row that pass.
_PASSING = {"contention", "overloaded", "store_unavailable", "outcome_unknown", "loading", "idempotency_in_progress"}


class SubmitQueue:
    """A queue of scores. ``add`` stores a score, ``flush`` sends what waits, in order and each once.

    A score without ``at`` counts when it arrives. With ``at`` it counts for the period in which it happened, if that period
    still takes scores. A score that was sent and not answered for 23 hours is refused with ``outcome_unknown``, because sending
    it again could count it twice. Any number of threads may use one queue.
    """

    def __init__(
        self,
        tally: Tally,
        *,
        storage: Optional[QueueStorage] = None,
        max: int = 1_000,
        on_sent: Optional[Callable[[QueuedScore, t.BatchResult], None]] = None,
        on_refused: Optional[Callable[[QueuedScore, TallyError], None]] = None,
    ) -> None:
        """``max`` is how many scores wait at most. ``on_sent`` gets each score that counts, ``on_refused`` each that is given up."""
        self._tally = tally
        self._storage = storage or MemoryStorage()
        self._max = max
        self._on_sent = on_sent
        self._on_refused = on_refused
        self._lock = threading.RLock()
        self._flushing = threading.Lock()
        self._waiting: Optional[List[QueuedScore]] = None

    def add(
        self,
        board: str,
        player: str,
        score: t.Score,
        *,
        subscore: Optional[int] = None,
        at: Optional[t.Instant] = None,
    ) -> QueuedScore:
        """Stores a score. If the queue is full, raises a ``TallyError`` of code ``queue_full`` and stores nothing."""
        with self._lock:
            waiting = self._load()
            if len(waiting) >= self._max:
                message = f"{len(waiting)} scores wait, and the queue takes {self._max}; flush it first"
                raise TallyError("queue_full", message)
            key = uuid.uuid4().hex
            queued: QueuedScore = {"board": board, "player": player, "score": score, "idempotency_key": key}
            if subscore is not None:
                queued["subscore"] = subscore
            if at is not None:
                queued["at"] = at
            self._save([*waiting, queued])
            return queued

    def size(self) -> int:
        """How many scores wait."""
        with self._lock:
            return len(self._load())

    def flush(self) -> FlushReport:
        """Sends what waits. Never raises for a lost network: then ``error`` says why scores still wait."""
        with self._flushing:
            report = FlushReport()
            while report.error is None:
                now = time.time()
                batch = self._next(now, report)
                if not batch:
                    break
                self._settle(batch, self._send(batch, now, report), report)
            report.waiting = self.size()
            return report

    def flush_every(self, seconds: float) -> Callable[[], None]:
        """Flushes in the background every so many seconds. Returns a function that ends this."""
        stop = threading.Event()

        def work() -> None:
            while not stop.wait(seconds):
                try:
                    self.flush()
                except TallyError:
                    continue

        threading.Thread(target=work, name="tally-flush", daemon=True).start()
        return stop.set

    def _next(self, now: float, report: FlushReport) -> List[QueuedScore]:
        """The scores to send now, marked as sent."""
        if self.size() == 0:
            return []
        # Without a server nothing is marked: a program that is offline for days has sent nothing.
        try:
            self._tally.health()
        except TallyError as error:
            report.error = error
            return []
        with self._lock:
            waiting = self._load()
            marked = [cast(QueuedScore, {"sent_at": now, **score}) for score in waiting[:_BATCH]]
            # Before they are sent: after a crash the queue must know that they may have counted.
            self._save([*marked, *waiting[_BATCH:]])
            return marked

    def _send(
        self, batch: List[QueuedScore], now: float, report: FlushReport
    ) -> Mapping[str, Union[t.BatchResult, TallyError]]:
        """The outcomes by idempotency key."""
        done: dict[str, Union[t.BatchResult, TallyError]] = {}
        fresh = []
        for score in batch:
            if now - score["sent_at"] < _KNOWN_FOR:
                fresh.append(score)
            else:
                message = "it was sent more than 23 hours ago and not answered; read the player's score, then decide"
                done[score["idempotency_key"]] = TallyError("outcome_unknown", message)
        rows: List[Any] = [{name: value for name, value in score.items() if name != "sent_at"} for score in fresh]
        try:
            results = self._tally.submit_many(rows) if rows else []
        except TallyError as error:
            report.error = error
            return done
        for score, result in zip(fresh, results):
            if "error" not in result:
                done[score["idempotency_key"]] = result
                continue
            failure = TallyError(result["error"]["code"], result["error"]["detail"])
            if failure.code in _PASSING:
                report.error = failure
            else:
                done[score["idempotency_key"]] = failure
        return done

    def _settle(
        self, batch: List[QueuedScore], done: Mapping[str, Union[t.BatchResult, TallyError]], report: FlushReport
    ) -> None:
        with self._lock:
            self._save([score for score in self._load() if score["idempotency_key"] not in done])
        for score in batch:
            outcome = done.get(score["idempotency_key"])
            if isinstance(outcome, TallyError):
                report.refused += 1
                if self._on_refused:
                    self._on_refused(score, outcome)
            elif outcome is not None:
                report.sent += 1
                if self._on_sent:
                    self._on_sent(score, outcome)

    def _load(self) -> List[QueuedScore]:
        if self._waiting is None:
            try:
                text = self._storage.load()
                self._waiting = [_present(row) for row in json.loads(text)] if text is not None else []
            except (OSError, TypeError, ValueError) as error:
                message = f"the stored queue cannot be read; remove it to begin anew: {error}"
                raise TallyError("storage_failed", message) from error
        return self._waiting

    def _save(self, waiting: List[QueuedScore]) -> None:
        try:
            self._storage.save(json.dumps(waiting))
        except OSError as error:
            raise TallyError("storage_failed", f"the queue cannot be stored: {error}") from error
        self._waiting = waiting
