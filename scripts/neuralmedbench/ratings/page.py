"""The offline page of a packet: the frame shared by all forms, the form of a rating round, and the pictures that models were sent."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from neuralmedbench.errors import DataError
from neuralmedbench.files.digests import bytes_with_digest, sha256_of_value
from neuralmedbench.files.pages.page import page_templates, render_page
from neuralmedbench.files.texts import visible
from neuralmedbench.ratings.form import RatingForm
from neuralmedbench.records.requests import RequestTurn

HERE = Path(__file__).parent

Json = dict[str, Any]
RATING_TITLE = "Rating of answers"


def answer_data(item_id: str, group: str, sent: Sequence[RequestTurn], answers: Sequence[str], reference: Sequence[str]) -> Json:
    """Return one answer as the page reads it: each message with its pictures by digest and label, and the answer to it.

    `group` is the same for answers to one case, so that the page detects a reference that was seen before. Few-shot examples in `sent` are
    left out, invisible characters are shown; `reference` is empty if the page must not contain it.
    """
    turns = [
        {
            # few-shot examples are cut from text and pictures
            "text": visible(turn.words[turn.example_characters :].strip()),
            "pictures": [[image.sha256, image.label] for image in turn.images if not image.example],
            "answer": visible(answer),
        }
        for turn, answer in zip(sent, answers, strict=True)
    ]
    return {"item_id": item_id, "group": group, "turns": turns, "reference": list(reference)}


def packet_data(packet_id: str, rater: str, form: RatingForm, items: Sequence[Json], pictures: Mapping[str, str]) -> Json:
    """Return the data of a packet's page; `packet_sha256` is the digest of all other keys."""
    axes = [
        {"name": name, "question": axis.question, "lowest": axis.lowest, "highest": axis.highest, "anchors": list(axis.anchors)}
        for name, axis in form.axes.items()
    ]
    # pictures may have been read for more items than this packet shows
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


def packet_page(data: Json, title: str = RATING_TITLE) -> str:
    """Render the page of a packet from the data of :func:`packet_data`."""
    return form_page(title, data, HERE / "packet")


def form_page(title: str, data: Json, form: Path) -> str:
    """Render the page of a packet from its data, the shared files, and the files of its form (`.html.j2`, `.css`, `.js`), which follow them.

    A browser never reads texts of the data as HTML; the script shows them as text.
    """
    styles, scripts = ([HERE / f"page{ending}", form.with_suffix(ending)] for ending in (".css", ".js"))
    return render_page(
        form.with_suffix(".html.j2"),
        {"title": title, "data": data},
        styles=styles,
        scripts=scripts,
        environment=page_templates(form.parent, HERE),
    )


def read_pictures(turns: Iterable[RequestTurn], root: Path) -> dict[str, str]:
    """Read the pictures of messages: the bytes that were sent, in base64, by SHA-256; DataError if one is missing or has changed."""
    pictures: dict[str, str] = {}
    for image in (image for turn in turns for image in turn.images if not image.example):
        if image.sha256 in pictures:
            continue
        content = bytes_with_digest(root / image.path, image.sha256)
        if content is None:
            message = f"picture {image.sha256[:12]} is missing or not the one that was sent; run the workflow first"
            raise DataError(message)
        pictures[image.sha256] = base64.b64encode(content).decode("ascii")
    return pictures
