"""Which texts say what a picture shows: measured on words that were not made for it, half of which were looked at once."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection
from functools import cache
from pathlib import Path

import pytest

from conftest import ROOT
from fixtures.scoring import ITEM
from neuralmedbench.records.scores import Evidence, ParseStatus, Prediction
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.picture_claims import argues_from_picture, claims_pictures, describes_picture, describes_unsent

WORDS = ROOT / "tests" / "words"
LENGTH = 420
"""Characters of an answer that were read for its label."""


@cache
def texts(source: str) -> dict[str, str]:
    """Give the texts of a source by id; those of published sets by the digest of the text."""
    if source == "smollm2":
        lines = (ROOT / "tests/fixtures/smollm2/answers.jsonl").read_text(encoding="utf-8").splitlines()
        return {str(number): json.loads(line)["text"] for number, line in enumerate(lines)}
    if source == "statements":
        return {row["id"]: row["text"] for part in ("mend", "hold") for row in read(WORDS / f"statements_{part}.tsv")}
    root = Path(os.environ["NMB_REAL_BENCHMARKS"])
    if source == "mediq":
        lines = (root / "mediq/data/all_craft_md.jsonl").read_text(encoding="utf-8").splitlines()
        found = [fact for line in lines for fact in json.loads(line)["context"]]
    elif source == "medec":
        with next((root / "medec").glob("*.csv")).open(encoding="utf-8", newline="") as file:
            found = [re.sub(r"^\d+\s+", "", line) for row in csv.DictReader(file) for line in row["Sentences"].split("\n")]
    else:
        answers = [
            row for path in (root / "medagentsbench/output").glob("*/gpt-4o-[mp]*zero_shot.json") for row in json.loads(path.read_text())
        ]
        found = [part for row in answers if isinstance(row.get("reason"), str) for part in re.split(r"(?<=[.])\s+", row["reason"])]
    return {hashlib.sha256(text.strip().encode()).hexdigest()[:16]: text.strip() for text in found}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def counts(*sources: str, splits: Collection[str], structures: bool = True, label: str = "expected") -> Counter[tuple[str, bool]]:
    """Count the labelled texts by label and reading; those whose label is unsure, or that two readers labelled differently, count nowhere."""
    rows = [row for row in read(WORDS / "picture_content.tsv") if row["source"] in sources and row["split"] in splits]
    assert rows
    labels = [row["expected"] if label == "expected" else row["second"] if row["second"] == row["third"] else "unsure" for row in rows]
    known = [
        (said, " ".join(texts(row["source"])[row["id"]].split())[:LENGTH])
        for row, said in zip(rows, labels, strict=True)
        if said != "unsure"
    ]
    return Counter((said, describes_picture(text, structures=structures)) for said, text in known)


def test_held_out_answers_and_statements_are_read_as_they_were_labelled() -> None:
    found = counts("smollm2", "statements", splits=["hold"])
    assert found == {("yes", True): 34, ("yes", False): 3, ("no", False): 39, ("no", True): 3}


def test_reasons_are_read_with_fewer_words_so_that_a_lesion_placed_by_symptoms_is_no_observation() -> None:
    assert counts("smollm2", "statements", splits=["hold"], structures=False) == {
        ("yes", True): 21,
        ("yes", False): 16,
        ("no", False): 39,
        ("no", True): 3,
    }
    assert not describes_picture("The deficits place the lesion in the left internal capsule.", structures=False)
    assert describes_picture("The deficits place the lesion in the left internal capsule.")


def test_the_name_of_a_diagnosis_is_no_observation() -> None:
    said = Prediction(
        parse_status=ParseStatus.STRICT, differential=("Subdural haematoma",), seen="nothing", findings="A subdural haematoma after a fall."
    )
    assert not describes_unsent(said, "", labelled=False)


def test_held_out_published_sentences_are_read_as_they_were_labelled() -> None:
    if "NMB_REAL_BENCHMARKS" not in os.environ:
        pytest.skip("NMB_REAL_BENCHMARKS is not set")
    found = counts("mediq", "medec", "medagents", splits=["hold"])
    assert found == {("yes", True): 8, ("yes", False): 2, ("no", False): 95, ("no", True): 1}


def test_texts_are_read_as_two_readers_labelled_them_who_did_not_know_the_rules() -> None:
    if "NMB_REAL_BENCHMARKS" not in os.environ:
        pytest.skip("NMB_REAL_BENCHMARKS is not set")
    sources = ("smollm2", "statements", "mediq", "medec", "medagents")
    held = counts(*sources, splits=["hold"], label="both")
    fresh = counts(*sources, splits=["fresh"], label="both")
    assert held == {("yes", True): 41, ("yes", False): 6, ("no", False): 138, ("no", True): 9}
    assert fresh == {("yes", True): 16, ("yes", False): 2, ("no", False): 221, ("no", True): 13}
    reasons = counts(*sources, splits=["hold", "fresh"], label="both", structures=False)
    assert reasons == {("yes", True): 44, ("yes", False): 21, ("no", False): 362, ("no", True): 19}


@pytest.mark.parametrize(
    ("seen", "claimed"),
    [
        ("MRI; T1w, FLAIR; axial", True),
        ("nothing", False),
        ("clinical notes only", False),
        ("No images", False),
        ("No MRI was provided", False),
        ("clinical notes and a health record; the pictures are missing", False),
        ("CT, axial", True),
        ("", False),
    ],
)
def test_seen_claims_pictures_only_where_it_names_a_scan_as_shown(seen, claimed) -> None:
    assert claims_pictures(seen) is claimed


def test_an_answer_about_unsent_pictures_is_read_by_its_sections_and_labels_may_be_repeated() -> None:
    honest = Prediction(parse_status=ParseStatus.STRICT, seen="nothing", findings="Sudden weakness of the right arm. MRI would be needed.")
    assert not describes_unsent(honest, "", labelled=False)
    by_label = Prediction(parse_status=ParseStatus.STRICT, seen="MRI; FLAIR; axial", findings="All pictures are black.")
    assert describes_unsent(by_label, "", labelled=False)
    assert not describes_unsent(by_label, "", labelled=True)
    mirage = Prediction(parse_status=ParseStatus.STRICT, seen="nothing", findings="FLAIR shows a hyperintense area in the left insula.")
    assert describes_unsent(mirage, "", labelled=True)


def test_free_text_is_read_as_a_whole_and_without_the_thoughts() -> None:
    text = "<think>MRI shows a mass?</think>The history fits a stroke."
    assert not describes_unsent(parse_answer(text, ITEM), text, labelled=False)
    assert describes_unsent(parse_answer(text, ITEM), f"{text} The scan shows a dense artery.", labelled=False)


def test_reasons_are_the_rationale_and_what_speaks_for_the_first_diagnosis() -> None:
    first, second = Evidence("restricted diffusion in the insula", ""), Evidence("ring enhancement", "")
    base = Prediction(parse_status=ParseStatus.STRICT, differential=("stroke", "tumour"))
    assert argues_from_picture(base) is None
    assert argues_from_picture(Prediction(parse_status=ParseStatus.STRICT, evidence=(first,))) is True
    assert argues_from_picture(Prediction(parse_status=ParseStatus.STRICT, evidence=(Evidence("sudden onset", ""), second))) is False
    assert argues_from_picture(Prediction(parse_status=ParseStatus.STRICT, rationale="The onset was sudden.")) is False
