"""Leaderboards, contests and wallets of a tally server.

    tally = Tally("http://127.0.0.1:8420")
    tally.submit("arcade", "ada", 1200)["rank"]
"""

from . import types
from .client import Tally
from .errors import TallyError
from .events import Event, EventStream
from .pages import Pages
from .queue import FileStorage, FlushReport, MemoryStorage, QueuedScore, QueueStorage, SubmitQueue
from .transport import Retry

__all__ = [
    "Event",
    "EventStream",
    "FileStorage",
    "FlushReport",
    "MemoryStorage",
    "Pages",
    "QueueStorage",
    "QueuedScore",
    "Retry",
    "SubmitQueue",
    "Tally",
    "TallyError",
    "types",
]
