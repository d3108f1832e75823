"""The leaks of a benchmark as a page for a person: one offline file, the terms marked in their context."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from neuralmedbench.benchmarks.answer_leaks import places_of, terms_of, texts_of
from neuralmedbench.io.pages import page, table
from neuralmedbench.records.answer_leaks import SEVERITIES, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.vocabulary import Vocabulary

AROUND = 90
"""Characters shown on either side of a term."""
MEANING = {
    "answer": "the answer in its own words",
    "alias": "another name of the answer",
    "code": "the code of the answer",
    "family": "a wider term of the answer, or the first other diagnosis to consider",
}


def leak_page(leaks: AnswerLeaks, items: Iterable[Item], gold: Iterable[Gold], vocabulary: Vocabulary) -> str:
    """Give the page.

    Parameters
    ----------
    leaks : AnswerLeaks
        What was found.
    items, gold : iterable
        The items and their answers; the texts are shown around each term.
    vocabulary : Vocabulary
        As in `find_leaks`.

    Returns
    -------
    str
        HTML without a script; every text is escaped.
    """
    by_item: dict[str, list[AnswerLeak]] = {}
    for leak in leaks.leaks:
        by_item.setdefault(leak.item_id, []).append(leak)
    answers = {row.item_id: row for row in gold}
    counted = [(severity, str(sum(leak.severity == severity for leak in leaks.leaks)), MEANING[severity]) for severity in SEVERITIES]
    body = "".join(
        _section(item, answers[item.item_id], by_item[item.item_id], vocabulary)
        for item in sorted(items, key=lambda item: item.item_id)
        if item.item_id in by_item
    )
    told = (
        f"<p>{leaks.leaking} of {leaks.items} items with an answer name it in a text that a"
        " model is sent (a name, another name or a code). A model can then read the answer and need not find it: take the words out of the note, or"
        " add the heading above them to <code>deidentification: cut_sections</code>. A term that the text denies is listed too. This page shows"
        " answers: keep it from whoever rates or is tested.</p>"
    )
    return page(f"Answers in the texts: {leaks.benchmark}", [told, table(counted), body or "<p>Nothing was found.</p>"])


def _section(item: Item, gold: Gold, leaks: Sequence[AnswerLeak], vocabulary: Vocabulary) -> str:
    texts, shown = texts_of(item, {}), []
    terms = terms_of(gold, vocabulary)
    for leak in leaks:
        text = texts.get(leak.where, "")
        quotes = "".join(
            _quote(text, start, end)
            for start, end, term in places_of(text, terms)
            if (term.text, term.severity) == (leak.term, leak.severity)
        )
        arms = escape(", ".join(leak.arms))
        shown.append(
            f'<div class="{leak.severity}"><p><strong>{escape(leak.term)}</strong> ({leak.severity}), {leak.count} in {escape(leak.where)}; arms: {arms}</p>{quotes}</div>'
        )
    return f"<section><h2>{escape(item.item_id)}</h2>{''.join(shown)}</section>"


def _quote(text: str, start: int, end: int) -> str:
    before, after = text[max(0, start - AROUND) : start], text[end : end + AROUND]
    return f"<blockquote>{escape(before)}<mark>{escape(text[start:end])}</mark>{escape(after)}</blockquote>"
