"""Requests of calls that failed: a ledger keeps answers alone, but what a failed call sent has left the machine as well."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from neuralmedbench.runtime.storage import open_private


class FailedRequests(NamedTuple):
    """HTTP requests of one call that a host may have received without giving an answer, and the day (UTC, YYYY-MM-DD)."""

    destination: str
    requests: int
    called_on: str


class _Line(NamedTuple):
    key: str
    failed: FailedRequests


LINE = TypeAdapter(_Line)


class FailedCalls:
    """Failed calls of one ledger, by the key of the call; a file beside it, which is not recorded.

    When the answer comes, its line in the ledger takes them over. The writer of the ledger is the only writer of this file.

    Parameters
    ----------
    ledger : Path
        The ledger file.
    """

    def __init__(self, ledger: Path) -> None:
        self._path = ledger.with_name(f".{ledger.stem}.failed")
        self._calls: dict[str, list[FailedRequests]] = {}
        if self._path.exists():
            for text in self._path.read_bytes().splitlines():
                with suppress(ValidationError):  # the torn line of a killed process
                    line = LINE.validate_json(text)
                    self._calls.setdefault(line.key, []).append(line.failed)

    def of(self, key: str) -> tuple[FailedRequests, ...]:
        """Return the failed requests of a call, by host and day."""
        by_place: dict[tuple[str, str], int] = {}
        for one in self._calls.get(key, ()):
            place = (one.destination, one.called_on)
            by_place[place] = by_place.get(place, 0) + one.requests
        return tuple(FailedRequests(host, number, day) for (host, day), number in by_place.items())

    def add(self, key: str, failed: FailedRequests) -> None:
        """Keep the requests of a call that failed; on a full disk only until this process ends."""
        self._calls.setdefault(key, []).append(failed)
        with suppress(OSError), open(self._path, "ab", opener=open_private) as file:
            file.write(json.dumps([key, failed]).encode() + b"\n")
