"""One sentence and one n per block: with numbers where the table has them, and no claim beyond the table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from neuralmedbench.records.results import PRIOR
from neuralmedbench.report.blocks import BLOCKS
from neuralmedbench.tables.clinicians.opinions import ratings_takeaway
from neuralmedbench.tables.cost import destinations_takeaway
from neuralmedbench.tables.declare import Measure, Tables, Takeaway
from neuralmedbench.tables.readiness import readiness_takeaway
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.takeaways import FEWEST_PATIENTS, SIMULATED_ALONE, topic_takeaway
from neuralmedbench.tables.words import begun, without_head
from neuralmedbench.tables.write import TABLES

TAKEAWAYS = {block: words for table in TABLES for block, words in (table.takeaways or {}).items()}
SAID_BY_TEMPLATES = {"numbers", "published", "checklists"}


def study(**changes: Any) -> Study:
    names = {"one": SimpleNamespace(title="One", baseline=False), "two": SimpleNamespace(title="Two", baseline=False)}
    form = SimpleNamespace(passes=SimpleNamespace(axis="dx_correct"))
    settings = SimpleNamespace(confidence=0.95, resamples=1000)
    rest = {
        "benchmarks": {},
        "models": names,
        "all_graders": {"judge": SimpleNamespace(title="Judge")},
        "graders": {},
        "readers": {},
        "grader_floor": 0.8,
    }
    return cast(Study, SimpleNamespace(**{**rest, "form": form, "settings": settings, **changes}))


def tables(**rows: list[dict[str, Any]]) -> Tables:
    return {table.name: rows.get(table.name, []) for table in TABLES}


TITLES = {"one": "One", "two": "Two"}
MEASURES = (
    Measure("rate", "Right", "Right answers."),
    Measure("gain", "Gain", "A difference.", "points"),
    Measure("deep", "Deep", "Left out.", main=False),
)


def number(measure: str, **cells: Any) -> dict[str, Any]:
    blank = {"benchmark": "b", "model": "one", "measure": measure, "slice": "", "n_items": 20, "n_patients": 10}
    return blank | {"value": None, "low": None, "high": None} | cells


def test_every_block_has_its_sentence_or_topics_with_theirs() -> None:
    topics = {table.name for table in TABLES if table.is_topic and table.measures}
    for block in BLOCKS:
        own = {block.id, *block.parts} & (set(TAKEAWAYS) | SAID_BY_TEMPLATES)
        assert own or set(block.parts.values()) & topics, block.id


def test_a_topic_states_one_number_with_its_interval_those_of_few_models_and_several_as_a_range() -> None:
    single = topic_takeaway([number("rate", value=0.5, low=0.25, high=0.75), number("deep", value=0.1)], MEASURES, TITLES)
    assert single == Takeaway("Right: 50 % (25 % to 75 %).", "20 items, 10 patients")
    rows = [number("rate", value=0.5), number("rate", model="two", value=0.9), number("rate", model=PRIOR, value=0.0)]
    gains = [number("gain", difference=0.1, low=0.05, high=0.15), number("gain", model="two", difference=-0.2, low=-0.5, high=0.1)]
    assert topic_takeaway([*rows, *gains], MEASURES, TITLES) == Takeaway("Right: Two 90 %, One 50 %.", "20 items, 10 patients")
    assert topic_takeaway(gains, MEASURES, TITLES) == Takeaway(
        "Gain: One +10 points, Two −20 points; the interval excludes 0 in 1 of 2.", "20 items, 10 patients"
    )
    many = [number("rate", model=f"m{place}", value=place / 10) for place in range(6)]
    assert topic_takeaway(many, MEASURES, TITLES) == Takeaway("Right: 0 % to 50 %.", "20 items, 10 patients")


def test_differences_of_a_family_are_counted_by_their_corrected_answer() -> None:
    family = [
        number("gain", model=model, difference=0.2, low=0.1, high=0.3, family="family", answer=answer)
        for model, answer in (("one", "better"), ("two", "inconclusive"))
    ]
    line = topic_takeaway(family, MEASURES, TITLES)
    assert line is not None
    assert line.takeaway == "Gain: +20 points in every row; 1 of 2 differences is significant."


@pytest.mark.parametrize("count", [FEWEST_PATIENTS - 1, "<10", "(hidden)"])
def test_no_number_of_fewer_than_eight_patients_is_in_a_sentence(count: object) -> None:
    line = topic_takeaway([number("rate", value=0.5, n_patients=count, n_items=count)], MEASURES, TITLES)
    assert line is not None
    assert line.takeaway == f"Too few to report: no row is about {FEWEST_PATIENTS} or more."


def test_numbers_of_simulated_raters_are_in_no_sentence() -> None:
    rows = [number("rate", value=0.5, source="simulated round r01"), number("rate", value=0.4, source="judge")]
    line = topic_takeaway(rows, MEASURES, TITLES)
    assert line is not None
    assert line.takeaway == "Right: 40 %."
    assert topic_takeaway([], MEASURES, TITLES) is None


def test_a_topic_of_simulated_raters_alone_says_so_and_has_no_number() -> None:
    simulated = number("rate", value=0.4, source="simulated round r01")
    line = topic_takeaway([simulated], MEASURES, TITLES)
    assert line is not None
    assert line.takeaway == SIMULATED_ALONE
    both = topic_takeaway([simulated, number("rate", value=0.2)], MEASURES, TITLES)
    assert both is not None
    assert both.takeaway == "Right: 20 %."


def test_numbers_of_simulated_readers_are_in_no_sentence() -> None:
    rows = [
        number("rate", model="program", value=0.9),
        number("rate", model="person", value=0.4),
        number("rate", model="judge", other="program", value=0.8),
    ]
    line = topic_takeaway(rows, MEASURES, TITLES, {"program"})
    assert line is not None
    assert line.takeaway == "Right: 40 %."


@pytest.mark.parametrize("name", TAKEAWAYS)
def test_an_empty_run_has_a_sentence_and_a_count_of_every_block(name: str) -> None:
    said = TAKEAWAYS[name](study(), tables())
    assert said.takeaway.endswith(".")
    assert any(sign.isdigit() for sign in said.n)


def test_what_left_the_machine_is_named_and_a_destination_without_requests_is_not() -> None:
    rows = [
        {"destination": name, "requests": requests, "calls": requests, "pictures": 2 * requests}
        for name, requests in (("local", 7), ("api.example.org", 3), ("judge.example", 0))
    ]
    said = destinations_takeaway(study(), tables(destinations=rows))
    assert (said.takeaway, said.n) == ("De-identified data went to api.example.org.", "10 calls, 20 pictures")
    assert destinations_takeaway(study(), tables(destinations=rows[:1])).takeaway.startswith("No data left this machine")


def test_conditions_that_cannot_be_told_are_neither_met_nor_not_met() -> None:
    rows = [{"use": "triage", "verdict": verdict, "n_patients": 8} for verdict in ("met", "not met", "inconclusive")]
    said = readiness_takeaway(study(), tables(readiness=[*rows, {"n_patients": 12}]))
    assert said.takeaway == "Of 3 verdicts, 1 is met, 1 is not met and 1 inconclusive."
    assert readiness_takeaway(study(), tables(readiness=[{"n_patients": 12}])).takeaway.startswith("No condition is stated")


def test_simulated_ratings_are_no_clinicians() -> None:
    rating = {"simulated": True, "n": 45}
    said = ratings_takeaway(study(), tables(ratings=[rating]))
    assert said.takeaway.startswith("No clinician has rated an answer")
    assert said.n == "0 ratings by clinicians, 45 simulated values"
    alpha = {
        "simulated": False,
        "between": "all",
        "measure": "alpha_ordinal",
        "axis": "dx_correct",
        "value": 0.4321,
        "low": 0.2,
        "high": 0.6,
    }
    rater = {"simulated": False, "between": "rater", "axis": "", "measure": "judged", "round_id": "r", "rater_a": "a", "value": 1.0}
    people = tables(ratings=[{"simulated": False, "n": 20}], agreement=[alpha, rater])
    assert ratings_takeaway(study(), people).takeaway == "Clinicians agree with alpha 0.43 (0.20 to 0.60) on dx correct."


def test_a_sentence_that_begins_with_a_model_has_its_name_as_it_is_spelled() -> None:
    study: Any = SimpleNamespace(models={"try-it": SimpleNamespace(title="gpt-4o")}, all_graders={"llm": SimpleNamespace(title="rubric")})
    assert without_head("Demo: gpt-4o passes 3 of 4.", study) == "gpt-4o passes 3 of 4."
    assert without_head("Demo: try-it passes none.", study) == "try-it passes none."
    assert begun("rubric gave 3 grades", study) == "rubric gave 3 grades"
    assert begun("rubrics are written by hand", study) == "Rubrics are written by hand"
    assert begun("no model has a rank", study) == "No model has a rank"
