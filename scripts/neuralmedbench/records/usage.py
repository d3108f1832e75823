"""Usage: what a provider counted for a call, by which it is paid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

MOST_TOKENS = 10**8
"""Largest plausible number of tokens of a call: ten times the longest context of any model (10 million), because one call may request
several samples."""


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Tokens of one call or of several; None where the provider reports no plausible count.

    Attributes
    ----------
    prompt_tokens : int or None
        All input: text and pictures, cached or not.
    completion_tokens : int or None
        All output, reasoning included.
    cached_tokens : int or None
        Part of the input that was read from the provider's cache.
    cache_write_tokens, cache_write_1h_tokens : int or None
        Parts of the input that were written to its cache, for a few minutes and for an hour; no part is in both.
    reasoning_tokens : int or None
        Part of the output that the model thought and that is no part of the answer.
    image_tokens : int or None
        Part of the input that pictures took.
    service_tier : str
        Tier at which the call was served, as the provider names it (`default`, `flex`, `batch`); empty if it names none.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_1h_tokens: int | None = None
    reasoning_tokens: int | None = None
    image_tokens: int | None = None
    service_tier: str = ""


COUNTS = tuple(field.name for field in fields(Usage) if field.name != "service_tier")
"""Names of its counts."""

PARTS = COUNTS[2:]
"""Counts that are part of one of the first two."""


def usage_of(record: Usage) -> Usage:
    """Return the usage that a record holds, such as an answer or a line of a ledger."""
    return Usage(**{field.name: getattr(record, field.name) for field in fields(Usage)})


def total_of(usages: Iterable[Usage], name: str) -> int | None:
    """Return the sum of one count; None if it is not known of all, because a partial sum would look like a saving.

    A part that is not reported counts as none where others report theirs: providers leave out a zero.
    """
    counts = [getattr(usage, name) for usage in usages]
    known = [count for count in counts if count is not None]
    return sum(known) if known and (name in PARTS or len(known) == len(counts)) else None


def token_count(value: object) -> int | None:
    """Return a token count if it is a plausible one, an integer from 0 to `MOST_TOKENS`, else None.

    Examples
    --------
    >>> token_count(12), token_count(12.0), token_count(-1), token_count(0.5), token_count("12"), token_count(10**30)
    (12, 12, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None
