"""Event streams that go on where they were after a lost connection."""

from __future__ import annotations

import http.client
import json
import random
import socket
import threading
from dataclasses import dataclass
from typing import Any, Iterator, Optional

from .errors import TallyError
from .transport import Transport

#: The server sends at least a comment every 15 seconds.
_SILENCE_MAX = 45.0
_RECONNECT_AFTER = 2.0
#: Statuses that a later attempt does not change.
_FINAL = {400, 401, 403, 404, 405}


@dataclass(frozen=True)
class Event:
    """One event. ``type`` says what ``data`` is."""

    type: str
    #: The position of this event: a stream with it as ``last_event_id`` goes on behind this event.
    id: Optional[str]
    data: Any


class EventStream:
    """The events of a leaderboard, a contest or a member, for a loop.

    It connects when the loop begins, connects again by itself with the last id, and yields each stored event once and in order.
    It ends when another thread calls ``close``, and raises a ``TallyError`` if the server will not send any more (401, 403, 404).
    """

    def __init__(self, transport: Transport, path: str, last_event_id: Optional[str]) -> None:
        #: The position of the last event that was yielded, or where the stream began. Store it to go on after a restart.
        self.last_event_id = last_event_id
        self._transport = transport
        self._path = path
        self._closed = threading.Event()
        self._socket: Optional[socket.socket] = None

    def close(self) -> None:
        """Ends the loop, from any thread."""
        self._closed.set()
        reading = self._socket
        if reading is not None:
            try:
                reading.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __iter__(self) -> Iterator[Event]:
        wait = _RECONNECT_AFTER
        while not self._closed.is_set():
            again = wait
            try:
                for block in self._blocks():
                    if block.retry is not None:
                        again = wait = block.retry
                    if block.id is not None:
                        # An empty id means that there is none to go on from.
                        self.last_event_id = block.id or None
                    if block.data is not None:
                        yield Event(block.type, self.last_event_id, json.loads(block.data))
            except TallyError as error:
                if error.status in _FINAL:
                    raise
                again = max(wait, error.retry_after or 0.0)
            # Many streams that broke together come back one after the other.
            self._closed.wait(again * (1 + random.random() / 2))

    def _blocks(self) -> Iterator[_Block]:
        """The blocks of one connection. A connection that breaks is no error: the next one goes on."""
        headers = {"Accept": "text/event-stream"}
        if self.last_event_id is not None:
            headers["Last-Event-ID"] = self.last_event_id
        sock, response = self._transport.open(self._path, headers, _SILENCE_MAX)
        self._socket = sock
        text = b""
        try:
            while not self._closed.is_set():
                try:
                    some = response.read1(65_536)
                except (OSError, ValueError, http.client.HTTPException):
                    return
                if not some:
                    return
                *blocks, text = (text + some).replace(b"\r\n", b"\n").split(b"\n\n")
                for block in blocks:
                    yield _parse(block.decode("utf-8", "replace"))
        finally:
            self._socket = None
            response.close()
            sock.close()


@dataclass
class _Block:
    type: str = "message"
    id: Optional[str] = None
    retry: Optional[float] = None
    data: Optional[str] = None


def _parse(text: str) -> _Block:
    """The fields between two empty lines."""
    block = _Block()
    for line in text.split("\n"):
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            block.type = value
        elif name == "id":
            block.id = value
        elif name == "retry" and value.isdigit():
            block.retry = int(value) / 1_000
        elif name == "data":
            block.data = value if block.data is None else f"{block.data}\n{value}"
    return block
