"""Explain why an answer was graded or not: the grader's request, its ledger entries and its grades."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from neuralmedbench.config.load import load_grader, load_model
from neuralmedbench.config.model import GraderConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.tables import read_by_item, read_records
from neuralmedbench.models.explain import explain
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.models.registry import unavailable_reason
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response, current_rows
from neuralmedbench.records.scores import Grade, GradeState, text_digest
from neuralmedbench.scoring.llm.grader_requests import grader_model, read_model_grader
from neuralmedbench.scoring.llm.model_grading import GraderRun


def explain_stored_grades(
    benchmark: str, model: str, grader: str, wanted: Callable[[Response], bool], *, root: Path = Path(), results: str = "results"
) -> str:
    """Explain the grades of selected answers from the files of a run.

    Raises
    ------
    ConfigError
        If the grader asks no model, or its prompt cannot be used.
    DataError
        If a table is absent.
    """
    tables = root / results
    responses = read_records(tables / "responses" / benchmark / f"{model}.parquet", Response)
    grades = tables / "grades" / benchmark / model / f"{grader}.parquet"
    return explain_grades(
        [row for row in current_rows(responses) if wanted(row)],
        read_by_item(root / "data" / "items" / f"{benchmark}.parquet", Item),
        read_by_item(root / "data" / "gold" / f"{benchmark}.parquet", Gold),
        recorded_run(
            grader,
            load_grader(root / "config" / "graders" / f"{grader}.yaml"),
            load_model(root / "config" / "models" / f"{model}.yaml").names,
            ledger=root / "data" / "ledger" / benchmark / "graders" / model / f"{grader}.jsonl",
        ),
        grades=read_records(grades, Grade) if grades.exists() else None,
    )


def recorded_run(grader: str, config: GraderConfig, names: Iterable[str] = (), *, ledger: Path) -> GraderRun:
    """Return the run of a grader whose recorded grades are explained; it makes no call. ConfigError if the grader asks no model."""
    if config.model is None or config.prompt is None:
        how = f"counts the votes of {', '.join(config.members)}" if config.members else "grades by the vocabulary and the rubric alone"
        message = f"this grader asks no model: it {how}"
        raise ConfigError(message)
    model = grader_model(grader, config)
    return GraderRun(
        read_model_grader(grader, config, tuple(names)), ModelRun(model, ledger=ledger, destinations=(), max_failed_fraction=None)
    )


def explain_grades(
    responses: Sequence[Response],
    items: Mapping[str, Item],
    gold: Mapping[str, Gold],
    grading: GraderRun,
    *,
    grades: Sequence[Grade] | None,
) -> str:
    """Describe, for each answer to one item, the grader's request, its ledger entries and its grades (None: there is no table)."""
    grader, run = grading.grader, grading.run
    entries, unavailable = read_ledger(run.ledger), unavailable_reason(run.model)
    # equal answers to an item are graded once
    texts: dict[str, list[Response]] = defaultdict(list)
    parts = []
    for row in responses:
        # the same conditions as in `grade_with_model`
        if row.item_id in gold and grader.wants(row, items[row.item_id], gold[row.item_id]):
            texts[text_digest(row.text)].append(row)
        else:
            why = (
                "there is no reference"
                if row.item_id not in gold
                else f"its state is {row.state}, or its arm or kind of item is not graded"
            )
            parts.append(f"{_name(row)} is not graded: {why}")
    for digest, rows in texts.items():
        request = grader.request(rows[0], items[rows[0].item_id], gold[rows[0].item_id])
        lines = [f"grading of {', '.join(_name(row) for row in rows)}", explain(request, run.model, entries, ledger=run.ledger)]
        of_text = [grade for grade in grades or () if grade.text_sha256 == digest and grade.item_id == rows[0].item_id]
        lines.append(f"  table of grades: {_grade_words(of_text) if grades is not None else 'it is not there'}")
        lines += [f"  what is not in the ledger cannot be asked for here: {unavailable}"] if unavailable else []
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or "no answer to this item"


def _name(row: Response) -> str:
    return f"sample {row.repeat} (arm {row.arm}, strategy {row.strategy})"


def _grade_words(grades: Sequence[Grade]) -> str:
    words = {
        f"{grade.criterion} {grade.state}" + (f" ({grade.explanation})" if grade.state is not GradeState.OK else f", value {grade.value:g}")
        for grade in grades
    }
    return "; ".join(sorted(words)) or "none of this text"
