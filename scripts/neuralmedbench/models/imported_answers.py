"""Answers of somebody else's run, put into the ledger under the keys that ours would have: from there on they are answers like all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.models.call_keys import request_key
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.ledger import LedgerEntry, new_entry, open_ledger, read_ledger
from neuralmedbench.models.samples import AnswerStore, SampleWalk, item_key, stored_answer
from neuralmedbench.records.requests import Request

IMPORTED = "imported"
"""`finish_reason` and `served_model` of an imported answer, and the name of the backend that asks for nothing."""
SHOWN = 5

Target = tuple[str, str, str]


@dataclass(frozen=True)
class ImportCounts:
    """What an import brought: answers expected by the prompts, given, new in the ledger, and still missing."""

    expected: int
    given: int
    added: int
    missing: int


def import_answers(requests: Sequence[Request], model: ModelConfig, given: Iterable[GivenAnswer], *, ledger: Path) -> ImportCounts:
    """Put given answers into a ledger.

    Parameters
    ----------
    requests : sequence of Request
        What the benchmark asks.
    model : ModelConfig
        The model's yaml, of `backend: imported`.
    given : iterable of GivenAnswer
        The answers.
    ledger : Path
        Ledger of this benchmark and model.

    Returns
    -------
    Coverage
        Counts of answers.

    Raises
    ------
    ConfigError
        If the model is one that this pipeline asks itself.
    DataError
        If an answer belongs to nothing that is asked, stands twice, has another number of turns, or differs from the one that is in the
        ledger; nothing is added then.
    """
    rows = list(given)
    check_import(requests, model, rows, ledger=ledger)
    with open_ledger(ledger) as book:
        before = len(book)
        for entry in _new_entries(requests, model, rows, book=book):
            book.add(entry)
        book.sync()
        there = sum(SampleWalk(request, model, repeat).resume(book).complete for request in requests for repeat in range(request.samples))
        added = len(book) - before
    expected = sum(request.samples for request in requests)
    return ImportCounts(expected=expected, given=len(rows), added=added, missing=expected - there)


def check_import(requests: Sequence[Request], model: ModelConfig, given: Sequence[GivenAnswer], *, ledger: Path) -> None:
    """Say what would be wrong with an import, and write nothing; parameters and errors as in :func:`import_answers`."""
    if model.backend != IMPORTED:
        message = f"model {model.name}: it is asked by this pipeline (backend: {model.backend}); imported answers need a model of backend: imported"
        raise ConfigError(message)
    _new_entries(requests, model, given, book=read_ledger(ledger))


def _new_entries(requests: Sequence[Request], model: ModelConfig, given: Sequence[GivenAnswer], *, book: AnswerStore) -> list[LedgerEntry]:
    """Give the entries that the ledger lacks, for answers that fit what is asked and what it holds."""
    asked: dict[Target, Request] = {}
    for request in requests:
        for item in {request.item_id, request.item_id.partition("/")[2]}:
            asked[item, request.arm, request.strategy] = request
    _check(given, asked)
    added = _Added(book)
    other = []
    for row in given:
        request = asked[_target(row)]
        for entry in _entries(request, model, row):
            known = stored_answer(added, request, model, entry.key)
            if known is None or (known.text != entry.text and _whose(known) != _whose(entry)):
                added.add(entry if added.get(entry.key) is None else replace(entry, key=item_key(entry.key, request)))
            elif known.text != entry.text:
                other.append(entry)
    if other:
        message = (
            f"model {model.name}: {len(other)} answers differ from those that were imported before, the first is that to {other[0].item_id};"
            " raise `revision` in its yaml to import a new run"
        )
        raise DataError(message)
    return list(added.entries.values())


class _Added:
    """A ledger, and the entries that are to be added to it."""

    def __init__(self, book: AnswerStore) -> None:
        self._book = book
        self.entries: dict[str, LedgerEntry] = {}

    def get(self, key: str, /) -> LedgerEntry | None:
        return self.entries.get(key) or self._book.get(key)

    def add(self, entry: LedgerEntry) -> None:
        self.entries[entry.key] = entry


def _whose(entry: LedgerEntry) -> Target:
    return entry.item_id, entry.arm, entry.strategy


def _target(row: GivenAnswer) -> Target:
    return row.item, row.arm, row.strategy


def _check(rows: Sequence[GivenAnswer], asked: dict[Target, Request]) -> None:
    problems = []
    seen = Counter((asked[_target(row)].item_id, row.arm, row.strategy, row.sample) for row in rows if _target(row) in asked)
    for row in rows:
        request = asked.get(_target(row))
        if request is None:
            problems.append(f"{row.where}: no request for this item under arm {row.arm}, strategy {row.strategy}")
        elif not 0 <= row.sample < request.samples:
            problems.append(f"{row.where}: sample {row.sample}, the benchmark asks for {request.samples} (they count from 0)")
        elif (number := _number_of_turns(request, row.turns)) != len(row.turns):
            problems.append(f"{row.where}: {len(row.turns)} turns, expected {number}")
        elif seen[request.item_id, row.arm, row.strategy, row.sample] > 1:
            problems.append(f"{row.where}: this answer stands twice")
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        message = f"{len(problems)} of {len(rows)} answers cannot be used, nothing was imported: {'; '.join(problems[:SHOWN])}{more}"
        raise DataError(message)


def _number_of_turns(request: Request, texts: Sequence[str]) -> int:
    """After how many answers a dialogue ends that begins with these; where the model asks, its questions decide."""
    for number in range(len(texts) + 1):
        if next_messages(request, texts[:number], None) is None:
            return number
    return len(texts) + 1 if request.inquiry else len(request.turns)


def _entries(request: Request, model: ModelConfig, row: GivenAnswer) -> list[LedgerEntry]:
    asked = [next_messages(request, row.turns[:turn], model.max_images) or () for turn in range(len(row.turns))]
    return [
        new_entry(
            request,
            model,
            messages,
            key=request_key(request, model, messages, row.sample),
            state="ok",
            text=text,
            finish_reason=IMPORTED,
            served_model=IMPORTED,
            latency_s=row.seconds[turn] if row.seconds else None,
            attempts=0,
            repeat=row.sample,
            turn=turn,
        )
        for turn, (messages, text) in enumerate(zip(asked, row.turns, strict=True))
    ]
