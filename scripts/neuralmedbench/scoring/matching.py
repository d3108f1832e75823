"""Compare a line of a differential with the reference: the diagnosis that it asserts, its side, its site and its kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, lru_cache

from neuralmedbench.files.words import word_set
from neuralmedbench.records.items import NO_LESION, Gold
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form
from neuralmedbench.scoring.kinds import OTHER_MATTER, KindOf, another_kind, kind_within, kinds_apart, kinds_within, narrows
from neuralmedbench.scoring.lines import (
    BRACKETS,
    CAUSED,
    DESCRIPTIVE,
    LEAD_IN,
    OF_ALL,
    REFERENCE_KEY,
    RULE_OUT,
    diagnoses_named,
    has_negation,
    place_words,
    plainly_named,
    resolve,
    speaks_of_another,
)
from neuralmedbench.scoring.names import (
    GENERIC,
    LOOSE_WORDS,
    compared_words,
    expand,
    initials,
    is_group,
    named_by_words,
    telling_words,
    write_out,
)
from neuralmedbench.scoring.places import elsewhere, mentioned_places, mentioned_regions, sides
from neuralmedbench.scoring.spelling import spell

NOTHING = frozenset({"none", "no", "nil", "absent", "negative", "no focal lesion", "no focal abnormality"})

ABOUT_SYMPTOMS = re.compile(r"\s(?:with|causing|presenting|due to|secondary to)\s", re.IGNORECASE)

BEHIND_FINDINGS = re.compile(
    r"\s-\s|[:;–—]|\b(?:diagnostic|pathognomonic|typical|characteristic|appearances?|those|picture) of\b|"
    r"\b(?:due to|caused by|secondary to|attribut(?:able|ed) to|explained by|as a (?:result|consequence) of)\b",
    re.IGNORECASE,
)
"""Signs and words behind which a line that began with findings comes to its diagnosis."""
JOINING_WORDS = word_set("positive related associated induced mediated onset")
"""Words of a kind that its name may lack: MuSK-positive myasthenia."""
CAUSED_BY = re.compile(r"\s(?:due to|secondary to|caused by)\s", re.IGNORECASE)
UNSURE = re.compile(
    r"\b(?:vs|versus|or|differential|consider|alternative\w*|possibl[ey]|less|second\w*|mimic\w*|history|previous)\b|\?", re.IGNORECASE
)
"""Words that keep a line from coming to one diagnosis."""
MIN_INITIALS = 2
"""Initials of this length are common: they stand for the preferred name only."""
MIN_TELLING, MIN_LONG = 2, 4
"""Words that a reference outside the vocabulary has at least, so that they tell it in any order; and a name of one within it."""
CAPITALS, MAX_CAPITALS = re.compile(r"(?<![\w/-])[A-Z]{2,5}(?![\w/-])"), 3


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
    kind: KindOf | None = None

    @property
    def wording(self) -> str:
        """Its words and those of its preferred name."""
        return f"{self.gold.answer} {self.entry.name}"

    @cached_property
    def outside(self) -> bool:
        """True if neither the vocabulary nor the terminology beside it has it: whether an answer is right then depends on words alone."""
        return self.entry.key == REFERENCE_KEY and not _in_terminology(self.gold.answer, self.entry.in_full, self.vocabulary)

    def may_be(self, answer: str) -> bool:
        """Return True if words cannot tell whether an answer is another name of a reference outside the vocabulary: no list has both."""
        if not self.outside or relation(answer, self) is not Relation.UNRELATED or another_kind(answer, self.wording):
            return False
        shared = telling_words(answer, self.vocabulary.regions) & telling_words(self.gold.answer, self.vocabulary.regions)
        known = [entry for entry in diagnoses_named(answer, self.vocabulary) if not is_group(entry.name, self.vocabulary)]
        return bool(shared - GENERIC) or not (known or self.vocabulary.diseases.find(BRACKETS.sub(" ", answer)))

    @cached_property
    def initials(self) -> frozenset[str]:
        """Initials of its names that stand for nothing else: WE, as clinicians write Wernicke encephalopathy."""
        given = {initials(name) for name in (BRACKETS.sub(" ", self.gold.answer), *self.gold.aliases, self.entry.name)}
        further = {short for name in self.entry.synonyms if len(short := initials(name)) > MIN_INITIALS}
        return frozenset(short for short in given | further if short and self._is_free(short))

    def _is_free(self, short: str) -> bool:
        return not (self.vocabulary.find(short) or mentioned_places(short, self.vocabulary) or mentioned_regions(short, self.vocabulary))

    @cached_property
    def telling_names(self) -> list[frozenset[str]]:
        """Words of its names that tell it in whatever order: of long names and, if the vocabulary lacks it, of its own."""
        own = [(self.gold.answer, MIN_TELLING)] if self.kind or self.entry.key == REFERENCE_KEY else []
        names = [*own, *((name, MIN_LONG) for name in self.entry.synonyms)]
        return [words for name, fewest in names if len(words := telling_words(name, self.vocabulary.regions)) >= fewest]

    @cached_property
    def narrows(self) -> bool:
        """True if its words state one of the kinds by which the names of its diagnosis differ: an acute subdural haematoma."""
        return self.kind is None and narrows(_first_part(self.gold.answer), self.entry)

    def write_out(self, line: str) -> str:
        """Replace its initials in a line, as written in capitals, by its name."""
        if line.isupper() and len(line.split()) > MAX_CAPITALS:  # what is no abbreviation is in capitals, too
            return line
        return CAPITALS.sub(lambda match: self.entry.name if match.group() in self.initials else match.group(), line)

    @classmethod
    def of(cls, gold: Gold, vocabulary: Vocabulary) -> ReferenceAnswer:
        """Prepare the reference of one item; if the vocabulary lacks it, it is added under its own name.

        A reference that is a kind of a diagnosis is an entry of its own: the diagnosis would be too general, another kind of it wrong.
        Names of kinds count for the references that have them alone.
        A qualifier in brackets does not narrow the reference: for `acute ischaemic stroke (MCA territory)` a plain acute ischaemic stroke
        is right, but one of another artery is wrong.
        """
        names, apart = vocabulary.without_kinds, kinds_apart(vocabulary)
        named = names.of_reference(gold.answer) or _kind(gold.answer, apart) or (names.find(gold.icd10) if gold.icd10 else None)
        found = named or _described(re.sub(r"\([^()]*\)", " ", gold.answer), names)
        if found is not None and named is None:
            first = _first_part(gold.answer)
            found = kind_within(first, vocabulary.diagnoses[found.key], vocabulary, DESCRIPTIVE | place_words(vocabulary)) or found
        kind = None
        if found is None:
            entry, vocabulary = _unknown(gold.answer, names), names
        elif found.key in vocabulary.diagnoses:
            entry = vocabulary.diagnoses[found.key]
        else:
            kind, vocabulary = KindOf.made_by(found, vocabulary), apart
            # a terminology may have further names of the kind
            other = _unknown(gold.answer, names)
            names_of_it, short = ([name for name in more if apart.find(name) is None] for more in (other.synonyms, other.abbreviations))
            entry = replace(found, synonyms=(*found.synonyms, *names_of_it), abbreviations=(*found.abbreviations, *short))
        aliases = tuple(alias for alias in (gold.answer, *gold.aliases) if normal_form(alias))
        # an ICD-10 code of the answers table that the vocabulary does not use is another name of the reference
        codes = (gold.icd10,) if gold.icd10 and not vocabulary.find(gold.icd10) else ()
        if kind is None and not codes and all((same := vocabulary.find(alias)) and same.key == entry.key for alias in aliases):
            return cls(gold, entry, vocabulary)
        entry = replace(entry, synonyms=(*entry.synonyms, *aliases), icd10=(*entry.icd10, *codes))
        return cls(gold, entry, vocabulary.with_diagnosis(entry), kind)


def _kind(text: str, apart: Vocabulary) -> Diagnosis | None:
    """Return the kind that a reference is, as it is written or with words beside it that only describe it."""
    if named := apart.of_reference(text):
        return named
    for part in (BRACKETS.sub(" ", text), _first_part(text)):
        if not normal_form(part):
            continue
        named = plainly_named(part, apart) or _of_same_words(part, apart)
        if named and named.kind and kinds_within(part, named.name):
            return named
    named_beside = [plainly_named(part, apart) for part in text.split("/")] if "/" in text else []
    alternatives = {entry.key: entry for entry in named_beside if entry and entry.kind}
    return next(iter(alternatives.values())) if len(alternatives) == 1 else _by_its_cause(text, apart)


def _by_its_cause(text: str, apart: Vocabulary) -> Diagnosis | None:
    """Return the kind of a diagnosis by one cause: a meningitis caused by listeria."""
    head, *cause = CAUSED_BY.split(BRACKETS.sub(" ", text), maxsplit=1)
    wider = plainly_named(head, apart) if cause and normal_form(head) else None
    if wider is None:
        return None
    named = named_by_words(f"{cause[0]} {head}", apart)
    return next((entry for entry in named if entry.kind and wider in apart.ancestors(entry.key)), None)


def _of_same_words(text: str, apart: Vocabulary) -> Diagnosis | None:
    """Return the kind with a name of the same words in another order: `ataxia, spinocerebellar, type 3`."""
    words = compared_words(write_out(text, apart), apart.regions) - LOOSE_WORDS - JOINING_WORDS
    for entry in named_by_words(write_out(text, apart), apart):
        if entry.kind and any(words == compared_words(name, apart.regions) - LOOSE_WORDS - JOINING_WORDS for name in entry.in_full):
            return entry
    return None


def _first_part(text: str) -> str:
    """Return a reference up to what it is caused by, comes with or lies at."""
    plain = re.sub(r"\([^()]*\)", " ", text)
    return OTHER_MATTER.split(CAUSED.split(re.split(r"[,;]", plain, maxsplit=1)[0], maxsplit=1)[0], maxsplit=1)[0]


def outside_references(references: Iterable[Gold], vocabulary: Vocabulary) -> list[str]:
    """Return the answers of those references that neither the vocabulary nor the terminology beside it has, each once, in their order."""
    prepared = (ReferenceAnswer.of(gold, vocabulary) for gold in references)
    return list(dict.fromkeys(reference.gold.answer for reference in prepared if reference.outside))


@lru_cache(maxsize=1 << 10)
def diagnosis_of_criterion(statement: str, vocabulary: Vocabulary) -> ReferenceAnswer:
    """Prepare the diagnosis that a criterion names; many answers are compared with it."""
    return ReferenceAnswer.of(Gold(item_id="", answer=statement), vocabulary)


def _described(text: str, vocabulary: Vocabulary) -> Diagnosis | None:
    """Return the diagnosis of a reference whose further words only describe it: side, place, stage; what stands behind a comma may be any."""
    first = _first_part(text)
    plain = plainly_named(first, vocabulary) if normal_form(first) else None
    head, whole = diagnoses_named(CAUSED.split(text, maxsplit=1)[0], vocabulary), diagnoses_named(text, vocabulary)
    entry = plain or (head[0] if len(head) == 1 else None)
    if entry is None or another_kind(text, entry.name):
        return None
    narrower = [below for below in whole if entry in vocabulary.ancestors(below.key)]
    entry = narrower[0] if len(narrower) == 1 else entry
    # words that the vocabulary does not know make a member of a group: dengue encephalitis is not any encephalitis, nor a
    # mantle cell lymphoma one of the brain, which has `lymphoma` as a name, too
    group = any(below.parent == entry.key for below in vocabulary.diagnoses.values()) or not _has_long_name(text, entry, vocabulary)
    return entry if plain is not None or not group else None


def _has_long_name(text: str, entry: Diagnosis, vocabulary: Vocabulary) -> bool:
    words = compared_words(write_out(text, vocabulary), vocabulary.regions)
    names = (compared_words(name, vocabulary.regions) for name in entry.in_full)
    return any(len(name) > 1 and name <= words for name in names)


def _unknown(text: str, vocabulary: Vocabulary) -> Diagnosis:
    """Return an entry for a reference that the vocabulary lacks: its name, the part before what it causes, its abbreviation, those of a terminology."""
    plain = BRACKETS.sub(" ", text)
    parts = (OTHER_MATTER.split(plain, maxsplit=1)[0], CAUSED.split(plain, maxsplit=1)[0])
    # one word alone is wider: a pneumonia for that by one agent
    heads = [part for part in (plain, *parts) if normal_form(part) and (part == plain or len(normal_form(part).split()) > 1)]
    heads += [re.split(r"[,;]", head, maxsplit=1)[0] for head in heads]
    short = re.search(r"((?:[\w-]+[\s-]+){2,6})\(([A-Z][A-Za-z]{1,6})\)\s*(?:$|[.,;]|with\b|due\b|caused\b|secondary\b)", text)
    initials = "".join(word[0] for word in re.split(r"[\s-]+", short.group(1)) if word).casefold() if short else ""
    abbreviations = (short.group(2),) if short and initials.endswith(short.group(2).casefold()) else ()
    names = [head.strip(" .,;") for head in heads if normal_form(head) and plainly_named(head, vocabulary) is None]
    terminology, known = vocabulary.diseases, _in_terminology(text, heads, vocabulary)
    if known:
        names += terminology.entries[known].names
    free = [name for name in dict.fromkeys(names) if not vocabulary.find(name)]
    in_capitals = tuple(name for name in free if name.isupper() and name.isalpha())
    kinds = tuple(name for kind in terminology.kinds(known) for name in kind.names if not vocabulary.find(name)) if known else ()
    return Diagnosis(
        key=REFERENCE_KEY,
        name=text,
        synonyms=tuple(name for name in free if name not in in_capitals),
        abbreviations=tuple(dict.fromkeys((*abbreviations, *in_capitals))),
        kinds=tuple((kind,) for kind in kinds if not kind.isupper()),
    )


def _in_terminology(text: str, heads: Sequence[str], vocabulary: Vocabulary) -> str:
    within_brackets = [bracket[1:-1] for bracket in BRACKETS.findall(text)]
    return next((key for name in (*heads, *within_brackets) if (key := vocabulary.diseases.find(name.strip(" .,;")))), "")


def relation(answer: str, reference: ReferenceAnswer) -> Relation | None:
    """Return how one line of a differential relates to the reference; None for an empty line.

    `sibling`: both share a wider term, or the diagnosis is right but the line states the other side, another site or another kind of it.
    """
    if not normal_form(answer):
        return None
    # the reference word for word is exact even if the vocabulary would read it otherwise
    if normal_form(answer) == normal_form(reference.gold.answer):
        return Relation.EXACT
    whole = _relation_of_line(answer, reference)
    # a name of another diagnosis is not read again, part by part or in translation: a `CC agenesis` is no contusion (CC)
    if whole in RIGHT or (reference.entry.key != REFERENCE_KEY and _is_a_name(answer, reference.vocabulary)):
        return whole
    line = spell(expand(reference.write_out(RULE_OUT.sub("rule out", answer))), reference.vocabulary, in_english=True)
    again = _relation_of_line(line, reference)
    if again in RIGHT:
        return again
    # findings, then what they are due to: the diagnosis at the end counts if nothing before it is another one
    ends = [_relation_of_line(end, reference) for end in _ends(line, reference)]
    if any(found in RIGHT for found in ends) or _has_all_words(line, reference):
        return Relation.SYNONYM
    return Relation.PARENT if whole is Relation.UNRELATED and _is_wider(answer, reference) else whole


def _is_wider(line: str, reference: ReferenceAnswer) -> bool:
    """Return True if a line is one word of a reference that stands in no list: `pneumonia` for that by one agent."""
    if reference.entry.key != REFERENCE_KEY:
        return False
    words, whole = (compared_words(text, reference.vocabulary.regions) - LOOSE_WORDS for text in (line, reference.gold.answer))
    return len(words) == 1 and words < whole


@lru_cache(maxsize=1 << 14)
def _is_a_name(line: str, vocabulary: Vocabulary) -> bool:
    """Return True if a line is a name with no more beside it than a lead-in, certainty, a side, a place, and what it comes with."""
    rest = LEAD_IN.sub(" ", line)
    if vocabulary.find(line) or plainly_named(rest, vocabulary):
        return True
    # `cystic lesion with a mural nodule - haemangioblastoma` goes on to its diagnosis
    entry = None if BEHIND_FINDINGS.search(rest) else plainly_named(OTHER_MATTER.split(rest, maxsplit=1)[0], vocabulary)
    return entry is not None and not any(vocabulary.descendants(entry.key))


def _has_all_words(line: str, reference: ReferenceAnswer) -> bool:
    """Return True if a line has all words of a reference that the vocabulary lacks, in whatever order (`A due to B` is `B with A`), or of a long name."""
    if has_negation(line) or UNSURE.search(line) or speaks_of_another(line):
        return False
    words = compared_words(line, reference.vocabulary.regions)
    if not any(telling <= words for telling in reference.telling_names):
        return False
    return not _elsewhere(line, reference.entry, reference) and not another_kind(line, reference.wording)


def _relation_of_line(line: str, reference: ReferenceAnswer) -> Relation:
    named = reference.vocabulary.find(line)
    if named is not None and named.kind:  # the name of a kind is not read word by word
        return _lineage(named, reference)
    relations = {_lineage(entry, reference): entry for entry in diagnoses_named(line, reference.vocabulary)}
    lineage = next((lineage for lineage in Relation if lineage in relations), Relation.UNRELATED)
    if lineage not in RIGHT and _states_kind(line, reference):
        lineage, relations = Relation.SYNONYM, {Relation.SYNONYM: reference.entry}
    if lineage is Relation.SYNONYM and reference.narrows and _is_bare_name(line, reference):
        return Relation.PARENT
    if lineage in RIGHT and (
        _elsewhere(line, relations[lineage], reference) or another_kind(line, reference.wording) or _another_cause(line, reference)
    ):
        return Relation.SIBLING
    return lineage


def _states_kind(line: str, reference: ReferenceAnswer) -> bool:
    """Return True if a line names the diagnosis of which the reference is a kind, and beside it all that makes the kind."""
    kind = reference.kind
    if kind is None or is_group(kind.of.name, kind.vocabulary):
        return False
    named = diagnoses_named(line, kind.vocabulary)
    return any(kind.of.key in kind.vocabulary.lineage(entry.key) for entry in named) and kind.stated_in(line)


def _is_bare_name(line: str, reference: ReferenceAnswer) -> bool:
    """Return True if a line has no word beside those of the preferred name."""
    regions = reference.vocabulary.regions
    words = compared_words(write_out(line, reference.vocabulary), regions) - LOOSE_WORDS
    return words <= compared_words(reference.entry.name, regions)


def _another_cause(line: str, reference: ReferenceAnswer) -> bool:
    """Return True if a line and the reference state causes that are different diagnoses."""
    stated, expected = (CAUSED.split(text, maxsplit=1)[1:] for text in (line, reference.gold.answer))
    if not stated or not expected:
        return False
    named, right = (diagnoses_named(cause, reference.vocabulary) for cause in (stated[0], expected[0]))
    families = {key for entry in right for key in reference.vocabulary.lineage(entry.key)}
    return bool(named and right) and not any(entry.key in families for entry in named)


def _ends(line: str, reference: ReferenceAnswer) -> Iterator[str]:
    """Yield the ends of a line that stand behind findings or a wider name."""
    for match in BEHIND_FINDINGS.finditer(line):
        before, end = line[: match.start()], line[match.end() :]
        if has_negation(before) or UNSURE.search(before) or OF_ALL & set(normal_form(before).split()):
            return
        if match.group() == ":" and LEAD_IN.match(before) and not has_negation(end):  # `consistent with X: signs of it`
            yield before
        # part by part: of a line that names several diagnoses none is read
        parts = [before, *re.split(r"[,;:&/]|\band\b", before)]
        found = {entry.key: entry for part in parts for entry in diagnoses_named(part, reference.vocabulary)}.values()
        named = [entry for entry in found if not any(reference.vocabulary.descendants(entry.key))]
        if all(_lineage(entry, reference) in {*RIGHT, Relation.PARENT} for entry in named):
            yield end if sides(end) else f"{end}, {' '.join(sorted(sides(before)))}"


def _lineage(named: Diagnosis, reference: ReferenceAnswer) -> Relation:
    ours, theirs = (reference.vocabulary.lineage(entry.key) for entry in (named, reference.entry))
    if ours[0] == theirs[0]:
        return Relation.SYNONYM
    if theirs[0] in ours:
        return Relation.CHILD
    if ours[0] in theirs:
        return Relation.PARENT
    return Relation.UNRELATED if set(ours).isdisjoint(theirs) else Relation.SIBLING


def _elsewhere(answer: str, named: Diagnosis, reference: ReferenceAnswer) -> bool:
    vocabulary, lesion = reference.vocabulary, reference.gold.lesion
    line = expand(answer)
    about, expected = ABOUT_SYMPTOMS.split(line, maxsplit=1)[0], f"{reference.gold.answer} {lesion.location if lesion else ''}"
    stated = sides(about) - {"midline"}
    side = {lesion.side} if lesion else sides(reference.gold.answer)
    if side <= {"left", "right"} and len(side) == 1 and stated and not side & stated:
        return True
    # another artery's territory, if both name one
    right, named_territories = _territories(expected, vocabulary), _territories(about, vocabulary)
    if right and named_territories and not right & named_territories:
        return True
    focal = any(entry.focal for entry in (named, reference.entry, *vocabulary.ancestors(reference.entry.key)))
    if not focal:
        return False
    # a name without a place has that of its diagnosis: Wallenberg syndrome lies in the brainstem
    here = mentioned_regions(OTHER_MATTER.split(line, maxsplit=1)[0], vocabulary)
    names = named.in_full if not here and named.key != reference.entry.key else ()
    here = here or {region for name in names for region in mentioned_regions(name, vocabulary)}
    return elsewhere(here, mentioned_regions(expected, vocabulary), vocabulary)


def _territories(text: str, vocabulary: Vocabulary) -> set[str]:
    return {place for place in mentioned_places(text, vocabulary) if place.endswith("territory")}


def reference_rank(differential: tuple[str, ...], reference: ReferenceAnswer) -> int | None:
    """Return the rank, from 1, of the first right line (exact, synonym or child) in a differential; None if there is none."""
    ranks = (rank for rank, line in enumerate(differential, start=1) if relation(line, reference) in RIGHT)
    return next(ranks, None)


def says_no_lesion(text: str, vocabulary: Vocabulary) -> bool:
    """Return True if the answer to "what type of lesion" is that there is no lesion."""
    nothing = vocabulary.find(NO_LESION)
    named = resolve(text, vocabulary)
    return normal_form(text) in NOTHING or (named is not None and nothing is not None and named.key == nothing.key)
