"""Right diagnoses that count only with the right side, region, picture or box: topic `evidence`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from neuralmedbench.estimates.intervals import Floats
from neuralmedbench.records.responses import ResponseState
from neuralmedbench.records.words import listing
from neuralmedbench.scoring.evidence import ASKED
from neuralmedbench.tables.declare import Cells, Measure, MeasureRow, ModelRows, of_benchmarks, topic
from neuralmedbench.tables.groups import Mask
from neuralmedbench.tables.outcomes import FULL, Key, headline
from neuralmedbench.tables.study import BenchmarkStudy, Study

EVIDENCE = "evidence"
"""The topic."""

PLAIN, ALL_OF_IT = "plain", "all"
KNOWN = "evidence known"
"""Label of the items that the rows are about, for suppression."""

WORDS = {
    "side": "side",
    "region": "region",
    "slice": "picture",
    "point": "point",
    "box_0.3": "box (overlap 0.3)",
    "box_0.5": "box (overlap 0.5)",
}


PASSES, LOST, UNREAD = "pass1", "credit_lost", "places_unread"
"""Measures: answers that pass with the right evidence; passing answers that lose their credit; answers whose place cannot be read."""


@of_benchmarks
def evidence_rows(study: Study, benchmark: BenchmarkStudy) -> Iterator[MeasureRow]:
    """Right diagnoses that count only with the right evidence (`value_of_slice`).

    Evidence is side, region, picture, point or box. All are over the same items: those with a
    ranked differential for which the reference knows every kind of evidence that the answer form
    asks for and that it knows of any item. What an answer does not state, or states in a way that
    cannot be read, is wrong.
    """
    for arm in (FULL, *benchmark.layouts):
        yield from _rows_under(study, benchmark, arm)


def evidence_items(benchmark: BenchmarkStudy, arm: str = FULL) -> tuple[list[str], Mask]:
    """Return the kinds of evidence that are asked for and known of an item, and a mask of the items of which an arm shows all of them."""
    outcomes = benchmark.outcomes

    def known_under(name: str) -> dict[str, frozenset[str]]:
        rows = [row for scores in benchmark.scores.values() for row in headline(scores, name) if row.evidence]
        # what the reference knows is the same for all answers to an item
        return {row.item_id: frozenset(row.evidence or ()) for row in rows}

    full = known_under(FULL)
    known = full if arm == FULL else known_under(arm)
    kinds = [kind for kind in ASKED[benchmark.config.answer_form] if any(kind in own for own in full.values())]
    of_items = [bool(kinds) and set(kinds) <= known.get(item.item_id, frozenset()) for item in outcomes.items]
    return kinds, np.array(of_items, dtype=bool) & outcomes.ranked


def _rows_under(study: Study, benchmark: BenchmarkStudy, arm: str) -> Iterator[MeasureRow]:
    outcomes = benchmark.outcomes
    kinds, mask = evidence_items(benchmark, arm)
    if not mask.any():
        return
    unknown = [WORDS[kind] for kind in ASKED[benchmark.config.answer_form] if kind not in kinds]
    note = f"not known of any item: {listing(unknown)}" if unknown else ""
    for model in study.models:
        key = Key(model, arm)
        if key not in outcomes.counts:
            continue
        made = ModelRows(EVIDENCE, study, benchmark, model)
        credited = _shares_with_evidence(benchmark, key, kinds, mask)
        plain = credited[PLAIN]
        there = ~np.isnan(plain)
        if not there.any():
            continue
        cells: Cells = {"arm": arm, "n_answers": int(outcomes.counts[key].samples[there].sum()), "note": note}
        for name, values in credited.items():
            yield made.rate(PASSES, values, slice=EVIDENCE, value_of_slice=name, **cells)
            if name != PLAIN:
                yield made.rate(LOST, plain - values, slice=EVIDENCE, value_of_slice=name, **cells)
        answers = outcomes.answers.of(key).rows()
        unread = [(place, row.state == ResponseState.OK and bool(row.evidence_unread)) for place, row in answers if there[place]]
        yield made.mean(UNREAD, unread, arm=arm, note=note)


def _shares_with_evidence(benchmark: BenchmarkStudy, key: Key, kinds: list[str], mask: Mask) -> dict[str, Floats]:
    """Return the share of an item's answers that count, by kind of evidence; shape (items,), NaN outside the common items."""
    outcomes = benchmark.outcomes
    plain = np.where(mask, outcomes.pass1_of_complete_items(key), np.nan)
    needed: dict[str, tuple[str, ...]] = {kind: (kind,) for kind in kinds}
    if len(kinds) > 1:
        needed[ALL_OF_IT] = tuple(kinds)
    sums = {name: np.zeros(len(outcomes.items)) for name in needed}
    for place, row in outcomes.answers.of(key).rows():
        if row.passed and row.evidence is not None:
            for name, parts in needed.items():
                sums[name][place] += all(row.evidence.get(part, False) for part in parts)
    return {PLAIN: plain} | {name: np.where(np.isnan(plain), np.nan, outcomes.counts[key].mean_of(total)) for name, total in sums.items()}


MEASURES = (
    Measure(
        PASSES,
        "Right with evidence",
        "Answers that pass and also give the right evidence; the row `plain` counts all that pass.",
    ),
    Measure(LOST, "Right without evidence", "Share of answers that pass without the right evidence."),
    Measure(UNREAD, "Unread places", "Share of answers whose place cannot be read.", main=False),
)

TABLE = topic(EVIDENCE, evidence_rows, MEASURES, labels=lambda row: [(KNOWN, "")])
