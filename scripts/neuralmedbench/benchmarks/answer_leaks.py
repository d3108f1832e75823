"""Search everything that a model is sent for the answer, before anything is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from neuralmedbench.benchmarks.leak_terms import Term, terms_of
from neuralmedbench.benchmarks.sent_texts import Place, by_item, places_of_item
from neuralmedbench.files.digests import sha256_of_value
from neuralmedbench.records.answer_leaks import SEVERITIES, AcceptedLeaks, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import NO_LESION, Gold, Item, Runner
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Vocabulary, normal_form

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


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
        for leak in _of_item(item, answers[item.item_id], places_of_item(item, sent.get(item.item_id, ())), vocabulary)
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


def _of_item(item: Item, gold: Gold, places: Mapping[str, Place], vocabulary: Vocabulary) -> list[AnswerLeak]:
    terms, leaks = terms_of(item, gold, vocabulary), []
    for where, place in places.items():
        if where == "template" and gold.answer == NO_LESION:  # the form offers it to every item on a lesion
            continue
        if where == "question" and names_every_option(item, place.text):
            continue
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for start, end, term in places_of(place.text, terms):
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


def names_every_option(item: Item, text: str) -> bool:
    """Whether a question names all options of an item of choice: then it offers them, and tells none apart."""
    if item.runner is not Runner.CHOICE or not item.options:
        return False
    words = f" {normal_form(text)} "
    return all(f" {normal_form(option)} " in words for option in item.options)


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
