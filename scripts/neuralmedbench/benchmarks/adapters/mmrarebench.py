"""MMRareBench: rare diseases in four tracks, from case reports with labelled figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.cells import language_of, parts, texts, words, written
from neuralmedbench.benchmarks.adapters.entry import DataSet, Entry
from neuralmedbench.benchmarks.adapters.figures import figures
from neuralmedbench.benchmarks.adapters.rows import entries_of, plain_id
from neuralmedbench.benchmarks.rubric import criteria
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.records.items import Axis, Criterion, Family, Gold, Runner
from neuralmedbench.records.questions import Question, Refusal

TRACKS = {
    "diagnosis": "diagnosis_opened.tsv",
    "treatment": "treatment_plan.tsv",
    "crossmodal": "crossmodal_comparison.tsv",
    "examination": "examination_workup.tsv",
}
"""Table of each track, in a folder of the track's name or directly in the folder."""

TASKS = {
    "treatment": "Propose a treatment plan: drugs with their doses, procedures, and what is to be followed up when.",
    "crossmodal": "Say what each picture and the clinical information show, how they relate (confirm, complement or contrast), and what follows.",
    "examination": "Say which tests are to be ordered, what each is for, and which dangerous causes have to be ruled out.",
}
"""What is asked beside the row's own question; our words for the authors' task lines."""

COLUMNS = {
    "diagnosis": ("question", "context", "answer"),
    "treatment": ("question", "context", "answer", "rubric_must_include", "rubric_must_not"),
    "crossmodal": ("question", "context", "answer", "golden_mainline"),
    "examination": ("question", "answer", "key_test_names", "must_not", "red_flags_to_rule_out"),
}
PATIENT_COLUMNS = ("pmcid", "doc_id", "case_id")
"""Columns that tell from which report a row is, the first that is there; only the successor's are known to exist."""


def read(source: SourceFolder) -> Iterator[Entry | Refusal]:
    """Read the tables of the tracks that are there."""
    tables = {track: table for track, name in TRACKS.items() if (table := track_table(source, track, name))}
    if not tables:
        source.find(*(f"{track}/{name}" for track, name in TRACKS.items()))
    for track, table in tables.items():
        yield from entries_of(source, table, COLUMNS[track], partial(_entry, source, table, track))


def track_table(source: SourceFolder, track: str, name: str) -> Path | None:
    """Find the table of a track; None when it is not there."""
    return next((source.folder / place for place in (f"{track}/{name}", name) if source.has(place)), None)


def row_id(track: str, row: Mapping[str, Any], number: int) -> str:
    """Name a row: its track and index; rows without an index are counted from 0, as the authors' reader does."""
    return f"{track}-{plain_id(words(row, 'index') or str(number))}"


def report_of(row: Mapping[str, Any]) -> str:
    """Name the report from which a row was made, so that its rows are one patient; empty when no column says it."""
    found = next((words(row, column) for column in PATIENT_COLUMNS if words(row, column)), "")
    return plain_id(found) if found else ""


def _entry(source: SourceFolder, table: Path, track: str, row: Mapping[str, Any], number: int) -> Entry:
    images, pictures = figures(source, table, row)
    asked = words(row, "question")
    question = Question(
        question_id=row_id(track, row, number),
        runner=Runner.OPEN,
        family=Family.DIFFERENTIAL_DIAGNOSIS if track == "diagnosis" else Family.QUESTION_ANSWERING,
        question="\n".join(part for part in (asked, TASKS.get(track, "")) if part) if asked else "",
        case_id=report_of(row),
        # the context of a work-up names what was found by it
        text="" if track == "examination" else words(row, "context"),
        images=images,
        language=language_of(asked),
        tags=(f"track:{track}",),
    )
    return Entry(question=question, gold=_gold(question, track, row), pictures=pictures)


def _gold(question: Question, track: str, row: Mapping[str, Any]) -> Gold | None:
    gold = Gold(item_id=question.question_id, answer=words(row, "answer"), established="answer of the data set")
    if not gold.answer:
        return None
    if track == "diagnosis":
        gold = replace(gold, aliases=texts(row.get("answer_aliases")))
        return replace(gold, rubric=criteria(question.family, gold))
    if track == "treatment":
        must, must_not = texts(row["rubric_must_include"]), texts(row["rubric_must_not"])
        return replace(gold, must_not=must_not, rubric=(*stated("must_include", "Says: {}", must), *forbidden(must_not)))
    if track == "crossmodal":
        claims, relations = _mainline(row)
        rubric = (
            *stated("argues", "Argues: {}", claims),
            *stated("relation", "Says that the findings stand in this relation: {}", relations),
        )
        return replace(gold, rationale=claims, rubric=rubric)
    tests, flags, must_not = texts(row["key_test_names"]), texts(row["red_flags_to_rule_out"]), texts(row["must_not"])
    rubric = (*stated("orders", "Orders the test: {}", tests), *stated("rules_out", "Rules out: {}", flags), *forbidden(must_not))
    return replace(gold, must_not=must_not, rubric=rubric)


def _mainline(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give the claims of a comparison, and the relations that they name, each once."""
    mainline = parts(row["golden_mainline"])
    claims = [words(part, "claim") if isinstance(part, dict) else written(part) for part in mainline]
    relations = [words(part, "relation_type") for part in mainline if isinstance(part, dict)]
    relations.append(words(row, "relation_type"))
    return tuple(claim for claim in claims if claim), tuple(dict.fromkeys(relation.lower() for relation in relations if relation))


def stated(name: str, template: str, statements: Sequence[str], points: float = 1.0) -> list[Criterion]:
    """Give statements as numbered criteria of a rubric; the points are ours where the set gives none."""
    return [
        Criterion(criterion=f"{name}_{number}", text=template.format(statement.rstrip(".") + "."), points=points)
        for number, statement in enumerate(statements, start=1)
    ]


def forbidden(statements: Sequence[str]) -> list[Criterion]:
    """Give what must not be said as numbered criteria; each costs a point."""
    return stated("must_not", "Says: {}", statements, -1.0)


DATA_SETS = (
    DataSet(
        name="mmrarebench",
        title="MMRareBench",
        home="https://huggingface.co/datasets/junzhin/MMrarebench",
        licence="as stated on its page; its successor's is CC BY-NC 4.0",
        files="<track>/<table>.tsv of the tracks diagnosis, treatment, crossmodal, examination (those you have), with the pictures inside or beside",
        axis=Axis.DEPTH,
        expected=1756,
        read=read,
        samples=5,
    ),
)
