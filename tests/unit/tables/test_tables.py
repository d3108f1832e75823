"""Tables of a few scores, computed by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import build_tables
import bundle_cases
from fixtures.commands import settings
from fixtures.report import MARGIN
from fixtures.tables import ARM_SHIFT, BREADTH, DEPTH, GRADERS, item, lose_answers, score, write_study
from neuralmedbench.estimates.exact import clopper_pearson
from neuralmedbench.files.result_tables import read_results
from neuralmedbench.files.tables import read_records, write_records
from neuralmedbench.records.bundle import CaseBundle
from neuralmedbench.records.items import Family, Gold, Level, Runner
from neuralmedbench.records.result_columns import TOPICS
from neuralmedbench.records.results import COLUMNS, SHAPES, by_measure
from neuralmedbench.records.scores import Grade, ParseStatus, Rating, Score, response_key
from neuralmedbench.tables.outcomes import Key, gather_outcomes

MODELS = ("alpha", "beta", "gamma")
PAIR = ("alpha", "beta")


def open_item(number: int, patient: str) -> object:
    return item(DEPTH, f"case{number}", patient, Family.DIFFERENTIAL_DIAGNOSIS, level=Level.DIRECT, runner=Runner.OPEN)


ITEMS = [open_item(0, "p0"), open_item(1, "p0"), open_item(2, "p1")]
GOLD = [Gold(item_id=one.item_id, answer=answer) for one, answer in zip(ITEMS, ["stroke", "stroke", "glioma"], strict=True)]


def outcomes(rows: list[Score], *, sampled: bool = True):
    return gather_outcomes(DEPTH, "depth", ITEMS, GOLD, scores={"m": rows}, sampled={"m": sampled})


def answers(place: int, passes: list[bool | None], **changes: object) -> list[Score]:
    return [score(ITEMS[place], "m", passed=passed, repeat=repeat, **changes) for repeat, passed in enumerate(passes)]


def test_the_denominator_is_every_expected_item_times_every_sample() -> None:
    found = outcomes(answers(0, [True, False]) + answers(1, [True, True]))
    counts = found.counts[Key("m")]
    assert counts.samples.tolist() == [2, 2, 2]
    assert counts.missing.tolist() == [0, 0, 2]
    assert found.metric("pass1", Key("m")).tolist() == [0.5, 1.0, 0.0]
    assert found.metric("pass1", Key("m"), best=True).tolist() == [0.5, 1.0, 1.0]
    assert counts.missing_fraction == pytest.approx(2 / 6)


def test_refused_truncated_and_unparsable_are_wrong_and_failed_and_ungraded_are_missing() -> None:
    rows = [
        score(ITEMS[0], "m", passed=False, repeat=0, state="refused"),
        score(ITEMS[0], "m", passed=False, repeat=1, state="truncated"),
        score(ITEMS[0], "m", passed=False, repeat=2, parse_status=ParseStatus.FAILED),
        score(ITEMS[0], "m", passed=None, repeat=3, state="failed", missing=True),
        score(ITEMS[0], "m", passed=None, repeat=4),
        score(ITEMS[0], "m", passed=False, repeat=5, state="truncated", text="<think>Perhaps a"),
        score(ITEMS[0], "m", passed=False, repeat=6, state="truncated", text="The diagnosis is a"),
    ]
    counts = outcomes(rows).counts[Key("m")]
    assert (counts.passes[0], counts.missing[0], counts.samples[0]) == (0, 2, 7)
    assert counts.tally == {
        "refused": 1,
        "truncated": 3,
        "truncated_thinking": 2,
        "unparsable": 1,
        "unread_missing": 0,
        "contradicted": 0,
        "abstained": 0,
    }
    assert counts.false_names[0] == 0


def test_only_a_wrong_name_is_a_false_alarm() -> None:
    rows = [
        score(ITEMS[0], "m", passed=False, repeat=0),
        score(ITEMS[0], "m", passed=False, repeat=1, abstained=True),
        score(ITEMS[0], "m", passed=False, repeat=2, state="refused"),
        score(ITEMS[0], "m", passed=False, repeat=3, parse_status=ParseStatus.FAILED),
        score(ITEMS[0], "m", passed=True, repeat=4),
    ]
    found = outcomes(rows)
    assert found.counts[Key("m")].false_names.tolist() == [1, 0, 0]
    assert found.metric("false_alarm", Key("m"))[0] == pytest.approx(0.2)


def test_pass_at_5_needs_five_samples_at_a_temperature_above_0() -> None:
    rows = answers(0, [True, False, False, False, False]) + answers(1, [True] * 5) + answers(2, [False] * 5)
    assert outcomes(rows).metric("pass5", Key("m")).tolist() == [1.0, 1.0, 0.0]
    assert outcomes(rows).metric("all_right", Key("m")).tolist() == [0.0, 1.0, 0.0]
    assert np.isnan(outcomes(rows, sampled=False).metric("pass5", Key("m"))).all()
    assert np.isnan(outcomes(rows[:3]).metric("pass5", Key("m"))).all()


def test_five_candidates_are_counted_over_all_expected_answers() -> None:
    rows = answers(0, [False, False], in_candidates=True) + answers(1, [True, False], in_candidates=False)
    assert outcomes(rows).metric("candidates5", Key("m")).tolist() == [1.0, 0.0, 0.0]


def test_an_arm_expects_the_items_that_any_model_was_asked() -> None:
    told = [score(ITEMS[0], "m", passed=True, arm="findings_disclosed")]
    found = gather_outcomes(DEPTH, "depth", ITEMS, GOLD, scores={"m": told, "n": []}, sampled={"m": True, "n": True})
    assert found.counts[Key("m", "findings_disclosed")].samples.tolist() == [1, 0, 0]
    assert found.counts[Key("n")].missing.tolist() == [1, 1, 1]


def build(root: Path, models: tuple[str, ...] = MODELS) -> dict[str, list[dict[str, str]]]:
    results = root / "results"
    run = {"benchmarks": [DEPTH, BREADTH], "models": models, "graders": GRADERS}
    chosen = settings(**run, statistics={"resamples": 300}, comparison={"margin": MARGIN})
    outputs = ["--out-tables", str(results / "tables"), "--out-metrics", str(results / "metrics.json")]
    arguments = ["--root", str(root), *chosen, "--vocabulary", "config/vocabulary.yaml", *outputs]
    assert build_tables.main(arguments) == 0
    return read_results(results / "tables", [*(name for name in COLUMNS if name not in SHAPES), *TOPICS])


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("study")
    write_study(root)
    return root


@pytest.fixture(scope="module")
def built(study: Path) -> dict[str, list[dict[str, str]]]:
    return build(study)


def test_every_table_has_its_columns_and_equal_inputs_give_equal_bytes(study: Path, built: dict[str, list[dict[str, str]]]) -> None:
    first = {path.name: path.read_bytes() for path in (study / "results" / "tables").iterdir()}
    build(study)
    assert first == {path.name: path.read_bytes() for path in (study / "results" / "tables").iterdir()}
    empty = "ratings agreement"
    for name in set(COLUMNS) - set(SHAPES) - set(empty.split()):
        assert tuple(built[name][0]) == COLUMNS[name], name


def test_the_leaderboard_says_what_the_scores_say(study: Path, built: dict[str, list[dict[str, str]]]) -> None:
    rows = built["leaderboard"]
    scores = [row for row in read_records(study / "results" / "scores" / DEPTH / "alpha.parquet", Score) if row.arm == "full"]
    alpha = next(row for row in rows if (row["benchmark"], row["model"]) == (DEPTH, "alpha"))
    assert float(alpha["pass1"]) == pytest.approx(np.mean([row.passed for row in scores]), abs=1e-6)
    assert alpha["expected"] == str(len(scores))
    assert [row["model"] for row in rows if row["benchmark"] == DEPTH] == ["alpha", "beta", "gamma", "prior"]
    assert rows[3]["rank"] == ""
    metrics = json.loads((study / "results" / "metrics.json").read_text())
    assert metrics[DEPTH]["alpha"]["pass1"] == pytest.approx(float(alpha["pass1"]))


def test_graders_agree_beyond_chance_first_and_raw_second(study: Path, built: dict[str, list[dict[str, str]]]) -> None:
    by_grader = by_measure(built["graders"], "grader")
    kappa, same = (by_grader[DEPTH, "alpha", "llm"][f"{name}_with_first"] for name in ("kappa", "agreement"))
    first, second = (
        {response_key(grade): grade.value for grade in read_records(study / f"results/grades/{DEPTH}/alpha/{name}.parquet", Grade)
         if grade.criterion == "core_diagnosis"}
        for name in ("rubric", "llm")
    )  # fmt: skip
    pairs = [(first[key], second[key]) for key in first]
    raw = sum(one == other for one, other in pairs) / len(pairs)
    one, other = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    chance = one * other + (1 - one) * (1 - other)
    assert float(same["value"]) == pytest.approx(raw, abs=1e-6)
    assert float(kappa["value"]) == pytest.approx((raw - chance) / (1 - chance), abs=1e-6)
    assert float(kappa["low"]) < float(kappa["value"]) < float(kappa["high"])
    assert int(kappa["n"]) == len(pairs)
    assert built["graders"].index(kappa) < built["graders"].index(same)
    assert by_grader[DEPTH, "alpha", "rubric"].keys() == {"ok", "mean_core_diagnosis", "mean_main_condition"}, "of itself it says nothing"


def test_planted_errors_say_which_grader_is_not_used(built: dict[str, list[dict[str, str]]]) -> None:
    rows = {(row["grader"], row["criterion"], row["must"]): row for row in built["graders"] if row["benchmark"] == DEPTH}
    sees, passes = (rows[grader, "core_diagnosis", "fall"] for grader in ("rubric", "llm"))
    assert (float(sees["value"]), sees["used"], sees["base_failed"]) == (1.0, "true", "0.000000")
    assert (float(passes["value"]), passes["used"], passes["against_floor"]) == (0.0, "false", "below")


def test_confidence_and_differentials_say_what_the_leaderboard_says(built: dict[str, list[dict[str, str]]]) -> None:
    board = {(row["benchmark"], row["model"]): row for row in built["leaderboard"]}
    stated = [row for row in built["confidence"] if (row["arm"], row["source"], row["measure"]) == ("full", "stated", "brier")]
    assert [row["value"] for row in stated] == [board[row["benchmark"], row["model"]]["brier"] for row in stated]
    whole = [row for row in built["confidence"] if (row["source"], row["value_of_slice"]) == ("stated", "1.00")]
    assert [row["value"] for row in whole] == [board[row["benchmark"], row["model"]]["pass1"] for row in whole]
    assert len(stated) == len(whole) == 6
    lists = [row for row in built["differential"] if (row["measure"], row["value_of_slice"]) == ("candidates", "all")]
    assert {(row["model"], row["value"]) for row in lists} == {(model, "2.000000") for model in MODELS}


def test_normal_pressure_is_no_normal_control(study: Path, built: dict[str, list[dict[str, str]]]) -> None:
    rows = [row for row in built["rates"] if row["slice"] == "normal_control" and row["measure"] == "false_alarm"]
    full = next(row for row in rows if (row["benchmark"], row["model"], row["arm"]) == (DEPTH, "alpha", "full"))
    assert full["n_patients"] == "2"
    scores = read_records(study / "results" / "scores" / DEPTH / "alpha.parquet", Score)
    wrong = [not row.passed for row in scores if row.arm == "full" and row.case_id in ("case04", "case10")]
    assert float(full["value"]) == pytest.approx(np.mean(wrong), abs=1e-6)


def test_a_model_by_whose_answers_the_items_were_chosen_is_marked(tmp_path: Path) -> None:
    write_study(tmp_path, models=PAIR, patients=3, arms=("full",))
    path = tmp_path / "config" / "benchmarks" / f"{DEPTH}.yaml"
    path.write_text(path.read_text(encoding="utf-8") + "\nreference_pool: [beta]\n", encoding="utf-8")
    notes = {row["model"]: row["note"] for row in build(tmp_path, PAIR)["leaderboard"] if row["benchmark"] == DEPTH}
    assert "of the pool by which the items were chosen" in notes["beta"]
    assert "pool" not in notes["alpha"]


def test_a_model_with_missing_answers_has_bounds_and_no_rank(tmp_path: Path) -> None:
    write_study(tmp_path, models=PAIR, patients=6, arms=("full",))
    path = tmp_path / "results" / "scores" / DEPTH / "beta.parquet"
    rows = read_records(path, Score)
    lost = [replace(row, missing=True, passed=None, state="failed") if row.case_id == "case00" else row for row in rows]
    write_records(path, Score, lost, key=lambda row: (row.item_id, row.arm, row.repeat))
    tables = build(tmp_path, PAIR)
    beta = next(row for row in tables["leaderboard"] if (row["benchmark"], row["model"]) == (DEPTH, "beta"))
    assert (beta["rank"], beta["tier"], beta["missing"]) == ("", "", "10")
    assert float(beta["best_case"]) == pytest.approx(float(beta["worst_case"]) + 10 / 60, abs=1e-5)
    pair = next(row for row in tables["pairs"] if (row["benchmark"], row["model"], row["other"]) == (DEPTH, "alpha", "beta"))
    assert pair["n_items"] == "10"
    assert "missing" in beta["note"]


RATES = re.compile(
    r"(pass1|pass5|candidates5|rubric|calibrated|raw|f|d|mean_candidates)(_low|_high)?|all_right|.*_case|low|high|value|brier"
)


def test_of_a_model_whose_answers_are_all_missing_no_table_has_a_rate(tmp_path: Path) -> None:
    write_study(tmp_path, patients=6)
    lose_answers(tmp_path, "beta")
    tables = build(tmp_path)
    own = [(name, row) for name, rows in tables.items() for row in rows if "beta" in row.values()]
    assert {"leaderboard", "differential", "calibrated", "costs"} <= {name for name, _ in own}
    assert not [(name, column, row) for name, row in own for column in row if RATES.fullmatch(column) and row[column]]
    board = [row for name, row in own if name == "leaderboard"]
    assert [(row["missing_fraction"], row["rank"], row["interval"]) for row in board] == [("1.000000", "", "none")] * 2
    assert not [row for name, row in own if name == "rates"]
    metrics = json.loads((tmp_path / "results" / "metrics.json").read_text())
    assert metrics[DEPTH]["beta"] == metrics[BREADTH]["beta"] == {"missing_fraction": 1.0}
    told = (tmp_path / "results" / "tables" / "verdict.json").read_text() + (tmp_path / "results" / "tables" / "notes.json").read_text()
    assert "2 models are ranked" in told
    assert "Beta" not in told


def test_a_group_or_an_arm_of_which_every_answer_is_missing_has_no_rate(tmp_path: Path) -> None:
    write_study(tmp_path, models=PAIR, patients=6)
    path = tmp_path / "results" / "scores" / DEPTH / "beta.parquet"
    lost = [
        replace(row, missing=True, passed=None, state="failed") if row.level == "complex" or row.arm == "no_text" else row
        for row in read_records(path, Score)
    ]
    write_records(path, Score, lost, key=lambda row: (row.item_id, row.arm, row.repeat))
    rows = [row for row in build(tmp_path, PAIR)["rates"] if (row["benchmark"], row["model"]) == (DEPTH, "beta")]
    assert "no_image" in {row["arm"] for row in rows}
    assert "no_text" not in {row["arm"] for row in rows}
    assert {row["value_of_slice"] for row in rows if row["slice"] == "level" and row["measure"] == "pass1"} == {"direct"}
    assert {row["left_out"] for row in rows if row["slice"] == "all" and row["arm"] == "full"} >= {"20"}


def test_case_flow_destinations_and_ratings_are_counted(tmp_path: Path) -> None:
    write_study(tmp_path, models=("alpha",), arms=("full",))
    rating = Rating(
        round_id="r1", rater_id="a", item_id="i", arm="full", strategy="direct", model="alpha", revision="1", repeat=0,
        text_sha256="0" * 64, axis="dx_correct", value=3.0, seconds=20.0, stale=False, simulated=True,
    )  # fmt: skip
    path = tmp_path / "results" / "ratings" / "ratings.parquet"
    write_records(path, Rating, [rating, replace(rating, rater_id="b", value=1.0, stale=True)], key=lambda row: row.rater_id)
    tables = build(tmp_path, ("alpha",))
    assert [(row["step"], row["n"]) for row in tables["case_flow"] if (row["benchmark"], row["unit"]) == (DEPTH, "case")] == [
        ("listed", "14"), ("excluded", "1"), ("quarantined_normalise", "1"), ("used", "12"),
    ]  # fmt: skip
    places = {(row["model"], row["destination"]) for row in tables["destinations"]}
    assert ("alpha", "local") in places
    assert ("grader llm", "judge.example") in places
    assert tables["ratings"] == [
        {
            "round_id": "r1",
            "model": "alpha",
            "in_reference_pool": "false",
            "axis": "dx_correct",
            "n": "1",
            "responses": "1",
            "mean": "3.000000",
            "adjudicated": "0",
            "stale": "1",
            "simulated": "true",
            "few_patients": "1",
            "cluster": "patient",
        }
    ]
    verdict = json.loads((tmp_path / "results" / "tables" / "verdict.json").read_text())
    assert next(badge for badge in verdict["badges"] if badge["name"] == "Clinician ratings")["state"] == "none"


def test_every_raw_file_ends_as_used_set_aside_with_a_reason_or_with_its_quarantined_case(built: dict[str, list[dict[str, str]]]) -> None:
    flow = [row for row in built["case_flow"] if row["unit"] in ("file", "series")]
    rows = [row for row in flow if row["benchmark"] == DEPTH]
    assert [(row["unit"], row["step"], row["reason"], row["n"], row["cases"]) for row in rows] == [
        ("file", "listed", "", "800", "13"),
        ("file", "set_aside", "localizer (few slices in several planes)", "36", "12"),
        ("file", "set_aside", "dose report", "4", "3"),
        ("file", "quarantined_normalise", "FLAIR and T1w cover different parts of the head", "40", "1"),
        ("file", "used", "", "720", "12"),
        ("series", "set_aside", "T2w: it covers another part of the head", "1", "1"),
    ]  # fmt: skip
    for name in (DEPTH, BREADTH):
        files = [row for row in flow if (row["benchmark"], row["unit"]) == (name, "file")]
        assert sum(int(row["n"]) for row in files if row["step"] != "listed") == int(files[0]["n"])
    pictures = [row for row in flow if row["benchmark"] == BREADTH]
    assert ("quarantined_deidentify", "text is burned into the picture", "1") in {
        (row["step"], row["reason"], row["n"]) for row in pictures
    }


def test_the_score_of_deidentification_has_the_interval_of_the_phantoms(study: Path, built: dict[str, list[dict[str, str]]]) -> None:
    rows = {row["action"]: row for row in built["deidentification"] if row["benchmark"] == DEPTH}
    assert float(rows["removals"]["share"]) == 1.0
    assert (rows["actions"]["count"], rows["actions"]["required"]) == ("8999", "9000")
    low, high = clopper_pearson(3, 4, 0.95)
    assert [round(float(rows["actions"][name]), 4) for name in ("patients_low", "patients_high")] == [round(low, 4), round(high, 4)]


def test_a_run_without_models_and_a_benchmark_without_answers_give_tables(tmp_path: Path) -> None:
    write_study(tmp_path, models=PAIR, patients=2)
    write_records(tmp_path / "data" / "gold" / f"{DEPTH}.parquet", Gold, [], key=lambda row: row.item_id)
    tables = build(tmp_path, PAIR)
    rows = [row for row in tables["leaderboard"] if row["benchmark"] == DEPTH]
    assert {row["pass1"] for row in rows} == {""}
    assert "no item has a reference" in rows[0]["note"]
    assert {row["model"] for row in build(tmp_path, ())["leaderboard"]} == {"prior"}


def test_the_bundle_holds_every_answer_with_its_score_and_grades(study: Path) -> None:
    results, out = study / "results", study / "results" / "cases" / f"{DEPTH}.parquet"
    arguments = ["--items", str(study / "data" / "items" / f"{DEPTH}.parquet"), "--gold", str(study / "data" / "gold" / f"{DEPTH}.parquet")]
    for kind, pattern in (("responses", "*.parquet"), ("scores", "*.parquet"), ("grades", "*/*.parquet")):
        arguments += [f"--{kind}", *map(str, sorted((results / kind / DEPTH).glob(pattern)))]
    assert bundle_cases.main([*arguments, "--out", str(out)]) == 0
    bundles = read_records(out, CaseBundle)
    assert len(bundles) == 24
    first = bundles[0].responses[0]
    assert (first.model, first.arm, first.repeat) == ("alpha", "findings_disclosed", 0)
    assert {grade.grader for grade in first.grades} == set(GRADERS)
    assert len(bundles[0].responses) == 3 * 5 * len(ARM_SHIFT)
    assert (first.seen, first.evidence) == ("", ())
