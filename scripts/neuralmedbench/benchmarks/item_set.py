"""The items, gold and disclosures that a benchmark is made of, and the examples for few-shot prompts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.records.items import Disclosure, Exemplar, Family, Gold, Item, Runner, ShownLesion, gold_fields

LABELLED = frozenset({"modality", "sequence", "plane"})
"""Fields of an answer that the label of a picture would give away."""


@dataclass(frozen=True)
class BenchmarkItems:
    """What an adapter gives.

    Attributes
    ----------
    items, gold : tuple
        What is asked, and what is right for those that have an answer.
    disclosures, lesions : tuple
        What an arm may show of it, and what pictures show of it.
    exemplars : tuple
        Examples that few-shot prompts may show.
    """

    items: tuple[Item, ...]
    gold: tuple[Gold, ...]
    disclosures: tuple[Disclosure, ...] = ()
    lesions: tuple[ShownLesion, ...] = ()
    exemplars: tuple[Exemplar, ...] = ()

    def checked(self, benchmark: str) -> BenchmarkItems:
        """Give itself, or refuse what no adapter may give.

        DataError: no item, a repeated id, gold without an item, or slices chosen with the answer beside others. ConfigError: pictures
        would be labelled with what is asked for.
        """
        ids = [item.item_id for item in self.items]
        if not ids:
            message = f"{benchmark}: no item: every case or picture was excluded or quarantined; the reasons stand in its case records"
            raise DataError(message)
        answered = {gold.item_id for gold in self.gold} | {shown.item_id for shown in self.disclosures}
        if len(set(ids)) != len(ids) or not answered <= set(ids):
            message = f"{benchmark}: item ids are not unique, or gold names an item that is not there"
            raise DataError(message)
        scored = {gold.item_id for gold in self.gold if gold.fields and LABELLED & gold_fields(gold.fields).keys()}
        if any(item.item_id in scored and item.label_policy != "none" for item in self.items):
            message = f"{benchmark}: labels of pictures would give sequence and plane away, which are asked for; set label_policy: none"
            raise ConfigError(message)
        shown = (*self.items, *(exemplar.item for exemplar in self.exemplars))
        if len({image.oracle for item in shown for image in item.images}) > 1:
            message = (
                f"{benchmark}: slices that were chosen with the answer stand beside others that were not; run slices again for all cases"
            )
            raise DataError(message)
        return self


def exemplars_of(items: Iterable[Item], gold: Mapping[str, Gold]) -> tuple[Exemplar, ...]:
    """Make few-shot examples of items that are never asked: those whose answer is known and fits the form of their runner.

    A ranked differential has no such form, nor has a dialogue.
    """
    answered = ((item, _answer(item, gold[item.item_id])) for item in items if item.item_id in gold)
    return tuple(Exemplar(item=item, answer=answer) for item, answer in answered if answer)


def _answer(item: Item, gold: Gold) -> str:
    if item.runner is Runner.STRUCTURED and gold.fields is not None:
        known = gold_fields(gold.fields) | {"confidence": 1}
        keys = json.loads(item.answer_schema).get("properties", {}) if item.answer_schema else known
        return json.dumps({key: known.get(key) for key in keys})
    if item.runner is Runner.CHOICE and gold.choice:
        return f"ANSWER: {gold.choice}\nCONFIDENCE: 1"
    if item.runner is Runner.OPEN and item.family is Family.QUESTION_ANSWERING and gold.answer:
        return f"ANSWER: {gold.answer}\nCONFIDENCE: 1"
    return ""
