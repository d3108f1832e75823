"""Kinds of one diagnosis: siblings of each other, right for the diagnosis, which is too general for each of them."""

from __future__ import annotations

import csv
import os
from functools import cache
from pathlib import Path

import pytest

from fixtures.scoring import vocabulary
from neuralmedbench.records.items import Gold
from neuralmedbench.records.vocabulary import Diagnosis
from neuralmedbench.scoring.kinds import kinds_apart
from neuralmedbench.scoring.matching import RIGHT, ReferenceAnswer, Relation, relation
from neuralmedbench.scoring.pairs import DIAGNOSES, FAIL, OUTSIDE, PASS, grade_diagnoses, read_pairs

FOUND = Path(os.environ.get("NMB_FOUND_ANSWERS", ""))
given = pytest.mark.skipif(not os.environ.get("NMB_FOUND_ANSWERS"), reason="NMB_FOUND_ANSWERS names no folder of answers")

PAIRS = """\
reference	answer	expected
acute subdural haematoma	chronic subdural haematoma	fail
acute subdural haematoma	subdural haematoma	fail
subdural haematoma	chronic subdural haematoma	pass
communicating hydrocephalus	obstructive hydrocephalus	fail
communicating hydrocephalus after subarachnoid haemorrhage	hydrocephalus	fail
atypical meningioma	anaplastic meningioma	fail
anaplastic oligodendroglioma	oligodendroglioma	fail
oligodendroglioma	anaplastic oligodendroglioma	pass
temporal lobe epilepsy	frontal lobe epilepsy	fail
drug-resistant epilepsy	epilepsy	fail
focal status epilepticus	generalised convulsive status epilepticus	fail
diabetic polyneuropathy	alcoholic polyneuropathy	fail
diabetic neuropathy	peripheral neuropathy	fail
peripheral neuropathy	diabetic neuropathy	pass
AMAN	AIDP	fail
relapsing-remitting multiple sclerosis	primary progressive multiple sclerosis	fail
ocular myasthenia gravis	generalised myasthenia gravis	fail
neurofibromatosis type 1	neurofibromatosis type 2	fail
neurofibromatosis type 1	NF1	pass
ataxia, spinocerebellar, type 3	SCA3	pass
ataxia, spinocerebellar, type 3	spinocerebellar ataxia	fail
Chiari malformation type I	Chiari malformation type II	fail
moderate and severe head injury	mild head injury	fail
moderate and severe head injury	traumatic brain injury	fail
moderate and severe head injury	cerebral contusion	pass
severe head injury	severe TBI	pass
mild TBI	concussion	pass
amnestic mild cognitive impairment	non-amnestic mild cognitive impairment	fail
traumatic subarachnoid haemorrhage	subarachnoid haemorrhage following head injury	pass
traumatic subarachnoid haemorrhage	subarachnoid haemorrhage	fail
meningitis caused by Listeria monocytogenes	meningitis	fail
meningitis caused by Listeria monocytogenes	listeria meningitis	pass
spinal muscular atrophy type 1	spinal muscular atrophy type 3	fail
left MCA stroke	right MCA stroke	fail
MuSK-positive myasthenia gravis	AChR-positive myasthenia gravis	fail
bilateral vestibular schwannoma	unilateral vestibular schwannoma	fail
septic cerebral venous sinus thrombosis	cerebral venous sinus thrombosis	fail
small cell lung cancer	non-small cell lung cancer	fail
stage 3 neuroblastoma	stage 4 neuroblastoma	fail
mantle cell lymphoma	lymphoma	fail
pneumonia caused by Klebsiella	pneumonia	fail
"""


@cache
def reference(name: str) -> ReferenceAnswer:
    return ReferenceAnswer.of(Gold(item_id="i", answer=name), vocabulary())


def kinds_of(entry: Diagnosis) -> dict[str, Diagnosis]:
    """Return the kind of each name of a kind of a diagnosis."""
    kinds = (kind for kind in kinds_apart(vocabulary()).diagnoses.values() if kind.key.startswith(f"{entry.key}/"))
    return {name: kind for kind in kinds for name in kind.terms}


@pytest.mark.parametrize("entry", [entry for entry in vocabulary().diagnoses.values() if entry.kinds], ids=lambda entry: entry.key)
def test_all_pairs_of_kinds_of_a_diagnosis(entry):
    kinds, apart = kinds_of(entry), kinds_apart(vocabulary())
    assert {*kinds} >= {*entry.narrower}
    for name in entry.narrower:
        assert relation(name, reference(entry.name)) in RIGHT
        assert relation(entry.name, reference(name)) is Relation.PARENT
        for answer in entry.narrower:
            narrower = kinds[name] in (kinds[answer], *apart.ancestors(kinds[answer].key))
            assert (relation(answer, reference(name)) in RIGHT) == narrower, f"{answer} for {name}"


def test_names_of_one_kind_are_one_and_a_wider_kind_has_kinds_of_its_own():
    migraine = kinds_of(vocabulary().diagnoses["migraine"])
    assert migraine["FHM"] is migraine["familial hemiplegic migraine"]
    assert migraine["FHM"].parent == migraine["hemiplegic migraine"].key
    assert migraine["classic migraine"] is not migraine["common migraine"]


def test_kinds_by_severity_course_cause_stage_and_side(tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS, encoding="utf-8")
    rows = grade_diagnoses(read_pairs(tmp_path / "pairs.tsv", DIAGNOSES), vocabulary())
    assert [row for row in rows if row["verdict"] != row["expected"]] == []


def judged_wrongly(folder: str) -> list[tuple[str, str]]:
    """Return the pairs of a file whose verdict is not the expected one; those that words cannot judge have none."""
    rows = grade_diagnoses(read_pairs(FOUND / folder / "pairs.tsv", DIAGNOSES), vocabulary())
    judged = [row for row in rows if row["expected"] in {PASS, FAIL} and row["relation"] != OUTSIDE]
    return [(row["reference"], row["answer"]) for row in judged if row["verdict"] != row["expected"]]


@given
def test_kinds_that_passed_for_one_another_do_no_more():
    assert judged_wrongly("kinds-of-one-diagnosis") == []
    with (FOUND / "kinds-of-one-diagnosis" / "pairs.tsv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.DictReader(file, delimiter="\t"))) == 22


@given
def test_names_on_which_grader_and_published_judge_differed_are_right_or_not_judged():
    """`I believe` is what was read of an answer in prose, not a name."""
    assert judged_wrongly("dxgpt-names") == [("Cystinuria", "I believe")]
