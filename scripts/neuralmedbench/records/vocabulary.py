"""Vocabulary of diagnoses and anatomical terms with synonyms: which answers count as equal, and which diagnoses are time-critical."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache

SCHEMA_VERSION = 1
SPELLINGS = (
    ("haem", "hem"),
    ("aemi", "emi"),
    ("oedema", "edema"),
    ("tumour", "tumor"),
    ("leuco", "leuko"),
    ("paed", "ped"),
    ("caes", "ces"),
    ("oesoph", "esoph"),
    ("anaes", "anes"),
    ("gynaec", "gynec"),
    ("foet", "fet"),
    ("sulph", "sulf"),
    ("fibre", "fiber"),
    ("grey", "gray"),
    ("colour", "color"),
    ("behaviour", "behavior"),
)
"""British spellings, replaced by American ones before terms are compared."""
ENDINGS = (("centre", "center"), ("isation", "ization"), ("ising", "izing"), ("ised", "ized"))
"""Those that count at the end of a word alone."""
ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]"
)
"""Accents of Latin, Greek and Cyrillic letters, points of Hebrew and Arabic ones. What combines in other scripts is a vowel, and stays."""
BRACKETS = re.compile(r"\([^()]*\)")
PLAIN_SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}
"""Signs of plain Latin text that part words."""


class Within(StrEnum):
    """Order of the time in which treatment or a decision is expected."""

    MINUTES = "minutes"
    HOURS = "hours"


@dataclass(frozen=True, kw_only=True)
class TimeCritical:
    """Why a diagnosis is time-critical: the order of the time, and the guideline, consensus or review (body and year)."""

    within: Within
    source: str


@dataclass(frozen=True, kw_only=True)
class Urgency:
    """Time-critical diagnoses by their key in the vocabulary.

    Attributes
    ----------
    version, status : str
        Version of the file, and who chose the diagnoses; both are stated on the page. Empty without a file.
    time_critical : dict of str to TimeCritical
        A diagnosis holds for its narrower terms.
    not_time_critical : tuple of str
        Narrower terms for which it does not.
    """

    version: str = ""
    status: str = ""
    time_critical: dict[str, TimeCritical] = field(default_factory=dict)
    not_time_critical: tuple[str, ...] = ()

    def of(self, key: str, vocabulary: Vocabulary) -> TimeCritical | None:
        """Return the entry of a diagnosis, or of the nearest wider term that is listed; None if it is not time-critical."""
        for name in vocabulary.lineage(key):
            if name in self.not_time_critical:
                return None
            if name in self.time_critical:
                return self.time_critical[name]
        return None


@lru_cache(maxsize=1 << 12)
def _sign_of_word(sign: str) -> str:
    """Return a sign of a word, a digit of any script as 0 to 9, and a space for any other sign."""
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    return sign if sign.isalnum() or unicodedata.category(sign).startswith("M") else " "


@lru_cache(maxsize=1 << 16)
def normal_form(text: str) -> str:
    """Return a normal form that is equal for all spellings of a term.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        Lower-case letters (of any script) and digits, words separated by single spaces, without possessives, accents, punctuation and
        British spellings. Vowel points of Hebrew and Arabic go like accents; the vowel signs of other scripts and the voiced Kana stay.

    Examples
    --------
    >>> normal_form("Alzheimer's  Disease")
    'alzheimer disease'
    >>> normal_form("Intracerebral haemorrhage.")
    'intracerebral hemorrhage'
    >>> normal_form("１．脑梗死。")
    '1 脑梗死'
    """
    if text.isascii():
        # most names are: a tenth of the time
        signs = re.sub(r"'s\b|'", "", text.lower()) if "'" in text else text.lower()
        parted = signs.translate(PLAIN_SIGNS)
    else:
        apart = unicodedata.normalize("NFKD", text.replace("’", "'")).casefold()
        plain = re.sub(r"'s\b|'", "", ACCENTS.sub("", apart))
        parted = "".join(map(_sign_of_word, unicodedata.normalize("NFC", plain)))
    words = " ".join(parted.split())
    for british, american in SPELLINGS:
        words = words.replace(british, american)
    for british, american in ENDINGS:
        if british in words:
            words = re.sub(rf"{british}\b", american, words)
    return words


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One diagnosis, or a category that others name as their parent.

    Attributes
    ----------
    key : str
        Its key in the file.
    name : str
        Preferred name.
    icd10 : tuple of str
        ICD-10 codes; each belongs to one diagnosis.
    parent : str
        Key of the next wider term, or empty.
    synonyms, abbreviations : tuple of str
        Other names.
    translations : tuple of str
        Names in other languages than English, without abbreviations.
    kinds : tuple of tuple of str
        Its kinds that are no diagnoses of their own here, each with its names: right for it, while it is too general for them.
    confusable : tuple of str
        Keys of diagnoses that are easily confused with it.
    description : str
        Presentation and imaging in a few sentences.
    classes, subtype : str
        Its class and subtype in NeuroVLM-Bench, or empty.
    focal : bool
        It and all narrower terms lie at one site: named at another, they are another one.
    kind : bool
        It is one of the `kinds` of its parent.
    """

    key: str
    name: str
    icd10: tuple[str, ...] = ()
    parent: str = ""
    synonyms: tuple[str, ...] = ()
    abbreviations: tuple[str, ...] = ()
    translations: tuple[str, ...] = ()
    kinds: tuple[tuple[str, ...], ...] = ()
    confusable: tuple[str, ...] = ()
    description: str = ""
    classes: str = ""
    subtype: str = ""
    focal: bool = False
    kind: bool = False

    @property
    def narrower(self) -> tuple[str, ...]:
        """All names of its kinds."""
        return tuple(name for kind in self.kinds for name in kind)

    @property
    def terms(self) -> tuple[str, ...]:
        """All its names, the preferred one first."""
        return (*self.in_full, *self.abbreviations)

    @property
    def is_normal(self) -> bool:
        """True if it is no disease that a scan could show."""
        return self.classes == "normal"

    @property
    def in_full(self) -> tuple[str, ...]:
        """All its names but abbreviations."""
        return (self.name, *self.synonyms, *self.narrower, *self.translations)


@dataclass(frozen=True, kw_only=True)
class Region:
    """A region of the head: the regions within which it lies (an artery's territory is one), and further names."""

    within: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of a vocabulary by name."""

    entries: dict[str, Region] = field(default_factory=dict)

    @cached_property
    def names(self) -> dict[str, frozenset[str]]:
        """Regions by the normal form of each of their names; `frontoparietal` names two."""
        named: dict[str, set[str]] = {}
        for region, entry in self.entries.items():
            for name in (region, *entry.names):
                named.setdefault(normal_form(name), set()).add(region)
        return {name: frozenset(regions) for name, regions in named.items()}

    @cached_property
    def around(self) -> dict[str, frozenset[str]]:
        """Each region with all regions within which it lies."""

        def wider(region: str) -> frozenset[str]:
            return frozenset({region}).union(*(wider(name) for name in self.entries[region].within))

        return {region: wider(region) for region in self.entries}


@dataclass(frozen=True)
class Disease:
    """A disease of a terminology: its names, the preferred one first, and the identifiers of the next wider ones."""

    names: tuple[str, ...]
    within: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Diseases:
    """Diseases of a terminology by identifier: their names count for references that the vocabulary lacks."""

    entries: dict[str, Disease] = field(default_factory=dict)

    @cached_property
    def _named(self) -> dict[str, str]:
        preferred = {normal_form(entry.names[0]): identifier for identifier, entry in self.entries.items()}
        return {normal_form(name): identifier for identifier, entry in self.entries.items() for name in entry.names} | preferred

    @cached_property
    def _narrower(self) -> dict[str, list[str]]:
        narrower: dict[str, list[str]] = {}
        for identifier, entry in self.entries.items():
            for wider in entry.within:
                narrower.setdefault(wider, []).append(identifier)
        return narrower

    def find(self, text: str) -> str:
        """Return the identifier of the disease of a name (the whole text); empty if none has it."""
        return self._named.get(normal_form(text), "")

    def kinds(self, identifier: str) -> list[Disease]:
        """Return all diseases within one, without itself."""
        found, open_ends = {identifier: None}, [identifier]
        while open_ends:
            new = [below for below in self._narrower.get(open_ends.pop(), []) if below not in found]
            found |= dict.fromkeys(new)
            open_ends += new
        return [self.entries[below] for below in found if below != identifier]


@dataclass(frozen=True, kw_only=True, eq=False)
class Vocabulary:
    """Diagnoses and anatomy; two vocabularies are equal only if they are the same object.

    Attributes
    ----------
    version : str
        Version of the file, stated in the report.
    digest : str
        SHA-256 of the file.
    diagnoses : dict of str to Diagnosis
        By key, in the order of the file.
    locations : dict of str to tuple of str
        Synonyms by anatomical term; parts of a region are among them.
    languages : tuple of str
        Languages of the names of diagnoses (ISO 639-1). An answer in another one cannot be judged by them.
    regions : Regions
        Finer than the locations, for telling one site of a disease from another.
    other_diseases : tuple of str
        Names of diseases outside the vocabulary that have the words of a name in it: a Wernicke aphasia is no Wernicke encephalopathy.
    diseases : Diseases
        A terminology, for references that are none of the diagnoses.
    added : Diagnosis, optional
        The diagnosis that :meth:`with_diagnosis` put into another vocabulary, `base`.
    """

    version: str
    digest: str
    diagnoses: dict[str, Diagnosis]
    locations: dict[str, tuple[str, ...]]
    languages: tuple[str, ...] = ("en",)
    regions: Regions = field(default_factory=Regions)
    other_diseases: tuple[str, ...] = ()
    diseases: Diseases = field(default_factory=Diseases)
    added: Diagnosis | None = None
    base: Vocabulary | None = None

    def with_diagnosis(self, entry: Diagnosis) -> Vocabulary:
        """Return a vocabulary with one diagnosis more, or in place of the one of its key; its names come before those of others."""
        return replace(self, diagnoses={**self.diagnoses, entry.key: entry}, added=entry, base=self)

    @cached_property
    def without_kinds(self) -> Vocabulary:
        """The vocabulary without the names of kinds."""
        return replace(self, diagnoses={key: replace(entry, kinds=()) for key, entry in self.diagnoses.items()})

    @cached_property
    def index(self) -> dict[str, Diagnosis]:
        """Diagnosis by the normal form of each of its names."""
        if self.base is not None and self.added is not None:
            return {**self.base.index, **{normal_form(term): self.added for term in self.added.terms}}
        return {normal_form(term): entry for entry in self.diagnoses.values() for term in entry.terms}

    @cached_property
    def codes(self) -> dict[str, Diagnosis]:
        """Diagnosis by ICD-10 code."""
        return {code.upper(): entry for entry in self.diagnoses.values() for code in entry.icd10}

    @cached_property
    def places(self) -> dict[str, str]:
        """Anatomical term by the normal form of each of its names."""
        return {normal_form(name): term for term, synonyms in self.locations.items() for name in (term, *synonyms)}

    def find(self, text: str) -> Diagnosis | None:
        """Return the diagnosis of a name, synonym, abbreviation or ICD-10 code (the whole text), or None."""
        return self.codes.get(text.strip().upper()) or self.index.get(normal_form(text))

    def of_reference(self, answer: str, icd10: str = "") -> Diagnosis | None:
        """Return the diagnosis of a reference answer: of its name without what stands in brackets, of its whole name, or of its ICD-10 code."""
        return self.find(BRACKETS.sub(" ", answer)) or self.find(answer) or (self.find(icd10) if icd10 else None)

    def of_whole_reference(self, answer: str, icd10: str = "") -> Diagnosis | None:
        """Return the diagnosis of a reference answer as narrow as it is written: of its whole name if that is known, else as `of_reference`."""
        return self.find(answer) or self.of_reference(answer, icd10)

    def disease_family(self, text: str) -> str:
        """Return the widest term above a diagnosis (stroke, brain tumour, ...); empty if the vocabulary lacks the diagnosis."""
        found = self.find(text)
        return "" if found is None else [found, *self.ancestors(found.key)][-1].name

    def descendants(self, key: str) -> Iterator[Diagnosis]:
        """Yield the narrower terms of a diagnosis, in the order of the file."""
        return (entry for entry in self.diagnoses.values() if key in self.lineage(entry.key)[1:])

    def lineage(self, key: str) -> tuple[str, ...]:
        """Return the key of a diagnosis and those of its wider terms, the nearest first."""
        return (key, *(wider.key for wider in self.ancestors(key)))

    def ancestors(self, key: str) -> Iterator[Diagnosis]:
        """Yield the wider terms of a diagnosis, the nearest first."""
        parent = self.diagnoses[key].parent
        while parent:
            entry = self.diagnoses[parent]
            yield entry
            parent = entry.parent
