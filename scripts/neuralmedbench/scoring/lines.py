"""Read which diagnosis a line of a differential names: its assertions, denials and alternatives, and what it says beside the name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from neuralmedbench.files.words import word_set
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form
from neuralmedbench.scoring.kinds import OTHER_MATTER, another_kind
from neuralmedbench.scoring.names import LINKING_WORDS, apart, expand, is_group, named_by_words, of_another_disease, write_out
from neuralmedbench.scoring.places import SIDES
from neuralmedbench.scoring.spelling import spell

CUTS = re.compile(
    r"\s(?:with|without|due to|secondary to|caused by|causing|involving|affecting|in|of|at|from|after|following|on|within|rather than|"
    r"instead of|given|because|based on|presenting|as|mimicking|simulating|resembling|imitating)\s|[:–—]|\s-\s",
    re.IGNORECASE,
)
"""Words and signs that end the name of a diagnosis; what follows describes it."""

ALTERNATIVES = re.compile(r"[,;/&+]|\s(?:or|vs\.?|versus|and|oder|und|o|y|ou|et)\s", re.IGNORECASE)

CONJUNCTIONS = frozenset({"and", "und", "y", "et"})

BRACKETS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")

EXAMPLE = re.compile(r"\b(?:e\.?g\b|such as|for example|or|vs|versus)|\?", re.IGNORECASE)
"""Words in brackets that make their diagnosis an example or a question."""

NEGATION = re.compile(
    r"\b(?:no|not|non|without|never|nor|neither|nothing|cannot|cant|(?:is|are|was|were|do|does|did|has|have|can|could)nt|absence|absent|negative|"
    r"denies|denied|against|exclude[sd]?|excluding|rules?|ruled|rejected|refuted|unlikely|improbable|implausible|doubtful|inconsistent|"
    r"incompatible|lacks?|lacking|fails? to|free of|low (?:suspicion|probability|likelihood)|"
    r"kein\w*|nicht|ausgeschlossen|ausschluss|unwahrscheinlich|ningun\w*|descarta\w*|improbable|aucun\w*|exclu|exclue|pas)\b"
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

DENIED = re.compile(
    r"\b(?:excluded|ruled out|unlikely|not likely|less likely|not (?:present|seen|found)|absent|rejected|refuted)\b", re.IGNORECASE
)
"""Words that deny the clause in which they stand."""

DENIALS = word_set("excluded ruled out unlikely likely less not absent rejected refuted")

LIKELY = re.compile(r"\s*(?:most |very )?(?:likely|probably)\b", re.IGNORECASE)

EITHER_WORD = re.compile(r"\s(?:or|vs\.?|versus|oder|o|ou)\s", re.IGNORECASE)

EITHER = re.compile(rf"{EITHER_WORD.pattern}|/", re.IGNORECASE)

DESCRIBED = re.compile(r"\S\s+(?:with(?! (?:lewy|aura))|without|causing|mit|con|avec)\s", re.IGNORECASE)
"""Words behind a diagnosis that begin what it comes with."""

FITTING = re.compile(r"\b(?:consistent|compatible|keeping|line|fits?) with\b", re.IGNORECASE)
"""Words before a diagnosis that fits, so that this `with` begins nothing else."""

CAUSED = re.compile(r"\s(?:due to|secondary to|caused by|from|presenting|leading to|complicat\w+|confirmed)\s", re.IGNORECASE)
"""Words behind which a reference tells its cause or its course."""

AFTERMATH = word_set("resection resected postoperative postsurgical sequela sequelae complication complications treated scar gliosis sign")

DESCRIPTIVE = word_set(
    "sporadic familial idiopathic spontaneous classic typical symptomatic ruptured unruptured aneurysmal hypertensive solitary multiple single"
    " large small giant cystic hemorrhagic infiltrating intraventricular adult childhood pediatric isolated rare spectrum 急性 慢性"
)
"""Words of a reference that describe its diagnosis and leave it the same."""

OF_ALL = frozenset({"history", "family", "risk", "screening", "mimicking", "resembles", "resembling", "simulating", "imitating", "pseudo"})
"""Words that change the meaning of all diagnoses after them: `history of stroke or seizure`."""

OTHER_THING = OF_ALL | {"mimic", "mimics", "like", "non"}
"""Words that change the meaning of the diagnosis next to them: a stroke mimic is not a stroke."""

MAX_LINE_CHARACTERS = 300
"""A longer line is a paragraph, not a diagnosis."""

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
    " most confirmed unspecified detected seen identified demonstrated visible noted found structurally entirely completely patient limits"
)

AFTER = frozenset(AFTER_WORDS.split())
"""Words that may follow a diagnosis without changing it."""

PLURALS = (("ies", "y"), ("ses", "sis"), ("es", ""), ("s", ""))

MIN_PLURAL = 4
"""A word of this many letters or fewer has no plural ending: the s of `ms` is part of it."""

CHRONIC = frozenset({"chronic", "old", "remote", "prior", "previous", "healed", "residual", "longstanding"})

REFERENCE_KEY = "reference"
"""Key under which a reference that the vocabulary does not know is added to it."""


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
    named = diagnoses_named(text, vocabulary)
    return named[0] if len(named) == 1 else _narrowest(named, vocabulary)


@lru_cache(maxsize=1 << 14)
def diagnoses_named(text: str, vocabulary: Vocabulary) -> list[Diagnosis]:
    """Return the diagnosis of a line; several, if each tells more of one and the same: an embolic infarct of the MCA territory."""
    text = text.replace("&", " and ")
    whole = vocabulary.find(text)
    if whole or len(text) > MAX_LINE_CHARACTERS:
        return [whole] if whole else []
    # without bracketed text, unless the bracket denies the line
    text = spell(expand(RULE_OUT.sub("rule out", NOT_NEGATION.sub(" ", apart(text, vocabulary)))), vocabulary)
    plain, brackets = BRACKETS.sub(" ", text), BRACKETS.findall(text)
    if any(_is_bare_negation(bracket) for bracket in brackets):
        return []
    brackets = [bracket for bracket in brackets if not EXAMPLE.search(bracket)]
    if (exact := vocabulary.find(plain)) and not brackets:
        return [exact]
    if whole := exact or _whole_name(normal_form(plain).split(), vocabulary):
        below = [entry for entry in _named_in_any_order("", [plain], brackets, vocabulary) if whole in vocabulary.ancestors(entry.key)]
        return [_narrowest(below, vocabulary) or whole]
    asserted = _without_denied_clauses(plain)
    if asserted is None or _leaves_open(asserted, vocabulary):
        return []
    others = of_another_disease(OTHER_MATTER.split(asserted, maxsplit=1)[0], vocabulary)
    return [entry for entry in _named_in_parts(asserted, brackets, vocabulary) if entry.key not in others]


def _named_in_parts(text: str, brackets: list[str], vocabulary: Vocabulary) -> list[Diagnosis]:
    """Look at the parts of a line that is no name as a whole and not denied as a whole."""
    parts = list(_asserted_parts(text))
    by_words = [entry for entry in _named_in_any_order(text, parts, brackets, vocabulary) if not another_kind(text, entry.name)]
    if _narrowest(by_words, vocabulary) is None:  # its cause is another diagnosis
        parts = [head for part in parts if normal_form(head := CAUSED.split(part, maxsplit=1)[0])]
        heads = _named_in_any_order(text, parts, brackets, vocabulary)
        by_words = [entry for entry in heads if not another_kind(text, entry.name)] if _narrowest(heads, vocabulary) else by_words
    # a reference that stands in no list counts before what else its words may name
    reference = [entry for entry in by_words if entry is vocabulary.added and (entry.kind or entry.key == REFERENCE_KEY)]
    if reference and not EITHER_WORD.search(text):
        return reference
    named = [entry for piece in parts if (entry := _resolve_piece(piece, vocabulary))]
    if EITHER_WORD.search(text):  # each alternative counts, in whatever order its words stand
        named += _named_in_any_order(text, parts, [], vocabulary)
    if not named:
        return [entry] if (entry := _narrowest(by_words, vocabulary)) else []
    narrowest = _narrowest(named, vocabulary)
    if narrowest is None and LIKELY.match(parts[-1]):  # `pituitary tumour, likely a craniopharyngioma`
        narrowest = _resolve_piece(parts[-1], vocabulary)
    if narrowest is None:
        return []
    if is_group(narrowest.name, vocabulary) and (specific := _narrowest(by_words, vocabulary)):  # `pearly tumour (epidermoid)`
        return [specific]
    return [entry for entry in by_words if narrowest in vocabulary.ancestors(entry.key)] or [narrowest]


def plainly_named(text: str, vocabulary: Vocabulary) -> Diagnosis | None:
    """Return the diagnosis of a name with words beside it that change nothing."""
    words = normal_form(spell(apart(text, vocabulary), vocabulary)).split()
    harmless, places = _describing_words(vocabulary), place_words(vocabulary)
    for start, end in _spans(len(words)):
        entry, rest = _find_words(words[start:end], vocabulary), set(words[:start] + words[end:])
        # a group with a place is one of its members: a pineal tumour is no schwannoma
        if entry is not None and rest <= harmless and (entry.parent or not rest & places):
            return entry
    return None


@lru_cache(maxsize=16)
def _describing_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the words that leave a diagnosis as it is: sides, places, stages, certainty."""
    return place_words(vocabulary) | {*SIDES, *AFTER, *DOUBT, *LINKING_WORDS, *CHRONIC, *DESCRIPTIVE}


@lru_cache(maxsize=16)
def _location_words(vocabulary: Vocabulary) -> frozenset[str]:
    return frozenset({word for name in vocabulary.places for word in name.split()})


@lru_cache(maxsize=16)
def place_words(vocabulary: Vocabulary) -> frozenset[str]:
    """Return the words of places and regions."""
    return _location_words(vocabulary) | {word for name in vocabulary.regions.names for word in name.split()}


def _without_denied_clauses(text: str) -> str | None:
    """Leave out the clauses that deny what they name; None if a denial stands alone and so denies all before it."""
    clauses = re.split(r"([;,]\s|(?<!\d)\.\s|\s-\s)", text)
    kept = ""
    for index in range(0, len(clauses), 2):
        clause = clauses[index]
        denied = DENIED.search(clause) or DENIED_AFTER.search(clause)
        if denied and not (set(normal_form(clause).split()) - BARE_DENIAL - DENIALS):
            return None
        if not denied:
            kept += clause + (clauses[index + 1] if index + 1 < len(clauses) else "")
    return kept


def _named_in_any_order(text: str, parts: list[str], brackets: list[str], vocabulary: Vocabulary) -> list[Diagnosis]:
    """Return the diagnoses whose words stand in the asserted parts of a line, in whatever order; a bracket is denied with what it stands behind."""
    heads = _asserted_heads(parts, vocabulary)
    if not heads:
        return []
    heads += _asserted_heads(brackets, vocabulary) if not any(map(speaks_of_another, parts)) else []
    if EITHER.search(text):
        return [entry for head in heads for entry in named_by_words(head, vocabulary)]
    return named_by_words(" ".join(heads), vocabulary)


def _asserted_heads(parts: list[str], vocabulary: Vocabulary) -> list[str]:
    heads = [OTHER_MATTER.split(FITTING.sub(" ", part), maxsplit=1)[0] for part in parts if not DENIED_AFTER.search(part)]
    heads = [write_out(head, vocabulary) for head in heads]
    return [
        head
        for head in heads
        if normal_form(head) and not has_negation(re.sub(r"\bnon\b", " ", normal_form(head))) and not speaks_of_another(head)
    ]


def _leaves_open(text: str, vocabulary: Vocabulary) -> bool:
    """Return True if a line has an alternative that the vocabulary does not know: `ADEM or a mitochondrial crisis`."""
    harmless = _describing_words(vocabulary)
    alternatives = EITHER_WORD.split(OTHER_MATTER.split(FITTING.sub(" ", text), maxsplit=1)[0])
    for alternative in alternatives if len(alternatives) > 1 else []:
        head = re.split(r"[,;]", alternative, maxsplit=1)[0]
        words = set(normal_form(head).split())
        if words - harmless and not _resolve_piece(head, vocabulary) and not named_by_words(write_out(head, vocabulary), vocabulary):
            return True
    return False


def speaks_of_another(text: str) -> bool:
    """Return True if a text speaks of a history, a risk, a mimic or the aftermath of what it names."""
    return bool((OTHER_THING | AFTERMATH) & set(normal_form(text).split()))


def _is_bare_negation(text: str) -> bool:
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
        if {other.key for other in named} <= set(vocabulary.lineage(entry.key)):
            return entry
    return None


def _asserted_parts(text: str) -> Iterator[str]:
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
            # `infarct with swelling and hydrocephalus`: both describe it
            over = over or (separator in CONJUNCTIONS and bool(DESCRIBED.search(FITTING.sub(" ", piece))))
            over = over or (separator not in {",", ";"} and bool(OF_ALL & set(normal_form(piece).split())))


def _resolve_piece(piece: str, vocabulary: Vocabulary) -> Diagnosis | None:
    whole = vocabulary.find(piece)
    if whole or DENIED_AFTER.search(piece):
        return whole
    lead = LEAD_IN.match(piece)
    if lead and has_negation(lead.group()):
        return None
    head = CUTS.split(piece[lead.end() :] if lead else piece, maxsplit=1)[0]
    words = normal_form(head).split()
    places = _location_words(vocabulary)
    # the longest name in the head whose neighbours do not change its meaning
    for start, end in _spans(len(words)):
        entry = _find_words(words[start:end], vocabulary)
        if entry is None or not _written_as_such(words[start:end], entry, head) or _changes_meaning([*words[:start], *words[end:]]):
            continue
        # `no disease` of what? only of the brain as a whole is it a normal one
        if (
            entry.classes == "normal"
            and has_negation(head)
            and set(normal_form(piece).split()) - set(words) - _describing_words(vocabulary)
        ):
            continue
        before, after = set(words[:start]), set(words[end:])
        wider = vocabulary.index.get(" ".join(words[end:]))
        if wider is not None and wider in vocabulary.ancestors(entry.key):  # the rest is a wider term: Alzheimer's disease dementia
            after = set()
        if after - AFTER - set(SIDES) - places or (entry.classes == "normal" and before - AFTER - LINKING_WORDS):
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
    in_full = any(normal_form(term) == form for term in (entry.name, *entry.synonyms, *entry.narrower))
    # a plural, which no abbreviation of another form is
    return in_full or not spelled or any(re.search(rf"(?<!\w){re.escape(term)}(?!\w)", head) for term in spelled)


def _changes_meaning(neighbours: Sequence[str]) -> bool:
    """Return True if the words next to a name deny it or change its meaning; words of the name itself do not (`non-communicating`)."""
    return bool(OTHER_THING & set(neighbours) or NEGATION.search(" ".join(neighbours)))


def _without_stage(entry: Diagnosis, vocabulary: Vocabulary) -> Diagnosis:
    """Return the nearest wider term that is not acute: an old lacunar infarct is not the acute one."""
    acute = [wider for wider in (entry, *vocabulary.ancestors(entry.key)) if "acute" in normal_form(wider.name).split()]
    return next(vocabulary.ancestors(acute[-1].key), entry) if acute else entry
