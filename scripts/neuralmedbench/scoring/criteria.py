"""The criteria of an item's rubric, judged by words: side, place, signal, alternatives, statements."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.records.items import Criterion, Gold, Lesion
from neuralmedbench.records.scores import Prediction
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.matching import REFERENCE_KEY, Reference, location_right, reference_rank, side_right
from neuralmedbench.scoring.statements import says
from neuralmedbench.scoring.terms import mentioned_places

SIGNALS = {
    "hyperintense": ("hyperintense", "hyperintensity", "hyperintensities", "bright", "high signal", "increased signal", "elevated signal"),
    "hypointense": ("hypointense", "hypointensity", "dark", "low signal", "decreased signal", "signal loss"),
    "isointense": ("isointense", "iso intense"),
    "hyperdense": ("hyperdense", "hyperdensity", "hyperattenuating", "dense", "high density"),
    "hypodense": ("hypodense", "hypodensity", "hypoattenuating", "low density"),
    "enhancing": ("enhancing", "enhancement", "enhances"),
    "restricted": ("restricted", "restriction", "restricts"),
}
"""Words for one behaviour of a lesion."""

SEQUENCE_WORDS = {"t1w": ("t1",), "cet1w": ("contrast", "gadolinium", "post contrast", "t1c"), "t2w": ("t2",), "dwi": ("dwi", "diffusion")}


def meets(prediction: Prediction, reference: Reference, criterion: Criterion) -> bool:
    """Judge whether an answer meets one criterion of the item's rubric.

    Parameters
    ----------
    prediction : Prediction
        The answer as read.
    reference : Reference
        The right answer.
    criterion : Criterion
        Its kind is the start of its name: `states_side`, `states_location`, `names_signal_`, `considers_`, `must_not_`.
        Any other one is a statement (what stands behind the first colon of its text) that the findings or the rationale
        must hold. A diagnosis that must not be named costs its points only on rank 1.

    Returns
    -------
    bool
        Whether it is met; for a criterion with negative points that is bad.
    """
    name = criterion.criterion
    statement = (criterion.text.partition(": ")[2] or criterion.text).rstrip(".")
    lesion = reference.gold.lesion
    if lesion and name.startswith(("states_side", "states_location", "names_signal_")):
        return _meets_lesion(prediction, reference, lesion, name)
    if name.startswith(("considers_", "must_not_")):
        diagnosis = Reference.of(Gold(item_id=reference.gold.item_id, answer=statement), reference.vocabulary)
        if name.startswith("considers_"):
            return reference_rank(prediction.differential, diagnosis) is not None
        if diagnosis.entry.key != REFERENCE_KEY:
            return reference_rank(prediction.differential[:1], diagnosis) is not None
    return says(f"{prediction.findings} {prediction.rationale}", statement)


def _meets_lesion(prediction: Prediction, reference: Reference, lesion: Lesion, name: str) -> bool:
    fields = prediction.fields or {}
    if name == "states_side":
        return side_right(fields.get("side", prediction.findings), lesion)
    if name == "states_location" and "location" in fields:
        return location_right(fields["location"], lesion, reference.vocabulary)
    if name == "states_location":
        place = reference.vocabulary.places.get(normal_form(lesion.location), lesion.location)
        return place in mentioned_places(prediction.findings, reference.vocabulary)
    sequence = name.removeprefix("names_signal_")
    behaviour = {key.lower(): value for key, value in lesion.behaviour.items()}.get(sequence, "")
    return _names_signal(f"{prediction.findings} {prediction.rationale}", sequence, behaviour)


def _names_signal(text: str, sequence: str, behaviour: str) -> bool:
    sequences = SEQUENCE_WORDS.get(sequence, (sequence,))
    signals = SIGNALS.get(behaviour, (behaviour,))
    sentences = [f" {normal_form(part)} " for part in text.split(".")]
    return any(_holds(part, sequences) and (_holds(part, signals) or says(part, behaviour)) for part in sentences)


def _holds(sentence: str, words: Iterable[str]) -> bool:
    return any(f" {normal_form(word)} " in sentence for word in words)
