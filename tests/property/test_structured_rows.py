"""Files of structured answers: no line can stop the scoring, and no abstention earns anything."""

from __future__ import annotations

import copy
import json
import math
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.structured import ANSWER, line, said
from neuralmedbench.errors import DataError
from neuralmedbench.files.json_files import write_json
from neuralmedbench.scoring.structured.form import STEPS, form_of
from neuralmedbench.scoring.structured.metrics import compatible_metrics, corrected_metrics
from neuralmedbench.scoring.structured.prediction_rows import read_predictions

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["tumor", "success", "nan", "MRI", "s", "1e400"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6
)
PATHS = st.sampled_from(
    [
        ("input",),
        ("output",),
        ("input", "model_requested"),
        ("input", "image_path"),
        ("input", "metadata"),
        ("output", "status"),
        ("output", "parsed_response"),
        *(("input", "metadata", key) for key in ("class", "subclass", "modality", "axial_plane")),
        *(("output", "parsed_response", key) for key in ANSWER),
    ]
)


@st.composite
def nearly_right(draw: st.DrawFn) -> str:
    """Draw a line in the published form of which up to two places hold anything."""
    entry = line(draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["1.png", "2.png"])), answer=copy.deepcopy(ANSWER))
    for path in draw(st.lists(PATHS, max_size=2)):
        place = entry
        for key in path[:-1]:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[path[-1]] = draw(VALUES)
    return json.dumps(entry)


LINES = st.lists(st.one_of(nearly_right().map(str.encode), VALUES.map(json.dumps).map(str.encode), st.binary(max_size=30)), max_size=6)


@settings(max_examples=150)
@given(LINES)
def test_no_file_stops_the_scoring_and_every_number_can_be_written(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "predictions.jsonl"
        path.write_bytes(b"\n".join(lines))
        try:
            found = read_predictions(path)
        except DataError:
            return
        published, mended = compatible_metrics(found.rows), corrected_metrics(found.rows)
        write_json(path, {"models": [published, mended], "reading": found.reading})
    for metrics in published.values():
        assert all(value is None or (math.isfinite(value) and 0 <= value <= 100) for value in metrics.values())
    for metrics in mended.values():
        shares = [*metrics["validity"].values(), *(metric for field in metrics["fields"].values() for metric in field.values())]
        assert all(share["value"] is None or -1e-9 <= share["value"] <= 1 + 1e-9 for share in shares)
        passed = [metrics["validity"][step]["count"] for step in STEPS]
        assert passed == sorted(passed, reverse=True)


CLASSES = st.sampled_from(["tumor", "stroke", "normal"])
ANSWERS = st.lists(st.tuples(CLASSES, CLASSES, st.integers(0, 20).map(lambda steps: steps / 20)), min_size=1, max_size=12)


@settings(max_examples=100)
@given(ANSWERS, st.data())
def test_an_answer_withdrawn_never_makes_a_metric_over_all_answers_better(
    answers: list[tuple[str, str, float]], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(answers) - 1))
    full = [
        line("m", f"{number}.png", answer=said(diagnosis_name=given, diagnosis_confidence=confidence), **{"class": true})
        for number, (true, given, confidence) in enumerate(answers)
    ]
    withdrawn = copy.deepcopy(full)
    withdrawn[place]["output"]["parsed_response"] |= {"diagnosis_name": None, "diagnosis_confidence": None}
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for number, lines in enumerate((full, withdrawn)):
            path = Path(folder) / f"{number}.jsonl"
            path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
            found.append(corrected_metrics(read_predictions(path).rows)["m"]["fields"]["class"])
    before, after = found
    for name in ("plain_accuracy", "balanced_accuracy", "coverage"):
        assert after[name]["value"] <= before[name]["value"] + 1e-9
    for name in ("brier_pessimistic", "ece_pessimistic"):
        assert after[name]["value"] >= before[name]["value"] - 1e-9


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["class", "subtype", "modality", "confidence", "plane", "x"]), VALUES, max_size=6))
def test_any_object_passes_some_number_of_steps(answer: dict[str, object]) -> None:
    schema = json.dumps({"properties": {"class": {"enum": ["tumor", None]}, "subtype": {"enum": ["glioma", None]}, "confidence": {}}})
    for form in (form_of(""), form_of(schema)):
        assert (form.passed(answer) == 0) == (not answer)
