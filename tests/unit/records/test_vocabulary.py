"""The vocabulary: one owner per name, and the terms that the demo and the models rely on."""

from __future__ import annotations

import pytest

from fixtures.scoring import VOCABULARY_FILE, vocabulary
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.vocabulary import normal_form

DEMO = (
    "acute ischaemic stroke",
    "acute ischaemic stroke (MCA territory)",
    "chronic ischaemic infarct",
    "intracerebral haemorrhage",
    "glioblastoma",
    "meningioma",
    "multiple sclerosis",
    "herpes simplex encephalitis",
    "cerebral small vessel disease",
    "normal pressure hydrocephalus",
    "Alzheimer disease",
    "normal brain",
)
CLASSES = {"tumor", "stroke", "multiple sclerosis", "other abnormalities", "normal"}


def refused(tmp_path, text: str) -> str:
    path = tmp_path / "v.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        read_vocabulary(path)
    return str(error.value)


@pytest.mark.parametrize("name", DEMO)
def test_every_diagnosis_of_the_demo_stands_there_under_its_own_name(name):
    assert vocabulary().find(name).name == name


def test_every_entry_is_described_and_has_a_class_of_neurovlm_bench():
    assert len(vocabulary().diagnoses) >= 200
    assert sum(bool(entry.icd10) for entry in vocabulary().diagnoses.values()) >= 150
    for entry in vocabulary().diagnoses.values():
        assert len(entry.description) > 40, entry.key
        assert entry.classes in CLASSES, entry.key


def test_a_diagnosis_is_found_by_name_synonym_abbreviation_and_code():
    for text in ("Glioblastoma", "glioblastoma multiforme", "GBM", "C71.8"):
        assert vocabulary().find(text).key == "glioblastoma"
    assert vocabulary().find("glioblastoma of the left frontal lobe") is None


@pytest.mark.parametrize(("one", "other"), [("がん", "かん"), ("कि", "का"), ("เลือด", "ลือด"), ("মা", "মি"), ("வி", "வா"), ("한국", "한극")])
def test_vowel_signs_and_voiced_kana_tell_words_apart(one, other):
    assert normal_form(one) != normal_form(other)
    assert " " not in normal_form(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Sjögren", "sjogren"),
        ("أَلَم", "الم"),
        ("שָׁלוֹם", "שלום"),
        ("Ёлка", "елка"),
        ("ＧＢＭ", "gbm"),
        ("ｶﾞﾝ", "ガン"),
        ("T٢", "t2"),
        ("१", "1"),
    ],
)
def test_accents_points_and_widths_do_not(one, other):
    assert normal_form(one) == normal_form(other)


def test_british_and_american_spellings_have_one_form():
    assert normal_form("Haemorrhagic Tumour, ischaemic oedema") == normal_form("hemorrhagic tumor - ischemic edema")


def test_a_name_of_two_diagnoses_is_refused(tmp_path):
    text = "version: '1'\ndiagnoses:\n  a: {name: stroke}\n  b: {name: infarct, synonyms: [Stroke]}\nlocations: {}\n"
    assert "'stroke' belongs to a and to b" in refused(tmp_path, text)


def test_an_unknown_parent_and_a_circle_are_refused(tmp_path):
    assert "no diagnosis 'c'" in refused(tmp_path, "version: '1'\ndiagnoses:\n  a: {name: x, parent: c}\nlocations: {}\n")
    circle = "version: '1'\ndiagnoses:\n  a: {name: x, parent: b}\n  b: {name: y, parent: a}\nlocations: {}\n"
    assert "its own ancestor" in refused(tmp_path, circle)


def test_an_unknown_key_and_a_missing_file_are_refused(tmp_path):
    assert "diagnoses.a.synonym" in refused(tmp_path, "version: '1'\ndiagnoses:\n  a: {name: x, synonym: [y]}\nlocations: {}\n")
    with pytest.raises(ConfigError, match="is not there"):
        read_vocabulary(tmp_path / "absent.yaml")


def test_the_digest_is_that_of_the_file():
    assert read_vocabulary(VOCABULARY_FILE).digest == vocabulary().digest
