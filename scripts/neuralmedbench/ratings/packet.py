"""One rater's packet: what it shows as data, and the offline page that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.ratings.exports import Form
from neuralmedbench.ratings.page import HERE, Json, form_page
from neuralmedbench.records.requests import RequestTurn

TITLE = "Rating of answers"


def shown_item(item_id: str, group: str, sent: Sequence[RequestTurn], answers: Sequence[str], reference: Sequence[str]) -> Json:
    """Give one answer as the page reads it: each message with its pictures by digest and label, and what was answered to it.

    Parameters
    ----------
    item_id : str
        The opaque id.
    group : str
        The same for answers to the same case: the page tells by it that a reference was seen before.
    sent : sequence of RequestTurn
        The messages as they were sent; answered examples of other patients are left out.
    answers : sequence of str
        One a message.
    reference : sequence of str
        What is right, in lines; empty when the page must not hold it.
    """
    turns = [
        {
            "text": turn.text[turn.example_characters :].strip(),
            "pictures": [[image.sha256, image.label] for image in turn.images if not image.example],
            "answer": answer,
        }
        for turn, answer in zip(sent, answers, strict=True)
    ]
    return {"item_id": item_id, "group": group, "turns": turns, "reference": list(reference)}


def packet_data(packet_id: str, rater: str, form: Form, items: Sequence[Json], pictures: Mapping[str, str]) -> Json:
    """Put together what a packet shows; `packet_sha256` is the digest of all the rest."""
    axes = [
        {"name": name, "question": axis.question, "lowest": axis.lowest, "highest": axis.highest, "anchors": list(axis.anchors)}
        for name, axis in form.axes.items()
    ]
    needed = {digest for item in items for turn in item["turns"] for digest, _ in turn["pictures"]}
    data = {
        "packet_id": packet_id,
        "rater": rater,
        "rubric": form.rubric,
        "axes": axes,
        "errors": list(form.errors),
        "first_judgement": list(form.rounds.first_judgement),
        "items": list(items),
        "pictures": {digest: pictures[digest] for digest in sorted(needed)},
    }
    return data | {"packet_sha256": sha256_of_value(data)}


def packet_page(data: Json, title: str = TITLE) -> str:
    """Render the page of a packet, whose data :func:`packet_data` gives."""
    return form_page(title, data, HERE / "packet")
