"""Collect the answers of a run that a rating round may show, each with the request of its model; all pictures are covered by a passed audit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from neuralmedbench.config.load import load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import RatingError
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.tables import read_records
from neuralmedbench.models.readers import within_budget
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.records.items import Arm, Family, Gold, Item, Strategy
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState, current_rows


def rated_answers(run: Run, families: Collection[Family], root: Path = Path()) -> list[RatingCandidate]:
    """Collect the answers that a round may draw: arm `full`, strategy `direct`, state ok, current revision.

    Parameters
    ----------
    run : Run
        Run whose benchmarks and models are read.
    families : collection of Family
        Task families to rate.
    root : Path
        Repository root.

    Returns
    -------
    list of RatingCandidate
        One per answer of all benchmarks and models; every sample counts.

    Raises
    ------
    DeidentificationError
        If an audit did not pass, or does not cover a picture.
    DataError
        If a table is absent.
    RatingError
        If an answer does not match the current prompts or picture budget.
    """
    return [
        one
        for benchmark in run.benchmarks
        for one in answers_of(benchmark, run.models, families, folder=run.folder, root=root, results=run.results)
    ]


def model_names(models: Mapping[str, ModelConfig]) -> list[str]:
    """Return names, titles and ids of models, which must not appear in an answer that is rated blind."""
    # the last part of an id such as `provider/name` is the model's own name
    names = {word for name, model in models.items() for word in (name, model.title, model.id, model.id.rpartition("/")[2])}
    return sorted(name for name in names if name)


def answers_of(
    benchmark: str, models: Iterable[str], families: Collection[Family], *, folder: Path, root: Path = Path(), results: str = "results"
) -> Iterator[RatingCandidate]:
    """Yield the answers to one benchmark, as :func:`rated_answers` does for all; `folder` is the configuration folder, `results` that of the run."""
    items = {row.item_id: row for row in read_records(root / f"data/items/{benchmark}.parquet", Item) if row.family in families}
    if not items:
        return
    gold = {row.item_id: row for row in read_records(root / f"data/gold/{benchmark}.parquet", Gold)}
    requests = {
        row.item_id: row
        for row in read_records(root / f"data/prompts/{benchmark}.parquet", Request)
        if row.item_id in items and (row.arm, row.strategy) == (Arm.FULL, Strategy.DIRECT)
    }
    # before any answer is read: a page shows the pictures of the request
    check_asked(list(requests.values()), read_audit(root / f"data/deidentified/{benchmark}/audit.json"))
    for name in models:
        model = load_model_for(folder, benchmark, name)
        for response in current_rows(read_records(root / results / f"responses/{benchmark}/{name}.parquet", Response)):
            if response.item_id in items and (response.arm, response.strategy) == (Arm.FULL, Strategy.DIRECT):
                if response.state is not ResponseState.OK or not response.text.strip():
                    continue
                yield _candidate(response, model, requests.get(response.item_id), items[response.item_id], gold.get(response.item_id))


def _candidate(response: Response, model: ModelConfig, request: Request | None, item: Item, gold: Gold | None) -> RatingCandidate:
    sent = within_budget(request.turns, model.max_images) if request else ()
    pictures = sum(len(turn.images) for turn in sent)
    # the page shows the request, so the answer must belong to exactly this request and these pictures
    if request is None or request.request_id != response.request_id or pictures != response.images_sent:
        message = f"{response.item_id}: the answer of {response.model} is to another version of the question than the current one; run the workflow first"
        raise RatingError(message)
    return RatingCandidate(item=item, response=response, sent=sent, gold=gold)
