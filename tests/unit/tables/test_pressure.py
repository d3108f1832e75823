"""Pressure, order and wording: models with a written behaviour land where it puts them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fixtures.models import Server, model_config, reply, running_server
from fixtures.pressure import (
    DISEASES,
    FIRST,
    PRESSURE,
    SCRIPTS,
    SHUFFLES,
    WORDINGS,
    Script,
    Seen,
    answer_text,
    beliefs_of,
    gives_in,
    loves_first,
    requests_of,
    scripted_study,
    seen_in,
    simulated_items,
    steady,
)
from fixtures.scoring import vocabulary
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.arm_changes import wrong_gold
from neuralmedbench.tables.answers import gather_answers
from neuralmedbench.tables.pressure import Row, balanced_seeds, pressure_rows

PATIENTS = 40


@cache
def measured(samples: int = 1) -> tuple[Any, dict[tuple[str, str], Row]]:
    """Give the study of all scripts, and its rows by model and measure; of the places, by model and letter."""
    study = scripted_study(PATIENTS, SCRIPTS, samples=samples)
    return study, by_measure(pressure_rows(study))


def by_measure(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Give rows by model and measure."""
    return {(row.model, row.value_of_slice if row.measure == "place" else row.measure): row for row in rows}


def ends(row: Row) -> tuple[float, float]:
    """Give the interval of a row."""
    assert row.low is not None
    assert row.high is not None
    return row.low, row.high


def test_a_model_that_always_gives_in_takes_both_suggestions_and_has_asymmetry_0() -> None:
    rows = measured()[1]
    assert rows["gives-in", "gives_in"].value == 1.0
    assert rows["gives-in", "corrected"].value == 1.0
    asymmetry = rows["gives-in", "asymmetry"]
    assert asymmetry.value == 0.0
    assert asymmetry.p_value == 1.0
    low, high = ends(asymmetry)
    assert -0.15 < low < 0 < high < 0.15


def test_a_model_that_never_gives_in_has_asymmetry_0_too_and_is_told_apart_by_its_rates() -> None:
    rows = measured()[1]
    assert rows["steady", "gives_in"].value == rows["steady", "corrected"].value == 0.0
    assert rows["steady", "asymmetry"].value == 0.0
    for name in ("gives_in", "corrected"):
        assert ends(rows["steady", name])[1] < ends(rows["gives-in", name])[0]


@pytest.mark.parametrize(("model", "sign"), [("gives-in-to-right", 1), ("gives-in-to-wrong", -1)])
def test_the_two_directions_are_told_apart(model: str, sign: int) -> None:
    rows = measured()[1]
    wrong, right = ends(rows[model, "gives_in"]), ends(rows[model, "corrected"])
    assert (wrong[1] < right[0]) if sign > 0 else (right[1] < wrong[0])
    low, high = ends(rows[model, "asymmetry"])
    assert rows[model, "asymmetry"].value == sign
    assert (low if sign > 0 else -high) > 0.8


def test_right_answers_that_are_kept_and_those_given_up_with_confidence_are_shares_of_the_right_ones() -> None:
    """Resistance and CCS of arXiv 2603.22623 are shares of all answers, by their authors' code."""
    rows = measured()[1]
    assert rows["gives-in", "stays_right"].value == 0.0
    assert rows["gives-in", "confident_giving_in"].value == pytest.approx(0.8)
    assert rows["steady", "stays_right"].value == 1.0


def test_the_items_of_both_directions_are_all_items_with_a_suggestion() -> None:
    rows = measured()[1]
    wrong, right = rows["steady", "gives_in"], rows["steady", "corrected"]
    assert (wrong.n_items or 0) + (right.n_items or 0) == PATIENTS * 3
    assert rows["steady", "asymmetry"].n_items == PATIENTS * 3


def test_an_own_answer_from_a_colleague_moves_who_follows_colleagues_and_nobody_else() -> None:
    rows = measured()[1]
    assert rows["gives-in", "keeps_suggested"].value == 1.0
    assert rows["gives-in", "keeps_doubted"].value == 0.0
    assert ends(rows["gives-in", "follows_colleague"])[0] > 0.8
    assert rows["gives-in", "lost_to_doubt"].value == 1.0
    for name in ("keeps_suggested", "keeps_doubted"):
        assert rows["steady", name].value == 1.0
    low, high = ends(rows["steady", "follows_colleague"])
    assert low < 0 < high
    assert rows["steady", "lost_to_doubt"].value == rows["steady", "corrected_by_doubt"].value == 0.0


def test_who_answers_by_content_names_every_place_equally_often_and_the_same_option_in_every_order() -> None:
    rows = measured()[1]
    assert [rows["steady", letter].value for letter in "ABCD"] == [0.25] * 4
    assert rows["steady", "place_bias"].value == 0.0
    assert rows["steady", "order_consistency"].value == 1.0


@pytest.mark.parametrize("studies", [10, pytest.param(30, marks=pytest.mark.long)])
def test_the_bias_of_a_lover_of_the_first_option_is_recovered_in_its_interval(studies: int) -> None:
    """It names the first option in 60 % of the answers, and else in a quarter: 70 %."""
    truth, held = FIRST + (1 - FIRST) / 4, 0
    for seed in range(studies):
        study = scripted_study(PATIENTS, {"m": loves_first}, arms=["full", *SHUFFLES], seed=seed)
        rows = by_measure(pressure_rows(study))
        low, high = ends(rows["m", "A"])
        held += low <= truth <= high
        bias = rows["m", "place_bias"]
        assert bias.value_of_slice == "A"
        assert ends(bias)[0] > 0.25
        assert (bias.p_value or 1) < 0.05
    assert held >= stats.binom.ppf(0.001, studies, 0.95)


@pytest.mark.parametrize("studies", [20, pytest.param(60, marks=pytest.mark.long)])
def test_a_model_without_a_bias_is_rarely_said_to_have_one(studies: int) -> None:
    found = 0
    for seed in range(studies):
        study = scripted_study(20, {"m": guesses}, arms=["full", *SHUFFLES], seed=seed)
        found += (by_measure(pressure_rows(study))["m", "place_bias"].p_value or 0) < 0.05
    assert found <= stats.binom.ppf(0.999, studies, 0.05)


def test_fewer_orders_than_options_are_balanced_over_the_items() -> None:
    study = scripted_study(80, {"m": steady}, arms=["full", *SHUFFLES[:2]])
    rows = by_measure(pressure_rows(study))
    for letter in "ABCD":
        low, high = ends(rows["m", letter])
        assert low <= 0.25 <= high


@pytest.mark.parametrize(
    ("seeds", "options", "kept"),
    [([1, 2, 3, 4], 4, [1, 2, 3, 4]), ([1, 2, 3, 4, 5, 6], 4, [1, 2, 3, 4]), ([1, 2, 3, 4], 2, [1, 2, 3, 4]), ([2, 3, 4], 2, [3, 4]), ([5], 3, [5])],
)  # fmt: skip
def test_places_are_counted_over_whole_rounds_of_seeds(seeds: list[int], options: int, kept: list[int]) -> None:
    assert balanced_seeds(seeds, options) == kept


def test_none_of_the_above_is_found_by_who_knows_the_answer() -> None:
    rows = measured()[1]
    assert rows["steady", "finds_none_if_known"].value == 1.0
    known = [row.passed for row in measured()[0].benchmarks["b"].scores["steady"] if row.arm == "full" and row.runner == "choice"]
    assert rows["steady", "finds_none"].value == pytest.approx(np.mean(known))


def test_one_wording_that_costs_right_answers_is_found_in_consistency_and_spread() -> None:
    rows = measured()[1]
    # three of the four wordings lead to the same answer: three of six pairs
    assert rows["minds-words", "wording_consistency"].value == pytest.approx(0.5)
    assert rows["minds-words", "wording_spread"].value == 1.0
    assert (rows["minds-words", "wording_spread"].p_value or 1) < 0.01
    assert rows["steady", "wording_consistency"].value == 1.0
    assert rows["steady", "wording_spread"].value == 0.0


def guesses(seen: Seen, rng: np.random.Generator) -> str:
    """Name one of the four."""
    return str(rng.choice(DISEASES))


@pytest.mark.parametrize("patients", [20, pytest.param(60, marks=pytest.mark.long)])
def test_what_repeats_do_without_a_suggestion_stands_beside_what_suggestions_do(patients: int) -> None:
    """A guesser of four names a given one in a quarter, suggested or not; of the diagnoses no rival is among the four."""
    found = defaultdict[str, list[float]](list)
    for seed in range(8):
        study = scripted_study(patients, {"m": guesses}, arms=["full", *PRESSURE[:2]], samples=3, seed=seed)
        for row in pressure_rows(study):
            found[row.measure].append(row.value or 0.0)
    outcomes = study.benchmarks["b"].outcomes
    wrong = [wrong_gold(item, gold, vocabulary()) for item, gold in zip(outcomes.items, outcomes.gold, strict=True)]
    named = 0.25 * np.mean([row is not None and row.answer in DISEASES for row in wrong])
    for name, truth in (("gives_in", named), ("gives_in_repeat", named), ("corrected", 0.25), ("corrected_repeat", 0.25)):
        error = np.std(found[name], ddof=1) / np.sqrt(len(found[name]))
        assert abs(np.mean(found[name]) - truth) < 4 * error, name


def test_repeats_of_a_steady_model_are_all_alike() -> None:
    rows = by_measure(pressure_rows(scripted_study(6, {"m": steady}, arms=["full", *WORDINGS], samples=2)))
    assert rows["m", "repeat_consistency"].value == 1.0


def test_a_missing_answer_counts_on_neither_side() -> None:
    study = scripted_study(10, {"m": gives_in}, arms=["full", *PRESSURE])
    scores = study.benchmarks["b"].scores["m"]
    gone = next(row for row in scores if row.arm == "suggestion-wrong" and row.passed is not None)
    before = by_measure(pressure_rows(study))["m", "gives_in"].n_answers
    right = any(row.passed for row in scores if row.arm == "full" and row.item_id == gone.item_id)
    scores.remove(gone)
    outcomes = study.benchmarks["b"].outcomes
    study.benchmarks["b"].outcomes = replace(outcomes, answers=gather_answers(outcomes.items, {"m": scores}))  # type: ignore[misc]
    after = by_measure(pressure_rows(study))["m", "gives_in"].n_answers
    assert after == (before or 0) - right


def test_only_measures_of_arms_that_were_asked_have_rows() -> None:
    study = scripted_study(6, {"m": steady}, arms=["full", "suggestion-wrong"])
    assert [row.measure for row in pressure_rows(study)] == ["gives_in", "stays_right", "confident_giving_in"]
    assert pressure_rows(scripted_study(6, {"m": steady}, arms=["full"])) == []


class ScriptedServer(Server):
    """A server on this machine that answers by a script."""

    def __init__(self, script: Script, truths: Mapping[str, str], beliefs: Mapping[str, str]) -> None:
        super().__init__()
        self._script, self._truths, self._beliefs = script, truths, beliefs
        self._rng = np.random.default_rng(0)

    async def handle(self, request: Any) -> Any:
        from aiohttp import web

        body = await request.json()
        self.bodies.append(body)
        content = body["messages"][-1]["content"]
        seen = seen_in(content if isinstance(content, str) else content[0]["text"], self._truths, self._beliefs)
        return web.json_response(reply(answer_text(seen, self._script(seen, self._rng))))


@pytest.fixture(params=["steady", "gives-in", "gives-in-to-right"])
def over_the_wire(request: pytest.FixtureRequest, tmp_path) -> Iterator[tuple[str, Any, list[dict[str, Any]]]]:
    """Ask a scripted model over HTTP, with the engine and its ledger; give its name, study and what the server was sent."""
    built, words = simulated_items(6), vocabulary()
    truths = {row.item_id.removeprefix("b/"): row.answer for row in built.gold}
    with running_server(ScriptedServer(SCRIPTS[request.param], truths, beliefs_of(built.gold, 0.6))) as server:
        model = model_config("m", api_base=server.address, max_tokens=100)
        run = ModelRun(model, ledger=tmp_path / "m.jsonl", destinations=("local",), max_failed_fraction=0.0, root=tmp_path)
        arms = ["full", *PRESSURE]
        rows = answer_requests(requests_of(built, arms, 1, words), run)
        yield request.param, scripted_study(6, {}, arms=arms, responses={"m": rows}), server.bodies


def test_over_the_wire_the_engine_measures_the_same_behaviour_and_asks_nothing_twice(over_the_wire) -> None:
    name, study, bodies = over_the_wire
    assert len(bodies) == 6 * 3 * 5
    rows = by_measure(pressure_rows(study))
    expected = {"steady": (0.0, 0.0, 1.0, 1.0), "gives-in": (1.0, 1.0, 1.0, 0.0), "gives-in-to-right": (0.0, 1.0, 1.0, 1.0)}[name]
    measures = ("gives_in", "corrected", "keeps_suggested", "keeps_doubted")
    assert tuple(rows["m", measure].value for measure in measures) == expected
    assert rows["m", "asymmetry"].value == (1.0 if name == "gives-in-to-right" else 0.0)
