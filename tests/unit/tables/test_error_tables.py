"""Tables of labelled errors and of juries, on a few made-up answers, counted by hand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from conftest import ROOT
from fixtures.tables import _grade, item, score
from neuralmedbench.config.model import GraderConfig
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.ratings.form import RatingForm, read_form
from neuralmedbench.records.items import Family, Gold, Item, Level, Runner
from neuralmedbench.records.responses import Response
from neuralmedbench.records.results import COLUMNS, by_measure, is_simulated, types_of_table
from neuralmedbench.records.scores import Grade, GradeState, Rating, RatingPart, Score
from neuralmedbench.records.taxonomy import ERROR_AXIS
from neuralmedbench.report.page import templates
from neuralmedbench.tables.answer_errors import error_rows
from neuralmedbench.tables.declare import MeasureRow
from neuralmedbench.tables.graders import grader_rows
from neuralmedbench.tables.juries import jury_rows
from neuralmedbench.tables.outcomes import Outcomes, gather_outcomes
from neuralmedbench.tables.reasoning import reasoning_rows
from neuralmedbench.tables.write import measures_of_topics

SETTINGS = IntervalSettings(resamples=500)
ITEMS = [item("b", f"c{n}", f"p{n}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN) for n in range(4)]
ITEMS[3] = replace(ITEMS[3], lesion_shown=False)
GOLD = [Gold(item_id=one.item_id, answer="x", findings_complete=number == 0) for number, one in enumerate(ITEMS)]
PASSED = (True, False, False, False)
SCORES = [score(one, "m", passed=passed) for one, passed in zip(ITEMS, PASSED, strict=True)]
OTHER_ARM = score(ITEMS[0], "m", passed=False, arm="no_image")


@dataclass
class OneBenchmark:
    """The parts of a benchmark of a study that the two tables read."""

    grades: dict[tuple[str, str], list[Grade]]
    items: list[Item] = field(default_factory=lambda: ITEMS)
    gold: list[Gold] = field(default_factory=lambda: GOLD)
    scores: dict[str, list[Score]] = field(default_factory=lambda: {"m": [*SCORES, OTHER_ARM]})
    responses: dict[str, list[Response]] = field(default_factory=lambda: {"m": []})
    checks: dict[str, list[Any]] = field(default_factory=dict)
    answer_tests: dict[tuple[str, str], Any] = field(default_factory=dict)
    answer_checks: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    name: str = "b"

    @cached_property
    def outcomes(self) -> Outcomes:
        """Scores as arrays."""
        return gather_outcomes(self.name, "depth", self.items, self.gold, scores=self.scores, sampled=dict.fromkeys(self.scores, False))


@dataclass
class OneStudy:
    """The parts of a study that the two tables read."""

    benchmarks: dict[str, OneBenchmark]
    graders: dict[str, GraderConfig] = field(default_factory=dict)
    ratings: list[Rating] = field(default_factory=list)
    models: tuple[str, ...] = ("m",)
    form: RatingForm = field(default_factory=lambda: read_form(ROOT / "config" / "rating.yaml"))
    settings: IntervalSettings = SETTINGS
    grader_floor: float = 0.8

    def used_grades(self, benchmark: str, model: str, grader: str) -> list[Grade]:
        return self.benchmarks[benchmark].grades.get((model, grader), [])

    @property
    def all_graders(self) -> dict[str, GraderConfig]:
        return self.graders


def labels(of: Score, *marked: tuple[str, float | None]) -> list[Grade]:
    """Return the labels of one grader: unmarked codes are absent; None is a failed label."""
    values = dict.fromkeys(("missed_lesion", "hallucinated_finding", "wrong_side", "wrong_region", "wrong_inference"), 0.0) | dict(marked)
    rows = [_grade(of, "e", f"{ERROR_AXIS}{code}", 0.0) for code in values]
    return [
        replace(row, value=value, state=GradeState.FAILED if value is None else GradeState.OK)
        for row, value in zip(rows, values.values(), strict=True)
    ]


Kind = dict[str, Any]
"""The measures of one kind of error."""


def by_name(study: OneStudy) -> dict[tuple[str, str], Kind]:
    rows = error_rows(study)  # type: ignore[arg-type]
    return {(source, name): kind for (_, _, source, name), kind in by_measure(rows, "source", "value_of_slice").items()}


def values(kind: Kind, *measures: str) -> tuple[float | None, ...]:
    return tuple(kind[name]["value"] for name in measures)


def answers(kind: Kind) -> tuple[int, int]:
    return kind["per_response"]["n_answers"], kind["per_wrong"]["n_answers"]


def labels_of(kind: Kind) -> int:
    return int(kind["significant"]["note"].split()[0])


@pytest.fixture(scope="module")
def graded() -> dict[tuple[str, str], dict[str, Any]]:
    rows = [
        *labels(SCORES[0], ("wrong_side", 2.0), ("hallucinated_finding", 1.0)),
        *labels(SCORES[1], ("wrong_side", 1.0), ("wrong_region", 2.0), ("hallucinated_finding", 2.0)),
        *labels(SCORES[2], ("wrong_inference", 2.0), ("missed_lesion", 2.0)),
        *labels(SCORES[3], ("wrong_side", None), ("missed_lesion", 2.0)),
        *labels(OTHER_ARM, ("wrong_side", 2.0)),
    ]
    stale = [replace(row, text_sha256="1" * 64) for row in labels(SCORES[2], ("wrong_side", 2.0))]
    config = GraderConfig(title="E", kind="llm", task="errors")
    return by_name(OneStudy({"b": OneBenchmark({("m", "e"): [*stale, *rows]})}, {"e": config}))


def test_a_code_is_counted_per_answer_and_per_wrong_answer(graded):
    kind = graded["e", "wrong_side"]
    every = kind["per_response"]
    assert (labels_of(kind), answers(kind), every["left_out"]) == (2, (3, 2), 1), "a failed label is missing"
    assert values(kind, "per_response", "per_wrong", "significant") == (pytest.approx(2 / 3), 0.5, 0.5)
    assert (every["slice"], every["note"]) == ("code", "perceptual")
    assert every["low"] < every["value"] < every["high"]


def test_conditions_decide_of_which_answers_an_error_can_be_told(graded):
    missed, hallucinated = graded["e", "missed_lesion"], graded["e", "hallucinated_finding"]
    assert (answers(missed)[0], labels_of(missed), values(missed, "per_response")) == (3, 1, (pytest.approx(1 / 3),)), (
        "the fourth item does not show its lesion"
    )
    assert (answers(hallucinated), labels_of(hallucinated)) == ((1, 0), 1), "only the first item has complete findings"
    assert values(hallucinated, "per_wrong") == (None,)


def test_groups_and_classes_count_an_answer_once(graded):
    group, paper = graded["e", "perceptual"], graded["e", "perceptual_failure"]
    assert (labels_of(group), answers(group)[0], values(group, "per_response")) == (5, 4, (0.75,))
    assert (labels_of(paper), values(paper, "per_response", "per_wrong")) == (4, (0.75, pytest.approx(2 / 3)))
    shares = [graded["e", name]["share_of_labels"] for name in ("perceptual_failure", "reasoning_failure")]
    assert [(row["value"], row["note"]) for row in shares] == [(0.75, "4 labels"), (0.25, "4 labels")], "of those in wrong answers"
    assert ("e", "knowledge_gap") not in graded, "what no sheet could tell has no row"


def rating(of: Score, rater: str, axis: str, value: float | None, **changes: Any) -> Rating:
    named = {name: getattr(of, name) for name in ("item_id", "arm", "strategy", "model", "revision", "repeat", "text_sha256")}
    base = Rating(round_id="r01", rater_id=rater, axis=axis, value=value, seconds=None, stale=False, simulated=False, **named)
    return replace(base, **changes)


def sheet(of: Score, rater: str, *marked: tuple[str, float], **changes: Any) -> list[Rating]:
    return [
        rating(of, rater, "dx_correct", 2.0, **changes),
        *(rating(of, rater, f"error.{code}", value, **changes) for code, value in marked),
    ]


def test_raters_of_one_answer_are_one_answer_and_the_draw_is_weighed():
    rows = [
        *sheet(SCORES[1], "a", ("wrong_side", 2.0), probability=1.0),
        *sheet(SCORES[1], "b", probability=1.0),
        *sheet(SCORES[2], "a", probability=0.25),
        *sheet(SCORES[3], "a", ("wrong_side", 2.0), stale=True),
        *sheet(SCORES[0], "a", ("wrong_side", 2.0), part=RatingPart.AGAIN),
        *sheet(SCORES[2], "z", ("wrong_side", 2.0), adjudicated=True),
        rating(SCORES[0], "a", "dx_correct", None),
    ]
    kind = by_name(OneStudy({"b": OneBenchmark({})}, ratings=rows))["round r01", "wrong_side"]
    assert (answers(kind)[0], labels_of(kind)) == (2, 1), "a rater who could not judge has no sheet"
    assert values(kind, "per_response") == (pytest.approx((1 * 0.5 + 4 * 0.0) / 5),)


def test_simulated_raters_are_a_source_of_their_own():
    rows = [*sheet(SCORES[1], "a", ("wrong_side", 2.0)), *sheet(SCORES[1], "s", simulated=True)]
    found = by_name(OneStudy({"b": OneBenchmark({})}, ratings=rows))
    sides = {source: (labels_of(kind), answers(kind)[0]) for (source, name), kind in found.items() if name == "wrong_side"}
    assert sides == {"round r01": (1, 1), "simulated round r01": (0, 1)}
    assert [is_simulated({"source": source}) for source in sides] == [False, True]


def test_errors_that_the_form_does_not_ask_for_were_not_looked_for():
    rows = sheet(SCORES[1], "a", ("wrong_side", 2.0))
    study = OneStudy({"b": OneBenchmark({})}, ratings=rows)
    study.form = study.form.model_copy(update={"errors": ("wrong_region",)})
    found = by_name(study)
    assert ("round r01", "wrong_side") not in found
    assert values(found["round r01", "wrong_region"], "per_response") == (0,)


def test_equal_weights_give_the_interval_of_a_plain_rate():
    values, patients = np.array([1.0, 0.0, 0.0, 1.0, 0.5]), ["a", "a", "b", "c", "d"]
    codes = np.array([0, 0, 1, 2, 3])
    assert rate_interval(3 * values, ByPatient(patients, SETTINGS), np.full(5, 3.0)) == rate_interval(values, ByPatient(codes, SETTINGS))
    weights = np.array([1.0, 1.0, 1.0, 2.0, 2.0])
    found = rate_interval(weights * values, ByPatient(patients, SETTINGS), weights)
    assert found.value == pytest.approx(4 / 7)
    assert found.low < found.value < found.high


def votes(grader: str, *values: float | None) -> list[Grade]:
    rows = [_grade(of, grader, "core_diagnosis", 0.0) for of in SCORES[: len(values)]]
    rows = [
        replace(row, value=value, state=GradeState.FAILED if value is None else GradeState.OK)
        for row, value in zip(rows, values, strict=True)
    ]
    return [*rows, _grade(OTHER_ARM, grader, "core_diagnosis", 1.0)]


def jury(rule: str, **members: Sequence[float | None]) -> dict[str, dict[str, Any]]:
    config = GraderConfig(title="J", kind="jury", members=tuple(members), rule=rule)
    benchmark = OneBenchmark({("m", name): votes(name, *values) for name, values in members.items()})
    rows = jury_rows(OneStudy({"b": benchmark}, {"j": config}))  # type: ignore[arg-type]
    return {source: row for (_, _, source), row in by_measure(rows, "source").items()}


def test_a_jury_is_told_with_its_spread_and_without_each_member():
    rows = jury("majority", a=(1, 1, 0, None), b=(1, 0, 0, None), c=(1, 1, 0, 1))
    assert list(rows) == ["j", "j without a", "j without b", "j without c"]
    whole, mean = rows["j"], rows["j"]["mean"]
    assert (mean["note"], mean["n_answers"], mean["left_out"], mean["value"]) == ("majority of 3", 3, 1, pytest.approx(2 / 3)), (
        "one vote of three is no grade"
    )
    assert values(whole, "voted", "unanimous", "spread") == (3.0, pytest.approx(2 / 3), pytest.approx(1 / 3))
    # by hand: 9 votes on three answers, five of them 1 and four 0; in one answer 4 of 6 ordered pairs differ; a vote alone does not count
    assert values(whole, "alpha") == (pytest.approx(1 - (2 / 9) / (2 * 5 * 4 / (9 * 8))),)
    assert "changed" not in whole
    assert values(rows["j without b"], "mean", "changed") == (0.75, 0.0)
    assert values(rows["j without a"], "changed") == (pytest.approx(1 / 3),), "then the second answer is a tie"
    assert rows["j without a"]["mean"]["n_answers"] == 4, "one of two members is half of them"


def test_the_criteria_of_rubrics_are_told_together_and_errors_as_there_or_not():
    config = GraderConfig(title="J", kind="jury", members=("a", "b"))
    grades = {
        ("m", name): [
            _grade(SCORES[0], name, "considers_1", 1.0),
            _grade(SCORES[0], name, "argues_1", 0.0),
            replace(_grade(SCORES[0], name, "error.wrong_side", 2.0), value=2.0),
        ]
        for name in ("a", "b")
    }
    rows = jury_rows(OneStudy({"b": OneBenchmark(grades)}, {"j": config}))  # type: ignore[arg-type]
    assert {
        (row["value_of_slice"], row["n_answers"], row["value"]) for row in rows if (row["source"], row["measure"]) == ("j", "mean")
    } == {
        ("rubric", 2, 0.5),
        ("error.wrong_side", 1, 1.0),
    }


def test_measures_of_the_reasoning_are_means_over_the_answers_that_have_them():
    values = {"efficiency": (1.0, 0.5, 0.0, None), "factuality": (1.0, None)}
    grades = [
        replace(_grade(of, "r", f"reasoning.{name}", 0.0), value=value, state=GradeState.FAILED if value is None else GradeState.OK)
        for name, told in values.items()
        for of, value in zip(SCORES, told, strict=False)
    ]
    other = [_grade(OTHER_ARM, "r", "reasoning.efficiency", 1.0), _grade(SCORES[0], "r", "core_diagnosis", 1.0)]
    study = OneStudy({"b": OneBenchmark({("m", "r"): [*grades, *other]})}, {"r": GraderConfig(title="R", kind="llm", task="reasoning")})
    rows = reasoning_rows(study)  # type: ignore[arg-type]
    assert [set(row) <= set(COLUMNS["measures"]) for row in rows] == [True, True]
    assert [(row["measure"], row["value"], row["n_answers"], row["n_patients"], row["left_out"]) for row in rows] == [
        ("reasoning.efficiency", 0.5, 3, 3, 1),
        ("reasoning.factuality", 1.0, 1, 1, 1),
    ]


def test_a_grader_of_another_task_is_told_by_its_task_and_not_by_the_diagnoses_that_it_leaves():
    kinds = {
        "r": GraderConfig(title="R", kind="rubric"),
        "e": GraderConfig(title="E", kind="llm", task="errors"),
        "f": GraderConfig(title="F", kind="llm", task="errors"),
        "j": GraderConfig(title="J", kind="jury", members=("e", "f")),
        "k": GraderConfig(title="K", kind="jury", members=("r", "d")),
        "d": GraderConfig(title="D", kind="llm"),
    }
    grades = {("m", name): [_grade(SCORES[0], name, "core_diagnosis", 1.0)] for name in kinds}
    rows = grader_rows(OneStudy({"b": OneBenchmark(grades)}, kinds))  # type: ignore[arg-type]
    other = "judges errors, no diagnosis"
    notes = {row["grader"]: row["note"] for row in rows if row["measure"] == "ok"}
    assert notes == {"r": "", "e": other, "f": other, "j": other, "k": "", "d": ""}


def cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def block(rows: Sequence[MeasureRow] = ()) -> str:
    """Render the block of the report, with cells as a table of results has them."""
    of_run = {"errors": [{column: cell(row.get(column)) for column in types_of_table("errors")} for row in rows]}
    tables = {"reasoning": [], "juries": [], "leaderboard": []} | of_run
    source = SimpleNamespace(figures={"errors": ""})
    return (
        templates({"measures": measures_of_topics()})
        .get_template("blocks/errors.html.j2")
        .render(tables=tables, titles={"e": "<Errors>"}, looks={}, source=source)
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of the table, as the words and numbers of their cells."""
    rows = re.findall(r"<tr data-benchmark.*?</tr>", text, flags=re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in rows]


def test_the_report_shows_both_shares_and_says_what_is_simulated():
    """Of twelve patients: a line of fewer than ten is in the files alone."""
    items = [item("b", f"c{n}", f"p{n}", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN) for n in range(12)]
    scores = [score(one, "m", passed=number % 12 == 0) for number, one in enumerate(items)]
    grades = [grade for number, one in enumerate(scores) for grade in labels(one, ("wrong_side", 2.0 if number < 6 else 0.0))]
    grades[-1] = replace(grades[-1], value=None, state=GradeState.FAILED)
    rows = [rating for one in scores for rating in sheet(one, "s", ("wrong_side", 2.0), simulated=True)]
    benchmark = OneBenchmark(
        {("m", "e"): grades}, items=items, gold=[Gold(item_id=one.item_id, answer="x") for one in items], scores={"m": scores}
    )
    text = block(error_rows(OneStudy({"b": benchmark}, {"e": GraderConfig(title="E", kind="llm", task="errors")}, rows)))  # type: ignore[arg-type]
    assert re.findall(r'class="number" title="[^"]*"><button type="button">([^<]*)', text)[:2] == ["All answers", "Wrong answers"]
    graded, simulated = ([line for line in lines_of(text) if ("simulated" in line) is wanted] for wanted in (False, True))
    assert graded
    assert all("&lt;Errors&gt;" in line for line in graded)
    assert all("simulated round r01" in line for line in simulated)
    (line,) = [line for line in graded if "class, perceptual failure" in line]
    assert re.findall(r"\d+ %", line)[:2] == ["50 %", "45 %"], "6 of 12 answers, 5 of 11 wrong ones"
    assert "not in the answer: 1. They are missing" in text
    assert "<Errors>" not in text
    assert not re.search(r"nan|None", text)
    alone = block(error_rows(OneStudy({"b": replace(benchmark, grades={})}, ratings=rows)))  # type: ignore[arg-type]
    assert lines_of(alone)
    assert all("simulated round r01" in line for line in lines_of(alone)), "also where there is no other line"


def test_without_labels_the_report_says_how_to_get_them():
    text = block()
    assert "Errors: not measured.</b> Add a grader with task: errors to graders, or have clinicians rate a round" in text
    assert text.count("<section") == 1


def test_the_published_shares_in_the_report_are_those_of_the_published_table():
    block = (ROOT / "scripts/neuralmedbench/report/templates/blocks/perception.html.j2").read_text(encoding="utf-8")
    published = yaml.safe_load((ROOT / "config/published/neural-medbench.yaml").read_text(encoding="utf-8"))
    (row,) = published["tables"]["errors"]["rows"]
    for name, words in (
        ("reasoning_failure", "reasoning"),
        ("perceptual_failure", "perception"),
        ("other", "other"),
    ):
        assert f"{row['values'][name]} % {words}" in block
