"""Import answers of another run into the ledger, under the keys that our own calls would have; from then on they are treated alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.config.load import load_benchmark, load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.run_names import how_to_make
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.files.json_files import read_json_record
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.call_keys import request_key
from neuralmedbench.models.conversation import next_messages
from neuralmedbench.models.ledger import LedgerEntry, new_entry, open_ledger, read_ledger
from neuralmedbench.models.requests_of_model import fits_layout
from neuralmedbench.models.samples import AnswerStore, SampleWalk, item_key, stored_answer
from neuralmedbench.records.questions import IMPORT_RECORD, ImportRecord
from neuralmedbench.records.requests import Request
from neuralmedbench.records.thoughts import answer_of
from neuralmedbench.records.words import LONGEST_NAME, counted, quote

IMPORTED = "imported"
"""`finish_reason` and `served_model` of an imported answer, and the name of the backend that is never called."""
SHOWN = 5
"""Most problems that an error message lists."""

Target = tuple[str, str, str]


@dataclass(frozen=True)
class ImportCounts:
    """Result of an import: answers that the prompts expect, that were given, added, still missing, left aside with their questions, or unknown."""

    expected: int
    given: int
    added: int
    missing: int
    left_aside: int = 0
    unknown: int = 0


def import_answers(
    requests: Sequence[Request],
    model: ModelConfig,
    given: Iterable[GivenAnswer],
    *,
    ledger: Path,
    left_out: Collection[str] = (),
    leave_unknown: bool = False,
) -> ImportCounts:
    """Add given answers to a ledger.

    Parameters
    ----------
    requests : sequence of Request
        The requests of the benchmark.
    model : ModelConfig
        The model's yaml, of `backend: imported`.
    given : iterable of GivenAnswer
        The answers.
    ledger : Path
        Ledger of this benchmark and model.
    left_out : collection of str
        Ids of questions that the import of the set refused; answers to them are left aside.
    leave_unknown : bool
        True to leave out answers to items that the benchmark does not have; at least one must be known.

    Returns
    -------
    ImportCounts
        Numbers of answers.

    Raises
    ------
    ConfigError
        If the model is one that this pipeline asks itself.
    DataError
        If an answer belongs to no request, occurs twice, has an unexpected number of turns, or differs from the one in the ledger;
        nothing is added then.
    """
    all_rows = list(given)
    asked = {name for request in requests for name in _names(request)}
    rows = [row for row in all_rows if row.item in asked or row.item not in left_out]
    aside, known = len(all_rows) - len(rows), [row for row in rows if row.item in asked]
    rows = known if leave_unknown and known else rows
    check_import(requests, model, rows, ledger=ledger)
    with open_ledger(ledger) as answers:
        before = len(answers)
        for entry in _new_entries(requests, model, rows, answers=answers):
            answers.add(entry)
        answers.sync()
        walks = (SampleWalk(request, model, repeat).resume(answers) for request in requests for repeat in range(request.samples))
        complete = sum(walk.complete and not walk.skipped for walk in walks)
        added = len(answers) - before
    expected = sum(request.samples for request in requests)
    return ImportCounts(
        expected=expected,
        given=len(all_rows),
        added=added,
        missing=expected - complete,
        left_aside=aside,
        unknown=len(all_rows) - aside - len(rows),
    )


def check_import(requests: Sequence[Request], model: ModelConfig, given: Sequence[GivenAnswer], *, ledger: Path) -> None:
    """Check an import without writing anything; parameters and errors as in :func:`import_answers`."""
    if model.backend != IMPORTED:
        message = f"model {model.name}: it is asked by this pipeline (backend: {model.backend}); imported answers need a model of backend: imported"
        raise ConfigError(message)
    _new_entries(requests, model, given, answers=read_ledger(ledger))


def _new_entries(
    requests: Sequence[Request], model: ModelConfig, given: Sequence[GivenAnswer], *, answers: AnswerStore
) -> list[LedgerEntry]:
    """Return the entries that the ledger lacks, after checking the answers against the requests and the ledger."""
    asked: dict[Target, Request] = {}
    for request in requests:
        for item in _names(request):
            asked[item, request.arm, request.strategy] = request
    marks = model.thought_marks or ()
    given = [replace(row, turns=tuple(answer_of(text, marks)[0] for text in row.turns)) for row in given]
    _check(given, asked)
    added = _PendingEntries(answers)
    differing = []
    for row in given:
        request = asked[_target(row)]
        for entry in _entries(request, model, row):
            known = stored_answer(added, request, model, entry.key)
            differs = known is not None and answer_of(known.text, marks)[0] != entry.text
            if known is None or (differs and _target_of(known) != _target_of(entry)):
                # two items may share a prompt, and so its key, but not an answer: the second gets a key of its own
                added.add(entry if added.get(entry.key) is None else replace(entry, key=item_key(entry.key, request)))
            elif differs:
                differing.append(entry)
    if differing:
        message = (
            f"model {model.name}: {len(differing)} answers differ from those that were imported before, the first is that to"
            f" {differing[0].item_id};"
            " raise `revision` in its yaml to import a new run"
        )
        raise DataError(message)
    return list(added.entries.values())


def _names(request: Request) -> set[str]:
    """Return the names by which an answer may call its item: with or without the benchmark."""
    return {request.item_id, request.item_id.partition("/")[2]}


class _PendingEntries:
    """A ledger together with the entries that are to be added to it."""

    def __init__(self, answers: AnswerStore) -> None:
        self._answers = answers
        self.entries: dict[str, LedgerEntry] = {}

    def get(self, key: str, /) -> LedgerEntry | None:
        return self.entries.get(key) or self._answers.get(key)

    def add(self, entry: LedgerEntry) -> None:
        self.entries[entry.key] = entry


def _target_of(entry: LedgerEntry) -> Target:
    return entry.item_id, entry.arm, entry.strategy


def _target(row: GivenAnswer) -> Target:
    return row.item, row.arm, row.strategy


def _check(rows: Sequence[GivenAnswer], asked: dict[Target, Request]) -> None:
    problems = []
    known = {item for item, _, _ in asked}
    seen = Counter((asked[_target(row)].item_id, row.arm, row.strategy, row.sample) for row in rows if _target(row) in asked)
    unknown = sum(row.item not in known for row in rows)
    given = Counter(asked[_target(row)].item_id for row in rows if _target(row) in asked)
    for row in rows:
        request = asked.get(_target(row))
        if request is None:
            item = quote(row.item, LONGEST_NAME)
            expected = "" if row.item in known else _expected_id(row.item, known)
            problems.append(f"{row.where}: no request for the item {item} under arm {row.arm}, strategy {row.strategy}{expected}")
        elif request.earlier:
            problems.append(f"{row.where}: arm {row.arm} shows the model's own earlier answer, so it is asked here or not at all")
        elif row.sample >= request.samples and given[request.item_id] > request.samples:
            often = f"the item {quote(row.item, LONGEST_NAME)} occurs {given[request.item_id]} times, the benchmark asks for {counted(request.samples, 'answer')} to it"
            problems.append(f"{row.where}: {often}; keep {request.samples}")
        elif not 0 <= row.sample < request.samples:
            problems.append(f"{row.where}: sample {row.sample}, the benchmark asks for {request.samples} (they count from 0)")
        elif (number := _number_of_turns(request, row.turns)) != len(row.turns):
            problems.append(f"{row.where}: {len(row.turns)} turns, expected {number}")
        elif seen[request.item_id, row.arm, row.strategy, row.sample] > 1:
            problems.append(f"{row.where}: sample {row.sample} of {row.item} occurs twice; keep one, or number them in the column `sample`")
    # all problems at once, so that a file is corrected in one go
    if problems:
        more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        leave = f"; --leave-unknown leaves out the {counted(unknown, 'answer')} whose id is unknown" if 0 < unknown < len(rows) else ""
        message = f"{len(problems)} of {len(rows)} answers cannot be used, nothing was imported: {'; '.join(problems[:SHOWN])}{more}{leave}"
        raise DataError(message)


def _expected_id(item: str, known: Collection[str]) -> str:
    """Say how ids are written; the end of a message on an unknown one."""
    bare = item.rpartition("/")[2]
    if bare != item and bare in known:
        return f"; write it without what stands before `{quote(bare, LONGEST_NAME)[1:-1]}`"
    longest = sorted(known, key=lambda name: ("/" in name, name))
    both = " or ".join(dict.fromkeys([*longest[:1], *[name for name in longest if name.endswith(f"/{longest[0]}")][:1]]))
    return f"; expected ids as in the set, such as {both or 'none'}"


def _number_of_turns(request: Request, texts: Sequence[str]) -> int:
    """Return the number of answers after which a dialogue with these answers ends; if the model asks, its questions decide."""
    for number in range(len(texts) + 1):
        if next_messages(request, texts[:number], None) is None:
            return number
    return len(texts) + 1 if request.asks_back else request.most_calls


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


def import_given(
    benchmark: str, name: str, given: Iterable[GivenAnswer], *, config: Path, data: Path, fresh: bool = False, leave_unknown: bool = False
) -> Iterator[str]:
    """Import the answers of a model to a benchmark of a project, and yield what was imported in lines.

    Parameters
    ----------
    benchmark, name : str
        Names of benchmark and model.
    given : iterable of GivenAnswer
        The answers.
    config, data : Path
        Configuration folder and data folder.
    fresh : bool
        True if these are other answers than those by which the items were chosen.
    leave_unknown : bool
        As in `import_answers`.

    Raises
    ------
    ConfigError, DataError
        If the model may not be scored on these items, the prompts are not there, or as `import_answers`.
    """
    model, settings = load_model_for(config, benchmark, name), load_benchmark(config, benchmark)
    # answers that chose the items would be scored on items chosen to be hard for them
    if name in settings.reference_pool and not fresh:
        message = f"{name}: the items of {benchmark} were chosen by its answers, which therefore cannot be scored; add --fresh if these are other answers"
        raise ConfigError(message)
    prompts = data / "prompts" / f"{benchmark}.parquet"
    if not prompts.is_file():
        message = f"the prompts of {benchmark} are not there; make them first: {how_to_make(prompts, benchmark)}"
        raise DataError(message)
    requests = [row for row in read_records(prompts, Request) if fits_layout(row, model)]
    path = Path(settings.questions or "", IMPORT_RECORD)
    is_there = settings.questions and path.is_file()
    refused = read_json_record(path, ImportRecord, remedy="import the data set again").refused if is_there else ()
    questions = [row.question_id for row in refused if row.question_id]
    left_out = {*questions, *(f"{benchmark}/{question}" for question in questions)}
    ledger = data / "ledger" / benchmark / f"{name}.jsonl"
    counts = import_answers(requests, model, given, ledger=ledger, left_out=left_out, leave_unknown=leave_unknown)
    yield f"{name}: {counts.expected} answers expected, {counts.given} given, {counts.added} new, {counts.missing} missing"
    if counts.left_aside:
        reasons = f"the import of the set left out {len(refused)} questions, {path.as_posix()} has the reasons"
        yield f"  {counts.left_aside} left aside: {reasons}"
    if counts.unknown:
        yield f"  {counts.unknown} left out: their ids are not in {benchmark}"
