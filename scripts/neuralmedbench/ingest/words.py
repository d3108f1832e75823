"""Normalise the words of headers and file names, and read from them whether a contrast agent was given."""

from __future__ import annotations

import re
import unicodedata

SPELLED_OUT = (
    (re.compile(r"\bw\s*/\s*wo\b|\bw\s*/?\s*(?:and|&|\+)\s*w\s*/?\s*o\b"), " with without "),
    (re.compile(r"\bw\s*/\s*o\b"), " without "),
    (re.compile(r"\bw\s*/(?=\s|[a-z])"), " with "),
    (re.compile(r"\bs\s*/\s*c\b"), " sin contraste "),
    (re.compile(r"\bc\s*/\s*c\b"), " con contraste "),
    (re.compile(r"(?<![a-z0-9])c\s*\+(?![a-z0-9])|\+\s*(?:c|k)(?![a-z0-9])"), " cplus "),
    (re.compile(r"(?<![a-z0-9])c\s*-(?![a-z0-9])|(?:(?<=\s)|^)-\s*c(?![a-z0-9])"), " cminus "),
)
"""Punctuation with a meaning, replaced by words before punctuation is removed."""
AGENT = r"contrast\w*|kontras\w*|контраст\w*|gd|gad\w*|km|mdc|kl|iv|inj\w*|ce|enhanc\w*|c|k"
NEGATION = r"pre|prae|vor|avant|before|without|wo|non?|not|ohne|sans|sin|senza|sem|zonder|bez|utan|uten|uden|ilman|prima|antes|minus|до|без"
WITHOUT = re.compile(
    rf"\b(?:{NEGATION}) ?(?:{AGENT})\b"
    r"|\b(?:pre|without|wo|unenhanced|nativ\w*|ohne|sans|senza|sem|sin|zonder|utan|uten|uden|bez|plain|noncon\w*|nect|ncct|kontrasts[iı]z\w*"
    r"|kontrastfri\w*|blanco|cminus|без)\b|平扫|平掃|単純|조영전"
)
"""Words for no contrast agent. They are removed before `WITH` is searched: `non contrast` contains the word contrast."""
WITH = re.compile(
    r"\b(?:cplus|gd|gad\w*|km|mdc|ce|cemr|enhanced|contrast\w*|kontras\w*|контраст\w*|inject\w*|dotarem|magnevist|prohance|multihance"
    r"|omniscan|clariscan|vueway|elucirem|primovist|t1c|t1ce|t1gd|t1post|t1km|cta|cect)\b"
    r"|\b(?:avec|con|com|met|med|with|w|mit|nach|apres|dopo|after|po|na|pos) (?:iv|inj\w*|c|k|kl)\b"
    r"|\bpost(?:gd|con\w*|c|km|gad\w*)?\b(?! ?(?:fossa|fosse|op\b|proc))|\bwith\b *$|增强|增強|造影|조영(?!전)"
)
AMBIGUOUS = re.compile(r"\bt1 w$|\bpost (?:fossa|fosse)\b.*\bpost\b")
"""A single `W` after T1 may mean weighted or with."""
NO_AGENT = re.compile(r"(?:no|none|non|not|nil|without|wo|nativ\w*|ohne|sans|sin|senza|pre|oral|off)\b.*|n|n/a|na|0+(?: ?ml)?|-|")
UNSTATED = re.compile(r"unknown|unspecified|\?")


def plain_words(*parts: str) -> str:
    """Return lower-case words separated by single spaces, without accents; of the punctuation, `*`, `/` and `+` are kept.

    Examples
    --------
    >>> plain_words("AX_T1-SE", "W/O", "+C")
    'ax t1 se without cplus'
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", " ".join(parts))  # camel case
    # without accents; composed again, because Hangul is decomposed too
    text = unicodedata.normalize("NFKD", spaced.replace("_", " ")).lower()
    text = unicodedata.normalize("NFC", "".join(letter for letter in text if not unicodedata.combining(letter)))
    # Cyrillic т in T1 and T2; letters without a decomposition
    text = re.sub(r"т(?=\s?[12])", "t", text).translate({ord("ł"): "l", ord("ø"): "o", ord("ß"): "ss", ord("ı"): "i"})
    for signs, words in SPELLED_OUT:
        text = signs.sub(words, text)
    # split words where Latin and East Asian scripts meet
    text = re.sub(r"(?<=[\x20-\x7e])(?=[\u3000-\uffff])|(?<=[\u3000-\uffff])(?=[\x21-\x7e])", " ", text)
    return re.sub(r" +", " ", re.sub(r"[^\w*+/ ]|_", " ", text)).strip()


def contrast_by_words(words: str) -> bool | None:
    """Return whether words (`plain_words` of a header or a file name) say that contrast was given; None if they do not say.

    ValueError if they contradict each other or are ambiguous.

    Examples
    --------
    >>> contrast_by_words("t1 tra ohne km"), contrast_by_words("t1 post gad"), contrast_by_words("t1 post fossa")
    (False, True, None)
    """
    without = WITHOUT.search(words) is not None
    with_it = WITH.search(WITHOUT.sub(" ", words)) is not None
    if (without and with_it) or AMBIGUOUS.search(words):
        message = "the words of a header say both that contrast was given and that it was not"
        raise ValueError(message)
    return with_it if with_it or without else None


def contrast_by_agent(agent: str) -> bool | None:
    """Return whether ContrastBolusAgent (as `plain_words`) names an agent; None if it is empty or unspecific."""
    if not agent or UNSTATED.fullmatch(agent):
        return None
    return NO_AGENT.fullmatch(agent) is None


def contrast_given(words: str, agent: str) -> tuple[bool, bool]:
    """Return whether contrast was given, and whether that is in doubt; both arguments are `plain_words`.

    A doubtful case counts as not given: the label without contrast claims less.
    """
    try:
        by_words = contrast_by_words(words)
    except ValueError:
        return False, True
    by_agent = contrast_by_agent(agent)
    if by_words is not None and by_agent is not None and by_words != by_agent:
        return False, True
    return bool(by_words or by_agent), False
