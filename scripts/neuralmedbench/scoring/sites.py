"""Sides and places that a text states, and whether they are those of a lesion."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from neuralmedbench.records.items import Lesion
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

SIDE_WORDS = {
    "left": "left links linksseitig linker linke linken izquierdo izquierda izquierdos izquierdas gauche gauches",
    "right": "right rechts rechtsseitig rechter rechte rechten derecho derecha derechos derechas droit droite droits droites",
    "bilateral": "bilateral bilaterally both beidseits beidseitig bilaterale bilaterales bilateraux",
    "midline": "midline",
}
SIDES = {word: side for side, words in SIDE_WORDS.items() for word in words.split()}
"""Words that state a side, and the side."""

SIDE_SIGNS = {"左": "left", "右": "right", "双侧": "bilateral"}

MAX_PLACES = 3
"""A location that names more regions than this is a guess."""

SUPPLIED = {
    "middle cerebral artery territory": frozenset({"insula", "frontal lobe", "parietal lobe", "temporal lobe", "basal ganglia"}),
    "anterior cerebral artery territory": frozenset({"frontal lobe", "cingulate gyrus", "corpus callosum"}),
    "posterior cerebral artery territory": frozenset({"occipital lobe", "medial temporal lobe", "thalamus"}),
}
"""Regions that an artery supplies: any of them is a right location for an infarct of its territory."""

SPARED = re.compile(r"\b(?:sparing|spares|no|not|without|excluding|except)\b")


def sides(text: str) -> set[str]:
    """Return the sides that a text states: any of `left`, `right`, `bilateral`, `midline`."""
    words = {SIDES[word] for word in normal_form(text).split() if word in SIDES}
    return words | {side for sign, side in SIDE_SIGNS.items() if sign in text}


def longest_terms(words: list[str], known: Container[str]) -> Iterator[tuple[int, int]]:
    """Yield where terms begin and end in words; at each word the longest one."""
    start = 0
    while start < len(words):
        end = next((end for end in range(len(words), start, -1) if " ".join(words[start:end]) in known), None)
        if end is not None:
            yield start, end
        start = start + 1 if end is None else end


def mentioned_places(text: str, vocabulary: Vocabulary) -> set[str]:
    """Return the anatomical terms of the vocabulary in a text, up to `sparing` or a negation."""
    words = SPARED.split(normal_form(text))[0].split()
    return {vocabulary.places[" ".join(words[start:end])] for start, end in longest_terms(words, vocabulary.places)}


def location_right(text: str, lesion: Lesion, vocabulary: Vocabulary) -> bool:
    """Return True if a stated location is that of the lesion; more than `MAX_PLACES` regions are never right.

    A part of a region counts as the region. For an artery's territory its supplied regions count, if no other region is named.
    """
    places = mentioned_places(text, vocabulary)
    expected = vocabulary.places.get(normal_form(lesion.location))
    if expected is None:
        return f" {normal_form(lesion.location)} " in f" {normal_form(text)} "
    if len(places) > MAX_PLACES:
        return False
    return expected in places or (bool(places) and places <= SUPPLIED.get(expected, frozenset()))


def side_right(text: str, lesion: Lesion) -> bool:
    """Return True if a stated side is that of the lesion, or the reference has no side; `left` with `right` counts as `bilateral`."""
    stated = sides(text)
    if {"left", "right"} <= stated:
        stated = {"bilateral"}
    return not lesion.side or stated == {lesion.side}


def mentioned_regions(text: str, vocabulary: Vocabulary) -> set[str]:
    """Return the regions that a text names, up to `sparing` or a negation."""
    words, known = SPARED.split(normal_form(text))[0].split(), vocabulary.regions.names
    return {region for start, end in longest_terms(words, known) for region in known[" ".join(words[start:end])]}


def elsewhere(stated: set[str], expected: set[str], vocabulary: Vocabulary) -> bool:
    """Return True if both texts name regions and none of the stated ones overlaps an expected one."""
    if not stated or not expected:
        return False
    return not any(_overlap(one, other, vocabulary) for one in _finest(stated, vocabulary) for other in _finest(expected, vocabulary))


def _finest(regions: set[str], vocabulary: Vocabulary) -> set[str]:
    """Leave out regions around others of the same text: a pontine lacune lies in the pons."""
    return {region for region in regions if not any(region in vocabulary.regions.around[other] for other in regions - {region})}


def _overlap(one: str, other: str, vocabulary: Vocabulary) -> bool:
    """Return True if one region lies within the other, or a third within both; of two arteries only the first."""
    around = vocabulary.regions.around
    if one in around[other] or other in around[one]:
        return True
    arteries = all(region.endswith(("territory", "artery")) for region in (one, other))
    return not arteries and any({one, other} <= wider for wider in around.values())
