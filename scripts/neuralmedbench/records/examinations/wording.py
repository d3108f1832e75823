"""How requests for examinations are worded: the patterns of `words.yaml`, and a request in the words that are compared. In English."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from neuralmedbench.records.case import Plane
from neuralmedbench.records.case import Sequence as Scan
from neuralmedbench.records.vocabulary import normal_form


def _any(words: Sequence[str]) -> str:
    """Return a pattern of whole words or phrases; a `*` stands for any ending."""
    return r"\b(?:" + "|".join(words).replace("*", r"\w*") + r")\b"


ANY_KIND, ANY_HISTORY = "other", "history"
"""Kinds of what no other kind is named for: any examination, and any history."""
SPINAL_FLUID, FURTHER = "cerebrospinal fluid", "further history"
WORDS: Mapping[str, Any] = yaml.load(
    Path(__file__).with_name("words.yaml").read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)
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
KINDS: Mapping[str, Mapping[str, Any]] = WORDS["kinds"]
"""Kinds of examinations that a request may begin with, in the order of the prompt."""
CALLED = {name: rf"(?:kind )?(?:{'|'.join((normal_form(name), *kind.get('called', ())))})" for name, kind in KINDS.items()}
TITLES = {name: re.compile(_any(kind["titles"])) for name, kind in KINDS.items() if "titles" in kind}
ORGANS = {name: re.compile(_any(titles)) for name, titles in WORDS["organs"].items()}
OF_SECTION = {"examination": "neurological examination", "further history": "history"}
"""Kinds of the sections of notes that have another name."""
POLITE_WORDS = frozenset(normal_form(" ".join(WORDS["polite"])).split())


EITHER = re.compile(r"\b(?:ct|mri?) or (?:ct|mri?)\b")
"""A choice that is left to others."""
HEAD = re.compile(r"\b(?:head|brain|cranial|cerebral|skull|intracranial)\b")
MODALITIES = frozenset({"ct", "mr", "mri", "either", "preferably"})
"""Examinations that a case of scans of the head with notes and record seldom holds: given only if a note or an entry names them."""
ASKS = re.compile(r"\b(?:please|pls|could you|can you|any|done|request|show|give)\b|^(?:or|has|have|else)\b")
EVERYTHING = re.compile(
    r"(?:please )?(?:show |give |provide )?(?:me )?(?:all|every|everything)(?: of)?(?: the| other| available| remaining| existing| possible| imaging| scans?"
    r"| images?| labs?| laboratory| bloods?| tests?| investigations?| results?| studies| data| information| sequences?| pictures?| and| you have| there is)*$"
)
OTHER_ONE = re.compile(r"\b(?:ones?|version|too|plane|view|as well|also|images?|slices?|cuts?)\b")
STATEMENT = re.compile(
    r"\b(?:ve|already|thanks?|thank|shows?|showed|shown|demonstrat\w+|is|was|were|are|has|have|had|do|did|does|doesn|didn|tells?|told|suggest\w*|explain\w*|can|may)\b"
)
SHORT = 8
"""Words of a sentence that is likely to be the request itself."""
SENTENCES = re.compile(r"(?<=[.!?;])(?<!\s\d\.)(?<!^\d\.)\s+|\n+")
REQUEST_LABEL = re.compile(r"\brequest(?:ed)?\s*\**:\**", re.IGNORECASE)
REASON_KEY = re.compile(r'"(?:rationale|reason|indication|justification|why|purpose)"', re.IGNORECASE)
JSON_KEY = re.compile(r'"\w+"\s*:')
PARTS = re.compile(r"\s*(?:[,;/&+|]|\band\b|\bplus\b|\bincluding\b|\binclud\w*|\balso\b|\bas well as\b|\bthen\b|\bfollowed by\b|\bor\b)\s*")
MISSPELT_FROM = 6


def without_reason(request: str) -> str:
    """Return the part of a request that a label announces, and of a JSON object the part before its reasons."""
    said = REQUEST_LABEL.split(request)[-1] if REQUEST_LABEL.search(request) else request
    return said if not said.lstrip().startswith("{") else JSON_KEY.sub(" ", REASON_KEY.split(said)[0])


def plain_request(request: str, known: tuple[str, ...] = ()) -> str:
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


def wanted(sentence: str) -> str:
    """Return a sentence without what it does not ask for: `no CT needed`, `MRI only if that shows nothing`, `after the CT`."""
    return " ".join(REFUSED.sub(" ", sentence).split()).strip(" ,;")


def named_scan(plain: str) -> str:
    """Return the words of the first scan that a text names; empty if none."""
    found = [match for _, pattern in SCANS[:-1] if (match := re.search(pattern, normal_form(plain)))]
    return min(found, key=lambda match: match.start())[0] if found else ""


def with_scan(sentence: str, named: str) -> str:
    """Return `the coronal one` with the scan that was named before."""
    plane = any(re.search(pattern, sentence) for pattern in PLANES.values())
    return f"{sentence} {named}" if plane and OTHER_ONE.search(sentence) and not names_scan(sentence) else sentence


def is_wish(sentence: str) -> bool:
    """Return True if a sentence has words of a request."""
    return bool(WISH.search(sentence) or ASKS.search(sentence))


def names_scan(plain: str) -> bool:
    return any(re.search(pattern, normal_form(plain)) for _, pattern in SCANS)


def names_sequence(plain: str) -> bool:
    return any(re.search(pattern, normal_form(plain)) for name, pattern in SCANS if name not in ("CT", "MRI"))


def scan_of(words: str, last: str) -> str | None:
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


def rare_words(words: str, least: int = 3) -> list[str]:
    return [word for word in normal_form(words).split() if word not in POLITE_WORDS and len(word) >= least]


KIND_MARK = re.compile(r"\s*:[\s*_]*|\s+[-\u2013\u2014|]\s+|$")


GENERAL = ("MRI", "CT", "blood tests")
"""Kinds whose other names say nothing either: `brain MRI`, `labs`."""


def kind_of_request(request: str) -> tuple[str, str]:
    """Return the kind that a request begins with (`CT: without contrast`), empty if none, and the words that say what is asked for."""
    said = without_reason(request).strip()
    head, _, behind = KIND_MARK.sub("\n", said, count=1).partition("\n")
    plain = normal_form(re.sub(r"\([^)]*\)", " ", head))
    if plain == "kind" and behind:
        return kind_of_request(behind)
    kind = next((name for name, pattern in CALLED.items() if re.fullmatch(pattern, plain)), "")
    # another name than that of the prompt says something itself: `EEG: awake and asleep`
    return kind, behind if kind in GENERAL or plain == normal_form(kind) else said


def is_of_body(said: str) -> bool:
    """Return True if a scan of another part of the body is asked for, and none of the head."""
    asked = REASON.split(plain_request(said), maxsplit=1)[0]
    return bool(NOT_HEAD.search(asked)) and not HEAD.search(asked)


def is_of_other_modality(kind: str, title: str) -> bool:
    """Return True if a title names CT under MRI, or MR under CT."""
    return bool(re.search(r"\bct\w?\b" if kind == "MRI" else r"\bmr\w?\b", title))


def contradicts(kind: str, said: str) -> bool:
    """Return True if a request begins with a scan of MR under another kind, or with CT under MRI, and is short."""
    plain = plain_request(SENTENCES.split(said)[0])
    other = names_sequence(plain) if kind != "MRI" else scan_of(plain, "") in (Scan.CT, Scan.CE_CT)
    return other and len(said.split()) <= SHORT
