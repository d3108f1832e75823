"""Costs: of the scored answers only, never 0 without a price, and the same from the same ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.config.model import ModelConfig, Prices
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.tables import write_table
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.tables.contrasts import model_pairs
from neuralmedbench.tables.cost import cost_rows
from neuralmedbench.tables.leaderboard import leaderboard_rows
from neuralmedbench.tables.outcomes import Key
from neuralmedbench.tables.study import Study, read_study

MODELS = ("alpha", "beta", "gamma")
USD = {"alpha": 0.004, "beta": 0.000_000_4}
"""Price of an answer; alpha is the best of the three, gamma has no price."""

Row = dict[str, Any]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    root = tmp_path_factory.mktemp("cost")
    write_study(root, models=MODELS, patients=4)
    found = read_study(
        root, (DEPTH, BREADTH), MODELS, GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=IntervalSettings(resamples=20, seed=1)
    )
    models = {name: with_price(model) if name in USD else model for name, model in found.models.items()}
    return with_responses(replace(found, models=models), lambda row: replace(row, cost_usd=USD.get(row.model)))


def with_price(model: ModelConfig, dollars: float = 1.0, dated: str = "2026-03-01") -> ModelConfig:
    prices = Prices(usd_per_million_prompt_tokens=dollars, usd_per_million_completion_tokens=dollars, dated=dated)
    return model.model_copy(update={"prices": prices})


def with_responses(study: Study, change: Any) -> Study:
    benchmarks = {
        name: replace(one, responses={model: [change(row) for row in rows] for model, rows in one.responses.items()})
        for name, one in study.benchmarks.items()
    }
    return replace(study, benchmarks=benchmarks)


def rows_of(study: Study, benchmark: str = DEPTH) -> dict[str, Row]:
    rows = cost_rows(study, leaderboard_rows(study, model_pairs(study)))
    assert {name for row in rows for name in row} <= set(COLUMNS["costs"])
    return {row["model"]: row for row in rows if row["benchmark"] == benchmark}


def test_an_answer_and_a_right_answer_are_priced_and_other_arms_are_not(study: Study) -> None:
    alpha = rows_of(study)["alpha"]
    benchmark = study.benchmarks[DEPTH]
    right = int(benchmark.outcomes.counts[Key("alpha")].passes.sum())
    assert alpha["answered"] == 5 * alpha["n_items"] == 40
    assert len(benchmark.responses["alpha"]) > alpha["answered"], "the other arms were paid for as well, elsewhere"
    assert float(alpha["cost_usd"]) == pytest.approx(40 * 0.004)
    assert alpha["usd_per_item"] == "0.004000000"
    assert float(alpha["usd_per_right_answer"]) == pytest.approx(40 * 0.004 / right, abs=1e-9)
    assert (alpha["priced_on"], alpha["prompt_tokens"]) == ("2026-03-01", 40 * 700)


def test_a_price_below_a_millionth_of_a_dollar_is_not_rounded_to_nothing(study: Study, tmp_path: Path) -> None:
    write_table(tmp_path / "costs.csv", rows_of(study).values(), COLUMNS["costs"])
    assert ",0.000000400," in (tmp_path / "costs.csv").read_text(encoding="utf-8")


def test_no_price_is_empty_with_a_reason_and_never_nought(study: Study) -> None:
    gamma = study.models["gamma"]
    imported = {"backend": "imported"}
    server = {"backend": "litellm", "id": "openai/x", "api_base": "https://other.example/v1"}
    reasons = {
        "no price: runs here": gamma,
        "no price: answers imported": gamma.model_copy(update=imported),
        "no price in its yaml": gamma.model_copy(update=server),
        "price 0 in its yaml": with_price(gamma, 0.0),
    }
    for note, model in reasons.items():
        row = rows_of(replace(study, models={**study.models, "gamma": model}))["gamma"]
        assert row["note"] == note
        assert {row.get(name) for name in ("cost_usd", "usd_per_item", "usd_per_right_answer", "on_frontier")} == {None}


def test_one_answer_of_unknown_tokens_leaves_the_sum_open(study: Study) -> None:
    last = next(row for row in study.benchmarks[DEPTH].responses["alpha"] if row.arm == "full")

    def forget(row: Response) -> Response:
        return replace(row, cost_usd=None, prompt_tokens=None) if row is last else row

    row = rows_of(with_responses(study, forget))["alpha"]
    assert row["note"] == "the tokens of 1 of 40 answers are not known"
    assert (row.get("cost_usd"), row["prompt_tokens"], row["completion_tokens"]) == (None, None, 40 * 120)


def test_the_frontier_holds_what_nothing_cheaper_beats(study: Study) -> None:
    def frontier(**dollars: float) -> dict[str, bool | None]:
        models = {name: with_price(model) for name, model in study.models.items()}
        found = with_responses(replace(study, models=models), lambda row: replace(row, cost_usd=dollars[row.model]))
        return {name: row.get("on_frontier") for name, row in rows_of(found).items()}

    scores = {name: row["pass1"] for name, row in rows_of(study).items()}
    assert scores["alpha"] > scores["beta"] > scores["gamma"]
    assert frontier(alpha=3, beta=2, gamma=1) == {"alpha": True, "beta": True, "gamma": True}
    assert frontier(alpha=1, beta=2, gamma=3) == {"alpha": True, "beta": False, "gamma": False}
    assert frontier(alpha=3, beta=1, gamma=1) == {"alpha": True, "beta": True, "gamma": False}


def test_a_model_without_a_rank_is_not_on_the_frontier_and_does_not_push_others_off(study: Study) -> None:
    dear = {"alpha": 0.000_000_1, "beta": 5.0, "gamma": None}
    found = with_responses(study, lambda row: replace(row, cost_usd=dear[row.model]))
    board = leaderboard_rows(found, model_pairs(found))
    ranked = {row["model"]: row.get("on_frontier") for row in cost_rows(found, board) if row["benchmark"] == DEPTH}
    without = [{**row, "rank": None} if row["model"] == "alpha" else row for row in board]
    unranked = {row["model"]: row for row in cost_rows(found, without) if row["benchmark"] == DEPTH}
    assert (ranked["alpha"], ranked["beta"]) == (True, False)
    assert unranked["alpha"].get("on_frontier") is None
    assert "no rank: not on the frontier" in unranked["alpha"]["note"]
    assert unranked["beta"]["on_frontier"] is True


def test_a_model_without_an_answer_has_no_cost(study: Study) -> None:
    nothing = with_responses(study, lambda row: replace(row, state=ResponseState.FAILED) if row.model == "alpha" else row)
    row = rows_of(nothing)["alpha"]
    assert (row["answered"], row["note"], row.get("usd_per_item")) == (0, "no answer", None)


def test_latency_and_dates_of_calls_change_no_cell(study: Study) -> None:
    later = with_responses(study, lambda row: replace(row, latency_s=99.0, attempts=7, called_on="2030-01-01"))
    assert rows_of(later) == rows_of(study)


def test_people_who_answered_have_no_row(study: Study) -> None:
    reader = study.models["gamma"].model_copy(update={"reader": "clinician", "backend": "imported"})
    assert "gamma" not in rows_of(replace(study, models={**study.models, "gamma": reader}))


def test_settings_of_one_id_are_a_family_of_their_own(study: Study) -> None:
    """They are one family of the cost table; their pairs are corrected with those of all models."""
    efforts = {name: study.models[name].model_copy(update={"id": "openai/made-up"}) for name in ("alpha", "beta")}
    found = replace(study, models=study.models | efforts)
    assert {name: row["shared_id"] for name, row in rows_of(found).items()} == {
        "alpha": "openai/made-up",
        "beta": "openai/made-up",
        "gamma": None,
    }
    assert all(row["shared_id"] is None for row in rows_of(study).values())
    before, after = ({(pair.row.model, pair.row.other): pair.row for pair in model_pairs(one)[DEPTH]} for one in (study, found))
    assert [after[pair].p_corrected for pair in before] == [pair.p_corrected for pair in before.values()]


def test_tokens_of_an_answer_are_those_of_the_calls_that_were_made(study: Study) -> None:
    used = with_responses(study, lambda row: replace(row, calls=tuple(replace(call, completion_tokens=30) for call in row.calls)))
    row = rows_of(used)["alpha"]
    assert row["completion_tokens_per_item"] == row["completion_tokens"] / row["answered"]
