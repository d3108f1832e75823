"""Few-shot prompts: answered examples of the data set, shown before the item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from neuralmedbench.config.benchmark import BenchmarkConfig
from neuralmedbench.files.templates import Templates
from neuralmedbench.prompts.arms import evidence, within_words
from neuralmedbench.prompts.labels import labelled
from neuralmedbench.records.items import OPTION, Exemplar, Item, ItemImage, Runner
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import RequestImage


def examples_for(item: Item, exemplars: Sequence[Exemplar], config: BenchmarkConfig) -> list[Exemplar]:
    """Choose the examples that an item may be shown."""
    own = {image.sha256 for image in item.images}
    fitting = [
        exemplar
        for exemplar in exemplars
        if item.runner is not Runner.DIALOGUE
        and (exemplar.item.runner, exemplar.item.family) == (item.runner, item.family)
        and exemplar.item.patient_id != item.patient_id
        and own.isdisjoint(image.sha256 for image in exemplar.item.images)
    ]
    return [replace(exemplar, item=within_words(exemplar.item, config.max_case_words)[0]) for exemplar in fitting[: config.few_shot]]


def example_text(item: Item, examples: Sequence[Exemplar], templates: Templates) -> str:
    """Words of the examples, each with its answer; they show text and pictures only where the item does."""
    told = bool(item.notes or item.record)
    shown = [
        {
            "question": example.item.question,
            "notes": example.item.notes if told else "",
            "record": example.item.record if told else "",
            "options": lettered(example.item),
            "pictures": bool(_shown(item, example.item)),
            "answer": example.answer,
        }
        for example in examples
    ]
    return templates.render("few_shot", examples=shown)


def example_pictures(item: Item, examples: Sequence[Exemplar]) -> tuple[RequestImage, ...]:
    """Pictures of the examples, labelled as the item's are, behind the number of their example; none where the item shows none."""
    return tuple(
        replace(image, label=f"Example {number}, {image.label}", example=True)
        for number, example in enumerate(examples, start=1)
        for image in labelled(replace(example.item, label_policy=item.label_policy), _shown(item, example.item))
    )


def _shown(item: Item, example: Item) -> tuple[ItemImage, ...]:
    """Pictures of an example: its options, and the others where the item shows such."""
    return tuple(image for image in example.images if image.role == OPTION or evidence(item))


def lettered(item: Item) -> list[tuple[str, str]]:
    """Give the options of an item of choice with their letters."""
    return list(zip(LETTERS, item.options, strict=False))
