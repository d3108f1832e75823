"""Did the picture cause the answer? Four scripts with a known behaviour land in their class, and every measure is what was written."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fixtures.scripts import DISEASES, SCRIPTS, Shown, looks, scripted_study
from neuralmedbench.tables.grounding.measures import (
    ANOTHER,
    CLASS,
    CONSTANT,
    CONTRASTS,
    MIRROR,
    WORDLESS,
    class_of,
    grounding_rows,
)
from neuralmedbench.tables.item_analysis import item_rows


def measured(study):
    """Give the rows by model, measure and arm, that of the exchanged pictures."""
    rows = grounding_rows(study)
    arms = [row.other_arm if row.measure == "visual_reliance" else row.arm for row in rows]
    return {(row.model, row.measure, arm): row for row, arm in zip(rows, arms, strict=True)}


def told(rows):
    return {model: row.note.partition(":")[0] for (model, measure, _), row in rows.items() if measure == CLASS}


@pytest.fixture(scope="module")
def forty():
    return measured(scripted_study(40))


@pytest.fixture(scope="module")
def exact():
    return measured(scripted_study(24, slips=0.0))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
def test_four_scripts_land_in_their_class_at_forty_patients_and_their_intervals_exclude_the_others(seed, forty) -> None:
    rows = measured(scripted_study(40, seed=seed)) if seed else forty
    assert told(rows) == {name: name for name in SCRIPTS}
    signs = {
        "looks": {ANOTHER: 1, MIRROR: 1},
        "side-blind": {ANOTHER: 1, MIRROR: -1},
        "text-only": {ANOTHER: -1, WORDLESS: 1},
        "blind": {ANOTHER: -1, CONSTANT: 1},
    }
    for model, wanted in signs.items():
        for contrast, sign in wanted.items():
            (row,) = (row for (name, measure, _), row in rows.items() if (name, measure) == (model, contrast))
            assert min(sign * row.low, sign * row.high) > 0, (model, row)


def test_without_slips_the_shares_are_those_that_were_written(exact) -> None:
    def value(model: str, measure: str, arm: str) -> float:
        return exact[model, measure, arm].value

    for model, follows in (("looks", 1.0), ("side-blind", 1.0), ("text-only", 0.0), ("blind", 0.0)):
        assert value(model, "follows_picture", "image_of_another") == follows
        assert value(model, "stays_with_text", "image_of_another") == 1 - follows
        assert value(model, "neither", "image_of_another") == 0
    assert [value(model, "side_flips", "mirrored_image") for model in SCRIPTS] == [1, 0, 0, 0]
    assert [value(model, "diagnosis_stays", "mirrored_image") for model in SCRIPTS] == [1, 1, 1, 1]
    # patients of the next in the ring may have the same disease: then the answer of a model that looks does not change
    assert value("looks", "image_sensitivity", "shuffled_image") > 0.6
    assert [value(model, "image_sensitivity", "shuffled_image") for model in ("text-only", "blind")] == [0, 0]
    assert value("looks", "visual_reliance", "shuffled_image") == pytest.approx(value("looks", "image_sensitivity", "shuffled_image"))
    assert [value(model, "repeat_changes", "full") for model in SCRIPTS] == [0, 0, 0, 0]


def test_a_mirage_is_described_findings_or_scans_that_were_not_sent(exact) -> None:
    found = {(model, arm): exact[model, "mirage", arm].value for model in SCRIPTS for arm in ("no_image", "blank_image")}
    assert {arm: rate for (model, arm), rate in found.items() if model == "looks"} == {"no_image": 0, "blank_image": 0}
    assert {rate for (model, _), rate in found.items() if model in ("text-only", "blind")} == {1}
    assert exact["blind", "invented_reasoning", "no_image"].value == 1
    assert exact["looks", "invented_reasoning", "no_image"].value == 0


@pytest.fixture(scope="module")
def abstaining():
    def honest(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        return looks(shown, rng) if shown.disease else ("cannot be determined", "", "nothing", "No pictures were provided.")

    return measured(scripted_study(8, scripts={"honest": honest, "blind": SCRIPTS["blind"]}, slips=0.0))


def test_a_model_that_names_no_diagnosis_without_pictures_abstains(abstaining) -> None:
    assert {abstaining["honest", "abstains", arm].value for arm in ("no_image", "blank_image")} == {1}
    assert {abstaining["blind", "abstains", arm].value for arm in ("no_image", "blank_image")} == {0}


def test_a_model_abstains_without_pictures_beyond_what_it_does_with_them(abstaining) -> None:
    honest, blind = (abstaining[model, "abstains_beyond_full", "no_image"] for model in ("honest", "blind"))
    assert (honest.difference, honest.n_patients) == (1, 8)
    assert honest.low > 0
    assert (blind.difference, blind.low <= 0 <= blind.high) == (0, True)


def test_reasons_from_pictures_that_do_not_move_the_answer_are_counted_and_those_of_a_model_that_looks_only_where_nothing_changes(
    exact,
) -> None:
    for arm in ("shuffled_image", "blank_image"):
        assert {exact[model, "unmoved_reasoning", arm].value for model in ("text-only", "blind")} == {1}
        looks = exact["looks", "unmoved_reasoning", arm].value
        assert looks == pytest.approx(1 - exact["looks", "image_sensitivity", arm].value)
        assert looks < 0.4 or arm == "blank_image"


def test_an_answer_that_gives_no_reason_from_pictures_is_not_unmoved_reasoning() -> None:
    def silent(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        return "glioblastoma", "left", "nothing", "Nothing was shown."

    rows = measured(scripted_study(8, scripts={"silent": silent}, slips=0.0))
    assert rows["silent", "image_sensitivity", "shuffled_image"].value == 0
    assert rows["silent", "unmoved_reasoning", "shuffled_image"].value == 0


def test_items_whose_text_tells_what_a_scan_showed_count_in_no_mirage() -> None:
    study = scripted_study(8, slips=0.0)
    benchmark = study.benchmarks["b"]
    told_items = tuple(replace(item, notes=item.notes + " CT showed a mass.") for item in benchmark.outcomes.items[:3])
    benchmark.outcomes = replace(benchmark.outcomes, items=(*told_items, *benchmark.outcomes.items[3:]))
    assert measured(study)["blind", "mirage", "no_image"].n_items == 5


def test_few_patients_cannot_be_told() -> None:
    assert set(told(measured(scripted_study(4))).values()) == {"inconclusive"}


@pytest.mark.parametrize("samples", [pytest.param(1, marks=pytest.mark.long), 5])
def test_a_model_that_answers_at_random_cannot_be_told(samples: int) -> None:
    def at_random(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        return list(DISEASES)[rng.integers(4)], ("left", "right")[rng.integers(2)], "nothing", "Nothing was shown."

    def with_a_favourite(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        return (next(iter(DISEASES)) if rng.random() < 0.5 else list(DISEASES)[rng.integers(4)]), "left", "nothing", "Nothing was shown."

    rows = measured(scripted_study(40, scripts={"random": at_random, "favourite": with_a_favourite}, samples=samples))
    assert set(told(rows).values()) == {"inconclusive"}


def test_a_text_only_model_that_draws_its_answers_is_told_from_one_that_guesses() -> None:
    def drawing(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        disease = shown.told if shown.told and rng.random() < 0.6 else list(DISEASES)[rng.integers(4)]
        return disease, "left", "nothing", "Nothing was shown."

    assert told(measured(scripted_study(40, scripts={"drawing": drawing}, samples=5))) == {"drawing": "text-only"}


def test_an_item_whose_donor_has_a_disease_that_the_model_names_anyway_is_left_out(exact) -> None:
    # blind names glioblastoma: donors with one cannot be followed
    assert (
        exact["blind", "follows_picture", "image_of_another"].n_items < exact["looks", "follows_picture", "image_of_another"].n_items == 24
    )


def test_the_interval_of_following_covers_the_true_share() -> None:
    def half(shown: Shown, rng: np.random.Generator) -> tuple[str, str, str, str]:
        return (shown.disease if rng.random() < 0.5 and shown.disease else shown.told), shown.side, "MRI", "A mass."

    covered, values = [], []
    for seed in range(20):
        row = measured(scripted_study(24, seed=seed, slips=0.0, scripts={"half": half}, arms=("full", "image_of_another")))[
            "half", "follows_picture", "image_of_another"
        ]
        covered.append(row.low <= 0.5 <= row.high)
        values.append(row.value)
    assert np.mean(values) == pytest.approx(0.5, abs=0.04)
    assert np.mean(covered) >= 0.9


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        ((1, None, None, 1), "looks"),
        ((1, 0, 0, None), "looks"),
        ((1, 1, -1, -1), "side-blind"),
        ((-1, 1, -1, 1), "text-only"),
        ((-1, 1, 1, 1), "text-only"),
        ((-1, 0, 1, 0), "blind"),
        ((-1, None, 1, 0), "blind"),
        ((-1, 0, 0, 1), "inconclusive"),
        ((-1, None, None, -1), "inconclusive"),
        ((0, 1, 1, 1), "inconclusive"),
        ((None, 1, 1, 1), "inconclusive"),
    ],
)
def test_the_class_follows_from_what_the_four_comparisons_show(shown, expected) -> None:
    assert class_of(dict(zip(CONTRASTS, shown, strict=True)))[0] == expected


def test_items_solved_without_pictures_are_counted_by_the_models_that_solve_them() -> None:
    study = scripted_study(12, slips=0.0)
    rows = item_rows(study)
    # looks, side-blind and text-only read the history; blind is right about glioblastoma alone
    assert Counter((row.n_blind, row.n_blind_models) for row in rows) == {(3, 4): 9, (4, 4): 3}
