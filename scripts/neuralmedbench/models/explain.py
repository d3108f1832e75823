"""Show exactly what a model is sent, and why an answer is in the ledger or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.call_keys import KEY_VERSION, request_key, sent_schema
from neuralmedbench.models.causes import next_step
from neuralmedbench.models.conversation import PromptMessage, next_messages
from neuralmedbench.models.informant import INFORMANT, MOST_REPLIES
from neuralmedbench.models.ledger import SAMPLING, LedgerEntry, picture_digests, read_ledger, text_digests
from neuralmedbench.models.registry import unavailable_reason
from neuralmedbench.models.replay import model_of_entry
from neuralmedbench.models.samples import SampleWalk
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import MISSING_STATES, Response, is_by_another_model, printable_name

SHORT, DIGEST = 12, 64


def _nearest_entry(entries: Iterable[LedgerEntry], request: Request, repeat: int, turn: int) -> LedgerEntry | None:
    """Find the ledger entry whose request comes nearest to a call of this item; None if the item has no entry.

    Nearness is decided by arm, then strategy, call and sample; of equally near entries the latest is taken.
    """

    def nearness(placed: tuple[int, LedgerEntry]) -> tuple[bool, bool, bool, bool, int]:
        place, entry = placed
        return entry.arm == request.arm, entry.strategy == request.strategy, entry.turn == turn, entry.repeat == repeat, place

    of_item = [(place, entry) for place, entry in enumerate(entries) if entry.item_id == request.item_id]
    return max(of_item, key=nearness)[1] if of_item else None


def differences(entry: LedgerEntry, walk: SampleWalk) -> list[str]:
    """List what differs between the call that is due and a ledger entry, as "... then, ... now"; never the texts."""
    (request, turn), model, messages = walk.due, walk.asked_model, walk.messages
    now: dict[str, object] = {"model id": withhold_outside_paths(model.id), "revision": model.revision}
    now |= {name: getattr(model, name) for name in SAMPLING}
    then: dict[str, object] = {"model id": entry.model, "revision": entry.revision} | {name: getattr(entry, name) for name in SAMPLING}
    if not entry.revision:  # written before settings were stored: compare only what follows
        then = dict(now)
    now |= {"arm": request.arm, "strategy": request.strategy, "sample": walk.number, "call": turn + 1, "key version": KEY_VERSION}
    then |= {"arm": entry.arm, "strategy": entry.strategy, "sample": entry.repeat, "call": entry.turn + 1, "key version": entry.key_version}
    changes = [f"{name} {_shown(then[name])} then, {_shown(now[name])} now" for name in now if then[name] != now[name]]
    if entry.code != walk.code:
        changes.append("the code or vocabulary of the built-in model has changed")
    if (entry.arm, entry.strategy, entry.turn) == (request.arm, request.strategy, turn) and not walk.asks_informant:
        changes += _content_changes(entry, request, model, messages)
    return changes


def _content_changes(entry: LedgerEntry, request: Request, model: ModelConfig, messages: Sequence[PromptMessage]) -> list[str]:
    """Compute the key of the present request with the settings of the entry: if it differs from the entry's key, other content was sent."""
    then = model_of_entry(entry, model) if entry.revision else model
    if request_key(request, then, messages, entry.repeat, code=entry.code) == entry.key:
        return []
    # a first call may differ in its picture budget only: try every budget
    pictures = sum(len(turn.images) for turn in request.turns) if entry.turn == 0 else -1
    for budget in (None, *range(pictures + 1)):
        if _first_key(request, then.model_copy(update={"max_images": budget}), entry) == entry.key:
            return [f"max_images {_shown(budget)} then (or as many pictures), {_shown(model.max_images)} now"]
    if entry.words:
        return _prompt_changes(entry, messages) or [f"{_what_is_left(request, model, messages)} changed"]
    if entry.turn > 0:  # the key of a later call covers the answers before it
        return ["the words, the pictures or the earlier answers of the dialogue have changed"]
    return ["the words or the pictures that are sent have changed"]


def _what_is_left(request: Request, model: ModelConfig, messages: Sequence[PromptMessage]) -> str:
    """Name the parts of this call that are in its key but whose digests are not stored with an answer."""
    parts = {
        "the labels of the pictures": any(message.images for message in messages),
        "the schema of the answer": bool(sent_schema(request, model)),
        "the place of the weights": withhold_outside_paths(model.id) != model.id,
    }
    return " or ".join(part for part, there in parts.items() if there) or "something that is not stored with it"


def _first_key(request: Request, model: ModelConfig, entry: LedgerEntry) -> str:
    return request_key(request, model, next_messages(request, [], model.max_images) or (), entry.repeat, code=entry.code)


def _shown(value: object) -> str:
    if value is None or value in ({}, ""):
        return "not set"
    words = str(value)
    return words[:SHORT] if len(words) == DIGEST else words  # the strategy of a grading request is a digest: see `ModelGrader.request`


SHOWN, SHOWN_DIGITS = 5, 12


ROLES = {"system": "the system message", "user": "message {number}", "assistant": "answer {number} of the dialogue"}


def _prompt_changes(entry: LedgerEntry, messages: Sequence[PromptMessage]) -> list[str]:
    """List which messages and pictures differ from those that were sent for an entry."""
    then, now = _by_message(entry.words), _by_message(text_digests(messages))
    names = [name for name in dict.fromkeys([*now, *then]) if then.get(name) != now.get(name)]
    return ([f"the words of {', '.join(names)} have changed"] if names else []) + _pictures(entry.pictures, picture_digests(messages))


def _pictures(then: Sequence[str], now: Sequence[str]) -> list[str]:
    if tuple(then) == tuple(now):
        return []
    removed, added = _not_in(then, now), _not_in(now, then)
    if not removed and not added:
        return ["the same pictures are sent in another order, or another number of times"]
    parts = [f"{len(then)} pictures then, {len(now)} now"]
    parts += [f"no longer sent: {_list(removed)}"] if removed else []
    return ["; ".join([*parts, *([f"new: {_list(added)}"] if added else [])])]


def _not_in(digests: Sequence[str], others: Sequence[str]) -> list[str]:
    return [f"{place} ({digest[:SHOWN_DIGITS]})" for place, digest in enumerate(digests, start=1) if digest not in others]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _by_message(words: Sequence[str]) -> Mapping[str, str]:
    digests: dict[str, str] = {}
    numbers = Counter[str]()
    for role, _, digest in (word.partition(" ") for word in words):
        numbers[role] += 1
        digests[ROLES.get(role, role + " {number}").format(number=numbers[role])] = digest
    return digests


def explain(
    request: Request,
    model: ModelConfig,
    entries: Mapping[str, LedgerEntry],
    *,
    code: str = "",
    ledger: Path | None = None,
    rows: Sequence[Response] | None = None,
    reading: Callable[[str], str] | None = None,
    informant: ModelConfig | None = None,
) -> str:
    """Describe one request: its conversation, its ledger entries, and its rows in the table of responses.

    Parameters
    ----------
    request : Request
        The request.
    model : ModelConfig
        The model: its picture budget decides which pictures are sent.
    entries : mapping of str to LedgerEntry
        The ledger.
    code : str
        As in `models.call_keys.call_key`.
    ledger : Path or None
        Path of the ledger, to be printed.
    rows : sequence of Response or None
        Responses of the present revision; None if there is no table.
    reading : callable or None
        Says how the text of an answer to this item is read, or why it is not; None: nothing is said of it.
    informant : ModelConfig or None
        As in `models.samples.SampleWalk`.

    Returns
    -------
    str
        The messages of the first sample, pictures by label, path and digest; then for every sample its calls in the ledger with their
        keys, what differs from the nearest entry where a call is missing, and its state in the table of responses.
    """
    lines = [f"request {request.request_id} ({request.item_id}, arm {request.arm}, strategy {request.strategy})"]
    lines += [f"ledger {ledger.as_posix()}: {len(entries)} answers{'' if ledger.exists() else ' (it is not there)'}"] if ledger else []
    lines.append("")
    unavailable = unavailable_reason(model)
    by_repeat = None if rows is None else {row.repeat: row for row in rows if _is_of(row, request)}
    for repeat in range(request.samples):
        walk = SampleWalk(request, model, repeat, code=code, informant=informant).resume(entries)
        there, answered = len(walk.entries), walk.complete and not walk.skipped
        if repeat == 0:
            lines += [line for message in walk.messages for line in _message(message)]
            lines += ["--- answer", *([walk.own_entries[-1].text] if answered else []), ""]
        lines.append(f"sample {repeat}: {there} of {_expected(request, walk)} calls are in the ledger")
        lines += [f"  call {number}: {_entry_words(entry, request)}" for number, entry in enumerate(walk.entries, start=1)]
        if walk.skipped:
            lines.append(f"  not asked: {walk.skipped.error}")
            continue
        if not answered:
            due, turn = walk.due
            nearest = _nearest_entry(entries.values(), due, repeat, turn)
            changed = differences(nearest, walk) if nearest else []
            lines.append(f"  call {there + 1}: key {walk.key[:SHORT]} is not in the ledger; {_nearest_words(nearest, changed)}")
        if by_repeat is not None:
            lines.append(f"  table of responses: {_row_words(by_repeat.get(repeat), answered=answered, unavailable=unavailable)}")
        if reading is not None and answered:
            lines.append(f"  reading: {reading(walk.own_entries[-1].text)}")
    return "\n".join(lines)


def explain_stored(
    requests: Sequence[Request],
    model: ModelConfig,
    *,
    code: str,
    ledger: Path,
    table: Path,
    reading: Callable[[str], str] | None = None,
    informant: ModelConfig | None = None,
) -> str:
    """Explain requests from the files of a run.

    Parameters
    ----------
    requests : sequence of Request
        The requests.
    model : ModelConfig
        The model, as configured for the benchmark.
    code : str
        As in `models.call_keys.call_key`.
    ledger, table : Path
        Its ledger and its table of responses; either may be absent.
    reading, informant
        As in `explain`.

    Returns
    -------
    str
        See `explain`.

    Raises
    ------
    DataError
        If the table has another schema.
    """
    entries = read_ledger(ledger)
    rows = [row for row in read_records(table, Response) if row.revision == model.revision] if table.exists() else None
    known: dict[str, Any] = {"code": code, "ledger": ledger, "rows": rows, "reading": reading, "informant": informant}
    return "\n\n".join(explain(request, model, entries, **known) for request in requests)


def _is_of(row: Response, request: Request) -> bool:
    return (row.item_id, row.arm, row.strategy) == (request.item_id, request.arm, request.strategy)


def _expected(request: Request, walk: SampleWalk) -> str:
    if walk.complete:
        return str(len(walk.entries))
    most = request.most_calls + (walk.informant is not None) * MOST_REPLIES * (request.most_calls - 1)
    return f"up to {most}" if request.asks_back else str(len(request.earlier) + request.most_calls)


def _entry_words(entry: LedgerEntry, request: Request) -> str:
    served = f" by {withhold_outside_paths(printable_name(entry.served_model))}" if entry.served_model else ""
    place = f", destination {entry.destination}" if entry.destination else ""
    words = f"key {entry.key[:SHORT]}, {entry.state}, answered{f' on {entry.called_on}' if entry.called_on else ''}{served}{place}"
    target = (entry.item_id, entry.arm, entry.strategy)
    if entry.strategy == INFORMANT:
        return f"{INFORMANT} {withhold_outside_paths(entry.model)}, {words}"
    if entry.item_id and target != (request.item_id, request.arm, request.strategy):
        words += f"; first asked for {entry.item_id}, arm {entry.arm}, strategy {entry.strategy}, with the same prompt"
    return words


def _nearest_words(nearest: LedgerEntry | None, changed: Sequence[str]) -> str:
    if nearest is None:
        return "it has no answer to this item"
    day = f" of {nearest.called_on}" if nearest.called_on else ""
    return f"nearest is {nearest.key[:SHORT]}{day}: {'; '.join(changed) or 'nothing that is stored with it differs'}"


def _row_words(row: Response | None, *, answered: bool, unavailable: str) -> str:
    then = "it cannot be asked for here: " + unavailable if unavailable else "the next run asks for it"
    if row is None:
        return "no row of this sample and revision; " + ("the ledger has it: no call is needed" if answered else then)
    words = f"{row.state}" + (f" after {row.attempts} attempts" if row.attempts else "") + (f" ({row.error})" if row.error else "")
    words += f"; {step}" if (step := next_step(row.error)) else ""
    if is_by_another_model(row.error):
        return words
    if row.state in MISSING_STATES:
        return f"{words}; " + ("the ledger has it now: `nmb run retry` takes it from there" if answered else f"{then} (`nmb run retry`)")
    return words if answered else f"{words}, of an earlier prompt or setting; {then}"


def _message(message: PromptMessage) -> Iterator[str]:
    yield f"--- {message.role}"
    yield message.text
    for image in message.images:
        file = f"{image.path}, sha256 {image.sha256[:SHORT]}"
        yield f"[{file}: {image.label}]" if message.labels_after else f"[{image.label}: {file}]"
    if message.after:
        yield message.after
