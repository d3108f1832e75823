"""Match a line of a differential with the reference: the diagnosis that it asserts, its side and its location."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from neuralmedbench.records.items import NO_LESION, Gold, Lesion
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

CUTS = re.compile(
    r"\s(?:with|without|due to|secondary to|caused by|causing|involving|affecting|in|of|at|from|after|following|on|within|rather than|"
    r"instead of|given|because|based on|presenting|as|mimicking|simulating|resembling|imitating)\s|[:–—]|\s-\s",
    re.IGNORECASE,
)
"""Words and signs that end the name of a diagnosis; what follows describes it."""

ALTERNATIVES = re.compile(r"[,;/&+]|\s(?:or|vs\.?|versus|and)\s", re.IGNORECASE)
BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
NEGATION = re.compile(
    r"\b(?:no|not|non|without|never|nor|neither|nothing|cannot|cant|(?:is|are|was|were|do|does|did|has|have|can|could)nt|absence|absent|negative|"
    r"denies|denied|against|exclude[sd]?|excluding|rules?|ruled|rejected|refuted|unlikely|improbable|implausible|doubtful|inconsistent|"
    r"incompatible|lacks?|lacking|fails? to|free of|low (?:suspicion|probability|likelihood))\b"
)
NOT_NEGATION = re.compile(r"\bnot (?:otherwise|elsewhere) (?:specified|classified)\b", re.IGNORECASE)

DENIED_AFTER = re.compile(
    r"(?:\b(?:excluded|(?:ruled|rule) out|(?:un|not |less |least )likely|not (?:present|seen|found)|absent|rejected|refuted|denied|improbable|"
    r"doubtful|mimics?)|(?:[:?–—]|\s-)\s*no(?:ne|t)?)\W*$",
    re.IGNORECASE,
)
"""Words at the end of a text that deny what comes before them."""

BARE_DENIAL_WORDS = "most very highly now likely longer out present seen found evident confirmed supported is was been has it this"

BARE_DENIAL = frozenset(BARE_DENIAL_WORDS.split())
"""Words next to a negation in brackets that name nothing else: `(not likely)` denies what comes before, `(no haemorrhage)` does not."""

RULE_OUT = re.compile(r"\br/o\b", re.IGNORECASE)

OF_ALL = frozenset({"history", "family", "risk", "screening", "mimicking", "resembles", "resembling", "simulating", "imitating", "pseudo"})
"""Words that change the meaning of all diagnoses after them: `history of stroke or seizure`."""

OTHER_THING = OF_ALL | {"mimic", "mimics", "like", "non"}
"""Words that change the meaning of the diagnosis next to them: a stroke mimic is not a stroke."""

MAX_LINE_CHARACTERS = 300
"""A longer line is a paragraph, not a diagnosis."""

SIDES = {"left": "left", "right": "right", "bilateral": "bilateral", "bilaterally": "bilateral", "both": "bilateral", "midline": "midline"}
"""Words that state a side, and the side."""

LEAD_IN = re.compile(
    r"^\W*(?:(?:final|working|leading|main|primary|most likely)\s)?diagnosis\s*[:=–—-]|"
    r"^.*?\b(?:(?:consistent|compatible|in keeping|in line) with|suggestive of|suggesting|suspicious for|concerning for|indicative of|"
    r"(?:evidence|signs|features|diagnosis|picture|appearance|case|suspicion) of)\b",
    re.IGNORECASE,
)
DOUBT_WORDS = "a an the most likely probable probably possible possibly suspected presumed"

DOUBT = frozenset(DOUBT_WORDS.split())
"""Words before or after a diagnosis that express certainty."""

AFTER_WORDS = (
    "brain cerebral cerebri intracranial cns head mri ct scan study examination imaging lesion mass disease disorder syndrome type grade who"
    " 1 2 3 4 i ii iii iv idh wildtype wild mutant nos multiforme territory region lobe hemisphere area age appropriate for suspected"
    " probable possible likely primary secondary recurrent acute chronic subacute early late stage mild moderate severe finding findings"
    " most confirmed unspecified"
)

AFTER = frozenset(AFTER_WORDS.split())
"""Words that may follow a diagnosis without changing it."""

PLURALS = (("ies", "y"), ("ses", "sis"), ("es", ""), ("s", ""))

MIN_PLURAL = 4
"""A word of this many letters or fewer has no plural ending: the s of `ms` is part of it."""

CHRONIC = frozenset({"chronic", "old", "remote", "prior", "previous", "healed", "residual", "longstanding"})

MAX_PLACES = 3
"""A location that names more regions than this is a guess."""

SUPPLIED = {
    "middle cerebral artery territory": frozenset({"insula", "frontal lobe", "parietal lobe", "temporal lobe", "basal ganglia"}),
    "anterior cerebral artery territory": frozenset({"frontal lobe", "cingulate gyrus", "corpus callosum"}),
    "posterior cerebral artery territory": frozenset({"occipital lobe", "medial temporal lobe", "thalamus"}),
}
"""Regions that an artery supplies: any of them is a right location for an infarct of its territory."""

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
    """The reference answer of an item, ready for comparison: its vocabulary entry, with the item's aliases as further synonyms."""

    gold: Gold
    entry: Diagnosis
    vocabulary: Vocabulary

    @classmethod
    def of(cls, gold: Gold, vocabulary: Vocabulary) -> ReferenceAnswer:
        """Prepare the reference of one item; if the vocabulary lacks it, it is added under its own name.

        A qualifier in brackets does not narrow the reference: for `acute ischaemic stroke (MCA territory)` a plain acute ischaemic stroke
        is right, but one of another artery is wrong.
        """
        plain = re.sub(r"\([^()]*\)", " ", gold.answer)
        known = vocabulary.find(plain) or vocabulary.find(gold.answer) or (vocabulary.find(gold.icd10) if gold.icd10 else None)
        entry = known or Diagnosis(key=REFERENCE_KEY, name=gold.answer)
        aliases = tuple(alias for alias in (gold.answer, *gold.aliases) if normal_form(alias))
        # an ICD-10 code of the answers table that the vocabulary does not use is another name of the reference
        codes = (gold.icd10,) if gold.icd10 and not vocabulary.find(gold.icd10) else ()
        entry = replace(entry, synonyms=(*entry.synonyms, *aliases), icd10=(*entry.icd10, *codes))
        others = {key: other for key, other in vocabulary.diagnoses.items() if key != entry.key}
        return cls(gold, entry, replace(vocabulary, diagnoses={**others, entry.key: entry}))


def relation(answer: str, reference: ReferenceAnswer) -> Relation | None:
    """Return how one line of a differential relates to the reference; None for an empty line.

    `sibling`: both share a wider term, or the diagnosis is right but the line states the other side or another artery's territory.
    """
    if not normal_form(answer):
        return None
    # the reference word for word is exact even if the vocabulary would read it otherwise
    if normal_form(answer) == normal_form(reference.gold.answer):
        return Relation.EXACT
    named = resolve(answer, reference.vocabulary)
    if named is None:
        return Relation.UNRELATED
    lineage = _lineage(named, reference)
    if lineage in RIGHT and _elsewhere(answer, reference):
        return Relation.SIBLING
    return lineage


def resolve(text: str, vocabulary: Vocabulary) -> Diagnosis | None:
    """Return the diagnosis that a line of a differential names.

    Parameters
    ----------
    text : str
        One line, for example `Acute ischaemic stroke, left MCA territory`.
    vocabulary : Vocabulary
        The diagnoses.

    Returns
    -------
    Diagnosis or None
        None if the line names no diagnosis of the vocabulary, denies it, or names several that exclude each other.

    Notes
    -----
    A line with a diagnosis and a wider term of it (`stroke / ischaemic infarct`) names the narrower one. Locations, sides, grades, words of
    doubt and the plural are ignored; a negation, `history of` or `mimic` is not, and `no infarct or tumour` denies both. A denial at the end
    reaches back to the preceding comma.
    """
    whole = vocabulary.find(text)
    if whole or len(text) > MAX_LINE_CHARACTERS:
        return whole
    # without bracketed text, unless the bracket denies the line
    text = RULE_OUT.sub("rule out", NOT_NEGATION.sub(" ", text))
    plain = BRACKETS.sub(" ", text)
    if any(is_bare_negation(bracket) for bracket in BRACKETS.findall(text)):
        return None
    if whole := vocabulary.find(plain) or _whole_name(normal_form(plain).split(), vocabulary):
        return whole
    if re.search(r"\b(?:excluded|ruled out|unlikely|not likely)\b", plain, re.IGNORECASE):
        return None
    # neither a name as a whole nor denied as a whole: look at its parts
    return _narrowest([entry for piece in asserted_parts(plain) if (entry := _resolve_piece(piece, vocabulary))], vocabulary)


def is_bare_negation(text: str) -> bool:
    """Return True if a text is a negation and nothing else."""
    return has_negation(text) and set(NEGATION.sub(" ", normal_form(text)).split()) <= BARE_DENIAL


def has_negation(text: str) -> bool:
    """Return True if a text contains a negation."""
    return bool(NEGATION.search(normal_form(text)))


def _whole_name(words: list[str], vocabulary: Vocabulary) -> Diagnosis | None:
    """Look up a name without the words of doubt around it, in the singular or the plural."""
    while words and words[0] in DOUBT:
        words = words[1:]
    while words and words[-1] in DOUBT:
        words = words[:-1]
    return _find_words(words, vocabulary)


def _find_words(words: list[str], vocabulary: Vocabulary) -> Diagnosis | None:
    """Look up words as they are, or with the last one in the singular."""
    if not words:
        return None
    *before, last = words
    forms = [last]
    if len(last) > MIN_PLURAL and not last.endswith(("ss", "us", "is")):
        forms += [last.removesuffix(plural) + single for plural, single in PLURALS if last.endswith(plural)]
    return next((entry for form in forms if (entry := vocabulary.index.get(" ".join([*before, form])))), None)


def _narrowest(named: list[Diagnosis], vocabulary: Vocabulary) -> Diagnosis | None:
    for entry in named:
        lineage = {entry.key, *(wider.key for wider in vocabulary.ancestors(entry.key))}
        if all(other.key in lineage for other in named):
            return entry
    return None


def asserted_parts(text: str) -> Iterator[str]:
    """Yield the parts of a line between commas and words like `or`, without those denied by a negation in an earlier part."""
    start, over, to_the_end = 0, False, False
    for match in [*ALTERNATIVES.finditer(text), None]:
        piece = text[start : match.start() if match else None]
        head = normal_form(CUTS.split(piece, maxsplit=1)[0])
        if not over or head.startswith("but "):
            yield piece
            # `no infarct, haemorrhage or tumour` denies all three; in `infarct without haemorrhage, tumour` the denial ends at the comma
            to_the_end = has_negation(re.sub(r"\bnon\b", " ", head))
            over = to_the_end or has_negation(re.sub(r"\bnon\b", " ", normal_form(piece))) or bool(OF_ALL & set(head.split()))
        if match:
            start, separator = match.end(), match.group().strip()
            over = over and separator != ";" and (to_the_end or separator != ",")


def _resolve_piece(piece: str, vocabulary: Vocabulary) -> Diagnosis | None:
    whole = vocabulary.find(piece)
    if whole or DENIED_AFTER.search(piece):
        return whole
    lead = LEAD_IN.match(piece)
    if lead and has_negation(lead.group()):
        return None
    head = CUTS.split(piece[lead.end() :] if lead else piece, maxsplit=1)[0]
    words = normal_form(head).split()
    places = {word for name in vocabulary.places for word in name.split()}
    # the longest name in the head whose neighbours do not change its meaning
    for start, end in _spans(len(words)):
        entry = _find_words(words[start:end], vocabulary)
        if entry is None or not _written_as_such(words[start:end], entry, head) or changes_meaning([*words[:start], *words[end:]]):
            continue
        before, after = set(words[:start]), set(words[end:])
        wider = vocabulary.index.get(" ".join(words[end:]))
        if wider is not None and wider in vocabulary.ancestors(entry.key):  # the rest is a wider term: Alzheimer's disease dementia
            after = set()
        if after - AFTER - set(SIDES) - places or (entry.classes == "normal" and before - AFTER):
            continue
        if before & CHRONIC:  # `old infarct`: a name of its own without its location, or the next wider term that is not acute
            unplaced = " ".join(word for word in words if word not in {*SIDES, *places, "territory"})
            return vocabulary.index.get(unplaced) or _without_stage(entry, vocabulary)
        return entry
    return None


def _spans(length: int) -> Iterator[tuple[int, int]]:
    """Yield spans of words, longest first and of equal ones the last first, because a noun phrase ends with its noun."""
    for size in range(length, 0, -1):
        for start in range(length - size, -1, -1):
            yield start, start + size


def _written_as_such(words: list[str], entry: Diagnosis, head: str) -> bool:
    """Return True unless the match is by chance: within a longer line an abbreviation counts only as written (`MS`, not `ms`)."""
    form = " ".join(words)
    spelled = [term for term in entry.abbreviations if normal_form(term) == form]
    in_full = any(normal_form(term) == form for term in (entry.name, *entry.synonyms))
    # a plural, which no abbreviation of another form is
    return in_full or not spelled or any(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", head) for term in spelled)


def changes_meaning(neighbours: Sequence[str]) -> bool:
    """Return True if the words next to a name deny it or change its meaning; words of the name itself do not (`non-communicating`)."""
    return bool(OTHER_THING & set(neighbours) or NEGATION.search(" ".join(neighbours)))


def _without_stage(entry: Diagnosis, vocabulary: Vocabulary) -> Diagnosis:
    """Return the nearest wider term that is not acute: an old lacunar infarct is not the acute one."""
    acute = [wider for wider in (entry, *vocabulary.ancestors(entry.key)) if "acute" in normal_form(wider.name).split()]
    return next(vocabulary.ancestors(acute[-1].key), entry) if acute else entry


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
    # another artery's territory, if both name one
    right = _territories(f"{reference.gold.answer} {lesion.location if lesion else ''}", reference.vocabulary)
    stated = _territories(named, reference.vocabulary)
    return bool(right and stated) and not right & stated


def sides(text: str) -> set[str]:
    """Return the sides that a text states: any of `left`, `right`, `bilateral`, `midline`."""
    return {SIDES[word] for word in normal_form(text).split() if word in SIDES}


def _territories(text: str, vocabulary: Vocabulary) -> set[str]:
    return {place for place in mentioned_places(text, vocabulary) if place.endswith("territory")}


def mentioned_places(text: str, vocabulary: Vocabulary) -> set[str]:
    """Return the anatomical terms of the vocabulary in a text, up to `sparing` or a negation."""
    words = re.split(r"\b(?:sparing|spares|no|not|without|excluding|except)\b", normal_form(text))[0].split()
    places, start = set[str](), 0
    while start < len(words):  # the longest term at each word
        end = next((end for end in range(len(words), start, -1) if " ".join(words[start:end]) in vocabulary.places), None)
        if end is None:
            start += 1
        else:
            places.add(vocabulary.places[" ".join(words[start:end])])
            start = end
    return places


def reference_rank(differential: tuple[str, ...], reference: ReferenceAnswer) -> int | None:
    """Return the rank, from 1, of the first right line (exact, synonym or child) in a differential; None if there is none."""
    ranks = (rank for rank, line in enumerate(differential, start=1) if relation(line, reference) in RIGHT)
    return next(ranks, None)


def says_no_lesion(text: str, vocabulary: Vocabulary) -> bool:
    """Return True if the answer to "what type of lesion" is that there is no lesion."""
    nothing = vocabulary.find(NO_LESION)
    named = resolve(text, vocabulary)
    return normal_form(text) in NOTHING or (named is not None and nothing is not None and named.key == nothing.key)


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
