"""Pairs that clinicians write to test the default grader: verdicts, whole answers, sensitivity and specificity, wrong input."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from conftest import ROOT
from neuralmedbench.cli.main import main
from neuralmedbench.errors import DataError
from neuralmedbench.scoring.pairs import DIAGNOSES, STATEMENTS, grade_statements, read_pairs, summary

VOCABULARY = ("--vocabulary", str(ROOT / "config" / "vocabulary" / "neurology.yaml"))
PAIRS = """reference	side	location	answer	expected	author
glioblastoma	left	frontal lobe	GBM, left frontal	pass	a
glioblastoma	left	frontal lobe	right frontal glioblastoma	fail	a
glioblastoma			meningioma	fail	b
glioblastoma				fail	b
glioblastoma			glioma	unsure	b
"""


def graded(folder: Path, text: str, *arguments: str, verb: str = "diagnoses") -> list[dict[str, str]]:
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")
    chosen = VOCABULARY if verb == "diagnoses" else ()
    assert main(["score", verb, "--pairs", str(folder / "pairs.tsv"), "--out", str(folder / "out.tsv"), *chosen, *arguments]) == 0
    with (folder / "out.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_pairs_get_verdict_and_relation_and_keep_their_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = graded(tmp_path, PAIRS)
    assert [(row["verdict"], row["relation"], row["author"]) for row in rows] == [
        ("pass", "synonym", "a"), ("fail", "sibling", "a"), ("fail", "sibling", "b"), ("not_graded", "empty", "b"), ("fail", "parent", "b")
    ]  # fmt: skip
    assert capsys.readouterr().out.splitlines() == [
        "5 pairs: 3 fail, 1 not_graded, 1 pass",
        "sensitivity: 100 % (5 % to 100 %), 1 of 1 pairs expected to be pass, of 1 reference",
        "specificity: 67 % (0 % to 100 %), 2 of 3 pairs expected to be fail, of 1 reference",
        "1 pair with another word in 'expected', left out of both",
    ]


def test_whole_answers_are_read_first_and_what_is_not_read_is_not_graded(tmp_path: Path) -> None:
    answers = {
        '"DIFFERENTIAL:\n1. glioblastoma\n2. abscess"': ("pass", "synonym"),
        '"DIFFERENTIAL:\n1. abscess\n2. glioblastoma"': ("fail", "unrelated"),
        "It was a lovely day.": ("not_graded", "unread"),
        "I cannot determine the diagnosis.": ("not_graded", "abstained"),
    }
    text = "reference\tanswer\n" + "".join(f"glioblastoma\t{answer}\n" for answer in answers)
    rows = graded(tmp_path, text, "--whole-answers")
    assert [row["relation"] for row in rows[:2]] in (["exact", "unrelated"], ["synonym", "unrelated"])
    assert [row["verdict"] for row in rows] == [verdict for verdict, _ in answers.values()]
    assert [row["relation"] for row in rows[2:]] == ["unread", "abstained"]


def test_statements_are_stated_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "statement\ttext\texpected\nrestricted diffusion in the left MCA territory\tThere is restricted diffusion in the left MCA territory.\tstated\n"
    rows = graded(tmp_path, text + "mass effect\tNo mass effect.\tnot_stated\nmass effect\t\tnot_stated\n", verb="statements")
    assert [row["verdict"] for row in rows] == ["stated", "not_stated", "unclear"]
    out = capsys.readouterr().out
    assert "sensitivity: 100 %" in out
    assert "specificity: 50 % (0 % to 100 %), 1 of 2 pairs expected to be not_stated, of 1 statement" in out


def test_without_expected_verdicts_there_is_no_sensitivity() -> None:
    rows = grade_statements([{"statement": "mass effect", "text": "mass effect"}])
    assert summary(rows, STATEMENTS) == [
        "1 pair: 1 stated",
        "no column 'expected' (stated or not_stated), so no sensitivity and no specificity",
    ]
    left = summary([{**rows[0], "expected": "stated"}], STATEMENTS)
    assert left[-1] == "specificity: no pair is expected to be not_stated"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "reference\tanswers\nx\ty\n",
            "pairs.tsv: expected the columns reference, answer, 'answer' is absent; the first line has the names",
        ),
        ("reference\tanswer\n", "pairs.tsv: no pair; expected a line of column names (reference, answer), then one pair a line"),
        ("reference\tanswer\n\tglioma\n", "pairs.tsv, line 2: the column 'reference' is empty"),
        ("reference\tanswer\ta\na\tb\tc\td\n", "pairs.tsv: a row has more cells than the first line has names (line 2)"),
    ],
)
def test_wrong_files_are_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_pairs(path, DIAGNOSES)
    assert str(caught.value) == message


def test_an_absent_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^absent\.tsv: no such file; expected a table with the columns reference, answer$"):
        read_pairs(tmp_path / "absent.tsv", DIAGNOSES)


def test_pairs_of_one_diagnosis_count_as_a_cluster() -> None:
    rows = [{"reference": f"r{n}", "answer": "x", "expected": "pass", "verdict": "pass" if n % 2 else "fail"} for n in range(40)]
    alone, together = (
        summary([{**row, "diagnosis": name(row)} for row in rows], DIAGNOSES)[1]
        for name in (lambda row: row["reference"], lambda row: row["verdict"])
    )
    assert alone == "sensitivity: 50 % (34 % to 66 %), 20 of 40 pairs expected to be pass, of 40 references"
    assert together == "sensitivity: 50 % (0 % to 100 %), 20 of 40 pairs expected to be pass, of 2 references"
