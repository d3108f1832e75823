"""Find the names of diagnoses in a clinical line whose words stand in another order, in other forms or misspelt."""

from __future__ import annotations

import re
from collections import ChainMap, Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

from neuralmedbench.files.words import word_set
from neuralmedbench.records.items import NO_LESION
from neuralmedbench.records.vocabulary import Diagnosis, Regions, Vocabulary, normal_form
from neuralmedbench.scoring.places import longest_terms

MIN_EXCHANGED = 5
"""Letters of a word in which two neighbours may be exchanged, or that may have one too many."""

SHORTHAND = (
    (r"(?<![\w-])L(?=[ /-])(?! ?\d)", "left"),
    (r"(?<![\w-])R(?=[ /-])(?!/o)", "right"),
    (r"(?<!\w)(?:LT|Lt)(?!\w)", "left"),
    (r"(?<!\w)(?:RT|Rt)(?!\w)", "right"),
    (r"(?i)(?<!\w)b/l(?!\w)", "bilateral"),
    (r"(?i)(?<!\w)w/o(?!\w)", "without"),
    (r"(?i)(?<!\w)w/", "with "),
    (r"(?i)(?<!\w)c/w(?!\w)", "consistent with"),
    (r"(?i)(?<!\w)(?:d/t|2/2|2°|2ry)(?!\w)(?: to\b)?", "due to"),
    (r"(?i)(?<!\w)h/o(?!\w)", "history of"),
    (r"(?i)(?<!\w)s/p(?!\w)", "after"),
    (r"(?i)\bi\.e\.", ", "),
    (r"(?<![\w)])\?+\s*(?=\w)", "possible "),
    (r"\b([A-Z]{3,})s\b", r"\1"),
)
"""Shorthand of case notes and what it stands for."""

INTRODUCTION = re.compile(
    r"^(?:(?!\bnot?\b)[^.;])*?\bdiagnos[ie]s(?: (?!is|would|remains|not?\b)[\w',-]+){0,8} (?:is|would be|remains)\b[\s:*]*|^\W*(?:final )?diagnosis\W*:\W*",
    re.IGNORECASE,
)
"""The beginning of a sentence that comes to its diagnosis: `based on the history, the most likely diagnosis in this patient is`."""

HEDGES = re.compile(
    r"\b(?:un)?till? proven otherwise\b|\b(?:would be|is|as) (?:at the )?top of (?:my|the|our) (?:list|differential)\b|"
    r"\b(?:is |strongly |heavily )?favou?red(?: diagnosis| (?:over|to) .*)?\b|\bby (?:\d+ )?\w+ criteria\b|\bmost likely(?: in a?etiology)?\b|"
    r"\bin (?:a?etiology|origin|nature|type)\b|\b(?:my|our) (?:leading|first|top|working) (?:diagnosis|choice|consideration)\b",
    re.IGNORECASE,
)
"""Words of a clinician's certainty that leave the diagnosis as it is."""

PHRASES = (
    (r"\bcentral nervous system\b", "cns"),
    (r"\bherpes simplex virus\b|\bhsv(?: ?[12])?\b", "herpes simplex"),
    (r"\bcollection of blood\b|\bblood collection\b", "hemorrhage"),
    (r"\bintra ?parenchymal\b|\bintra ?cerebral\b|\bparenchymal\b", "intracerebral"),
    (r"\bhemorrhagic (?:stroke|cva)\b", "hemorrhage"),
    (r"\bhcp\b", "hydrocephalus"),
    (r"\bmid line\b", "midline"),
    (r"\bsmall vessels?\b|\bmicrovascular\b", "smallvessel"),
    (r"\b(\d) ?p (\d+) ?q\b", r"\1p\2q"),
    (r"\bco ?deleted\b", "codeleted"),
    (r"\bwild ?type\b", "wildtype"),
    (r"\bnon ?syndromic\b", "nonsyndromic"),
)
"""Phrases of the normal form and the word by which they are compared."""

SAME_WORD = {
    "bleed": "hemorrhage",
    "bleeding": "hemorrhage",
    "hematoma": "hemorrhage",
    "hemorrhages": "hemorrhage",
    "hematomata": "hemorrhage",
    "infarction": "infarct",
    "infarcted": "infarct",
    "stroke": "infarct",
    "cva": "infarct",
    "lacune": "lacunar infarct",
    "capsular": "internal capsule",
    "neoplasm": "tumor",
    "carcinoma": "cancer",
    "tumoral": "tumor",
    "metastatic": "metastasis",
    "metastases": "metastasis",
    "htn": "hypertensive",
    "hypertension": "hypertensive",
    "ectasia": "ectopia",
    "haemangioma": "hemangioma",
    "oligodendroglial": "oligodendroglioma",
    "ependymal": "ependymoma",
    "thrombosed": "thrombosis",
    "sinovenous": "venous sinus",
    "ruptured": "rupture",
    "degenerative": "degeneration",
    "demyelinating": "demyelination",
    "epileptic": "epilepsy",
    "seizures": "seizure",
    "tuberculous": "tuberculosis",
    "cryptococcal": "cryptococcus",
    "bacterial": "pyogenic",
    "purulent": "pyogenic",
    "i": "1",
    "ii": "2",
    "iii": "3",
    "iv": "4",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "neurocognitive": "dementia",
    "jacob": "jakob",
    "orbitopathy": "ophthalmopathy",
}
"""Words that are compared as one."""

VESSELS = frozenset({"sinus", "vein"})
"""Nouns that name the vessel of a region and are words of diagnoses, too: thrombosis of the superior sagittal sinus."""

LINKING_WORDS = word_set("a an the of in on at to for with and or by from as is are was this that its due secondary")
LOOSE_WORDS = word_set(
    "disease disorder syndrome condition type grade who cns brain cerebral cerebri intracranial classic typical acute lesion"
    " deformity anomaly malformation variant form nos idiopathic spontaneous territory distribution major spectrum"
)
"""Words that a name may lack and still be no other one's."""

DESCRIBING_WORDS = word_set(
    "related induced associated onset adult early late atypical progressive isolated childhood juvenile infantile sporadic familial hereditary"
    " definite probable possible presumed confirmed rare unilateral nonsyndromic chronic subacute recurrent left right bilateral severe mild active primary multiple congenital"
)
"""Words that a reference outside the vocabulary may have beyond its name."""

CAUSING_WORDS = word_set(
    "caused causing leading presenting complicated complication superimposed concurrent underlying involvement setting context"
)
"""Words that join two diagnoses."""

GENERIC = word_set(
    "tumor infarct hemorrhage infection lesion malformation encephalitis encephalopathy dementia disease abscess cyst glioma aneurysm"
    " metastasis thrombosis injury normal seizure epilepsy headache neoplasm angiopathy vasculitis"
)
"""Words that alone name a group: only the name as it is written counts."""


MIXED = re.compile(r"[a-z][A-Z]{2,}")
WITH_PREFIX, PREFIXES = (
    re.compile(r"(?P<prefix>[acst])(?P<short>[A-Z]{3,})"),
    {"t": "traumatic", "c": "chronic", "a": "acute", "s": "spontaneous"},
)
WITH_VARIANT = re.compile(
    r"(?P<short>[A-Z]{3,}\d?)-(?!(?:related|associated|induced|like|positive|negative|mimic\w*|mutant|wildtype)\b)(?P<variant>[A-Za-z]\w*)"
)
OTHER_INITIALS = frozenset(
    {"CT", "MR", "MRI", "MRA", "MRV", "DWI", "ADC", "FLAIR", "SWI", "CSF", "EEG", "WHO", "IDH", "US", "IV", "OR", "ED", "ER"}
)
"""Abbreviations of the ward that stand for no diagnosis."""


HAN = re.compile(r"[\u3400-\u9fff]")
HAN_MARKS = re.compile(r"(?<=[\u3400-\u9fff])[-‐–·・](?=[\u3400-\u9fff])")
"""Marks between the parts of a foreign name in Chinese, which are often left out."""

HAN_PUNCTUATION = str.maketrans("，、；：。（）", ",,;:.()")
HAN_WORDS = {
    "left": "左侧 左",
    "right": "右侧 右",
    "bilateral": "双侧",
    "no": "未见明显 无明显 没有 未见 不考虑 不支持 排除 除外 否认 无",
    "or": "或者 或 还是",
    "with": "伴有 伴 合并 并发 导致 所致 继发 引起 破入",
}
HAN_SIGNS = {sign: word for word, signs in HAN_WORDS.items() for sign in signs.split()}
"""Chinese words around the name of a diagnosis, and what they are read as."""


@lru_cache(maxsize=1 << 14)
def expand(text: str) -> str:
    """Write out the shorthand of case notes and leave out phrases of certainty."""
    for short, long in SHORTHAND:
        text = re.sub(short, long, text)
    return HEDGES.sub(" ", INTRODUCTION.sub("", text))


@dataclass(frozen=True)
class Names:
    """The names of diagnoses, ready for a search.

    `words`: all words that are no misspelling, `english`: those of them in English names; `long`: how many names have a long word, by first letter and word; `sets`: key of the diagnosis
    by the words of its name; `by_word`: these sets by one of their words; `han`: names in Chinese, the longest first.
    """

    words: frozenset[str]
    english: frozenset[str]
    long: dict[str, Counter[str]]
    sets: dict[frozenset[str], str]
    by_word: dict[str, list[frozenset[str]]]
    abbreviations: dict[str, str]
    han: tuple[str, ...]


@lru_cache(maxsize=64)
def layers(vocabulary: Vocabulary) -> tuple[Names, ...]:
    """Return the names of a vocabulary; those of a diagnosis that was added to another vocabulary come first."""
    if vocabulary.base is None or vocabulary.added is None:
        entries = vocabulary.diagnoses.values()
        further = [*vocabulary.places, *vocabulary.regions.names]
        guard = {word for text in (*further, *(entry.description for entry in entries)) for word in normal_form(text).split()}
        return (_names(entries, _sets_of_words(vocabulary), guard | set(SAME_WORD), further),)
    base = layers(vocabulary.base)
    entry = vocabulary.added
    known = base[0].words - (_words_of_one(vocabulary.base, entry) if entry.kind else frozenset())
    full = {compared_words(name, vocabulary.regions) for name in entry.in_full}
    # a name that the vocabulary lacks also counts without the words that only describe: `atypical Dravet syndrome`
    bare = {words - LOOSE_WORDS - DESCRIBING_WORDS for words in full}
    places = vocabulary.regions.entries.keys()
    sets = {
        words: entry.key
        for words in full | {words for words in bare if len(words) > 1 or words - known}
        if _telling(words) and words - places
    }
    return (_names([entry], sets, set(), []), *base)


def _words_of_one(vocabulary: Vocabulary, kind: Diagnosis) -> frozenset[str]:
    """Return the words of a kind that no other diagnosis has in its names."""
    words = {word for term in vocabulary.diagnoses[kind.key].terms for word in normal_form(term).split()}
    return frozenset(words - _words_of_several(vocabulary))


@lru_cache(maxsize=4)
def _words_of_several(vocabulary: Vocabulary) -> frozenset[str]:
    owners = Counter(
        word for entry in vocabulary.diagnoses.values() for word in {w for term in entry.terms for w in normal_form(term).split()}
    )
    return frozenset(word for word, number in owners.items() if number > 1)


def _names(entries: Collection[Diagnosis], sets: dict[frozenset[str], str], guard: set[str], further: Iterable[str]) -> Names:
    terms = [normal_form(term) for entry in entries for term in entry.terms]
    words = {word for term in terms for word in term.split()}
    long: dict[str, Counter[str]] = defaultdict(Counter)
    by_word: dict[str, list[frozenset[str]]] = defaultdict(list)
    # words of other languages are known, but no English word is mended into one: `encepalitis` is not encefalitis
    english = [normal_form(term) for entry in entries for term in (entry.name, *entry.synonyms, *entry.narrower, *entry.abbreviations)]
    for word in (word for term in (*english, *further) for word in term.split() if len(word) >= MIN_EXCHANGED):
        long[word[0]][word] += 1
    for name in sets:
        by_word[min(name)].append(name)
    abbreviations = {short: entry.name for entry in entries for short in entry.abbreviations}
    han = {term for entry in entries for term in entry.terms if HAN.search(term)}
    in_english = {word for term in english for word in term.split()} | guard
    return Names(
        frozenset(words | guard),
        frozenset(in_english),
        long,
        sets,
        by_word,
        abbreviations,
        tuple(sorted(han, key=lambda term: (-len(term), term))),
    )


def _sets_of_words(vocabulary: Vocabulary) -> dict[frozenset[str], str]:
    """Return the key of the diagnosis of each set of compared words that belongs to its names alone.

    A name without its loose words counts where it is no other one's.
    """
    full, loose = defaultdict(set), defaultdict(set)
    for entry in vocabulary.diagnoses.values():
        if entry is vocabulary.find(NO_LESION):  # what is absent has to be read in order
            continue
        for name in (name for name in entry.in_full if name not in entry.narrower):
            words = compared_words(name, vocabulary.regions)
            full[words].add(entry.key)
            if len(rest := words - LOOSE_WORDS) > 1 or words == rest:
                loose[rest].add(entry.key)
    sets = {words: keys for words, keys in loose.items() if words not in full} | full
    places = {*vocabulary.regions.entries, *(word for place in vocabulary.places for word in place.split())}
    return {words: next(iter(keys)) for words, keys in sets.items() if len(keys) == 1 and _telling(words) and words - places}


def _telling(words: frozenset[str]) -> bool:
    """Return True if words name one diagnosis in whatever order: not only loose ones, and no single word of a group."""
    return bool(words - LOOSE_WORDS) and (len(words) > 1 or not words & GENERIC)


def apart(text: str, vocabulary: Vocabulary) -> str:
    """Set the names of diagnoses, sides and negations in Chinese text apart by spaces; other text stays as it is."""
    if not HAN.search(text):
        return text
    pieces, found = _han_pieces(vocabulary)
    return found.sub(lambda match: f" {pieces[match.group()]} ", _han_form(text.translate(HAN_PUNCTUATION)))


def _han_form(text: str) -> str:
    """Write Chinese as it is compared: without marks within a name, and with one character for syndrome."""
    return HAN_MARKS.sub("", text).replace("综合症", "综合征")


@lru_cache(maxsize=64)
def _han_pieces(vocabulary: Vocabulary) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the names and signs in Chinese by the form in which they are compared, and the pattern that finds them, the longest first."""
    terms = [*HAN_SIGNS, *(term for layer in reversed(layers(vocabulary)) for term in reversed(layer.han))]
    pieces = {_han_form(term): HAN_SIGNS.get(term, term) for term in terms}
    return pieces, re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))))


def write_out(text: str, vocabulary: Vocabulary) -> str:
    """Replace abbreviations of the vocabulary, as written, by the names of their diagnoses.

    One may have a small letter before it (dAVF; the t of tSAH is traumatic) or a variant behind a hyphen (PSP-Richardson).
    """
    known = ChainMap(*(layer.abbreviations for layer in layers(vocabulary)))

    def name(match: re.Match[str]) -> str:
        word = match.group()
        if whole := known.get(word) or (known.get(word.upper()) if MIXED.fullmatch(word) else None):
            return whole
        if (part := WITH_PREFIX.fullmatch(word)) and part["short"] in known:
            return f"{PREFIXES.get(part['prefix'], '')} {known[part['short']]}"
        if (part := WITH_VARIANT.fullmatch(word)) and part["short"] in known:
            return f"{known[part['short']]} {part['variant']}"
        return word

    return re.sub(r"(?<![\w-])\w[\w-]+(?![\w-])", name, text)


def initials(name: str) -> str:
    """Return the initials by which clinicians shorten a name of two to five words; empty if it has fewer, more or other signs."""
    words = [word for word in re.split(r"[\s-]+", name.strip()) if word.casefold() not in LINKING_WORDS]
    short = "".join(word[0] for word in words).upper()
    plain = all(re.fullmatch(r"[A-Za-z][a-z']+", word) for word in words)
    return short if plain and 2 <= len(words) <= 5 and short not in OTHER_INITIALS else ""


def singular(word: str) -> str:
    """Return a plural word in the singular."""
    if len(word) <= 4 or word.endswith(("ss", "us", "is")):  # the s of a short word is part of it
        return word
    for plural, single in (("ies", "y"), ("ses", "sis"), ("s", "")):
        if word.endswith(plural):
            return word.removesuffix(plural) + single
    return word


@lru_cache(maxsize=1 << 14)
def compared_words(text: str, regions: Regions) -> frozenset[str]:
    """Return the words by which a text is compared: in the singular, regions and equal words by one name, without linking words."""
    plain = normal_form(text)
    for phrase, word in PHRASES:
        plain = re.sub(phrase, word, plain)
    words = plain.split()
    ends = dict(longest_terms(words, regions.names))
    compared: set[str] = set()
    position = 0
    while position < len(words):
        end = ends.get(position)
        if end is not None:
            compared.update(regions.names[" ".join(words[position:end])])
            if singular(words[end - 1]) in VESSELS:
                compared.add(singular(words[end - 1]))
            position = end
            continue
        single = singular(words[position])
        compared.update(SAME_WORD.get(words[position], SAME_WORD.get(single, single)).split())
        position += 1
    return frozenset(compared - LINKING_WORDS)


@lru_cache(maxsize=16)
def _names_within_others(vocabulary: Vocabulary) -> dict[frozenset[str], frozenset[str]]:
    """Return the diagnoses whose names stand in the name of another disease, by its words."""
    sets = layers(vocabulary)[-1].sets
    others = (compared_words(name, vocabulary.regions) for name in vocabulary.other_diseases)
    return {other: frozenset(key for words, key in sets.items() if words < other) for other in others}


def of_another_disease(text: str, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the diagnoses that a text seems to name, but for the name of another disease in it."""
    words = compared_words(text, vocabulary.regions)
    return frozenset[str]().union(*(keys for other, keys in _names_within_others(vocabulary.base or vocabulary).items() if other <= words))


def telling_words(name: str, regions: Regions) -> frozenset[str]:
    """Return the compared words of a name that do more than describe it."""
    plain = re.sub(r"\([^()]*\)", " ", name)
    return compared_words(plain, regions) - LOOSE_WORDS - DESCRIBING_WORDS - CAUSING_WORDS


def is_group(name: str, vocabulary: Vocabulary) -> bool:
    """Return True if a name has no word but those of groups: brain tumour, stroke."""
    return not compared_words(name, vocabulary.regions) - LOOSE_WORDS - GENERIC


def named_by_words(text: str, vocabulary: Vocabulary) -> list[Diagnosis]:
    """Return the diagnoses all of whose words a text contains, in whatever order; of a name within a longer one only the longer."""
    words, matched = compared_words(text, vocabulary.regions), dict[frozenset[str], str]()
    for layer in reversed(layers(vocabulary)):
        matched |= {name: layer.sets[name] for word in words for name in layer.by_word.get(word, ()) if name <= words}
    longest = [name for name in matched if not any(name < other for other in matched)]
    return [vocabulary.diagnoses[key] for key in dict.fromkeys(matched[name] for name in longest)]
