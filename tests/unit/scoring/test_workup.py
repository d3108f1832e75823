"""Measures of a work-up: six scripts whose values were worked out by hand."""

from __future__ import annotations

from math import log

import pytest

from fixtures.items import VOCABULARY
from fixtures.scoring import GOLD, ITEM, answered, differential, vocabulary
from neuralmedbench.records.examinations.inventory import EvidenceKind
from neuralmedbench.records.items import Gold
from neuralmedbench.records.requests import Fact, Inquiry
from neuralmedbench.records.scores import ParseStatus
from neuralmedbench.scoring.matching import ReferenceAnswer
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.scoring.workup import Candidate, read_candidates, read_work_up, without_candidates

FACTS = (
    Fact(name="examination", kind=EvidenceKind.NOTE, text="Examination: weak left arm."),
    Fact(name="cerebrospinal fluid", kind=EvidenceKind.RECORD, text="cerebrospinal fluid protein: 0.9 g/L"),
    Fact(name="FLAIR, axial", kind=EvidenceKind.PICTURES, text="FLAIR, axial:", sequence="FLAIR", plane="axial"),
    Fact(name="dwi, axial", kind=EvidenceKind.PICTURES, text="dwi, axial:", sequence="dwi", plane="axial"),
)
INQUIRY = Inquiry(
    facts=FACTS, max_questions=4, unknown="Not there.", left="{left} left.", closing="Final.", unclear="Name one.", again="Given already."
)
ESSENTIAL = ("FLAIR", "diffusion")
REFERENCE = ReferenceAnswer.of(Gold(item_id="i", answer="glioblastoma"), VOCABULARY)


def turn(right: float, wrong: float, request: str = "", other: str = "multiple sclerosis") -> str:
    lines = sorted([(right, "glioblastoma"), (wrong, other)], reverse=True)
    stated = "\n".join(f"{place}. {name} | {value}" for place, (value, name) in enumerate(lines, start=1))
    return f"CANDIDATES:\n{stated}\n" + (f"REQUEST: {request}" if request else f"DIFFERENTIAL:\n1. {lines[0][1]}")


SCRIPTS = {
    "ideal": (turn(0.4, 0.3, "FLAIR"), turn(0.6, 0.2, "DWI, to see restriction"), turn(0.9, 0.05)),
    "habitual": (
        turn(0.2, 0.5, "neurological examination"),
        turn(0.2, 0.5, "lumbar puncture"),
        turn(0.2, 0.5, "DWI"),
        turn(0.5, 0.3, "FLAIR"),
        turn(0.7, 0.2),
    ),
    "asks everything": (
        turn(0.3, 0.3, "FLAIR"),
        turn(0.5, 0.3, "CSF"),
        turn(0.4, 0.3, "examination"),
        turn(0.4, 0.3, "DWI"),
        turn(0.8, 0.1),
    ),
    "closes too early": (turn(0.1, 0.8),),
    "ignores evidence": (turn(0.3, 0.6, "FLAIR"), turn(0.3, 0.6, "DWI"), turn(0.3, 0.6)),
    "invents examinations": (
        turn(0.2, 0.5, "PET"),
        turn(0.2, 0.5, "MR angiography", other="meningioma"),
        turn(0.2, 0.5, "MRI", other="meningioma"),
        turn(0.5, 0.2, "FLAIR", other="meningioma"),
        turn(0.6, 0.2),
    ),
}
EXPECTED = {
    "ideal": {
        "essential_recall": 1.0, "not_needed": 0.0, "invalid_requests": 0.0, "authors_order": 1.0, "premature_closure": 0.0,
        "brier": 0.1**2 + 0.05**2, "log_loss": -log(0.9), "turns_to_diagnosis": 1, "mass_moved_right": 1.0,
        "leader_changed_without_evidence": None,
    },
    "habitual": {
        "essential_recall": 1.0, "not_needed": 0.5, "invalid_requests": 0.0, "authors_order": 0.0, "premature_closure": None,
        "brier": 0.3**2 + 0.2**2, "log_loss": -log(0.7), "turns_to_diagnosis": 4, "mass_moved_right": 2 / 4,
        "leader_changed_without_evidence": None,
    },
    "asks everything": {
        "essential_recall": 1.0, "not_needed": 0.5, "invalid_requests": 0.0, "authors_order": 1.0, "premature_closure": None,
        "brier": 0.2**2 + 0.1**2, "log_loss": -log(0.8), "turns_to_diagnosis": 2, "mass_moved_right": 2 / 4,
        "leader_changed_without_evidence": None,
    },
    "closes too early": {
        "essential_recall": 0.0, "not_needed": None, "invalid_requests": None, "authors_order": None, "premature_closure": 1.0,
        "brier": 0.9**2 + 0.8**2, "log_loss": -log(0.1), "turns_to_diagnosis": None, "mass_moved_right": None,
        "leader_changed_without_evidence": None,
    },
    "ignores evidence": {
        "essential_recall": 1.0, "not_needed": 0.0, "invalid_requests": 0.0, "authors_order": 1.0, "premature_closure": 0.0,
        "brier": 0.7**2 + 0.6**2, "log_loss": -log(0.3), "turns_to_diagnosis": None, "mass_moved_right": 0.0,
        "leader_changed_without_evidence": None,
    },
    "invents examinations": {
        "essential_recall": 0.5, "not_needed": 0.0, "invalid_requests": 3 / 4, "authors_order": None, "premature_closure": None,
        "brier": 0.4**2 + 0.2**2, "log_loss": -log(0.6), "turns_to_diagnosis": 4, "mass_moved_right": 1.0,
        "leader_changed_without_evidence": 2 / 3,
    },
}  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_six_scripts_have_the_values_that_were_worked_out_by_hand(script: str) -> None:
    found = read_work_up(INQUIRY, SCRIPTS[script], REFERENCE, ESSENTIAL).measures()
    assert found.keys() == EXPECTED[script].keys()
    for name, value in EXPECTED[script].items():
        assert found[name] == (None if value is None else pytest.approx(value, abs=1e-9)), name


def test_without_a_list_of_essential_examinations_nothing_is_said_about_them() -> None:
    found = read_work_up(INQUIRY, SCRIPTS["ideal"], REFERENCE).measures()
    assert [found[name] for name in ("essential_recall", "not_needed", "authors_order", "premature_closure")] == [None] * 4
    assert found["invalid_requests"] == 0.0


def test_what_was_given_already_is_an_invalid_request_and_brings_nothing() -> None:
    answers = (turn(0.2, 0.5, "FLAIR"), turn(0.4, 0.3, "the FLAIR again please"), turn(0.4, 0.3))
    read = read_work_up(INQUIRY, answers, REFERENCE, ESSENTIAL)
    assert read.given == ["FLAIR, axial"]
    assert read.measures()["invalid_requests"] == 0.5
    assert read.measures()["leader_changed_without_evidence"] == 0.0


def test_probabilities_that_cannot_be_read_leave_the_measures_undefined() -> None:
    assert read_candidates("CANDIDATES:\n1. glioblastoma\n2. multiple sclerosis\nREQUEST: FLAIR") == ()
    assert read_candidates("1. glioblastoma | 0.7") == (), "no such section"
    assert read_candidates("CANDIDATES:\n1. glioblastoma | 70") == (), "neither a probability nor per cent"
    found = read_work_up(INQUIRY, ("DIFFERENTIAL:\n1. glioblastoma",), REFERENCE).measures()
    assert (found["brier"], found["log_loss"], found["turns_to_diagnosis"]) == (None, None, None)


def test_a_final_answer_in_the_requested_form_keeps_the_form() -> None:
    text = f"CANDIDATES:\n1. glioblastoma | 0.7\n2. migraine | 0.2\n\n{differential('glioblastoma')}"

    def read(said: str, strategy: str) -> ParseStatus:
        (score,) = score_responses(
            [answered(said, strategy=strategy)], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, [], vocabulary=vocabulary()
        )
        assert score.differential[0] == "glioblastoma"
        return score.parse_status

    assert read(text, "workup") is ParseStatus.STRICT
    assert read(text, "direct") is ParseStatus.REPAIRED, "there nobody asked for candidates"
    assert read(f"Well. {text}", "workup") is ParseStatus.REPAIRED
    assert without_candidates("CANDIDATES:\n1. a | 0.5") == "CANDIDATES:\n1. a | 0.5"


def test_probabilities_above_one_in_all_are_scaled_down() -> None:
    assert read_candidates("**CANDIDATES:**\n1. glioblastoma | 0.9\n2. meningioma (60 %)") == (
        Candidate("glioblastoma", pytest.approx(0.6)),
        Candidate("meningioma", pytest.approx(0.4)),
    )
