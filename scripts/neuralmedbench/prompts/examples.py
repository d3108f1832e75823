"""Few-shot prompts: answered examples of the data set, shown before the item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import evidence_images, within_words
from neuralmedbench.prompts.labels import labelled_images
from neuralmedbench.records.items import OPTION, Exemplar, Item, ItemImage, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import RequestImage


def examples_for(item: Item, exemplars: Sequence[Exemplar], config: BenchmarkConfig) -> list[Exemplar]:
    """Choose examples for an item: same runner and family, another patient, and no shared picture; none for a dialogue."""
    of_item = {image.sha256 for image in item.images}
    # some published splits have slices of one patient, or copies of one picture, in both parts
    fitting = [
        exemplar
        for exemplar in exemplars
        if item.runner is not Runner.DIALOGUE
        and (exemplar.item.runner, exemplar.item.family) == (item.runner, item.family)
        and exemplar.item.patient_id != item.patient_id
        and of_item.isdisjoint(image.sha256 for image in exemplar.item.images)
    ]
    return [replace(exemplar, item=within_words(exemplar.item, config.max_case_words)[0]) for exemplar in fitting[: config.few_shot]]


def example_text(item: Item, examples: Sequence[Exemplar], templates: Templates) -> str:
    """Render the text of the examples, each with its answer; they have case text and pictures only if the item does."""
    has_text = bool(item.notes or item.record)
    rendered = [
        {
            "question": example.item.question,
            "notes": example.item.notes if has_text else "",
            "record": example.item.record if has_text else "",
            "options": lettered_options(example.item),
            "pictures": bool(_example_images(item, example.item)),
            "answer": example.answer,
        }
        for example in examples
    ]
    return templates.render("few_shot", examples=rendered)


def example_pictures(item: Item, examples: Sequence[Exemplar]) -> tuple[RequestImage, ...]:
    """Return the pictures of the examples, labelled like the item's and numbered by example; none if the item shows none."""
    return tuple(
        replace(image, label=f"Example {number}, {image.label}", example=True)
        for number, example in enumerate(examples, start=1)
        for image in labelled_images(replace(example.item, label_policy=item.label_policy), _example_images(item, example.item))
    )


def _example_images(item: Item, example: Item) -> tuple[ItemImage, ...]:
    """Return the pictures of an example: its options, and the others if the item shows such pictures."""
    return tuple(image for image in example.images if image.role == OPTION or evidence_images(item))


def lettered_options(item: Item) -> list[tuple[str, str]]:
    """Pair the options of a choice item with their letters."""
    return list(zip(LETTERS, item.options, strict=False))
