"""Clinicians beside graders: the pass, the corrected score on the leaderboard, and no effect of simulated raters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from conftest import ROOT
from fixtures.tables import BREADTH, DEPTH, GRADERS, write_study
from neuralmedbench.config.model import GraderConfig, GraderValidation, ModelConfig
from neuralmedbench.errors import ConfigError
from neuralmedbench.estimates import prediction_powered
from neuralmedbench.estimates.intervals import IntervalSettings
from neuralmedbench.figures.gallery import FIGURES
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.files.tables import read_records
from neuralmedbench.ratings.form import read_form
from neuralmedbench.records.results import by_measure, is_simulated
from neuralmedbench.records.scores import Rating, RatingPart, Score, response_key
from neuralmedbench.report.page import templates
from neuralmedbench.tables.calibrated import accuracy_of_score, calibrated_rows
from neuralmedbench.tables.clinicians.opinions import ClinicianVerdict, draw_probabilities, opinions_of, verdicts_of
from neuralmedbench.tables.first_screen import trust_statements
from neuralmedbench.tables.grader_vs_clinician import maker_of, same_maker, trust_rows
from neuralmedbench.tables.release import PUBLIC, Release
from neuralmedbench.tables.similarity import similarity_rows
from neuralmedbench.tables.study import Study, read_study
from neuralmedbench.tables.takeaways import SIMULATED_ALONE
from neuralmedbench.tables.write import write_tables

MODELS = ("alpha", "beta", "gamma")
RATED = 60
"""Answers of each model that were drawn, of 120."""
FEW = 30
"""Too few to correct a score, of at least ten patients: a line of fewer is in the files alone."""

Clinicians = Callable[[Score, str], float | None]
Rated = Callable[[Sequence[Rating]], Study]


def kind(row: Score, rater: str) -> float:
    """Agree with the score; the second rater is one point stricter."""
    return (4.0 if row.passed else 1.0) - (rater == "r2")


def severe(row: Score, rater: str) -> float:
    """Fail what the graders pass of the first sample."""
    return 0.0 if row.repeat == 0 else kind(row, rater)


def unlike(row: Score, rater: str) -> float:
    """The second rater fails everything, the third nothing."""
    return {"r2": 0.0, "r3": 4.0}.get(rater, kind(row, rater))


def ratings(
    root: Path,
    value: Clinicians,
    *,
    number: int = RATED,
    simulated: bool = False,
    round_id: str = "r01",
    raters: Sequence[str] = ("r1", "r2"),
) -> list[Rating]:
    rng, rows = np.random.default_rng(3), []
    for model in MODELS:
        scores = [row for row in read_records(root / "results" / "scores" / DEPTH / f"{model}.parquet", Score) if row.arm == "full"]
        for row in (scores[place] for place in sorted(rng.choice(len(scores), number, replace=False))):
            rows += [
                Rating(
                    round_id=round_id, rater_id=rater, item_id=row.item_id, arm=row.arm, strategy=row.strategy, model=model,
                    revision=row.revision, repeat=row.repeat, text_sha256=row.text_sha256, axis="dx_correct", value=value(row, rater),
                    seconds=30.0, stale=False, simulated=simulated, probability=number / len(scores),
                )
                for rater in raters
            ]  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rated")
    write_study(place, arms=("full",))
    return place


@pytest.fixture(scope="module")
def rated(root: Path) -> Rated:
    """Give the study with other ratings: it is read once."""
    vocabulary, settings = Path("config/vocabulary.yaml"), IntervalSettings(resamples=200)
    study = read_study(root, [DEPTH, BREADTH], MODELS, GRADERS, vocabulary=vocabulary, settings=settings)
    return lambda rows: replace(study, ratings=list(rows))


def pick(rows: Sequence[dict[str, Any]], **wanted: object) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def of_score(study: Study, model: str) -> dict[str, dict[str, Any]]:
    """Return the measures of the score of a model, corrected by clinicians."""
    rows = pick(calibrated_rows(study), benchmark=DEPTH, model=model, source="score")
    return {row["measure"]: row for row in rows if not is_simulated(row)}


def test_the_projects_form_says_what_a_clinicians_pass_is() -> None:
    passes = read_form(ROOT / "config" / "rating.yaml").passes
    assert passes is not None
    assert (passes.axis, passes.from_) == ("dx_correct", 3)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ({"axis": "dx", "from": 3}, "passes.axis is dx, an axis that the form does not have; it has dx_correct, ddx_quality"),
        ({"axis": "dx_correct", "from": 5}, "passes.from is 5, expected 1 to 4"),
        ({"axis": "dx_correct", "from": 0}, "all would pass, or none"),
        ({"axis": "dx_correct"}, "passes.from"),
    ],
)
def test_a_pass_that_the_form_cannot_have_is_refused_in_one_line(tmp_path: Path, passes: dict[str, object], message: str) -> None:
    form = yaml.safe_load((ROOT / "config" / "rating.yaml").read_text(encoding="utf-8")) | {"passes": passes}
    path = tmp_path / "rating.yaml"
    path.write_text(yaml.safe_dump(form, sort_keys=False), encoding="utf-8")
    with pytest.raises(ConfigError, match=message) as caught:
        read_form(path)
    assert "\n" not in str(caught.value)


def test_the_score_is_corrected_by_what_clinicians_said_of_the_drawn_answers(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, severe))
    score = of_score(study, "alpha")
    row = score["calibrated"]
    scores = [one for one in study.benchmarks[DEPTH].scores["alpha"] if one.arm == "full"]
    drawn = [one for one in scores if response_key(one) in verdicts_of(study, simulated=False)]
    raw = np.mean([one.passed for one in scores])
    assert score["raw"]["value"] == pytest.approx(raw)
    assert row["value"] == pytest.approx(raw - np.mean([bool(one.passed) and one.repeat == 0 for one in drawn]))
    assert row["low"] < row["value"] < row["high"]
    assert (row["n_answers"], score["raw"]["n_answers"], score["raw"]["n_patients"], row["note"]) == (RATED, 120, 12, "")


def test_three_raters_who_differ_widen_the_interval(root: Path, rated: Rated, monkeypatch: pytest.MonkeyPatch) -> None:
    def width(value: Clinicians) -> float:
        score = of_score(rated(ratings(root, value, raters=("r1", "r2", "r3"))), "alpha")
        assert score["raters"]["value"] == 3
        return float(score["calibrated"]["high"] - score["calibrated"]["low"])

    alike, differing = width(severe), width(unlike)
    monkeypatch.setattr(prediction_powered, "FEWEST_RATERS", 4)
    assert alike == pytest.approx(width(severe))
    assert differing > 1.2 * width(unlike)


def test_the_page_says_whose_judgement_a_corrected_rate_is(written: Written) -> None:
    """Two raters cannot stand for others; a page without these words would claim that they do."""
    tables, told = written("real")
    leaderboard, trust = (block(name, tables, told) for name in ("leaderboard", "graders"))
    alone = "Calibrated rates are about these 2 raters: what other clinicians would have judged is not in their intervals."
    assert leaderboard.count(alone) == 1
    assert "with fewer than three raters it is only about the raters" in leaderboard
    shown = re.findall(r'data-element="raters" data-value="2.000000"', trust)
    assert len(shown) == len([row for row in pick(tables["calibrated"], measure="raters") if not is_simulated(row)]) > 0
    assert "With fewer than three raters a corrected rate is about these raters only" in trust
    tables, told = written("three")
    leaderboard, trust = (block(name, tables, told) for name in ("leaderboard", "graders"))
    assert "Calibrated rates are by 3 raters: their intervals count that other clinicians might judge differently." in leaderboard
    assert "about these" not in leaderboard
    assert 'data-element="raters" data-value="2.000000"' not in trust
    assert 'data-element="raters" data-value="3.000000"' in trust
    tables, told = written("nobody")
    assert "Calibrated rates are" not in block("leaderboard", tables, told)


def test_answers_that_nobody_could_judge_make_bounds(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, lambda row, rater: None if row.repeat == 1 else kind(row, rater)))
    score = of_score(study, "beta")
    assert score["calibrated"]["left_out"] > 0
    assert score["calibrated"]["n_answers"] + score["calibrated"]["left_out"] == RATED
    failed, passed = (score[name]["value"] for name in ("if_unjudged_failed", "if_unjudged_passed"))
    assert failed <= score["calibrated"]["value"] <= passed
    assert failed < passed


def test_every_grader_is_corrected_to_about_the_same(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, kind, number=120))
    raw, corrected = (pick(calibrated_rows(study), benchmark=DEPTH, model="gamma", measure=name) for name in ("raw", "calibrated"))
    assert [row["source"] for row in corrected] == ["score", *GRADERS]
    assert raw[0]["value"] != raw[2]["value"]
    assert len({round(float(row["value"]), 9) for row in corrected}) == 1


def test_the_accuracy_of_the_score_is_that_against_clinicians_else_the_validation_of_its_grader(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, severe))
    found = accuracy_of_score(study)
    assert found is not None
    drawn = verdicts_of(study, simulated=False)
    scores = {response_key(row): row for table in study.benchmarks[DEPTH].scores.values() for row in table if row.arm == "full"}
    pairs = [(bool(scores[key].passed), (verdict.value or 0) >= 3) for key, verdict in drawn.items()]
    # clinicians fail what the graders pass of the first sample, and pass nothing that the graders fail
    assert found.sensitivity.value == 1.0
    assert found.specificity.value == pytest.approx(
        sum(not passed for passed, right in pairs if not right) / sum(not right for _, right in pairs)
    )
    assert found.source == f"{len(pairs)} rated answers"
    validated = study.graders["rubric"].model_copy(
        update={"validation": GraderValidation(source="two readers", right=67, right_accepted=38, wrong=43, wrong_rejected=41)}
    )
    for rows in ([], ratings(root, severe, number=4), ratings(root, severe, simulated=True)):
        unrated = replace(rated(rows), graders={**study.graders, "rubric": validated})
        known = accuracy_of_score(unrated)
        assert known is not None
        assert (round(known.sensitivity.value or 0, 3), round(known.specificity.value or 0, 3), known.source) == (
            0.567,
            0.953,
            "two readers",
        )
        assert accuracy_of_score(rated(rows)) is None


def test_closed_benchmarks_have_no_grader_to_correct(root: Path, rated: Rated) -> None:
    assert not pick(calibrated_rows(rated(ratings(root, kind))), benchmark=BREADTH)


def test_a_reader_is_a_person_and_has_no_rate_to_correct(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, kind))
    reader = study.models["gamma"].model_copy(update={"backend": "imported", "reader": "clinician"})
    rows = calibrated_rows(replace(study, models=study.models | {"gamma": reader}))
    assert {row["model"] for row in rows} == {"alpha", "beta"}


def test_an_answer_that_two_rounds_could_draw_was_drawn_with_the_chance_of_either() -> None:
    def word(round_id: str, probability: float | None) -> ClinicianVerdict:
        return ClinicianVerdict(value=3.0, raters=2, probability=probability, adjudicated=False, simulated=False, round_id=round_id)

    study = Score(
        item_id="a", case_id="c", patient_id="p", benchmark="demo", axis="depth", family="f", level="l1", runner="open", arm="full",
        strategy="direct", model="m", revision="1", repeat=0, text_sha256="", state="ok", parse_status="strict", missing=False, scored=True,
        lesion_shown=None,
    )  # fmt: skip
    scores = {response_key(one): one for one in (replace(study, repeat=n, level="l2" if n == 3 else "l1") for n in range(4))}
    keys = list(scores)
    found = draw_probabilities(
        {keys[0]: word("r01", 0.5), keys[1]: word("r02", 0.5), keys[2]: word("r02", None), keys[3]: word("r02", 0.2)}, scores
    )
    assert found == {keys[0]: pytest.approx(0.75), keys[1]: pytest.approx(0.75), keys[3]: pytest.approx(0.2)}


def test_graders_are_held_against_single_clinicians_before_anything_was_adjudicated(root: Path, rated: Rated) -> None:
    rows = ratings(root, kind)
    last = [replace(row, rater_id="r3", adjudicated=True, value=0.0) for row in rows if row.rater_id == "r1"]
    others = [replace(row, part=RatingPart.AGAIN, value=0.0) for row in rows] + [replace(row, axis="reasoning", value=0.0) for row in rows]
    study = rated([*rows, *last, *[replace(row, round_id="r00") for row in others]])
    assert opinions_of(study, simulated=False) == opinions_of(rated(rows), simulated=False)
    assert {word.value for word in verdicts_of(rated([*rows, *last]), simulated=False).values()} == {0.0}


def test_the_table_has_every_level_and_the_ceiling(root: Path, rated: Rated) -> None:
    judges = by_measure(trust_rows(rated(ratings(root, kind))), "source", "slice")
    assert [(level, model) for _, model, judge, level in judges if judge == "rubric"] == [
        ("response", ""), *(("response", model) for model in MODELS), ("item", ""), ("model", ""),
    ]  # fmt: skip
    whole, ceiling, similar = (judges[DEPTH, "", judge, "response"] for judge in ("rubric", "clinician", "cosine"))
    drawn = drawn_scores(root, rated)
    said = np.array([[kind(row, rater) / 4 for rater in ("r1", "r2")] for row in drawn])
    assert whole["auc"]["n_answers"] == ceiling["auc"]["n_answers"] == len(drawn) == 3 * RATED
    assert whole["auc"]["value"] == 1.0
    assert whole["bias"]["value"] == pytest.approx(np.mean([bool(row.passed) for row in drawn]) - said.mean())
    assert whole["kappa"]["value"] is not None
    assert ceiling["pearson"]["value"] == pytest.approx(np.corrcoef(said.ravel(), said[:, ::-1].ravel())[0, 1])
    assert judges[DEPTH, "", "clinician", "item"]["pearson"]["value"] == pytest.approx(1.0)
    assert judges[DEPTH, "", "rubric", "model"]["bias"]["note"] == "3 models"
    assert judges[DEPTH, "alpha", "rubric", "response"]["bias"]["note"] == "same maker: no"
    assert similar.keys() == {"pearson", "spearman", "auc"}
    assert 0 <= similar["auc"]["value"] <= 1


def drawn_scores(root: Path, rated: Rated) -> list[Score]:
    study = rated(ratings(root, kind))
    words = verdicts_of(study, simulated=False)
    return [row for scores in study.benchmarks[DEPTH].scores.values() for row in scores if response_key(row) in words]


Tables = dict[str, list[dict[str, str]]]
Written = Callable[[str], tuple[Tables, dict[str, Any]]]


@pytest.fixture(scope="module")
def written(root: Path, rated: Rated) -> Written:
    """Give the tables of the study when it was rated so, and what is said of them; each is written once."""
    folder = root / "results" / "tables"
    rows = {
        "nobody": [],
        "simulated": ratings(root, severe, simulated=True, round_id="simulated"),
        "few": ratings(root, kind, number=FEW),
        "real": [*ratings(root, severe), *ratings(root, kind, simulated=True, round_id="simulated")],
        "three": ratings(root, severe, raters=("r1", "r2", "r3")),
    }

    @cache
    def write(name: str) -> tuple[Tables, dict[str, Any]]:
        write_tables(rated(rows[name]), folder, root / "results" / "metrics.json")
        told = {one: json.loads((folder / f"{one}.json").read_text(encoding="utf-8")) for one in ("notes", "verdict")}
        names = (
            "leaderboard",
            "rates",
            "graders",
            "calibrated",
            "similarity",
            "grader_vs_clinician",
            "reasoning",
            "juries",
            "ratings",
            "agreement",
        )
        return read_results(folder, names), told["notes"] | told["verdict"]

    return write


def test_the_agreement_of_few_rated_patients_is_hidden_wherever_it_stands(root: Path, rated: Rated, tmp_path: Path) -> None:
    study = rated(ratings(root, kind, number=9))
    depth = study.benchmarks[DEPTH]
    study = replace(study, benchmarks={DEPTH: replace(depth, audit=replace(depth.audit, kind="patient"))})
    areas = [row for row in similarity_rows(study, trust_rows(study)) if row.measure == "auc_vs_clinicians"]
    assert len(areas) == 2 * len(MODELS)
    assert any(row.value is not None for row in areas)
    assert all(0 < (row.n_patients or 0) < 10 for row in areas)
    write_tables(study, tmp_path, tmp_path / "metrics.json", Release(PUBLIC))
    tables = read_results(tmp_path, ("similarity", "grader_vs_clinician"))
    hidden = pick(tables["similarity"], measure="auc_vs_clinicians")
    assert len(hidden) == len(areas)
    assert {(row["value"], row["low"], row["n_answers"], row["n_patients"]) for row in hidden} == {("", "", "", "<10")}
    agreement = [row for row in pick(tables["grader_vs_clinician"], source="cosine", measure="auc") if row["model"]]
    assert {(row["value"], row["n_answers"], row["n_patients"]) for row in agreement} == {("", "", "<10")}
    assert "" not in {row["value"] for row in pick(tables["similarity"], measure="similarity", slice="")}


def badge(told: dict[str, Any]) -> str:
    return str(pick(told["badges"], name="Clinician ratings")[0]["text"])


def test_simulated_raters_stand_apart_and_never_reach_the_leaderboard(written: Written) -> None:
    tables, told = written("simulated")
    assert {row["calibrated"] for row in tables["leaderboard"]} == {""}
    assert pick(tables["similarity"], measure="auc_vs_clinicians") == []
    assert {is_simulated(row) for row in tables["grader_vs_clinician"]} == {True}
    rates = pick(tables["calibrated"], measure="calibrated")
    assert {bool(row["value"]) == is_simulated(row) for row in rates} == {True}
    assert told["grader_only"] == {DEPTH: "Grader only: no clinician has rated this run."}
    assert told["blocks"]["grader_vs_clinician"]["takeaway"] == SIMULATED_ALONE
    assert badge(told) == "none yet: grader only (simulated ones stand apart)"
    assert not [sentence for sentence in told["sentences"] if sentence.startswith("Graders:")]


def test_too_few_ratings_are_told_and_do_not_reach_the_leaderboard(written: Written) -> None:
    tables, told = written("few")
    assert {row["calibrated"] for row in tables["leaderboard"]} == {""}
    rates = pick(tables["calibrated"], measure="calibrated")
    assert {row["note"] for row in rates} == {"too few rated: counts from 60 answers of 8 patients on"}
    few = "Grader only: clinicians have rated too few of these answers; they count once 60 answers of 8 patients of a model are rated."
    assert told["grader_only"] == {DEPTH: few}
    graders = block("graders", tables, told)
    needed = f"<small>too few rated: counts from 60 answers of 8 patients on: rated here {FEW}</small>"
    cells = re.findall(r'data-element="calibrated" data-value="">(.*?)</td>', graders, flags=re.DOTALL)
    assert {cell.strip() for cell in cells} == {needed}, "how many are needed, and how many are there"
    assert len(cells) == len(rates)
    assert all(row["value"] for row in rates), "the rate is in the file alone"


def test_a_run_that_nobody_rated_says_so(written: Written) -> None:
    tables, told = written("nobody")
    assert tables["grader_vs_clinician"] == []
    assert {row["note"] for row in pick(tables["calibrated"], measure="calibrated")} == {"grader only: no clinician has rated an answer"}
    assert told["grader_only"] == {DEPTH: "Grader only: no clinician has rated this run."}
    assert told["blocks"]["grader_vs_clinician"]["takeaway"] == "No clinician has rated an answer."
    assert badge(told) == "none yet: grader only"


def test_a_form_without_a_pass_corrects_nothing_and_says_so(root: Path, rated: Rated) -> None:
    study = rated(ratings(root, kind))
    without = replace(study, form=study.form.model_copy(update={"passes": None}))
    assert {row["value"] for row in calibrated_rows(without) if row["measure"] == "calibrated"} == {None}
    assert trust_rows(without) == []
    assert trust_statements(without) == [
        "A clinician's pass is not defined: `config/rating.yaml` has no `passes`, so no score is corrected by clinicians."
    ]


def test_real_ratings_stand_beside_the_raw_score(written: Written) -> None:
    tables, told = written("real")
    shown = pick(tables["leaderboard"], benchmark=DEPTH, model="alpha")[0]
    wanted = {"source": "score", "measure": "calibrated", "value_of_slice": "clinicians"}
    (rate,) = pick(tables["calibrated"], benchmark=DEPTH, model="alpha", **wanted)
    assert shown["calibrated"] == rate["value"]
    assert float(shown["calibrated"]) < float(shown["pass1"])
    assert pick(tables["leaderboard"], benchmark=DEPTH, model="prior")[0]["calibrated"] == ""
    assert pick(tables["leaderboard"], benchmark=BREADTH, model="alpha")[0]["calibrated"] == ""
    (near,) = pick(tables["similarity"], benchmark=DEPTH, model="alpha", measure="auc_vs_clinicians", source="cosine")
    assert near["n_answers"] == str(RATED)
    assert near["value"] != ""
    assert told["grader_only"] == {}
    leaderboard, trust = (block(name, tables, told) for name in ("leaderboard", "graders"))
    assert leaderboard.count(">Calibrated</button>") == 1
    assert "Grader only" not in leaderboard
    assert f'data-value="{rate["value"]}"' in leaderboard
    assert f'data-value="{rate["value"]}"' in trust
    assert "follows one clinician with an ICC of" in trust
    assert "0.47" in trust, "what others found is beside it"
    assert trust.count("simulated raters</td>") == trust.count(", clinicians</td>") > 20


def test_the_page_says_simulated_of_every_row_that_is_and_grader_only_under_the_leaderboard(written: Written) -> None:
    tables, told = written("simulated")
    leaderboard, trust = (block(name, tables, told) for name in ("leaderboard", "graders"))
    assert ">Calibrated</button>" not in leaderboard
    assert leaderboard.count("Grader only: no clinician has rated this run.") == 1
    assert trust.count("simulated raters</td>") > 20
    assert "clinicians</td>" not in trust
    assert "These ratings come from a program that fills in the form; no clinician rated an answer." in trust


def test_without_ratings_the_block_says_what_to_do(written: Written) -> None:
    graders = block("graders", *written("nobody"))
    assert "No answer of this run was rated: only graders scored the open answers. make rating-round ROUND=r01 draws" in graders
    assert 'data-part="trust"><b>' in graders
    assert 'data-part="calibrated"' not in graders


def test_a_grader_of_the_maker_of_a_model_is_named_on_the_page(written: Written) -> None:
    tables, told = written("real")
    assert "One maker made grader and model" not in block("graders", tables, told)
    rows = tables["grader_vs_clinician"]
    kin = [
        row | {"note": "same maker: yes"} if (row["model"], row["source"], row["measure"]) == ("beta", "llm", "bias") else row
        for row in rows
    ]
    said = block("graders", tables | {"grader_vs_clinician": kin}, told)
    assert "<p>One maker made grader and model: llm and beta.</p>" in said


def block(name: str, tables: Tables, told: dict[str, Any]) -> str:
    """Render one block of the page without figures."""
    config = SimpleNamespace(title="A benchmark")
    source = SimpleNamespace(notes=told, benchmarks={DEPTH: config, BREADTH: config}, figures=dict.fromkeys(FIGURES, ""), profile="public")
    found = {one: {"colour": "#000", "path": "", "hollow": False} for one in (*MODELS, "prior")}
    return templates(told).get_template(f"blocks/{name}.html.j2").render(source=source, tables=tables, titles={}, looks=found)


def model(name: str, *, backend: str = "litellm", api_base: str | None = None) -> ModelConfig:
    return ModelConfig.model_validate({"title": "T", "backend": backend, "id": name, "revision": "1", "api_base": api_base})


@pytest.mark.parametrize(
    ("config", "maker"),
    [
        (model("openai/gpt-5"), "openai"),
        (model("gemini/gemini-3-pro"), "google"),
        (model("openrouter/google/gemini-3-pro"), "google"),
        (model("openai/qwen3-vl", api_base="http://127.0.0.1:8000/v1"), ""),
        (model("azure/our-deployment"), ""),
        (model("gpt-5"), ""),
        (model("weights/openai/llava", backend="transformers"), ""),
    ],
)
def test_the_maker_of_a_model_is_known_from_its_id_or_not_at_all(config: ModelConfig, maker: str) -> None:
    assert maker_of(config) == maker


def test_a_grader_of_the_candidates_own_maker_is_told() -> None:
    graders = {
        "words": GraderConfig(title="W", kind="rubric"),
        "gpt": GraderConfig(title="G", kind="llm", model=model("openai/gpt-4o")),
        "claude": GraderConfig(title="C", kind="llm", model=model("anthropic/claude-sonnet-4")),
        "jury": GraderConfig(title="J", kind="jury", members=("claude", "gpt")),
        "far": GraderConfig(title="F", kind="jury", members=("claude", "absent")),
    }
    told = {name: same_maker(grader, model("openai/gpt-5"), graders) for name, grader in graders.items()}
    assert told == {"words": "no", "gpt": "yes", "claude": "no", "jury": "yes", "far": "not known"}
    assert same_maker(graders["gpt"], model("fusion", backend="builtin"), graders) == "not known"
