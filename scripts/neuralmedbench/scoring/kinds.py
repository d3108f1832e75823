"""Tell the kinds of one disease apart: acute and chronic, one agent or another, type 1 and 2."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form
from neuralmedbench.scoring.names import DESCRIBING_WORDS, GENERIC, LOOSE_WORDS, compared_words, expand, write_out

OTHER_MATTER = re.compile(
    r"\b(?:with(?! (?:lewy|aura))|without(?! aura)|causing|presenting|after|following|post(?=\s)|mimicking|simulating|resembling|imitating|compressing|extending|complicated by|"
    r"rather than|instead of|over|given|because|based on|on a background|as|sparing|in a|in an|mit|ohne|nach|con|sin|tras|avec|sans|apres)\b",
    re.IGNORECASE,
)
"""Words behind which a line speaks of something else than what the diagnosis is and where."""

TYPE = re.compile(r"(?:\d+|[ivx]+)[abc]?")
"""A word that tells a type: 2, ii, iib."""

HAN_NUMBER = re.compile(r"[0-9IVXabc]+(?=型)")
"""A number before the Chinese word for type."""

ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
NUMBERS = {str(number): number for number in range(1, 51)} | {numeral: number for number, numeral in enumerate(ROMAN, start=1)}
NUMBERED = [
    re.compile(rf"\b{before}(?: (?:de )?(?:type|typ|tipo))? ?(\d{{1,2}}|[ivx]+)[abc]?\b")
    for before in (
        "chiari(?: malformation)?",
        "(?:neurofibromatosis|nf)",
        "grade",
        "stage",
        "(?:type|typ|tipo)",
        "(?:focal cortical dysplasia|fcd)",
        "(?:spinocerebellar ataxia|ataxia espinocerebelosa|spinozerebellare ataxie|sca)",
    )
]
"""Names of diseases of which a number tells the kind."""

WORDS_OF_KINDS: tuple[dict[str, str], ...] = (
    {
        "acute": r"\b(?:hyper ?acute|acute|sub ?acute|recent|new|akut\w*|agud[oa]s?|aigue?s?)\b|急性",
        "episodic": r"\bepisodic\b",
        "chronic": r"\b(?:chronic|old|remote|previous|prior|longstanding|chronisch\w*|cronic[oa]s?|chroniques?)\b|慢性|陈旧",
    },
    {
        "aneurysm": r"\b(?<!non )(?:aneurysm(?:al|s)?)\b",
        "trauma": r"\b(?:traumatic|post ?traumatic|trauma|head injury|traumatisch\w*|traumatic[oa]|traumatique)\b|外伤",
        "hypertension": r"\b(?:hypertensi\w+|hipertensi\w+|htn|bp related)\b",
        "amyloid": r"\b(?:amyloid|caa)\b",
        "malformation": r"\b(?:avm|arterio ?venous malformation|cavernoma|cavernous)\b",
        "vasoconstriction": r"\b(?:rcvs|vasoconstriction)\b",
        "perimesencephalic": r"\b(?:perimesencephalic|non aneurysmal)\b",
        "infarct": r"\b(?:infarct(?:ion)?|transformation|conversion)\b",
        "anticoagulation": r"\b(?:anticoagula\w+|warfarin|coagulopath\w+)\b",
        "metastasis": r"\b(?:metasta\w+)\b",
        "venous": r"(?<!arterio )\bvenous\b",
    },
    {"mild": r"\b(?:mild|minor|mtbi|concussi\w+)\b", "moderate": r"\bmoderate\b", "severe": r"\b(?:severe|stbi)\b"},
    {"unilateral": r"\bunilateral\b", "bilateral": r"\bbilateral\b"},
    {"primary": r"\bprimary\b(?! or)", "secondary": r"\bsecondary\b(?! to)|\bmetastatic\b", "intravascular": r"\bintravascular\b"},
    {
        "sporadic": r"\bsporadic\b",
        "variant": r"\b(?:variant (?:cjd|creutzfeldt)|vcjd)\b",
        "inherited": r"\b(?:familial|inherited|genetic)\b",
        "iatrogenic": r"\biatrogenic\b",
    },
    {"micro": r"\bmicro ?(?:adenom|prolactin)", "macro": r"\bmacro ?(?:adenom|prolactin)"},
    {
        "single": r"\b(?:single|solitary|lone|unica|einzelne|unique)\b|单发",
        "multiple": r"\b(?:multiple|multifocal|numerous|multiplen?)\b|多发(?!性硬化)",
    },
    {"adamantinomatous": r"\badamantin", "papillary": r"\bpapillary\b"},
    {"cerebellar type": r"\bmsa c\b|\bcerebellar type\b", "parkinsonian type": r"\bmsa p\b|\bparkinson\w* type\b"},
    {"central pontine": r"(?<!extra)\bpontine myelinolysis", "extrapontine": r"\bextra ?pontine\b"},
    {
        "bacterial": r"\b(?:pyogenic|bacterial|streptococc\w+|staphylococc\w+)\b",
        "tuberculous": r"\btubercul\w+",
        "fungal": r"\b(?:fungal|aspergill\w+|candida\w*|mucor\w*)\b",
        "parasitic": r"\b(?:amoebic|amebic|toxoplasm\w+|parasit\w+)\b",
        "viral": r"\bviral\b",
    },
    {
        "behaviour": r"\bbehavio(?:u)?ral\b",
        "language": r"\b(?:semantic|non ?fluent|logopenic|language)\b",
        "visual": r"\bposterior cortical\b",
    },
    {"semantic": r"\bsemantic\b", "non-fluent": r"\b(?:non ?fluent|agrammatic)\b", "logopenic": r"\blogopenic\b"},
    {"dominant": r"\bautosomal dominant\b|\bspinocerebellar\b", "recessive": r"\brecessive\b"},
    {
        "vestibular": r"\b(?:vestibul\w*|acoustic|eighth|8th|viii)\b",
        "trigeminal": r"\btrigeminal\b",
        "facial": r"\bfacial\b",
        "jugular": r"\b(?:jugular|hypoglossal|glossopharyngeal|vagal)\b",
    },
    {"ruptured": r"(?<!non )\b(?:ruptured|rupture)\b", "unruptured": r"\b(?:un|non) ?ruptured\b"},
    {
        "saccular": r"\b(?:saccular|berry)\b",
        "fusiform": r"\bfusiform\b",
        "infectious": r"\b(?:mycotic|infectious) aneurysm",
        "dissecting": r"\bdissecting\b",
    },
    {"complete": r"\bcomplete\b", "partial": r"\bpartial\b"},
    {"direct": r"\bdirect\b", "indirect": r"\bindirect\b"},
    {"lateral medullary": r"\blateral medulla\w*|\bwallenberg\b", "medial medullary": r"\bmedial medulla\w*|\bdejerine syndrome\b"},
    {"deep": r"\bdeep (?:cerebral|venous|veins?|system)\b|\binternal cerebral veins?\b", "cortical": r"\bcortical veins?\b"},
    {
        "pneumococcus": r"\bpneumococc\w+|\bstreptococcus pneumoniae\b",
        "meningococcus": r"\bmeningococc\w+|\bneisseria\b",
        "listeria": r"\blisteri\w+",
        "staphylococcus": r"\bstaphylococc\w+|\bmrsa\b",
        "haemophilus": r"\bh(?:a)?emophilus\b",
        "mycobacterium": r"\btubercul\w+",
    },
    {
        "prolactin": r"\b(?:\w*prolactin\w*|lactotroph\w*)\b",
        "growth hormone": r"\b(?:growth hormone|gh|somatotroph\w*|acromegal\w+)\b",
        "acth": r"\b(?:acth|corticotroph\w*|cushing)\b",
        "tsh": r"\b(?:tsh|thyrotroph\w*)\b",
        "none": r"\bnon ?(?:functioning|functional|secreting)\b|\bgonadotroph\w*",
    },
    {
        "neonatal": r"\bneonatal\b",
        "childhood": r"\b(?:childhood|juvenile|infantile|pediatric)\b",
        "adult": r"\badult (?:onset|form|type)\b",
    },
    {
        "lung": r"\b(?:lung|bronch\w*|pulmonary|nsclc|sclc)\b",
        "breast": r"\b(?:breast|mammary)\b",
        "kidney": r"\b(?:renal|kidney|rcc)\b",
        "skin": r"\bmelanoma\b",
        "bowel": r"\b(?:colon|colorectal|rectal|bowel|gastric|esophageal)\b",
        "prostate": r"\bprostat\w+",
        "thyroid": r"\bthyroid\b",
    },
    {"with aura": r"(?<!without )\baura\b|\bclassical? migraine\b", "without aura": r"\bwithout aura\b|\bcommon migraine\b"},
    {
        "relapsing": r"\brelapsing\b|\brrms\b",
        "primary progressive": r"\bprimary progressive\b(?! aphasia)|\bppms\b",
        "secondary progressive": r"\bsecondary progressive\b|\bspms\b",
    },
    {"communicating": r"(?<!non )\bcommunicating\b", "obstructive": r"\b(?:(?<!non )obstructive|non ?communicating)\b"},
    {"low grade": r"\blow grade\b", "high grade": r"\bhigh grade\b|\bglioblastoma\b"},
    {
        "benign": r"\bbenign meningioma\b|\bmeningioma\b.*\bgrade (?:1|i)\b",
        "atypical": r"\batypical meningioma\b|\bmeningioma\b.*\bgrade (?:2|ii)\b",
        "anaplastic": r"\b(?:anaplastic|malignant) meningioma\b|\bmeningioma\b.*\bgrade (?:3|iii)\b",
    },
    {
        "grade 2": r"\bgrade (?:2|ii)\b",
        "grade 3": r"\bgrade (?:3|iii)\b|\banaplastic\b",
        "grade 4": r"\bgrade (?:4|iv)\b",
    },
    {
        "diffuse": r"\b(?:diffuse|fibrillary) (?:\w+ )?astrocytoma\b",
        "circumscribed": r"\b(?:pilocytic|pleomorphic|subependymal giant cell)\b",
    },
    {"band": r"\bband heterotopia\b", "nodular": r"\b(?:periventricular|nodular)\b.*\bheterotopi"},
    {"territory": r"\bterritory\b(?!.*(?:watershed|border ?zone))", "border zone": r"\b(?:watershed|border ?zone)\b"},
    {"mutant": r"\bidh\d? ?mutant\b", "wildtype": r"\bidh\d? ?wild ?type\b"},
)
KINDS = [{kind: re.compile(words) for kind, words in axis.items()} for axis in WORDS_OF_KINDS]
"""Axes of which a diagnosis has one kind: another kind than the reference's is another diagnosis."""

NON = re.compile(r"\bnon (\w+)")
OF_A_SUBSTANCE = re.compile(r"\b(\w+) (positive|mutant)\b")
"""MuSK-positive, IDH-mutant: with the same second word another first one is another kind."""

SEVERITIES = "mild moderate severe"
"""By which all diseases have kinds."""

NOT_THIS = re.compile(r"\b(?:not|no|unlike|nicht|kein\w*|sin|pas)\b[^,;.()]*", re.IGNORECASE)
"""The kind that a line denies: papillary, not adamantinomatous."""


def narrows(text: str, entry: Diagnosis) -> bool:
    """Return True if a text states a kind on an axis by which names of a diagnosis differ, but for the preferred one."""
    plain, names = _kinds(entry.name), [_kinds(name) for name in (*entry.synonyms, *entry.narrower, *entry.abbreviations, SEVERITIES)]
    several = [not plain[axis] and len(set().union(*(kinds[axis] for kinds in names))) > 1 for axis in range(len(plain))]
    return any(stated and differ for stated, differ in zip(_kinds(text), several, strict=True))


def kinds_within(text: str, name: str) -> bool:
    """Return True if a text states no kind beside those of a name."""
    return all(ours <= theirs for ours, theirs in zip(_kinds(text), _kinds(name), strict=True) if theirs)


def another_kind(answer: str, reference: str) -> bool:
    """Return True if two texts name different kinds on one axis: acute or chronic, aneurysmal or traumatic, type 1 or 2."""
    stated, expected = _kinds(NOT_THIS.sub(" ", OTHER_MATTER.split(expand(answer), maxsplit=1)[0])), _kinds(reference)
    if any(ours and theirs and not ours & theirs for ours, theirs in zip(stated, expected, strict=True)):
        return True
    ours, theirs = _with_and_without_non(answer), _with_and_without_non(reference)
    if ours[0] & theirs[1] or ours[1] & theirs[0]:
        return True
    substances, expected_ones = (set(OF_A_SUBSTANCE.findall(normal_form(text))) for text in (answer, reference))
    joined = {second for _, second in substances} & {second for _, second in expected_ones}
    return bool(joined) and not any(second in joined for _, second in substances & expected_ones)


def _with_and_without_non(text: str) -> tuple[set[str], set[str]]:
    """Return the words of a text behind `non`, and its others."""
    plain = normal_form(text)
    return set(NON.findall(plain)), set(NON.sub(" ", plain).split())


@lru_cache(maxsize=1 << 14)
def _kinds(text: str) -> list[set[str] | set[int]]:
    """Return the kinds that a text names, by axis."""
    plain = normal_form(text)
    worded: list[set[str] | set[int]] = [{kind for kind, words in axis.items() if words.search(plain)} for axis in KINDS]
    return worded + [{NUMBERS[number] for number in name.findall(plain) if number in NUMBERS} for name in NUMBERED]


@lru_cache(maxsize=4)
def kinds_apart(vocabulary: Vocabulary) -> Vocabulary:
    """Return the vocabulary with each kind as a diagnosis of its own, below the diagnosis, or below the wider kind that it is a kind of.

    Names whose words tell the same are one kind; a kind whose words tell more than those of another one is a kind of that.
    """
    diagnoses = {key: replace(entry, kinds=()) for key, entry in vocabulary.diagnoses.items()}
    for entry in vocabulary.diagnoses.values():
        by_words: dict[frozenset[str], tuple[str, ...]] = {}
        for names in entry.kinds:
            words = _telling_words(names, entry, vocabulary)
            if words in by_words and another_kind(names[0], by_words[words][0]):  # with and without aura
                words |= {names[0]}
            by_words[words] = (*by_words.get(words, ()), *names)
        keys = {words: f"{entry.key}/{names[0]}" for words, names in by_words.items()}
        for words, names in by_words.items():
            wider = max(
                (other for other in by_words if other < words and not another_kind(names[0], by_words[other][0])), key=len, default=None
            )
            diagnoses[keys[words]] = Diagnosis(
                key=keys[words],
                name=names[0],
                parent=entry.key if wider is None else keys[wider],
                synonyms=tuple(name for name in names[1:] if not name.isupper()),
                abbreviations=tuple(name for name in names[1:] if name.isupper()),
                classes=entry.classes,
                kind=True,
            )
    return replace(vocabulary, diagnoses=diagnoses)


def _telling_words(names: tuple[str, ...], entry: Diagnosis, vocabulary: Vocabulary) -> frozenset[str]:
    """Return the words by which a kind differs from its diagnosis; its names themselves if there are none."""
    plain = compared_words(entry.name, vocabulary.regions) | LOOSE_WORDS | GENERIC
    further = {word for name in entry.synonyms for word in compared_words(name, vocabulary.regions)}
    plain |= {word for word in further if not _tells_a_kind(word)}
    for name in names:
        if telling := compared_words(write_out(name, vocabulary), vocabulary.regions) - plain:
            return telling
    return frozenset(names)


@lru_cache(maxsize=1 << 12)
def _tells_a_kind(word: str) -> bool:
    return word in DESCRIBING_WORDS or bool(TYPE.fullmatch(word)) or any(_kinds(word))


def kind_within(text: str, entry: Diagnosis, vocabulary: Vocabulary, describing: frozenset[str]) -> Diagnosis | None:
    """Return the kind of a diagnosis whose telling words stand in a text that names the diagnosis; words that only describe it tell none."""
    words, apart = compared_words(text, vocabulary.regions), kinds_apart(vocabulary)
    stated = {}
    for names in entry.kinds:
        telling = _telling_words(names, entry, vocabulary)
        if telling - describing and telling <= words and f"{entry.key}/{names[0]}" in apart.diagnoses:
            stated[telling] = apart.diagnoses[f"{entry.key}/{names[0]}"]
    if not stated:
        return None
    kind = stated[max(stated, key=len)]
    return kind if kinds_within(text, kind.name) and kinds_within(kind.name, text) else None


@dataclass(frozen=True)
class KindOf:
    """What makes a kind: the diagnosis, with its vocabulary, the words by which each name differs from it, and its kinds on the axes.

    `axes` is empty if the kind differs by other words, too. Else other words that state the same count (`after a head injury` for traumatic).
    """

    of: Diagnosis
    vocabulary: Vocabulary
    words: tuple[frozenset[str], ...]
    axes: tuple[frozenset[object], ...]

    @classmethod
    def made_by(cls, kind: Diagnosis, vocabulary: Vocabulary) -> KindOf:
        """Return what makes a kind of `kinds_apart`."""
        entry = vocabulary.diagnoses[kind.key.partition("/")[0]]
        words = tuple(_telling_words((name,), entry, vocabulary) for name in (kind.name, *kind.synonyms))
        axes = tuple(frozenset(ours - plain) for ours, plain in zip(_kinds(kind.name), _kinds(entry.name), strict=True))
        rest = normal_form(kind.name)
        for pattern in (pattern for axis in KINDS for pattern in axis.values()):
            rest = pattern.sub(" ", rest)
        by_axes = any(axes) and not words[0] & compared_words(rest, vocabulary.regions)
        return cls(entry, vocabulary, words, axes if by_axes else ())

    def stated_in(self, line: str) -> bool:
        """Return True if a line states what makes the kind."""
        words = compared_words(HAN_NUMBER.sub(r" \g<0> ", line), self.vocabulary.regions)
        if any(telling <= words for telling in self.words):
            return True
        stated = _kinds(NOT_THIS.sub(" ", line))
        return bool(self.axes) and all(ours & theirs for ours, theirs in zip(stated, self.axes, strict=True) if theirs)
