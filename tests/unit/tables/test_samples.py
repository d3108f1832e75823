"""Missing and identical samples, on which pass@5 depends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.tables import DEPTH, GRADERS, write_study
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.records.scores import Score
from neuralmedbench.tables.form import SampleRow, sample_rows
from neuralmedbench.tables.study import Study, read_study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    root = tmp_path_factory.mktemp("samples")
    write_study(root, models=("alpha",), patients=4)
    settings = IntervalSettings(resamples=20, seed=1)
    return read_study(root, (DEPTH,), ("alpha",), GRADERS, vocabulary=Path("config/vocabulary.yaml"), settings=settings)


def row_of(study: Study, change: dict[tuple[int, int], dict[str, object]]) -> SampleRow:
    """Change samples (item, repeat) of the arm full, and give the row of that arm; all others say words of their own."""
    benchmark = study.benchmarks[DEPTH]
    places = {item.item_id: place for place, item in enumerate(benchmark.outcomes.items)}

    def changed(row: Score) -> Score:
        own = replace(row, text_sha256=f"{row.item_id} {row.repeat}", missing=False)
        return replace(own, **change.get((places[row.item_id], row.repeat), {})) if (row.arm, row.strategy) == ("full", "direct") else own

    scores = {model: [changed(row) for row in rows] for model, rows in benchmark.scores.items()}
    rows = sample_rows(replace(study, benchmarks={DEPTH: replace(benchmark, scores=scores)}))
    (found,) = (row for row in rows if (row.arm, row.strategy) == ("full", "direct"))
    return found


def test_items_are_counted_by_how_many_of_their_samples_came(study: Study) -> None:
    whole = row_of(study, {})
    assert (whole.samples_per_item, whole.n_items, whole.n_patients) == (5, 8, 4)
    assert (whole.complete, whole.partial, whole.without, whole.repeated) == (8, 0, 0, 8)
    gone = {(0, repeat): {"missing": True} for repeat in range(5)} | {(1, repeat): {"missing": True} for repeat in range(4)}
    row = row_of(study, gone)
    assert (row.complete, row.partial, row.without, row.repeated) == (6, 1, 1, 6)


def test_an_item_repeats_itself_when_all_of_its_samples_are_one_text(study: Study) -> None:
    assert row_of(study, {}).same_text == 0
    same = {(place, repeat): {"text_sha256": "one"} for place in (0, 1) for repeat in range(5)}
    other = {(1, 4): {"text_sha256": "another"}}
    assert row_of(study, same).same_text == pytest.approx(2 / 8)
    assert row_of(study, same | other).same_text == pytest.approx(1 / 8)


def test_of_one_sample_an_item_nothing_is_said_about_repeats(study: Study) -> None:
    gone = {(place, repeat): {"missing": True} for place in range(8) for repeat in range(1, 5)}
    row = row_of(study, gone)
    assert (row.partial, row.repeated, row.same_text) == (8, 0, None)
