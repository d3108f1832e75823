"""Accuracy by target condition, confusion of diagnoses and missed time-critical diagnoses, computed by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

from fixtures.clinical import (
    FAST,
    GRID,
    URGENCY,
    VOCABULARY,
    judged,
    question,
    says,
    simulated_coverage,
    study_of,
)
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.files.result_tables import read_result
from neuralmedbench.records.items import Family, Item, Runner
from neuralmedbench.records.scores import GradeState, ParseStatus, Score
from neuralmedbench.tables.clinical.accuracy import (
    accuracy_rows,
    reading_rows,
)
from neuralmedbench.tables.clinical.urgency import urgency_rows
from neuralmedbench.tables.declare import CountRow
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import read_study
from neuralmedbench.tables.write import write_tables

STROKE, TUMOUR, NORMAL = "acute ischaemic stroke", "glioblastoma", "normal brain"


def cohort(*references: str, per_patient: int = 1) -> tuple[list[Item], list[str]]:
    """Return one question per reference, or several of the same patient."""
    names = [name for name in references for _ in range(per_patient)]
    return [question(number, f"p{number // per_patient:02d}") for number, _ in enumerate(names)], names


def rows_of(items: list[Item], names: list[str], scores: list[Score], **changes: object) -> dict[tuple[str, str], dict[str, object]]:
    """Return the rows of every target condition as one: `sensitivity_low`, `n_patients_without`."""
    found: dict[tuple[str, str], dict[str, object]] = {}
    for row in accuracy_rows(study_of(items, names, scores, **changes)):  # type: ignore[arg-type]
        side, _, kind = row["slice"].rpartition(" ")
        one = found.setdefault((kind, row["value_of_slice"]), {"missing": 0})
        if isinstance(row, CountRow):
            one[row.measure if row.measure in ("tp", "fn", "fp", "tn") else f"{row.measure}_{side}"] = row.count
        elif row.measure == "best_case":
            one[f"best_{side}"] = row.value
        else:
            one |= {row.measure: row.value, f"{row.measure}_low": row.low, f"{row.measure}_high": row.high}
            one |= {f"n_items_{side}": row.n_items, f"n_patients_{side}": row.n_patients}
            one["missing"] += row.left_out or 0
    return found


def read_as(items: list[Item], names: list[str], scores: list[Score]) -> Counter[str]:
    """Count the answers by what they name."""
    counts: Counter[str] = Counter()
    for row in reading_rows(study_of(items, names, scores)):
        counts[row.named] += row.answers
    return counts


def test_a_table_of_four_cells_gives_the_exact_intervals_known_for_it() -> None:
    """8 of 10 abnormal patients are called abnormal, and all 5 normal ones normal."""
    items, names = cohort(*[STROKE] * 10, *[NORMAL] * 5)
    answers = [says(one, TUMOUR if number < 8 else NORMAL) for number, one in enumerate(items[:10])]
    row = rows_of(items, names, [*answers, *(says(one, NORMAL, True) for one in items[10:])])["abnormal", "any abnormality"]
    assert [row[name] for name in ("tp", "fn", "fp", "tn", "indeterminate_with", "indeterminate_without", "missing")] == [
        8,
        2,
        0,
        5,
        0,
        0,
        0,
    ]
    assert [row[name] for name in ("n_items_with", "n_patients_with", "n_items_without", "n_patients_without")] == [10, 10, 5, 5]
    # Clopper and Pearson on Korn and Graubard's effective size, which is 9 for 10 patients of one answer each
    low, high = stats.beta.ppf(0.025, 7.2, 2.8), stats.beta.ppf(0.975, 8.2, 1.8)
    assert (row["sensitivity"], row["sensitivity_low"], row["sensitivity_high"]) == pytest.approx((0.8, low, high))
    assert (row["specificity"], row["specificity_low"], row["specificity_high"]) == pytest.approx((1.0, 0.05 ** (1 / 5), 1.0))


def test_items_of_one_patient_do_not_make_the_interval_narrower_than_patients_do() -> None:
    alone, together = (
        rows_of(items, names, [says(one, TUMOUR if int(one.patient_id[1:]) < 8 else NORMAL) for one in items])[
            "abnormal", "any abnormality"
        ]
        for items, names in (cohort(*[STROKE] * 10, NORMAL, NORMAL, per_patient=number) for number in (1, 3))
    )
    assert (together["tp"], together["n_patients_with"], together["sensitivity"]) == (24, 10, 0.8)
    width = [row["sensitivity_high"] - row["sensitivity_low"] for row in (alone, together)]
    assert width[1] >= width[0]


def test_samples_of_one_item_count_as_its_mean() -> None:
    items, names = cohort(STROKE, STROKE, NORMAL, NORMAL)
    answers = [says(items[0], words, repeat=repeat) for repeat, words in enumerate((TUMOUR, NORMAL, NORMAL, NORMAL))]
    answers += [says(one, TUMOUR, repeat=repeat) for one in items[1:] for repeat in range(4)]
    row = rows_of(items, names, answers)["abnormal", "any abnormality"]
    assert (row["tp"], row["fn"], row["sensitivity"]) == (5, 3, pytest.approx((0.25 + 1) / 2))


def test_a_target_condition_needs_two_patients_with_and_two_without_it() -> None:
    items, names = cohort(STROKE, "intracerebral haemorrhage", TUMOUR, NORMAL)
    found = rows_of(items, names, [says(one, STROKE) for one in items])
    assert set(found) == {("family", "stroke")}, "one tumour, one normal patient, and one of each kind of stroke are too few"
    row = found["family", "stroke"]
    assert (row["tp"], row["fp"], row["n_patients_with"], row["n_patients_without"]) == (2, 2, 2, 2)


def test_a_narrower_diagnosis_has_the_condition_and_a_wider_one_does_not() -> None:
    items, names = cohort("cerebral infarction", "acute lacunar infarct", "cerebral infarction", TUMOUR, TUMOUR)
    answers = [
        says(one, words)
        for one, words in zip(items, ("acute lacunar infarct", "stroke", "cerebral infarction", TUMOUR, "stroke"), strict=True)
    ]
    found = rows_of(items, names, answers)
    row = found["diagnosis", "cerebral infarction"]
    assert [row[name] for name in ("tp", "fn", "fp", "tn")] == [2, 1, 0, 2]
    assert found["family", "stroke"]["tp"] == 3
    assert found["family", "stroke"]["fp"] == 1


@pytest.mark.parametrize(
    ("reason", "changes"),
    [
        ("refused", {"state": "refused"}),
        ("truncated", {"state": "truncated"}),
        ("unparsable", {"parse_status": ParseStatus.FAILED}),
        ("abstained", {"abstained": True}),
        ("unrecognised", {"differential": ("a disease that nobody knows",)}),
    ],
)
def test_an_indeterminate_answer_is_counted_apart_as_wrong_and_at_best_as_right(reason: str, changes: dict[str, object]) -> None:
    items, names = cohort(STROKE, STROKE, NORMAL, NORMAL)
    answers = [
        says(items[0], STROKE, True),
        says(items[1], STROKE, **changes),
        says(items[2], NORMAL, True),
        says(items[3], NORMAL, **changes),
    ]
    row = rows_of(items, names, answers)["abnormal", "any abnormality"]
    assert [row[name] for name in ("tp", "fn", "fp", "tn", "indeterminate_with", "indeterminate_without")] == [1, 0, 0, 1, 1, 1]
    assert read_as(items, names, answers) == {"stroke": 1, "normal brain": 1, reason: 2}
    assert [row[name] for name in ("sensitivity", "specificity", "best_with", "best_without")] == [0.5, 0.5, 1.0, 1.0]


def test_missing_answers_are_in_no_cell_and_too_many_of_them_leave_no_rate() -> None:
    items, names = cohort(STROKE, STROKE, NORMAL, NORMAL)
    answers = [
        says(items[0], STROKE, True),
        says(items[1], "", None, state="failed", missing=True),
        *(says(one, NORMAL, True) for one in items[2:]),
    ]
    row = rows_of(items, names, answers)["abnormal", "any abnormality"]
    assert (row["tp"], row["missing"], row["sensitivity"], row["specificity"]) == (1, 1, None, None)
    assert (row["best_with"], row["best_without"]) == (None, None)
    assert read_as(items, names, answers) == {"stroke": 1, "missing": 1, "normal brain": 2}


def test_what_a_grader_passed_names_the_reference_in_whatever_words() -> None:
    items, names = cohort(STROKE, STROKE, NORMAL, NORMAL)
    answers = [
        says(items[0], "a blocked artery of today", True),
        says(items[1], "", True, differential=("stroke",)),
        *(says(one, "fine for his years", True) for one in items[2:]),
    ]
    found = rows_of(items, names, answers)
    assert [found["abnormal", "any abnormality"][name] for name in ("tp", "tn", "indeterminate_with")] == [2, 2, 0]
    assert found["diagnosis", STROKE]["tp"] == 2, "a grader accepted the wider term"


def test_a_reference_that_the_vocabulary_lacks_is_an_abnormality_of_no_known_family() -> None:
    items, names = cohort("a disease that nobody knows", "another one", STROKE, STROKE, TUMOUR, TUMOUR, NORMAL, NORMAL)
    found = rows_of(items, names, [says(one, STROKE) for one in items])
    assert found["abnormal", "any abnormality"]["n_patients_with"] == 6
    assert (found["family", "stroke"]["n_patients_with"], found["family", "stroke"]["n_patients_without"]) == (2, 4)


def test_what_a_reference_adds_in_brackets_leaves_its_family_and_its_diagnosis() -> None:
    items, names = cohort(f"{TUMOUR} (left)", f"{TUMOUR} (right)", f"{STROKE} (MCA territory)", STROKE, f"{NORMAL} (motion)", NORMAL)
    found = rows_of(items, names, [says(one, STROKE) for one in items])
    assert found["diagnosis", TUMOUR]["n_patients_with"] == 2
    assert found["family", "stroke"]["n_patients_with"] == 2
    assert found["abnormal", "any abnormality"]["n_patients_without"] == 2


def test_classes_are_compared_as_written_and_normal_is_known_by_the_vocabulary() -> None:
    items = [question(number, f"p{number}", runner=Runner.STRUCTURED, family=Family.CLASSIFICATION) for number in range(6)]
    names = ["tumor", "tumor", "stroke", "stroke", "normal", "normal"]
    answers = [
        says(one, words, words == name)
        for one, words, name in zip(items, ["tumor", "stroke", "stroke", "normal", "normal", "tumor"], names, strict=True)
    ]
    found = rows_of(items, names, answers, classes=True)
    assert set(found) == {("abnormal", "any abnormality"), ("class", "tumor"), ("class", "stroke")}
    assert [found["class", "tumor"][name] for name in ("tp", "fn", "fp", "tn")] == [1, 1, 1, 3]
    assert [found["abnormal", "any abnormality"][name] for name in ("tp", "fn", "fp", "tn")] == [3, 1, 1, 1]


def test_choices_places_of_lesions_and_free_questions_are_no_diagnoses() -> None:
    items = [
        question(0, "p0", runner=Runner.CHOICE),
        question(1, "p1", family=Family.LESION_RECOGNITION),
        question(2, "p2", family=Family.QUESTION_ANSWERING),
    ]
    study = study_of(items, [STROKE] * 3, [says(one, STROKE, True) for one in items])
    assert accuracy_rows(study) == []
    assert reading_rows(study) == []
    assert urgency_rows(study) == []


def test_the_confusion_of_families_adds_up_to_the_answers_of_each_reference() -> None:
    items, names = cohort(STROKE, STROKE, TUMOUR)
    answers = [says(items[0], words, repeat=repeat) for repeat, words in enumerate((STROKE, TUMOUR, NORMAL, "no such thing"))]
    answers += [says(one, "", repeat=repeat, state="refused") for one in items[1:] for repeat in range(4)]
    cells = {(row.reference, row.named): row for row in reading_rows(study_of(items, names, answers))}
    assert {key: row.answers for key, row in cells.items()} == {
        ("stroke", "brain tumour"): 1, ("stroke", "normal brain"): 1, ("stroke", "stroke"): 1,
        ("stroke", "unrecognised"): 1, ("stroke", "refused"): 4,
        ("brain tumour", "refused"): 4, ("brain tumour", "brain tumour"): 0,
    }  # fmt: skip
    assert cells["stroke", "stroke"]["n_patients"] == 2


def test_answers_to_time_critical_references_are_divided_by_what_they_name() -> None:
    items, names = cohort("herpes simplex encephalitis", "herpes simplex encephalitis", "Alzheimer disease")
    said = [
        says(items[0], "herpes simplex encephalitis", True, relation="exact"),
        says(items[0], "encephalitis", relation="parent", right_family=True, repeat=1),
        says(items[0], TUMOUR, relation="unrelated", repeat=2),
        says(items[0], NORMAL, relation="unrelated", repeat=3),
        says(items[1], "no such thing", relation="unrelated"),
        says(items[1], "", state="refused", repeat=1),
        says(items[1], NORMAL, relation="unrelated", repeat=2),
        says(items[1], NORMAL, relation="unrelated", repeat=3),
        *(says(items[2], NORMAL, repeat=repeat) for repeat in range(4)),
    ]
    rows = {(row["value_of_slice"], row["measure"]): row for row in urgency_rows(study_of(items, names, said))}
    together = {measure: row["value"] for (references, measure), row in rows.items() if references == "time_critical"}
    assert together == {
        "missed": 0.625,
        "named": 0.125,
        "wider": 0.125,
        "called_other": 0.25,
        "called_normal": 0.375,
        "no_diagnosis": 0.125,
    }
    row = rows["herpes simplex encephalitis", "missed"]
    assert (row["n_answers"], row["n_items"], row["n_patients"]) == (8, 2, 2)
    assert row["note"].startswith("hours: ")
    assert "2012" in row["note"]
    assert (row["low"], row["high"]) != (None, None)
    assert not any(references.startswith("Alzheimer") for references, _ in rows), "it can wait"


def test_the_first_grader_that_judged_all_statements_decides_which_of_them_were_made() -> None:
    items, names = cohort(STROKE, TUMOUR, TUMOUR)
    said = [says(one, STROKE) for one in items[:2]] + [says(items[2], "", state="refused")]
    first = judged(said[0], [1.0]) + judged(said[1], [0.0, 0.0], GradeState.FAILED)  # one of two, and none that worked
    second = judged(said[0], [1.0, 0.0]) + judged(said[1], [1.0, 1.0])
    study = study_of(items, names, said, must_not=("normal brain", "glioblastoma"), grades=[first, second])
    rows = {(row["value_of_slice"], row["measure"]): row for row in urgency_rows(study)}
    row = rows["all", "must_not"]
    assert (row["value"], row["n_answers"], row["n_patients"], row["left_out"]) == (pytest.approx((0.5 + 1.0 + 0.0) / 3), 3, 3, 0)
    assert (rows["time_critical", "must_not"]["value"], rows["time_critical", "must_not"]["n_patients"]) == (0.5, 1)
    unjudged = urgency_rows(study_of(items, names, said[:2], must_not=("normal brain", "glioblastoma"), grades=[[]]))
    assert not any(row["measure"] == "must_not" for row in unjudged), "nobody judged them: not measured, which is not 0"


def test_a_grade_of_another_text_is_no_grade_of_this_one() -> None:
    items, names = cohort(STROKE)
    answer = says(items[0], STROKE)
    stale = [replace(row, text_sha256="1" * 64) for row in judged(answer, [1.0])]
    assert not any(
        row["measure"] == "must_not" for row in urgency_rows(study_of(items, names, [answer], must_not=("tumour",), grades=[stale]))
    )


@pytest.fixture(scope="module", params=[(12, 4), (36, 10), (24, 4)], ids=str)
def public(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[bool, Path]:
    """Build a public report of made-up patients of six diagnoses, and say whether two, six or four of each are enough."""
    patients, fewest = request.param
    root = tmp_path_factory.mktemp(f"public{patients}")
    write_study(root, models=("alpha",), patients=patients, kind="patient", arms=("full",))
    study = read_study(root, [DEPTH, BREADTH], ["alpha"], GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=FAST)
    write_tables(study, root / "results" / "tables", root / "results" / "metrics.json", Release("public", fewest))
    return patients // 6 >= fewest, root


def test_a_public_run_hides_conditions_of_few_patients(public: tuple[bool, Path]) -> None:
    enough, root = public

    def rows(table: str) -> list[dict[str, str]]:
        return [row for row in read_result(root / "results" / "tables", table) if row["benchmark"] == DEPTH]

    counted = {table: [row for row in rows(table) if row["n_patients"].isdecimal()] for table in ("accuracy", "readings", "urgency")}
    measured = [(row["measure"], row["slice"]) for row in counted["accuracy"]]
    if enough:  # rates of four patients have no value in a public report, but their counts of answers
        parts = {("sensitivity", "with"), ("specificity", "without")}
        assert {one for one in measured if one[0].endswith("ity")} == {
            (measure, f"{side} {kind}") for measure, side in parts for kind in ("abnormal", "family")
        }
        assert all(int(row["n_patients"]) >= 4 for of_table in counted.values() for row in of_table)
        assert {row["value_of_slice"] for row in counted["urgency"]} == {"all", "time_critical", "acute ischaemic stroke"}
        assert counted["readings"]
    else:
        assert not {"with family", "without abnormal"} & {part for _, part in measured}
        assert rows("readings") == []
        assert {row["value_of_slice"] for row in counted["urgency"]} == {"all"}, "forbidden statements of all patients"


@pytest.mark.parametrize("cell", [cell for cell in GRID if cell[1:] == (0.8, 1)], ids=str)
def test_intervals_of_sensitivity_hold_the_truth_in_a_slice_of_the_simulated_studies(cell: tuple[int, float, int]) -> None:
    assert simulated_coverage(*cell, studies=300) >= 0.93


def test_every_time_critical_diagnosis_has_a_source_with_its_year_and_holds_for_narrower_terms() -> None:
    assert URGENCY.status == "our selection, to be confirmed by clinicians"
    for key, entry in URGENCY.time_critical.items():
        assert any(year.strip(".,;)(").isdecimal() and len(year.strip(".,;)(")) == 4 for year in entry.source.split()), key
    urgent = {key for key in VOCABULARY.diagnoses if URGENCY.of(key, VOCABULARY)}
    assert {"acute-mca-infarct", "lobar-haemorrhage", "herpes-encephalitis", "carotid-dissection", "status-epilepticus"} <= urgent
    assert not urgent & {"superficial-siderosis", "chronic-infarct", "normal", "alzheimer", "multiple-sclerosis", "migraine", "stroke"}
