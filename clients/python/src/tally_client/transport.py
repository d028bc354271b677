"""Requests over http.client: a key for each change, bounded retries with backoff and jitter, and ``Retry-After``."""

from __future__ import annotations

import http.client
import json
import random
import selectors
import socket
import ssl
import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any, Mapping, Optional, Union
from urllib.parse import quote, urlencode, urlsplit

from .errors import TallyError, error_of

QueryValue = Union[str, int, float, bool, None]

#: Statuses after which the same request may succeed. 409 and 429 count with a ``Retry-After`` only.
_AGAIN = {408, 409, 429, 502, 503, 504}


@dataclass(frozen=True)
class Retry:
    """How a call that may succeed later is repeated. Times are in seconds."""

    #: How often a request is sent at most. The default takes 8 to 16 s and outlasts a restart of a server. 1 turns retries off.
    attempts: int = 8
    #: The wait before the second attempt; each wait is twice the last, and up to half of it is random.
    first_wait: float = 0.2
    #: The longest of these waits.
    longest_wait: float = 5.0
    #: The longest ``Retry-After`` that is obeyed. A longer one ends the call with its error.
    longest_retry_after: float = 30.0

    def wait_after(self, error: TallyError, attempt: int) -> Optional[float]:
        """Seconds until the next attempt after this error, or None if no attempt will help."""
        if attempt >= self.attempts:
            return None
        if error.code != "network_error" and error.status not in _AGAIN:
            return None
        if error.status in (409, 429) and error.retry_after is None:
            return None
        asked = error.retry_after or 0.0
        if asked > self.longest_retry_after:
            return None
        backoff = min(self.longest_wait, self.first_wait * 2.0 ** (attempt - 1))
        return max(asked, backoff / 2) + random.random() * backoff / 2


class Transport:
    """Connections to one server; any number of threads may use it."""

    def __init__(
        self,
        url: str,
        key: Optional[str],
        timeout: float,
        retry: Retry,
        ssl_context: Optional[ssl.SSLContext],
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"the address is {url!r}; it begins with http:// or https://")
        self.url = url.rstrip("/")
        self.key = key
        self.retry = retry
        self._timeout = timeout
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._tls = (ssl_context or ssl.create_default_context()) if parts.scheme == "https" else None
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

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
        """Sends a request until it has its answer; returns the body of the answer."""
        headers = {"Accept": "application/json"}
        if changes if changes is not None else method != "GET":
            headers["Idempotency-Key"] = idempotency_key or uuid.uuid4().hex
        if acting_player is not None:
            headers["Tally-Acting-Player"] = quote(acting_player, safe="")
        data = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(body).encode()
        target = address(path, query)
        attempt = 1
        while True:
            try:
                return self._once(method, target, data, headers)
            except TallyError as error:
                wait = self.retry.wait_after(error, attempt)
                if wait is None:
                    raise
            time.sleep(wait)
            attempt += 1

    def credential(self) -> dict[str, str]:
        """The header with the key, if there is one."""
        return {} if self.key is None else {"Authorization": f"Bearer {self.key}"}

    def open(
        self, target: str, headers: Mapping[str, str], timeout: float
    ) -> tuple[socket.socket, http.client.HTTPResponse]:
        """Begins a ``GET`` on a connection of its own, which the caller closes."""
        connection = self._connect(timeout)
        try:
            connection.request("GET", self._path + target, headers={**headers, **self.credential()})
            sock = connection.sock
            response = connection.getresponse()
            if response.status >= 300:
                raise self._refusal(target, response, response.read())
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._lost(target, error) from error
        except TallyError:
            connection.close()
            raise
        return sock, response

    def close(self) -> None:
        """Closes the connections that no call uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _take(self) -> http.client.HTTPConnection:
        while True:
            with self._lock:
                if not self._idle:
                    return self._connect(self._timeout)
                connection = self._idle.pop()
            if connection.sock is not None and not _is_readable(connection.sock):
                return connection
            # An idle connection with something to read was closed by the server.
            connection.close()

    def _once(self, method: str, target: str, data: Optional[bytes], headers: Mapping[str, str]) -> Any:
        connection = self._take()
        try:
            connection.request(method, self._path + target, data, {**headers, **self.credential()})
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise self._lost(target, error) from error
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append(connection)
        if response.status >= 300:
            raise self._refusal(target, response, text)
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            found = text[:200].decode("utf-8", "replace")
            message = f"{self.url}{target} answered with something else than JSON: {found}"
            raise TallyError("not_tally", message, status=response.status) from None

    def _refusal(self, target: str, response: http.client.HTTPResponse, body: bytes) -> TallyError:
        headers = {name.lower(): value for name, value in response.getheaders()}
        return error_of(self.url + target, response.status, headers, body)

    def _lost(self, target: str, error: Exception) -> TallyError:
        why = str(error) or type(error).__name__
        return TallyError("network_error", f"no answer from {self.url}{target}: {why}")


def _is_readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


def address(path: str, query: Optional[Mapping[str, QueryValue]] = None) -> str:
    """A path with its query; what is None is left out."""
    pairs = {name: value for name, value in (query or {}).items() if value is not None}
    words = {name: str(value).lower() if isinstance(value, bool) else value for name, value in pairs.items()}
    return f"{path}?{urlencode(words)}" if words else path
