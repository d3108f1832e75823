"""Mend misspelt words of a clinical line, where one word of a name is near, and letters of options that are written in Cyrillic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from neuralmedbench.files.words import word_set
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.vocabulary import Vocabulary, normal_form
from neuralmedbench.scoring.names import MIN_EXCHANGED, layers, singular

MIN_MISSPELT = 6
"""Letters of a word that may be misspelt by one of them; in shorter words one letter too often makes another word."""
MIN_TWICE_MISSPELT, SAME_BEGINNING = 10, 3
"""Letters of a word that may be misspelt by two of them, and how many of its first ones are right: hypo- and hyper- are not the same."""

REAL_WORDS = word_set(
    "arthritis contract course familiar former generic healing health injection insult literal lesson limit media median medical pupillary radiate simple"
    " simpler spiral stratum terminal verbal decide steel surge spacing sparse context content carasil hyperglycemia hyperglycemic hyperextension"
    " hypotensive hypokalemia dysphasia dysphasic concussion concussions concussive convulsion convulsions conclusion conclusions construction constriction"
    " contraception convection confession deletion infiltration infiltrations infraction thrombolysis hemiplegia diplegia extraneural intraneural"
    " interventricular intramural intermediate interior neuroleptic neurotoxic neuronopathy arthropathy aplasia aphakia anomia anotia spheroid seedling"
    " photic fascial perforation perforations deposit deposits lymphocyte lymphocytes epithelium metencephalon borderline carcinogenic dystopia"
    " heterotropia hypophysis collecting collective communication complication complications functional conversation progression persistence plague"
    " rapture patent palate optical phobia strike tables medicated vitamins warming venoms vertebra vertebrae front military changes appearance"
    " bruises legion legions trails angel clutter manure fishery topical bounds writes brains granulosa emboli device devices funding sending"
)
"""Words of English that are one letter away from a word of a name."""


def spell(text: str, vocabulary: Vocabulary, *, in_english: bool = False) -> str:
    """Mend long words that are misspelt by a letter: one too many, too few, wrong, or two exchanged; very long ones by two.

    Of several near words the one that makes the text a name of one diagnosis; else, of forms of one word, the more frequent. An acronym in
    a text of other words stays: CARASIL is no misspelt CADASIL. `in_english`: a word of a name in another language may be a misspelling.
    """
    text = re.sub(r"(?<!\w)([^\W\d_]+)-([^\W\d_]{4,})", lambda match: _joined(match, vocabulary), text)
    # not behind an apostrophe: `l'arachnoïde` is one word of a French name
    for match in reversed(list(re.finditer(rf"(?<![\w'’])[^\W\d_]{{{MIN_EXCHANGED},}}(?!\w)", text))):
        near = () if match.group().isupper() else _nearest(match.group(), vocabulary, in_english)
        mended = {word: f"{text[: match.start()]}{word}{text[match.end() :]}" for word in near}
        whole = {word: named.key for word in near if (named := vocabulary.find(mended[word]))}
        if len(set(whole.values())) == 1 or (not whole and _forms_of_one(near)):
            text = mended[next(iter(whole), near[0])]
    return text


def _joined(match: re.Match[str], vocabulary: Vocabulary) -> str:
    """Leave out a hyphen within a word that names are written without: `arterio-venous`, `macro-adenoma`."""
    whole = normal_form(match.group(1) + match.group(2))
    parts = {normal_form(part) for part in match.groups()}
    known = {word for word in (whole, *parts) if any(word in layer.words for layer in layers(vocabulary))}
    return whole if whole in known and not parts <= known else match.group()


def _forms_of_one(words: tuple[str, ...]) -> bool:
    """Return True for `ganglia, ganglion` but not for `infarction, infection`."""
    return bool(words) and (len({singular(word) for word in words}) == 1 or len({word[:MIN_MISSPELT] for word in words}) == 1)


@lru_cache(maxsize=1 << 14)
def _nearest(word: str, vocabulary: Vocabulary, in_english: bool) -> tuple[str, ...]:
    """Return the long words from which a word differs by one letter: first those of its length, then those that more names have."""
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    plain = normal_form(word)
    if (
        not plain.isascii()
        or {plain, singular(plain)} & REAL_WORDS
        or any({plain, singular(plain)} & (layer.english if in_english else layer.words) for layer in layers(vocabulary))
    ):
        return ()
    for letters in (1, 2):
        for known in (layer.long.get(plain[0], Counter[str]()) for layer in layers(vocabulary)):
            found = process.extract(plain, known.keys(), scorer=OSA.distance, score_cutoff=letters, limit=None)
            near = [name for name, *_ in found if _may_be(plain, name, letters)]
            if near:
                return tuple(sorted(near, key=lambda name: (len(name) != len(plain), -known[name], name)))
    return ()


def _may_be(word: str, name: str, letters: int) -> bool:
    """Return True if a word of this length may be a misspelling by so many letters; an adverb is none of an adjective."""
    if word.endswith("ly") and not name.endswith("ly"):
        return False
    if letters > 1:
        if len(word) >= MIN_MISSPELT and sorted(word) == sorted(name):
            return word[:SAME_BEGINNING] == name[:SAME_BEGINNING]
        return min(len(word), len(name)) >= MIN_TWICE_MISSPELT and word[:SAME_BEGINNING] == name[:SAME_BEGINNING]
    return len(name) >= MIN_MISSPELT or len(word) > len(name) or sorted(word) == sorted(name)


ORDER = "АБВГДЕЖЗИК"
"""The letters by which Russian lists are numbered."""
ALIKE = {"А": "A", "В": "B", "С": "C", "Е": "E"}
"""Cyrillic letters that look like one of the options."""

NOT_IN_WORD = r"(?<![\w'-])[*_`(\[\"«]{0,4}"
LETTER = re.compile(rf"(?P<before>{NOT_IN_WORD})(?P<letter>[{ORDER}С])(?=[*_`\"»]{{0,4}}\s*(?:[).:;,\]}}]|$|\n|\s[—–-]\s))", re.MULTILINE)
"""A capital that stands alone before a sign or the end of its line: `Б)`, `Ответ: Б.`; not a preposition (`В данном случае`)."""
TWO = re.compile(rf"(?<!\w)[{ORDER}С][*_`]{{0,3}}\s*(?:,\s*)?(?:\b(?:и|или|та|або|либо)\b|[,/&+])\s*[*_`]{{0,3}}[{ORDER}С](?!\w)")
"""Two letters that an answer names together."""


def latin_letters(text: str, options: Sequence[str]) -> str:
    """Write the Cyrillic letters of options in Latin, where it can be told which option they mean.

    Parameters
    ----------
    text : str
        An answer.
    options : sequence of str
        Texts of the options, which are asked for by Latin letters.

    Returns
    -------
    str
        The answer. A letter that looks like one option and stands for another by its order (В: B or C) is kept, and so not read, unless the
        words behind it are those of one of the two, or the answer uses letters that no Latin one looks like (Б, Г, Д), so that the order counts.

    Examples
    --------
    >>> latin_letters("Ответ: Г", "wxyz"), latin_letters("Ответ: В", "wxyz"), latin_letters("Б) нет. В) да", "wxyz")
    ('Ответ: D', 'Ответ: В', 'B) нет. C) да')
    """
    if not LETTER.search(text) or TWO.search(text):
        return text
    offered = LETTERS[: len(options)]
    by_order = any(match["letter"] not in ALIKE for match in LETTER.finditer(text))

    def written(match: re.Match[str]) -> str:
        letter = match["letter"]
        place = ORDER.find(letter)
        meant = {ALIKE.get(letter, ""), LETTERS[place] if place >= 0 else ""} & set(offered)
        if by_order and place >= 0:
            meant &= {LETTERS[place]}
        if len(meant) > 1:
            behind = text[match.end() :].lstrip(' *_`"».):;,').casefold()
            meant = {one for one in meant if behind.startswith(options[LETTERS.index(one)].casefold())}
        return match["before"] + (meant.pop() if len(meant) == 1 else letter)

    return LETTER.sub(written, text)
