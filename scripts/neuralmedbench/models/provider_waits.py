"""How long a provider that refuses a call asks to wait: in headers, in the body, for a minute's limit or for the day's."""

from __future__ import annotations

import datetime
import email.utils
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

from neuralmedbench.models.causes import DAY_LIMIT, NO_CREDIT, cause_of, message_of
from neuralmedbench.models.retry import LONGEST_RETRY_AFTER_S, TOO_MANY, CallError

UNITS = {"ms": 0.001, "millisecond": 0.001, "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0}
UNITS |= {"h": 3600.0, "hr": 3600.0, "hour": 3600.0, "d": 86400.0, "day": 86400.0}
PART = r"\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b"
PARTS = rf"(?:\d+(?:\.\d+)?[hdm](?=\d))*{PART}(?:,?\s*(?:and\s+)?{PART})*"
IN_WORDS = re.compile(
    rf"(?:(?:try|retry)(?: again)?(?: in| after)?|retry[- ]after:?|wait(?: for)?|reset(?:s|ting)? (?:in|after))\s+({PARTS})"
)
IN_FIELDS = re.compile(
    rb'"(retryDelay|retry_delay|retry_after|retryAfter|retry_after_ms|retry_after_seconds)"\s*:\s*(?:\{\s*"seconds"\s*:\s*)?"?([^",}\s]{1,40})'
)
RESET = re.compile(r"(?:x-|anthropic-)*rate-?limit-.*reset.*|(?:x-)?rate-?limit-reset")
MINUTE_S, LONG_S = 60.0, 3600.0
OLDEST_DATE = 1e9
"""A larger number is a date in seconds since 1970, or in milliseconds."""


def failed_call(kind: str, status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Return the error of a call that a provider refused, with its cause and the wait that it asks for.

    A quota of the day, or credit, that is used up is final: the same call cannot succeed in this run. So is a wait of an hour or more.
    """
    cause, wait_s = cause_of(status, body), asked_wait_s(status, headers, body)
    if status == TOO_MANY and wait_s is not None and wait_s >= LONG_S and cause != NO_CREDIT.words:
        cause = DAY_LIMIT.words
    # a day's limit that frees a place from time to time says when; a wait beside Google's `PerDay` is that of a minute
    frees = wait_s is not None and wait_s <= LONGEST_RETRY_AFTER_S and b"perday" not in body.lower()
    final = cause == NO_CREDIT.words or (cause == DAY_LIMIT.words and not frees)
    return CallError(kind, status, wait_s, final=final, cause=cause)


def asked_wait_s(status: int, headers: Mapping[str, str], body: bytes = b"", now: datetime.datetime | None = None) -> float | None:
    """Return how long a provider asks to wait, in seconds; None if it does not say.

    Examples
    --------
    >>> asked_wait_s(429, {"retry-after-ms": "1500", "retry-after": "2"}), asked_wait_s(429, {}, b'{"error": "Please try again in 1m30s"}')
    (1.5, 90.0)
    """
    now = now or datetime.datetime.now(datetime.UTC)
    waits = (*_in_retry_headers(headers, now), *_in_body(body, now))
    return next(iter(waits), _longest_reset(headers, now) if status == TOO_MANY else None)


def _in_retry_headers(headers: Mapping[str, str], now: datetime.datetime) -> Iterator[float]:
    milliseconds = seconds_of(headers.get("retry-after-ms", ""), now)
    waits = (None if milliseconds is None else milliseconds / 1000, seconds_of(headers.get("retry-after", ""), now))
    yield from (wait for wait in waits if wait is not None)


def _in_body(body: bytes, now: datetime.datetime) -> Iterator[float]:
    for name, value in IN_FIELDS.findall(body):
        if (wait := seconds_of(value.decode("ascii", "replace"), now)) is not None:
            yield wait / 1000 if name.endswith(b"_ms") else wait
    if stated := IN_WORDS.search(message_of(body)):
        yield seconds_of(stated[1], now) or 0.0


def _longest_reset(headers: Mapping[str, str], now: datetime.datetime) -> float | None:
    """Return when the limits are free again of which nothing remains; if something remains of all, the longest wait of a minute's limit."""
    resets = {name: wait for name in headers if RESET.fullmatch(name) and (wait := seconds_of(headers[name], now)) is not None}
    remaining = {name: seconds_of(headers.get(name.replace("reset", "remaining"), ""), now) for name in resets}
    used_up = [wait for name, wait in resets.items() if not remaining[name]]
    return max(used_up or [wait for wait in resets.values() if wait <= MINUTE_S], default=None)


def seconds_of(words: str, now: datetime.datetime) -> float | None:
    """Return a wait in seconds: a number, a duration (`6m0s`, `120ms`), or a date; None if it is none.

    Examples
    --------
    >>> [seconds_of(words, datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)) for words in ("7", "6m0s", "120ms", "2026-01-01T00:00:30Z")]
    [7.0, 360.0, 0.12, 30.0]
    """
    words = words.strip()
    with suppress(ValueError):
        number = float(words)
        if not math.isfinite(number):
            return None
        if number > OLDEST_DATE:
            number = number / (1000 if number > OLDEST_DATE * 1000 else 1) - now.timestamp()
        return max(0.0, number)
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", words.lower())
    units = [UNITS.get(unit, UNITS.get(unit.removesuffix("s"))) for _, unit in parts if unit != "and"]
    if parts and re.fullmatch(r"(?:\d+(?:\.\d+)?\s*[a-z]+[,\s]*(?:and\s+)?)+", words.lower()) and None not in units:
        return sum(float(number) * (unit or 0.0) for (number, _), unit in zip(parts, units, strict=True))
    for read in (datetime.datetime.fromisoformat, email.utils.parsedate_to_datetime):
        with suppress(TypeError, ValueError, IndexError):
            date = read(words)
            date = date if date.tzinfo else date.replace(tzinfo=datetime.UTC)
            return max(0.0, (date - now).total_seconds())
    return None
