"""Labels of NeuroVLM-Bench: one picture, one structured answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.external_files import delimited_rows
from neuralmedbench.records.columns import PICTURE_COLUMNS
from neuralmedbench.records.items import Family, Gold, GoldFields, Runner
from neuralmedbench.records.questions import ImportedQuestion, QuestionImage, QuestionSet

CLASSES = ("tumor", "stroke", "multiple sclerosis", "other abnormalities", "normal")
MODALITIES = ("MRI", "CT")
SEQUENCES = ("T1", "T1C+", "T2", "FLAIR", "DWI", "ADC", "SWI")
PLANES = ("axial", "sagittal", "coronal")
STROKES = ("ischemic", "hemorrhagic")
TUMORS = (
    "glioma",
    "meningioma",
    "pituitary tumor",
    "schwannoma",
    "neurocytoma",
    "carcinoma",
    "papilloma",
    "tuberculoma",
    "medulloblastoma",
    "germinoma",
    "granuloma",
)
FIELDS: dict[str, tuple[str, ...]] = {
    "modality": MODALITIES,
    "sequence": SEQUENCES,
    "plane": PLANES,
    "class": CLASSES,
    "subtype": (*STROKES, *TUMORS),
}
"""The fields of an answer and their labels; any other label is out of vocabulary."""

SPELLINGS = {
    "mr": "MRI",
    "t1w": "T1",
    "cet1w": "T1C+",
    "t1c": "T1C+",
    "t1 c+": "T1C+",
    "t2w": "T2",
    "tumors": "tumor",
    "tumour": "tumor",
    "brain tumor": "tumor",
    "ms": "multiple sclerosis",
    "sclerosis": "multiple sclerosis",
    "other": "other abnormalities",
    "ischaemic": "ischemic",
    "haemorrhagic": "hemorrhagic",
    "pituitary": "pituitary tumor",
    "neurocitoma": "neurocytoma",
    "meduloblastoma": "medulloblastoma",
    "papiloma": "papilloma",
}
"""Other spellings in the data set's own table (three tumours are spelled in Portuguese) and in ours."""

ABSENT = frozenset({"", "null", "none", "nan", "n/a"})

QUESTION = "Describe this picture: its modality, sequence and plane, the class of what it shows, and the subtype."


@cache
def answer_schema() -> str:
    """Return the JSON schema of an answer: five nullable labels and a confidence."""
    properties: dict[str, object] = {name: {"enum": [*labels, None]} for name, labels in FIELDS.items()}
    properties["confidence"] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return json.dumps(schema)


def read_table(config: BenchmarkConfig, benchmark: str) -> QuestionSet:
    """Read the data set's own table (`answers` with `PICTURE_COLUMNS`); row 7 is the question `img-000007`.

    ConfigError if pictures are labelled (a label would reveal two of the five fields), or the table is missing or lacks a column;
    DataError for an unknown label.
    """
    if config.label_policy != "none":
        message = f"{benchmark}: labels would reveal sequence and plane, which are asked for; set label_policy: none"
        raise ConfigError(message)
    if config.answers is None:
        message = f"{benchmark}: the adapter neurovlm needs the data set's table; set `answers` in the benchmark's yaml"
        raise ConfigError(message)
    table = Path(config.answers)
    questions, gold = [], []
    for number, row in enumerate(_rows(table), start=1):
        questions.append(question_of(f"img-{number:06d}", row))
        gold.append(gold_of(questions[-1].question_id, f"{table.name}, row {number}", row))
    return QuestionSet(tuple(questions), tuple(gold), files=tuple(question.question_id for question in questions))


def _rows(table: Path) -> list[dict[str, str]]:
    rows = []
    try:
        for line, row in delimited_rows(table):
            if missing := [column for column in PICTURE_COLUMNS if column not in row]:
                message = f"{table.name}: the column {missing[0]!r} is missing; expected {', '.join(PICTURE_COLUMNS)}"
                raise ConfigError(message)
            if any(row[column] is None for column in PICTURE_COLUMNS):
                message = f"{table.name}, line {line}: expected {len(row)} cells as in the first line; complete the row or delete it"
                raise DataError(message)
            rows.append({name: cell or "" for name, cell in row.items()})
    except OSError:
        message = f"{table.as_posix()}: the table of the pictures is not there or cannot be read; correct `answers` in the benchmark's yaml"
        raise ConfigError(message) from None
    return rows


def question_of(question_id: str, row: Mapping[str, str], *, exemplar: bool = False) -> ImportedQuestion:
    """Build the question for the five fields of one picture; the picture is named by the question's id."""
    return ImportedQuestion(
        question_id=question_id,
        runner=Runner.STRUCTURED,
        family=Family.CLASSIFICATION,
        question=QUESTION,
        case_id=row.get("case_id") or "",
        patient_id=_patient(row),
        images=(QuestionImage(file=question_id),),
        tags=(f"dataset:{row['dataset']}",),
        answer_schema=answer_schema(),
        exemplar=exemplar,
    )


def gold_of(question_id: str, where: str, row: Mapping[str, str]) -> Gold:
    """Return the labels of one row in canonical spelling; DataError, with `where`, for an unknown label."""
    fields = GoldFields(
        modality=_label(where, "modality", row["modality"]),
        sequence=_label(where, "sequence", row["modality_subtype"]),
        plane=_label(where, "plane", row["plane"]),
        diagnosis_class=_label(where, "class", row["class"]),
        subtype=_label(where, "subtype", row["subclass"]),
    )
    return Gold(item_id=question_id, answer=fields.diagnosis_class or "", fields=fields, established="label of the data set")


def _patient(row: Mapping[str, str]) -> str:
    """Return the patient of a row: the demo has a column; of the public sets only AISD identifies patients, by folder."""
    folder = PurePosixPath(row["file_path"]).parent.name
    if not row.get("patient_id") and row["dataset"].lower() == "aisd" and folder:
        return hashlib.sha256(f"aisd/{folder}".encode()).hexdigest()[:12]
    return row.get("patient_id") or ""


def _label(where: str, field: str, text: str) -> str | None:
    word = " ".join((text or "").strip().lower().replace("_", " ").split())
    if word in ABSENT or (field, word) == ("sequence", "ct"):  # a CT has no sequence
        return None
    known = {label.lower(): label for label in FIELDS[field]}
    label = known.get(SPELLINGS.get(word, word).lower())
    if label is None:
        message = f"{where}: the {field} is not one of {', '.join(FIELDS[field])}; correct the cell or leave it empty"
        raise DataError(message)
    return label
