"""Answers that the ledger holds, put together again without a call: of this revision, and of the one that was asked before."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.places import without_places
from neuralmedbench.models.ledgers.follow import resume_sample
from neuralmedbench.models.ledgers.ledger import SAMPLING, LedgerEntry, read_ledger
from neuralmedbench.models.rows import response_row
from neuralmedbench.records.keys import response_key
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response


def previous_responses(requests: Sequence[Request], model: ModelConfig, *, name: str, ledger: Path) -> list[Response]:
    """Give the answers of the revision that was asked before the present one, to the requests as they are now.

    Parameters
    ----------
    requests : sequence of Request
        What is asked.
    model : ModelConfig
        The model's yaml, with its present revision.
    name : str
        Its name.
    ledger : Path
        Ledger file of this benchmark and model.

    Returns
    -------
    list of Response
        Rows of the earlier revision, as `rebuild` gives them; none when the ledger knows no other revision. They have no cost:
        they were paid for at the prices of then.
    """
    entries = read_ledger(ledger)
    first = previous_entry(entries.values(), model.revision)
    if first is None:
        return []
    rows = rebuild(requests, model_of_entry(first, model), name=name, entries=entries, code=first.code)
    print(f"{name}: {len(rows)} answers of revision {first.revision} stand in the ledger, to be compared with", file=sys.stderr)
    return rows


def previous_entry(entries: Iterable[LedgerEntry], revision: str) -> LedgerEntry | None:
    """Find the first answer of the revision before, with the settings that this revision had last.

    Parameters
    ----------
    entries : iterable of LedgerEntry
        Answers in the order in which they came.
    revision : str
        The present revision.

    Returns
    -------
    LedgerEntry or None
        Of all other revisions the one that appeared last; of its settings (id, sampling, code) those that appeared last. None when
        there is no other, or none that was kept with its revision.
    """
    variants: dict[str, dict[tuple[object, ...], LedgerEntry]] = {}
    for entry in entries:
        if entry.revision not in ("", revision):
            settings = (entry.model, entry.code, *(repr(getattr(entry, name)) for name in SAMPLING))
            variants.setdefault(entry.revision, {}).setdefault(settings, entry)
    return list(list(variants.values())[-1].values())[-1] if variants else None


def model_of_entry(entry: LedgerEntry, model: ModelConfig) -> ModelConfig:
    """Give the yaml as it was when an answer was asked for; a folder with weights outside of the project is taken to be the present one."""
    return model.model_copy(
        update={
            "id": model.id if entry.model == without_places(model.id) else entry.model,
            "revision": entry.revision,
            **{name: getattr(entry, name) for name in SAMPLING},
            "prices": None,
        }
    )


def rebuild(
    requests: Sequence[Request], model: ModelConfig, *, name: str, entries: Mapping[str, LedgerEntry], code: str = ""
) -> list[Response]:
    """Put samples together from the ledger alone.

    Parameters
    ----------
    requests : sequence of Request
        What is asked; a request whose words or pictures have changed has other keys and is not found.
    model : ModelConfig
        The model as it was asked.
    name : str
        Its name.
    entries : mapping of str to LedgerEntry
        The ledger.
    code : str
        As in `models.keys.call_key`.

    Returns
    -------
    list of Response
        One row a sample whose every call stands in the ledger, sorted by item, arm, strategy and repeat. The others are left out:
        they are not missing, they were never asked for.
    """
    rows = []
    for request in requests:
        for repeat in range(request.samples):
            found = resume_sample(request, model, entries, repeat, code=code)
            if found.complete and found.entries:
                rows.append(response_row(request, repeat, found.entries, found.messages, model=model, name=name))
    return sorted(rows, key=response_key)
