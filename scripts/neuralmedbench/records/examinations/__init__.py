"""The examinations of a case, and which of them a request in free words asks for; by words, without a model, in English.

A case holds one examination for each sequence and plane of its pictures, for each group of record entries and for each section of its notes.
A request is matched to at most one. What the case does not hold is said not to be there, and a request that names nothing is told so:
nothing is released on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Scan
from neuralmedbench.records.vocabulary import normal_form


class EvidenceKind(StrEnum):
    """Source of an examination: pictures, the health record, or the notes."""

    PICTURES = "pictures"
    RECORD = "record"
    NOTE = "note"


@dataclass(frozen=True, kw_only=True)
class Examination:
    """One unit of evidence.

    Attributes
    ----------
    name : str
        `FLAIR, axial`, `cerebrospinal fluid`, `examination`; unique in the case.
    kind : EvidenceKind
        Its source.
    text : str
        What it says; empty for pictures.
    sequence, plane : str
        Of pictures.
    image_ids : tuple of str
        Of pictures.
    """

    name: str
    kind: EvidenceKind
    text: str = ""
    sequence: str = ""
    plane: str = ""
    image_ids: tuple[str, ...] = ()


class RequestOutcome(StrEnum):
    """Reply to a request: the examination, that the case does not hold it, or that no examination was named."""

    GIVEN = "given"
    ABSENT = "absent"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class RequestMatch:
    """The outcome of a request, and the place of the examination that it asks for."""

    outcome: RequestOutcome
    place: int | None = None


def _any(words: Sequence[str]) -> str:
    """Return a pattern of whole words or phrases; a `*` stands for any ending."""
    return r"\b(?:" + "|".join(words).replace("*", r"\w*") + r")\b"


SPINAL_FLUID, FURTHER = "cerebrospinal fluid", "further history"
HISTORY = re.compile(r"histor|course|onset|presentation|collateral|informant|progress|complaint|scene|prehospital|witness|admission")
WORDS: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"))
ENTRIES = {name: _any(group["entries"]) for name, group in WORDS["groups"].items()}
"""Patterns of the record entries of a group."""
SYNONYMS = [(_any(row["asked_by"]), _any(row["entries"]) if row["entries"] else "") for row in WORDS["synonyms"]]
ASKED_BY = {name: _any(row["asked_by"]) for name, row in (WORDS["groups"] | WORDS["sections"]).items()}
"""Patterns of requests for a group of entries or a section of notes."""
HEADINGS = {name: section["heading"] for name, section in WORDS["sections"].items() if "heading" in section}
SCANS = [(name, _any(words)) for name, words in WORDS["scans"].items()]
PLANES = {Plane(name): _any(words) for name, words in WORDS["planes"].items()}
OTHER_PEOPLE, BLOOD_SENSITIVE, WITH, GADOLINIUM, WITHOUT, ELSEWHERE, NOT_HEAD, VAGUE = (
    re.compile(_any(WORDS[name]))
    for name in (
        "other_people",
        "blood_sensitive",
        "with_contrast",
        "gadolinium",
        "without_contrast",
        "elsewhere",
        "not_head",
        "vague",
    )
)
REASON, WISH, REFUSED = (re.compile(rf"\b(?:{'|'.join(WORDS[name])})\b") for name in ("reason", "wish", "refused"))
POLITE_WORDS = frozenset(normal_form(" ".join(WORDS["polite"])).split())


EITHER = re.compile(r"\b(?:ct|mri?) or (?:ct|mri?)\b")
"""A choice that is left to others."""
MODALITIES = frozenset({"ct", "mr", "mri", "either", "preferably"})
"""Examinations that a case of scans of the head with notes and record seldom holds: given only if a note or an entry names them."""
ASKS = re.compile(r"\b(?:please|pls|could you|can you|any|done|request|show|give)\b|^(?:or|has|have|else)\b")
EVERYTHING = re.compile(
    r"(?:please )?(?:show |give |provide )?(?:me )?(?:all|every|everything)(?: of)?(?: the| other| available| remaining| existing| possible| imaging| scans?"
    r"| images?| labs?| laboratory| bloods?| tests?| investigations?| results?| studies| data| information| sequences?| pictures?| and| you have| there is)*$"
)
OTHER_ONE = re.compile(r"\b(?:ones?|version|too|plane|view|as well|also|images?|slices?|cuts?)\b")
SHORT = 8
"""Words of a sentence that is likely to be the request itself."""
SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")
REQUEST_LABEL = re.compile(r"\brequest(?:ed)?\s*\**:\**", re.IGNORECASE)
REASON_KEY = re.compile(r'"(?:rationale|reason|indication|justification|why|purpose)"', re.IGNORECASE)
JSON_KEY = re.compile(r'"\w+"\s*:')
PARTS = re.compile(r"\s*(?:[,;/&+|]|\band\b|\bplus\b|\bincluding\b|\binclud\w*|\balso\b|\bas well as\b|\bthen\b|\bfollowed by\b|\bor\b)\s*")
MISSPELT_FROM = 6


def match_request(request: str, held: Sequence[Examination]) -> RequestMatch:
    """Find the examination that a request in free words asks for.

    Parameters
    ----------
    request : str
        The request.
    held : sequence of Examination
        What the case holds, in the order of the case.

    Returns
    -------
    RequestMatch
        If the request names several, the first of them that the case holds. Of a scan whose plane is not named, the first in the order of
        the case. A plane, a contrast agent or a sequence that is asked for and not held is `absent`, and nothing else is given for it.

    Examples
    --------
    >>> flair = Examination(name="FLAIR, axial", kind=EvidenceKind.PICTURES, sequence="FLAIR", plane="axial")
    >>> match_request("Please show the FLAIR to look for lesions.", [flair]).outcome, match_request("MR angiography", [flair]).outcome
    (<RequestOutcome.GIVEN: 'given'>, <RequestOutcome.ABSENT: 'absent'>)
    """
    entries = tuple(sorted({word for one in held for name in _names(one) for word in name.split() if len(word) >= MISSPELT_FROM}))
    said = [sentence for sentence in SENTENCES.split(_without_reason(request)) if re.search(r"[^\W\d_]", sentence)]
    sentences = [
        (_wanted(_plain(sentence, entries)), "?" in sentence, number == len(said)) for number, sentence in enumerate(said, start=1)
    ]
    if named := _named_scan(_plain(request, entries)):
        sentences = [(_with_scan(sentence, named), asks, last) for sentence, asks, last in sentences]
    if len(sentences) > 1:
        sentences = [row for row in sentences if row[0]] or sentences
    if EVERYTHING.match(normal_form(request)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    outcome = None
    for sentence, asks, last in sorted(
        sentences, key=lambda row: (_is_wish(row[0]) or row[1], len(row[0].split()) <= SHORT or row[2]), reverse=True
    ):
        if outcome is RequestOutcome.UNCLEAR or (outcome is not None and not (asks or _is_wish(sentence))):
            continue
        found = _match_sentence(sentence, held)
        if found is not None and found.outcome is RequestOutcome.GIVEN:
            return found
        vague = VAGUE.search(normal_form(sentence)) and (asks or last or _is_wish(sentence))
        outcome = outcome or (found.outcome if found else RequestOutcome.UNCLEAR if vague else None)
    plain = " ".join(sentence for sentence, _, _ in sentences)
    if outcome is not RequestOutcome.UNCLEAR and (place := _by_name(normal_form(plain), held)) is not None and not _names_scan(plain):
        return RequestMatch(RequestOutcome.GIVEN, place)
    return RequestMatch(
        outcome or (RequestOutcome.UNCLEAR if VAGUE.search(normal_form(plain)) or not _rare(plain) else RequestOutcome.ABSENT)
    )


def _wanted(sentence: str) -> str:
    """Return a sentence without what it does not ask for: `no CT needed`, `MRI only if that shows nothing`, `after the CT`."""
    return " ".join(REFUSED.sub(" ", sentence).split()).strip(" ,;")


def _named_scan(plain: str) -> str:
    """Return the words of the first scan that a text names; empty if none."""
    found = [match for _, pattern in SCANS[:-1] if (match := re.search(pattern, normal_form(plain)))]
    return min(found, key=lambda match: match.start())[0] if found else ""


def _with_scan(sentence: str, named: str) -> str:
    """Return `the coronal one` with the scan that was named before."""
    plane = any(re.search(pattern, sentence) for pattern in PLANES.values())
    return f"{sentence} {named}" if plane and OTHER_ONE.search(sentence) and not _names_scan(sentence) else sentence


def _is_wish(sentence: str) -> bool:
    """Return True if a sentence has words of a request."""
    return bool(WISH.search(sentence) or ASKS.search(sentence))


def _names_scan(plain: str) -> bool:
    return any(re.search(pattern, normal_form(plain)) for _, pattern in SCANS)


def _match_sentence(sentence: str, held: Sequence[Examination]) -> RequestMatch | None:
    """RequestMatch one sentence; the wish may stand behind its reason."""
    wish = WISH.split(sentence)
    behind = sentence.partition(",")[2].strip() if REASON.match(sentence) else ""
    for text in (wish[-1].strip() if len(wish) > 1 else "", behind, sentence):
        for part in (REASON.split(text, maxsplit=1)[0], text):
            if part and (found := _match(part, held)) is not None:
                return found
    return None


def _without_reason(request: str) -> str:
    """Return the part of a request that a label announces, and of a JSON object the part before its reasons."""
    said = REQUEST_LABEL.split(request)[-1] if REQUEST_LABEL.search(request) else request
    return said if not said.lstrip().startswith("{") else JSON_KEY.sub(" ", REASON_KEY.split(said)[0])


def _plain(request: str, known: tuple[str, ...] = ()) -> str:
    """Return a request in small letters with its commas and slashes, and signs of sequences in words."""
    text = re.sub(r"t2\s*\*(?!\*)", "t2star ", re.sub(r"\s[-\u2013\u2014]\s|\u2014", ", ", request.casefold()).replace("*:", ":"))
    text = re.sub(r"\b([mc])\s([rt])\b", r"\1\2", re.sub(r",?\s*\b(?:comma|full stop|question mark)\b", ",", text))
    text = re.sub(r"\+\s*(?:c\b|ce\b|gad\w*|gd\b|contrast|km\b)|\bc\+", " with contrast ", text)
    text = re.sub(r"\b(?:w|with)/?\s*(?:and|&|\+)?\s*(?:w/?o|without)\s*(?:iv )?(?:contrast|gad\w*|gd)", "with contrast", text)
    text = re.sub(r"(?:^|(?<=\s))\d\s*[.)]\s", ", ", re.sub(r"\belectroence\w+", "eeg", text))
    text = text.replace("w/o", "without ").replace("w/", "with ")
    text = re.sub(r"\bpre\s*-?\s*(?:and|&|/)\s*post", "pre contrast and post", text)
    text = re.sub(r"\b(?:visual|auditory|somatosensory|motor)(?=[ ,/&]+(?:(?:and|or) )?(?:\w+ ){1,2}evoked)", "evoked", text)
    text = re.sub(r"[^a-z0-9,;/&+|\u00c0-\uffff]+", " ", text.replace(": ", ", "))
    return " ".join(re.sub(rf"[^\W\d_]{{{MISSPELT_FROM},}}", lambda match: _spelt(match[0], known), text).split())


@lru_cache(maxsize=1 << 12)
def _spelt(word: str, known: tuple[str, ...]) -> str:
    """Return the term that a misspelt word is meant to be, or the word."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    found = process.extractOne(word, (*WORDS["terms"], *known), scorer=OSA.distance, score_cutoff=2 if len(word) >= 10 else 1)
    return str(found[0]) if found and found[0][:2] == word[:2] else word


def _match(text: str, held: Sequence[Examination]) -> RequestMatch | None:
    """RequestMatch a part of a request; None if it names no examination."""
    if EITHER.search(text) and not ELSEWHERE.search(normal_form(text)):
        return RequestMatch(RequestOutcome.UNCLEAR)
    named = absent = unclear = False
    last, agent = "", False
    for part in PARTS.split(text):
        words = normal_form(part)
        if not words:
            continue
        scan = _scan_of(f"{words} with contrast" if agent and not WITHOUT.search(words) else words, last)
        agent = scan is None and bool(WITH.search(WITHOUT.sub(" ", words)))
        if NOT_HEAD.search(words) and not (scan is None and ELSEWHERE.search(words)):
            if scan is None and (place := _of_entries(words, held)[0]) is not None:
                return RequestMatch(RequestOutcome.GIVEN, place)
            absent = named = absent or not unclear
            continue
        if named and absent and not set(words.split()) - MODALITIES:
            continue  # how it would be made: angiography, CT or MR
        if elsewhere := ELSEWHERE.search(words):
            place = None if scan else _of_text(words, held, groups=("eeg", "nerve conduction"))[0]
            place = _of_words(elsewhere[0], held) if place is None else place
            if place is not None:
                return RequestMatch(RequestOutcome.GIVEN, place)
            absent = named = True
            continue
        if scan is not None:
            last = scan
            if scan == "MRI":
                unclear = True
                continue
            named = True
            place = _picture(scan, words, text, held)
            if place is not None:
                return RequestMatch(RequestOutcome.GIVEN, place)
            absent = True
            continue
        place, known = _of_text(words, held) if not (named or unclear) else (None, False)
        if place is not None:
            return RequestMatch(RequestOutcome.GIVEN, place)
        absent |= known
    if absent or named:
        return RequestMatch(RequestOutcome.ABSENT)
    return RequestMatch(RequestOutcome.UNCLEAR) if unclear else None


def _scan_of(words: str, last: str) -> str | None:
    """Return the scan that some words name; `last` is the scan named just before, to which "post contrast" alone belongs."""
    if BLOOD_SENSITIVE.search(words):
        return "blood"
    # the first named; "t2 flair" begins where "t2" does, and stands before it in the table
    starts = [(match.start(), number, scan) for number, (scan, pattern) in enumerate(SCANS) if (match := re.search(pattern, words))]
    base = min(((start, number, scan) for start, number, scan in starts if scan != "MRI"), default=min(starts, default=(0, 0, None)))[2]
    without, with_agent = bool(WITHOUT.search(words)), bool(WITH.search(WITHOUT.sub(" ", words)))
    if base is None:
        # gadolinium is given for MR; "post contrast" alone belongs to the scan named just before
        return Scan.CE_T1W if with_agent and (last in (Scan.T1W, "MRI") or GADOLINIUM.search(words)) else None
    if base in (Scan.T1W, "MRI") and with_agent:
        return Scan.CE_T1W
    if base == Scan.CT and with_agent and not without:
        return Scan.CE_CT
    return f"{base} with contrast" if with_agent and base not in (Scan.T1W, Scan.CT, "MRI") and "post" in words.split() else base


def _picture(scan: str, words: str, text: str, held: Sequence[Examination]) -> int | None:
    wanted = (Scan.SWI, Scan.T2STARW) if scan == "blood" else (scan,)
    planes = [plane for plane, pattern in PLANES.items() if re.search(pattern, words)]
    planes = planes or [plane for plane, pattern in PLANES.items() if re.search(pattern, normal_form(text))]
    for sequence in wanted:
        for place, one in enumerate(held):
            if one.kind is EvidenceKind.PICTURES and one.sequence == sequence and (not planes or one.plane in planes):
                return place
    return None


def _of_text(words: str, held: Sequence[Examination], groups: Collection[str] = tuple(ASKED_BY)) -> tuple[int | None, bool]:
    """Return the note or group of entries that words ask for, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    place, meant = _of_entries(words, held)
    if place is not None:
        return place, True
    if meant:  # a value that the record does not have: only a note may tell
        groups = [name for name in groups if name in WORDS["sections"]]
    asked = {name: match.start() for name in groups if (match := re.search(ASKED_BY[name], words))}
    for name in sorted(asked, key=lambda name: (asked[name], [*ASKED_BY].index(name))):
        of_group = [(place, one) for place, one in texts if _group_of(one) == name]
        if name == FURTHER:  # notes without a heading, and those whose heading is of a history, before reports
            told = [(place, one) for place, one in of_group if HISTORY.search(_head(one)) or not _head(one)]
            of_group = told or [(place, one) for place, one in texts if _group_of(one) == "past history"] or of_group
        if of_group:
            told = [place for place, one in of_group if OTHER_PEOPLE.search(words) and OTHER_PEOPLE.search(normal_form(one.text))]
            return (told or [of_group[0][0]])[0], True
    found = _of_words(words, held)
    return found, bool(asked or meant) or found is not None


def _of_entries(words: str, held: Sequence[Examination]) -> tuple[int | None, bool]:
    """Return the note or group whose title or entry words name, by its own words or by synonyms, and whether they name one that is known."""
    texts = [(place, one) for place, one in enumerate(held) if one.kind is not EvidenceKind.PICTURES]
    # an entry by its name, before the group of entries or the section that would hold it
    fluid = next((place for place, one in texts if _group_of(one) == SPINAL_FLUID), None)
    if fluid is not None and re.search(ASKED_BY[SPINAL_FLUID], words):
        return fluid, True
    if (place := _by_title(words, held)) is not None or (place := _by_name(words, held)) is not None:
        return place, True
    meant = [entry for pattern, entry in SYNONYMS if re.search(pattern, words)]
    for place, one in texts:
        if any(entry and re.search(entry, name) for entry in meant for name in (*_names(one), _title(one))):
            return place, True
    return None, bool(meant)


def _by_name(words: str, held: Sequence[Examination]) -> int | None:
    near = {place: max((_nearness(words, name) for name in _names(one)), default=0) for place, one in enumerate(held)}
    best = max(near.values(), default=0)
    return next((place for place, value in near.items() if value == best), None) if best else None


def _names(examination: Examination) -> list[str]:
    if examination.kind is not EvidenceKind.RECORD:
        return []
    return [normal_form(line.partition(":")[0]) for line in examination.text.splitlines()]


def _title(examination: Examination) -> str:
    """Return the hospital's own words for a note or a group of entries, in normal form; empty if they say nothing of their own."""
    if examination.kind is EvidenceKind.PICTURES:
        return ""
    title = normal_form(examination.name) if examination.kind is EvidenceKind.RECORD else _head(examination)
    title = " ".join(word for word in title.split() if not word.isdecimal())
    telling = {_single(word) for word in title.split()} - POLITE_WORDS - TITLE_WORDS
    return title if telling and len(title.split()) <= LONGEST_TITLE else ""


def _head(note: Examination) -> str:
    """Return what stands before the first colon of a note, in normal form; empty if that is no heading."""
    head, colon, _ = note.text.partition(":")
    return normal_form(head) if colon and len(head.split()) <= LONGEST_TITLE + 2 else ""


def _by_title(words: str, held: Sequence[Examination]) -> int | None:
    """Return the note or group of entries all of whose title stands in a request, the longest title first."""
    said = {_single(word) for word in normal_form(words).split()}
    found = [
        (len(title), -place)
        for place, one in enumerate(held)
        if (title := _title(one)) and {_single(word) for word in title.split()} - TITLE_FILLERS <= said
    ]
    return -max(found)[1] if found else None


def _single(word: str) -> str:
    return word.removesuffix("s") if len(word) >= SHORTEST_PART else word


LONGEST_TITLE = 5
TITLE_WORDS = frozenset("history report note finding summary course blood test level record chart list".split())
"""Words that many titles have."""
TITLE_FILLERS = frozenset("of the and in on at for current detailed full regular report record list chart note".split())


def _nearness(words: str, name: str) -> int:
    """Return how much of the name of an entry a request holds: all of it, its initials, or one long word of it in short; 0 if none."""
    initials = "".join(word[0] for word in name.split())
    said = {_single(word) for word in words.split()}
    if name and {_single(word) for word in name.split()} - NAME_FILLERS <= said:
        return len(name)
    if len(initials) > 1 and initials in words.split():
        return len(initials)
    rare = _rare(words)
    return (
        len(rare)
        if rare and all(any(part.startswith(word) and len(word) >= SHORTEST_PART for part in name.split()) for word in rare)
        else 0
    )


NAME_FILLERS = frozenset(("in", "of", "serum", "plasma", "blood", "total"))
SHORTEST_PART = 4
"""Letters of a word that is written in short: `mammo`."""


def _group_of(examination: Examination) -> str:
    return examination.name.partition(" (")[0]


def _of_words(words: str, held: Sequence[Examination]) -> int | None:
    """Return the first note or group of entries that holds all rare words of a request."""
    rare = _rare(words)
    if not rare:
        return None
    # the record before the notes
    for place, one in sorted(enumerate(held), key=lambda pair: pair[1].kind is EvidenceKind.NOTE):
        if one.kind is not EvidenceKind.PICTURES and all(_is_in(word, normal_form(one.text)) for word in rare):
            return place
    return None


def _is_in(word: str, text: str) -> bool:
    return bool(re.search(rf"\b{re.escape(word)}" + ("" if len(word) > SHORTEST_PART else r"\b"), text))


def _rare(words: str, least: int = 3) -> list[str]:
    return [word for word in normal_form(words).split() if word not in POLITE_WORDS and len(word) >= least]


def group_of_entry(variable: str) -> str:
    """Return the group of a record entry; an entry of no group is one of its own."""
    plain = normal_form(variable)
    return next((name for name, pattern in ENTRIES.items() if re.search(pattern, plain)), variable)


def section_of_note(text: str) -> str:
    """Return the section that a paragraph of a note is, by its heading; `further history` if it has none."""
    plain = normal_form(text)
    return next((name for name, pattern in HEADINGS.items() if re.match(rf"(?:{pattern})\b", plain)), FURTHER)


def unique_names(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """Return names, numbered if they occur more than once: `examination`, `examination (2)`."""
    found: list[str] = []
    for name in names:
        number = 1 + sum(other.partition(" (")[0] == name for other in (*taken, *found))
        found.append(name if number == 1 else f"{name} ({number})")
    return found
