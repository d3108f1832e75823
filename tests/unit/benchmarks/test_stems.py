"""Questions that describe a case: the vignette becomes case text; lead-in and options are never cut."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fixtures.imports import built, imported, put, put_table
from fixtures.prompt import asked, said
from neuralmedbench.benchmarks.adapters.registry import data_sets
from neuralmedbench.benchmarks.case_text import vignette_and_lead_in
from neuralmedbench.benchmarks.importing import ImportPaths, import_set, import_summary
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.mappings import load_mappings
from neuralmedbench.errors import ConfigError

STEM = "A woman of 61 years, seen by Dr. Who, has 2.5 mg/dl vs. 1.2 before. Her left arm is weak! She says: no more."
CLOSING = "What is the most likely cause, e.g. an embolus? Choose one."
ROW = {
    "question": f"{STEM} {CLOSING}",
    "options": {"A": "Stroke", "B": "Migraine. What else?", "C": "Tumour"},
    "answer_idx": "A",
    "realidx": "1",
}


@pytest.mark.parametrize(
    ("text", "vignette"),
    [
        (f"{STEM} {CLOSING}", STEM),
        ("A newborn. What is it? What is next?", "A newborn."),
        ("A case.\n\nThe most likely diagnosis is", "A case."),
        ("45세 남자가 두통으로 왔다. 진단은?", "45세 남자가 두통으로 왔다."),
        ("患者头痛。诊断是什么？", "患者头痛。"),
        ("What is it?", ""),
        ("The most likely diagnosis is:", ""),
        ("Which lobe? Sodium 138 mmol/l. Fluid is bright.", ""),
        ("He takes vitamin K. What is it?", ""),
        ("", ""),
    ],
)
def test_what_stands_before_the_closing_question_is_told(text: str, vignette: str) -> None:
    found, rest = vignette_and_lead_in(text)
    assert found == vignette
    assert " ".join(f"{found} {rest}".split()) == (" ".join(text.split()) if "。" not in text else "患者头痛。 诊断是什么？")


@given(st.text(alphabet="aAbK .!?\n。？\"')", max_size=60))
def test_no_sign_is_lost_and_something_is_always_asked(text: str) -> None:
    vignette, rest = vignette_and_lead_in(text)
    assert "".join((vignette + rest).split()) == "".join(text.split())
    assert rest or not text.strip()


def hard(tmp_path: Path) -> BenchmarkItems:
    put_table(tmp_path / "set" / "data" / "MedQA" / "test_hard.jsonl", [ROW])
    return imported("medagentsbench", tmp_path / "set", tmp_path)[1]


@pytest.mark.parametrize("most", [None, 24, 23, 5, 2])
def test_a_stem_is_cut_like_text_of_the_case_and_neither_question_nor_options_ever_are(tmp_path: Path, most: int | None) -> None:
    items = hard(tmp_path).items
    request = asked(items, arms=["full", "no_text", "first_50_percent"], **({"max_case_words": most} if most else {}))
    full = request["MedQA-1", "full", "direct"]
    words = STEM.split()  # 24 of them
    kept = words if most is None else words[:most]
    assert len(words) == 24
    assert full.words_cut == len(words) - len(kept)
    case, _, rest = said(full).partition("\nQuestion: ")
    assert case.rstrip().endswith(" ".join(kept))
    assert rest.startswith(f"{CLOSING}\n\nOptions:\nA. Stroke\nB. Migraine. What else?\nC. Tumour\n\n")
    assert words[1] not in said(request["MedQA-1", "no_text", "direct"]).split()
    half = said(request["MedQA-1", "first_50_percent", "direct"])
    first = " ".join(kept[: len(kept) // 2])
    assert f"\n{first}\n" in half


def test_the_shipped_mappings_that_part_questions_are_named_in_the_documentation() -> None:
    root = Path(__file__).parents[3]
    line = next(
        line for line in (root / "docs" / "benchmarks.md").read_text(encoding="utf-8").splitlines() if "`case_in_question: true`" in line
    )
    parting = {name for name, mapping in load_mappings(root / "config").items() if mapping.case_in_question}
    assert parting == {name for name in load_mappings(root / "config") if f"`{name}`" in line} != set()


@pytest.mark.parametrize(
    ("case", "asked"),
    [("word " * 70 + ".", "What is it?"), ("右手の振戦を主訴に来院した。" * 15, "診断はどれか。"), ("右手震颤三个月。" * 25, "诊断是？")],
    ids=["English", "Japanese", "Chinese"],
)
def test_the_import_counts_questions_that_tell_a_case_out_of_reach(tmp_path: Path, case: str, asked: str) -> None:
    base = {"title": "T", "home": "h", "licence": "l", "axis": "breadth", "files": ["t.jsonl"], "runner": "choice", "question": "q"}
    base |= {"options": "o", "answer": "a"}
    put_table(
        tmp_path / "set" / "t.jsonl",
        [{"q": f"{case} {asked}", "o": ["l", "r"], "a": "A"}, {"q": "Q?", "o": ["l", "r"], "a": "A"}],
    )
    found = {}
    for name, changes in (("whole", {}), ("parted", {"case_in_question": True})):
        put(tmp_path / "config", {f"mappings/{name}.yaml": yaml.safe_dump(base | changes)})
        places = ImportPaths(tables=tmp_path / name / "questions", pictures=tmp_path / name / "raw")
        record = import_set(data_sets(tmp_path / "config")[name], tmp_path / "set", "b", places)
        found[name] = (
            record.long_questions,
            "1 questions of more than 60 words" in import_summary(record, written=True),
            built(places, "full").items[0].question,
        )
    assert found["whole"][:2] == (1, True)
    assert found["parted"] == (0, False, asked)


def test_a_case_in_a_question_needs_the_column_of_the_question(tmp_path: Path) -> None:
    base = {
        "title": "T",
        "home": "h",
        "licence": "l",
        "axis": "breadth",
        "files": ["t"],
        "runner": "open",
        "ask": "What?",
        "case_in_question": True,
    }
    put(tmp_path, {"mappings/mine.yaml": yaml.safe_dump(base)})
    with pytest.raises(ConfigError, match="`case_in_question` needs `question`"):
        load_mappings(tmp_path)
