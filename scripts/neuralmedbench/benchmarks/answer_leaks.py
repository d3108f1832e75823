"""Search everything that a model is sent for the answer, before anything is asked."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from neuralmedbench.benchmarks.neurovlm_labels import SPELLINGS
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.answer_leaks import SEVERITIES, AcceptedLeaks, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import NO_LESION, Arm, Family, Gold, Item, Runner, gold_fields
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

MAX_ABBREVIATION = 4
NORMAL_CLASS = "normal"

UNREVEALING = frozenset({"yes", "no", "true", "false", "none", "both", "neither", "all of the above", "none of the above"})
"""Answers that stand in every text and tell nothing there; numbers and single letters are none either."""

DISCLOSING = frozenset({Arm.FINDINGS_DISCLOSED, Arm.EVIDENCE_SUPPLIED})
"""Arms that show a part of gold on purpose: only what they disclose is searched."""

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


@dataclass(frozen=True)
class LeakTerm:
    """A term to search for: its words in normal form, or a code; `exact` ones have to be written in the same capitals."""

    text: str
    severity: str
    words: tuple[str, ...] = ()
    code: str = ""
    exact: bool = False


@dataclass(frozen=True)
class SentText:
    """One text that is searched, and the texts of the arms that may show it.

    An arm shows a term when its text holds the line of the term as far as the term goes: arms and text budgets cut at the end.
    """

    text: str
    shown: Mapping[str, str]

    def arms(self, start: int, end: int) -> set[str]:
        """Arms that show what stands from `start` to `end`."""
        line = self.text[self.text.rfind("\n", 0, start) + 1 : end].strip()
        return {arm for arm, text in self.shown.items() if line in text}


def find_leaks(
    benchmark: str,
    items: Sequence[Item],
    gold: Iterable[Gold],
    requests: Iterable[Request],
    vocabulary: Vocabulary,
    *,
    accepted: AcceptedLeaks | None = None,
) -> AnswerLeaks:
    """Find the answer in what is sent of each item.

    Parameters
    ----------
    benchmark : str
        Whose items.
    items : sequence of Item
        What is asked.
    gold : iterable of Gold
        What is right.
    requests : iterable of Request
        What is sent: messages, labels and file names of pictures, ids; see `sent_texts`.
    vocabulary : Vocabulary
        Other names, codes and wider terms.
    accepted : AcceptedLeaks or None
        What a person looked at and accepted: it is still listed, with the reason.

    Returns
    -------
    AnswerLeaks
        Terms that stand in a text as whole words: in any case, spelling and possessive; abbreviations only in their own capitals. Of several
        terms at one place the longest counts. The labels that an item of choice or with fields offers are no leak, and neither is a
        question that names all of its options.
    """
    answers, sent = {row.item_id: row for row in gold}, by_item(requests)
    reasons = {row.digest: row.reason for row in accepted.accepted} if accepted else {}
    leaks = [
        replace(leak, accepted=reasons.get(leak.digest, ""))
        for item in items
        if item.item_id in answers
        for leak in _of_item(item, answers[item.item_id], sent_texts_of(item, sent.get(item.item_id, ())), vocabulary)
    ]
    order = {severity: place for place, severity in enumerate(SEVERITIES)}
    leaks.sort(key=lambda leak: (leak.item_id, order[leak.severity], leak.where, leak.term))
    told = [leak for leak in leaks if leak.severity != "family"]
    leaking = {leak.item_id for leak in told}
    return AnswerLeaks(
        benchmark=benchmark,
        items=sum(item.item_id in answers for item in items),
        leaking=len(leaking),
        leaks=tuple(leaks),
        accepted=len(leaking - {leak.item_id for leak in told if not leak.accepted}),
    )


def by_item(requests: Iterable[Request]) -> dict[str, Sequence[Request]]:
    """Give the requests of each item."""
    found: dict[str, list[Request]] = {}
    for request in requests:
        found.setdefault(request.item_id, []).append(request)
    return dict(found)


def _of_item(item: Item, gold: Gold, places: Mapping[str, SentText], vocabulary: Vocabulary) -> list[AnswerLeak]:
    terms, leaks = terms_of(item, gold, vocabulary), []
    for where, place in places.items():
        if where == "template" and gold.answer == NO_LESION:  # the form offers it to every item on a lesion
            continue
        if where == "question" and names_every_option(item, place.text):
            continue
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for start, end, term in term_spans(place.text, terms):
            found.setdefault((term.text, term.severity), []).append((start, end))
        for (name, severity), hits in found.items():
            if arms := sorted({arm for hit in hits for arm in place.arms(*hit)}):
                seen = {"item": item.item_id, "where": where, "term": name, "text": place.text}
                leaks.append(
                    AnswerLeak(
                        item_id=item.item_id,
                        where=where,
                        arms=tuple(arms),
                        term=name,
                        severity=severity,
                        count=len(hits),
                        digest=sha256_of_value(seen),
                    )
                )
    return leaks


def terms_of(item: Item, gold: Gold, vocabulary: Vocabulary) -> list[LeakTerm]:
    """Collect the terms that would reveal the answer of an item or another scored value, the gravest first, each once."""
    plain = re.sub(r"\([^()]*\)", " ", gold.answer)
    entry = vocabulary.find(plain) or vocabulary.find(gold.answer) or (vocabulary.find(gold.icd10) if gold.icd10 else None)
    abbreviations = set(entry.abbreviations) if entry else set()
    wider = list(vocabulary.ancestors(entry.key)) if entry and entry.key in vocabulary.diagnoses else []
    terms = [_term(text, "answer", abbreviations) for text in (gold.answer, plain)]
    terms += [_term(text, "alias", abbreviations) for text in (*gold.aliases, *(entry.terms if entry else ()))]
    codes = dict.fromkeys((*([gold.icd10] if gold.icd10 else []), *(entry.icd10 if entry else ())))
    terms += [LeakTerm(code, "code", code=code) for code in codes]
    terms += [_term(text, "field", set()) for text in _fields(item, gold)]
    for text, owner in _family(gold, wider, vocabulary):
        terms.append(_term(text, "family", set(owner.abbreviations) if owner else set()))
    normal = entry is not None and entry.classes == NORMAL_CLASS
    unique: dict[tuple[str, ...], LeakTerm] = {}
    for term in terms:
        # "normal" alone stands in every examination
        if (term.code or is_revealing(term.words)) and not (normal and len(term.words) == 1):
            unique.setdefault((term.code, *term.words), term)
    return list(unique.values())


def _term(text: str, severity: str, abbreviations: set[str]) -> LeakTerm:
    words = tuple(normal_form(text).split())
    short = len(words) == 1 and len(words[0]) <= MAX_ABBREVIATION and text.strip() != text.strip().lower()
    return LeakTerm(text.strip(), severity, words, exact=text in abbreviations or short)


def _fields(item: Item, gold: Gold) -> list[str]:
    """Give scored values beside the answer: the fields of a structured one in every known spelling, the place of a lesion."""
    values = [value for name, value in gold_fields(gold.fields).items() if name != "class"] if gold.fields else []
    spellings = [spelling for value in values for spelling, label in SPELLINGS.items() if label == value]
    place = [gold.lesion.location] if item.family is Family.LESION_RECOGNITION and gold.lesion else []
    return [*values, *spellings, *place]


def _family(gold: Gold, wider: Sequence[Diagnosis], vocabulary: Vocabulary) -> list[tuple[str, Diagnosis | None]]:
    first = [(name, vocabulary.find(name)) for name in gold.differentials[:1]]
    return [(text, entry) for entry in wider for text in entry.terms] + first


def is_revealing(words: Sequence[str]) -> bool:
    """Whether words can tell an answer: not numbers, single letters and the commonest answers."""
    return " ".join(words) not in UNREVEALING and any(len(word) > 1 and not word.isdigit() for word in words)


def names_every_option(item: Item, text: str) -> bool:
    """Whether a question names all options of an item of choice: then it offers them, and tells none apart."""
    if item.runner is not Runner.CHOICE or not item.options:
        return False
    words = f" {normal_form(text)} "
    return all(f" {normal_form(option)} " in words for option in item.options)


def term_spans(text: str, terms: Sequence[LeakTerm]) -> list[tuple[int, int, LeakTerm]]:
    """Find terms in a text: start, end and term of each hit in order, without overlaps; of terms with equal words the first counts."""
    words = [(word, match.start(), match.end()) for match in WORD.finditer(text) for word in normal_form(match[0]).split()]
    by_first: dict[str, list[LeakTerm]] = {}
    for term in sorted((term for term in terms if term.words), key=lambda term: -len(term.words)):
        by_first.setdefault(term.words[0], []).append(term)
    found, place = [], 0
    while place < len(words):
        hit = next(
            (term for term in by_first.get(words[place][0], ()) if _matches(text, words[place : place + len(term.words)], term)), None
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


def _matches(text: str, words: Sequence[tuple[str, int, int]], term: LeakTerm) -> bool:
    if tuple(word for word, _, _ in words) != term.words:
        return False
    return not term.exact or text[words[0][1] : words[-1][2]].replace("’", "'").removesuffix("'s") == term.text


def sent_texts_of(item: Item, requests: Iterable[Request]) -> dict[str, SentText]:
    """Give everything that is sent of an item, by where it stands (`AnswerLeak.where`); empty texts are left out.

    Examples of other patients, which name answers on purpose, printed options (pictures too) and labels of a form are no text of the
    item.
    """
    asked = list(requests)
    plain, disclosing = ([row for row in asked if (row.arm in DISCLOSING) is wanted] for wanted in (False, True))
    own = item_texts(item)
    messages = _by_arm((row.arm, _message_text(row)) for row in plain)
    places = {where: SentText(text, messages) for where, text in own.items()}
    rests = _by_arm((row.arm, _rest(_message_text(row), own, item)) for row in plain)
    places["template"] = SentText(_lines(rests.values()), rests)
    known = {line for rest in rests.values() for line in rest.split("\n")}
    told = _by_arm((row.arm, _new_lines(_rest(_message_text(row), own, item), known)) for row in disclosing)
    places["disclosed"] = SentText(_lines(told.values()), told)
    pictures = [(row.arm, [image for turn in row.turns for image in turn.images if not (image.example or image.option)]) for row in asked]
    labels = _by_arm((arm, "\n".join(image.label for image in images)) for arm, images in pictures)
    places["labels"] = SentText(_lines(labels.values()), labels)
    names = _by_arm((arm, "\n".join(PurePosixPath(image.path).name for image in images)) for arm, images in pictures)
    places["file names"] = SentText(_lines(names.values()), names)
    ids = "\n".join((item.item_id.removeprefix(f"{item.benchmark}/"), item.case_id, item.pair_id))
    places["metadata"] = SentText(ids, {row.arm: ids for row in asked})
    return {where: place for where, place in places.items() if place.text.strip()}


def item_texts(item: Item) -> dict[str, str]:
    """Give what an item itself tells, by where it stands."""
    texts = {"question": item.question, "given": item.given, "notes": item.notes, "record": item.record}
    for number, turn in enumerate(item.turns, start=1):
        texts[f"turn {number}"] = f"{turn.reveal}\n{turn.question}" if turn.reveal and turn.question else turn.reveal or turn.question
    if item.runner is Runner.OPEN:
        texts["options"] = "\n".join(item.options)
    return {where: text for where, text in texts.items() if text.strip()}


def _by_arm(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Put the texts of the strategies of one arm together."""
    found: dict[str, dict[str, None]] = {}
    for arm, text in texts:
        found.setdefault(arm, {})[text] = None
    return {arm: "\n".join(parts) for arm, parts in found.items()}


def _message_text(request: Request) -> str:
    return "\n".join((request.system, *(turn.text[turn.example_characters :] for turn in request.turns)))


def _rest(text: str, own: Mapping[str, str], item: Item) -> str:
    """Take out of a message what the item tells, and the options or labels that it prints for the answer."""
    parts = {part.strip() for whole in own.values() for part in (whole, *whole.split("\n"), _shown_start(whole, text)) if part.strip()}
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        text = text.replace(part, "\n")
    printed = {f"{letter}. {option}" for letter, option in zip(LETTERS, item.options, strict=False)}
    for option in sorted(printed, key=lambda option: (-len(option), option)):
        text = text.replace(option, "\n")
    lines = text.split("\n")
    return "\n".join(line for line in lines if not (item.runner is Runner.STRUCTURED and line.startswith('"')))


def _shown_start(whole: str, text: str) -> str:
    """Give as much of a text as a message shows of it: arms and text budgets cut it behind a word."""
    if whole.strip() in text:
        return ""
    ends = [match.end() for match in re.finditer(r"\S+", whole)]
    shown = bisect_left(ends, True, key=lambda end: whole[:end].strip() not in text)
    return whole[: ends[shown - 1]] if shown > 1 else ""


def _lines(texts: Iterable[str]) -> str:
    """Give every different line once, in order."""
    return "\n".join(dict.fromkeys(line for text in texts for line in text.split("\n") if line.strip()))


def _new_lines(text: str, known: set[str]) -> str:
    return "\n".join(line for line in text.split("\n") if line not in known)
