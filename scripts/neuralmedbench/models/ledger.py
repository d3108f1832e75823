"""The ledger: every answer that ever came back, one JSON line each, never rewritten.

Beside it, requests of calls that failed: a ledger keeps answers alone, but what a failed call sent has left the machine as well.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import DataError, ProviderError
from neuralmedbench.files.dvc_lock import DVC_LOCK, read_dvc_lock
from neuralmedbench.models.call_keys import KEY_VERSION
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import COUNTS, MISSING_STATES, PARTS, ResponseState, Usage, token_count
from neuralmedbench.records.thoughts import is_only_thoughts
from neuralmedbench.runtime.append_log import append, append_line, values
from neuralmedbench.runtime.locks import read_holder, try_lock, write_holder
from neuralmedbench.runtime.storage import has_room, open_private

SYNC_EVERY = 64
SYNC_AFTER_S = 2.0
"""Answers, or seconds, between two flushes to disk: a power cut loses at most these, a killed process loses nothing."""
ROOM_BYTES = 8 * 2**20
"""Free space that the disk of a ledger must have before a call is made: more than all answers in flight can take."""


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
        for value in values(self._path.read_bytes()) if self._path.exists() else ():
            with suppress(ValidationError):
                line = LINE.validate_python(value)
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
        with suppress(OSError):
            append_line(self._path, [key, failed])


@dataclass(frozen=True, kw_only=True)
class LedgerEntry(Usage):
    """One answer in the ledger; `state` is `ok`, `refused` or `truncated` (a failure is never kept)."""

    key: str
    state: str
    text: str
    finish_reason: str = ""
    served_model: str = ""
    fingerprint: str = ""
    latency_s: float | None = None
    attempts: int = 1
    called_on: str = ""
    key_version: int = 1
    # the first request that got this answer; never used for look-up
    item_id: str = ""
    arm: str = ""
    strategy: str = ""
    repeat: int = 0
    turn: int = 0
    # the settings in the key, by which answers of an earlier revision are found again (`models.replay`); `revision` is empty in lines
    # written before these were stored
    model: str = ""
    revision: str = ""
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    parameters: dict[str, str | float | int | bool] = field(default_factory=dict)
    structured_output: str = "none"
    logprobs: bool = False
    code: str = ""
    # what was sent: the host, pictures above the provider's documented size, and digests (no `words` in lines written before them)
    destination: str = ""
    images_downscaled: int = 0
    token_logprobs: tuple[float, ...] = ()  # natural logarithms
    words: tuple[str, ...] = ()
    pictures: tuple[str, ...] = ()
    # HTTP requests that the host may have received (None in lines written before this), and those of calls that failed before this answer
    requests: int | None = None
    failed: tuple[FailedRequests, ...] = ()
    # how a thought ended that was taken out of the text (`records.thoughts.ThoughtEnd`); empty if there was none, and in lines written before this
    thought: str = ""

    @property
    def shown(self) -> str:
        """The answer as later turns show it: without the thought that was kept because nothing followed it."""
        return "" if self.thought and is_only_thoughts(self.text) else self.text


SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "parameters", "structured_output", "logprobs")
"""Settings of a model's yaml that are in the key besides id and revision; entries and yaml use the same names."""


def new_entry(request: Request, model: ModelConfig, messages: Sequence[PromptMessage], **answer: Any) -> LedgerEntry:
    """Build the entry of an answer to these messages."""
    return LedgerEntry(
        item_id=request.item_id,
        arm=request.arm,
        strategy=request.strategy,
        key_version=KEY_VERSION,
        model=withhold_outside_paths(model.id),
        revision=model.revision,
        words=text_digests(messages),
        pictures=picture_digests(messages),
        **{name: getattr(model, name) for name in SAMPLING},
        **answer,
    )


SENT_DIGITS = 32
"""Hex digits kept of a SHA-256: half of them (128 bits, unique among all texts and pictures there will ever be), so that a request of 20
pictures takes 0.7 kB. Answers are looked up by the key, with all 64. The search for planted strings knows digests of this length."""


def text_digests(messages: Sequence[PromptMessage]) -> tuple[str, ...]:
    """Return for each message its role, a space, and the first digits of the SHA-256 of its text (UTF-8)."""
    return tuple(f"{message.role} {_digest(message.words)}" for message in messages)


def picture_digests(messages: Sequence[PromptMessage]) -> tuple[str, ...]:
    """Return the first digits of the SHA-256 of every picture, in the order in which they are sent."""
    return tuple(image.sha256[:SENT_DIGITS] for message in messages for image in message.images)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:SENT_DIGITS]


ENTRY = TypeAdapter(LedgerEntry)
ANSWER_DIGEST = "answer_sha256"
"""Field of a line that is not part of `LedgerEntry`: it reveals an answer that was changed later. It takes 53 bytes per line; earlier
versions did not write it."""
DIGITS = 32
REMEDY = "delete the line and run `nmb run pull`, which brings the recorded one back; one that was never recorded is asked for again"
"""Next step for a changed line."""


class Ledger:
    """The answers of one ledger file, open for appending; made by `open_ledger`."""

    def __init__(self, file: IO[bytes], entries: dict[str, LedgerEntry], unreadable: int, failed: FailedCalls) -> None:
        self._file = file
        self.failed = failed
        self._entries = entries
        self._waiting = 0
        self._synced = time.monotonic()
        self.unreadable = unreadable

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> LedgerEntry | None:
        """Return the answer of a key; None if it is not in the ledger."""
        return self._entries.get(key)

    def add(self, entry: LedgerEntry) -> None:
        """Append an answer; a key that is already in the ledger is not written again."""
        if entry.key in self._entries:
            return
        self._entries[entry.key] = entry
        unreported = {name for name in (*PARTS, "service_tier", "thought") if not vars(entry)[name] and vars(entry)[name] != 0}
        line = {**{name: value for name, value in vars(entry).items() if name not in unreported}, ANSWER_DIGEST: _answer_digest(entry)}
        append(self._file.fileno(), json.dumps(line, sort_keys=True, ensure_ascii=False).encode() + b"\n")
        self._waiting += 1
        if self._waiting >= SYNC_EVERY or time.monotonic() - self._synced > SYNC_AFTER_S:
            self.sync()

    def has_room(self) -> bool:
        """Return True if the disk has room for the answers in flight and one more: an answer that cannot be kept must not be paid for."""
        return has_room(self._file.fileno(), ROOM_BYTES)

    def add_line(self, line: bytes, where: str) -> bool:
        """Append a line of another ledger unchanged, unknown fields included; False if it is not an entry or its key is already here."""
        entry = _entry(line, where)
        if entry is None or entry.key in self._entries:
            return False
        self._entries[entry.key] = entry
        append(self._file.fileno(), line.rstrip(b"\n") + b"\n")
        return True

    async def keep_synced(self) -> None:
        """Flush to disk regularly until the task is cancelled: `add` flushes only when another answer comes."""
        while True:
            await asyncio.sleep(SYNC_AFTER_S)
            if self._waiting:
                with suppress(OSError):  # the last `sync` raises it
                    self.sync()

    def sync(self) -> None:
        """Write all added answers to the disk itself (fsync)."""
        os.fsync(self._file.fileno())
        self._waiting, self._synced = 0, time.monotonic()


def _answer_digest(entry: LedgerEntry) -> str:
    """Return the first half of the SHA-256 over key, item, state and text of an answer."""
    answer = json.dumps([entry.key, entry.item_id, entry.state, entry.text])
    return hashlib.sha256(answer.encode()).hexdigest()[:DIGITS]


def read_ledger(path: Path) -> dict[str, LedgerEntry]:
    """Read the answers of a ledger by key, without locking it; empty if there is no file.

    Parameters
    ----------
    path : Path
        The `.jsonl` file.

    Returns
    -------
    dict of str to LedgerEntry
        In the order of the lines. Lines that are not entries are skipped.

    Raises
    ------
    DataError
        If an answer was changed after it was kept: it does not match the digest in its line.
    """
    if not path.exists():
        return {}
    with path.open("rb") as file:
        return _read(file)[0]


@contextmanager
def open_ledger(path: Path) -> Iterator[Ledger]:
    """Open a ledger for this process alone.

    Parameters
    ----------
    path : Path
        The `.jsonl` file, or a link to it; created if absent.

    Yields
    ------
    Ledger
        The ledger. Lines that are not entries (the torn last line of a killed process) are skipped.

    Raises
    ------
    ProviderError
        If another process writes to it; the message has the process id.
    DataError
        If an answer was changed after it was kept: it does not match the digest in its line.
    OSError
        If the disk is full when the last answers are flushed.
    """
    path = path.resolve()  # two clones that share the file by a link must meet at one lock
    path.parent.mkdir(parents=True, exist_ok=True)
    with _only_writer(path), open(path, "a+b", opener=open_private) as file:
        ledger = Ledger(file, *_read(file), FailedCalls(path))
        try:
            yield ledger
        except BaseException:
            with suppress(OSError):  # it would hide the error that says what to do
                ledger.sync()
            raise
        ledger.sync()


def add_missing(path: Path, other: Path) -> int:
    """Append the answers of another ledger that this one lacks; lines are copied unchanged.

    Parameters
    ----------
    path : Path
        The ledger; created if absent.
    other : Path
        The ledger to read from.

    Returns
    -------
    int
        Number of answers added.

    Raises
    ------
    ProviderError
        If another process writes to the ledger; the message has the process id.
    DataError
        If an answer in one of them does not match the digest in its line.
    """
    with open_ledger(path) as ledger, other.open("rb") as lines:
        name = f"the recorded {path.parent.name}/{path.name}"
        return sum(ledger.add_line(line, f"{name}, line {number}") for number, line in enumerate(lines, start=1))


@contextmanager
def _only_writer(path: Path) -> Iterator[None]:
    with path.with_name(f".{path.name}.lock").open("a+b") as lock:
        if not try_lock(lock.fileno()):
            holder = read_holder(lock.fileno()).pid or "unknown"
            message = f"{path.name}: process {holder} writes to this ledger; wait for it to end, two writers would pay twice"
            raise ProviderError(message)
        write_holder(lock.fileno())
        yield


def _read(file: IO[bytes]) -> tuple[dict[str, LedgerEntry], int]:
    entries: dict[str, LedgerEntry] = {}
    unreadable = 0
    name = "/".join(Path(file.name).parts[-2:])
    file.seek(0)
    for number, line in enumerate(file, start=1):
        entry = _entry(line, f"{name}, line {number}")
        if entry:
            entries.setdefault(entry.key, entry)
        else:
            unreadable += bool(line.strip())
    return entries, unreadable


def _entry(line: bytes, where: str) -> LedgerEntry | None:
    """Read one line; None if it is not an answer."""
    try:
        value: Any = json.loads(line)
        known = {name: value[name] for name in LedgerEntry.__dataclass_fields__ if name in value}
        # earlier versions stored the provider's counts unchecked: negative, or too large for a table
        counts = {name: token_count(known.get(name)) for name in COUNTS}
        entry = ENTRY.validate_python(known | counts)
        if ResponseState(entry.state) in MISSING_STATES:  # a failure is not an answer
            return None
    except (ValueError, TypeError, ValidationError, RecursionError):
        return None
    if value.get(ANSWER_DIGEST, "") not in ("", _answer_digest(entry)):
        message = f"{where}: the answer to {entry.item_id} was changed after it was kept (it does not match its digest); {REMEDY}"
        raise DataError(message)
    return entry


def check_recorded_ledger(model: ModelConfig, ledger: Path, lock: Path = DVC_LOCK) -> None:
    """Refuse (ProviderError) to ask a paid model while the ledger here is shorter than the recorded one: a ledger only grows."""
    if model.api_key_env is None and model.prices is None:
        return
    recorded = read_dvc_lock(lock).get(ledger.as_posix())
    here = ledger.stat().st_size if ledger.exists() else 0
    if recorded is not None and here < recorded.size:
        message = (
            f"model {model.name}: the recorded ledger {ledger.as_posix()} has {recorded.size} bytes, the one here {here}: run `nmb run pull` first,"
            f" or these answers are paid for again (if they are lost for good: take the ledger out of {lock.name})"
        )
        raise ProviderError(message)
