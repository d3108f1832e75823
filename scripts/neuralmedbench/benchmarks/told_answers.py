"""What arms tell of the answers: a colleague's suggestion, the option that "none of the above" replaces, the evidence of a work-up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from neuralmedbench.benchmarks.chosen_pictures import add_chosen_pictures
from neuralmedbench.benchmarks.gold import disclosure
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.arms import ArmVariant
from neuralmedbench.records.items import ESSENTIAL_SEPARATOR, Disclosure, Gold, Item
from neuralmedbench.records.options import is_movable
from neuralmedbench.records.suggestions import suggestion_words, wrong_gold
from neuralmedbench.records.vocabulary import Vocabulary


def add_shown_by_arms(built: BenchmarkItems, arms: Collection[ArmVariant], vocabulary: Vocabulary) -> BenchmarkItems:
    """Add to the disclosures all that arms with a file show because of the answers: chosen pictures, suggestions; parameters as below."""
    return add_told_answers(add_chosen_pictures(built, arms, vocabulary), arms, vocabulary)


def add_told_answers(built: BenchmarkItems, arms: Iterable[ArmVariant], vocabulary: Vocabulary) -> BenchmarkItems:
    """Add to the disclosures what some arms say of the answers.

    Parameters
    ----------
    built : BenchmarkItems
        Items and gold.
    arms : iterable of ArmVariant
        The arms with a file that are asked.
    vocabulary : Vocabulary
        Where rivals of a diagnosis and other places of a lesion are found.

    Returns
    -------
    BenchmarkItems
        With one disclosure per item and arm: under `adds: suggestion` the suggested answer, wrong or right, of items with a plausible wrong
        answer (`records.suggestions`); under `options: none_of_the_above` the letter of the right option; in a work-up the essential
        examinations in the author's order, or the findings.
    """
    gold = {row.item_id: row for row in built.gold}
    answered = [(item, gold[item.item_id]) for item in built.items if item.item_id in gold]
    return replace(built, disclosures=(*built.disclosures, *(row for arm in arms for row in _rows(arm, answered, vocabulary))))


def _rows(arm: ArmVariant, answered: Iterable[tuple[Item, Gold]], vocabulary: Vocabulary) -> Iterator[Disclosure]:
    for item, gold in answered:
        if arm.config.adds == "suggestion" and (wrong := wrong_gold(item, gold, vocabulary)):
            suggested = wrong if arm.values["direction"] == "wrong" else gold
            yield Disclosure(item_id=item.item_id, arm=arm.name, text=suggestion_words(item, suggested))
        if arm.config.options == "none_of_the_above" and gold.choice and is_movable(item):
            yield Disclosure(item_id=item.item_id, arm=arm.name, text=gold.choice)
        if arm.config.evidence == "ordered":
            text = {"author": ESSENTIAL_SEPARATOR.join(gold.essential), "findings": disclosure(gold).text if gold.findings else ""}
            if shown := text.get(arm.values["order"]):
                yield Disclosure(item_id=item.item_id, arm=arm.name, text=shown)
