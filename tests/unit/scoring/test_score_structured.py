"""The published evaluator's metrics, and the corrected ones."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import score_structured
from conftest import ROOT
from fixtures.structured import ANSWER, jsonl, line, literal_label, literal_metrics, said
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.estimates.calibration import auroc, brier, calibration_error, linspace_bins, risk_coverage_area
from neuralmedbench.runtime.commands import run_command
from neuralmedbench.scoring.structured.form import PUBLISHED, STEPS
from neuralmedbench.scoring.structured.metrics import Tally, compatible_metrics, corrected_metrics
from neuralmedbench.scoring.structured.prediction_rows import published_label, read_predictions

GOLDEN = ROOT / "tests" / "golden"
U = "undetermined"


def read(tmp_path: Path, lines: list[object]) -> Any:
    path = tmp_path / "predictions.jsonl"
    path.write_text(jsonl(lines))
    return read_predictions(path)


def compatible(tmp_path: Path, lines: list[object]) -> dict[str, dict[str, float | None]]:
    return compatible_metrics(read(tmp_path, lines).rows)


def corrected(tmp_path: Path, lines: list[object], **settings: bool) -> dict[str, Any]:
    return corrected_metrics(read(tmp_path, lines).rows, **settings)


def pairs(*labels: tuple[str, str | None], model: str = "m") -> list[object]:
    """Return lines with a true and a given class, each with confidence 0.8."""
    return [
        line(model, f"{number}.png", answer=said(diagnosis_name=given, diagnosis_confidence=0.8), **{"class": true})
        for number, (true, given) in enumerate(labels)
    ]


def test_forty_invented_lines_give_the_numbers_of_a_literal_reading(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = ["--predictions", str(GOLDEN / "structured_answers.jsonl"), "--compatible", "--out", str(out)]
    assert score_structured.main(command) == 0
    wanted, found = (json.loads(path.read_text()) for path in (GOLDEN / "structured_metrics.json", out))
    assert found["models"].keys() == wanted.keys()
    for model, metrics in wanted.items():
        assert found["models"][model] == pytest.approx(metrics, abs=1e-9), model
    counts = {"malformed": 1, "not_object": 1, "duplicates": 1, "answered_without_model": 2, "failed_without_model": 1}
    assert {name: number for name, number in found["reading"].items() if number} == {"lines": 40, "rows": 37, **counts}


def test_the_golden_numbers_are_those_of_scikit_learn_on_the_same_lines() -> None:
    lines = []
    for text in (GOLDEN / "structured_answers.jsonl").read_text().splitlines():
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            lines.append(value)
    wanted = json.loads((GOLDEN / "structured_metrics.json").read_text())
    for model, metrics in literal_metrics(lines).items():
        assert metrics == pytest.approx(wanted[model], abs=1e-9), model


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(4, 12))])
def test_any_answers_give_the_numbers_of_a_literal_reading(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    classes = ["tumor", "stroke", "multiple sclerosis", "normal", "other abnormalities"]
    words = [*classes, None, "brain", "none", "lymphoma", "Tumors", "atrophy", "n/a", "brain tumor", ""]
    subtypes = ["glioma", "ischemic", "papilloma", "pituitary_tumor", None, "metastasis", "normal", "abc"]
    sequences = ["T1", "T1C+", "t1 c+", "T2-weighted", "FLAIR", None, "none", "non-contrast"]
    stated = [None, "high", "0.3", True, 1.7, -1, *np.linspace(0, 1, 11).tolist(), *(rng.random() for _ in range(5))]
    lines = [
        line(
            rng.choice(["a", "b", None, ""]),
            f"{number}.png",
            status=rng.choice(["success", "success", "success", "error"]),
            answer=rng.choice([None, {}, *[said(
                diagnosis_name=rng.choice(words),
                diagnosis_detailed=rng.choice(subtypes),
                modality=rng.choice(["MRI", "mr", "CT", None, "x-ray"]),
                specialized_sequence=rng.choice(sequences),
                plane=rng.choice(["axial", "S", "coronal", None]),
                diagnosis_confidence=rng.choice(stated),
            )] * 8]),
            **{"class": rng.choice([*classes[: 1 + seed % 5], *([None, "", "brain"] if seed % 3 == 0 else [])])},
            subclass=rng.choice(["glioma", "ischemic", "papiloma", None, "nan"]),
            modality=rng.choice(["MRI", "CT"]) if seed % 4 else None,
            modality_subtype=rng.choice(["T1", "T2", "null"]),
            axial_plane=rng.choice(["axial", "sagittal", ""]),
        )
        for number in range(rng.choice([1, 3, 30]))
    ]  # fmt: skip
    for model, metrics in literal_metrics(lines).items():
        assert compatible(tmp_path, lines)[model] == pytest.approx(metrics, abs=1e-9), model


def test_every_averaged_measure_is_that_of_scikit_learn_with_the_same_labels() -> None:
    from sklearn import metrics

    rng = random.Random(4)
    for _ in range(30):
        truth, given = ([rng.choice("abcd"[:size]) for _ in range(9)] for size in (3, 4))
        labels = rng.sample(list("abcde"), rng.randint(1, 5))
        for measure in ("f1", "precision", "recall"):
            for how in ("macro", "micro", "weighted"):
                wanted = getattr(metrics, f"{measure}_score")(truth, given, labels=labels, average=how, zero_division=0)
                assert Tally.of(truth, given).average(measure, labels, how) == pytest.approx(wanted)  # type: ignore[arg-type]
    assert Tally.of(["a"], ["a"]).average("f1", []) is None


def test_f1_divides_by_every_word_that_was_said_and_the_overall_one_by_the_labels_of_the_reference(tmp_path: Path) -> None:
    """Reference: a a b. Answers: a, an unknown label, null. F1 of a is 2/3 and of b 0; L has four labels, K two."""
    found = compatible(tmp_path, pairs(("normal", "normal"), ("normal", "lymphoma"), ("stroke", None)))["m"]
    assert found["macro_f1"] == pytest.approx(2 / 3 / 4)
    assert found["macro_f1_abstention"] == pytest.approx(2 / 3 / 3)
    assert found["overall_class_f1"] == found["overall_class_f1_abstention"] == pytest.approx(2 / 3 / 2)
    assert found["weighted_f1"] == found["overall_class_weighted_f1"] == pytest.approx(2 / 3 * 2 / 3)
    assert found["micro_f1"] == pytest.approx(1 / 3)
    assert found["micro_f1_abstention"] == pytest.approx(2 / 5), "one hit, two answers, three true labels"
    assert found["uncertainty"] == pytest.approx(100 / 3)


def test_accuracy_is_balanced_accuracy(tmp_path: Path) -> None:
    found = compatible(tmp_path, pairs(("normal", "normal"), ("normal", "normal"), ("normal", "normal"), ("stroke", "normal")))["m"]
    assert found["accuracy"] == found["overall_class_accuracy"] == found["overall_class_recall"] == 0.5
    assert found["overall_class_precision"] == pytest.approx(0.75 / 2)


def test_a_missing_confidence_is_zero_and_so_abstaining_looks_calibrated(tmp_path: Path) -> None:
    nothing = said(diagnosis_name=None, diagnosis_confidence=None)
    found = compatible(tmp_path, [line(answer=nothing), line(picture="b.png", answer=said(diagnosis_confidence=1.6))])["m"]
    assert (found["ece"], found["brier"], found["auc"]) == (0.0, 0.0, 1.0)
    mended = corrected(tmp_path, [line(answer=nothing), line(picture="b.png", answer=said(diagnosis_confidence=1.0))])["m"]["fields"][
        "class"
    ]
    assert mended["brier_pessimistic"] == {"value": 0.5, "n": 2}
    assert mended["brier_of_stated_confidence"] == {"value": 0.0, "n": 1}
    assert mended["coverage"] == {"value": 0.5, "count": 1, "n": 2}


def test_a_confidence_that_is_no_number_takes_calibration_away_and_nothing_else(tmp_path: Path) -> None:
    lines = pairs(("normal", "normal"), ("stroke", "normal"))
    path = tmp_path / "nan.jsonl"
    path.write_text(jsonl(lines).replace('"diagnosis_confidence": 0.8', '"diagnosis_confidence": NaN', 1))
    found = read_predictions(path)
    metrics = compatible_metrics(found.rows)["m"]
    assert (metrics["ece"], metrics["brier"], metrics["auc"], metrics["accuracy"]) == (None, None, None, 0.5)
    assert found.counts["not_a_number"] == 1


@pytest.mark.parametrize(("confidence", "place"), [(0.0, 0), (0.1, 0), (0.10001, 1), (0.3, 2), (0.6, 5), (1.0, 9)])
def test_a_bin_is_open_below_and_closed_above_and_zero_is_in_the_first(confidence: float, place: int) -> None:
    """An answer in the same bin offsets the other's gap; in another bin both gaps count."""
    inside = place / 10 + 0.05
    confidences = np.array([confidence, inside])
    together = calibration_error(confidences, np.array([1.0, 0.0]), linspace_bins(confidences, 10), 10)
    assert together == pytest.approx(abs(1 - confidence - inside) / 2)


def test_calibration_measures_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import brier_score_loss, roc_auc_score

    rng = np.random.default_rng(1)
    right, confidence = (rng.random(50) < 0.6).astype(float), rng.integers(0, 6, 50) / 5
    assert brier(confidence, right) == pytest.approx(brier_score_loss(right, confidence))
    assert auroc(confidence, right) == pytest.approx(roc_auc_score(right, confidence))
    assert auroc(np.ones(3), np.ones(3)) is None
    assert brier(np.ones(0), np.ones(0)) is calibration_error(np.ones(0), np.ones(0), np.ones(0, dtype=np.int64)) is None


def test_the_risk_coverage_area_of_ties_is_that_of_a_random_order() -> None:
    right, confidence = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.5, 0.5, 0.5])
    orders = [[0, 1, 2, 3], [0, 2, 1, 3], [0, 2, 3, 1], [0, 3, 2, 1], [0, 1, 3, 2], [0, 3, 1, 2]]
    wanted = np.mean([np.mean(np.cumsum(1 - right[order]) / np.arange(1, 5)) for order in orders])
    assert risk_coverage_area(confidence, right) == pytest.approx(wanted)
    assert risk_coverage_area(np.zeros(0), np.zeros(0)) is None


@pytest.mark.parametrize(
    ("series", "value", "label"),
    [
        ("class", " Tumor ", "tumor"),
        ("class", "low-grade GLIOMA", "tumor"),
        ("class", "tumour", "tumour"),
        ("class", "cortical atrophy with glioma", "other abnormalities"),
        ("class", "hemorrhagic glioma", "tumor"),
        ("class", "acute ischemic infarct", "stroke"),
        ("class", "multipleSclerosis", "multiple sclerosis"),
        ("class", "Brain", U),
        ("class", None, U),
        ("class", "None", "none"),
        ("class", ["glioma"], "tumor"),
        ("sub", "pituitary_tumor", "pituitary tumor"),
        ("sub", "Central Neurocytoma", "neurocitoma"),
        ("sub", "choroid plexus papilloma", "choroid plexus papilloma"),
        ("sub", "metastatic carcinoma or meningioma", "meningioma"),
        ("sub", "metastasis of a meningioma", U),
        ("sub", "intracerebral", "hemorrhagic"),
        ("sub", "hemorrhagic stroke", "hemorrhagic stroke"),
        ("mod", "functional mr", "mri"),
        ("mod", "none", "none"),
        ("mod_sub", "T1 with contrast", "t1c+"),
        ("mod_sub", "n/a", U),
        ("pl", "s", "sagittal"),
        ("pl", 5, "5"),
    ],
)
def test_labels_are_spelled_as_the_published_evaluator_spells_them(series: str, value: object, label: str) -> None:
    assert published_label(series, value) == label
    if str(value) not in {"metastatic carcinoma or meningioma", "intracerebral"}:  # the literal reading does not know these two
        assert literal_label(series, value) == label


def test_a_failed_call_counts_for_json_alone_and_a_failed_parse_counts_as_valid(tmp_path: Path) -> None:
    lines = [line(), line(picture="b.png", status="error", answer=None), line(picture="c.png", answer={"error": "x", "raw_response": "y"})]
    found = compatible(tmp_path, lines)["m"]
    assert found["json_valid_pct"] == pytest.approx(200 / 3)
    assert found["micro_f1"] == 0.5
    mended = corrected(tmp_path, lines)["m"]
    assert mended["fields"]["class"]["plain_accuracy"] == {"value": 1 / 3, "count": 1, "n": 3}
    assert mended["calls"]["failed"] == {"value": 1 / 3, "count": 1, "n": 3}
    assert mended["validity"]["parse"] == {"value": 1 / 3, "count": 1, "n": 3}


def test_a_model_of_which_every_call_failed_has_no_quality_and_is_still_there(tmp_path: Path) -> None:
    found = compatible(tmp_path, [line(), line("gone", status="error", answer=None)])["gone"]
    assert found.pop("json_valid_pct") == 0.0
    assert set(found.values()) == {None}
    mended = corrected(tmp_path, [line(), line("gone", status="error", answer=None)])["gone"]["fields"]["class"]
    assert (mended["plain_accuracy"]["value"], mended["brier_pessimistic"]["value"], mended["risk_coverage_area"]["value"]) == (
        0.0,
        1.0,
        1.0,
    )
    assert mended["selective_accuracy"] == {"value": None, "count": 0, "n": 0}


def test_a_picture_that_another_model_was_asked_is_expected_of_all_unless_said_otherwise(tmp_path: Path) -> None:
    lines = [line("a", "1.png"), line("a", "2.png"), line("b", "1.png"), line("b", "1.png", status="error", answer=None)]
    found = corrected(tmp_path, lines)["b"]
    assert found["calls"]["absent"] == {"value": 0.5, "count": 1, "n": 2}
    assert found["calls"]["further_rows"] == 1
    assert found["fields"]["class"]["plain_accuracy"] == {"value": 0.5, "count": 1, "n": 2}
    assert corrected(tmp_path, lines, own_pictures=True)["b"]["fields"]["class"]["plain_accuracy"] == {"value": 1.0, "count": 1, "n": 1}
    assert compatible(tmp_path, lines)["b"]["micro_f1"] == 1.0, "the published evaluator does not notice"


def test_free_words_do_not_move_the_divisor_and_are_counted_apart(tmp_path: Path) -> None:
    lines = pairs(("normal", "normal"), ("normal", "lymphoma"), ("stroke", "infarct")) + pairs(
        ("normal", "normal"), ("normal", "stroke"), ("stroke", "normal"), model="other"
    )
    found = corrected(tmp_path, lines)
    first, second = (found[model]["fields"]["class"] for model in ("m", "other"))
    assert first["macro_f1_over_reference_labels"] == {"value": pytest.approx(2 / 3 / 2), "labels": 2, "n": 3}
    assert second["macro_f1_over_reference_labels"]["labels"] == 2
    assert first["out_of_vocabulary"] == {"value": 2 / 3, "count": 2, "n": 3}
    assert second["out_of_vocabulary"]["count"] == 0
    assert first["commonest_label"] == {"value": 2 / 3, "count": 2, "n": 3}
    assert first["balanced_accuracy"] == {"value": 0.25, "n": 3}


def test_spellings_are_the_same_in_reference_and_answer(tmp_path: Path) -> None:
    """The published reference spells a papilloma in Portuguese, its prompt in English."""
    found = corrected(tmp_path, [line(answer=said(diagnosis_detailed="papilloma"), subclass="papiloma")])["m"]["fields"]["subtype"]
    assert found["plain_accuracy"]["value"] == 1.0
    assert found["out_of_vocabulary"]["count"] == 0


def test_without_a_usable_confidence_an_answer_is_read_to_its_loss(tmp_path: Path) -> None:
    lines = pairs(("normal", "normal"), ("stroke", "normal"), ("tumor", "tumor"))
    for entry, confidence in zip(lines, (7, None, "0.9"), strict=True):
        entry["output"]["parsed_response"]["diagnosis_confidence"] = confidence  # type: ignore[index]
    found = corrected(tmp_path, lines)["m"]["fields"]["class"]
    assert found["confidence_stated"]["count"] == 0
    assert found["confidence_unusable"]["count"] == 2
    assert found["brier_pessimistic"] == {"value": 1.0, "n": 3}
    assert found["ece_of_stated_confidence"] == {"value": None, "n": 0}


def test_abstaining_never_helps(tmp_path: Path) -> None:
    """Replacing a wrong answer by null improves no metric over all expected answers."""
    lines = pairs(("normal", "normal"), ("stroke", "normal"), ("tumor", "normal"))
    before = corrected(tmp_path, lines)["m"]["fields"]["class"]
    lines[1]["output"]["parsed_response"] |= {"diagnosis_name": None, "diagnosis_confidence": None}  # type: ignore[index]
    after = corrected(tmp_path, lines)["m"]["fields"]["class"]
    for name in ("plain_accuracy", "balanced_accuracy"):
        assert after[name]["value"] <= before[name]["value"]
    for name in ("brier_pessimistic", "ece_pessimistic"):
        assert after[name]["value"] >= before[name]["value"], name
    assert compatible(tmp_path, lines)["m"]["brier"] < 0.5, "while the published Brier score falls"


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({}, 4),
        ({"diagnosis_name": "normal"}, 3),
        ({"diagnosis_name": "normal", "diagnosis_detailed": None}, 4),
        ({"modality": "CT"}, 3),
        ({"modality": "CT", "specialized_sequence": None}, 4),
        ({"plane": "oblique"}, 2),
        ({"plane": "Axial"}, 2),
        ({"diagnosis_detailed": "pituitary tumor"}, 2),
        ({"diagnosis_detailed": "pituitary_tumor"}, 4),
        ({"diagnosis_confidence": 90}, 2),
        ({"severity_score": True}, 2),
        ({"modality": ["MRI"]}, 2),
    ],
)
def test_validity_goes_step_by_step(changes: dict[str, object], passed: int) -> None:
    assert PUBLISHED.passed(ANSWER | changes) == passed
    assert PUBLISHED.passed({key: value for key, value in ANSWER.items() if key != "plane"}) == 1
    assert PUBLISHED.passed({}) == PUBLISHED.passed(None) == 0
    assert len(STEPS) == 4


HOSTILE = [
    '{"input": null, "output": null}',
    '{"input": {"model_requested": "m", "metadata": null, "image_path": 3}, "output": {"status": "success", "parsed_response": [1]}}',
    '{"input": {"model_requested": ["m"]}, "output": {"status": "success"}}',
    '{"input": {"model_requested": "\\ud800"}, "output": {"status": "success", "parsed_response": "text"}}',
    '{"input": {"model_requested": "m", "metadata": {"class": ["tumor"]}}, "output": {"status": "success", "parsed_response": {"plane": {}}}}',
    "[" * 5000,
    '{"output": ' + "1" * 5000 + "}",
    "null",
    "NaN",
    "\ufeff{}",
]


def test_hostile_lines_are_counted_and_nothing_crashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "hostile.jsonl", tmp_path / "out.json"
    path.write_bytes(jsonl([*HOSTILE, line()]).encode() + b'{"input": "\xff"}\r\n\n')
    for extra in ([], ["--compatible"], ["--own-pictures"]):
        assert score_structured.main(["--predictions", str(path), "--out", str(out), *extra]) == 0
        reading = json.loads(out.read_text())["reading"]
        assert reading["lines"] == 12
        assert reading["not_utf8"] == 1
        assert reading["malformed"] == 3
        assert reading["not_object"] == 2
        said_on = capsys.readouterr().err
        assert said_on.count("\n") == 1
        assert "3 lines are not valid JSON" in said_on


@pytest.mark.parametrize("content", [b"", b"\n\n", b"{broken", b"\xff\xfe{\x00}\x00", b"[1]", b'{"output": {"status": "error"}}'])
def test_a_file_without_a_usable_line_is_one_line_of_error(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nothing.jsonl"
    path.write_bytes(content)
    command = ["--predictions", str(path), "--out", str(tmp_path / "out.json")]
    assert run_command(score_structured.main, command) == DataError.exit_code
    assert capsys.readouterr().err.startswith("DataError: nothing.jsonl: no line has an answer of a model")
    assert not (tmp_path / "out.json").exists()


def test_a_file_that_cannot_be_read_is_one_line_of_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path / "absent.jsonl", tmp_path):
        assert run_command(score_structured.main, ["--predictions", str(path), "--out", str(tmp_path / "o.json")]) == DataError.exit_code
        assert capsys.readouterr().err.count("\n") == 1


def test_only_the_published_evaluator_loses_the_line_behind_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "mark.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + jsonl([line(), line(picture="b.png")]).encode())
    assert len(read_predictions(path).rows) == 2
    assert len(read_predictions(path, skip_byte_order_mark=False).rows) == 1


def test_the_two_settings_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="own-pictures"):
        score_structured.main(["--predictions", "x", "--out", str(tmp_path / "o.json"), "--compatible", "--own-pictures"])
