"""What of an answer the default grader cannot read, because it is in another language: missing for this grader, never wrong.

The language is detected by script, else by CLD2. Sure or silent: an English answer must never pass as another language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from neuralmedbench.records.items import Criterion, Family, Item
from neuralmedbench.records.scores import Prediction
from neuralmedbench.scoring.lines import REFERENCE_KEY, resolve
from neuralmedbench.scoring.matching import ReferenceAnswer, diagnosis_of_criterion, says_no_lesion
from neuralmedbench.scoring.places import mentioned_places, sides
from neuralmedbench.scoring.sections import DECORATION, LOOSE

OF_PLACES = ("en",)
"""Languages in which places, sides and signals of lesions are read."""
OF_A_LESION = ("states_side", "states_location", "names_signal_")
DIAGNOSES = ("considers_", "must_not_")
LANGUAGES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "bo": "Tibetan",
    "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish",
    "et": "Estonian", "eu": "Basque", "fa": "Persian", "fi": "Finnish", "fr": "French", "gl": "Galician", "gu": "Gujarati", "he": "Hebrew",
    "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic", "it": "Italian",
    "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "lo": "Lao", "lt": "Lithuanian",
    "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "my": "Burmese", "ne": "Nepali",
    "nl": "Dutch", "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""Languages that are detected, by ISO 639-1 code. Latin, Esperanto and languages that no model is asked in are not: lists of drugs, genes and
skin diseases are called one of them."""
OF_SCRIPT = {
    "CYRILLIC": ("ru", "uk", "bg", "sr", "be", "mk", "kk", "mn"), "GREEK": ("el",), "ARABIC": ("ar", "fa", "ur", "ps"), "HEBREW": ("he",),
    "DEVANAGARI": ("hi", "mr", "ne"), "HANGUL": ("ko",), "CJK": ("zh",), "HIRAGANA": ("ja",), "KATAKANA": ("ja",), "THAI": ("th",),
    "ARMENIAN": ("hy",), "GEORGIAN": ("ka",), "ETHIOPIC": ("am",), "BENGALI": ("bn",), "GUJARATI": ("gu",), "GURMUKHI": ("pa",),
    "TAMIL": ("ta",), "TELUGU": ("te",), "KANNADA": ("kn",), "MALAYALAM": ("ml",), "SINHALA": ("si",), "KHMER": ("km",), "LAO": ("lo",),
    "MYANMAR": ("my",), "TIBETAN": ("bo",),
}  # fmt: skip
"""Languages by script (first word of Unicode's names of letters); the first is taken unless CLD2 is sure of another one."""
LATIN, KANA = "LATIN", frozenset({"HIRAGANA", "KATAKANA"})
WITHOUT_SPACES = frozenset({"zh", "ja", "th", "km", "lo", "my", "bo"})
"""Languages that write words without spaces: words of two texts cannot be compared."""
IDEOGRAPHS, LETTERS_OF_IDEOGRAPH = frozenset({"CJK", "HANGUL", *KANA}), 3
"""Scripts of which one sign weighs as much as this many letters, where an answer mixes scripts."""
FEWEST_WORDS, FEWEST_LETTERS = 3, 20
"""A shorter text in Latin letters has no language that could be detected."""
LEAST_SHARE = 80
"""Percent of a text that must be in the detected language."""
FEWEST_SIGNS = 3
"""Weight of letters in another script from which on they are words: the Greek letter of a unit is none."""
MAX_CHARACTERS = 10_000
"""The language is detected in this many characters of an answer, from its beginning."""
OTHER_NAMES = {"iw": "he", "in": "id", "nb": "no", "nn": "no", "zh-Hant": "zh"}


def unread_language(text: str, prediction: Prediction, item: Item, reference: ReferenceAnswer) -> str:
    """Return the language of an answer whose verdict nobody can give by the vocabulary; empty if it was read or is in a known language.

    Parameters
    ----------
    text : str
        The answer, in which the language is detected.
    prediction : Prediction
        The answer as read.
    item : Item
        An open item or a dialogue.
    reference : ReferenceAnswer
        Its reference.

    Returns
    -------
    str
        ISO 639-1 code. Rank 1 (of a lesion: its place and side) was not found, and the vocabulary has no names in this language.
    """
    if prediction.abstained:
        return ""
    if item.family is not Family.LESION_RECOGNITION:
        return unread_line(prediction.differential[:1], text, prediction, reference)
    fields = prediction.fields or {}
    language = _other_than(OF_PLACES, fields.get("location", ""), text, prediction)
    return "" if language and _place_read(fields, reference) else language


def unread_line(lines: Iterable[str], text: str, prediction: Prediction, reference: ReferenceAnswer) -> str:
    """Return the language of the first line of a differential that is in a language without names and was not found; empty if there is none."""
    for line in lines or ("",):
        language = _other_than(reference.vocabulary.languages, line, text, prediction)
        if language and not (line and resolve(line, reference.vocabulary)):
            return language
    return ""


def unread_criterion(text: str, prediction: Prediction, item: Item, reference: ReferenceAnswer, criterion: Criterion, *, met: bool) -> str:
    """Return why words do not show whether an answer meets a criterion; empty if they do."""
    name, statement = criterion.criterion, criterion.text.partition(": ")[2] or criterion.text
    if met and name.startswith((*OF_A_LESION, *DIAGNOSES)):
        return ""
    if reference.gold.lesion and name.startswith(OF_A_LESION):
        language = _other_than(OF_PLACES, "", text, prediction)
        return without_names(language) if language else ""
    if name.startswith(DIAGNOSES) and (name.startswith("considers_") or _is_known(statement, reference)):
        lines = prediction.differential if name.startswith("considers_") else prediction.differential[:1]
        language = unread_line(lines, text, prediction, reference)
        return without_names(language) if language else ""
    return unread_statement(f"{prediction.findings} {prediction.rationale}", statement, item.language)


def unread_statement(text: str, statement: str, usual: str = "en") -> str:
    """Return why the words of a statement cannot be looked for in a text: another language, or a script without spaces; empty if they can."""
    language, wanted = language_of(text), language_of(statement) or usual
    if language and language != wanted:
        return f"the text is in {LANGUAGES[language]}, the criterion in {LANGUAGES.get(wanted, wanted)}"
    return f"words of {LANGUAGES[wanted]} are not compared: they are written without spaces" if wanted in WITHOUT_SPACES else ""


def without_names(language: str) -> str:
    """State that the vocabulary has no names in the language of an answer."""
    return f"the answer is in {LANGUAGES[language]}, for which the vocabulary has no names"


def _other_than(languages: Iterable[str], line: str, text: str, prediction: Prediction) -> str:
    """Return the language of an answer unless it is one of the known ones.

    Sentences come first: names of diseases are Latin in every language. The whole text decides where they leave it open.
    """
    bare = "\n".join(match[2] if (match := LOOSE.fullmatch(DECORATION.sub("", row))) else row for row in text.splitlines())
    sentences = f"{prediction.findings}\n{prediction.rationale}".strip()
    found = (language_of(line or whole, whole) for whole in (sentences, bare) if whole)
    language = next(filter(None, found), "")
    return "" if language in languages else language


def _place_read(fields: dict[str, str], reference: ReferenceAnswer) -> bool:
    vocabulary, lesion = reference.vocabulary, reference.gold.lesion
    named = fields.get("lesion", "")
    if says_no_lesion(named, vocabulary) or (lesion is None and resolve(named, vocabulary)):
        return True
    return (
        lesion is not None
        and bool(mentioned_places(fields.get("location", ""), vocabulary))
        and bool(not lesion.side or sides(fields.get("side", "")))
    )


def _is_known(statement: str, reference: ReferenceAnswer) -> bool:
    return diagnosis_of_criterion(statement.rstrip("."), reference.vocabulary).entry.key != REFERENCE_KEY


@lru_cache(maxsize=1 << 10)
def language_of(line: str, whole: str = "") -> str:
    r"""Detect the language of a line by the text around it.

    Parameters
    ----------
    line : str
        The line that was not understood: a name, which in Latin letters has no language of its own.
    whole : str
        The whole answer with all of its lines; empty if there is only the line.

    Returns
    -------
    str
        ISO 639-1 code. Empty where no language is sure; a text in Latin letters needs some words.

    Notes
    -----
    The script of the line decides first. For Latin letters CLD2 (Sites, Compact Language Detector 2) reads the words of the answer that are
    written in them, with English as the hint, and must call the text reliable. `docs/graders.md` has how often it errs.

    Examples
    --------
    >>> language_of("Глиобластома"), language_of("上矢状静脈洞血栓", "上矢状静脈洞血栓\n頭痛の原因である"), language_of("Status epilepticus")
    ('ru', 'ja', '')
    """
    words = _words((whole or line)[:MAX_CHARACTERS])
    script = _main_script(_words(line) or words)
    if script == LATIN:
        return _of_latin([word for word in words if _script(word[0]) == LATIN])
    if script == "CJK" and any(_script(letter) in KANA for word in words for letter in word):
        return "ja"
    languages = OF_SCRIPT.get(script, ())
    detected = _detect(words) if len(languages) > 1 else ""
    return detected if detected in languages else next(iter(languages), "")


def _words(text: str) -> list[str]:
    """Return the words of a text in letters of any script; full-width letters count as what they stand for."""
    return re.findall(r"[^\W\d_]+", unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=1 << 14)
def _script(letter: str) -> str:
    return unicodedata.name(letter, " ").split(" ")[0]


def _main_script(words: list[str]) -> str:
    """Return the script of most letters; empty without letters, or with a letter or two of another script."""
    weights: Counter[str] = Counter()
    for word in words:
        for letter in word:
            weights[_script(letter)] += LETTERS_OF_IDEOGRAPH if _script(letter) in IDEOGRAPHS else 1
    script, weight = weights.most_common(1)[0] if weights else ("", 0)
    return script if script == LATIN or weight >= FEWEST_SIGNS else ""


def _of_latin(words: list[str]) -> str:
    enough = len(words) >= FEWEST_WORDS and sum(map(len, words)) >= FEWEST_LETTERS
    return _detect(words) if enough else ""


def _detect(words: list[str]) -> str:
    """Return the language that CLD2 is sure of; empty otherwise."""
    import pycld2

    reliable, _, languages = pycld2.detect(" ".join(words), hintLanguage="ENGLISH")
    _, code, share, _ = languages[0]
    code = OTHER_NAMES.get(code, code)
    return code if reliable and share >= LEAST_SHARE and code in LANGUAGES else ""
