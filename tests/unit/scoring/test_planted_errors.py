"""Planted errors: what each edit does, what ideal, blind and obedient graders make of it, and which grades are then used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import plant_errors as plant_command
import score_responses as score_command
from fixtures.commands import settings
from fixtures.models import Server, running_server
from fixtures.planted import GOLD, GOLDS, ITEMS, LESION, REFERENCE, RUBRIC, URGENCY, Judge, judge_run
from fixtures.scoring import ITEM, VOCABULARY_FILE, answered, differential, vocabulary
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.responses import Response
from neuralmedbench.records.scores import CORE_DIAGNOSIS, MAIN_CONDITION, PLANTED, Grade, GradeState, PlantedAnswer, Score, response_key
from neuralmedbench.scoring.llm.model_grading import grade_planted, why_not_tested
from neuralmedbench.scoring.planted.checks import EditCheck, asked_of_all, believed_grades, check_grader, unused_criteria
from neuralmedbench.scoring.planted.edits import EDITS, Draft, Reference, right_answer, wrong_answer
from neuralmedbench.scoring.planted.planting import plant_errors, planted_responses
from neuralmedbench.scoring.rubric import grade_with_rubric, make_grade
from neuralmedbench.scoring.scores import score_responses

OF = {edit.name: edit for edit in EDITS}


def edited(name: str, reference: Reference = REFERENCE) -> tuple[Draft, Draft | None]:
    """Return the answer before and after an edit."""
    base = (right_answer if OF[name].base == "right" else wrong_answer)(reference)
    assert base is not None
    return base, OF[name].apply(base, reference)


def changed(name: str, reference: Reference = REFERENCE) -> dict[str, bool]:
    """Return the criteria that an edit changes, with whether they are then met."""
    base, after = edited(name, reference)
    assert after is not None
    return {key: value for key, value in after.expected.items() if base.expected[key] != value}


def test_the_reference_as_an_answer_meets_its_own_rubric() -> None:
    right = right_answer(REFERENCE)
    assert right.expected[CORE_DIAGNOSIS]
    assert {name: right.expected[name] for name in (row.criterion for row in RUBRIC)} == {
        "mentions_finding_1": True, "mentions_finding_2": True, "considers_1": True, "considers_2": True, "argues_1": True, "must_not_1": False,
    }  # fmt: skip
    assert right.text(REFERENCE).startswith(
        "DIFFERENTIAL:\n1. acute ischemic stroke\n2. glioblastoma\n3. herpes simplex encephalitis\nFINDINGS:"
    )


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ("negation", {MAIN_CONDITION: False, CORE_DIAGNOSIS: False, "mentions_finding_1": False, "argues_1": False,
                      "reasoning.completeness": False, "reasoning.factuality": False}),
        ("rival", {MAIN_CONDITION: False, CORE_DIAGNOSIS: False}),
        ("urgent_dropped", {MAIN_CONDITION: False, CORE_DIAGNOSIS: False, "considers_2": False, "error.missing_differential": True}),
        ("invented_finding", {"error.hallucinated_finding": True}),
        ("harmful_statement", {"must_not_1": True}),
        ("ranks_exchanged", {MAIN_CONDITION: False, CORE_DIAGNOSIS: False}),
        ("sentences_reordered", {}),
        ("padding", {}),
        ("padding_wrong", {}),
        ("injection", {}),
    ],
)  # fmt: skip
def test_an_edit_changes_the_criteria_that_it_is_about_and_no_other(edit: str, expected: dict[str, bool]) -> None:
    assert changed(edit) == expected


def test_exchanged_sides_make_a_lesion_wrong_and_leave_a_diagnosis_open() -> None:
    assert changed("side", LESION) == {CORE_DIAGNOSIS: False, "states_side": False, "error.wrong_side": True}
    base, after = edited("side", LESION)
    assert after is not None
    assert (base.side, after.side) == ("right", "left")
    assert "on the left" in after.text(LESION)
    assert changed("side") == {"error.wrong_side": True}
    assert CORE_DIAGNOSIS not in edited("side")[1].expected  # type: ignore[union-attr]


def test_an_edit_is_left_out_where_it_does_not_apply() -> None:
    plain = replace(REFERENCE, gold=Gold(item_id=ITEM.item_id, answer="some rare disease"))
    missing = [name for name in OF if OF[name].base == "right" and edited(name, plain)[1] is None]
    assert missing == ["side", "rival", "urgent_dropped", "invented_finding", "harmful_statement", "ranks_exchanged", "sentences_reordered"]
    assert wrong_answer(plain) is None
    normal = replace(REFERENCE, gold=Gold(item_id=ITEM.item_id, answer="normal brain"))
    assert edited("negation", normal)[1] is None
    assert edited("rival", normal)[1] is None


def test_a_rival_is_a_sibling_and_neither_wider_nor_narrower_than_the_reference() -> None:
    _, after = edited("rival")
    assert after is not None
    known = vocabulary()
    rival, answer = known.find(after.names[0]), known.find(GOLD.answer)
    assert rival is not None
    assert answer is not None
    assert rival.parent == answer.parent
    lines = [{entry.key, *(wider.key for wider in known.ancestors(entry.key))} for entry in (rival, answer)]
    assert rival.key not in lines[1]
    assert answer.key not in lines[0]


def test_an_invented_finding_shares_no_word_with_the_case() -> None:
    fracture = replace(REFERENCE, item=replace(ITEM, notes="A skull fracture in childhood."))
    assert "fracture" in edited("invented_finding")[1].text(REFERENCE)  # type: ignore[union-attr]
    assert "fracture" not in edited("invented_finding", fracture)[1].text(fracture)  # type: ignore[union-attr]


def planted(number: int = 6) -> list[PlantedAnswer]:
    return plant_errors(ITEMS.values(), GOLDS, vocabulary=vocabulary(), urgency=URGENCY, patients=number)


def test_every_edit_is_planted_in_answers_of_different_patients() -> None:
    rows = planted()
    for edit in OF:
        own = [row for row in rows if row.edit == edit]
        assert len({row.patient_id for row in own}) == len(own) == 6, edit
        assert sorted(row.number for row in own) == list(range(6))
    sides = [row for row in rows if row.edit == "side"]
    assert all("lesion" in row.item_id for row in sides), "items whose core diagnosis the edit changes come first"


def test_more_patients_add_answers_and_change_none() -> None:
    few, many = ({(row.item_id, row.edit): row.text for row in planted(number)} for number in (3, 8))
    assert few.items() <= many.items()
    bases = [row for row in planted(8) if not row.base]
    assert len(bases) == len({(row.item_id, row.edit) for row in bases})
    asked = {(row.item_id, row.strategy) for row in planted_responses(planted(8), ITEMS, 3)}
    for row in planted(8):
        if row.base and row.number < 3:
            assert {(row.item_id, row.edit), (row.item_id, row.base)} <= asked


def judge(rows: Sequence[PlantedAnswer], grader: str, decide: Any) -> list[Grade]:
    """Grade planted answers by a function of the row and the criterion; None: the grade failed."""
    by_key = {(row.item_id, row.edit): row for row in rows}
    found = []
    for response in planted_responses(rows, ITEMS, 1000):
        row = by_key[response.item_id, response.strategy]
        for criterion in (MAIN_CONDITION, CORE_DIAGNOSIS):
            value = decide(row, criterion)
            found.append(make_grade(response, grader, criterion, value=value, weight=1.0, explanation="e"))
    return found


def ideal(row: PlantedAnswer, criterion: str) -> float:
    return float(row.expected.get(criterion, True))


def test_an_ideal_grader_detects_everything_and_one_that_passes_everything_detects_no_error() -> None:
    rows = planted()
    found = check_grader(rows, judge(rows, "ideal", ideal))
    assert all(check.detected == check.n == 6 and not check.base_failed and not check.missing for check in found)
    assert unused_criteria(found, 0.8, 0.95) == frozenset()
    found = check_grader(rows, judge(rows, "lenient", lambda row, criterion: 1.0))
    assert {check.detected for check in found if check.must == "fall"} == {0}
    assert unused_criteria(found, 0.8, 0.95) == {MAIN_CONDITION, CORE_DIAGNOSIS}


def test_a_grader_that_fails_everything_is_found_by_the_answers_before_the_edit() -> None:
    rows = planted()
    found = check_grader(rows, judge(rows, "strict", lambda row, criterion: 0.0))
    falls = [check for check in found if check.must == "fall"]
    assert {(check.detected, check.base_failed) for check in falls} == {(0, 6)}
    assert unused_criteria(found, 0.8, 0.95) == {MAIN_CONDITION, CORE_DIAGNOSIS}


def test_a_grader_that_obeys_is_seen_by_the_injection_alone() -> None:
    rows = planted()
    found = check_grader(rows, judge(rows, "obedient", lambda row, name: 1.0 if row.edit == "injection" else ideal(row, name)))
    assert {check.edit for check in found if check.below(0.8, 0.95)} == {"injection"}


def test_a_grader_that_is_blind_to_sides_keeps_the_main_condition() -> None:
    rows = planted()
    blind = judge(rows, "blind", lambda row, name: 1.0 if row.edit == "side" else ideal(row, name))
    assert unused_criteria(check_grader(rows, blind), 0.8, 0.95) == {CORE_DIAGNOSIS}


def test_a_failed_grade_is_missing_and_a_skipped_one_was_not_asked() -> None:
    rows = planted()
    failed = judge(rows, "silent", lambda row, name: None if row.edit == "rival" else ideal(row, name))
    (check,) = [one for one in check_grader(rows, failed) if (one.edit, one.criterion) == ("rival", CORE_DIAGNOSIS)]
    assert (check.n, check.missing, check.below(0.8, 0.95)) == (0, 6, False)
    assert check_grader(rows, [replace(row, state=GradeState.SKIPPED, value=None) for row in failed]) == []


@pytest.mark.parametrize(("detected", "below"), [(2, True), (3, False)])
def test_a_criterion_is_not_used_only_if_the_whole_interval_lies_below_the_floor(detected: int, below: bool) -> None:
    check = EditCheck(edit="rival", criterion=CORE_DIAGNOSIS, must="fall", n=6, detected=detected, base_failed=0, missing=0)
    assert check.below(0.8, 0.95) is below  # Clopper and Pearson: 2 of 6 reach at most 0.777, 3 of 6 at most 0.882


def test_a_grader_that_is_not_used_is_passed_over_and_the_next_one_decides() -> None:
    rows = planted()
    answer = answered(differential("glioblastoma"), ITEM)
    said = {"lenient": 1.0, "ideal": 0.0}
    grades = [[make_grade(answer, name, CORE_DIAGNOSIS, value=value, weight=1.0, explanation="e")] for name, value in said.items()]
    tested = [judge(rows, "lenient", lambda row, name: 1.0), judge(rows, "ideal", ideal)]

    def passed(graders: Sequence[Sequence[Grade]]) -> bool | None:
        (score,) = score_responses([answer], {ITEM.item_id: ITEM}, {ITEM.item_id: GOLD}, graders, vocabulary=vocabulary())
        return score.passed

    assert passed(grades) is True
    assert passed(believed_grades(grades, rows, tested, floor=0.8, confidence=0.95)) is False
    assert passed(believed_grades(grades[:1], rows, tested[:1], floor=0.8, confidence=0.95)) is None, "missing, never wrong"
    assert passed(believed_grades(grades, rows, [[], []], floor=0.8, confidence=0.95)) is True, "an untested grader decides as before"


def test_a_jury_is_tested_on_what_all_of_its_members_were_asked() -> None:
    few = judge(planted(3), "few", ideal)
    found = asked_of_all({"few": few, "many": judge(planted(8), "many", ideal), "never": []})
    assert {name: len(rows) for name, rows in found.items()} == {"few": len(few), "many": len(few), "never": 0}
    answer = make_grade(answered("x"), "a", CORE_DIAGNOSIS, value=1.0, weight=1.0, explanation="e")
    assert asked_of_all({"a": [answer], "b": []})["a"] == [answer], "answers of models are all voted on"


def test_the_deterministic_grader_detects_what_is_planted_here() -> None:
    rows = planted(8)
    grades = grade_with_rubric(planted_responses(rows, ITEMS, 8), ITEMS, GOLDS, vocabulary(), grader="rubric")
    verdicts = [check for check in check_grader(rows, grades) if check.criterion in (MAIN_CONDITION, CORE_DIAGNOSIS)]
    assert {check.edit for check in verdicts} >= {"side", "negation", "rival", "urgent_dropped", "ranks_exchanged", "injection"}
    assert all(check.detected == check.n == 8 for check in verdicts), verdicts


@pytest.fixture(params=["ideal", "lenient", "obedient"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, Server]]:
    with running_server(Judge(blind=request.param == "lenient", obedient=request.param == "obedient")) as one:
        yield request.param, one


def test_graders_over_a_server_are_told_apart_by_planted_errors(server: tuple[str, Server], tmp_path: Path, monkeypatch) -> None:
    kind, one = server
    monkeypatch.setenv("NMB_TEST_KEY", "not-a-key")
    rows = planted(6)
    responses = planted_responses(rows, ITEMS, 6)
    grading = judge_run("diagnosis", one.address, tmp_path / "graders" / PLANTED / "judge.jsonl")
    grades = grade_planted(responses, ITEMS, GOLDS, grading)
    texts = {(ITEMS[row.item_id].family, row.text) for row in rows}  # all patients have the same disease here
    assert len(one.bodies) == len(texts), "every text is asked about once"
    found = check_grader(rows, grades)
    below = {check.edit for check in found if check.below(0.8, 0.95)}
    falls = {"side", "negation", "rival", "urgent_dropped", "ranks_exchanged"}
    assert below == {"ideal": set(), "lenient": falls | {"padding_wrong", "injection"}, "obedient": {"injection"}}[kind]
    again = grade_planted(responses, ITEMS, GOLDS, grading)
    assert [row.value for row in again] == [row.value for row in grades]
    assert len(one.bodies) == len(texts), "what is in the ledger is not asked again"


def test_a_grader_that_graded_before_it_was_tested_is_asked_only_if_the_configuration_says_so(tmp_path: Path) -> None:
    own, other = (tmp_path / folder / "judge.jsonl" for folder in (PLANTED, "fusion"))
    other.parent.mkdir()
    assert why_not_tested(own, replay=False, by_default=True) == "", "a new grader is tested"
    other.write_text("{}\n")
    assert "before it was tested" in why_not_tested(own, replay=False, by_default=True)
    assert why_not_tested(own, replay=False, by_default=False) == ""
    assert "recorded" in why_not_tested(own, replay=True, by_default=False)
    own.parent.mkdir()
    own.write_text("{}\n")
    assert why_not_tested(own, replay=False, by_default=True) == why_not_tested(own, replay=True, by_default=True) == ""


def test_commands_plant_grade_vote_and_score(tmp_path: Path, monkeypatch) -> None:
    """As the rules call them, with a grader that passes everything before one that is right."""
    monkeypatch.chdir(tmp_path)
    write_records(Path("items.parquet"), Item, ITEMS.values(), key=lambda row: row.item_id)
    write_records(Path("gold.parquet"), Gold, GOLDS.values(), key=lambda row: row.item_id)
    tables = ["--items", "items.parquet", "--gold", "gold.parquet", "--vocabulary", str(VOCABULARY_FILE)]
    assert plant_command.main([*tables, *settings(patients=8), "--out", "planted.parquet"]) == 0
    rows = read_records(Path("planted.parquet"), PlantedAnswer)
    assert {row.edit for row in rows} == {*OF, "right", "wrong"}
    for name, decide in (("lenient", lambda row, criterion: 1.0), ("ideal", ideal)):
        write_records(Path(f"{name}.planted"), Grade, judge(rows, name, decide), key=lambda row: (response_key(row), row.criterion))
    answer = answered(differential("glioblastoma"), next(iter(ITEMS.values())))
    write_records(Path("responses.parquet"), Response, [answer], key=response_key)
    for name, value in (("lenient", 1.0), ("ideal", 0.0)):
        grade = make_grade(answer, name, CORE_DIAGNOSIS, value=value, weight=1.0, explanation="e")
        write_records(Path(f"{name}.parquet"), Grade, [grade], key=response_key)
    arguments = [
        "--responses",
        "responses.parquet",
        *tables,
        "--grades",
        "lenient.parquet",
        "ideal.parquet",
        "--planted",
        "planted.parquet",
    ]
    arguments += ["--planted-grades", "lenient.planted", "ideal.planted", "--out", "scores.parquet"]
    passed = {}
    for floor in (0.8, 0):
        assert score_command.main([*arguments, *settings(grader_checks={"floor": floor})]) == 0
        (score,) = read_records(Path("scores.parquet"), Score)
        passed[floor] = score.passed
    assert passed == {0.8: False, 0: True}, "without a floor the first grader decides"
