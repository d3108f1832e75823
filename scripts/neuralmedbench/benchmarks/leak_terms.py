"""What would tell the answer of an item: the terms that are searched for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from neuralmedbench.benchmarks.neurovlm import SPELLINGS
from neuralmedbench.records.items import Family, Gold, Item, gold_fields
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

MAX_ABBREVIATION = 4
NORMAL_CLASS = "normal"
TELLS_NOTHING = frozenset({"yes", "no", "true", "false", "none", "both", "neither", "all of the above", "none of the above"})
"""Answers that stand in every text and tell nothing there; numbers and single letters are none either."""


@dataclass(frozen=True)
class Term:
    """A term to search for: its words in normal form, or a code; `exact` ones have to be written in the same capitals."""

    text: str
    severity: str
    words: tuple[str, ...] = ()
    code: str = ""
    exact: bool = False


def terms_of(item: Item, gold: Gold, vocabulary: Vocabulary) -> list[Term]:
    """Collect what would tell the answer of an item, or another value that is scored, the gravest first; each term once.

    Parameters
    ----------
    item : Item
        What is asked: the place of a lesion is a scored value where it is asked for.
    gold : Gold
        The answer.
    vocabulary : Vocabulary
        Finds it by its name or its code.
    """
    plain = re.sub(r"\([^()]*\)", " ", gold.answer)
    entry = vocabulary.find(plain) or vocabulary.find(gold.answer) or (vocabulary.find(gold.icd10) if gold.icd10 else None)
    abbreviations = set(entry.abbreviations) if entry else set()
    wider = list(vocabulary.ancestors(entry.key)) if entry and entry.key in vocabulary.diagnoses else []
    terms = [_term(text, "answer", abbreviations) for text in (gold.answer, plain)]
    terms += [_term(text, "alias", abbreviations) for text in (*gold.aliases, *(entry.terms if entry else ()))]
    codes = dict.fromkeys((*([gold.icd10] if gold.icd10 else []), *(entry.icd10 if entry else ())))
    terms += [Term(code, "code", code=code) for code in codes]
    terms += [_term(text, "field", set()) for text in _fields(item, gold)]
    for text, owner in _family(gold, wider, vocabulary):
        terms.append(_term(text, "family", set(owner.abbreviations) if owner else set()))
    normal = entry is not None and entry.classes == NORMAL_CLASS
    unique: dict[tuple[str, ...], Term] = {}
    for term in terms:
        # "normal" alone stands in every examination
        if (term.code or tells(term.words)) and not (normal and len(term.words) == 1):
            unique.setdefault((term.code, *term.words), term)
    return list(unique.values())


def tells(words: Sequence[str]) -> bool:
    """Whether words can tell an answer: not numbers, single letters and the commonest answers."""
    return " ".join(words) not in TELLS_NOTHING and any(len(word) > 1 and not word.isdigit() for word in words)


def _fields(item: Item, gold: Gold) -> list[str]:
    """Give scored values beside the answer: the fields of a structured one in every known spelling, the place of a lesion."""
    values = [value for name, value in gold_fields(gold.fields).items() if name != "class"] if gold.fields else []
    spellings = [spelling for value in values for spelling, label in SPELLINGS.items() if label == value]
    place = [gold.lesion.location] if item.family is Family.LESION_RECOGNITION and gold.lesion else []
    return [*values, *spellings, *place]


def _family(gold: Gold, wider: Sequence[Diagnosis], vocabulary: Vocabulary) -> list[tuple[str, Diagnosis | None]]:
    first = [(name, vocabulary.find(name)) for name in gold.differentials[:1]]
    return [(text, entry) for entry in wider for text in entry.terms] + first


def _term(text: str, severity: str, abbreviations: set[str]) -> Term:
    words = tuple(normal_form(text).split())
    short = len(words) == 1 and len(words[0]) <= MAX_ABBREVIATION and text.strip() != text.strip().lower()
    return Term(text.strip(), severity, words, exact=text in abbreviations or short)
