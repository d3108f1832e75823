"""Models whose rates say more about the form of their answers than about what they know: unread, or cut off at their limit."""

from __future__ import annotations

from collections.abc import Iterable

from neuralmedbench.records.words import are, listing, percent
from neuralmedbench.tables.declare import Cells, Tables
from neuralmedbench.tables.study import Study
from neuralmedbench.tables.words import constant_of, models_of

FORM_LIMIT = 0.1
"""Share of the answers, unread or cut off, above which a model has a warning beside its rank. (Our rule.)"""

UNREAD, TRUNCATED = "could not be read", "were cut off at the limit of tokens"
SHORT = {UNREAD: "unread", TRUNCATED: "cut off"}
"""The same beside the sentence of the first screen, which says what the answers count as."""


def form_shares(tally: dict[str, int], present: int) -> Cells:
    """Return the shares of the answers that are there which could not be read, or were cut off; None without any answer."""
    return {
        "unread_fraction": tally["unparsable"] / present if present else None,
        "truncated_fraction": tally["truncated"] / present if present else None,
    }


def form_faults(row: Cells) -> list[tuple[str, float]]:
    """Return the faults of a row of the leaderboard that are above the limit: what, and its share."""
    faults = (("unread_fraction", UNREAD), ("truncated_fraction", TRUNCATED))
    return [(what, float(share)) for name, what in faults if isinstance(share := row.get(name), int | float) and share > FORM_LIMIT]


def form_notes(row: Cells) -> list[str]:
    """Return the notes on a model's row; without its shares, because notes are shown where these are hidden."""
    return [f"warning: more than {percent(FORM_LIMIT)} of the answers are {SHORT[what]}" for what, _ in form_faults(row)]


def form_sentences(study: Study, tables: Tables) -> list[str]:
    """State which models were not read or were cut off above the limit, and once what such answers count as."""
    found: dict[str, list[str]] = {}
    for name, benchmark in study.benchmarks.items():
        for row in models_of(tables, name):
            faults = form_faults(row)
            if faults:
                parts = [f"{percent(share)} {what}{_in_thought(row) if what == TRUNCATED else ''}" for what, share in faults]
                shares = f"of the answers of {row['title']} {listing(parts)}"
                shares += open_rate(row, tables)
                unread = any(what == UNREAD for what, _ in faults)
                found.setdefault(_counted_as(row, unread, len(faults) > 1), []).append(f"{benchmark.config.title}: {shares}")
    return [f"{'; '.join(whose)}; {count}." for count, whose in found.items()]


def _in_thought(row: Cells) -> str:
    """Say how many of the answers that were cut off had not begun; empty if all had."""
    number, cut = row.get("truncated_thinking") or 0, row.get("truncated") or 0
    return f" ({'all' if number == cut else percent(row['truncated_fraction'] * number / cut)} while thinking)" if number else ""


def open_rate(row: Cells, tables: Tables) -> str:
    """Say between which rates a model lies, had none or all of its unread answers been right, and whether a constant answer lies between them.

    Empty where few answers are unread, or where some of them are missing and not wrong.
    """
    unread, rate = row.get("unparsable") or 0, row.get("pass1")
    if (row.get("unread_fraction") or 0) <= FORM_LIMIT or row.get("unread_missing") or rate is None or not row.get("expected"):
        return ""
    most = min(1.0, rate + unread / row["expected"])
    words = f" ({percent(rate)} are right if all of these are wrong, {percent(most)} if all are right"
    floor = constant_of(tables, row["benchmark"]).get("pass1")
    if floor is not None and rate <= floor < most:
        words += f"; inconclusive against the best constant answer, {percent(floor)}"
    return f"{words})"


def _counted_as(row: Cells, unread: bool, cut: bool) -> str:
    """Say which of the answers count as wrong: a free one that nobody graded is missing, whether it could be read or not."""
    missing, number = row.get("unread_missing") or 0, row.get("unparsable") or 0
    if not unread or not missing:
        return "these count as wrong, whatever the model knows"
    if missing < number:
        return f"{number - missing:,} of the unread ones count as wrong, {missing:,} have no grade and are missing"
    whose = "the unread ones" if cut else "these"
    return f"{whose} have no grade either, so they are missing and not wrong"


def form_badges(study: Study, rows: Iterable[Cells]) -> list[Cells]:
    """Return a warning badge that names the models; none if all are read."""
    titles: dict[str, set[str]] = {}
    for row in rows:
        for what, _ in form_faults(row):
            titles.setdefault(f"more than {percent(FORM_LIMIT)} {SHORT[what]}", set()).add(str(row["title"]))
    text = "; ".join(f"{what}: {listing(sorted(who))}" for what, who in titles.items())
    return [{"name": "Form of the answers", "state": "warn", "text": text}] if text else []


def contradiction_note(tally: dict[str, int]) -> list[str]:
    """Return the note on choices whose letter stands before the words of another option; the letter counted."""
    return ["some letters stand before the words of another option; the letter counts"] if tally["contradicted"] else []


def unread_words(rows: Iterable[Cells]) -> str:
    """Count the answers of some rows that could not be read; empty without any."""
    number = sum(row.get("unparsable") or 0 for row in rows)
    return f"{number:,} {are(number)} unread" if number else ""
