"""Find a statement in a text by words: concepts of imaging, what is denied, and opposites; deterministic and without a model.

The comparison is strict: what a statement is about and says must all be there, in the same sense. It misses most free paraphrases
(`docs/graders.md` has the measured shares), so its points stand in scores and in no table.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, groupby, pairwise
from pathlib import Path

import yaml

from neuralmedbench.records.vocabulary import normal_form

TERMS = Path(__file__).with_name("imaging_terms.yaml")

SHARE = 0.6
"""Share of a statement's words outside `imaging_terms.yaml` that must be there. Our choice, as are all limits here."""

MAX_WORDS = 45
"""A longer sentence is taken for a list of words, in which any statement could be found."""

PROSE = 4
"""With so many function words where they can stand, a sentence is prose, and its order is free."""

MIN_ORDER = 0.5
"""Least agreement of other sentences with the order of the statement, from -1 (reversed) to 1."""

STEM, SHORT = 6, 3
"""Words outside `imaging_terms.yaml` are compared by so many first letters; up to `SHORT` letters as they are."""

ARTICLES = frozenset({"a", "an", "the"})
PREPOSITIONS = frozenset({"of", "in", "on", "at", "to", "for", "with", "from", "by", "into", "within", "than"})
VERBS = frozenset({"is", "are", "was", "were", "has", "have", "had", "does", "do", "did"})
LINKS = frozenset({"and", "or"})
OTHER_WORDS = (
    "be been as that this it its which there when while during after before over under up down most very more less only all any each every"
    " other same"
)
FUNCTION_WORDS = ARTICLES | PREPOSITIONS | VERBS | LINKS | frozenset(OTHER_WORDS.split())

START, END = "^", "$"
CANNOT_FOLLOW: dict[str, Collection[str]] = {
    START: VERBS | LINKS | {"of", "not", "than"},
    **dict.fromkeys(ARTICLES, ARTICLES | PREPOSITIONS | VERBS | LINKS | {"no", "not", "this", "that", "there", END}),
    **dict.fromkeys(PREPOSITIONS, PREPOSITIONS | VERBS | LINKS | {"not", "there", END}),
    **dict.fromkeys(("on", "in", "by", "than"), VERBS | LINKS | {"of", "not", "there"}),
    **dict.fromkeys(LINKS, LINKS | {"is", "are", "of", END}),
    **dict.fromkeys(VERBS, VERBS | LINKS | {END}),
    "not": VERBS | LINKS | {END},
    "there": ARTICLES | PREPOSITIONS | LINKS | {END},
}
"""Words that cannot follow another one, begin a sentence or end a clause: shuffled words give themselves away."""

WRONG_ARTICLE = re.compile(r"\ba [aeio]|\ban [bcdfgjklpqrtvwyz]\w{3}")

ENGLISH = frozenset({"the", "of", "is", "are", "with", "and", "there"})
"""Sentences with any of these words are held to the rules of English."""

BREAKS = re.compile(
    r"[,.;:!?()]|\b(?:but|however|whereas|while|although|though|which|because|since|so)\b"
    r"|(?=\b(?:without|with no|(?:and|or) (?:no|not|without)|nor|rather than|instead of|unlike|against)\b)",
    re.IGNORECASE,
)
"""What ends a clause; the words in the last group begin one that is denied."""

DENIALS = re.compile(
    r"\b(?:no|not|non|without|never|nor|neither|none|nothing|cannot|(?:is|are|was|were|do|does|did|has|have|can|could)nt|absen\w*|negative|"
    r"denies|denied|false|untrue|excluded|ruled out|unlikely|lacks?|lacking|fails?|free of|rather than|instead of|unlike)\b"
)

SHORT_CLAUSE = 3
"""A clause of up to so many words goes on with the denial before it, as does one without a verb: `no infarct, haemorrhage or tumour`."""

Signed = tuple[str, int]
"""A quality or the stem of a word, and 1 where it is stated, -1 where it is denied."""


@dataclass(frozen=True)
class Terms:
    """The concepts of `imaging_terms.yaml`.

    Attributes
    ----------
    pattern : re.Pattern
        Finds the phrases, the longest first; one group each.
    concepts : tuple of tuple of (str, int)
        By group: concepts with 1 for a quality, -1 for its absence, 0 for a thing.
    gapped : dict
        The same for phrases with a gap, which are looked for beside the others.
    ignored : re.Pattern
        Words that say nothing by themselves.
    opposites : dict of str to frozenset of str
        Qualities that exclude each other.
    implied : dict of str to tuple of str
        Concepts that together mean a quality.
    """

    pattern: re.Pattern[str]
    concepts: tuple[tuple[Signed, ...], ...]
    gapped: Mapping[re.Pattern[str], tuple[Signed, ...]]
    ignored: re.Pattern[str]
    opposites: Mapping[str, frozenset[str]]
    implied: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Content:
    """What a sentence holds, each with the place of its first word.

    Attributes
    ----------
    things : dict of str to int
        Structures, sequences and diseases.
    qualities, stems : dict of (str, int) to int
        What is said of them, and the stems of all other words.
    length : int
        Number of words.
    functions : int
        Number of function words.
    """

    things: dict[str, int]
    qualities: dict[Signed, int]
    stems: dict[Signed, int]
    length: int
    functions: int

    def __bool__(self) -> bool:
        return bool(self.things or self.qualities or self.stems)

    def followed_by(self, other: Content) -> Content:
        """Return the content of two neighbouring sentences."""
        return Content(
            _moved(other.things, self.length) | self.things,
            _moved(other.qualities, self.length) | self.qualities,
            _moved(other.stems, self.length) | self.stems,
            self.length + other.length,
            self.functions + other.functions,
        )

    @property
    def places(self) -> dict[Hashable, int]:
        """The place of everything that it holds."""
        return {("thing", name): place for name, place in self.things.items()} | self.qualities | {("stem", *stem): place for stem, place in self.stems.items()}  # fmt: skip


def _moved(places: Mapping[Signed, int] | Mapping[str, int], by: int) -> dict:  # type: ignore[type-arg]
    return {key: place + by for key, place in places.items()}


def contains_statement(text: str, statement: str) -> bool:
    """Return True if one sentence of a text, or two neighbouring ones, make a statement, and no sentence makes its opposite.

    All things and qualities of the statement and at least `SHARE` of its other words must be there, each stated or denied as in the
    statement, and mostly in its order unless the sentence is prose. Sentences that are no prose at all (`readable`) do not count.
    """
    wanted = content(statement)
    everything = not wanted  # `no mass`: nothing is there but words that say nothing beside others
    wanted = content(statement, everything=everything)
    if not wanted:
        return False
    parts = [(content(part, everything=everything), readable(part)) for part in sentences(text)]
    if any(denies(part, wanted) for part, _ in parts):
        return False
    pairs = [(first.followed_by(second), one and two) for (first, one), (second, two) in pairwise(parts)]
    return any(is_prose and states(part, wanted) and in_order(part, wanted) for part, is_prose in (*parts, *pairs))


def sentences(text: str) -> list[str]:
    """Split a text at the ends of sentences, semicolons and lines."""
    return [part for part in re.split(r"(?<=[.!?;])\s+|\n", text) if part.strip()]


@lru_cache(maxsize=1 << 14)
def readable(sentence: str) -> bool:
    """Return True if a sentence is no list of words: not too long and, if it is English, with its function words where they can stand."""
    words = normal_form(sentence).split()
    if len(words) > MAX_WORDS:
        return False
    if not ENGLISH & set(words):
        return True
    clauses = [normal_form(clause).split() for clause in re.split(r"[,;:()]", sentence)]
    pairs = [(START, words[0]), *(pair for clause in clauses for pair in pairwise([*clause, END]))]
    return not WRONG_ARTICLE.search(" ".join(words)) and not any(second in CANNOT_FOLLOW.get(first, ()) for first, second in pairs)


def prose(text: str) -> str:
    """Return the readable sentences of a text."""
    return " ".join(part for part in sentences(text) if readable(part))


def states(text: Content, wanted: Content) -> bool:
    """Return True if a text holds all things and qualities of a statement, and enough of its other words."""
    return (
        wanted.things.keys() <= text.things.keys()
        and wanted.qualities.keys() <= text.qualities.keys()
        and _enough(text.stems, wanted.stems)
    )


def _enough(found: Collection[Hashable], wanted: Collection[Hashable]) -> bool:
    return sum(stem in found for stem in wanted) >= SHARE * len(wanted)


def in_order(text: Content, wanted: Content) -> bool:
    """Return True if a text is prose, or holds its part of a statement mostly in the order of the statement (Kendall's tau)."""
    if text.functions >= PROSE:
        return True
    first, second = wanted.places, text.places
    pairs = combinations([key for key in first if key in second], 2)
    signs = [sign for one, two in pairs if (sign := (first[one] - first[two]) * (second[one] - second[two]))]
    return sum(1 if sign > 0 else -1 for sign in signs) >= MIN_ORDER * len(signs)


def denies(text: Content, wanted: Content) -> bool:
    """Return True if a sentence is about the same, but denies a quality of the statement, states its opposite, or says both."""
    if not states(text, wanted):
        same_axes = _axes(wanted) <= _axes(text) and _enough({stem for stem, _ in text.stems}, {stem for stem, _ in wanted.stems})
        return wanted.things.keys() <= text.things.keys() and same_axes
    signed = [*wanted.qualities, *wanted.stems]
    both = sum((name, -sign) in {**text.qualities, **text.stems} and (name, -sign) not in signed for name, sign in signed)
    return both > len(signed) / 2


def _axes(one: Content) -> set[str]:
    """Return the qualities without their signs, opposites under one name."""
    opposites = imaging_terms().opposites
    return {min({name, *opposites.get(name, ())}) for name, _ in one.qualities}


@lru_cache(maxsize=1 << 14)
def content(text: str, *, everything: bool = False) -> Content:
    """Return what a sentence holds; with `everything` also words that say nothing by themselves."""
    things, qualities, stems = dict[str, int](), dict[Signed, int](), dict[Signed, int]()
    start = 0
    for clause, clause_sign in _clauses(text):
        for name, sign, place in _concepts(clause):
            if sign == 0:
                things.setdefault(name, start + place)
            else:
                qualities.setdefault((name, sign * clause_sign), start + place)
        for stem, place in _stems(clause, everything=everything):
            stems.setdefault((stem, clause_sign), start + place)
        start += len(clause.split())
    for quality, parts in imaging_terms().implied.items():
        places = [found for part in parts if (found := things.get(part, qualities.get((part, 1)))) is not None]
        if len(places) == len(parts):
            qualities.setdefault((quality, 1), min(places))
    functions = sum(word in FUNCTION_WORDS for word in normal_form(text).split())
    return Content(things, qualities, stems, start, functions)


def _clauses(text: str) -> Iterator[tuple[str, int]]:
    """Yield normalised clauses without their words of denial, with -1 for a denied one; two denials in a clause cancel."""
    before, alone = 1, False
    for part in BREAKS.split(text):
        clause = normal_form(part)
        if not clause:
            continue
        denials, words = len(DENIALS.findall(clause)), clause.split()
        goes_on = not denials and (alone or len(words) <= SHORT_CLAUSE or not VERBS & set(words))
        sign = before if goes_on else (-1) ** denials
        rest = " ".join(DENIALS.sub(" ", clause).split())
        yield rest, sign
        before, alone = sign, not rest


def _concepts(clause: str) -> Iterator[tuple[str, int, int]]:
    """Yield the concepts of a clause: name, sign (0 for a thing), place."""
    terms = imaging_terms()
    found = [(match, terms.concepts[(match.lastindex or 1) - 1]) for match in terms.pattern.finditer(clause)]
    found += [(match, concepts) for pattern, concepts in terms.gapped.items() if (match := pattern.search(clause))]
    for match, concepts in found:
        for name, sign in concepts:
            yield name, sign, clause.count(" ", 0, match.start())


def _stems(clause: str, *, everything: bool) -> Iterator[tuple[str, int]]:
    """Yield the stems of words that belong to no concept, with their places."""
    terms = imaging_terms()
    left = terms.pattern.sub(lambda match: " ".join("-" for _ in match.group().split()), clause)
    for place, word in enumerate(left.split()):
        if word != "-" and word not in FUNCTION_WORDS and (everything or not terms.ignored.fullmatch(word)):
            yield word.removesuffix("s")[:STEM] if len(word) > SHORT else word, place


@lru_cache(maxsize=1)
def imaging_terms() -> Terms:
    """Read the concepts of `imaging_terms.yaml`."""
    file = yaml.safe_load(TERMS.read_text(encoding="utf-8"))
    concepts: dict[str, tuple[Signed, ...]] = {}
    for section, sign in (("things", 0), ("qualities", 1), ("without_quality", -1)):
        for concept, phrases in file[section].items():
            for phrase in phrases:
                concepts[phrase] = (*concepts.get(phrase, ()), (concept, sign))
    # the words in a gap keep their own concepts
    gapped = {re.compile(rf"\b{_expression(phrase)}\b"): found for phrase, found in concepts.items() if " * " in phrase}
    phrases = [phrase for phrase in concepts if " * " not in phrase]
    opposites: dict[str, frozenset[str]] = {}
    for pair in file["opposites"]:
        for one, other in (pair, pair[::-1]):
            opposites[one] = opposites.get(one, frozenset()) | {other}
    ordered = sorted(phrases, key=lambda phrase: (phrase[:2], -len(phrase.split()), -len(phrase), phrase))
    return Terms(
        _alternatives(ordered),
        tuple(concepts[phrase] for phrase in ordered),
        gapped,
        re.compile("|".join(_expression(word) for word in file["ignored"].split())),
        opposites,
        {quality: tuple(parts) for quality, parts in file["implied"].items()},
    )


def _expression(phrase: str) -> str:
    return " ".join(r"\w+" if word == "*" else re.escape(word).replace(r"\*", r"\w*") for word in phrase.split())


def _alternatives(phrases: Sequence[str]) -> re.Pattern[str]:
    """Compile phrases, sorted by their first two letters, as alternatives of one group each; a branch per two letters makes it fast."""
    branches = ("|".join(f"({_expression(phrase)})" for phrase in same) for _, same in groupby(phrases, key=lambda phrase: phrase[:2]))
    starts = dict.fromkeys(phrase[:2] for phrase in phrases)
    return re.compile(
        r"\b(?:" + "|".join(rf"(?={re.escape(start)})(?:{branch})" for start, branch in zip(starts, branches, strict=True)) + r")\b"
    )
