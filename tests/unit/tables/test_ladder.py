"""A ladder of stages from published files to the table: how far answers get, and whether a guided retry rescues them."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from fixtures.models import model_config, running_server
from fixtures.prompt import asked
from fixtures.scoring import answered, vocabulary
from fixtures.seed_rows import RIGHT, STAGES, WRONG, Climber, put_ladder, shown_items
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.models.engine import answer_requests
from neuralmedbench.models.model_run import ModelRun
from neuralmedbench.records.responses import Response, ResponseState
from neuralmedbench.records.scores import Score
from neuralmedbench.scoring.scores import score_responses
from neuralmedbench.tables.declare import MeasureRow
from neuralmedbench.tables.floors import floors
from neuralmedbench.tables.ladder import ladder_rows
from neuralmedbench.tables.outcomes import gather_outcomes
from neuralmedbench.tables.pass_rules import STAGES_RULE, pass_rule
from neuralmedbench.tables.study import Study

PATIENTS = 40


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> BenchmarkItems:
    """Import two pictures of each of 40 patients: the task `inspiration` alone."""
    folder = tmp_path_factory.mktemp("ladder")
    made = shown_items("cxreasonbench", put_ladder(folder / "set", PATIENTS, 2), folder)
    kept = [item for item in made.items if "inspiration" in item.item_id]
    return replace(made, items=tuple(kept), gold=tuple(row for row in made.gold if "inspiration" in row.item_id))


def scored(made: BenchmarkItems, responses: list[Response]) -> list[Score]:
    items = {item.item_id: item for item in made.items}
    return score_responses(responses, items, {row.item_id: row for row in made.gold}, [], vocabulary=vocabulary())


def rows_of(made: BenchmarkItems, scores: list[Score]) -> dict[tuple[str, str, str], MeasureRow]:
    outcomes = gather_outcomes("b", "depth", made.items, made.gold, scores={"m": scores}, sampled={"m": False})
    benchmark = SimpleNamespace(name="b", outcomes=outcomes, scores={"m": scores})
    study = SimpleNamespace(
        benchmarks={"b": benchmark}, models={"m": None}, settings=IntervalSettings(2_000, 1, 0.95), vocabulary=vocabulary()
    )
    return {(row.slice, row.value_of_slice, row.measure): row for row in ladder_rows(cast(Study, study))}


def conversation(made: BenchmarkItems, place: int = 0, **wrong: str) -> Response:
    """Give all turns of an item, right except for some fields."""
    item = made.items[place]
    texts = [json.dumps({name: {**RIGHT, **wrong}[name] for name in turn.asks} | {"confidence": 0.5}) for turn in item.turns]
    return answered(texts[-1], item, case_id=item.case_id, patient_id=item.patient_id, turns=tuple(texts))


@pytest.fixture(scope="module")
def climbed(made: BenchmarkItems, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Response], list[Score]]:
    """Ask a scripted model over the protocol of a server."""
    numbers = {item.images[0].sha256: int(item.patient_id.removeprefix("p")) - 10_000_000 for item in made.items}
    ledger = tmp_path_factory.mktemp("ledger") / "m.jsonl"
    with running_server(Climber(numbers)) as server:
        run = ModelRun(
            model_config(api_base=server.address), ledger=ledger, destinations=("local",), vocabulary=vocabulary(), max_failed_fraction=None
        )
        requests = [replace(request, samples=1) for request in asked(made.items).values()]
        responses = answer_requests(requests, run)
        made_calls = len(server.bodies)
        assert answer_requests(requests, run) == responses, "a second time everything comes from the ledger"
        assert len(server.bodies) == made_calls == sum(len(item.turns) for item in made.items), "a turn is one call and one entry"
    return responses, scored(made, responses)


@pytest.mark.slow
def test_a_scripted_model_gets_exactly_as_far_as_its_script_and_the_intervals_count_patients(
    made: BenchmarkItems, climbed: tuple[list[Response], list[Score]]
) -> None:
    rows = rows_of(made, climbed[1])
    # patient n falls on stage n % 5 and on no other
    known = {
        **{("ladder", stage, "climbed"): 1 - (place + 1) / 5 for place, stage in enumerate(STAGES)},
        **{("ladder", stage, "if_reached"): (4 - place) / (5 - place) for place, stage in enumerate(STAGES)},
        **{("ladder", stage, "alone"): 0.8 for stage in STAGES},
        ("ladder", "all", "depth"): 0.5,
        ("retry", "anatomy", "climbed"): 1.0,
        ("retry", "measurement", "if_reached"): 0.5,
        ("retry", "measurement", "climbed"): 0.5,
        ("retry", "decision", "climbed"): 0.5,
        ("retry", "decision", "if_reached"): 1.0,
        ("retry", "decision", "alone"): 1.0,
        ("retry", "all", "rescued"): 0.5,
    }
    assert {key: rows[key].value for key in known} == pytest.approx(known)
    for key, value in known.items():
        low, high = rows[key].low, rows[key].high
        assert low is not None
        assert high is not None
        assert low <= value <= high
    assert [rows["ladder", stage, "if_reached"].n_patients for stage in STAGES] == [40, 32, 24, 16]
    assert (rows["ladder", "criterion", "climbed"].n_items, rows["ladder", "criterion", "climbed"].n_patients) == (2 * PATIENTS, PATIENTS)
    # both pictures of a patient have one fate, so the interval is that of 40 patients, not of 80 answers
    width = (rows["ladder", "criterion", "climbed"].high or 0) - (rows["ladder", "criterion", "climbed"].low or 0)
    assert width == pytest.approx(2 * 1.96 * (0.8 * 0.2 / PATIENTS) ** 0.5, rel=0.25)
    assert [stage for part, stage, measure in rows if (part, measure) == ("ladder", "climbed")] == list(STAGES)


@pytest.mark.slow
def test_an_answer_passes_that_climbs_the_whole_ladder_and_the_retry_changes_nothing(
    made: BenchmarkItems, climbed: tuple[list[Response], list[Score]]
) -> None:
    passes = {row.patient_id: row.passed for row in climbed[1]}
    assert {int(patient[1:]) - 10_000_000 for patient, passed in passes.items() if passed} == {4, 9, 14, 19, 24, 29, 34, 39}
    assert {row.parse_status for row in climbed[1]} == {"strict"}
    assert all(row.confidence is None for row in climbed[1]), "no confidence is stated in the ladder as a whole"
    assert {pass_rule(item) for item in made.items} == {STAGES_RULE}


@pytest.mark.slow
def test_asking_every_stage_and_stopping_at_the_first_wrong_one_give_the_same_ladder(
    made: BenchmarkItems, climbed: tuple[list[Response], list[Score]]
) -> None:
    """The authors stop asking; up to a stage the conversation is the same, so the turns after a wrong stage may hold anything."""
    first = {turn.stage: place for place, turn in reversed(list(enumerate(made.items[0].turns))) if turn.stage and not turn.retry}
    stopped = []
    for response in climbed[0]:
        patient = int(response.patient_id[1:]) - 10_000_000
        fell = first.get((*STAGES, "")[patient % 5], len(response.turns))
        stopped.append(replace(response, turns=(*response.turns[: fell + 1], *("" for _ in response.turns[fell + 1 :]))))
    ladder = ("if_reached", "climbed", "depth")
    of = [
        {key: row.value for key, row in rows_of(made, scores).items() if key[0] == "ladder" and key[2] in ladder}
        for scores in (climbed[1], scored(made, stopped))
    ]
    assert of[0] == of[1]


def test_every_question_of_a_stage_has_to_be_right(made: BenchmarkItems) -> None:
    rows = rows_of(made, scored(made, [conversation(made, guided_anatomy_2=WRONG)]))
    assert (rows["retry", "anatomy", "climbed"].value, rows["ladder", "decision", "climbed"].value) == (0.0, 1.0)
    assert rows["retry", "all", "rescued"].value is None, "nothing was there to be rescued"
    part = scored(made, [conversation(made, anatomy="B")])[0]
    assert (part.passed, (part.fields_right or {})["anatomy"]) == (False, False), "one of two right pictures is not both"


def test_what_is_asked_beside_the_ladder_stops_nothing(made: BenchmarkItems) -> None:
    (score,) = scored(made, [conversation(made, first_answer="C", refined_criterion="B")])
    assert score.passed
    assert {name for name, right in (score.fields_right or {}).items() if not right} == {"first_answer", "refined_criterion"}


def test_a_refused_last_turn_is_wrong_and_leaves_what_was_answered_before(made: BenchmarkItems) -> None:
    whole = conversation(made)
    refused = replace(whole, state=ResponseState.REFUSED, text="I cannot.", turns=(*whole.turns[:-1], "I cannot."))
    (score,) = scored(made, [refused])
    assert (score.passed, (score.fields_right or {})["guided_decision"]) == (True, False)
    (missing,) = scored(made, [replace(whole, state=ResponseState.FAILED, text="", turns=whole.turns[:3])])
    assert (missing.missing, missing.passed, rows_of(made, [missing])) == (True, None, {})


@pytest.mark.parametrize(
    ("text", "right"),
    [('{"criterion": "(a) By counting ribs"}', True), ("ANSWER: a", True), ("no idea", False), ("", False), ('{"criterion": null}', False)],
)
def test_a_turn_is_read_in_the_usual_other_forms(made: BenchmarkItems, text: str, right: bool) -> None:
    whole = conversation(made)
    (score,) = scored(made, [replace(whole, turns=(whole.turns[0], text, *whole.turns[2:]))])
    assert (score.fields_right or {})["criterion"] is right
    assert score.parse_status == "repaired"
    assert ("criterion" in score.fields_abstained) is ("null" in text), "an unread turn is no abstention"


def test_the_best_constant_answer_knows_the_letters_of_the_ladder_alone(made: BenchmarkItems) -> None:
    found = gather_outcomes("b", "depth", made.items, made.gold, scores={}, sampled={})
    assert floors(found, vocabulary())["pass1"].hindsight.mean() == 1.0, "every ladder made by hand has the same letters"
