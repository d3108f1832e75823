"""From the words of one line of a differential to the one diagnosis that it names, or to none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

MAX_CHARACTERS = 300
"""A longer line is a paragraph, not a diagnosis."""

SIDES = {"left": "left", "right": "right", "bilateral": "bilateral", "bilaterally": "bilateral", "both": "bilateral", "midline": "midline"}
"""Words that state a side, and the side."""

CUTS = re.compile(
    r"\s(?:with|without|due to|secondary to|caused by|causing|involving|affecting|in|of|at|from|after|following|on|within|rather than|"
    r"instead of|given|because|based on|presenting|as|mimicking|simulating)\s|[:–—]|\s-\s",
    re.IGNORECASE,
)
"""Where the name of a diagnosis ends and the words about it begin."""

ALTERNATIVES = re.compile(r"[,;/&+]|\s(?:or|vs\.?|versus|and)\s", re.IGNORECASE)
LEAD_IN = re.compile(
    r"^.*?\b(?:(?:consistent|compatible|in keeping|in line) with|suggestive of|suggesting|suspicious for|concerning for|indicative of|"
    r"(?:evidence|signs|features|diagnosis|picture|appearance|case|suspicion) of)\b",
    re.IGNORECASE,
)
NEGATION = re.compile(
    r"\b(?:no|not|non|without|never|nor|absence|absent|negative|denies|against|exclude[sd]?|excluding|rules?|ruled|unlikely)\b"
)
NOT_NEGATION = re.compile(r"\bnot (?:otherwise|elsewhere) (?:specified|classified)\b", re.IGNORECASE)
OTHER_THING = frozenset({"mimic", "mimics", "like", "history", "family", "risk", "screening", "pseudo", "non"})
"""Words that make another thing of the diagnosis beside them: a stroke mimic is not a stroke."""

AFTER_WORDS = (
    "brain cerebral cerebri intracranial cns head mri ct scan study examination imaging lesion mass disease disorder syndrome type grade who"
    " 1 2 3 4 i ii iii iv idh wildtype wild mutant nos multiforme territory region lobe hemisphere area age appropriate for suspected"
    " probable possible likely primary secondary recurrent acute chronic subacute early late stage mild moderate severe finding findings"
    " most confirmed unspecified"
)
AFTER = frozenset(AFTER_WORDS.split())
"""Words that may follow a diagnosis without making another thing of it."""

CHRONIC = frozenset({"chronic", "old", "remote", "prior", "previous", "healed", "residual", "longstanding"})


def resolve(text: str, vocabulary: Vocabulary) -> Diagnosis | None:
    """Diagnosis that a line of a differential names.

    Parameters
    ----------
    text : str
        One line, for example `Acute ischaemic stroke, left MCA territory`.
    vocabulary : Vocabulary
        The diagnoses.

    Returns
    -------
    Diagnosis or None
        None when the line names no diagnosis of the vocabulary, denies it, or names several that exclude each other.

    Notes
    -----
    A line that names a diagnosis and a wider term of it (`stroke / ischaemic infarct`) names the narrower one. Places,
    sides, grades and words of doubt are ignored; a negation, `history of` or `mimic` is not.
    """
    whole = vocabulary.find(text)
    if whole or len(text) > MAX_CHARACTERS:
        return whole
    plain = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", " ", NOT_NEGATION.sub(" ", text))
    if whole := vocabulary.find(plain):
        return None if _denied(text) else whole
    if re.search(r"\b(?:excluded|ruled out|unlikely|not likely)\b", text, re.IGNORECASE):
        return None
    named = [entry for piece in ALTERNATIVES.split(plain) if (entry := _resolve_piece(piece, vocabulary))]
    return _narrowest(named, vocabulary)


def sides(text: str) -> set[str]:
    """Sides that a text states: any of `left`, `right`, `bilateral`, `midline`."""
    return {SIDES[word] for word in normal_form(text).split() if word in SIDES}


def mentioned_places(text: str, vocabulary: Vocabulary) -> set[str]:
    """Anatomical terms of the vocabulary that a text names; what comes after `sparing` or a negation does not count."""
    words = re.split(r"\b(?:sparing|spares|no|not|without|excluding|except)\b", normal_form(text))[0].split()
    found, start = set[str](), 0
    while start < len(words):
        end = next((end for end in range(len(words), start, -1) if " ".join(words[start:end]) in vocabulary.places), None)
        if end is None:
            start += 1
        else:
            found.add(vocabulary.places[" ".join(words[start:end])])
            start = end
    return found


def _denied(text: str) -> bool:
    return bool(NEGATION.search(normal_form(text)))


def _resolve_piece(piece: str, vocabulary: Vocabulary) -> Diagnosis | None:
    if whole := vocabulary.find(piece):
        return whole
    lead = LEAD_IN.match(piece)
    if lead and _denied(lead.group()):
        return None
    head = CUTS.split(piece[lead.end() :] if lead else piece, maxsplit=1)[0]
    words = normal_form(head).split()
    if OTHER_THING & set(words) or NEGATION.search(" ".join(words)):
        return vocabulary.find(head)
    places = {word for name in vocabulary.places for word in name.split()}
    for start, end in _spans(len(words)):
        entry = vocabulary.index.get(" ".join(words[start:end]))
        if entry is None or not _written_as_such(words[start:end], entry, head):
            continue
        before, after = set(words[:start]), set(words[end:])
        wider = vocabulary.index.get(" ".join(words[end:]))
        if wider is not None and wider in vocabulary.ancestors(entry.key):  # Alzheimer's disease dementia
            after = set()
        if after - AFTER - set(SIDES) - places or (entry.classes == "normal" and before - AFTER):
            continue
        if before & CHRONIC:
            unplaced = " ".join(word for word in words if word not in {*SIDES, *places, "territory"})
            return vocabulary.index.get(unplaced) or _without_stage(entry, vocabulary)
        return entry
    return None


def _spans(length: int) -> Iterator[tuple[int, int]]:
    """Spans of words, the longest first and the last of these first: the noun that is named stands at the end."""
    for size in range(length, 0, -1):
        for start in range(length - size, -1, -1):
            yield start, start + size


def _written_as_such(words: list[str], entry: Diagnosis, head: str) -> bool:
    """Tell a term from a chance match: inside a longer line an abbreviation counts only in its own letters (`MS`, not `ms`)."""
    form = " ".join(words)
    spelled = [term for term in entry.abbreviations if normal_form(term) == form]
    in_full = any(normal_form(term) == form for term in (entry.name, *entry.synonyms))
    return in_full or any(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", head) for term in spelled)


def _without_stage(entry: Diagnosis, vocabulary: Vocabulary) -> Diagnosis:
    """Take the nearest wider term that does not say acute: an old lacunar infarct is not the acute one."""
    acute = [wider for wider in (entry, *vocabulary.ancestors(entry.key)) if "acute" in normal_form(wider.name).split()]
    return next(vocabulary.ancestors(acute[-1].key), entry) if acute else entry


def _narrowest(named: list[Diagnosis], vocabulary: Vocabulary) -> Diagnosis | None:
    for entry in named:
        lineage = {entry.key, *(wider.key for wider in vocabulary.ancestors(entry.key))}
        if all(other.key in lineage for other in named):
            return entry
    return None
