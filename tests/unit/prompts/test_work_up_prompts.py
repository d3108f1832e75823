"""Requests of work-ups: what a case holds, what is given at the start, and the arms by the order of evidence."""

from __future__ import annotations

import pytest

from conftest import ROOT
from fixtures.confidence import open_item
from fixtures.items import VOCABULARY, answer, benchmark_config, source
from neuralmedbench.benchmarks.answer_leaks import sent_texts_of
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.benchmarks.told_by_arms import add_told_answers
from neuralmedbench.config.arms import load_arms
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.templates import Templates
from neuralmedbench.models.conversation import next_messages, released
from neuralmedbench.prompts.assemble import CaseMaterial, assemble
from neuralmedbench.records.examinations.inventory import RequestOutcome
from neuralmedbench.records.examinations.matching import REQUEST_KINDS
from neuralmedbench.records.items import Level
from neuralmedbench.records.requests import Request

TEMPLATES = Templates(ROOT / "config/prompts")
NOTES = ("Sudden weakness of the right arm.\n\nExamination: facial droop.\n\nMedication: warfarin.",)
RECORD = "age: 61 years\nsodium: 138 mmol/L\nINR: 2.9\ncerebrospinal fluid protein: 0.4 g/L\naudiogram: normal"
ORDERS = ("evidence-history", "evidence-together", "evidence-random", "evidence-author", "evidence-findings")


def requests(
    level: Level = Level.DIRECT, arms: tuple[str, ...] = ("full",), notes: tuple[str, ...] = NOTES, **changes: object
) -> dict[str, Request]:
    """Give the work-ups of one case by arm."""
    config = benchmark_config(arms=list(arms), strategies=["direct", "workup"], samples=1)
    one = source("c1", notes=notes, record=RECORD)
    told = answer("c1", level=level, essential=("spinal tap", "FLAIR"), **changes)
    variants = load_arms(ROOT / "config", config.arms, "b")
    made = add_told_answers(build_cases("b", config, [one], {"c1": told}, VOCABULARY), variants.values(), VOCABULARY)
    material = CaseMaterial(made.disclosures, arms=variants)
    return {row.arm: row for row in assemble(made.items, material, config, TEMPLATES) if row.strategy == "workup"}


@pytest.mark.parametrize("level", [Level.DIRECT, Level.DIALOGUE])
def test_the_inventory_comes_from_the_labels_of_the_case_and_the_history_is_given_at_the_start(level: Level) -> None:
    one = requests(level)["full"]
    assert one.inquiry is not None
    names = [fact.name for fact in one.inquiry.facts]
    assert names[:6] == ["examination", "medication", "blood tests", "cerebrospinal fluid", "audiogram", "FLAIR, axial"]
    first = one.turns[0].text
    assert "Sudden weakness of the right arm." in first
    assert "age: 61 years" in first
    assert "facial droop" not in first
    assert "warfarin" not in first
    assert not one.turns[0].images, "nothing is shown before it is asked for"


def test_each_turn_releases_one_examination_and_says_what_the_case_does_not_hold() -> None:
    one = requests()["full"]
    assert one.inquiry is not None
    answers = [f"REQUEST: {wish}" for wish in ("FLAIR", "MR angiography", "MRI", "FLAIR once more", "coagulation")]
    steps = released(one.inquiry, answers)
    assert [step.outcome for step in steps] == [
        RequestOutcome.GIVEN,
        RequestOutcome.ABSENT,
        RequestOutcome.UNCLEAR,
        RequestOutcome.GIVEN,
        RequestOutcome.GIVEN,
    ]
    assert [step.again for step in steps] == [False, False, False, True, False]
    messages = next_messages(one, answers, None)
    assert messages is not None
    told = [message for message in messages if message.role == "user"][1:]
    assert [bool(message.images) for message in told] == [True, False, False, False, False]
    assert "does not have that examination" in told[1].text
    assert "names no examination" in told[2].text
    assert "given already" in told[3].text
    assert "INR: 2.9" in told[4].text
    assert "Requests left: 1." in told[4].text
    assert next_messages(one, [*answers, "REQUEST: medication", "DIFFERENTIAL:\n1. stroke"], None) is None


def test_the_first_message_offers_kinds_and_a_request_that_begins_with_one_is_matched_within_it() -> None:
    notes = (
        "Sudden weakness.\n\nBedside tests of the ward: two of four words.\n\nSkin and hair: pale patches.\n\nRepeat prescriptions: warfarin.",
    )
    one = requests(notes=notes)["full"]
    assert f"<kind> is one of: {', '.join(REQUEST_KINDS)}." in one.turns[0].text
    answers = [
        f"REQUEST: {wish}"
        for wish in ("medication: any blood thinner?", "**general examination**: skin under Wood's lamp", "MRI: FLAIR", "CT: FLAIR")
    ]
    assert one.inquiry is not None
    steps = released(one.inquiry, answers)
    given = [one.inquiry.facts[step.place].text for step in steps if step.place is not None]
    assert ["warfarin" in given[0], "pale patches" in given[1], given[2].startswith("FLAIR")] == [True, True, True]
    assert [step.outcome for step in steps] == [RequestOutcome.GIVEN] * 3 + [RequestOutcome.UNCLEAR]


def test_an_answer_without_a_request_ends_the_work_up() -> None:
    one = requests()["full"]
    assert next_messages(one, ["CANDIDATES:\n1. stroke | 0.9\nDIFFERENTIAL:\n1. stroke"], None) is None


def test_the_order_of_evidence_is_that_of_the_arm_and_does_not_depend_on_what_is_asked_for() -> None:
    found = requests(arms=("full", *ORDERS), findings=("bright insula",))
    assert set(found) == {"full", *ORDERS}
    history, together, shuffled, author, findings = (found[arm] for arm in ORDERS)
    assert "facial droop" not in history.turns[0].text
    assert "CANDIDATES" in history.turns[0].text
    assert "facial droop" in together.turns[0].text
    assert together.turns[0].images
    assert "bright insula" in findings.turns[0].text
    assert "facial droop" in findings.turns[0].text
    assert not findings.turns[0].images
    # in the check for leaks they are what the arm discloses, not words of the template
    sent = sent_texts_of(open_item(0, "p"), found.values())
    assert "bright insula" in sent["disclosed"].text
    assert "bright insula" not in sent["template"].text
    full = found["full"]
    assert full.inquiry is not None
    assert author.inquiry is not None
    assert shuffled.inquiry is not None
    assert [fact.name for fact in author.inquiry.facts][:2] == ["cerebrospinal fluid", "FLAIR, axial"]
    assert sorted(fact.name for fact in shuffled.inquiry.facts) == sorted(fact.name for fact in full.inquiry.facts)
    for asked in ("REQUEST: FLAIR", "nothing at all"):
        messages = next_messages(author, [asked], None)
        assert messages is not None
        assert messages[-1].text.startswith("cerebrospinal fluid:")
    assert next_messages(history, ["DIFFERENTIAL:\n1. stroke"], None) is None


def test_the_essential_examinations_stay_in_gold() -> None:
    assert "spinal tap" not in str(requests(arms=("full", *ORDERS), findings=("bright insula",)))


def test_an_arm_of_work_ups_needs_the_strategy() -> None:
    config = benchmark_config(arms=["full", "evidence-random"], strategies=["direct"], samples=1)
    made = build_cases("b", config, [source("c1", notes=NOTES, record=RECORD)], {"c1": answer("c1")}, VOCABULARY)
    with pytest.raises(ConfigError, match="arm evidence-random: it is one of work-ups; add `workup`"):
        assemble(made.items, CaseMaterial(arms=load_arms(ROOT / "config", config.arms, "b")), config, TEMPLATES)


@pytest.mark.parametrize("few", [{}, {"workup_arms": ["full"]}])
def test_lists_of_cases_and_arms_restrict_what_is_worked_up_and_nothing_else(few: dict[str, list[str]]) -> None:
    config = benchmark_config(
        arms=["full", "no_image", "evidence-history"], strategies=["direct", "workup"], samples=1, workup_cases=["c2"], **few
    )
    cases = [source(name, notes=NOTES, record=RECORD) for name in ("c1", "c2")]
    made = build_cases("b", config, cases, {name: answer(name) for name in ("c1", "c2")}, VOCABULARY)
    found = assemble(made.items, CaseMaterial(arms=load_arms(ROOT / "config", config.arms, "b")), config, TEMPLATES)
    assert {(row.case_id, row.arm) for row in found if row.strategy == "workup"} == {
        ("c2", arm) for arm in config.arms if not few or arm != "no_image"
    }
    assert {(row.case_id, row.arm) for row in found if row.strategy == "direct"} == {
        (name, arm) for name in ("c1", "c2") for arm in config.arms[:2]
    }


def test_without_a_history_or_anything_to_ask_for_there_is_no_work_up() -> None:
    config = benchmark_config(arms=["full"], strategies=["direct", "workup"], samples=1)
    made = build_cases("b", config, [source("c1", notes=(), record="")], {"c1": answer("c1")}, VOCABULARY)
    with pytest.raises(ConfigError, match="strategy workup: there is no item that is asked in this way"):
        assemble(made.items, CaseMaterial(), config, TEMPLATES)
