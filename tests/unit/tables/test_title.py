"""The title's contrast: the same cases as a choice and openly; models with a written behaviour land where it puts them."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fixtures.title_contrast import SETS, Cell, Set, broken, broken_set, grid, measure, measure_sets
from fixtures.titles import ARMS, title_study
from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.records.results import PRIOR
from neuralmedbench.tables.declare import Cells
from neuralmedbench.tables.family import Compared, corrected_family
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.recognition import CHOICE_ARMS, MISSING, NONE, found, recognised, recognised_of, scaled_difference
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.title import CONTRAST, QUADRANTS, TABLE, Row, title_rows, title_sentence
from neuralmedbench.tables.words import TITLE, claims_of


def rows_of(study: Study) -> dict[tuple[str, str], Any]:
    """Give the rows of a study by model and measure."""
    return {(row.model, row.measure): row for row in title_rows(study, corrected_family(study))}


def counts_of(rows: dict[tuple[str, str], Any], model: str) -> list[int]:
    """Give the counts of a model in the order of the quadrants."""
    return [rows[model, measure].count for measure in QUADRANTS]


@pytest.mark.parametrize(
    ("model", "recognises", "finds", "counts", "answer"),
    [
        ("knows", 1.0, 1.0, [20, 0, 0, 0], "inconclusive"),
        ("recogniser", 1.0, 0.0, [0, 20, 0, 0], "better"),
        ("finder", -0.25, 1.0, [0, 0, 20, 0], "worse"),
        ("places", 0.0, 0.0, [0, 0, 0, 20], "inconclusive"),
    ],
)
def test_a_model_is_counted_where_its_behaviour_puts_it(
    model: str, recognises: float, finds: float, counts: list[int], answer: str
) -> None:
    rows = rows_of(title_study())
    assert rows[model, "recognised"].value == pytest.approx(recognises)
    assert rows[model, "found"].value == pytest.approx(finds)
    assert counts_of(rows, model) == counts
    contrast = rows[model, CONTRAST]
    assert contrast.difference == pytest.approx(recognises - finds)
    assert contrast.answer == answer


def test_a_guess_that_is_the_same_wherever_it_stands_is_on_neither_side() -> None:
    rows = rows_of(title_study(50, scripts=("steady",)))
    # right in all four rotations in about a fifth of the cases, which is what a guess gets right
    right = rows["steady", "right_in_all"].value
    assert 0.05 < right < 0.4
    assert rows["steady", "recognised"].value == pytest.approx(right - (1 - right) / 4)
    assert rows["steady", CONTRAST].answer == "inconclusive"


def test_what_the_picture_is_worth_is_measured_in_both_forms() -> None:
    rows = rows_of(title_study())
    assert rows["recogniser", "recognised_without_pictures"].value == pytest.approx(0.0)
    assert rows["recogniser", "picture_in_choice"].low > 0.5
    assert rows["recogniser", "picture_in_open"].difference == 0.0
    assert rows["knows", "picture_in_choice"].difference == 0.0


def test_several_samples_count_by_the_share_of_repeats_that_are_right_in_all_rotations() -> None:
    rows = rows_of(title_study(12, scripts=("half",), samples=2))
    assert rows["half", "recognised"].value == pytest.approx(0.5)
    assert rows["half", "found"].value == pytest.approx(0.5)
    # half is not more than half
    assert counts_of(rows, "half") == [0, 0, 0, 12]


def test_unread_open_answers_leave_both_sides_with_bounds_and_above_a_tenth_nothing_is_said() -> None:
    study = title_study()
    rows = rows_of(study)
    assert rows["silent", "left_out"].value == pytest.approx(0.5)
    assert rows["silent", CONTRAST].n_items == 10
    assert (rows["silent", CONTRAST].difference, rows["silent", "found"].value) == (0.0, 1.0)
    assert (rows["silent", "bounds"].low, rows["silent", "bounds"].high) == (0.0, 0.5)
    assert rows["silent", CONTRAST].note == "50 % of its open answers could not be read or graded"
    assert rows["knows", CONTRAST].note == ""


def test_a_repeat_without_an_answer_in_one_rotation_counts_on_neither_side() -> None:
    chosen = np.array([[[2, 2, 2, 2], [2, 2, MISSING, 2]], [[NONE, NONE, NONE, NONE], [MISSING] * 4], [[MISSING] * 4, [MISSING] * 4]])
    made = recognised_of(chosen, chosen == 2, np.full(3, 5))
    assert made.value[:2].tolist() == [1.0, 0.0]
    assert np.isnan(made.value[2])


def test_steps_are_measured_where_they_are_asked_for() -> None:
    plain, stepwise = (title_study(10, scripts=("knows",), strategies=names) for names in (("direct",), ("direct", "cot")))
    assert ("knows", "found_with_steps") not in rows_of(plain)
    assert rows_of(stepwise)["knows", "found_with_steps"].value == 1.0


def test_the_contrast_stands_in_the_family_and_costs_the_others_their_part() -> None:
    study = title_study()
    family = corrected_family(study)
    tested = family[Compared("b", "recogniser", title=True)]
    assert tested.p_corrected is not None
    assert tested.p_corrected < 0.01
    assert rows_of(study)["recogniser", CONTRAST].p_corrected == tested.p_corrected
    alone = corrected_family(title_study(arms=("full", "no_image")))
    assert not any(compared.title for compared in alone)
    both = [one for one in alone if one in family and alone[one].p_corrected is not None]
    assert all(alone[one].level > family[one].level for one in both)


def test_arms_of_a_choice_are_compared_in_this_topic_alone() -> None:
    from neuralmedbench.tables.contrasts import arm_rows

    study = title_study()
    assert {row.arm for row in arm_rows(study, corrected_family(study))} == {"no_image"}


def tables_of(study: Study, **leaders: int) -> Any:
    """Give the rows as sentences read them."""
    cells = [dict(row) | {"few_patients": None, "cluster": "patient"} for row in title_rows(study, corrected_family(study))]
    board = [{"benchmark": "b", "model": name, "rank": rank} for name, rank in leaders.items()]
    return {"title": cells, "leaderboard": board, "pairs": [], "arms": []}


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (
            "recogniser",
            r"Recogniser picks 100 % of 20 patients' diagnoses from five options and names 0 % unprompted: 100 points lower \(\d+ to 100\)\.",
        ),
        (
            "finder",
            r"Finder picks 0 % of 20 patients' diagnoses from five options and names 100 % unprompted: 100 points higher \(\d+ to 100\)\.",
        ),
        (
            "knows",
            r"Knows picks 100 % of 20 patients' diagnoses from five options and names 100 % unprompted: inconclusive \(−\d+ to \+\d+\)\.",
        ),
        ("silent", r"No answer for Silent: 50 % of its open answers could not be read or graded\."),
    ],
)
def test_the_sentence_says_no_more_than_the_contrast_of_the_model_of_rank_1(model: str, sentence: str) -> None:
    study = title_study()
    text = title_sentence(study, tables_of(study, **{model: 1, "steady": 2}))
    assert re.fullmatch(sentence, text), text
    assert len(text.split()) <= 25


def test_a_model_that_draws_is_not_said_to_find_more_than_it_recognises() -> None:
    drawn = title_study(20, scripts=("finder", "recogniser"), samples=2)
    rows = rows_of(drawn)
    assert rows["finder", CONTRAST].high < 0
    assert rows["finder", CONTRAST].answer == "inconclusive"
    assert rows["recogniser", CONTRAST].answer == "better"
    text = title_sentence(drawn, tables_of(drawn, finder=1))
    assert text == "No answer for Finder: it draws its answers, and four draws are all right less often than one."


def test_within_the_margin_the_answer_is_no() -> None:
    study = title_study(50, scripts=("knows",))
    text = title_sentence(study, tables_of(study, knows=1))
    assert text.endswith("and names 100 % unprompted: no, within 10 points (−7 to +7)."), text


def test_without_a_rank_the_first_model_of_the_run_list_that_was_asked_is_named() -> None:
    study = title_study()
    assert title_sentence(study, tables_of(study)).startswith("Knows picks")


def test_fewer_than_eight_patients_and_options_that_say_what_is_right_have_no_answer() -> None:
    few = title_study(7, scripts=("knows",))
    assert rows_of(few)["knows", CONTRAST].note == "fewer than 8 patients"
    study = title_study(10, scripts=("knows",))
    benchmark: Any = next(iter(study.benchmarks.values()))
    # the reference is the longest of its options
    items = tuple(
        replace(item, rivals=(gold.answer, *("abcd"))) for item, gold in zip(benchmark.outcomes.items, benchmark.outcomes.gold, strict=True)
    )
    leaking: Any = SimpleNamespace(**vars(benchmark) | {"outcomes": replace(benchmark.outcomes, items=items)})
    rows = rows_of(SimpleNamespace(**vars(study) | {"benchmarks": {"b": leaking}}))  # type: ignore[arg-type]
    assert rows[PRIOR, "options_only"].value == pytest.approx(1.0)
    assert rows["knows", CONTRAST].note == "a guess from the options alone is right in 100 %"


def test_of_rivals_that_are_matched_the_options_say_nothing() -> None:
    rows = rows_of(title_study())
    assert rows[PRIOR, "options_only"].value <= 0.25


def test_a_benchmark_that_has_no_rivals_says_so_and_one_that_does_not_ask_says_nothing() -> None:
    def run(arms: list[str]) -> Any:
        config = BenchmarkConfig.model_validate({"title": "T", "kind": "scans", "axis": "depth", "source": "phantoms", "arms": arms})
        return SimpleNamespace(benchmarks={"b": SimpleNamespace(name="b", config=config)}, models={}, limit=0)

    tables: Any = {"title": [], "leaderboard": []}
    assert title_sentence(run(["full", "choice-1"]), tables) == "No case could be asked as a choice among five diagnoses."
    assert title_sentence(run(["full"]), tables) == ""


def test_claims_find_the_row_of_the_family() -> None:
    study = title_study()
    claims = claims_of(tables_of(study, knows=1), TITLE)
    assert {row["model"] for row in claims} == {"recogniser", "finder"}


def test_hiding_one_of_the_four_counts_hides_a_second() -> None:
    assert TABLE.suppression is not None
    rows: list[Row] = title_rows(title_study(), {})
    groups = {TABLE.suppression.group(Cells(row)) for row in rows if row.measure in QUADRANTS}
    assert len(groups) == 7
    assert TABLE.suppression.group(Cells(next(row for row in rows if row.measure == CONTRAST))) is None


def test_the_engine_of_contrasts_keeps_its_scale() -> None:
    outcomes = title_study().benchmarks["b"].outcomes
    sides = recognised(outcomes, "finder").value, found(outcomes, "finder").value
    by = outcomes.by_patient(title_study().settings, Key("finder"))
    assert scaled_difference(*sides, by, -0.25).value == pytest.approx(-1.25)
    assert set(ARMS) >= set(CHOICE_ARMS)


@pytest.mark.parametrize("cell", [cell for cell in grid() if cell.patients == 12 and cell.samples == 5], ids=str)
def test_a_slice_of_the_studies_breaks_no_rule(cell: Cell) -> None:
    assert broken(cell, measure(cell, 30, 1)) == []


def test_a_model_that_recognises_alone_is_shown_with_thirty_patients() -> None:
    assert measure(Cell(30, 0.61, 0.36, "anew", 5), 30, 1)["lower"] >= 0.8


@pytest.mark.parametrize("kind", SETS[:3], ids=str)
def test_a_slice_of_the_generated_sets_breaks_no_rule(kind: Set) -> None:
    assert broken_set(measure_sets(kind, 5, 1)) == []


def test_the_rules_of_the_series_notice_what_breaks_them() -> None:
    measured = {"held": 0.8, "rejected": 0.2, "lower": 0.2, "bias": 0.0, "recognised": 0.2, "studies": 2000}
    assert broken(Cell(12, 0.0, 0.0, "anew", 1), measured) == ["coverage", "size", "a guesser recognises"]
    assert broken(Cell(30, 0.61, 0.36, "steady", 5), measured) == ["power"]
    assert broken_set({"guessed": 0.3, "above": 0.0, "sets": 1}) == ["guess"]
