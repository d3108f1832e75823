"""The answers of a run that a rating round may show, each as its model was asked; nothing of them that the audit does not cover."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from neuralmedbench.config.load import load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import RatingError
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.picture_budget import within_budget
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.records.items import Arm, Family, Gold, Item, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState, current_rows


def rated_answers(run: Run, families: Collection[Family], root: Path = Path()) -> list[RatingCandidate]:
    """Collect the answers that a round may draw: arm `full`, strategy `direct`, state ok, of the present revision.

    Parameters
    ----------
    run : Run
        Its benchmarks and models.
    families : collection of Family
        Task families that are rated.
    root : Path
        Repository root.

    Returns
    -------
    list of Candidate
        Of all benchmarks and models; every sample of a model is one.

    Raises
    ------
    DeidentificationError
        If an audit did not pass, or does not cover a picture.
    DataError
        If a table is absent.
    RatingError
        If an answer does not belong to the prompts or the picture budget as they are now.
    """
    return [one for benchmark in run.benchmarks for one in answers_of(benchmark, run.models, families, folder=run.folder, root=root)]


def model_names(models: Mapping[str, ModelConfig]) -> list[str]:
    """Names, titles and ids of models: what must not stand in an answer that is rated blind."""
    names = {word for name, model in models.items() for word in (name, model.title, model.id, model.id.rpartition("/")[2])}
    return sorted(name for name in names if name)


def answers_of(
    benchmark: str, models: Iterable[str], families: Collection[Family], *, folder: Path, root: Path = Path()
) -> Iterator[RatingCandidate]:
    """Yield the answers to one benchmark, as :func:`rated_answers` collects those to all; `folder` is that of the configuration."""
    items = {row.item_id: row for row in read_records(root / f"data/items/{benchmark}.parquet", Item) if row.family in families}
    if not items:
        return
    gold = {row.item_id: row for row in read_records(root / f"data/gold/{benchmark}.parquet", Gold)}
    asked = {
        row.item_id: row
        for row in read_records(root / f"data/prompts/{benchmark}.parquet", Request)
        if row.item_id in items and (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)
    }
    check_asked(list(asked.values()), read_audit(root / f"data/deidentified/{benchmark}/audit.json"))
    for name in models:
        model = load_model_for(folder, benchmark, name)
        for response in current_rows(read_records(root / f"results/responses/{benchmark}/{name}.parquet", Response)):
            if response.item_id in items and (response.arm, response.strategy) == (Arm.FULL, Strategy.DIRECT):
                if response.state is not ResponseState.OK or not response.text.strip():
                    continue
                yield _candidate(response, model, asked.get(response.item_id), items[response.item_id], gold.get(response.item_id))


def _candidate(response: Response, model: ModelConfig, request: Request | None, item: Item, gold: Gold | None) -> RatingCandidate:
    sent = within_budget(request.turns, model.max_images) if request else ()
    pictures = sum(len(turn.images) for turn in sent)
    if request is None or request.request_id != response.request_id or pictures != response.images_sent:
        message = f"{response.item_id}: the answer of {response.model} is not to the question as it is asked now; run the workflow first"
        raise RatingError(message)
    return RatingCandidate(item=item, response=response, sent=sent, gold=gold)
