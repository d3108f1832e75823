"""The correlation of breadth and depth: when it is given, what is said of it, and a slice of its series."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from fixtures.two_axes import WORLDS, Cell, measure
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.estimates.over_models import SetScores
from neuralmedbench.records.items import Axis
from neuralmedbench.tables.axis_correlation import axis_correlation_rows, correlation_cells, correlation_statement

LEVELS = np.linspace(0.1, 0.9, 8)


def scores(levels: np.ndarray, patients: int, noise: float = 0.0, name: str = "p") -> SetScores:
    rng = np.random.default_rng(patients)
    values = np.clip(levels[:, None] + noise * rng.normal(size=(len(levels), patients)), 0, 1)
    return SetScores(values, [f"{name}{place}" for place in range(patients)])


def row(**cells: object) -> dict[str, object]:
    numbers = dict.fromkeys(
        ("breadth_reliability", "depth_reliability", "correlation", "corrected", "corrected_low", "corrected_high", "note")
    )
    return {"breadth_benchmark": "b", "depth_benchmark": "d", "n_models": 8, "breadth_patients": 60, "depth_patients": 12} | numbers | cells


def given(corrected: float, low: float, high: float) -> str:
    known = {"correlation": 0.4, "corrected": corrected, "corrected_low": low, "corrected_high": high}
    return correlation_statement({"axis_correlation": [row(breadth_reliability=0.9, depth_reliability=0.6, **known)]})


def test_it_needs_eight_models() -> None:
    found = correlation_cells(scores(LEVELS[:7], 30, 0.1), scores(LEVELS[:7], 12, 0.1, "q"), 0.95)
    assert found == {"note": "fewer than 8 models"}
    assert correlation_cells(scores(LEVELS, 30, 0.1), scores(LEVELS, 12, 0.1, "q"), 0.95)["corrected"] == pytest.approx(1, abs=0.05)


def test_below_a_reliability_of_one_half_there_is_no_number_but_the_reliability() -> None:
    found = correlation_cells(scores(LEVELS, 30, 0.1), scores(np.full(8, 0.5), 20, 0.1, "q"), 0.95)
    assert found["depth_reliability"] < 0.5
    assert found["breadth_reliability"] > 0.9
    assert found.keys() == {"breadth_reliability", "depth_reliability", "note"}
    assert found["note"] == "a reliability below 0.5"


def test_models_that_do_not_differ_have_no_correlation() -> None:
    assert correlation_cells(scores(np.full(8, 0.5), 30), scores(LEVELS, 12, 0.1, "q"), 0.95)["note"].startswith("the models do not differ")


@pytest.mark.parametrize("bounds", [(0.2, 1.0), (0.5, 1.4), (1.01, 1.4)])
def test_two_sets_are_not_called_different_unless_the_interval_lies_below_1(bounds: tuple[float, float]) -> None:
    said = given(0.9, *bounds)
    assert f"0.90 ({bounds[0]:.2f} to {bounds[1]:.2f}), the interval is not below 1, so no difference between the sets is shown" in said
    assert not any(word in said for word in ("different", "independent", "below 1 with its whole interval"))


def test_a_correlation_below_1_is_given_with_its_interval_and_both_reliabilities() -> None:
    assert "b and d, 8 models: 0.50 (0.10 to 0.80), below 1 with its whole interval (uncorrected 0.40; reliability 0.90 and 0.60)" in given(
        0.5, 0.1, 0.8
    )


def test_a_value_above_1_is_shown_as_measured() -> None:
    assert "1.12 (0.70 to 1.40)" in given(1.12, 0.7, 1.4)


def test_without_a_correlation_the_reason_is_given_for_every_pair() -> None:
    few, unreliable = (
        row(n_models=3, note="fewer than 8 models"),
        row(breadth_reliability=0.9, depth_reliability=0.3, note="a reliability below 0.5"),
    )
    said = correlation_statement({"axis_correlation": [few, unreliable]})
    assert said.startswith(
        "No correlation of breadth and depth is given: b and d, 3 models: fewer than 8 models; b and d, 8 models: a reliability"
    )
    assert "reliability 0.90 and 0.30" in said
    assert correlation_statement({"axis_correlation": []}).endswith("this run has none.")


def benchmark(name: str, axis: Axis, values: SetScores, missing: dict[str, float]) -> SimpleNamespace:
    counts = {
        (f"m{place}", "full", "direct"): SimpleNamespace(unanswered=False, missing_fraction=missing.get(f"m{place}", 0.0))
        for place in range(12)
    }
    outcomes = SimpleNamespace(
        items=[SimpleNamespace(patient_id=patient) for patient in values.patients],
        counts=counts,
        metric=lambda metric, key: values.values[int(key.model[1:])],
    )
    return SimpleNamespace(name=name, config=SimpleNamespace(axis=axis), outcomes=outcomes)


def test_baselines_readers_and_models_with_missing_answers_are_not_counted() -> None:
    levels = np.linspace(0.1, 0.9, 12)
    sides = [
        benchmark("b", Axis.BREADTH, scores(levels, 30, 0.1), {"m10": 0.03}),
        benchmark("d", Axis.DEPTH, scores(levels, 12, 0.1, "q"), {"m9": 0.02}),
    ]
    models = {f"m{place}": SimpleNamespace(baseline=place == 11) for place in range(12)}
    study = SimpleNamespace(
        benchmarks={side.name: side for side in sides}, models=models, readers={"m0": "clinician"}, settings=IntervalSettings(300)
    )
    (found,) = axis_correlation_rows(study)
    assert (found.n_models, found.breadth_patients, found.depth_patients) == (9, 30, 12)
    assert found.corrected is not None
    study.readers |= {"m1": "clinician", "m2": "clinician"}
    (fewer,) = axis_correlation_rows(study)
    assert (fewer.n_models, fewer.corrected, fewer.note) == (7, None, "fewer than 8 models")


@pytest.mark.parametrize("world", ["abilities far apart", "abilities close"])
def test_one_ability_is_not_taken_for_two(world: str) -> None:
    """A slice of `perf/axis_correlation.py`: with a chance of 5 %, 19 of 200 or more come once in 200; the plain correlation does much worse."""
    found = measure(Cell(WORLDS[world], 1.0, 12, 12, 60), 200, seed=3)
    assert found["below"] < 19 / 200
    assert found["uncorrected_below"] > found["below"] + 0.1


@pytest.mark.parametrize("shared", [False, True])
def test_two_abilities_are_covered_whether_or_not_the_sets_share_patients(shared: bool) -> None:
    """Of 200 intervals that hold the truth 93 % of the time, 176 or fewer do so once in 300."""
    world = WORLDS["abilities far apart, patients of one set are also in the other" if shared else "abilities far apart"]
    found = measure(Cell(world, 0.0, 30, 30, 60), 200, seed=3)
    assert found["given"] > 0.9
    assert found["covered"] > 0.88
    assert found["below_1"] > 0.9, "and are told from one"
