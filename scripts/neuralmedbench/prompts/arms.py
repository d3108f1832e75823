"""Apply an arm to items: leave out, exchange, add or shorten pictures and text."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from neuralmedbench.config.arms import AT_LESION, ArmVariant
from neuralmedbench.config.layouts import COMMON_ORDER, Layout
from neuralmedbench.errors import ConfigError, DataError
from neuralmedbench.files.templates import Templates
from neuralmedbench.records.arm_changes import AlteredPicture, as_asked, is_movable
from neuralmedbench.records.case import SliceRow
from neuralmedbench.records.items import (
    FIRST_PART,
    OPTION,
    Arm,
    Disclosure,
    Item,
    ItemImage,
    Runner,
    Turn,
    evidence_images,
    slice_image,
    slice_of,
    with_only,
)
from neuralmedbench.records.questions import PICTURE
from neuralmedbench.records.requests import EARLIER
from neuralmedbench.records.words import SIGNS_OF_A_WORD, WITHOUT_SPACES


@dataclass(frozen=True)
class View:
    """An item under an arm: the item as far as the arm shows it, the text that the arm discloses, and its layout (None: `common`)."""

    item: Item
    disclosed: str = ""
    layout: Layout | None = None

    @property
    def label_name(self) -> str:
        """How the layout calls a picture; empty for `common`."""
        return self.layout.config.label if self.layout else ""


def views(items: Sequence[Item], arm: str, disclosures: Iterable[Disclosure]) -> list[View]:
    """Return the views of the items that an arm changes (under `full`, of all); others would repeat the full arm under another name."""
    if part := FIRST_PART.fullmatch(arm):  # e.g. the first 50 % of the text; nothing to cut in one word
        return [View(first_part(item, int(part[1]))) for item in items if (item.notes or item.record) and words_of_case(item) > 1]
    if arm == Arm.SHUFFLED_IMAGE:
        donors = donors_of(items)
        return [View(_with_images(item, evidence_images(donors[item.item_id]))) for item in items if item.item_id in donors]
    if arm in CHANGES:
        changes, change = CHANGES[Arm(arm)]
        return [View(change(item)) for item in items if changes(item)]
    # all other arms disclose a text, and apply to the items that have one
    source, change = FINDINGS_ALONE.get(arm, (arm, lambda item: item))
    texts = {row.item_id: row.text for row in disclosures if row.arm == source and row.text}
    return [View(change(item), texts[item.item_id]) for item in items if item.item_id in texts]


def _with_images(item: Item, images: tuple[ItemImage, ...]) -> Item:
    """Replace the pictures of an item, except for options; in a dialogue they come in the last turn that had pictures."""
    with_pictures = [number for number, turn in enumerate(item.turns) if turn.image_ids]
    ids = tuple(image.image_id for image in images)
    turns = [
        replace(turn, image_ids=ids if with_pictures and number == with_pictures[-1] else ()) for number, turn in enumerate(item.turns)
    ]
    return replace(item, images=(*images, *(image for image in item.images if image.role == OPTION)), turns=tuple(turns))


def variant_views(
    items: Sequence[Item],
    arm: ArmVariant,
    altered: Iterable[AlteredPicture],
    disclosures: Iterable[Disclosure] = (),
    oracle: Iterable[SliceRow] = (),
) -> list[View]:
    """Return the views of the items that an arm with a file changes; `oracle` are the slices that were cut at lesions."""
    by_case = defaultdict[str, list[AlteredPicture]](list)
    for made in altered:
        if made.arm == arm.name:
            by_case[made.case_id].append(made)
    chosen = {row.item_id: row for row in disclosures if row.arm == arm.name}
    by_id = {item.item_id: item for item in items}
    at_lesion = defaultdict[str, list[ItemImage]](list)
    for cut in oracle:
        at_lesion[cut.case_id].append(slice_image(cut))
    shown = []
    for item in items:
        row = chosen.get(item.item_id)
        if arm.chosen and (row is None or row.images_of not in by_id):
            continue
        if arm.config.adds == "own_answer" and item.runner is Runner.STRUCTURED and item.turns:
            continue  # the answer to the last stage alone is none to the item
        if arm.config.options == "rivals" and not item.rivals:
            continue
        if arm.config.evidence == "ordered" and arm.values["order"] in ("author", "findings") and row is None:
            continue  # the author names no order, or no findings
        source = by_id[row.images_of] if row and arm.chosen else item
        there = at_lesion[item.case_id] if arm.config.pictures == AT_LESION else evidence_images(source)
        pictures = _of_names(item.item_id, there, row.images) if row and arm.chosen else ()
        changed = _changed(item, arm, by_case[source.case_id], pictures)
        if changed is None and arm.config.pictures != "keep":
            continue
        text = row.text if row else ""
        new = _with_options(changed or item, arm, text)
        told = arm.config.adds == "suggestion" or arm.config.evidence == "ordered"
        added = EARLIER if arm.config.adds == "own_answer" else text if told else ""
        # another wording, or another order, is asked of every item that can have it: some orders are that of the item
        anew = arm.config.evidence == "ordered" or arm.config.wording != "keep" or (arm.config.options == "shuffle" and is_movable(item))
        if changed is not None or new != item or added or anew:
            shown.append(View(new, added, arm.layout))
    return shown


def _with_options(item: Item, arm: ArmVariant, right: str) -> Item:
    """Return an item with the options that an arm shows; `right` is the letter of the option that "none of the above" replaces."""
    if arm.config.options == "rivals":
        return as_asked(item, arm.name)
    known = arm.config.options != "none_of_the_above" or right
    return as_asked(item, arm.name, right=right) if arm.config.options != "keep" and known and is_movable(item) else item


def with_added_text(view: View, arm: ArmVariant | None, templates: Templates) -> View:
    """Write what an arm adds to a request, by its template; ConfigError as in `Templates.render`."""
    if arm is None or arm.config.adds == "nothing":
        return view
    name = "suggestion" if arm.config.adds == "suggestion" else "answer"
    return replace(view, disclosed=templates.render(arm.config.adds, **{name: view.disclosed}, **arm.values))


def _of_names(item_id: str, there: Iterable[ItemImage], names: Sequence[str]) -> tuple[ItemImage, ...]:
    """Return pictures by their ids, in the order given; DataError if one is not there."""
    images = {image.image_id: image for image in there}
    if not set(names) <= images.keys():
        message = f"{item_id}: a picture that an arm shows is not one of its pictures; run build_items again"
        raise DataError(message)
    return tuple(images[name] for name in names)


def _changed(item: Item, arm: ArmVariant, altered: Sequence[AlteredPicture], chosen: tuple[ItemImage, ...]) -> Item | None:
    """Return an item as an arm with a file shows it; None if nothing of it changes."""
    config, new = arm.config, item
    if config.pictures == "mirrored" and any(image.position_mm is None for image in evidence_images(item)):
        return None  # of unknown orientation
    if config.pictures == "none":
        new = _with_images(new, ())
    elif config.pictures in ("another", AT_LESION):
        new = _with_images(new, chosen)
    elif config.pictures == "without_lesion":
        new = with_only(new, {image.image_id for image in chosen})
    if arm.alters:
        new = _with_altered(new, altered)
    if config.pictures != "keep" and new == item:  # labels alone are no other evidence
        return None
    if config.text == "none":
        new = without_text(new)
    if arm.layout:
        new = _with_slices_of(new, arm.layout)
    new = replace(new, label_policy="none") if config.labels == "number" and new.images else new
    return new if new != item or _is_laid_out_anew(new, arm.layout) else None


def _is_laid_out_anew(item: Item, layout: Layout | None) -> bool:
    """Return True if a layout shows an item in another order, or with other labels, than `common`."""
    if layout is None or not item.images:
        return False
    return layout.config.order != COMMON_ORDER or layout.config.label_after or layout.config.label not in ("", PICTURE)


def _with_altered(item: Item, altered: Iterable[AlteredPicture]) -> Item:
    """Exchange pictures of an item for those of its case that were made from them; they keep their ids, and so their turn of a dialogue."""
    of_source = {(row.sources[0], row.volume_sha256): row for row in altered}
    # a picture made from several stands in the place of the first; the others go
    used = {(source, row.volume_sha256) for row in of_source.values() for source in row.sources[1:]}
    images = []
    for image in item.images:
        place = (image.sha256, image.volume_sha256)
        if image.role != OPTION and place in of_source:
            row = of_source[place]
            images.append(replace(image, path=row.path, sha256=row.sha256, window=row.window or image.window))
        elif image.role == OPTION or place not in used:
            images.append(image)
    return with_only(replace(item, images=tuple(images)), {image.image_id for image in images})


def _with_slices_of(item: Item, layout: Layout) -> Item:
    """Keep the pictures that a layout shows: one picture of a CT slice instead of its windows, one plane, and no more than it allows."""
    images = evidence_images(item)
    if colours := layout.config.colours:
        on_colours = {slice_of(image) for image in images if image.window == colours}
        images = tuple(image for image in images if image.window == colours or slice_of(image) not in on_colours)
    return with_only(item, {image.image_id for image in layout.chosen(images)})


def without_text(item: Item) -> Item:
    """Remove notes and record from an item; the questions, and so the rounds of a dialogue, stay."""
    return replace(item, notes="", record="", turns=tuple(replace(turn, reveal="") for turn in item.turns))


def first_part(item: Item, percent: int) -> Item:
    """Keep the first `percent` percent (1 to 99) of an item's words, but at least one; a larger part begins with every smaller one."""
    return first_words(item, max(1, words_of_case(item) * percent // 100))


def has_text(item: Item) -> bool:
    """Return True if the item has any text about the case."""
    return bool(item.notes or item.record or any(turn.reveal for turn in item.turns))


CHANGES: dict[Arm, tuple[Callable[[Item], bool], Callable[[Item], Item]]] = {
    Arm.FULL: (lambda _: True, lambda item: item),
    Arm.NO_IMAGE: (lambda item: bool(evidence_images(item)), lambda item: _with_images(item, ())),
    Arm.NO_TEXT: (has_text, without_text),
    Arm.DIAGNOSIS_WITHHELD: (lambda item: bool(item.given), lambda item: replace(item, given="")),
}
"""Arms that only remove something: the items to which they apply, and the change."""


FINDINGS_ALONE: dict[str, tuple[str, Callable[[Item], Item]]] = {
    Arm.FINDINGS_ONLY: (Arm.FINDINGS_DISCLOSED, lambda item: _with_images(without_text(item), ())),
    Arm.FINDINGS_AND_HISTORY: (Arm.FINDINGS_DISCLOSED, lambda item: _with_images(item, ())),
}
"""Arms that show the findings of `findings_disclosed`, in the same words, but not all of the item."""


def donors_of(items: Sequence[Item]) -> Mapping[str, Item]:
    """Choose for each item with pictures an item of another patient whose pictures are shown instead.

    Notes
    -----
    Patients form a ring in the order of the digest of their id, and each gets the pictures of the next: no patient gets their own
    pictures, every run chooses the same donors, and a new patient changes the donor of one other patient only.
    """
    of_patient = defaultdict[str, list[Item]](list)
    for item in sorted(items, key=lambda item: item.item_id):
        if evidence_images(item) and not _shows_by_stage(item):
            of_patient[item.patient_id].append(item)
    ring = sorted(of_patient, key=lambda patient: hashlib.sha256(patient.encode()).hexdigest())
    if len(ring) < 2:
        message = "the arm 'shuffled_image' needs pictures of at least two patients; take it out of `arms`"
        raise ConfigError(message)
    # a donor with fewer items lends its pictures more than once
    return {
        item.item_id: of_patient[following][number % len(of_patient[following])]
        for patient, following in zip(ring, ring[1:] + ring[:1], strict=True)
        for number, item in enumerate(of_patient[patient])
    }


def _shows_by_stage(item: Item) -> bool:
    """Return True for a structured item with pictures in several turns: each question is about its own, which another patient lacks."""
    return item.runner is Runner.STRUCTURED and sum(bool(turn.image_ids) for turn in item.turns) > 1


SIGN = WITHOUT_SPACES.pattern
WORD = re.compile(rf"{SIGN}{{1,{SIGNS_OF_A_WORD}}}|(?:(?!{SIGN})\S)+")
"""A word; up to three signs of scripts without spaces are one. Here every sign is part of a word, so that a text can be cut behind it:
`records.words.count_words` only estimates."""


def words_of_case(item: Item) -> int:
    """Count the words of the case: notes and record, or the text that the turns of a dialogue reveal."""
    return sum(len(WORD.findall(text)) for text in (item.notes, item.record, *(turn.reveal for turn in item.turns)))


def first_words(item: Item, most: int) -> Item:
    """Cut the text of the case to its first `most` words: of notes, record, then turns.

    Text before the cut keeps its line breaks. Questions are never cut.
    """
    notes, left = _first(item.notes, most)
    record, left = _first(item.record, left)
    turns: list[Turn] = []
    for turn in item.turns:
        reveal, left = _first(turn.reveal, left)
        turns.append(replace(turn, reveal=reveal))
    return replace(item, notes=notes, record=record, turns=tuple(turns))


def within_words(item: Item, most: int | None) -> tuple[Item, int]:
    """Cut the case to the text budget of a benchmark; return the item and the number of words cut."""
    cut = 0 if most is None else max(0, words_of_case(item) - most)
    return (first_words(item, most) if most is not None and cut else item), cut


def _first(text: str, most: int) -> tuple[str, int]:
    """Cut one text; return it and the number of words left for the next one."""
    ends = [match.end() for match in WORD.finditer(text)]
    if len(ends) <= most:
        return text, most - len(ends)
    return text[: ends[most - 1]] if most else "", 0
