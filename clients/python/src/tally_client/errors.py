"""The one error class of the package."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional


class TallyError(Exception):
    """A call that failed. ``code`` is for programs, ``str(error)`` for people.

    The codes of the server are in its reference (``/docs``). The package adds ``network_error`` (no answer came),
    ``not_tally`` (something else answered), ``queue_full``, ``outcome_unknown`` and ``storage_failed`` (of a ``SubmitQueue``).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        status: int = 0,
        request_id: Optional[str] = None,
        retry_after: Optional[float] = None,
        problem: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__(message)
        #: A stable word, such as ``leaderboard_not_found``.
        self.code = code
        self.message = message
        #: The HTTP status; 0 if no server answered.
        self.status = status
        #: The id under which the server's log has this request.
        self.request_id = request_id
        #: Seconds after which the server wants to be asked again.
        self.retry_after = retry_after
        #: The whole body of the error: some codes have more fields, such as ``left`` or ``state``.
        self.problem: Mapping[str, Any] = problem or {}

    @property
    def errors(self) -> list[dict[str, str]]:
        """Every wrong field, of 400 and ``invalid_definition``: its ``pointer``, ``code`` and ``detail``."""
        return list(self.problem.get("errors", []))

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def error_of(url: str, status: int, headers: Mapping[str, str], body: bytes) -> TallyError:
    """The error that a response says."""
    after = headers.get("retry-after")
    retry_after = float(after) if after is not None and after.isdigit() else None
    request_id = headers.get("x-request-id")
    try:
        problem = json.loads(body)
        code, detail = problem["code"], problem["detail"]
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace").strip()[:200]
        message = f"{url} answered {status}, and not as a tally server does: {text}"
        return TallyError("not_tally", message, status=status, request_id=request_id, retry_after=retry_after)
    return TallyError(
        code, detail, status=status, request_id=request_id, retry_after=retry_after, problem=problem
    )
