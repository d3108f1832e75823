"""The leak page: texts sent to a model that still reveal the answer."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import find_answer_leaks
from conftest import ROOT
from fixtures.items import benchmark_config
from fixtures.prompt import OPTIONS, TEMPLATES, question
from neuralmedbench.benchmarks.answer_leaks import find_leaks, is_revealing
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.leak_review import leak_page
from neuralmedbench.benchmarks.told_by_arms import add_told_answers
from neuralmedbench.config.arms import load_arms
from neuralmedbench.files.tables import write_records
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.answer_leaks import AnswerLeaks
from neuralmedbench.records.items import Arm, Axis, Family, Gold, Item, Level, Runner, Turn
from neuralmedbench.records.requests import Request, RequestTurn
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

QUESTION = "What is the most likely diagnosis?"
TEMPLATE = "You read scans of the head. For example: meningioma."


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return read_vocabulary(ROOT / "config" / "vocabulary" / "neurology.yaml")


def item(notes: str = "", record: str = "", **changes: object) -> Item:
    values: dict[str, object] = {
        "item_id": "mine/c0ffee/differential_diagnosis", "case_id": "c0ffee", "patient_id": "beef", "benchmark": "mine", "axis": Axis.DEPTH,
        "family": Family.DIFFERENTIAL_DIAGNOSIS, "level": Level.DIRECT, "runner": Runner.OPEN, "question": QUESTION, "notes": notes, "record": record,
    } | changes  # fmt: skip
    return Item(**values)  # type: ignore[arg-type]


def requests_of(one: Item, *arms: Arm, template: str = "") -> list[Request]:
    """Return the requests of an item, without notes and record in the arm `no_text`."""
    rows = []
    for arm in arms or (Arm.FULL, Arm.NO_TEXT, Arm.FINDINGS_DISCLOSED):
        shown = [one.question] if arm is Arm.NO_TEXT else [one.notes, one.record, one.question, *(turn.reveal for turn in one.turns)]
        texts = tuple(RequestTurn(text=text) for text in (template, *shown) if text)
        rows.append(Request(
            item_id=one.item_id, case_id=one.case_id, patient_id=one.patient_id, benchmark=one.benchmark, arm=arm, strategy="direct", request_id="0",
            runner=one.runner, system="Answer in JSON.", turns=texts, answer_schema="", samples=1,
        ))  # fmt: skip
    return rows


def leaks_of(one: Item, gold: Gold, vocabulary: Vocabulary, *, template: str = "") -> AnswerLeaks:
    return find_leaks("mine", [one], [gold], requests_of(one, template=template), vocabulary)


def gold_of(answer: str = "glioblastoma", **changes: object) -> Gold:
    return Gold(item_id="mine/c0ffee/differential_diagnosis", answer=answer, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("note", "severity", "term"),
    [
        ("Biopsy: a Glioblastoma.", "answer", "glioblastoma"),
        ("Known GBM since May.", "alias", "GBM"),
        ("Coded C71.9 by the ward.", "code", "C71.9"),
        ("Coded c719.", "code", "C71.9"),
        ("The primary brain tumor board met.", "family", ""),
        ("A rare growth was named xanthoma bizarre.", "alias", "xanthoma bizarre"),
        ("To be told from brain metastasis.", "family", "brain metastasis"),
        ("Histologisch ein Glioblastom.", "alias", "Glioblastom"),
        ("Glioblastome opéré en mai.", "alias", "glioblastome"),
        ("患者三年前确诊胶质母细胞瘤，行手术。", "alias", "胶质母细胞瘤"),
        ("曾诊断为高级别胶质瘤。", "family", "高级别胶质瘤"),
    ],
)
def test_each_kind_of_leak_is_found_as_whole_words(note: str, severity: str, term: str, vocabulary: Vocabulary) -> None:
    gold = gold_of(icd10="C71.9", aliases=("xanthoma bizarre",), differentials=("brain metastasis", "abscess"))
    found = leaks_of(item(note), gold, vocabulary).leaks
    assert [(leak.severity, leak.where, leak.count) for leak in found] == [(severity, "notes", 1)]
    assert found[0].term == term or not term
    assert found[0].arms == ("full",)


def test_a_sign_that_stands_for_the_disease_is_a_warning_and_no_leak(vocabulary: Vocabulary) -> None:
    found = leaks_of(item("Uniform enhancement with a dural tail."), gold_of("meningioma"), vocabulary)
    assert [(leak.severity, leak.term) for leak in found.leaks] == [("sign", "dural tail")]
    assert found.leaking == 0
    assert leaks_of(item("Uniform enhancement with a dural tail."), gold_of("glioblastoma"), vocabulary).leaks == ()


@pytest.mark.parametrize("note", ["No headache.", "gbm as a file name", "The glioblastomatosis of words.", "Code C71.92 or AC71.9.", ""])
def test_what_only_looks_like_the_answer_is_no_leak(note: str, vocabulary: Vocabulary) -> None:
    assert leaks_of(item(note), gold_of(icd10="C71.9"), vocabulary).leaks == ()


def test_spelling_accents_and_possessives_make_no_difference(vocabulary: Vocabulary) -> None:
    found = leaks_of(item("Her father had ALZHEIMER’S disease; Alzheimers no."), gold_of("Alzheimer's disease"), vocabulary).leaks
    assert [(leak.severity, leak.count) for leak in found if leak.severity == "answer"] == [("answer", 1)]
    found = leaks_of(item("Intracerebral hæmorrhage; intracerebral haemorrhage"), gold_of("intracerebral hemorrhage"), vocabulary).leaks
    assert "answer" in {leak.severity for leak in found}


def test_the_word_normal_alone_tells_nothing(vocabulary: Vocabulary) -> None:
    assert leaks_of(item("Reflexes normal."), gold_of("normal brain"), vocabulary).leaks == ()
    assert leaks_of(item("MRI: normal brain."), gold_of("normal brain"), vocabulary).leaking == 1


def test_leaks_name_the_arms_that_show_the_text_and_templates_are_searched_too(vocabulary: Vocabulary) -> None:
    found = leaks_of(item("Meningioma known.", "history: meningioma"), gold_of("meningioma"), vocabulary, template=TEMPLATE)
    assert {leak.where: leak.arms for leak in found.leaks if leak.severity == "answer"} == {
        "notes": ("full",), "record": ("full",), "template": ("full", "no_text"),
    }  # fmt: skip
    assert (found.items, found.leaking) == (1, 1)


def test_turns_of_a_dialogue_are_told_apart_and_offered_labels_are_no_leak(vocabulary: Vocabulary) -> None:
    turns = (Turn(reveal="Weak arm.", question="Which?"), Turn(reveal="Now a meningioma is said.\nSo it is.", question="And now?"))
    dialogue = item(runner=Runner.DIALOGUE, question="", turns=turns)
    assert [leak.where for leak in leaks_of(dialogue, gold_of("meningioma"), vocabulary).leaks if leak.severity == "answer"] == ["turn 2"]
    choice = item(runner=Runner.CHOICE, options=("meningioma", "abscess"))
    printed = "Options:\nA. meningioma\nB. abscess"
    assert leaks_of(choice, gold_of("meningioma"), vocabulary, template=printed).leaks == ()
    assert [leak.where for leak in leaks_of(choice, gold_of("meningioma"), vocabulary, template=TEMPLATE).leaks] == ["template"]
    counted = item(runner=Runner.CHOICE, options=("one", "two"))
    form = "ANSWER: <the letter of one option>"
    assert leaks_of(counted, gold_of("one"), vocabulary, template=form).leaks == ()
    assert [leak.where for leak in leaks_of(replace(counted, notes="He had one."), gold_of("one"), vocabulary, template=form).leaks] == [
        "notes"
    ]


def test_the_page_is_one_offline_file_with_escaped_texts_and_marked_terms(vocabulary: Vocabulary) -> None:
    one, gold = item("<script>alert(1)</script> & a meningioma <b>here</b>"), gold_of("meningioma")
    page = leak_page(leaks_of(one, gold, vocabulary), [one], [gold], requests_of(one), vocabulary)
    assert "a person accepted 0 of them" in page
    assert "&amp; a <mark>meningioma</mark> &lt;b&gt;" in page
    assert "<script" not in page
    assert not re.search(r"(?:src|href)=|url\(|@import", page)
    assert "default-src 'none'" in page


def test_the_command_writes_the_list_and_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = item("A meningioma was found.")
    write_records(tmp_path / "items.parquet", Item, [one], key=lambda row: row.item_id)
    write_records(tmp_path / "gold.parquet", Gold, [gold_of("meningioma")], key=lambda row: row.item_id)
    write_records(tmp_path / "prompts.parquet", Request, requests_of(one), key=lambda row: (row.item_id, row.arm))
    arguments = [f"--{name}={tmp_path / name}.parquet" for name in ("items", "gold", "prompts")]
    vocabulary = ROOT / "config" / "vocabulary" / "neurology.yaml"
    outputs = [f"--out={tmp_path / 'leaks.json'}", f"--out-page={tmp_path / 'leaks.html'}"]
    assert find_answer_leaks.main(["--benchmark=mine", f"--vocabulary={vocabulary}", *arguments, *outputs]) == 0
    written = json.loads((tmp_path / "leaks.json").read_text(encoding="utf-8"))
    assert (written["items"], written["leaking"], written["leaks"][0]["severity"]) == (1, 1, "answer")
    assert "<mark>meningioma</mark>" in (tmp_path / "leaks.html").read_text(encoding="utf-8")
    assert "1 of 1 items" in capsys.readouterr().out


def test_the_rule_of_inference_waits_for_the_list() -> None:
    text = (ROOT / "rules" / "60_infer.smk").read_text(encoding="utf-8")
    assert 'leaks="data/leaks/{benchmark}.json"' in text
    assert "input.leaks" not in text


PRESSURE = ("suggestion-right", "suggestion-wrong", "options_shuffled-1", "options_shuffled-2", "none_of_the_above", "paraphrase-1")


def under_pressure(one: Item, answer: Gold, vocabulary: Vocabulary) -> AnswerLeaks:
    """Search the requests of an item under arms of pressure and wording, as they are made."""
    arms = load_arms(ROOT / "config", PRESSURE, "b")
    built = add_told_answers(BenchmarkItems((one,), (answer,)), arms.values(), vocabulary)
    material = CaseMaterial(disclosures=built.disclosures, arms=arms)
    return find_leaks("b", [one], [answer], assemble([one], material, benchmark_config(arms=["full", *PRESSURE]), TEMPLATES), vocabulary)


def test_a_suggested_answer_and_moved_options_are_no_leaks(vocabulary: Vocabulary) -> None:
    one = question()
    assert under_pressure(one, Gold(item_id=one.item_id, answer=OPTIONS[1], choice="B"), vocabulary).leaks == ()


def test_what_a_note_gives_away_is_found_under_these_arms_too(vocabulary: Vocabulary) -> None:
    one = question(notes="Biopsy showed glioblastoma.")
    (leak,) = under_pressure(one, Gold(item_id=one.item_id, answer=OPTIONS[1], choice="B"), vocabulary).leaks
    # requests with a suggestion are not searched: but for it, they are those of the arm full
    assert leak.arms == tuple(sorted(("full", *PRESSURE[2:])))


@pytest.mark.parametrize("words", [["нет"], ["nein"], ["sí"], ["no"]])
def test_yes_and_no_of_other_languages_reveal_nothing(words: list[str]) -> None:
    assert not is_revealing([normal_form(word) for word in words])
    assert is_revealing(["менингит"])
