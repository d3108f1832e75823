"""The invented patients: complete, consistent with the vocabulary, and never naming their own diagnosis."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields, replace

import pytest

from conftest import ROOT
from fixtures.items import slice_row
from fixtures.scoring import ITEM, vocabulary
from neuralmedbench.demo.cohort import TINY, Patient, find_patient, read_cohort, read_patient
from neuralmedbench.demo.identity import KINDS
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.cases import read_case_table
from neuralmedbench.files.pseudonyms import read_key
from neuralmedbench.files.yaml_text import load_yaml
from neuralmedbench.prompts.conversations import examinations_of
from neuralmedbench.records.examinations.inventory import RequestOutcome
from neuralmedbench.records.examinations.matching import match_request
from neuralmedbench.records.items import ItemImage

KEY = read_key(ROOT / "config" / "demo.key")
COHORT = read_cohort()
VOCABULARY = vocabulary()
each_patient = pytest.mark.parametrize("patient", COHORT, ids=lambda patient: patient.key)


def test_the_case_tables_list_exactly_the_patients_of_the_cohort() -> None:
    table = {row.case_id: row.patient_id for row in read_case_table(ROOT / "config" / "benchmarks" / "demo.cases.tsv")}
    tiny = {row.case_id: row for row in read_case_table(ROOT / "config" / "benchmarks" / "demo-tiny.cases.tsv")}
    assert table == {patient.case_id(KEY): patient.patient_id(KEY) for patient in COHORT}
    assert set(tiny) == {patient.case_id(KEY) for patient in COHORT if patient.key in TINY}


def test_there_are_four_patients_of_each_level_and_twelve_diseases_or_normal_brains() -> None:
    assert Counter(patient.level for patient in COHORT) == {"direct": 4, "complex": 4, "dialogue": 4}
    assert Counter(patient.diagnosis for patient in COHORT)["normal brain"] == 2
    assert len({patient.diagnosis for patient in COHORT}) == 11


def test_no_two_patients_share_an_identifier() -> None:
    seen = Counter(value for patient in COHORT for value in set(patient.planted()))
    assert [value for value, times in seen.items() if times > 1] == []


def test_the_cohort_has_a_name_in_another_script_an_age_over_89_one_ct_and_one_isotropic_scan() -> None:
    assert any(patient.identity.original_script for patient in COHORT)
    assert any(patient.identity.age > 89 for patient in COHORT)
    assert [patient.key for patient in COHORT if patient.series == ("CT",)] == ["haemorrhage"]
    assert sum(sequence == "T1-3D" for patient in COHORT for sequence in patient.series) == 1


def test_the_notes_of_the_cohort_hold_every_kind_of_identifier_of_safe_harbor() -> None:
    kinds = Counter(span.kind for patient in COHORT for _, key in patient.keyed_notes() for span in key.spans)
    assert len(KINDS) == 18
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 2


@each_patient
def test_the_key_of_a_note_points_at_what_was_filled_in_and_at_what_has_to_stay(patient: Patient) -> None:
    notes = patient.keyed_notes()
    assert [text for text, _ in notes] == patient.written()
    for text, key in notes:
        outside = text
        for span in reversed(key.spans):
            assert span.parts
            assert all(part in text[span.start : span.end] for part in span.parts)
            outside = outside[: span.start] + "|" + outside[span.end :]
        assert [phrase for phrase in key.stay if phrase not in outside] == []
        assert patient.identity.mrn not in outside
    assert {"NIHSS 12", "GCS 15", "b=1000", "TE 110", "Broca area", "Parkinson rating", "Wilson test"} <= set(notes[-1][1].stay)


def test_three_patients_have_a_doctor_whose_name_is_a_disease_or_a_place_in_the_brain_too() -> None:
    colleagues = {patient.identity.colleague.split()[-1] for patient in COHORT}
    assert {"Parkinson", "Broca", "Wilson"} <= colleagues


@each_patient
def test_every_diagnosis_is_a_word_of_the_vocabulary(patient: Patient) -> None:
    answer = patient.answer
    for name in (patient.diagnosis, *answer.must_not, *answer.turn_leaders, *answer.differentials):
        assert VOCABULARY.find(name), name
    known = VOCABULARY.find(patient.diagnosis)
    assert known.name == patient.diagnosis
    assert answer.icd10 in known.icd10
    assert not answer.lesion_location or answer.lesion_location in VOCABULARY.locations
    assert (known.classes, known.subtype) == (patient.diagnosis_class, patient.subclass)


@each_patient
def test_notes_record_and_findings_never_name_the_diagnosis(patient: Patient) -> None:
    known = VOCABULARY.find(patient.diagnosis)
    names = {patient.diagnosis, *patient.answer.aliases, known.name, *known.synonyms} - {"normal"}
    texts = [*patient.written(), *patient.answer.findings, *(f"{row.variable} {row.value}" for row in patient.record)]
    for text in texts:
        # short names are searched as words: the MS of multiple sclerosis also occurs in "films"
        words = set(re.findall(r"\w+", text.lower()))
        assert [name for name in names if (name.lower() in text.lower() if len(name) > 3 else name.lower() in words)] == []


@each_patient
def test_a_dialogue_has_a_leading_diagnosis_for_each_note_and_for_the_pictures(patient: Patient) -> None:
    expected = len(patient.notes) + 1 if patient.level == "dialogue" else 0
    assert len(patient.answer.turn_leaders) == expected
    assert 2 <= len(patient.notes) <= 4


@each_patient
def test_the_day_of_birth_gives_the_age_that_the_header_states(patient: Patient) -> None:
    born, day = patient.identity.born(), patient.identity.scanned
    assert day.year - born.year - ((day.month, day.day) < (born.month, born.day)) == patient.identity.age


LABELS = {"T1": "T1w", "T1-3D": "T1w", "T1C+": "ceT1w", "T2": "T2w", "DWI": "dwi"}
"""Labels of the sequences whose name in the cohort is another."""


def test_the_patients_of_the_work_ups_hold_every_examination_that_their_author_calls_essential() -> None:
    chosen = load_yaml((ROOT / "config" / "benchmarks" / "demo.yaml").read_text(encoding="utf-8"))["workup_cases"]
    listed = {patient.case_id(KEY): patient for patient in COHORT if patient.answer.essential}
    assert set(listed) == set(chosen)
    for patient in listed.values():
        rows = [slice_row("c1", 0, LABELS.get(sequence, sequence)) for sequence in patient.series]
        images = [
            ItemImage(**{field.name: getattr(row, field.name) for field in fields(ItemImage) if hasattr(row, field.name)}, role="slice")
            for row in rows
        ]
        record = "\n".join(f"{row.variable}: {row.value}" for row in patient.record)
        _, held = examinations_of(replace(ITEM, notes="\n\n".join(patient.written()), record=record, images=tuple(images)))
        found = [match_request(name, held) for name in patient.answer.essential]
        assert [match.outcome for match in found] == [RequestOutcome.GIVEN] * len(found), patient.key
        assert len({match.place for match in found}) == len(found), patient.key


def test_an_unknown_case_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match="not a case of the demo"):
        find_patient("0" * 12, KEY)


def test_a_misspelled_key_of_a_patients_file_is_refused(tmp_path) -> None:
    path = tmp_path / "stroke.yaml"
    text = (ROOT / "scripts/neuralmedbench/demo/patients/stroke.yaml").read_text(encoding="utf-8")
    path.write_text(text.replace("  hospital: ", "  hopsital: "), encoding="utf-8")
    with pytest.raises(ConfigError, match="identity"):
        read_patient(path)
