"""Before and after a training cut-off, on made-up answers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from fixtures.tables import DEPTH, item, score
from neuralmedbench.config.load import load_model
from neuralmedbench.config.model import ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates.contrasts import square_and_add
from neuralmedbench.estimates.intervals import ByPatient, IntervalSettings, rate_interval
from neuralmedbench.records.items import Family, Gold, Level, Runner
from neuralmedbench.tables.contamination import (
    NEVER_PUBLISHED,
    NO_CUTOFF,
    NO_DATE,
    contamination_rows,
    sides_of,
)
from neuralmedbench.tables.outcomes import gather_outcomes

SETTINGS = IntervalSettings(resamples=400)
OLD, NEW = "2024-03-01", "2025-02-01"


def model(**changes: object) -> ModelConfig:
    base = {"title": "M", "backend": "builtin", "id": "m", "revision": "1", "temperature": 1.0}
    cutoff = {"knowledge_cutoff": "2024-06", "knowledge_cutoff_source": "the provider's page"}
    return ModelConfig(**{**base, **cutoff, **changes})


def made_up(
    dates: list[str],
    passes: dict[str, list[bool]],
    models: dict[str, ModelConfig],
    *,
    subjects: str = "public",
    patients: list[str] | None = None,
) -> SimpleNamespace:
    """Make a study of one item per patient (unless patients are given) and one answer per item."""
    one = item(DEPTH, "case", "p", Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)
    own = patients or [f"p{number:03d}" for number in range(len(dates))]
    items = [
        replace(one, item_id=f"{DEPTH}/{number:03d}", case_id=f"{number:03d}", patient_id=patient, date=date)
        for number, (date, patient) in enumerate(zip(dates, own, strict=True))
    ]
    scores = {name: [score(of, name, passed=right) for of, right in zip(items, rights, strict=True)] for name, rights in passes.items()}
    gold = [Gold(item_id=of.item_id, answer="stroke") for of in items]
    outcomes = gather_outcomes(DEPTH, "depth", items, gold, scores=scores, sampled=dict.fromkeys(models, True))
    benchmark = SimpleNamespace(name=DEPTH, cluster="patient", outcomes=outcomes, config=SimpleNamespace(subjects=subjects, title="Depth"))
    readers = {name: entry.reader for name, entry in models.items() if entry.reader}
    return SimpleNamespace(benchmarks={DEPTH: benchmark}, models=models, readers=readers, settings=SETTINGS)


DATES = [OLD] * 20 + [NEW] * 20
REMEMBERS = [True] * 18 + [False] * 2 + [True] * 4 + [False] * 16
EVEN = [True, False] * 20


def slices_of(study: SimpleNamespace, name: str = "m") -> dict[str, Any]:
    """Return the rows of a model by their slice."""
    return {row.slice: row for row in contamination_rows(study) if row.model == name}


def test_a_model_that_knows_the_older_cases_is_seen_beside_one_that_learned_nothing() -> None:
    study = made_up(DATES, {"m": REMEMBERS, "plain": EVEN}, {"m": model(), "plain": model(baseline=True)})
    rows = contamination_rows(study)
    assert {(row.model, row.measure, row.value_of_slice) for row in rows} == {("m", "pass1_patients", "2024-06")}
    before, after, difference, beyond = (slices_of(study)[name] for name in ("before", "after", "difference", "beyond_others"))
    assert (before.value, after.value, difference.difference) == (0.9, 0.2, pytest.approx(0.7))
    assert (before.n_items, after.n_patients, difference.n_patients) == (20, 20, 40)
    assert difference.low > 0.3
    assert difference.p_value < 0.01
    assert beyond.difference == pytest.approx(0.7)
    assert beyond.low > 0.2
    assert beyond.note == "plain"


def test_cases_that_are_harder_for_every_model_are_no_sign_of_memory() -> None:
    rows = slices_of(made_up(DATES, {"m": REMEMBERS, "plain": REMEMBERS}, {"m": model(), "plain": model(baseline=True)}))
    assert rows["difference"].low > 0
    assert rows["beyond_others"].difference == 0
    assert "beyond_others" not in slices_of(made_up(DATES, {"m": REMEMBERS}, {"m": model()}))


def test_the_interval_is_that_of_the_shuffle_and_reaches_as_far_as_those_of_the_two_rates() -> None:
    rows = slices_of(made_up(DATES, {"m": REMEMBERS}, {"m": model()}))
    rates = [
        rate_interval(np.array(REMEMBERS[part], dtype=float), ByPatient(np.arange(20), SETTINGS)) for part in (slice(20), slice(20, 40))
    ]
    assert [rows["before"].low, rows["after"].high] == [rates[0].low, rates[1].high]
    of_rates, row = square_and_add(*rates), rows["difference"]
    assert row["difference"] == of_rates.value
    assert (row["low"] <= 0 <= row["high"]) == (row["p_value"] >= 0.05)
    away = ("high", 2) if row["difference"] > 0 else ("low", 1)
    assert abs(row[away[0]]) >= abs(of_rates[away[1]])


def test_another_model_is_a_control_only_when_its_own_date_does_not_divide_the_cases() -> None:
    models = {
        "m": model(),
        "same": model(knowledge_cutoff="2024-09"),
        "early": model(knowledge_cutoff="2020-01"),
        "unknown": model(knowledge_cutoff=None),
        "person": model(reader="clinician", backend="imported", knowledge_cutoff=None),
    }
    study = made_up(DATES, dict.fromkeys(models, EVEN), models)
    assert slices_of(study)["beyond_others"].note == slices_of(study, "same")["beyond_others"].note == "early"
    assert slices_of(study, "early")["difference"].note == "0 patients before and 40 after: fewer than 8 on a side are not compared"
    assert slices_of(study, "unknown")["difference"].note == NO_CUTOFF
    assert not slices_of(study, "person")


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"dates": [""] * 40}, NO_DATE),
        ({"subjects": "patient"}, NEVER_PUBLISHED),
        ({"dates": [OLD] * 35 + [NEW] * 5}, "35 patients before and 5 after: fewer than 8 on a side are not compared"),
        (
            {"patients": [f"p{number % 20}" for number in range(40)]},
            "0 patients before and 0 after: fewer than 8 on a side are not compared",
        ),
    ],
)
def test_what_cannot_be_compared_says_why_and_has_no_number(change: dict, note: str) -> None:
    arguments = {"dates": DATES, "subjects": "public"} | change
    (row,) = contamination_rows(made_up(passes={"m": REMEMBERS}, models={"m": model()}, **arguments))
    assert (row.slice, row.note) == ("difference", note)
    assert row.difference is None


def test_a_missing_answer_is_on_no_side() -> None:
    before = slices_of(made_up(DATES, {"m": [None, *REMEMBERS[1:]]}, {"m": model()}))["before"]
    assert (before.n_items, before.value) == (19, pytest.approx(17 / 19))


@pytest.mark.parametrize(
    ("date", "cutoff", "side"),
    [
        ("2024-06-30", "2024-06", "before"), ("2024-07-01", "2024-06", "after"), ("2024-06", "2024-06", "before"), ("2024", "2024-06", ""),
        ("2023", "2024-06", "before"), ("2025", "2024-06", "after"), ("2024-06", "2024-06-15", ""), ("2024-06-15", "2024-06-15", "before"),
        ("2024-06-16T08:00:00", "2024-06-15", "after"), ("", "2024-06", ""), ("spring", "2024-06", ""),
    ],
)  # fmt: skip
def test_a_date_that_does_not_say_on_which_side_it_is_counts_on_none(date: str, cutoff: str, side: str) -> None:
    outcomes = made_up([date], {"m": [True]}, {"m": model()}).benchmarks[DEPTH].outcomes
    before, after = sides_of(outcomes, cutoff)
    assert (bool(before[0]), bool(after[0])) == (side == "before", side == "after")


def test_a_cutoff_needs_its_source_and_a_day_may_be_bare(tmp_path) -> None:
    text = "title: M\nbackend: builtin\nid: m\nrevision: '1'\nknowledge_cutoff: 2024-06-01\n"
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(ConfigError, match="knowledge_cutoff_source"):
        load_model(tmp_path / "m.yaml")
    (tmp_path / "m.yaml").write_text(text + "knowledge_cutoff_source: the provider's model page\n")
    assert load_model(tmp_path / "m.yaml").knowledge_cutoff == "2024-06-01"
    assert yaml.safe_load("day: 2024-06")["day"] == "2024-06"
    (tmp_path / "m.yaml").write_text(text.replace("2024-06-01", "summer") + "knowledge_cutoff_source: s\n")
    with pytest.raises(ConfigError, match="knowledge_cutoff"):
        load_model(tmp_path / "m.yaml")
