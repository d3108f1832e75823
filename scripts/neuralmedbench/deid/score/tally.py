"""Count how a phantom was de-identified: the ten actions of MIDI-B over its answer key, in counts and never in values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from neuralmedbench.deid.review.pieces import REVIEW
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.records.answer_key import CaseScore, ScoreRow

NAME = "score.json"
HEADER, NOTE, RECORD, FILES = "header", "note", "record", "files"
"""Where an action was required: cleaned DICOM files, notes, the record, any shareable file."""

Place = tuple[str, str, str]
WORDS_REMOVED = "words_removed"
TOTAL, REMOVALS_TOTAL = ("all", "actions", "all"), ("all", "removals", "all")
REMOVALS = frozenset({"text_removed", "date_shifted", "uid_changed", "uid_consistent", "patid_consistent", "pixels_hidden"})
"""Actions that count as right if the whole file is gone."""


@dataclass
class ScoreTally:
    """Counts of required and of correct actions, by place, action and category."""

    required: Counter[Place] = field(default_factory=Counter)
    right: Counter[Place] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)

    def add(self, place: Place, right: int, required: int = 1, *, where: str = "") -> None:
        """Add counts; `where` locates an error without its value (a tag, a kind)."""
        self.required[place] += required
        self.right[place] += right
        if right < required:
            self.wrong[" ".join(part for part in (*place, where) if part)] += required - right

    def score(self, case_id: str) -> CaseScore:
        """Return the counts of one case."""
        required, right = Counter(self.required), Counter(self.right)
        for place, number in self.required.items():
            for total in _totals(place):
                required[total] += number
                right[total] += self.right[place]
        rows = tuple(
            ScoreRow(
                place=place[0], action=place[1], category=place[2], required=number, right=right[place],
                patients=1, patients_right=int(right[place] == number),
            )
            for place, number in sorted(required.items())
        )  # fmt: skip
        return CaseScore(case_id=case_id, rows=rows, wrong={name: self.wrong[name] for name in sorted(self.wrong)})


def _totals(place: Place) -> list[Place]:
    """Return the totals to which a count belongs; words removed from notes belong to none, as they are not a required action."""
    if place[1] == WORDS_REMOVED:
        return []
    return [TOTAL, *([REMOVALS_TOTAL] if place[1] in REMOVALS else [])]


def sum_scores(scores: Iterable[CaseScore]) -> tuple[ScoreRow, ...]:
    """Sum the scores of cases, by place, action and category.

    Returns sorted rows; `patients_right` is the number of patients for whom every check was right.
    """
    sums: dict[Place, Counter[str]] = {}
    for score in scores:
        for row in score.rows:
            counts = sums.setdefault((row.place, row.action, row.category), Counter())
            counts.update(required=row.required, right=row.right, patients=row.patients, patients_right=row.patients_right)
    return tuple(
        ScoreRow(
            place=place[0], action=place[1], category=place[2], required=counts["required"], right=counts["right"],
            patients=counts["patients"], patients_right=counts["patients_right"],
        )
        for place, counts in sorted(sums.items())
    )  # fmt: skip


def write_score(folder: Path, score: CaseScore) -> None:
    """Write `review/score.json` of a de-identified case."""
    write_json_record(folder / REVIEW / NAME, score)


def read_scores(folders: Sequence[Path]) -> list[CaseScore]:
    """Read the scores of de-identified cases; only phantoms have one. DataError if one is not valid."""
    paths = [folder / REVIEW / NAME for folder in folders]
    return [read_json_record(path, CaseScore, remedy="de-identify the case again") for path in paths if path.is_file()]
