"""The batch log: what was handed in and what became of it, one JSON line per event, never rewritten.

A chunk is written as `submitting` before anything of it is sent. A killed process therefore leaves either nothing, or a line by which the next
one asks the provider what it has; nothing is ever sent again because a reply was lost.
"""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from neuralmedbench.errors import ConfigError
from neuralmedbench.models.budget import NANO
from neuralmedbench.models.ledger import open_ledger
from neuralmedbench.records.words import counted
from neuralmedbench.runtime.append_log import append_line, read_log


class ChunkState(StrEnum):
    """What is known of a chunk."""

    SUBMITTING = "submitting"  # perhaps received: the provider is asked before anything else happens
    SUBMITTED = "submitted"
    UNSETTLED = "unsettled"  # the provider cannot say whether it has it: a person decides
    REFUSED = "refused"
    ABSENT = "absent"  # the provider has no such batch
    COLLECTED = "collected"
    RELEASED = "released"  # by a person: its requests may be sent again


OPEN = frozenset({ChunkState.SUBMITTING, ChunkState.SUBMITTED, ChunkState.UNSETTLED})
"""States in which the requests of a chunk must not be sent again."""


@dataclass(kw_only=True)
class Chunk:
    """Requests that are handed in together.

    Attributes
    ----------
    id : str
        Name under which the provider lists it.
    created : float
        Time of its first line, in seconds since 1970.
    entries : dict of str to dict
        Fields of the ledger's lines that are known before the answers, by key.
    reserved : dict of str to tuple
        Reservation in the spending log and its amount in billionths of a dollar, by key; none for a model that is free.
    batch : str
        The provider's name of the batch; empty until it is known.
    files : list of str
        The provider's names of uploaded files, which are deleted in the end.
    """

    id: str
    created: float = 0.0
    state: ChunkState = ChunkState.SUBMITTING
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    reserved: dict[str, tuple[str, int]] = field(default_factory=dict)
    batch: str = ""
    files: list[str] = field(default_factory=list)
    deleted: bool = False

    @property
    def has_files(self) -> bool:
        """True if the provider may still keep something of a chunk that is done."""
        left = self.files or (self.batch and self.state is ChunkState.COLLECTED)
        return not self.is_open and not self.deleted and bool(left)

    @property
    def is_open(self) -> bool:
        """True while its requests must not be sent again."""
        return self.state in OPEN


class BatchLog:
    """The batch log of one ledger, a file beside it; the writer of the ledger is its only writer.

    Parameters
    ----------
    ledger : Path
        The ledger file.
    """

    def __init__(self, ledger: Path) -> None:
        self._path = log_of(ledger)
        self.chunks: dict[str, Chunk] = {}
        for record in _records(self._path):
            self._apply(record)

    def open_chunks(self) -> list[Chunk]:
        """Return the chunks that are not done, in the order in which they were handed in."""
        return [chunk for chunk in self.chunks.values() if chunk.is_open]

    def submitting(self, entries: Mapping[str, Mapping[str, Any]], reserved: Mapping[str, tuple[str, int]]) -> Chunk:
        """Note a chunk before it is sent; OSError if it cannot be noted: then nothing may be sent."""
        chunk = f"nmb-{os.urandom(12).hex()}"
        self._write(chunk, ChunkState.SUBMITTING, created=time.time(), entries=entries, reserved=reserved)
        return self.chunks[chunk]

    def uploaded(self, chunk: Chunk, file: str) -> None:
        """Note a file that the provider has taken."""
        self._write(chunk.id, "uploaded", file=file)

    def submitted(self, chunk: Chunk, batch: str) -> None:
        """Note the batch that the provider has taken."""
        self._write(chunk.id, ChunkState.SUBMITTED, batch=batch)

    def end(self, chunk: Chunk, state: ChunkState, **words: Any) -> None:
        """Note what became of a chunk."""
        self._write(chunk.id, state, **words)

    def deleted(self, chunk: Chunk) -> None:
        """Note that the provider keeps none of its files."""
        self._write(chunk.id, "deleted")

    def _write(self, chunk: str, event: str, **fields: Any) -> None:
        record = {"chunk": chunk, "event": event, **fields}
        append_line(self._path, record, sync=True)
        self._apply(record)

    def _apply(self, record: Mapping[str, Any]) -> None:
        event, name = record["event"], record["chunk"]
        if event == ChunkState.SUBMITTING:
            reserved = {key: (str(entry), int(nano)) for key, (entry, nano) in record["reserved"].items()}
            self.chunks[name] = Chunk(id=name, created=record["created"], entries=dict(record["entries"]), reserved=reserved)
            return
        chunk = self.chunks[name]
        if event == "uploaded":
            chunk.files.append(record["file"])
        elif event == "deleted":
            chunk.deleted = True
        else:
            chunk.state = ChunkState(event)
            chunk.batch = record.get("batch", chunk.batch)


def log_of(ledger: Path) -> Path:
    """Return the batch log of a ledger."""
    ledger = ledger.resolve()  # as the ledger: two clones that share the file by a link share its log
    return ledger.with_name(f".{ledger.stem}.batches")


def _records(path: Path) -> Iterator[Mapping[str, Any]]:
    """Read a log, without the events of a chunk whose first line is torn."""
    known: set[str] = set()
    for record in read_log(path):
        chunk = record.get("chunk", "")
        if record.get("event") == ChunkState.SUBMITTING:
            known.add(chunk)
        if chunk in known and "event" in record:
            yield record


def open_requests(ledger: Path) -> dict[str, str]:
    """Return the keys of requests that are handed in and not collected, each with the name of its batch or chunk."""
    return {key: chunk.batch or chunk.id for chunk in BatchLog(ledger).open_chunks() for key in chunk.entries}


def batch_lines(folder: Path) -> list[str]:
    """Describe the chunks of all ledgers below a folder, the latest last: one line each, with what is to be done about it."""
    rows = []
    for path in sorted(folder.rglob(".*.batches")):
        ledger = path.with_name(f"{path.stem.removeprefix('.')}.jsonl")
        for chunk in BatchLog(ledger).chunks.values():
            usd = sum(nano for _, nano in chunk.reserved.values()) / NANO
            day = datetime.datetime.fromtimestamp(chunk.created, datetime.UTC).strftime("%Y-%m-%d %H:%M")
            words = [f"{day} UTC", ledger.relative_to(folder).with_suffix("").as_posix(), chunk.id, chunk.batch or "-", str(chunk.state)]
            words += [f"{len(chunk.entries)} requests", *([f"{usd:.2f} USD reserved"] if usd and chunk.is_open else [])]
            words += ["its files may still be at the provider"] if chunk.has_files else []
            if chunk.state is ChunkState.UNSETTLED:
                words.append(
                    f"look it up at the provider; if it is not there `nmb model batches --release {chunk.id}` lets its requests be sent again"
                )
            rows.append((chunk.created, "  ".join(words)))
    return [line for _, line in sorted(rows)]


def release_chunk(folder: Path, name: str) -> str:
    """Let the requests of an unsettled chunk be sent again, because a person says that the provider does not have it.

    Returns
    -------
    str
        What was done.

    Raises
    ------
    ConfigError
        If there is no such chunk, or it is not unsettled.
    ProviderError
        If another process writes to the ledger.
    """
    for path in sorted(folder.rglob(".*.batches")):
        ledger = path.with_name(f"{path.stem.removeprefix('.')}.jsonl")
        if name not in BatchLog(ledger).chunks:
            continue
        with open_ledger(ledger):
            log = BatchLog(ledger)
            chunk = log.chunks[name]
            if chunk.state is not ChunkState.UNSETTLED:
                message = f"{name} is {chunk.state}: only what the provider cannot tell is for you to decide"
                raise ConfigError(message)
            log.end(chunk, ChunkState.RELEASED)
            return (
                f"{counted(len(chunk.entries), 'request')} of {name} may be sent again by the next run; the money reserved for them stays spent"
                " (if the provider's bill is lower, raise max_cost_usd)"
            )
    message = f"no batch log below {folder} has {name}; `nmb model batches` lists them"
    raise ConfigError(message)
