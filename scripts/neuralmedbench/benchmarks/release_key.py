"""The answer key that people lay beside the released files of Neural-MedBench, which carry no answers: a format of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from neuralmedbench.benchmarks.answers import AnswerRow, answer_row, read_cells
from neuralmedbench.benchmarks.gold import check_findings, disclosure, gold_for
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.columns import ANSWER_KEY_COLUMNS
from neuralmedbench.records.items import NO_LESION, Disclosure, Family, Gold, Level
from neuralmedbench.records.questions import Question
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

FAMILIES = (Family.DIFFERENTIAL_DIAGNOSIS, Family.LESION_RECOGNITION, Family.RATIONALE_GENERATION)
AS_WRITTEN = Vocabulary(version="", digest="", diagnoses={}, locations={})
"""Terms of the key are kept as they stand there; scoring looks them up in the vocabulary of its run."""

Place = tuple[Level, str, str]
"""Level, case and number of the question by which a row is found; level and number may be empty."""


@dataclass(frozen=True)
class KeyRow:
    """One row of the key: where it stands, what is right, and the family of its question."""

    line: int
    answer: AnswerRow
    family: Family


class ReleaseKey:
    """The rows of an answer key, each for one question or one dialogue.

    Parameters
    ----------
    rows : mapping of Place to KeyRow
        As read.
    """

    def __init__(self, rows: Mapping[Place, KeyRow]) -> None:
        self.rows = rows
        self._used: set[int] = set()

    def find(self, level: Level, case_id: str, number: str) -> KeyRow | None:
        """Give the row of a question, or None when the key has none; `number` is empty for a dialogue.

        Raises
        ------
        ConfigError
            If the row was given to another question before: it leaves out the level or the number that tells them apart, and the first
            question may have got the answer of the second.
        """
        places = [(one, case_id, what) for what in dict.fromkeys((number, "")) for one in (level, Level.NONE)]
        row = next((self.rows[place] for place in places if place in self.rows), None)
        if row is not None and row.line in self._used:
            message = f"answer key, line {row.line}: fits several questions; fill in level and question_number"
            raise ConfigError(message)
        if row is not None:
            self._used.add(row.line)
        return row

    def pass_over(self, level: Level, case_id: str) -> None:
        """Count the rows of a case that was refused as used."""
        self._used |= {row.line for (of, case, _), row in self.rows.items() if case == case_id and of in {level, Level.NONE}}

    def check_used(self) -> None:
        """Refuse a key with rows that fit no question; DataError with the first such line."""
        if left := sorted(row.line for row in self.rows.values() if row.line not in self._used):
            message = (
                f"answer key, line {left[0]}: fits no question of the released files ({len(left)} such rows); compare case_id, level and"
                " question_number (a dialogue has no question_number)"
            )
            raise DataError(message)


def read_release_key(path: Path) -> ReleaseKey:
    """Read an answer key.

    Parameters
    ----------
    path : Path
        CSV with the columns `ANSWER_KEY_COLUMNS`; all but `case_id` and `diagnosis` may be absent.

    Returns
    -------
    ReleaseKey
        Its rows.

    Raises
    ------
    ConfigError
        If its columns are not the key's.
    DataError
        If a cell cannot be read, or two rows are for one question.
    """
    rows: dict[Place, KeyRow] = {}
    for line, cells in read_cells(path, ANSWER_KEY_COLUMNS):
        where = f"{path.name}, line {line}"
        answer = answer_row(where, cells)
        place = (answer.level, answer.case_id, cells.get("question_number", "").strip())
        if place in rows:
            message = f"{where}: line {rows[place].line} is for the same question; keep one"
            raise DataError(message)
        rows[place] = KeyRow(line, answer, _family(where, cells.get("family", "")))
    return ReleaseKey(rows)


def _family(where: str, text: str) -> Family:
    name = text.strip().lower() or FAMILIES[0]
    if name not in FAMILIES:
        message = f"{where}, column family: expected one of {', '.join(FAMILIES)}, or nothing"
        raise DataError(message)
    return Family(name)


def key_gold(question: Question, row: KeyRow) -> tuple[Gold, tuple[Disclosure, ...]]:
    """Give what is right for a question, and its findings for the arm that discloses them.

    Raises
    ------
    DataError
        If the findings name the diagnosis, a question on a lesion has none, or the leaders are not one a round.
    """
    where = f"line {row.line} of the answer key"
    gold = gold_for(question.question_id, row.family, row.answer, AS_WRITTEN)
    if row.family is Family.LESION_RECOGNITION and gold.lesion is None and normal_form(gold.answer) != NO_LESION:
        message = f"{where}: a question on a lesion needs lesion_location, or the diagnosis '{NO_LESION}'"
        raise DataError(message)
    if gold.turn_leaders and len(gold.turn_leaders) != len(question.turns):
        message = f"{where}: {len(gold.turn_leaders)} turn_leaders for {len(question.turns)} rounds"
        raise DataError(message)
    if row.family is not Family.LESION_RECOGNITION:
        check_findings(gold)
    gold = replace(gold, established=gold.established or "answer key")
    return gold, (disclosure(gold),) if gold.findings else ()
