"""Show what a model is sent for one item, why its answer is present or missing, and how it was read, from the files of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neuralmedbench.config.arms import load_arms
from neuralmedbench.config.load import load_informant, load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.models.explain import explain_stored
from neuralmedbench.models.registry import code_of
from neuralmedbench.models.requests_of_model import fits_layout, too_many_pictures
from neuralmedbench.records.arm_changes import as_asked
from neuralmedbench.records.items import Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import Score, text_digest
from neuralmedbench.scoring.explain_reading import describe_reading

CONFIG = Path("config")


@dataclass(frozen=True)
class AskedRequest:
    """A request by its names: benchmark, model, item and arm, under one strategy or all (None)."""

    benchmark: str
    model: str
    item: str
    arm: str
    strategy: str | None = None

    def has(self, row: Request | Response) -> bool:
        """Return True for a request, or an answer to it."""
        return (row.item_id, row.arm) == (self.item, self.arm) and self.strategy in (None, row.strategy)


def explain_request(asked: AskedRequest, *, vocabulary: Path, results: str) -> tuple[str, bool]:
    """Explain a request.

    Parameters
    ----------
    asked : AskedRequest
        The request.
    vocabulary : Path
        The vocabulary.
    results : str
        Folder of the results of the run.

    Returns
    -------
    text : str
        See `models.explain.explain`.
    ungraded : bool
        True if an answer came and nobody graded it.

    Raises
    ------
    ConfigError, DataError
        If the model does not get the request, there is none, or a file cannot be read.
    """
    model = load_model_for(CONFIG, asked.benchmark, asked.model)
    requests = _requests(asked, model)
    informed = any(request.inquiry and request.inquiry.informant for request in requests)
    place = f"{asked.benchmark}/{asked.model}.parquet"
    stored = Path(results, "scores", place)
    rows = [row for row in read_records(stored, Score) if (row.item_id, row.arm) == (asked.item, asked.arm)] if stored.is_file() else []
    scores = {row.text_sha256: row for row in rows if row.revision == model.revision}
    item = _item(asked)
    text = explain_stored(
        requests,
        model,
        code=code_of(model, read_vocabulary(vocabulary)),
        ledger=Path(f"data/ledger/{asked.benchmark}/{asked.model}.jsonl"),
        table=Path(results, "responses", place),
        reading=(lambda answer: describe_reading(answer, item, scores.get(text_digest(answer)))) if item else None,
        informant=load_informant(CONFIG, asked.benchmark) if informed else None,
    )
    return text, any(row.scored and not row.missing and row.passed is None for row in scores.values())


def _requests(asked: AskedRequest, model: ModelConfig) -> list[Request]:
    """Return the requests; ConfigError if there is none, or the model does not get one."""
    requests = read_records(Path(f"data/prompts/{asked.benchmark}.parquet"), Request)
    selected = list(filter(asked.has, requests))
    for request in selected:
        why = too_many_pictures(request, model.max_images)
        if not fits_layout(request, model):
            why = f"it is in the layout {request.layout}, and `layout` of its yaml is {model.layout or 'not set'}"
        if why:
            message = f"{asked.model} does not get this request: {why}"
            raise ConfigError(message)
    if not selected:
        there = sorted({f"{request.arm}/{request.strategy}" for request in requests if request.item_id == asked.item})
        message = f"{asked.benchmark}: no request for this item, arm and strategy; the item has: {', '.join(there) or 'none'}"
        raise ConfigError(message)
    return selected


def _item(asked: AskedRequest) -> Item | None:
    """Return the item as it is asked under the arm; None if there is no table of items."""
    table = Path(f"data/items/{asked.benchmark}.parquet")
    item = read_by_item(table, Item).get(asked.item) if table.is_file() else None
    if item is None:
        return None
    # an answer numbers the pictures as the arm sends them
    layouts = [arm.layout for arm in load_arms(CONFIG, [asked.arm], asked.benchmark).values() if arm.layout]
    shown = as_asked(item, asked.arm)
    return layouts[0].item_as_shown(shown) if layouts else shown
