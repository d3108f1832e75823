"""What a model is really sent, in words that a person can check, and why an answer is there or not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.conversation import PromptMessage
from neuralmedbench.models.ledgers.follow import SampleProgress, resume_sample
from neuralmedbench.models.ledgers.ledger import LedgerEntry, read_ledger
from neuralmedbench.models.nearest import SHORT, differences, nearest_entry
from neuralmedbench.models.registry import closed_because
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response
from neuralmedbench.records.served import shown_name


def explain(
    request: Request,
    model: ModelConfig,
    entries: Mapping[str, LedgerEntry],
    *,
    code: str = "",
    ledger: Path | None = None,
    rows: Sequence[Response] | None = None,
    closed: str = "",
) -> str:
    """Write down the conversation of one request, what the ledger holds of it, and what became of it.

    Parameters
    ----------
    request : Request
        The request.
    model : ModelConfig
        The model: its picture budget decides which pictures are sent.
    entries : mapping of str to LedgerEntry
        The ledger.
    code : str
        As in `models.keys.call_key`.
    ledger : Path or None
        Where the ledger lies, to be named.
    rows : sequence of Response or None
        The table of responses of the present revision; None when there is none.
    closed : str
        Why the model cannot be asked here; empty when it can.

    Returns
    -------
    str
        The messages of the first sample, pictures by label, path and digest; then for every sample which of its calls are in the ledger, by
        which key, what differs from the nearest answer where one is not there, and its state in the table of responses.
    """
    lines = [f"request {request.request_id} ({request.item_id}, arm {request.arm}, strategy {request.strategy})"]
    lines += [f"ledger {ledger.as_posix()}: {len(entries)} answers{'' if ledger.exists() else ' (it is not there)'}"] if ledger else []
    lines.append("")
    by_repeat = None if rows is None else {row.repeat: row for row in rows if _is_of(row, request)}
    for repeat in range(request.samples):
        found = resume_sample(request, model, entries, repeat, code=code)
        answered = len(found.entries)
        if repeat == 0:
            lines += [line for message in found.messages for line in _message(message)]
            lines += ["--- answer", *([found.entries[-1].text] if found.complete else []), ""]
        lines.append(f"sample {repeat}: {answered} of {_expected(request, found)} calls are in the ledger")
        lines += [f"  call {number}: {_entry_words(entry, request)}" for number, entry in enumerate(found.entries, start=1)]
        if not found.complete:
            nearest = nearest_entry(entries.values(), request, repeat, answered)
            changed = differences(nearest, request, model, found.messages, repeat=repeat, turn=answered, code=code) if nearest else []
            lines.append(f"  call {answered + 1}: key {found.key[:SHORT]} is not there; {_nearest_words(nearest, changed)}")
        if by_repeat is not None:
            lines.append(f"  table of responses: {_row_words(by_repeat.get(repeat), answered=found.complete, closed=closed)}")
    return "\n".join(lines)


def explain_stored(requests: Sequence[Request], model: ModelConfig, *, code: str, ledger: Path, table: Path) -> str:
    """Explain requests by the files of a run.

    Parameters
    ----------
    requests : sequence of Request
        The requests, as the model is asked.
    model : ModelConfig
        The model, as it is asked for the benchmark.
    code : str
        As in `models.keys.call_key`.
    ledger, table : Path
        Its ledger and its table of responses; either may be absent.

    Returns
    -------
    str
        See `explain`.

    Raises
    ------
    DataError
        If the table does not fit.
    """
    entries = read_ledger(ledger)
    rows = [row for row in read_records(table, Response) if row.revision == model.revision] if table.exists() else None
    closed = closed_because(model)
    return "\n\n".join(explain(request, model, entries, code=code, ledger=ledger, rows=rows, closed=closed) for request in requests)


def _is_of(row: Response, request: Request) -> bool:
    return (row.item_id, row.arm, row.strategy) == (request.item_id, request.arm, request.strategy)


def _expected(request: Request, found: SampleProgress) -> str:
    if found.complete:
        return str(len(found.entries))
    return f"up to {request.inquiry.max_questions + 1}" if request.inquiry else str(len(request.turns))


def _entry_words(entry: LedgerEntry, request: Request) -> str:
    served = f" by {without_places(shown_name(entry.served_model))}" if entry.served_model else ""
    place = f", destination {entry.destination}" if entry.destination else ""
    words = f"key {entry.key[:SHORT]}, {entry.state}, answered{f' on {entry.called_on}' if entry.called_on else ''}{served}{place}"
    whose = (entry.item_id, entry.arm, entry.strategy)
    if entry.item_id and whose != (request.item_id, request.arm, request.strategy):
        words += f"; first asked for {entry.item_id}, arm {entry.arm}, strategy {entry.strategy}, which says the same"
    return words


def _nearest_words(nearest: LedgerEntry | None, changed: Sequence[str]) -> str:
    if nearest is None:
        return "no answer to this item was ever kept here"
    day = f" of {nearest.called_on}" if nearest.called_on else ""
    return f"nearest is {nearest.key[:SHORT]}{day}: {'; '.join(changed) or 'nothing that is kept with it differs'}"


def _row_words(row: Response | None, *, answered: bool, closed: str) -> str:
    then = "it cannot be asked for here: " + closed if closed else "the next run asks for it"
    if row is None:
        return "no row of this sample and revision; " + ("the ledger has it: no call is needed" if answered else then)
    words = f"{row.state}" + (f" after {row.attempts} attempts" if row.attempts else "") + (f" ({row.error})" if row.error else "")
    if row.state in MISSING_STATES:
        return f"{words}; " + ("the ledger has it now: `make retry` takes it from there" if answered else f"{then} (`make retry`)")
    return words if answered else f"{words}, of an earlier prompt or setting; {then}"


def _message(message: PromptMessage) -> Iterator[str]:
    yield f"--- {message.role}"
    yield message.text
    for image in message.images:
        yield f"[{image.label}: {image.path}, sha256 {image.sha256[:SHORT]}]"
