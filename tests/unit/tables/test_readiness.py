"""Conditions of a site: exact bounds, verdicts that need enough patients, and no verdict without a condition."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy import stats

from conftest import ROOT
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.config.load import load_readiness
from neuralmedbench.config.readiness import ReadinessConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.exact import holm, holm_levels, p_at_least, p_at_most, share_bounds
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.files.tables import read_table, write_table
from neuralmedbench.files.vocabulary import read_vocabulary
from neuralmedbench.records.items import Family, Gold
from neuralmedbench.records.results import COLUMNS
from neuralmedbench.report.page import templates
from neuralmedbench.tables.readiness import readiness_rows, when_stated
from neuralmedbench.tables.study import Study, read_study

SHIPPED = ROOT / "config" / "readiness.yaml"


def stated(**limits: float | None) -> ReadinessConfig:
    """Return conditions for all patients, in one use."""
    value = {
        "stated_on": "2026-01-31",
        "groups": {"all": {"title": "All"}},
        "uses": {"draft": {"title": "Draft", "conditions": {"all": limits}}},
    }
    return ReadinessConfig.model_validate(value)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a made-up run of 40 patients."""
    root = tmp_path_factory.mktemp("readiness")
    write_study(root, models=("alpha", "beta"), patients=40, arms=("full",))
    settings = IntervalSettings(resamples=50, seed=1)
    return read_study(root, [DEPTH, BREADTH], ("alpha", "beta"), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def verdicts(study: Study, config: ReadinessConfig, model: str = "alpha") -> dict[str, str]:
    """Verdict by condition of one model on the depth benchmark."""
    rows = readiness_rows(replace(study, readiness=config))
    return {row["condition"]: row["verdict"] for row in rows if (row["benchmark"], row["model"], row.get("use")) == (DEPTH, model, "draft")}


@pytest.mark.parametrize(("events", "patients"), [(0, 8), (3, 8), (8, 8), (1, 120), (60, 120)])
def test_bounds_and_p_values_are_those_of_the_exact_binomial_test(events: int, patients: int) -> None:
    found = share_bounds(events, patients, 0.95)
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
    held = np.mean([share_bounds(float(value), patients, 0.95).low <= 0.4 for value in events])
    assert held > 0.94


def test_the_shipped_file_states_no_condition() -> None:
    assert load_readiness(SHIPPED).stated == []
    assert set(load_readiness(SHIPPED).uses) == {"triage_order", "draft", "second_reader"}


def test_without_conditions_there_are_measurements_and_no_verdict(study: Study) -> None:
    rows = readiness_rows(study)
    assert rows
    assert {row["verdict"] for row in rows} == {"condition not stated"}
    assert {row["use"] for row in rows} == {None}
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
    assert between == {"min_accuracy": "inconclusive", "all_conditions": "inconclusive"}


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
        "all_conditions": "inconclusive",
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
    depth, breadth = ([row for row in found if row["benchmark"] == name] for name in (DEPTH, BREADTH))
    assert depth
    assert all(row["low"] <= row["value"] <= row["high"] for row in depth)
    assert {(row["verdict"], row.get("value")) for row in breadth} == {("not measured", None)}  # its classes are wider than the group
    value["groups"]["one"]["prevalence"] = None
    assert not [
        row
        for row in readiness_rows(replace(study, readiness=ReadinessConfig.model_validate(value)))
        if row["condition"] == "positive_predictive_value"
    ]


def test_the_decisive_bound_is_the_exact_one_at_the_error_that_holm_allows(study: Study) -> None:
    limits = {"min_accuracy": 0.45, "min_coverage": 0.5, "max_confident_errors": 0.5, "min_right_when_sure": 0.2}
    rows = readiness_rows(replace(study, readiness=stated(**limits)))
    own = {row["condition"]: row for row in rows if (row["benchmark"], row["model"], row.get("use")) == (DEPTH, "alpha", "draft")}
    plain, events = {}, {}
    for condition, limit in limits.items():
        row = own[condition]
        events[condition] = (row["value"] * row["n_patients"], row["n_patients"])
        plain[condition] = (p_at_least if condition.startswith("min_") else p_at_most)(*events[condition], limit)
    levels = dict(zip(plain, holm_levels(list(plain.values()), 0.05), strict=True))
    corrected = dict(zip(plain, holm(list(plain.values())), strict=True))
    assert sorted(levels.values()) == pytest.approx([0.05 / 4, 0.05 / 3, 0.05 / 2, 0.05])
    for condition, limit in limits.items():
        row, (seen, patients) = own[condition], events[condition]
        least = condition.startswith("min_")
        place = levels[condition] if least else 1 - levels[condition]
        ends = (seen, patients - seen + 1) if least else (seen + 1, patients - seen)
        assert row["bound"] == pytest.approx(stats.beta.ppf(place, *ends), abs=1e-9), condition
        assert row["p_met"] == pytest.approx(corrected[condition])
        if row["verdict"] == "met":
            assert row["bound"] > limit if least else row["bound"] < limit
    assert "met" in {row["verdict"] for row in own.values()}


def test_a_use_names_the_conditions_that_fail_it_and_their_cases(study: Study) -> None:
    rows = readiness_rows(replace(study, readiness=stated(min_accuracy=0.99, min_coverage=0.1, min_patients=400)))
    own = {row["condition"]: row for row in rows if (row["benchmark"], row["model"], row.get("use")) == (DEPTH, "beta", "draft")}
    assert own["all_conditions"]["failing"] == "min_accuracy min_patients"
    assert own["all_conditions"]["cases"] == own["min_accuracy"]["cases"] != ""
    met = readiness_rows(replace(study, readiness=stated(min_coverage=0.1)))
    assert {row["failing"] for row in met if row["condition"] == "all_conditions"} == {""}


@pytest.mark.parametrize(
    ("day", "told"),
    [("2026-01-01", "before the answers"), ("2026-01-02", "on the day of the first answer"), ("2026-01-03", "after the first answer")],
)
def test_conditions_are_dated_against_the_first_answer(study: Study, day: str, told: str) -> None:
    config = ReadinessConfig.model_validate(stated(min_accuracy=0.5).model_dump() | {"stated_on": day})
    rows = [row for row in readiness_rows(replace(study, readiness=config)) if row.get("use")]
    assert {row["stated"] for row in rows} == {told}
    answers = study.benchmarks[DEPTH].responses["alpha"]
    assert when_stated(config, [replace(row, called_on="") for row in answers]) == "not known"
    early = replace(answers[0], arm="full", strategy="direct", called_on="2025-12-31")
    assert when_stated(config, [early, *answers]) == "after the first answer"
    assert when_stated(config, [replace(early, arm="no_image"), *answers]) == told  # another question was asked then


def test_the_predictive_value_counts_what_names_the_group_and_asks_diagnoses_alone(study: Study) -> None:
    value = {"groups": {"all": {"title": "All"}, "one": {"title": "One", "diagnoses": ["glioblastoma"], "prevalence": 0.1}}, "uses": {}}
    config = ReadinessConfig.model_validate(value)
    depth = study.benchmarks[DEPTH]
    gold = [Gold(item_id=row.item_id, answer="glioblastoma" if place < 20 else "meningioma") for place, row in enumerate(depth.gold)]
    sick = {row.item_id for row in gold[:20]}
    # of the group every answer names it, of the others one patient's do; questions for a lesion are not counted, whatever they name
    wrong = next(row.patient_id for row in depth.items if row.item_id not in sick)
    diagnoses = [replace(row, family=Family.DIFFERENTIAL_DIAGNOSIS) for row in depth.items]
    names = {True: ("glioblastoma",), False: ("meningioma",)}
    scores = [
        replace(row, differential=names[row.item_id in sick or row.patient_id == wrong], passed=False) for row in depth.scores["alpha"]
    ]

    def given(items: list) -> dict:
        benchmark = replace(depth, items=items, gold=gold, scores={"alpha": scores})
        part = replace(study, benchmarks={DEPTH: benchmark}, models={"alpha": study.models["alpha"]}, readiness=config)
        return next(row for row in readiness_rows(part) if row["condition"] == "positive_predictive_value")

    found = given(diagnoses)
    own, others = len({row.patient_id for row in depth.items if row.item_id in sick}), 40 - len({*sick}) // 2
    s_low, f_high = stats.beta.ppf(0.025, own, 1), stats.beta.ppf(0.975, 2, others - 1)
    assert found["n_patients"] == own + others
    assert found["value"] == pytest.approx(0.1 / (0.1 + 0.9 / others))
    assert found["low"] == pytest.approx(0.1 * s_low / (0.1 * s_low + 0.9 * f_high), abs=1e-9)
    lesions = [replace(row, family=Family.LESION_RECOGNITION) for row in diagnoses]
    assert given(lesions)["verdict"] == "not measured"


def test_right_when_sure_is_measured_over_sure_answers(study: Study) -> None:
    depth = study.benchmarks[DEPTH]
    sure = [row for row in depth.scores["alpha"] if (row.arm, row.strategy) == ("full", "direct") and row.confidence >= 0.8]
    rows = readiness_rows(study)
    row = next(
        row
        for row in rows
        if (row["benchmark"], row["model"], row["group"], row["condition"]) == (DEPTH, "alpha", "all", "min_right_when_sure")
    )
    by_patient: dict[str, list[bool]] = {}
    for score in sure:
        by_patient.setdefault(score.patient_id, []).append(bool(score.passed))
    assert row["n_patients"] == len(by_patient)
    assert row["value"] == pytest.approx(np.mean([np.mean(passes) for passes in by_patient.values()]))


def block(folder: Path, config: ReadinessConfig, rows: list[dict[str, object]]) -> str:
    """Render the block with this part alone."""
    write_table(folder / "readiness.csv", rows, COLUMNS["readiness"])
    cells = read_table(folder / "readiness.csv")
    source = SimpleNamespace(readiness=config, profile="internal", checklists=[], cards={})
    template = templates({}).get_template("blocks/checklists.html.j2")
    return template.render(source=source, tables={"readiness": cells}, titles={}, looks={}, words={}, here={})


def test_the_page_marks_conditions_that_were_written_down_after_the_answers_and_recommends_nothing(study: Study, tmp_path: Path) -> None:
    config = ReadinessConfig.model_validate(stated(min_accuracy=0.99, max_missed_lesions=None).model_dump() | {"stated_on": "2026-05-01"})
    late = block(tmp_path, config, readiness_rows(replace(study, readiness=config)))
    assert "<b>Not written down before the answers:</b> alpha (after the first answer), beta (after the first answer)." in late
    assert '<span class="tag warn">not met</span></td><td class="wrap">Right</td><td class="wrap">case' in late
    assert 'missed lesions <span class="tag none">condition not stated</span>' in late.replace("&#34;", '"')
    assert "never recommends deployment" in late
    early = stated(min_accuracy=0.99).model_copy(update={"stated_on": datetime.date(2025, 1, 1)})
    assert "Not written down before the answers" not in block(tmp_path, early, readiness_rows(replace(study, readiness=early)))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stated_on": None}, "stated_on: a limit without the day on which it was written down proves nothing"),
        ({"uses": {"draft": {"title": "D", "conditions": {"tumor": {"min_accuracy": 0.5}}}}}, "tumor is not among the groups"),
        ({"uses": {"draft": {"title": "D", "conditions": {"all": {"min_accuracy": 90}}}}}, "expected a share, 0 to 1, found 90"),
        ({"groups": {"stroke": {"title": "S"}}}, "`all` must be among them"),
        ({"groups": {"all": {"title": "All", "prevalence": 0.1}}}, "a group of all patients has none"),
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
