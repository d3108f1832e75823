"""Answers of models for readers, and answers of readers as models.

A rating round shows the answers of a run, each with the request of its model; all pictures are covered by a passed audit. Readers' own
answers are imported as those of a model; all files are checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from neuralmedbench.config.load import load_model, load_model_for
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.config.workflow import Run
from neuralmedbench.errors import RatingError
from neuralmedbench.files.cases import read_audit
from neuralmedbench.files.external_files import GivenAnswer
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.models.imported_answers import ImportCounts, check_import, import_answers
from neuralmedbench.models.requests_of_model import requests_for, within_budget
from neuralmedbench.prompts.coverage import check_asked
from neuralmedbench.ratings.answering.answer_rounds import RoundQuestion
from neuralmedbench.ratings.answering.answers import AnswerExport, AskedItem, ReaderRoundKey, forms_of, given_answers, read_exports
from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.ratings.exports import read_file
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.ratings.imports import KEY_FILE
from neuralmedbench.ratings.rounds import RoundMaterial
from neuralmedbench.records.items import Arm, Family, Gold, Item, Strategy, is_headline
from neuralmedbench.records.requests import Request
from neuralmedbench.records.responses import Response, ResponseState, current_rows
from neuralmedbench.runtime.atomic_write import write_text
from neuralmedbench.tables.outcomes import can_pass


def round_questions(
    run: Run, families: Collection[Family], root: Path = Path(), *, strategy: Strategy = Strategy.DIRECT
) -> list[RoundQuestion]:
    """Collect the questions that a round may draw: those with a reference answer, as asked under arm `full`.

    Parameters
    ----------
    run : Run
        Run whose benchmarks are read.
    families : collection of Family
        Task families to ask about.
    root : Path
        Repository root.
    strategy : Strategy
        How they are asked: `direct` or `workup`.

    Returns
    -------
    list of RoundQuestion
        Questions of all benchmarks, without the reference answers.

    Raises
    ------
    DeidentificationError
        If an audit did not pass, or does not cover a picture.
    DataError
        If a table is absent.
    """
    return [one for benchmark in run.benchmarks for one in _benchmark_questions(benchmark, families, root, strategy)]


def current_questions(benchmark: str, data: Path, strategy: Strategy) -> dict[str, RoundQuestion]:
    """Read the current questions of a benchmark under arm `full` and a strategy, by item."""
    items = read_by_item(data / f"items/{benchmark}.parquet", Item)
    requests = read_records(data / f"prompts/{benchmark}.parquet", Request)
    return {
        row.item_id: RoundQuestion(items[row.item_id], row)
        for row in requests
        if row.item_id in items and (row.arm, row.strategy) == (Arm.FULL, strategy)
    }


def _benchmark_questions(benchmark: str, families: Collection[Family], root: Path, strategy: Strategy) -> Iterator[RoundQuestion]:
    gold = read_by_item(root / f"data/gold/{benchmark}.parquet", Gold)
    asked = [one for one in current_questions(benchmark, root / "data", strategy).values() if one.item.family in families]
    answerable = [one for one in asked if can_pass(one.item, gold.get(one.item.item_id))]
    check_asked([one.request for one in answerable], read_audit(root / f"data/deidentified/{benchmark}/audit.json"))
    yield from answerable


HEAD = "# Written by nmb ratings import-readers: the answers of one reader of the round {round_id} (docs/ratings.md).\n"


@dataclass(frozen=True)
class ImportedReader:
    """Result of an import: model, benchmark, number of questions shown to the reader, and counts of answers."""

    model: str
    benchmark: str
    shown: int
    coverage: ImportCounts


def import_readers(folder: Path, *, config: Path = Path("config"), data: Path = Path("data")) -> list[ImportedReader]:
    """Import the answers of every reader of a round.

    Parameters
    ----------
    folder : Path
        `data/ratings/<round>/` with the key and the exports.
    config, data : Path
        Configuration folder and data folder. The YAML file of a reader is written if it does not exist.

    Returns
    -------
    list of ImportedReader
        One entry per reader and benchmark.

    Raises
    ------
    RatingError
        If a file is not valid (`ratings.answering.answers`), a question has changed since the round was made, or the YAML file of a reader
        belongs to another model.
    DataError
        If answers differ from those imported earlier.
    """
    key = _read_key(folder)
    shown = {asked.item_id: asked for packet in key.packets for asked in packet.items.values()}
    # the questions as they are asked now, which must equal those of the key
    benchmarks = {name: current_questions(name, data, key.strategy) for name in sorted({asked.benchmark for asked in shown.values()})}
    questions = {item_id: one for asked in benchmarks.values() for item_id, one in asked.items()}
    _check_unchanged(shown, questions, key.round_id)
    forms = {item_id: forms_of(questions[item_id].item, questions[item_id].request) for item_id in shown}
    packets = {packet.packet_id: packet for packet in key.packets}
    models: dict[str, ModelConfig] = {}
    imports: list[tuple[str, ModelConfig, int, list[Request], list[GivenAnswer]]] = []
    for file, export in read_exports(folder, key, forms):
        # one import per reader and benchmark of the round
        packet, name = packets[export.packet_id], f"reader-{export.rater.id}"
        model, given = _model(config, name, export, key.strategy), given_answers((file, export), packet, forms)
        models[name] = model
        for benchmark, asked in benchmarks.items():
            requests = requests_for(model, [question.request for question in asked.values()])
            number = sum(question.benchmark == benchmark for question in packet.items.values())
            imports.append((benchmark, model, number, requests, given.get(benchmark, [])))

    def ledger(benchmark: str, model: ModelConfig) -> Path:
        return data / "ledger" / benchmark / f"{model.name}.jsonl"

    for benchmark, model, _, requests, answers in imports:  # all of them, before anything is written
        check_import(requests, model, answers, ledger=ledger(benchmark, model))
    for name, model in models.items():
        _write_yaml(config / "models" / f"{name}.yaml", model, key.round_id)
    return [
        ImportedReader(model.name, benchmark, number, import_answers(requests, model, answers, ledger=ledger(benchmark, model)))
        for benchmark, model, number, requests, answers in imports
    ]


def reader_lines(readers: list[ImportedReader], root: Path = Path()) -> list[str]:
    """Return lines with the counts of an import and the next steps; `root` is the repository root."""
    lines = [
        f"{one.model}, {one.benchmark}: {one.coverage.given} of {one.shown} questions answered, {one.coverage.added} new answers;"
        f" the benchmark has {one.coverage.expected}"
        for one in readers
    ]
    names = ", ".join(dict.fromkeys(one.model for one in readers))
    lines.append(f"Add {names} to `models` of the configuration and run the workflow.")
    made = [f"responses/{one.benchmark}/{one.model}.parquet" for one in readers if one.coverage.added]
    # results of config/config.yaml, then those of other runs
    found = [path for name in made for folder in ("", "*/") for path in sorted((root / "results").glob(folder + name))]
    if existing := [path.relative_to(root).as_posix() for path in found]:
        lines.append(f"Tables of an earlier import exist: run the workflow once with --forcerun {' '.join(existing)}")
    return lines


def _read_key(folder: Path) -> ReaderRoundKey:
    path = folder / KEY_FILE
    # a rating round has the same folder layout, but is imported by the workflow
    if path.is_file() and b"neuralmedbench.rating_key/" in path.read_bytes():
        message = f"{folder.name}: a round in which answers were rated; add it to `rating_rounds` of the configuration and run the workflow"
        raise RatingError(message)
    return read_file(path, ReaderRoundKey)


def _check_unchanged(shown: Mapping[str, AskedItem], questions: Mapping[str, RoundQuestion], round_id: str) -> None:
    changed = [name for name, one in shown.items() if name not in questions or questions[name].request.request_id != one.request_id]
    if changed:
        message = f"{round_id}: {len(changed)} of {len(shown)} questions have changed since the readers saw them, the first is {changed[0]}"
        raise RatingError(message)


def _model(config: Path, name: str, export: AnswerExport, strategy: Strategy) -> ModelConfig:
    """Return the configuration of a reader: the existing one, or a new one."""
    reader = export.rater.id
    person = not export.rater.simulated
    model = ModelConfig(
        title=f"Reader {reader} (clinician)" if person else f"Simulated reader {reader}",
        backend="imported",
        id=f"reader/{reader}",
        revision="1",
        reader="clinician" if person else "simulated",
        reader_strategy=strategy,
    ).named(name)
    # an existing file of this reader is kept, with edits of title or revision
    path = config / "models" / f"{name}.yaml"
    if not path.exists():
        return model
    known = load_model(path)
    if any(getattr(known, name) != getattr(model, name) for name in ("backend", "id", "reader", "reader_strategy")):
        message = (
            f"{path.name}: it exists and is not of this reader (backend: imported, id: {model.id}, reader: {model.reader}, reader_strategy: {model.reader_strategy});"
            " move it, or correct it"
        )
        raise RatingError(message)
    return known


def _write_yaml(path: Path, model: ModelConfig, round_id: str) -> None:
    if not path.exists():
        values = model.model_dump(mode="json", include={"title", "backend", "id", "revision", "reader"})
        values |= {"reader_strategy": str(model.reader_strategy)} if model.reader_strategy is not Strategy.DIRECT else {}
        write_text(path, HEAD.format(round_id=round_id) + yaml.safe_dump(values, sort_keys=False))


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


def round_material(run: Run, form: RatingForm) -> RoundMaterial:
    """Collect what a round is drawn from: the form, the answers of the run, and the names of its models; errors as in `rated_answers`."""
    return RoundMaterial(form, rated_answers(run, form.rounds.families), model_names(run.models))


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
    gold = read_by_item(root / f"data/gold/{benchmark}.parquet", Gold)
    requests = {
        row.item_id: row
        for row in read_records(root / f"data/prompts/{benchmark}.parquet", Request)
        if row.item_id in items and is_headline(row)
    }
    # before any answer is read: a page shows the pictures of the request
    check_asked(list(requests.values()), read_audit(root / f"data/deidentified/{benchmark}/audit.json"))
    for name in models:
        model = load_model_for(folder, benchmark, name)
        for response in current_rows(read_records(root / results / f"responses/{benchmark}/{name}.parquet", Response)):
            if response.item_id in items and is_headline(response):
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
