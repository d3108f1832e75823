"""Search the texts that a model is sent for the answer, before anything is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from neuralmedbench.records.answer_leaks import SEVERITIES, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import Arm, Gold, Item, Runner
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

DISCLOSING = frozenset({Arm.FINDINGS_DISCLOSED})
"""Arms that show a part of gold on purpose."""
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
MAX_ABBREVIATION = 4
NORMAL_CLASS = "normal"


@dataclass(frozen=True)
class Term:
    """A term to search for: its words in normal form, or a code; `exact` ones have to be written in the same capitals."""

    text: str
    severity: str
    words: tuple[str, ...] = ()
    code: str = ""
    exact: bool = False


def find_leaks(
    benchmark: str, items: Sequence[Item], gold: Iterable[Gold], requests: Iterable[Request], vocabulary: Vocabulary
) -> AnswerLeaks:
    """Find the answer in the texts of each item.

    Parameters
    ----------
    benchmark : str
        Whose items.
    items : sequence of Item
        What is asked.
    gold : iterable of Gold
        What is right.
    requests : iterable of Request
        What is sent; arms that disclose a part of gold on purpose are left out.
    vocabulary : Vocabulary
        Other names, codes and wider terms.

    Returns
    -------
    AnswerLeaks
        Terms that stand in a text as whole words: in any case, spelling and possessive; abbreviations only in their own capitals. Of several
        terms at one place the longest counts. The labels that an item of choice or with fields offers are no leak.
    """
    answers = {row.item_id: row for row in gold}
    sent: dict[str, dict[str, str]] = {}
    for request in requests:
        if request.arm not in DISCLOSING:
            text = "\n".join((request.system, *(turn.text for turn in request.turns)))
            sent.setdefault(request.item_id, {})[request.arm] = text
    leaks = [
        leak
        for item in items
        if item.item_id in answers
        for leak in _of_item(item, answers[item.item_id], sent.get(item.item_id, {}), vocabulary)
    ]
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    leaks.sort(key=lambda leak: (leak.item_id, order[leak.severity], leak.where, leak.term))
    told = {leak.item_id for leak in leaks if leak.severity != "family"}
    known = sum(item.item_id in answers for item in items)
    return AnswerLeaks(benchmark=benchmark, items=known, leaking=len(told), leaks=tuple(leaks))


def _of_item(item: Item, gold: Gold, sent: Mapping[str, str], vocabulary: Vocabulary) -> list[AnswerLeak]:
    terms, leaks = terms_of(gold, vocabulary), []
    for where, text in texts_of(item, sent).items():
        places: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for start, end, term in places_of(text, terms):
            places.setdefault((term.text, term.severity), []).append((start, end))
        for (name, severity), found in places.items():
            lines = {_line(text, start, end) for start, end in found}
            arms = tuple(sorted(arm for arm, whole in sent.items() if where == "template" or any(line in whole for line in lines)))
            if arms:
                leaks.append(AnswerLeak(item_id=item.item_id, where=where, arms=arms, term=name, severity=severity, count=len(found)))
    return leaks


def _line(text: str, start: int, end: int) -> str:
    """Give the line, or lines, in which a term stands: a template may set the lines of a text apart, but not change them."""
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    return text[first : last if last >= 0 else len(text)].strip()


def texts_of(item: Item, sent: Mapping[str, str]) -> dict[str, str]:
    """Give the texts of an item by where they stand; `template` is what is left of the full request without them."""
    texts = {"question": item.question, "notes": item.notes, "record": item.record}
    for number, turn in enumerate(item.turns, start=1):
        texts[f"turn {number}"] = f"{turn.reveal}\n{turn.question}" if turn.reveal and turn.question else turn.reveal or turn.question
    if item.runner is Runner.OPEN:
        texts["options"] = "\n".join(item.options)
    if item.runner in {Runner.OPEN, Runner.DIALOGUE}:
        rest = next(iter(sent.values()), "")
        for part in sorted(
            (part for text in texts.values() for part in (text, *text.split("\n")) if part.strip()), key=lambda part: -len(part)
        ):
            rest = rest.replace(part.strip(), "\n")
        texts["template"] = rest
    return {where: text for where, text in texts.items() if text.strip()}


def terms_of(gold: Gold, vocabulary: Vocabulary) -> list[Term]:
    """Collect what would tell the answer of an item, the gravest first; each term once.

    Parameters
    ----------
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
    for text, owner in _family(gold, wider, vocabulary):
        terms.append(_term(text, "family", set(owner.abbreviations) if owner else set()))
    normal = entry is not None and entry.classes == NORMAL_CLASS
    unique: dict[tuple[str, ...], Term] = {}
    for term in terms:
        # "normal" alone stands in every examination
        if (term.code or "".join(term.words)) and not (normal and len(term.words) == 1):
            unique.setdefault((term.code, *term.words), term)
    return list(unique.values())


def _family(gold: Gold, wider: Sequence[Diagnosis], vocabulary: Vocabulary) -> list[tuple[str, Diagnosis | None]]:
    first = [(name, vocabulary.find(name)) for name in gold.differentials[:1]]
    return [(text, entry) for entry in wider for text in entry.terms] + first


def _term(text: str, severity: str, abbreviations: set[str]) -> Term:
    words = tuple(normal_form(text).split())
    short = len(words) == 1 and len(words[0]) <= MAX_ABBREVIATION and text.strip() != text.strip().lower()
    return Term(text.strip(), severity, words, exact=text in abbreviations or short)


def places_of(text: str, terms: Sequence[Term]) -> list[tuple[int, int, Term]]:
    """Find terms in a text.

    Parameters
    ----------
    text : str
        Any text.
    terms : sequence of Term
        What to search for; of terms with equal words the first counts.

    Returns
    -------
    list of tuple of int, int and Term
        Start and end (characters) of each find, in order; none overlaps another.
    """
    words = [(word, match.start(), match.end()) for match in WORD.finditer(text) for word in normal_form(match[0]).split()]
    by_first: dict[str, list[Term]] = {}
    for term in sorted((term for term in terms if term.words), key=lambda term: -len(term.words)):
        by_first.setdefault(term.words[0], []).append(term)
    found, place = [], 0
    while place < len(words):
        hit = next(
            (term for term in by_first.get(words[place][0], ()) if _stands(text, words[place : place + len(term.words)], term)), None
        )
        if hit is None:
            place += 1
        else:
            found.append((words[place][1], words[place + len(hit.words) - 1][2], hit))
            place += len(hit.words)
    for term in (term for term in terms if term.code):
        spelled = re.escape(term.code).replace(r"\.", r"\.?")
        found += [(match.start(), match.end(), term) for match in re.finditer(rf"(?<![\w.]){spelled}(?!\w|\.\d)", text, re.IGNORECASE)]
    return sorted(found, key=lambda one: one[:2])


def _stands(text: str, words: Sequence[tuple[str, int, int]], term: Term) -> bool:
    if tuple(word for word, _, _ in words) != term.words:
        return False
    return not term.exact or text[words[0][1] : words[-1][2]].replace("’", "'").removesuffix("'s") == term.text
