"""Review of answer leaks: a page for a person, and the leaks accepted with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from neuralmedbench.benchmarks.answer_leaks import by_item, sent_texts_of, term_spans, terms_of
from neuralmedbench.benchmarks.templates import TEMPLATES
from neuralmedbench.errors import ConfigError
from neuralmedbench.files.json_files import read_json_record, write_json_record
from neuralmedbench.files.pages.page import render_page
from neuralmedbench.records.answer_leaks import SEVERITIES, AcceptedLeak, AcceptedLeaks, AnswerLeak, AnswerLeaks
from neuralmedbench.records.items import Gold, Item
from neuralmedbench.records.requests import Request
from neuralmedbench.records.vocabulary import Vocabulary

AROUND = 90
"""Characters shown before and after a term."""

MEANING = {
    "answer": "the answer in its own words",
    "alias": "another name of the answer",
    "code": "the code of the answer",
    "field": "another value that is scored: a field of a structured answer, the place of a lesion",
    "family": "a wider term of the answer, or the first other diagnosis to consider",
    "sign": "the name of a sign that stands for the disease: no leak, but it says much",
}
REMEDY = "correct it, or delete it and accept again with nmb benchmark accept-leaks"


def leak_page(leaks: AnswerLeaks, items: Iterable[Item], gold: Iterable[Gold], requests: Iterable[Request], vocabulary: Vocabulary) -> str:
    """Render the review page.

    Parameters
    ----------
    leaks : AnswerLeaks
        Result of `find_leaks`.
    items, gold : iterable
        The items and their answers.
    requests : iterable of Request
        The requests, quoted around each term.
    vocabulary : Vocabulary
        As in `find_leaks`.

    Returns
    -------
    str
        An HTML file without scripts.
    """
    found: dict[str, list[AnswerLeak]] = {}
    for leak in leaks.leaks:
        found.setdefault(leak.item_id, []).append(leak)
    answers, sent = {row.item_id: row for row in gold}, by_item(requests)
    leaking = [item for item in sorted(items, key=lambda item: item.item_id) if item.item_id in found]
    values = {
        "title": f"Answers in the texts: {leaks.benchmark}",
        "leaks": leaks,
        "counts": [(name, sum(leak.severity == name for leak in leaks.leaks), MEANING[name]) for name in SEVERITIES],
        "items": {
            item.item_id: _quotes(item, answers[item.item_id], found[item.item_id], sent.get(item.item_id, ()), vocabulary)
            for item in leaking
        },
    }
    return render_page(TEMPLATES / "leaks.html.j2", values)


def _quotes(
    item: Item, gold: Gold, leaks: Sequence[AnswerLeak], requests: Sequence[Request], vocabulary: Vocabulary
) -> Iterator[tuple[AnswerLeak, list[tuple[str, str, str]]]]:
    """Yield each leak with every occurrence of its term: the words before it, itself, and those after it."""
    places, terms = sent_texts_of(item, requests), terms_of(item, gold, vocabulary)
    for leak in leaks:
        text = places[leak.where].text if leak.where in places else ""
        quotes = [
            (text[max(0, start - AROUND) : start], text[start:end], text[end : end + AROUND])
            for start, end, term in term_spans(text, terms)
            if (term.text, term.severity) == (leak.term, leak.severity)
        ]
        yield leak, quotes


def read_accepted(path: Path, benchmark: str) -> AcceptedLeaks:
    """Read the accepted leaks; none without a file. DataError if it does not fit, ConfigError if it belongs to another benchmark."""
    accepted = read_json_record(path, AcceptedLeaks, remedy=REMEDY) if path.exists() else AcceptedLeaks(benchmark=benchmark)
    if accepted.benchmark != benchmark:
        message = f"{path.name}: it belongs to a benchmark other than {benchmark}; {REMEDY}"
        raise ConfigError(message)
    return accepted


def accept_text(leaks: AnswerLeaks, before: AcceptedLeaks, *, item_id: str, where: str, reason: str, reviewer: str) -> AcceptedLeaks:
    """Accept every leak in one text of one item.

    Parameters
    ----------
    leaks : AnswerLeaks
        Latest search result; its digests are accepted, so a text that changes later is listed again.
    before : AcceptedLeaks
        Leaks accepted before; those no longer found are dropped.
    item_id, where : str
        Item and part, as on the page.
    reason, reviewer : str
        Why the text may stay, without naming a patient, and who decided it.

    Returns
    -------
    AcceptedLeaks
        Sorted by item, part and digest.

    Raises
    ------
    ConfigError
        If nothing was found there, or reason or reviewer is empty.
    """
    if not reason.strip() or not reviewer.strip():
        message = "accepting a leak needs a reason and a reviewer; give both"
        raise ConfigError(message)
    digests = {leak.digest for leak in leaks.leaks if (leak.item_id, leak.where) == (item_id, where)}
    if not digests:
        places = ", ".join(sorted({leak.where for leak in leaks.leaks if leak.item_id == item_id}))
        hint = f"something was found in {places}" if places else "take the id from the page"
        message = f"{item_id}: nothing was found in {where!r}; {hint}"
        raise ConfigError(message)
    # a text that changed has another digest, so its old acceptance is dropped
    found = {leak.digest for leak in leaks.leaks}
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    new = [
        AcceptedLeak(item_id=item_id, where=where, digest=digest, reason=reason.strip(), reviewer=reviewer, accepted_on=day)
        for digest in digests
    ]
    kept = [row for row in before.accepted if row.digest in found - digests]
    return replace(before, accepted=tuple(sorted([*kept, *new], key=lambda row: (row.item_id, row.where, row.digest))))


def write_accepted(path: Path, accepted: AcceptedLeaks) -> None:
    """Write the accepted leaks."""
    write_json_record(path, accepted)
