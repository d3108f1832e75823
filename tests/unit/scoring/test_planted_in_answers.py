"""Errors planted in answers that a grader has judged: the model's words stay, every task of graders and juries are tested, no call is made twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from fixtures.models import running_server
from fixtures.planted import GOLD, GOLDS, ITEMS, URGENCY, Judge, judge_run
from fixtures.scoring import VOCABULARY_FILE, answered, checklist, differential, vocabulary
from neuralmedbench.files.tables import write_records
from neuralmedbench.models.ledger import read_ledger
from neuralmedbench.records.items import Family
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, PLANTED, Grade, GradeState, PlantedAnswer, response_key
from neuralmedbench.scoring.jury import grade_with_jury
from neuralmedbench.scoring.llm.model_grading import GraderTests, grade_table
from neuralmedbench.scoring.planted.checks import EditCheck, asked_of_all, believed_grades, check_grader, check_together, unused_criteria
from neuralmedbench.scoring.planted.edits import FAILED, PASSED
from neuralmedbench.scoring.planted.planting import References, plant_in_answers, planted_in_answers, planted_responses
from neuralmedbench.scoring.rubric import grade_with_rubric, make_grade

REFERENCES = References(ITEMS, GOLDS, vocabulary(), URGENCY)

FINDINGS = "A bright area is seen in the right insula. The bright area follows one territory."
RATIONALE = "The onset was sudden. Acute ischemic stroke fits best."
RIGHT = differential("acute ischemic stroke", "glioblastoma", "herpes simplex encephalitis", findings=FINDINGS, rationale=RATIONALE)
WRONG = differential("glioblastoma", "herpes simplex encephalitis", findings="A mass is seen.", rationale="It grew slowly.")
LESION = "LESION: infarct\nLOCATION: insula\nSIDE: right\nFINDINGS: A bright area is seen on the right.\nCONFIDENCE: 0.8"


def answer(place: int, text: str, family: Family = Family.DIFFERENTIAL_DIAGNOSIS, *, model: str = "fusion") -> Response:
    """Make the answer of a model about one of the patients."""
    item = ITEMS[f"demo/c{place}/{family}"]
    return answered(text, item, case_id=item.case_id, patient_id=item.patient_id, model=model)


def answers(model: str = "fusion") -> list[Response]:
    """Eight patients: two diagnoses are wrong, all lesions are right."""
    diagnoses = [answer(place, RIGHT if place < 6 else WRONG, model=model) for place in range(8)]
    return diagnoses + [answer(place, LESION, Family.LESION_RECOGNITION, model=model) for place in range(8)]


def by_rubric(responses: list[Response]) -> list[Grade]:
    return grade_with_rubric(responses, ITEMS, GOLDS, vocabulary(), grader="rubric")


def planted(responses: list[Response], grades: list[Grade] | None = None, patients: int = 8) -> list[PlantedAnswer]:
    return plant_in_answers(responses, by_rubric(responses) if grades is None else grades, REFERENCES, patients=patients)


def edits_of(text: str, family: Family = Family.DIFFERENTIAL_DIAGNOSIS) -> dict[str, str]:
    """Return what each edit makes of an answer that the default grader has judged."""
    return {row.edit: row.text for row in planted([answer(0, text, family)]) if row.base}


DENIED = (
    "FINDINGS: It is not the case that a bright area is seen in the right insula. It is not the case that the bright area follows one territory.\n"
    "RATIONALE: It is not the case that the onset was sudden. It is not the case that acute ischemic stroke fits best."
)
REORDERED = (
    "FINDINGS: The bright area follows one territory. A bright area is seen in the right insula.\n"
    "RATIONALE: Acute ischemic stroke fits best. The onset was sudden."
)


def test_an_edit_changes_what_it_is_about_and_leaves_the_other_words_of_the_model() -> None:
    found = edits_of(RIGHT)
    told = f"FINDINGS: {FINDINGS}\nRATIONALE: {RATIONALE}"
    assert RIGHT.count(told) == 1
    assert found["negation"] == RIGHT.replace("1. acute", "1. no evidence of acute").replace(told, DENIED)
    assert found["sentences_reordered"] == RIGHT.replace(told, REORDERED)
    assert found["ranks_exchanged"] == RIGHT.replace(
        "1. acute ischemic stroke\n2. glioblastoma", "1. glioblastoma\n2. acute ischemic stroke"
    )
    assert found["padding"].startswith(RIGHT.partition("\nCONFIDENCE")[0])
    assert found["urgent_dropped"].startswith("DIFFERENTIAL:\n1. glioblastoma\nFINDINGS: A bright area")
    assert "stroke" not in found["rival"], "nor the argument that names it"
    assert found["rival"].partition("\n2. ")[2] == RIGHT.partition("\n2. ")[2].replace(" Acute ischemic stroke fits best.", "")
    side = edits_of(LESION, Family.LESION_RECOGNITION)["side"]
    assert side == LESION.replace("SIDE: right", "SIDE: left").replace("on the right", "on the left")


def test_sections_that_only_a_checklist_has_stay_and_evidence_goes_with_the_ranks_that_change() -> None:
    text = checklist("acute ischemic stroke", "glioblastoma", FINDINGS="A bright area is seen.", RATIONALE="The onset was sudden.")
    found = edits_of(text)
    for edit, changed in (("padding", {"RATIONALE"}), ("ranks_exchanged", {"DIFFERENTIAL", "1", "2"})):
        kept = [line for line in text.splitlines() if line[: max(line.find(":"), 1)].split(".")[0] not in changed]
        assert [line for line in kept if line not in found[edit].splitlines()] == [], edit
    assert "1. glioblastoma\n2. acute ischemic stroke\n" in found["ranks_exchanged"]


@pytest.mark.parametrize(
    ("edit", "text"),
    [
        ("side", LESION.replace("on the right", "on the right in a left-handed man")),
        ("sentences_reordered", RIGHT.replace("The bright area follows", "It follows")),
        ("ranks_exchanged", RIGHT.replace("glioblastoma", "cerebral infarction")),
    ],
)
def test_an_edit_is_left_out_where_its_effect_is_not_sure(edit: str, text: str) -> None:
    family = Family.LESION_RECOGNITION if text.startswith("LESION") else Family.DIFFERENTIAL_DIAGNOSIS
    plain = LESION if text.startswith("LESION") else RIGHT
    assert edit in edits_of(plain, family)
    assert edit not in edits_of(text, family)


@pytest.mark.parametrize("text", [f"I think this is a stroke.\n{RIGHT}", f"{RIGHT}\n{RIGHT}", "The diagnosis is acute ischemic stroke."])
def test_an_answer_whose_sections_cannot_be_told_apart_is_left_out(text: str) -> None:
    assert edits_of(text) == {}


def test_an_answer_that_failed_gets_only_what_must_not_lift_it() -> None:
    rows = planted([answer(0, WRONG)])
    assert {row.edit: row.base for row in rows} == {FAILED: "", "padding_wrong": FAILED, "injection": FAILED}
    (base,) = [row for row in rows if not row.base]
    assert base.text == WRONG
    assert base.expected[CORE_DIAGNOSIS] is False


def test_other_arms_and_answers_without_a_grade_are_left_out() -> None:
    assert planted([answered(RIGHT, ITEMS["demo/c0/differential_diagnosis"], arm="no_image")]) == []
    assert planted([answer(0, RIGHT)], []) == []
    graded = by_rubric([answer(0, RIGHT)])
    assert planted([answer(0, WRONG)], graded) == [], "a grade of another text is none of this one"


def test_every_patient_counts_once_and_what_was_edited_is_not_graded_again() -> None:
    rows = planted(answers(), patients=3)
    for edit in {row.edit for row in rows if row.base}:
        own = [row for row in rows if row.edit == edit]
        assert len({row.patient_id for row in own}) == len(own) <= 3
    asked = planted_responses(rows, ITEMS, 3)
    assert {row.strategy for row in asked} == {row.edit for row in rows} - {PASSED, FAILED}
    assert {row.model for row in asked} == {PLANTED}


def test_the_default_grader_detects_what_is_planted_in_answers() -> None:
    rows = planted(answers())
    found = check_grader(rows, by_rubric(planted_responses(rows, ITEMS, 8)))
    assert {check.edit for check in found} == {
        "side", "negation", "rival", "urgent_dropped", "harmful_statement", "ranks_exchanged", "sentences_reordered", "padding",
        "padding_wrong", "injection",
    }  # fmt: skip
    missed = [check for check in found if check.criterion in (CORE_DIAGNOSIS, MAIN_CONDITION) and check.detected < check.n]
    assert missed == []


def judged(rows: list[PlantedAnswer], decide: Mapping[str, float]) -> list[Grade]:
    """Grade edited answers as was expected, or by edit."""
    by_key = {(row.item_id, row.edit): row for row in rows}
    return [
        make_grade(
            response,
            "g",
            CORE_DIAGNOSIS,
            value=decide.get(response.strategy, float(by_key[response.item_id, response.strategy].expected.get(CORE_DIAGNOSIS, True))),
            weight=1.0,
            explanation="e",
        )
        for response in planted_responses(rows, ITEMS, 8)
    ]


def test_over_several_models_a_patient_counts_once_with_the_mean() -> None:
    rows = planted(answers())
    sees, blind = judged(rows, {}), judged(rows, {"rival": 1.0})
    (check,) = [
        one
        for one in check_together([(rows, sees), (rows, blind)])
        if (one.edit, one.must) == ("rival", "fall") and one.criterion == CORE_DIAGNOSIS
    ]
    assert (check.n, check.detected) == (6, 3.0)


def test_a_grader_that_misses_errors_in_the_answers_of_a_model_is_not_used_for_them_and_is_for_others() -> None:
    grades, unused = {}, {}
    for model, blind in (("fusion", {"rival": 1.0}), ("other", {})):
        responses = answers(model)
        given = [make_grade(row, "g", CORE_DIAGNOSIS, value=float(row.text != WRONG), weight=1.0, explanation="e") for row in responses]
        rows = planted(responses, given)
        grades[model] = [*given, *judged(rows, blind)]
        own = planted_in_answers(responses, grades[model], REFERENCES)
        assert own == rows, "what was planted follows from the grades"
        (unused[model],) = believed_grades([grades[model]], [], [[]], in_answers=[own], floor=0.8, confidence=0.95)
    assert unused["fusion"] == []
    assert unused["other"] == [grade for grade in grades["other"] if grade.model == "other"], "planted answers are no answers"


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Judge]]:
    """Graders on this machine: one sees every error, one none, one does what answers tell it."""
    with running_server(Judge()) as ideal, running_server(Judge(blind=True)) as blind, running_server(Judge(obedient=True)) as obedient:
        yield {"ideal": ideal, "blind": blind, "obedient": obedient}


def grade(task: str, server: Judge, folder: Path, name: str = "judge", *, tested: int = 8) -> list[Grade]:
    """Grade the answers of a model as the rule does."""
    folder.mkdir(parents=True, exist_ok=True)
    write_records(folder / "responses.parquet", Response, answers(), key=response_key)
    run = judge_run(task, server.address, folder / f"{name}.jsonl", name)
    known = {"vocabulary": VOCABULARY_FILE, "grader": run, "tests": GraderTests(in_answers=tested)}
    return grade_table(folder / "responses.parquet", ITEMS, GOLDS, **known)


def below(grades: list[Grade]) -> set[tuple[str, str]]:
    """Return the edits and criteria of which a grader is shown to detect too little in answers."""
    return {(check.edit, check.criterion) for check in checks_of(grades) if check.below(0.8, 0.95)}


def checks_of(grades: list[Grade]) -> list[EditCheck]:
    rows = planted_in_answers(answers(), grades, REFERENCES)
    return check_grader(rows, [grade for grade in grades if grade.model == PLANTED])


VERDICTS_FALL = {
    (edit, name) for edit in ("negation", "rival", "urgent_dropped", "ranks_exchanged") for name in (CORE_DIAGNOSIS, MAIN_CONDITION)
}
MISSED = {
    ("diagnosis", "blind"): VERDICTS_FALL | {("side", CORE_DIAGNOSIS)},
    ("diagnosis", "obedient"): set(),
    ("errors", "blind"): {
        ("side", "error.wrong_side"), ("negation", "error.missed_lesion"), ("urgent_dropped", "error.missing_differential"),
        ("invented_finding", "error.hallucinated_finding"),
    },
    ("reasoning", "blind"): {("negation", "reasoning.completeness"), ("negation", "reasoning.factuality")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("ideal", "diagnosis"),
        ("blind", "diagnosis"),
        ("obedient", "diagnosis"),
        ("blind", "errors"),
        ("blind", "reasoning"),
        *(pytest.param(kind, task, marks=pytest.mark.long) for kind in ("ideal", "obedient") for task in ("errors", "reasoning")),
    ],
)
def test_graders_of_every_task_are_told_apart_by_errors_in_answers(
    task: str, kind: str, servers: dict[str, Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "not-a-key")
    before = len(servers[kind].bodies)
    grades = grade(task, servers[kind], tmp_path)
    asked = len(servers[kind].bodies) - before
    assert below(grades) == MISSED.get((task, kind), set())
    assert {(row.state, row.explanation) for row in grades if row.state is not GradeState.OK} == set()
    assert len(read_ledger(tmp_path / "judge.jsonl")) == asked == len({(ITEMS[row.item_id].family, row.text_sha256) for row in grades})
    again = grade(task, servers[kind], tmp_path)
    assert [(row.criterion, row.value) for row in again] == [(row.criterion, row.value) for row in grades]
    assert len(servers[kind].bodies) - before == asked, "what is in the ledger is not asked again"


def test_an_obedient_grader_is_seen_by_the_injection_into_answers_that_it_failed(
    servers: dict[str, Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "not-a-key")
    found = {(one.edit, one.criterion): (one.detected, one.n) for one in checks_of(grade("diagnosis", servers["obedient"], tmp_path))}
    assert found["injection", CORE_DIAGNOSIS] == (0, 2)
    assert found["padding_wrong", CORE_DIAGNOSIS] == (2, 2)


def test_a_grader_that_is_not_to_be_tested_is_asked_about_the_answers_alone(
    servers: dict[str, Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "not-a-key")
    grades = grade("diagnosis", servers["ideal"], tmp_path, tested=0)
    assert {row.model for row in grades} == {"fusion"}
    assert planted_in_answers(answers(), grades, REFERENCES) == []


@pytest.mark.parametrize(
    ("majority", "task"),
    [
        ("ideal", "diagnosis"),
        ("blind", "diagnosis"),
        ("blind", "errors"),
        pytest.param("ideal", "errors", marks=pytest.mark.long),
        *(pytest.param(majority, "reasoning", marks=pytest.mark.long) for majority in ("ideal", "blind")),
    ],
)
def test_a_jury_is_tested_by_what_its_members_say_together(
    task: str, majority: str, servers: dict[str, Judge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMB_TEST_KEY", "not-a-key")
    kinds = [majority, majority, "blind" if majority == "ideal" else "ideal"]
    members = {f"m{place}": grade(task, servers[kind], tmp_path / str(place), f"m{place}") for place, kind in enumerate(kinds)}
    grades = grade_with_jury(asked_of_all(members), jury="jury", rule="majority")
    assert below(grades) == (MISSED[task, "blind"] if majority == "blind" else set())
    assert unused_criteria(checks_of(grades), 0.8, 0.95) == {name for _, name in below(grades)}
    assert any(check.n >= 6 for check in checks_of(grades)), "most members judged most answers alike"
    assert GOLD.answer in RIGHT
