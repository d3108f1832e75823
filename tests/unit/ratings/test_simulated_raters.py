"""The demo's simulated raters: in the format of real ones, marked everywhere, reproducible, and only for answers of the demo."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

import simulate_ratings
from conftest import ROOT
from fixtures.commands import settings
from fixtures.rating import MODELS, write_rated_study
from fixtures.tables import DEPTH
from neuralmedbench.cli.ratings import make_rating_round
from neuralmedbench.config.workflow import Run, read_run
from neuralmedbench.errors import RatingError
from neuralmedbench.files.tables import read_records
from neuralmedbench.ratings.candidates import RatingCandidate
from neuralmedbench.ratings.exports import RatingExport, RoundKey, read_file
from neuralmedbench.ratings.form import read_form
from neuralmedbench.ratings.imports import import_round
from neuralmedbench.ratings.simulated_raters import SIMULATED_RATERS, simulate_round
from neuralmedbench.recording.reader_answers import rated_answers
from neuralmedbench.records.scores import Grade, Rating, RatingPart, response_key, text_digest

FORM = read_form(ROOT / "config" / "rating.yaml")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("simulated")
    write_rated_study(root, patients=6)
    (root / "config" / "rating.yaml").write_bytes((ROOT / "config" / "rating.yaml").read_bytes())
    return root


@pytest.fixture(scope="module")
def candidates(study: Path) -> list[RatingCandidate]:
    return rated_answers(read_run(folder=study / "config"), FORM.rounds.families, study)


@pytest.fixture(scope="module")
def grades(study: Path) -> list[Grade]:
    return [row for model in MODELS for row in read_records(study / f"results/grades/{DEPTH}/{model}/rubric.parquet", Grade)]


@pytest.fixture(scope="module")
def ratings(study: Path, candidates: list[RatingCandidate], tmp_path_factory: pytest.TempPathFactory) -> list[Rating]:
    """Import the files that the command writes."""
    folder = tmp_path_factory.mktemp("round") / "simulated"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(study)
        sources = [f"results/grades/{DEPTH}/{model}/rubric.parquet" for model in MODELS]
        outs = [str(folder / f"{rater}.json") for rater in SIMULATED_RATERS]
        arguments = [*settings(benchmarks=[DEPTH], models=MODELS), "--form", "config/rating.yaml", "--grades", *sources]
        assert simulate_ratings.main([*arguments, "--out-key", str(folder / "key.json"), "--out", *outs]) == 0
    texts = {response_key(one.response): text_digest(one.response.text) for one in candidates}
    return import_round(folder, FORM, texts)


def test_every_rating_says_that_it_is_simulated_by_its_mark_its_round_and_its_rater(ratings: list[Rating]) -> None:
    assert len(ratings) > 500
    assert {(row.simulated, row.round_id, row.stale) for row in ratings} == {(True, "simulated", False)}
    assert {row.rater_id for row in ratings} == {"simulated-1", "simulated-2"}


def test_the_round_has_the_parts_of_a_real_one(ratings: list[Rating]) -> None:
    assert {row.part for row in ratings} == set(RatingPart)
    assert {row.axis for row in ratings} > set(FORM.axes)
    assert {row.value for row in ratings if row.axis.startswith("error.")} == {1.0, 2.0}
    assert 0 < sum(row.value is None for row in ratings) < 0.1 * len(ratings), "now and then a rater cannot judge"
    assert any(row.informed for row in ratings)
    assert all(row.probability for row in ratings if row.part is RatingPart.SAMPLE)
    sample = [
        {response_key(row) for row in ratings if row.rater_id == rater and row.part is RatingPart.SAMPLE} for rater in SIMULATED_RATERS
    ]
    assert sample[0] == sample[1], "both see all answers that are drawn"


def test_right_answers_are_rated_higher_controls_too_and_harm_the_other_way(ratings: list[Rating], grades: list[Grade]) -> None:
    core = {response_key(row): row.value for row in grades if row.criterion == "core_diagnosis"}
    means = defaultdict(list)
    for row in ratings:
        if row.value is not None:
            right = core[response_key(row)] if row.part is RatingPart.SAMPLE else row.part
            means[row.axis, right].append(row.value)
    for axis, sign in (("dx_correct", 1), ("harm_extent", -1)):
        assert sign * (fmean(means[axis, 1.0]) - fmean(means[axis, 0.0])) > 1
        assert sign * (fmean(means[axis, RatingPart.CONTROL_RIGHT]) - fmean(means[axis, RatingPart.CONTROL_WRONG])) > 1


def test_the_two_differ_as_people_do_and_from_themselves_less(ratings: list[Rating]) -> None:
    value = {(row.rater_id, row.part, row.axis, response_key(row)): row.value for row in ratings if not row.axis.startswith("error.")}
    between, within, lean = [], [], []
    for (rater, part, axis, key), first in value.items():
        other = value.get(("simulated-2", part, axis, key))
        again = value.get((rater, RatingPart.AGAIN, axis, key))
        if rater == "simulated-1" and part is RatingPart.SAMPLE and axis == "dx_correct" and first is not None and other is not None:
            between.append(first != other)
            lean.append(first - other)
        if part is RatingPart.SAMPLE and again is not None and first is not None:
            within.append(first != again)
    assert 0.02 < fmean(within) < fmean(between) < 0.7
    assert fmean(lean) > 0.1, "the second one is stricter"


def test_the_same_answers_are_rated_the_same_under_another_revision(
    study: Path, candidates: list[RatingCandidate], grades: list[Grade]
) -> None:
    def values(revision: str) -> dict[str, list[dict[str, object]]]:
        changed = [replace(one, response=replace(one.response, revision=revision)) for one in candidates]
        own = [replace(row, revision=revision) for row in grades]
        _, exports = simulate_round(FORM, changed, own, MODELS, root=study)
        return {rater: [item.model_dump() for item in export.items] for rater, export in exports.items()}

    assert values("7") == values("8")


def test_where_no_answer_came_the_round_is_empty_and_its_files_are_read(tmp_path: Path) -> None:
    key, exports = simulate_round(FORM, [], [], [])
    for name, value in {"key": key, **exports}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(value.model_dump(mode="json", by_alias=True)))
    assert import_round(tmp_path, FORM, {}) == []
    assert read_file(tmp_path / "simulated-1.json", RatingExport).rater.simulated
    assert len(read_file(tmp_path / "key.json", RoundKey).packets) == 2


def test_many_models_do_not_stop_the_demo(study: Path, candidates: list[RatingCandidate], grades: list[Grade]) -> None:
    few = FORM.model_copy(update={"rounds": FORM.rounds.model_copy(update={"responses": 1})})
    key, _ = simulate_round(few, candidates, grades, MODELS, root=study)
    assert sum(stratum.drawn for stratum in key.strata.values()) == len({one.stratum for one in candidates}) > 1


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(ROOT)
    return read_run()


def test_the_demo_has_simulated_raters_and_a_run_of_other_benchmarks_has_none_and_says_so(shipped: Run) -> None:
    assert (shipped.simulated, shipped.rating_rounds, shipped.notices()) == (["demo"], ["simulated"], [])
    own = {name: one.model_copy(update={"source": "data/raw/mine"}) for name, one in shipped.benchmarks.items()}
    mine = replace(shipped, benchmarks=own)
    assert (mine.simulated, mine.rating_rounds) == ([], [])
    assert [line for line in mine.notices() if "'simulated' is left out" in line] == mine.notices() != []
    beside = replace(shipped, benchmarks={"mine": own["demo"], **shipped.benchmarks})
    assert beside.simulated == ["demo"], "own answers are never rated by a program"
    pictures = replace(shipped, benchmarks={"demo-slices": shipped.benchmarks["demo-slices"]})
    assert pictures.rating_rounds == []


def test_nobody_makes_a_round_under_the_name_of_the_simulated_one(tmp_path: Path) -> None:
    with pytest.raises(RatingError, match="belongs to the simulated raters"):
        make_rating_round.main(["--round", "simulated", "--folder", str(tmp_path)])
