"""One sentence and one n per block: with numbers where the table has them, and no claim beyond the table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from neuralmedbench.report.blocks import BLOCKS
from neuralmedbench.tables.answer_errors import errors_takeaway
from neuralmedbench.tables.calls import destinations_takeaway
from neuralmedbench.tables.clinicians.opinions import ratings_takeaway
from neuralmedbench.tables.contrasts import pairs_takeaway
from neuralmedbench.tables.readiness import readiness_takeaway
from neuralmedbench.tables.rows import Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import begun, without_head
from neuralmedbench.tables.write import TABLES

TAKEAWAYS = {block: words for table in TABLES for block, words in table.takeaways.items()}
SAID_BY_TEMPLATES = {"provenance", "published", "cards", "checklists"}


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


def test_every_block_that_shows_tables_has_its_sentence() -> None:
    assert len(TAKEAWAYS) == sum(len(table.takeaways) for table in TABLES)
    assert set(TAKEAWAYS) | SAID_BY_TEMPLATES == {block.id for block in BLOCKS}


@pytest.mark.parametrize("name", TAKEAWAYS)
def test_an_empty_run_has_a_sentence_and_a_count_of_every_block(name: str) -> None:
    said = TAKEAWAYS[name](study(), tables())
    assert said.takeaway.endswith(".")
    assert any(sign.isdigit() for sign in said.n)


def pair(p_corrected: float, low: float = 0.1) -> dict[str, Any]:
    names = {"benchmark": "b", "measure": "pass1_patients", "model": "one", "other": "two", "family": "first screen"}
    answer = "better" if p_corrected < 0.05 else "inconclusive"
    sizes = {"low": low, "high": 0.4, "n_items": 9, "n_patients": 4}
    return {**names, "p_value": 0.01, "p_corrected": p_corrected, "answer": answer, **sizes}


def test_pairs_that_do_not_differ_are_not_called_alike() -> None:
    said = pairs_takeaway(study(), tables(pairs=[pair(0.01), pair(0.2)]))
    assert said.takeaway == "1 of 2 pairs of models differs after correction; the others were not shown to be alike."
    assert said.n == "9 items, 4 patients"
    assert pairs_takeaway(study(), tables(pairs=[pair(0.01)])).takeaway == "The only pair of models differs after correction."


def label(source: str, paper_class: str = "reasoning_failure", share: float | None = 0.5) -> list[dict[str, Any]]:
    row = {"benchmark": "b", "model": "one", "source": source, "slice": "class", "value_of_slice": paper_class}
    wrong = {"value": share, "low": 0.25, "high": 0.75, "n_answers": 12}
    return [{**row, "measure": "per_response", "value": 0.2, "n_answers": 30}, {**row, "measure": "per_wrong", **wrong}]


def test_labels_of_simulated_raters_are_never_summed_up() -> None:
    said = errors_takeaway(study(), tables(errors=label("simulated round r01")))
    assert "50 %" not in said.takeaway
    assert said.takeaway.startswith("Only simulated raters")
    assert said.n == "30 labelled answers (simulated labels)"


def test_the_commonest_class_comes_with_its_interval_and_who_labelled_it() -> None:
    one = study(benchmarks={"b": None})
    simulated = label("simulated round r01", "knowledge_gap", 1.0)
    said = errors_takeaway(one, tables(errors=[*label("judge"), *label("judge", "perceptual_failure", 0.2), *simulated]))
    assert said.takeaway == "By Judge, 50 % (25 % to 75 %) of 12 wrong answers of One hold a reasoning failure, the commonest class."
    assert errors_takeaway(one, tables(errors=label("judge", share=None))).takeaway == "No answer that was labelled is wrong."


def test_what_left_the_machine_is_named_and_a_destination_without_requests_is_not() -> None:
    rows = [
        {"destination": name, "requests": requests, "calls": requests, "pictures": 2 * requests}
        for name, requests in (("local", 7), ("api.example.org", 3), ("judge.example", 0))
    ]
    said = destinations_takeaway(study(), tables(destinations=rows))
    assert (said.takeaway, said.n) == ("De-identified data went to api.example.org.", "10 calls, 20 pictures")
    assert destinations_takeaway(study(), tables(destinations=rows[:1])).takeaway.startswith("Nothing left this machine")


def test_conditions_that_cannot_be_told_are_neither_met_nor_not_met() -> None:
    rows = [{"use": "triage", "verdict": verdict, "n_patients": 8} for verdict in ("met", "not met", "cannot be told")]
    said = readiness_takeaway(study(), tables(readiness=[*rows, {"n_patients": 12}]))
    assert said.takeaway == "Of 3 verdicts, 1 is met, 1 is not met and 1 cannot be told."
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
