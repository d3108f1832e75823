"""Pictures that arms show instead of those of an item, chosen with the answer: of a patient with another disease, without the lesion, or at it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from neuralmedbench.benchmarks.item_set import BenchmarkItems
from neuralmedbench.config.arms import AT_LESION, ArmVariant
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import Disclosure, Gold, Item, ItemImage, ShownLesion, evidence_images
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
            rows += pictures_without_lesion(built.items, built.lesions, arm.name)
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
    places = {item.item_id: int(sha256_of_value(item.case_id)[:16], 16) for item in items}
    stacks = {item.item_id: _stacks(item) for item in items}
    shown = {item.item_id: {image.sha256 for image in evidence_images(item)} for item in items}
    by_task = defaultdict[tuple[str, str], list[Item]](list)
    for item in items:
        if families.get(item.item_id) and stacks[item.item_id]:
            by_task[item.family, item.runner].append(item)
    rows = []
    for task in by_task.values():
        for item in sorted(task, key=lambda one: one.item_id):
            own = stacks[item.item_id]

            def order(other: Item, item: Item = item, own: Stacks = own) -> tuple[bool, int, int, str]:
                # the digests of two cases give each case an order of its own, so that no patient lends to all
                near = places[item.item_id] ^ places[other.item_id]
                return other.lesion_shown is False, -_in_common(own, stacks[other.item_id]), near, other.item_id

            others = [
                other
                for other in task
                if other.patient_id != item.patient_id
                and families[other.item_id] != families[item.item_id]
                and shown[other.item_id].isdisjoint(shown[item.item_id])
                and not own.keys().isdisjoint(stacks[other.item_id])
            ]
            if others:
                donor = min(others, key=order)
                rows.append(Disclosure(item_id=item.item_id, arm=arm, text="", images=_alike(item, donor), images_of=donor.item_id))
    return rows


Stacks = Mapping[tuple[str, ...], Sequence[ItemImage]]


def _stacks(item: Item) -> Stacks:
    """Group the pictures of an item that can stand for each other: of one sequence, plane, form, window and name in the question."""
    found = defaultdict[tuple[str, ...], list[ItemImage]](list)
    for image in evidence_images(item):
        found[image.sequence, image.plane, image.role, image.window, image.label].append(image)
    return found


def _in_common(own: Stacks, other: Stacks) -> int:
    return sum(min(len(images), len(other.get(stack, ()))) for stack, images in own.items())


def _alike(item: Item, donor: Item) -> tuple[str, ...]:
    """Return the ids of the donor's pictures like those of the item; of a larger stack, evenly spaced ones."""
    others = _stacks(donor)
    ids: list[str] = []
    for stack, images in _stacks(item).items():
        lent = others.get(stack, ())
        count = min(len(images), len(lent))
        ids += [lent[place * len(lent) // count].image_id for place in range(count)]
    return tuple(ids)


def pictures_without_lesion(items: Sequence[Item], lesions: Iterable[ShownLesion], arm: str) -> list[Disclosure]:
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
