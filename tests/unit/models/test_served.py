"""Which models really answered, and what left the machine, in the log, the tables and the report."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fixtures.scoring import answered
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.models.console import served_models_line
from neuralmedbench.records.responses import Response, ResponseState, served_by
from neuralmedbench.records.scores import Grade, text_digest
from neuralmedbench.tables.cost import destination_rows, request_rows
from neuralmedbench.tables.first_screen import sentences, served_badges, served_sentences, served_statements
from neuralmedbench.tables.study import Study, read_study

MAY, JUNE = "m-2026-05-01", "m-2026-06-01"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    root = tmp_path_factory.mktemp("study")
    write_study(root, models=("alpha",), patients=3)
    return read_study(root, [DEPTH, BREADTH], ["alpha"], GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=IntervalSettings())


def with_responses(study: Study, rows: list[Response], grades: Sequence[Grade] = ()) -> Study:
    """Return a study of one benchmark with other answers, and grades by the model `llm`."""
    one = replace(study.benchmarks[DEPTH], responses={"alpha": rows}, grades={("alpha", "llm"): list(grades)})
    return replace(study, benchmarks={DEPTH: one})


def answers(study: Study, count: int, **changes: object) -> list[Response]:
    rows = study.benchmarks[DEPTH].responses["alpha"][:count]
    return [replace(row, call_keys=(text_digest(f"{number}"),), **changes) for number, row in enumerate(rows)]


def grades(study: Study, count: int, **changes: object) -> list[Grade]:
    """Return both criteria for this many graded texts."""
    rows = [grade for grade in study.benchmarks[DEPTH].grades["alpha", "llm"] if grade.arm == "full" and grade.repeat == 0]
    return [replace(grade, text_sha256=grade.item_id, **changes) for grade in rows[: 2 * count]]


def test_answers_are_counted_by_the_model_that_was_served_in_the_order_in_which_it_appeared() -> None:
    calls = [(JUNE, "fp", "2026-06-02"), (MAY, "fp", "2026-05-01"), (MAY, "fp", "2026-05-09"), (MAY, "other", "2026-05-30"), ("", "", "")]
    found = [(one.name, one.fingerprint, one.answers, one.first_called_on, one.last_called_on) for one in served_by(calls)]
    assert found == [
        (MAY, "fp", 2, "2026-05-01", "2026-05-09"),
        (MAY, "other", 1, "2026-05-30", "2026-05-30"),
        (JUNE, "fp", 1, "2026-06-02", "2026-06-02"),
    ]


def test_what_a_provider_calls_itself_cannot_write_into_a_terminal() -> None:
    (one,) = served_by([("m\x1b[2J\nok" + "x" * 500, "\x07", "")])
    assert (one.name[:9], len(one.name), one.fingerprint) == ("m?[2J?okx", 100, "?")


def test_a_log_says_that_the_served_model_changed_and_is_silent_when_it_did_not() -> None:
    row = answered("x", served_model=MAY, fingerprint="fp-1", called_on="2026-05-01")
    assert served_models_line("m", [row, row]) == ""
    assert served_models_line("m", [row, replace(row, served_model="", fingerprint="")]) == ""
    assert served_models_line("m", [row, replace(row, fingerprint="fp-2", called_on="2026-05-02"), row]) == (
        "m: served with 2 fingerprints, so the provider changed something on its side:"
        f" {MAY}, fingerprint fp-1 (2 answers, 2026-05-01); {MAY}, fingerprint fp-2 (1 answers, 2026-05-02)"
    )
    later = replace(row, served_model=JUNE, fingerprint="", called_on="2026-06-01")
    assert served_models_line("m", [row, later, replace(later, called_on="2026-06-03")]) == (
        f"m: served by 2 models under one name: {MAY}, fingerprint fp-1 (1 answers, 2026-05-01); {JUNE} (2 answers, 2026-06-01 to 2026-06-03);"
        " these answers are not of one model: write a dated version as `id`, or bump `revision` to ask for all of them again"
    )


def test_a_served_name_that_is_a_place_on_a_server_is_withheld() -> None:
    row = answered("x", served_model="/home/anna/weights", called_on="2026-05-01")
    line = served_models_line("m", [row, replace(row, served_model=MAY)])
    assert "anna" not in line
    assert "withheld" in line


def test_tables_and_report_warn_of_a_model_that_changed_within_a_run(study: Study) -> None:
    same = with_responses(study, answers(study, 4, served_model=MAY))
    assert (served_badges(same), served_statements(same)) == ([], [])
    assert [(row["served_models"], row["fingerprints"]) for row in request_rows(same)] == [(1, 1)]
    rows = answers(study, 4, served_model=MAY, fingerprint="a")
    rows[1:] = [replace(rows[1], fingerprint="b"), *(replace(row, served_model=JUNE) for row in rows[2:])]
    mixed = with_responses(study, rows)
    assert [(row["served_models"], row["fingerprints"]) for row in request_rows(mixed)] == [(2, 3)]
    assert served_badges(mixed) == [{"name": "Served models", "state": "warn", "text": "changed within the run: Alpha VLM"}]
    (said,) = served_statements(mixed)
    assert "(Alpha VLM: 2 answers to Depth, made up by m-2026-05-01 and 2 answers to Depth, made up by m-2026-06-01)" in said


def test_a_grader_that_changed_between_two_answers_is_told_too(study: Study) -> None:
    graded = grades(study, 2, served_model=MAY, attempts=1)
    assert served_badges(with_responses(study, [], graded)) == []
    graded[2:] = [replace(grade, served_model=JUNE) for grade in graded[2:]]
    mixed = with_responses(study, [], graded)
    assert [badge["text"] for badge in served_badges(mixed)] == ["changed within the run: grader Second grader"]
    assert (
        "grader Second grader: 1 answer to Depth, made up by m-2026-05-01 and 1 answer to Depth, made up by m-2026-06-01"
        in served_statements(mixed)[0]
    )


def test_the_first_screen_names_both_models_of_answers_and_grades_that_are_not_those_of_the_one_asked(study: Study) -> None:
    why, of_grader = "answered by another model: alpha-lite, not alpha", "answered by another model: judge-mini, not judge"
    rows = answers(study, 4, served_model="alpha-lite", state=ResponseState.FAILED, error=why)
    graded = grades(study, 3, served_model="judge-mini", value=None, explanation=of_grader)
    other = with_responses(study, rows, graded)
    (badge,) = served_badges(other)
    assert badge["text"] == "another one answered for Alpha VLM, grader Second grader"
    of_model, of_judge = served_sentences(other)
    assert of_model.startswith(f"Served models: Alpha VLM: 4 answers to Depth, made up were {why}. They count as missing")
    assert "`served_as` in config/models/alpha.yaml" in of_model
    assert f"grader Second grader: 3 answers to Depth, made up were {of_grader}" in of_judge
    assert served_statements(other) == [], "no answer counts of which it would be a mixture"
    assert of_model in sentences(replace(other, limit=4), defaultdict(list))


def test_a_model_that_changed_between_two_benchmarks_of_a_run_is_a_mixture(study: Study) -> None:
    may, june = (
        replace(
            study.benchmarks[name],
            responses={"alpha": [replace(row, served_model=served) for row in study.benchmarks[name].responses["alpha"][:3]]},
            grades={},
        )
        for name, served in ((DEPTH, MAY), (BREADTH, JUNE))
    )
    mixed = replace(study, benchmarks={DEPTH: may, BREADTH: june})
    assert [badge["text"] for badge in served_badges(mixed)] == ["changed within the run: Alpha VLM"]
    assert re.search(rf"Alpha VLM: 3 answers to [^;]* by {MAY} and 3 answers to [^;]* by {JUNE}", served_statements(mixed)[0])


def sent(row: Any) -> list[object]:
    """Return what a row says of one host, without tokens and cost."""
    return [row[name] for name in ("destination", "requests", "calls", "pictures", "characters", "first_called_on", "last_called_on")]


def test_what_was_sent_is_counted_by_the_host_that_was_asked_then_and_not_by_the_yaml_of_today(study: Study) -> None:
    rows = answers(study, 4, destination="api.example.org", attempts=2, images_sent=3, characters_sent=100, called_on="2026-05-01")
    rows[3] = replace(rows[3], destination="local", called_on="2026-05-04")
    rows[2] = replace(rows[2], called_on="2026-05-02")
    found = destination_rows(with_responses(study, rows))[:2]
    assert [sent(row) for row in found] == [
        ["api.example.org", 3, 6, 18, 600, "2026-05-01", "2026-05-02"],
        ["local", 1, 2, 6, 200, "2026-05-04", "2026-05-04"],
    ]


def test_two_requests_that_say_the_same_are_counted_once_and_a_call_that_failed_left_the_machine_too(study: Study) -> None:
    one, same, failed, never = answers(study, 4, attempts=1, images_sent=2, characters_sent=10)
    same = replace(same, call_keys=one.call_keys)
    failed = replace(failed, call_keys=(), state=ResponseState.FAILED, attempts=3, destination="api.example.org", called_on="2026-05-03")
    never = replace(never, call_keys=(), state=ResponseState.SKIPPED, attempts=0, images_sent=0, characters_sent=0)
    nobody = replace(failed, repeat=9, destination="", called_on="", images_sent=0, characters_sent=0)
    found = destination_rows(with_responses(study, [one, same, failed, never, nobody]))[:2]
    assert [sent(row) for row in found] == [
        ["api.example.org", 1, 3, 6, 30, "2026-05-03", "2026-05-03"],
        ["local", 1, 1, 2, 10, "2026-01-02", "2026-01-02"],
    ]


def test_the_calls_of_a_grader_are_counted_by_text_and_not_by_criterion(study: Study) -> None:
    graded = grades(study, 3, destination="judge.example", attempts=2, characters_sent=50, called_on="2026-05-01")
    row = destination_rows(with_responses(study, [], graded))[-1]
    assert [row["benchmark"], row["model"], *sent(row)] == [
        DEPTH, "grader llm", "judge.example", 3, 6, 0, 300, "2026-05-01", "2026-05-01",
    ]  # fmt: skip
    tested = with_responses(study, [], graded)
    planted = [replace(grade, model="planted", item_id=f"planted {grade.item_id}") for grade in graded]
    tested = replace(tested, benchmarks={DEPTH: replace(tested.benchmarks[DEPTH], planted_grades={"llm": planted})})
    assert (destination_rows(tested)[-1]["requests"], destination_rows(tested)[-1]["characters"]) == (6, 600), "planted errors are sent too"
    nothing = destination_rows(with_responses(study, []))[-1]
    assert (nothing["destination"], nothing["requests"], nothing["first_called_on"]) == ("judge.example", 0, None)


def test_answers_that_others_collected_were_not_asked_here(study: Study) -> None:
    imported = study.models["alpha"].model_copy(update={"backend": "imported"})
    rows = answers(study, 2, attempts=0)
    row = destination_rows(replace(with_responses(study, rows), models={"alpha": imported}))[0]
    assert (row["destination"], row["requests"], row["pictures"]) == ("not asked here", 0, 0)
