"""Conditions of a site: bounds that are exact, verdicts that need enough patients, and nothing said where nothing was stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy import stats

from conftest import ROOT
from neuralmedbench.config.load import load_readiness
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.io.vocabulary import read_vocabulary
from neuralmedbench.stats.intervals import Settings
from neuralmedbench.stats.readiness.table import bounds, p_at_least, p_at_most, readiness_rows
from neuralmedbench.stats.study import Study, read_study
from tables_fixtures import BREADTH, DEPTH, GRADERS, write_study

SHIPPED = ROOT / "config" / "readiness.yaml"


def stated(**limits: float | None) -> ReadinessConfig:
    """Give conditions for all patients, in one use."""
    value = {
        "stated_on": "2026-01-31",
        "groups": {"all": {"title": "All"}},
        "uses": {"draft": {"title": "Draft", "conditions": {"all": limits}}},
    }
    return ReadinessConfig.model_validate(value)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Give a made-up run of 40 patients."""
    root = tmp_path_factory.mktemp("readiness")
    write_study(root, models=("alpha", "beta"), patients=40)
    settings = Settings(resamples=50, seed=1)
    return read_study(root, [DEPTH, BREADTH], ("alpha", "beta"), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def verdicts(study: Study, config: ReadinessConfig, model: str = "alpha") -> dict[str, str]:
    """Verdict by condition of one model on the depth benchmark."""
    rows = readiness_rows(replace(study, readiness=config))
    return {row["condition"]: row["verdict"] for row in rows if (row["benchmark"], row["model"], row.get("use")) == (DEPTH, model, "draft")}


@pytest.mark.parametrize(("events", "patients"), [(0, 8), (3, 8), (8, 8), (1, 120), (60, 120)])
def test_bounds_and_p_values_are_those_of_the_exact_binomial_test(events: int, patients: int) -> None:
    found = bounds(events, patients, 0.95)
    above = stats.binomtest(events, patients, 0.3, alternative="greater")
    below = stats.binomtest(events, patients, 0.3, alternative="less")
    assert found.low == pytest.approx(above.proportion_ci(0.95, method="exact").low, abs=1e-6)
    assert found.high == pytest.approx(below.proportion_ci(0.95, method="exact").high, abs=1e-6)
    assert p_at_least(events, patients, 0.3) == pytest.approx(above.pvalue, abs=1e-9)
    assert p_at_most(events, patients, 0.3) == pytest.approx(below.pvalue, abs=1e-9)


@pytest.mark.parametrize("patients", [8, 30, 120])
def test_a_bound_holds_as_often_as_it_says_when_patients_have_several_answers(patients: int) -> None:
    rng = np.random.default_rng(3)
    shares = rng.beta(2, 3, size=(2000, patients))  # a patient's answers are alike
    events = (rng.binomial(5, shares) / 5).sum(axis=1)
    held = np.mean([bounds(float(value), patients, 0.95).low <= 0.4 for value in events])
    assert held > 0.94


def test_the_shipped_file_states_no_condition() -> None:
    assert load_readiness(SHIPPED).stated == []
    assert set(load_readiness(SHIPPED).uses) == {"triage_order", "draft", "second_reader"}


def test_without_conditions_there_are_measurements_and_no_verdict(study: Study) -> None:
    rows = readiness_rows(study)
    assert rows
    assert {row["verdict"] for row in rows} == {"condition not stated"}
    assert {row.get("use", "") for row in rows} == {""}
    accuracy = next(
        row for row in rows if (row["benchmark"], row["model"], row["group"], row["condition"]) == (DEPTH, "alpha", "all", "min_accuracy")
    )
    assert accuracy["n_patients"] == 40
    assert accuracy["low"] < accuracy["value"] < accuracy["high"]


def test_a_low_limit_is_met_a_high_one_is_not_and_one_between_cannot_be_told(study: Study) -> None:
    value = next(
        row["value"]
        for row in readiness_rows(study)
        if (row["benchmark"], row["model"], row["condition"]) == (DEPTH, "alpha", "min_accuracy")
    )
    assert verdicts(study, stated(min_accuracy=value - 0.35))["min_accuracy"] == "met"
    assert verdicts(study, stated(min_accuracy=min(1.0, value + 0.35)))["min_accuracy"] == "not met"
    between = verdicts(study, stated(min_accuracy=value - 0.02))
    assert between == {"min_accuracy": "cannot be told", "all_conditions": "cannot be told"}


def test_one_condition_that_is_not_met_fails_the_use_and_names_cases(study: Study) -> None:
    config = stated(min_accuracy=0.01, min_patients=41)
    assert verdicts(study, config) == {"min_accuracy": "met", "min_patients": "not met", "all_conditions": "not met"}
    rows = readiness_rows(replace(study, readiness=stated(min_accuracy=0.99)))
    named = next(row for row in rows if row.get("use") and row["condition"] == "min_accuracy")
    assert named["verdict"] == "not met"
    assert 1 <= len(named["cases"].split()) <= 10
    assert named["cases"].startswith("case")


def test_what_no_grader_looked_at_is_not_measured_and_does_not_count_as_met(study: Study) -> None:
    config = stated(min_accuracy=0.01, max_hallucinated_findings=0.5)
    assert verdicts(study, config) == {
        "min_accuracy": "met",
        "max_hallucinated_findings": "not measured",
        "all_conditions": "cannot be told",
    }


def test_more_conditions_ask_for_more_certainty(study: Study) -> None:
    alone = readiness_rows(replace(study, readiness=stated(min_accuracy=0.3)))
    many = readiness_rows(replace(study, readiness=stated(min_accuracy=0.3, min_coverage=0.3, max_confident_errors=0.9)))
    p_alone, p_many = (
        next(row["p_met"] for row in rows if row.get("use") and row["condition"] == "min_accuracy") for rows in (alone, many)
    )
    assert p_many >= p_alone


def test_a_predictive_value_is_given_only_at_a_prevalence_of_the_site(study: Study) -> None:
    value = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    value["groups"] = {"all": {"title": "All"}, "one": {"title": "One", "diagnoses": ["glioblastoma"], "prevalence": 0.02}}
    value["uses"] = {}
    rows = readiness_rows(replace(study, readiness=ReadinessConfig.model_validate(value)))
    found = [row for row in rows if row["condition"] == "positive_predictive_value"]
    assert found
    assert all(row["low"] <= row["value"] <= row["high"] for row in found)
    value["groups"]["one"]["prevalence"] = None
    assert not [
        row
        for row in readiness_rows(replace(study, readiness=ReadinessConfig.model_validate(value)))
        if row["condition"] == "positive_predictive_value"
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stated_on": None}, "stated_on: a limit without the day on which it was written down proves nothing"),
        ({"uses": {"draft": {"title": "D", "conditions": {"tumor": {"min_accuracy": 0.5}}}}}, "tumor is not among the groups"),
        ({"uses": {"draft": {"title": "D", "conditions": {"all": {"min_accuracy": 90}}}}}, "expected a share, 0 to 1, found 90"),
        ({"groups": {"stroke": {"title": "S"}}}, "`all` has to be among them"),
    ],
)
def test_a_condition_that_does_not_fit_is_one_line(tmp_path: Path, change: dict[str, object], told: str) -> None:
    value = {
        "stated_on": "2026-01-31",
        "groups": {"all": {"title": "All"}},
        "uses": {"draft": {"title": "D", "conditions": {"all": {"min_accuracy": 0.5}}}},
    }
    (tmp_path / "readiness.yaml").write_text(yaml.safe_dump({**value, **change}), encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        load_readiness(tmp_path / "readiness.yaml")


def test_a_diagnosis_that_the_vocabulary_does_not_know_is_refused(study: Study) -> None:
    value = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
    value["groups"] = {"all": {"title": "All"}, "stroke": {"title": "S", "diagnoses": ["glioblastom"]}}
    value["uses"] = {}
    with pytest.raises(ConfigError, match=r"groups\.stroke: 'glioblastom' is no key of the vocabulary; did you mean 'glioblastoma'"):
        readiness_rows(replace(study, readiness=ReadinessConfig.model_validate(value)))


def test_the_shipped_groups_are_made_of_diagnoses_of_the_shipped_vocabulary() -> None:
    known = read_vocabulary(ROOT / "config" / "vocabulary" / "neurology.yaml").diagnoses
    named = {key for group in load_readiness(SHIPPED).groups.values() for key in group.diagnoses}
    assert named
    assert named <= set(known)
