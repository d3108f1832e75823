"""The update gate: outcomes, looks that are paid for, blocks, the page, and the plan."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from fixtures.tables import DEPTH, GRADERS, write_study
from fixtures.updates import ALPHA, LOOKS, SEVERAL, TUNING_SEED, Cell, broken, draw_gaps, draw_old, gaps_by_margin, grid, judge, measure
from fixtures.updates import MARGINS as GRID_MARGINS
from neuralmedbench.cli.main import main
from neuralmedbench.config.pipeline import PipelineConfig
from neuralmedbench.config.readiness import Margin, ReadinessConfig
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.bids import Participant
from neuralmedbench.files.cases import CaseRow
from neuralmedbench.records.items import Item
from neuralmedbench.records.responses import ANOTHER_MODEL, ResponseState
from neuralmedbench.records.scores import Grade, GradeState, Score
from neuralmedbench.report.gate import GateResult, write_gate
from neuralmedbench.scoring.llm.model_grading import NO_ANSWER
from neuralmedbench.tables.gate.looks import next_level
from neuralmedbench.tables.gate.plan import plan_update
from neuralmedbench.tables.gate.verdict import APPROVE, CONDITIONAL, REJECT, REVIEW, judge_margins, outcome_of
from neuralmedbench.tables.study import Study, read_study

MARGINS = (Margin("all", "max_missed_lesions", 0.1, essential=True), Margin("all", "min_accuracy", 0.1, essential=False))


def margins(**changes: Any) -> dict[str, Any]:
    """Return a readiness file with margins on the depth benchmark."""
    update = {"benchmark": DEPTH, "planned_looks": 2, "essential": {"all": {"min_accuracy": 0.15}}} | changes
    return {"stated_on": "2025-12-01", "groups": {"all": {"title": "All patients"}}, "uses": {}, "update": update}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a made-up run of 60 patients."""
    root = tmp_path_factory.mktemp("gate")
    write_study(root, models=("alpha",), patients=60, arms=("full",))
    return root


@pytest.fixture(scope="module")
def run(folder: Path) -> Study:
    settings = IntervalSettings(resamples=50, seed=1)
    return read_study(folder, [DEPTH], ("alpha",), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def updated(run: Study, stated: dict[str, Any], *, worse: int = 0, revision: str = "2", **changes: Any) -> Study:
    """Return the run with answers of revision 1 as those in use; in the new one `worse` patients fail in all answers, and `changes` are of the benchmark."""
    one = run.benchmarks[DEPTH]
    failing = sorted({row.patient_id for row in one.items})[:worse]

    def new(row: Score) -> Score:
        return replace(row, revision=revision, passed=bool(row.passed) and row.patient_id not in failing)

    def graded(rows: list[Grade]) -> list[Grade]:
        return [replace(row, revision=revision) for row in rows]

    benchmark = replace(
        one,
        earlier=one.scores,
        earlier_responses=one.responses,
        earlier_grades=one.grades,
        scores={"alpha": [new(row) for row in one.scores["alpha"]]},
        responses={"alpha": [replace(row, revision=revision) for row in one.responses["alpha"]]},
        grades={key: graded(rows) for key, rows in one.grades.items()},
    )
    model = run.models["alpha"].model_copy(update={"revision": revision})
    return replace(
        run,
        benchmarks={DEPTH: replace(benchmark, **changes)},
        models={"alpha": model},
        readiness=ReadinessConfig.model_validate(stated),
    )


def gate(study: Study, root: Path) -> GateResult:
    return write_gate(study, "alpha", root / "data" / "gate", root / "results", datetime.date(2026, 11, 28))


def outcome(gaps: list[list[float]], level: float = 0.05) -> str:
    keys = [margin[:2] for margin in MARGINS]
    return outcome_of(judge_margins(dict(zip(keys, map(np.array, gaps), strict=True)), MARGINS, level=level, reject_level=level))


def test_each_outcome_follows_its_rule() -> None:
    same, worse, some = [0.0] * 60, [1.0] * 20 + [0.0] * 40, [1.0] * 4 + [0.0] * 56
    assert outcome([same, same]) == APPROVE
    assert outcome([same, some]) == CONDITIONAL
    assert outcome([some, same]) == REVIEW
    assert outcome([same, worse]) == REJECT
    assert outcome([same, []]) == CONDITIONAL  # not measured is not shown
    assert outcome([[0.0] * 10] * 2) == REVIEW
    rows = judge_margins({margin[:2]: np.zeros(60) for margin in MARGINS}, MARGINS, level=0.05, reject_level=0.05)
    assert outcome_of(rows, reserved=True) == REVIEW
    assert outcome_of([]) == REVIEW


def test_a_rejection_is_corrected_for_the_number_of_margins() -> None:
    gaps = {margin[:2]: np.array([1.0] * 12 + [0.0] * 48) for margin in MARGINS}
    one, two = (judge_margins(gaps, some, level=0.05, reject_level=0.05)[0] for some in (MARGINS[:1], MARGINS))
    assert two.p_beyond == pytest.approx(2 * one.p_beyond)


def test_the_error_of_looks_sums_to_the_whole_and_an_approval_passes_its_part_on() -> None:
    shares, level, levels = [], 0.0, []
    for approved in (False, False, True, False, False, False):
        share, level = next_level(shares, level, approved=approved, planned=5, alpha=0.05)
        shares.append(share)
        levels.append(level)
    assert levels == pytest.approx([0.01, 0.01, 0.02, 0.01, 0.01, 0])
    # a plan that is made longer afterwards takes no more than is left
    assert next_level([0.5, 0.5], 0.0, approved=False, planned=100, alpha=0.05) == (0, 0)
    assert next_level([0.5, 0.4], 0.0, approved=False, planned=2, alpha=0.05) == pytest.approx((0.1, 0.005))


def test_an_update_without_change_is_approved_and_a_look_at_the_same_answers_is_free(run: Study, tmp_path: Path) -> None:
    study = updated(run, margins())
    first, again = gate(study, tmp_path), gate(study, tmp_path)
    assert (first.outcome, first.alarmed, again.outcome) == (APPROVE, False, APPROVE)
    assert "not counted again" in again.lines[-1]
    assert len((tmp_path / "data" / "gate" / DEPTH / "alpha.jsonl").read_text().splitlines()) == 1
    kept = json.loads(first.page.with_suffix(".json").read_text())
    assert (kept["number"], kept["level"], kept["reference"], kept["revision"]) == (1, pytest.approx(0.025), "1", "2")
    assert kept["margins"][0]["patients"] == 60


def test_a_worse_update_is_rejected_raises_the_alarm_and_names_cases_on_the_page_alone(run: Study, tmp_path: Path) -> None:
    study = updated(run, margins(alarms={"all": {"min_accuracy": 3}}), worse=45)
    found = gate(study, tmp_path)
    assert (found.outcome, found.alarmed) == (REJECT, True)
    assert "case00" in found.page.read_text(encoding="utf-8")
    for path in (tmp_path / "data" / "gate" / DEPTH / "alpha.jsonl", found.page.with_suffix(".json")):
        assert "case00" not in path.read_text()  # a record outlives the withdrawal of a patient


def test_the_page_is_one_offline_file_to_sign_that_clears_nothing(run: Study, tmp_path: Path) -> None:
    hostile = margins()
    hostile["groups"]["all"]["title"] = "<script>alert(1)</script>"
    study = updated(run, hostile)
    page = gate(study, tmp_path).page.read_text(encoding="utf-8")
    assert "<script" not in page
    assert not re.search(r"(src|href)=.?http|url\(", page)
    assert "default-src 'none'" in page
    for words in (
        "research instrument",
        "no clearance",
        "Signature",
        "Decision",
        "No number here is about patients",
        "written down before the answers",
    ):
        assert words in page
    assert not re.search(r"\b(safe|cleared|safely)\b", page)


@pytest.mark.parametrize(("worse", "outcome"), [(0, APPROVE), (45, REJECT)])
def test_a_verdict_is_about_patients_of_these_sites_as_no_record_names_one(run: Study, tmp_path: Path, worse: int, outcome: str) -> None:
    """With harm that differs by site, more patients of the same sites make a false approval more likely."""
    assert not {field.name for record in (Participant, CaseRow, Item) for field in fields(record)} & {"site", "centre", "hospital"}
    result = gate(updated(run, margins(), worse=worse), tmp_path)
    assert result.outcome == outcome
    assert result.lines[0].endswith("for patients of these sites)")
    page = result.page.read_text(encoding="utf-8")
    assert "for patients of these sites." in page
    assert "The records name no site" in page


def test_planned_looks_run_out_whatever_the_date_of_the_margins(run: Study, tmp_path: Path) -> None:
    outcomes = []
    for number in range(2, 6):
        stated = margins(planned_looks=2) | {"stated_on": f"2025-11-{number:02d}"}
        outcomes.append(gate(updated(run, stated, worse=12, revision=str(number)), tmp_path).outcome)
    found = gate(updated(run, margins(planned_looks=9), revision="9"), tmp_path)
    assert set(outcomes) == {REVIEW}
    assert found.outcome == REVIEW
    assert any("used up" in line for line in found.lines)
    page = found.page.read_text(encoding="utf-8")
    assert page.count("2026-01-02") >= 5  # the timeline holds every look


def test_a_record_of_looks_that_was_changed_or_cut_is_refused(run: Study, tmp_path: Path) -> None:
    for number in (2, 3):
        gate(updated(run, margins(), worse=number, revision=str(number)), tmp_path)
    path = tmp_path / "data" / "gate" / DEPTH / "alpha.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    for text in (lines[0].replace('"outcome":"', '"outcome":"x') + lines[1], lines[1], lines[0], ""):
        path.write_text(text)
        with pytest.raises(DataError, match="restore the file"):
            gate(updated(run, margins(), revision="4"), tmp_path)


def test_another_reference_than_that_of_the_first_look_is_refused(run: Study, tmp_path: Path) -> None:
    gate(updated(run, margins()), tmp_path)
    study = updated(run, margins(), revision="3")
    old = [replace(row, revision="2") for row in study.benchmarks[DEPTH].earlier["alpha"]]
    found = gate(replace(study, benchmarks={DEPTH: replace(study.benchmarks[DEPTH], earlier={"alpha": old})}), tmp_path)
    assert found.outcome == "blocked"
    assert 'reference_revision: "1"' in found.lines[1]


def test_other_graders_or_engines_block_the_verdict_and_no_look_is_counted(run: Study, tmp_path: Path) -> None:
    one = run.benchmarks[DEPTH]
    by_llm = {
        key: [replace(row, served_model="judge-may", fingerprint="a") for row in rows]
        for key, rows in one.grades.items()
        if key[1] == "llm"
    }
    later = {key: [replace(row, revision="2", fingerprint="b") for row in rows] for key, rows in by_llm.items()}
    graded = gate(updated(run, margins(), grades=later, earlier_grades=by_llm), tmp_path)
    assert graded.outcome == "blocked"
    assert "Raise `revision` in config/graders/llm.yaml" in graded.lines[1]
    mixed = [replace(row, revision="2", served_model=f"m-{row.repeat}") for row in one.responses["alpha"]]
    asked = gate(updated(run, margins(), responses={"alpha": mixed}), tmp_path)
    assert asked.outcome == "blocked"
    assert "5 engines" in asked.lines[1]
    assert not (tmp_path / "data" / "gate" / DEPTH / "alpha.jsonl").read_text()


def lacking(run: Study, error: str, number: int = 3) -> dict[str, Any]:
    """Return the answers of the new revision, some of them missing for a reason, and their scores."""
    one = run.benchmarks[DEPTH]
    lost = set(sorted({row.item_id for row in one.items})[:number])
    failed = {"revision": "2", "state": ResponseState.FAILED, "error": error, "text": ""}
    rows = [replace(row, **(failed if row.item_id in lost else {"revision": "2"})) for row in one.responses["alpha"]]
    scores = [
        replace(row, revision="2", missing=row.item_id in lost, passed=None if row.item_id in lost else row.passed)
        for row in one.scores["alpha"]
    ]
    return {"responses": {"alpha": rows}, "scores": {"alpha": scores}}


def test_no_look_is_counted_while_an_answer_or_a_grade_is_missing_that_can_be_asked_for(run: Study, tmp_path: Path) -> None:
    timed_out = lacking(run, "Timeout (no status)")
    found = gate(updated(run, margins(), **timed_out), tmp_path)
    assert (found.outcome, "most often: Timeout (no status)" in found.lines[1], "nmb run retry" in found.lines[1]) == (
        "blocked",
        True,
        True,
    )
    one = run.benchmarks[DEPTH]
    failed = {
        key: [replace(row, revision="2", state=GradeState.FAILED, value=None, explanation=NO_ANSWER.format("failed")) for row in rows[:2]]
        for key, rows in one.grades.items()
        if key[1] == "llm"
    }
    found = gate(updated(run, margins(), grades=failed), tmp_path)
    assert (found.outcome, "2 grades of the new revision can still be asked for" in found.lines[1]) == ("blocked", True)
    assert not (tmp_path / "data" / "gate" / DEPTH / "alpha.jsonl").read_text()
    # what no further call brings is judged by the share that is missing
    too_long = lacking(run, "context_tokens 8000: the prompt and the longest answer are too long for the model")
    assert gate(updated(run, margins(), **too_long), tmp_path).outcome == REVIEW


def test_answers_and_grades_of_another_model_block_the_verdict(run: Study, tmp_path: Path) -> None:
    why = f"{ANOTHER_MODEL}: m-lite, not m"
    found = gate(updated(run, margins(), **lacking(run, why)), tmp_path)
    assert (found.outcome, f"of the revision that is new were {why}" in found.lines[1]) == ("blocked", True)
    one = run.benchmarks[DEPTH]
    in_use = updated(run, margins(), earlier_responses={"alpha": lacking(run, why)["responses"]["alpha"]})
    assert f"of the revision that is in use were {why}" in gate(in_use, tmp_path).lines[1]
    graded = {key: [replace(row, explanation=why) for row in rows] for key, rows in one.grades.items() if key[1] == "llm"}
    found = gate(updated(run, margins(), grades=graded), tmp_path)
    assert (found.outcome, f"grades of llm were {why}" in found.lines[1]) == ("blocked", True)


def test_the_last_day_of_the_revision_in_use_and_of_the_new_one_is_said(run: Study, tmp_path: Path) -> None:
    study = updated(run, margins())
    paid = study.models["alpha"].model_copy(update={"backend": "litellm", "id": "openai/gpt-5.4-2026-03-05"})
    rows = [replace(row, served_model="gpt-4o-2024-08-06") for row in study.benchmarks[DEPTH].earlier_responses["alpha"]]
    benchmark = replace(study.benchmarks[DEPTH], earlier_responses={"alpha": rows})
    found = gate(replace(study, benchmarks={DEPTH: benchmark}, models={"alpha": paid}), tmp_path)
    line = "The revision that is in use: its provider serves it until 2027-01-14, 47 days from now: the last day to ask this revision."
    assert f"  {line}" in found.lines
    assert line in found.page.read_text(encoding="utf-8")
    assert not any("revision that is new" in text for text in found.lines), "of the new one no last day is known"


def test_nothing_is_approved_late_with_answers_missing_or_against_a_condition(run: Study, tmp_path: Path) -> None:
    late = gate(updated(run, margins() | {"stated_on": "2026-02-01"}), tmp_path / "late")
    assert (late.outcome, "after the new revision" in late.lines[1]) == (REVIEW, True)
    rows = updated(run, margins()).benchmarks[DEPTH].scores["alpha"]
    lost = set(sorted({row.item_id for row in rows})[:10])
    scores = [replace(row, missing=True, passed=None) if row.item_id in lost else row for row in rows]
    found = gate(updated(run, margins(), scores={"alpha": scores}), tmp_path / "missing")
    assert found.outcome == REVIEW
    assert "have an answer or a grade missing" in found.lines[1]
    uses = {"draft": {"title": "Draft", "conditions": {"all": {"min_accuracy": 0.99}}}}
    found = gate(updated(run, margins() | {"uses": uses}), tmp_path / "condition")
    assert (found.outcome, "conditions on Draft" in found.lines[1]) == (REVIEW, True)


def test_without_margins_or_an_earlier_revision_there_is_one_clear_line(run: Study, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="states no margin"):
        gate(updated(run, margins(essential={})), tmp_path)
    found = gate(updated(run, margins(), earlier={"alpha": []}), tmp_path)
    assert (found.outcome, "no answers of a revision before" in found.lines[1]) == ("blocked", True)
    with pytest.raises(ValueError, match="expected a fraction"):
        ReadinessConfig.model_validate(margins(essential={"all": {"min_accuracy": 5}}))
    with pytest.raises(ValueError, match="is not among the groups"):
        ReadinessConfig.model_validate(margins(other={"stroke": {"min_accuracy": 0.1}}))
    with pytest.raises(ValueError, match="essential already"):
        ReadinessConfig.model_validate(margins(other={"all": {"min_accuracy": 0.1}}))


def test_the_plan_says_how_many_patients_are_needed_and_counts_no_look(folder: Path, tmp_path: Path) -> None:
    stated = margins(other={"all": {"max_missed_lesions": 0.1}})
    path = folder / "config" / "readiness.yaml"
    before = path.read_text()
    path.write_text(yaml.safe_dump(stated))
    try:
        places = {"vocabulary": Path("config/vocabulary.yaml"), "results": Path("results"), "record": Path("data/gate")}
        lines = plan_update(folder, "alpha", **places, assumed=0.1, today=datetime.date(2026, 11, 28))
    finally:
        path.write_text(before)
    accuracy, missed = (next(line for line in lines if kind in line) for kind in ("min_accuracy", "max_missed_lesions"))
    assert "60 here" in accuracy
    assert "(repeats)" in accuracy
    assert "0 here" in missed  # the set has no question for a lesion
    assert "(assumed)" in missed
    assert lines[-1].startswith("the benchmark has too few patients; ")
    assert not (folder / "data" / "gate").exists()


def test_the_grid_of_scripted_updates_was_not_changed() -> None:
    cells = list(grid())
    assert len(cells) == len(set(cells)) == 5 * (6 * 4 + 2)
    assert (ALPHA, LOOKS) == (0.05, 5)


@pytest.mark.parametrize("pattern", ["usual", *SEVERAL])
def test_scripted_updates_are_judged_as_the_gate_judges(pattern: str) -> None:
    rng, outcomes = np.random.default_rng(3), set()
    for truth in ("unchanged", "first margin reached", "twice the first margin"):
        for patients in (60, 200):
            gaps = draw_gaps(rng, pattern, truth, patients, draw_old(rng, pattern, patients))
            rows = judge_margins(gaps_by_margin(gaps), GRID_MARGINS, level=0.05, reject_level=0.05)
            outcomes.add(judge(gaps, 0.05, 0.05))
            assert judge(gaps, 0.05, 0.05) == outcome_of(rows)
    assert len(outcomes) > 1


@pytest.mark.parametrize("pattern", ["usual", SEVERAL[1]])
def test_a_slice_of_the_scripted_updates_keeps_its_promises(pattern: str) -> None:
    for truth in ("first margin reached", "unchanged"):
        cell = Cell(pattern, truth, 100)
        assert broken(cell, measure(cell, 60, TUNING_SEED), 60) == []


def test_the_command_ends_with_the_code_of_the_outcome(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(
        "neuralmedbench.config.workflow.read_run",
        lambda _: SimpleNamespace(
            config=PipelineConfig(benchmarks=(DEPTH,), models=("alpha",)),
            benchmarks={},
            models={},
            graders={},
            all_graders={},
            results="results",
        ),
    )
    monkeypatch.setattr("neuralmedbench.report.gate.read_study", lambda *_, **__: None)
    codes = {}
    for name, alarmed in ((APPROVE, False), (APPROVE, True), (CONDITIONAL, False), (REVIEW, False), (REJECT, True), ("blocked", False)):
        monkeypatch.setattr("neuralmedbench.report.gate.write_gate", lambda *_, n=name, a=alarmed: GateResult(n, a, [n], Path("page.html")))
        codes[name, alarmed] = main(["model", "gate", "alpha"])
    assert codes == {
        (APPROVE, False): 0,
        (APPROVE, True): 20,
        (CONDITIONAL, False): 3,
        (REVIEW, False): 4,
        (REJECT, True): 25,
        ("blocked", False): 6,
    }
    assert "page.html" in capsys.readouterr().out
