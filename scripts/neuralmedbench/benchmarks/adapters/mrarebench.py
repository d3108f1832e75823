"""MRareBench: rare diseases, ranked diagnoses and the evidence for a diagnosis that is given; the successor of MMRareBench."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from neuralmedbench.benchmarks.adapters.entry import DataSet, QuestionEntry
from neuralmedbench.benchmarks.adapters.mmrarebench import report_of, row_figures, row_id, stated, track_table
from neuralmedbench.benchmarks.adapters.rows import column_text, entries_of, filled_texts, language_of, list_entries
from neuralmedbench.benchmarks.gold import criteria
from neuralmedbench.benchmarks.source_folder import SourceFolder
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Arm, Axis, Disclosure, Family, Gold, Runner
from neuralmedbench.records.questions import Question, Refusal
from neuralmedbench.records.vocabulary import normal_form

DIAGNOSIS, EVIDENCE = "diagnosis", "evidence_verification"
TABLES = {DIAGNOSIS: "diagnosis_opened.tsv", EVIDENCE: "evidence_verification_opened_FULL609.tsv"}
COLUMNS = {DIAGNOSIS: ("question", "context", "answer"), EVIDENCE: ("context", "final_diagnosis", "acceptable_evidence_points")}
FINDINGS = "image findings"
GIVEN = r"\s*Established diagnosis:\s*(?:{}|[^.]*)\.\s*"
"""The sentence at the head of an evidence item's context that says the diagnosis."""
EVIDENCE_TASK = (
    "For each picture, by its label, say what is to be seen on it; then say how the findings of the pictures together support the diagnosis."
    " Describe only what is to be seen."
)
ASK_DIAGNOSIS = "What are the most likely diagnoses, the most likely one first?"


def read(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the tables of the two tracks, or the one that is there."""
    tables = {track: table for track, name in TABLES.items() if (table := track_table(source, track, name))}
    if not tables:
        source.find(*(f"{track}/{name}" for track, name in TABLES.items()))
    for track, table in tables.items():
        make = _diagnosis if track == DIAGNOSIS else _evidence
        yield from entries_of(source, table, COLUMNS[track], partial(make, source, table))


def _diagnosis(source: SourceFolder, table: Path, row: Mapping[str, Any], number: int) -> QuestionEntry:
    images, pictures = row_figures(source, table, row)
    asked = column_text(row, "question") or ASK_DIAGNOSIS
    question = Question(
        question_id=row_id(DIAGNOSIS, row, number),
        runner=Runner.OPEN,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        question=asked,
        case_id=report_of(row),
        text=column_text(row, "context"),
        images=images,
        language=language_of(asked),
        tags=(f"track:{DIAGNOSIS}",),
    )
    if not column_text(row, "answer"):
        return QuestionEntry(question=question, pictures=pictures)
    gold = Gold(
        item_id=question.question_id,
        answer=column_text(row, "answer"),
        aliases=filled_texts(row.get("answer_aliases")),
        established="answer of the data set",
    )
    findings = _findings(row)
    if findings and _names(findings, (gold.answer, *gold.aliases)):
        # shown, they would hand out the answer
        question, findings = replace(question, tags=(*question.tags, "findings_name_the_diagnosis")), ""
    shown = (Disclosure(item_id=question.question_id, arm=Arm.FINDINGS_DISCLOSED, text=f"Findings on the pictures:\n{findings}"),)
    return QuestionEntry(
        question=question,
        gold=replace(gold, rubric=criteria(question.family, gold)),
        pictures=pictures,
        disclosures=shown if findings else (),
    )


def _findings(row: Mapping[str, Any]) -> str:
    """Give the findings that the authors took out of the context: a list of entries with `markdown`, or `title` and `body`."""
    entries = [entry for entry in list_entries(row.get(FINDINGS)) if isinstance(entry, dict)]
    blocks = [
        column_text(entry, "markdown") or "\n".join(filter(None, (column_text(entry, "title"), column_text(entry, "body"))))
        for entry in entries
    ]
    return "\n\n".join(dict.fromkeys(block for block in blocks if block))


def _names(text: str, terms: tuple[str, ...]) -> bool:
    plain = f" {normal_form(text)} "
    return any(f" {normal_form(term)} " in plain for term in terms if normal_form(term))


def _evidence(source: SourceFolder, table: Path, row: Mapping[str, Any], number: int) -> QuestionEntry:
    images, pictures = row_figures(source, table, row, numbered=True)
    given = column_text(row, "final_diagnosis")
    if not given:
        message = "no diagnosis is given"
        raise DataError(message)
    asked = column_text(row, "question_open") or column_text(row, "question")
    question = Question(
        question_id=row_id("evidence", row, number),
        runner=Runner.OPEN,
        family=Family.QUESTION_ANSWERING,
        question="\n".join(part for part in (asked, EVIDENCE_TASK) if part),
        case_id=report_of(row),
        text=re.sub(rf"\A{GIVEN.format(re.escape(given))}", "", column_text(row, "context"), flags=re.IGNORECASE).strip(),
        given=given,
        images=images,
        language=language_of(asked),
        tags=("track:evidence",),
    )
    return QuestionEntry(question=question, gold=_evidence_gold(question, row), pictures=pictures)


def _evidence_gold(question: Question, row: Mapping[str, Any]) -> Gold | None:
    points = [point for point in list_entries(row["acceptable_evidence_points"]) if isinstance(point, dict) and column_text(point, "point")]
    required = [_point(point) for point in points if column_text(point, "credit").lower() == "required"]
    optional = [_point(point) for point in points if column_text(point, "credit").lower() != "required"]
    answer = column_text(row, "gold_rationale") or column_text(row, "gold_answer_open") or " ".join(required)
    if not answer:
        return None
    return Gold(
        item_id=question.question_id,
        answer=answer,
        rationale=tuple(required),
        rubric=(*stated("required", "{}", required), *stated("optional", "{}", optional, 0.5)),
        established="answer of the data set",
    )


def _point(point: Mapping[str, Any]) -> str:
    """Write a point of evidence as a statement about its picture."""
    return f"{column_text(point, 'image')}: {column_text(point, 'point')}" if column_text(point, "image") else column_text(point, "point")


DATA_SETS = (
    DataSet(
        name="mrarebench",
        title="MRareBench",
        home="https://huggingface.co/datasets/junzhin/MRareBench",
        licence="CC BY-NC 4.0",
        files="diagnosis/diagnosis_opened.tsv, evidence_verification/evidence_verification_opened_FULL609.tsv (or one of them)",
        axis=Axis.DEPTH,
        expected=0,
        read=read,
        samples=5,
    ),
)
