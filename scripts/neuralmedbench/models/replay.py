"""Replay: rebuild the responses of a recorded run from the ledger alone, without a call.

An empty ledger records that its model was skipped (it had no key): it stays skipped and counts as missing. Any other ledger must hold
every answer that is needed, unless the answers were imported. Failed calls are in no ledger, so the responses of a model with failed calls
cannot be rebuilt; the recorded ones remain valid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from neuralmedbench.config.load import withhold_outside_paths
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ProviderError
from neuralmedbench.files.dvc_lock import read_dvc_lock
from neuralmedbench.models.call_keys import sent_schema
from neuralmedbench.models.context_length import ContextLength
from neuralmedbench.models.conversation import ViewSource, stored_view
from neuralmedbench.models.informant import INFORMANT
from neuralmedbench.models.ledger import SAMPLING, LedgerEntry, read_ledger
from neuralmedbench.models.registry import code_of, unavailable_reason
from neuralmedbench.models.requests_of_model import too_many_pictures
from neuralmedbench.models.samples import MissingAnswer, SampleWalk, response_row, with_cut_thoughts
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import response_key
from neuralmedbench.records.vocabulary import Vocabulary

NOTHING_RECORDED = "its ledger is empty: nothing was asked when the run was recorded"
REMEDY = "`nmb run pull` brings the recorded ledger; to ask the model, take `replay` out of the configuration"


def previous_responses(
    requests: Sequence[Request],
    model: ModelConfig,
    ledger: Path,
    views: ViewSource = stored_view,
    informant: ModelConfig | None = None,
) -> list[Response]:
    """Return the answers of the previous revision, or of `reference_revision`, to the present requests.

    Parameters
    ----------
    requests : sequence of Request
        The requests.
    model : ModelConfig
        The model's yaml, with its present revision.
    ledger : Path
        Ledger file of this benchmark and model.
    views : callable
        As in `models.conversation.next_messages`.
    informant : ModelConfig or None
        As in `models.samples.SampleWalk`.

    Returns
    -------
    list of Response
        Rows of the previous revision, as returned by `rebuild`; none if the ledger has no other revision. They have no cost, because
        they were paid for at earlier prices.
    """
    entries = read_ledger(ledger)
    first = _previous_entry(entries.values(), model.revision, model.reference_revision)
    if first is None:
        return []
    rows = rebuild(requests, model_of_entry(first, model), entries, code=first.code, views=views, informant=informant)
    print(f"{model.name}: {len(rows)} answers of revision {first.revision} are in the ledger, for comparison", file=sys.stderr)
    return rows


def _previous_entry(entries: Iterable[LedgerEntry], revision: str, reference: str | None = None) -> LedgerEntry | None:
    """Return the first entry of the previous revision, or of `reference`, with the last settings used under it; None if there is none."""
    # first entry of each revision and combination of settings; entries come in the order of the ledger
    variants: dict[str, dict[tuple[object, ...], LedgerEntry]] = {}
    for entry in entries:
        wanted = entry.revision not in ("", revision) and reference in (None, entry.revision)
        if wanted and entry.strategy != INFORMANT:
            settings = (entry.model, entry.code, *(repr(getattr(entry, name)) for name in SAMPLING))
            variants.setdefault(entry.revision, {}).setdefault(settings, entry)
    return list(list(variants.values())[-1].values())[-1] if variants else None


def model_of_entry(entry: LedgerEntry, model: ModelConfig) -> ModelConfig:
    """Return the model's yaml as it was when an answer was recorded; a weights folder outside the project counts as the present one."""
    return model.model_copy(
        update={
            "id": model.id if entry.model == withhold_outside_paths(model.id) else entry.model,
            "revision": entry.revision,
            **{name: getattr(entry, name) for name in SAMPLING},
            "prices": None,
        }
    )


def rebuild(
    requests: Sequence[Request],
    model: ModelConfig,
    entries: Mapping[str, LedgerEntry],
    *,
    code: str = "",
    views: ViewSource = stored_view,
    informant: ModelConfig | None = None,
) -> list[Response]:
    """Rebuild samples from the ledger alone.

    Parameters
    ----------
    requests : sequence of Request
        The requests; one whose text or pictures changed has another key and is not found.
    model : ModelConfig
        The model with the settings of these answers.
    entries : mapping of str to LedgerEntry
        The ledger.
    code : str
        As in `models.call_keys.call_key`.
    views : callable
        As in `models.conversation.next_messages`.
    informant : ModelConfig or None
        As in `models.samples.SampleWalk`.

    Returns
    -------
    list of Response
        One row per sample whose calls are all in the ledger, sorted by item, arm, strategy and repeat. The others are left out: they
        are not missing, they were never requested.
    """
    walks = [
        SampleWalk(request, model, repeat, code=code, views=views, informant=informant).resume(entries)
        for request in requests
        for repeat in range(request.samples)
    ]
    rows = with_cut_thoughts((response_row(walk) for walk in walks if walk.complete and walk.entries), walks)
    return sorted(rows, key=response_key)


def _too_long(walks: Iterable[SampleWalk], entries: Mapping[str, LedgerEntry]) -> Iterator[Response]:
    """Yield the samples whose next call is too long for the model: it was not made in the recorded run either."""
    for walk in walks:
        walk.resume(entries)
        if reason := ContextLength(walk.asked_model).reason(walk.messages, sent_schema(walk.request, walk.asked_model)):
            yield response_row(walk, MissingAnswer(ResponseState.SKIPPED, reason))


def replay_requests(
    requests: Sequence[Request],
    model: ModelConfig,
    ledger: Path,
    vocabulary: Vocabulary | None,
    *,
    views: ViewSource = stored_view,
    informant: ModelConfig | None = None,
) -> list[Response]:
    """Rebuild the responses of one model; no backend is opened, so no key, weights or network are needed."""
    code = code_of(model, vocabulary)
    entries = _entries(model.name, ledger)
    rows = rebuild(requests, model, entries, code=code, views=views, informant=informant)
    samples = [(request, repeat) for request in sorted(requests, key=_order) for repeat in range(request.samples)]
    if not entries:
        skipped = MissingAnswer(ResponseState.SKIPPED, NOTHING_RECORDED)
        print(f"{model.name}: {len(samples)} answers skipped: {NOTHING_RECORDED}", file=sys.stderr)
        return [response_row(SampleWalk(request, model, repeat), skipped) for request, repeat in samples]
    present = {(row.item_id, row.arm, row.strategy, row.repeat) for row in rows}
    # imported answers may be incomplete, in the recorded run as well
    not_imported = unavailable_reason(model) if model.backend == "imported" else ""
    reasons = [
        (request, repeat, too_many_pictures(request, model.max_images) or ("" if (*_order(request), repeat) in present else not_imported))
        for request, repeat in samples
    ]
    # samples that were skipped in the recorded run are skipped again
    rows += [
        response_row(SampleWalk(request, model, repeat), MissingAnswer(ResponseState.SKIPPED, reason))
        for request, repeat, reason in reasons
        if reason
    ]
    present |= {(row.item_id, row.arm, row.strategy, row.repeat) for row in rows}
    rows += _too_long(
        (
            SampleWalk(request, model, repeat, code=code, views=views, informant=informant)
            for request, repeat in samples
            if (*_order(request), repeat) not in present
        ),
        entries,
    )
    present |= {(row.item_id, row.arm, row.strategy, row.repeat) for row in rows}
    if len(rows) < len(samples):
        first, repeat = next((request, repeat) for request, repeat in samples if (*_order(request), repeat) not in present)
        message = (
            f"model {model.name}: {len(samples) - len(rows)} of {len(samples)} answers are not in its ledger, the first is that to"
            f" {first.item_id} (arm {first.arm}, sample {repeat}); {REMEDY}"
        )
        raise ProviderError(message)
    print(f"{model.name}: {len(rows)} answers from the ledger alone", file=sys.stderr)
    return sorted(rows, key=response_key)


def _order(request: Request) -> tuple[str, str, str]:
    return request.item_id, request.arm, request.strategy


def _entries(name: str, ledger: Path) -> dict[str, LedgerEntry]:
    entries = read_ledger(ledger)
    recorded = read_dvc_lock().get(ledger.as_posix())
    if not ledger.exists() or (not entries and recorded and recorded.size):
        fault = "is empty, and another one was recorded" if ledger.exists() else "is not there"
        message = f"model {name}: its ledger {ledger.parent.name}/{ledger.name} {fault}; {REMEDY}"
        raise ProviderError(message)
    return entries
