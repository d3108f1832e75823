"""MMRareBench (rare diseases in four tracks, from case reports with labelled figures) and its successor MRareBench."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from neuralmedbench.benchmarks.adapters.rows import (
    PHYSICIAN,
    DataSet,
    QuestionEntry,
    cell_text,
    column_text,
    entries_of,
    filled_texts,
    language_of,
    list_entries,
    plain_id,
)
from neuralmedbench.benchmarks.gold import AS_WRITTEN, AnswerNames, criteria
from neuralmedbench.benchmarks.source_folder import SourceFolder, decoded
from neuralmedbench.errors import DataError
from neuralmedbench.records.items import Arm, Axis, Criterion, Disclosure, Family, Gold, Runner
from neuralmedbench.records.questions import ImportedQuestion, QuestionImage, Refusal

EMBEDDED, PATHS = "image", "image_path"
"""Columns of base64 pictures and of picture paths relative to the table; either may be missing or empty."""

TRACKS = {
    "diagnosis": "diagnosis_opened.tsv",
    "treatment": "treatment_plan.tsv",
    "crossmodal": "crossmodal_comparison.tsv",
    "examination": "examination_workup.tsv",
}
"""Table of each track, in a subfolder named after the track or directly in the folder."""

TASKS = {
    "treatment": "Propose a treatment plan: drugs with their doses, procedures, and what is to be followed up when.",
    "crossmodal": "Say what each picture and the clinical information show, how they relate (confirm, complement or contrast), and what follows.",
    "examination": "Say which tests are to be ordered, what each is for, and which dangerous causes have to be ruled out.",
}
"""Task added to the row's own question; our wording of the authors' task lines."""

COLUMNS = {
    "diagnosis": ("question", "context", "answer"),
    "treatment": ("question", "context", "answer", "rubric_must_include", "rubric_must_not"),
    "crossmodal": ("question", "context", "answer", "golden_mainline"),
    "examination": ("question", "answer", "key_test_names", "must_not", "red_flags_to_rule_out"),
}

PATIENT_COLUMNS = ("pmcid", "doc_id", "case_id")
"""Columns with the report of a row, of which the first that exists is used; only the successor is known to have them."""


def _read_mmrarebench(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the tables of the tracks that exist."""
    tables = {track: table for track, name in TRACKS.items() if (table := _track_table(source, track, name))}
    if not tables:
        source.find(*(f"{track}/{name}" for track, name in TRACKS.items()))
    for track, table in tables.items():
        yield from entries_of(source, table, COLUMNS[track], partial(_entry, source, table, track))


def _track_table(source: SourceFolder, track: str, name: str) -> Path | None:
    """Return the table of a track; None if it is missing."""
    return next((source.folder / place for place in (f"{track}/{name}", name) if source.has(place)), None)


def _entry(source: SourceFolder, table: Path, track: str, row: Mapping[str, Any], number: int) -> QuestionEntry:
    images, pictures = row_figures(source, table, row)
    asked = column_text(row, "question")
    question = ImportedQuestion(
        question_id=row_id(track, row, number),
        runner=Runner.OPEN,
        family=Family.DIFFERENTIAL_DIAGNOSIS if track == "diagnosis" else Family.QUESTION_ANSWERING,
        question="\n".join(part for part in (asked, TASKS.get(track, "")) if part) if asked else "",
        case_id=_report_of(row),
        # the context of a work-up names its results
        text="" if track == "examination" else column_text(row, "context"),
        images=images,
        language=language_of(asked),
        tags=(f"track:{track}",),
    )
    return QuestionEntry(question=question, gold=_gold(question, track, row), pictures=pictures)


def row_figures(
    source: SourceFolder, table: Path, row: Mapping[str, Any], *, numbered: bool = False
) -> tuple[tuple[QuestionImage, ...], dict[str, Path | bytes]]:
    """Read the labelled pictures of a row of either benchmark; if `numbered`, a picture without a label is `Image <n>`.

    Pictures are `image` (JSON list of base64) or `image_path` (JSON list of paths relative to the table); labels are `figure_mapping`
    (JSON, label to path) or `image_slot_map` (JSON list of objects with `public_slot`). DataError if a row has neither column or a
    picture is missing.
    """
    if EMBEDDED not in row and PATHS not in row:
        message = f"neither the column {EMBEDDED!r} nor {PATHS!r} exists; found {', '.join(sorted(row))}"
        raise DataError(message)
    paths = filled_texts(row.get(PATHS))
    embedded = [decoded(text) for text in filled_texts(row.get(EMBEDDED))]
    folder = table.parent.relative_to(source.folder)
    # embedded pictures take precedence over paths
    contents: Sequence[Path | bytes] = embedded or [source.picture((folder / path).as_posix()) for path in paths]
    names = paths if len(paths) == len(contents) else ("",) * len(contents)
    labels = _labels(row, names, numbered=numbered)
    keys = [f"{place:03d}" for place in range(1, len(contents) + 1)]
    images = tuple(QuestionImage(file=key, label=label) for key, label in zip(keys, labels, strict=True))
    return images, dict(zip(keys, contents, strict=True))


def _labels(row: Mapping[str, Any], names: Sequence[str], *, numbered: bool) -> list[str]:
    # labels by position, else by file name, else in order
    slots = [column_text(slot, "public_slot") if isinstance(slot, dict) else "" for slot in list_entries(row.get("image_slot_map"))]
    mapping = _figure_mapping(column_text(row, "figure_mapping"))
    by_name = {PurePosixPath(path).name: label for label, path in mapping.items()}
    # embedded pictures have no names: if there are as many labels, they are assigned in order
    in_order = list(mapping) if not any(names) and len(mapping) == len(names) else []
    labels = []
    for place, name in enumerate(names):
        slot = slots[place] if len(slots) == len(names) else ""
        label = slot or by_name.get(PurePosixPath(name).name, "") or (in_order[place] if in_order else "")
        labels.append(label or (f"Image {place + 1}" if numbered else ""))
    return labels


def _figure_mapping(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        message = "the column 'figure_mapping' is not a JSON object"
        raise DataError(message)
    return {str(label).strip().removesuffix(":"): cell_text(path) for label, path in value.items()}


def row_id(track: str, row: Mapping[str, Any], number: int) -> str:
    """Return the id of a row: its track and index; rows without an index are counted from 0, as in the authors' reader."""
    return f"{track}-{plain_id(column_text(row, 'index') or str(number))}"


def _report_of(row: Mapping[str, Any]) -> str:
    """Return the report of a row, so that rows of one report are one patient; empty if no column has it."""
    found = next((column_text(row, column) for column in PATIENT_COLUMNS if column_text(row, column)), "")
    return plain_id(found) if found else ""


def _gold(question: ImportedQuestion, track: str, row: Mapping[str, Any]) -> Gold | None:
    gold = Gold(item_id=question.question_id, answer=column_text(row, "answer"), established="answer of the data set")
    if not gold.answer:
        return None
    if track == "diagnosis":
        gold = replace(gold, aliases=filled_texts(row.get("answer_aliases")))
        return replace(gold, rubric=criteria(question.family, gold))
    if track == "treatment":
        must, must_not = filled_texts(row["rubric_must_include"]), filled_texts(row["rubric_must_not"])
        return replace(gold, must_not=must_not, rubric=(*stated("must_include", "Says: {}", must), *forbidden(must_not)))
    if track == "crossmodal":
        claims, relations = _mainline(row)
        rubric = (
            *stated("argues", "Argues: {}", claims),
            *stated("relation", "Says that the findings stand in this relation: {}", relations),
        )
        return replace(gold, rationale=claims, rubric=rubric)
    tests, flags, must_not = filled_texts(row["key_test_names"]), filled_texts(row["red_flags_to_rule_out"]), filled_texts(row["must_not"])
    rubric = (*stated("orders", "Orders the test: {}", tests), *stated("rules_out", "Rules out: {}", flags), *forbidden(must_not))
    return replace(gold, must_not=must_not, rubric=rubric)


def stated(name: str, template: str, statements: Sequence[str], points: float = 1.0) -> list[Criterion]:
    """Convert statements to numbered rubric criteria; the points are ours, because the sets publish none."""
    return [
        Criterion(criterion=f"{name}_{number}", text=template.format(statement.rstrip(".") + "."), points=points)
        for number, statement in enumerate(statements, start=1)
    ]


def forbidden(statements: Sequence[str]) -> list[Criterion]:
    """Convert forbidden statements to numbered criteria, each of which costs a point."""
    return stated("must_not", "Says: {}", statements, -1.0)


def _mainline(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the claims of a comparison, and the distinct relations that they name."""
    mainline = list_entries(row["golden_mainline"])
    claims = [column_text(part, "claim") if isinstance(part, dict) else cell_text(part) for part in mainline]
    relations = [column_text(part, "relation_type") for part in mainline if isinstance(part, dict)]
    relations.append(column_text(row, "relation_type"))
    return tuple(claim for claim in claims if claim), tuple(dict.fromkeys(relation.lower() for relation in relations if relation))


DIAGNOSIS, EVIDENCE = "diagnosis", "evidence_verification"
TABLES = {DIAGNOSIS: "diagnosis_opened.tsv", EVIDENCE: "evidence_verification_opened_FULL609.tsv"}
SUCCESSOR_COLUMNS = {DIAGNOSIS: ("question", "context", "answer"), EVIDENCE: ("context", "final_diagnosis", "acceptable_evidence_points")}
FINDINGS = "image findings"
GIVEN = r"\s*Established diagnosis:\s*(?:{}|[^.]*)\.\s*"
"""The sentence with the diagnosis at the start of an evidence item's context."""
EVIDENCE_TASK = (
    "For each picture, by its label, say what is to be seen on it; then say how the findings of the pictures together support the diagnosis."
    " Describe only what is to be seen."
)
ASK_DIAGNOSIS = "What are the most likely diagnoses, the most likely one first?"


def _read_mrarebench(source: SourceFolder) -> Iterator[QuestionEntry | Refusal]:
    """Read the tables of both tracks, or the one that exists."""
    tables = {track: table for track, name in TABLES.items() if (table := _track_table(source, track, name))}
    if not tables:
        source.find(*(f"{track}/{name}" for track, name in TABLES.items()))
    for track, table in tables.items():
        make = _diagnosis if track == DIAGNOSIS else _evidence
        yield from entries_of(source, table, SUCCESSOR_COLUMNS[track], partial(make, source, table))


def _diagnosis(source: SourceFolder, table: Path, row: Mapping[str, Any], number: int) -> QuestionEntry:
    images, pictures = row_figures(source, table, row)
    asked = column_text(row, "question") or ASK_DIAGNOSIS
    question = ImportedQuestion(
        question_id=row_id(DIAGNOSIS, row, number),
        runner=Runner.OPEN,
        family=Family.DIFFERENTIAL_DIAGNOSIS,
        question=asked,
        case_id=_report_of(row),
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
    if findings and AnswerNames.of(gold, AS_WRITTEN).first_in(findings):
        # shown, they would reveal the answer
        question, findings = replace(question, tags=(*question.tags, "findings_name_the_diagnosis")), ""
    shown = (Disclosure(item_id=question.question_id, arm=Arm.FINDINGS_DISCLOSED, text=f"Findings on the pictures:\n{findings}"),)
    return QuestionEntry(
        question=question,
        gold=replace(gold, rubric=criteria(question.family, gold)),
        pictures=pictures,
        disclosures=shown if findings else (),
    )


def _findings(row: Mapping[str, Any]) -> str:
    """Return the findings that the authors removed from the context: a list of entries with `markdown`, or `title` and `body`."""
    entries = [entry for entry in list_entries(row.get(FINDINGS)) if isinstance(entry, dict)]
    blocks = [
        column_text(entry, "markdown") or "\n".join(filter(None, (column_text(entry, "title"), column_text(entry, "body"))))
        for entry in entries
    ]
    return "\n\n".join(dict.fromkeys(block for block in blocks if block))


def _evidence(source: SourceFolder, table: Path, row: Mapping[str, Any], number: int) -> QuestionEntry:
    images, pictures = row_figures(source, table, row, numbered=True)
    given = column_text(row, "final_diagnosis")
    if not given:
        message = "no diagnosis is given"
        raise DataError(message)
    asked = column_text(row, "question_open") or column_text(row, "question")
    question = ImportedQuestion(
        question_id=row_id("evidence", row, number),
        runner=Runner.OPEN,
        family=Family.QUESTION_ANSWERING,
        question="\n".join(part for part in (asked, EVIDENCE_TASK) if part),
        case_id=_report_of(row),
        text=re.sub(rf"\A{GIVEN.format(re.escape(given))}", "", column_text(row, "context"), flags=re.IGNORECASE).strip(),
        given=given,
        images=images,
        language=language_of(asked),
        tags=("track:evidence",),
    )
    return QuestionEntry(question=question, gold=_evidence_gold(question, row), pictures=pictures)


def _evidence_gold(question: ImportedQuestion, row: Mapping[str, Any]) -> Gold | None:
    # required points earn 1, optional ones 0.5
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
        name="mmrarebench",
        title="MMRareBench",
        home="https://huggingface.co/datasets/junzhin/MMrarebench",
        licence="as stated on its page; its successor's is CC BY-NC 4.0",
        files="<track>/<table>.tsv of the tracks diagnosis, treatment, crossmodal, examination (those you have), with the pictures inside or beside",
        axis=Axis.DEPTH,
        expected=1756,
        read=_read_mmrarebench,
        persona=PHYSICIAN,
        samples=5,
    ),
    DataSet(
        name="mrarebench",
        title="MRareBench",
        home="https://huggingface.co/datasets/junzhin/MRareBench",
        licence="CC BY-NC 4.0",
        files="diagnosis/diagnosis_opened.tsv, evidence_verification/evidence_verification_opened_FULL609.tsv (or one of them)",
        axis=Axis.DEPTH,
        expected=0,
        read=_read_mrarebench,
        persona=PHYSICIAN,
        samples=5,
    ),
)
