"""Missing and identical samples, on which pass@5 depends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.tables import DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.declare import CountRow
from neuralmedbench.tables.form import sample_rows
from neuralmedbench.tables.study import Study, read_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    root = tmp_path_factory.mktemp("samples")
    write_study(root, models=("alpha",), patients=4)
    settings = IntervalSettings(resamples=20, seed=1)
    return read_study(root, (DEPTH,), ("alpha",), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def counts_of(study: Study, change: dict[tuple[int, int], dict[str, object]]) -> dict[str, CountRow]:
    """Change samples (item, repeat) of the arm full, and give the counts of that arm; all others say words of their own."""
    benchmark = study.benchmarks[DEPTH]
    places = {item.item_id: place for place, item in enumerate(benchmark.outcomes.items)}

    def changed(row: Score) -> Score:
        own = replace(row, text_sha256=f"{row.item_id} {row.repeat}", missing=False)
        return replace(own, **change.get((places[row.item_id], row.repeat), {})) if (row.arm, row.strategy) == ("full", "direct") else own

    scores = {model: [changed(row) for row in rows] for model, rows in benchmark.scores.items()}
    rows = sample_rows(replace(study, benchmarks={DEPTH: replace(benchmark, scores=scores)}))
    return {row.measure: row for row in rows if (row.arm, row.strategy) == ("full", "direct")}


def test_items_are_counted_by_how_many_of_their_samples_came(study: Study) -> None:
    whole = counts_of(study, {})
    assert (whole["complete"].value_of_slice, whole["complete"].n_items, whole["complete"].n_patients) == ("5", 8, 4)
    assert {name: (row.count, row.of) for name, row in whole.items()} == {
        "complete": (8, 8), "partial": (0, 8), "without": (0, 8), "same_text": (0, 8),
    }  # fmt: skip
    gone = {(0, repeat): {"missing": True} for repeat in range(5)} | {(1, repeat): {"missing": True} for repeat in range(4)}
    rows = counts_of(study, gone)
    assert {name: (row.count, row.of) for name, row in rows.items()} == {
        "complete": (6, 8), "partial": (1, 8), "without": (1, 8), "same_text": (0, 6),
    }  # fmt: skip


def test_an_item_repeats_itself_when_all_of_its_samples_are_one_text(study: Study) -> None:
    same = {(place, repeat): {"text_sha256": "one"} for place in (0, 1) for repeat in range(5)}
    other = {(1, 4): {"text_sha256": "another"}}
    assert counts_of(study, same)["same_text"].share == pytest.approx(2 / 8)
    assert counts_of(study, same | other)["same_text"].share == pytest.approx(1 / 8)


def test_of_one_sample_an_item_nothing_is_said_about_repeats(study: Study) -> None:
    gone = {(place, repeat): {"missing": True} for place in range(8) for repeat in range(1, 5)}
    rows = counts_of(study, gone)
    assert (rows["partial"].count, rows["same_text"].of, rows["same_text"].share) == (8, 0, None)
