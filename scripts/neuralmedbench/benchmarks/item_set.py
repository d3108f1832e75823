"""The items, gold and disclosures of a benchmark, and its few-shot examples."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Disclosure, Exemplar, Gold, Item, Runner, ShownLesion, gold_fields
from neuralmedbench.records.value_rules import example_of, fields_of, problem_of_values

LABELLED = frozenset({"modality", "sequence", "plane"})
"""Answer fields that the label of a picture would reveal."""


@dataclass(frozen=True)
class BenchmarkItems:
    """Everything that is built from a benchmark's cases or questions.

    Attributes
    ----------
    items, gold : tuple
        The items, and the gold of those that have an answer.
    disclosures, lesions : tuple
        Texts that an arm may disclose, and the visibility of the lesion per picture.
    exemplars : tuple
        Few-shot examples.
    oracle : tuple
        Slices that were cut at the lesion for an arm, beside the pictures of the items.
    """

    items: tuple[Item, ...]
    gold: tuple[Gold, ...]
    disclosures: tuple[Disclosure, ...] = ()
    lesions: tuple[ShownLesion, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()
    oracle: tuple[SliceRow, ...] = ()

    def checked(self, benchmark: str) -> BenchmarkItems:
        """Validate, and return itself.

        DataError: no item, a repeated id, gold without an item, a reference value that no rule can use, or oracle slices mixed with others. ConfigError: picture labels would
        reveal what is asked.
        """
        ids = [item.item_id for item in self.items]
        if not ids:
            message = f"{benchmark}: no item: every case or picture was excluded or quarantined; the reasons are in its case records"
            raise DataError(message)
        answered = {gold.item_id for gold in self.gold} | {shown.item_id for shown in self.disclosures}
        if len(set(ids)) != len(ids) or not answered <= set(ids):
            message = f"{benchmark}: item ids are not unique, or gold names a missing item"
            raise DataError(message)
        schemas = {item.item_id: item.answer_schema for item in self.items}
        for gold in self.gold:
            if reason := problem_of_values(schemas[gold.item_id], gold):
                message = f"{gold.item_id}: {reason}; correct it in answers.jsonl, or import the data set again"
                raise DataError(message)
        # labels must not reveal scored fields
        scored = {gold.item_id for gold in self.gold if gold.fields and LABELLED & gold_fields(gold.fields).keys()}
        if any(item.item_id in scored and item.label_policy != "none" for item in self.items):
            message = f"{benchmark}: picture labels would reveal sequence and plane, which are asked for; set label_policy: none"
            raise ConfigError(message)
        # slices chosen with the answer must not be mixed with others
        shown = (*self.items, *(exemplar.item for exemplar in self.exemplars))
        if len({image.oracle for item in shown for image in item.images}) > 1:
            message = f"{benchmark}: slices chosen with the answer are mixed with others; run slices again for all cases"
            raise DataError(message)
        return self


def exemplars_of(items: Iterable[Item], gold: Mapping[str, Gold]) -> tuple[Exemplar, ...]:
    """Make few-shot examples of items that are never asked, if their gold answer can be written in the form of their runner.

    Ranked differentials and dialogues have no such form.
    """
    answered = ((item, _answer(item, gold[item.item_id])) for item in items if item.item_id in gold)
    return tuple(Exemplar(item=item, answer=answer) for item, answer in answered if answer)


def _answer(item: Item, gold: Gold) -> str:
    # the answer in the form that the prompt requests, with full confidence
    if item.runner is Runner.STRUCTURED and gold.values:
        stated = {value.field: example_of(value) for value in gold.values}
        return json.dumps({name: stated.get(name) for name in fields_of(item.answer_schema)} | {"confidence": 1})
    if item.runner is Runner.STRUCTURED and gold.fields is not None:
        known = gold_fields(gold.fields) | {"confidence": 1}
        keys = json.loads(item.answer_schema).get("properties", {}) if item.answer_schema else known
        return json.dumps({key: known.get(key) for key in keys})
    if item.runner is Runner.CHOICE and gold.choice:
        return f"ANSWER: {gold.choice}\nCONFIDENCE: 1"
    if item.has_free_answer and gold.answer:
        return f"ANSWER: {gold.answer}\nCONFIDENCE: 1"
    return ""
