"""Search everything that will be sent to a model for the answer."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from neuralmedbench.benchmarks.neurovlm_labels import SPELLINGS
from neuralmedbench.benchmarks.sign_names import DESCRIBING, NAMING, sign_names
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.answer_leaks import SEVERITIES, AcceptedLeaks, AnswerLeak, AnswerLeaks
from neuralmedbench.records.arm_changes import SUGGESTS, as_asked
from neuralmedbench.records.items import NO_LESION, Family, Gold, Item, Runner, discloses_findings, gold_fields
from neuralmedbench.records.questions import LETTERS
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Diagnosis, Vocabulary, normal_form

MAX_ABBREVIATION = 4

YES_OR_NO = "да нет так ні ja nein nee sí si oui non não sim tak nie evet hayır ναι όχι हाँ नहीं نعم لا כן לא 예 아니오 네 아니요"
"""Yes and no in other languages; those of Chinese and Japanese are single signs, or stand in every text."""

COMMON = ("yes", "no", "true", "false", "none", "both", "neither", "all of the above", "none of the above")
UNREVEALING = frozenset((*COMMON, *map(normal_form, YES_OR_NO.split())))
"""Answers too common to reveal anything in a text; the same holds for numbers and single letters."""

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Chinese and Japanese letters: their words have no spaces between them, so a term with one is found anywhere in a text."""


@dataclass(frozen=True)
class LeakTerm:
    """A term to search for: its words in normal form, or a code; an `exact` term must match in case."""

    text: str
    severity: str
    words: tuple[str, ...] = ()
    code: str = ""
    exact: bool = False


@dataclass(frozen=True)
class SentText:
    """One text to search, and the texts of the arms that may show it.

    An arm shows a term if its text contains the term's line up to the end of the term: arms and text budgets truncate at the end.
    """

    text: str
    shown: Mapping[str, str]

    def arms(self, start: int, end: int) -> set[str]:
        """Return the arms that show the characters from `start` to `end`."""
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
    """Find the answer in the texts sent for each item.

    Parameters
    ----------
    benchmark : str
        Name of the benchmark.
    items : sequence of Item
        The items.
    gold : iterable of Gold
        Their answers.
    requests : iterable of Request
        The requests: messages, labels and file names of pictures, ids; see `sent_texts_of`.
    vocabulary : Vocabulary
        Other names, codes and wider terms.
    accepted : AcceptedLeaks or None
        Leaks that a person accepted; they are still listed, with the reason.

    Returns
    -------
    AnswerLeaks
        Terms found as whole words, in any case, spelling and possessive; abbreviations only with their capitals. The longest of several terms
        at one position counts. Printed options and field labels are not leaks, nor is a question that names all of its options.
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
    # wider terms, first alternatives and signs are listed but do not count as leaks of the item
    revealing = [leak for leak in leaks if leak.severity not in ("family", "sign")]
    leaking = {leak.item_id for leak in revealing}
    return AnswerLeaks(
        benchmark=benchmark,
        items=sum(item.item_id in answers for item in items),
        leaking=len(leaking),
        leaks=tuple(leaks),
        accepted=len(leaking - {leak.item_id for leak in revealing if not leak.accepted}),
    )


def by_item(requests: Iterable[Request]) -> dict[str, Sequence[Request]]:
    """Group requests by item."""
    found: dict[str, list[Request]] = {}
    for request in requests:
        found.setdefault(request.item_id, []).append(request)
    return dict(found)


def _of_item(item: Item, gold: Gold, places: Mapping[str, SentText], vocabulary: Vocabulary) -> list[AnswerLeak]:
    terms, leaks = terms_of(item, gold, vocabulary), []
    for where, place in places.items():
        if where == "template" and gold.answer == NO_LESION:  # the form offers it in every lesion item
            continue
        if where == "question" and _names_every_option(item, place.text):
            continue
        # hits of each term, and the arms that show at least one of them
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for start, end, term in term_spans(place.text, terms):
            found.setdefault((term.text, term.severity), []).append((start, end))
        if where == "template" and (item.options or item.rivals):  # "the letter of one option" stands in the form of every choice
            found = {key: hits for key, hits in found.items() if key[0].lower() != "one"}
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
    """Collect the terms that would reveal the answer of an item or another scored value, each once, the most severe first."""
    plain = re.sub(r"\([^()]*\)", " ", gold.answer)
    entry = vocabulary.of_reference(gold.answer, gold.icd10)
    abbreviations = set(entry.abbreviations) if entry else set()
    wider = list(vocabulary.ancestors(entry.key)) if entry and entry.key in vocabulary.diagnoses else []
    # severity decreases: answer, alias, code, field, family, sign; a term counts with its first
    terms = [_term(text, "answer", abbreviations) for text in (gold.answer, plain)]
    terms += [_term(text, "alias", abbreviations) for text in (*gold.aliases, *(entry.terms if entry else ()))]
    codes = dict.fromkeys((*([gold.icd10] if gold.icd10 else []), *(entry.icd10 if entry else ())))
    terms += [LeakTerm(code, "code", code=code) for code in codes]
    terms += [_term(text, "field", set()) for text in _fields(item, gold)]
    for text, owner in _family(gold, wider, vocabulary):
        terms.append(_term(text, "family", set(owner.abbreviations) if owner else set()))
    # names of signs that give the disease away, and of what is nearly always seen in it alone: warnings
    terms += [_term(text, "sign", set()) for signs in (NAMING, DESCRIBING) for text in sign_names(gold, vocabulary, signs)]
    normal = entry is not None and entry.is_normal
    unique: dict[tuple[str, ...], LeakTerm] = {}
    for term in terms:
        # the single word "normal" occurs in every examination
        if (term.code or is_revealing(term.words)) and not (normal and len(term.words) == 1):
            unique.setdefault((term.code, *term.words), term)
    return list(unique.values())


def answer_terms(gold: Gold) -> list[LeakTerm]:
    """Collect the names of the answer that its reference states, as far as they can reveal it."""
    plain = re.sub(r"\([^()]*\)", " ", gold.answer)
    terms = [_term(text, "answer", set()) for text in dict.fromkeys((gold.answer, plain, *gold.aliases))]
    return [term for term in terms if is_revealing(term.words)]


def _term(text: str, severity: str, abbreviations: set[str]) -> LeakTerm:
    words = tuple(normal_form(text).split())
    short = len(words) == 1 and len(words[0]) <= MAX_ABBREVIATION and text.strip() != text.strip().lower()
    return LeakTerm(text.strip(), severity, words, exact=text in abbreviations or short)


def _fields(item: Item, gold: Gold) -> list[str]:
    """Return the scored values other than the answer: structured fields in every known spelling, and the location of the lesion."""
    values = [value for name, value in gold_fields(gold.fields).items() if name != "class"] if gold.fields else []
    spellings = [spelling for value in values for spelling, label in SPELLINGS.items() if label == value]
    place = [gold.lesion.location] if item.family is Family.LESION_RECOGNITION and gold.lesion else []
    return [*values, *spellings, *place]


def _family(gold: Gold, wider: Sequence[Diagnosis], vocabulary: Vocabulary) -> list[tuple[str, Diagnosis | None]]:
    first = [(name, vocabulary.find(name)) for name in gold.differentials[:1]]
    return [(text, entry) for entry in wider for text in entry.terms] + first


def is_revealing(words: Sequence[str]) -> bool:
    """Return True if words can reveal an answer; numbers, single letters and the commonest answers cannot."""
    return " ".join(words) not in UNREVEALING and any(len(word) > 1 and not word.isdigit() for word in words)


def _names_every_option(item: Item, text: str) -> bool:
    """Return True if a question names all options of a choice item, and so favours none."""
    if item.runner is not Runner.CHOICE or not item.options:
        return False
    words = f" {normal_form(text)} "
    return all(f" {normal_form(option)} " in words for option in item.options)


def term_spans(text: str, terms: Sequence[LeakTerm]) -> list[tuple[int, int, LeakTerm]]:
    """Find terms in a text: start, end and term of each hit in order, without overlaps; the first of terms with equal words counts."""
    # longest terms first, by their first word, over the normalised words of the text
    words = [(word, match.start(), match.end()) for match in WORD.finditer(text) for word in normal_form(match[0]).split()]
    by_first: dict[str, list[LeakTerm]] = {}
    for term in sorted((term for term in terms if term.words and not UNSPACED.search(term.text)), key=lambda term: -len(term.words)):
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
    # the longest of the terms without spaces at each place
    if unspaced := {term.text.casefold(): term for term in reversed(terms) if UNSPACED.search(term.text)}:
        anywhere = "|".join(re.escape(text) for text in sorted(unspaced, key=len, reverse=True))
        found += [(match.start(), match.end(), unspaced[match[0].casefold()]) for match in re.finditer(anywhere, text, re.IGNORECASE)]
    # codes: the dot is optional (I63.5, I635), and a longer code is not a hit
    for term in (term for term in terms if term.code):
        spelled = re.escape(term.code).replace(r"\.", r"\.?")
        found += [(match.start(), match.end(), term) for match in re.finditer(rf"(?<![\w.]){spelled}(?!\w|\.\d)", text, re.IGNORECASE)]
    return sorted(found, key=lambda one: one[:2])


def _matches(text: str, words: Sequence[tuple[str, int, int]], term: LeakTerm) -> bool:
    if tuple(word for word, _, _ in words) != term.words:
        return False
    return not term.exact or text[words[0][1] : words[-1][2]].replace("’", "'").removesuffix("'s") == term.text


def sent_texts_of(item: Item, requests: Iterable[Request]) -> dict[str, SentText]:
    """Return every text sent for an item, by part (`AnswerLeak.where`), without empty ones.

    Suggested answers, few-shot examples of other patients, printed options (pictures too) and labels of a form are excluded, because they name answers on
    purpose.
    """
    # a suggestion names an answer on purpose, and the rest of such a request is that of another arm
    rows = [row for row in requests if not SUGGESTS.match(row.arm)]
    plain, disclosing = ([row for row in rows if discloses_findings(row.arm) is wanted] for wanted in (False, True))
    # the item's own texts, then the rest of the messages (the template)
    own = _item_texts(item)
    messages = _by_arm((row.arm, _message_text(row)) for row in plain)
    places = {where: SentText(text, messages) for where, text in own.items()}
    rests = _by_arm((row.arm, _rest(_message_text(row), own, as_asked(item, row.arm))) for row in plain)
    places["template"] = SentText(_lines(rests.values()), rests)
    # of disclosing arms, only lines that no other arm shows
    known = {line for rest in rests.values() for line in rest.split("\n")}
    disclosed = _by_arm((row.arm, _new_lines(_rest(_message_text(row), own, as_asked(item, row.arm)), known)) for row in disclosing)
    places["disclosed"] = SentText(_lines(disclosed.values()), disclosed)
    pictures = [(row.arm, [image for turn in row.turns for image in turn.images if not (image.example or image.option)]) for row in rows]
    labels = _by_arm((arm, "\n".join(image.label for image in images)) for arm, images in pictures)
    places["labels"] = SentText(_lines(labels.values()), labels)
    names = _by_arm((arm, "\n".join(PurePosixPath(image.path).name for image in images)) for arm, images in pictures)
    places["file names"] = SentText(_lines(names.values()), names)
    ids = "\n".join((item.item_id.removeprefix(f"{item.benchmark}/"), item.case_id, item.pair_id))
    places["metadata"] = SentText(ids, {row.arm: ids for row in rows})
    return {where: place for where, place in places.items() if place.text.strip()}


def _item_texts(item: Item) -> dict[str, str]:
    """Return the texts of the item itself, by part."""
    texts = {"question": item.question, "given": item.given, "notes": item.notes, "record": item.record}
    for number, turn in enumerate(item.turns, start=1):
        texts[f"turn {number}"] = f"{turn.reveal}\n{turn.question}" if turn.reveal and turn.question else turn.reveal or turn.question
    return {where: text for where, text in texts.items() if text.strip()}


def _by_arm(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Join the distinct texts of the strategies of each arm."""
    found: dict[str, dict[str, None]] = {}
    for arm, text in texts:
        found.setdefault(arm, {})[text] = None
    return {arm: "\n".join(parts) for arm, parts in found.items()}


def _message_text(request: Request) -> str:
    return "\n".join((request.system, *(turn.words[turn.example_characters :] for turn in request.turns)))


def _rest(text: str, own: Mapping[str, str], item: Item) -> str:
    """Remove from a message the item's own texts, and the printed options or labels."""
    # longest parts first, so that none leaves a remainder of a longer one
    parts = {part.strip() for whole in own.values() for part in (whole, *whole.split("\n"), _shown_start(whole, text)) if part.strip()}
    for part in sorted(parts, key=lambda part: (-len(part), part)):
        text = text.replace(part, "\n")
    printed = {f"{letter}. {option}" for letter, option in zip(LETTERS, item.options, strict=False)}
    for option in sorted(printed, key=lambda option: (-len(option), option)):
        text = text.replace(option, "\n")
    lines = text.split("\n")
    return "\n".join(line for line in lines if not (item.runner is Runner.STRUCTURED and line.startswith('"')))


def _shown_start(whole: str, text: str) -> str:
    """Return the part of a text that a message shows; arms and text budgets truncate it after a word."""
    if whole.strip() in text:
        return ""
    ends = [match.end() for match in re.finditer(r"\S+", whole)]
    shown = bisect_left(ends, True, key=lambda end: whole[:end].strip() not in text)
    return whole[: ends[shown - 1]] if shown > 1 else ""


def _lines(texts: Iterable[str]) -> str:
    """Return the distinct non-empty lines, in order."""
    return "\n".join(dict.fromkeys(line for text in texts for line in text.split("\n") if line.strip()))


def _new_lines(text: str, known: set[str]) -> str:
    return "\n".join(line for line in text.split("\n") if line not in known)
