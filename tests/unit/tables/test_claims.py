"""All comparisons that a sentence at a glance may state are one family with one correction."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.claims import MENDING_SEED, MODELS, SETTINGS, counts_of, measure_claims, null_study, results_of
from fixtures.tables import BREADTH, DEPTH
from neuralmedbench.estimates.exact import holm
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings
from neuralmedbench.tables.claims import WORDS, ClaimRow, _detectable, claim_rows, power_sentence
from neuralmedbench.tables.contrasts import arm_rows, layout_sentence, model_pairs, pairwise_rows, pairwise_takeaway, picture_sentence
from neuralmedbench.tables.decomposition import DecompositionRow, decompose, decomposition_sentence
from neuralmedbench.tables.first_screen import _leader
from neuralmedbench.tables.grounding.measures import CONTRASTS
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.pressure import COMPARED
from neuralmedbench.tables.revisions import RevisionRow, change_sentences
from neuralmedbench.tables.words import CHOSEN, DEGRADED, LAYOUT, ORACLE, OVER_ALL, OVER_NONE, PICTURES, REVISION, VIEWED, claims_of
from neuralmedbench.tables.words import MODELS as PAIRS


@pytest.fixture(scope="module")
def drawn() -> tuple[SimpleNamespace, dict[str, list[object]]]:
    return null_study(np.random.default_rng(MENDING_SEED), 30, 0.6)


def test_every_comparison_is_in_the_family_and_holm_is_over_all_of_them(drawn) -> None:
    _, tables = drawn
    rows = tables["claims"]
    assert len(rows) == 2 * 3 + 3 + 3, "pairs of two sets, pictures, findings"
    assert [row.p_holm for row in rows] == holm([row.p_value for row in rows])
    assert all(row.significant == (row.p_holm < 0.05 and not row.low <= 0 <= row.high) for row in rows)
    # the drawn studies have no revision, and no arm of layouts, grounding, pressure, degraded pictures, work-ups or facts
    assert {row.kind for row in rows} == set(WORDS) - {
        REVISION,
        LAYOUT,
        DEGRADED,
        CHOSEN,
        OVER_NONE,
        OVER_ALL,
        VIEWED,
        ORACLE,
        *CONTRASTS,
        *COMPARED.values(),
    }
    told = next(row for row in rows if row.kind == "findings")
    parts = next(row for row in tables["decomposition"] if row.model == told.model)
    assert told.p_value == max(parts.gain_p, parts.effect_p, parts.beyond_p)
    # the column of the first screen, the sentence and the claim are one number
    assert (told.difference, told.low, told.high) == (parts.effect, parts.effect_low, parts.effect_high)


def test_a_new_revision_is_compared_in_the_same_family(drawn) -> None:
    study, tables = drawn
    row = RevisionRow(benchmark=DEPTH, model="alpha", metric="passed", difference=-0.3, p_value=0.001, p_difference=0.5, n_patients=30)
    found = claim_rows(results_of(study, {**tables, "revisions": [row]}))
    last = found[-1]
    assert (last.kind, last.model, last.other, last.difference, last.p_value) == (REVISION, "alpha", "passed", -0.3, 0.002)
    assert last.p_holm == pytest.approx(0.002 * len(found))
    assert last.significant


@pytest.mark.parametrize(("turned", "verdict"), [(24, "a significant difference"), (1, "not significantly different")])
def test_the_documented_layout_of_one_model_is_compared_with_the_common_one_in_the_same_family(turned, verdict) -> None:
    study, tables = null_study(np.random.default_rng(MENDING_SEED), 30, 0.3)
    benchmark = study.benchmarks[DEPTH]
    full = benchmark.outcomes.counts[Key("alpha")].passes
    passes = full.copy()
    passes[np.flatnonzero(full == 0)[:turned]] = 1
    benchmark.outcomes.counts[Key("alpha", "layout-medgemma")] = counts_of(passes)
    benchmark.layouts["layout-medgemma"] = SimpleNamespace(config=SimpleNamespace(title="MedGemma 1.5"))
    tables |= {"arms": arm_rows(study)}
    rows = claim_rows(results_of(study, tables))
    assert [(row.kind, row.model, row.other) for row in rows if row.kind == LAYOUT] == [(LAYOUT, "alpha", "layout-medgemma")]
    assert len(rows) == len(tables["claims"]) + 1
    (found,) = [row for row in rows if row.kind == LAYOUT]
    assert found.difference == pytest.approx(turned / passes.size)
    text = layout_sentence(study, {"claims": [dict(row) for row in rows]})
    assert text.startswith("Shown as its maker documents, against the common layout: Alpha +")
    assert text.endswith(f"on {DEPTH} in the layout of MedGemma 1.5, {verdict}.")
    assert layout_sentence(study, {"claims": [dict(row) for row in tables["claims"]]}) == ""


def test_no_sentence_names_a_difference_that_is_not_significant_in_the_family(drawn) -> None:
    study, tables = drawn
    claims = [dict(row) for row in tables["claims"]]
    best = {
        "model": "alpha",
        "title": "Alpha",
        "rank": 1,
        "pass1": 0.6,
        "pass1_low": 0.5,
        "pass1_high": 0.7,
        "n_items": 60,
        "n_patients": 30,
    }
    board = [
        {**best, "benchmark": DEPTH, "model": name, "title": name.title(), "rank": place + 1, "in_reference_pool": False}
        for place, name in enumerate(MODELS)
    ]
    for significant in (False, True):
        rows = [row | {"significant": significant, "difference": -0.2 if row["kind"] == PICTURES else 0.2} for row in claims]
        cells = {
            "claims": rows,
            "leaderboard": board,
            "decomposition": [dict(row) | {"shown": True, "share": 0.5} for row in tables["decomposition"]],
        }
        assert ("Beta and Gamma score significantly lower" in _leader(study, cells, DEPTH)) is significant
        assert ("Beta and Gamma do not score significantly lower" in _leader(study, cells, DEPTH)) is not significant
        assert ("did significantly worse without them" in picture_sentence(study, cells)) is significant
        assert ("The findings repair" in decomposition_sentence(study, cells, DEPTH)) is significant
        changes = {"same_text": 0.5, "n_items": 60, "gained": 5, "lost": 6, "noise_floor": None}
        revised = [{"benchmark": DEPTH, "model": "alpha", "metric": "passed", **changes}]
        told = change_sentences(study, cells | {"revisions": revised, "claims": [*rows, {**rows[0], "kind": REVISION, "model": "alpha"}]})
        assert ("answers otherwise than the one before" in told[0] and "not shown" not in told[0]) is significant
        changed = "11 of 60 verdicts changed (5 to passed, 6 to failed); pass@1 was not shown to differ, and how much repeats would change"
        assert (changed in told[0]) is not significant


@pytest.mark.parametrize(
    ("unread", "words"), [(0, "scores significantly lower"), (20, "cannot be told whether Beta scores lower (67 % unread)")]
)
def test_unread_answers_that_could_turn_a_comparison_leave_it_open(unread: int, words: str) -> None:
    """Beta fails 20 of 30 items that alpha passes: if all of these are unread, nobody knows what it answered."""
    study, tables = null_study(np.random.default_rng(MENDING_SEED), 30, 0.3)
    outcomes = study.benchmarks[BREADTH].outcomes
    places = np.arange(len(outcomes.items))
    right = places >= len(places) * 2 // 3
    study.models = {name: study.models[name] for name in ("alpha", "beta")}
    outcomes.counts.update(
        {Key("alpha"): counts_of(places >= 0), Key("beta"): replace(counts_of(right), unread=(~right & (unread > 0)) * 1)}
    )
    tables |= {
        "pairwise": pairwise_rows(model_pairs(study), study.settings.max_missing_fraction),
        "arms": [],
        "decomposition": [],
    }
    claims = [vars(row) for row in claim_rows(results_of(study, tables))]
    size = {"benchmark": BREADTH, "in_reference_pool": False, "pass1_low": 0.1, "pass1_high": 1.0, "n_items": 30, "n_patients": 30}
    board = [size | {"model": name, "title": name.title(), "rank": 1, "pass1": rate} for name, rate in (("alpha", 1.0), ("beta", 0.33))]
    assert words in _leader(study, {"claims": claims, "leaderboard": board}, BREADTH)
    (claim,) = [row for row in claims if row["benchmark"] == BREADTH]
    assert (claim["significant"], claim["unread"] > 0.6) == (not unread, bool(unread))
    said = pairwise_takeaway(study, {"pairwise": [vars(row) for row in tables["pairwise"] if row.benchmark == BREADTH]}).takeaway
    assert said.startswith("The only pair of models differs" if not unread else "0 of 1 pair of models differ")
    assert ("Of 1 pair it cannot be told" in said) is bool(unread)


@pytest.mark.parametrize("kind", [PICTURES, DEGRADED])
def test_unread_answers_of_an_arm_leave_its_comparison_open_too(kind: str) -> None:
    study, tables = null_study(np.random.default_rng(MENDING_SEED), 30, 0.3)
    outcomes = study.benchmarks[DEPTH].outcomes
    ones, none = np.ones(len(outcomes.items)), np.zeros(len(outcomes.items))
    lower = Key("alpha", {PICTURES: "no_image", DEGRADED: "degraded-a-2"}[kind])
    found = {}
    for unread in (none, ones):
        outcomes.counts.update({Key("alpha"): counts_of(ones), lower: replace(counts_of(none), unread=unread.astype(int))})
        fallen = {
            "model": "alpha",
            "benchmark": DEPTH,
            "operator": "a",
            "arms": "degraded-a-1 degraded-a-2",
            "level": 2,
            "difference": -1.0,
        }
        own = {
            "pairwise": [],
            "decomposition": [],
            "arms": [row for row in arm_rows(study) if (row.model, row.arm) == ("alpha", "no_image")] if kind == PICTURES else [],
            "degradation": [fallen | {"low": -1.0, "high": -0.9, "p_value": 1e-6, "n_patients": 30}] if kind == DEGRADED else [],
        }
        found[bool(unread.any())] = [row.significant for row in claim_rows(results_of(study, tables | own))]
    assert found == {False: [True], True: [False]}


def test_what_is_claimed_of_true_findings_is_held_by_the_test_and_by_the_interval() -> None:
    """Eight patients with 1 to 12 items, whose findings help by 50 points: no claim has an interval that holds 0."""
    rng, sizes, settings = np.random.default_rng(21), [1, 1, 2, 2, 3, 3, 8, 12], IntervalSettings(resamples=500)
    codes = np.repeat(np.arange(8), sizes)
    by, seen = ByPatient(codes, settings), Counter[tuple[bool, bool, bool | None]]()
    none = {name: [] for name in ("pairwise", "arms", "pressure", "degradation", "workup", "viewer", "revisions")}
    for _ in range(150):
        chance = rng.beta(1, 3, 8)[codes]
        passed = {name: (rng.random(len(codes)) < chance).astype(float) for name in ("f", "donor", "leak")}
        passed["d"] = (rng.random(len(codes)) < np.clip(chance + 0.5, 0, 1)).astype(float)
        row = DecompositionRow(benchmark=DEPTH, model="alpha", **decompose(passed, by))
        unasked = SimpleNamespace(outcomes=SimpleNamespace(counts={}, items=()))
        study = SimpleNamespace(settings=settings, benchmarks={DEPTH: unasked}, models={})
        (claim,) = claim_rows(results_of(study, {**none, "decomposition": [row]}))
        beyond_zero = claim.low is not None and (claim.low > 0 or claim.high < 0)
        seen[claim.p_value < 0.05, beyond_zero, claim.significant] += 1
    # test, interval, claim: the largest p value of three tests counts, and the interval is that of one of them
    assert set(seen) == {(True, True, True), (False, True, False), (False, False, False)}
    assert seen[True, True, True] > 50


@pytest.mark.parametrize(("studies", "most"), [(20, 3), pytest.param(60, 6, marks=pytest.mark.long)])
def test_three_equal_models_on_two_benchmarks_hardly_ever_differ(studies: int, most: int) -> None:
    """Where a study in twenty has a claim, 97 of 100 such series have no more of them."""
    found = measure_claims(12, 0.6, studies, MENDING_SEED)
    assert found["any"] <= most / studies
    assert found["uncorrected"] > found["any"]


def test_the_last_sentence_says_how_large_a_difference_the_run_can_show(drawn) -> None:
    study, tables = drawn
    rows = [dict(row) for row in tables["claims"]]
    sentence = power_sentence(study, {"claims": rows})
    assert sentence.startswith("Power: with 30 to 60 patients, 8 of 10 such studies would show a difference of ")
    assert "between two models" in sentence
    assert sentence.endswith("after Holm's correction for all 12 comparisons that the sentences above may state.")
    pair = next(row for row in rows if row["kind"] == PAIRS and row["benchmark"] == DEPTH)
    half = (pair["high"] - pair["low"]) / 2
    assert pair["detectable"] > 1.4 * half, "more than what one uncorrected comparison would show"
    wide = [row | {"detectable": 1.5} for row in rows if row["kind"] == PAIRS]
    assert "8 of 10 such studies would show no difference, however large, between two models, after" in power_sentence(
        study, {"claims": wide}
    )
    assert ", but none, however large, between two models, after" in power_sentence(study, {"claims": [*rows[6:], *wide]})
    impossible = [row | {"detectable": None, "n_patients": 8} for row in wide]
    sentence = power_sentence(study, {"claims": impossible})
    assert sentence.startswith("Power: with 8 patients, 8 of 10 such studies would show no difference, however large, between two models")
    assert power_sentence(study, {"claims": []}) == ""


@pytest.mark.parametrize(("patients", "number"), [(6, 15), (8, 15), (12, 60)])
def test_no_power_is_promised_where_no_difference_could_be_significant(patients: int, number: int) -> None:
    row = ClaimRow(kind=PAIRS, benchmark=DEPTH, model="a", difference=0.2, low=0.0, high=0.4, p_value=0.03, n_patients=patients)
    known = _detectable(row, 0.05, number)
    assert (known is None) == (2.0 ** (1 - patients) >= 0.05 / number)


def test_claims_are_looked_up_by_their_cells() -> None:
    rows = [{"kind": PAIRS, "benchmark": one, "model": "a", "significant": one == DEPTH} for one in (DEPTH, BREADTH)]
    assert claims_of({"claims": rows}, PAIRS) == rows[:1]
    assert claims_of({"claims": rows}, PAIRS, significant=False, benchmark=BREADTH) == rows[1:]
    assert SETTINGS.confidence == 0.95
