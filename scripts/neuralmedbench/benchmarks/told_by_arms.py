"""What arms show and tell because of the answer: pictures of another patient or of the lesion, a suggestion, a replaced option, evidence."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from neuralmedbench.benchmarks.gold import disclosure
from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.benchmarks.rivals import add_rivals
from neuralmedbench.config.arms import AT_LESION, ArmVariant
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.arm_changes import is_movable, suggestion_words, wrong_gold
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import ESSENTIAL_SEPARATOR, Disclosure, Gold, Item, ItemImage, ShownLesion, evidence_images
from neuralmedbench.records.vocabulary import Vocabulary


def add_chosen_pictures(built: BenchmarkItems, arms: Iterable[ArmVariant], vocabulary: Vocabulary) -> BenchmarkItems:
    """Add what the arms with a file show whose pictures are chosen with the answer.

    Parameters
    ----------
    built : BenchmarkItems
        Items and gold of a benchmark.
    arms : iterable of ArmVariant
        Its arms with a file.
    vocabulary : Vocabulary
        Tells the family of a disease.

    Returns
    -------
    BenchmarkItems
        With one more disclosure per arm and item to which the arm applies.
    """
    gold, arms = {row.item_id: row for row in built.gold}, [arm for arm in arms if arm.chosen]
    rows: list[Disclosure] = []
    for arm in arms:
        if arm.config.pictures == "another":
            rows += pictures_of_others(built.items, gold, vocabulary, arm.name)
        elif arm.config.pictures == AT_LESION:
            rows += oracle_slices(built.items, built.oracle, built.lesions, arm.name)
        else:
            rows += _pictures_without_lesion(built.items, built.lesions, arm.name)
    return replace(built, disclosures=(*built.disclosures, *rows))


def pictures_of_others(items: Sequence[Item], gold: Mapping[str, Gold], vocabulary: Vocabulary, arm: str) -> list[Disclosure]:
    """Choose for each item the pictures of a patient with a disease of another family.

    Parameters
    ----------
    items : sequence of Item
        The items.
    gold : mapping of str to Gold
        Their gold by item id.
    vocabulary : Vocabulary
        Tells the family of a disease; items whose answer it lacks neither get nor lend pictures.
    arm : str
        The arm that shows them.

    Returns
    -------
    list of Disclosure
        One per item with a donor: an item of the same task, of another patient with a disease of another family, whose pictures are not
        those of the item. Preferred are donors whose lesion is not known to be missed, then those that have most of the item's sequences and
        planes; ties by the digests of the two cases. Of each sequence and plane there are at most as many pictures as the item has.
    """
    families = {item.item_id: vocabulary.disease_family(gold[item.item_id].answer) for item in items if item.item_id in gold}
    stacks = {item.item_id: _stacks(item) for item in items}
    by_task = defaultdict[tuple[str, str], list[Item]](list)
    for item in items:
        if families.get(item.item_id) and stacks[item.item_id]:
            by_task[item.family, item.runner].append(item)
    rows = []
    for task in by_task.values():
        lenders = _Lenders(task, families, stacks)
        for item in sorted(task, key=lambda one: one.item_id):
            if donor := lenders.donor_of(item):
                rows.append(Disclosure(item_id=item.item_id, arm=arm, text="", images=_alike(item, donor), images_of=donor.item_id))
    return rows


Stacks = Mapping[tuple[str, ...], Sequence[ItemImage]]
Counts = frozenset[tuple[tuple[str, ...], int]]
"""Number of pictures of each stack."""
FEW = 8


class _Lenders:
    """Items of a task in groups that are equally good for an item, so that not every item is compared with every other one."""

    def __init__(self, task: Sequence[Item], families: Mapping[str, str], stacks: Mapping[str, Stacks]) -> None:
        self._families = families
        self._counts: dict[str, Counts] = {
            item.item_id: frozenset((stack, len(images)) for stack, images in stacks[item.item_id].items()) for item in task
        }
        self._shown = {item.item_id: {image.sha256 for image in evidence_images(item)} for item in task}
        # the digests of two cases give each case an order of its own, so that no patient lends to all
        self._places = {item.item_id: int(sha256_of_value(item.case_id)[:16], 16) for item in task}
        self._groups = defaultdict[tuple[bool, str, Counts], list[Item]](list)
        for item in sorted(task, key=lambda one: (self._places[one.item_id], one.item_id)):
            group = item.lesion_shown is False, families[item.item_id], self._counts[item.item_id]
            self._groups[group].append(item)
        self._ranked: dict[tuple[str, Counts], list[list[list[Item]]]] = {}

    def donor_of(self, item: Item) -> Item | None:
        """Return the best item of another patient and another family of diseases that has none of the item's pictures; None without one."""
        place, shown = self._places[item.item_id], self._shown[item.item_id]
        for groups in self._by_rank(self._families[item.item_id], self._counts[item.item_id]):
            fitting = (
                next(
                    (
                        other
                        for other in self._nearest(group, place, 0, len(group))
                        if other.patient_id != item.patient_id and shown.isdisjoint(self._shown[other.item_id])
                    ),
                    None,
                )
                for group in groups
            )
            if found := [other for other in fitting if other]:
                return min(found, key=lambda other: (place ^ self._places[other.item_id], other.item_id))
        return None

    def _by_rank(self, family: str, counts: Counts) -> list[list[list[Item]]]:
        """Return the groups that can lend to items like this one, the best first; those of one rank are equally good."""
        if (family, counts) not in self._ranked:
            own, ranks = dict(counts), defaultdict[tuple[bool, int], list[list[Item]]](list)
            for (missed, of_family, others), group in self._groups.items():
                common = sum(min(own.get(stack, 0), number) for stack, number in others)
                if common and of_family != family:
                    ranks[missed, -common].append(group)
            self._ranked[family, counts] = [ranks[rank] for rank in sorted(ranks)]
        return self._ranked[family, counts]

    def _nearest(self, group: Sequence[Item], place: int, low: int, high: int, bit: int = 63) -> Iterator[Item]:
        """Yield the items `low` to `high` of a group, which is sorted by place, by the distance (exclusive or) of their place from another."""
        if high - low <= FEW or bit < 0:
            yield from sorted(group[low:high], key=lambda one: (place ^ self._places[one.item_id], one.item_id))
            return
        # their places agree in all higher bits: those with the same bit are nearer than all others
        middle = bisect_left(group, 1, low, high, key=lambda one: self._places[one.item_id] >> bit & 1)
        for part in [(middle, high), (low, middle)] if place >> bit & 1 else [(low, middle), (middle, high)]:
            yield from self._nearest(group, place, *part, bit - 1)


def _stacks(item: Item) -> Stacks:
    """Group the pictures of an item that can stand for each other: of one sequence, plane, form, window and name in the question."""
    found = defaultdict[tuple[str, ...], list[ItemImage]](list)
    for image in evidence_images(item):
        found[image.sequence, image.plane, image.role, image.window, image.label].append(image)
    return found


def _alike(item: Item, donor: Item) -> tuple[str, ...]:
    """Return the ids of the donor's pictures like those of the item; of a larger stack, evenly spaced ones."""
    others = _stacks(donor)
    ids: list[str] = []
    for stack, images in _stacks(item).items():
        lent = others.get(stack, ())
        count = min(len(images), len(lent))
        ids += [lent[place * len(lent) // count].image_id for place in range(count)]
    return tuple(ids)


def _pictures_without_lesion(items: Sequence[Item], lesions: Iterable[ShownLesion], arm: str) -> list[Disclosure]:
    """Choose for each item its pictures that do not show the known lesion; only where some show it, some do not, and each is known to do either."""
    shows = {(row.case_id, row.image_id): row.shown for row in lesions}
    rows = []
    for item in sorted(items, key=lambda one: one.item_id):
        of_item = {image.image_id: shows.get((item.case_id, image.image_id)) for image in evidence_images(item)}
        if set(of_item.values()) == {True, False}:
            left = tuple(name for name, shown in of_item.items() if not shown)
            rows.append(Disclosure(item_id=item.item_id, arm=arm, text="", images=left, images_of=item.item_id))
    return rows


def oracle_slices(items: Sequence[Item], slices: Iterable[SliceRow], lesions: Iterable[ShownLesion], arm: str) -> list[Disclosure]:
    """List for each item the slices that were cut at the lesion of its case; only where one of them shows it."""
    shows = {(row.case_id, row.image_id): row.shown for row in lesions}
    of_case = defaultdict[str, list[str]](list)
    for row in slices:
        of_case[row.case_id].append(row.image_id)
    return [
        Disclosure(item_id=item.item_id, arm=arm, text="", images=tuple(names), images_of=item.item_id)
        for item in sorted(items, key=lambda one: one.item_id)
        if (names := of_case[item.case_id]) and any(shows.get((item.case_id, name)) for name in names)
    ]


def add_shown_by_arms(built: BenchmarkItems, arms: Collection[ArmVariant], vocabulary: Vocabulary) -> BenchmarkItems:
    """Add all that arms with a file show because of the answers: chosen pictures, suggestions, rivals; parameters as below."""
    built = add_told_answers(add_chosen_pictures(built, arms, vocabulary), arms, vocabulary)
    if not any(arm.config.options == "rivals" for arm in arms):
        return built
    built, lacking = add_rivals(built, vocabulary)
    if lacking:
        print(f"{built.items[0].benchmark}: {lacking}", file=sys.stderr)
    return built


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
        answer (`records.arm_changes`); under `options: none_of_the_above` the letter of the right option; in a work-up the essential
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
