"""Item analysis and case plan: rows, flags, what a public run shows; real models on published questions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.items import benchmark_config
from fixtures.tables import DEPTH, item, score, write_study
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.records.items import Family, Gold, Level, Runner
from neuralmedbench.records.results import by_measure
from neuralmedbench.records.scores import Score
from neuralmedbench.tables import item_analysis
from neuralmedbench.tables.answers import gather_answers
from neuralmedbench.tables.contrasts import model_pairs, pair_rows
from neuralmedbench.tables.declare import MeasureRow
from neuralmedbench.tables.item_analysis import (
    BLIND,
    EVERYBODY,
    NOBODY,
    REVERSED,
    SAME_WRONG,
    ItemRow,
    compared_models,
    item_rows,
    items_takeaway,
    plan_rows,
)
from neuralmedbench.tables.outcomes import gather_outcomes
from neuralmedbench.tables.release import Release
from neuralmedbench.tables.study import BenchmarkStudy, Study, read_study
from neuralmedbench.tables.write import write_tables

MODELS = tuple(f"m{number}" for number in range(8))
OPTIONS = ("one", "two", "three", "four")


def study_of(
    right: dict[str, list[bool]], blind: dict[str, list[bool]] | None = None, *, wrong: str = "two", baselines: tuple[str, ...] = ()
) -> Study:
    """Make a study of choice questions, one a patient, with a single answer of every model; level and family alternate."""
    number = len(next(iter(right.values())))
    items = [
        replace(
            item("b", f"c{place:03}", f"p{place:03}", (Family.DIFFERENTIAL_DIAGNOSIS, Family.QUESTION_ANSWERING)[place % 2],
                 level=(Level.DIRECT, Level.COMPLEX)[place // 2 % 2], runner=Runner.CHOICE),
            options=OPTIONS, item_id=f"b/{place:03}",
        )
        for place in range(number)
    ]  # fmt: skip
    gold = [Gold(item_id=one.item_id, answer="one", choice="A") for one in items]
    scores = {
        model: [
            score(one, model, passed=passed, arm=arm, differential=("one" if passed else wrong,))
            for arm, given in (("full", right), ("no_image", blind or {}))
            for one, passed in zip(items, given.get(model, []), strict=False)
        ]
        for model in right
    }
    outcomes = gather_outcomes("b", "depth", items, gold, scores=scores, sampled=dict.fromkeys(right, False))
    benchmark = SimpleNamespace(
        name="b", config=benchmark_config(), outcomes=outcomes, scores=scores, items=items, gold=gold,
        floors={"pass1": SimpleNamespace(chosen=np.zeros(number))},
    )  # fmt: skip
    models = {
        name: ModelConfig(title=name, backend="builtin", id=name, revision="1", baseline=name in baselines).named(name) for name in right
    }
    return SimpleNamespace(  # type: ignore[return-value]
        benchmarks={"b": benchmark}, models=models, readers={}, settings=IntervalSettings(resamples=200), stated=None
    )


def abilities(items: int, seed: int = 0) -> dict[str, list[bool]]:
    """Models of rising ability."""
    rng = np.random.default_rng(seed)
    return {name: (rng.random(items) < 0.15 + 0.1 * place).tolist() for place, name in enumerate(MODELS)}


def by_item(study: Study) -> dict[str, ItemRow]:
    return {row.item_id: row for row in item_rows(study)}


def flags(row: ItemRow) -> set[str]:
    return set((row.flags or "").split(", ")) - {""}


def test_flags_say_what_was_planted() -> None:
    right = abilities(80)
    for name in MODELS:
        right[name][0], right[name][1] = False, True
    rows = by_item(study_of(right))
    assert flags(rows["b/000"]) == {NOBODY, SAME_WRONG}
    assert (rows["b/000"].share_right, rows["b/000"].n_same_wrong) == (0.0, 8)
    assert flags(rows["b/001"]) == {EVERYBODY}
    assert rows["b/001"].discrimination is None, "models do not differ on it"
    others = [row for name, row in rows.items() if name > "b/001"]
    assert np.mean([row.discrimination for row in others if row.discrimination is not None]) > 0.2
    assert not [row for row in others if flags(row) & {REVERSED, BLIND}]


def test_an_item_that_weak_models_solve_and_strong_ones_do_not_is_reversed() -> None:
    rng, names = np.random.default_rng(2), [f"n{number:02}" for number in range(20)]
    right = {name: [place < 6, *(rng.random(60) < 0.1 + 0.04 * place).tolist()] for place, name in enumerate(names)}
    rows = by_item(study_of(right))
    assert next(iter(rows)) == "b/000", "the smallest discrimination comes first"
    assert [name for name, row in rows.items() if REVERSED in flags(row)] == ["b/000"]
    assert (rows["b/000"].discrimination_high or 0) < -0.4
    assert rows["b/000"].share_right == pytest.approx(0.3)


def test_an_item_is_blind_where_more_models_solve_it_than_guess() -> None:
    blind = {name: [True] + [place % 4 == number % 4 for number in range(1, 40)] for place, name in enumerate(MODELS)}
    rows = by_item(study_of(abilities(40), blind))
    assert [name for name, row in rows.items() if BLIND in flags(row)] == ["b/000"]
    assert (rows["b/000"].n_blind, rows["b/000"].n_blind_models) == (8, 8)
    study = study_of(abilities(40), blind)
    study.benchmarks["b"].floors["pass1"].chosen[0] = 1.0
    assert BLIND not in flags(by_item(study)["b/000"]), "a constant answer gets it right, which models may share"


def test_models_that_guess_a_common_reference_of_open_items_are_not_blind() -> None:
    """Of open items one guess is as often right as the reference is common in the family; here all have the same."""
    study = study_of(abilities(40), dict.fromkeys(MODELS, [True] * 40))
    one = study.benchmarks["b"]
    assert all(BLIND in flags(row) for row in item_rows(study))
    one.outcomes = replace(one.outcomes, items=tuple(replace(item, runner=Runner.OPEN, options=()) for item in one.outcomes.items))
    assert not any(BLIND in flags(row) for row in item_rows(study))
    golds = tuple(replace(gold, answer=f"disease {place}") for place, gold in enumerate(one.outcomes.gold))
    one.outcomes = replace(one.outcomes, gold=golds)
    assert all(BLIND in flags(row) for row in item_rows(study))


def test_two_thirds_of_the_models_with_one_wrong_answer_flag_an_item() -> None:
    right = abilities(30)
    for place, name in enumerate(MODELS):
        right[name][0], right[name][1] = place < 2, place < 3
    rows = by_item(study_of(right))
    assert (rows["b/000"].n_same_wrong, SAME_WRONG in flags(rows["b/000"])) == (6, True)
    assert (rows["b/001"].n_same_wrong, SAME_WRONG in flags(rows["b/001"])) == (5, False)


def test_a_wrong_answer_counts_where_a_model_gives_it_in_more_than_half_of_its_answers() -> None:
    study = study_of({name: [False] for name in MODELS})
    one = study.benchmarks["b"]
    (item_,) = one.items

    def scores(*answers: str) -> list[Score]:
        return [score(item_, "m", repeat=place, passed=said == "one", differential=(said,)) for place, said in enumerate(answers)]

    given = {"m0": scores("two", "two", "one"), "m1": scores("two", "three", "one"), "m2": scores("two", "Two ", "three")}
    assert item_analysis._same_wrong(replace_scores(one, given), list(given)) == {"b/000": 2}
    given["m2"] = [*given["m2"][:2], replace(given["m2"][2], missing=True, state="failed")]
    assert item_analysis._same_wrong(replace_scores(one, given), list(given)) == {"b/000": 1}, "an item counts for models with all answers"


def replace_scores(benchmark: BenchmarkStudy, scores: dict[str, list[Score]]) -> BenchmarkStudy:
    outcomes = replace(benchmark.outcomes, answers=gather_answers(benchmark.outcomes.items, scores))
    return SimpleNamespace(**vars(benchmark) | {"scores": scores, "outcomes": outcomes})  # type: ignore[return-value]


def test_of_fewer_than_eight_models_nothing_is_said_but_that_an_item_is_blind() -> None:
    right = {name: row for name, row in abilities(30).items() if name in MODELS[:7]}
    for row in right.values():
        row[0], row[1] = False, True
    rows = by_item(study_of(right, {name: [False, False, True] for name in right}))
    assert {row.discrimination for row in rows.values()} == {None}
    assert {row.share_right_low for row in rows.values()} == {None}
    assert {name: row.flags for name, row in rows.items() if row.flags} == {"b/002": BLIND}


def test_built_in_models_count_only_where_there_is_no_other() -> None:
    right = abilities(10)
    some, every, pool = study_of(right, baselines=MODELS[:3]), study_of(right, baselines=MODELS), study_of(right)
    pool.benchmarks["b"].config = benchmark_config(reference_pool=["m7"])
    expected = {"some": MODELS[3:], "every": MODELS, "pool": MODELS[:7]}
    found = {name: tuple(compared_models(one, one.benchmarks["b"])) for name, one in (("some", some), ("every", every), ("pool", pool))}
    assert found == expected


def plan_of(study: Study) -> dict[tuple[str, str], dict[str, MeasureRow]]:
    """Return the measures of every part."""
    return {(part, value): rows for (_, _, part, value), rows in by_measure(plan_rows(study), "slice", "value_of_slice").items()}


def test_the_plan_has_every_part_and_what_it_needs() -> None:
    rows = plan_of(study_of(abilities(120)))
    families = ("differential_diagnosis", "question_answering")
    levels = {(f"level of {family}", level) for family in families for level in ("direct", "complex")}
    assert set(rows) == {("", "")} | {("family", family) for family in families} | levels
    patients = [rows[part]["needed"].n_patients for part in (("", ""), ("family", families[0]), (f"level of {families[0]}", "direct"))]
    assert patients == [120, 60, 30]
    assert all(row["needed"].value for row in rows.values())
    whole = rows["", ""]
    # two models that differ on this share of patients, by the usual formula
    assert whole["needed"].value == pytest.approx(7.85 * (whole["changed"].value or 0) / 0.1**2, rel=0.15)


def test_a_part_with_few_patients_is_planned_by_the_whole() -> None:
    rows = plan_of(study_of(abilities(14)))
    few = rows["level of differential_diagnosis", "direct"]["needed"]
    assert (few.n_patients, few.value) == (4, rows["", ""]["needed"].value)
    assert few.note == "spread of the whole benchmark, as fewer than 5 answered both"
    assert {row.note for row in plan_rows(study_of({"m0": [True] * 8}))} == {"no two models with answers of enough patients"}


def test_a_pair_that_differs_alike_for_every_patient_tells_nothing_about_the_number_of_patients() -> None:
    whole = plan_of(study_of({"m0": [True] * 8, "m1": [False] * 8}))["", ""]["needed"]
    assert (whole.value, whole.note) == (None, "the difference of the median pair does not vary over patients")


def test_pairs_say_how_many_patients_the_margin_needs() -> None:
    def needed(patients: int) -> list[float]:
        study = study_of(abilities(patients))
        return [row.value for row in pair_rows(study, model_pairs(study)) if row.measure == "needed"]

    assert len(needed(120)) == len(MODELS) * (len(MODELS) - 1) / 2
    assert all(needed(120))
    assert needed(3) == []


def test_the_sentence_counts_the_flags() -> None:
    right = abilities(40)
    for name in MODELS:
        right[name][0] = False
    study = study_of(right)
    tables = {"items": [dict(row) for row in item_rows(study)], "plan": [dict(row) for row in plan_rows(study)]}
    said = items_takeaway(study, tables)
    flagged = sum(bool(row["flags"]) for row in tables["items"])
    assert said.takeaway.startswith(f"{flagged} item")
    assert "solved by no model" in said.takeaway
    assert "with one and the same wrong answer" in said.takeaway
    assert said.n == "40 items, 8 models"
    assert "to detect a difference of 10 points" in said.takeaway
    few = study_of({name: right[name] for name in MODELS[:3]})
    said = items_takeaway(few, {"items": [dict(row) for row in item_rows(few)], "plan": []})
    assert said.takeaway == "No item is flagged, but most flags could not be computed: they need 8 models."


@pytest.mark.parametrize(
    ("kind", "profile", "shown"), [("phantom", "public", True), ("patient", "public", False), ("patient", "internal", True)]
)
def test_single_items_of_patients_are_not_in_a_public_run(tmp_path: Path, kind: str, profile: str, *, shown: bool) -> None:
    write_study(tmp_path, models=("alpha", "beta"), patients=24, kind=kind, arms=("full",))
    settings = IntervalSettings(resamples=50)
    study = read_study(tmp_path, [DEPTH], ["alpha", "beta"], ["rubric"], vocabulary=Path("config/vocabulary.yaml"), settings=settings)
    write_tables(study, tmp_path / "tables", tmp_path / "metrics.json", Release(profile))
    rows = read_results(tmp_path / "tables", ("items", "plan"))
    assert bool(rows["items"]) is shown
    assert rows["plan"]
    if not shown:
        small = [row for row in rows["plan"] if row["n_patients"].startswith("<") or row["n_patients"] == "(hidden)"]
        assert all(not row["value"] for row in small)
        assert all(int(row["n_patients"]) >= 10 for row in rows["plan"] if row not in small)


REAL = os.environ.get("NMB_REAL_BENCHMARKS")
SETS = ("afrimedqa", "medbullets", "medmcqa", "medqa", "mmlu", "mmlu-pro", "pubmedqa")
REAL_MODELS = ("DeepSeek-R1", "claude-3-5-sonnet", "gpt-4o", "gpt-4o-mini", "o3-mini")


def real_answers(part: str) -> Iterator[tuple[str, dict[str, tuple[bool, str]]]]:
    """Yield half of the published questions with what each model answered; the halves are those of the parity of its place."""
    for name in SETS:
        folder = Path(str(REAL), "medagentsbench", "output", name)
        files = {
            model: json.loads((folder / f"{model}-{name}-test_hard-zero_shot.json").read_text(encoding="utf-8")) for model in REAL_MODELS
        }
        for place, rows in enumerate(zip(*files.values(), strict=True)):
            if (place % 2 == 1) is (part == "closing"):
                answers = {model: row.get("predicted_answer") or "" for model, row in zip(files, rows, strict=True)}
                yield f"{name}/{place:03}", {model: (said == rows[0]["answer_idx"], said) for model, said in answers.items()}


@pytest.mark.skipif(not REAL, reason="NMB_REAL_BENCHMARKS names no folder of published files")
@pytest.mark.parametrize("part", ["mending", "closing"])
def test_real_models_on_published_questions(part: str) -> None:
    answers = dict(real_answers(part))
    study = study_of({model: [row[model][0] for row in answers.values()] for model in REAL_MODELS})
    rows = item_rows(study)
    assert len(rows) == len(answers)
    shares = np.array([[row[model][0] for row in answers.values()] for model in REAL_MODELS])
    assert [row.share_right for row in rows] == pytest.approx(shares.mean(axis=0).tolist())
    assert {(row.discrimination, row.flags) for row in rows} == {(None, "")}, "five models"
