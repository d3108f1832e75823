"""What sentences at a glance may claim: the primary first, then pictures and models together."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fixtures.claims import MODELS, counts_of, null_study, tables_of
from fixtures.tables import BREADTH, DEPTH
from neuralmedbench.estimates.contrasts import DIFFERENT, can_reject
from neuralmedbench.tables.claims import WORDS, power_sentence, primary_sentence
from neuralmedbench.tables.contrasts import layout_sentence, picture_sentence
from neuralmedbench.tables.family import FIRST_SCREEN, Compared, FamilyTest, corrected_family
from neuralmedbench.tables.first_screen import _leader
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import Stated
from neuralmedbench.tables.words import MODELS as PAIRS
from neuralmedbench.tables.words import PICTURES, PRIMARY, TITLE, claims_of

STATED = Stated("2026-01-31", DEPTH, "beta", "alpha")


def all_claims(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the claims of all kinds."""
    return [row for kind in (PAIRS, PRIMARY, PICTURES) for row in claims_of(tables, kind, significant=False)]


def are_significant(tables: dict[str, list[dict[str, Any]]], kind: str, **cells: str) -> list[bool]:
    """Say of each claim of a kind whether it is significant."""
    return [row["answer"] in DIFFERENT for row in claims_of(tables, kind, significant=False, **cells)]


def pairs_of(tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the comparisons of two models."""
    return [row for row in tables["pairs"] if "difference" in row]


def answer(study: SimpleNamespace, model: str, passed: np.ndarray, arm: str = "full", unread: np.ndarray | None = None) -> None:
    """Write the answers of a model to the depth set."""
    counts = counts_of(passed)
    if unread is not None:
        counts = replace(counts, unread=unread.astype(np.int64))
    study.benchmarks[DEPTH].outcomes.counts[Key(model, arm)] = counts


def run_with(passing: dict[str, int], stated: Stated | None = None) -> SimpleNamespace:
    """Return a run of 30 patients, of whose 60 items on the depth set each model passes the first ones, with pictures."""
    study = null_study(30, 0.6)
    places = np.arange(60)
    for model, number in passing.items():
        answer(study, model, places < number)
        answer(study, model, places < 0, "no_image")
    study.stated = stated
    for benchmark in study.benchmarks.values():
        benchmark.responses = {model: [SimpleNamespace(called_on="2026-02-01")] for model in MODELS}
    return study


@pytest.fixture(scope="module")
def drawn() -> tuple[SimpleNamespace, dict[str, list[dict[str, Any]]]]:
    study = null_study(30, 0.6)
    return study, tables_of(study)


def test_pairs_with_the_leader_and_pictures_are_claims_and_all_pairs_are_corrected(drawn) -> None:
    study, tables = drawn
    leaders = {row["benchmark"]: row["model"] for row in tables["leaderboard"] if row["rank"] == 1}
    rows = all_claims(tables)
    assert [row["other"] != "" for row in rows] == [True] * 4 + [False] * 3
    assert all(leaders[row["benchmark"]] in (row["model"], row["other"]) for row in rows if row["other"])
    assert {row["benchmark"] for row in rows if not row["other"]} == {DEPTH}
    assert {row["family"] for row in (*rows, *pairs_of(tables))} == {FIRST_SCREEN}
    family = corrected_family(study)
    assert len(family) == 2 * 3 + 3, "pairs of two sets, pictures of one"
    for row in (*rows, *pairs_of(tables)):
        tested = family[Compared(row["benchmark"], row["model"], row["other"])]
        assert row["p_corrected"] == max(tested.p_corrected, row["p_value"])
        assert (row["answer"] in DIFFERENT) == (row["p_corrected"] < 0.05)
        assert not (row["answer"] in DIFFERENT and row["low"] <= 0 <= row["high"])
        assert row["answer"] == ("better" if row["difference"] > 0 else "worse") or row["answer"] not in DIFFERENT


def test_readers_are_in_no_correction(drawn) -> None:
    study, _ = drawn
    people = SimpleNamespace(**vars(study) | {"readers": {"gamma": "clinician"}})
    assert {name for compared in corrected_family(people) for name in (compared.model, compared.other)} == {"alpha", "beta", ""}
    found = tables_of(people)
    assert all("gamma" not in (row["model"], row["other"]) for row in all_claims(found))
    assert {(row["p_corrected"], row["family"]) for row in pairs_of(found) if "gamma" in (row["model"], row["other"])} == {(None, "")}


def test_patients_who_share_a_request_have_one_sign() -> None:
    study = null_study(12, 0.6)
    answer(study, "alpha", np.ones(24))
    answer(study, "alpha", np.zeros(24), "no_image")
    outcomes = study.benchmarks[DEPTH].outcomes
    alone = corrected_family(study)[Compared(DEPTH, "alpha")]
    # two patients each were sent the same words, without their pictures
    requests = {Key("alpha", "no_image"): np.arange(24) // 4}
    study.benchmarks[DEPTH].outcomes = replace(outcomes, requests=requests)
    shared = corrected_family(study)[Compared(DEPTH, "alpha")]
    assert alone.p_corrected < shared.p_corrected
    assert shared.p_corrected >= 2 * 0.5**6


def test_a_stated_comparison_has_the_whole_error_and_opens_the_others() -> None:
    study = run_with({"alpha": 40, "beta": 28, "gamma": 10}, STATED)
    tables = tables_of(study)
    (primary,) = claims_of(tables, PRIMARY)
    assert (primary["model"], primary["other"], primary["p_corrected"]) == ("alpha", "beta", primary["p_value"])
    assert are_significant(tables, PICTURES) == [True, True, False]
    said = primary_sentence(study, tables)
    assert said.startswith(f"Stated comparison: Beta against Alpha on {DEPTH}, stated on 2026-01-31: −20 points (")
    assert said.endswith("; Alpha scores significantly higher.")
    # at the whole error it needs less than any other comparison
    level = power_sentence(tables)
    assert "points in the stated comparison." in level
    assert "correction" not in level


def test_nothing_but_intervals_is_left_where_the_stated_comparison_is_missed() -> None:
    study = run_with({"alpha": 40, "beta": 38, "gamma": 10}, STATED)
    tables = tables_of(study)
    assert claims_of(tables, PICTURES) == claims_of(tables, PAIRS) == claims_of(tables, PRIMARY) == []
    assert {row["p_corrected"] for row in all_claims(tables) if row["family"] != PRIMARY} == {None}
    assert all(row["low"] is not None for row in all_claims(tables))
    # nor is a clear difference called one by its interval alone
    assert any(row["low"] > 0 for row in pairs_of(tables))
    said = primary_sentence(study, tables)
    assert said.startswith(f"Stated comparison: Beta against Alpha on {DEPTH}, stated on 2026-01-31: −3 points (")
    assert said.endswith("; inconclusive. No other comparison is tested.")
    assert picture_sentence(study, tables) == "Pictures: not tested, because the stated comparison is inconclusive."
    assert "significantly" not in _leader(study, tables, DEPTH)
    # without it, both other models are lower, and the pictures are used
    study.stated = None
    free = tables_of(study)
    assert are_significant(free, PICTURES) == [True, True, False]
    assert primary_sentence(study, free) == ""


def test_unread_answers_that_could_turn_the_stated_comparison_close_the_others() -> None:
    study = run_with({"alpha": 40, "beta": 28, "gamma": 10}, STATED)
    places = np.arange(60)
    answer(study, "beta", places < 28, unread=places >= 28)
    tables = tables_of(study)
    assert not any(row["answer"] in DIFFERENT for row in all_claims(tables))
    assert "inconclusive, as 53 % of the answers of the lower one could not be read" in primary_sentence(study, tables)


def test_a_comparison_that_is_stated_after_its_first_answer_is_none() -> None:
    late = STATED._replace(on="2026-02-02")
    study = run_with({"alpha": 40, "beta": 38, "gamma": 10}, late)
    tables = tables_of(study)
    assert not claims_of(tables, PRIMARY, significant=False)
    assert claims_of(tables, PICTURES)
    assert primary_sentence(study, tables) == (
        "Stated comparison: it was stated on 2026-02-02, after its first answer (2026-02-01), so it counts as any other."
    )


def test_a_comparison_that_is_stated_for_another_run_changes_nothing() -> None:
    study = run_with({"alpha": 40, "beta": 38, "gamma": 10}, STATED._replace(first="delta"))
    assert primary_sentence(study, tables_of(study)) == ""
    assert claims_of(tables_of(study), PICTURES)


def test_no_sentence_names_a_difference_that_is_not_significant_in_the_family() -> None:
    study = run_with({"alpha": 40, "beta": 10, "gamma": 10})
    tables = tables_of(study)
    for significant in (False, True):
        changed = {} if significant else {"p_corrected": 0.4, "answer": "inconclusive"}
        cells = tables | {topic: [row | changed for row in tables[topic]] for topic in ("pairs", "arms")}
        assert ("Beta and Gamma score significantly lower" in _leader(study, cells, DEPTH)) is significant
        assert ("Beta and Gamma do not score significantly lower" in _leader(study, cells, DEPTH)) is not significant
        assert ("points lower without them" in picture_sentence(study, cells)) is significant


@pytest.mark.parametrize(("unread", "words"), [(False, "scores significantly lower"), (True, "inconclusive for Beta (67 % unread)")])
def test_unread_answers_that_could_turn_a_comparison_leave_it_open(unread: bool, words: str) -> None:
    """Beta fails 40 of 60 items that alpha passes: if all of these are unread, nobody knows what it answered."""
    study = null_study(30, 0.3)
    right = np.arange(60) >= 40
    study.models = {name: study.models[name] for name in ("alpha", "beta")}
    answer(study, "alpha", np.ones(60))
    answer(study, "beta", right, unread=~right & unread)
    tables = tables_of(study)
    assert words in _leader(study, tables, DEPTH)
    (claim,) = claims_of(tables, PAIRS, significant=False, benchmark=DEPTH)
    assert (claim["answer"], (claim["unread"] or 0) > 0.6) == ("inconclusive" if unread else "better", unread)


def test_unread_answers_without_the_pictures_leave_the_comparison_open_too() -> None:
    study = null_study(30, 0.3)
    found = {}
    for unread in (np.zeros(60), np.ones(60)):
        answer(study, "alpha", np.ones(60))
        answer(study, "alpha", np.zeros(60), "no_image", unread)
        (found[bool(unread.any())],) = are_significant(tables_of(study), PICTURES, model="alpha")
    assert found == {False: True, True: False}


def test_the_documented_layout_of_one_model_is_stated_with_its_interval() -> None:
    study = null_study(30, 0.3)
    full = study.benchmarks[DEPTH].outcomes.counts[Key("alpha")].passes
    passes = full.copy()
    passes[np.flatnonzero(full == 0)[:24]] = 1
    answer(study, "alpha", passes, "layout-medgemma")
    study.benchmarks[DEPTH].layouts["layout-medgemma"] = SimpleNamespace(config=SimpleNamespace(title="MedGemma 1.5"))
    tables = tables_of(study)
    text = layout_sentence(study, tables)
    assert text.startswith("Shown as its maker documents, against the common layout (exploratory): Alpha +40 points (+")
    assert text.endswith(" in the layout of MedGemma 1.5.")
    assert {row["arm"] for row in tables["arms"] if row["family"]} == {"no_image"}


def test_the_last_sentence_says_how_large_a_difference_the_run_can_show(drawn) -> None:
    _, tables = drawn
    sentence = power_sentence(tables)
    assert sentence.startswith("Power: with 30 to 60 patients, the study has 80 % power to detect a difference of ")
    assert " points with and without pictures and " in sentence
    assert sentence.endswith(" points between two models, after correction for all 9 comparisons.")
    wide = tables | {"pairs": [row | {"detectable": None} for row in tables["pairs"]], "arms": []}
    assert " patients, the size of a difference between two models cannot be computed, after" in power_sentence(wide)
    few = wide | {"pairs": [row | {"n_patients": 5} for row in wide["pairs"]]}
    assert "with 5 patients, the study has 80 % power to detect no difference, however large, between two models" in power_sentence(few)
    both = tables | {"pairs": few["pairs"]}
    assert "with and without pictures, but none, however large, between two models, after" in power_sentence(both)
    assert power_sentence({"leaderboard": [], "title": [], "pairs": [], "arms": []}) == ""


@pytest.mark.parametrize(("patients", "number"), [(6, 1), (6, 15), (8, 15), (12, 60)])
def test_no_power_is_promised_where_the_corrected_level_cannot_be_reached(patients: int, number: int) -> None:
    known = FamilyTest(0.5, 0.1, level=0.05 / number).detectable(patients)
    assert (known is not None) == can_reject(patients, 0.05 / number)


def test_claims_are_looked_up_by_their_cells(drawn) -> None:
    _, tables = drawn
    both = claims_of(tables, PAIRS, significant=False)
    of_each = [claims_of(tables, PAIRS, significant=False, benchmark=benchmark) for benchmark in (DEPTH, BREADTH)]
    assert sorted(map(str, both)) == sorted(str(row) for rows in of_each for row in rows)
    assert [len(rows) for rows in of_each] == [2, 2]
    assert list(WORDS) == [PRIMARY, TITLE, PICTURES, PAIRS]
