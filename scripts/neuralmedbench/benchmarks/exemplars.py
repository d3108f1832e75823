"""Examples for few-shot prompts: questions of a data set that are never asked, with their answers in the form that is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from neuralmedbench.records.items import Exemplar, Family, Gold, Item, Runner, gold_fields


def exemplars_of(items: Iterable[Item], gold: Mapping[str, Gold]) -> tuple[Exemplar, ...]:
    """Make examples of items.

    Parameters
    ----------
    items : iterable of Item
        Those that are never asked.
    gold : mapping of str to Gold
        Their answers by item.

    Returns
    -------
    tuple of Exemplar
        Those whose answer is known and fits into the form of their runner; a ranked differential has no such form, nor has a dialogue.
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
