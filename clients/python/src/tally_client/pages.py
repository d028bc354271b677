"""Lists that come in pages."""

from __future__ import annotations

from itertools import islice
from typing import Callable, Generic, Iterator, Optional, TypeVar

Item = TypeVar("Item")


class Pages(Generic[Item]):
    """A list of the server. A loop goes through all of it and asks for each page when it gets there.

    ``for entry in tally.scores("arcade"): ...`` and ``tally.scores("arcade").take(10)``
    """

    def __init__(self, fetch: Callable[[Optional[str]], tuple[list[Item], Optional[str]]]) -> None:
        self._fetch = fetch

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[list[Item]]:
        """The same page by page."""
        cursor: Optional[str] = None
        while True:
            items, cursor = self._fetch(cursor)
            yield items
            if cursor is None:
                return

    def take(self, count: int) -> list[Item]:
        """The first ``count`` items, or all if there are fewer."""
        return list(islice(self, count))
