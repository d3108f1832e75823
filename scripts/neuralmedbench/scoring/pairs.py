"""Grade pairs that a site's clinicians wrote, by the deterministic grader: diagnoses with answers to them, statements with texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neuralmedbench.errors import DataError
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.files.external_files import delimited_rows
from neuralmedbench.records.items import Axis, Family, Gold, Item, Lesion, Level, Runner
from neuralmedbench.records.scores import ParseStatus, Prediction
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.records.words import counted, percent_with_span
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.other_languages import unread_line, unread_statement
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.statements import contains_statement

PASS, FAIL, NOT_GRADED = "pass", "fail", "not_graded"
STATED, NOT_STATED, UNCLEAR = "stated", "not_stated", "unclear"

UNREAD, ABSTAINED, EMPTY, OTHER_LANGUAGE, OUTSIDE = "unread", "abstained", "empty", "other_language", "outside"
"""Relations of answers that are not judged: not in a form that the parser reads; declined; nothing written; in a language for which the vocabulary
has no names; reference and answer are both outside the vocabulary."""

Row = dict[str, str]
OPEN_ITEM = Item(
    item_id="pair", case_id="pair", patient_id="pair", benchmark="pairs", axis=Axis.DEPTH, family=Family.DIFFERENTIAL_DIAGNOSIS,
    level=Level.NONE, runner=Runner.OPEN, question="What is the most likely diagnosis?",
)  # fmt: skip
"""The question to which whole answers are read: an open one for a ranked differential."""
LINE = Prediction(parse_status=ParseStatus.STRICT)
"""A single line has no sentences."""


@dataclass(frozen=True)
class PairKind:
    """One kind of pairs: columns that a file must have, and the two verdicts that the column `expected` may hold (first the one to find)."""

    columns: tuple[str, ...]
    verdicts: tuple[str, str]


DIAGNOSES = PairKind(("reference", "answer"), (PASS, FAIL))
STATEMENTS = PairKind(("statement", "text"), (STATED, NOT_STATED))


def read_pairs(path: Path, kind: PairKind) -> list[Row]:
    """Read pairs.

    Parameters
    ----------
    path : Path
        TSV (or CSV) with a first line of column names; further columns are kept.
    kind : PairKind
        Columns that it must have.

    Returns
    -------
    list of dict
        Cells by column, in the order of the file.

    Raises
    ------
    DataError
        If it is absent or no table, a column is absent or one of the names of the result is used, or a row has no reference (statement).
    """
    if not path.is_file():
        message = f"{path.name}: no such file; expected a table with the columns {', '.join(kind.columns)}"
        raise DataError(message)
    rows = []
    for line, row in delimited_rows(path):
        absent = [name for name in kind.columns if name not in row]
        if absent:
            message = f"{path.name}: expected the columns {', '.join(kind.columns)}, {absent[0]!r} is absent; the first line has the names"
            raise DataError(message)
        cells = {name: (value or "").strip() for name, value in row.items()}
        if not cells[kind.columns[0]]:
            message = f"{path.name}, line {line}: the column {kind.columns[0]!r} is empty"
            raise DataError(message)
        rows.append(cells)
    if not rows:
        message = f"{path.name}: no pair; expected a line of column names ({', '.join(kind.columns)}), then one pair a line"
        raise DataError(message)
    return rows


def grade_diagnoses(rows: Iterable[Row], vocabulary: Vocabulary, *, whole_answers: bool = False) -> list[Row]:
    """Add `verdict` and `relation` to pairs of a reference diagnosis and an answer.

    Parameters
    ----------
    rows : iterable of dict
        Columns `reference`, `answer`, and `side` and `location` where the reference has them.
    vocabulary : Vocabulary
        Diagnoses and their synonyms.
    whole_answers : bool
        The column `answer` holds whole answers of a model: the parser reads them first, and the first diagnosis counts.

    Returns
    -------
    list of dict
        `pass` for the reference, a synonym or a narrower term; `not_graded` where no diagnosis was read or could be; else `fail`.
    """
    references: dict[tuple[str, str, str], ReferenceAnswer] = {}
    graded = []
    for row in rows:
        key = (row["reference"], row.get("side", ""), row.get("location", ""))
        if key not in references:
            lesion = Lesion(location=key[2], side=key[1].lower(), behaviour={}) if any(key[1:]) else None
            references[key] = ReferenceAnswer.of(Gold(item_id="pair", answer=key[0], lesion=lesion), vocabulary)
        prediction = parse_answer(row["answer"], OPEN_ITEM) if whole_answers else LINE
        answer, why = _first_diagnosis(prediction, row["answer"]) if whole_answers else (row["answer"], EMPTY)
        found = relation(answer, references[key])
        if found in {None, Relation.UNRELATED} and unread_line((answer,), row["answer"], prediction, references[key]):
            found, why = None, OTHER_LANGUAGE
        if found is not None and references[key].may_be(answer):
            found, why = None, OUTSIDE
        verdict = NOT_GRADED if found is None else PASS if found in RIGHT else FAIL
        graded.append({**row, "verdict": verdict, "relation": str(found or why)})
    return graded


def _first_diagnosis(prediction: Prediction, text: str) -> tuple[str, str]:
    """Return the first diagnosis of a whole answer, and why there is none."""
    if prediction.differential:
        return prediction.differential[0], ""
    if prediction.abstained:
        return "", ABSTAINED if text.strip() else EMPTY
    return "", UNREAD if prediction.parse_status is ParseStatus.FAILED else EMPTY


def grade_statements(rows: Iterable[Row]) -> list[Row]:
    """Add `verdict` to pairs of a statement and a text: `stated`, `not_stated`, or `unclear` where there is nothing that can be compared."""

    def verdict(row: Row) -> str:
        if not normal_form(row["text"]) or not normal_form(row["statement"]) or unread_statement(row["text"], row["statement"]):
            return UNCLEAR
        return STATED if contains_statement(row["text"], row["statement"]) else NOT_STATED

    return [{**row, "verdict": verdict(row)} for row in rows]


def summary(rows: list[Row], kind: PairKind) -> list[str]:
    """Summarise graded pairs: the verdicts, and sensitivity and specificity where a column `expected` holds one of the two verdicts.

    A pair that was not graded counts as not found in both; rows with another word in `expected` (such as `unsure`) are left out of the two.
    Pairs of one `diagnosis` (where there is no such column: of one reference) have something in common; the intervals take them as a cluster.
    """
    verdicts = Counter(row["verdict"] for row in rows)
    lines = [f"{counted(len(rows), 'pair')}: {', '.join(f'{number} {name}' for name, number in sorted(verdicts.items()))}"]
    if not any("expected" in row for row in rows):
        return [*lines, f"no column 'expected' ({kind.verdicts[0]} or {kind.verdicts[1]}), so no sensitivity and no specificity"]
    measures: Mapping[str, tuple[str, Callable[[str], bool]]] = {
        "sensitivity": (kind.verdicts[0], lambda verdict: verdict == kind.verdicts[0]),
        "specificity": (kind.verdicts[1], lambda verdict: verdict == kind.verdicts[1]),
    }
    used = 0
    for name, (wanted, found) in measures.items():
        own = [row for row in rows if row.get("expected") == wanted]
        used += len(own)
        if not own:
            lines.append(f"{name}: no pair is expected to be {wanted}")
            continue
        right = np.array([float(found(row["verdict"])) for row in own])
        clusters = ByPatient([normal_form(row.get("diagnosis") or row[kind.columns[0]]) for row in own], IntervalSettings())
        interval = rate_interval(right, clusters)
        of = f"{int(right.sum())} of {len(own)} pairs expected to be {wanted}"
        about = f"{counted(clusters.clusters, kind.columns[0])}"
        lines.append(f"{name}: {percent_with_span(*interval[:3])}, {of}, of {about}")
    if left := len(rows) - used:
        lines.append(f"{counted(left, 'pair')} with another word in 'expected', left out of both")
    return lines
