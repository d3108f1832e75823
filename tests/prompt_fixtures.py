"""Items, examples and requests for the tests of prompts, arms and strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conftest import ROOT
from items_fixtures import benchmark_config
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.assemble import Shown, assemble
from neuralmedbench.records.items import Axis, Disclosure, Exemplar, Family, Item, ItemImage, Level, Runner
from neuralmedbench.records.requests import Request

TEMPLATES = Templates(ROOT / "config" / "prompts")
NOTES = "A woman of 61 years woke with a weak left arm. Blood pressure 170/95 mmHg."
RECORD = "age: 61 years\nsodium: 138 mmol/L"
OPTIONS = ("cerebral infarction", "glioblastoma", "multiple sclerosis")


def picture(name: str, *, patient: str = "p1", label: str = "", sequence: str = "FLAIR") -> ItemImage:
    """Give a slice of a scan."""
    return ItemImage(
        image_id=name, path=f"data/slices/b/{patient}/{name}.png", sha256=f"{patient}-{name}", volume_sha256=f"volume-{patient}",
        sequence=sequence, plane="axial", role="slice", position_mm=12.0, mm_per_px=1.0, oracle=False, label=label,
    )  # fmt: skip


def question(name: str = "q1", patient: str = "p1", **changes: object) -> Item:
    """Give an item of choice with notes, a record and two pictures."""
    item = Item(
        item_id=f"b/{name}",
        case_id=name,
        patient_id=patient,
        benchmark="b",
        axis=Axis.DEPTH,
        family=Family.QUESTION_ANSWERING,
        level=Level.DIRECT,
        runner=Runner.CHOICE,
        question="Which diagnosis is the most likely one?",
        options=OPTIONS,
        images=(picture("z10", patient=patient), picture("z20", patient=patient, label="Figure B")),
        notes=NOTES,
        record=RECORD,
    )
    return replace(item, **changes)  # type: ignore[arg-type]


def open_question(name: str = "q1", patient: str = "p1", **changes: object) -> Item:
    """Give an item with a free answer."""
    return question(name, patient, **{"runner": Runner.OPEN, "options": (), "question": "What is seen in Figure B?", **changes})


def exemplar(item: Item, answer: str = "ANSWER: B\nCONFIDENCE: 1") -> Exemplar:
    """Give an answered example."""
    return Exemplar(item=item, answer=answer)


def asked(
    items: Sequence[Item], *, disclosures: Sequence[Disclosure] = (), exemplars: Sequence[Exemplar] = (), **changes: object
) -> dict[tuple[str, str, str], Request]:
    """Give the requests of items by item, arm and strategy."""
    config = benchmark_config(**{"arms": ["full"], **changes})
    rows = assemble(items, Shown(disclosures, exemplars), config, TEMPLATES)
    return {(row.item_id.removeprefix("b/"), row.arm, row.strategy): row for row in rows}


def said(request: Request) -> str:
    """Words of a request."""
    return "\n".join([request.system, *(turn.text for turn in request.turns)])


def labels(request: Request) -> list[str]:
    """Labels of its pictures."""
    return [image.label for turn in request.turns for image in turn.images]


def written(request: Request) -> str:
    """Write a request down as the frozen files hold it."""
    parts = [f"[system]\n{request.system}"]
    for turn in request.turns:
        parts += [f"[user]\n{turn.text}", *(f"[picture] {image.label}" for image in turn.images)]
    if request.inquiry:
        parts += [f"[told when it is asked for]\n{fact.text}" for fact in request.inquiry.facts]
        parts += [f"[{name}]\n{getattr(request.inquiry, name)}" for name in ("unknown", "left", "closing")]
    if request.answer_schema and request.strategy != "direct":
        parts.append(f"[answer schema]\n{request.answer_schema}")
    return "\n".join(parts) + "\n"
