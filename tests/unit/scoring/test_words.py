"""The default grader on words that nobody who wrote its rules has made: `tests/words/`, see the README there."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.scoring import vocabulary
from neuralmedbench.scoring.pairs import DIAGNOSES, FAIL, OUTSIDE, PASS, grade_diagnoses, read_pairs

WANTED = {"accept": PASS, "reject": FAIL}


def agreed(path: Path) -> list[dict[str, str]]:
    """Return the graded English answers on which both labels agree."""
    rows = [row for row in read_pairs(path, DIAGNOSES) if row["language"] == "en" and row["expected"] == row["second"] in WANTED]
    return grade_diagnoses(rows, vocabulary())


def share(rows: list[dict[str, str]], label: str) -> float:
    verdicts = [row["verdict"] == WANTED[label] for row in rows if row["expected"] == label]
    return sum(verdicts) / len(verdicts)


@pytest.mark.parametrize(
    ("half", "sensitivity", "specificity"),
    [("mend", 0.96, 0.99), ("hold", 0.97, 0.99), ("third", 0.95, 0.96), ("fourth", 0.94, 0.96), ("fifth", 0.82, 0.93)],
)
def test_answers_of_others_are_read(half, sensitivity, specificity):
    """All but the fifth have been mended with: what was measured on words not seen is in `tests/words/README.md`.

    Answers that cannot be compared with a reference outside the vocabulary are not graded.
    """
    rows = [row for row in agreed(ROOT / f"tests/words/answers_{half}.tsv") if row["relation"] != OUTSIDE]
    assert share(rows, "accept") >= sensitivity
    assert share(rows, "reject") >= specificity
