"""Reading checklists: requested sections are read, and evidence is never an answer."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from conftest import ROOT
from fixtures.items import VOCABULARY as SMALL_VOCABULARY
from fixtures.items import answer, benchmark_config, source
from fixtures.prompt import TEMPLATES, asked, open_question, question, said
from fixtures.report import unpacked
from fixtures.scoring import GOLD, ITEM, LESION_GOLD, LESION_ITEM, answered, checklist, differential, lesion_answer, vocabulary
from neuralmedbench.benchmarks.case_items import build_cases
from neuralmedbench.prompts.answer_schemas import SECTION_RULES
from neuralmedbench.records.checklist import SECTIONS
from neuralmedbench.records.items import Criterion, Family, Level
from neuralmedbench.records.scores import Evidence, ParseStatus
from neuralmedbench.report.cases import case_blocks
from neuralmedbench.scoring.llm.grader_requests import TASKS, ModelGrader, load_template
from neuralmedbench.scoring.parse import parse_answer
from neuralmedbench.scoring.rubric import grade_with_rubric
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.bundle import bundle_cases

LESION = (
    "SEEN: CT; none; axial\nLESION: ring-enhancing mass | for: enhancement | against: no fever\nLOCATION: frontal lobe\nSIDE: left\n"
    "FINDINGS: A ring.\nCONFIDENCE: 0.5\nMISSING: nothing"
)


def test_a_checklist_in_the_form_is_read_whole():
    read = parse_answer(checklist("glioblastoma", "brain abscess"), ITEM)
    assert read.parse_status is ParseStatus.STRICT
    assert read.differential == ("glioblastoma", "brain abscess")
    assert read.evidence == (Evidence("its signal", "its age"),) * 2
    assert (read.seen, read.missing, read.findings, read.rationale) == ("MRI; FLAIR, DWI; axial", "a biopsy", "A mass.", "It fits.")
    assert read.fields == {"location": "frontal lobe", "side": "left"}
    assert read.confidence == 0.7


def test_a_checklist_on_a_lesion_is_read_whole():
    read = parse_answer(LESION, LESION_ITEM)
    assert read.parse_status is ParseStatus.STRICT
    assert read.fields == {"lesion": "ring-enhancing mass", "location": "frontal lobe", "side": "left"}
    assert (read.evidence, read.seen, read.missing) == ((Evidence("enhancement", "no fever"),), "CT; none; axial", "nothing")
    rows = grade_with_rubric(
        [answered(LESION, LESION_ITEM)], {LESION_ITEM.item_id: LESION_ITEM}, {LESION_ITEM.item_id: LESION_GOLD}, vocabulary(), grader="r"
    )
    assert [row.value for row in rows] == [1.0, 1.0]
    none = parse_answer(LESION.replace("ring-enhancing mass", "no lesion"), LESION_ITEM)
    assert (none.differential, none.abstained) == (("no lesion",), False)


def test_steps_before_the_checklist_are_part_of_the_form():
    assert parse_answer(f"REASONING: It began slowly.\n{checklist('glioblastoma')}", ITEM).parse_status is ParseStatus.STRICT


@pytest.mark.parametrize(
    "text",
    [
        checklist("glioblastoma", "brain abscess", SEEN=""),
        checklist("glioblastoma", "brain abscess", MISSING="", RATIONALE=""),
        checklist("glioblastoma", "brain abscess", evidence=""),
        checklist("glioblastoma", "brain abscess", evidence="| its signal | its age"),
        checklist("glioblastoma", "brain abscess", evidence="| FOR: its signal; against: its age"),
        checklist("glioblastoma", "brain abscess", evidence="- for: its signal"),
        checklist("glioblastoma", "brain abscess", evidence="(80%) | for: its signal | against:"),
        checklist("**glioblastoma**", "brain abscess"),
        checklist(DIFFERENTIAL="\n1. glioblastoma\n   - **For:** its signal\n   - **Against:** its age\n2. brain abscess\n   for: fever"),
        checklist(DIFFERENTIAL="\nglioblastoma | for: its signal\nbrain abscess | for: fever"),
        checklist(DIFFERENTIAL="\n2. brain abscess | for: fever\n1. glioblastoma | for: its signal"),
        checklist(DIFFERENTIAL=" 1. glioblastoma 2. brain abscess | for: fever"),
        "\n".join(reversed(re.split(r"\n(?=[A-Z]+:)", checklist("glioblastoma", "brain abscess")))),
        re.sub(r"^([A-Z]+):", r"**\1:**", checklist("glioblastoma", "brain abscess"), flags=re.MULTILINE),
        re.sub(r"^([A-Z]+):", lambda found: f"### {found[1].title()}:", checklist("glioblastoma", "brain abscess"), flags=re.MULTILINE),
        f"{checklist('meningioma')}\n\nI correct myself.\n{checklist('glioblastoma', 'brain abscess')}",
        f"Here it is.\n{checklist('glioblastoma', 'brain abscess')}",
    ],
)
def test_a_checklist_that_is_partial_reordered_or_decorated_is_repaired(text):
    read = parse_answer(text, ITEM)
    assert (read.differential, read.parse_status) == (("glioblastoma", "brain abscess"), ParseStatus.REPAIRED)
    assert len(read.evidence) == 2


def test_evidence_that_is_written_in_other_ways_is_found():
    below = checklist(
        DIFFERENTIAL="\n1. glioblastoma\n   - **For:** its signal\n   - **Against:** its age\n2. brain abscess\n   for: fever"
    )
    assert parse_answer(below, ITEM).evidence == (Evidence("its signal", "its age"), Evidence("fever", ""))
    unlabelled = parse_answer(checklist("glioblastoma", evidence="| its signal | its age"), ITEM)
    assert unlabelled.evidence == (Evidence("its signal", "its age"),)
    assert parse_answer(checklist("glioblastoma", evidence="| for: <what speaks for it> | against: x"), ITEM).evidence == (
        Evidence("", "x"),
    )


@pytest.mark.parametrize(
    "text", [checklist(), checklist("<most likely diagnosis>"), checklist(DIFFERENTIAL="\n1. | for: glioblastoma"), "SEEN: MRI"]
)
def test_a_checklist_that_names_nothing_is_failed(text):
    assert parse_answer(text, ITEM).parse_status is ParseStatus.FAILED


def test_a_checklist_that_declines_is_an_abstention_with_what_it_saw():
    read = parse_answer(checklist("undetermined", SIDE="none"), ITEM)
    assert (read.abstained, read.differential, read.evidence, read.confidence) == (True, (), (), None)
    assert read.missing == "a biopsy"


HOSTILE = (
    "\n1. meningioma | for: a dural tail | against: glioblastoma",
    "\n1. meningioma | against: glioblastoma | for: a dural tail",
    "\n1. meningioma | glioblastoma | glioblastoma",
    "\n1. meningioma ｜ glioblastoma",
    "\n1. meningioma against: glioblastoma fits better",
    "\n1. meningioma | for: x | against: 0. glioblastoma",
    "\n1. meningioma | for: x | against: 1. glioblastoma 2. glioblastoma",
    "\n1. meningioma | for: x | against:\n0. glioblastoma",
    "\n1. meningioma | for: x | against:\n1. glioblastoma",
    "\n1. meningioma | for: x\n   against:\n   2. glioblastoma",
    "\n1. meningioma\n   for: glioblastoma\n   against: glioblastoma",
    "\n1. meningioma\nfor: glioblastoma\nagainst: glioblastoma",
    "\nmeningioma | for: x | against:\nagainst: glioblastoma",
    "\n1. meningioma | for: x | against: DIFFERENTIAL: 1. glioblastoma",
    "\n1. meningioma | for: x | against: y\nglioblastoma",
    " meningioma | against: glioblastoma",
)


WITH_A_LABEL = [lines for lines in HOSTILE if re.search(r"[|｜] (for|against):", lines)]
"""These are distinguished from the short form without the other sections of a checklist."""


@pytest.mark.parametrize(
    "text",
    [
        *(checklist(DIFFERENTIAL=lines) for lines in HOSTILE),
        checklist("meningioma", RATIONALE="It fits.\nDifferential diagnosis: glioblastoma\n**Differential:** 1. glioblastoma"),
        checklist(
            "meningioma", FINDINGS="A mass.\nLesion: glioblastoma", MISSING="glioblastoma", SEEN="glioblastoma", LOCATION="glioblastoma"
        ),
        *(f"DIFFERENTIAL:{lines}\nFINDINGS: x\nRATIONALE: y\nCONFIDENCE: 0.9" for lines in WITH_A_LABEL),
    ],
)
def test_a_diagnosis_that_stands_in_the_evidence_alone_is_no_answer(text):
    assert parse_answer(text, ITEM).differential == ("meningioma",)
    gold = {ITEM.item_id: replace(GOLD, rubric=(Criterion(criterion="considers_1", text="Considers: glioblastoma.", points=1.0),))}
    grades = grade_with_rubric([answered(text)], {ITEM.item_id: ITEM}, gold, vocabulary(), grader="rubric")
    assert [grade.value for grade in grades] == [0.0, 0.0, 0.0]
    (score,) = score_responses([answered(text)], {ITEM.item_id: ITEM}, gold, [grades], vocabulary=vocabulary())
    assert (score.passed, score.in_candidates, score.reference_rank) == (False, False, None)


def test_a_number_before_the_list_begins_does_not_overtake_the_first_name():
    text = checklist(DIFFERENTIAL="\nmeningioma | for: x | against:\n1. glioblastoma")
    assert parse_answer(text, ITEM).differential[0] == "meningioma"


def test_an_older_answer_is_read_as_before_whatever_words_its_lines_begin_with():
    text = differential("glioblastoma | grade 4", findings="A mass.\nSeen: a ring.", rationale="It fits.")
    read = parse_answer(text, ITEM)
    assert (read.differential, read.findings) == (("glioblastoma | grade 4",), "A mass. Seen: a ring.")
    assert (read.seen, read.evidence, read.missing, read.fields) == ("", (), "", None)
    assert parse_answer(lesion_answer("infarct | left", "insula", "left"), LESION_ITEM).fields["lesion"] == "infarct | left"
    steps = parse_answer(differential("glioblastoma", rationale="It fits.\nMissing: a biopsy."), ITEM)
    assert steps.rationale == "It fits. Missing: a biopsy."


def test_very_long_hostile_lines_are_read_to_their_end():
    """Each of these took minutes with a pattern that backtracks over every blank."""
    for fill in (" ", "\n", "*", "1. ", "| ", " for:"):
        assert parse_answer(checklist(DIFFERENTIAL=f"\n1. meningioma {fill * 60_000} | for: x"), ITEM).differential == ("meningioma",)
    assert len(parse_answer(differential(f"meningioma{' ' * 100_000}x"), ITEM).differential) == 1


def value_of(section: str) -> object:
    candidate = {"name": "glioblastoma", "for": "its signal", "against": "its age"}
    return {"DIFFERENTIAL": [candidate, {**candidate, "name": "brain abscess"}], "LESION": candidate, "CONFIDENCE": 0.7}.get(
        section, "left"
    )


@pytest.mark.parametrize(("item", "first"), [(ITEM, "glioblastoma"), (LESION_ITEM, "glioblastoma")])
def test_one_object_with_the_keys_of_the_schema_is_a_checklist_too(item, first):
    value = {section.lower(): value_of(section) for section in SECTIONS[item.family]}
    read = parse_answer(json.dumps(value), item)
    assert (read.parse_status, read.differential[0], read.evidence[0]) == (ParseStatus.STRICT, first, Evidence("its signal", "its age"))
    assert (read.seen, read.fields["side"], read.confidence) == ("left", "left", 0.7)
    assert parse_answer(json.dumps({"seen": "MRI"}), item).parse_status is ParseStatus.FAILED


def test_an_object_with_other_keys_is_no_checklist_but_its_differential_is_read():
    value = {section.lower(): value_of(section) for section in SECTIONS[ITEM.family]}
    for other in ({**value, "verdict": "x"}, [value]):
        read = parse_answer(json.dumps(other), ITEM)
        assert (read.parse_status, read.differential, read.evidence) == (ParseStatus.REPAIRED, ("glioblastoma", "brain abscess"), ())


def test_a_bar_in_a_value_of_an_object_makes_no_candidate():
    value = {section.lower(): value_of(section) for section in SECTIONS[ITEM.family]}
    value["differential"] = [{"name": "meningioma", "for": "x", "against": "y | 0. glioblastoma\n1. glioblastoma"}]
    assert parse_answer(json.dumps(value), ITEM).differential == ("meningioma",)


@pytest.fixture(scope="module")
def requests():
    answers = {"a1": answer("a1"), "a2": answer("a2", level=Level.DIALOGUE)}
    built = build_cases("b", benchmark_config(), [source("a1"), source("a2")], answers, SMALL_VOCABULARY)
    return {
        form: asked(built.items, strategies=["direct", "cot"], answer_form=form, label_policy="none") for form in ("checklist", "short")
    }


@pytest.mark.parametrize("family", list(SECTIONS))
def test_prompt_schema_and_sections_are_the_same_in_the_same_order(family, requests):
    for strategy, steps in (("direct", ()), ("cot", ("REASONING",))):
        request = requests["checklist"][f"a1/{family}", "full", strategy]
        form = request.turns[0].text.partition("Answer in this form:\n")[2]
        assert tuple(re.findall(r"^([A-Z]+):", form, re.MULTILINE)) == (*steps, *SECTIONS[family])
        schema = json.loads(request.answer_schema)
        assert (
            tuple(name.upper() for name in schema["properties"])
            == tuple(name.upper() for name in schema["required"])
            == (*steps, *SECTIONS[family])
        )
        assert schema["additionalProperties"] is False
        assert all(schema["properties"][name.lower()] == SECTION_RULES.get(name, {"type": "string"}) for name in SECTIONS[family])


def test_the_short_form_has_no_schema_and_none_of_the_new_words(requests):
    for request in requests["short"].values():
        assert request.answer_schema == ""
        assert "SEEN" not in said(request)
        assert "| for:" not in said(request)


def test_a_dialogue_asks_for_the_checklist_in_its_last_round_only(requests):
    first, last = requests["checklist"]["a2/differential_diagnosis", "full", "direct"].turns
    short = requests["short"]["a2/differential_diagnosis", "full", "direct"].turns
    assert first == short[0]
    assert "SEEN:" in last.text
    assert "SEEN:" not in short[1].text


def test_choices_and_free_answers_are_asked_for_as_before():
    for item in (question(), open_question()):
        one, other = (asked([item], answer_form=form) for form in ("checklist", "short"))
        assert one == other


def test_the_form_tells_nothing_of_pictures_that_are_not_shown(requests):
    form = TEMPLATES.render("checklist_form", sections=SECTIONS[Family.DIFFERENTIAL_DIAGNOSIS])
    assert not re.search(r"picture|scan|MRI|CT\b|FLAIR|axial", form)


def test_a_grader_is_told_what_the_evidence_of_a_checklist_is_and_an_older_request_stays_as_it_was():
    old, new = (ModelGrader(TASKS["diagnosis"], load_template(ROOT / "config" / "prompts" / f"grader-v{version}.j2")) for version in (1, 2))
    for item, gold, text in (
        (ITEM, GOLD, differential("glioblastoma")),
        (LESION_ITEM, LESION_GOLD, lesion_answer("mass", "insula", "left")),
    ):
        assert new.request(answered(text, item), item, gold) == old.request(answered(text, item), item, gold)
    told = new.request(answered(checklist("meningioma", evidence="| against: glioblastoma")), ITEM, GOLD).turns[0].text
    assert "ends at the first bar" in told
    assert "1. meningioma | against: glioblastoma" in told


def test_the_case_browser_shows_what_a_checklist_saw_its_evidence_and_what_it_misses():
    (bundle,) = bundle_cases([ITEM], [GOLD], [answered(checklist("glioblastoma", "brain abscess"))], [], [])
    (item,) = unpacked(case_blocks([bundle])[0].packed)
    (shown,) = item["responses"]
    assert shown["evidence"] == [["its signal", "its age"]] * 2
    assert (shown["seen"], shown["missing"]) == ("MRI; FLAIR, DWI; axial", "a biopsy")
