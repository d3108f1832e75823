"""The leaks of a benchmark as a page for a person: one offline file, the terms marked in their context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from neuralmedbench.benchmarks.answer_leaks import places_of
from neuralmedbench.benchmarks.leak_terms import terms_of
from neuralmedbench.benchmarks.sent_texts import by_item, places_of_item
from neuralmedbench.files.pages import page, table
from neuralmedbench.records.answer_leaks import SEVERITIES, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Vocabulary

AROUND = 90
"""Characters shown on either side of a term."""
MEANING = {
    "answer": "the answer in its own words",
    "alias": "another name of the answer",
    "code": "the code of the answer",
    "field": "another value that is scored: a field of a structured answer, the place of a lesion",
    "family": "a wider term of the answer, or the first other diagnosis to consider",
}


def leak_page(leaks: AnswerLeaks, items: Iterable[Item], gold: Iterable[Gold], requests: Iterable[Request], vocabulary: Vocabulary) -> str:
    """Give the page.

    Parameters
    ----------
    leaks : AnswerLeaks
        What was found.
    items, gold : iterable
        The items and their answers.
    requests : iterable of Request
        What is sent; the texts are shown around each term.
    vocabulary : Vocabulary
        As in `find_leaks`.

    Returns
    -------
    str
        HTML without a script; every text is escaped.
    """
    found: dict[str, list[AnswerLeak]] = {}
    for leak in leaks.leaks:
        found.setdefault(leak.item_id, []).append(leak)
    answers, sent = {row.item_id: row for row in gold}, by_item(requests)
    counted = [(severity, str(sum(leak.severity == severity for leak in leaks.leaks)), MEANING[severity]) for severity in SEVERITIES]
    body = "".join(
        _section(item, answers[item.item_id], found[item.item_id], sent.get(item.item_id, ()), vocabulary)
        for item in sorted(items, key=lambda item: item.item_id)
        if item.item_id in found
    )
    told = (
        f"<p>{leaks.leaking} of {leaks.items} items with an answer name it, or another value that is scored, in what a"
        " model is sent (texts, labels and file names of pictures, ids); a person accepted {leaks.accepted} of them with a reason. A model can then read the answer and need not find it: take the words out of the note, or"
        " add the heading above them to <code>deidentification: cut_sections</code>; what may stay is accepted with a reason"
        " (<code>scripts/accept_leaks.py</code>). A term that the text denies is listed too. This page shows"
        " answers: keep it from whoever rates or is tested.</p>"
    )
    return page(f"Answers in the texts: {leaks.benchmark}", [told, table(counted), body or "<p>Nothing was found.</p>"])


def _section(item: Item, gold: Gold, leaks: Sequence[AnswerLeak], requests: Sequence[Request], vocabulary: Vocabulary) -> str:
    places, shown = places_of_item(item, requests), []
    terms = terms_of(item, gold, vocabulary)
    for leak in leaks:
        text = places[leak.where].text if leak.where in places else ""
        quotes = "".join(
            _quote(text, start, end)
            for start, end, term in places_of(text, terms)
            if (term.text, term.severity) == (leak.term, leak.severity)
        )
        arms = escape(", ".join(leak.arms))
        accepted = f"; accepted: {escape(leak.accepted)}" if leak.accepted else ""
        shown.append(
            f'<div class="{leak.severity}"><p><strong>{escape(leak.term)}</strong> ({leak.severity}), {leak.count} in {escape(leak.where)}; arms: {arms}{accepted}</p>{quotes}</div>'
        )
    return f"<section><h2>{escape(item.item_id)}</h2>{''.join(shown)}</section>"


def _quote(text: str, start: int, end: int) -> str:
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return f"<blockquote>{escape(before)}<mark>{escape(text[start:end])}</mark>{escape(after)}</blockquote>"
