"""How an answer relates to the reference: the verdict of closed items and of the deterministic grader."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from neuralmedbench.records.items import NO_LESION, Gold, Lesion
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form
from neuralmedbench.scoring.terms import mentioned_places, resolve, sides

MAX_PLACES = 3
"""A location that names more regions than this is a guess at all of them."""

SUPPLIED = {
    "middle cerebral artery territory": frozenset({"insula", "frontal lobe", "parietal lobe", "temporal lobe", "basal ganglia"}),
    "anterior cerebral artery territory": frozenset({"frontal lobe", "cingulate gyrus", "corpus callosum"}),
    "posterior cerebral artery territory": frozenset({"occipital lobe", "medial temporal lobe", "thalamus"}),
}
"""Regions that an artery supplies: an infarct of its territory is rightly placed in any of them."""

NOTHING = frozenset({"none", "no", "nil", "absent", "negative", "no focal lesion", "no focal abnormality"})
ABOUT_SYMPTOMS = re.compile(r"\s(?:with|causing|presenting|due to|secondary to)\s", re.IGNORECASE)
REFERENCE_KEY = "reference"
"""Key under which a reference that the vocabulary does not know is added to it."""


class Relation(StrEnum):
    """How a named diagnosis relates to the reference."""

    EXACT = "exact"
    SYNONYM = "synonym"
    CHILD = "child"
    PARENT = "parent"
    SIBLING = "sibling"
    UNRELATED = "unrelated"


RIGHT = frozenset({Relation.EXACT, Relation.SYNONYM, Relation.CHILD})
"""Relations that pass."""


@dataclass(frozen=True)
class ReferenceAnswer:
    """The right answer of one item, ready for comparison: its entry in the vocabulary, with the item's aliases among its synonyms."""

    gold: Gold
    entry: Diagnosis
    vocabulary: Vocabulary

    @classmethod
    def of(cls, gold: Gold, vocabulary: Vocabulary) -> ReferenceAnswer:
        """Prepare the reference of one item; one that the vocabulary does not know is added to it under its own name.

        A qualifier in brackets does not narrow the reference: for `acute ischaemic stroke (MCA territory)` a plain acute ischaemic stroke
        is right, and one of another artery is still wrong.
        """
        plain = re.sub(r"\([^()]*\)", " ", gold.answer)
        found = vocabulary.find(plain) or vocabulary.find(gold.answer) or (vocabulary.find(gold.icd10) if gold.icd10 else None)
        entry = found or Diagnosis(key=REFERENCE_KEY, name=gold.answer)
        named = tuple(alias for alias in (gold.answer, *gold.aliases) if normal_form(alias))
        # a code of the answers table that the vocabulary gives to nobody is one more name of the reference
        codes = (gold.icd10,) if gold.icd10 and not vocabulary.find(gold.icd10) else ()
        entry = replace(entry, synonyms=(*entry.synonyms, *named), icd10=(*entry.icd10, *codes))
        others = {key: other for key, other in vocabulary.diagnoses.items() if key != entry.key}
        return cls(gold, entry, replace(vocabulary, diagnoses={**others, entry.key: entry}))


def relation(answer: str, reference: ReferenceAnswer) -> Relation | None:
    """How one line of a differential relates to the reference; None for an empty line.

    `sibling`: both have a wider term in common, or the diagnosis is right but the line states the other side or another artery's
    territory.
    """
    if not normal_form(answer):
        return None
    if normal_form(answer) == normal_form(reference.gold.answer):
        return Relation.EXACT
    named = resolve(answer, reference.vocabulary)
    if named is None:
        return Relation.UNRELATED
    found = _lineage(named, reference)
    if found in RIGHT and _elsewhere(answer, reference):
        return Relation.SIBLING
    return found


def _lineage(named: Diagnosis, reference: ReferenceAnswer) -> Relation:
    if named.key == reference.entry.key:
        return Relation.SYNONYM
    wider = {entry.key for entry in reference.vocabulary.ancestors(named.key)}
    wider_reference = {entry.key for entry in reference.vocabulary.ancestors(reference.entry.key)}
    if reference.entry.key in wider:
        return Relation.CHILD
    if named.key in wider_reference:
        return Relation.PARENT
    return Relation.SIBLING if wider & wider_reference else Relation.UNRELATED


def _elsewhere(answer: str, reference: ReferenceAnswer) -> bool:
    named, lesion = ABOUT_SYMPTOMS.split(answer, maxsplit=1)[0], reference.gold.lesion
    if lesion and lesion.side in {"left", "right"} and sides(named) == {"left", "right"} - {lesion.side}:
        return True
    right = _territories(f"{reference.gold.answer} {lesion.location if lesion else ''}", reference.vocabulary)
    stated = _territories(named, reference.vocabulary)
    return bool(right and stated) and not right & stated


def _territories(text: str, vocabulary: Vocabulary) -> set[str]:
    return {place for place in mentioned_places(text, vocabulary) if place.endswith("territory")}


def reference_rank(differential: tuple[str, ...], reference: ReferenceAnswer) -> int | None:
    """Rank, from 1, at which the reference (exact, synonym or child) first stands in a differential; None when it does not."""
    ranks = (rank for rank, line in enumerate(differential, start=1) if relation(line, reference) in RIGHT)
    return next(ranks, None)


def says_no_lesion(text: str, vocabulary: Vocabulary) -> bool:
    """Whether the answer to "what type of lesion" is that there is none."""
    nothing = vocabulary.find(NO_LESION)
    named = resolve(text, vocabulary)
    return normal_form(text) in NOTHING or (named is not None and nothing is not None and named.key == nothing.key)


def location_right(text: str, lesion: Lesion, vocabulary: Vocabulary) -> bool:
    """Whether a stated location is that of the lesion; more than `MAX_PLACES` regions are never right.

    A part of a region counts as the region; for an artery's territory the regions it supplies count, if nothing else is named.
    """
    places = mentioned_places(text, vocabulary)
    expected = vocabulary.places.get(normal_form(lesion.location))
    if expected is None:
        return f" {normal_form(lesion.location)} " in f" {normal_form(text)} "
    if len(places) > MAX_PLACES:
        return False
    return expected in places or (bool(places) and places <= SUPPLIED.get(expected, frozenset()))


def side_right(text: str, lesion: Lesion) -> bool:
    """Whether a stated side is that of the lesion; both sides named one by one are `bilateral`. No reference, no wrong side."""
    stated = sides(text)
    if {"left", "right"} <= stated:
        stated = {"bilateral"}
    return not lesion.side or stated == {lesion.side}
