"""The table of degraded pictures, from answers few enough to be counted by hand."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT
from fixtures.confidence import answer, open_item, study_of
from neuralmedbench.config.arms import load_arms
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.confidence import OF_LEVELS, confidence_rows
from neuralmedbench.tables.contrasts import arm_rows
from neuralmedbench.tables.degradation import TABLE, degradation_rows

BLUR = ("full", "degraded-blur-1", "degraded-blur-2")
ENDS = ("difference", "low", "high", "p_value", "n_items")
ITEMS = [open_item(number, f"p{number % 20}") for number in range(40)]


def answers(right: dict[str, float], sure: dict[str, float | None], items: int = 40) -> list[Score]:
    """Give answers of which the first part is right, with one confidence, by arm."""
    return [
        answer(one, sure[arm], place < share * items, arm=arm) for arm, share in right.items() for place, one in enumerate(ITEMS[:items])
    ]


def study_under(rows: list[Score], config: Path = ROOT / "config") -> Any:
    """Give a study of the answers, with the files of their arms."""
    study = study_of(ITEMS, {"m": rows}, sampled=False)
    (benchmark,) = study.benchmarks.values()
    benchmark.arms = load_arms(config, dict.fromkeys(row.arm for row in rows), "made-up")
    return study


def by_level(rows: list[Score]) -> dict[tuple[str, str, int], Any]:
    """Give rows by shape, measure and level."""
    found = degradation_rows(study_under(rows))
    return {(type(row).__name__, row.measure, int(row.value_of_slice)): row for row in found}


def values(rows: dict[tuple[str, str, int], Any], shape: str, measure: str) -> list[float | None]:
    return [row.value for (kind, name, _), row in rows.items() if (kind, name) == (shape, measure)]


def test_each_level_has_its_rate_confidence_and_shift() -> None:
    right = {"full": 0.9, "degraded-ghosting-1": 0.7, "degraded-ghosting-2": 0.45}
    rows = by_level(answers(right, {"full": 0.8, "degraded-ghosting-1": 0.8, "degraded-ghosting-2": 0.7}))
    assert values(rows, "MeasureRow", "pass1_patients") == pytest.approx([0.9, 0.7, 0.45])
    assert values(rows, "ContrastRow", "pass1_patients") == pytest.approx([-0.2, -0.45])
    assert values(rows, "MeasureRow", "overconfidence") == pytest.approx([-0.1, 0.1, 0.25])
    assert values(rows, "ContrastRow", "overconfidence") == pytest.approx([0.2, 0.35])
    for level in (1, 2):
        change, shift = (rows["ContrastRow", name, level] for name in ("pass1_patients", "overconfidence"))
        assert change.low < change.difference < change.high < 0
        assert 0 < shift.low < shift.difference < shift.high
        assert shift.p_value < 0.05
    assert {(row.n_items, row.n_patients) for row in rows.values()} == {(40, 20)}


def test_the_shift_of_a_level_is_that_of_the_table_of_confidences() -> None:
    right = {"full": 0.9, "degraded-blur-1": 0.8, "degraded-blur-2": 0.5}
    given = answers(right, {"full": 0.9, "degraded-blur-1": 0.6, "degraded-blur-2": 0.7})
    known, rows = {(type(row).__name__, row.measure, row.arm): row for row in confidence_rows(study_under(given))}, by_level(given)
    for shape, name in (*(("MeasureRow", name) for name in OF_LEVELS), ("ContrastRow", "overconfidence")):
        for level in (1, 2):
            row, other = rows[shape, name, level], known[shape, name, f"degraded-blur-{level}"]
            assert (row.value, row.low, row.high) == (other.value, other.low, other.high)


def test_the_change_of_a_level_is_that_of_the_table_of_arms() -> None:
    given = answers({"full": 0.9, "degraded-blur-1": 0.8, "degraded-blur-2": 0.5}, dict.fromkeys(BLUR, 0.9))
    of_arm, rows = {row.arm: row for row in arm_rows(study_under(given), {})}, by_level(given)
    for level in (1, 2):
        row, other = rows["ContrastRow", "pass1_patients", level], of_arm[f"degraded-blur-{level}"]
        assert [getattr(row, name) for name in ENDS] == [getattr(other, name) for name in ENDS]


def test_all_levels_are_over_the_items_that_every_level_answers() -> None:
    # a CT benchmark with some MR: ghosts are asked of the first ten items alone, one answer of level 2 is missing, one states nothing
    rows = answers({"full": 0.5}, {"full": 0.9})
    rows += answers({"degraded-ghosting-1": 1.0, "degraded-ghosting-2": 1.0}, {"degraded-ghosting-1": 0.9, "degraded-ghosting-2": 0.9}, 10)
    place = next(number for number, row in enumerate(rows) if row.arm == "degraded-ghosting-2" and row.item_id == ITEMS[3].item_id)
    rows[place] = answer(ITEMS[3], None, None, arm="degraded-ghosting-2", missing=True, state="failed")
    rows[place + 1] = answer(ITEMS[4], None, True, arm="degraded-ghosting-2")
    found = by_level(rows)
    assert values(found, "MeasureRow", "pass1_patients") == [1.0] * 3
    sizes = {(name, row.n_items) for (_, name, _), row in found.items()}
    assert sizes == {("pass1_patients", 9), ("mean_confidence", 8), ("share_right", 8), ("overconfidence", 8)}


def test_one_level_alone_and_models_without_confidence_have_rows_too() -> None:
    rows = by_level(answers({"full": 0.5, "degraded-jpeg-2": 0.5}, {"full": None, "degraded-jpeg-2": None}))
    assert [(shape, level) for shape, _, level in rows] == [("MeasureRow", 0), ("MeasureRow", 2), ("ContrastRow", 2)]
    assert {name for _, name, _ in rows} == {"pass1_patients"}
    assert rows["ContrastRow", "pass1_patients", 2].difference == 0


def test_other_arms_are_not_degraded_pictures() -> None:
    assert by_level(answers({"full": 0.5, "no_image": 0.5}, {"full": 0.5, "no_image": 0.5})) == {}


def test_arms_are_known_by_what_their_file_does_and_not_by_its_name(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "config/arms", tmp_path / "arms")
    text = (tmp_path / "arms/degraded.yaml").read_text(encoding="utf-8")
    (tmp_path / "arms/noisy.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "arms/noisy_alone.yaml").write_text(f"{text}\ntext: none\n", encoding="utf-8")
    right = {"full": 0.9, "noisy-blur-2": 0.4, "noisy_alone-blur-1": 0.2}
    rows = degradation_rows(study_under(answers(right, dict.fromkeys(right, 0.8)), tmp_path))
    passes = [row for row in rows if row.measure == "pass1_patients"]
    assert [(row.slice, row.value_of_slice, row.arm) for row in passes] == [
        ("blur", "0", "full"), ("blur", "2", "noisy-blur-2"), ("blur", "2", "noisy-blur-2"),
    ]  # fmt: skip
    assert passes[1].value == pytest.approx(0.4)
    # the items of a row are those that its arms ask
    assert ("asked noisy-blur-2 direct", "") in TABLE.suppression.labels(vars(passes[1]))
